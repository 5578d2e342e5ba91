//! Telling parents: notices are put down, wait until their parent is at rest,
//! go out as one line, and in every end stand in `escalations.log` (ladder 1.6,
//! 1.8, 1.9).
//!
//! This file does not know what is worth a notice, nor how a line is typed.

use std::time::Duration;

use crate::clock::Time;
use crate::guard;
use crate::ladder::notices::{self, Way};
use crate::model::{Level, SessionId, Status};
use crate::remember::GONE;
use crate::state::{NoticeKind, Parent, ParentNotice, State};
use crate::watch::{Deck, Watch};
use crate::world::World;

mod line;
mod over;

use line::look;
use over::{End, end, some_end};

/// So long a notice waits for its parent (ladder 1.2: 1800 s).
pub const NOTICE_DEFER: Duration = Duration::from_secs(1800);
/// Between two looks at one parent that cannot be told yet.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// Why a parent is not told that could be.
const HELD_BACK: &str = "the watchdog is held back";
/// Statuses in which a parent may be told.
const AT_REST: [Status; 2] = [Status::Waiting, Status::Idle];

/// A parent is to hear of a child. `seen` is our own sentence and follows title
/// and id, such as `died: its terminal is gone`, without a full stop. That it
/// comes once an episode is the caller's business.
pub fn notify<W: World>(
    watch: &mut Watch,
    world: &mut W,
    child: &SessionId,
    kind: NoticeKind,
    seen: &str,
) {
    let Some(known) = watch.state.known_child(child) else {
        return;
    };
    // Without a limit of nudges the ladder is the manual's (ladder 1.2).
    let waits = [
        NoticeKind::CannotAsk,
        NoticeKind::Held,
        NoticeKind::HandedOver,
    ];
    if watch.rules.limits.max_nudges == 0 && waits.contains(&kind) {
        return;
    }
    let parent = known.parent.clone();
    if parent.is_empty() {
        // A dialog at the start of a session that is nobody's child.
        return;
    }
    let notice = ParentNotice {
        kind,
        child: child.to_string(),
        text: notices::about(&known.title, child.as_str(), seen),
        since: world.now(),
        sending: false,
    };
    enqueue(watch, world, &parent, notice);
}

/// A parent is to hear that all its children are over.
pub fn notify_batch<W: World>(watch: &mut Watch, world: &mut W, parent: &SessionId, seen: &str) {
    let notice = ParentNotice {
        kind: NoticeKind::Batch,
        child: String::new(),
        text: notices::of_all(seen),
        since: world.now(),
        sending: false,
    };
    enqueue(watch, world, parent.as_str(), notice);
}

/// Puts a notice down; one that can never be told has ended at once.
fn enqueue<W: World>(watch: &mut Watch, world: &mut W, parent: &str, notice: ParentNotice) {
    let id = SessionId::parse(parent);
    let row = id.and_then(|id| watch.row(&id)).cloned();
    let title = row.as_ref().map_or("", |row| &row.title).to_owned();
    let scope = notices::in_scope(watch.rules.scope, row.as_ref());
    if watch.rules.dry_run {
        let sentence = match scope {
            Ok(()) => format!("would be told: {}", notice.text),
            Err(why) => format!("would not be told, since {why}: {}", notice.text),
        };
        return world.note(Level::Info, &format!("{title} {parent}"), &sentence);
    }
    let row = match (scope, row) {
        (Ok(()), Some(row)) => row,
        (Err(why), _) => return end(watch, world, &title, parent, &notice, &End::Not(why)),
        (Ok(()), None) => return,
    };
    let memory = watch.state.parent(&row.profile, &row.id, &title);
    memory.title.clone_from(&row.title);
    memory.profile.clone_from(&row.profile);
    memory.gone_since = None;
    if let Err(notice) = notices::put(&mut memory.queue, notice) {
        let why = End::Not("too many notices wait for the parent");
        end(watch, world, &title, parent, &notice, &why);
    }
}

/// Takes back what was to be said of a child. What is on its way stays.
pub fn withdraw(state: &mut State, child: &SessionId, kinds: &[NoticeKind]) {
    for parent in &mut state.parents {
        parent.queue.retain(|notice| {
            notice.sending || notice.child != child.as_str() || !kinds.contains(&notice.kind)
        });
    }
}

/// A run begins: a notice that the one before had handed over counts as told,
/// whether it arrived or not.
pub fn recover<W: World>(watch: &mut Watch, world: &mut W) {
    let why = "the watchdog ended before the answer came; not sent again";
    for id in parents(watch, |parent| parent.queue.iter().any(|n| n.sending)) {
        some_end(watch, world, &id, &|notice| notice.sending, &End::Told(why));
    }
}

/// A good list came: which parents it lacks.
pub fn book(watch: &mut Watch, deck: &Deck) {
    for parent in &mut watch.state.parents {
        if parent.queue.is_empty() {
            continue;
        }
        if let Some(row) = deck.row(&parent.id) {
            parent.title.clone_from(&row.title);
            parent.profile.clone_from(&row.profile);
            parent.gone_since = None;
        } else if parent.profile == deck.profile {
            parent.gone_since.get_or_insert(deck.listed);
        }
    }
}

