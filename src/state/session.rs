//! What is remembered of one critical session.
//!
//! This file does not know the rules, nor what an answer means.

use super::{Backoff, say};
use crate::clock::Time;
use crate::json::{Json as _, Value};
use crate::model::Profile;
use crate::stored::{Restored, Stored, fill, stored};

stored! {
    /// What is known of one critical session.
    pub struct Memory {
        /// Its profile.
        pub profile: Profile,
        /// Its title when last listed.
        pub title: String,
        /// It was seen alive at some time.
        pub ran: bool,
        /// Restarts that count, oldest first.
        pub restarts: Vec<Time>,
        /// The last restart that was tried.
        pub attempt: Option<Attempt>,
        /// Restarts since it was last well for ten minutes.
        pub since_well: u32,
        /// Restarts in a row that changed nothing.
        pub without_effect: u32,
        /// Tries are made at growing distances.
        pub crash_loop: Option<Backoff>,
        /// agent-deck declined the last restart.
        pub skipped: Option<Backoff>,
        /// A usage limit is on its screen since.
        pub usage_limit: Option<Time>,
        /// A login problem is seen since.
        pub auth_since: Option<Time>,
        /// Its terminal holds a bare shell, as far as can be seen, since.
        pub bare_since: Option<Time>,
        /// Listed alive without a break since.
        pub well_since: Option<Time>,
        /// Reads dead without a break since.
        pub dead_since: Option<Time>,
        /// Somebody stopped it, as far as was seen, and it has not lived since.
        /// agent-deck itself may lose a stop (two writers, contract 5.1).
        pub stopped_since: Option<Time>,
        /// Lacking in good lists since.
        pub missing_since: Option<Time>,
        /// Its agent's process, when last seen.
        pub agent: Option<Agent>,
        /// Its tmux name, when last listed alive.
        pub tmux_session: String,
        /// Somebody else restarted it.
        pub restarted_by_others: Option<Time>,
        /// Why it is left alone at present.
        pub refusal: Option<Refused>,
        /// Rules that were written down since it last lived: each once.
        pub said: Vec<String>,
        /// The last error text, and how often in a row it came.
        pub last_error: Option<LastError>,
    }

    /// An error text that came back.
    pub struct LastError {
        /// The text, short.
        pub text: String,
        /// How often in a row.
        pub times: u32,
    }

    /// A refusal that stands.
    pub struct Refused {
        /// The rule's word.
        pub rule: String,
        /// The rule in words, with its numbers.
        pub sentence: String,
        /// Since when.
        pub since: Time,
        /// A person has to hear of it when it lasts.
        pub tell: bool,
    }

    /// An agent's process.
    #[derive(Copy)]
    pub struct Agent {
        /// Process number.
        pub pid: u32,
        /// When it started.
        pub started: Time,
    }

    /// A restart that was tried.
    pub struct Attempt {
        /// When the command began.
        pub at: Time,
        /// It was to bring a poller back; else the session was dead.
        pub for_poller: bool,
        /// What was seen before.
        pub evidence: String,
        /// When its command had answered.
        pub answered: Option<Time>,
        /// How it ended; `None` while the outcome is not known.
        pub outcome: Option<Outcome>,
        /// Budgets as they were, to give the slot back.
        pub before: Before,
    }

    /// Budgets as they were before an attempt.
    pub struct Before {
        /// Restarts since the session was last well.
        pub since_well: u32,
        /// Its crash-loop back-off.
        pub crash_loop: Option<Backoff>,
        /// The last restart of any session.
        pub last_restart: Option<Time>,
        /// The last restart for its poller.
        pub for_poller: Option<Time>,
    }
}

/// What came of a restart (DESIGN 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A new agent's process was seen.
    Done,
    /// No process can be seen, but it is listed without error.
    Unverified,
    /// It reads dead as before.
    NoEffect,
    /// The command failed.
    Failed,
    /// A usage limit is on the new screen.
    Limited,
}

impl Outcome {
    /// The word in logs.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Unverified => "unverified",
            Outcome::NoEffect => "no effect",
            Outcome::Failed => "failed",
            Outcome::Limited => "limited",
        }
    }
}

impl Stored for Outcome {
    fn blank() -> Outcome {
        Outcome::Done
    }

    fn store(&mut self) -> Value {
        self.word().json()
    }

    fn restore(&mut self, value: &Value) -> Restored {
        let all = [
            Outcome::Done,
            Outcome::Unverified,
            Outcome::NoEffect,
            Outcome::Failed,
            Outcome::Limited,
        ];
        fill(
            self,
            all.into_iter()
                .find(|outcome| value.as_str() == Some(outcome.word())),
        )
    }
}

impl Memory {
    /// A session that has just become known. Where an older memory was lost
    /// its budget begins as spent (DESIGN 3.5).
    pub fn new(profile: Profile, title: String, spent: Option<Time>) -> Memory {
        Memory {
            profile,
            title,
            ran: false,
            restarts: spent.map_or_else(Vec::new, |at| vec![at; 3]),
            attempt: None,
            since_well: 0,
            without_effect: 0,
            crash_loop: None,
            skipped: None,
            usage_limit: None,
            auth_since: None,
            bare_since: None,
            well_since: None,
            dead_since: None,
            stopped_since: None,
            missing_since: None,
            agent: None,
            tmux_session: String::new(),
            restarted_by_others: None,
            refusal: None,
            said: Vec::new(),
            last_error: None,
        }
    }

    /// Notes why it is left alone; returns since when that reason stands.
    pub fn refuse(&mut self, rule: &str, sentence: &str, tell: bool, now: Time) -> Time {
        let known = self.refusal.take().filter(|known| known.rule == rule);
        let since = known.map_or(now, |known| known.since);
        let (rule, sentence) = (rule.to_owned(), sentence.to_owned());
        self.refusal = Some(Refused {
            rule,
            sentence,
            since,
            tell,
        });
        since
    }

    /// Whether a rule has not been written down yet since it last lived.
    pub fn say(&mut self, rule: &str) -> bool {
        say(&mut self.said, rule)
    }

    /// Nothing holds it back any more.
    pub fn nothing_refuses(&mut self) {
        self.refusal = None;
        self.said.clear();
    }

    /// The last restart of this session by anybody.
    pub fn last_restart(&self) -> Option<Time> {
        self.restarts.last().copied().max(self.restarted_by_others)
    }
}
