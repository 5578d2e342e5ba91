//! `status`: is the watchdog alive, what needs attention, what is held back and
//! why.
//!
//! This file does not know how any of it is decided.

use serde_json::Value;

use super::desk::{Desk, subject};
use super::paper::{Light, Paper, cell, wrapped};
use super::rows::{Act, Row, rows};
use super::{FORMAT, Report};
use crate::cli::Exit;
use crate::clock::{Time, spoken};
use crate::guard::{Answer, BURST, BURST_WINDOW, Rule};
use crate::host::logs::escape;
use crate::json::object;
use crate::model::{Flags, Level};
use crate::remember::FAILURES;
use crate::state::ProfileMemory;
use crate::telling::{Kind, is_given_up};

/// Columns of title, observed and wanted; the restarts have the rest.
const COLUMNS: [usize; 3] = [24, 18, 13];

/// What needs attention.
struct Attention {
    /// Somebody has to look.
    given_up: bool,
    level: Level,
    text: String,
    /// When it began, where that is known.
    since: Option<Time>,
}

/// What `status` found.
pub struct Status<'a> {
    desk: &'a Desk,
    attention: Vec<Attention>,
    rows: Vec<Row<'a>>,
    quiet: usize,
}

/// Looks.
pub fn status(desk: &Desk, all: bool) -> Status<'_> {
    let watch = &desk.watch;
    let mut rows = rows(watch, &desk.machine.settings.profiles, desk.now);
    let watched = rows.len();
    rows.retain(|row| all || !row.is_quiet(watch));
    Status {
        desk,
        attention: attention(desk),
        quiet: watched - rows.len(),
        rows,
    }
}

fn attention(desk: &Desk) -> Vec<Attention> {
    let saved = &desk.watch.saved;
    // A deck that does not answer is spoken of below.
    let silent = format!("{}:", Kind::List.word());
    let found: Vec<Attention> = saved
        .episodes
        .iter()
        .filter(|episode| !episode.key.starts_with(&silent))
        .map(|episode| Attention {
            given_up: is_given_up(&episode.key),
            level: episode.level,
            text: episode.text.clone(),
            since: Some(episode.opened),
        })
        .collect();
    let (mut found, then): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| one.given_up);
    found.extend(then);
    let mut add = |given_up, text: String, since| {
        let level = if given_up {
            Level::Critical
        } else {
            Level::Warning
        };
        found.push(Attention {
            given_up,
            level,
            text,
            since,
        });
    };
    if let Some(why) = &desk.lost {
        add(true, format!("the memory cannot be used: {why}"), None);
    }
    let failing = |memory: &&ProfileMemory| memory.failures >= FAILURES;
    let mut answers = true;
    for memory in saved.profiles.iter().filter(failing) {
        answers = false;
        let text = format!("the watchdog cannot list profile {}", memory.name);
        add(true, text, memory.failing_since);
    }
    for (profile, why) in desk.unlisted.iter().filter(|_| answers) {
        let of = subject(profile, "agent-deck");
        let text = format!("{of} does not answer now, so what is observed is missing: {why}");
        add(false, text, None);
    }
    for remark in &desk.remarks {
        add(false, remark.clone(), None);
    }
    if let Some(why) = &desk.watch.flags.trouble {
        add(
            true,
            format!("nothing is done, since anybody may be held: {why}"),
            None,
        );
    }
    found
}

impl Status<'_> {
    /// Who watches, how fast, and whether it acts.
    fn head(&self) -> String {
        let life = self.desk.life.sentence(self.desk.now);
        let fast = self
            .desk
            .life
            .holder
            .as_ref()
            .filter(|_| self.desk.life.is_well());
        let fast = match fast.map(|holder| holder.fast_path.as_str()) {
            None | Some("") => String::new(),
            Some("on") => "; fast path on".to_owned(),
            Some(why) => format!("; no fast path: {}", escape(why)),
        };
        format!(
            "The watchdog {life}{fast}; {}.",
            pause(&self.desk.watch.flags, self.desk.now)
        )
    }
}

fn pause(flags: &Flags, now: Time) -> String {
    let Some(pause) = flags.pause else {
        return "not paused".to_owned();
    };
    let since = spoken(now.since(pause.since));
    match pause.until {
        Some(until) => format!("PAUSED for {since}, for {} more", spoken(until.since(now))),
        None => format!("PAUSED for {since}, until that is taken back"),
    }
}

/// When a rule lifts, as seen from now.
pub fn lifts(answer: &Answer, now: Time) -> String {
    // The user's own words name their end themselves.
    let own = matches!(answer.rule, Rule::Paused | Rule::Held);
    match answer.lifts.filter(|_| !own) {
        Some(at) => format!(", lifts in {}", spoken(at.since(now))),
        None => String::new(),
    }
}

/// What was last done, in a sentence.
pub fn last(act: &Act, now: Time) -> String {
    let mut text = format!("{} {} ago", act.what, spoken(now.since(act.at)));
    if !act.outcome.is_empty() {
        text.push_str(&format!(", {}", act.outcome));
    }
    if !act.reason.is_empty() {
        text.push_str(&format!(" ({})", escape(&act.reason)));
    }
    text
}

