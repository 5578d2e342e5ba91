//! The form of the state on disk: stamps as wall time, beside the clocks of
//! the moment, so that ages come out right in another run (DESIGN 3.5).
//!
//! This file does not know what is remembered, nor where the file lies.

use super::State;
use crate::clock::{Reading, Time, each_stamp};
use crate::json::Value;
use crate::stored::{Stored, stored};

impl State {
    /// The file's text: stamps as wall time, with the clocks of the moment.
    pub fn encode(&self, now: Time, clocks: &Reading) -> Vec<u8> {
        let mut file = File {
            version: VERSION,
            saved: clocks.clone(),
            state: self.clone(),
        };
        let mut json = file.store();
        each_stamp(&mut json, &mut |at| Time(clocks.wall).minus(now.since(at)));
        format!("{json:#}\n").into_bytes()
    }

    /// Reads a file's text back, its stamps on the line of this run: as old as
    /// they were when it was saved, plus what has really passed since. A stamp
    /// that lay ahead counts as the moment of saving.
    ///
    /// # Errors
    /// A text that is not a state file of this version, and why.
    pub fn decode(bytes: &[u8], now: Time, clocks: &Reading) -> Result<State, String> {
        let broken = |field: &str| format!("the field {field:?} is missing or wrong");
        let mut json: Value = crate::json::read(bytes).map_err(|e| e.to_string())?;
        let version = json.get("version").and_then(Value::as_u64);
        if version != Some(u64::from(VERSION)) {
            let found = version.map_or("none".to_owned(), |found| found.to_string());
            return Err(format!("version {found}, this program knows {VERSION}"));
        }
        let mut file = File::blank();
        if let Some(clocks) = json.get("saved") {
            // What is wrong with them is said below, with all the rest.
            let _ = file.saved.restore(clocks);
        }
        let saved = now.minus(clocks.elapsed_since(&file.saved));
        let wall = Time(file.saved.wall);
        each_stamp(&mut json, &mut |at| saved.minus(wall.since(at)));
        file.restore(&json).map_err(broken)?;
        file.state.put_children_in_order();
        Ok(file.state)
    }
}

/// Version of the file's form.
const VERSION: u32 = 1;

stored! {
    /// The file.
    pub struct File {
        /// Version of its form.
        pub version: u32,
        /// The clocks when it was saved.
        pub saved: Reading,
        /// The state, stamps as wall time.
        pub state: State,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::{Profile, SessionId};
    use crate::state::Backoff;

    fn clocks(wall: u64, boot: u64, id: &str) -> Reading {
        Reading {
            wall,
            boot,
            boot_id: id.to_owned(),
        }
    }

    fn sample(now: Time) -> State {
        let mut state = State {
            last_restart: Some(now.minus(s(40))),
            ..State::default()
        };
        let id = SessionId::parse("1a2b3c4d-1755900000").unwrap();
        let profile = Profile::parse("default").unwrap();
        let memory = state.memory(&profile, &id, "conductor-ops");
        memory.restarts = vec![now.minus(s(200)), now.minus(s(40))];
        memory.crash_loop = Some(Backoff {
            since: now.minus(s(40)),
            seconds: 300,
        });
        state
    }

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn ages_are_kept_and_grow_by_what_really_passed() {
        let now = Time(1_000_000_000);
        let text = sample(now).encode(now, &clocks(2_000_000_000, 5_000_000, "a"));
        // (clocks at loading, seconds that passed since saving)
        for (at_load, passed) in [
            (clocks(2_000_010_000, 5_010_000, "a"), 10),
            (clocks(0, 5_010_000, "a"), 10),             // set back
            (clocks(9_000_000_000, 5_010_000, "a"), 10), // set forward
            (clocks(2_000_010_000, 100, "b"), 10),       // another boot
            (clocks(1_000, 100, "b"), 0),                // another boot, set back
        ] {
            let now = Time(7_000_000_000);
            let state = State::decode(&text, now, &at_load).unwrap();
            assert_eq!(state, sample(now.minus(s(passed))), "{at_load:?}");
        }
    }

    #[test]
    fn a_stamp_that_lies_ahead_counts_as_the_moment_of_saving() {
        let now = Time(1_000_000_000);
        let mut state = sample(now);
        state.last_restart = Some(now.plus(s(86_400)));
        let clocks = clocks(2_000_000_000, 5_000_000, "a");
        let text = state.encode(now, &clocks);
        let loaded = State::decode(&text, now, &clocks).unwrap();
        assert_eq!(loaded.last_restart, Some(now));
        let hand = String::from_utf8(sample(now).encode(now, &clocks))
            .unwrap()
            .replace("1999960000", "99999960000");
        let loaded = State::decode(hand.as_bytes(), now, &clocks).unwrap();
        assert_eq!(loaded.last_restart, Some(now));
    }

    #[test]
    fn children_are_found_whatever_order_a_file_has_them_in() {
        let now = Time(1_000_000_000);
        let clocks = clocks(2_000_000_000, 5_000_000, "a");
        let profile = Profile::parse("default").unwrap();
        let row = |n: usize| {
            let id = SessionId::parse(&format!("{n}-1")).unwrap();
            crate::model::Session::new(profile.clone(), id)
        };
        let mut state = State::default();
        for n in [3, 1, 4, 0, 5, 9, 2, 6] {
            state.child(&row(n)).nudges = u32::try_from(n).unwrap();
        }
        let mut mixed = state.clone();
        mixed.children.reverse();
        mixed.children.swap(1, 5);
        let read = State::decode(&mixed.encode(now, &clocks), now, &clocks).unwrap();
        assert_eq!(read, state);
        let nudges = |n| Some(read.known_child(&row(n).id)?.nudges);
        assert_eq!((nudges(9), nudges(7), nudges(0)), (Some(9), None, Some(0)));
    }

    #[test]
    fn what_is_not_a_whole_file_of_this_version_is_refused() {
        let now = Time(1_000_000_000);
        let clocks = clocks(2_000_000_000, 5_000_000, "a");
        let text = sample(now).encode(now, &clocks);
        for cut in 0..text.len() - 2 {
            assert!(
                State::decode(&text[..cut], now, &clocks).is_err(),
                "cut at {cut}"
            );
        }
        for broken in ["", "\0\0\0\0", "[]", "7", "{\"version\":1}", "null"] {
            assert!(
                State::decode(broken.as_bytes(), now, &clocks).is_err(),
                "{broken:?}"
            );
        }
        let newer = String::from_utf8(text)
            .unwrap()
            .replace("\"version\": 1", "\"version\": 2");
        assert!(
            State::decode(newer.as_bytes(), now, &clocks)
                .unwrap_err()
                .contains("version 2")
        );
    }
}
