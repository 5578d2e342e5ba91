//! What the watchdog remembers between runs: damaged, lost, unwritable, or in
//! somebody else's hands. The real binary on the stand-in deck.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/past.rs"]
mod past;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Deck, wait_for};
use past::{count, once, pass, restarted, run, through_shell};

/// A deck whose one critical session was restarted in vain, so long ago that it
/// would be restarted again at once.
fn used_deck() -> (Deck, String) {
    let deck = Deck::new();
    let id = deck
        .row("conductor-ops")
        .dead()
        .file("after_restart", "no-effect")
        .add();
    once(&deck).silent();
    assert_eq!(restarted(&deck), [id.as_str()]);
    pass(&deck, 400);
    (deck, id)
}

/// Names in the watchdog's folder that begin so.
fn names(deck: &Deck, begin: &str) -> Vec<String> {
    let entries = fs::read_dir(deck.watchdog_dir()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(begin)).collect()
}

/// Waits until agent-deck was asked for lists more often than that.
fn wait_for_more_lists_than(deck: &Deck, count: usize) {
    let lists = |call: &&common::Call| call.args.contains("list");
    deck.wait_for_ledger(|calls| calls.iter().filter(lists).count() > count);
}

#[test]
fn a_memory_that_can_be_read_is_used() {
    let (deck, id) = used_deck();
    once(&deck).silent();
    assert_eq!(restarted(&deck), [id.as_str(), &id]);
}

#[test]
fn damaged_state_file() {
    type Damage = fn(Vec<u8>) -> Vec<u8>;
    let damages: [(&str, Damage); 11] = [
        ("nothing but NUL", |whole| vec![0; whole.len()]),
        ("a hole of NUL", |mut whole| {
            whole[40..80].fill(0);
            whole
        }),
        ("empty", |_| Vec::new()),
        ("cut early", |whole| whole[..1].to_vec()),
        ("cut in half", |whole| whole[..whole.len() / 2].to_vec()),
        ("cut at its end", |whole| whole[..whole.len() - 2].to_vec()),
        ("another type", |_| b"[]".to_vec()),
        ("a field of another type", |whole| {
            edited(&whole, |state| {
                state["state"]["sessions"] = 7.into();
            })
        }),
        ("a field missing", |whole| {
            edited(&whole, |state| {
                let sessions = state["state"]["sessions"].as_object_mut().unwrap();
                let session = sessions.values_mut().next().unwrap();
                session.as_object_mut().unwrap().remove("profile").unwrap();
            })
        }),
        ("a newer version", |whole| {
            edited(&whole, |state| {
                state["version"] = (state["version"].as_u64().unwrap() + 1).into();
            })
        }),
        ("no text", |_| vec![0xff; 300]),
    ];
    for (what, damage) in damages {
        let (deck, id) = used_deck();
        let path = deck.watchdog_dir().join("state.json");
        let damaged = damage(fs::read(&path).unwrap());
        fs::write(&path, &damaged).unwrap();

        once(&deck).silent();
        let aside = names(&deck, "state.json.broken-");
        assert_eq!(aside.len(), 1, "{what}: {aside:?}");
        let kept = fs::read(deck.watchdog_dir().join(&aside[0])).unwrap();
        assert_eq!(kept, damaged, "{what}");
        serde_json::from_slice::<serde_json::Value>(&fs::read(&path).unwrap()).unwrap();

        once(&deck).silent();
        assert_eq!(
            restarted(&deck),
            [id.as_str()],
            "{what}: its budget is spent"
        );
        assert_eq!(
            count(&deck, "watchdog.log", &aside[0]),
            1,
            "{what}: said once"
        );
        assert_eq!(
            count(&deck, "escalations.log", "state-lost"),
            1,
            "{what}: told once"
        );

        pass(&deck, 301);
        once(&deck).silent();
        assert_eq!(restarted(&deck), [id.as_str(), &id], "{what}: it works on");
    }
}

