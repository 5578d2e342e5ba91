//! Another program in the same folder: a newer and an older version of this one,
//! and agent-deck's Python watchdog before it. What was promised holds, what
//! others wrote stays. The real binary on the stand-in deck.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/past.rs"]
mod past;
mod scene;
#[path = "scene/waiting.rs"]
mod waiting;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use common::{Call, Deck, copy_program};
use past::{once, pass, restarted};
use scene::{count, flag, records, turns, watching};
use serde_json::{Value, json};
use waiting::{child, parent, remembered, ten_minutes_on, until, until_asked};

/// A deck on which each kind of memory has something in it: a restart that
/// failed, a child that was asked, somebody who was told.
fn remembering() -> (Deck, String, String) {
    let deck = Deck::new();
    deck.setting("SAFETY_POLL_S", "1");
    deck.install_escalate();
    deck.setting("TELEGRAM_ESCALATION_CHAT_ID", "4711");
    let asked = child(&deck, "asked", &parent(&deck)).add();
    ten_minutes_on(&deck);
    until_asked(&deck, &asked, 1);
    let dead = deck
        .row("conductor-dead")
        .dead()
        .file("after_restart", "exit 1 AMBIGUOUS: two of them")
        .add();
    until(&deck, "a message", || {
        told(&deck).len() == 1 && state(&deck)["state"]["parcel"].is_null()
    });
    assert!(told(&deck)[0].args.contains("conductor-dead"));
    assert_eq!(restarted(&deck), [dead.as_str()]);
    (deck, dead, asked)
}

/// Calls of `escalate.sh`.
fn told(deck: &Deck) -> Vec<Call> {
    let calls = deck.ledger().into_iter();
    calls.filter(|call| call.program == "escalate.sh").collect()
}

fn state(deck: &Deck) -> Value {
    serde_json::from_str(&deck.read("state.json")).unwrap()
}

fn set_state(deck: &Deck, state: &Value) {
    common::write(&deck.watchdog_dir().join("state.json"), state.to_string());
}

/// What a restart of the program must not change.
fn budgets(deck: &Deck, dead: &str, asked: &str) -> Value {
    let state = state(deck);
    let state = &state["state"];
    let episodes: Vec<&Value> = state["episodes"].as_array().unwrap().iter().collect();
    let keys: Vec<&Value> = episodes.iter().map(|episode| &episode["key"]).collect();
    let session = &state["sessions"][dead];
    json!({
        "restarts": session["restarts"].as_array().unwrap().len(),
        "fruitless": session["fruitless"],
        "crash_loop": session["crash_loop"].is_null(),
        "nudges": remembered(deck, asked)["nudges"],
        "nudged": remembered(deck, asked)["last_nudge"].is_null(),
        "episodes": keys,
        "sent": state["last_sent"].is_null(),
    })
}

