//! One line of a log, taken apart.
//!
//! This file does not know where lines come from, nor what they tell together.

use std::time::Duration;

use super::lines::{Entry, Kind, LOGS, Line};
use crate::clock::Time;
use crate::json::Value;
use crate::model::SessionId;
use crate::report::ASKED;
use crate::state::Rung;

/// What the watchdog says of itself, when it starts and when it ends.
const STARTS: &str = " starts as process ";
const ENDS: &str = "ends, as a signal asked";
/// The same where its lock was lost.
const LOST: &str = "cannot be taken anew, leaving";
/// Stands in the start of a run that stays for one turn.
pub const ONE_TURN: &str = " for one turn: ";
/// What follows an order of the user, in the sentence of a session left alone.
const ON_PURPOSE: [(&str, &str); 2] = [
    ("it was stopped on purpose", "stopped"),
    ("it is archived", "archived"),
];

/// Who a line of `watchdog.log` may be about besides sessions and profiles.
const OTHERS: [&str; 5] = ["watchdog", "settings", "lock", "state.json", "pollers"];

/// Whether a line of `watchdog.log` says that the watchdog runs from now on, or
/// no longer.
pub fn runs(line: &[u8]) -> Option<bool> {
    let line = line.get(20..)?;
    let begins = |begin: &str| line.starts_with(begin.as_bytes());
    if !begins(" INFO watchdog: ") && !begins(" CRITICAL lock: ") {
        return None;
    }
    match watchdog(&String::from_utf8_lossy(line)) {
        Some(Kind::Start) => Some(true),
        Some(_) => Some(false),
        None => None,
    }
}

/// Start and end of the watchdog.
fn watchdog(sentence: &str) -> Option<Kind> {
    if sentence.contains(STARTS) {
        return (!sentence.contains(ONE_TURN)).then_some(Kind::Start);
    }
    (sentence.ends_with(ENDS) || sentence.contains(LOST)).then_some(Kind::End)
}

/// An entry that says nothing yet.
fn begun(at: Time, log: &'static str) -> Box<Entry> {
    Box::new(Entry {
        at,
        log,
        ..Entry::default()
    })
}

/// A line of `watchdog.log`, of which the time was read.
pub fn people(line: &str, at: Option<Time>, zones: Duration) -> Line {
    let Some(at) = at else {
        // `2026-11-30 22:00:05,123 INFO watchdog MainThread: …`
        let stamp = line.get(..19).filter(|_| line.get(19..20) == Some(","));
        let local = stamp.and_then(|stamp| Time::parse_rfc3339(&format!("{stamp}Z")));
        return local.map_or(Line::Torn, |at| Line::Foreign(at.plus(zones)));
    };
    let rest = line.get(21..).unwrap_or_default();
    let Some((level, rest)) = rest.split_once(' ') else {
        return Line::Torn;
    };
    match level {
        "DETAIL" => return Line::Quiet(at),
        "INFO" | "WARNING" | "CRITICAL" => {}
        _ => return Line::Torn,
    }
    let Some((subject, sentence)) = subject(rest) else {
        return Line::Torn;
    };
    let mut entry = begun(at, LOGS[2]);
    entry.level = level.to_ascii_lowercase();
    match subject.rsplit_once(' ').unwrap_or(("", subject)) {
        (title, id) if is_id(id) => {
            entry.title.push_str(title);
            entry.session.push_str(id);
            session(&mut entry, sentence);
        }
        _ => {
            entry.title.push_str(subject);
            entry.text.push_str(sentence);
            if subject == OTHERS[0] || subject == "lock" {
                entry.kind = watchdog(sentence).unwrap_or(Kind::Note);
            }
        }
    }
    Line::Entry(entry)
}

/// Whether a word is a full id of agent-deck's: it ends with a time.
pub fn is_id(word: &str) -> bool {
    SessionId::parse(word).is_some_and(|id| id.created().is_some())
}

/// `title id: sentence`, or another subject than a session. A title may hold
/// anything, a colon too.
fn subject(line: &str) -> Option<(&str, &str)> {
    let first = line.split_once(": ")?;
    if OTHERS.contains(&first.0) {
        return Some(first);
    }
    let mut from = 0;
    while let Some(at) = line[from..].find(": ") {
        let at = from + at;
        let head = &line[..at];
        if is_id(head.rsplit(' ').next().unwrap_or_default()) {
            return Some((head, &line[at + 2..]));
        }
        from = at + 2;
    }
    Some(first)
}

