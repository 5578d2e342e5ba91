//! The argument lists of the agent-deck commands that the watchdog uses, and
//! how long each may take.
//!
//! The profile stands before the subcommand (contract 1.1), sessions are named
//! by full id (contract 3.3), and no argument is other people's text, but for
//! titles in the line of a notice, which were made harmless before.
//!
//! This file does not know which program gets them, nor what it answers.

use std::time::Duration;

use crate::model::{Profile, SessionId};

/// `list`: 30 s (DESIGN 3.1). 50 rows take 0.3 s; a stuck tmux server makes it
/// 32 s a row and a lie (contract 11).
pub const LIST_DEADLINE: Duration = Duration::from_secs(30);
/// Every other reading command: 15 s (DESIGN 3.1). They take 0.06 s (contract 14.1).
pub const READ_DEADLINE: Duration = Duration::from_secs(15);
/// `session restart`: 180 s (DESIGN 3.1), after which it is left to itself, never
/// ended: killed half way it leaves an agent that agent-deck cannot see (contract 5.1).
pub const RESTART_DEADLINE: Duration = Duration::from_secs(180);

/// `session send`: 60 s (DESIGN 3.1), never ended either: killed half way it
/// leaves typed text in the composer (contract 5.5). It takes 1 to 15 s.
pub const SEND_DEADLINE: Duration = Duration::from_secs(60);
/// `session stop`: 60 s (contract 5.4), never ended either. It takes 0.1 to 3 s.
pub const STOP_DEADLINE: Duration = Duration::from_secs(60);
/// What a waiting child is asked (the manual). No flag, no heartbeat (contract 5.5).
const QUESTION: &str = "report status?";

/// All rows of one profile, with their statuses.
pub fn list(profile: &Profile) -> Vec<String> {
    owned(&["-p", profile.as_str(), "list", "--json"])
}

/// One session.
pub fn show(profile: &Profile, id: &SessionId) -> Vec<String> {
    owned(&[
        "-p",
        profile.as_str(),
        "session",
        "show",
        id.as_str(),
        "--json",
    ])
}

/// The text on one session's terminal.
pub fn pane(profile: &Profile, id: &SessionId) -> Vec<String> {
    owned(&[
        "-p",
        profile.as_str(),
        "session",
        "output",
        id.as_str(),
        "--pane",
        "--json",
    ])
}

/// The direct children of one session, with what they last said of their work.
pub fn children(profile: &Profile, id: &SessionId) -> Vec<String> {
    owned(&[
        "-p",
        profile.as_str(),
        "session",
        "children",
        id.as_str(),
        "--json",
    ])
}

/// Restarts one session; agent-deck's own guards stay on.
pub fn restart(profile: &Profile, id: &SessionId) -> Vec<String> {
    owned(&[
        "-p",
        profile.as_str(),
        "session",
        "restart",
        id.as_str(),
        "--json",
    ])
}

/// Stops one session.
pub fn stop(profile: &Profile, id: &SessionId) -> Vec<String> {
    owned(&[
        "-p",
        profile.as_str(),
        "session",
        "stop",
        id.as_str(),
        "--json",
    ])
}

/// Asks a child to report.
pub fn send(profile: &Profile, id: &SessionId) -> Vec<String> {
    message(profile, id, QUESTION)
}

/// Tells a parent something: one line, which begins with our own mark.
pub fn notice(profile: &Profile, id: &SessionId, line: &str) -> Vec<String> {
    message(profile, id, line)
}

fn message(profile: &Profile, id: &SessionId, text: &str) -> Vec<String> {
    owned(&[
        "-p",
        profile.as_str(),
        "session",
        "send",
        id.as_str(),
        text,
        "--no-wait",
        "--json",
    ])
}

/// Names of the profiles. Names none itself, and so creates none (contract 1.3).
pub fn profiles() -> Vec<String> {
    owned(&["profile", "list", "--json"])
}

/// The version text.
pub fn version() -> Vec<String> {
    owned(&["version"])
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_comes_first_and_the_id_is_whole() {
        let profile = Profile::parse("night shift").unwrap();
        let id = SessionId::parse("1a2b3c4d-1755900000").unwrap();
        for (args, rest) in [
            (list(&profile), "list --json"),
            (
                show(&profile, &id),
                "session show 1a2b3c4d-1755900000 --json",
            ),
            (
                pane(&profile, &id),
                "session output 1a2b3c4d-1755900000 --pane --json",
            ),
            (
                children(&profile, &id),
                "session children 1a2b3c4d-1755900000 --json",
            ),
            (
                restart(&profile, &id),
                "session restart 1a2b3c4d-1755900000 --json",
            ),
            (
                stop(&profile, &id),
                "session stop 1a2b3c4d-1755900000 --json",
            ),
            (
                send(&profile, &id),
                "session send 1a2b3c4d-1755900000 report status? --no-wait --json",
            ),
            (
                notice(&profile, &id, "[x] it died"),
                "session send 1a2b3c4d-1755900000 [x] it died --no-wait --json",
            ),
        ] {
            assert_eq!(args[..2], ["-p", "night shift"]);
            assert_eq!(args[2..].join(" "), rest);
        }
        assert_eq!(profiles().join(" "), "profile list --json");
        assert_eq!(version().join(" "), "version");
    }
}
