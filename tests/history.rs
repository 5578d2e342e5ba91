//! `history`: the real binary on logs that it wrote itself, on recorded ones, and
//! on what others left in the folder. Does not know how a line is told.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/past.rs"]
mod past;
mod scene;

use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::process::Stdio;

use agent_deck_watchdog::clock::Time;
use common::{Deck, now, recording};
use past::{once, run};
use scene::{impatient, turns, watching, with_agents};
use serde_json::Value;

/// What it says.
fn told(deck: &Deck, args: &[&str]) -> String {
    let args: Vec<&str> = ["history"].iter().chain(args).copied().collect();
    let run = run(deck, &args);
    assert_eq!((run.code(), run.err.as_str()), (Some(0), ""), "{args:?}");
    for line in run.out.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    run.out
}

/// The same without its line breaks.
fn flat(page: &str) -> String {
    page.split_whitespace().collect::<Vec<&str>>().join(" ")
}

fn json(deck: &Deck, args: &[&str]) -> Value {
    let args: Vec<&str> = ["history", "--json"].iter().chain(args).copied().collect();
    let run = run(deck, &args);
    assert_eq!((run.code(), run.err.as_str()), (Some(0), ""), "{args:?}");
    let value: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(value["format"], 1);
    value
}

/// Writes a file into the watchdog's folder.
fn log(deck: &Deck, name: &str, content: impl AsRef<[u8]>) {
    let folder = deck.watchdog_dir();
    let mut maker = fs::DirBuilder::new();
    maker.recursive(true).mode(0o700).create(&folder).unwrap();
    fs::write(folder.join(name), content).unwrap();
}

/// A moment so many seconds ago, as the logs write it.
fn ago(seconds: u64) -> String {
    Time((now() - seconds) * 1000).rfc3339()
}

/// The recorded night.
fn recorded(deck: &Deck) {
    for name in [
        "watchdog.log",
        "restart.log",
        "restart.log.1",
        "escalations.log",
    ] {
        log(deck, name, recording(&format!("night/{name}")));
    }
}

const NIGHT: [&str; 2] = ["--since", "2026-11-30T22:00Z"];

#[test]
fn a_restart_is_told_with_its_end_and_without_agent_deck() {
    let deck = with_agents();
    let id = deck.row("conductor-ops").dead().add();
    let mut daemon = watching(&deck);
    daemon.wait_for_line("watchdog.log", "restart: done");
    turns(&deck, &daemon, 2);
    // While it runs.
    let page = told(&deck, &[]);
    assert!(page.starts_with("1 restart; since "), "{page}");
    assert!(
        page.contains("The watchdog's last sign of life: 20"),
        "{page}"
    );
    assert!(page.contains("the watchdog starts (version "), "{page}");
    let act = "conductor-ops died (its terminal is gone), restarted: done after ";
    assert!(page.contains(act), "{page}");
    assert!(daemon.stop().success());
    deck.uninstall("agent-deck");
    let page = told(&deck, &["--session", "conductor-ops"]);
    assert!(
        page.starts_with(&format!("{id}: 1 restart; since ")),
        "{page}"
    );
    assert!(
        page.contains(act) && page.contains("and does not run since"),
        "{page}"
    );
    let found = json(&deck, &["--session", &id, "--since", "2h"]);
    assert_eq!(found["session"], *id);
    assert_eq!(found["summary"]["restarts"], 1);
    let entries = found["entries"].as_array().unwrap();
    let events: Vec<&str> = entries
        .iter()
        .map(|e| e["event"].as_str().unwrap())
        .collect();
    assert_eq!(events, ["attempt", "outcome", "outcome", "alive"]);
    assert_eq!(entries[0]["capability"], "restart");
    assert_eq!(entries[2]["outcome"], "done");
    assert!(entries.iter().all(|entry| entry["session"] == *id));
}

