//! `status`: is the watchdog alive, what needs attention, what is held back and
//! why.
//!
//! This file does not know how any of it is decided.

use std::fmt::Arguments;

use super::desk::{Desk, subject};
use super::ladder::{Standing, Waits, all_waits, standing};
use super::paper::{Light, Paper, add, cell, wrap};
use super::rows::{Act, Row, rows};
use super::{FORMAT, Report};
use crate::cli::Exit;
use crate::clock::{Time, spoken};
use crate::guard::{Answer, BURST, BURST_WINDOW, Rule};
use crate::host::logs::escape;
use crate::json::{Value, object};
use crate::model::{Flags, Level};
use crate::remember::FAILURES;
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
    /// Batches of children that are at work are shown too.
    all: bool,
}

/// Looks.
pub fn status(desk: &Desk, all: bool) -> Status<'_> {
    let watch = &desk.watch;
    let mut status = Status {
        desk,
        attention: attention(desk),
        quiet: 0,
        rows: Vec::new(),
        all,
    };
    for row in rows(watch, &desk.machine.settings.profiles, desk.now) {
        if all || !row.is_quiet(watch) {
            status.rows.push(row);
        } else {
            status.quiet += 1;
        }
    }
    status
}

fn attention(desk: &Desk) -> Vec<Attention> {
    let saved = &desk.watch.saved;
    // A deck that does not answer is spoken of below.
    let silent = format!("{}:", Kind::List.word());
    let mut found = Vec::new();
    for given_up in [true, false] {
        for episode in &saved.episodes {
            if is_given_up(&episode.key) == given_up && !episode.key.starts_with(&silent) {
                found.push(Attention {
                    given_up,
                    level: episode.level,
                    text: episode.text.clone(),
                    since: Some(episode.opened),
                });
            }
        }
    }
    let mut add = |given_up, since, text: Arguments| {
        found.push(Attention {
            given_up,
            level: match given_up {
                true => Level::Critical,
                false => Level::Warning,
            },
            text: text.to_string(),
            since,
        });
    };
    if let Some(why) = &desk.lost {
        let text = format_args!("the memory cannot be used: {why}");
        add(true, None, text);
    }
    let mut answers = true;
    for memory in &saved.profiles {
        if memory.failures >= FAILURES {
            answers = false;
            let text = format_args!("the watchdog cannot list profile {}", memory.name);
            add(true, memory.failing_since, text);
        }
    }
    for (profile, why) in desk.unlisted.iter().filter(|_| answers) {
        let of = subject(profile, "agent-deck");
        let text = format_args!("{of} does not answer now, so what is observed is missing: {why}");
        add(false, None, text);
    }
    for remark in &desk.remarks {
        add(false, None, format_args!("{remark}"));
    }
    if let Some(why) = &desk.watch.flags.trouble {
        let text = format_args!("nothing is done, since anybody may be held: {why}");
        add(true, None, text);
    }
    found
}

impl Status<'_> {
    /// Who watches, how fast, and whether it acts.
    fn head(&self) -> String {
        let life = &self.desk.life;
        let fast = life.holder.as_ref().filter(|_| life.is_well());
        let life = life.sentence(self.desk.now);
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

impl Status<'_> {
    /// The parents for whom something waits, and with `--all` those of whose
    /// children a batch is open.
    fn parents(&self, paper: &Paper, page: &mut String) {
        let mut waits = all_waits(self.desk);
        waits.retain(|waits| self.all || !waits.is_quiet());
        if waits.is_empty() {
            return;
        }
        page.push('\n');
        paper.lit(page, Light::Strong, format_args!("PARENTS"));
        page.push('\n');
        for waits in waits {
            wrap(page, "", &waits.name(), 2);
            for sentence in waits.sentences() {
                wrap(page, "    ", &sentence, 6);
            }
        }
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
        add(&mut text, format_args!(", {}", act.outcome));
    }
    if !act.reason.is_empty() {
        add(&mut text, format_args!(" ({})", escape(act.reason)));
    }
    text
}

