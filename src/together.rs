//! Many sessions at once: all dead together is one episode, and many that read
//! dead while their agents live mean that we look from the wrong place
//! (DESIGN 3.2).
//!
//! This file does not know single sessions, and it restarts nobody.

use std::time::Duration;

use crate::clock::Time;
use crate::deck::processes::maybe_alive;
use crate::model::{Level, Profile, Session, SessionId, Sight, Status};
use crate::state::State;
use crate::telling::{Kind, keep, resolve};

/// Deaths within this long of each other are one episode: long enough for a
/// poll and a restart in between.
const TOGETHER: Duration = Duration::from_secs(30);

/// Many at once: one episode, told once (DESIGN 3.2).
pub fn book(
    state: &mut State,
    profile: &Profile,
    rows: &[Session],
    critical: &[&Session],
    sight: &Sight,
    now: Time,
) {
    let counts = |row: &&&Session| !row.archived && row.status != Status::Stopped;
    let watched: Vec<&&Session> = critical.iter().filter(counts).collect();
    let ran = |row: &Session| state.sessions.get(&row.id).is_some_and(|m| m.ran);
    let dead: Vec<&&&Session> = watched
        .iter()
        .filter(|row| row.status == Status::Error && ran(row))
        .collect();
    let mismatched = dead
        .iter()
        .filter(|row| agent_lives(sight, &row.id))
        .count();
    // Died just now, or so lately that a restart has already been tried.
    let lately = |at: Option<Time>| at.is_some_and(|at| now.since(at) < TOGETHER);
    let died = |row: &&&&Session| {
        let memory = state.sessions.get(&row.id).filter(|m| m.ran);
        memory.is_some_and(|m| lately(m.dead_since) || lately(m.attempt.as_ref().map(|a| a.at)))
    };
    let count = watched.iter().filter(died).count();
    let subject = profile.as_str();
    if mismatched >= 2 {
        let text = format!(
            "{mismatched} sessions of profile {profile} read dead while their agents live: the \
             watchdog looks from the wrong place (user, HOME, TMUX_TMPDIR), or the tmux socket \
             was lost (SIGUSR1 makes the tmux server create it again). Nothing is restarted"
        );
        keep(state, Kind::Eyes, subject, Level::Critical, &text, now);
    } else {
        let text = format!("profile {profile} is seen as it is again");
        resolve(state, Kind::Eyes, subject, &text, now);
        if count >= 2 && count == watched.len() {
            let error = |r: &&Session| !r.archived && r.status == Status::Error;
            let total = rows.iter().filter(error).count().max(count);
            let text = format!(
                "{total} sessions of profile {profile} died together, {count} of them critical \
                 (a reboot, or the tmux server ended); these are restarted one by one"
            );
            keep(state, Kind::MassDeath, subject, Level::Critical, &text, now);
        }
    }
    if watched.iter().all(|row| row.status.is_alive()) {
        let text = format!(
            "all {} critical sessions of profile {profile} are back",
            watched.len()
        );
        resolve(state, Kind::MassDeath, subject, &text, now);
    }
}

fn agent_lives(sight: &Sight, id: &SessionId) -> bool {
    match sight {
        Sight::Seen(table) => maybe_alive(table, id, "").is_some(),
        Sight::Blind(_) => false,
    }
}
