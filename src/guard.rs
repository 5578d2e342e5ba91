//! Every guardrail, and the only maker of permits.
//!
//! A [`Verdict`] is the answer of all rules with their numbers; the logs and
//! the dry run print that same value. A [`Permit`] cannot be made elsewhere,
//! cannot be copied, and has been paid for when it exists: making it takes the
//! slot from the budget and writes the intent into the state.
//!
//! This file does not know whether a session is dead, nor how it is restarted.

use std::time::Duration;

use crate::clock::{Time, spoken};
use crate::model::{Flags, Profile, SessionId};
use crate::state::{Attempt, Backoff, Before, Intent, Memory, State};

/// Restarts of one session in one window (the manual: 3 in 300 s).
pub const BURST: usize = 3;
/// That window, sliding (the manual).
pub const BURST_WINDOW: Duration = Duration::from_secs(300);
/// After a restart the session is left to itself this long (the manual: 60 s).
pub const COOL_DOWN: Duration = Duration::from_secs(60);
/// The restart since a session was last well that makes it a crash loop (DESIGN 3.2).
pub const CRASH_LOOP: u32 = 3;
/// Distances of the tries in a crash loop in minutes; the last one stays (DESIGN 3.2).
const CRASH_LOOP_MINUTES: [u64; 5] = [5, 10, 20, 40, 60];
/// A usage limit seen on a screen counts this long at most (contract 6.5).
pub const USAGE_LIMIT: Duration = Duration::from_secs(5 * 3600);

/// One guardrail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The `pause` file.
    Paused,
    /// The `hold/<id>` file.
    Held,
    /// Budgets that cannot be written down would be forgotten.
    Memory,
    /// A command that changes this profile still runs.
    Busy,
    /// 3 restarts in 300 s.
    Burst,
    /// 60 s between any two restarts.
    Spacing,
    /// 60 s after a restart of this session.
    CoolDown,
    /// Global back-off after a rate limit.
    RateLimit,
    /// Global back-off after trouble of the machine.
    HostTrouble,
    /// Growing distances in a crash loop.
    CrashLoop,
    /// agent-deck declined the last restart.
    Skipped,
    /// A usage limit of this session.
    UsageLimit,
}

impl Rule {
    /// The word in logs.
    pub fn word(self) -> &'static str {
        match self {
            Rule::Paused => "paused",
            Rule::Held => "held",
            Rule::Memory => "memory",
            Rule::Busy => "busy",
            Rule::Burst => "burst-limit",
            Rule::Spacing => "spacing",
            Rule::CoolDown => "cool-down",
            Rule::RateLimit => "rate-limit",
            Rule::HostTrouble => "host-trouble",
            Rule::CrashLoop => "crash-loop",
            Rule::Skipped => "skipped",
            Rule::UsageLimit => "usage-limit",
        }
    }

    /// Whether a person has to hear of it when it lasts. The user asked for a
    /// pause or hold; the others have an episode of their own.
    pub fn is_told(self) -> bool {
        match self {
            Rule::Paused
            | Rule::Held
            | Rule::Memory
            | Rule::RateLimit
            | Rule::HostTrouble
            | Rule::CrashLoop => false,
            Rule::Busy
            | Rule::Burst
            | Rule::Spacing
            | Rule::CoolDown
            | Rule::Skipped
            | Rule::UsageLimit => true,
        }
    }
}

/// The answer of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Which rule.
    pub rule: Rule,
    /// Whether it refuses.
    pub refuses: bool,
    /// Its numbers in words, such as `2 of 3 restarts in 300 s`.
    pub numbers: String,
    /// When it lifts by itself; `None` when it does not refuse or does not lift by time.
    pub lifts: Option<Time>,
}

/// The answer of all rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// In the order of [`Rule`].
    pub answers: Vec<Answer>,
}

impl Verdict {
    /// The rules that refuse.
    pub fn refusals(&self) -> impl Iterator<Item = &Answer> {
        self.answers.iter().filter(|a| a.refuses)
    }

    /// Whether no rule refuses.
    pub fn agrees(&self) -> bool {
        self.refusals().next().is_none()
    }

    /// When all refusals that lift by time have lifted; `None` when one does not.
    pub fn lifts(&self) -> Option<Time> {
        self.refusals()
            .map(|a| a.lifts)
            .try_fold(Time(0), |latest, lifts| Some(latest.max(lifts?)))
    }

    /// The refusals in one sentence.
    pub fn sentence(&self) -> String {
        let parts: Vec<String> = self
            .refusals()
            .map(|a| format!("{} ({})", a.rule.word(), a.numbers))
            .collect();
        parts.join(", ")
    }
}

/// What is outside the state and still a rule's business.
#[derive(Clone, Debug)]
pub struct Surroundings<'a> {
    /// The user's flag files.
    pub flags: &'a Flags,
    /// `MIN_GLOBAL_RESTART_INTERVAL_S`.
    pub spacing: Duration,
    /// The state has been written at least once by this process.
    pub remembered: bool,
}

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

