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
/// noted in `state`, which has to be saved before the permit is used. With it
/// comes what [`return_notice`] wants to have: the message before this one.
///
/// # Errors
/// The verdict, when a rule refuses; nothing is taken then.
pub fn notice_permit(
    state: &mut State,
    around: &Surroundings,
    row: &Session,
    now: Time,
) -> Result<(NoticePermit, Option<Time>), Verdict> {
    let verdict = notice_verdict(state, around, row, now);
    if !verdict.agrees() {
        return Err(verdict);
    }
    let before = state.known_parent(&row.id).and_then(|p| p.last_told);
    notice_begun(state, row, now);
    state.profile(&row.profile).running = Some(Intent {
        id: row.id.clone(),
        sends: true,
        tells: true,
        stops: false,
        since: now,
        process: None,
        reported: false,
    });
    let permit = NoticePermit {
        profile: row.profile.clone(),
        id: row.id.clone(),
    };
    Ok((permit, before))
}

/// The permitted message is on its way: the interval counts from here.
pub fn notice_begun(state: &mut State, row: &Session, now: Time) {
    let parent = state.parent(&row.profile, &row.id, &row.title);
    parent.last_told = Some(now);
}

/// Gives a message back: nothing was typed. `before` is the one before it.
pub fn return_notice(state: &mut State, row: &Session, before: Option<Time>) {
    state.profile(&row.profile).running = None;
    if let Some(parent) = state.known_parent_mut(&row.id) {
        parent.last_told = before;
    }
}

#[cfg(test)]
mod tests {
    use super::fixtures::{NOW, around, at, row};
    use super::*;

    fn refusals(state: &State, flags: &Flags, now: Time) -> Vec<Rule> {
        let verdict = notice_verdict(state, &around(flags), &row(), now);
        verdict.refusals().map(|answer| answer.rule).collect()
    }

    #[test]
    fn a_permit_takes_its_slot_and_a_returned_one_gives_it_back() {
        let (mut state, flags) = (State::default(), Flags::default());
        state.parent(&row().profile, &row().id, "ops").last_told = Some(at(0));
        state.profile(&row().profile);
        let before = state.clone();
        assert_eq!(refusals(&state, &flags, at(299)), [Rule::NoticeInterval]);
        let around = around(&flags);
        assert!(notice_permit(&mut state, &around, &row(), at(299)).is_err());
        assert_eq!(state, before);
        let (permit, last) = notice_permit(&mut state, &around, &row(), at(300)).unwrap();
        assert_eq!((permit.id(), permit.profile()), (&row().id, &row().profile));
        let running = state.profile(&row().profile).running.clone().unwrap();
        assert_eq!(
            (running.sends, running.tells, running.stops),
            (true, true, false)
        );
        let both = [Rule::Busy, Rule::NoticeInterval];
        assert_eq!(refusals(&state, &flags, at(599)), both);
        assert_eq!(refusals(&state, &flags, at(600)), [Rule::Busy]);
        return_notice(&mut state, &row(), last);
        assert_eq!(state, before);
    }

    #[test]
    fn each_rule_refuses_by_itself() {
        let flags = Flags::default();
        let paused = Flags {
            pause: Some(crate::model::Pause {
                since: NOW,
                until: None,
            }),
            ..Flags::default()
        };
        let held = Flags {
            hold: vec![(row().id, None)],
            ..Flags::default()
        };
        let state = State::default();
        assert_eq!(refusals(&state, &flags, at(0)), []);
        assert_eq!(refusals(&state, &paused, at(0)), [Rule::Paused]);
        assert_eq!(refusals(&state, &held, at(0)), [Rule::Held]);
        let mut around = around(&flags);
        around.remembered = false;
        let unsaved = notice_verdict(&state, &around, &row(), at(0));
        let unsaved: Vec<Rule> = unsaved.refusals().map(|answer| answer.rule).collect();
        assert_eq!(unsaved, [Rule::Memory]);
        // A memory that was lost: everybody has just been written to.
        let spent = State::spent(at(0));
        assert_eq!(refusals(&spent, &flags, at(299)), [Rule::NoticeInterval]);
        assert_eq!(refusals(&spent, &flags, at(300)), []);
    }
}
