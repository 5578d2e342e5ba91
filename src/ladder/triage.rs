//! What a triage program is asked and what it may answer: one of three words,
//! and nothing else (ladder 1.12).
//!
//! Deliberately strict: who looks for a word in a text takes `do not terminate`
//! for `terminate`. No text of the program gets beyond this file. It does not
//! know how the program is run, nor what follows from its answer.

use std::time::Duration;

use crate::clock::Time;
use crate::model::{Profile, SessionId};

/// Programs that may be started in a turn, over all children (ladder 1.2).
pub const TRIAGES_PER_TICK: u32 = 1;

/// What it may advise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Ask the child once more.
    Retry,
    /// Give it more time.
    Extend,
    /// Somebody should stop it.
    Terminate,
}

/// The words for it, in any case.
const WORDS: [Advice; 3] = [Advice::Retry, Advice::Extend, Advice::Terminate];

impl Advice {
    /// The word, in answers and logs.
    pub fn word(self) -> &'static str {
        match self {
            Advice::Retry => "retry",
            Advice::Extend => "extend",
            Advice::Terminate => "terminate",
        }
    }
}

/// An answer as it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What it advises.
    pub advice: Advice,
    /// Why more time is given although it did not advise that.
    pub fallback: Option<&'static str>,
}

/// No usable answer: more time.
pub fn fallback(why: &'static str) -> Answer {
    Answer {
        advice: Advice::Extend,
        fallback: Some(why),
    }
}

/// Reads what a program has said before it ended with this code; `None`: a
/// signal ended it.
pub fn read(code: Option<i32>, output: &[u8]) -> Answer {
    match code {
        Some(0) => {}
        Some(_) => return fallback("it failed"),
        None => return fallback("a signal ended it"),
    }
    let mut lines = output.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let Some(line) = lines.find(|line| !line.is_empty()) else {
        return fallback("it said nothing");
    };
    let said = |advice: &Advice| line.eq_ignore_ascii_case(advice.word().as_bytes());
    match WORDS.into_iter().find(said) {
        Some(advice) => Answer {
            advice,
            fallback: None,
        },
        None => fallback("its first line is none of the three words"),
    }
}

/// A child about which a program is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its profile.
    pub profile: Profile,
    /// Full id.
    pub id: SessionId,
    /// Its title, harmless.
    pub title: String,
    /// Its tool, harmless.
    pub tool: String,
    /// Its group, harmless.
    pub group: String,
    /// The digest of the screen that makes it due.
    pub digest: String,
    /// So long it waits on that screen.
    pub waited: Duration,
    /// Times that it was asked in this episode.
    pub nudges: u32,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The child.
    pub id: SessionId,
    /// The answer.
    pub answer: Answer,
    /// The program took so long.
    pub took: Duration,
}

/// Whose turn it is among those that are due, each with its last triage: whoever
/// has waited for one longest, and whoever never had one before all others.
pub fn next<T>(due: impl IntoIterator<Item = (T, Option<Time>)>) -> Option<T> {
    let oldest = due.into_iter().min_by_key(|(_, triaged)| *triaged);
    oldest.map(|(child, _)| child)
}

#[cfg(test)]
#[path = "triage_tests.rs"]
mod tests;
