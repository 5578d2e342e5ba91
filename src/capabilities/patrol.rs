//! Capability 3: which children wait unseen, and what is to be done about them
//! (DESIGN 3.4, ladder 1.3).
//!
//! Two things are kept of each child: the timer of its pane, which a new pane
//! restarts and another status ends, and the episode, which ends only when it
//! has not waited for a while. This file does not know how a pane is read, nor
//! how a child is asked.

use std::time::Duration;

use super::restart::others;
use crate::clock::Time;
use crate::deck::processes::is_shell;
use crate::guard::{Rule, Verdict};
use crate::ladder::{Listed, Shows, is_fresh};
use crate::model::{Process, Screen, Session, Silence, Status, Substate};
use crate::state::{Child, Rung};

/// So long neither waiting nor in error, and the episode is over (ladder 1.2).
pub const RECOVERY: Duration = Duration::from_secs(300);
/// Times that triage may give a child more time in an episode (ladder 1.2).
pub const MAX_EXTENDS: u32 = 3;
/// The word for a hold that was told.
pub const HELD: &str = "held";
/// Who is not listed any more is forgotten after this (ladder 1.9).
const FORGET: Duration = Duration::from_secs(86_400);
/// Between two readings of a pane from which nothing is due yet, at most. A pane
/// that changes meanwhile starts its timer with the reading that shows it, so at
/// most this late, and never early.
pub const READ_FAR: Duration = Duration::from_secs(30);
/// The same where hook records say at once that something happened: twenty
/// children who are left alone cost one reading a minute.
pub const READ_HINTED: Duration = Duration::from_secs(1200);
/// When the screen of a critical session that began to live is looked at, once:
/// a dialog of its start stands there by then, on a busy machine too, and a poll
/// of five minutes falls into this time.
const STARTING: [Duration; 2] = [Duration::from_secs(180), Duration::from_secs(600)];
/// After a message the pane is looked at when it must have changed: agent-deck
/// itself waits 6 s for a sign (contract 5.5).
pub const ECHO: Duration = Duration::from_secs(7);

/// Whether a row is a child that the patrol looks after. Conductors wait because
/// that is their work; a plain shell would run the question as a command.
pub fn is_child(row: &Session) -> bool {
    let program = program(row);
    let shell = row.tool == "shell" && (program.is_empty() || is_shell(program));
    !row.parent.is_empty() && !row.is_conductor_like() && !row.archived && !shell
}

/// Whether a critical row that lives may be held up by a dialog of its start:
/// trust, first run, permissions. `started` is when it last began to live.
pub fn is_starting(row: &Session, started: Option<Time>, now: Time) -> bool {
    let age = started.map(|at| now.since(at));
    !row.archived && age.is_some_and(|age| age >= STARTING[0] && age < STARTING[1])
}

/// The program that a row's command names.
fn program(row: &Session) -> &str {
    let first = row.command.split_whitespace().next().unwrap_or_default();
    first.rsplit('/').next().unwrap_or_default()
}

/// Whether its agent is a Claude, whose composer is known.
pub fn is_claude(row: &Session) -> bool {
    row.tool == "claude" || program(row).starts_with("claude")
}

/// Why nothing may be typed into a child; `None`: its composer is free.
pub fn silence(row: &Session, screen: &Screen) -> Option<&'static str> {
    if let Some(why) = limit(row) {
        return Some(why);
    }
    let silence = if is_claude(row) {
        screen.claude
    } else if row.tool == "shell" {
        // Its agent has ended, and a shell runs what is typed.
        return Some("a shell");
    } else {
        screen.other
    };
    silence.map(Silence::word)
}

/// Whether agent-deck is at work on sessions at the moment: it may be starting or
/// stopping this one. `own` are our own commands that still run.
pub fn disturbed(row: &Session, table: &[Process], own: &[u32], now: Time) -> bool {
    others(row, own, table, now).is_some()
}

