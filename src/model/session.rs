//! What agent-deck says of a session, in its list, its answers and its files.
//!
//! This file does not know how it was asked.

use std::fmt;

use super::{Profile, Screen, SessionId};
use crate::clock::Time;

/// The printed status (contract 2.4 and 6.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Works, or a hook says so.
    Running,
    /// The default of everything that has a terminal.
    Waiting,
    /// As waiting, and looked at by the user.
    Idle,
    /// Terminal gone, or one of several false alarms.
    Error,
    /// Stopped on purpose.
    Stopped,
    /// Waits for a place in its group.
    Queued,
    /// Starting, which agent-deck prints as `unknown`.
    Starting,
    /// A word that this program does not know.
    Unfamiliar(String),
}

impl Status {
    /// Reads agent-deck's word.
    pub fn from_word(word: &str) -> Status {
        match word {
            "running" => Status::Running,
            "waiting" => Status::Waiting,
            "idle" => Status::Idle,
            "error" => Status::Error,
            "stopped" => Status::Stopped,
            "queued" => Status::Queued,
            "unknown" | "starting" => Status::Starting,
            other => Status::Unfamiliar(other.to_owned()),
        }
    }

    /// The word as agent-deck prints it.
    pub fn word(&self) -> &str {
        match self {
            Status::Running => "running",
            Status::Waiting => "waiting",
            Status::Idle => "idle",
            Status::Error => "error",
            Status::Stopped => "stopped",
            Status::Queued => "queued",
            Status::Starting => "unknown",
            Status::Unfamiliar(word) => word,
        }
    }

    /// Whether agent-deck says that this session has a living terminal.
    pub fn is_alive(&self) -> bool {
        match self {
            Status::Running | Status::Waiting | Status::Idle => true,
            Status::Error
            | Status::Stopped
            | Status::Queued
            | Status::Starting
            | Status::Unfamiliar(_) => false,
        }
    }
}

/// What agent-deck read off the screen (contract 6.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Substate {
    /// Credential error or dropped connection.
    Auth401,
    /// A quota refusal within the last five hours.
    UsageLimit,
    /// Live signs of work.
    Running,
    /// Model down, or a false alarm.
    ModelUnavailable,
    /// A prompt, or a dialog.
    IdleAtEmptyPrompt,
    /// A word that this program does not know.
    Unfamiliar,
}

impl Substate {
    /// Reads agent-deck's word; empty means that nothing was recognised.
    pub fn from_word(word: &str) -> Option<Substate> {
        match word {
            "" => None,
            "auth-401" => Some(Substate::Auth401),
            "usage-limit" => Some(Substate::UsageLimit),
            "running" => Some(Substate::Running),
            "model-unavailable" => Some(Substate::ModelUnavailable),
            "idle-at-empty-prompt" => Some(Substate::IdleAtEmptyPrompt),
            _ => Some(Substate::Unfamiliar),
        }
    }
}

/// One row of `list --json` (contract 2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Full id.
    pub id: SessionId,
    /// Profile it was listed under.
    pub profile: Profile,
    /// Other people's text.
    pub title: String,
    /// `/`-separated.
    pub group: String,
    /// `claude`, or `shell` when the screen looks like one.
    pub tool: String,
    /// Command of the row, empty when not printed.
    pub command: String,
    /// Printed status.
    pub status: Status,
    /// Printed substate.
    pub substate: Option<Substate>,
    /// Stored tmux name, empty when not printed.
    pub tmux_session: String,
    /// When the row was made; `None` when not printed or not readable.
    pub created: Option<Time>,
    /// Hidden by the user.
    pub archived: bool,
    /// The conductor mark, should a version ever print it.
    pub is_conductor: bool,
    /// Runs on another machine through ssh.
    pub is_ssh: bool,
    /// Id of its parent, empty when it has none.
    pub parent: String,
    /// Its project folder.
    pub path: String,
    /// The entry of its channels that makes it the owner of a Telegram bot,
    /// such as `plugin:telegram@claude-plugins-official` (contract 8.7).
    pub telegram: Option<String>,
}

