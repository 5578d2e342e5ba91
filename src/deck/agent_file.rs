//! What an agent says of itself: `sessions/<pid>.json` in its own configuration
//! folder (contract 6.8). Undocumented, seen in Claude Code 2.1.197.
//!
//! It forbids and never permits, so whatever is not understood forbids. This
//! file does not know what an agent is at.

use std::io::ErrorKind;
use std::path::Path;

use super::hooks::read_small;
use crate::json::Value;
use crate::model::AgentSays;

/// Real ones have 300 bytes.
const MOST: u64 = 64 << 10;

/// What process `pid` says of itself, if it says anything. `config` is the
/// agent's configuration folder, usually `~/.claude`.
pub fn agent_says(config: &Path, pid: u32) -> Option<AgentSays> {
    let path = config.join("sessions").join(format!("{pid}.json"));
    match std::fs::symlink_metadata(&path) {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return None;
        }
        Ok(_) | Err(_) => {}
    }
    let json = read_small(&path, MOST).and_then(|(_, bytes)| crate::json::read(&bytes).ok());
    let json: Value = json.unwrap_or_default();
    // Left behind by another process that had this number.
    if json
        .get("pid")
        .is_some_and(|named| named.as_u64() != Some(u64::from(pid)))
    {
        return None;
    }
    Some(match json.get("status").and_then(Value::as_str) {
        Some("idle") => AgentSays::Idle,
        Some("busy") => AgentSays::Busy,
        Some("shell") => AgentSays::Shell,
        Some("waiting") => AgentSays::Dialog,
        Some(_) | None => AgentSays::Unfamiliar,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn what_is_not_understood_forbids() {
        for (text, says) in [
            ("{\"pid\":7,\"status\":\"idle\"}", Some(AgentSays::Idle)),
            ("{\"pid\":7,\"status\":\"busy\"}", Some(AgentSays::Busy)),
            ("{\"pid\":7,\"status\":\"shell\"}", Some(AgentSays::Shell)),
            (
                "{\"pid\":7,\"status\":\"waiting\",\"waitingFor\":\"permission prompt\"}",
                Some(AgentSays::Dialog),
            ),
            (
                "{\"pid\":7,\"status\":\"asleep\"}",
                Some(AgentSays::Unfamiliar),
            ),
            ("{\"pid\":7}", Some(AgentSays::Unfamiliar)),
            ("", Some(AgentSays::Unfamiliar)),
            ("{\"pid\":7,\"sta", Some(AgentSays::Unfamiliar)),
            ("{\"pid\":8,\"status\":\"busy\"}", None),
        ] {
            let home = Scratch::new();
            home.write("sessions/7.json", text);
            assert_eq!(agent_says(home.path(), 7), says, "{text}");
            assert_eq!(agent_says(home.path(), 9), None);
        }
        assert_eq!(agent_says(Path::new("/nowhere"), 7), None);
    }
}
