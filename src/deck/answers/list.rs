//! `list --json` of one profile (contract 2.1, 2.2).
//!
//! This file does not know whether the answer came in time.

use super::{Object, Raw, forbidding, telegram, text};
use crate::clock::Time;
use crate::json::Value;
use crate::model::{ById, NoAnswer, Profile, Session, SessionId, Status, Substate};

/// Characters of a title or group that are kept: it stands in the memory, in each
/// line about its session, and in what the commands print.
const NAME_MAX: usize = 1000;

/// A good list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Rows in agent-deck's order; of rows with one id the first.
    pub sessions: Vec<Session>,
    /// Rows without a usable id.
    pub unreadable: usize,
}

/// Reads the rows of `profile`. Times are as printed.
///
/// # Errors
/// When it is neither a whole list nor one of the known words for an empty one.
pub fn list(raw: &Raw, profile: &Profile) -> Result<Listed, NoAnswer> {
    if raw.code != Some(0) {
        return Err(raw.refusal());
    }
    match raw.json() {
        Some(Value::Array(rows)) => Ok(rows_of(rows, profile)),
        Some(Value::Null) => Ok(Listed::default()),
        None if raw.text().trim() == no_sessions(profile) => Ok(Listed::default()),
        Some(_) | None => Err(raw.refusal()),
    }
}

/// What an empty profile answers although JSON was asked for (contract 2.2).
fn no_sessions(profile: &Profile) -> String {
    format!("No sessions found in profile '{profile}'.")
}

fn rows_of(rows: Vec<Value>, profile: &Profile) -> Listed {
    let mut listed = Listed::default();
    let mut known = ById::default();
    for row in rows {
        let Some(session) = row.as_object().and_then(|row| session(row, profile)) else {
            listed.unreadable += 1;
            continue;
        };
        if known.get(&session.id).is_none() {
            known.get_or_make(&session.id, || ());
            listed.sessions.push(session);
        }
    }
    listed
}

/// A name that people gave, as far as anybody reads it.
fn name(row: &Object, key: &str) -> String {
    let mut name = text(row, key);
    if let Some((end, _)) = name.char_indices().nth(NAME_MAX) {
        name.truncate(end);
    }
    name
}