#[test]
fn single_runs_say_that_gaps_cannot_be_seen() {
    let deck = impatient();
    let id = deck
        .conductor("ops")
        .dead()
        .file("after_restart", "exit 1 AMBIGUOUS: two of them")
        .add();
    once(&deck).silent();
    let page = told(&deck, &[]);
    let first = "1 restart, 1 in vain, 1 given up, only written down once; since";
    assert!(page.starts_with(first), "{page}");
    let page = flat(&page);
    assert!(page.contains("restarted: failed: INVALID"), "{page}");
    assert!(
        page.contains("only written down (critical): conductor-ops cannot be"),
        "{page}"
    );
    assert!(page.contains("It runs in single runs (--once)"), "{page}");
    assert!(!page.contains(&id), "{page}");
    // One that is verbose has a first line, and no last one.
    for _ in 0..2 {
        assert_eq!(run(&deck, &["--once", "--verbose"]).code(), Some(0));
    }
    let page = told(&deck, &[]);
    assert!(!page.contains("died without a word"), "{page}");
}

#[test]
fn messages_and_the_death_of_the_watchdog_are_told() {
    let deck = impatient();
    deck.install_escalate();
    deck.setting("TELEGRAM_ESCALATION_CHAT_ID", "4711");
    for name in ["a", "b"] {
        let row = deck.conductor(name).dead();
        row.file("after_restart", "exit 1 AMBIGUOUS: two of them")
            .add();
    }
    let mut daemon = watching(&deck);
    daemon.wait_for_line("escalations.log", "\"sent\"");
    // The other one has to wait for its minute.
    daemon.wait_for_line("escalations.log", "\"rate-limited\"");
    daemon.crash();
    let mut daemon = deck.daemon();
    daemon.wait_for_line(
        "watchdog.log",
        &format!("starts as process {}", daemon.pid()),
    );
    assert!(daemon.stop().success());
    let page = flat(&told(&deck, &[]));
    assert!(page.contains(", 2 given up, told once;"), "{page}");
    assert!(page.contains(" told (critical): conductor-"), "{page}");
    assert!(
        page.contains(" waits to be told (critical): conductor-"),
        "{page}"
    );
    assert!(
        page.contains("the one before died without a word"),
        "{page}"
    );
    assert!(page.contains("and does not run since"), "{page}");
    let gaps = json(&deck, &[])["gaps"].clone();
    let certain: Vec<bool> = gaps
        .as_array()
        .unwrap()
        .iter()
        .map(|gap| gap["certain"] == true)
        .collect();
    assert_eq!(certain, [false, true]);
}

#[test]
fn since_is_a_span_or_a_time() {
    let deck = Deck::new();
    let mut lines = String::new();
    for (seconds, title) in [(7200, "old"), (600, "new")] {
        let line = format!("{seconds:08}-1796000000: was restarted by somebody else");
        writeln!(lines, "{} INFO {title} {line}", ago(seconds)).unwrap();
    }
    log(&deck, "watchdog.log", lines);
    let hour = ago(3600);
    for since in ["1h", hour.as_str(), &format!("{}Z", &hour[..16])] {
        let page = told(&deck, &["--since", since]);
        assert!(
            page.contains("  new: was") && !page.contains("  old: was"),
            "{page}"
        );
    }
    assert!(told(&deck, &["--since", "3h"]).contains("  old: was"));
    // Without it a night.
    assert!(told(&deck, &[]).contains("  old: was"));
    let stamp = "2026-11-30T22:00:00Z";
    assert_eq!(json(&deck, &NIGHT)["since"], stamp);
}

