//! The simulated deck: what is true of each session, and what agent-deck prints
//! of it. The two differ as they do in agent-deck (contract 5, 6).
//!
//! This file does not know the watchdog.

use agent_deck_watchdog::model::{AgentSays, Profile, Restarted, SessionId, Status, Substate};

use crate::bots::Bot;
use crate::front::{Front, Mood, Plan};

/// The stored status, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// Anything but the two others.
    Alive,
    /// Stopped on purpose.
    Stopped,
    /// Waits for a place.
    Queued,
}

/// The terminal that agent-deck knows of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// None.
    Gone,
    /// There is one, with this number of changes on its screen.
    Stands(u64),
    /// There is one, and a bare shell is all that is in it.
    Shell,
    /// There is one whose process has ended.
    Ended,
}

/// Why the printed status is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// A leftover of the last SessionEnd record: `error` over a living screen.
    Leftover,
    /// A false banner: `error` with a substate over a living screen.
    Banner,
    /// The row's tmux name was lost: `error`, and no pane to be read.
    LostName,
    /// It lives in another tmux than ours.
    Elsewhere,
    /// It never gets ready: prints `unknown`.
    Starting,
    /// A word nobody has seen before.
    Unfamiliar,
    /// A bare shell in its terminal, and still listed as waiting.
    Shell,
}

/// What becomes of an agent that is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnStart {
    /// It lives.
    Lives,
    /// It ends after so many milliseconds.
    Ends(u64),
    /// Nothing is started, although agent-deck says so.
    Nothing,
    /// It stays in starting.
    Starts,
    /// It lives and shows a usage limit.
    Limited,
    /// It lives and shows a trust or first-run dialog.
    Asks,
}

/// What the next restart commands answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// As usual.
    Usual,
    /// Nothing is done, and this is said.
    Says(Restarted),
    /// It is done, and this is said.
    DoneBut(Restarted),
    /// It takes so many milliseconds before it begins with anything.
    Takes(u64),
}

/// A living agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Process number.
    pub pid: u32,
    /// Number of its tmux server.
    pub server: u32,
    /// When it started, true time.
    pub started: u64,
}

/// A word of a child about its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Wall time, and true time.
    pub at: u64,
    pub truth: u64,
    /// It is done; else it failed.
    pub ok: bool,
    /// Nobody has seen it begin anything since.
    pub fresh: bool,
}

/// One session.
#[derive(Clone, Debug)]
pub struct Row {
    pub id: SessionId,
    pub profile: Profile,
    pub title: String,
    pub group: String,
    pub is_conductor: bool,
    /// Wall time at which it was made.
    pub created: u64,
    pub archived: bool,
    pub removed: bool,
    /// Left out of lists until then (true time).
    pub unlisted: u64,
    pub sandboxed: bool,
    pub stored: Stored,
    pub terminal: Terminal,
    pub agent: Option<Agent>,
    /// Older agents that have not ended yet.
    pub lingering: Vec<Agent>,
    pub tmux_name: String,
    pub agent_session: String,
    /// Event and wall time.
    pub hook: Option<(String, u64)>,
    pub spawned: Option<u64>,
    pub spawn_lock: Option<u32>,
    pub lie: Option<Lie>,
    /// What it prints while it lives.
    pub word: Status,
    pub substate: Option<Substate>,
    pub auth_hold: bool,
    pub on_start: OnStart,
    pub answer: Answer,
    /// Somebody is about to stop, archive or remove it, since this true time.
    pub leaving: Option<u64>,
    /// True time of the last change of what a show would say.
    pub changed: u64,
    /// True time since which it lives or is dead.
    pub agent_changed: u64,
    /// Its title is another's id, so that a show answers with that one.
    pub show_answers: Option<SessionId>,
    /// Id of its parent.
    pub parent: String,
    /// Command of the row.
    pub command: &'static str,
    /// What is on its screen while an agent lives in it.
    pub front: Front,
    /// What its agent says of itself.
    pub says: Option<AgentSays>,
    /// Its agent was stopped by a signal.
    pub suspended: bool,
    pub mood: Mood,
    pub plan: Plan,
    pub bot: Option<Bot>,
    /// It worked at the last list.
    pub runs: bool,
    /// What it last said of its work.
    pub done: Option<Done>,
}

