//! The rules of the ladder's last rung, and the permit to stop one child.
//!
//! This file does not know whether the child still waits, nor how it is stopped.

use super::*;
use crate::model::Session;
use crate::state::{Child, Intent, Rung};

/// Leave to stop one child once. Only [`stop_permit`] makes one.
#[derive(Debug)]
pub struct StopPermit {
    profile: Profile,
    id: SessionId,
}

impl StopPermit {
    /// Profile of the child.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Full id of the child.
    pub fn id(&self) -> &SessionId {
        &self.id
    }
}

/// Asks all rules about the stop of one child.
pub fn stop_verdict(state: &State, around: &Surroundings, row: &Session, now: Time) -> Verdict {
    let child = state.known_child(&row.id);
    let profile = state.known_profile(&row.profile);
    let step = around.limits.nudge_dedup;
    let what = format!("{} s after it was told", step.as_secs());
    Verdict {
        answers: vec![
            paused(around),
            held(around, &row.id),
            remembered(around),
            busy(state, Some(&row.profile)),
            opted_in(around, &row.id),
            silenced(child),
            handed_over(child, around.limits.max_nudges),
            since(Rule::Step, child.and_then(|c| c.told), step, &what, now),
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

/// Makes a permit when all rules agree: the intent is noted in `state`, which
/// has to be saved before the permit is used.
///
/// # Errors
/// The verdict, when a rule refuses; nothing is taken then.
pub fn stop_permit(
    state: &mut State,
    around: &Surroundings,
    row: &Session,
    now: Time,
) -> Result<StopPermit, Verdict> {
    let verdict = stop_verdict(state, around, row, now);
    if !verdict.agrees() {
        return Err(verdict);
    }
    state.profile(&row.profile).running = Some(Intent {
        id: row.id.clone(),
        sends: false,
        tells: false,
        stops: true,
        since: now,
        process: None,
        reported: false,
    });
    Ok(StopPermit {
        profile: row.profile.clone(),
        id: row.id.clone(),
    })
}

/// `WAITING_PATROL_TERMINATE=1` and the file `autostop/<id>`.
fn opted_in(around: &Surroundings, id: &SessionId) -> Answer {
    let flag = around.flags.autostop.contains(id);
    let setting = around.limits.terminate;
    let word = |set: bool| if set { "set" } else { "not set" };
    Answer {
        rule: Rule::OptIn,
        refuses: !(flag && setting),
        numbers: format!(
            "WAITING_PATROL_TERMINATE {}, autostop file {}",
            word(setting),
            word(flag)
        ),
        lifts: None,
    }
}

/// It was asked as often as it may be, really, and somebody was told.
fn handed_over(child: Option<&Child>, most: u32) -> Answer {
    let least = most.max(1);
    let over = |child: &&Child| child.rung == Rung::HandedOver && child.nudges >= least;
    let told = child.filter(over);
    Answer {
        rule: Rule::Nudges,
        refuses: told.and_then(|child| child.told).is_none(),
        numbers: match told {
            Some(child) if child.told.is_some() => {
                format!("{} nudges, and somebody was told", child.nudges)
            }
            Some(_) => "nobody was told yet".to_owned(),
            None => format!("it was not handed over after {least} nudges"),
        },
        lifts: None,
    }
}

#[cfg(test)]
#[path = "stop_tests.rs"]
mod tests;
