//! Scenarios: the watchdog as a service and as a command: signals, the service
//! manager, settings, exit codes, where it writes and where it does not. The
//! real binary on the stand-in deck; the whole ledger is compared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod scene;

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use common::{Deck, PATIENCE};
use rustix::process::Signal;
use scene::{acts, count, impatient, polls, records, revival, show, story, turns, watching};

/// Nothing.
const NONE: [&str; 0] = [];

/// The next message to the service manager.
fn receive(manager: &UnixDatagram) -> String {
    let mut message = [0; 1024];
    loop {
        match manager.recv(&mut message) {
            Ok(length) => return String::from_utf8(message[..length].to_vec()).unwrap(),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => panic!("no message came: {e}"),
        }
    }
}

#[test]
fn the_service_manager_is_told_also_while_a_restart_runs() {
    let deck = impatient();
    deck.dump_environ();
    let path = deck.root().join("manager");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    deck.setting("NOTIFY_SOCKET", path.to_str().unwrap());
    deck.setting("WATCHDOG_USEC", "200000");
    let id = deck.row("conductor-ops").dead().add();
    deck.trap_for("restart", &id)
        .delay(Duration::from_secs(3))
        .set();
    let mut daemon = deck.daemon();
    let mut said = Vec::new();
    let mut pings_meanwhile = 0;
    while !said
        .iter()
        .any(|message: &String| message.starts_with("STATUS="))
    {
        let message = receive(&manager);
        let begun = deck
            .ledger()
            .iter()
            .any(|call| call.is("session restart", &id));
        let ended = deck
            .ended()
            .iter()
            .any(|(call, ..)| call.is("session restart", &id));
        if begun && !ended && message == "WATCHDOG=1" {
            pings_meanwhile += 1;
        }
        said.push(message);
    }
    assert!(pings_meanwhile >= 3, "{said:?}");
    assert!(said.contains(&"READY=1".to_owned()), "{said:?}");
    assert!(
        said.last().unwrap().starts_with("STATUS=1 session"),
        "{said:?}"
    );
    assert!(daemon.stop().success());
    while receive(&manager) != "STOPPING=1" {}
    assert_eq!(acts(&deck), revival(&id));
    for (program, variables) in deck.environs() {
        let private = ["NOTIFY_SOCKET=", "WATCHDOG_"];
        let leaks = |variable: &String| private.iter().any(|name| variable.starts_with(name));
        assert!(!variables.iter().any(leaks), "{program} {variables:?}");
    }
}

#[test]
fn terminate_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let deck = impatient();
        deck.row("conductor-ops").dead().add();
        deck.trap("list").delay(Duration::from_millis(700)).set();
        let mut daemon = deck.daemon();
        deck.wait("a poll", || (polls(&deck) == 1).then_some(()));
        daemon.signal(signal);
        assert_eq!(daemon.wait().code(), Some(0));
        // The running command has ended by itself, and no other one began.
        assert_eq!((polls(&deck), acts(&deck)), (1, vec![]));
        let codes: Vec<i32> = deck.ended().iter().map(|(_, code, _)| *code).collect();
        assert_eq!(codes, [0, 0, 0]);
        assert_eq!(
            count(&deck, "watchdog.log", &["ends, as a signal asked"]),
            1
        );
        let state: serde_json::Value = serde_json::from_str(&deck.read("state.json")).unwrap();
        assert!(state["version"].is_u64());
        assert_eq!(daemon.said(), (String::new(), String::new()));
    }
}

#[test]
fn terminate_signal_before_the_first_turn() {
    let deck = impatient();
    deck.row("conductor-ops").dead().add();
    deck.trap("version").delay(Duration::from_millis(700)).set();
    let mut daemon = deck.daemon();
    deck.wait_for_call(|call| call.args == "version");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
    let calls: Vec<String> = deck.ledger().into_iter().map(|call| call.args).collect();
    assert_eq!(calls, ["version"]);
}

#[test]
fn terminate_signal_in_the_middle_of_a_look() {
    let deck = impatient();
    let id = deck.row("conductor-ops").dead().add();
    deck.trap("show").delay(Duration::from_millis(700)).set();
    let mut daemon = deck.daemon();
    deck.wait_for_call(|call| call.is("session show", &id));
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
    assert_eq!(acts(&deck), [show(&id)]);
    assert_eq!(story(&deck, &id), NONE);
    // The next run takes it up.
    deck.no_trap("show");
    assert_eq!(deck.once().status.code(), Some(0));
    assert_eq!(acts(&deck), revival(&id));
}

