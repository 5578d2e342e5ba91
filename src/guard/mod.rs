//! Every guardrail, and the only maker of permits.
//!
//! A [`Verdict`] is the answer of all rules with their numbers; the logs and
//! the dry run print that same value. A [`Permit`] cannot be made elsewhere,
//! cannot be copied, and has been paid for when it exists: making it takes the
//! slot from the budget and writes the intent into the state.
//!
//! The rules that all deeds share stand here; those of restarts, nudges,
//! notices and stops each in a file below. This room does not know whether a session is dead, deaf
//! or waiting, nor how anything is done about it.

use std::time::Duration;

use crate::clock::{Time, spoken};
use crate::model::{Flags, Profile, SessionId};
use crate::state::{Backoff, Child, State};

#[cfg(test)]
mod fixtures;
mod notice;
mod nudge;
mod restart;
mod stop;

pub use notice::{
    NOTICE_INTERVAL, NoticePermit, notice_begun, notice_permit, notice_verdict, return_notice,
};
pub use nudge::{NudgePermit, Slot, nudge_begun, nudge_permit, nudge_verdict, return_nudge};
pub use restart::{Permit, Purpose, begun, crash_loop, give_back, permit, verdict};
pub use stop::{StopPermit, stop_permit, stop_verdict};

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
/// The longest distance between two restarts for a poller (DESIGN 3.3: a day).
const POLLER_MOST: u64 = 86_400;
/// After a time in which nobody looked nobody is nudged this long (DESIGN 3.4).
const AFTER_GAP: Duration = Duration::from_secs(60);

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
    /// Distances between two restarts for a poller.
    PollerDedup,
    /// The distance between two nudges of one child.
    NudgeDedup,
    /// Nudges in one episode.
    Nudges,
    /// Something went wrong with a nudge in this episode.
    Silenced,
    /// Nobody looked for a while.
    Gap,
    /// Between two messages to one parent.
    NoticeInterval,
    /// The two opt-ins of the ladder's last rung.
    OptIn,
    /// Time between the last rungs of the ladder.
    Step,
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
            Rule::PollerDedup => "poller-dedup",
            Rule::NudgeDedup => "nudge-dedup",
            Rule::Nudges => "nudges",
            Rule::Silenced => "silenced",
            Rule::Gap => "gap",
            Rule::NoticeInterval => "notice-interval",
            Rule::OptIn => "opt-in",
            Rule::Step => "step",
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
            | Rule::CrashLoop
            | Rule::PollerDedup
            | Rule::NudgeDedup
            | Rule::Nudges
            | Rule::Silenced
            | Rule::Gap
            | Rule::NoticeInterval
            | Rule::OptIn
            | Rule::Step => false,
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

/// The settings that are limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `MIN_GLOBAL_RESTART_INTERVAL_S`.
    pub spacing: Duration,
    /// `POLLER_RESTART_DEDUP_S`.
    pub poller_dedup: Duration,
    /// `WAITING_PATROL_NUDGE_DEDUP_S`.
    pub nudge_dedup: Duration,
    /// `WAITING_PATROL_MAX_NUDGES`; 0: no limit.
    pub max_nudges: u32,
    /// `WAITING_PATROL_TERMINATE`.
    pub terminate: bool,
}

impl Default for Limits {
    /// As the manual says.
    fn default() -> Limits {
        Limits {
            spacing: Duration::from_secs(60),
            poller_dedup: Duration::from_secs(3600),
            nudge_dedup: Duration::from_secs(3600),
            max_nudges: 3,
            terminate: false,
        }
    }
}

/// What is outside the state and still a rule's business.
#[derive(Clone, Debug)]
pub struct Surroundings<'a> {
    /// The user's flag files.
    pub flags: &'a Flags,
    /// The settings that are limits.
    pub limits: Limits,
    /// The state has been written at least once by this process.
    pub remembered: bool,
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

fn busy(state: &State, profile: Option<&Profile>) -> Answer {
    let running = profile
        .and_then(|name| state.known_profile(name))
        .and_then(|profile| profile.running.as_ref());
    Answer {
        rule: Rule::Busy,
        refuses: running.is_some(),
        numbers: match running {
            None => "no command runs".to_owned(),
            Some(intent) => format!("the {} still runs", intent.in_words()),
        },
        lifts: None,
    }
}

/// Something went wrong with a message to a child in this episode.
fn silenced(child: Option<&Child>) -> Answer {
    let word = child.map_or("", |child| child.silent.as_str());
    Answer {
        rule: Rule::Silenced,
        refuses: !word.is_empty(),
        numbers: if word.is_empty() {
            "nothing went wrong in this episode".to_owned()
        } else {
            word.to_owned()
        },
        lifts: None,
    }
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
