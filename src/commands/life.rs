//! Is the watchdog alive? Judged from outside, by what its lock file says and by
//! the age of its signs of life (DESIGN 2.3).
//!
//! The lock itself is left alone: a daemon that starts at this moment has to get
//! it. This file does not know what the watchdog does.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::clock::{Clock, Time, spoken};
use crate::deck::argv::RESTART_DEADLINE;
use crate::host::lock::{Holder, Mode, read_holder};
use crate::host::logs::escape;
use crate::host::whole;
use crate::json::{Value, object};
use crate::machine::memory;
use crate::state::State;

/// So many polls without a sign of life are too many (DESIGN 2.1).
const POLLS: u32 = 3;
/// Between two runs by cron, where that is not known: cron knows no less.
const MINUTE: Duration = Duration::from_secs(60);

/// What kind of life there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A daemon watches.
    Watching,
    /// It watches in runs with `--once`.
    ByCron,
    /// A process is there and gives no sign of life.
    Silent,
    /// It lives and has completed no turn for long.
    Stuck,
    /// Somebody gives signs of life, and what is written of it cannot be read.
    Unreadable,
    /// It does not run, or cron has not called for long.
    Ended,
    /// It has never run in this folder.
    Never,
}

/// What is known of the watchdog's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// What kind of life there is.
    pub kind: Kind,
    /// What the lock file says.
    pub holder: Option<Holder>,
    /// Why that cannot be read.
    why: String,
    /// Since its last sign of life; `None`: none is there, or it is dated ahead.
    pub sign: Option<Duration>,
    /// Since its last complete turn.
    pub turn: Option<Duration>,
}

/// Looks at the signs of life in the watchdog's folder.
pub fn look(folder: &Path, clock: &Clock, state: &State, poll: Duration) -> Life {
    let (lock, state_file) = (folder.join("lock"), folder.join(memory::STATE));
    let (sign, turn) = (age(&lock, clock), age(&state_file, clock));
    let (holder, why) = match read_holder(&lock) {
        Ok(holder) => (Some(holder), String::new()),
        Err(why) => (None, why.to_string()),
    };
    let kind = match &holder {
        Some(holder) => judge(holder, exists(holder.pid), sign, turn, pace(state)),
        None if sign.is_some_and(|sign| sign <= poll * POLLS) => Kind::Unreadable,
        None if lock.exists() || state_file.exists() => Kind::Ended,
        None => Kind::Never,
    };
    Life {
        kind,
        holder,
        why,
        sign,
        turn,
    }
}

/// So long ago a file was touched; `None` when it lies so far ahead that the
/// clock must have been set back since.
fn age(file: &Path, clock: &Clock) -> Option<Duration> {
    let touched = clock.from_system(fs::metadata(file).ok()?.modified().ok()?);
    let now = clock.now();
    (touched.since(now) < MINUTE).then(|| now.since(touched))
}

/// Whether there is a process of that number that has not ended.
fn exists(pid: u32) -> bool {
    let there = |pid| !matches!(test_kill_process(pid), Err(Errno::SRCH));
    let known = i32::try_from(pid).ok().and_then(Pid::from_raw);
    known.is_some_and(there) && !has_ended(pid)
}

/// Whether it only waits for its parent to take notice (Linux).
fn has_ended(pid: u32) -> bool {
    let stat = whole::text(&format!("/proc/{pid}/stat"));
    // Behind its name, which may hold anything.
    let state = stat.split(") ").last().unwrap_or_default();
    state.starts_with(['Z', 'X'])
}

/// The longest usual distance between two runs with `--once`.
fn pace(state: &State) -> Duration {
    let seconds = state.profiles.iter().flat_map(|profile| &profile.pace);
    Duration::from_secs(seconds.copied().max().unwrap_or(0)).max(MINUTE)
}

fn judge(
    holder: &Holder,
    runs: bool,
    sign: Option<Duration>,
    turn: Option<Duration>,
    pace: Duration,
) -> Kind {
    let poll = Duration::from_secs(holder.poll_s.max(1));
    let patience = poll * POLLS;
    // A turn may wait for a restart.
    let turn_most = patience + RESTART_DEADLINE;
    match (holder.mode, runs) {
        (Mode::Once, _) if turn.or(sign).is_some_and(|age| age <= pace * POLLS) => Kind::ByCron,
        (Mode::Once, _) | (Mode::Daemon, false) => Kind::Ended,
        (Mode::Daemon, true) if sign.is_none_or(|sign| sign > patience) => Kind::Silent,
        (Mode::Daemon, true) if turn.is_some_and(|turn| turn > turn_most) => Kind::Stuck,
        (Mode::Daemon, true) => Kind::Watching,
    }
}

impl Life {
    /// Whether somebody watches.
    pub fn is_well(&self) -> bool {
        match self.kind {
            Kind::Watching | Kind::ByCron | Kind::Unreadable => true,
            Kind::Silent | Kind::Stuck | Kind::Ended | Kind::Never => false,
        }
    }

    /// Whether a daemon's process is there, well or not.
    pub fn has_process(&self) -> bool {
        match self.kind {
            Kind::Watching | Kind::Silent | Kind::Stuck => true,
            Kind::ByCron | Kind::Unreadable | Kind::Ended | Kind::Never => false,
        }
    }

