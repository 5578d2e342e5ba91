//! The rules of nudges, and the permit to ask a child once.
//!
//! This file does not know whether its composer is free, nor how it is asked.

use super::*;
use crate::model::Session;
use crate::state::{Child, Intent, Rung};

/// Leave to ask one child once. Only [`nudge_permit`] makes one.
#[derive(Debug)]
pub struct NudgePermit {
    profile: Profile,
    id: SessionId,
}

impl NudgePermit {
    /// Profile of the child.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Full id of the child.
    pub fn id(&self) -> &SessionId {
        &self.id
    }
}

/// What a permit has taken, to give it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    last_nudge: Option<Time>,
    asked: String,
    retry_due: bool,
}

/// Asks all rules about a nudge of one child.
pub fn nudge_verdict(state: &State, around: &Surroundings, row: &Session, now: Time) -> Verdict {
    let child = state.known_child(&row.id);
    let profile = state.known_profile(&row.profile);
    let dedup = around.limits.nudge_dedup;
    let what = format!("{} s between two nudges", dedup.as_secs());
    // Where an older memory was lost everybody has just been asked (DESIGN 3.5).
    let last = child.map_or(state.spent, |c| c.last_nudge);
    Verdict {
        answers: vec![
            paused(around),
            held(around, &row.id),
            remembered(around),
            busy(state, Some(&row.profile)),
            since(Rule::NudgeDedup, last, dedup, &what, now),
            backoff(Rule::Skipped, child.and_then(|c| c.retry), now),
            nudges(child, around.limits.max_nudges),
            silenced(child),
            since(
                Rule::Gap,
                profile.and_then(|p| p.gap),
                AFTER_GAP,
                "60 s after a time in which nobody looked",
                now,
            ),
        ],
    }
}

/// Makes a permit when all rules agree: the nudge is counted and the intent
/// noted in `state`, which has to be saved before the permit is used. `pane` is
/// the digest of the screen that is to change.
///
/// # Errors
/// The verdict, when a rule refuses; nothing is taken then.
pub fn nudge_permit(
    state: &mut State,
    around: &Surroundings,
    row: &Session,
    pane: &str,
    now: Time,
) -> Result<(NudgePermit, Slot), Verdict> {
    let verdict = nudge_verdict(state, around, row, now);
    if !verdict.agrees() {
        return Err(verdict);
    }
    let child = state.child(row);
    let slot = Slot {
        last_nudge: child.last_nudge,
        asked: std::mem::replace(&mut child.asked, pane.to_owned()),
        retry_due: std::mem::take(&mut child.retry_due),
    };
    child.nudges = child.nudges.saturating_add(1);
    child.last_nudge = Some(now);
    state.profile(&row.profile).running = Some(Intent {
        id: row.id.clone(),
        sends: true,
        tells: false,
        stops: false,
        since: now,
        process: None,
        reported: false,
    });
    let permit = NudgePermit {
        profile: row.profile.clone(),
        id: row.id.clone(),
    };
    Ok((permit, slot))
}

/// The permitted message is on its way: the dedup time counts from here.
pub fn nudge_begun(state: &mut State, row: &Session, now: Time) {
    state.child(row).last_nudge = Some(now);
}

/// Gives a nudge back: nothing was typed.
pub fn return_nudge(state: &mut State, row: &Session, slot: Slot) {
    let child = state.child(row);
    child.nudges = child.nudges.saturating_sub(1);
    child.last_nudge = slot.last_nudge;
    child.asked = slot.asked;
    child.retry_due = slot.retry_due;
}

fn nudges(child: Option<&Child>, most: u32) -> Answer {
    let count = child.map_or(0, |child| child.nudges);
    // The one question more that triage has asked for (ladder T12).
    let retry = child.is_some_and(|child| child.retry_due && child.rung == Rung::Triage);
    let numbers = match most {
        0 => format!("{count} nudges in this episode, without a limit"),
        most if retry => format!("{count} of {most} nudges in this episode, and triage says retry"),
        most => format!("{count} of {most} nudges in this episode"),
    };
    Answer {
        rule: Rule::Nudges,
        refuses: most > 0 && count >= most && !retry,
        numbers,
        lifts: None,
    }
}

