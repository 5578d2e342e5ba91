//! Rung 2 of the ladder: the user's own program is asked about a child that
//! asking did not help, and its answer is booked (ladder T10 to T15).
//!
//! The answer is one of three words and chooses among fixed steps. This file
//! does not know how the program is run, nor when a child is due.

use std::time::Duration;

use crate::capabilities::patrol;
use crate::clock::{Time, spoken};
use crate::guard::{self, Rule};
use crate::ladder::notices::{TITLE, harmless};
use crate::ladder::triage::{self, Advice, Answer, Case, Heard, TRIAGES_PER_TICK};
use crate::ladder::{Deed, Event};
use crate::model::{Level, Session, SessionId, Status};
use crate::rungs;
use crate::saving::save;
use crate::state::{Child, Rung};
use crate::watch::Watch;
use crate::world::World;

/// Nothing is started while one of these holds; the others are about messages.
const HOLDS: [Rule; 4] = [Rule::Paused, Rule::Held, Rule::Memory, Rule::Gap];

/// A turn begins: a program may be started.
pub fn refill(watch: &mut Watch) {
    watch.rounds.triages_left = TRIAGES_PER_TICK;
}

/// A child whose screen was just read is due: whoever has waited for it longest
/// has the turn. Returns when it is looked at again.
pub fn begin<W: World>(
    watch: &mut Watch,
    world: &mut W,
    row: &Session,
    waited: Duration,
) -> Option<Time> {
    if watch.rules.dry_run {
        let waited = spoken(waited);
        note(
            world,
            row,
            &format!("would be triaged: it waits for {waited}"),
        );
        return None;
    }
    if !watch.rounds.triages.contains(&row.id) {
        watch.rounds.triages.push(row.id.clone());
    }
    while let Some(id) = chosen(watch, world) {
        watch.rounds.triages.retain(|due| *due != id);
        if ask_about(watch, world, &id) {
            break;
        }
    }
    let begun = watch.state.child(row).triage_open;
    (!begun).then(|| world.now().plus(watch.rules.poll))
}

/// Whose turn it is, if a program may be started now.
fn chosen<W: World>(watch: &Watch, world: &mut W) -> Option<SessionId> {
    let rounds = &watch.rounds;
    let busy = rounds.triaging || rounds.triages_left == 0;
    if busy || world.leaving() || world.end_waits() {
        return None;
    }
    let last = |id: &SessionId| watch.state.known_child(id).and_then(|child| child.triaged);
    let due = rounds.triages.iter().map(|id| (id.clone(), last(id)));
    triage::next(due)
}

/// Starts the program on one child, if that is still due: what it has cost is
/// saved before.
fn ask_about<W: World>(watch: &mut Watch, world: &mut W, id: &SessionId) -> bool {
    // A pause or hold that was put down a moment ago counts.
    let now = world.now();
    watch.take_flags(world.flags(), now);
    let Some(row) = still_due(watch, id, now) else {
        return false;
    };
    let child = watch.state.child(&row);
    let case = case(child, &row, now);
    let before = (child.triaged, child.retry_due);
    child.triaged = Some(now);
    child.triage_open = true;
    child.retry_due = false;
    rungs::happens(watch, world, id, Event::Deed(Deed::Triaged));
    // A run of cron that cannot write it down would not know of it the next time.
    let unsaved = !save(watch, world, true) && watch.rules.pace.is_none();
    let begun = match unsaved {
        true => Err("the state cannot be written".to_owned()),
        false => world.begin_triage(&case),
    };
    if let Err(why) = begun {
        world.detail(&named(&row), &format!("not triaged yet: {why}"));
        let child = watch.state.child(&row);
        (child.triaged, child.retry_due) = before;
        child.triage_open = false;
        save(watch, world, true);
        return false;
    }
    watch.rounds.triages_left = watch.rounds.triages_left.saturating_sub(1);
    watch.rounds.triaging = true;
    note(world, &row, "triage is asked about it");
    true
}

/// Its row, when nothing that is known speaks against asking about it.
fn still_due(watch: &Watch, id: &SessionId, now: Time) -> Option<Session> {
    let row = watch.row(id).filter(|row| row.status == Status::Waiting)?;
    let child = watch.state.known_child(id)?;
    let free = patrol::limit(row).is_none() && !child.triage_open;
    // It may have had its turn to come when its screen changed.
    let waited = child.since.map_or(Duration::ZERO, |since| now.since(since));
    let still = child.waits && waited > watch.rules.threshold;
    let around = watch.surroundings();
    let verdict = guard::nudge_verdict(&watch.state, &around, row, now);
    let refuses = |rule: Rule| verdict.refusals().any(|no| no.rule == rule);
    // Or it is in another episode by now.
    let step = watch.rules.limits.nudge_dedup;
    let spent = refuses(Rule::Nudges) && !refuses(Rule::NudgeDedup);
    let dwelt = child.triaged.is_none_or(|at| now.since(at) >= step);
    let rung = child.rung == Rung::Nudged && spent || child.rung == Rung::Triage && dwelt;
    let ripe = still && rung && free && watch.state.is_listed(&row.profile);
    (ripe && !HOLDS.into_iter().any(refuses)).then(|| row.clone())
}

