//! Names that can safely be passed on: a session's id, a profile's name.
//!
//! This file does not know what is behind a name.

use std::fmt;

use crate::clock::Time;
use crate::json::{Json as _, Value};
use crate::stored::{Restored, Stored, fill};

/// agent-deck's full id of a session, such as `1a2b3c4d-1755900000`.
///
/// Anything else could be taken for a flag or a path, so it never gets this type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(String);

/// Longest id that is accepted; real ones have 19 characters (contract 7.6).
const ID_MAX: usize = 100;

impl SessionId {
    /// Accepts `[A-Za-z0-9][A-Za-z0-9_.-]*` without `..`, up to 100 characters
    /// (the pattern of agent-deck's own hook handler, contract 7.4).
    pub fn parse(text: &str) -> Option<SessionId> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        let fits = text.len() <= ID_MAX
            && text.bytes().all(plain)
            && text
                .as_bytes()
                .first()
                .is_some_and(u8::is_ascii_alphanumeric)
            && !text.contains("..");
        fits.then(|| SessionId(text.to_owned()))
    }

    /// The id as agent-deck wants it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// When the row was made, which is the number behind the dash (contract 7.6).
    pub fn created(&self) -> Option<Time> {
        let seconds: u64 = self.0.rsplit_once('-')?.1.parse().ok()?;
        Some(Time(seconds.checked_mul(1000)?))
    }
}

impl Stored for SessionId {
    fn blank() -> SessionId {
        SessionId(String::new())
    }

    fn store(&mut self) -> Value {
        self.as_str().json()
    }

    fn restore(&mut self, value: &Value) -> Restored {
        fill(self, value.as_str().and_then(SessionId::parse))
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> String {
        id.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Name of an agent-deck profile that is safe to pass on: one path element that
/// is no flag (contract 1.3).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Profile(String);

impl Profile {
    /// Refuses the empty name, `.`, `..`, slashes, a leading dash, control
    /// characters and names longer than 100 bytes.
    pub fn parse(text: &str) -> Option<Profile> {
        let fits = !text.is_empty()
            && text.len() <= ID_MAX
            && text != "."
            && text != ".."
            && !text.starts_with('-')
            && !text.chars().any(|c| c == '/' || c == ',' || c.is_control());
        fits.then(|| Profile(text.to_owned()))
    }

    /// The name as agent-deck wants it behind `-p`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Stored for Profile {
    fn blank() -> Profile {
        Profile(String::new())
    }

    fn store(&mut self) -> Value {
        self.as_str().json()
    }

    fn restore(&mut self, value: &Value) -> Restored {
        fill(self, value.as_str().and_then(Profile::parse))
    }
}

impl From<Profile> for String {
    fn from(profile: Profile) -> String {
        profile.0
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_could_be_flags_or_paths_are_refused() {
        for good in ["1a2b3c4d-1755900000", "a", "x_y.z-1"] {
            assert_eq!(
                SessionId::parse(good).map(String::from).as_deref(),
                Some(good)
            );
        }
        let long = "a".repeat(101);
        for bad in [
            "", "-rf", "../x", "a..b", "a/b", "a b", ".hidden", "a\n", "\u{e9}", &long,
        ] {
            assert_eq!(SessionId::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn profile_names_that_would_mean_another_profile_are_refused() {
        for good in ["default", "n\u{e4}chtlich", "_test", "a b"] {
            assert!(Profile::parse(good).is_some(), "{good:?}");
        }
        for bad in ["", ".", "..", "a/b", "-p", "a,b", "a\u{1b}"] {
            assert!(Profile::parse(bad).is_none(), "{bad:?}");
        }
    }
}
