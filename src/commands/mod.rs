//! What the user asks beside the main job: is it alive, is it set up, what
//! happened, why; and the user's own words, written down as files.
//!
//! Every command reads what the daemon decides with, works with and without
//! one, and never takes the lock. This room does not know what a turn decides.
//!
//! | file | what |
//! | --- | --- |
//! | `desk.rs` | what a reading command has before it |
//! | `life.rs` | is the watchdog alive? |
//! | `find.rs` | a session by id or title |
//! | `paper.rs` | text on a terminal |

use serde_json::Value;

use crate::cli::{Ask, Exit};
use crate::config::Environment;
use crate::machine::{eprintln_quietly, println_quietly};
use paper::Paper;

pub mod desk;
pub mod doctor;
pub mod find;
pub mod paper;

/// The version of the JSON that commands print: `format`.
pub const FORMAT: u32 = 1;

/// What a command has found.
pub trait Report {
    /// For people; ends with a line break.
    fn text(&self, paper: &Paper) -> String;

    /// For programs; the shapes are in the man page.
    fn json(&self) -> Value;

    /// How the program ends.
    fn exit(&self) -> Exit {
        Exit::Done
    }
}

/// Why a command cannot do what it was asked for.
#[derive(Debug)]
pub struct Failed {
    /// How the program ends.
    pub exit: Exit,
    /// In words.
    pub why: String,
}

/// Carries a command out, and prints what it found.
pub fn run(ask: &Ask, json: bool, environment: Environment) -> Exit {
    match answer(ask, environment) {
        Ok(report) if json => {
            println_quietly(&format!("{:#}", report.json()));
            report.exit()
        }
        Ok(report) => {
            let text = report.text(&Paper::of_stdout(environment));
            println_quietly(text.trim_end_matches('\n'));
            report.exit()
        }
        Err(failed) => {
            eprintln_quietly(&format!("agent-deck-watchdog: {}", failed.why));
            failed.exit
        }
    }
}

fn answer(_ask: &Ask, _environment: Environment) -> Result<Box<dyn Report>, Failed> {
    Err(Failed {
        exit: Exit::System,
        why: "not there yet".to_owned(),
    })
}