fn case(child: &Child, row: &Session, now: Time) -> Case {
    Case {
        profile: row.profile.clone(),
        id: row.id.clone(),
        title: harmless(&row.title, TITLE),
        tool: harmless(&row.tool, TITLE),
        group: harmless(&row.group, TITLE),
        digest: child.digest.clone(),
        waited: child.since.map_or(Duration::ZERO, |since| now.since(since)),
        nudges: child.nudges,
    }
}

/// Takes the answer of a program that has ended. Returns the child that it
/// advises to stop: it is to be handed over.
pub fn step<W: World>(watch: &mut Watch, world: &mut W) -> Option<Session> {
    let Heard { id, answer, took } = world.triaged()?;
    watch.rounds.triaging = false;
    let Answer { advice, fallback } = answer;
    let why = match fallback {
        Some(why) => format!(", fallback: yes, {why}"),
        None => ", fallback: no".to_owned(),
    };
    let word = advice.word();
    let said = format!("triage says {word} after {}{why}", spoken(took));
    let Some(child) = watch.state.known_child_mut(&id) else {
        world.note(
            Level::Info,
            id.as_str(),
            &format!("{said}; nobody knows it"),
        );
        return None;
    };
    child.triage_open = false;
    let subject = format!("{} {id}", child.title);
    let stands = child.waits && child.rung == Rung::Triage;
    let moved = child.since > child.triaged;
    let (end, counts) = match advice {
        Advice::Extend => (End::More, ""),
        Advice::Retry | Advice::Terminate if !stands => {
            (End::More, "; dropped, the child does not wait as it did")
        }
        Advice::Terminate if moved => (End::More, "; dropped, the screen has changed"),
        Advice::Terminate => (End::Over, ""),
        Advice::Retry if child.retried => (End::More, "; not a second time: more time"),
        Advice::Retry => (End::Ask, ""),
    };
    child.retried |= end == End::Ask;
    child.retry_due = end == End::Ask;
    // Nothing else says when it is due.
    let now = world.now();
    let dwell = watch.rules.limits.nudge_dedup;
    match end {
        End::Ask => watch.read_pane_by(&id, now),
        End::More => watch.read_pane_by(&id, now.plus(dwell)),
        End::Over => {}
    }
    world.note(Level::Info, &subject, &format!("{said}{counts}"));
    if end == End::More {
        extend(watch, world, &id);
    }
    watch.row(&id).filter(|_| end == End::Over).cloned()
}

/// What an answer leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// One more question (T12).
    Ask,
    /// Silence for one step (T13).
    More,
    /// Somebody is told (T15).
    Over,
}

/// More time, and one call less in this episode: also when what was said comes
/// too late, so that no child costs more than its calls.
fn extend<W: World>(watch: &mut Watch, world: &mut W, id: &SessionId) {
    let Some(child) = watch.state.known_child_mut(id) else {
        return;
    };
    if child.rung == Rung::Triage || (child.waits && child.under == Rung::Triage) {
        child.extends = child.extends.saturating_add(1);
        rungs::happens(watch, world, id, Event::Deed(Deed::Extended));
    }
}

/// A run begins: what a program would have said to the one before counts as
/// more time.
pub fn recover<W: World>(watch: &mut Watch, world: &mut W) {
    let all = watch.state.children.iter();
    let open: Vec<SessionId> = all
        .filter(|child| child.triage_open)
        .map(|child| child.id.clone())
        .collect();
    for id in open {
        if let Some(child) = watch.state.known_child_mut(&id) {
            child.triage_open = false;
            let subject = format!("{} {id}", child.title);
            let sentence = "triage: the watchdog ended before the answer came, fallback: yes";
            world.note(Level::Info, &subject, sentence);
            extend(watch, world, &id);
        }
    }
}

fn named(row: &Session) -> String {
    format!("{} {}", row.title, row.id)
}

fn note<W: World>(world: &mut W, row: &Session, sentence: &str) {
    world.note(Level::Info, &named(row), sentence);
}
