//! agent-deck's answers, from bytes to nouns; the reading of one command each
//! in a file below. Every field is optional unless it names the session; bytes
//! that make no sense are an error value.
//!
//! This file does not know how the bytes came, nor how long that took.

use std::borrow::Cow;

use crate::json::{Map, Value};
use crate::model::NoAnswer;

mod children;
mod list;
mod pane;
mod profiles;
mod restart;
mod send;
mod show;
mod stop;

pub use children::children;
pub use list::{Listed, list};
pub use pane::{form, pane, plain};
pub use profiles::{ProfileRow, profiles, version};
pub use restart::restart;
pub use send::send;
pub use show::show;
pub use stop::stop;

/// What a command left behind.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a> {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: &'a [u8],
    /// Its standard error. Harmless notices are common there (contract 13).
    pub stderr: &'a [u8],
}

/// Not executable, not found: what a shell or wrapper answers in place of the program (POSIX).
const NO_PROGRAM: [i32; 2] = [126, 127];
/// No such session, or wrong use (contract 1.7).
const EXIT_NOT_FOUND: i32 = 2;
/// The most characters of another program's text that are kept.
const EXCERPT: usize = 1000;

type Object = Map;

impl Raw<'_> {
    /// Standard output with what is not UTF-8 replaced. That cannot forge
    /// anything: ids are ASCII, and structure stays structure.
    fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.stdout)
    }

    /// The one JSON value that standard output holds.
    fn json(&self) -> Option<Value> {
        crate::json::read(self.text().as_bytes()).ok()
    }

    /// The first JSON value of standard output, whatever follows it
    /// (`session restart` without an id prints usage behind it, contract 5.2).
    fn first_object(&self) -> Option<Object> {
        let text = self.text();
        match crate::json::read_first(text.as_bytes()) {
            Ok(Value::Object(object)) => Some(object),
            Ok(_) | Err(_) => None,
        }
    }

    /// Whether a shell or wrapper says that there is no such program.
    fn no_program(&self) -> bool {
        self.code.is_some_and(|code| NO_PROGRAM.contains(&code)) && self.stdout.is_empty()
    }

    /// Exit code and text of an answer that is no JSON, in words.
    fn in_words(&self) -> String {
        let how = match self.code {
            Some(EXIT_NOT_FOUND) if self.wrong_use() => "exit 2, wrong use".to_owned(),
            Some(code) => format!("exit {code}"),
            None => "ended by a signal".to_owned(),
        };
        let complaint = excerpt(&String::from_utf8_lossy(self.stderr));
        match (self.plain_error(), complaint.is_empty()) {
            (_, false) => format!("{how}: {complaint}"),
            (Some(error), true) => format!("{how}: {error}"),
            (None, true) if self.stdout.is_empty() => format!("{how}, no output"),
            (None, true) => format!("{how}, {}", self.unreadable()),
        }
    }

    /// A plain text error on standard output (contract 2.2). Nothing else of
    /// standard output is ever quoted: it may hold what is on a screen.
    fn plain_error(&self) -> Option<String> {
        let text = self.text();
        let line = text.lines().next()?;
        line.starts_with("Error: ").then(|| excerpt(line))
    }

    /// What standard output is, without a word of it.
    fn unreadable(&self) -> String {
        let bytes = self.stdout.len();
        match crate::json::read(self.stdout) {
            Ok(_) => format!("{bytes} bytes of JSON that are no such answer"),
            Err(e) => format!("{bytes} bytes that are no JSON from line {} on", e.line),
        }
    }

    /// Whether it is the flag parser's complaint (contract 1.6).
    fn wrong_use(&self) -> bool {
        String::from_utf8_lossy(self.stderr).contains("flag provided but not defined")
    }

    /// Why an answer that is not the wanted one is none.
    fn refusal(&self) -> NoAnswer {
        if self.no_program() {
            return NoAnswer::NoProgram(self.in_words());
        }
        if let Some(error) = self.first_object().as_ref().and_then(ErrorAnswer::read) {
            return error.meaning(self.code);
        }
        match self.code {
            Some(0) if self.stdout.is_empty() => NoAnswer::Garbage("nothing".to_owned()),
            Some(0) => NoAnswer::Garbage(self.unreadable()),
            Some(_) | None => NoAnswer::Failed(self.in_words()),
        }
    }
}

/// The error object of the shared printer (contract 1.7).
struct ErrorAnswer {
    code: String,
    text: String,
}

impl ErrorAnswer {
    fn read(object: &Object) -> Option<ErrorAnswer> {
        if object.get("success") != Some(&Value::Bool(false)) {
            return None;
        }
        Some(ErrorAnswer {
            code: text(object, "code"),
            text: excerpt(&text(object, "error")),
        })
    }

    /// `CODE: text`.
    fn in_words(&self) -> String {
        match self.code.as_str() {
            "" => self.text.clone(),
            code => format!("{code}: {}", self.text),
        }
    }

    /// `NOT_FOUND` is said of a session with exit 2 and of an unreadable
    /// database with exit 1 (contract 1.7).
    fn meaning(&self, exit: Option<i32>) -> NoAnswer {
        match (self.code.as_str(), exit) {
            ("NOT_FOUND", Some(EXIT_NOT_FOUND)) => NoAnswer::NotFound,
            ("AMBIGUOUS", _) => NoAnswer::Ambiguous(self.text.clone()),
            _ => NoAnswer::Failed(self.in_words()),
        }
    }
}

