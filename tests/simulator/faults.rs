//! Faults of programs, files and eyes, and how long they last.
//!
//! This file does not know who meets them.

use std::collections::BTreeMap;

use agent_deck_watchdog::model::{NoAnswer, Profile, SessionId};

/// A program that does not answer as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It hangs until its deadline.
    Hangs,
    /// It prints nonsense.
    Garbage,
    /// It ends with an error.
    Fails,
    /// It is not there.
    NoProgram,
    /// An empty list.
    Empty,
}

impl Fault {
    /// How long it takes, and what is left of the answer; `None`: an empty one.
    pub fn answer(self, deadline: u64) -> (u64, Option<NoAnswer>) {
        match self {
            Fault::Hangs => (deadline, Some(NoAnswer::Late)),
            Fault::Garbage => (50, Some(NoAnswer::Garbage("{\"a".to_owned()))),
            Fault::Fails => (50, Some(NoAnswer::Failed("database is locked".to_owned()))),
            Fault::NoProgram => (1, Some(NoAnswer::NoProgram("no such file".to_owned()))),
            Fault::Empty => (50, None),
        }
    }
}

/// What is wrong, and until when (true time).
#[derive(Default)]
pub struct Faults {
    /// The lists of a profile.
    pub list: BTreeMap<Profile, (Fault, u64)>,
    /// Questions about one session.
    pub show: BTreeMap<SessionId, (Fault, u64)>,
    /// The list of profiles.
    pub profiles: Option<(Fault, u64)>,
    /// The program cannot even be started.
    pub no_start: u64,
    /// Processes cannot be seen.
    pub blind: u64,
    /// `ps` fails so.
    pub ps: Option<(Fault, u64)>,
    /// No process has a connection.
    pub offline: u64,
    /// Panes of this session cannot be read.
    pub pane: BTreeMap<SessionId, (Fault, u64)>,
    /// Looks at panes take so many milliseconds, until then.
    pub slow: (u64, u64),
    /// The state cannot be written.
    pub unsaved: u64,
}

impl Faults {
    /// The fault of this profile's list at that moment.
    pub fn of_list(&self, profile: &Profile, truth: u64) -> Option<Fault> {
        self.list
            .get(profile)
            .filter(|(_, until)| *until > truth)
            .map(|(fault, _)| *fault)
    }

    /// The fault of questions about this session at that moment.
    pub fn of_show(&self, id: &SessionId, truth: u64) -> Option<Fault> {
        self.show
            .get(id)
            .filter(|(_, until)| *until > truth)
            .map(|(fault, _)| *fault)
    }

    /// The fault of looks at this session's pane at that moment.
    pub fn of_pane(&self, id: &SessionId, truth: u64) -> Option<Fault> {
        let own = self.pane.get(id).filter(|(_, until)| *until > truth);
        own.map(|(fault, _)| *fault).or(self.of_show(id, truth))
    }

    /// How long a look at a pane takes that usually takes so long.
    pub fn pane_takes(&self, usual: u64, truth: u64) -> u64 {
        if self.slow.1 > truth {
            self.slow.0
        } else {
            usual
        }
    }
}
