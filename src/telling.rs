//! Telling people: an episode is told once when it opens, reminded of at most
//! every six hours, told once when it ends, and never more than one message a
//! minute goes out (DESIGN 2.4).
//!
//! This file does not know what is worth telling, nor how a message travels.

use std::time::Duration;

use crate::clock::{Time, spoken};
use crate::json::{Map, put};
use crate::model::Level;
use crate::state::{Backoff, Episode, Notice, Parcel, State};
use crate::world::{Channel, Record, Sent, World};

mod kind;

pub use kind::{Kind, is_given_up};

/// Between two messages of any kind (DESIGN 2.4).
pub const MESSAGE_SPACING: Duration = Duration::from_secs(60);
/// Tries of one message, counted across runs (DESIGN 2.4).
const TRIES: u32 = 5;
/// Seconds before the second, third, fourth and fifth try: growing, and over
/// within an hour, after which the log is the better place.
const RETRY_SECONDS: [u64; 4] = [30, 120, 480, 1800];
/// Characters of one message: Telegram takes 4096, and the script adds a line.
const MESSAGE_CHARS: usize = 3500;
/// Characters of one notice in it.
const NOTICE_CHARS: usize = 900;
/// Notices that may wait; more are only written down.
const OUTBOX: usize = 100;

/// Something happened that belongs to an episode: opens it, or is counted.
pub fn raise(state: &mut State, kind: Kind, subject: &str, level: Level, text: &str, now: Time) {
    let known = is_open(state, kind, subject);
    keep(state, kind, subject, level, text, now);
    if known && let Some(episode) = find(state, &kind.key(subject)) {
        episode.suppressed = episode.suppressed.saturating_add(1);
    }
}

/// Something is so: opens the episode when it is not open, and refreshes its text.
pub fn keep(state: &mut State, kind: Kind, subject: &str, level: Level, text: &str, now: Time) {
    let key = kind.key(subject);
    let text = cut(text, NOTICE_CHARS);
    if let Some(episode) = find(state, &key) {
        episode.text = text;
        episode.level = level;
        return;
    }
    queue(state, &key, level, text.clone(), now);
    let remind = kind.remind().as_secs();
    state.episodes.push(Episode {
        key,
        level,
        text,
        opened: now,
        told: now,
        restarts: 0,
        suppressed: 0,
        remind,
    });
}

/// Something happened that is told once, and has no end that is worth telling.
pub fn mention(state: &mut State, key: &str, level: Level, text: &str, now: Time) {
    queue(state, key, level, cut(text, NOTICE_CHARS), now);
}

/// The trouble is over: tells so, and closes the episode.
pub fn resolve(state: &mut State, kind: Kind, subject: &str, text: &str, now: Time) {
    let key = kind.key(subject);
    let Some(at) = state.episodes.iter().position(|e| e.key == key) else {
        return;
    };
    let episode = state.episodes.remove(at);
    let restarts = match episode.restarts {
        0 => String::new(),
        1 => ", 1 restart".to_owned(),
        n => format!(", {n} restarts"),
    };
    let text = format!(
        "{text} after {}{restarts}",
        spoken(now.since(episode.opened))
    );
    queue(state, &key, Level::Info, cut(&text, NOTICE_CHARS), now);
}

/// Closes every episode about `subject` without a word, and takes back what has
/// not gone out yet: it left for another reason.
pub fn drop_all(state: &mut State, subject: &str) {
    state
        .episodes
        .retain(|episode| !is_about(&episode.key, subject));
    state
        .outbox
        .retain(|notice| !is_about(&notice.key, subject));
}

/// The same for one episode.
pub fn forget(state: &mut State, kind: Kind, subject: &str) {
    close(state, kind, subject);
    let key = kind.key(subject);
    state.outbox.retain(|notice| notice.key != key);
}

/// Closes one episode; what is to be told of it is still told.
pub fn close(state: &mut State, kind: Kind, subject: &str) {
    let key = kind.key(subject);
    state.episodes.retain(|episode| episode.key != key);
}

/// Whether the key is that of an episode about `subject`.
pub fn is_about(key: &str, subject: &str) -> bool {
    key.split_once(':')
        .is_some_and(|(_, about)| about == subject)
}

