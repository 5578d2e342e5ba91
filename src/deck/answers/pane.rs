//! `session output --pane --json` (contract 4.1): is there a terminal?
//!
//! When in doubt it stands: only agent-deck's own words for "there is none"
//! are taken as such. This file does not know what a screen means.

use super::show::another;
use super::{ErrorAnswer, Object, Raw, text};
use crate::deck::screen::{self, Form};
use crate::json::Value;
use crate::model::{NoAnswer, Pane, Screen, SessionId};

/// What agent-deck says when the terminal could not be read.
const UNREADABLE: &str = "failed to capture pane: ";
/// The causes that mean there is none: tmux itself has answered no, or the row
/// has no terminal. A stuck tmux server ends in `signal: killed` instead.
const NONE: [&str; 2] = [
    "failed to capture history: exit status 1",
    "tmux session not initialized",
];

/// The notices that agent-deck builds from a record of how the session ended,
/// in place of a screen: first and last lines.
const NOTICES: [(&str, &str); 2] = [
    (
        "🔒 authentication required\nThe agent ",
        "\nthen press R here to restart. `session restart <id> --force` also overrides.\n",
    ),
    (
        "⚠  session failed to start\nThe ",
        "\nor check logs/session-id-lifecycle.jsonl for the spawn trace.\n",
    ),
];

/// Reads whether the terminal of `asked` stands.
///
/// # Errors
/// When it cannot be said.
pub fn pane(raw: &Raw, asked: &SessionId) -> Result<Pane, NoAnswer> {
    let content = content(raw, asked)?;
    Ok(content.map_or(Pane::Gone, |content| Pane::Stands(screen::read(&content))))
}

/// The same, and how the screen is drawn. `None`: there is no terminal.
///
/// # Errors
/// As [`pane`].
pub fn form(raw: &Raw, asked: &SessionId) -> Result<Option<(Screen, Form)>, NoAnswer> {
    let content = content(raw, asked)?;
    Ok(content.map(|content| (screen::read(&content), screen::form(&content))))
}

/// The same, and the last part of its text as a person reads it. `None`: there is
/// no terminal.
///
/// # Errors
/// As [`pane`].
pub fn plain(raw: &Raw, asked: &SessionId) -> Result<Option<(Screen, String)>, NoAnswer> {
    let content = content(raw, asked)?;
    Ok(content.map(|content| (screen::read(&content), screen::plain(&content))))
}

/// The text of the terminal; `None`: there is none.
fn content(raw: &Raw, asked: &SessionId) -> Result<Option<String>, NoAnswer> {
    let Some(object) = raw.first_object() else {
        return Err(raw.refusal());
    };
    match raw.code {
        Some(0) => text_of(raw, object, asked),
        Some(1) if says_none(&object) => Ok(None),
        Some(_) | None => Err(raw.refusal()),
    }
}

fn says_none(object: &Object) -> bool {
    ErrorAnswer::read(object).is_some_and(|error| {
        error.code == "INVALID_OPERATION"
            && error
                .text
                .strip_prefix(UNREADABLE)
                .is_some_and(|cause| NONE.contains(&cause))
    })
}

fn text_of(raw: &Raw, mut object: Object, asked: &SessionId) -> Result<Option<String>, NoAnswer> {
    let content = match object.get_mut("content").map(std::mem::take) {
        Some(Value::String(content)) if text(&object, "role") == "pane" => content,
        _ => return Err(raw.refusal()),
    };
    match text(&object, "session_id") {
        id if id == asked.as_str() => {}
        id if id.is_empty() => return Err(raw.refusal()),
        id => return Err(another(asked, &id)),
    }
    Ok((!is_notice(&content)).then_some(content))
}