/// A text field; empty when it is missing or no text.
fn text(object: &Object, field: &str) -> String {
    object
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// The channel entry that makes a session the owner of a Telegram bot (contract 8.7).
fn telegram(object: &Object) -> Option<String> {
    let channels = object.get("channels")?.as_array()?;
    let mut entries = channels.iter().filter_map(Value::as_str);
    let entry = entries.find(|entry| entry.starts_with("plugin:telegram@"))?;
    Some(entry.to_owned())
}

/// A mark that forbids something: set when it is there in a form that nobody knows.
fn forbidding(object: &Object, field: &str) -> bool {
    match object.get(field) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Bool(true) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => true,
    }
}

/// Trimmed and shortened, at a character's border.
fn excerpt(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Profile, SessionId};

    /// Everything that is no answer must be an error value, from every reader.
    #[test]
    fn hostile_bytes_are_errors_and_never_a_panic() {
        let deep = b"[".repeat(100_000);
        let objects = br#"{"a":"#.repeat(100_000);
        let huge = format!("[{{\"id\":{}}}]", "9".repeat(5_000));
        let cases: &[&[u8]] = &[
            b"",
            b"\0\0\0\0",
            b"\xff\xfe",
            b"[{\"id\":\"a-1\",\"title\":\"\\ud800\"}]",
            b"{\"id\":\"a-1\",\"content\":\"\\udfff\"}",
            b"[{\"id\":\"a-1\"}",
            b"[1e999]",
            b"\"a-1\"",
            b"true",
            &deep,
            &objects,
            huge.as_bytes(),
        ];
        let profile = Profile::parse("p").unwrap();
        let id = SessionId::parse("a-1").unwrap();
        for stdout in cases {
            for code in [
                Some(0),
                Some(1),
                Some(2),
                Some(126),
                Some(127),
                Some(-1),
                None,
            ] {
                let raw = Raw {
                    code,
                    stdout,
                    stderr: b"\xff\0",
                };
                if let Ok(listed) = list(&raw, &profile) {
                    assert!(
                        listed.sessions.is_empty() && listed.unreadable == 1,
                        "{stdout:?}"
                    );
                }
                assert!(show(&raw, &id).is_err());
                assert!(pane(&raw, &id).is_err());
                assert!(children(&raw, &id).is_err());
                assert!(profiles(&raw).is_err());
                assert_eq!(version(&raw), None);
                let restarted = restart(&raw, &id);
                assert!(!matches!(restarted, crate::model::Restarted::Accepted(_)));
                assert_ne!(stop(&raw, &id), crate::model::Stopped::Accepted);
            }
        }
    }

    #[test]
    fn an_answer_cut_short_is_no_answer() {
        let raw = |stdout| Raw {
            code: Some(0),
            stdout,
            stderr: b"",
        };
        let profile = Profile::parse("mixed").unwrap();
        let id = |text| SessionId::parse(text).unwrap();
        let bytes = include_bytes!("../../tests/recordings/list-one.json").trim_ascii();
        for end in 0..bytes.len() {
            assert!(list(&raw(&bytes[..end]), &profile).is_err(), "{end}");
        }
        let bytes = include_bytes!("../../tests/recordings/show-stopped.json").trim_ascii();
        for end in 0..bytes.len() {
            assert!(
                show(&raw(&bytes[..end]), &id("ea48f9f4-1796057553")).is_err(),
                "{end}"
            );
        }
        let bytes = include_bytes!("../../tests/recordings/children-done.json").trim_ascii();
        for end in 0..bytes.len() {
            assert!(
                children(&raw(&bytes[..end]), &id("d42c0d8d-1796062949")).is_err(),
                "{end}"
            );
        }
        let bytes = include_bytes!("../../tests/recordings/output-pane-dead-spawn-failure.json");
        let bytes = bytes.trim_ascii();
        for end in 0..bytes.len() {
            assert!(
                pane(&raw(&bytes[..end]), &id("db9e5b41-1796057553")).is_err(),
                "{end}"
            );
        }
        let bytes =
            include_bytes!("../../tests/recordings/restart-skipped-fresh.json").trim_ascii();
        for end in 0..bytes.len() {
            let answer = restart(&raw(&bytes[..end]), &id("2910942c-1796057553"));
            assert!(
                matches!(answer, crate::model::Restarted::Unknown(_)),
                "{end} {answer:?}"
            );
        }
    }

    #[test]
    fn an_error_object_means_what_code_and_exit_say_together() {
        let answer = |code: &str, exit| {
            let stdout = format!("{{\"success\":false,\"code\":\"{code}\",\"error\":\"why\"}}");
            Raw {
                code: exit,
                stdout: stdout.as_bytes(),
                stderr: b"",
            }
            .refusal()
        };
        assert_eq!(answer("NOT_FOUND", Some(2)), NoAnswer::NotFound);
        assert_eq!(
            answer("NOT_FOUND", Some(1)),
            NoAnswer::Failed("NOT_FOUND: why".to_owned())
        );
        assert_eq!(
            answer("NOT_FOUND", None),
            NoAnswer::Failed("NOT_FOUND: why".to_owned())
        );
        assert_eq!(
            answer("AMBIGUOUS", Some(1)),
            NoAnswer::Ambiguous("why".to_owned())
        );
        assert_eq!(answer("", Some(0)), NoAnswer::Failed("why".to_owned()));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let cut = excerpt(&"\u{e9}".repeat(2 * EXCERPT));
        assert_eq!(cut.chars().count(), EXCERPT + 1);
        assert_eq!(excerpt("  short \n"), "short");
    }
}
