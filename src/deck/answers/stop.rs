//! `session stop --json` (contract 5.4): what agent-deck says it did.
//!
//! This file does not know whether the session is stopped: the next list does.

use super::{ErrorAnswer, Raw, excerpt, text};
use crate::json::Value;
use crate::model::{SessionId, Stopped};

/// Reads the answer to a stop of `asked`.
pub fn stop(raw: &Raw, asked: &SessionId) -> Stopped {
    let Some(object) = raw.first_object() else {
        return match raw.no_program() || raw.wrong_use() {
            true => Stopped::Failed(raw.in_words()),
            false => Stopped::Unknown(raw.in_words()),
        };
    };
    if let Some(error) = ErrorAnswer::read(&object) {
        return match raw.code {
            Some(_) => Stopped::Failed(error.in_words()),
            None => Stopped::Unknown(error.in_words()),
        };
    }
    if object.get("success") != Some(&Value::Bool(true)) || raw.code != Some(0) {
        return Stopped::Unknown(raw.in_words());
    }
    let id = text(&object, "id");
    if !id.is_empty() && id != asked.as_str() {
        let other = excerpt(&id);
        return Stopped::Failed(format!("asked for {asked}, session {other} answers"));
    }
    Stopped::Accepted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(code: Option<i32>, stdout: &[u8], asked: &str) -> Stopped {
        let raw = Raw {
            code,
            stdout,
            stderr: b"",
        };
        stop(&raw, &SessionId::parse(asked).unwrap())
    }

    #[test]
    fn recorded_answers_are_understood() {
        for (bytes, id) in [
            (
                &include_bytes!("../../../tests/recordings/stop.json")[..],
                "ea48f9f4-1796057553",
            ),
            (
                include_bytes!("../../../tests/recordings/stop-drains-queue.json"),
                "c18eb200-1796057622",
            ),
        ] {
            assert_eq!(read(Some(0), bytes, id), Stopped::Accepted);
            assert!(matches!(read(Some(1), bytes, id), Stopped::Unknown(_)));
            assert!(matches!(read(None, bytes, id), Stopped::Unknown(_)));
            let other = read(Some(0), bytes, "a-1");
            assert!(matches!(other, Stopped::Failed(text) if text.contains("answers")));
        }
        let again = include_bytes!("../../../tests/recordings/stop-again.json");
        let answer = read(Some(1), again, "ea48f9f4-1796057553");
        assert!(matches!(answer, Stopped::Failed(text) if text.contains("is not running")));
        let answer = read(None, again, "ea48f9f4-1796057553");
        assert!(matches!(answer, Stopped::Unknown(_)));
    }

    #[test]
    fn no_answer_leaves_it_open() {
        for (code, stdout) in [
            (Some(0), &b""[..]),
            (Some(1), b""),
            (None, b""),
            (Some(0), b"Stopped session: x\n"),
            (Some(0), b"{}"),
            (Some(0), br#"{"success":tr"#),
            (Some(0), br#"{"success":"true","id":"a-1"}"#),
        ] {
            let answer = read(code, stdout, "a-1");
            assert!(matches!(answer, Stopped::Unknown(_)), "{code:?} {answer:?}");
        }
        let missing = Raw {
            code: Some(127),
            stdout: b"",
            stderr: b"sh: agent-deck: not found",
        };
        let answer = stop(&missing, &SessionId::parse("a-1").unwrap());
        assert!(matches!(answer, Stopped::Failed(_)));
    }
}
