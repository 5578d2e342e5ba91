//! `status`: what it says of a deck, with and without a watchdog, and by which
//! exit code. It changes nothing.
//! Does not know how anything is decided.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "common/asked.rs"]
mod asked;
mod common;
#[path = "common/past.rs"]
mod past;
mod scene;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use asked::{contains, fits_80_columns, json, said};
use common::{Daemon, Deck};
use past::{once, pass, run};
use rustix::process::Signal;
use scene::{impatient, watching};
use serde_json::Value;

/// The last sign of life, or the last complete turn, was so long ago.
fn age(deck: &Deck, file: &str, seconds: u64) {
    let file = fs::File::options()
        .write(true)
        .open(deck.watchdog_dir().join(file))
        .unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds))
        .unwrap();
}

/// Stops the daemon by a signal, and waits until it stands still.
fn suspend(deck: &Deck, daemon: &Daemon) {
    daemon.signal(Signal::STOP);
    let stat = format!("/proc/{}/stat", daemon.pid());
    deck.wait("the daemon to stand still", || {
        let stat = fs::read_to_string(&stat).ok();
        // Where there is no such file a moment is enough.
        stat.is_none_or(|stat| stat.contains(") T ")).then_some(())
    });
}

/// All files of the watchdog's folder, with what is in them.
fn files(deck: &Deck) -> Vec<(PathBuf, Vec<u8>)> {
    let mut folders = vec![deck.watchdog_dir()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push((path.clone(), fs::read(path).unwrap())),
            }
        }
    }
    files.sort();
    files
}

#[test]
fn whoever_asks_changes_nothing() {
    let deck = impatient();
    let id = deck
        .conductor("ops")
        .dead()
        .file("after_restart", "exit 1 no")
        .add();
    once(&deck).silent();
    fs::write(deck.watchdog_dir().join("escalations.log"), "").unwrap();
    let before = files(&deck);
    for args in [
        &["status"][..],
        &["status", "--all", "--json"],
        &["explain", &id],
        &["doctor", "--rehearse", &id],
    ] {
        said(&deck, args);
        assert!(files(&deck) == before, "{args:?}");
    }
    // A memory that cannot be read is left where it is.
    fs::write(deck.watchdog_dir().join("state.json"), "broken").unwrap();
    let before = files(&deck);
    let (code, text) = said(&deck, &["status"]);
    assert_eq!(code, 1);
    contains(
        &text,
        &["the memory cannot be used: every limit counts as used up"],
    );
    assert!(files(&deck) == before);
}

#[test]
fn where_it_never_ran_status_says_so() {
    let deck = impatient();
    let (code, text) = said(&deck, &["status"]);
    assert_eq!(code, 1);
    contains(
        &text,
        &[
            "The watchdog has never run here; not paused.",
            "No session is watched",
        ],
    );
    assert!(!deck.watchdog_dir().exists());
}

/// Scenario `status-knows-the-last-tick`.
#[test]
fn status_knows_the_last_tick() {
    let deck = impatient();
    deck.conductor("ops").add();
    let mut daemon = watching(&deck);
    let (code, text) = said(&deck, &["status"]);
    assert_eq!(code, 0, "{text}");
    let pid = format!("watches: process {}, version", daemon.pid());
    contains(&text, &[&pid, "last turn", "it took about", "not paused"]);
    contains(
        &text,
        &["1 watched session of which there is nothing to say"],
    );
    let status = json(&deck, &["status", "--json"]);
    assert_eq!(status["watchdog"]["state"], "watching");
    assert_eq!(status["watchdog"]["pid"], daemon.pid());
    assert_eq!(status["quiet"], 1);

    // It hangs: stopped by a signal, with its last sign long ago.
    suspend(&deck, &daemon);
    age(&deck, "lock", 3600);
    age(&deck, "state.json", 3700);
    let (code, text) = said(&deck, &["status"]);
    assert_eq!(code, 1, "{text}");
    contains(
        &text,
        &[
            "gives no sign of life since 60 min ago",
            "last turn 61 min ago",
        ],
    );
    // It gives signs of life and completes no turn.
    age(&deck, "lock", 0);
    let (code, text) = said(&deck, &["status"]);
    assert_eq!(code, 1, "{text}");
    contains(
        &text,
        &["lives and completes no turn", "last turn 61 min ago"],
    );
    daemon.signal(Signal::CONT);

    assert!(daemon.stop().success());
    let (code, text) = said(&deck, &["status"]);
    assert_eq!(code, 1, "{text}");
    contains(&text, &["The watchdog does not run; last sign of life"]);
}

