//! The rules of messages to a parent, and the permit for one.
//!
//! This file does not know what the message says, nor whether the parent's
//! composer is free.

use super::*;
use crate::model::Session;
use crate::state::Intent;

/// Between two messages to one parent; what is queued meanwhile is merged
/// (ladder 1.2: 300 s).
pub const NOTICE_INTERVAL: Duration = Duration::from_secs(300);

/// Leave to write to one parent once. Only [`notice_permit`] makes one.
#[derive(Debug)]
pub struct NoticePermit {
    profile: Profile,
    id: SessionId,
}

impl NoticePermit {
    /// Profile of the parent.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Full id of the parent.
    pub fn id(&self) -> &SessionId {
        &self.id
    }
}

/// Asks all rules about a message to one parent.
pub fn notice_verdict(state: &State, around: &Surroundings, row: &Session, now: Time) -> Verdict {
    // Where an older memory was lost everybody has just been written to (DESIGN 3.5).
    let known = state.known_parent(&row.id);
    let last = known.and_then(|parent| parent.last_told).max(state.spent);
    Verdict {
        answers: vec![
            paused(around),
            held(around, &row.id),
            remembered(around),
            busy(state, Some(&row.profile)),
            since(
                Rule::NoticeInterval,
                last,
                NOTICE_INTERVAL,
                "300 s between two messages to one parent",
                now,
            ),
        ],
    }
}

/// Makes a permit when all rules agree: the message is booked and the intent
/// noted in `state`, which has to be saved before the permit is used.
///
/// # Errors
/// The verdict, when a rule refuses; nothing is taken then.
pub fn notice_permit(
    state: &mut State,
    around: &Surroundings,
    row: &Session,
    now: Time,
) -> Result<NoticePermit, Verdict> {
    let verdict = notice_verdict(state, around, row, now);
    if !verdict.agrees() {
        return Err(verdict);
    }
    notice_begun(state, row, now);
    state.profile(&row.profile).running = Some(Intent {
        id: row.id.clone(),
        sends: true,
        stops: false,
        since: now,
        process: None,
        reported: false,
    });
    Ok(NoticePermit {
        profile: row.profile.clone(),
        id: row.id.clone(),
    })
}

/// The permitted message is on its way: the interval counts from here.
pub fn notice_begun(state: &mut State, row: &Session, now: Time) {
    let parent = state.parent(&row.profile, &row.id, &row.title);
    parent.last_told = Some(now);
}