fn edited(whole: &[u8], edit: fn(&mut serde_json::Value)) -> Vec<u8> {
    let mut state = serde_json::from_slice(whole).unwrap();
    edit(&mut state);
    state.to_string().into_bytes()
}

#[test]
fn a_daemon_works_on_with_a_damaged_state_file() {
    let (deck, id) = used_deck();
    deck.setting("SAFETY_POLL_S", "1");
    let path = deck.watchdog_dir().join("state.json");
    fs::write(&path, [0; 100]).unwrap();
    let mut daemon = deck.daemon();
    daemon.wait_for_line("watchdog.log", "every budget begins as spent");
    daemon.wait_for_line("restart.log", "burst-limit");
    assert!(daemon.stop().success());
    assert_eq!(restarted(&deck), [id.as_str()]);
    assert_eq!(
        count(&deck, "watchdog.log", "every budget begins as spent"),
        1
    );
    assert_eq!(count(&deck, "escalations.log", "state-lost"), 1);
}

#[test]
fn a_missing_state_in_a_used_folder() {
    type Use = fn(&Deck);
    let used: [(&str, bool, Use); 5] = [
        ("never used", false, |_| ()),
        ("only watched", false, |deck| once(deck).silent()),
        ("restart.log", true, |deck| {
            plant(deck, "restart.log", "{\"capability\":\"restart\"}\n")
        }),
        ("restart.log.1", true, |deck| {
            plant(deck, "restart.log.1", "{\"capability\":\"poller\"}\n")
        }),
        ("a state set aside", true, |deck| {
            plant(deck, "state.json.broken-1", "")
        }),
    ];
    for (what, spent, used) in used {
        let deck = Deck::new();
        used(&deck);
        let _ = fs::remove_file(deck.watchdog_dir().join("state.json"));
        let id = deck.row("conductor-ops").dead().add();
        once(&deck).silent();
        once(&deck).silent();
        assert_eq!(restarted(&deck).len(), usize::from(!spent), "{what}");
        let said = count(
            &deck,
            "watchdog.log",
            "missing from a folder that has been used",
        );
        assert_eq!(said, usize::from(spent), "{what}");
        if spent {
            pass(&deck, 301);
            once(&deck).silent();
            assert_eq!(restarted(&deck), [id.as_str()], "{what}");
        }
    }
}

/// Puts a file of ours into the watchdog's folder.
fn plant(deck: &Deck, name: &str, content: &str) {
    folder(deck);
    let path = deck.watchdog_dir().join(name);
    fs::write(&path, content).unwrap();
    fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
}

/// Makes the watchdog's folder.
fn folder(deck: &Deck) {
    fs::create_dir_all(deck.watchdog_dir()).unwrap();
    fs::set_permissions(deck.watchdog_dir(), PermissionsExt::from_mode(0o700)).unwrap();
}

/// Nothing can be written where the state is prepared, not even by root.
fn no_room(deck: &Deck) -> PathBuf {
    let obstacle = deck.watchdog_dir().join(".state.json.tmp");
    fs::create_dir_all(obstacle.join("in-the-way")).unwrap();
    obstacle
}

#[test]
fn disk_full() {
    let deck = Deck::new();
    deck.setting("SAFETY_POLL_S", "1");
    deck.setting("MIN_GLOBAL_RESTART_INTERVAL_S", "1");
    let ops = deck.row("conductor-ops").add();
    let late = deck.row("conductor-late").add();
    let mut daemon = deck.daemon();
    wait_for("the state", || {
        fs::metadata(deck.watchdog_dir().join("state.json")).ok()
    });
    daemon.wait_for_line("watchdog.log", "starts as process");
    wait_for_more_lists_than(&deck, 2);

    // Running on: the limits are kept in memory, and it warns once.
    let obstacle = no_room(&deck);
    deck.set(&ops, "after_restart", "no-effect");
    deck.unset(&ops, "pane");
    daemon.wait_for_line("watchdog.log", "limits are kept in memory");
    deck.wait_for_call(|call| call.is("session restart", &ops));
    deck.unset(&late, "pane");
    deck.wait_for_call(|call| call.is("session restart", &late));
    assert_eq!(count(&deck, "watchdog.log", "cannot be written"), 1);
    assert!(!deck.read("state.json").contains("in vain"));

    // With space again it saves by itself.
    fs::remove_dir_all(obstacle).unwrap();
    daemon.wait_for_line("watchdog.log", "is written again");
    let state: serde_json::Value = serde_json::from_str(&deck.read("state.json")).unwrap();
    for id in [&ops, &late] {
        let restarts = state["state"]["sessions"][id]["restarts"]
            .as_array()
            .unwrap();
        assert_eq!(restarts.len(), 1, "{id}");
    }
    assert!(daemon.stop().success());
    assert_eq!(restarted(&deck), [ops, late]);
}

