//! Why a session that reads dead is left alone: the reasons of capability 1
//! that are no guardrails.
//!
//! This file does not know how they are found out.

use crate::clock::Time;

/// Why a session is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which rule.
    pub cause: Cause,
    /// In words, with the numbers.
    pub sentence: String,
    /// When to look again; `None`: with the usual distances.
    pub again: Option<Time>,
}

/// The rules of this capability that refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// agent-deck does not call it dead.
    NotDead,
    /// Stopped on purpose.
    Stopped,
    /// A command that stops it is under way.
    BeingStopped,
    /// Archived.
    Archived,
    /// A login problem.
    AuthHold,
    /// It never ran.
    NeverRan,
    /// Younger than a minute.
    Young,
    /// Its agent may be alive.
    MaybeAlive,
    /// Its terminal stands and is no bare shell.
    TerminalStands,
    /// Its spawn lock is held.
    SpawnLock,
    /// An agent-deck command that changes something runs.
    OtherCommand,
    /// Somebody writes the profile's database.
    DatabaseBusy,
    /// agent-deck's Python watchdog runs on this deck.
    OtherWatchdog,
    /// What is seen from here proves nothing.
    WrongEyes,
    /// agent-deck did not answer.
    NoAnswer,
}

impl Cause {
    /// The word in logs.
    pub fn word(self) -> &'static str {
        match self {
            Cause::NotDead => "not-dead",
            Cause::Stopped => "stopped",
            Cause::BeingStopped => "being-stopped",
            Cause::Archived => "archived",
            Cause::AuthHold => "auth-hold",
            Cause::NeverRan => "never-ran",
            Cause::Young => "young",
            Cause::MaybeAlive => "maybe-alive",
            Cause::TerminalStands => "terminal-stands",
            Cause::SpawnLock => "spawn-lock",
            Cause::OtherCommand => "other-command",
            Cause::DatabaseBusy => "database-busy",
            Cause::OtherWatchdog => "other-watchdog",
            Cause::WrongEyes => "wrong-eyes",
            Cause::NoAnswer => "no-answer",
        }
    }

    /// Whether a person has to hear of it when it lasts (DESIGN 1.1, promise 4).
    pub fn is_told(self) -> bool {
        match self {
            // Nobody has ever seen these alive, or somebody wanted them so; a
            // login problem has an episode of its own.
            Cause::NotDead
            | Cause::Stopped
            | Cause::BeingStopped
            | Cause::Archived
            | Cause::NeverRan
            | Cause::AuthHold => false,
            Cause::Young
            | Cause::MaybeAlive
            | Cause::TerminalStands
            | Cause::SpawnLock
            | Cause::OtherCommand
            | Cause::DatabaseBusy
            | Cause::OtherWatchdog
            | Cause::WrongEyes
            | Cause::NoAnswer => true,
        }
    }
}
