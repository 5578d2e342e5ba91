//! When the watchdog itself ran: from its first and last lines, and from its
//! lock file, which is touched while it runs (DESIGN 2.3).
//!
//! What died leaves no last line: then only the time after which it died is
//! known. Single runs by cron leave neither first nor last lines. This file does
//! not know what the watchdog did.

use std::fmt::Arguments;
use std::time::Duration;

use super::lines::{Entry, Kind};
use super::story::Item;
use crate::clock::{Time, spoken};
use crate::commands::paper::Light;

/// So long it may be away when it is restarted.
const RESTARTED: Duration = Duration::from_secs(120);
/// Polls without a sign of life that are too many (DESIGN 2.1).
const POLLS: u32 = 3;
/// Shorter times without one are not worth a word.
pub const LEAST: Duration = Duration::from_secs(60);

/// The last sign of life.
#[derive(Clone, Copy, Debug)]
pub struct Sign {
    /// When.
    pub at: Time,
    /// It came from a single run.
    pub once: bool,
    /// Between two polls.
    pub poll: Duration,
}

/// A time in which the watchdog did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// From when on; at the earliest, when that is not certain.
    pub from: Time,
    /// Until when.
    pub to: Time,
    /// When it began is known.
    pub certain: bool,
}

/// What is known so far.
#[derive(Clone, Copy, Debug)]
enum State {
    Unknown,
    Runs,
    Ended(Time),
}

/// The watchdog's own life.
pub struct Runs {
    state: State,
    /// What there is to tell.
    pub items: Vec<Item>,
    /// When it did not run.
    pub gaps: Vec<Gap>,
}

impl Runs {
    /// Begins with whether it ran before, and since when.
    pub fn new(before: Option<(bool, Time)>) -> Runs {
        Runs {
            state: match before {
                None => State::Unknown,
                Some((true, _)) => State::Runs,
                Some((false, since)) => State::Ended(since),
            },
            items: Vec::new(),
            gaps: Vec::new(),
        }
    }

    /// A start or an end; `last` is the last line before it, of any log.
    pub fn tell(&mut self, entry: &Entry, last: Option<Time>) {
        match (entry.kind, self.state) {
            (Kind::End, _) => {
                self.state = State::Ended(entry.at);
                if !entry.text.starts_with("ends") {
                    self.say(entry.at, "lock", format_args!(": lock {}", entry.text));
                }
                return;
            }
            (_, State::Unknown) => {
                self.say(entry.at, "starts", format_args!(" starts ({})", who(entry)));
            }
            (_, State::Ended(end)) if entry.at.since(end) <= RESTARTED => {
                self.say(
                    end,
                    "restarted",
                    format_args!(" was restarted ({})", who(entry)),
                );
            }
            (_, State::Ended(end)) => {
                let away = spoken(entry.at.since(end));
                let until = day_and_time(entry.at, end);
                let who = who(entry);
                let what = format_args!(" did not run for {away}, until {until} ({who})");
                self.say(end, "gap", what);
                self.gap(end, entry.at, true);
            }
            (_, State::Runs) => {
                let last = last.max(entry.before).unwrap_or(entry.at).min(entry.at);
                let since = day_and_time(last, entry.at);
                let who = who(entry);
                let what = format_args!(
                    " starts ({who}); the one before died without a word, some time after {since}"
                );
                self.say(entry.at, "died", what);
                self.gap(last, entry.at, false);
            }
        }
        self.state = State::Runs;
    }

    /// Judges the present by the last sign of life.
    pub fn end(&mut self, sign: Option<Sign>, to: Time) {
        match (self.state, sign) {
            (State::Ended(end), Some(sign)) if sign.at.since(end) > LEAST => {
                let again = day_and_time(sign.at, end);
                let how = if sign.once { " in single runs" } else { "" };
                self.say(
                    end,
                    "ended",
                    format_args!(" ended; it ran again{how}, last {again}"),
                );
            }
            (State::Ended(end), _) => {
                self.say(
                    end,
                    "gap",
                    format_args!(" ended, as a signal asked, and does not run since"),
                );
                self.gap(end, to, true);
            }
            (State::Unknown | State::Runs, Some(sign)) if !sign.once => {
                if to.since(sign.at) > (sign.poll * POLLS).max(LEAST) {
                    self.say(
                        sign.at,
                        "gap",
                        format_args!(" gives no sign of life since then"),
                    );
                    self.gap(sign.at, to, true);
                }
            }
            (State::Unknown | State::Runs, _) => {}
        }
    }

    fn say(&mut self, at: Time, word: &str, what: Arguments) {
        let mut item = Item::new(at, Kind::Start, word, what);
        item.who.push("the watchdog".to_owned());
        item.light = matches!(word, "gap" | "died").then_some(Light::Red);
        self.items.push(item);
    }

    fn gap(&mut self, from: Time, to: Time, certain: bool) {
        self.gaps.push(Gap { from, to, certain });
    }

    /// So long it did not run for certain, within a period.
    pub fn away(&self, from: Time) -> Duration {
        let certain = self.gaps.iter().filter(|gap| gap.certain);
        certain.map(|gap| gap.to.since(gap.from.max(from))).sum()
    }
}

/// Version and process number, from `agent-deck-watchdog 0.1.0 starts as process
/// 4711: …`.
fn who(start: &Entry) -> String {
    let (version, rest) = start.text.split_once(" starts as ").unwrap_or_default();
    let version = version.rsplit(' ').next().unwrap_or_default();
    let process = rest.split(':').next().unwrap_or_default();
    format!("version {version}, {process}")
}

/// The time of day, with the date where it is more than a day from `near`.
pub fn day_and_time(at: Time, near: Time) -> String {
    let far = at.0.abs_diff(near.0) >= 86_400_000;
    let stamp = at.rfc3339();
    let shown = stamp.get(if far { 0 } else { 11 }..16);
    shown.unwrap_or_default().replace('T', " ")
}