impl Session {
    /// A row of which nothing but its place is known.
    pub fn new(profile: Profile, id: SessionId) -> Session {
        Session {
            id,
            profile,
            title: String::new(),
            group: String::new(),
            tool: String::new(),
            command: String::new(),
            status: Status::Starting,
            substate: None,
            tmux_session: String::new(),
            created: None,
            archived: false,
            is_conductor: false,
            is_ssh: false,
            parent: String::new(),
            path: String::new(),
            telegram: None,
        }
    }

    /// Whether it may be left behind by its agent: a command of the user's runs in
    /// a shell that outlives it (contract 6.2).
    pub fn runs_in_shell(&self) -> bool {
        self.tool == "shell" && !self.command.is_empty() && !self.is_ssh
    }

    /// Whether title or group make this session critical (the manual's first
    /// three marks; the fourth is a flag file).
    pub fn is_conductor_like(&self) -> bool {
        let below = |root: &str| {
            self.group == root
                || self
                    .group
                    .strip_prefix(root)
                    .is_some_and(|rest| rest.starts_with('/'))
        };
        self.is_conductor
            || self.title.starts_with("conductor-")
            || below("conductor")
            || below("watchers")
    }
}

/// The answer of `session show --json` (contract 3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Id of the row that answered, which may be another one than was asked.
    pub id: SessionId,
    /// Printed status.
    pub status: Status,
    /// Printed substate.
    pub substate: Option<Substate>,
    /// Printed tool.
    pub tool: String,
    /// Command of the row, empty when not printed.
    pub command: String,
    /// Stored tmux name, empty when not printed.
    pub tmux_session: String,
    /// The agent's own session id, empty when it never started.
    pub agent_session: String,
    /// A login problem is recorded for it.
    pub auth_hold: bool,
    /// agent-deck may not give it a Telegram channel by itself.
    pub link_disabled: bool,
    /// Nobody wants to hear of its changes (`no_transition_notify`).
    pub quiet: bool,
    /// Why its last start failed, if that is recorded (contract 3.1).
    pub spawn_failure: Option<SpawnFailure>,
}

/// The record of a start that failed; it may lie beside a healthy session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnFailure {
    /// agent-deck's word, such as `spawn_died_fast`.
    pub reason: String,
    /// When it was written, wall time.
    pub at: Time,
}

/// What a child last said of its work (contract 5.5b). It may be about an older
/// task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Which child.
    pub id: SessionId,
    /// It said that the work is done; else that it failed.
    pub ok: bool,
    /// When.
    pub at: Time,
}

/// The answer of `session output --pane --json` (contract 4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pane {
    /// The screen was read.
    Stands(Screen),
    /// There is no terminal, or only agent-deck's own notice about its end.
    Gone,
}

/// SHA-256 of a pane's text.
pub type Digest = [u8; 32];

/// Why a question to agent-deck has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The program is not there or cannot be run.
    NoProgram(String),
    /// It did not answer within its deadline, or answered too late to be true.
    Late,
    /// It answered something that cannot be read, or too much.
    Garbage(String),
    /// No such session (contract 1.7).
    NotFound,
    /// Several sessions fit.
    Ambiguous(String),
    /// The profile's database could not be read, or another failure.
    Failed(String),
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoAnswer::NoProgram(why) => write!(f, "agent-deck cannot be run: {why}"),
            NoAnswer::Late => f.write_str("agent-deck did not answer in time"),
            NoAnswer::Garbage(what) => write!(f, "agent-deck's answer cannot be read: {what}"),
            NoAnswer::NotFound => f.write_str("agent-deck knows no such session"),
            NoAnswer::Ambiguous(what) => write!(f, "agent-deck calls it ambiguous: {what}"),
            NoAnswer::Failed(what) => write!(f, "agent-deck failed: {what}"),
        }
    }
}

