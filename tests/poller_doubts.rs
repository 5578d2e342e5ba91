//! Scenarios of pollers in which nobody may be restarted: what cannot be seen or
//! worked out, what belongs to somebody else, what only a person can mend. The
//! real binary on the stand-in deck; the whole ledger is compared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/past.rs"]
mod past;
mod scene;
#[path = "scene/waiting.rs"]
mod waiting;

use std::os::unix::fs::symlink;
use std::process::Command;

use common::{Deck, Row, is_running, write};
use past::{count, once, pass, restarted};
use scene::{acts, revival, story};
use waiting::{after, texts, told};

/// The calls of `ps`.
fn looks(deck: &Deck) -> usize {
    let calls = deck.ledger().into_iter();
    calls.filter(|call| call.program == "ps").count()
}

/// A deck whose `ps` shows what runs on it.
fn deck() -> Deck {
    let deck = Deck::new();
    deck.live_ps();
    deck
}

/// A conductor with a Telegram channel whose `meta.json` names this folder.
fn owner<'a>(deck: &'a Deck, name: &str, folder: &str) -> Row<'a> {
    deck.meta_env(name, "TELEGRAM_STATE_DIR", folder);
    deck.conductor(name).telegram()
}

/// Two looks, and a third for good measure.
fn three_looks(deck: &Deck) {
    once(deck).silent();
    after(deck, 31).silent();
    after(deck, 61).silent();
}

/// All that was called, but the polls and the looks at processes.
fn calls(deck: &Deck) -> Vec<String> {
    let mut acts = acts(deck);
    acts.retain(|act| !act.starts_with("ps "));
    acts
}

#[test]
fn poller_match_is_exact() {
    let deck = deck();
    let bot = deck.home_folder("tg/bot");
    let bot2 = deck.home_folder("tg/bot2");
    let deaf = owner(&deck, "one", &bot).add();
    owner(&deck, "two", &bot2).add();
    let _two = deck.orphan_poller(bot2.clone());
    // None of these polls for the first one.
    let on = |folder: &str| [("TELEGRAM_STATE_DIR", folder.to_owned())];
    let _node = deck.stray_process("node", &on(&bot));
    let _bash = deck.stray_process("bash", &on(&bot));
    let _unset = deck.orphan_poller(None);
    let _above = deck.orphan_poller(deck.home_folder("tg"));
    let _below = deck.orphan_poller(deck.home_folder("tg/bot/bot"));
    let other_name = [("TELEGRAM_STATE_DIR_OLD", bot.clone())];
    let _named = deck.stray_process("bun", &other_name);
    three_looks(&deck);
    assert_eq!(restarted(&deck), [deaf.as_str()]);
}

#[test]
fn a_folder_is_the_same_whatever_way_leads_to_it() {
    let deck = deck();
    let folder = deck.home_folder("tg/bot");
    let link = deck.home().join("link");
    symlink(&folder, &link).unwrap();
    owner(&deck, "slash", &format!("{folder}/")).add();
    let _one = deck.orphan_poller(format!("{}//", link.display()));
    // Who names none has the plugin's own.
    let default = deck.home_folder(".claude/channels/telegram");
    deck.conductor("default").telegram().add();
    let _two = deck.orphan_poller(None);
    three_looks(&deck);
    assert_eq!((calls(&deck), told(&deck).len()), (vec![], 0), "{default}");
    assert_eq!(looks(&deck), 3);
}

#[test]
fn a_zombie_or_somebody_elses_poller_does_not_count() {
    let deck = deck();
    let (a, b) = (deck.home_folder("tg/a"), deck.home_folder("tg/b"));
    let ids = [owner(&deck, "a", &a).add(), owner(&deck, "b", &b).add()];
    let other = deck.orphan_poller(a);
    write(
        &deck.file("ps.users"),
        format!("{} nobody 65534\n", other.pid()),
    );
    let bun = deck.file("bin/bun");
    let mut dead = Command::new(bun)
        .args(["run", "--cwd", "/x/telegram/0.0.6", "start"])
        .env_clear()
        .env("TELEGRAM_STATE_DIR", b)
        .env("HOME", deck.home())
        .stdin(std::process::Stdio::null())
        .spawn()
        .unwrap();
    deck.wait("a zombie", || (!is_running(dead.id())).then_some(()));
    three_looks(&deck);
    after(&deck, 61).silent();
    let mut all = restarted(&deck);
    all.sort();
    let mut wanted = ids.to_vec();
    wanted.sort();
    assert_eq!(all, wanted);
    dead.wait().unwrap();
}

