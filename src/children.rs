//! What a good list says of children: who waits, who does not any more, who
//! died, who is gone, and the time in which nobody looked.
//!
//! This file does not know how a pane is read, nor what a child needs.

use std::time::Duration;

use crate::capabilities::patrol;
use crate::capabilities::restart::is_critical;
use crate::clock::Time;
use crate::ladder::{Death, Deed, Event, Listed};
use crate::model::{Profile, Session, SessionId, Status};
use crate::parents;
use crate::remember::GONE;
use crate::rungs;
use crate::state::{Child, Memory, NoticeKind, Rung};
use crate::telling::{self, Kind};
use crate::watch::{Deck, Watch};
use crate::world::World;

/// Between two looks longer than this, and longer than three times the usual
/// distance, nobody looked (DESIGN 3.4).
const GAP: Duration = Duration::from_secs(180);

/// Kinds of episodes that are over when a child no longer waits.
const WHILE_WAITING: [Kind; 2] = [Kind::Decision, Kind::CannotAsk];

/// Notices that are taken back then (ladder 1.8).
const NOTICES_WHILE_WAITING: [NoticeKind; 4] = [
    NoticeKind::Gate,
    NoticeKind::CannotAsk,
    NoticeKind::Held,
    NoticeKind::HandedOver,
];

/// A good list came: what passed since the one before does not count when that
/// was too long ago. To be called before the list is booked; true: it was.
pub fn after_gap(watch: &mut Watch, profile: &Profile, now: Time) -> bool {
    let known = watch.state.known_profile(profile);
    let failing = known.and_then(|memory| memory.failing_since);
    let listed = watch.decks.iter().find(|deck| deck.profile == *profile);
    let listed = listed.map(|deck| deck.listed).or(watch.last_turn);
    // Lists may fail from the moment on in which a sleep ended.
    let Some(before) = failing.into_iter().chain(listed).min() else {
        return false;
    };
    let length = now.since(before);
    let usual = match watch.rules.pace {
        Some(pace) => pace,
        None => usual(watch, profile, length),
    };
    if length <= GAP || length <= usual.saturating_mul(3) {
        return false;
    }
    watch.state.profile(profile).gap = Some(now);
    for child in &mut watch.state.children {
        if child.profile == *profile {
            patrol::gap(child, length, now);
        }
    }
    true
}

/// The usual distance between runs of cron: the smaller one of the last two,
/// since the larger one may have been a night. Notes this one.
fn usual(watch: &mut Watch, profile: &Profile, length: Duration) -> Duration {
    let pace = &mut watch.state.profile(profile).pace;
    let usual = pace.iter().copied().min().unwrap_or(0);
    // Rounded, so that it stays the same from run to run.
    pace.push(length.as_secs().saturating_add(5) / 10 * 10);
    if pace.len() > 2 {
        pace.remove(0);
    }
    Duration::from_secs(usual)
}

/// Books a good list: who waits, who does not any more, who is gone.
pub fn book<W: World>(watch: &mut Watch, world: &mut W, deck: &Deck) {
    let now = deck.listed;
    for row in &deck.rows {
        let known = watch.state.known_child(&row.id);
        let asks = known.is_some_and(|child| child.asks);
        if known.is_some() || patrol::is_child(row) || is_read(watch, row, asks, now) {
            book_row(watch, world, row, now);
        }
    }
    let unlisted = |child: &&Child| child.profile == deck.profile && deck.row(&child.id).is_none();
    let missing: Vec<SessionId> = watch
        .state
        .children
        .iter()
        .filter(unlisted)
        .map(|child| child.id.clone())
        .collect();
    for id in missing {
        book_missing(watch, world, &id, now);
    }
    let dedup = watch.rules.limits.nudge_dedup;
    watch.state.children.retain(|child| {
        let row = deck.row(&child.id);
        child.profile != deck.profile
            || match row {
                Some(row) => {
                    child.waits || patrol::is_child(row) || !patrol::is_over(child, dedup, now)
                }
                None => !patrol::is_forgotten(child, dedup, now),
            }
    });
}

