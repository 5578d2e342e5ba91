//! The rules of restarts, and the permit to restart once.
//!
//! This file does not know whether a session is dead or deaf, nor how it is
//! restarted.

use super::*;
use crate::state::{Attempt, Before, Intent, Memory};

/// Leave to restart one session once. Only [`permit`] makes one.
#[derive(Debug)]
pub struct Permit {
    profile: Profile,
    id: SessionId,
}

impl Permit {
    /// Profile of the session.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Full id of the session.
    pub fn id(&self) -> &SessionId {
        &self.id
    }
}

/// What a restart is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The session is dead.
    Dead,
    /// It lives, and its Telegram poller is gone.
    Deaf,
}

/// Asks all rules about a restart of one session.
pub fn verdict(
    state: &State,
    around: &Surroundings,
    id: &SessionId,
    purpose: Purpose,
    now: Time,
) -> Verdict {
    let memory = state.sessions.get(id);
    let dedup = match purpose {
        Purpose::Dead => None,
        Purpose::Deaf => Some(poller_dedup(state, around, id, now)),
    };
    let mut verdict = Verdict {
        answers: vec![
            paused(around),
            held(around, id),
            remembered(around),
            busy(state, memory.map(|m| &m.profile)),
            burst(memory, now),
            spacing(state, around, now),
            cool_down(memory, now),
            backoff(Rule::RateLimit, state.rate_limit, now),
            backoff(Rule::HostTrouble, state.host_trouble, now),
            backoff(Rule::CrashLoop, memory.and_then(|m| m.crash_loop), now),
            backoff(Rule::Skipped, memory.and_then(|m| m.skipped), now),
            usage_limit(memory, now),
        ],
    };
    verdict.answers.extend(dedup);
    verdict
}

/// Makes a permit when all rules agree: the slot is taken and the intent noted
/// in `state`, which has to be saved before the permit is used.
///
/// # Errors
/// The verdict, when a rule refuses; nothing is taken then.
pub fn permit(
    state: &mut State,
    around: &Surroundings,
    id: &SessionId,
    purpose: Purpose,
    evidence: &str,
    now: Time,
) -> Result<Permit, Verdict> {
    let verdict = verdict(state, around, id, purpose, now);
    let last_restart = state.last_restart;
    let for_poller = state.known_owner(id).and_then(|owner| owner.restarted);
    let Some(memory) = state.sessions.get_mut(id).filter(|_| verdict.agrees()) else {
        return Err(verdict);
    };
    let before = Before {
        since_well: memory.since_well,
        crash_loop: memory.crash_loop,
        last_restart,
        for_poller,
    };
    memory.attempt = Some(Attempt {
        at: now,
        for_poller: purpose == Purpose::Deaf,
        evidence: evidence.to_owned(),
        answered: None,
        outcome: None,
        before,
    });
    memory.restarts.retain(|at| now.since(*at) < BURST_WINDOW);
    memory.restarts.push(now);
    memory.well_since = None;
    // Somebody has started it since, or nothing would be restarted: what stamps
    // say of that may be forgotten or step with the clock.
    memory.stopped_since = None;
    memory.since_well = memory.since_well.saturating_add(1);
    if memory.since_well >= CRASH_LOOP {
        memory.crash_loop = Some(crash_loop(memory.since_well, now));
    }
    let profile = memory.profile.clone();
    state.last_restart = Some(now);
    if let Some(owner) = state.known_owner(id) {
        owner.pending = Some(now);
        if purpose == Purpose::Deaf {
            owner.restarted = Some(now);
            owner.fruitless = owner.fruitless.saturating_add(1);
            owner.deaf_since = None;
        }
    }
    let intent = Intent {
        id: id.clone(),
        sends: false,
        tells: false,
        stops: false,
        since: now,
        process: None,
        reported: false,
    };
    state.profile(&profile).running = Some(intent);
    Ok(Permit {
        profile,
        id: id.clone(),
    })
}