fn find<'a>(state: &'a mut State, key: &str) -> Option<&'a mut Episode> {
    state.episodes.iter_mut().find(|episode| episode.key == key)
}

/// Whether that episode is open.
pub fn is_open(state: &State, kind: Kind, subject: &str) -> bool {
    let key = kind.key(subject);
    state.episodes.iter().any(|episode| episode.key == key)
}

/// Counts a restart for the open episodes about `subject`.
pub fn count_restart(state: &mut State, subject: &str) {
    for episode in state
        .episodes
        .iter_mut()
        .filter(|episode| is_about(&episode.key, subject))
    {
        episode.restarts = episode.restarts.saturating_add(1);
    }
}

/// Puts the reminders that are due into the outbox.
pub fn remind(state: &mut State, now: Time) {
    let mut due = Vec::new();
    for episode in &mut state.episodes {
        if now.since(episode.told) < Duration::from_secs(episode.remind) {
            continue;
        }
        episode.told = now;
        let more = match episode.suppressed {
            0 => String::new(),
            n => format!(", {n} more events"),
        };
        let restarts = match episode.restarts {
            0 => String::new(),
            n => format!(", {n} restarts"),
        };
        let age = spoken(now.since(episode.opened));
        let text = format!("still, for {age}{restarts}{more}: {}", episode.text);
        episode.suppressed = 0;
        due.push((episode.key.clone(), episode.level, text));
    }
    for (key, level, text) in due {
        queue(state, &key, level, text, now);
    }
}

/// Moves messages on: takes the outcome of the one that is under way, starts
/// the next one when its minute has come. Everything is written down.
pub fn deliver<W: World>(state: &mut State, world: &mut W) {
    let now = world.now();
    take_outcome(state, world, now);
    let left_out = std::mem::take(&mut state.left_out);
    if left_out > 0 {
        let text = format!("{left_out} messages, since {OUTBOX} were waiting");
        write(world, "outbox", Level::Warning, &text, "left out", "");
    }
    if state.outbox.is_empty() && state.parcel.is_none() {
        return;
    }
    match world.channel() {
        Channel::LocalOnly => {
            for notice in std::mem::take(&mut state.outbox) {
                write(
                    world,
                    &notice.key,
                    notice.level,
                    &notice.text,
                    "local only",
                    "",
                );
            }
            if let Some(parcel) = state.parcel.take_if(|p| !p.handed_over) {
                write(
                    world,
                    &parcel.keys.join(" "),
                    parcel.level,
                    &parcel.text,
                    "local only",
                    "",
                );
            }
        }
        Channel::Script => send_next(state, world, now),
    }
}

/// When [`deliver`] has something to do again without an outcome coming in.
pub fn next_due(state: &State) -> Option<Time> {
    let spaced = state
        .last_sent
        .map_or(Time(0), |at| at.plus(MESSAGE_SPACING));
    let message = match &state.parcel {
        Some(parcel) if parcel.handed_over => None,
        Some(parcel) => Some(parcel.wait.map_or(spaced, |w| w.until().max(spaced))),
        None => (!state.outbox.is_empty()).then_some(spaced),
    };
    let reminder = state
        .episodes
        .iter()
        .map(|e| e.told.plus(Duration::from_secs(e.remind)))
        .min();
    message.into_iter().chain(reminder).min()
}

/// A message that was handed over by a run that ended before the outcome came:
/// its script was left running, so it is not sent again.
pub fn forget_handed_over<W: World>(state: &mut State, world: &mut W) {
    if let Some(parcel) = state.parcel.take_if(|p| p.handed_over) {
        let why = "the watchdog ended before escalate.sh did; not sent again";
        write(
            world,
            &parcel.keys.join(" "),
            parcel.level,
            &parcel.text,
            "unknown",
            why,
        );
    }
}