impl Report for Status<'_> {
    fn text(&self, paper: &Paper) -> String {
        let mut page = String::new();
        let mut lit = |light, head: &str, text: &str| {
            let mut lines = String::new();
            wrap(&mut lines, head, text, 2);
            for line in lines.lines() {
                paper.lit(&mut page, light, format_args!("{line}"));
                page.push('\n');
            }
        };
        let light = match self.desk.life.is_well() {
            true => Light::Strong,
            false => Light::Red,
        };
        lit(light, "", &self.head());
        for attention in &self.attention {
            let light = match attention.level {
                Level::Critical => Light::Red,
                Level::Warning | Level::Info => Light::Yellow,
            };
            let mut text = escape(&attention.text);
            if let Some(at) = attention.since {
                let since = spoken(self.desk.now.since(at));
                add(&mut text, format_args!(" (for {since})"));
            }
            lit(light, "! ", &text);
        }
        if !self.rows.is_empty() {
            let head = line("SESSION", "OBSERVED", "WANTED");
            page.push('\n');
            paper.lit(&mut page, Light::Strong, format_args!("{head}RESTARTS"));
            page.push('\n');
        }
        for row in &self.rows {
            lines(&mut page, row, self.desk);
        }
        self.parents(paper, &mut page);
        match (self.quiet, self.rows.len()) {
            (0, 0) => page.push_str("\nNo session is watched.\n"),
            (0, _) => {}
            (n, _) => {
                let sessions = if n == 1 { "session" } else { "sessions" };
                add(
                    &mut page,
                    format_args!(
                        "\n{n} watched {sessions} of which there is nothing to say (--all)\n"
                    ),
                );
            }
        }
        page
    }

    fn json(&self) -> Value {
        let parents: Vec<Value> = all_waits(self.desk).iter().map(Waits::json).collect();
        let stamp = |at: Option<Time>| at.map(Time::rfc3339);
        let mut attention = Vec::new();
        for of in &self.attention {
            attention.push(object!({
                "given_up": of.given_up,
                "level": of.level.word(),
                "text": of.text,
                "since": stamp(of.since),
            }));
        }
        let mut sessions = Vec::new();
        for row in &self.rows {
            sessions.push(json_row(row, self.desk));
        }
        let pause = self.desk.watch.flags.pause.map(
            |pause| object!({ "since": stamp(Some(pause.since)), "until": stamp(pause.until) }),
        );
        object!({
            "format": FORMAT,
            "watchdog": self.desk.life.json(),
            "paused": pause,
            "attention": attention,
            "sessions": sessions,
            "parents": parents,
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

/// The first three columns of a line.
fn line(title: &str, observed: &str, wanted: &str) -> String {
    let mut line = String::new();
    for (text, width) in [title, observed, wanted].into_iter().zip(COLUMNS) {
        line.push_str(&cell(text, width));
    }
    line
}

/// A session's lines.
fn lines(page: &mut String, row: &Row, desk: &Desk) {
    let now = desk.now;
    let mut first = line(row.title, &row.observed(), row.wanted());
    if row.critical {
        add(&mut first, format_args!("{}/{BURST}", row.restarts()));
        if let Some(at) = row.next_slot() {
            let next = spoken(at.since(now));
            add(&mut first, format_args!(", next in {next}"));
        }
    }
    add(page, format_args!("{}\n", first.trim_end()));
    let mut more = |text: Arguments| wrap(page, "    ", &text.to_string(), 6);
    for answer in row.held_back() {
        let (word, numbers) = (answer.rule.word(), &answer.numbers);
        let lifts = lifts(answer, now);
        more(format_args!("held back: {word}: {numbers}{lifts}"));
    }
    if let Some((rule, sentence)) = row.left_alone(desk) {
        let sentence = escape(&sentence);
        more(format_args!("left alone: {rule}: {sentence}"));
    }
    if let Some(since) = row.child.and_then(|child| child.since) {
        let span = spoken(now.since(since));
        more(format_args!("the same screen for {span}"));
    }
    for sentence in standing(row, desk).iter().flat_map(Standing::sentences) {
        more(format_args!("{sentence}"));
    }
    if let Some(act) = row.last_act() {
        more(format_args!("last: {}", last(&act, now)));
    }
}

/// A session for programs; `explain` prints the same and more.
pub fn json_row(row: &Row, desk: &Desk) -> Value {
    let mut held_back = Vec::new();
    for answer in row.held_back() {
        held_back.push(object!({
            "rule": answer.rule.word(),
            "numbers": answer.numbers,
            "until": answer.lifts.map(Time::rfc3339),
        }));
    }
    let ladder = standing(row, desk).map(|standing| standing.json());
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
        "held_back": held_back,
        "left_alone": refusal,
        "ladder": ladder,
        "last_act": act,
    })
}