fn session(row: &Object, profile: &Profile) -> Option<Session> {
    Some(Session {
        id: SessionId::parse(row.get("id")?.as_str()?)?,
        profile: profile.clone(),
        title: name(row, "title"),
        group: name(row, "group"),
        tool: text(row, "tool"),
        command: text(row, "command"),
        status: Status::from_word(&text(row, "status")),
        substate: Substate::from_word(&text(row, "substate")),
        tmux_session: text(row, "tmux_session"),
        created: Time::parse_rfc3339(&text(row, "created_at")),
        // Year 1 means never, and is no time for us.
        archived: forbidding(row, "archived")
            || Time::parse_rfc3339(&text(row, "archived_at")).is_some(),
        is_conductor: row.get("is_conductor") == Some(&Value::Bool(true)),
        is_ssh: forbidding(row, "ssh_host"),
        parent: text(row, "parent_session_id"),
        path: text(row, "path"),
        telegram: telegram(row),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stdout: &[u8], profile: &str) -> Result<Listed, NoAnswer> {
        list(
            &Raw {
                code: Some(0),
                stdout,
                stderr: b"",
            },
            &Profile::parse(profile).unwrap(),
        )
    }

    fn exit(code: i32, stdout: &[u8], stderr: &[u8]) -> NoAnswer {
        list(
            &Raw {
                code: Some(code),
                stdout,
                stderr,
            },
            &Profile::parse("p").unwrap(),
        )
        .unwrap_err()
    }

    #[test]
    fn a_recorded_deck_is_read() {
        let listed = read(
            include_bytes!("../../../tests/recordings/list-mixed.json"),
            "mixed",
        )
        .unwrap();
        assert_eq!((listed.sessions.len(), listed.unreadable), (15, 0));
        let row = |title: &str| listed.sessions.iter().find(|s| s.title == title).unwrap();
        let crashed = row("crash exit3");
        assert_eq!(crashed.id.as_str(), "db9e5b41-1796057553");
        assert_eq!(crashed.profile.as_str(), "mixed");
        assert_eq!((&crashed.status, crashed.substate), (&Status::Error, None));
        assert_eq!(crashed.tmux_session, "agentdeck_crash-exit3_3b0bf052");
        assert_eq!(crashed.created, Time::parse_rfc3339("2026-11-30T16:52:33Z"));
        assert_eq!(
            (crashed.tool.as_str(), crashed.command.as_str()),
            ("claude", "claude")
        );
        assert!(row("archived one").archived && !crashed.archived && !crashed.is_ssh);
        assert_eq!(row("stopped one").status, Status::Stopped);
        assert_eq!(row("busy one").status, Status::Running);
        assert_eq!(row("auth one").substate, Some(Substate::Auth401));
    }

    #[test]
    fn every_recorded_list_is_read() {
        for (bytes, rows, word) in [
            (
                &include_bytes!("../../../tests/recordings/list-one.json")[..],
                1,
                "waiting",
            ),
            (
                include_bytes!("../../../tests/recordings/list-just-added.json"),
                1,
                "idle",
            ),
            (
                include_bytes!("../../../tests/recordings/list-queued.json"),
                3,
                "error",
            ),
            // `starting` prints as `unknown` (contract 13, item 19).
            (
                include_bytes!("../../../tests/recordings/list-starting-prints-unknown.json"),
                1,
                "unknown",
            ),
            (
                include_bytes!("../../../tests/recordings/list-conductor.json"),
                1,
                "idle",
            ),
            (
                include_bytes!("../../../tests/recordings/list-foreign-sessionend.json"),
                1,
                "error",
            ),
            (
                include_bytes!("../../../tests/recordings/list-hook-masks-auth-banner.json"),
                1,
                "waiting",
            ),
        ] {
            let listed = read(bytes, "p").unwrap();
            assert_eq!(
                (listed.sessions.len(), listed.unreadable),
                (rows, 0),
                "{word}"
            );
            assert!(
                listed.sessions.iter().any(|s| s.status.word() == word),
                "{word}"
            );
        }
    }

    #[test]
    fn the_known_words_for_an_empty_profile_are_an_empty_list() {
        let empty = include_bytes!("../../../tests/recordings/list-empty.stdout");
        assert_eq!(read(empty, "default"), Ok(Listed::default()));
        // Of another profile it says nothing about this one.
        assert!(matches!(read(empty, "other"), Err(NoAnswer::Garbage(_))));
        let slash = include_bytes!("../../../tests/recordings/list-profile-with-slash.stdout");
        assert!(matches!(read(slash, "b"), Err(NoAnswer::Garbage(_))));
        assert_eq!(read(b"[]\n", "p"), Ok(Listed::default()));
        let null = include_bytes!("../../../tests/recordings/list-all-null.stdout");
        assert_eq!(read(null, "p"), Ok(Listed::default()));
    }

    #[test]
    fn what_is_no_list_is_no_answer() {
        let none = include_bytes!("../../../tests/recordings/list-all-no-profiles.stdout");
        for bytes in [
            &none[..],
            b"",
            b"{}",
            b"[] and more",
            b"[{\"id\":",
            b"No sessions found",
        ] {
            assert!(
                matches!(read(bytes, "p"), Err(NoAnswer::Garbage(_))),
                "{bytes:?}"
            );
        }
        // Text on standard output, exit 1 (contract 13, item 4).
        let corrupt = include_bytes!("../../../tests/recordings/list-db-corrupt.stdout");
        assert!(
            matches!(exit(1, corrupt, b""), NoAnswer::Failed(text) if text.contains("initialize"))
        );
        assert!(matches!(exit(1, b"[]", b""), NoAnswer::Failed(_)));
        assert!(matches!(
            exit(127, b"", b"not found"),
            NoAnswer::NoProgram(_)
        ));
        let usage = include_bytes!("../../../tests/recordings/bad-flag-list.stdout");
        let answer = exit(2, usage, b"flag provided but not defined: -p\n  -all\n");
        let NoAnswer::Failed(text) = answer else {
            panic!("{answer:?}")
        };
        assert!(
            text.starts_with("exit 2, wrong use: flag provided but not defined: -p"),
            "{text}"
        );
    }

    #[test]
    fn notices_on_standard_error_do_no_harm() {
        let raw = Raw {
            code: Some(0),
            stdout: b"[]",
            stderr: b"Warning: old tmux\n",
        };
        assert!(list(&raw, &Profile::parse("p").unwrap()).is_ok());
    }

    #[test]
    fn only_the_id_is_needed() {
        let rows =
            br#"[{"id":"a-1","new":{"deep":[1]}}, {"title":"x"}, 7, {"id":"-rf"}, {"id":5}]"#;
        let listed = read(rows, "p").unwrap();
        assert_eq!((listed.sessions.len(), listed.unreadable), (1, 4));
        let bare = &listed.sessions[0];
        assert_eq!(bare.status, Status::Unfamiliar(String::new()));
        assert_eq!(
            (bare.created, bare.substate, bare.archived),
            (None, None, false)
        );
    }

    #[test]
    fn wrong_types_count_as_absent_unless_they_forbid() {
        let rows = br#"[{"id":"a-1","title":7,"group":[],"status":{},"created_at":12,"substate":1,
            "is_conductor":"yes","tmux_session":null,"archived":"yes","ssh_host":["h"]},
            {"id":"a-2","status":"paused","created_at":"soon","archived":null,
            "archived_at":"2026-11-30T16:52:33Z"},
            {"id":"a-3","archived":false,"archived_at":"0001-01-01T00:00:00Z","ssh_host":""}]"#;
        let listed = read(rows, "p").unwrap().sessions;
        assert_eq!(
            (listed[0].title.as_str(), listed[0].group.as_str()),
            ("", "")
        );
        assert_eq!(listed[0].status, Status::Unfamiliar(String::new()));
        assert!(!listed[0].is_conductor && listed[0].archived && listed[0].is_ssh);
        assert_eq!(listed[1].status, Status::Unfamiliar("paused".to_owned()));
        assert!(listed[1].archived && listed[1].created.is_none());
        assert!(!listed[2].archived && !listed[2].is_ssh);
    }

    #[test]
    fn of_rows_with_one_id_the_first_wins() {
        let rows = br#"[{"id":"a-1","title":"first"},{"id":"a-1","title":"second"}]"#;
        let listed = read(rows, "p").unwrap();
        assert_eq!((listed.sessions.len(), listed.unreadable), (1, 0));
        assert_eq!(listed.sessions[0].title, "first");
    }

    #[test]
    fn names_are_bounded() {
        let long = "\u{1f600}".repeat(NAME_MAX + 1);
        let rows = format!("[{{\"id\":\"a-1\",\"title\":\"{long}\",\"group\":\"{long}\"}}]");
        let listed = read(rows.as_bytes(), "default").unwrap().sessions;
        for name in [&listed[0].title, &listed[0].group] {
            assert_eq!(name.chars().count(), NAME_MAX);
        }
    }

    #[test]
    fn titles_that_are_no_text_are_kept_as_well_as_possible() {
        let listed = read(
            b"[{\"id\":\"a-1\",\"title\":\"x\xffy\"},{\"id\":\"a\xff\"}]",
            "p",
        )
        .unwrap();
        assert_eq!(
            (listed.sessions[0].title.as_str(), listed.unreadable),
            ("x\u{fffd}y", 1)
        );
    }
}
