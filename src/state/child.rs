//! What is remembered of one child: the timer of its pane, and the episode
//! (ladder 1.3).
//!
//! This file does not know when a child is due.

use super::Backoff;
use crate::clock::Time;
use crate::model::{Profile, Session, SessionId};
use crate::stored::{stored, words};

words! {
    /// Where a child stands on the ladder (ladder 1.4).
    pub enum Rung {
        /// No episode: it works, rests, or is exempt.
        Clear = "clear",
        /// It waits, and its timer runs.
        Watching = "watching",
        /// It waits for a decision that is visible.
        Gated = "gated",
        /// It waits, is due, and its composer is not free.
        CannotAsk = "cannot-ask",
        /// It waits, held by a limit or a login problem.
        Held = "held",
        /// It was asked.
        Nudged = "nudged",
        /// Triage is asked, or has given it more time.
        Triage = "triage",
        /// Asking is over, and somebody was told.
        HandedOver = "handed-over",
        /// We asked for its stop.
        Stopping = "stopping",
        /// It stopped since we asked for it.
        StoppedByUs = "stopped-by-us",
        /// It reads dead, and that is not confirmed.
        Dying = "dying",
        /// It is dead.
        Dead = "dead",
        /// It is done, stopped, archived or removed.
        Settled = "settled",
    }
}

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
        /// Id of its parent.
        pub parent: String,
        /// Where it stands on the ladder.
        pub rung: Rung,
        /// Where it comes back to when what is in the way is gone.
        pub under: Rung,
        /// It was last seen to begin to run.
        pub ran: Option<Time>,
        /// agent-deck printed that it runs, at the last list.
        pub runs: bool,
        /// It has certainly run at some time.
        pub lived: bool,
        /// When it last said that its work is over; it may be about an older task.
        pub over: Option<Time>,
        /// It said then that the work is done; else that it failed.
        pub over_ok: bool,
        /// When its handing over, or what else was told of it, became final.
        pub told: Option<Time>,
        /// The screen with a decision that was told last.
        pub gate: String,
        /// When that was.
        pub gate_told: Option<Time>,
        /// A limit or login problem holds it since.
        pub held_since: Option<Time>,
        /// Times that triage has given it more time, in this episode.
        pub extends: u32,
        /// Triage has had it asked once more, in this episode.
        pub retried: bool,
        /// That question has not been put yet.
        pub retry_due: bool,
        /// Triage was last asked.
        pub triaged: Option<Time>,
        /// What triage says is not known yet.
        pub triage_open: bool,
        /// It reads dead since.
        pub dying_since: Option<Time>,
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
            parent: row.parent.clone(),
            rung: Rung::Clear,
            under: Rung::Clear,
            ran: None,
            runs: false,
            lived: false,
            over: None,
            over_ok: false,
            told: None,
            gate: String::new(),
            gate_told: None,
            held_since: None,
            extends: 0,
            retried: false,
            retry_due: false,
            triaged: None,
            triage_open: false,
            dying_since: None,
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