/// What is to be done for a parent for whom notices wait.
enum Plan {
    /// Its lists say nothing: no time passes for it.
    Blind,
    /// It can be told nothing any more, and why.
    Over(&'static str),
    /// It cannot be told now, and why.
    Wait(&'static str),
    /// It is looked at from then on.
    Look(Time),
}

fn plan(watch: &Watch, parent: &Parent) -> Plan {
    if !watch.state.is_listed(&parent.profile) {
        return Plan::Blind;
    }
    let Some(row) = watch.row(&parent.id) else {
        let listed = watch.deck(&parent.profile).map(|deck| deck.listed);
        let missed = parent.gone_since.zip(listed);
        let gone = missed.is_some_and(|(since, listed)| listed.since(since) >= GONE);
        return if gone {
            Plan::Over("the parent is gone")
        } else {
            Plan::Wait("the parent is not listed")
        };
    };
    match notices::way(watch.rules.scope, row) {
        Way::Closed(why) => return Plan::Over(why),
        Way::Later(why) => return Plan::Wait(why),
        Way::Open => {}
    }
    // Asked as if nothing were over yet, the rules say when they lift.
    let (state, around) = (&watch.state, watch.surroundings());
    let verdict = guard::notice_verdict(state, &around, row, Time(0));
    let Some(lifts) = verdict.lifts() else {
        return Plan::Wait(HELD_BACK);
    };
    let looked = watch.rounds.parents.get(&parent.id);
    Plan::Look(lifts.max(looked.map_or(Time(0), |reading| reading.due)))
}

/// When a notice has waited for too long: a look that comes soon is waited for.
fn expires(notice: &ParentNotice, plan: &Plan) -> Option<Time> {
    let end = notice.since.plus(NOTICE_DEFER);
    match plan {
        Plan::Blind | Plan::Over(_) => None,
        Plan::Look(at) if *at <= end.plus(LOOK_AGAIN) => None,
        Plan::Look(_) | Plan::Wait(_) => Some(end),
    }
}

/// Parents of that kind, whoever has waited longest for a line first.
fn parents(watch: &Watch, fits: impl Fn(&Parent) -> bool) -> Vec<SessionId> {
    let all = watch.state.parents.iter();
    let mut found: Vec<&Parent> = all.filter(|parent| fits(parent)).collect();
    found.sort_by_key(|parent| parent.last_told);
    found.into_iter().map(|parent| parent.id.clone()).collect()
}

/// When something is to be done for a parent.
pub fn next_due(watch: &Watch) -> Option<Time> {
    let waiting = watch.state.parents.iter().filter(|p| !p.queue.is_empty());
    let due = waiting.filter_map(|parent| {
        let plan = plan(watch, parent);
        let expiring = parent.queue.iter().filter_map(|n| expires(n, &plan)).min();
        let look = match plan {
            Plan::Over(_) => Some(Time(0)),
            Plan::Look(at) => Some(at).filter(|_| may_look(watch)),
            Plan::Blind | Plan::Wait(_) => None,
        };
        look.into_iter().chain(expiring).min()
    });
    due.min()
}

/// A look leads to a message, where one is possible.
fn may_look(watch: &Watch) -> bool {
    watch.rounds.sends_left > 0 && watch.rounds.reads_left > 0
}

/// Does one thing that is due: ends what cannot be told any more, or looks at
/// one parent and tells it. False when nothing is due.
pub fn step<W: World>(watch: &mut Watch, world: &mut W) -> bool {
    let now = world.now();
    if world.leaving() || next_due(watch).is_none_or(|due| due > now) {
        return false;
    }
    for id in parents(watch, |parent| !parent.queue.is_empty()) {
        let Some(parent) = watch.state.known_parent(&id) else {
            continue;
        };
        let plan = plan(watch, parent);
        let is_over = |notice: &ParentNotice| match plan {
            Plan::Over(_) => true,
            Plan::Blind | Plan::Wait(_) | Plan::Look(_) => {
                expires(notice, &plan).is_some_and(|at| at <= now)
            }
        };
        if parent.queue.iter().any(is_over) {
            let why = match plan {
                Plan::Over(why) | Plan::Wait(why) => why,
                Plan::Blind | Plan::Look(_) => HELD_BACK,
            };
            some_end(watch, world, &id, &is_over, &End::Not(why));
            return true;
        }
        let free = matches!(plan, Plan::Look(at) if at <= now && may_look(watch));
        if let Some(row) = watch.row(&id).filter(|_| free).cloned() {
            look(watch, world, &row);
            return true;
        }
    }
    false
}

/// A hook record of a parent came: something happened there. True: only a list
/// can tell whether it is at rest now.
pub fn hook<W: World>(watch: &mut Watch, world: &mut W, id: &SessionId, now: Time) -> bool {
    let known = watch.state.known_parent(id);
    if known.is_none_or(|parent| parent.queue.is_empty()) {
        return false;
    }
    if let Some(reading) = watch.rounds.parents.get_mut(id) {
        let soonest = now.max(reading.last.plus(watch.rules.poll));
        reading.due = reading.due.min(soonest);
    }
    let Some(row) = watch.row(id).filter(|row| !AT_REST.contains(&row.status)) else {
        return false;
    };
    let profile = row.profile.clone();
    let hook = world.traces(&profile, id).hook;
    hook.is_some_and(|hook| hook.event == "Stop")
}