/// The permitted command has begun: the budget counts from here, so that two
/// commands are never closer than the rules say.
pub fn begun(state: &mut State, id: &SessionId, now: Time) {
    let Some(memory) = state.sessions.get_mut(id) else {
        return;
    };
    let Some(attempt) = memory.attempt.as_mut() else {
        return;
    };
    if memory.restarts.last() == Some(&attempt.at) {
        memory.restarts.pop();
        memory.restarts.push(now);
    }
    if let Some(backoff) = memory.crash_loop.as_mut().filter(|b| b.since == attempt.at) {
        backoff.since = now;
    }
    if state.last_restart == Some(attempt.at) {
        state.last_restart = Some(now);
    }
    attempt.at = now;
    if attempt.for_poller
        && let Some(owner) = state.known_owner(id)
    {
        owner.restarted = Some(now);
        owner.pending = Some(now);
    }
}

/// Gives the slot of the last attempt back: what was permitted did not happen.
pub fn give_back(state: &mut State, id: &SessionId) {
    let Some(memory) = state.sessions.get_mut(id) else {
        return;
    };
    let Some(attempt) = memory.attempt.take() else {
        return;
    };
    if memory.restarts.last() == Some(&attempt.at) {
        memory.restarts.pop();
    }
    memory.since_well = attempt.before.since_well;
    memory.crash_loop = attempt.before.crash_loop;
    if state.last_restart == Some(attempt.at) {
        state.last_restart = attempt.before.last_restart;
    }
    if let Some(owner) = state.known_owner(id) {
        owner.pending = None;
        if attempt.for_poller {
            owner.restarted = attempt.before.for_poller;
            owner.fruitless = owner.fruitless.saturating_sub(1);
        }
    }
}

/// The back-off after the `count`th restart since the session was last well.
pub fn crash_loop(count: u32, now: Time) -> Backoff {
    let step = usize::try_from(count.saturating_sub(CRASH_LOOP)).unwrap_or(usize::MAX);
    let last = CRASH_LOOP_MINUTES[CRASH_LOOP_MINUTES.len() - 1];
    let minutes = CRASH_LOOP_MINUTES.get(step).copied().unwrap_or(last);
    Backoff {
        since: now,
        seconds: minutes * 60,
    }
}

fn burst(memory: Option<&Memory>, now: Time) -> Answer {
    let stamps = memory.map_or(&[][..], |m| &m.restarts);
    let counted: Vec<Time> = stamps
        .iter()
        .copied()
        .filter(|at| now.since(*at) < BURST_WINDOW)
        .collect();
    let refuses = counted.len() >= BURST;
    let frees = counted
        .len()
        .checked_sub(BURST)
        .and_then(|at| counted.get(at));
    Answer {
        rule: Rule::Burst,
        refuses,
        numbers: format!(
            "{} of {BURST} restarts in {} s",
            counted.len(),
            BURST_WINDOW.as_secs()
        ),
        lifts: frees.map(|at| at.plus(BURST_WINDOW)),
    }
}

fn spacing(state: &State, around: &Surroundings, now: Time) -> Answer {
    let spacing = around.limits.spacing;
    let what = format!("{} s between any two restarts", spacing.as_secs());
    since(Rule::Spacing, state.last_restart, spacing, &what, now)
}

fn cool_down(memory: Option<&Memory>, now: Time) -> Answer {
    let what = format!("{} s after a restart of this session", COOL_DOWN.as_secs());
    since(
        Rule::CoolDown,
        memory.and_then(Memory::last_restart),
        COOL_DOWN,
        &what,
        now,
    )
}

fn usage_limit(memory: Option<&Memory>, now: Time) -> Answer {
    let seen = memory.and_then(|m| m.usage_limit);
    let what = match seen {
        None => "no usage limit on its screen",
        Some(_) => "usage limit on its screen, reset unknown",
    };
    since(Rule::UsageLimit, seen, USAGE_LIMIT, what, now)
}

