//! `session show --json` (contract 3).
//!
//! This file does not know why it was asked.

use super::{Object, Raw, excerpt, forbidding, text};
use crate::clock::Time;
use crate::json::Value;
use crate::model::{NoAnswer, SessionId, Shown, SpawnFailure, Status, Substate};

/// Reads the answer about `asked`.
///
/// # Errors
/// When it is no answer about that very id: a title equal to an id wins over
/// the id (contract 3.3), and then another row answers.
pub fn show(raw: &Raw, asked: &SessionId) -> Result<Shown, NoAnswer> {
    let object = match (raw.code, raw.first_object()) {
        (Some(0), Some(object)) if raw.json().is_some() => object,
        _ => return Err(raw.refusal()),
    };
    let Some(id) = SessionId::parse(&text(&object, "id")) else {
        return Err(raw.refusal());
    };
    if id != *asked {
        return Err(another(asked, id.as_str()));
    }
    Ok(shown(id, &object))
}

/// Another session has answered.
pub(super) fn another(asked: &SessionId, id: &str) -> NoAnswer {
    NoAnswer::Ambiguous(format!(
        "asked for {asked}, session {} answers",
        excerpt(id)
    ))
}

fn shown(id: SessionId, object: &Object) -> Shown {
    Shown {
        id,
        status: Status::from_word(&text(object, "status")),
        substate: Substate::from_word(&text(object, "substate")),
        tool: text(object, "tool"),
        command: text(object, "command"),
        tmux_session: text(object, "tmux_session"),
        agent_session: text(object, "claude_session_id"),
        auth_hold: forbidding(object, "auth_hold"),
        link_disabled: forbidding(object, "plugin_channel_link_disabled"),
        quiet: forbidding(object, "no_transition_notify"),
        spawn_failure: spawn_failure(object),
    }
}

fn spawn_failure(object: &Object) -> Option<SpawnFailure> {
    let record = object.get("spawn_failure")?.as_object()?;
    let seconds = record.get("ts").and_then(Value::as_u64)?;
    Some(SpawnFailure {
        reason: excerpt(&text(record, "reason")),
        at: Time(seconds.saturating_mul(1000)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(code: i32, stdout: &[u8], asked: &str) -> Result<Shown, NoAnswer> {
        let raw = Raw {
            code: Some(code),
            stdout,
            stderr: b"",
        };
        show(&raw, &SessionId::parse(asked).unwrap())
    }

    #[test]
    fn recorded_rows_are_read() {
        let bytes = include_bytes!("../../../tests/recordings/show-auth-death.json");
        let held = read(0, bytes, "c32b63cd-1796057553").unwrap();
        assert!(held.auth_hold);
        assert_eq!(
            (held.status, held.substate),
            (Status::Error, Some(Substate::Auth401))
        );
        assert_eq!(held.agent_session, "15a56664-3305-405e-92c4-e4ac9ae23d11");
        assert_eq!(
            (held.tool.as_str(), held.command.as_str()),
            ("claude", "claude")
        );
        assert_eq!(held.tmux_session, "agentdeck_auth-one_58059821");

        let bytes = include_bytes!("../../../tests/recordings/show-never-started-later.json");
        let never = read(0, bytes, "ded01356-1796057553").unwrap();
        assert_eq!(
            (never.status, never.agent_session.as_str()),
            (Status::Error, "")
        );

        // A dropped connection shares the substate and arms no hold (contract 13, item 28).
        let bytes = include_bytes!("../../../tests/recordings/show-socket-closed.json");
        let dropped = read(0, bytes, "3d7f6084-1796057553").unwrap();
        assert_eq!(
            (dropped.auth_hold, dropped.substate),
            (false, Some(Substate::Auth401))
        );

        // A record of a failed start is not a login problem.
        let bytes = include_bytes!("../../../tests/recordings/show-spawn-failure-path.json");
        assert!(!read(0, bytes, "2910942c-1796057553").unwrap().auth_hold);

        let bytes = include_bytes!("../../../tests/recordings/show-stopped.json");
        assert_eq!(
            read(0, bytes, "ea48f9f4-1796057553").unwrap().status,
            Status::Stopped
        );
    }

    #[test]
    fn another_row_than_the_asked_one_is_ambiguous() {
        let bytes = include_bytes!("../../../tests/recordings/show-stopped.json");
        let answer = read(0, bytes, "1a2b3c4d-1755900000");
        assert!(
            matches!(&answer, Err(NoAnswer::Ambiguous(text)) if text.contains("ea48f9f4-1796057553")),
            "{answer:?}"
        );
    }

    #[test]
    fn errors_are_told_apart() {
        let id = "00000000-1111111111";
        let bytes = include_bytes!("../../../tests/recordings/show-not-found.json");
        assert_eq!(read(2, bytes, id), Err(NoAnswer::NotFound));
        let bytes = include_bytes!("../../../tests/recordings/show-db-corrupt.json");
        assert!(
            matches!(read(1, bytes, id), Err(NoAnswer::Failed(t)) if t.contains("initialize storage"))
        );
        let bytes = include_bytes!("../../../tests/recordings/show-ambiguous.json");
        assert!(
            matches!(read(1, bytes, id), Err(NoAnswer::Ambiguous(t)) if t.contains("same title"))
        );
        let bytes = include_bytes!("../../../tests/recordings/show-not-found-text.stdout");
        assert!(matches!(read(2, bytes, id), Err(NoAnswer::Failed(_))));
        let bytes = include_bytes!("../../../tests/recordings/show-bad-flag.stdout");
        assert!(matches!(read(2, bytes, id), Err(NoAnswer::Failed(_))));
        assert!(matches!(read(0, bytes, id), Err(NoAnswer::Garbage(_))));
    }

    /// When the screen looks like a shell, the keys of the agent are left out
    /// (contract 13, items 9 and 32).
    #[test]
    fn missing_fields_are_empty() {
        let bytes = br#"{"id":"a-1","status":"error","tool":"shell","profile":"","new":[1]}"#;
        let shown = read(0, bytes, "a-1").unwrap();
        assert_eq!((shown.tool.as_str(), shown.command.as_str()), ("shell", ""));
        assert_eq!(
            (shown.agent_session.as_str(), shown.tmux_session.as_str()),
            ("", "")
        );
        assert_eq!((shown.substate, shown.auth_hold), (None, false));
        let bare = read(0, br#"{"id":"a-1","status":7}"#, "a-1").unwrap();
        assert_eq!(bare.status, Status::Unfamiliar(String::new()));
    }

    #[test]
    fn an_answer_without_its_id_is_none() {
        for bytes in [
            &b"{}"[..],
            b"{\"id\":7}",
            b"{\"id\":\"a-1\"} trailing",
            b"null",
            b"[]",
        ] {
            assert!(
                matches!(read(0, bytes, "a-1"), Err(NoAnswer::Garbage(_))),
                "{bytes:?}"
            );
        }
        assert!(matches!(
            read(1, b"{\"id\":\"a-1\"}", "a-1"),
            Err(NoAnswer::Failed(_))
        ));
    }

    #[test]
    fn a_hold_of_unknown_form_is_a_hold() {
        for (hold, held) in [
            ("null", false),
            ("false", false),
            ("{}", true),
            ("true", true),
            ("1", true),
        ] {
            let bytes = format!("{{\"id\":\"a-1\",\"auth_hold\":{hold}}}");
            assert_eq!(
                read(0, bytes.as_bytes(), "a-1").unwrap().auth_hold,
                held,
                "{hold}"
            );
        }
    }
}
