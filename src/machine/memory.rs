//! The state file at the start of a run: read back, or set aside.
//!
//! A memory that was lost begins spent, never fresh; only a folder that has
//! never been used starts fresh (DESIGN 3.5). This file does not know what is
//! remembered.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::clock::Clock;
use crate::host::folder;
use crate::state::State;

/// Name of the state file.
pub const STATE: &str = "state.json";
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

/// A folder has been used when something was restarted from it, or a state was
/// set aside in it.
fn was_used(folder: &Path) -> bool {
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
        || fs::read_dir(folder).is_ok_and(|mut entries| entries.any(broken))
}
