//! The state file at the start of a run: read back, or set aside.
//!
//! A memory that was lost begins spent, never fresh; only a folder that has
//! never been used starts fresh (DESIGN 3.5). This file does not know what is
//! remembered.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::clock::{Clock, Time};
use crate::host::folder;
use crate::state::State;

/// Name of the state file.
pub const STATE: &str = "state.json";
/// A log bounds itself at 8 MiB (DESIGN 2.3).
const LOG_MOST: u64 = 16 * 1024 * 1024;
/// How the line of a nudge reads.
const NUDGED: &[u8] = crate::report::ASKED.as_bytes();
/// A thousand sessions take less than one MiB.
const STATE_MOST: u64 = 64 * 1024 * 1024;

/// What was found.
pub enum Found {
    /// A state, read back or fresh.
    State(State),
    /// The state was lost: this one is spent, and why.
    Lost(State, String),
    /// Something lies there that must not be touched.
    Refused(String),
}

/// Reads the state of an earlier run. `set_aside` renames a broken one, so that
/// it can be looked at and is not met again.
pub fn load(folder: &Path, clock: &Clock, set_aside: bool) -> Found {
    let path = folder.join(STATE);
    let now = clock.now();
    let bytes = match folder::read_small(&path, STATE_MOST) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == ErrorKind::NotFound && was_used(folder) => {
            let why = format!("{STATE} is missing from a folder that has been used");
            return Found::Lost(State::spent(now), why);
        }
        Err(e) if e.kind() == ErrorKind::NotFound => return Found::State(State::default()),
        Err(e) => return Found::Refused(e.to_string()),
    };
    match State::decode(&bytes, now, &clock.reading()) {
        Ok(state) => Found::State(state),
        Err(why) => {
            let aside = format!("{STATE}.broken-{}", clock.reading().wall / 1000);
            let kept = set_aside && fs::rename(&path, folder.join(&aside)).is_ok();
            let aside = if kept {
                format!(", set aside as {aside}")
            } else {
                String::new()
            };
            Found::Lost(
                State::spent(now),
                format!("{STATE} cannot be read ({why}){aside}"),
            )
        }
    }
}

/// When a run last completed a turn: its state file is touched then.
pub fn last_turn(folder: &Path, clock: &Clock) -> Option<Time> {
    let touched = fs::metadata(folder.join(STATE)).ok()?.modified().ok()?;
    Some(clock.from_system(touched).min(clock.now()))
}

/// A folder has been used when something was restarted or asked from it, or a
/// state was set aside in it.
fn was_used(folder: &Path) -> bool {
    let asked = |name: &str| {
        let log = folder::read_small(&folder.join(name), LOG_MOST).unwrap_or_default();
        let mut lines = log.split(|&byte| byte == b'\n');
        lines.any(|line| line.windows(NUDGED.len()).any(|part| part == NUDGED))
    };
    let written = |name: &str| fs::metadata(folder.join(name)).is_ok_and(|m| m.len() > 0);
    let broken = |entry: Result<fs::DirEntry, std::io::Error>| {
        entry.is_ok_and(|e| {
            e.file_name()
                .to_string_lossy()
                .starts_with("state.json.broken-")
        })
    };
    written("restart.log")
        || written("restart.log.1")
        || asked("watchdog.log")
        || asked("watchdog.log.1")
        || fs::read_dir(folder).is_ok_and(|mut entries| entries.any(broken))
}
