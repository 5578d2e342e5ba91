//! What the tests of the guard's rules begin with.
//!
//! This file does not know what any rule says.

use super::*;
use crate::model::Session;

pub const NOW: Time = Time(2_000_000_000_000);

pub fn at(seconds: u64) -> Time {
    NOW.plus(Duration::from_secs(seconds))
}

pub fn row() -> Session {
    let profile = Profile::parse("default").unwrap();
    Session::new(profile, SessionId::parse("1a2b3c4d-1755900001").unwrap())
}

pub fn around(flags: &Flags) -> Surroundings<'_> {
    Surroundings {
        flags,
        limits: Limits::default(),
        remembered: true,
    }
}
