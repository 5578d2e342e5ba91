//! What may be told: kinds of episodes, and their keys.
//!
//! This file does not know when anything of it is told.

use std::time::Duration;

/// Between two reminders of one episode (DESIGN 2.4).
const REMIND: Duration = Duration::from_secs(6 * 3600);

/// Those about which the watchdog does nothing more, or not soon: somebody has
/// to look.
const GIVEN_UP: [Kind; 7] = [
    Kind::Down,
    Kind::Auth,
    Kind::Mismatch,
    Kind::BareShell,
    Kind::Deaf,
    Kind::Unanswered,
    Kind::Misfire,
];

/// What an episode is about. With its subject it makes the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A critical session that cannot be brought back.
    Down,
    /// A login problem of one session.
    Auth,
    /// One session reads dead while its agent lives.
    Mismatch,
    /// An agent's screen is a bare shell.
    BareShell,
    /// Many sessions read dead while their agents live.
    Eyes,
    /// All critical sessions died together.
    MassDeath,
    /// A rate limit.
    RateLimit,
    /// Trouble of the machine.
    Host,
    /// agent-deck does not answer.
    List,
    /// A command does not end.
    Hang,
    /// The state cannot be written.
    Unsaved,
    /// The state was lost.
    Lost,
    /// Our own installation is wrong.
    Setup,
    /// The pause file was forgotten.
    Pause,
    /// An owner of a Telegram bot has no poller.
    Deaf,
    /// Its folder cannot be said, or pollers cannot be seen.
    PollerUnknown,
    /// Several poll for one bot.
    Duplicate,
    /// A poller that comes and goes.
    Flapping,
    /// A poller that seems to hear nothing.
    Suspected,
    /// A child waits for a decision.
    Decision,
    /// A child waits, and nothing may be typed into it.
    CannotAsk,
    /// A child waits, held by a limit or a login problem.
    Held,
    /// A child died.
    Died,
    /// A child was asked as often as it may be.
    Unanswered,
    /// A child waits, and its pane cannot be read.
    Unreachable,
    /// A message did something else than to ask.
    Misfire,
    /// A parent could not be told.
    Notice,
}

impl Kind {
    /// The word in keys.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Down => "down",
            Kind::Auth => "auth",
            Kind::Mismatch => "mismatch",
            Kind::BareShell => "bare-shell",
            Kind::Eyes => "wrong-eyes",
            Kind::MassDeath => "mass-death",
            Kind::RateLimit => "rate-limit",
            Kind::Host => "host-trouble",
            Kind::List => "no-answer",
            Kind::Hang => "restart-hangs",
            Kind::Unsaved => "state-unsaved",
            Kind::Lost => "state-lost",
            Kind::Setup => "setup",
            Kind::Pause => "pause",
            Kind::Deaf => "deaf",
            Kind::PollerUnknown => "poller-unknown",
            Kind::Duplicate => "duplicate-poller",
            Kind::Flapping => "poller-flaps",
            Kind::Suspected => "suspected-deaf",
            Kind::Decision => "decision",
            Kind::CannotAsk => "cannot-ask",
            Kind::Held => "held",
            Kind::Died => "died",
            Kind::Unanswered => "unanswered",
            Kind::Unreachable => "unreachable",
            Kind::Misfire => "nudge-went-wrong",
            Kind::Notice => "notice",
        }
    }

    pub(super) fn remind(self) -> Duration {
        if self == Kind::Pause {
            // A forgotten pause is mentioned daily (DESIGN 2.3).
            return Duration::from_secs(24 * 3600);
        }
        REMIND
    }

    /// The key of the episode about `subject`.
    pub fn key(self, subject: &str) -> String {
        format!("{}:{subject}", self.word())
    }
}

/// Whether an open episode of that key means that something was given up.
pub fn is_given_up(key: &str) -> bool {
    let word = key.split(':').next().unwrap_or_default();
    GIVEN_UP.iter().any(|kind| kind.word() == word)
}