    /// In one sentence: who, since when, the last complete turn.
    pub fn sentence(&self, now: Time) -> String {
        let ago = |span: Option<Duration>| {
            let unknown = || "at a time that is not known".to_owned();
            span.map_or_else(unknown, |span| format!("{} ago", spoken(span)))
        };
        let Some(holder) = &self.holder else {
            let (sign, why) = (ago(self.sign), escape(&self.why));
            return match self.kind {
                Kind::Never => "has never run here".to_owned(),
                Kind::Unreadable => {
                    format!("gives signs of life, the last {sign}; who it is cannot be read: {why}")
                }
                _ => format!("does not run; last sign of life {sign}"),
            };
        };
        let (pid, sign, turn) = (holder.pid, ago(self.sign), ago(self.turn));
        let turn = match holder.turn_ms {
            0 => format!("last turn {turn}"),
            ms => format!("last turn {turn}, it took about {}", took(ms)),
        };
        match self.kind {
            Kind::Watching => format!("watches: {}, {turn}", since(holder, now)),
            Kind::ByCron => format!(
                "watches in single runs (--once), version {}; {turn}",
                escape(&holder.version)
            ),
            Kind::Silent => format!(
                "gives no sign of life since {sign}: process {pid} hangs or was stopped, or it is \
                 another program by now; {turn}"
            ),
            Kind::Stuck => format!(
                "lives and completes no turn: {}, {turn}",
                since(holder, now)
            ),
            Kind::Ended | Kind::Unreadable | Kind::Never => {
                format!("does not run; last sign of life {sign}, {turn}")
            }
        }
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let seconds = |span: Option<Duration>| span.map(|span| span.as_secs());
        let holder = self.holder.as_ref();
        object!({
            "alive": self.is_well(),
            "state": self.word(),
            "pid": holder.map(|h| h.pid),
            "version": holder.map(|h| &h.version),
            "since": holder.map(|h| &h.since),
            "settings": holder.and_then(|h| h.given.clone()),
            "poll_s": holder.map(|h| h.poll_s),
            "sign_of_life_s": seconds(self.sign),
            "last_turn_s": seconds(self.turn),
            "turn_ms": holder.map(|h| h.turn_ms).filter(|ms| *ms > 0),
            "fast_path": holder.map(|h| &h.fast_path).filter(|text| !text.is_empty()),
        })
    }

    fn word(&self) -> &'static str {
        match self.kind {
            Kind::Watching => "watching",
            Kind::ByCron => "by cron",
            Kind::Silent => "silent",
            Kind::Stuck => "stuck",
            Kind::Unreadable => "unreadable",
            Kind::Ended => "ended",
            Kind::Never => "never ran",
        }
    }
}

fn since(holder: &Holder, now: Time) -> String {
    let age = match Time::parse_rfc3339(&holder.since) {
        Some(at) => format!("for {}", spoken(now.since(at))),
        None => format!("since {}", escape(&holder.since)),
    };
    let version = escape(&holder.version);
    format!("process {}, version {version}, {age}", holder.pid)
}

/// Milliseconds as a person says them.
fn took(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        _ => spoken(Duration::from_millis(ms)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(mode: Mode) -> Holder {
        Holder {
            pid: 4711,
            mode,
            poll_s: 5,
            since: "2026-11-30T22:00:00Z".to_owned(),
            version: "0.1.0".to_owned(),
            fast_path: "on".to_owned(),
            given: None,
            turn_ms: 50,
        }
    }

    #[test]
    fn life_is_judged_by_both_signs() {
        let s = |seconds: u64| Some(Duration::from_secs(seconds));
        let (daemon, once) = (holder(Mode::Daemon), holder(Mode::Once));
        let (daemon, once) = (&daemon, &once);
        for (holder, runs, sign, turn, kind) in [
            (daemon, true, None, None, Kind::Silent),
            (once, false, None, None, Kind::Ended),
            (daemon, true, s(1), s(3), Kind::Watching),
            (daemon, true, s(15), s(15), Kind::Watching),
            (daemon, true, s(16), s(16), Kind::Silent),
            (daemon, true, s(1), s(190), Kind::Watching),
            (daemon, true, s(1), s(196), Kind::Stuck),
            (daemon, true, s(1), None, Kind::Watching),
            (daemon, false, s(1), s(1), Kind::Ended),
            (once, false, s(100), s(100), Kind::ByCron),
            (once, true, s(1), s(100), Kind::ByCron),
            (once, false, s(181), s(181), Kind::Ended),
        ] {
            let found = judge(holder, runs, sign, turn, MINUTE);
            assert_eq!(found, kind, "{holder:?} {runs} {sign:?} {turn:?}");
        }
        let rare = Duration::from_secs(300);
        assert_eq!(judge(once, false, s(800), s(800), rare), Kind::ByCron);
    }

    #[test]
    fn our_own_process_exists_and_that_of_nobody_does_not() {
        assert!(exists(std::process::id()));
        assert!(!exists(u32::MAX) && !exists(0));
    }
}