/// What `session restart --json` answered (contract 5.2), in our words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restarted {
    /// Exit 0 without `skipped`: tmux accepted the command. The text is a
    /// warning that came with it, or empty.
    Accepted(String),
    /// Exit 0 with `skipped`, and the reason given.
    Skipped(String),
    /// Exit 0 or not, but the state could not be saved, or there was no
    /// answer: the agent may be running.
    Unknown(String),
    /// Any other failure, with its text and code.
    Failed(String),
    /// The program could not be started at all: nothing has happened.
    NotStarted(String),
}

/// What `session stop --json` answered (contract 5.4), in our words. Whether it
/// is stopped says the next list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// agent-deck says that it did.
    Accepted,
    /// agent-deck says that it did not, with its text and code.
    Failed(String),
    /// No usable answer: it may be stopped.
    Unknown(String),
    /// The program could not be started at all: nothing has happened.
    NotStarted(String),
}

/// What `session send --no-wait --json` answered (contract 5.5), in our words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The message arrived, as far as agent-deck can tell. A draft that was in
    /// the way was put back, or something was answered: the next pane decides.
    Delivered,
    /// It saved an option such as `1. Yes` as a draft: a dialog was answered
    /// (contract 5.5).
    Answered,
    /// The text was left in the input box, or may have been.
    LeftBehind(String),
    /// Something was typed, and nothing shows that it arrived.
    NoEvidence(String),
    /// agent-deck refused before it typed anything.
    Refused(String),
    /// No usable answer: it may have arrived.
    Unknown(String),
    /// The program could not be started at all.
    NotStarted(String),
}

impl Delivery {
    /// Whether something was typed, or may have been.
    pub fn may_have_arrived(&self) -> bool {
        match self {
            Delivery::Delivered
            | Delivery::Answered
            | Delivery::LeftBehind(_)
            | Delivery::NoEvidence(_)
            | Delivery::Unknown(_) => true,
            Delivery::Refused(_) | Delivery::NotStarted(_) => false,
        }
    }

    /// Whether a line was too long for the terminal, which agent-deck says before
    /// it types anything (contract 5.5).
    pub fn is_too_long(&self) -> bool {
        matches!(self, Delivery::LeftBehind(why) if why.starts_with("line_too_long"))
    }
}

/// What a hook record says (contract 7.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookRecord {
    /// Event name as the agent sent it, such as `SessionStart`.
    pub event: String,
    /// When it was written, whole seconds.
    pub at: Time,
}

/// Files that agent-deck keeps about one session beside its database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traces {
    /// Its hook record.
    pub hook: Option<HookRecord>,
    /// When it was last spawned (modification time of the spawn stamp).
    pub spawned: Option<Time>,
    /// Process that holds its spawn lock, alive.
    pub spawn_lock: Option<u32>,
    /// Has a sandbox of its own.
    pub sandboxed: bool,
    /// Somebody holds a write transaction on its profile's database: a restart
    /// could not be saved (contract 5.1), and a stop may wait to be.
    pub database_busy: bool,
    /// Why they could not be looked at; what the others say proves nothing then.
    pub unreadable: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_count_by_whole_path_elements() {
        let profile = Profile::parse("p").unwrap();
        let mut session = Session {
            title: "x".to_owned(),
            ..Session::new(profile, SessionId::parse("a-1").unwrap())
        };
        for (group, critical) in [
            ("conductor", true),
            ("watchers", true),
            ("watchers/night", true),
            ("workers", false),
            ("conductors", false),
            ("work/conductor", false),
        ] {
            session.group = group.to_owned();
            assert_eq!(session.is_conductor_like(), critical, "{group}");
        }
        session.title = "conductor-ops".to_owned();
        assert!(session.is_conductor_like());
    }
}
