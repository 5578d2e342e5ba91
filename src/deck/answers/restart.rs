//! `session restart --json` (contract 5.2): what came of it, as far as
//! agent-deck says.
//!
//! Whatever leaves open whether an agent was started is *unknown*. This file
//! does not know what is done about it.

use super::{ErrorAnswer, Object, Raw, excerpt, text};
use crate::json::Value;
use crate::model::{Restarted, SessionId};

/// Words of a failure to write the new state down; the agent was started by
/// then (contract 5.1).
const NOT_SAVED: [&str; 3] = ["failed to save", "database is locked", "SQLITE_BUSY"];
/// Codes of failures that come before anything was started (contract 5.2).
const BEFORE: [&str; 2] = ["NOT_FOUND", "AMBIGUOUS"];

/// Reads the answer to a restart of `asked`.
pub fn restart(raw: &Raw, asked: &SessionId) -> Restarted {
    if let Some(object) = raw.first_object() {
        return match ErrorAnswer::read(&object) {
            Some(error) => failure(raw, &error),
            None => success(raw, &object, asked),
        };
    }
    if raw.no_program() {
        Restarted::NotStarted(raw.in_words())
    } else if raw.code == Some(2) && raw.wrong_use() {
        Restarted::Failed(raw.in_words())
    } else {
        Restarted::Unknown(raw.in_words())
    }
}

fn success(raw: &Raw, object: &Object, asked: &SessionId) -> Restarted {
    if object.get("success") != Some(&Value::Bool(true)) || raw.code != Some(0) {
        return Restarted::Unknown(raw.in_words());
    }
    let id = text(object, "id");
    if !id.is_empty() && id != asked.as_str() {
        let other = excerpt(&id);
        return Restarted::Failed(format!(
            "AMBIGUOUS: asked for {asked}, session {other} answers"
        ));
    }
    match object.get("skipped") {
        None | Some(Value::Null | Value::Bool(false)) => {
            Restarted::Accepted(excerpt(&text(object, "warning")))
        }
        Some(Value::Bool(true)) => Restarted::Skipped(excerpt(&text(object, "reason"))),
        Some(_) => Restarted::Unknown(raw.in_words()),
    }
}

