//! Running agent-deck: commands that read and may be ended, and commands that
//! change something and never are.
//!
//! This file does not know why they are run.

use std::time::Duration;

use super::{ANSWER_MOST, Machine};
use crate::capabilities::patrol;
use crate::deck::answers::{self, Raw};
use crate::deck::argv::{self, READ_DEADLINE};
use crate::host::exec::{self, Call, End};
use crate::ladder::triage::Case;
use crate::model::{Delivery, NoAnswer, ProcessMark, Restarted, SessionId, Stopped};

/// How a command that only reads ends on TERM or INT, as shells say it.
const INTERRUPTED: i32 = 130;

impl Machine {
    /// Runs a reading command of agent-deck to its end.
    pub(super) fn ask(
        &mut self,
        args: &[String],
        deadline: Duration,
        most: usize,
    ) -> Result<Output, NoAnswer> {
        let program = self.program.find().map_err(NoAnswer::NoProgram)?;
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let places = self.places();
        let places: Vec<(&str, &str)> = places.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let call = Call {
            program: &program,
            args: &args,
            deadline,
            most,
            extra_env: &places,
            keep_token: false,
        };
        let reads = self.kept.is_some();
        let (pulse, triage) = (&mut self.pulse, &mut self.triage);
        let mut rest = |longest| {
            pulse.rest(longest);
            triage.look();
            if reads && pulse.wait.terminating() {
                // Nothing is at stake, and a person waits.
                std::process::exit(INTERRUPTED);
            }
        };
        match exec::run(&call, &mut rest) {
            End::Exited { overflow: true, .. } => {
                Err(NoAnswer::Garbage(format!("more than {most} bytes")))
            }
            End::Exited {
                code,
                stdout,
                stderr,
                ..
            } => Ok(Output {
                code,
                stdout,
                stderr,
            }),
            End::Late => Err(NoAnswer::Late),
            End::NoProgram(why) => {
                self.program.forget();
                Err(NoAnswer::NoProgram(why))
            }
            End::NoProcess(why) => Err(NoAnswer::Failed(why)),
        }
    }

    /// Starts a command that changes something; it is never ended.
    pub(super) fn begin(
        &mut self,
        args: &[String],
        deadline: Duration,
        id: &SessionId,
    ) -> Result<ProcessMark, String> {
        // Another one may have taken our place since the last turn.
        if self
            .pulse
            .lock
            .as_ref()
            .is_some_and(|lock| !lock.still_ours())
        {
            return Err("our lock file was deleted or replaced".to_owned());
        }
        let program = self.program.find()?;
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let call = Call {
            program: &program,
            args: &args,
            deadline,
            most: ANSWER_MOST,
            extra_env: &[],
            keep_token: false,
        };
        let running = exec::start(&call).map_err(String::from)?;
        let mark = running.mark();
        self.running = Some((running, id.clone()));
        Ok(mark)
    }

    /// Waits for it up to its deadline. `None`: it is left running.
    pub(super) fn finish(&mut self) -> Option<(End, SessionId)> {
        let (mut running, id) = self.running.take()?;
        loop {
            if let Some(end) = running.poll_end() {
                return Some((end, id));
            }
            if running.is_late() {
                self.left_running.push(running);
                return None;
            }
            self.pulse.rest(running.next_look());
            self.triage.look();
        }
    }

    /// Asks the triage program about a child whose screen is still the one that
    /// makes it due. Its text goes from agent-deck to the program, and nowhere else.
    pub(super) fn ask_about(&mut self, case: &Case) -> Result<(), String> {
        if self.triage.next_look().is_some() {
            return Err("the program still runs".to_owned());
        }
        let args = argv::pane(&case.profile, &case.id);
        let output = self.ask(&args, READ_DEADLINE, ANSWER_MOST);
        let read = output.and_then(|output| answers::plain(&output.raw(), &case.id));
        let Some((screen, text)) = read.map_err(|why| why.to_string())? else {
            return Err("its terminal is gone".to_owned());
        };
        if screen.decision || patrol::digest(&screen) != case.digest {
            return Err("its screen changes".to_owned());
        }
        self.triage.start(case, &text);
        Ok(())
    }
}

/// What the end of a restart command means.
pub(super) fn restarted(end: &End, id: &SessionId) -> Restarted {
    match end {
        End::Exited {
            code,
            stdout,
            stderr,
            ..
        } => answers::restart(
            &Raw {
                code: *code,
                stdout,
                stderr,
            },
            id,
        ),
        End::Late => Restarted::Unknown("no answer in time".to_owned()),
        End::NoProgram(why) | End::NoProcess(why) => Restarted::NotStarted(why.clone()),
    }
}

/// What the end of a send command means.
pub(super) fn delivered(end: &End, id: &SessionId) -> Delivery {
    match end {
        End::Exited {
            code,
            stdout,
            stderr,
            ..
        } => answers::send(
            &Raw {
                code: *code,
                stdout,
                stderr,
            },
            id,
        ),
        End::Late => Delivery::Unknown("no answer in time".to_owned()),
        End::NoProgram(why) | End::NoProcess(why) => Delivery::NotStarted(why.clone()),
    }
}

/// What the end of a stop command means.
pub(super) fn stopped(end: &End, id: &SessionId) -> Stopped {
    match end {
        End::Exited {
            code,
            stdout,
            stderr,
            ..
        } => answers::stop(
            &Raw {
                code: *code,
                stdout,
                stderr,
            },
            id,
        ),
        End::Late => Stopped::Unknown("no answer in time".to_owned()),
        End::NoProgram(why) | End::NoProcess(why) => Stopped::NotStarted(why.clone()),
    }
}

/// What a command of agent-deck left behind.
pub(super) struct Output {
    /// `None`: a signal ended it.
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Output {
    pub(super) fn raw(&self) -> Raw<'_> {
        Raw {
            code: self.code,
            stdout: &self.stdout,
            stderr: &self.stderr,
        }
    }
}
