//! What the machine shows of its processes.
//!
//! This file does not know how one looks.

use std::path::PathBuf;

use crate::clock::Time;
use crate::stored::stored;

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
    /// Its environment did not let itself be read.
    pub opaque: bool,
    /// Stopped by a signal (state `T`).
    pub suspended: bool,
    /// `TELEGRAM_STATE_DIR` in its environment.
    pub telegram: Option<PathBuf>,
    /// `CLAUDE_CONFIG_DIR` in its environment.
    pub config_dir: Option<PathBuf>,
    /// It is agent-deck (or its Python watchdog), and its `HOME` is another one
    /// than ours: it works on another deck.
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

/// What an agent says of itself in its own status file (contract 6.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentSays {
    /// At its prompt; it knows nothing of drafts.
    Idle,
    /// At work.
    Busy,
    /// Its turn is over, and a shell runs in the background.
    Shell,
    /// A dialog is open.
    Dialog,
    /// A word that this program does not know, or a file that cannot be read.
    Unfamiliar,
}

impl AgentSays {
    /// The word in logs.
    pub fn word(self) -> &'static str {
        match self {
            AgentSays::Idle => "idle",
            AgentSays::Busy => "busy",
            AgentSays::Shell => "shell",
            AgentSays::Dialog => "waiting for a decision",
            AgentSays::Unfamiliar => "something unknown",
        }
    }
}
