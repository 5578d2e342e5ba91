//! Children that read dead, in a turn: it has to last, agent-deck has to say it
//! twice, and the screen has to stand still. Then it is told, once an episode
//! (ladder T25 to T31).
//!
//! A notice is harmless where a restart would not be, so this is less strict
//! than capability 1. This file does not know how anybody is told.

use std::time::Duration;

use crate::capabilities::patrol;
use crate::capabilities::restart::is_critical;
use crate::clock::{Time, spoken};
use crate::deck::processes::pane_process;
use crate::ladder::{Death, Event};
use crate::model::{Level, NoAnswer, Pane, Scope, Session, Shown, Sight, Status};
use crate::parents;
use crate::rungs;
use crate::state::{Child, NoticeKind, Rung, say};
use crate::telling::{self, Kind};
use crate::watch::{Reading, Watch};
use crate::world::World;

/// `error` has to last this long (ladder 1.2).
pub const DEATH_CONFIRM: Duration = Duration::from_secs(60);
/// The screen is looked at in the middle of that time, and at its end.
const LOOKS: Duration = Duration::from_secs(30);
/// After so many of these times a screen that moves is no doubt any more (T27).
const MOVING: u32 = 3;
/// Whoever never ran, or is looked after by capability 1, is looked at this
/// rarely.
const RARE: Duration = Duration::from_secs(600);
/// A failed start is the reason for a death that is seen at most this much later.
const FAILURE_AGE: Duration = Duration::from_secs(120);

/// When the next look is due.
pub fn next_due(watch: &Watch) -> Option<Time> {
    let left = watch.rounds.reads_left > 0;
    dying(watch).map(|(_, due)| due).min().filter(|_| left)
}

/// Who reads dead in a list that is good, and when it is to be looked at.
fn dying(watch: &Watch) -> impl Iterator<Item = (&Session, Time)> {
    let all = watch.state.children.iter();
    all.filter(|child| child.rung == Rung::Dying)
        .filter_map(|child| {
            let row = watch.deck(&child.profile)?.row(&child.id)?;
            let listed = watch.state.is_listed(&child.profile);
            let since = child.dying_since.filter(|_| listed)?;
            let known = watch.rounds.readings.get(&child.id);
            Some((row, known.map_or(since.plus(LOOKS), |reading| reading.due)))
        })
}

/// Looks at one that reads dead. False when none is due.
pub fn step<W: World>(watch: &mut Watch, world: &mut W) -> bool {
    if watch.rounds.reads_left == 0 || world.leaving() {
        return false;
    }
    let now = world.now();
    let due = dying(watch).filter(|(_, due)| *due <= now);
    let Some(row) = due.min_by_key(|(_, due)| *due).map(|(row, _)| row.clone()) else {
        return false;
    };
    watch.rounds.reads_left -= 1;
    let distance = look(watch, world, &row);
    let now = world.now();
    let next = Reading {
        last: now,
        due: now.plus(distance),
    };
    *watch.rounds.readings.get_or_make(&row.id, || next) = next;
    true
}

/// Looks at one, and tells of it if it is dead. Returns when to look again.
fn look<W: World>(watch: &mut Watch, world: &mut W, row: &Session) -> Duration {
    if is_others(watch, row) {
        return RARE;
    }
    let shown = match world.show(&row.profile, &row.id) {
        Ok(shown) if shown.status == Status::Error => shown,
        // The next list says what it is.
        Ok(_) | Err(_) => return LOOKS,
    };
    if !has_run(watch, world, row, &shown) {
        return RARE;
    }
    let doubt = match doubts(watch, world, row) {
        Ok(doubt) => doubt,
        Err(_) => return LOOKS,
    };
    let now = world.now();
    let since = watch.state.child(row).dying_since.unwrap_or(now);
    let patience = match doubt {
        None => DEATH_CONFIRM,
        Some(_) => DEATH_CONFIRM.saturating_mul(MOVING),
    };
    let left = patience.saturating_sub(now.since(since));
    if !left.is_zero() {
        rungs::happens(watch, world, &row.id, Event::Death(Death::Moves));
        return left.min(LOOKS);
    }
    let lasts = spoken(now.since(since));
    let (what, seen) = match doubt {
        None => {
            let why = reason(&shown, since);
            (
                format!("it died: {why}"),
                format!("is dead for {lasts}: {why}"),
            )
        }
        // T27: whoever is told may look.
        Some(doubt) => {
            let seen = format!("reads error for {lasts}, although {doubt}");
            (format!("counts as dead: it {seen}"), seen)
        }
    };
    died(watch, world, row, &what, (!shown.quiet).then_some(&seen));
    RARE
}

