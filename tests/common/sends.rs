//! What was sent to sessions, and what their agents saw of it. Does not know
//! when anything should be sent.

use super::{Call, Deck};

/// A call of `session send`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Send {
    /// Unix milliseconds of its start.
    pub at: u64,
    /// Profile, as given with `-p`.
    pub profile: String,
    /// The session it names.
    pub id: String,
    /// The message: all words but id and flags.
    pub message: String,
    /// The flags, in order.
    pub flags: Vec<String>,
}

impl Send {
    fn of(call: &Call) -> Option<Send> {
        let (global, rest) = call.args.split_once("session send ")?;
        let profile = global.trim().strip_prefix("-p ").unwrap_or_default();
        let (flags, words): (Vec<&str>, Vec<&str>) =
            rest.split(' ').partition(|word| word.starts_with("--"));
        let own = |word: &&str| (*word).to_owned();
        Some(Send {
            at: call.at,
            profile: profile.to_owned(),
            id: words.first().map(own)?,
            message: words[1..].join(" "),
            flags: flags.iter().map(own).collect(),
        })
    }
}

impl Deck {
    /// All sends so far, to any session.
    pub fn sends(&self) -> Vec<Send> {
        self.ledger().iter().filter_map(Send::of).collect()
    }

    /// All sends to one session.
    pub fn sends_to(&self, id: &str) -> Vec<Send> {
        let sends = self.sends().into_iter();
        sends.filter(|send| send.id == id).collect()
    }

    /// Waits until that session was sent something so many times; returns all.
    pub fn wait_for_sends(&self, id: &str, times: usize) -> Vec<Send> {
        self.wait("a send", || {
            Some(self.sends_to(id)).filter(|sends| sends.len() >= times)
        })
    }

    /// All bytes that reached the agent of a row: the text and `\r` for a
    /// message that arrived, `\x03` for each Ctrl+C; empty: not one byte.
    pub fn typed(&self, id: &str) -> String {
        self.get(id, "typed").unwrap_or_default()
    }

    /// Waits until something was typed; returns it.
    pub fn wait_for_typed(&self, id: &str) -> String {
        let typed = || self.get(id, "typed").filter(|typed| !typed.is_empty());
        self.wait("a byte at the agent", typed)
    }

    /// The options that sends have chosen in dialogs.
    pub fn answered(&self, id: &str) -> Vec<String> {
        let all = self.get(id, "answered").unwrap_or_default();
        all.lines().map(str::to_owned).collect()
    }

    /// How long each send takes; half of it before anything is typed.
    pub fn sends_take(&self, milliseconds: u32) {
        super::write(&self.file("send_ms"), milliseconds.to_string());
    }

    /// Patrol thresholds in seconds, for all further runs of the watchdog.
    pub fn patrol_after(&self, threshold: u32, dedup: u32) {
        self.setting("WAITING_PATROL_THRESHOLD_S", &threshold.to_string());
        self.setting("WAITING_PATROL_NUDGE_DEDUP_S", &dedup.to_string());
    }
}
