//! Scenarios of deaf conductors: whose poller is missed, when that leads to a
//! restart, and how often. The real binary on the stand-in deck; the whole
//! ledger is compared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/past.rs"]
mod past;
mod scene;
#[path = "scene/waiting.rs"]
mod waiting;

use common::{Deck, Row, screens};
use past::{once, pass, restarted};
use scene::{acts, count, flag, no_flag, pane, records, restart, revival, show, spent, story};
use waiting::{DEDUP, after, texts, told};

/// How pollers are looked for.
const PS: &str = if cfg!(target_os = "linux") {
    "ps -A -o pid=,ppid=,user=,stat=,args="
} else {
    "ps -Aww -o pid=,ppid=,user=,stat=,args="
};

/// A deck whose `ps` shows what runs on it.
fn deck() -> Deck {
    let deck = Deck::new();
    deck.live_ps();
    deck
}

/// A conductor with a Telegram channel whose `meta.json` names its own folder.
fn owner<'a>(deck: &'a Deck, name: &str) -> (Row<'a>, String) {
    let folder = deck.home_folder(&format!("tg/{name}"));
    deck.meta_env(name, "TELEGRAM_STATE_DIR", &folder);
    (deck.conductor(name).telegram(), folder)
}

/// What it takes to restart a deaf one: a look, and whether it is at rest.
fn rescue(id: &str) -> Vec<String> {
    vec![PS.to_owned(), show(id), pane(id), restart(id)]
}

/// The calls that change something.
fn restarts(deck: &Deck) -> Vec<String> {
    let mut acts = acts(deck);
    acts.retain(|act| !act.contains("session show") && !act.contains("session output"));
    acts.retain(|act| act != PS);
    acts
}

#[test]
fn poller_gone_one_restart() {
    let deck = deck();
    let (row, folder) = owner(&deck, "ops");
    let id = row.add();
    once(&deck).silent();
    // Seconds later nobody is sure yet.
    after(&deck, 5).silent();
    assert_eq!(acts(&deck), [PS, PS]);
    after(&deck, 26).silent();
    assert_eq!(acts(&deck)[2..], rescue(&id));
    let attempt = &records(&deck, "restart.log")[0];
    assert_eq!(attempt["event"], "attempt");
    assert_eq!(attempt["capability"], "poller");
    assert_eq!(attempt["session"], id.as_str());
    assert!(
        attempt["evidence"].as_str().unwrap().contains(&folder),
        "{attempt}"
    );
    assert_eq!(story(&deck, &id), ["attempt", "accepted"]);
    assert_eq!(spent(&deck, &id), 1);
    // It has its minute to start its poller.
    after(&deck, 30).silent();
    assert_eq!((restarts(&deck), told(&deck)), (vec![restart(&id)], vec![]));
}

#[test]
fn a_restart_that_brings_the_poller_back_is_enough() {
    let deck = deck();
    let (row, folder) = owner(&deck, "ops");
    let id = row
        .agent("poller")
        .agent_env(&[("TELEGRAM_STATE_DIR", &folder)])
        .add();
    once(&deck).silent();
    // From here on agents are processes.
    deck.start_tmux();
    after(&deck, 31).silent();
    assert_eq!(acts(&deck), [vec![PS.to_owned()], rescue(&id)].concat());
    deck.wait_for_pollers(&id, 1);
    once(&deck).silent();
    assert_eq!(story(&deck, &id), ["attempt", "accepted", "done", "poller"]);
    let line = "its poller was seen";
    assert_eq!(
        count(&deck, "watchdog.log", &[&id, "restart: poller", line]),
        1
    );
    for _ in 0..3 {
        after(&deck, DEDUP).silent();
    }
    assert_eq!((restarts(&deck), told(&deck)), (vec![restart(&id)], vec![]));
}

#[test]
fn poller_dedup_3600s() {
    let deck = deck();
    let (row, _) = owner(&deck, "ops");
    let id = row.add();
    once(&deck).silent();
    after(&deck, 31).silent();
    let first = restart(&id);
    assert_eq!(restarts(&deck), [first.as_str()]);
    // Counted for each: another deaf one gets its own, a minute later.
    let (row, _) = owner(&deck, "web");
    let web = row.add();
    once(&deck).silent();
    after(&deck, 25).silent();
    assert_eq!(restarts(&deck), [first.as_str()]);
    after(&deck, 36).silent();
    let both = [first.clone(), restart(&web)];
    assert_eq!(restarts(&deck), both);
    for _ in 0..5 {
        after(&deck, 600).silent();
    }
    assert_eq!(restarts(&deck), both);
    // After the hour once more, and then at doubled distances.
    after(&deck, 541).silent();
    assert_eq!(restarts(&deck)[2..], [first.as_str()]);
    after(&deck, 61).silent();
    assert_eq!(restarts(&deck)[3..], [restart(&web)]);
    for _ in 0..2 {
        after(&deck, 3500).silent();
    }
    assert_eq!(restarts(&deck).len(), 4);
    after(&deck, 201).silent();
    assert_eq!(restarts(&deck)[4..], [first]);
}

