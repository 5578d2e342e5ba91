//! Capability 3 in a turn: books who waits, reads their panes a few at a time,
//! and has those asked who are due. What it finds that nobody may type into is
//! told.
//!
//! Each call of [`step`] reads one pane, so that hints are served in between.
//! This file does not know how a child is asked, nor what makes it due.

use std::time::Duration;

use crate::capabilities::patrol::{self, Need, Read};
use crate::capabilities::restart::is_critical;
use crate::clock::{Time, spoken};
use crate::deck::processes::bare_shell;
use crate::guard;
use crate::model::{Level, Pane, Profile, Screen, Session, SessionId, Sight, Status};
use crate::nudge;
use crate::pace;
use crate::remember::{FORGET, GONE};
use crate::state::{Child, Memory, say};
use crate::telling::{self, Kind};
use crate::watch::{Deck, Reading, Watch};
use crate::world::World;

/// Panes read a turn: twenty take about as long as one restart (contract 14.1),
/// and a hundred waiting children are still read every half minute.
const READS: u32 = 20;
/// Messages sent a turn (DESIGN 3.1).
const SENDS: u32 = 2;
/// Between two looks longer than this, and longer than three times the usual
/// distance, nobody looked (DESIGN 3.4).
const GAP: Duration = Duration::from_secs(180);

/// A look at the processes older than this is repeated before a pane is judged.
const SIGHT_AGE: Duration = Duration::from_secs(30);

/// Kinds of episodes that are over when a child no longer waits.
const WHILE_WAITING: [Kind; 2] = [Kind::Decision, Kind::CannotAsk];

/// A turn begins: panes may be read, messages sent.
pub fn refill(watch: &mut Watch) {
    watch.rounds.reads_left = READS;
    watch.rounds.sends_left = SENDS;
}

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
pub fn book(watch: &mut Watch, deck: &Deck) {
    let now = deck.listed;
    let dedup = watch.rules.limits.nudge_dedup;
    let mut children = std::mem::take(&mut watch.state.children);
    children.retain_mut(|child| {
        if child.profile != deck.profile {
            return true;
        }
        match deck.row(&child.id) {
            Some(row) if is_read(watch, row, child.asks, now) => {
                patrol::waits(child, row);
                true
            }
            Some(row) => {
                let over = patrol::left(child, row, now) || !patrol::is_child(row);
                stops_waiting(watch, child, over, now);
                !patrol::is_over(child, dedup, now)
            }
            None => {
                let since = *child.missed_since.get_or_insert(now);
                if now.since(since) >= GONE {
                    patrol::evict(child);
                    stops_waiting(watch, child, true, now);
                }
                let asked = child.last_nudge.is_some_and(|at| now.since(at) < dedup);
                now.since(since) < FORGET || asked
            }
        }
    });
    watch.state.children = children;
    for row in &deck.rows {
        if is_read(watch, row, false, now) {
            patrol::waits(watch.state.child(row), row);
        }
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
fn stops_waiting(watch: &mut Watch, child: &Child, all: bool, now: Time) {
    watch.rounds.readings.retain(|id, _| *id != child.id);
    let subject = child.id.as_str();
    let text = format!("{} ({subject}) does not wait any more", child.title);
    for kind in WHILE_WAITING {
        telling::resolve(&mut watch.state, kind, subject, &text, now);
    }
    // It may be open beside one of those: not the same line twice.
    let text = format!("{} ({subject}) need not be reached any more", child.title);
    telling::resolve(&mut watch.state, Kind::Unreachable, subject, &text, now);
    if all {
        let text = format!("{} ({subject}) is at work again, or gone", child.title);
        telling::resolve(&mut watch.state, Kind::Unanswered, subject, &text, now);
        let text = format!("{} ({subject}) may be asked again", child.title);
        telling::resolve(&mut watch.state, Kind::Misfire, subject, &text, now);
    }
}

/// When a pane is to be read, if one is.
pub fn next_due(watch: &Watch) -> Option<Time> {
    if watch.rounds.reads_left == 0 {
        return None;
    }
    let waiting = watch.state.children.iter().filter_map(|child| {
        waiting_row(watch, child)?;
        Some(reading(watch, child).1)
    });
    waiting.min()
}

/// The row of a child that waits, in a list that is good.
fn waiting_row<'a>(watch: &'a Watch, child: &Child) -> Option<&'a Session> {
    let listed = watch.state.is_listed(&child.profile);
    let row = watch.deck(&child.profile)?.row(&child.id);
    row.filter(|_| listed && child.waits)
}

/// The last and the next reading of a child.
fn reading(watch: &Watch, child: &Child) -> (Time, Time) {
    let known = watch.rounds.readings.get(&child.id);
    let earlier = (child.read.unwrap_or_default(), Time(0));
    known.map_or(earlier, |reading| (reading.last, reading.due))
}

/// Reads the pane of the child that has been unread longest, and does what it
/// needs. False when none is due.
pub fn step<W: World>(watch: &mut Watch, world: &mut W) -> bool {
    if watch.rounds.reads_left == 0 || world.leaving() {
        return false;
    }
    let now = world.now();
    let due = watch.state.children.iter().filter_map(|child| {
        let row = waiting_row(watch, child)?;
        let (last, due) = reading(watch, child);
        (due <= now).then_some(((last, child.since), row))
    });
    let Some(row) = due.min_by_key(|(key, _)| *key).map(|(_, row)| row.clone()) else {
        return false;
    };
    watch.rounds.reads_left -= 1;
    let pane = world.pane(&row.profile, &row.id);
    let now = world.now();
    if now.since(watch.sighted) > SIGHT_AGE {
        pace::search(watch, world);
    }
    let due = match pane {
        Ok(Pane::Stands(screen)) if !has_ended(watch, &row) => seen(watch, world, &row, &screen),
        Ok(Pane::Stands(_)) => unread(watch, &row, "its terminal holds a bare shell", now),
        Ok(Pane::Gone) => unread(watch, &row, "its terminal is gone", now),
        Err(why) => unread(watch, &row, &why.to_string(), now),
    };
    book_reading(watch, world, &row, due);
    true
}