fn take_outcome<W: World>(state: &mut State, world: &mut W, now: Time) {
    let Some(sent) = world.told() else { return };
    let Some(mut parcel) = state.parcel.take() else {
        return;
    };
    let keys = parcel.keys.join(" ");
    match sent {
        Sent::Delivered => write(world, &keys, parcel.level, &parcel.text, "sent", ""),
        Sent::Refused(why) => write(world, &keys, parcel.level, &parcel.text, "failed", &why),
        Sent::TryAgain(at_least) => {
            let step = usize::try_from(parcel.tries.saturating_sub(1)).unwrap_or(usize::MAX);
            let Some(seconds) = RETRY_SECONDS.get(step).filter(|_| parcel.tries < TRIES) else {
                let why = format!("given up after {TRIES} tries");
                write(world, &keys, parcel.level, &parcel.text, "failed", &why);
                return;
            };
            let seconds = at_least.as_secs().max(*seconds);
            let why = format!(
                "try {} of {TRIES} failed, again in {seconds} s",
                parcel.tries
            );
            write(world, &keys, parcel.level, &parcel.text, "failed", &why);
            parcel.wait = Some(Backoff {
                since: now,
                seconds,
            });
            parcel.handed_over = false;
            state.parcel = Some(parcel);
        }
    }
}

fn send_next<W: World>(state: &mut State, world: &mut W, now: Time) {
    if state.parcel.as_ref().is_some_and(|p| p.handed_over) {
        return;
    }
    if next_due(state).is_none_or(|due| due > now) {
        for notice in state.outbox.iter_mut().filter(|n| !n.waiting) {
            notice.waiting = true;
            let why = "waits for its minute";
            write(
                world,
                &notice.key,
                notice.level,
                &notice.text,
                "rate-limited",
                why,
            );
        }
        return;
    }
    if world.leaving() {
        return;
    }
    let mut parcel = state
        .parcel
        .take()
        .unwrap_or_else(|| pack(std::mem::take(&mut state.outbox)));
    if parcel.keys.is_empty() {
        return;
    }
    parcel.tries = parcel.tries.saturating_add(1);
    parcel.handed_over = true;
    let (level, text) = (parcel.level, parcel.text.clone());
    state.parcel = Some(parcel);
    state.last_sent = Some(now);
    // Its count has to be on the disk before it goes out; when that fails the
    // message matters more than the count.
    let _ = world.save(state, true);
    world.tell(level, &text);
}

/// All that waits, as one message below the limit.
fn pack(notices: Vec<Notice>) -> Parcel {
    let mut parcel = Parcel {
        keys: Vec::new(),
        level: Level::Info,
        text: String::new(),
        tries: 0,
        handed_over: false,
        wait: None,
    };
    let mut length = 0;
    let mut left_out = 0;
    for notice in notices {
        parcel.level = parcel.level.max(notice.level);
        parcel.keys.push(notice.key);
        length += notice.text.chars().count() + 1;
        if length > MESSAGE_CHARS {
            left_out += 1;
            continue;
        }
        if !parcel.text.is_empty() {
            parcel.text.push('\n');
        }
        parcel.text.push_str(&notice.text);
    }
    if left_out > 0 {
        parcel
            .text
            .push_str(&format!("\nand {left_out} more, see escalations.log"));
    }
    parcel
}

fn queue(state: &mut State, key: &str, level: Level, text: String, now: Time) {
    if state.outbox.len() >= OUTBOX {
        state.left_out = state.left_out.saturating_add(1);
        return;
    }
    let key = key.to_owned();
    state.outbox.push(Notice {
        key,
        level,
        text,
        since: now,
        waiting: false,
    });
}

/// A line for `escalations.log`.
pub fn write<W: World>(
    world: &mut W,
    keys: &str,
    level: Level,
    text: &str,
    outcome: &str,
    why: &str,
) {
    let mut line = Map::new();
    put(&mut line, "episode", &keys);
    put(&mut line, "severity", &level.word());
    put(&mut line, "outcome", &outcome);
    if !why.is_empty() {
        put(&mut line, "why", &why);
    }
    put(&mut line, "text", &text);
    world.record(Record::Escalation(line));
}

/// Writes down the events that were not told by themselves.
pub fn write_deduplicated<W: World>(before: &[Episode], state: &State, world: &mut W) {
    for episode in &state.episodes {
        let known = before.iter().find(|e| e.key == episode.key);
        if episode.suppressed > known.map_or(0, |e| e.suppressed) {
            write(
                world,
                &episode.key,
                episode.level,
                &episode.text,
                "deduplicated",
                "",
            );
        }
    }
}

/// At most `most` characters, with a mark where something was cut.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
