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
//! | `ladder.rs` | where a child stands on the ladder, what waits for a parent |
//! | `paper.rs` | text on a terminal |
//! | `packed.rs` | what is printed, packed |

use std::io::{ErrorKind, Write};
use std::time::SystemTime;

use crate::cli::{Ask, Exit, When};
use crate::clock::wall_of;
use crate::config::{Environment, Settings};
use crate::host::logs::plain_json;
use crate::json::Value;
use crate::machine::eprintln_quietly;
use desk::Desk;
use history::History;
use paper::Paper;

pub mod desk;
pub mod doctor;
pub mod explain;
pub mod find;
pub mod history;
pub mod ladder;
pub mod life;
mod packed;
pub mod paper;
pub mod print;
pub mod rehearse;
pub mod rows;
pub mod status;
pub mod words;

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

impl Failed {
    /// That exit code, for that reason.
    pub fn new(exit: Exit, why: String) -> Failed {
        Failed { exit, why }
    }
}

/// Carries a command out, and prints what it found.
pub fn run(ask: &Ask, json: bool, environment: Environment) -> Exit {
    let mut exit = Exit::Done;
    let mut written = Ok(());
    let done = answer(ask, environment, &mut |report| {
        let text = if json {
            plain_json(&format!("{:#}\n", report.json()))
        } else {
            report.text(&Paper::of_stdout(environment))
        };
        written = out(&text);
        exit = report.exit();
    });
    match done.and(written) {
        Ok(()) => exit,
        Err(failed) => {
            eprintln_quietly(&format!("agent-deck-watchdog: {}", failed.why));
            failed.exit
        }
    }
}

/// Prints a text as it is. A reader that left has read enough.
///
/// # Errors
/// When it does not go out, such as on a full disk.
pub fn out(text: &str) -> Result<(), Failed> {
    // It ends with a line break, with which it goes out.
    match write!(std::io::stdout(), "{text}") {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            let why = format!("the answer cannot be printed: {e}");
            Err(Failed::new(Exit::System, why))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Carries a command out, and shows what it found.
fn answer(
    ask: &Ask,
    environment: Environment,
    show: &mut dyn FnMut(&dyn Report),
) -> Result<(), Failed> {
    // These three have to work whatever is broken, print with any environment.
    if let Ask::Print(what) = ask {
        return print::print(what, environment);
    }
    if let Ask::History { since, session } = ask {
        show(&night(*since, session.as_deref(), environment)?);
        return Ok(());
    }
    if let Ask::Doctor { send_test } = ask {
        show(&doctor::doctor(environment, *send_test));
        return Ok(());
    }
    let mut desk = Desk::open(environment)?;
    let done = match ask {
        Ask::Status { all } => {
            desk.list();
            desk.examine_dead();
            show(&status::status(&desk, *all));
            return Ok(());
        }
        Ask::Explain(session) => {
            desk.list();
            let known = find::find(&desk, session)?;
            show(&explain::explain(&mut desk, &known)?);
            return Ok(());
        }
        Ask::Rehearse(session) => {
            desk.list();
            let known = find::find(&desk, session)?;
            show(&rehearse::rehearse(&mut desk, &known));
            return Ok(());
        }
        Ask::Clear(session) => words::clear(&mut desk, session, environment),
        Ask::Watch { session, off } => words::watch(&mut desk, session, *off, environment),
        Ask::Hold { session, until } => words::hold(&mut desk, Some(session), *until, environment),
        Ask::Pause(until) => words::hold(&mut desk, None, *until, environment),
        // Answered above.
        Ask::Doctor { .. } | Ask::History { .. } | Ask::Print(_) => return Ok(()),
    };
    show(&done?);
    Ok(())
}

/// What the logs say from a moment on.
fn night(since: When, session: Option<&str>, environment: Environment) -> Result<History, Failed> {
    let settings = Settings::read(environment);
    let settings = settings.map_err(|why| Failed::new(Exit::Usage, why))?;
    let now = wall_of(SystemTime::now());
    let from = match since {
        When::Span(span) => now.minus(span),
        When::At(at) => at,
    };
    history::history(&settings.folder(), from, now, session)
}