/// It was read: when it is read again, given when something may be due.
fn book_reading<W: World>(watch: &mut Watch, world: &mut W, row: &Session, due: Option<Time>) {
    let now = world.now();
    if watch.rules.pace.is_none() {
        watch.state.child(row).read = Some(now);
    }
    let longest = if world.notices(&[]) {
        patrol::READ_HINTED
    } else {
        patrol::READ_FAR
    };
    let first = Reading {
        last: now,
        due: now,
    };
    let reading = watch.rounds.readings.get_or_make(&row.id, || first);
    let before = reading.due.since(reading.last);
    let distance = match due {
        // A dialog of a start stands there by now, or not at all.
        None if !patrol::is_child(row) => patrol::READ_HINTED,
        due => patrol::next_reading(due, before, longest, watch.rules.poll, now),
    };
    reading.last = now;
    reading.due = now.plus(distance);
}

/// A hook record came: something happened in that session, so its pane is read
/// at once if it waits, but not more often than once a poll.
pub fn hook(watch: &mut Watch, id: &SessionId, now: Time) {
    if let Some(reading) = watch.rounds.readings.get_mut(id) {
        let soonest = now.max(reading.last.plus(watch.rules.poll));
        reading.due = reading.due.min(soonest);
    }
}

/// Whether its terminal holds nothing but a shell, where an agent should be.
fn has_ended(watch: &Watch, row: &Session) -> bool {
    match &watch.sight {
        Sight::Seen(table) => bare_shell(table, &row.id).is_some(),
        Sight::Blind(_) => false,
    }
}

/// Its pane could not be read. Returns when something may be due.
fn unread(watch: &mut Watch, row: &Session, why: &str, now: Time) -> Option<Time> {
    let threshold = watch.rules.threshold;
    let child = watch.state.child(row);
    let since = patrol::unread(child, now);
    if now.since(since) >= threshold && say(&mut child.said, "unreachable") {
        let text = format!(
            "{} ({}) is listed as waiting and cannot be reached for {}: {why}",
            row.title,
            row.id,
            spoken(now.since(since))
        );
        tell(watch, Kind::Unreachable, row, &text, now);
    }
    Some(since.plus(threshold)).filter(|told| *told > now)
}

/// Its pane was read. Returns when something may be due.
fn seen<W: World>(
    watch: &mut Watch,
    world: &mut W,
    row: &Session,
    screen: &Screen,
) -> Option<Time> {
    let digest = patrol::digest(screen);
    let traces = world.traces(&row.profile, &row.id);
    let now = world.now();
    let name = format!("{} ({})", row.title, row.id);
    let child = watch.state.child(row);
    let read = patrol::read(child, &digest, traces.hook.map(|hook| hook.at), now);
    child.asks = screen.decision;
    nudge::echo(watch, world, row, &digest);
    let text = format!("{name} can be reached again");
    telling::resolve(
        &mut watch.state,
        Kind::Unreachable,
        row.id.as_str(),
        &text,
        now,
    );
    if read == Read::Moved {
        let text = format!("the screen of {name} has changed");
        for kind in [Kind::Decision, Kind::CannotAsk] {
            telling::resolve(&mut watch.state, kind, row.id.as_str(), &text, now);
        }
    }
    let verdict = guard::nudge_verdict(&watch.state, &watch.surroundings(), row, now);
    let threshold = watch.rules.threshold;
    let child = watch.state.child(row);
    let need = patrol::need(child, row, screen, threshold, &verdict, now);
    if !matches!(need, Need::Nothing(_)) {
        child.opened.get_or_insert(now);
    }
    let waited = child.since.map_or(Duration::ZERO, |since| now.since(since));
    match need {
        Need::Nothing(until) => until,
        Need::HeldBack => {
            held_back(watch, world, row, &verdict.sentence());
            None
        }
        Need::Decision(what) => {
            let text = format!(
                "{name} waits for a decision about {what}, in a dialog on its screen: please look; \
                 nothing is typed into it"
            );
            tell(watch, Kind::Decision, row, &text, now);
            None
        }
        Need::CannotAsk(why) => {
            nudge::cannot_ask(watch, world, row, why);
            None
        }
        Need::Unanswered => {
            if say(&mut watch.state.child(row).said, "unanswered") {
                let text = format!(
                    "{name} was asked {} times to report and waits again for {}: please look",
                    watch.rules.limits.max_nudges,
                    spoken(waited)
                );
                tell(watch, Kind::Unanswered, row, &text, now);
            }
            None
        }
        Need::Ask => nudge::ask(watch, world, row, &digest),
    }
}

/// The guard holds a nudge back for no known time: written down once.
fn held_back<W: World>(watch: &mut Watch, world: &mut W, row: &Session, why: &str) {
    if say(&mut watch.state.child(row).said, "held back") {
        let sentence = format!("not asked to report: {why}");
        world.note(Level::Info, &format!("{} {}", row.title, row.id), &sentence);
    }
}

fn tell(watch: &mut Watch, kind: Kind, row: &Session, text: &str, now: Time) {
    let subject = row.id.as_str();
    telling::keep(&mut watch.state, kind, subject, Level::Warning, text, now);
}