/// The digest of a screen's content, as it is remembered.
pub fn digest(screen: &Screen) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for byte in screen.content {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Books what a good list says of a child, and names it (ladder 1.5).
pub fn listed(child: &mut Child, row: &Session, now: Time) -> Listed {
    child.title.clone_from(&row.title);
    child.profile.clone_from(&row.profile);
    child.parent.clone_from(&row.parent);
    child.missed_since = None;
    let runs = row.status == Status::Running;
    if runs && !child.runs {
        child.ran = Some(now);
    }
    child.runs = runs;
    child.lived |= lives(row);
    let listed = says(child, row);
    match listed {
        Listed::Waits => {
            child.waits = true;
            child.recovering_since = None;
        }
        Listed::Error => {
            evict(child);
            child.recovering_since = None;
            child.dying_since.get_or_insert(now);
        }
        Listed::Left => {
            evict(child);
            if child.rung == Rung::Clear {
                child.recovering_since = None;
                return listed;
            }
            let since = *child.recovering_since.get_or_insert(now);
            if now.since(since) >= RECOVERY {
                close(child);
                return Listed::Recovered;
            }
        }
        Listed::Stopped | Listed::Completed | Listed::Exempt | Listed::Gone | Listed::Recovered => {
            evict(child);
            close(child);
        }
    }
    if listed != Listed::Error {
        child.dying_since = None;
    }
    listed
}

/// What a row says; the first that fits counts (ladder 1.5).
fn says(child: &Child, row: &Session) -> Listed {
    if !is_child(row) {
        return Listed::Exempt;
    }
    match &row.status {
        Status::Stopped => Listed::Stopped,
        _ if is_settled(child, row) => Listed::Completed,
        Status::Error => Listed::Error,
        Status::Waiting => Listed::Waits,
        Status::Running
        | Status::Idle
        | Status::Queued
        | Status::Starting
        | Status::Unfamiliar(_) => Listed::Left,
    }
}

/// Whether it has said that its work is over since it last began to run; an
/// older word is about another task.
pub fn is_settled(child: &Child, row: &Session) -> bool {
    child
        .over
        .is_some_and(|over| is_fresh(over, child.ran, row.created))
}

/// Whether it certainly has run. A row that was just added prints `idle`
/// without ever having done so.
fn lives(row: &Session) -> bool {
    row.status.is_alive() && (row.status != Status::Idle || row.substate.is_some())
}

/// Nobody lists it any more.
pub fn gone(child: &mut Child) {
    evict(child);
    close(child);
    child.dying_since = None;
}

/// Ends the timer.
pub fn evict(child: &mut Child) {
    child.waits = false;
    child.asks = false;
    child.digest.clear();
    child.asked.clear();
    child.since = None;
    child.unread_since = None;
}

/// Ends the episode. What limits messages, and what was told last of a decision,
/// outlives it.
pub fn close(child: &mut Child) {
    child.recovering_since = None;
    child.nudges = 0;
    child.silent.clear();
    child.retry = None;
    child.said.clear();
    child.opened = None;
    child.told = None;
    child.held_since = None;
    child.gate.clear();
    child.extends = 0;
    (child.retried, child.retry_due) = (false, false);
}

/// A session that is no child waits, and its screen is read.
pub fn waits(child: &mut Child, row: &Session) {
    child.title.clone_from(&row.title);
    child.profile.clone_from(&row.profile);
    child.missed_since = None;
    child.waits = true;
}

/// Whether a child that is not listed any more is forgotten (ladder 1.9: a day).
pub fn is_forgotten(child: &Child, dedup: Duration, now: Time) -> bool {
    let missed = child
        .missed_since
        .map_or(Duration::ZERO, |at| now.since(at));
    let asked = child.last_nudge.is_some_and(|at| now.since(at) < dedup);
    missed >= FORGET && !asked
}

/// Whether nothing of it is worth remembering any more.
pub fn is_over(child: &Child, dedup: Duration, now: Time) -> bool {
    let asked = child.last_nudge.is_some_and(|at| now.since(at) < dedup);
    child.since.is_none()
        && child.unread_since.is_none()
        && child.opened.is_none()
        && child.nudges == 0
        && !asked
}

/// What a reading showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// Another pane than before: the timer begins.
    Moved,
    /// The same as before.
    Still,
}

/// Books a reading. `input` is when something last happened in the session
/// beside its screen, as its hook record says.
pub fn read(child: &mut Child, digest: &str, input: Option<Time>, now: Time) -> Read {
    // A stamp that lies ahead says nothing.
    let input = input.filter(|at| *at <= now);
    let unread = child.unread_since.take();
    let lost = unread.map_or(Duration::ZERO, |since| now.since(since));
    match child.since.filter(|_| child.digest == digest) {
        Some(since) => {
            child.since = Some(since.plus(lost).max(input.unwrap_or_default()));
            Read::Still
        }
        None => {
            digest.clone_into(&mut child.digest);
            child.since = Some(now);
            child.doubt_since = None;
            Read::Moved
        }
    }
}

