//! What is remembered of one child: the timer of its pane, and the episode
//! (ladder 1.3).
//!
//! This file does not know when a child is due.

use super::Backoff;
use crate::clock::Time;
use crate::model::{Profile, Session, SessionId};
use crate::stored::stored;

stored! {
    /// What is known of one child: the timer of its pane, and the episode
    /// (ladder 1.3).
    pub struct Child {
        /// Full id.
        pub id: SessionId,
        /// Its profile.
        pub profile: Profile,
        /// Its title when last listed.
        pub title: String,
        /// It waits, and its pane is read.
        pub waits: bool,
        /// Digest of its pane; empty while it was not read.
        pub digest: String,
        /// The pane is unchanged since, but for the time that does not count;
        /// `None`: it does not wait.
        pub since: Option<Time>,
        /// Its pane could not be read since; that time does not count.
        pub unread_since: Option<Time>,
        /// A dialog was on its screen in the last reading.
        pub asks: bool,
        /// When the episode opened: it had waited for the whole threshold.
        pub opened: Option<Time>,
        /// Neither waiting nor in error since, in an open episode.
        pub recovering_since: Option<Time>,
        /// Nudges in this episode.
        pub nudges: u32,
        /// Nothing more is typed in this episode; the word says why.
        pub silent: String,
        /// The last nudge of all; it outlives the episode.
        pub last_nudge: Option<Time>,
        /// It is due, and something is in the way, since.
        pub doubt_since: Option<Time>,
        /// agent-deck refused the last one before it typed anything.
        pub retry: Option<Backoff>,
        /// The pane before the last nudge, while it is not known whether it moved.
        pub asked: String,
        /// The last reading by a `--once` run; a daemon knows its own.
        pub read: Option<Time>,
        /// Not listed since.
        pub missed_since: Option<Time>,
        /// Reasons that were written down in this episode: each once.
        pub said: Vec<String>,
    }
}

impl Child {
    /// A child that has just become known. Where an older memory was lost it
    /// counts as asked just then (DESIGN 3.5).
    pub fn new(row: &Session, spent: Option<Time>) -> Child {
        Child {
            id: row.id.clone(),
            profile: row.profile.clone(),
            title: row.title.clone(),
            waits: false,
            digest: String::new(),
            since: None,
            unread_since: None,
            asks: false,
            opened: None,
            recovering_since: None,
            nudges: 0,
            silent: String::new(),
            last_nudge: spent,
            doubt_since: None,
            retry: None,
            asked: String::new(),
            read: None,
            missed_since: None,
            said: Vec::new(),
        }
    }
}