#[test]
fn runs_by_cron_are_a_life_too() {
    let deck = impatient();
    deck.conductor("ops").add();
    once(&deck).silent();
    let (code, text) = said(&deck, &["status"]);
    assert_eq!(code, 0, "{text}");
    contains(&text, &["watches in single runs (--once)"]);
    age(&deck, "state.json", 200);
    age(&deck, "lock", 200);
    assert_eq!(said(&deck, &["status"]).0, 1);
}

#[test]
fn a_deck_that_could_not_be_listed_gives_it_away() {
    let deck = impatient();
    deck.conductor("ops").add();
    let mut daemon = watching(&deck);
    deck.trap("list").exit(1).set();
    deck.wait("three failures", || {
        let state: Value = serde_json::from_str(&deck.read("state.json")).ok()?;
        (state["state"]["profiles"][0]["failures"].as_u64()? >= 3).then_some(())
    });
    let (code, text) = said(&deck, &["status"]);
    assert_eq!(code, 1, "{text}");
    contains(&text, &["the watchdog cannot list profile default"]);
    assert!(daemon.stop().success());
}

#[test]
fn what_was_given_up_is_said_with_what_holds_it_back() {
    let deck = impatient();
    let id = deck
        .conductor("ops")
        .dead()
        .file("after_restart", "exit 1 cannot start")
        .add();
    let lead = deck.row("lead").add();
    deck.row("a-child\u{1b}[31m").child_of(&lead).add();
    for _ in 0..3 {
        once(&deck).silent();
        pass(&deck, 61);
    }
    once(&deck).silent();
    let (code, text) = said(&deck, &["status"]);
    assert_eq!(code, 1, "{text}");
    fits_80_columns(&text);
    contains(
        &text,
        &[
            "SESSION OBSERVED WANTED RESTARTS",
            "conductor-ops error for",
            "3/3, next in",
        ],
    );
    contains(
        &text,
        &["held back: burst-limit: 3 of 3 restarts in 300 s, lifts in"],
    );
    contains(
        &text,
        &["held back: crash-loop: next try in", "last: restarted"],
    );
    assert!(!text.contains('\u{1b}'), "{text:?}");
    let (_, all) = said(&deck, &["status", "--all"]);
    contains(&all, &["a-child\\x1b[31m", "a report"]);
    let status = json(&deck, &["status", "--json"]);
    let session = &status["sessions"][0];
    assert_eq!(session["id"], id.as_str());
    assert_eq!(session["restarts"], 3);
    assert_eq!(session["observed"], "error");
    assert_eq!(session["last_act"]["outcome"], "failed");
    let rules: Vec<&str> = session["held_back"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| rule["rule"].as_str().unwrap())
        .collect();
    assert!(rules.contains(&"crash-loop"), "{rules:?}");

    // explain answers with every rule, and clear ends what was given up.
    let (code, text) = said(&deck, &["explain", "conductor-ops"]);
    assert_eq!(code, 0);
    contains(
        &text,
        &[
            "critical, since its title begins with conductor-",
            "no crash-loop",
        ],
    );
    contains(&text, &["to be restarted crash-loop would have to lift"]);
    contains(&text, &["yes paused no pause file", "restarted"]);
    let (code, text) = said(&deck, &["clear", &id]);
    assert_eq!(code, 0);
    contains(&text, &["the failures of conductor-ops"]);
    once(&deck).silent();
    let (_, text) = said(&deck, &["status"]);
    assert!(!text.contains("crash-loop"), "{text}");
    contains(&text, &["3/3"]);
}