/// Books one row that is a child, or was one, or shows a dialog at its start.
fn book_row<W: World>(watch: &mut Watch, world: &mut W, row: &Session, now: Time) {
    let began = *watch.state.began.get_or_insert(now);
    let new = watch.state.known_child(&row.id).is_none();
    let child = watch.state.child(row);
    let asks = child.asks;
    if !patrol::is_child(row) && is_read(watch, row, asks, now) {
        // No child: nothing but its dialog concerns us.
        return patrol::waits(watch.state.child(row), row);
    }
    let child = watch.state.child(row);
    let waited = child.waits || child.opened.is_some();
    let listed = patrol::listed(child, row, now);
    let step = rungs::happens(watch, world, &row.id, Event::Listed(listed));
    if listed == Listed::Waits {
        let child = watch.state.child(row);
        if child.nudges > 0 && child.rung == Rung::Watching {
            // The answer got lost with a run, or the memory is older than rungs.
            rungs::happens(watch, world, &row.id, Event::Deed(Deed::Asked));
        }
        return;
    }
    let over = match listed {
        Listed::Waits | Listed::Left | Listed::Error => false,
        Listed::Recovered | Listed::Stopped | Listed::Completed | Listed::Gone | Listed::Exempt => {
            true
        }
    };
    if waited {
        stops_waiting(watch, &row.id, over, now);
    }
    if step.is_some_and(|step| step.to == Rung::Dying) && new && row.created <= Some(began) {
        // It was so before anybody looked.
        rungs::happens(watch, world, &row.id, Event::Death(Death::Old));
    }
}

/// Books a child that a good list lacks.
fn book_missing<W: World>(watch: &mut Watch, world: &mut W, id: &SessionId, now: Time) {
    let Some(child) = watch.state.known_child_mut(id) else {
        return;
    };
    let since = *child.missed_since.get_or_insert(now);
    if now.since(since) < GONE {
        return;
    }
    patrol::gone(child);
    if rungs::happens(watch, world, id, Event::Listed(Listed::Gone)).is_some() {
        stops_waiting(watch, id, true, now);
    }
}

/// Whether the pane of a row is to be read: it is a child that waits, or a
/// critical session at its start, or one that asks for something in a dialog.
fn is_read(watch: &Watch, row: &Session, asks: bool, now: Time) -> bool {
    if row.status != Status::Waiting || patrol::is_child(row) {
        return row.status == Status::Waiting;
    }
    let memory = watch.state.sessions.get(&row.id);
    let agent = memory.and_then(|memory| memory.agent);
    let started = memory.and_then(Memory::last_restart).max(row.created);
    let started = started.max(agent.map(|agent| agent.started));
    let starting = is_critical(row, &watch.flags) && patrol::is_starting(row, started, now);
    starting || asks
}

/// What was told of it because it waited is over; `all`: so is its episode.
fn stops_waiting(watch: &mut Watch, id: &SessionId, all: bool, now: Time) {
    watch.rounds.readings.retain(|known, _| known != id);
    parents::withdraw(&mut watch.state, id, &NOTICES_WHILE_WAITING);
    let title = watch.state.known_child(id).map_or("", |child| &child.title);
    let name = format!("{title} ({id})");
    let mut resolve = |kind, text: &str| {
        let text = format!("{name} {text}");
        telling::resolve(&mut watch.state, kind, id.as_str(), &text, now);
    };
    for kind in WHILE_WAITING {
        resolve(kind, "does not wait any more");
    }
    // These may be open beside one of those: not the same line twice.
    resolve(Kind::Held, "is not held while it waits any more");
    resolve(Kind::Unreachable, "need not be reached any more");
    if all {
        resolve(Kind::Unanswered, "is at work again, or gone");
        resolve(Kind::Misfire, "may be asked again");
    }
}