/// Adds a field to each object: what a later version of the same form may do.
fn widened(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(widened);
            // The names of these are ids.
            if !fields.keys().any(|name| name.contains("-17")) {
                fields.insert("of_another_version".to_owned(), json!([1, {"a": null}]));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(widened),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn a_new_binary_keeps_budgets_stamps_and_episodes() {
    let (deck, dead, asked) = remembering();
    let program = deck.watchdog_dir().join("agent-deck-watchdog");
    let put = |name: &str| {
        let aside = deck.watchdog_dir().join(name);
        copy_program(&aside);
        fs::rename(&aside, &program).unwrap();
    };
    put(".old");
    let before = budgets(&deck, &dead, &asked);
    let mut daemon = watching(&deck);
    // The file takes the running one's place; then the old one is killed.
    put(".new");
    daemon.crash();
    drop(daemon);

    let mut wide = state(&deck);
    widened(&mut wide["state"]);
    wide["of_another_version"] = json!(true);
    set_state(&deck, &wide);
    // A line as an older version left it.
    let lock = r#"{"mode":"daemon","pid":7,"poll_s":5,"since":"x","version":"0.0.9"}"#;
    fs::write(deck.watchdog_dir().join("lock"), format!("{lock}\n")).unwrap();

    fs::remove_file(deck.root().join("notify")).unwrap();
    let mut daemon = watching(&deck);
    turns(&deck, &daemon, 3);
    assert!(daemon.stop().success());
    drop(daemon);
    assert_eq!(budgets(&deck, &dead, &asked), before);
    assert_eq!(restarted(&deck), [dead.as_str()]);
    assert_eq!((deck.sends_to(&asked).len(), told(&deck).len()), (1, 1));
    assert_eq!(count(&deck, "watchdog.log", &["cannot be read"]), 0);
    assert_eq!(count(&deck, "watchdog.log", &["spent"]), 0);
    let lock: Value = serde_json::from_str(&deck.read("lock")).unwrap();
    assert_eq!(lock["version"], env!("CARGO_PKG_VERSION"));
    // And when their time has come, it goes on.
    pass(&deck, 400);
    once(&deck).silent();
    assert_eq!(restarted(&deck), [dead.as_str(), &dead]);
}

#[test]
fn a_lock_line_of_a_newer_version_is_no_obstacle() {
    let deck = Deck::new();
    let id = deck.row("conductor-ops").dead().add();
    flag(&deck, "autorestart", &id);
    let line = r#"{"mode":"daemon","pid":7,"poll_s":5,"since":"x","version":"9.0","more":[]}"#;
    for line in [line, r#"{"mode":"something new"}"#, "none of ours"] {
        fs::write(deck.watchdog_dir().join("lock"), line).unwrap();
        assert_eq!(once(&deck).code(), Some(0), "{line}");
    }
    assert_eq!(restarted(&deck), [id]);
}

#[test]
fn the_memory_of_a_newer_version_is_set_aside_and_kept() {
    let (deck, dead, asked) = remembering();
    let kept = || -> Vec<(String, String)> {
        let entries = fs::read_dir(deck.watchdog_dir()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names
            .filter(|name| name.starts_with("state.json.broken-"))
            .collect();
        names.sort();
        let read = |name: String| (name.clone(), deck.read(&name));
        names.into_iter().map(read).collect()
    };
    let mut newer = state(&deck);
    for version in [2, 3] {
        newer["version"] = json!(version);
        set_state(&deck, &newer);
        pass(&deck, 400);
        let before = state(&deck).to_string();
        let code = once(&deck).code();
        assert_eq!(code, Some(0));
        let kept = kept();
        assert_eq!(kept.len(), version - 1, "{kept:?}");
        assert!(kept.iter().any(|(_, text)| *text == before));
        // Every budget is spent: nothing is done, though the time had come.
        assert_eq!(restarted(&deck), [dead.as_str()]);
        assert_eq!(deck.sends_to(&asked).len(), 1);
        assert_eq!(state(&deck)["version"], 1);
        let words = [
            "CRITICAL state.json",
            &format!("version {version}, this program knows 1"),
            "every budget begins as spent",
        ];
        assert_eq!(count(&deck, "watchdog.log", &words), 1);
    }
    // A second run changes nothing about that.
    let before = kept();
    once(&deck).silent();
    assert_eq!(kept(), before);
    let lost = |record: &Value| record["episode"] == "state-lost:state";
    let sent = records(&deck, "escalations.log");
    assert!(sent.iter().any(lost), "{sent:#?}");
    pass(&deck, 400);
    once(&deck).silent();
    assert_eq!(restarted(&deck), [dead.as_str(), &dead]);
}

/// The Python watchdog's files and what they say, as it leaves them.
const PYTHON: [(&str, &str); 8] = [
    ("watchdog.py", "#!/usr/bin/env python3\nprint('no')\n"),
    (
        "watchdog.log",
        "2026-11-30 21:00:00,123 INFO watchdog MainThread: watchdog starting dry_run=False\n\
         2026-11-30 21:10:02,004 INFO watchdog Thread-3: status query sent to 0c-1700000000\n",
    ),
    (
        "restart.log",
        "{\"ts\": 1796072402.0041, \"id\": \"0a-1700000000\", \"title\": \"conductor-old\", \
         \"profile\": \"default\", \"dry_run\": false}\n\
         {\"ts\": 1796072402.5, \"id\": \"0a-1700000000\", \"title\": \"conductor-old\", \
         \"profile\": \"default\", \"action\": \"cli-refused\", \"reason\": \"no\"}\n",
    ),
    (
        "escalations.log",
        "{\"ts\": 1796072402.1, \"severity\": \"restart-failed\", \"message\": \"x\", \
         \"sid\": \"0a-1700000000\", \"telegram\": false}\n",
    ),
    (
        "liveness.log",
        "{\"ts\": 1796072402.0, \"sid\": \"0a-1700000000\"}\n",
    ),
    ("cron.log", "torn lin"),
    ("watchdog.pid", "4711\n"),
    ("__pycache__/watchdog.cpython-312.pyc", "\u{1}\u{2}"),
];

/// Its folder, with the rights that it makes it with.
fn python_folder(deck: &Deck) -> PathBuf {
    let folder = deck.watchdog_dir();
    let mode = |path: &PathBuf, mode: u32| {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    for (name, text) in PYTHON {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        mode(&file, 0o664);
    }
    fs::create_dir_all(folder.join("autorestart")).unwrap();
    mode(&folder, 0o755);
    mode(&folder.join("autorestart"), 0o755);
    folder
}

#[test]
fn a_folder_of_the_python_watchdog_is_taken_over() {
    let deck = Deck::new();
    deck.setting("SAFETY_POLL_S", "1");
    let folder = python_folder(&deck);
    let worker = deck.row("worker").dead().add();
    let other = deck.row("other-worker").dead().add();
    fs::write(folder.join("autorestart").join(&worker), "").unwrap();
    fs::write(folder.join("autorestart/no id of ours"), "").unwrap();
    let mut daemon = watching(&deck);
    turns(&deck, &daemon, 2);
    assert!(daemon.stop().success());
    drop(daemon);
    // What it restarted a minute ago is not known: nothing yet, and somebody is told.
    assert_eq!(restarted(&deck), [""; 0]);
    let words = [
        "WARNING state.json",
        "taken over from another watchdog",
        "spent",
    ];
    assert_eq!(count(&deck, "watchdog.log", &words), 1);
    let spent = format!("worker {worker}: not restarted");
    assert_eq!(count(&deck, "watchdog.log", &[&spent]), 1);
    let told = deck.read("escalations.log");
    assert_eq!(told.matches("taken over from another watchdog").count(), 1);
    once(&deck).silent();
    assert_eq!(count(&deck, "watchdog.log", &words), 1, "told twice");
    // Five minutes later the flag does what it did.
    pass(&deck, 301);
    once(&deck).silent();
    assert_eq!(restarted(&deck), [worker.as_str()]);
    assert!(!deck.read("watchdog.log").contains(&other));
    for (name, text) in PYTHON {
        let now = deck.read(name);
        assert!(now.starts_with(text), "{name}: {now}");
        let ours = ["watchdog.log", "restart.log", "escalations.log"].contains(&name);
        assert_eq!(now.len() > text.len(), ours, "{name}");
        let added = &now[text.len()..];
        assert!(added.is_empty() || added.ends_with('\n'), "{name}");
    }
    // From now on it is a folder of ours.
    fs::remove_file(folder.join("state.json")).unwrap();
    once(&deck).silent();
    let words = [
        "CRITICAL state.json",
        "missing from a folder that has been used",
    ];
    assert_eq!(count(&deck, "watchdog.log", &words), 1);
}

#[test]
fn a_python_watchdog_that_never_restarted_anything_leaves_a_fresh_folder() {
    let deck = Deck::new();
    let folder = python_folder(&deck);
    fs::remove_file(folder.join("restart.log")).unwrap();
    let worker = deck.row("worker").dead().add();
    fs::write(folder.join("autorestart").join(&worker), "").unwrap();
    once(&deck).silent();
    assert_eq!(restarted(&deck), [worker]);
    assert_eq!(count(&deck, "watchdog.log", &["spent"]), 0);
}

#[test]
fn a_restart_log_of_the_python_watchdog_may_be_huge_or_torn() {
    for (what, text) in [
        ("huge", PYTHON[2].1.repeat(90_000)),
        ("torn", PYTHON[2].1[..40].to_owned()),
    ] {
        let deck = Deck::new();
        let folder = python_folder(&deck);
        fs::write(folder.join("restart.log"), &text).unwrap();
        deck.row("conductor-ops").dead().add();
        once(&deck).silent();
        assert_eq!(restarted(&deck), [""; 0], "{what}");
        let words = ["WARNING state.json", "taken over"];
        assert_eq!(count(&deck, "watchdog.log", &words), 1, "{what}");
        let log = deck.read("restart.log") + &deck.read("restart.log.1");
        assert!(log.len() > text.len() && log.contains(&text), "{what}");
    }
}
