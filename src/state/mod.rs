//! What is remembered between turns and between runs: budgets, timers,
//! attempts, episodes. Plain data.
//!
//! This file does not know the rules (`guard.rs`), what an answer means
//! (`outcome.rs`), nor where the file lies.

use std::time::Duration;

use crate::clock::Time;
use crate::model::{ById, ProcessMark, Profile, Session, SessionId};
use crate::stored::stored;

mod child;
pub mod file;
mod owner;
mod parent;
mod session;
mod told;

pub use child::{Child, Rung};
pub use owner::Owner;
pub use parent::{Ending, Member, NoticeKind, Parent, ParentNotice};
pub use session::{Agent, Attempt, Before, LastError, Memory, Outcome, Refused};
pub use told::{Episode, Notice, Parcel};

stored! {
    /// Everything that must survive a crash.
    #[derive(Default)]
    pub struct State {
        /// Critical sessions, living and gone.
        pub sessions: ById<Memory>,
        /// Owners of a Telegram bot.
        pub owners: Vec<Owner>,
        /// Which processes poll Telegram cannot be seen since.
        pub pollers_unseen: Option<Time>,
        /// Children that wait, or have been asked, in the order of their ids.
        pub children: Vec<Child>,
        /// Parents of children, in the order in which they became known.
        pub parents: Vec<Parent>,
        /// When this memory began: what was dead before is no news.
        pub began: Option<Time>,
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

    /// What is known of one profile.
    pub struct ProfileMemory {
        /// Its name.
        pub name: Profile,
        /// The changing command that was begun and not yet seen to end.
        pub running: Option<Intent>,
        /// Lists in a row that had no usable answer.
        pub failures: u32,
        /// Since when there was none.
        pub failing_since: Option<Time>,
        /// Seconds between the last `--once` runs, oldest first.
        pub pace: Vec<u64>,
        /// The last time in which nobody looked ended then: nothing waited in it.
        pub gap: Option<Time>,
        /// It is seen from the wrong place since.
        pub wrong_since: Option<Time>,
        /// Its list is empty since, although sessions were known.
        pub empty_since: Option<Time>,
    }

    /// A command that changes something and was begun.
    pub struct Intent {
        /// The session.
        pub id: SessionId,
        /// It sends a message; else it restarts or stops.
        pub sends: bool,
        /// The message tells a parent something; else it asks a child to report.
        pub tells: bool,
        /// It stops the session.
        pub stops: bool,
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

}

impl ProfileMemory {
    /// Whether its last list was one that could be used.
    pub fn is_listed(&self) -> bool {
        self.failures == 0 && self.empty_since.is_none()
    }
}

impl Intent {
    /// What it does, such as `restart of <id>`.
    pub fn in_words(&self) -> String {
        let what = match (self.sends, self.stops) {
            (true, _) => "message to",
            (false, true) => "stop of",
            (false, false) => "restart of",
        };
        format!("{what} {}", self.id)
    }
}

impl Backoff {
    /// The moment it is over.
    pub fn until(&self) -> Time {
        self.since.plus(Duration::from_secs(self.seconds))
    }
}

/// Whether a word is new among those that were said; it is one of them then.
pub fn say(said: &mut Vec<String>, word: &str) -> bool {
    let new = !said.iter().any(|known| known == word);
    if new {
        said.push(word.to_owned());
    }
    new
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
            .get_or_make(id, || Memory::new(profile.clone(), title.to_owned(), spent))
    }

    /// The owner's memory, made when there is none yet.
    pub fn owner(&mut self, row: &Session) -> &mut Owner {
        let known = self.owners.iter().position(|owner| owner.id == row.id);
        let at = known.unwrap_or_else(|| {
            self.owners.push(Owner::new(row, self.spent));
            self.owners.len() - 1
        });
        &mut self.owners[at]
    }

    /// The owner's memory, if there is one.
    pub fn known_owner(&mut self, id: &SessionId) -> Option<&mut Owner> {
        self.owners.iter_mut().find(|owner| owner.id == *id)
    }

    /// The child's memory, made when there is none yet.
    pub fn child(&mut self, row: &Session) -> &mut Child {
        let at = self.child_place(&row.id).unwrap_or_else(|at| {
            self.children.insert(at, Child::new(row, self.spent));
            at
        });
        &mut self.children[at]
    }

    /// The child's memory, if there is one.
    pub fn known_child(&self, id: &SessionId) -> Option<&Child> {
        let at = self.child_place(id).ok()?;
        self.children.get(at)
    }

    /// The child's memory, if there is one, to be changed.
    pub fn known_child_mut(&mut self, id: &SessionId) -> Option<&mut Child> {
        let at = self.child_place(id).ok()?;
        self.children.get_mut(at)
    }

    /// The parent's memory, made when there is none yet.
    pub fn parent(&mut self, profile: &Profile, id: &SessionId, title: &str) -> &mut Parent {
        let known = self.parents.iter().position(|parent| parent.id == *id);
        let at = known.unwrap_or_else(|| {
            self.parents.push(Parent::new(profile, id, title));
            self.parents.len() - 1
        });
        &mut self.parents[at]
    }

    /// The parent's memory, if there is one.
    pub fn known_parent(&self, id: &SessionId) -> Option<&Parent> {
        self.parents.iter().find(|parent| parent.id == *id)
    }

    /// The same, to be changed.
    pub fn known_parent_mut(&mut self, id: &SessionId) -> Option<&mut Parent> {
        self.parents.iter_mut().find(|parent| parent.id == *id)
    }

    /// A file may have them in any order.
    fn put_children_in_order(&mut self) {
        for child in std::mem::take(&mut self.children) {
            if let Err(at) = self.child_place(&child.id) {
                self.children.insert(at, child);
            }
        }
    }

    /// Where a child is, or where it would be.
    fn child_place(&self, id: &SessionId) -> Result<usize, usize> {
        self.children.binary_search_by(|child| child.id.cmp(id))
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

    /// Whether the last list of a profile was one that could be used.
    pub fn is_listed(&self, name: &Profile) -> bool {
        self.known_profile(name)
            .is_none_or(|known| known.is_listed())
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
                failing_since: None,
                pace: Vec::new(),
                gap: None,
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