/// Its pane could not be read: that time does not count. Since when.
pub fn unread(child: &mut Child, now: Time) -> Time {
    *child.unread_since.get_or_insert(now)
}

/// Nobody looked for a while: that time does not count.
pub fn gap(child: &mut Child, length: Duration, now: Time) {
    child.since = child.since.map(|since| since.plus(length).min(now));
    child.unread_since = child.unread_since.map(|at| at.plus(length).min(now));
    child.recovering_since = child.recovering_since.map(|at| at.plus(length).min(now));
}

/// What a screen shows of a child that waits (ladder 1.5, line 8).
pub fn shows(row: &Session, screen: &Screen) -> Shows {
    if is_child(row) && limit(row).is_some() {
        Shows::Limit
    } else if screen.decision {
        Shows::Decision
    } else {
        Shows::Plain
    }
}

/// What holds a session, as agent-deck read it off its screen.
pub fn limit(row: &Session) -> Option<&'static str> {
    row.substate.and_then(limit_of)
}

/// What a substate says of what holds a session.
pub fn limit_of(substate: Substate) -> Option<&'static str> {
    match substate {
        Substate::UsageLimit => Some("a usage limit"),
        Substate::Auth401 => Some("a login problem"),
        Substate::ModelUnavailable => Some("a model that is not available"),
        Substate::Running | Substate::IdleAtEmptyPrompt | Substate::Unfamiliar => None,
    }
}

/// What a child needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing before that moment, where one is known.
    Nothing(Option<Time>),
    /// The guard holds it back, for no known time.
    HeldBack,
    /// Somebody has to hear that it waits for a decision, and about what.
    Decision(&'static str),
    /// Somebody has to hear what holds it.
    Limit(&'static str),
    /// Somebody has to hear that it cannot be asked, and why.
    CannotAsk(&'static str),
    /// It is to be asked.
    Ask,
    /// Triage is to be asked about it.
    Triage,
    /// Somebody has to hear that asking did not help.
    HandOver,
    /// It is to be stopped, as its owner has opted in.
    Stop,
}

/// What a judgement goes by, beside child, row and screen.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// `WAITING_PATROL_THRESHOLD_S`.
    pub threshold: Duration,
    /// The dwell between two rungs: `WAITING_PATROL_NUDGE_DEDUP_S` (ladder 1.2).
    pub step: Duration,
    /// Whether there is a triage program.
    pub triage: bool,
    /// Whether both opt-ins of the last rung are given.
    pub may_stop: bool,
    /// What the guard says of a nudge.
    pub nudge: &'a Verdict,
}

impl Terms<'_> {
    fn refuses(&self, rules: &[Rule]) -> bool {
        self.nudge.refusals().any(|no| rules.contains(&no.rule))
    }

    /// When what refuses for a time has lifted.
    fn lifted(&self) -> Need {
        let timed = self.nudge.refusals().filter_map(|no| no.lifts).max();
        timed.map_or(Need::HeldBack, |lifts| Need::Nothing(Some(lifts)))
    }
}

/// What a child needs whose pane was just read, and whose rung says so already.
/// A new pane is due after the threshold; after a nudge the guard says when it
/// may be asked again.
pub fn need(child: &Child, row: &Session, screen: &Screen, terms: &Terms, now: Time) -> Need {
    let Some(since) = child.since else {
        return Need::Nothing(None);
    };
    if !is_child(row) && !screen.decision {
        return Need::Nothing(None);
    }
    // Longer than the threshold, not as long (the manual).
    if now.since(since) <= terms.threshold {
        let over = since.plus(terms.threshold).plus(Duration::from_millis(1));
        return Need::Nothing(Some(over));
    }
    match child.rung {
        Rung::Gated => gate(child, screen, terms, now),
        Rung::Held => held(child, row, terms, now),
        Rung::Watching | Rung::Nudged | Rung::CannotAsk => ask(child, row, screen, terms, now),
        Rung::Triage => triage(child, row, screen, terms, now),
        Rung::HandedOver => stop(child, terms, now),
        Rung::Clear
        | Rung::Stopping
        | Rung::StoppedByUs
        | Rung::Dying
        | Rung::Dead
        | Rung::Settled => Need::Nothing(None),
    }
}

