//! What is on a terminal, as far as a watchdog wants to know.
//!
//! Classes and digests, no word of what stands there. This file does not know
//! how a screen is read, nor what follows from it.

use super::Digest;

/// A screen that was read. No field holds a word of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screen {
    /// SHA-256 of the bytes as they came.
    pub raw: Digest,
    /// SHA-256 of what a person would call its content (contract 4.3).
    pub content: Digest,
    /// Why nothing may be typed into a Claude session that shows this.
    /// `None`: a free composer is positively there.
    pub claude: Option<Silence>,
    /// The same for a tool whose composer is not known. `None`: there is no
    /// sign of a menu, question, dialog or draft.
    pub other: Option<Silence>,
    /// A decision is asked for: dialog, question, menu, plan approval (ladder
    /// 1.5). Supports telling; its absence permits nothing.
    pub decision: bool,
    /// What that decision is about, such as `a permission`; empty without one.
    pub asks: &'static str,
    /// The footer says that a shell or task runs in the background: a restart
    /// would lose it.
    pub background: bool,
}

/// Why nothing is typed into a session that shows this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Nothing is on the screen.
    Empty,
    /// A dialog, question or approval is open; typing could answer it.
    Dialog,
    /// The agent's input box is not where it should be: a panel without known
    /// words, another program, another version, an ended agent.
    NoComposer,
    /// Somebody's text stands in the input box, or text that cannot be told
    /// from it.
    Draft,
    /// The input box is empty but for a dim proposal of the agent. agent-deck
    /// takes it for a draft (recordings, section 5); nothing else forbids to
    /// type, and whether to do so is the caller's choice.
    Suggestion,
    /// A message waits until the agent is done. A send would kill the running
    /// tool (recordings, section 5).
    Queued,
    /// What is typed would run as a shell command.
    ShellMode,
    /// A menu, a help text, a pager or an editor is open at the input box.
    Menu,
    /// A search in the history is open.
    Search,
    /// The agent works, or asks its server again by itself.
    Busy,
    /// The agent cannot log in or has no credit, or a password is asked for.
    Credentials,
    /// The agent's last words are that it was refused for a limit of use.
    UsageLimit,
    /// A user broke off the last turn and has not gone on.
    Interrupted,
    /// The input box is empty, but something that is not known stands at it.
    Unclear,
}

impl Silence {
    /// One word for logs.
    pub fn word(self) -> &'static str {
        match self {
            Silence::Empty => "empty",
            Silence::Dialog => "dialog",
            Silence::NoComposer => "no-composer",
            Silence::Draft => "draft",
            Silence::Suggestion => "suggestion",
            Silence::Queued => "queued",
            Silence::ShellMode => "shell-mode",
            Silence::Menu => "menu",
            Silence::Search => "search",
            Silence::Busy => "busy",
            Silence::Credentials => "credentials",
            Silence::UsageLimit => "usage-limit",
            Silence::Interrupted => "interrupted",
            Silence::Unclear => "unclear",
        }
    }
}