#[test]
fn a_conductor_with_its_own_poller_is_left_alone_for_days() {
    let deck = deck();
    deck.start_tmux();
    let folder = deck.home_folder("tg/bot");
    let row = owner(&deck, "ops", &folder).agent("poller");
    let id = row.agent_env(&[("TELEGRAM_STATE_DIR", &folder)]).add();
    deck.start_agent(&id);
    let pollers = deck.wait_for_pollers(&id, 1);
    for _ in 0..6 {
        once(&deck).silent();
        pass(&deck, 12 * 3600);
    }
    assert_eq!((calls(&deck), looks(&deck)), (vec![], 6));
    assert_eq!(told(&deck), [""; 0]);
    assert_eq!(count(&deck, "watchdog.log", "Telegram"), 0);
    assert_eq!(deck.pollers(&id), pollers);
}

#[test]
fn no_channel_no_check() {
    let deck = deck();
    deck.start_tmux();
    // Neither of these files can be read without it being seen.
    let fifo = |path: std::path::PathBuf| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
    };
    fifo(deck.home().join(".config/agent-deck/config.toml"));
    fifo(deck.file("conductor/ops/meta.json"));
    let conductor = deck.conductor("ops").add();
    deck.start_agent(&conductor);
    let other = deck.row("watcher").group("watchers").add();
    deck.row("slack")
        .channels(&["plugin:slack@x", "server:telegram"])
        .add();
    for _ in 0..5 {
        once(&deck).silent();
        pass(&deck, 1800);
    }
    assert_eq!((calls(&deck), looks(&deck)), (vec![], 0), "{other}");
    assert_eq!(told(&deck), [""; 0]);
    assert_eq!(count(&deck, "watchdog.log", "Telegram"), 0);
}

/// `config.toml` with an env file for the conductor `ops`.
const CONFIG: &str = "[conductors.ops.claude]\nenv_file = \"~/tg.env\"\n";

#[test]
fn state_dir_from_env_file() {
    let deck = deck();
    deck.config(CONFIG);
    let folder = deck.home_folder("tg/ops");
    deck.home_file(
        "tg.env",
        "# the bot\nexport TELEGRAM_STATE_DIR=\"$HOME/tg/ops\"  # bot\n",
    );
    // A conductor by its title is an owner for that alone.
    let id = deck.conductor("ops").add();
    let poller = deck.orphan_poller(folder);
    three_looks(&deck);
    assert_eq!((calls(&deck), told(&deck).len()), (vec![], 0));
    drop(poller);
    three_looks(&deck);
    assert_eq!(restarted(&deck), [id.as_str()]);
}

#[test]
fn a_setting_that_cannot_be_worked_out_is_said_once_with_file_and_line() {
    type Files = fn(&Deck);
    let cases: [(&str, Files, &str); 4] = [
        (
            "needs a shell",
            |deck| {
                deck.config(CONFIG);
                deck.home_file("tg.env", "A=1\nexport TELEGRAM_STATE_DIR=$(pwd)/x\n");
            },
            "tg.env line 2",
        ),
        (
            "an unknown variable",
            |deck| {
                deck.config(CONFIG);
                deck.home_file("tg.env", "export TELEGRAM_STATE_DIR=$BOTS/ops\n");
            },
            "tg.env line 1",
        ),
        (
            "a missing file",
            |deck| {
                deck.config(CONFIG);
            },
            "tg.env",
        ),
        (
            "broken",
            |deck| {
                deck.config("[claude]\nenv_file = \n");
            },
            "config.toml line 2",
        ),
    ];
    for (what, files, place) in cases {
        let deck = deck();
        files(&deck);
        let id = deck.conductor("ops").telegram().add();
        three_looks(&deck);
        after(&deck, 3600).silent();
        assert_eq!(calls(&deck), [""; 0], "{what}");
        let episode = format!("poller-unknown:{id}");
        assert_eq!(told(&deck), [episode.as_str()], "{what}");
        let log = deck.read("watchdog.log");
        assert_eq!(count(&deck, "watchdog.log", place), 1, "{what}: {log}");
        assert!(texts(&deck, &episode)[0].contains(place), "{what}: {log}");
    }
}

