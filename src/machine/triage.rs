//! The user's triage program: started beside the loop, reaped when it ends,
//! ended with its whole group at its time-out (ladder 1.12).
//!
//! What it says is read by `ladder/triage.rs` and kept nowhere. This file does
//! not know when it is asked, nor what follows.

use std::path::PathBuf;
use std::time::Duration;

use crate::host::exec::{self, Call, End, Running};
use crate::host::trust;
use crate::ladder::triage::{self, Answer, Case, Heard};
use crate::model::SessionId;

/// Most bytes of output; one word is wanted.
const OUTPUT: usize = 64 * 1024;

/// The program, and what became of it.
pub struct Triage {
    /// Absolute path; `None`: there is none.
    program: Option<PathBuf>,
    timeout: Duration,
    running: Option<(Running, SessionId)>,
    heard: Option<Heard>,
}

impl Triage {
    /// Nothing is under way.
    pub fn new(program: Option<PathBuf>, timeout: Duration) -> Triage {
        Triage {
            program,
            timeout,
            running: None,
            heard: None,
        }
    }

    /// Starts the program on the text of a child's screen, unless others could have
    /// changed it. What does not start has answered.
    pub fn start(&mut self, case: &Case, text: &str) {
        let waited = case.waited.as_secs().to_string();
        let nudges = case.nudges.to_string();
        let variables = [
            ("AGENT_DECK_TRIAGE_ID", case.id.as_str()),
            ("AGENT_DECK_TRIAGE_TITLE", &case.title),
            ("AGENT_DECK_TRIAGE_TOOL", &case.tool),
            ("AGENT_DECK_TRIAGE_GROUP", &case.group),
            ("AGENT_DECK_TRIAGE_WAITING_S", &waited),
            ("AGENT_DECK_TRIAGE_NUDGES", &nudges),
        ];
        let program = self.program.clone().unwrap_or_default();
        if trust::other_hands(&program).is_some() {
            return self.answers(case, triage::fallback("others may change it: not run"));
        }
        let call = Call {
            program: &program,
            args: &[],
            deadline: self.timeout,
            most: OUTPUT,
            extra_env: &variables,
            keep_token: false,
        };
        match exec::start_with(&call, text.as_bytes()) {
            Ok(running) => self.running = Some((running, case.id.clone())),
            Err(why) => self.answers(case, meaning(&End::from(why))),
        }
    }

    /// It answers at once.
    fn answers(&mut self, case: &Case, answer: Answer) {
        self.heard = Some(Heard {
            id: case.id.clone(),
            answer,
            took: Duration::ZERO,
        });
    }

    /// While an answer is to come: how long to wait at most before looking again.
    pub fn next_look(&self) -> Option<Duration> {
        let running = self.running.as_ref();
        let here = self.heard.as_ref().map(|_| Duration::ZERO);
        here.or(running.map(|(running, _)| running.next_look()))
    }

    /// Ends it if it is late or says too much, and takes its answer if it has one.
    pub fn look(&mut self) {
        let Some((running, id)) = &mut self.running else {
            return;
        };
        let took = running.age();
        let Some(end) = running.poll_or_kill() else {
            return;
        };
        self.heard = Some(Heard {
            id: id.clone(),
            answer: meaning(&end),
            took,
        });
        self.running = None;
    }

    /// Its answer, once.
    pub fn heard(&mut self) -> Option<Heard> {
        self.look();
        self.heard.take()
    }
}

impl Drop for Triage {
    /// Nobody is there any more who would end it at its time-out.
    fn drop(&mut self) {
        if let Some((running, _)) = self.running.take() {
            running.end();
        }
    }
}

fn meaning(end: &End) -> Answer {
    match end {
        End::Exited { overflow: true, .. } => triage::fallback("it said too much"),
        End::Exited { code, stdout, .. } => triage::read(*code, stdout),
        End::Late => triage::fallback("it did not answer in time"),
        End::NoProgram(_) => triage::fallback("it cannot be run"),
        End::NoProcess(_) => triage::fallback("the machine could not start it"),
    }
}

#[cfg(test)]
#[path = "triage_tests.rs"]
mod tests;
