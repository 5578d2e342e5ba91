//! Capability 3 in a turn: reads the panes of those who wait, a few at a time,
//! and has those asked who are due. What it finds that nobody may type into is
//! told.
//!
//! Each call of [`step`] reads one pane, so that hints are served in between.
//! This file does not know how a child is asked, nor what makes it due.

use std::time::Duration;

use crate::batches;
use crate::capabilities::patrol::{self, Need, Read, Terms};
use crate::clock::{Time, spoken};
use crate::deck::processes::bare_shell;
use crate::guard::{self, Verdict};
use crate::ladder::{Deed, Event, Shows};
use crate::model::{Level, Pane, Screen, Session, SessionId, Sight};
use crate::nudge;
use crate::pace;
use crate::parents;
use crate::rungs;
use crate::state::{Child, NoticeKind, say};
use crate::stop;
use crate::telling::{self, Kind};
use crate::triage;
use crate::watch::{Reading, Watch};
use crate::world::World;

/// Panes read a turn: twenty take about as long as one restart (contract 14.1),
/// and a hundred waiting children are still read every half minute.
const READS: u32 = 20;
/// Messages sent a turn (DESIGN 3.1).
const SENDS: u32 = 2;
/// A look at the processes older than this is repeated before a pane is judged.
const SIGHT_AGE: Duration = Duration::from_secs(30);

/// A turn begins: panes may be read, messages sent.
pub fn refill(watch: &mut Watch) {
    watch.rounds.reads_left = READS;
    watch.rounds.sends_left = SENDS;
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
    if !child.waits || !watch.state.is_listed(&child.profile) {
        return None;
    }
    watch.deck(&child.profile)?.row(&child.id)
}

/// The last and the next reading of a child.
fn reading(watch: &Watch, child: &Child) -> (Time, Time) {
    let known = watch.rounds.readings.get(&child.id);
    let earlier = (child.read.unwrap_or_default(), Time(0));
    known.map_or(earlier, |reading| (reading.last, reading.due))
}

