//! `session children --json` (contract 5.5b).
//!
//! This file does not know whether what a child said is about its present task.

use super::show::another;
use super::{Object, Raw, text};
use crate::clock::Time;
use crate::json::Value;
use crate::model::{Completion, NoAnswer, SessionId};

/// Reads what the children of `parent` last said of their work. Times are as
/// printed. Children that said nothing, or nothing that makes sense, are left out.
///
/// # Errors
/// When it is no answer about that very id.
pub fn children(raw: &Raw, parent: &SessionId) -> Result<Vec<Completion>, NoAnswer> {
    let answer = match (raw.code, raw.json()) {
        (Some(0), Some(Value::Object(answer))) => answer,
        _ => return Err(raw.refusal()),
    };
    let Some(Value::Array(rows)) = answer.get("children") else {
        return Err(raw.refusal());
    };
    let about = text(&answer, "parent");
    if about != parent.as_str() {
        return Err(another(parent, &about));
    }
    Ok(rows
        .iter()
        .filter_map(Value::as_object)
        .filter_map(said)
        .collect())
}

fn said(row: &Object) -> Option<Completion> {
    let ok = match row.get("done_status")?.as_str()? {
        "ok" => true,
        "fail" => false,
        _ => return None,
    };
    Some(Completion {
        id: SessionId::parse(&text(row, "id"))?,
        ok,
        at: Time::parse_rfc3339(&text(row, "done_at"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(code: i32, stdout: &[u8], parent: &str) -> Result<Vec<Completion>, NoAnswer> {
        let raw = Raw {
            code: Some(code),
            stdout,
            stderr: b"",
        };
        children(&raw, &SessionId::parse(parent).unwrap())
    }

    #[test]
    fn recorded_answers_are_read() {
        let bytes = include_bytes!("../../../tests/recordings/children-done.json");
        let said = read(0, bytes, "d42c0d8d-1796062949").unwrap();
        let done = Completion {
            id: SessionId::parse("634436b6-1796062950").unwrap(),
            ok: true,
            at: Time::parse_rfc3339("2026-11-30T18:00:00Z").unwrap(),
        };
        assert_eq!(said, [done]);
        let bytes = include_bytes!("../../../tests/recordings/children-none.json");
        assert_eq!(read(0, bytes, "634436b6-1796062950"), Ok(Vec::new()));
        let bytes = include_bytes!("../../../tests/recordings/children-not-found.json");
        assert_eq!(read(2, bytes, "a-1"), Err(NoAnswer::NotFound));
    }

    #[test]
    fn the_answer_is_about_that_very_parent() {
        let bytes = include_bytes!("../../../tests/recordings/children-done.json");
        let answer = read(0, bytes, "634436b6-1796062950");
        assert!(
            matches!(&answer, Err(NoAnswer::Ambiguous(text)) if text.contains("d42c0d8d-1796062949")),
            "{answer:?}"
        );
        let nobody = read(0, br#"{"children":[]}"#, "a-1");
        assert!(matches!(nobody, Err(NoAnswer::Ambiguous(_))), "{nobody:?}");
    }

    #[test]
    fn rows_that_make_no_sense_are_left_out() {
        let rows = br#"{"parent":"a-1","children":[7, null, [], {},
            {"id":"-rf","done_status":"ok","done_at":"2026-11-30T18:00:00Z"},
            {"id":"k-1","done_status":"maybe","done_at":"2026-11-30T18:00:00Z"},
            {"id":"k-2","done_status":true,"done_at":"2026-11-30T18:00:00Z"},
            {"id":"k-3","done_status":"ok"},
            {"id":"k-4","done_status":"ok","done_at":"soon"},
            {"id":"k-5","done_status":"ok","done_at":0},
            {"id":"k-6","done_at":"2026-11-30T18:00:00Z"},
            {"id":"k-7","done_status":"fail","done_at":"2026-11-30T19:00:00+01:00","more":{}}]}"#;
        let said = read(0, rows, "a-1").unwrap();
        let of = |said: &Completion| (said.id.to_string(), said.ok, said.at.rfc3339());
        let wanted = ("k-7".to_owned(), false, "2026-11-30T18:00:00Z".to_owned());
        assert_eq!(said.iter().map(of).collect::<Vec<_>>(), [wanted]);
    }

    #[test]
    fn what_is_no_such_answer_is_none() {
        for bytes in [
            &br#"{"parent":"a-1"}"#[..],
            br#"{"parent":"a-1","children":{}}"#,
            br#"{"parent":"a-1","children":[]} and more"#,
            br#"[{"parent":"a-1","children":[]}]"#,
            b"{}",
        ] {
            let answer = read(0, bytes, "a-1");
            assert!(matches!(answer, Err(NoAnswer::Garbage(_))), "{answer:?}");
        }
        let good = br#"{"parent":"a-1","children":[]}"#;
        assert!(matches!(read(1, good, "a-1"), Err(NoAnswer::Failed(_))));
    }
}