#[test]
fn restart_did_not_help() {
    let deck = deck();
    deck.home_file(".claude/settings.json", SETTINGS);
    let (row, _) = owner(&deck, "ops");
    let id = row.add();
    once(&deck).silent();
    after(&deck, 31).silent();
    for _ in 0..5 {
        after(&deck, 61).silent();
        after(&deck, 540).silent();
    }
    assert_eq!(restarts(&deck), [restart(&id)]);
    let episode = format!("deaf:{id}");
    assert_eq!(told(&deck), [episode.as_str()]);
    let text = &texts(&deck, &episode)[0];
    assert!(
        text.contains("was restarted and nobody polls Telegram for it"),
        "{text}"
    );
    // What it is told to check is not what is known to be right.
    assert!(!text.contains("enabledPlugins"), "{text}");
    assert_eq!(*story(&deck, &id).last().unwrap(), "poller-dedup");
    assert!(story(&deck, &id).contains(&"no poller".to_owned()));
}

/// The plugin is switched on.
const SETTINGS: &str = "{\"enabledPlugins\":{\"telegram@claude-plugins-official\":true}}";

#[test]
fn poller_never_starts() {
    for settings in [
        "",
        "{}",
        "{\"enabledPlugins\":{\"telegram@claude-plugins-official\":false}}",
    ] {
        let deck = deck();
        if !settings.is_empty() {
            deck.home_file(".claude/settings.json", settings);
        }
        let (row, _) = owner(&deck, "ops");
        let id = row.add();
        once(&deck).silent();
        after(&deck, 31).silent();
        after(&deck, 61).silent();
        let text = &texts(&deck, &format!("deaf:{id}"))[0];
        let file = deck.home().join(".claude/settings.json");
        for word in [
            "enabledPlugins",
            file.to_str().unwrap(),
            "telegram@claude-plugins-official",
        ] {
            assert!(text.contains(word), "{settings}: {text}");
        }
        assert_eq!(restarts(&deck), [restart(&id)]);
    }
}

#[test]
fn healthy_again_but_deaf() {
    let deck = deck();
    let (row, _) = owner(&deck, "ops");
    let id = row.dead().add();
    once(&deck).silent();
    assert_eq!(acts(&deck), revival(&id));
    after(&deck, 61).silent();
    assert!(story(&deck, &id).contains(&"no poller".to_owned()));
    assert_eq!(told(&deck), [format!("deaf:{id}")]);
    // From here on the rules of pollers decide, the hour included.
    after(&deck, 31).silent();
    assert_eq!(restarts(&deck), [restart(&id), restart(&id)]);
    for _ in 0..5 {
        after(&deck, 600).silent();
    }
    assert_eq!(restarts(&deck).len(), 2);
}

#[test]
fn poller_restart_obeys_the_guards() {
    let deck = deck();
    let (row, _) = owner(&deck, "deaf");
    let deaf = row.add();
    let crashed = deck.row("conductor-crashed").add();
    once(&deck).silent();
    pass(&deck, 31);
    deck.unset(&crashed, "pane");
    once(&deck).silent();
    let look = vec![PS.to_owned()];
    let first = [look.clone(), revival(&crashed), look.clone()].concat();
    assert_eq!(acts(&deck), first);
    assert_eq!(story(&deck, &deaf), ["spacing"]);
    after(&deck, 20).silent();
    assert_eq!(acts(&deck), [first, look].concat());
    after(&deck, 41).silent();
    assert_eq!(restarted(&deck), [crashed.as_str(), &deaf]);
    assert_eq!(spent(&deck, &deaf), 1);
    // It counts among its own three in 300 s, as a death does.
    deck.unset(&deaf, "pane");
    after(&deck, 61).silent();
    assert_eq!((restarted(&deck).len(), spent(&deck, &deaf)), (3, 2));
}

#[test]
fn a_hold_and_a_pause_keep_a_deaf_one_as_it_is() {
    let deck = deck();
    let (row, _) = owner(&deck, "ops");
    let id = row.add();
    once(&deck).silent();
    flag(&deck, "hold", &id);
    after(&deck, 31).silent();
    common::write(&deck.watchdog_dir().join("pause"), "");
    no_flag(&deck, "hold", &id);
    after(&deck, 31).silent();
    assert_eq!(
        (restarts(&deck), story(&deck, &id)),
        (vec![], vec!["held".to_owned(), "paused".to_owned()])
    );
    std::fs::remove_file(deck.watchdog_dir().join("pause")).unwrap();
    once(&deck).silent();
    assert_eq!(restarts(&deck), [restart(&id)]);
}