#[test]
fn exit_code_2_for_wrong_use() {
    let deck = Deck::new();
    std::fs::create_dir_all(deck.home()).unwrap();
    for args in [
        &["--onec"][..],
        &["restart"],
        &["--once", "-x"],
        &["--once=1"],
    ] {
        let run = deck.run(args);
        let complaint = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(2), "{args:?}");
        assert!(run.stdout.is_empty());
        assert!(
            complaint.contains("--once, --dry-run, --verbose"),
            "{complaint}"
        );
        assert_eq!(complaint.lines().count(), 1);
    }
    assert_eq!(deck.ledger(), []);
    assert!(!deck.watchdog_dir().exists());
}

#[test]
fn exit_code_4_when_another_one_runs() {
    let deck = impatient();
    let id = deck.row("conductor-ops").add();
    let daemon = watching(&deck);
    deck.unset(&id, "pane");
    let run = deck.once();
    assert_eq!(run.status.code(), Some(4));
    assert_eq!((run.stdout, run.stderr), (vec![], vec![]));
    let holder = format!("process number {}", daemon.pid());
    assert_eq!(
        count(&deck, "watchdog.log", &["--once", "leaves", &holder]),
        1
    );
    // One that decides only is no other one.
    let run = deck.run(&["--once", "--dry-run"]);
    assert_eq!(run.status.code(), Some(0));
    deck.wait_for_call(|call| call.is("session restart", &id));
    turns(&deck, &daemon, 2);
    let restarts = deck
        .ledger()
        .into_iter()
        .filter(|call| call.is("session restart", &id));
    assert_eq!(restarts.count(), 1);
}

#[test]
fn exit_code_5_when_the_system_fails() {
    let deck = impatient();
    deck.row("conductor-ops").dead().add();
    let file = deck.root().join("file");
    std::fs::write(&file, "").unwrap();
    let root = file.join("root");
    deck.setting("AGENT_DECK_ROOT", root.to_str().unwrap());
    for args in [&["--once"][..], &[]] {
        let run = deck.run(args);
        let complaint = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(5), "{args:?}");
        assert!(complaint.contains(file.to_str().unwrap()), "{complaint}");
    }
    assert_eq!(deck.ledger(), []);
    // No profile of that name: it is not called into being.
    deck.setting("AGENT_DECK_ROOT", "");
    deck.setting("AGENT_DECK_PROFILE", "ghost");
    assert_eq!(deck.once().status.code(), Some(5));
    assert_eq!((polls(&deck), acts(&deck)), (0, vec![]));
    assert_eq!(
        count(&deck, "watchdog.log", &["profile ghost: not watched"]),
        1
    );
    assert!(!deck.file("profiles/ghost").exists());
}

#[test]
fn settings_that_cannot_be_used() {
    let wrong = [
        ("SAFETY_POLL_S", "0", "from 1 to 300"),
        ("SAFETY_POLL_S", "301", "from 1 to 300"),
        ("SAFETY_POLL_S", "5s", "from 1 to 300"),
        ("SAFETY_POLL_S", "-1", "from 1 to 300"),
        ("MIN_GLOBAL_RESTART_INTERVAL_S", "0", "from 1 to 86400"),
        ("MIN_GLOBAL_RESTART_INTERVAL_S", "86401", "from 1 to 86400"),
        ("PROCESS_WATCH", "maybe", "on or off"),
        ("AGENT_DECK_ROOT", "deck", "absolute"),
        ("AGENT_DECK_BIN", "agent-deck", "absolute"),
        (
            "AGENT_DECK_PROFILE",
            "a/b",
            "one name, a comma list of names, or all",
        ),
        ("TELEGRAM_ESCALATION_CHAT_ID", "a chat", "a chat's number"),
    ];
    let deck = Deck::new();
    std::fs::create_dir_all(deck.home()).unwrap();
    for (name, value, allowed) in wrong {
        let run = |args: &[&str]| deck.watchdog(args).env(name, value).output().unwrap();
        for args in [&["--once"][..], &["--dry-run"], &[]] {
            let run = run(args);
            let complaint = String::from_utf8(run.stderr).unwrap();
            assert_eq!(run.status.code(), Some(2), "{name}={value}");
            for part in [name, value, allowed] {
                assert!(complaint.contains(part), "{complaint}");
            }
        }
        for args in [["--help"], ["--version"]] {
            assert_eq!(run(&args).status.code(), Some(0));
        }
    }
    assert_eq!(deck.ledger(), []);
    assert!(!deck.watchdog_dir().exists());
}