/// Once per dedup time, which doubles while it does not help, up to a day.
fn poller_dedup(state: &State, around: &Surroundings, id: &SessionId, now: Time) -> Answer {
    let owner = state.owners.iter().find(|owner| owner.id == *id);
    let dedup = around.limits.poller_dedup.as_secs();
    let doublings = owner.map_or(0, |o| o.fruitless.saturating_sub(1)).min(20);
    let distance = dedup
        .saturating_mul(1 << doublings)
        .min(POLLER_MOST.max(dedup));
    let what = format!("{distance} s between two restarts for its poller");
    let last = owner.and_then(|o| o.restarted);
    since(
        Rule::PollerDedup,
        last,
        Duration::from_secs(distance),
        &what,
        now,
    )
}

#[cfg(test)]
mod tests {
    use super::fixtures::{around, at, row};
    use super::*;

    fn ask(state: &mut State, dedup: u64, now: Time) -> Result<Permit, Vec<Rule>> {
        let flags = Flags::default();
        let mut around = around(&flags);
        around.limits.poller_dedup = Duration::from_secs(dedup);
        let rules = |verdict: Verdict| verdict.refusals().map(|a| a.rule).collect();
        permit(state, &around, &row().id, Purpose::Deaf, "deaf", now).map_err(rules)
    }

    /// A session that owns a bot.
    fn known() -> State {
        let mut state = State::default();
        state.memory(&row().profile, &row().id, "x");
        state.owner(&row());
        state
    }

    /// Restarts it for its poller as soon as the guard agrees, and says when.
    fn restarts(dedup: u64, until: u64, heals: u64) -> Vec<u64> {
        let mut state = known();
        let mut begun = Vec::new();
        for second in (0..until).step_by(10) {
            let healed = begun.len() as u64 == heals;
            if healed {
                state.owner(&row()).fruitless = 0;
            }
            // It is well in between.
            let memory = state.memory(&row().profile, &row().id, "x");
            (memory.since_well, memory.crash_loop) = (0, None);
            if ask(&mut state, dedup, at(second)).is_ok() {
                state.profile(&row().profile).running = None;
                begun.push(second);
            }
        }
        begun
    }

    #[test]
    fn distances_for_a_poller_double_while_it_does_not_help_up_to_a_day() {
        let day = 86_400;
        let first = [0, 3600, 3 * 3600, 7 * 3600, 15 * 3600, 31 * 3600];
        let then: Vec<u64> = first.into_iter().chain([31 * 3600 + day]).collect();
        assert_eq!(restarts(3600, 31 * 3600 + day + 10, 99), then);
        // A poller that was seen again begins anew, and the first distance stays.
        assert_eq!(restarts(3600, 5 * 3600, 2), [0, 3600, 7200, 10_800]);
        // A dedup time above a day is obeyed as it is.
        assert_eq!(restarts(2 * day, 5 * day, 99), [0, 2 * day, 4 * day]);
    }

    #[test]
    fn a_restart_that_did_not_happen_gives_its_slot_back() {
        let mut state = known();
        assert!(ask(&mut state, 3600, at(0)).is_ok());
        assert_eq!(state.owner(&row()).pending, Some(at(0)));
        give_back(&mut state, &row().id);
        let owner = state.owner(&row()).clone();
        assert_eq!(
            (owner.restarted, owner.fruitless, owner.pending),
            (None, 0, None)
        );
    }

    #[test]
    fn it_goes_through_the_rules_of_all_restarts() {
        let mut state = known();
        state.last_restart = Some(at(0));
        assert_eq!(ask(&mut state, 3600, at(59)).unwrap_err(), [Rule::Spacing]);
        state.memory(&row().profile, &row().id, "x").restarts = vec![at(0); 3];
        let rules = ask(&mut state, 3600, at(299)).unwrap_err();
        assert_eq!(rules, [Rule::Burst]);
        state.owner(&row()).restarted = Some(at(0));
        let rules = ask(&mut state, 3600, at(300)).unwrap_err();
        assert_eq!(rules, [Rule::PollerDedup]);
        // A death knows nothing of it.
        let flags = Flags::default();
        let around = Surroundings {
            flags: &flags,
            limits: Limits::default(),
            remembered: true,
        };
        assert!(verdict(&state, &around, &row().id, Purpose::Dead, at(300)).agrees());
    }
}
