//! What is looked at before a session is called dead, and what a judgement says.
//!
//! This file does not know how one looks, nor how one judges.

use super::cause::Refusal;
use crate::clock::Time;
use crate::model::{NoAnswer, Pane, Session, Shown, Sight, Traces};
use crate::state::Memory;

/// What has been looked at so far; `None` where it has not.
#[derive(Clone, Debug)]
pub struct Look<'a> {
    /// The row of the last good list.
    pub row: &'a Session,
    /// What is remembered of it.
    pub memory: &'a Memory,
    /// agent-deck's files about it.
    pub traces: Traces,
    /// The machine's processes before agent-deck was asked.
    pub before: &'a Sight,
    /// The machine's processes after agent-deck was asked.
    pub after: Option<Sight>,
    /// `session show`.
    pub shown: Option<Result<Shown, NoAnswer>>,
    /// `session output --pane`.
    pub pane: Option<Result<Pane, NoAnswer>>,
    /// Its row in a list of this moment, asked for while a user interface runs.
    pub listed: Option<Result<Session, NoAnswer>>,
    /// The first of two looks.
    pub first: Option<FirstLook>,
    /// The end of its pane process was witnessed.
    pub witnessed: bool,
    /// Other sessions of this deck are listed alive and none of their
    /// processes can be seen: these eyes see nothing.
    pub blind: Option<String>,
    /// Sessions of this deck read dead while their agents live, and none is
    /// listed alive: these eyes look at the wrong place.
    pub wrong_place: Option<String>,
    /// Life was seen through these eyes since boot.
    pub life_seen: bool,
    /// The list is no longer fresh.
    pub stale: bool,
    /// Commands of ours that still run; the guard knows them.
    pub own: Vec<u32>,
}

/// The first of two looks that have to agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstLook {
    /// When.
    pub at: Time,
    /// What was seen.
    pub pane: Pane,
}

/// What `judge` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Ask `session show`.
    AskShow,
    /// Ask `session output --pane`.
    AskPane,
    /// List its profile once more.
    AskList,
    /// Look at the processes once more.
    AskProcesses,
    /// Look at everything again at that moment; this look was the first.
    LookAgain(Time, FirstLook),
    /// Leave it alone.
    Leave(Refusal),
    /// It is dead; the evidence in words.
    Dead(String),
}