#[test]
fn an_agent_that_was_started_with_something_else_is_unknown() {
    let deck = deck();
    deck.start_tmux();
    let (old, new) = (deck.home_folder("tg/old"), deck.home_folder("tg/new"));
    let row = owner(&deck, "ops", &new).agent("poller");
    let id = row.agent_env(&[("TELEGRAM_STATE_DIR", &old)]).add();
    deck.start_agent(&id);
    deck.wait_for_pollers(&id, 1);
    three_looks(&deck);
    let text = &texts(&deck, &format!("poller-unknown:{id}"))[0];
    assert!(text.contains(&old) && text.contains(&new), "{text}");
    assert_eq!((calls(&deck), told(&deck).len()), (vec![], 1));
}

#[test]
fn no_process_list_no_verdict() {
    type Break = fn(&Deck);
    let breaks: [(&str, Break); 4] = [
        ("missing", |deck| deck.uninstall("ps")),
        ("exit 1", |deck| deck.trap("ps").exit(1).set()),
        ("garbage", |deck| {
            deck.trap("ps").stdout("  PID TTY\nnonsense\n").set()
        }),
        ("empty", |deck| deck.trap("ps").stdout("").set()),
    ];
    for (what, breaks) in breaks {
        let deck = deck();
        let id = owner(&deck, "ops", &deck.home_folder("tg/ops")).add();
        breaks(&deck);
        for _ in 0..6 {
            once(&deck).silent();
            pass(&deck, 700);
        }
        assert_eq!(calls(&deck), [""; 0], "{what}");
        assert_eq!(story(&deck, &id), [""; 0], "{what}");
        let said = "whether Telegram is polled is unknown";
        assert_eq!(count(&deck, "watchdog.log", said), 1, "{what}");
        assert_eq!(told(&deck), ["poller-unknown:ps"], "{what}");
    }
}

#[test]
fn a_process_list_that_hangs_ends_what_was_known() {
    let deck = deck();
    let id = owner(&deck, "ops", &deck.home_folder("tg/ops")).add();
    once(&deck).silent();
    deck.trap("ps").hang().times(1).set();
    after(&deck, 31).silent();
    assert_eq!(count(&deck, "watchdog.log", "did not answer in time"), 1);
    // Looks before and after it prove nothing together.
    after(&deck, 31).silent();
    assert_eq!(calls(&deck), [""; 0]);
    after(&deck, 31).silent();
    assert_eq!(restarted(&deck), [id.as_str()]);
}

#[test]
fn two_conductors_one_token() {
    type Settings = fn(&Deck) -> (String, String);
    let cases: [(&str, Settings); 2] = [
        ("one folder", |deck| {
            let folder = deck.home_folder("tg/both");
            (folder.clone(), format!("{folder}/"))
        }),
        ("one token", |deck| {
            let folders = [deck.home_folder("tg/a"), deck.home_folder("tg/b")];
            for folder in ["tg/a/.env", "tg/b/.env"] {
                deck.home_file(folder, "TELEGRAM_BOT_TOKEN=1:one-for-both\n");
            }
            folders.into()
        }),
    ];
    for (what, settings) in cases {
        let deck = deck();
        let (a, b) = settings(&deck);
        let ids = [owner(&deck, "a", &a).add(), owner(&deck, "b", &b).add()];
        let mut one = deck.orphan_poller(a);
        once(&deck).silent();
        one.kill();
        for _ in 0..6 {
            after(&deck, 3600).silent();
        }
        assert_eq!(calls(&deck), [""; 0], "{what}");
        let first = ids.iter().min().unwrap();
        let episode = format!("duplicate-poller:{first}");
        let texts = texts(&deck, &episode);
        let news = texts.iter().filter(|text| !text.starts_with("still, "));
        assert_eq!(news.count(), 1, "{what}: {texts:?}");
        assert!(
            ids.iter().all(|id| texts[0].contains(id.as_str())),
            "{texts:?}"
        );
        assert!(told(&deck).iter().all(|other| *other == episode), "{what}");
        assert!(!deck.read("escalations.log").contains("one-for-both"));
    }
}