/// Reads the pane of the child that has been unread longest, and does what it
/// needs. One that agent-deck refused to write to goes by when it is tried again, or
/// the same ones would take every turn. False when none is due.
pub fn step<W: World>(watch: &mut Watch, world: &mut W) -> bool {
    if watch.rounds.reads_left == 0 || world.leaving() {
        return false;
    }
    let now = world.now();
    let due = watch.state.children.iter().filter_map(|child| {
        let row = waiting_row(watch, child)?;
        let (last, due) = reading(watch, child);
        let again = child.retry.map(|retry| retry.until());
        (due <= now).then_some(((again.unwrap_or(last), child.since), row))
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
        Ok(Pane::Stands(_)) => unread(watch, world, &row, "its terminal holds a bare shell", now),
        Ok(Pane::Gone) => unread(watch, world, &row, "its terminal is gone", now),
        Err(why) => unread(watch, world, &row, &why.to_string(), now),
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
fn unread<W: World>(
    watch: &mut Watch,
    world: &mut W,
    row: &Session,
    why: &str,
    now: Time,
) -> Option<Time> {
    let threshold = watch.rules.threshold;
    let child = watch.state.child(row);
    let since = patrol::unread(child, now);
    if now.since(since) >= threshold && say(&mut child.said, "unreachable") {
        let seen = format!(
            "is listed as waiting and cannot be reached for {}: {why}",
            spoken(now.since(since))
        );
        let text = format!("{} ({}) {seen}", row.title, row.id);
        tell(watch, Kind::Unreachable, row, &text, now);
        parents::notify(watch, world, &row.id, NoticeKind::CannotAsk, &seen);
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
    let child = watch.state.child(row);
    let read = patrol::read(child, &digest, traces.hook.map(|hook| hook.at), now);
    child.asks = screen.decision;
    nudge::echo(watch, world, row, &digest);
    let name = format!("{} ({})", row.title, row.id);
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
        rungs::happens(watch, world, &row.id, Event::Screen(Shows::Change));
    }
    shown(watch, world, row, screen, now);
    let around = watch.surroundings();
    let verdict = guard::nudge_verdict(&watch.state, &around, row, now);
    let terms = Terms {
        threshold: watch.rules.threshold,
        step: watch.rules.limits.nudge_dedup,
        triage: watch.rules.triage,
        may_stop: watch.rules.limits.terminate && watch.flags.autostop.contains(&row.id),
        nudge: &verdict,
    };
    let need = patrol::need(watch.state.child(row), row, screen, &terms, now);
    serve(watch, world, row, &digest, need, &verdict)
}

/// What a screen shows moves the child: a decision or a limit freezes it, and
/// without one its timer begins anew.
fn shown<W: World>(watch: &mut Watch, world: &mut W, row: &Session, screen: &Screen, now: Time) {
    let shows = patrol::shows(row, screen);
    let child = watch.state.child(row);
    let held = child.held_since.unwrap_or(now);
    child.held_since = (shows == Shows::Limit).then_some(held);
    let free = patrol::silence(row, screen).is_none();
    let step = rungs::happens(watch, world, &row.id, Event::Screen(shows));
    if free {
        rungs::happens(watch, world, &row.id, Event::Screen(Shows::Composer));
    }
    if step.is_some() && shows == Shows::Plain {
        watch.state.child(row).since = Some(now);
        let text = format!("nothing holds {} ({}) any more", row.title, row.id);
        telling::resolve(&mut watch.state, Kind::Held, row.id.as_str(), &text, now);
    }
    let threshold = watch.rules.threshold;
    let child = watch.state.child(row);
    let waited = child.since.map_or(Duration::ZERO, |since| now.since(since));
    if waited > threshold && child.opened.is_none() && patrol::is_child(row) {
        child.opened = Some(now);
        rungs::happens(watch, world, &row.id, Event::Screen(Shows::Threshold));
        let sentence = format!("waits on an unchanged screen for {}", spoken(waited));
        note(world, row, &sentence);
    }
}

/// Does what a child needs. Returns when something may be due.
fn serve<W: World>(
    watch: &mut Watch,
    world: &mut W,
    row: &Session,
    digest: &str,
    need: Need,
    verdict: &Verdict,
) -> Option<Time> {
    let now = world.now();
    match need {
        Need::Nothing(until) => until,
        Need::HeldBack => {
            held_back(watch, world, row, &verdict.sentence());
            None
        }
        Need::Decision(what) => {
            decision(watch, world, row, what, now);
            None
        }
        Need::Limit(why) => {
            limit(watch, world, row, why, now);
            None
        }
        Need::CannotAsk(why) => {
            nudge::cannot_ask(watch, world, row, why);
            None
        }
        Need::Ask | Need::Triage | Need::Stop | Need::HandOver if is_done(watch, world, row) => {
            None
        }
        Need::Ask => nudge::ask(watch, world, row, digest),
        Need::Triage => {
            let since = watch.state.child(row).since.unwrap_or(now);
            triage::begin(watch, world, row, now.since(since))
        }
        Need::Stop => stop::stop(watch, world, row, digest),
        Need::HandOver => {
            hand_over(watch, world, row, false);
            None
        }
    }
}

/// Before it is acted on: whether it has said meanwhile that its work is over. The
/// next list books that.
fn is_done<W: World>(watch: &mut Watch, world: &mut W, row: &Session) -> bool {
    batches::refresh(watch, world, &row.profile, &row.parent);
    patrol::is_settled(watch.state.child(row), row)
}

/// T17: somebody has to decide. Each decision is told once.
fn decision<W: World>(watch: &mut Watch, world: &mut W, row: &Session, what: &str, now: Time) {
    let child = watch.state.child(row);
    child.gate.clone_from(&child.digest);
    child.gate_told = Some(now);
    rungs::happens(watch, world, &row.id, Event::Deed(Deed::Told));
    let seen = format!("waits for a decision about {what}, in a dialog on its screen");
    let text = format!(
        "{} ({}) {seen}: please look; nothing is typed into it",
        row.title, row.id
    );
    tell(watch, Kind::Decision, row, &text, now);
    parents::notify(watch, world, &row.id, NoticeKind::Gate, &seen);
}

/// T19: it cannot go on by itself. Told once an episode.
fn limit<W: World>(watch: &mut Watch, world: &mut W, row: &Session, why: &str, now: Time) {
    say(&mut watch.state.child(row).said, patrol::HELD);
    rungs::happens(watch, world, &row.id, Event::Deed(Deed::Told));
    let seen = format!("waits and is held by {why}");
    let text = format!("{} ({}) {seen}", row.title, row.id);
    tell(watch, Kind::Held, row, &text, now);
    parents::notify(watch, world, &row.id, NoticeKind::Held, &seen);
}

/// T11, T14, T15, T21: asking is over. `advised`: triage says that it should be
/// stopped.
pub fn hand_over<W: World>(watch: &mut Watch, world: &mut W, row: &Session, advised: bool) {
    let now = world.now();
    let deed = if advised { Deed::Advised } else { Deed::Spent };
    if rungs::happens(watch, world, &row.id, Event::Deed(deed)).is_none() {
        return;
    }
    let child = watch.state.child(row);
    let waited = child.since.map_or(Duration::ZERO, |since| now.since(since));
    let advice = if advised {
        "; triage advises to stop it"
    } else {
        ""
    };
    let seen = format!(
        "was asked {} times to report and waits again for {}{advice}",
        child.nudges,
        spoken(waited)
    );
    let text = format!("{} ({}) {seen}: please look", row.title, row.id);
    tell(watch, Kind::Unanswered, row, &text, now);
    rungs::happens(watch, world, &row.id, Event::Deed(Deed::Told));
    parents::notify(watch, world, &row.id, NoticeKind::HandedOver, &seen);
}

/// The guard holds a nudge back for no known time: written down once.
fn held_back<W: World>(watch: &mut Watch, world: &mut W, row: &Session, why: &str) {
    if say(&mut watch.state.child(row).said, "held back") {
        note(world, row, &format!("not asked to report: {why}"));
    }
}

fn note<W: World>(world: &mut W, row: &Session, sentence: &str) {
    world.note(Level::Info, &format!("{} {}", row.title, row.id), sentence);
}

fn tell(watch: &mut Watch, kind: Kind, row: &Session, text: &str, now: Time) {
    let subject = row.id.as_str();
    telling::keep(&mut watch.state, kind, subject, Level::Warning, text, now);
}
