//! Capability 2: has an owner of a Telegram bot lost its poller (DESIGN 3.3)?
//!
//! This file does not know budgets (`guard`), nor how processes are looked at.

use std::path::PathBuf;
use std::time::Duration;

use super::restart::{YOUNG, last_birth, locked, others};
use crate::clock::{Time, spoken};
use crate::model::{
    AgentSays, Declared, Pollers, Process, Screen, Session, Shown, Sight, Silence, Status,
    Substate, Telegram, Traces,
};
use crate::state::Owner;

/// Between two looks that have to agree, and between any two (DESIGN 3.3).
pub const LOOKS_APART: Duration = Duration::from_secs(30);
/// An owner that does not come to rest so long is told instead (DESIGN 3.3).
pub const REST_PATIENCE: Duration = Duration::from_secs(1800);
/// Absences within this window are counted (scenario flapping-poller: 30 min).
const FLAPPING_WINDOW: Duration = Duration::from_secs(1800);
/// As many of them are told: two may be two restarts by hand.
const FLAPPING: usize = 3;
/// A poller without a connection so long is suspected (DESIGN 3.3: 10 min).
const UNCONNECTED: Duration = Duration::from_secs(600);

/// Whether a row may own a bot, as far as a list and its agent's environment
/// say. Whoever is no conductor owns one through its channels only.
pub fn may_own(row: &Session, agent: Option<&Process>) -> bool {
    let alive = row.status.is_alive() && !row.archived && !row.is_ssh;
    let declares = agent.is_none_or(|agent| agent.telegram.is_some() || agent.opaque);
    alive && (row.telegram.is_some() || (is_conductor(row) && declares))
}

/// Whether it owns one, now that its configuration is known.
pub fn owns(row: &Session, telegram: &Telegram) -> bool {
    let declared = match (&telegram.environment, &telegram.declared) {
        (Some(environment), _) => environment.is_some(),
        (None, Declared::Folder(_)) => true,
        (None, Declared::Nothing | Declared::Unknown(_)) => false,
    };
    row.telegram.is_some() || (is_conductor(row) && declared)
}

/// agent-deck knows conductors by their titles (contract 8.2).
fn is_conductor(row: &Session) -> bool {
    row.title.starts_with("conductor-")
}

/// The folder that its poller has to have.
///
/// # Errors
/// Why it cannot be said with certainty.
pub fn expected(telegram: &Telegram) -> Result<PathBuf, String> {
    match (&telegram.declared, &telegram.environment) {
        (Declared::Unknown(why), _) => Err(why.clone()),
        (Declared::Folder(declared), Some(Some(set))) if declared != set => Err(format!(
            "the configuration says {}, and its agent was started with {}",
            declared.display(),
            set.display()
        )),
        (Declared::Folder(declared), Some(None)) => Err(format!(
            "the configuration says {}, and its agent was started without TELEGRAM_STATE_DIR",
            declared.display()
        )),
        (Declared::Folder(folder), _) | (Declared::Nothing, Some(Some(folder))) => {
            Ok(folder.clone())
        }
        (Declared::Nothing, Some(None) | None) => Ok(telegram.default.clone()),
    }
}

/// What a look at the pollers showed for one owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Its own pollers.
    pub own: Vec<u32>,
    /// Pollers of its folder that are not below its agent.
    pub orphans: Vec<u32>,
    /// One of its own has an established connection, or that cannot be seen.
    pub connected: bool,
}

/// Which pollers fit an owner. `panes` are the processes in its terminals, its
/// agent among them; where none is seen the benefit of the doubt holds.
pub fn seen(pollers: &Pollers, telegram: &Telegram, folder: &PathBuf, panes: &[u32]) -> Seen {
    let mut seen = Seen::default();
    for poller in &pollers.all {
        if poller.folder.as_ref().unwrap_or(&telegram.default) != folder {
            continue;
        }
        let below = |pid: &u32| poller.ancestors.contains(pid);
        if panes.is_empty() || panes.iter().any(below) {
            seen.own.push(poller.pid);
            seen.connected |= poller.connected != Some(false);
        } else {
            seen.orphans.push(poller.pid);
        }
    }
    seen
}