#[cfg(test)]
mod tests {
    use super::fixtures::{NOW, around, at, row};
    use super::*;

    fn refusals(state: &State, flags: &Flags, now: Time) -> Vec<Rule> {
        let verdict = nudge_verdict(state, &around(flags), &row(), now);
        verdict.refusals().map(|answer| answer.rule).collect()
    }

    #[test]
    fn a_permit_takes_its_slot_and_a_returned_one_gives_it_back() {
        let (mut state, flags) = (State::default(), Flags::default());
        state.child(&row()).asked = "before".to_owned();
        let before = state.clone();
        let (permit, slot) = nudge_permit(&mut state, &around(&flags), &row(), "x", at(0)).unwrap();
        assert_eq!(permit.id(), &row().id);
        assert_eq!(state.child(&row()).nudges, 1);
        assert!(nudge_permit(&mut state, &around(&flags), &row(), "x", at(9000)).is_err());
        state.profile(&row().profile).running = None;
        assert_eq!(refusals(&state, &flags, at(3599)), [Rule::NudgeDedup]);
        assert_eq!(refusals(&state, &flags, at(3600)), []);
        return_nudge(&mut state, &row(), slot);
        state.profiles.clear();
        assert_eq!(state, before);
    }

    /// T12: one question beyond the limit, on no other rung, and no second one.
    #[test]
    fn triage_may_have_it_asked_once_more() {
        let flags = Flags::default();
        let mut state = State::default();
        let child = state.child(&row());
        (child.nudges, child.retry_due) = (3, true);
        for rung in Rung::ALL {
            state.child(&row()).rung = *rung;
            let refused: &[Rule] = match rung {
                Rung::Triage => &[],
                _ => &[Rule::Nudges],
            };
            assert_eq!(refusals(&state, &flags, at(0)), refused, "{rung:?}");
        }
        state.child(&row()).rung = Rung::Triage;
        state.child(&row()).last_nudge = Some(at(0));
        assert_eq!(refusals(&state, &flags, at(3599)), [Rule::NudgeDedup]);
        let before = state.clone();
        let around = around(&flags);
        let (_, slot) = nudge_permit(&mut state, &around, &row(), "x", at(3600)).unwrap();
        state.profiles.clear();
        assert!(!state.child(&row()).retry_due);
        assert_eq!(refusals(&state, &flags, at(9000)), [Rule::Nudges]);
        return_nudge(&mut state, &row(), slot);
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
        assert_eq!(refusals(&state, &paused, at(0)), [Rule::Paused]);
        assert_eq!(refusals(&state, &held, at(0)), [Rule::Held]);
        let with = |change: &dyn Fn(&mut State)| {
            let mut state = State::default();
            change(&mut state);
            state
        };
        let third = with(&|s| s.child(&row()).nudges = 3);
        assert_eq!(refusals(&third, &flags, at(0)), [Rule::Nudges]);
        let silent = with(&|s| s.child(&row()).silent = "x".to_owned());
        assert_eq!(refusals(&silent, &flags, at(0)), [Rule::Silenced]);
        let gap = with(&|s| s.profile(&row().profile).gap = Some(at(0)));
        assert_eq!(refusals(&gap, &flags, at(59)), [Rule::Gap]);
        assert_eq!(refusals(&gap, &flags, at(60)), []);
        let refused = with(&|s| {
            s.child(&row()).retry = Some(Backoff {
                since: at(0),
                seconds: 300,
            });
        });
        assert_eq!(refusals(&refused, &flags, at(299)), [Rule::Skipped]);
        // A memory that was lost: everybody has just been asked.
        let spent = State::spent(at(0));
        assert_eq!(refusals(&spent, &flags, at(3599)), [Rule::NudgeDedup]);
    }
}
