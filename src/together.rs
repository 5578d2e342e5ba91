//! Many sessions at once: all dead together is one episode, and many that read
//! dead while their agents live mean that we look from the wrong place
//! (DESIGN 3.2).
//!
//! This file does not know single sessions, and it restarts nobody.

use std::time::Duration;

use crate::capabilities::eyes::wrong_place;
use crate::clock::Time;
use crate::model::{Level, Profile, Session, Sight, Status};
use crate::state::{Memory, State};
use crate::telling::{Kind, is_open, keep, resolve};

/// Deaths within this long of each other are one episode: long enough for a
/// poll and a restart in between.
const TOGETHER: Duration = Duration::from_secs(30);
/// An ending agent may linger this long (DESIGN 3.2).
pub const LINGER: Duration = Duration::from_secs(10);

/// Many at once: one episode, told once (DESIGN 3.2).
pub fn book(
    state: &mut State,
    profile: &Profile,
    rows: &[Session],
    critical: &[&Session],
    sight: &Sight,
    now: Time,
) {
    let ran = |row: &Session| state.sessions.get(&row.id).filter(|m| m.ran);
    let watched: Vec<&&Session> = critical
        .iter()
        .filter(|row| !row.archived && row.status != Status::Stopped && ran(row).is_some())
        .collect();
    // Died just now, or so lately that a restart has already been tried.
    let lately = |at: Option<Time>| at.is_some_and(|at| now.since(at) < TOGETHER);
    let died = |row: &Session| {
        let tried = |m: &Memory| lately(m.attempt.as_ref().map(|a| a.at));
        ran(row).is_some_and(|m| lately(m.dead_since) || tried(m))
    };
    let count = watched.iter().filter(|row| died(row)).count();
    let alive = watched
        .iter()
        .filter(|row| row.status.is_alive() && !died(row))
        .count();
    let subject = profile.as_str();
    let wrong = seen_wrongly(state, profile, rows, sight, now);
    if !wrong && count >= 2 && alive == 0 {
        let error = |r: &&Session| !r.archived && r.status == Status::Error;
        let total = rows.iter().filter(error).count().max(count);
        let text = format!(
            "{total} sessions of profile {profile} died together, {count} of them critical \
                 (a reboot, or the tmux server ended); these are restarted one by one"
        );
        keep(state, Kind::MassDeath, subject, Level::Critical, &text, now);
    }
    // One that has an episode of its own is spoken of there.
    let own = |row: &Session| {
        let kinds = [Kind::Down, Kind::Auth, Kind::Mismatch];
        kinds
            .iter()
            .any(|kind| is_open(state, *kind, row.id.as_str()))
    };
    let back = watched.iter().filter(|row| row.status.is_alive()).count();
    if watched.iter().all(|row| row.status.is_alive() || own(row)) {
        let all = watched.len();
        let text = format!("{back} of {all} critical sessions of profile {profile} are back");
        resolve(state, Kind::MassDeath, subject, &text, now);
    }
}

/// Whether the profile is seen from the wrong place; told when that lasts, since
/// agents that are ending may linger (DESIGN 3.2).
fn seen_wrongly(
    state: &mut State,
    profile: &Profile,
    rows: &[Session],
    sight: &Sight,
    now: Time,
) -> bool {
    let wrong = wrong_place(rows, now, sight);
    let memory = state.profile(profile);
    memory.wrong_since = wrong.as_ref().map(|_| memory.wrong_since.unwrap_or(now));
    let since = memory.wrong_since;
    match (&wrong, since) {
        (Some(why), Some(since)) if now.since(since) >= LINGER => {
            let text = format!("profile {profile}: {why}. Nothing is restarted");
            keep(
                state,
                Kind::Eyes,
                profile.as_str(),
                Level::Critical,
                &text,
                now,
            );
        }
        (Some(_), _) => {}
        (None, _) => {
            let text = format!("profile {profile} is seen as it is again");
            resolve(state, Kind::Eyes, profile.as_str(), &text, now);
        }
    }
    wrong.is_some()
}