fn failure(raw: &Raw, error: &ErrorAnswer) -> Restarted {
    let words = error.in_words();
    let saved = !NOT_SAVED.iter().any(|phrase| error.text.contains(phrase));
    match raw.code {
        Some(_) if saved || BEFORE.contains(&error.code.as_str()) => Restarted::Failed(words),
        Some(_) | None => Restarted::Unknown(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(code: Option<i32>, stdout: &[u8], asked: &str) -> Restarted {
        restart(
            &Raw {
                code,
                stdout,
                stderr: b"",
            },
            &SessionId::parse(asked).unwrap(),
        )
    }

    #[test]
    fn recorded_successes_are_accepted() {
        for (bytes, id) in [
            (
                &include_bytes!("../../../tests/recordings/restart-crashed.json")[..],
                "2910942c-1796057553",
            ),
            (
                include_bytes!("../../../tests/recordings/restart-stopped.json"),
                "ea48f9f4-1796057553",
            ),
            (
                include_bytes!("../../../tests/recordings/restart-agent-dies-at-once.json"),
                "9815a52a-1796057553",
            ),
            (
                include_bytes!("../../../tests/recordings/restart-dead-two-b.json"),
                "db9e5b41-1796057553",
            ),
        ] {
            assert_eq!(
                read(Some(0), bytes, id),
                Restarted::Accepted(String::new()),
                "{id}"
            );
            // Said, and then something else went wrong.
            assert!(matches!(read(Some(1), bytes, id), Restarted::Unknown(_)));
            assert!(matches!(read(None, bytes, id), Restarted::Unknown(_)));
            assert!(
                matches!(read(Some(0), bytes, "a-1"), Restarted::Failed(t) if t.contains("AMBIGUOUS"))
            );
        }
    }

    #[test]
    fn skipped_is_not_done() {
        for (bytes, id, words) in [
            (
                &include_bytes!("../../../tests/recordings/restart-skipped-fresh.json")[..],
                "2910942c-1796057553",
                "freshness window",
            ),
            (
                include_bytes!("../../../tests/recordings/restart-skipped-crashloop.json"),
                "9815a52a-1796057553",
                "freshness window",
            ),
            (
                include_bytes!("../../../tests/recordings/restart-skipped-auth-death.json"),
                "c32b63cd-1796057553",
                "cannot fix a credential",
            ),
        ] {
            let answer = read(Some(0), bytes, id);
            assert!(
                matches!(&answer, Restarted::Skipped(reason) if reason.contains(words)),
                "{answer:?}"
            );
        }
        let odd = br#"{"success":true,"skipped":"yes","id":"a-1"}"#;
        assert!(matches!(read(Some(0), odd, "a-1"), Restarted::Unknown(_)));
    }

    #[test]
    fn recorded_failures_name_code_and_text() {
        for (code, bytes, start) in [
            (
                1,
                &include_bytes!("../../../tests/recordings/restart-missing-dir.json")[..],
                "INVALID_OPERATION: failed to restart session",
            ),
            (
                1,
                // JSON and then usage text (contract 13, item 7).
                include_bytes!("../../../tests/recordings/restart-no-id.stdout"),
                "INVALID_OPERATION: session identifier required",
            ),
            (
                2,
                include_bytes!("../../../tests/recordings/restart-not-found.json"),
                "NOT_FOUND: session '00000000",
            ),
            (
                1,
                include_bytes!("../../../tests/recordings/restart-db-corrupt.json"),
                "NOT_FOUND: failed to initialize storage",
            ),
            (
                1,
                include_bytes!("../../../tests/recordings/show-ambiguous.json"),
                "AMBIGUOUS: title",
            ),
        ] {
            let answer = read(Some(code), bytes, "a-1");
            assert!(
                matches!(&answer, Restarted::Failed(text) if text.starts_with(start)),
                "{answer:?}"
            );
        }
    }

    #[test]
    fn a_state_that_was_not_saved_is_unknown() {
        let locked = include_bytes!("../../../tests/recordings/restart-dead-db-locked.json");
        assert!(
            matches!(read(Some(1), locked, "a-1"), Restarted::Unknown(text) if text.contains("locked"))
        );
        // The same words before anything was started.
        let early = br#"{"success":false,"code":"NOT_FOUND",
            "error":"failed to load sessions: database is locked (5)"}"#;
        assert!(matches!(read(Some(1), early, "a-1"), Restarted::Failed(_)));
    }

    #[test]
    fn no_answer_leaves_it_open() {
        for (code, stdout) in [
            (Some(0), &b""[..]),
            (Some(1), b""),
            (None, b""),
            (
                None,
                br#"{"success":false,"code":"INVALID_OPERATION","error":"x"}"#,
            ),
            (Some(0), b"Restarted session: x\n"),
            (Some(0), br#"{"success":tr"#),
            (Some(0), b"[]"),
            (Some(0), b"{}"),
            (Some(2), b"goroutine 1 [running]"),
            (Some(127), b"half an answer"),
        ] {
            let answer = read(code, stdout, "a-1");
            assert!(
                matches!(answer, Restarted::Unknown(_)),
                "{code:?} {stdout:?} {answer:?}"
            );
        }
    }

    #[test]
    fn what_never_ran_has_changed_nothing() {
        let id = SessionId::parse("a-1").unwrap();
        let raw = Raw {
            code: Some(127),
            stdout: b"",
            stderr: b"sh: agent-deck: not found",
        };
        assert_eq!(
            restart(&raw, &id),
            Restarted::NotStarted("exit 127: sh: agent-deck: not found".to_owned())
        );
        let raw = Raw {
            code: Some(2),
            stdout: b"Usage",
            stderr: b"flag provided but not defined: -x",
        };
        assert!(
            matches!(restart(&raw, &id), Restarted::Failed(text) if text.contains("wrong use"))
        );
    }

    #[test]
    fn a_warning_is_passed_on() {
        let bytes = br#"{"success":true,"id":"a-1","title":"x","warning":"rate limit near"}"#;
        assert_eq!(
            read(Some(0), bytes, "a-1"),
            Restarted::Accepted("rate limit near".to_owned())
        );
    }
}