#[test]
fn orphans_and_doubles_are_told_and_not_ended() {
    let deck = deck();
    deck.start_tmux();
    let bots = [deck.home_folder("tg/a"), deck.home_folder("tg/b")];
    let begin = |name: &str, folder: &str, words: &str| {
        let row = owner(&deck, name, folder).agent(words);
        let id = row.agent_env(&[("TELEGRAM_STATE_DIR", folder)]).add();
        deck.start_agent(&id);
        id
    };
    let alone = begin("alone", &bots[0], "no-poller");
    let twice = begin("twice", &bots[1], "poller poller");
    let orphan = deck.left_poller(&alone, &bots[0]);
    let both = deck.wait_for_pollers(&twice, 2);
    three_looks(&deck);
    assert_eq!(calls(&deck), [""; 0]);
    let text = |id: &String| texts(&deck, &format!("duplicate-poller:{id}"))[0].clone();
    assert!(
        text(&alone).contains(&format!("[{}]", orphan.pid())),
        "{}",
        text(&alone)
    );
    let mut sorted = both.clone();
    sorted.sort_unstable();
    assert!(
        sorted
            .iter()
            .all(|pid| text(&twice).contains(&pid.to_string())),
        "{}",
        text(&twice)
    );
    assert_eq!(told(&deck).len(), 2);
    assert!(is_running(orphan.pid()));
    assert_eq!(deck.pollers(&twice), both);
    // With the orphan gone it is over.
    drop(orphan);
    once(&deck).silent();
    let last = texts(&deck, &format!("duplicate-poller:{alone}"))
        .pop()
        .unwrap();
    assert!(last.contains("nobody else polls"), "{last}");
}

#[test]
fn old_poller_survives() {
    let deck = deck();
    deck.start_tmux();
    let folder = deck.home_folder("tg/ops");
    let row = owner(&deck, "ops", &folder)
        .agent("poller")
        .next_agent("stubborn-poller");
    let id = row.agent_env(&[("TELEGRAM_STATE_DIR", &folder)]).add();
    deck.start_agent(&id);
    let old = deck.wait_for_pollers(&id, 1);
    once(&deck).silent();
    let agent = deck.agent_pid(&id);
    deck.kill_agent(&id);
    deck.wait("its end", || deck.agent_pid(&id).is_none().then_some(()));
    // A young one is given its minute.
    pass(&deck, 61);
    once(&deck).silent();
    assert_eq!(calls(&deck), revival(&id));
    let both = deck.wait_for_pollers(&id, 2);
    assert_eq!((both[0], deck.agent_pid(&id) == agent), (old[0], false));
    once(&deck).silent();
    assert!(story(&deck, &id).contains(&"duplicate poller".to_owned()));
    assert!(!story(&deck, &id).contains(&"poller".to_owned()));
    after(&deck, 31).silent();
    assert_eq!(told(&deck), [format!("duplicate-poller:{id}")]);
    assert_eq!(deck.pollers(&id), both);
}

#[test]
fn flapping_poller() {
    let deck = deck();
    let folder = deck.home_folder("tg/ops");
    let id = owner(&deck, "ops", &folder).add();
    for _ in 0..5 {
        let poller = deck.orphan_poller(folder.clone());
        once(&deck).silent();
        drop(poller);
        after(&deck, 150).silent();
        pass(&deck, 150);
    }
    assert_eq!(told(&deck), [format!("poller-flaps:{id}")]);
    assert!(restarted(&deck).len() <= 1);
}
