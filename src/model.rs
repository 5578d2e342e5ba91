//! The nouns: what agent-deck says, what the machine shows. Plain data.
//!
//! This file does not know where any of it comes from, nor what follows from it.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::clock::Time;
use crate::stored::{Stored, stored};

/// agent-deck's full id of a session, such as `1a2b3c4d-1755900000`.
///
/// Anything else could be taken for a flag or a path, so it never gets this type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(String);

/// Longest id that is accepted; real ones have 19 characters (contract 7.6).
const ID_MAX: usize = 100;

impl SessionId {
    /// Accepts `[A-Za-z0-9][A-Za-z0-9_.-]*` without `..`, up to 100 characters
    /// (the pattern of agent-deck's own hook handler, contract 7.4).
    pub fn parse(text: &str) -> Option<SessionId> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        let fits = text.len() <= ID_MAX
            && text.bytes().all(plain)
            && text
                .as_bytes()
                .first()
                .is_some_and(u8::is_ascii_alphanumeric)
            && !text.contains("..");
        fits.then(|| SessionId(text.to_owned()))
    }

    /// The id as agent-deck wants it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// When the row was made, which is the number behind the dash (contract 7.6).
    pub fn created(&self) -> Option<Time> {
        let seconds: u64 = self.0.rsplit_once('-')?.1.parse().ok()?;
        Some(Time(seconds.checked_mul(1000)?))
    }
}

impl Stored for SessionId {
    fn store(&self) -> Value {
        Value::from(self.as_str())
    }

    fn restore(value: Value) -> Result<SessionId, &'static str> {
        value.as_str().and_then(SessionId::parse).ok_or("")
    }
}

impl<T: Stored> Stored for BTreeMap<SessionId, T> {
    fn store(&self) -> Value {
        let mut map = Map::new();
        for (id, value) in self {
            map.insert(id.to_string(), value.store());
        }
        Value::Object(map)
    }

    fn restore(value: Value) -> Result<BTreeMap<SessionId, T>, &'static str> {
        let Value::Object(map) = value else {
            return Err("");
        };
        let mut restored = BTreeMap::new();
        for (id, value) in map {
            restored.insert(SessionId::parse(&id).ok_or("")?, T::restore(value)?);
        }
        Ok(restored)
    }

    fn missing() -> Option<BTreeMap<SessionId, T>> {
        Some(BTreeMap::new())
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> String {
        id.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Name of an agent-deck profile that is safe to pass on: one path element that
/// is no flag (contract 1.3).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Profile(String);

impl Profile {
    /// Refuses the empty name, `.`, `..`, slashes, a leading dash, control
    /// characters and names longer than 100 bytes.
    pub fn parse(text: &str) -> Option<Profile> {
        let fits = !text.is_empty()
            && text.len() <= ID_MAX
            && text != "."
            && text != ".."
            && !text.starts_with('-')
            && !text.chars().any(|c| c == '/' || c == ',' || c.is_control());
        fits.then(|| Profile(text.to_owned()))
    }

    /// The name as agent-deck wants it behind `-p`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Stored for Profile {
    fn store(&self) -> Value {
        Value::from(self.as_str())
    }

    fn restore(value: Value) -> Result<Profile, &'static str> {
        value.as_str().and_then(Profile::parse).ok_or("")
    }
}

impl From<Profile> for String {
    fn from(profile: Profile) -> String {
        profile.0
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

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
}

impl Session {
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
}

/// The answer of `session output --pane --json` (contract 4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pane {
    /// The screen's text was read; its SHA-256.
    Stands(Digest),
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
    /// Why they could not be looked at; what the others say proves nothing then.
    pub unreadable: Option<String>,
}

/// One process of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Process number.
    pub pid: u32,
    /// Number of its parent.
    pub parent: u32,
    /// Belongs to the user that runs the watchdog.
    pub own: bool,
    /// Has ended and waits to be reaped.
    pub zombie: bool,
    /// When it started.
    pub started: Time,
    /// Its short name, such as `tmux: server`.
    pub name: String,
    /// Its arguments, program first; empty when not asked for or not readable.
    pub args: Vec<String>,
    /// `AGENTDECK_INSTANCE_ID` in its environment.
    pub instance: Option<String>,
    /// `CLAUDECODE` in its environment: it was started by an agent.
    pub inside_agent: bool,
    /// Its `HOME` is another one than ours: if it is agent-deck, it works on
    /// another deck.
    pub elsewhere: bool,
}

/// What could be seen of the machine's processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// All of them.
    Seen(Vec<Process>),
    /// Not this time, and why.
    Blind(String),
}

/// How much of every process is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Environments only of children of tmux servers, no arguments: cheap.
    Panes,
    /// Environments and arguments of all that can be read.
    All,
}

stored! {
    /// A process that outlives the run that started it is known by number and start.
    #[derive(Copy)]
    pub struct ProcessMark {
        /// Process number.
        pub pid: u32,
        /// Start in ticks since boot; 0 where the system does not say.
        pub ticks: u64,
    }
}

/// The user's flag files (DESIGN 2.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `autorestart/<id>`.
    pub autorestart: Vec<SessionId>,
    /// `hold/<id>`, with the time it names.
    pub hold: Vec<(SessionId, Option<Time>)>,
    /// `pause`, with the time it names; outer `None`: no such file.
    pub pause: Option<Pause>,
    /// `clear/<id>`: requests to forget a session's failures.
    pub clear: Vec<SessionId>,
}

/// The `pause` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// When the file was made.
    pub since: Time,
    /// Until when, if it names a time.
    pub until: Option<Time>,
}

/// How loud a line or a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Good to know afterwards.
    Info,
    /// Somebody may want to look.
    Warning,
    /// Somebody has to look.
    Critical,
}

impl Level {
    /// The word in logs and for `escalate.sh`.
    pub fn word(self) -> &'static str {
        match self {
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Critical => "critical",
        }
    }
}

impl Stored for Level {
    fn store(&self) -> Value {
        Value::from(self.word())
    }

    fn restore(value: Value) -> Result<Level, &'static str> {
        let all = [Level::Info, Level::Warning, Level::Critical];
        all.into_iter()
            .find(|level| value == level.word())
            .ok_or("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_could_be_flags_or_paths_are_refused() {
        for good in ["1a2b3c4d-1755900000", "a", "x_y.z-1"] {
            assert_eq!(
                SessionId::parse(good).map(String::from).as_deref(),
                Some(good)
            );
        }
        let long = "a".repeat(101);
        for bad in [
            "", "-rf", "../x", "a..b", "a/b", "a b", ".hidden", "a\n", "\u{e9}", &long,
        ] {
            assert_eq!(SessionId::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn profile_names_that_would_mean_another_profile_are_refused() {
        for good in ["default", "n\u{e4}chtlich", "_test", "a b"] {
            assert!(Profile::parse(good).is_some(), "{good:?}");
        }
        for bad in ["", ".", "..", "a/b", "-p", "a,b", "a\u{1b}"] {
            assert!(Profile::parse(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn groups_count_by_whole_path_elements() {
        let mut session = Session {
            id: SessionId::parse("a-1").unwrap(),
            profile: Profile::parse("p").unwrap(),
            title: "x".to_owned(),
            group: String::new(),
            tool: "claude".to_owned(),
            command: "claude".to_owned(),
            status: Status::Error,
            substate: None,
            tmux_session: String::new(),
            created: None,
            archived: false,
            is_conductor: false,
            is_ssh: false,
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