impl Report for Status<'_> {
    fn text(&self, paper: &Paper) -> String {
        let light = if self.desk.life.is_well() {
            Light::Strong
        } else {
            Light::Red
        };
        let mut page = String::new();
        let mut lit = |light, text: &str| {
            for line in text.lines() {
                page.push_str(&paper.lit(light, line));
                page.push('\n');
            }
        };
        lit(light, &wrapped("", &self.head(), 2));
        for attention in &self.attention {
            let light = match attention.level {
                Level::Critical => Light::Red,
                Level::Warning | Level::Info => Light::Yellow,
            };
            let since = attention.since.map(|at| spoken(self.desk.now.since(at)));
            let since = since.map_or(String::new(), |since| format!(" (for {since})"));
            lit(
                light,
                &wrapped("! ", &format!("{}{since}", escape(&attention.text)), 2),
            );
        }
        if !self.rows.is_empty() {
            let [title, observed, wanted] = COLUMNS;
            let head =
                cell("SESSION", title) + &cell("OBSERVED", observed) + &cell("WANTED", wanted);
            page.push('\n');
            page.push_str(&paper.lit(Light::Strong, &format!("{head}RESTARTS")));
            page.push('\n');
        }
        for row in &self.rows {
            page.push_str(&lines(row, self.desk));
        }
        let quiet = match (self.quiet, self.rows.len()) {
            (0, 0) => "\nNo session is watched.\n".to_owned(),
            (0, _) => String::new(),
            (n, _) => {
                let sessions = if n == 1 { "session" } else { "sessions" };
                format!("\n{n} watched {sessions} of which there is nothing to say (--all)\n")
            }
        };
        page + &quiet
    }

    fn json(&self) -> Value {
        let stamp = |at: Option<Time>| at.map(Time::rfc3339);
        let attention = |attention: &Attention| {
            object!({
                "given_up": attention.given_up,
                "level": attention.level.word(),
                "text": attention.text,
                "since": stamp(attention.since),
            })
        };
        let pause = self.desk.watch.flags.pause.map(
            |pause| object!({ "since": stamp(Some(pause.since)), "until": stamp(pause.until) }),
        );
        object!({
            "format": FORMAT,
            "watchdog": self.desk.life.json(),
            "paused": pause,
            "attention": self.attention.iter().map(attention).collect::<Vec<Value>>(),
            "sessions": self.rows.iter().map(|row| json_row(row, self.desk)).collect::<Vec<Value>>(),
            "quiet": self.quiet,
        })
    }

    fn exit(&self) -> Exit {
        let given_up = self.attention.iter().any(|attention| attention.given_up);
        if given_up || !self.desk.life.is_well() {
            Exit::Trouble
        } else {
            Exit::Done
        }
    }
}

/// A session's lines.
fn lines(row: &Row, desk: &Desk) -> String {
    let now = desk.now;
    let [title, observed, wanted] = COLUMNS;
    let mut page =
        cell(row.title, title) + &cell(&row.observed(), observed) + &cell(row.wanted(), wanted);
    if row.critical {
        page.push_str(&format!("{}/{BURST}", row.restarts()));
        if let Some(at) = row.next_slot() {
            page.push_str(&format!(", next in {}", spoken(at.since(now))));
        }
    }
    let mut page = format!("{}\n", page.trim_end());
    let mut more = |text: &str| page.push_str(&wrapped("    ", text, 6));
    for answer in row.held_back() {
        let (word, numbers) = (answer.rule.word(), &answer.numbers);
        more(&format!(
            "held back: {word}: {numbers}{}",
            lifts(answer, now)
        ));
    }
    if let Some((rule, sentence)) = row.left_alone(desk) {
        more(&format!("left alone: {rule}: {}", escape(&sentence)));
    }
    if let Some(since) = row.child.and_then(|child| child.since) {
        more(&format!("the same screen for {}", spoken(now.since(since))));
    }
    if let Some(act) = row.last_act() {
        more(&format!("last: {}", last(&act, now)));
    }
    page
}

/// A session for programs; `explain` prints the same and more.
pub fn json_row(row: &Row, desk: &Desk) -> Value {
    let answer = |answer: &&Answer| {
        object!({
            "rule": answer.rule.word(),
            "numbers": answer.numbers,
            "until": answer.lifts.map(Time::rfc3339),
        })
    };
    let refusal = row.left_alone(desk);
    let refusal = refusal.map(|(rule, text)| object!({ "rule": rule, "text": text }));
    let act = row.last_act().map(|act| {
        object!({
            "at": act.at.rfc3339(),
            "what": act.what,
            "outcome": act.outcome,
            "reason": act.reason,
        })
    });
    object!({
        "id": row.id.as_str(),
        "title": row.title,
        "profile": row.profile.as_str(),
        "critical": row.critical,
        "owner": row.owner.is_some(),
        "child": row.nudge.is_some(),
        "observed": row.listed.map(|listed| listed.status.word()),
        "archived": row.listed.is_some_and(|listed| listed.archived),
        "wanted": row.wanted(),
        "dead_since": row.memory.and_then(|m| m.dead_since).map(Time::rfc3339),
        "same_screen_since": row.child.and_then(|c| c.since).map(Time::rfc3339),
        "restarts": row.restarts(),
        "restarts_most": BURST,
        "window_s": BURST_WINDOW.as_secs(),
        "next_slot": row.next_slot().map(Time::rfc3339),
        "held_back": row.held_back().iter().map(answer).collect::<Vec<Value>>(),
        "left_alone": refusal,
        "last_act": act,
    })
}
