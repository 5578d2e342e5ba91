//! What the user asks for through files, and how loud something is said.
//!
//! This file does not know where the files lie.

use super::SessionId;
use crate::clock::Time;
use crate::json::{Json as _, Value};
use crate::stored::{Restored, Stored, fill};

/// The user's flag files (DESIGN 2.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `autorestart/<id>`.
    pub autorestart: Vec<SessionId>,
    /// `autostop/<id>`: the second opt-in of the ladder's last rung.
    pub autostop: Vec<SessionId>,
    /// `hold/<id>`, with the time it names.
    pub hold: Vec<(SessionId, Option<Time>)>,
    /// `pause`, with the time it names; outer `None`: no such file.
    pub pause: Option<Pause>,
    /// `clear/<id>`: requests to forget a session's failures.
    pub clear: Vec<SessionId>,
    /// Why some flags cannot be read; it counts as a pause then.
    pub trouble: Option<String>,
}

/// Whom notices may be typed to: `PARENT_NOTICE_SCOPE` (ladder 1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeScope {
    /// Nobody.
    Off,
    /// Conductor-like parents.
    Conductor,
    /// Every parent.
    Any,
}

/// The `pause` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// When the file was made.
    pub since: Time,
    /// Until when, if it names a time.
    pub until: Option<Time>,
}

/// How loud a line or a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Good to know afterwards.
    Info,
    /// Somebody may want to look.
    Warning,
    /// Somebody has to look.
    Critical,
}

impl Level {
    /// The word in logs and for `escalate.sh`.
    pub fn word(self) -> &'static str {
        match self {
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Critical => "critical",
        }
    }
}

impl Stored for Level {
    fn blank() -> Level {
        Level::Info
    }

    fn store(&mut self) -> Value {
        self.word().json()
    }

    fn restore(&mut self, value: &Value) -> Restored {
        let all = [Level::Info, Level::Warning, Level::Critical];
        fill(
            self,
            all.into_iter()
                .find(|level| value.as_str() == Some(level.word())),
        )
    }
}