#[test]
fn a_shell_with_other_settings_sees_what_the_watchdog_sees() {
    let deck = impatient();
    deck.profile("work");
    deck.conductor("here").add();
    deck.conductor("there").profile("work").add();
    deck.setting("AGENT_DECK_PROFILE", "work");
    deck.setting("MIN_GLOBAL_RESTART_INTERVAL_S", "77");
    let mut daemon = watching(&deck);
    deck.setting("AGENT_DECK_PROFILE", "");
    deck.setting("MIN_GLOBAL_RESTART_INTERVAL_S", "99");
    let (code, text) = said(&deck, &["status", "--all"]);
    assert_eq!(code, 0, "{text}");
    contains(
        &text,
        &[
            "conductor-there",
            "the watchdog has MIN_GLOBAL_RESTART_INTERVAL_S=77, which counts; this shell has MIN_GLOBAL_RESTART_INTERVAL_S=99",
        ],
    );
    assert!(!text.contains("conductor-here"), "{text}");
    let (_, text) = said(&deck, &["explain", "conductor-there"]);
    contains(
        &text,
        &[
            "77 s between any two restarts",
            "the watchdog has AGENT_DECK_PROFILE=work",
        ],
    );
    // Another deck may hold a session of the same title: nothing is put down.
    deck.setting("AGENT_DECK_PROFILE", "default");
    let refused = run(&deck, &["hold", "conductor-here"]);
    assert_eq!((refused.code(), refused.out.as_str()), (Some(2), ""));
    contains(&refused.err, &["AGENT_DECK_PROFILE=default in this shell"]);
    deck.setting("AGENT_DECK_PROFILE", "");
    // Without one that lives the shell's own settings are all there is.
    assert!(daemon.stop().success());
    let (_, text) = said(&deck, &["status", "--all"]);
    contains(&text, &["conductor-here"]);
}