#[test]
fn only_at_rest() {
    let deck = deck();
    let mut ids = Vec::new();
    let mut add = |name: &str, dress: &dyn Fn(Row<'_>) -> String| {
        ids.push(dress(owner(&deck, name).0));
    };
    let on = |screen: Vec<u8>| move |row: Row<'_>| row.pane(&screen).add();
    add(
        "draft",
        &on(screens::coloured_draft("please also").into_bytes()),
    );
    add("dialog", &on(screens::dialog().into_bytes()));
    add("plan", &on(screens::recorded("plan-approval-80x24")));
    add("busy", &on(screens::busy().into_bytes()));
    add("queued", &on(screens::recorded("work-queued-120x40")));
    add(
        "background",
        &on(screens::recorded("idle-background-120x40")),
    );
    add("unknown", &on(screens::plain().into_bytes()));
    add("running", &|row| row.status("running").add());
    once(&deck).silent();
    after(&deck, 31).silent();
    for id in &ids {
        assert_eq!(story(&deck, id), ["not-at-rest"], "{id}");
    }
    // Waited for; after half an hour somebody is told.
    after(&deck, 1700).silent();
    assert_eq!(told(&deck), [""; 0]);
    after(&deck, 101).silent();
    let mut episodes = told(&deck);
    episodes.sort();
    let mut wanted: Vec<String> = ids.iter().map(|id| format!("deaf:{id}")).collect();
    wanted.sort();
    assert_eq!(episodes, wanted);
    assert_eq!(restarts(&deck), [""; 0]);
    // The first one that comes to rest is restarted at once.
    deck.set(&ids[0], "pane", screens::free_composer("● Done."));
    once(&deck).silent();
    assert_eq!(restarts(&deck), [restart(&ids[0])]);
    for id in &ids {
        assert_eq!(deck.typed(id), "");
    }
}

#[test]
fn stopped_stays_stopped() {
    let deck = deck();
    let (row, _) = owner(&deck, "old");
    let stopped = row.group("watchers").stopped().add();
    let (row, _) = owner(&deck, "gone");
    let archived = row.file("archived", "2026-11-30T16:53:20Z").add();
    flag(&deck, "autorestart", &stopped);
    flag(&deck, "autorestart", &archived);
    for _ in 0..6 {
        once(&deck).silent();
        pass(&deck, 4 * 3600);
    }
    // Nobody who lives owns a bot, so no processes were looked at either.
    assert_eq!(acts(&deck), [""; 0]);
    // One that is stopped while it is deaf is left alone, too.
    let (row, _) = owner(&deck, "new");
    let id = row.add();
    once(&deck).silent();
    pass(&deck, 31);
    deck.agent_deck(&["-p", "default", "session", "stop", &id, "--json"]);
    once(&deck).silent();
    assert_eq!(restarted(&deck), [""; 0]);
}

#[test]
fn stop_wins_the_race() {
    let deck = deck();
    let (row, _) = owner(&deck, "ops");
    let id = row.add();
    once(&deck).silent();
    pass(&deck, 31);
    // The list still says waiting, the last question before the restart does not.
    deck.trap_for("show", &id).stdout(stopped(&id)).set();
    once(&deck).silent();
    assert_eq!(
        acts(&deck),
        [
            vec![PS.to_owned(), PS.to_owned(), show(&id)],
            vec![pane(&id)]
        ]
        .concat()
    );
    assert_eq!(story(&deck, &id), ["not-at-rest"]);
}

/// What `session show` says of a stopped session.
fn stopped(id: &str) -> String {
    format!("{{\"id\":\"{id}\",\"title\":\"conductor-ops\",\"status\":\"stopped\"}}\n")
}

#[test]
fn a_deaf_session_that_is_not_critical_is_only_told() {
    let deck = deck();
    let id = deck.row("helper").telegram().add();
    once(&deck).silent();
    for _ in 0..3 {
        after(&deck, 61).silent();
    }
    assert_eq!(
        (restarts(&deck), told(&deck)),
        (vec![], vec![format!("deaf:{id}")])
    );
    flag(&deck, "autorestart", &id);
    once(&deck).silent();
    assert_eq!(restarts(&deck), [restart(&id)]);
}

#[test]
fn a_link_that_its_user_has_disabled_is_respected() {
    let deck = deck();
    let (row, _) = owner(&deck, "ops");
    let row = row.without("channels").link_disabled();
    row.add();
    once(&deck).silent();
    for _ in 0..3 {
        after(&deck, 61).silent();
    }
    assert_eq!((restarts(&deck), told(&deck).len()), (vec![], 0));
}
