//! `escalate.sh`: started beside the loop, reaped when it ends, ended at its
//! deadline. Its output is not kept: it might name a secret.
//!
//! This file does not know what is told, nor when.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::host::exec::{self, Call, End, Running};
use crate::host::trust;
use crate::model::Level;
use crate::world::{Channel, Sent};

/// A message has this long to get out (DESIGN 2.4).
pub const DEADLINE: Duration = Duration::from_secs(60);
/// Exit code that means: try again (DESIGN 2.4).
pub const TRY_AGAIN: i32 = 75;
/// The longest wait that a script may ask for.
const RETRY_MOST: u64 = 86_400;
/// Output that is looked through for `retry-after`.
const OUTPUT: usize = 64 * 1024;

/// The way out.
pub struct Escalation {
    script: PathBuf,
    has_chat: bool,
    running: Option<Running>,
    outcome: Option<Sent>,
}

impl Escalation {
    /// Nothing is under way.
    pub fn new(folder: &Path, chat_id: &str) -> Escalation {
        Escalation {
            script: folder.join("escalate.sh"),
            has_chat: !chat_id.is_empty(),
            running: None,
            outcome: None,
        }
    }

    /// Where messages go at present.
    pub fn channel(&self) -> Channel {
        let usable = self
            .script
            .metadata()
            .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
        if usable && self.has_chat {
            Channel::Script
        } else {
            Channel::LocalOnly
        }
    }

    /// Starts the script, unless others could have changed it.
    pub fn start(&mut self, level: Level, message: &str) {
        if let Some(hands) = trust::other_hands(&self.script) {
            let why = format!("escalate.sh: not run, since {hands}");
            self.outcome = Some(Sent::Refused(why));
            return;
        }
        let args = [level.word(), message];
        let call = Call {
            program: &self.script,
            args: &args,
            deadline: DEADLINE,
            most: OUTPUT,
            extra_env: &[],
            keep_token: true,
        };
        match exec::start(&call) {
            Ok(running) => self.running = Some(running),
            Err(why) => self.outcome = Some(meaning(&End::from(why))),
        }
    }

    /// Whether a message is under way, or nobody has heard yet what became of it.
    pub fn is_open(&self) -> bool {
        self.running.is_some() || self.outcome.is_some()
    }

    /// Its outcome, once.
    pub fn outcome(&mut self) -> Option<Sent> {
        if let Some(end) = self.running.as_mut().and_then(Running::poll_or_kill) {
            self.running = None;
            self.outcome = Some(meaning(&end));
        }
        self.outcome.take()
    }
}

fn meaning(end: &End) -> Sent {
    match end {
        End::Exited { code: Some(0), .. } => Sent::Delivered,
        End::Exited {
            code: Some(TRY_AGAIN),
            stdout,
            ..
        } => Sent::TryAgain(retry_after(stdout)),
        End::Exited {
            code: Some(code), ..
        } => Sent::Refused(format!("escalate.sh: exit {code}")),
        End::Exited { code: None, .. } => {
            Sent::Refused("escalate.sh: ended by a signal".to_owned())
        }
        End::Late => Sent::Refused("escalate.sh: ended at its deadline, perhaps sent".to_owned()),
        End::NoProgram(why) => Sent::Refused(why.clone()),
        End::NoProcess(_) => Sent::TryAgain(Duration::ZERO),
    }
}

/// The line `retry-after: N`, in seconds.
fn retry_after(output: &[u8]) -> Duration {
    let text = String::from_utf8_lossy(output);
    let seconds = text.lines().find_map(|line| {
        line.trim()
            .strip_prefix("retry-after:")?
            .trim()
            .parse::<u64>()
            .ok()
    });
    Duration::from_secs(seconds.unwrap_or(0).min(RETRY_MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_may_ask_for_time() {
        for (output, seconds) in [
            ("retry-after: 40\n", 40),
            ("sorry\n retry-after:7", 7),
            ("retry-after: soon", 0),
            ("retry-after: 99999999", 86_400),
            ("", 0),
        ] {
            assert_eq!(
                retry_after(output.as_bytes()),
                Duration::from_secs(seconds),
                "{output:?}"
            );
        }
    }
}