/// Scenario `reader-leaves`.
#[test]
fn reader_leaves() {
    let deck = impatient();
    for n in 0..300 {
        deck.conductor(&format!("{n}")).add();
    }
    once(&deck).silent();
    for args in [&["status", "--all"][..], &["status", "--all", "--json"]] {
        let mut command = deck.watchdog(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut asked = command.spawn().unwrap();
        let mut first = String::new();
        let mut reader = BufReader::new(asked.stdout.take().unwrap());
        reader.read_line(&mut first).unwrap();
        drop(reader);
        let output = asked.wait_with_output().unwrap();
        assert!(!first.is_empty());
        assert_eq!(output.stderr, b"", "{args:?}");
        assert_eq!(output.status.code(), Some(0), "{args:?}");
    }
}

/// Scenario `removed-sessions-leave`.
#[test]
fn removed_sessions_leave() {
    let deck = impatient();
    deck.conductor("stays").add();
    let ids: Vec<String> = (0..5)
        .map(|n| deck.conductor(&format!("gone-{n}")).dead().add())
        .collect();
    once(&deck).silent();
    ids.iter().for_each(|id| deck.remove_row(id));
    once(&deck).silent();
    let (_, text) = said(&deck, &["status"]);
    contains(&text, &["conductor-gone-0", "gone for"]);
    // A session is gone when good lists have lacked it for ten minutes.
    pass(&deck, 601);
    once(&deck).silent();
    let (code, text) = said(&deck, &["status", "--all"]);
    assert_eq!(code, 0, "{text}");
    contains(&text, &["conductor-stays"]);
    assert!(!text.contains("gone"), "{text}");
    // Budgets of a gone session are kept for a day.
    pass(&deck, 86_400);
    once(&deck).silent();
    let state = deck.read("state.json");
    assert!(!ids.iter().any(|id| state.contains(id)), "{state}");
}

#[test]
fn agent_deck_is_asked_where_the_watchdog_looks() {
    let deck = impatient();
    deck.conductor("ops").add();
    deck.setting("TMUX_TMPDIR", "/somewhere/of/its/own");
    let mut daemon = watching(&deck);
    deck.setting("TMUX_TMPDIR", "");
    deck.dump_environ();
    let (_, text) = said(&deck, &["status"]);
    contains(
        &text,
        &["TMUX_TMPDIR=/somewhere/of/its/own, which counts; this shell has no TMUX"],
    );
    assert!(daemon.stop().success());
    let asked = deck.environs();
    assert!(!asked.is_empty());
    for (_, variables) in asked {
        let wanted = "TMUX_TMPDIR=/somewhere/of/its/own";
        assert!(variables.iter().any(|one| one == wanted), "{variables:?}");
    }
}

#[test]
fn a_lock_that_cannot_be_read_is_no_proof_of_anything() {
    let deck = impatient();
    deck.conductor("ops").add();
    let mut daemon = watching(&deck);
    fs::write(deck.watchdog_dir().join("lock"), "garbage").unwrap();
    let (code, text) = said(&deck, &["status"]);
    assert_eq!(code, 0, "{text}");
    contains(
        &text,
        &["gives signs of life, the last", "who it is cannot be read"],
    );
    daemon.crash();
    age(&deck, "lock", 3600);
    let (code, text) = said(&deck, &["status"]);
    assert_eq!(code, 1, "{text}");
    contains(&text, &["does not run; last sign of life 60 min ago"]);
    // A line of an older version does not say what it was given.
    let line = format!(
        r#"{{"mode":"daemon","pid":{},"poll_s":1,"since":"x","version":"0.1.0"}}"#,
        std::process::id()
    );
    fs::write(deck.watchdog_dir().join("lock"), line).unwrap();
    let (code, text) = said(&deck, &["status"]);
    assert_eq!(code, 0, "{text}");
    assert!(!text.contains("this shell"), "{text}");
}

#[test]
fn a_sign_of_life_from_the_future_is_none() {
    let deck = impatient();
    deck.conductor("ops").add();
    once(&deck).silent();
    for name in ["lock", "state.json"] {
        let path = deck.watchdog_dir().join(name);
        let file = fs::File::options().write(true).open(path).unwrap();
        let ahead = SystemTime::now() + Duration::from_secs(3600);
        file.set_modified(ahead).unwrap();
    }
    assert_eq!(said(&deck, &["status"]).0, 1);
}

#[test]
fn an_empty_list_is_not_believed_at_once() {
    let deck = impatient();
    let id = deck.conductor("ops").add();
    once(&deck).silent();
    deck.trap("list").stdout("[]").set();
    let (_, text) = said(&deck, &["status", "--all"]);
    contains(
        &text,
        &[
            "an empty list where sessions were known",
            "conductor-ops",
            "alive",
        ],
    );
    let (_, text) = said(&deck, &["explain", &id]);
    contains(&text, &["cannot be listed now"]);
}

/// What goes nowhere is said, but for a reader that left.
#[test]
fn a_full_disk_behind_the_answer_is_an_error() {
    let deck = impatient();
    deck.conductor("ops").add();
    once(&deck).silent();
    if !std::path::Path::new("/dev/full").exists() {
        eprintln!("skipped: there is no /dev/full here");
        return;
    }
    for args in [&["status"][..], &["history"], &["print", "man"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = deck.watchdog(args);
        let output = command
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(5), "{args:?}");
        assert!(
            String::from_utf8(output.stderr)
                .unwrap()
                .contains("cannot be printed")
        );
    }
}
