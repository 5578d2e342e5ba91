//! `profile list --json` (contract 1.8) and `version` (contract 1.5).
//!
//! This file does not know which profiles are wanted.

use super::{Object, Raw, text};
use crate::json::Value;
use crate::model::{NoAnswer, Profile};

/// A profile that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileRow {
    /// Its name.
    pub name: Profile,
    /// A test or scratch profile: not among `all`, only by name.
    pub internal: bool,
}

/// Reads the profiles that exist. Names that cannot be passed on safely are left out.
///
/// # Errors
/// When there is no such list.
pub fn profiles(raw: &Raw) -> Result<Vec<ProfileRow>, NoAnswer> {
    match (raw.code, raw.json()) {
        (Some(0), Some(Value::Object(object))) => match object.get("profiles") {
            Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(rows)) => Ok(rows.iter().filter_map(row).collect()),
            Some(_) | None => Err(raw.refusal()),
        },
        _ => Err(raw.refusal()),
    }
}

fn row(row: &Value) -> Option<ProfileRow> {
    let row: &Object = row.as_object()?;
    let name = Profile::parse(&text(row, "name"))?;
    // Older versions mark them by the name alone.
    let internal = match row.get("internal") {
        Some(Value::Bool(internal)) => *internal,
        Some(_) | None => name.as_str().starts_with('_'),
    };
    Some(ProfileRow { name, internal })
}

/// The first `v` with three numbers behind it; an update hint may follow.
/// `None` for a development build that carries another string.
pub fn version(raw: &Raw) -> Option<(u32, u32, u32)> {
    if raw.code != Some(0) {
        return None;
    }
    raw.text().split('v').skip(1).find_map(three_numbers)
}

fn three_numbers(text: &str) -> Option<(u32, u32, u32)> {
    let mut parts = text.splitn(3, '.');
    let (major, minor, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let number = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| text.parse().ok())?
    };
    Some((number(major)?, number(minor)?, number(&rest[..end])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(stdout: &[u8]) -> Raw<'_> {
        Raw {
            code: Some(0),
            stdout,
            stderr: b"",
        }
    }

    #[test]
    fn recorded_profiles_are_read() {
        let names = |bytes: &[u8]| -> Vec<String> {
            profiles(&ok(bytes))
                .unwrap()
                .iter()
                .map(|p| p.name.to_string())
                .collect()
        };
        let many = include_bytes!("../../../tests/recordings/profile-list.json");
        assert_eq!(
            names(many),
            ["cap", "default", "mix", "mixed", "nosuch", "nv"]
        );
        let phantom = include_bytes!("../../../tests/recordings/profile-list-phantom.json");
        assert_eq!(names(phantom), ["default", "nosuch"]);
        let none = include_bytes!("../../../tests/recordings/profile-list-none.json");
        assert_eq!(profiles(&ok(none)), Ok(Vec::new()));
    }

    #[test]
    fn internal_and_unusable_names_are_known_as_such() {
        let rows = br#"{"profiles":[{"name":"_test","internal":true},{"name":"_old"},
            {"name":"-p"},{"name":7},{"name":"a","internal":false}]}"#;
        let read = profiles(&ok(rows)).unwrap();
        let read: Vec<_> = read.iter().map(|p| (p.name.as_str(), p.internal)).collect();
        assert_eq!(read, [("_test", true), ("_old", true), ("a", false)]);
    }

    #[test]
    fn what_is_no_list_of_profiles_is_no_answer() {
        for bytes in [&b""[..], b"[]", b"{}", b"{\"profiles\":7}", b"nothing"] {
            assert!(
                matches!(profiles(&ok(bytes)), Err(NoAnswer::Garbage(_))),
                "{bytes:?}"
            );
        }
        let raw = Raw {
            code: Some(1),
            stdout: b"{\"success\":false,\"error\":\"x\"}",
            stderr: b"",
        };
        assert_eq!(profiles(&raw), Err(NoAnswer::Failed("x".to_owned())));
    }

    #[test]
    fn the_version_is_found() {
        let recorded = include_bytes!("../../../tests/recordings/version.stdout");
        assert_eq!(version(&ok(recorded)), Some((1, 14, 0)));
        for (text, found) in [
            (
                "Agent Deck v1.14.0 (update available: v1.15.2)\n",
                Some((1, 14, 0)),
            ),
            ("Agent Deck dev build v2.0.10-rc1", Some((2, 0, 10))),
            ("Agent Deck development", None),
            ("Agent Deck 1.14.0", None),
            ("v1.2", None),
            ("v1.2.", None),
            ("v99999999999.0.0", None),
            ("v+1.2.3", None),
            ("", None),
        ] {
            assert_eq!(version(&ok(text.as_bytes())), found, "{text}");
        }
        assert_eq!(
            version(&Raw {
                code: Some(1),
                stdout: recorded,
                stderr: b""
            }),
            None
        );
    }
}
