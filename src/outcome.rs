//! What an answer of `session restart` means, and what became of the session
//! afterwards: the way from an attempt to its outcome (DESIGN 3.2).
//!
//! This file does not know how the answer came, nor whether a restart is allowed.

use std::time::Duration;

use crate::capabilities::patrol;
use crate::clock::{Time, millis, spoken};
use crate::deck::trouble::{Trouble, classify};
use crate::guard::{COOL_DOWN, CRASH_LOOP, crash_loop, give_back};
use crate::ladder::{self, Event, Listed};
use crate::model::{Level, Restarted, Session, SessionId, Status, Substate};
use crate::state::{Attempt, Backoff, LastError, Outcome, State};
use crate::telling::{Kind, cut, forget, keep, raise, resolve};

/// First global back-off after a rate limit in seconds (DESIGN 3.2).
const RATE_LIMIT: u64 = 180;
/// The longest one (DESIGN 3.2).
const RATE_LIMIT_MOST: u64 = 1800;
/// Global back-off after trouble of the machine in seconds (DESIGN 3.2).
const HOST_TROUBLE: u64 = 60;
/// First distance after agent-deck declined, in seconds, and the longest one (DESIGN 3.2).
const SKIPPED: u64 = 15;
const SKIPPED_MOST: u64 = 300;
/// A start younger than this is declined by agent-deck (contract 5.2).
const FRESHNESS: u64 = 60;
/// So long alive, and everything is forgiven (DESIGN 3.2).
pub const WELL: Duration = Duration::from_secs(600);
/// Characters of another program's text in a sentence of ours.
const QUOTE: usize = 300;

/// What is written down about an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The outcome's word.
    pub outcome: &'static str,
    /// What it means.
    pub sentence: String,
}

/// Books the answer of a restart command.
pub fn answered(state: &mut State, id: &SessionId, answer: &Restarted, now: Time) -> Line {
    let title = state
        .sessions
        .get(id)
        .map(|m| m.title.clone())
        .unwrap_or_default();
    if let Some(attempt) = attempt_mut(state, id) {
        attempt.answered = Some(now);
    }
    let line = |outcome, sentence: String| Line { outcome, sentence };
    let text = match answer {
        Restarted::Accepted(text) | Restarted::Skipped(text) | Restarted::Unknown(text) => text,
        // What these say is judged with them.
        Restarted::NotStarted(_) | Restarted::Failed(_) => "",
    };
    let limited = classify(text, id, &title) == Some(Trouble::RateLimit);
    if limited {
        rate_limited(state, text, now);
    }
    match answer {
        Restarted::Accepted(warning) if limited => line(
            "accepted",
            format!("accepted, with the warning: {}", quote(warning)),
        ),
        Restarted::Accepted(_) => {
            state.rate_limit = None;
            state.host_trouble = None;
            if let Some(memory) = state.sessions.get_mut(id) {
                memory.skipped = None;
            }
            line(
                "accepted",
                "agent-deck accepted it; the new agent is waited for".to_owned(),
            )
        }
        Restarted::Skipped(reason) => {
            give_back(state, id);
            let seconds = skipped(state, id, reason, now);
            line(
                "skipped",
                format!(
                    "agent-deck declined: {}; again in {seconds} s",
                    quote(reason)
                ),
            )
        }
        Restarted::Unknown(text) => line(
            "unknown",
            format!(
                "no usable answer, the agent may be running: {}",
                quote(text)
            ),
        ),
        Restarted::NotStarted(text) => {
            give_back(state, id);
            match classify(text, id, &title) {
                Some(Trouble::Host) => host_trouble(state, text, now),
                Some(Trouble::RateLimit) | None => {
                    set_skipped(state, id, FRESHNESS, now);
                }
            }
            line(
                "not started",
                format!("agent-deck could not be started: {}", quote(text)),
            )
        }
        Restarted::Failed(text) => failed(state, id, &title, text, now),
    }
}

