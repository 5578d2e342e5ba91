//! The last list of each profile: one that says the same again, byte for byte,
//! is not read again.
//!
//! This file does not know how a list is asked for.

use crate::deck::answers::{self, Listed, Raw};
use crate::model::{NoAnswer, Profile};

/// The last good answers.
#[derive(Default)]
pub struct Lists {
    known: Vec<Known>,
}

struct Known {
    profile: Profile,
    stdout: Vec<u8>,
    listed: Listed,
}

impl Lists {
    /// What an answer says.
    ///
    /// # Errors
    /// As [`answers::list`].
    pub fn read(&mut self, raw: &Raw, profile: &Profile) -> Result<Listed, NoAnswer> {
        let known = self.known.iter().find(|known| known.profile == *profile);
        if let Some(known) = known.filter(|known| raw.code == Some(0) && known.stdout == raw.stdout)
        {
            return Ok(known.listed.clone());
        }
        let listed = answers::list(raw, profile)?;
        self.known.retain(|known| known.profile != *profile);
        self.known.push(Known {
            profile: profile.clone(),
            stdout: raw.stdout.to_vec(),
            listed: listed.clone(),
        });
        Ok(listed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_say_the_same_and_others_are_read() {
        let answer = |code, stdout| Raw {
            code: Some(code),
            stdout,
            stderr: b"",
        };
        let one = b"[{\"id\": \"a-1\", \"status\": \"idle\"}]".as_slice();
        let two = b"[{\"id\": \"b-1\", \"status\": \"idle\"}]".as_slice();
        let [here, there] = ["here", "there"].map(|name| Profile::parse(name).unwrap());
        let mut lists = Lists::default();
        for _ in 0..2 {
            for (stdout, profile) in [(one, &here), (one, &here), (two, &here), (one, &there)] {
                let raw = answer(0, stdout);
                assert_eq!(lists.read(&raw, profile), answers::list(&raw, profile));
            }
            // The same bytes of a command that failed are no list.
            assert!(lists.read(&answer(1, one), &there).is_err());
            assert!(lists.read(&answer(0, b"[{"), &there).is_err());
        }
        assert_eq!(lists.known.len(), 2);
    }
}
