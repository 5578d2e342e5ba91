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
use crate::model::{Process, Screen, Session, Silence, Status, Substate};
use crate::state::Child;

/// So long neither waiting nor in error, and the episode is over (ladder 1.2).
const RECOVERY: Duration = Duration::from_secs(300);
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
    match row.substate {
        Some(Substate::UsageLimit) => return Some("a usage limit"),
        Some(Substate::Auth401) => return Some("a login problem"),
        Some(
            Substate::Running
            | Substate::ModelUnavailable
            | Substate::IdleAtEmptyPrompt
            | Substate::Unfamiliar,
        )
        | None => {}
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

/// A good list says that it waits.
pub fn waits(child: &mut Child, row: &Session) {
    child.title.clone_from(&row.title);
    child.profile.clone_from(&row.profile);
    child.waits = true;
    child.recovering_since = None;
    child.missed_since = None;
}

/// A good list says that it does not wait. True when its episode is over.
pub fn left(child: &mut Child, row: &Session, now: Time) -> bool {
    child.missed_since = None;
    evict(child);
    let rests = row.archived || row.status == Status::Stopped;
    if rests {
        return close(child);
    }
    if row.status == Status::Error {
        child.recovering_since = None;
        return false;
    }
    let since = *child.recovering_since.get_or_insert(now);
    now.since(since) >= RECOVERY && close(child)
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

/// Ends the episode; true when there was one.
pub fn close(child: &mut Child) -> bool {
    child.recovering_since = None;
    child.nudges = 0;
    child.silent.clear();
    child.retry = None;
    child.said.clear();
    child.opened.take().is_some()
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

/// What a child needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing before that moment, where one is known.
    Nothing(Option<Time>),
    /// The guard holds it back, for no known time.
    HeldBack,
    /// Somebody has to hear that it waits for a decision, and about what.
    Decision(&'static str),
    /// Somebody has to hear that it cannot be asked, and why.
    CannotAsk(&'static str),
    /// Somebody has to hear that asking did not help.
    Unanswered,
    /// It is to be asked.
    Ask,
}

/// What a child needs whose pane was just read. A new pane is due after the
/// threshold; after a nudge the guard says when it may be asked again.
pub fn need(
    child: &Child,
    row: &Session,
    screen: &Screen,
    threshold: Duration,
    verdict: &Verdict,
    now: Time,
) -> Need {
    let Some(since) = child.since else {
        return Need::Nothing(None);
    };
    if !is_child(row) && !screen.decision {
        return Need::Nothing(None);
    }
    // Longer than the threshold, not as long (the manual).
    if now.since(since) <= threshold {
        let over = since.plus(threshold).plus(Duration::from_millis(1));
        return Need::Nothing(Some(over));
    }
    if screen.decision {
        return Need::Decision(screen.asks);
    }
    // First it has to be seen what the last message did.
    let last = child.last_nudge.filter(|_| !child.asked.is_empty());
    if let Some(last) = last {
        let echo = last.plus(ECHO);
        // It may still be on its way.
        return Need::Nothing(Some(echo).filter(|echo| *echo > now));
    }
    let refuses = |rule| verdict.refusals().any(|answer| answer.rule == rule);
    if refuses(Rule::Nudges) && !refuses(Rule::NudgeDedup) {
        return Need::Unanswered;
    }
    if refuses(Rule::Silenced) {
        return Need::HeldBack;
    }
    if !verdict.agrees() {
        let timed = verdict.refusals().filter_map(|answer| answer.lifts).max();
        return timed.map_or(Need::HeldBack, |lifts| Need::Nothing(Some(lifts)));
    }
    match silence(row, screen) {
        Some(why) => Need::CannotAsk(why),
        None => Need::Ask,
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