/// What a look means for an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has a poller.
    Hears,
    /// It has none; it is looked at once more before that counts.
    Missing,
    /// It has none, in two looks.
    Deaf,
}

/// Whether it began to live less than a minute ago: its poller may be starting.
pub fn is_young(row: &Session, agent: Option<&Process>, traces: &Traces, now: Time) -> bool {
    let started = agent.map(|agent| agent.started);
    let birth = last_birth(row, traces, started, now, now);
    birth.is_some_and(|(at, _)| now.since(at) < YOUNG)
}

/// Books a look.
pub fn book(owner: &mut Owner, seen: &Seen, network: bool, now: Time) -> Verdict {
    owner.absences.retain(|at| now.since(*at) < FLAPPING_WINDOW);
    if seen.own.is_empty() {
        owner.unconnected_since = None;
        if std::mem::take(&mut owner.heard) {
            owner.absences.push(now);
        }
        let since = *owner.missing_since.get_or_insert(now);
        if now.since(since) < LOOKS_APART {
            return Verdict::Missing;
        }
        owner.deaf_since.get_or_insert(now);
        return Verdict::Deaf;
    }
    owner.missing_since = None;
    owner.deaf_since = None;
    owner.heard = true;
    owner.fruitless = 0;
    let silent = network && !seen.connected;
    owner.unconnected_since = silent.then(|| owner.unconnected_since.unwrap_or(now));
    Verdict::Hears
}

/// Nothing is known of its poller at present: looks before and after do not
/// agree on anything.
pub fn unknown(owner: &mut Owner) {
    owner.missing_since = None;
    owner.deaf_since = None;
    owner.unconnected_since = None;
}

/// How often its poller went missing of late, when that is worth telling.
pub fn flapping(owner: &Owner) -> Option<usize> {
    let times = owner.absences.len();
    (times >= FLAPPING).then_some(times)
}

/// Its poller seems to hear nothing, since.
pub fn suspected(owner: &Owner, now: Time) -> Option<Time> {
    owner
        .unconnected_since
        .filter(|since| now.since(*since) >= UNCONNECTED)
}

/// Why a deaf owner may not be ended now: it is not at rest, or somebody else
/// is at it. `None`: it is at rest.
pub fn unrest(
    shown: &Shown,
    screen: &Screen,
    agent: Option<&Process>,
    says: Option<AgentSays>,
) -> Option<String> {
    let rests = matches!(shown.status, Status::Waiting | Status::Idle);
    if !rests {
        return Some(format!("it is listed as {}", shown.status.word()));
    }
    if shown.auth_hold || shown.substate == Some(Substate::Auth401) {
        return Some("it is held for a login problem".to_owned());
    }
    if screen.decision {
        return Some("a decision is asked for on its screen".to_owned());
    }
    // A proposal of the agent is nobody's draft, and comes again.
    if let Some(silence) = screen.claude.filter(|s| *s != Silence::Suggestion) {
        return Some(format!("its composer is not free: {}", silence.word()));
    }
    if screen.background {
        return Some("something runs in its background".to_owned());
    }
    if agent.is_some_and(|agent| agent.suspended) {
        return Some("its agent is suspended".to_owned());
    }
    match says {
        None | Some(AgentSays::Idle) => None,
        Some(says) => Some(format!("its agent says of itself: {}", says.word())),
    }
}

/// Other programs are at it.
pub fn disturbed(
    row: &Session,
    traces: &Traces,
    sight: &Sight,
    own: &[u32],
    now: Time,
) -> Option<String> {
    let others = match sight {
        Sight::Seen(table) => others(row, own, table, now),
        Sight::Blind(_) => None,
    };
    locked(traces, now)
        .or(others)
        .map(|refusal| refusal.sentence)
}

/// The evidence for a restart, in words.
pub fn evidence(owner: &Owner, folder: &std::path::Path, now: Time) -> String {
    let since = owner.missing_since.unwrap_or(now);
    format!(
        "nobody polls Telegram for {}: no bun process of its own in two looks, for {}",
        folder.display(),
        spoken(now.since(since))
    )
}

#[cfg(test)]
#[path = "poller_tests.rs"]
mod tests;
