//! What the machine shows of its processes.
//!
//! This file does not know how one looks.

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