#[test]
fn a_disk_that_is_full_at_the_start() {
    let deck = Deck::new();
    deck.setting("SAFETY_POLL_S", "1");
    let id = deck.row("conductor-ops").dead().add();
    folder(&deck);
    let obstacle = no_room(&deck);
    let daemon = deck.daemon();
    daemon.wait_for_line("watchdog.log", "cannot be written, so nothing is done");
    daemon.wait_for_line("restart.log", "\"rule\":\"memory\"");
    wait_for_more_lists_than(&deck, 3);
    assert_eq!(restarted(&deck), [""; 0]);
    assert_eq!(count(&deck, "watchdog.log", "cannot be written"), 1);
    fs::remove_dir_all(obstacle).unwrap();
    deck.wait_for_call(|call| call.is("session restart", &id));
}

#[test]
fn logs_that_cannot_be_written_stop_nothing() {
    let deck = Deck::new();
    deck.setting("SAFETY_POLL_S", "1");
    once(&deck).silent();
    let id = deck.row("conductor-ops").dead().add();
    for log in ["watchdog.log", "restart.log", "escalations.log"] {
        fs::create_dir(deck.watchdog_dir().join(log)).unwrap();
    }
    let mut daemon = deck.daemon();
    deck.wait_for_call(|call| call.is("session restart", &id));
    wait_for_more_lists_than(&deck, 2);
    assert!(daemon.stop().success());
    let (_, err) = daemon.said();
    for log in ["watchdog.log", "restart.log"] {
        let said = err.matches(&format!("{log} cannot be written")).count();
        assert_eq!(said, 1, "{err}");
    }
}

#[test]
fn once_without_memory() {
    let deck = Deck::new();
    deck.row("conductor-ops").dead().add();
    folder(&deck);
    let obstacle = no_room(&deck);
    for _ in 0..2 {
        assert_eq!(once(&deck).code(), Some(5));
        assert_eq!(restarted(&deck), [""; 0]);
    }
    assert_eq!(
        count(
            &deck,
            "watchdog.log",
            "cannot be written, so nothing is done"
        ),
        2
    );
    // Nobody knows what was done meanwhile, so its budget begins as spent.
    fs::remove_dir_all(obstacle).unwrap();
    once(&deck).silent();
    assert_eq!(restarted(&deck), [""; 0]);
    pass(&deck, 301);
    once(&deck).silent();
    assert_eq!(restarted(&deck).len(), 1);
}

type Plant = fn(&Path, &Path);

/// What somebody may have put where a file belongs: what it is called, and how
/// it is made from a precious file.
const PLANTS: [(&str, Plant); 5] = [
    ("is a symbolic link", |victim, planted| {
        symlink(victim, planted).unwrap()
    }),
    ("hard link", |victim, planted| {
        fs::hard_link(victim, planted).unwrap()
    }),
    ("is a FIFO", |_, planted| {
        assert!(
            Command::new("mkfifo")
                .arg(planted)
                .status()
                .unwrap()
                .success()
        );
    }),
    ("is a folder", |_, planted| fs::create_dir(planted).unwrap()),
    ("anybody may write to it", |_, planted| {
        fs::write(planted, "theirs").unwrap();
        fs::set_permissions(planted, PermissionsExt::from_mode(0o666)).unwrap();
    }),
];