/// Asks all rules about a restart of one session.
pub fn verdict(state: &State, around: &Surroundings, id: &SessionId, now: Time) -> Verdict {
    let memory = state.sessions.get(id);
    Verdict {
        answers: vec![
            paused(around),
            held(around, id),
            remembered(around),
            busy(state, memory),
            burst(memory, now),
            spacing(state, around, now),
            cool_down(memory, now),
            backoff(Rule::RateLimit, state.rate_limit, now),
            backoff(Rule::HostTrouble, state.host_trouble, now),
            backoff(Rule::CrashLoop, memory.and_then(|m| m.crash_loop), now),
            backoff(Rule::Skipped, memory.and_then(|m| m.skipped), now),
            usage_limit(memory, now),
        ],
    }
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
    evidence: &str,
    now: Time,
) -> Result<Permit, Verdict> {
    let verdict = verdict(state, around, id, now);
    let last_restart = state.last_restart;
    let Some(memory) = state.sessions.get_mut(id).filter(|_| verdict.agrees()) else {
        return Err(verdict);
    };
    let before = Before {
        since_well: memory.since_well,
        crash_loop: memory.crash_loop,
        last_restart,
    };
    memory.attempt = Some(Attempt {
        at: now,
        evidence: evidence.to_owned(),
        answered: None,
        outcome: None,
        before,
    });
    memory.restarts.retain(|at| now.since(*at) < BURST_WINDOW);
    memory.restarts.push(now);
    memory.well_since = None;
    memory.since_well = memory.since_well.saturating_add(1);
    if memory.since_well >= CRASH_LOOP {
        memory.crash_loop = Some(crash_loop(memory.since_well, now));
    }
    let profile = memory.profile.clone();
    state.last_restart = Some(now);
    let intent = Intent {
        id: id.clone(),
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

fn paused(around: &Surroundings) -> Answer {
    let pause = around.flags.pause;
    Answer {
        rule: Rule::Paused,
        refuses: pause.is_some(),
        numbers: match pause {
            None => "no pause file".to_owned(),
            Some(pause) => match pause.until {
                Some(until) => format!("pause file, until {}", until.rfc3339()),
                None => "pause file".to_owned(),
            },
        },
        lifts: pause.and_then(|p| p.until),
    }
}

fn held(around: &Surroundings, id: &SessionId) -> Answer {
    let hold = around.flags.hold.iter().find(|(held, _)| held == id);
    Answer {
        rule: Rule::Held,
        refuses: hold.is_some(),
        numbers: match hold {
            None => "no hold file".to_owned(),
            Some((_, Some(until))) => format!("hold file, until {}", until.rfc3339()),
            Some((_, None)) => "hold file".to_owned(),
        },
        lifts: hold.and_then(|(_, until)| *until),
    }
}

fn remembered(around: &Surroundings) -> Answer {
    let numbers = if around.remembered {
        "state.json written"
    } else {
        "state.json not written"
    };
    Answer {
        rule: Rule::Memory,
        refuses: !around.remembered,
        numbers: numbers.to_owned(),
        lifts: None,
    }
}

fn busy(state: &State, memory: Option<&Memory>) -> Answer {
    let running = memory
        .and_then(|m| state.known_profile(&m.profile))
        .and_then(|profile| profile.running.as_ref());
    Answer {
        rule: Rule::Busy,
        refuses: running.is_some(),
        numbers: match running {
            None => "no command runs".to_owned(),
            Some(intent) => format!("the restart of {} still runs", intent.id),
        },
        lifts: None,
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
    let what = format!("{} s between any two restarts", around.spacing.as_secs());
    since(
        Rule::Spacing,
        state.last_restart,
        around.spacing,
        &what,
        now,
    )
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

/// A rule that refuses for `length` after a moment.
fn since(rule: Rule, begin: Option<Time>, length: Duration, what: &str, now: Time) -> Answer {
    let begin = begin.filter(|begin| now.since(*begin) < length);
    Answer {
        rule,
        refuses: begin.is_some(),
        numbers: match begin {
            None => what.to_owned(),
            Some(begin) => format!("{what}, {} ago", spoken(now.since(begin))),
        },
        lifts: begin.map(|begin| begin.plus(length)),
    }
}

fn backoff(rule: Rule, backoff: Option<Backoff>, now: Time) -> Answer {
    let refusing = backoff.filter(|b| b.until() > now);
    Answer {
        rule,
        refuses: refusing.is_some(),
        numbers: match refusing {
            None => "no back-off".to_owned(),
            Some(b) => format!("next try in {}", spoken(b.until().since(now))),
        },
        lifts: refusing.map(|b| b.until()),
    }
}