/// Capability 1 still repairs it, we are stopping it, or the whole profile is
/// seen from the wrong place.
fn is_others(watch: &Watch, row: &Session) -> bool {
    let open = |kind, subject: &str| telling::is_open(&watch.state, kind, subject);
    let given_up = [Kind::Down, Kind::Auth, Kind::Mismatch]
        .iter()
        .any(|kind| open(*kind, row.id.as_str()));
    let known = watch.state.known_profile(&row.profile);
    let running = known.and_then(|profile| profile.running.as_ref());
    let stops = running.is_some_and(|intent| intent.stops && intent.id == row.id);
    let repaired = is_critical(row, &watch.flags) && !given_up;
    repaired || stops || open(Kind::Eyes, row.profile.as_str())
}

/// A row that was added and never started prints `error` like a dead one
/// (contract 6.2).
fn has_run<W: World>(watch: &Watch, world: &mut W, row: &Session, shown: &Shown) -> bool {
    let lived = watch.state.known_child(&row.id).is_some_and(|c| c.lived);
    let traces = world.traces(&row.profile, &row.id);
    lived || !shown.agent_session.is_empty() || traces.hook.is_some() || traces.spawned.is_some()
}

/// What speaks against its death, if anything does.
fn doubts<W: World>(
    watch: &mut Watch,
    world: &mut W,
    row: &Session,
) -> Result<Option<&'static str>, NoAnswer> {
    let pane = world.pane(&row.profile, &row.id)?;
    if let Sight::Seen(table) = world.processes(Scope::All)
        && pane_process(&table, &row.id).is_some()
    {
        return Ok(Some("its agent lives"));
    }
    let Pane::Stands(screen) = pane else {
        return Ok(None);
    };
    let child: &mut Child = watch.state.child(row);
    let digest = patrol::digest(&screen);
    let moved = child.digest != digest;
    child.digest = digest;
    Ok(moved.then_some("its screen moves"))
}

/// The best reason known.
fn reason(shown: &Shown, since: Time) -> String {
    let fresh = |at: Time| at >= since.minus(FAILURE_AGE);
    let failure = shown.spawn_failure.as_ref().filter(|f| fresh(f.at));
    let limit = shown.substate.and_then(patrol::limit_of);
    match (failure, shown.auth_hold, limit) {
        (Some(failure), ..) => format!("its start failed ({})", failure.reason),
        (None, true, _) => "agent-deck holds it for a login problem".to_owned(),
        (None, false, Some(limit)) => format!("its screen showed {limit}"),
        (None, false, None) => "its terminal is gone, or stands still".to_owned(),
    }
}

/// T28: told once an episode; `seen` is missing for those of whom nobody wants
/// to hear.
fn died<W: World>(
    watch: &mut Watch,
    world: &mut W,
    row: &Session,
    what: &str,
    seen: Option<&String>,
) {
    if rungs::happens(watch, world, &row.id, Event::Death(Death::Confirmed)).is_none() {
        return;
    }
    let now = world.now();
    watch.state.child(row).opened.get_or_insert(now);
    world.note(Level::Warning, &format!("{} {}", row.title, row.id), what);
    let first = say(&mut watch.state.child(row).said, "died");
    let Some(seen) = seen.filter(|_| first) else {
        return;
    };
    let text = format!("{} ({}) {seen}", row.title, row.id);
    let key = Kind::Died.key(row.id.as_str());
    if telling::is_open(&watch.state, Kind::MassDeath, row.profile.as_str()) {
        // That was told in one for all.
        telling::write(world, &key, Level::Warning, &text, "deduplicated", "");
    } else {
        telling::mention(&mut watch.state, &key, Level::Warning, &text, now);
    }
    parents::notify(watch, world, &row.id, NoticeKind::Died, seen);
}
