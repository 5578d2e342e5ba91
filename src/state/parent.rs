//! What is remembered of one parent: notices that wait for it, and the batch of
//! its children (ladder 1.6, 1.7).
//!
//! This file does not know when a notice is due, nor when a batch is over.

use crate::clock::Time;
use crate::model::{Profile, SessionId};
use crate::stored::{stored, words};

words! {
    /// What a parent is told.
    pub enum NoticeKind {
        /// A child needs a decision (T17).
        Gate = "gate",
        /// A child cannot be asked (T7b).
        CannotAsk = "cannot-ask",
        /// A child is held by a limit or a login problem (T19).
        Held = "held",
        /// A child is beyond nudging (T21).
        HandedOver = "handed-over",
        /// A child was stopped by the watchdog (T23).
        Stopped = "stopped",
        /// A child died (T28).
        Died = "died",
        /// All children are over (1.7).
        Batch = "batch",
    }

    /// How a member of a batch ended.
    pub enum Ending {
        /// It is not over.
        Open = "open",
        /// It said that its work is done.
        Done = "done",
        /// It said that its work failed.
        Failed = "failed",
        /// Somebody stopped it.
        Stopped = "stopped",
        /// The watchdog stopped it.
        StoppedByUs = "stopped-by-us",
        /// It died.
        Died = "died",
        /// It does not answer.
        Unresponsive = "unresponsive",
    }
}

stored! {
    /// What is known of one parent.
    pub struct Parent {
        /// Full id.
        pub id: SessionId,
        /// Its profile.
        pub profile: Profile,
        /// Its title when last listed.
        pub title: String,
        /// A message to it was last begun.
        pub last_told: Option<Time>,
        /// Notices that wait, oldest first.
        pub queue: Vec<ParentNotice>,
        /// It is not listed since, while notices wait.
        pub gone_since: Option<Time>,
        /// Number of the batch that is open, or was last.
        pub batch: u32,
        /// Members of the open batch; empty: none is open.
        pub members: Vec<Member>,
        /// Members of batches that were closed.
        pub announced: Vec<SessionId>,
        /// All members are over since.
        pub settling_since: Option<Time>,
        /// All members wait or rest, and none has ever said that it is done, since.
        pub silent_since: Option<Time>,
        /// It was written down that this batch cannot be judged.
        pub unjudged: bool,
        /// Its children were last asked for what they have done.
        pub asked: Option<Time>,
        /// How often, since one of them came to rest.
        pub asks: u32,
        /// Neither it nor a child of it is listed since.
        pub missed_since: Option<Time>,
    }

    /// A child in a batch.
    pub struct Member {
        /// Full id.
        pub id: SessionId,
        /// Its group, for the wording.
        pub group: String,
        /// How it ended.
        pub ending: Ending,
        /// It was at rest, or had ended, at the last list.
        pub rests: bool,
    }

    /// Something that a parent is to hear.
    pub struct ParentNotice {
        /// What it is about.
        pub kind: NoticeKind,
        /// About which child; empty for a batch.
        pub child: String,
        /// Our own sentence, harmless.
        pub text: String,
        /// When it was put here.
        pub since: Time,
        /// It was handed to agent-deck, and the answer is not known.
        pub sending: bool,
    }
}

impl Parent {
    /// A parent that has just become known.
    pub fn new(profile: &Profile, id: &SessionId, title: &str) -> Parent {
        Parent {
            id: id.clone(),
            profile: profile.clone(),
            title: title.to_owned(),
            last_told: None,
            queue: Vec::new(),
            gone_since: None,
            batch: 0,
            members: Vec::new(),
            announced: Vec::new(),
            settling_since: None,
            silent_since: None,
            unjudged: false,
            asked: None,
            asks: 0,
            missed_since: None,
        }
    }
}