/// What the sentence says of a session.
fn session(entry: &mut Entry, sentence: &str) {
    let split = |rest| str::split_once(rest, "): ");
    let (kind, word, text) = if let Some(evidence) = sentence.strip_prefix("restarting it: ") {
        (Kind::Attempt, "", evidence)
    } else if let Some(rest) = sentence.strip_prefix("restart: ") {
        let (word, text) = rest.split_once(": ").unwrap_or((rest, ""));
        (Kind::Outcome, word, text)
    } else if let Some((rule, text)) = sentence.strip_prefix("not restarted (").and_then(split) {
        (Kind::Refusal, rule, text)
    } else if sentence.starts_with(ASKED) {
        (Kind::Nudge, "", sentence)
    } else if let Some(rung) = rung(sentence) {
        (Kind::Rung, rung.word(), sentence)
    } else if let Some(text) = sentence.strip_prefix("it died: ") {
        (Kind::Death, "", text)
    } else if sentence.starts_with("lives again after ") {
        (Kind::Alive, "", sentence)
    } else if let Some(text) = sentence.strip_suffix(", left alone")
        && let Some((_, word)) = ON_PURPOSE.iter().find(|(purpose, _)| *purpose == text)
    {
        (Kind::Refusal, *word, text)
    } else {
        (Kind::Note, "", sentence)
    };
    entry.kind = kind;
    entry.word.push_str(word);
    entry.text.push_str(text);
    entry.deaf = kind == Kind::Attempt && text.starts_with("nobody polls Telegram");
}

/// The rung to which a child climbs, as in `nudged -> handed-over (T11)`.
fn rung(sentence: &str) -> Option<Rung> {
    let (from, rest) = sentence.split_once(" -> ")?;
    let (to, row) = rest.split_once(" (")?;
    let of = |word: &str| Rung::ALL.iter().find(|rung| rung.word() == word).copied();
    of(from).filter(|_| row.ends_with(')')).and(of(to))
}

/// Seconds since 1970, with or without a part of one.
fn seconds(value: &Value) -> Option<Time> {
    let Value::Number(digits) = value else {
        return None;
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let digits: String = whole
        .chars()
        .chain(part.chars().chain("000".chars()).take(3))
        .collect();
    digits.parse().ok().map(Time)
}

/// A line of `restart.log` or `escalations.log`.
pub fn object(line: &str, log: &'static str) -> Line {
    let Ok(object) = crate::json::read(line.as_bytes()) else {
        return Line::Torn;
    };
    let text = |name: &str| {
        let value = object.get(name).and_then(Value::as_str);
        value.unwrap_or_default()
    };
    let Some(at) = Time::parse_rfc3339(text("time")) else {
        // `{"ts": 1796086800.25, "severity": …}`
        let at = object.get("ts").and_then(seconds);
        return at.map_or(Line::Torn, Line::Foreign);
    };
    let mut entry = begun(at, log);
    entry.why.push_str(text("why"));
    if log == LOGS[1] {
        entry.kind = Kind::Told;
        entry.text.push_str(text("text"));
        entry.level.push_str(text("severity"));
        entry.word.push_str(text("outcome"));
        entry.parent.push_str(text("parent"));
        entry.episodes.push_str(text("episode"));
        for key in text("episode").split(' ') {
            let (_, id) = key.split_once(':').unwrap_or_default();
            if is_id(id) {
                entry.session.push_str(id);
                break;
            }
        }
        return Line::Entry(entry);
    }
    entry.session.push_str(text("session"));
    entry.title.push_str(text("title"));
    entry.profile.push_str(text("profile"));
    entry.deaf = text("capability") == "poller";
    let (kind, word, said) = match text("event") {
        "attempt" => (Kind::Attempt, "", "evidence"),
        "outcome" => (Kind::Outcome, text("outcome"), "text"),
        "refusal" => (Kind::Refusal, text("rule"), "text"),
        "stop" => (Kind::Stop, text("outcome"), "text"),
        other => (Kind::Note, other, "text"),
    };
    entry.kind = kind;
    entry.word.push_str(word);
    entry.text.push_str(text(said));
    Line::Entry(entry)
}