fn failed(state: &mut State, id: &SessionId, title: &str, text: &str, now: Time) -> Line {
    match classify(text, id, title) {
        Some(Trouble::RateLimit) => {
            set_outcome(state, id, Outcome::Limited);
            forgive_one(state, id);
            rate_limited(state, text, now);
            let sentence = format!("a limit, not a crash: {}", quote(text));
            return Line {
                outcome: "limited",
                sentence,
            };
        }
        Some(Trouble::Host) => {
            give_back(state, id);
            host_trouble(state, text, now);
            let sentence = format!("trouble of the machine: {}", quote(text));
            return Line {
                outcome: "host trouble",
                sentence,
            };
        }
        None => {}
    }
    set_outcome(state, id, Outcome::Failed);
    let count = count_error(state, id, text);
    let sentence = match count {
        1 => format!("failed: {}", quote(text)),
        n => format!("failed, {n} times in a row with: {}", quote(text)),
    };
    if text.contains("AMBIGUOUS") {
        let told = format!(
            "{title} ({id}) cannot be restarted, agent-deck says: {}",
            quote(text)
        );
        raise(state, Kind::Down, id.as_str(), Level::Critical, &told, now);
    }
    tell_crash_loop(state, id, now);
    Line {
        outcome: Outcome::Failed.word(),
        sentence,
    }
}

/// What has been seen of a session since its restart.
#[derive(Clone, Copy, Debug)]
pub struct Since<'a> {
    /// Its row in a good list.
    pub row: &'a Session,
    /// A pane process of it that started after the command began.
    pub new_agent: bool,
    /// Processes could be seen at all.
    pub seen: bool,
}

/// When the outcome of the last attempt can be told at the latest; `None` when
/// it is known, or when there is none.
pub fn due(state: &State, id: &SessionId) -> Option<Time> {
    let attempt = state.sessions.get(id)?.attempt.as_ref()?;
    let answered = attempt.answered.filter(|_| attempt.outcome.is_none())?;
    Some(answered.plus(COOL_DOWN))
}

/// Finds the outcome of the last attempt, once it can be told.
pub fn verify(state: &mut State, id: &SessionId, since: &Since, now: Time) -> Option<Line> {
    let memory = state.sessions.get(id)?;
    let attempt = memory.attempt.as_ref()?;
    let (at, answered, title) = (attempt.at, attempt.answered, memory.title.clone());
    // The agent is seen before its screen is.
    let (known, may_be_limited) = match attempt.outcome {
        None => (false, true),
        Some(Outcome::Done | Outcome::Unverified) => (true, now.since(at) < WELL),
        Some(Outcome::NoEffect | Outcome::Failed | Outcome::Limited) => (true, false),
    };
    let limit = since.row.substate == Some(Substate::UsageLimit) && since.row.status.is_alive();
    if may_be_limited && limit {
        set_outcome(state, id, Outcome::Limited);
        forgive_one(state, id);
        let sentence = "a usage limit is on the new screen; not a crash".to_owned();
        return Some(Line {
            outcome: Outcome::Limited.word(),
            sentence,
        });
    }
    if known {
        return None;
    }
    if since.new_agent {
        set_outcome(state, id, Outcome::Done);
        if let Some(memory) = state.sessions.get_mut(id) {
            memory.without_effect = 0;
            memory.last_error = None;
        }
        tell_crash_loop(state, id, now);
        let sentence = format!("a new agent was seen after {}", precise(now.since(at)));
        return Some(Line {
            outcome: Outcome::Done.word(),
            sentence,
        });
    }
    // While its command runs nothing can be missed.
    if answered.is_none_or(|answered| now.since(answered) < COOL_DOWN) {
        return None;
    }
    if since.row.status != Status::Error {
        set_outcome(state, id, Outcome::Unverified);
        let seen = if since.seen {
            "no new agent was seen"
        } else {
            "processes cannot be seen"
        };
        let status = since.row.status.word();
        let sentence = format!("{seen}, but it is listed as {status}");
        if !since.row.status.is_alive() && since.row.status != Status::Stopped {
            let told = format!("{title} ({id}) was restarted and is still listed as {status}");
            raise(state, Kind::Down, id.as_str(), Level::Warning, &told, now);
        }
        tell_crash_loop(state, id, now);
        return Some(Line {
            outcome: Outcome::Unverified.word(),
            sentence,
        });
    }
    set_outcome(state, id, Outcome::NoEffect);
    Some(without_effect(state, id, &title, now))
}

