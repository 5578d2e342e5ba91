//! Scenarios: what is not restarted, whatever it reads. The real binary on the
//! stand-in deck; the whole ledger is compared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod scene;

use std::time::{Duration, SystemTime};

use common::{Deck, now, write};
use scene::{acts, count, flag, impatient, pane, revival, show, story, turns, watching};

/// Nothing.
const NONE: [&str; 0] = [];

/// Three complete turns, each of a run of its own.
fn three_runs(deck: &Deck) {
    for _ in 0..3 {
        let run = deck.once();
        assert_eq!(run.status.code(), Some(0));
        assert_eq!((run.stdout, run.stderr), (vec![], vec![]));
    }
}

#[test]
fn ordinary_worker_left_alone() {
    let deck = impatient();
    deck.row("worker").dead().add();
    deck.row("my conductor-ops")
        .group("conductors")
        .dead()
        .add();
    three_runs(&deck);
    let daemon = watching(&deck);
    turns(&deck, &daemon, 3);
    assert_eq!(acts(&deck), NONE);
    assert_eq!(deck.read("restart.log") + &deck.read("escalations.log"), "");
    assert_eq!(count(&deck, "watchdog.log", &["worker"]), 0);
}

#[test]
fn stopped_stays_stopped() {
    let deck = impatient();
    let id = deck
        .row("conductor-ops")
        .group("conductor")
        .file("is_conductor", "true")
        .file("channels", "plugin:telegram@claude-plugins-official")
        .stopped()
        .add();
    flag(&deck, "autorestart", &id);
    three_runs(&deck);
    let daemon = watching(&deck);
    turns(&deck, &daemon, 3);
    assert_eq!(acts(&deck), NONE);
    assert_eq!(deck.read("restart.log") + &deck.read("escalations.log"), "");
    assert_eq!(
        count(&deck, "watchdog.log", &[&id, "stopped on purpose"]),
        1
    );
}

#[test]
fn archived_stays_archived() {
    let deck = impatient();
    let id = deck.row("conductor-old").archived().prints("error").add();
    three_runs(&deck);
    let daemon = watching(&deck);
    turns(&deck, &daemon, 3);
    assert_eq!(acts(&deck), NONE);
    assert_eq!(deck.read("restart.log") + &deck.read("escalations.log"), "");
    assert_eq!(count(&deck, "watchdog.log", &[&id, "archived"]), 1);
}

#[test]
fn never_started_is_no_crash() {
    let deck = impatient();
    let id = deck.row("conductor-new").never_started().add();
    three_runs(&deck);
    let daemon = watching(&deck);
    turns(&deck, &daemon, 3);
    assert_eq!(acts(&deck), [show(&id)]);
    assert_eq!(story(&deck, &id), ["never-ran"]);
    assert_eq!(deck.read("escalations.log"), "");
}

#[test]
fn unfamiliar_status_is_no_error() {
    let deck = impatient();
    let words = ["unknown", "queued", "paused"];
    let ids = words.map(|word| deck.row("conductor-x").dead().prints(word).add());
    three_runs(&deck);
    let daemon = watching(&deck);
    turns(&deck, &daemon, 3);
    assert_eq!(acts(&deck), NONE);
    assert_eq!(deck.read("restart.log") + &deck.read("escalations.log"), "");
    // The word that nobody has seen is said once.
    let said = ids.map(|id| count(&deck, "watchdog.log", &[&id]));
    assert_eq!(said, [0, 0, 1]);
}

