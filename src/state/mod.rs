//! What is remembered between turns and between runs: budgets, timers,
//! attempts, episodes. Plain data.
//!
//! This file does not know the rules (`guard.rs`), what an answer means
//! (`outcome.rs`), nor where the file lies.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::clock::Time;
use crate::model::{Level, ProcessMark, Profile, SessionId};
use crate::stored::{Stored, stored};

pub mod file;

stored! {
    /// Everything that must survive a crash.
    #[derive(Default)]
    pub struct State {
        /// Critical sessions, living and gone.
        pub sessions: BTreeMap<SessionId, Memory>,
        /// Watched profiles.
        pub profiles: Vec<ProfileMemory>,
        /// The last restart of any session.
        pub last_restart: Option<Time>,
        /// All restarts wait: agent-deck or its agents hit a rate limit.
        pub rate_limit: Option<Backoff>,
        /// All restarts wait: the machine has trouble.
        pub host_trouble: Option<Backoff>,
        /// When budgets began as spent, because an older memory was lost.
        pub spent: Option<Time>,
        /// Where a living session was last seen through these eyes.
        pub life: Option<Life>,
        /// What is being told.
        pub episodes: Vec<Episode>,
        /// Messages that wait to be told.
        pub outbox: Vec<Notice>,
        /// Messages that found no place there and were not written down yet.
        pub left_out: u32,
        /// The message that is on its way.
        pub parcel: Option<Parcel>,
        /// When a message last went out.
        pub last_sent: Option<Time>,
    }

    /// A stretch of time in which something waits.
    #[derive(Copy)]
    pub struct Backoff {
        /// Begin.
        pub since: Time,
        /// Length in seconds.
        pub seconds: u64,
    }

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
    }

    /// What is known of one profile.
    pub struct ProfileMemory {
        /// Its name.
        pub name: Profile,
        /// The changing command that was begun and not yet seen to end.
        pub running: Option<Intent>,
        /// Lists in a row that had no usable answer.
        pub failures: u32,
        /// It is seen from the wrong place since.
        pub wrong_since: Option<Time>,
        /// Its list is empty since, although sessions were known.
        pub empty_since: Option<Time>,
    }

    /// A restart command that was begun.
    pub struct Intent {
        /// The session.
        pub id: SessionId,
        /// When it began.
        pub since: Time,
        /// Its process; `None` between the decision and the start.
        pub process: Option<ProcessMark>,
        /// It was reported as still running after its deadline.
        pub reported: bool,
    }

    /// Where life was seen.
    pub struct Life {
        /// Boot during which it was seen.
        pub boot_id: String,
        /// User, HOME and tmux folder, as one text.
        pub eyes: String,
    }

    /// A trouble that is told as one.
    pub struct Episode {
        /// Kind and subject.
        pub key: String,
        /// How loud.
        pub level: Level,
        /// Its newest text.
        pub text: String,
        /// When it opened.
        pub opened: Time,
        /// When it was last put into the outbox.
        pub told: Time,
        /// Restarts made in it.
        pub restarts: u32,
        /// Events since then that were not told by themselves.
        pub suppressed: u32,
        /// Seconds between reminders.
        pub remind: u64,
    }

    /// A message that waits.
    pub struct Notice {
        /// Key of its episode.
        pub key: String,
        /// How loud.
        pub level: Level,
        /// Our own text, no secrets.
        pub text: String,
        /// When it was put here.
        pub since: Time,
        /// It was written down that it waits for its minute.
        pub waiting: bool,
    }

    /// What goes out as one message.
    pub struct Parcel {
        /// Keys of the episodes in it.
        pub keys: Vec<String>,
        /// How loud.
        pub level: Level,
        /// The text.
        pub text: String,
        /// Tries so far.
        pub tries: u32,
        /// It was handed over and has not been answered yet.
        pub handed_over: bool,
        /// Not before this long after the last try.
        pub wait: Option<Backoff>,
    }
}

impl ProfileMemory {
    /// Whether its last list was one that could be used.
    pub fn is_listed(&self) -> bool {
        self.failures == 0 && self.empty_since.is_none()
    }
}

impl Backoff {
    /// The moment it is over.
    pub fn until(&self) -> Time {
        self.since.plus(Duration::from_secs(self.seconds))
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
    fn store(&self) -> Value {
        Value::from(self.word())
    }

    fn restore(value: Value) -> Result<Outcome, &'static str> {
        let all = [
            Outcome::Done,
            Outcome::Unverified,
            Outcome::NoEffect,
            Outcome::Failed,
            Outcome::Limited,
        ];
        all.into_iter()
            .find(|outcome| value == outcome.word())
            .ok_or("")
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
        let new = !self.said.iter().any(|said| said == rule);
        if new {
            self.said.push(rule.to_owned());
        }
        new
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

impl State {
    /// A memory that begins with every budget spent, because the old one is lost.
    pub fn spent(now: Time) -> State {
        State {
            spent: Some(now),
            last_restart: Some(now),
            ..State::default()
        }
    }

    /// The session's memory, made when there is none yet.
    pub fn memory(&mut self, profile: &Profile, id: &SessionId, title: &str) -> &mut Memory {
        let spent = self.spent;
        self.sessions
            .entry(id.clone())
            .or_insert_with(|| Memory::new(profile.clone(), title.to_owned(), spent))
    }

    /// Our own commands that were begun and not yet seen to end.
    pub fn running_pids(&self) -> impl Iterator<Item = u32> {
        self.profiles
            .iter()
            .filter_map(|profile| Some(profile.running.as_ref()?.process?.pid))
    }

    /// What is known of a profile, if anything is.
    pub fn known_profile(&self, name: &Profile) -> Option<&ProfileMemory> {
        self.profiles.iter().find(|profile| profile.name == *name)
    }

    /// The profile's memory, made when there is none yet.
    pub fn profile(&mut self, name: &Profile) -> &mut ProfileMemory {
        let known = self
            .profiles
            .iter()
            .position(|profile| profile.name == *name);
        let at = known.unwrap_or_else(|| {
            let name = name.clone();
            self.profiles.push(ProfileMemory {
                name,
                running: None,
                failures: 0,
                wrong_since: None,
                empty_since: None,
            });
            self.profiles.len() - 1
        });
        &mut self.profiles[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_memory_begins_spent() {
        let now = Time(1_000_000_000);
        let mut state = State::spent(now);
        let id = SessionId::parse("1a2b3c4d-1755900000").unwrap();
        let profile = Profile::parse("default").unwrap();
        assert_eq!(state.memory(&profile, &id, "x").restarts, vec![now; 3]);
        assert_eq!(state.last_restart, Some(now));
    }
}
