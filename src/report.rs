//! The lines of `restart.log`, and their twins in `watchdog.log`.
//!
//! This file does not know where they go.

use crate::capabilities::restart::is_critical;
use crate::guard::{Purpose, Verdict};
use crate::json::{Map, Value, put};
use crate::model::{Level, Profile, Session, SessionId, Status};
use crate::outcome::Line;
use crate::remember;
use crate::telling::{self, Kind};
use crate::watch::Watch;
use crate::world::{Record, World};

/// How the line of a nudge begins. A folder with such a line has been used.
pub const ASKED: &str = "asked to report status (nudge ";

/// Every line names the capability.
fn capability(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Dead => "restart",
        Purpose::Deaf => "poller",
    }
}

/// A restart is about to begin.
pub fn attempt<W: World>(
    world: &mut W,
    row: &Session,
    purpose: Purpose,
    evidence: &str,
    verdict: &Verdict,
) {
    let mut line = head("attempt", purpose, &row.profile, &row.id, &row.title);
    put(&mut line, "evidence", &evidence);
    put(&mut line, "guard", &rules(verdict));
    world.record(Record::Restart(line));
    world.note(
        Level::Warning,
        &named(row),
        &format!("restarting it: {evidence}"),
    );
}

/// A dry run would have begun a restart.
pub fn would<W: World>(world: &mut W, row: &Session, evidence: &str) {
    world.note(
        Level::Warning,
        &named(row),
        &format!("would be restarted: {evidence}"),
    );
}

/// What came of a restart.
pub fn outcome<W: World>(watch: &Watch, world: &mut W, id: &SessionId, line: &Line) {
    let Some(memory) = watch.state.sessions.get(id) else {
        return;
    };
    let for_poller = memory.attempt.as_ref().is_some_and(|a| a.for_poller);
    let purpose = if for_poller {
        Purpose::Deaf
    } else {
        Purpose::Dead
    };
    let mut fields = head("outcome", purpose, &memory.profile, id, &memory.title);
    put(&mut fields, "outcome", &line.outcome);
    put(&mut fields, "text", &line.sentence);
    world.record(Record::Restart(fields));
    let level = match line.outcome {
        "done" | "accepted" => Level::Info,
        _ => Level::Warning,
    };
    let sentence = format!("restart: {}: {}", line.outcome, line.sentence);
    world.note(level, &remember::subject(memory, id), &sentence);
}

/// What became of a session's poller after a restart.
pub fn poller<W: World>(world: &mut W, row: &Session, outcome: &str, sentence: &str) {
    let mut fields = head("outcome", Purpose::Deaf, &row.profile, &row.id, &row.title);
    put(&mut fields, "outcome", &outcome);
    put(&mut fields, "text", &sentence);
    world.record(Record::Restart(fields));
    world.note(
        Level::Info,
        &named(row),
        &format!("restart: {outcome}: {sentence}"),
    );
}

/// A child is about to be stopped.
pub fn stop_begins<W: World>(world: &mut W, row: &Session, verdict: &Verdict) {
    let text = "was asked as often as it may be, and both opt-ins are given";
    stop(world, row, "begun", text, Some(verdict));
    // Told is what comes of it.
    let text = format!("{} ({}) is stopped: it {text}", row.title, row.id);
    let key = Kind::Unanswered.key(row.id.as_str());
    telling::write(world, &key, Level::Warning, &text, "local only", "");
}

/// What came of a stop.
pub fn stop_ends<W: World>(world: &mut W, row: &Session, outcome: &str, why: &str) {
    stop(world, row, outcome, why, None);
}

fn stop<W: World>(
    world: &mut W,
    row: &Session,
    outcome: &str,
    text: &str,
    guard: Option<&Verdict>,
) {
    let mut line = Map::new();
    put(&mut line, "event", &"stop");
    put(&mut line, "action", &"stop");
    put(&mut line, "capability", &"patrol");
    put(&mut line, "profile", &row.profile.as_str());
    put(&mut line, "session", &row.id.as_str());
    put(&mut line, "title", &row.title);
    put(&mut line, "outcome", &outcome);
    put(&mut line, "text", &text);
    if let Some(verdict) = guard {
        put(&mut line, "guard", &rules(verdict));
    }
    world.record(Record::Restart(line));
    let sentence = format!("stop: {outcome}: {text}");
    world.note(Level::Warning, &named(row), &sentence);
}

/// A session that reads dead or is deaf is left alone.
pub fn refusal<W: World>(
    world: &mut W,
    row: &Session,
    purpose: Purpose,
    rule: &str,
    sentence: &str,
    verdict: Option<&Verdict>,
) {
    let mut line = head("refusal", purpose, &row.profile, &row.id, &row.title);
    put(&mut line, "rule", &rule);
    put(&mut line, "text", &sentence);
    if let Some(verdict) = verdict {
        put(&mut line, "guard", &rules(verdict));
    }
    world.record(Record::Restart(line));
    world.note(
        Level::Warning,
        &named(row),
        &format!("not restarted ({rule}): {sentence}"),
    );
}

/// One turn in a line, for `--verbose`.
pub fn tick(watch: &Watch, profile: &Profile) -> String {
    let rows = watch.rows(profile);
    let count = |wanted: &dyn Fn(&Session) -> bool| rows.iter().filter(|r| wanted(r)).count();
    format!(
        "tick: {} sessions, {} critical, {} read dead, {} looks planned",
        rows.len(),
        count(&|r| is_critical(r, &watch.flags)),
        count(&|r| r.status == Status::Error && !r.archived),
        watch.looks.len()
    )
}

/// What a dry run says of the critical sessions that it would leave alone
/// because nothing is wrong with them.
pub fn nothing_to_do<W: World>(watch: &Watch, world: &mut W, profile: &Profile) {
    for row in watch
        .rows(profile)
        .iter()
        .filter(|row| is_critical(row, &watch.flags))
    {
        let sentence = match (&row.status, row.archived) {
            (_, true) => "archived: would be left alone".to_owned(),
            (Status::Error, false) => continue,
            (status, false) => format!("listed as {}: nothing to do", status.word()),
        };
        world.detail(&named(row), &sentence);
    }
}

fn head(event: &str, purpose: Purpose, profile: &Profile, id: &SessionId, title: &str) -> Map {
    let mut line = Map::new();
    put(&mut line, "event", &event);
    put(&mut line, "capability", &capability(purpose));
    put(&mut line, "profile", &profile.as_str());
    put(&mut line, "session", &id.as_str());
    put(&mut line, "title", &title);
    line
}

/// All rules that were asked, with their numbers.
fn rules(verdict: &Verdict) -> Value {
    let mut rules = Map::new();
    for answer in &verdict.answers {
        let says = if answer.refuses { "no" } else { "yes" };
        let numbers = &answer.numbers;
        let says = format!("{says}: {numbers}");
        put(&mut rules, answer.rule.word(), &says);
    }
    Value::Object(rules)
}

/// How lines about a session begin.
pub fn named(row: &Session) -> String {
    format!("{} {}", row.title, row.id)
}
