//! Tests of `logs.rs`, with real files.

use super::*;
use crate::json::ours;
use crate::scratch::Scratch;
use serde_json::json;

const AT: Time = Time(1_796_057_493_000);

fn note(logs: &mut Logs, sentence: &str) {
    logs.note(
        AT,
        Level::Warning,
        "conductor-ops 1a2b3c4d-1755900000",
        sentence,
    );
}

fn text(scratch: &Scratch, name: &str) -> String {
    fs::read_to_string(scratch.join(name)).unwrap()
}

fn object(value: serde_json::Value) -> Map {
    ours(&value).as_object().unwrap().clone()
}

#[test]
fn each_log_gets_its_lines_and_no_log_is_made_for_nothing() {
    let scratch = Scratch::new();
    let mut logs = Logs::new(scratch.path());
    note(&mut logs, "died");
    logs.detail(AT, "", "turn 3");
    logs.restart(AT, object(json!({"session": "a-1", "time": "wrong"})));
    assert_eq!(
        text(&scratch, "watchdog.log"),
        "2026-11-30T16:51:33Z WARNING conductor-ops 1a2b3c4d-1755900000: died\n\
         2026-11-30T16:51:33Z DETAIL watchdog: turn 3\n"
    );
    let line = "{\"time\":\"2026-11-30T16:51:33Z\",\"session\":\"a-1\"}\n";
    assert_eq!(text(&scratch, "restart.log"), line);
    assert!(!scratch.join("escalations.log").exists());
    logs.escalation(AT, Map::new());
    assert_eq!(
        text(&scratch, "escalations.log"),
        "{\"time\":\"2026-11-30T16:51:33Z\"}\n"
    );
    let mode = fs::metadata(scratch.join("watchdog.log")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(logs.trouble(), None);
}

#[test]
fn nothing_in_a_line_is_obeyed_or_hidden() {
    let nasty = "a\nb\r\t\u{1b}[2J\u{7f}\u{85}\u{9b}\u{202e}\u{2066}\u{2028}\u{e9}\u{0}";
    assert_eq!(
        escape(nasty),
        "a\\nb\\r\\t\\x1b[2J\\x7f\\u{85}\\u{9b}\\u{202e}\\u{2066}\\u{2028}\u{e9}\\x00"
    );
    let line = json_line(AT, object(json!({ "text": nasty })));
    assert!(
        !line.chars().any(|c| c.is_control() || is_hidden(c)),
        "{line}"
    );
    let back: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(back["text"], nasty);
}

#[test]
fn long_lines_are_cut_between_characters() {
    for lead in 0..4 {
        let sentence = "x".repeat(lead) + &"\u{20ac}".repeat(LINE_MAX);
        let line = plain_line(AT, "INFO", "s", &sentence);
        assert!(line.len() < LINE_MAX && line.len() > LINE_MAX - 8);
        assert!(line.ends_with(CUT));
    }
}

#[test]
fn long_objects_stay_json_and_keep_what_is_short() {
    let long = "\u{202e}".repeat(LINE_MAX);
    let many: serde_json::Map<String, serde_json::Value> =
        (0..5000).map(|n| (format!("k{n}"), json!("v"))).collect();
    let mut flood = many.clone();
    flood.insert("a".to_owned(), json!("short"));
    for value in [
        json!({"a": "short", "text": long}),
        json!({"a": "short", "list": vec![long.clone(); 100]}),
        json!({"a": "short", "below": {"text": long, "list": vec![1; 100_000]}}),
        json!({"a": "short", "below": many}),
        serde_json::Value::Object(flood),
    ] {
        let line = json_line(AT, object(value));
        assert!(line.len() < LINE_MAX, "{}", line.len());
        let back: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(back["a"], "short");
        assert!(line.contains("cut"));
    }
}

#[test]
fn a_rotated_log_is_found_again() {
    let scratch = Scratch::new();
    let mut logs = Logs::new(scratch.path());
    note(&mut logs, "one");
    fs::rename(scratch.join("watchdog.log"), scratch.join("old")).unwrap();
    note(&mut logs, "two");
    assert!(text(&scratch, "old").ends_with(": one\n"));
    assert!(text(&scratch, "watchdog.log").ends_with(": two\n"));
    fs::remove_file(scratch.join("watchdog.log")).unwrap();
    logs.reopen();
    note(&mut logs, "three");
    assert_eq!(text(&scratch, "watchdog.log").lines().count(), 1);
}

#[test]
fn a_log_cut_to_nothing_goes_on_without_a_hole() {
    let scratch = Scratch::new();
    let mut logs = Logs::new(scratch.path());
    note(&mut logs, "one");
    fs::File::options()
        .write(true)
        .truncate(true)
        .open(scratch.join("watchdog.log"))
        .unwrap();
    note(&mut logs, "two");
    let now = text(&scratch, "watchdog.log");
    assert!(
        now.starts_with("2026") && now.ends_with(": two\n"),
        "{now:?}"
    );
}

#[test]
fn a_torn_line_does_not_spoil_the_next() {
    let scratch = Scratch::new();
    fs::write(scratch.join("restart.log"), "{\"time\":\"20").unwrap();
    let mut logs = Logs::new(scratch.path());
    logs.restart(AT, object(json!({"n": 1})));
    logs.restart(AT, object(json!({"n": 2})));
    let lines = text(&scratch, "restart.log");
    let whole = lines
        .lines()
        .filter(|l| serde_json::from_str::<serde_json::Value>(l).is_ok())
        .count();
    assert_eq!((lines.lines().count(), whole), (3, 2));
}

#[test]
fn a_log_that_nobody_rotates_bounds_itself() {
    let scratch = Scratch::new();
    let mut logs = Logs::new(scratch.path());
    for _ in 0..2 {
        let mut how = fs::File::options();
        let file = how
            .create(true)
            .append(true)
            .open(scratch.join("watchdog.log"))
            .unwrap();
        file.set_len(LOG_MAX).unwrap();
        note(&mut logs, "after");
        assert_eq!(text(&scratch, "watchdog.log").lines().count(), 1);
        assert_eq!(
            fs::metadata(scratch.join("watchdog.log.1")).unwrap().len(),
            LOG_MAX
        );
    }
}

#[test]
fn trouble_is_told_once_when_it_begins_and_once_when_it_ends() {
    let scratch = Scratch::new();
    let folder = scratch.join("watchdog");
    let mut logs = Logs::new(&folder);
    for round in 0..3 {
        note(&mut logs, "lost");
        assert_eq!(logs.trouble().is_some(), round == 0);
    }
    fs::create_dir(&folder).unwrap();
    fs::create_dir(folder.join("restart.log")).unwrap();
    note(&mut logs, "written");
    logs.restart(AT, Map::new());
    let news = logs.trouble().unwrap();
    assert!(
        news.contains("watchdog.log can be written again, lines lost: 0"),
        "{news}"
    );
    assert!(news.contains("restart.log cannot be written") && news.contains("is a folder"));
    assert_eq!(logs.trouble(), None);
    // What could not be written stands there now, in its order.
    let text = fs::read_to_string(folder.join("watchdog.log")).unwrap();
    let said = text.lines().map(|line| line.rsplit(' ').next().unwrap());
    assert_eq!(
        said.collect::<Vec<_>>(),
        ["lost", "lost", "lost", "written"]
    );
    fs::remove_dir(folder.join("restart.log")).unwrap();
    let news = logs.trouble().unwrap();
    assert!(news.contains("restart.log can be written again"), "{news}");
    let text = fs::read_to_string(folder.join("restart.log")).unwrap();
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn what_is_kept_is_bounded_and_what_is_lost_is_counted() {
    let scratch = Scratch::new();
    let folder = scratch.join("watchdog");
    let mut logs = Logs::new(&folder);
    let most = KEPT_MAX / 1000;
    for _ in 0..most + 50 {
        note(&mut logs, &"x".repeat(1000));
    }
    assert!(logs.trouble().unwrap().contains("cannot be written"));
    fs::create_dir(&folder).unwrap();
    let news = logs.trouble().unwrap();
    let text = fs::read_to_string(folder.join("watchdog.log")).unwrap();
    let kept = text.lines().count();
    assert!(kept > most * 9 / 10 && text.len() <= KEPT_MAX, "{kept}");
    let lost = format!("lines lost: {}", most + 50 - kept);
    assert!(news.ends_with(&lost), "{news}, {lost}");
}