/// Scenario `reader-leaves`.
#[test]
fn reader_leaves() {
    let deck = Deck::new();
    let mut lines = String::new();
    for n in 0..3000 {
        let (at, id) = (ago(3000 - n), format!("{n:08x}-1796000000"));
        writeln!(lines, "{at} INFO a {id}: was restarted by somebody else").unwrap();
    }
    log(&deck, "watchdog.log", lines);
    for args in [&["history"][..], &["history", "--json"]] {
        let mut command = deck.watchdog(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut first = [0];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        // The pipe is closed by now.
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        assert_eq!(output.status.code(), Some(0), "{args:?}");
    }
}

#[test]
fn the_recorded_night_has_the_documented_shape() {
    let deck = Deck::new();
    recorded(&deck);
    log(&deck, "restart.log.2.gz", b"\x1f\x8b");
    let found = json(&deck, &NIGHT);
    let mut names: Vec<&str> = found
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    let wanted = [
        "entries",
        "files_not_read",
        "format",
        "gaps",
        "last_sign_of_life",
        "lines_dated_ahead",
        "lines_left_out",
        "lines_of_python_watchdog",
        "lines_unreadable",
        "session",
        "since",
        "summary",
        "until",
    ];
    assert_eq!(names, wanted);
    let summary = &found["summary"];
    for (name, n) in [
        ("restarts", 14),
        ("restarts_in_vain", 8),
        ("given_up", 2),
        ("nudges", 3),
        ("told", 7),
        ("only_written_down", 0),
        ("not_told", 0),
        ("not_run_s", 900),
    ] {
        assert_eq!(summary[name], n, "{name}: {summary}");
    }
    assert_eq!(found["lines_unreadable"], 2);
    assert_eq!(found["files_not_read"][0]["file"], "restart.log.2.gz");
    assert_eq!(found["files_not_read"][0]["why"], "compressed");
    assert_eq!(found["gaps"][1]["from"], "2026-12-01T06:10:00Z");
    let page = told(&deck, &NIGHT);
    assert!(
        page.contains("Not read: restart.log.2.gz (compressed)."),
        "{page}"
    );
    assert!(
        page.contains("2 lines cannot be read: torn, or not by this program."),
        "{page}"
    );
    assert!(page.lines().count() <= 42, "{page}");
}

#[test]
fn a_folder_of_the_python_watchdog_is_understood() {
    let deck = Deck::new();
    let seconds = now() - 60;
    let local = ago(60).replace('T', " ").replace('Z', ",123");
    log(
        &deck,
        "watchdog.log",
        format!(
            "{local} INFO watchdog MainThread: watchdog starting dry_run=False\n\
             {local} ERROR watchdog poll: safety poll error: x\n\
             {} INFO settings: x\n",
            ago(30)
        ),
    );
    log(
        &deck,
        "restart.log",
        format!("{{\"ts\": {seconds}.25, \"id\": \"x\", \"title\": \"conductor-x\"}}\n"),
    );
    log(
        &deck,
        "escalations.log",
        format!("{{\"ts\": {seconds}.5, \"severity\": \"restart-failed\", \"message\": \"x\"}}\n"),
    );
    log(&deck, "liveness.log", "{}\n");
    let page = told(&deck, &[]);
    assert!(
        page.starts_with("no restart, no nudge, nobody told; since "),
        "{page}"
    );
    assert!(
        page.contains("4 lines of agent-deck's Python watchdog: not told here."),
        "{page}"
    );
    assert!(!page.contains("cannot be read"), "{page}");
}

#[test]
fn an_empty_folder_or_none_has_nothing_to_tell() {
    let deck = Deck::new();
    let page = told(&deck, &NIGHT);
    let first = "nothing is written down since 2026-11-30T22:00:00Z\n";
    assert!(page.starts_with(first), "{page}");
    assert!(!deck.watchdog_dir().exists());
    let found = json(&deck, &NIGHT);
    assert_eq!(found["entries"].as_array().unwrap().len(), 0);
    assert_eq!(found["last_sign_of_life"], Value::Null);
    // A log that cannot be read is named.
    log(&deck, "unrelated", "");
    fs::create_dir(deck.watchdog_dir().join("restart.log")).unwrap();
    assert!(told(&deck, &NIGHT).contains("Not read: restart.log (is a folder)."));
}

#[test]
fn twenty_megabytes_are_read_to_the_last_line() {
    let deck = Deck::new();
    let old = "x".repeat(180);
    let line = format!("2020-01-01T00:00:00Z DETAIL default: {old}\n");
    let mut big = line.repeat(20 * 1024 * 1024 / line.len());
    let id = "11111111-1796000000";
    for n in 0..3000 {
        let at = ago(3600 - n);
        writeln!(
            big,
            "{at} INFO api {id}: asked to report status (nudge 1 of 3)"
        )
        .unwrap();
        writeln!(big, "{at} DETAIL default: tick").unwrap();
    }
    log(&deck, "watchdog.log.1", &big);
    log(
        &deck,
        "watchdog.log",
        format!(
            "{} INFO last {id}: was restarted by somebody else\n",
            ago(5)
        ),
    );
    let page = told(&deck, &["--since", "2h"]);
    assert!(page.starts_with("3000 nudges; since "), "{page}");
    assert!(page.contains("(3000 times until "), "{page}");
    assert!(page.contains(": was restarted by somebody else"), "{page}");
    assert_eq!(page.lines().count(), 6, "{page}");
}