fn without_effect(state: &mut State, id: &SessionId, title: &str, now: Time) -> Line {
    let mut count = 0;
    if let Some(memory) = state.sessions.get_mut(id) {
        memory.without_effect = memory.without_effect.saturating_add(1);
        count = memory.without_effect;
        // Two in a row are a crash loop: no third blind try (DESIGN 3.2).
        if count >= 2 && memory.since_well < CRASH_LOOP {
            memory.since_well = CRASH_LOOP;
            let at = memory.restarts.last().copied().unwrap_or(now);
            memory.crash_loop = Some(crash_loop(CRASH_LOOP, at));
        }
    }
    let told = format!(
        "{title} ({id}) was restarted and reads dead as before: restarting changes nothing. \
         Perhaps the tmux server is stuck, or its command does not run"
    );
    raise(state, Kind::Down, id.as_str(), Level::Critical, &told, now);
    tell_crash_loop(state, id, now);
    let sentence = format!("it reads dead as before, {count} in a row");
    Line {
        outcome: Outcome::NoEffect.word(),
        sentence,
    }
}

/// Tells a crash loop: the third restart since the session was last well.
fn tell_crash_loop(state: &mut State, id: &SessionId, now: Time) {
    let Some(memory) = state.sessions.get(id) else {
        return;
    };
    let Some(backoff) = memory.crash_loop else {
        return;
    };
    let error = match &memory.last_error {
        Some(LastError { text, times: 0..=1 }) => format!(", last with: {text}"),
        Some(LastError { text, times }) => format!(", {times} times in a row with: {text}"),
        None => String::new(),
    };
    let text = format!(
        "{} ({id}) keeps dying or cannot be started: {} restarts since it was last well{error}. \
         Given up for now; next try in {}",
        memory.title,
        memory.since_well,
        spoken(backoff.until().since(now)),
    );
    let level = Level::Critical;
    // The same news again refreshes the text of the reminder; it is no event.
    keep(state, Kind::Down, id.as_str(), level, &text, now);
}

/// The session has been well for ten minutes: everything is forgiven and told.
pub fn well(state: &mut State, id: &SessionId, now: Time) {
    let Some(memory) = state.sessions.get_mut(id) else {
        return;
    };
    memory.since_well = 0;
    memory.without_effect = 0;
    memory.crash_loop = None;
    memory.skipped = None;
    memory.last_error = None;
    let text = format!("{} ({id}) recovered", memory.title);
    resolve(state, Kind::Down, id.as_str(), &text, now);
}

/// Forgets the failures of a session, as the `clear` request asks, and ends the
/// episode of a child; the sliding window and the dedup stamps stay. False when
/// nothing is known of it.
pub fn clear(state: &mut State, id: &SessionId) -> bool {
    let mut known = false;
    if let Some(memory) = state.sessions.get_mut(id) {
        known = true;
        memory.since_well = 0;
        memory.without_effect = 0;
        memory.crash_loop = None;
        memory.skipped = None;
        memory.usage_limit = None;
        memory.last_error = None;
    }
    if let Some(child) = state.children.iter_mut().find(|child| child.id == *id) {
        known = true;
        patrol::close(child);
        child.asked.clear();
        ladder::happens(child, Event::Listed(Listed::Recovered));
        if child.waits {
            ladder::happens(child, Event::Listed(Listed::Waits));
        }
    }
    for kind in [Kind::Down, Kind::Unanswered, Kind::Misfire] {
        forget(state, kind, id.as_str());
    }
    known
}

fn rate_limited(state: &mut State, text: &str, now: Time) {
    let seconds = match state.rate_limit {
        Some(last) if goes_on(last, now) => last.seconds.saturating_mul(2).min(RATE_LIMIT_MOST),
        Some(_) | None => RATE_LIMIT,
    };
    state.rate_limit = Some(Backoff {
        since: now,
        seconds,
    });
    let told = format!(
        "a rate limit, all restarts wait (reset unknown, next try in {}): {}",
        spoken(Duration::from_secs(seconds)),
        quote(text)
    );
    raise(state, Kind::RateLimit, "all", Level::Warning, &told, now);
}