#[test]
fn settings_from_the_environment() {
    let deck = Deck::new();
    let day = deck.row("conductor-day").dead().add();
    let night = deck.row("conductor-night").profile("night").dead().add();
    assert_eq!(deck.run(&["--once", "--verbose"]).status.code(), Some(0));
    let words = [
        "starts",
        "profile default",
        "poll 5 s",
        "60 s between restarts",
    ];
    assert_eq!(
        count(&deck, "watchdog.log", &words),
        1,
        "{}",
        deck.read("watchdog.log")
    );
    assert_eq!(acts(&deck), revival(&day));

    let root = deck.root().join("root");
    deck.setting("AGENT_DECK_ROOT", root.to_str().unwrap());
    deck.setting("AGENT_DECK_PROFILE", "night, default,ghost");
    deck.setting("SAFETY_POLL_S", "7");
    deck.setting("MIN_GLOBAL_RESTART_INTERVAL_S", "75");
    deck.unset(&day, "pane");
    assert_eq!(deck.run(&["--once", "--verbose"]).status.code(), Some(0));
    let log = std::fs::read_to_string(root.join("watchdog/watchdog.log")).unwrap();
    let start = log.lines().find(|line| line.contains("starts")).unwrap();
    for words in [
        "profile night, default, ghost",
        "poll 7 s",
        "75 s between restarts",
    ] {
        assert!(start.contains(words), "{start}");
    }
    let restart = std::fs::read_to_string(root.join("watchdog/restart.log")).unwrap();
    assert!(
        restart.contains("75 s between any two restarts"),
        "{restart}"
    );
    let restarts = |id: &str| {
        let calls = deck.ledger().into_iter();
        calls.filter(|call| call.is("session restart", id)).count()
    };
    assert_eq!(restarts(&day) + restarts(&night), 2);
    let named = |name: &str| {
        let begin = format!("-p {name} ");
        deck.ledger()
            .iter()
            .filter(|call| call.args.starts_with(&begin))
            .count()
    };
    assert!(named("night") > 0 && named("default") > 0 && named("ghost") == 0);
    assert!(!deck.file("profiles/ghost").exists());
}

#[test]
fn strange_home() {
    let deck = Deck::new();
    let started_in = deck.root().join("here");
    std::fs::create_dir(&started_in).unwrap();
    let run = |home: Option<&str>| {
        // Decides only, for a profile that nobody has: should the user database
        // name a home, nothing happens there.
        let mut watchdog = deck.watchdog(&["--once", "--dry-run"]);
        watchdog
            .current_dir(&started_in)
            .env("AGENT_DECK_PROFILE", "nobodys-profile")
            .env_remove("HOME");
        if let Some(home) = home {
            watchdog.env("HOME", home);
        }
        watchdog.output().unwrap()
    };
    let in_root = Path::new("/.agent-deck").exists();
    for home in ["/", "here", "./", "."] {
        let run = run(Some(home));
        let complaint = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(2), "{home}");
        assert!(complaint.contains(&format!("HOME={home} ")), "{complaint}");
    }
    for home in [None, Some("")] {
        let run = run(home);
        let complaint = String::from_utf8(run.stderr).unwrap();
        match run.status.code() {
            // The user database named one; there is no such profile in it.
            Some(5) => assert_eq!(complaint, ""),
            code => {
                assert_eq!(code, Some(2));
                assert!(complaint.contains("HOME"), "{complaint}");
            }
        }
    }
    assert_eq!(std::fs::read_dir(&started_in).unwrap().count(), 0);
    assert_eq!(Path::new("/.agent-deck").exists(), in_root);
    assert_eq!((polls(&deck), acts(&deck)), (0, vec![]));
}

#[test]
fn reader_leaves() {
    let deck = impatient();
    let id = deck.row("conductor-ops").add();
    let nobody_reads = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        writer
    };
    for args in [["--help"], ["--version"]] {
        let run = deck
            .watchdog(&args)
            .stdout(nobody_reads())
            .output()
            .unwrap();
        assert_eq!(run.status.code(), Some(0));
        assert_eq!(String::from_utf8(run.stderr).unwrap(), "");
    }
    let run = deck.watchdog(&["--onec"]).stderr(nobody_reads()).status();
    assert_eq!(run.unwrap().code(), Some(2));
    // A daemon with something to complain, and nobody who listens.
    std::fs::create_dir_all(deck.watchdog_dir().join("watchdog.log")).unwrap();
    let mut daemon = deck
        .watchdog(&["--verbose"])
        .stdout(nobody_reads())
        .stderr(nobody_reads())
        .spawn()
        .unwrap();
    deck.wait("two polls", || (polls(&deck) == 2).then_some(()));
    deck.unset(&id, "pane");
    deck.wait_for_line("restart.log", "\"accepted\"");
    let pid = rustix::process::Pid::from_child(&daemon);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(daemon.wait().unwrap().code(), Some(0));
    assert_eq!(acts(&deck), revival(&id));
    assert_eq!(records(&deck, "restart.log").len(), 2);
}