/// T17: each decision once, and no two within the dwell.
fn gate(child: &Child, screen: &Screen, terms: &Terms, now: Time) -> Need {
    let again = child.gate_told.map(|told| told.plus(terms.step));
    match again.filter(|again| *again > now) {
        _ if child.gate == child.digest => Need::Nothing(None),
        Some(again) => Need::Nothing(Some(again)),
        None => Need::Decision(screen.asks),
    }
}

/// T19: once an episode.
fn held(child: &Child, row: &Session, terms: &Terms, now: Time) -> Need {
    let due = child.held_since.unwrap_or(now).plus(terms.threshold);
    match limit(row) {
        _ if due > now => Need::Nothing(Some(due)),
        Some(why) if !child.said.iter().any(|said| said == HELD) => Need::Limit(why),
        Some(_) | None => Need::Nothing(None),
    }
}

/// T6, T7b, T10, T11.
fn ask(child: &Child, row: &Session, screen: &Screen, terms: &Terms, now: Time) -> Need {
    // First it has to be seen what the last message did.
    let last = child.last_nudge.filter(|_| !child.asked.is_empty());
    if let Some(last) = last {
        let echo = last.plus(ECHO);
        // It may still be on its way.
        return Need::Nothing(Some(echo).filter(|echo| *echo > now));
    }
    if terms.refuses(&[Rule::Nudges]) && !terms.refuses(&[Rule::NudgeDedup]) {
        return higher(terms, terms.triage);
    }
    if terms.refuses(&[Rule::Silenced]) {
        return Need::HeldBack;
    }
    if !terms.nudge.agrees() {
        return terms.lifted();
    }
    match silence(row, screen) {
        Some(why) => Need::CannotAsk(why),
        None => Need::Ask,
    }
}

/// Above rung 1: not right after a time in which nobody looked (ladder 1.2), and
/// nothing is started while nothing is to be done.
fn higher(terms: &Terms, triage: bool) -> Need {
    if terms.refuses(&[Rule::Gap]) {
        return terms.lifted();
    }
    match triage {
        true if terms.refuses(&[Rule::Paused, Rule::Held, Rule::Memory]) => Need::HeldBack,
        true => Need::Triage,
        false => Need::HandOver,
    }
}

/// T12 to T14: a dwell after each call, and after the question it has led to.
fn triage(child: &Child, row: &Session, screen: &Screen, terms: &Terms, now: Time) -> Need {
    let last = child.triaged.max(child.last_nudge);
    let over = last.unwrap_or_default().plus(terms.step);
    if child.triage_open {
        return Need::Nothing(None);
    } else if over <= now {
        return higher(terms, terms.triage && child.extends < MAX_EXTENDS);
    }
    let free = silence(row, screen).is_none();
    if child.retry_due && free && terms.nudge.agrees() {
        return Need::Ask;
    }
    Need::Nothing(Some(over))
}

/// T22.
fn stop(child: &Child, terms: &Terms, now: Time) -> Need {
    let told = child
        .told
        .filter(|_| terms.may_stop && child.silent.is_empty());
    match told.map(|told| told.plus(terms.step)) {
        None => Need::Nothing(None),
        Some(due) if due > now => Need::Nothing(Some(due)),
        Some(_) if terms.refuses(&[Rule::Gap]) => terms.lifted(),
        Some(_) => Need::Stop,
    }
}

/// How long until a pane that was just read is read again, given when something
/// may be due, how far apart its last two readings were, and how far they may be.
///
/// Towards a known moment each distance is three quarters of what is left, so
/// that the last one is a poll, and no reading passes over the moment itself.
/// Where none is known the distances double.
pub fn next_reading(
    due: Option<Time>,
    last: Duration,
    longest: Duration,
    poll: Duration,
    now: Time,
) -> Duration {
    let Some(due) = due else {
        return last.saturating_mul(2).clamp(READ_FAR, longest);
    };
    let left = due.since(now);
    let distance = (left / 4 * 3).min(longest).max(poll);
    if left.is_zero() {
        distance
    } else {
        distance.min(left)
    }
}

#[cfg(test)]
#[path = "patrol_tests.rs"]
mod tests;