/// A screen that merely shows such words goes on below them, with a prompt or
/// blank lines at least.
fn is_notice(content: &str) -> bool {
    NOTICES
        .iter()
        .any(|(first, last)| content.starts_with(first) && content.ends_with(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(code: i32, stdout: &[u8], asked: &str) -> Result<Pane, NoAnswer> {
        pane(
            &Raw {
                code: Some(code),
                stdout,
                stderr: b"",
            },
            &SessionId::parse(asked).unwrap(),
        )
    }

    fn content(content: &str) -> Result<Pane, NoAnswer> {
        let answer = serde_json::json!({
            "success": true, "role": "pane", "session_id": "a-1", "content": content
        });
        read(0, answer.to_string().as_bytes(), "a-1")
    }

    #[test]
    fn recorded_screens_stand() {
        for (bytes, id) in [
            (
                &include_bytes!("../../../tests/recordings/output-pane-idle.json")[..],
                "caf2c574-1796057493",
            ),
            (
                include_bytes!("../../../tests/recordings/output-pane-running.json"),
                "3a5f4a28-1796057553",
            ),
            (
                include_bytes!("../../../tests/recordings/output-pane-dialog.json"),
                "4fbf583f-1796057553",
            ),
            (
                include_bytes!("../../../tests/recordings/output-pane-auth.json"),
                "c32b63cd-1796057553",
            ),
        ] {
            assert!(matches!(read(0, bytes, id), Ok(Pane::Stands(_))), "{id}");
            assert_eq!(read(0, bytes, id), read(0, bytes, id));
            assert!(matches!(read(0, bytes, "a-1"), Err(NoAnswer::Ambiguous(_))));
        }
    }

    #[test]
    fn a_terminal_that_tmux_does_not_know_is_gone() {
        for bytes in [
            &include_bytes!("../../../tests/recordings/output-pane-dead.json")[..],
            include_bytes!("../../../tests/recordings/output-pane-never-started.json"),
            br#"{"code":"INVALID_OPERATION","success":false,
                "error":"failed to capture pane: tmux session not initialized"}"#,
        ] {
            assert_eq!(read(1, bytes, "a-1"), Ok(Pane::Gone));
        }
    }

    #[test]
    fn a_stuck_tmux_proves_nothing() {
        let hung = include_bytes!("../../../tests/recordings/output-pane-tmux-hung.json");
        assert!(
            matches!(read(1, hung, "a-1"), Err(NoAnswer::Failed(text)) if text.contains("killed"))
        );
        for cause in [
            "failed to capture pane: failed to capture history: exec: \\\"tmux\\\": not found",
            "failed to capture pane: failed to capture history: exit status 127",
            "failed to capture pane: failed to capture history: fork/exec: too many open files",
            "failed to capture pane: ",
            "exit status 1",
        ] {
            let bytes = format!(
                "{{\"code\":\"INVALID_OPERATION\",\"success\":false,\"error\":\"{cause}\"}}"
            );
            assert!(
                matches!(read(1, bytes.as_bytes(), "a-1"), Err(NoAnswer::Failed(_))),
                "{cause}"
            );
        }
    }

    #[test]
    fn notices_in_place_of_a_screen_mean_gone() {
        for (bytes, id) in [
            (
                &include_bytes!("../../../tests/recordings/output-pane-auth-death.json")[..],
                "c32b63cd-1796057553",
            ),
            (
                include_bytes!("../../../tests/recordings/output-pane-dead-spawn-failure.json"),
                "db9e5b41-1796057553",
            ),
            (
                include_bytes!("../../../tests/recordings/output-pane-command-not-found.json"),
                "2910942c-1796057553",
            ),
        ] {
            assert_eq!(read(0, bytes, id), Ok(Pane::Gone), "{id}");
        }
    }

    #[test]
    fn a_screen_that_quotes_a_notice_stands() {
        let bytes = include_bytes!("../../../tests/recordings/output-pane-auth-death.json");
        let answer: serde_json::Value = serde_json::from_slice(bytes).unwrap();
        let notice = answer["content"].as_str().unwrap();
        assert_eq!(content(notice), Ok(Pane::Gone));
        for quoted in [
            format!("$ cat notice\n{notice}"),
            format!("{notice}$ \n"),
            format!("{notice}\n\n\n"),
            notice.trim_end().to_owned(),
            "🔒 authentication required\n".to_owned(),
            String::new(),
        ] {
            assert!(
                matches!(content(&quoted), Ok(Pane::Stands(_))),
                "{quoted:?}"
            );
        }
    }

    #[test]
    fn the_digest_is_over_the_text() {
        let hex = |pane: Result<Pane, NoAnswer>| match pane {
            Ok(Pane::Stands(screen)) => screen
                .raw
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect::<String>(),
            other => panic!("{other:?}"),
        };
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex(content("abc")), abc);
        assert_ne!(hex(content("abd")), abc);
    }

    #[test]
    fn whatever_is_no_pane_is_no_answer() {
        let transcript = include_bytes!("../../../tests/recordings/output-transcript-none.json");
        assert!(matches!(
            read(0, transcript, "69cdc2de-1796057553"),
            Err(NoAnswer::Garbage(_))
        ));
        let missing = include_bytes!("../../../tests/recordings/output-not-found.json");
        assert_eq!(read(2, missing, "a-1"), Err(NoAnswer::NotFound));
        assert!(matches!(read(1, missing, "a-1"), Err(NoAnswer::Failed(_))));
        for bytes in [
            &b""[..],
            b"{}",
            b"{\"role\":\"pane\",\"session_id\":\"a-1\",\"content\":7}",
        ] {
            assert!(read(0, bytes, "a-1").is_err(), "{bytes:?}");
        }
    }
}
