//! What is remembered of one owner of a Telegram bot.
//!
//! This file does not know when a poller is missed.

use crate::clock::Time;
use crate::model::{Profile, Session, SessionId};
use crate::stored::stored;

stored! {
    /// What is known of the poller of one owner of a Telegram bot.
    pub struct Owner {
        /// Full id.
        pub id: SessionId,
        /// Its profile.
        pub profile: Profile,
        /// Its title when last listed.
        pub title: String,
        /// Every look since then found no poller of it.
        pub missing_since: Option<Time>,
        /// The last look that counts found one.
        pub heard: bool,
        /// Looks that found none while the one before had found one.
        pub absences: Vec<Time>,
        /// Others poll for its bot as well, since.
        pub others_since: Option<Time>,
        /// Deaf for certain, and not restarted yet.
        pub deaf_since: Option<Time>,
        /// Its poller has had no connection in any look since.
        pub unconnected_since: Option<Time>,
        /// The last restart that was to bring a poller back.
        pub restarted: Option<Time>,
        /// Such restarts since a poller was last seen.
        pub fruitless: u32,
        /// A restart of it, whatever for, after which its poller was not yet
        /// looked for.
        pub pending: Option<Time>,
        /// Not an owner, or not listed, since.
        pub missed_since: Option<Time>,
        /// What was written down since a poller was last seen: each once.
        pub said: Vec<String>,
    }
}

impl Owner {
    /// An owner that has just become known. Where an older memory was lost it
    /// counts as restarted just then (DESIGN 3.5).
    pub fn new(row: &Session, spent: Option<Time>) -> Owner {
        Owner {
            id: row.id.clone(),
            profile: row.profile.clone(),
            title: row.title.clone(),
            missing_since: None,
            heard: false,
            absences: Vec::new(),
            others_since: None,
            deaf_since: None,
            unconnected_since: None,
            restarted: spent,
            fruitless: u32::from(spent.is_some()),
            pending: None,
            missed_since: None,
            said: Vec::new(),
        }
    }
}
