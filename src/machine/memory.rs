//! The state file at the start of a run: read back, or set aside.
//!
//! A memory that was lost begins spent, never fresh; only a folder that has
//! never been used starts fresh (DESIGN 3.5). agent-deck's Python watchdog used
//! the same folder and kept its memory to itself: what it restarted a minute ago
//! is not known, so a folder taken over from it begins spent as well. This file
//! does not know what is remembered.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::clock::{Clock, Time};
use crate::host::folder;
use crate::model::Level;
use crate::state::State;

/// Name of the state file.
pub const STATE: &str = "state.json";
/// One that cannot be read is renamed; the second of that follows.
const BROKEN: &str = "state.json.broken-";
/// A log bounds itself at 8 MiB (DESIGN 2.3).
const LOG_MOST: u64 = 16 * 1024 * 1024;
/// How the line of a nudge reads.
const NUDGED: &[u8] = crate::report::ASKED.as_bytes();
/// Stands in each line of our `restart.log`, and in none of the Python watchdog's.
const OURS: &[u8] = b"\"capability\"";
/// A thousand sessions take less than one MiB.
const STATE_MOST: u64 = 64 * 1024 * 1024;

/// What was found.
pub enum Found {
    /// A state, read back or fresh.
    State(State),
    /// There was another memory: this one is spent, and how bad that is and why.
    Lost(State, Level, String),
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
            return Found::Lost(State::spent(now), Level::Critical, why);
        }
        Err(e) if e.kind() == ErrorKind::NotFound && has_restart_log(folder) => {
            let why = "this folder is taken over from another watchdog, as its restart.log shows";
            return Found::Lost(State::spent(now), Level::Warning, why.to_owned());
        }
        Err(e) if e.kind() == ErrorKind::NotFound => return Found::State(State::default()),
        Err(e) => return Found::Refused(e.to_string()),
    };
    match State::decode(&bytes, now, &clock.reading()) {
        Ok(state) => Found::State(state),
        Err(why) => {
            let mut seconds = clock.reading().wall / 1000;
            let aside = loop {
                let aside = format!("{BROKEN}{seconds}");
                if fs::symlink_metadata(folder.join(&aside)).is_err() {
                    break aside;
                }
                seconds += 1;
            };
            let kept = set_aside && fs::rename(&path, folder.join(&aside)).is_ok();
            let aside = if kept {
                format!(", set aside as {aside}")
            } else {
                String::new()
            };
            let why = format!("{STATE} cannot be read ({why}){aside}");
            Found::Lost(State::spent(now), Level::Critical, why)
        }
    }
}

/// When a run last completed a turn: its state file is touched then.
pub fn last_turn(folder: &Path, clock: &Clock) -> Option<Time> {
    let touched = fs::metadata(folder.join(STATE)).ok()?.modified().ok()?;
    Some(clock.from_system(touched).min(clock.now()))
}

/// A folder has been used by us when something was restarted or asked from it, or
/// a state was set aside in it.
fn was_used(folder: &Path) -> bool {
    let says = |name: &str, words: &[u8]| {
        let log = folder::read_small(&folder.join(name), LOG_MOST).unwrap_or_default();
        log.windows(words.len()).any(|part| part == words)
    };
    let broken = |entry: Result<fs::DirEntry, std::io::Error>| {
        entry.is_ok_and(|e| e.file_name().to_string_lossy().starts_with(BROKEN))
    };
    says("restart.log", OURS)
        || says("restart.log.1", OURS)
        || says("watchdog.log", NUDGED)
        || says("watchdog.log.1", NUDGED)
        || fs::read_dir(folder).is_ok_and(|mut entries| entries.any(broken))
}

/// Whether somebody has restarted something from here.
fn has_restart_log(folder: &Path) -> bool {
    let written = |name: &str| fs::metadata(folder.join(name)).is_ok_and(|log| log.len() > 0);
    written("restart.log") || written("restart.log.1")
}