/// A trouble that comes again before its own length has passed once more goes on.
fn goes_on(last: Backoff, now: Time) -> bool {
    now < last
        .until()
        .plus(Duration::from_secs(last.seconds.saturating_add(60)))
}

/// Tells the end of global back-offs: a restart was accepted since, or nothing
/// of the kind has come again.
pub fn end_backoffs(state: &mut State, now: Time) {
    state.rate_limit = state.rate_limit.filter(|b| goes_on(*b, now));
    state.host_trouble = state.host_trouble.filter(|b| goes_on(*b, now));
    if state.rate_limit.is_none() {
        resolve(state, Kind::RateLimit, "all", "the rate limit is over", now);
    }
    if state.host_trouble.is_none() {
        resolve(
            state,
            Kind::Host,
            "all",
            "the trouble of the machine is over",
            now,
        );
    }
}

fn host_trouble(state: &mut State, text: &str, now: Time) {
    state.host_trouble = Some(Backoff {
        since: now,
        seconds: HOST_TROUBLE,
    });
    let told = format!(
        "the machine is in trouble, all restarts wait: {}",
        quote(text)
    );
    raise(state, Kind::Host, "all", Level::Critical, &told, now);
}

/// Chooses when a declined restart is tried again; seconds.
fn skipped(state: &mut State, id: &SessionId, reason: &str, now: Time) -> u64 {
    if reason.contains("freshness window") {
        return set_skipped(state, id, FRESHNESS, now);
    }
    if reason.contains("cannot fix a credential") {
        let title = state
            .sessions
            .get(id)
            .map(|m| m.title.clone())
            .unwrap_or_default();
        let text = format!("{title} ({id}) is held for a login problem; log in again");
        keep(state, Kind::Auth, id.as_str(), Level::Critical, &text, now);
        return set_skipped(state, id, SKIPPED_MOST, now);
    }
    let last = state
        .sessions
        .get(id)
        .and_then(|m| m.skipped)
        .map_or(0, |b| b.seconds);
    set_skipped(
        state,
        id,
        last.saturating_mul(2).clamp(SKIPPED, SKIPPED_MOST),
        now,
    )
}

fn set_skipped(state: &mut State, id: &SessionId, seconds: u64, now: Time) -> u64 {
    if let Some(memory) = state.sessions.get_mut(id) {
        memory.skipped = Some(Backoff {
            since: now,
            seconds,
        });
    }
    seconds
}

fn attempt_mut<'a>(state: &'a mut State, id: &SessionId) -> Option<&'a mut Attempt> {
    state.sessions.get_mut(id)?.attempt.as_mut()
}

fn set_outcome(state: &mut State, id: &SessionId, outcome: Outcome) {
    if let Some(attempt) = attempt_mut(state, id) {
        attempt.outcome = Some(outcome);
    }
}

/// A limit is no crash: the attempt does not count towards a crash loop.
fn forgive_one(state: &mut State, id: &SessionId) {
    if let Some(memory) = state.sessions.get_mut(id)
        && let Some(attempt) = &memory.attempt
    {
        memory.since_well = attempt.before.since_well;
        memory.crash_loop = attempt.before.crash_loop;
    }
}

fn count_error(state: &mut State, id: &SessionId, text: &str) -> u32 {
    let text = quote(text);
    let Some(memory) = state.sessions.get_mut(id) else {
        return 1;
    };
    let times = match &memory.last_error {
        Some(last) if last.text == text => last.times.saturating_add(1),
        Some(_) | None => 1,
    };
    memory.last_error = Some(LastError { text, times });
    times
}

/// Another program's text, on one line and short.
fn quote(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    cut(&words.join(" "), QUOTE)
}

fn precise(span: Duration) -> String {
    let ms = millis(span);
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod tests;