#[test]
fn young_session_grace() {
    let deck = impatient();
    let created = deck.row("conductor-a").dead().age(10).add();
    let spawned = deck.row("conductor-b").dead().add();
    let stamp = deck.file(format!("locks/instance-spawn-{spawned}.stamp"));
    write(&stamp, "");
    let stamp = std::fs::File::options().write(true).open(stamp).unwrap();
    stamp
        .set_modified(SystemTime::now() - Duration::from_secs(20))
        .unwrap();
    let started = deck.row("conductor-c").dead().add();
    deck.hook(&started, "SessionStart", "starting", now() - 5);
    let nearly = deck.row("conductor-d").dead().age(57).add();
    let daemon = watching(&deck);
    let restarted = deck.wait_for_call(|call| call.is("session restart", &nearly));
    deck.wait("three refusals", || {
        (count(&deck, "watchdog.log", &["not restarted (young)"]) >= 3).then_some(())
    });
    turns(&deck, &daemon, 3);
    // Left alone until it is 60 s old.
    let born: u64 = nearly.rsplit_once('-').unwrap().1.parse().unwrap();
    assert!(
        restarted.at + 50 >= (born + 60) * 1000,
        "{} {born}",
        restarted.at
    );
    assert_eq!(acts(&deck), revival(&nearly));
    for (id, what) in [
        (&created, "created"),
        (&spawned, "spawned"),
        (&started, "started"),
    ] {
        assert_eq!(story(&deck, id).last().unwrap(), "young");
        let words = [id, "not restarted (young)", &format!("it was {what}")];
        assert_eq!(count(&deck, "watchdog.log", &words), 1);
    }
}

#[test]
fn a_stop_or_archive_under_way_is_no_death() {
    let deck = impatient();
    write(&deck.file("stop_gap_ms"), "3000");
    let [stopped, archived] = ["conductor-a", "conductor-b"].map(|title| deck.row(title).add());
    let daemon = watching(&deck);
    turns(&deck, &daemon, 1);
    let user = |verb: &str, id: &str| {
        let end = deck.agent_deck(&["-p", "default", "session", verb, id, "--json"]);
        assert!(end.status.success());
    };
    std::thread::scope(|scope| {
        scope.spawn(|| user("stop", &stopped));
        scope.spawn(|| user("archive", &archived));
        for id in [&stopped, &archived] {
            deck.wait("a refusal", || {
                let words = [id.as_str(), "not restarted (being-stopped)"];
                (count(&deck, "watchdog.log", &words) == 1).then_some(())
            });
        }
    });
    for (id, words) in [(&stopped, "stopped on purpose"), (&archived, "archived")] {
        deck.wait("the reason", || {
            (count(&deck, "watchdog.log", &[id, words]) > 0).then_some(())
        });
    }
    turns(&deck, &daemon, 3);
    // A look may have met the end of a command; nothing but looks were there.
    let by_user = ["stop", "archive"].map(|verb| format!("-p default session {verb} "));
    let (users, ours): (Vec<_>, Vec<_>) = acts(&deck)
        .into_iter()
        .partition(|act| by_user.iter().any(|words| act.starts_with(words)));
    assert_eq!(users.len(), 2);
    let looks = [show(&stopped), show(&archived)];
    assert!(ours.iter().all(|act| looks.contains(act)), "{ours:?}");
    let stored = [&stopped, &archived].map(|id| deck.get(id, "status").unwrap());
    assert_eq!(stored, ["stopped", "stopped"]);
}

#[test]
fn a_stop_that_cannot_be_saved_is_a_stop() {
    let deck = impatient();
    let id = deck.row("conductor-ops").add();
    deck.trap_for("stop", &id).with("db_locked", "3000").set();
    let daemon = watching(&deck);
    std::thread::scope(|scope| {
        scope.spawn(|| deck.agent_deck(&["-p", "default", "session", "stop", &id, "--json"]));
        daemon.wait_for_line("watchdog.log", "not restarted (being-stopped)");
    });
    // It was not saved, so the row reads dead like any other; but it was seen.
    daemon.wait_for_line("watchdog.log", "not restarted (stopped)");
    turns(&deck, &daemon, 3);
    let ended = deck.ended().into_iter();
    let codes: Vec<i32> = ended
        .filter(|(call, ..)| call.is("session stop", &id))
        .map(|(_, code, _)| code)
        .collect();
    assert_eq!(codes, [1]);
    let stop = format!("-p default session stop {id} --json");
    let looks = [stop, show(&id), pane(&id)];
    assert!(
        acts(&deck).iter().all(|act| looks.contains(act)),
        "{:?}",
        acts(&deck)
    );
    assert_eq!(story(&deck, &id), ["being-stopped", "stopped"]);
}
