//! What is being told: episodes, messages that wait, the one on its way.
//!
//! This file does not know what is worth telling.

use super::Backoff;
use crate::clock::Time;
use crate::model::Level;
use crate::stored::stored;

stored! {
    /// A trouble that is told as one.
    pub struct Episode {
        /// Kind and subject.
        pub key: String,
        /// How loud.
        pub level: Level,
        /// Its newest text.
        pub text: String,
        /// When it opened.
        pub opened: Time,
        /// When it was last put into the outbox.
        pub told: Time,
        /// Restarts made in it.
        pub restarts: u32,
        /// Events since then that were not told by themselves.
        pub suppressed: u32,
        /// Seconds between reminders.
        pub remind: u64,
    }

    /// A message that waits.
    pub struct Notice {
        /// Key of its episode.
        pub key: String,
        /// How loud.
        pub level: Level,
        /// Our own text, no secrets.
        pub text: String,
        /// When it was put here.
        pub since: Time,
        /// It was written down that it waits for its minute.
        pub waiting: bool,
    }

    /// What goes out as one message.
    pub struct Parcel {
        /// Keys of the episodes in it.
        pub keys: Vec<String>,
        /// How loud.
        pub level: Level,
        /// The text.
        pub text: String,
        /// Tries so far.
        pub tries: u32,
        /// It was handed over and has not been answered yet.
        pub handed_over: bool,
        /// Not before this long after the last try.
        pub wait: Option<Backoff>,
    }
}