impl Row {
    /// A session that lives and has for days.
    pub fn living(id: SessionId, profile: Profile, title: &str, agent: Agent, wall: u64) -> Row {
        Row {
            title: title.to_owned(),
            group: "work".to_owned(),
            is_conductor: false,
            created: wall.saturating_sub(5 * 86_400_000),
            archived: false,
            removed: false,
            unlisted: 0,
            sandboxed: false,
            stored: Stored::Alive,
            terminal: Terminal::Stands(0),
            agent: Some(agent),
            lingering: Vec::new(),
            tmux_name: format!("agentdeck_{}", agent.pid),
            agent_session: format!("agent-of-{id}"),
            hook: Some((
                "UserPromptSubmit".to_owned(),
                wall.saturating_sub(86_400_000),
            )),
            spawned: None,
            spawn_lock: None,
            lie: None,
            word: Status::Waiting,
            substate: None,
            auth_hold: false,
            on_start: OnStart::Lives,
            answer: Answer::Usual,
            leaving: None,
            changed: 0,
            agent_changed: 0,
            show_answers: None,
            parent: String::new(),
            command: "claude",
            front: Front::free(),
            says: Some(AgentSays::Idle),
            suspended: false,
            mood: Mood::Works(5000),
            plan: Plan::Usual,
            bot: None,
            runs: false,
            done: None,
            id,
            profile,
        }
    }

    /// Makes it a row that was added and never started.
    pub fn never_started(mut self) -> Row {
        self.terminal = Terminal::Gone;
        self.agent = None;
        self.agent_session = String::new();
        self.hook = None;
        self
    }

    /// It is listed. Where it is seen to begin to work, what it last said is about
    /// an older task.
    pub fn is_listed(&mut self) {
        let runs = self.status() == Status::Running;
        let begins = runs && !std::mem::replace(&mut self.runs, runs);
        if let Some(done) = self.done.as_mut().filter(|_| begins) {
            done.fresh = false;
        }
    }

    /// It has run at some time.
    pub fn ran(&self) -> bool {
        !self.agent_session.is_empty() || self.hook.is_some() || self.spawned.is_some()
    }

    /// The printed status.
    pub fn status(&self) -> Status {
        match self.lie {
            Some(Lie::Starting) => return Status::Starting,
            Some(Lie::Unfamiliar) => return Status::Unfamiliar("paused".to_owned()),
            Some(Lie::Leftover | Lie::Banner) => return Status::Error,
            Some(Lie::LostName | Lie::Elsewhere) => return self.without_terminal(),
            Some(Lie::Shell) => return Status::Waiting,
            None => {}
        }
        match self.terminal {
            Terminal::Gone => self.without_terminal(),
            Terminal::Shell | Terminal::Ended => Status::Error,
            Terminal::Stands(_) if self.auth_hold => Status::Error,
            Terminal::Stands(_) => self.word.clone(),
        }
    }

    fn without_terminal(&self) -> Status {
        match self.stored {
            Stored::Stopped => Status::Stopped,
            Stored::Queued => Status::Queued,
            Stored::Alive => Status::Error,
        }
    }

    /// The printed substate.
    pub fn printed_substate(&self) -> Option<Substate> {
        match self.lie {
            Some(Lie::Banner) => Some(Substate::ModelUnavailable),
            Some(Lie::Leftover) => Some(Substate::IdleAtEmptyPrompt),
            Some(Lie::LostName | Lie::Elsewhere | Lie::Starting | Lie::Unfamiliar | Lie::Shell) => {
                None
            }
            None if self.auth_hold => Some(Substate::Auth401),
            None if self.terminal == Terminal::Gone => None,
            None => self.substate,
        }
    }

    /// The printed tool.
    pub fn tool(&self) -> &'static str {
        match self.terminal {
            Terminal::Shell => "shell",
            Terminal::Gone | Terminal::Stands(_) | Terminal::Ended => match self.command {
                "bash" => "shell",
                other => other,
            },
        }
    }

    /// Whether a pane can be read, and which.
    pub fn screen(&mut self) -> Option<u64> {
        if matches!(self.lie, Some(Lie::LostName | Lie::Elsewhere)) {
            return None;
        }
        match &mut self.terminal {
            Terminal::Gone => None,
            // Something moves on the screen of an agent that works.
            Terminal::Stands(changes) => {
                *changes += 1;
                Some(*changes)
            }
            Terminal::Shell | Terminal::Ended => Some(0),
        }
    }
}