#[test]
fn planted_links() {
    for name in [
        "lock",
        "state.json",
        "watchdog.log",
        "restart.log",
        "escalations.log",
    ] {
        for (what, put) in PLANTS {
            let deck = Deck::new();
            once(&deck).silent();
            let limit = "exit 1 HTTP 429";
            deck.row("conductor-ops")
                .dead()
                .file("after_restart", limit)
                .add();
            let victim = deck.root().join("victim");
            fs::write(&victim, "precious").unwrap();
            let planted = deck.watchdog_dir().join(name);
            let _ = fs::remove_file(&planted);
            put(&victim, &planted);

            let ran = once(&deck);
            assert!(
                ran.err.contains(name) && ran.err.contains(what),
                "{name}, {what}: {}",
                ran.err
            );
            assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
            assert_eq!(
                fs::read_to_string(&victim).unwrap(),
                "precious",
                "{name}, {what}"
            );
            if what == "anybody may write to it" {
                assert_eq!(fs::read_to_string(&planted).unwrap(), "theirs", "{name}");
            }
            // Without lock or memory nothing is done; without a log it is.
            let (code, restarts) = match name {
                "lock" | "state.json" => (5, 0),
                _ => (0, 1),
            };
            assert_eq!(ran.code(), Some(code), "{name}, {what}: {}", ran.err);
            assert_eq!(restarted(&deck).len(), restarts, "{name}, {what}");
        }
    }
}

#[test]
fn a_link_where_the_state_is_prepared_is_not_followed() {
    let deck = Deck::new();
    deck.row("conductor-ops").dead().add();
    folder(&deck);
    let victim = deck.root().join("victim");
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, deck.watchdog_dir().join(".state.json.tmp")).unwrap();
    once(&deck).silent();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(restarted(&deck).len(), 1);
}

#[test]
fn a_folder_that_others_may_write_to_is_refused() {
    let deck = Deck::new();
    deck.row("conductor-ops").dead().add();
    folder(&deck);
    fs::set_permissions(deck.watchdog_dir(), PermissionsExt::from_mode(0o777)).unwrap();
    let ran = once(&deck);
    assert_eq!(ran.code(), Some(5));
    assert!(
        ran.err.contains("watchdog: others may write to it"),
        "{}",
        ran.err
    );
    assert_eq!(deck.ledger(), []);
}

#[test]
fn files_are_private_whatever_the_umask() {
    for umask in ["000", "022", "077", "177"] {
        let deck = Deck::new();
        deck.row("conductor-ops")
            .dead()
            .file("after_restart", "exit 1 HTTP 429")
            .add();
        let script = format!("umask {umask}; exec \"$0\" \"$@\"");
        let ran = through_shell(&deck, &script, &["--once"]).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!(mode(&deck.watchdog_dir()), 0o700, "umask {umask}");
        let mut files = names(&deck, "");
        files.sort();
        let all = [
            "escalations.log",
            "lock",
            "restart.log",
            "state.json",
            "watchdog.log",
        ];
        assert_eq!(files, all);
        for file in files {
            assert_eq!(
                mode(&deck.watchdog_dir().join(&file)),
                0o600,
                "umask {umask}: {file}"
            );
        }
    }
}

#[test]
fn dry_run_leaves_a_damaged_state_file_where_it_is() {
    let (deck, _) = used_deck();
    let path = deck.watchdog_dir().join("state.json");
    fs::write(&path, "damaged").unwrap();
    let ran = run(&deck, &["--once", "--dry-run"]);
    assert_eq!((ran.code(), ran.err.as_str()), (Some(0), ""));
    assert!(
        ran.out.contains("every budget begins as spent"),
        "{}",
        ran.out
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "damaged");
    assert_eq!(names(&deck, "state.json"), ["state.json"]);
}
