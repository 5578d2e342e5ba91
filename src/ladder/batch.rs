//! Batches: the children of one parent that are open at the same time, told as
//! one when all of them are over (ladder 1.7).
//!
//! A batch opens with a child that is at work or at rest, takes in whoever comes
//! while it is open, settles when all are over, and is told once nothing has
//! moved for a while. Who was told of never opens one again. This file does not
//! know how it becomes known what a child has done, nor how a parent is told.

use std::time::Duration;

use super::is_fresh;
use super::notices::{TITLE, harmless};
use crate::clock::Time;
use crate::model::{Session, SessionId, Status};
use crate::state::{Child, Ending, Member, Parent, Rung};

/// All are over so long, and nothing has moved, before it is told (ladder 1.2).
const SETTLE: Duration = Duration::from_secs(120);
/// All are at rest so long, and none ever said that its work is over, before it
/// is said that the batch cannot be judged (ladder 1.7).
const MUTE: Duration = Duration::from_secs(3600);
/// Between two questions to one parent, at first and at most: twenty children
/// who say nothing cost a command in twenty minutes.
pub const ASKED_APART: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(1200)];

/// What a list says of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// It runs, or is about to.
    Works,
    /// It waits, or was looked at.
    Rests,
    /// It reads dead or stopped.
    Down,
    /// A word that is not known.
    Unknown,
}

/// A child of a parent, as a step sees it.
#[derive(Clone, Copy, Debug)]
pub struct Kid<'a> {
    /// Full id.
    pub id: &'a SessionId,
    /// Other people's text.
    pub group: &'a str,
    /// What the list says of it.
    pub stand: Stand,
    /// How it ended.
    pub ending: Ending,
    /// It has said at some time that its work is over.
    pub said: bool,
}

impl<'a> Kid<'a> {
    /// A listed child, and what is remembered of it.
    pub fn of(row: &'a Session, child: Option<&Child>) -> Kid<'a> {
        Kid {
            id: &row.id,
            group: &row.group,
            stand: stand(&row.status),
            ending: ending(row, child),
            said: child.is_some_and(|child| child.over.is_some()),
        }
    }

    fn is_open(&self) -> bool {
        self.ending == Ending::Open
    }

    fn waits_unheard(&self) -> bool {
        self.stand == Stand::Rests && self.is_open()
    }
}

fn stand(status: &Status) -> Stand {
    match status {
        Status::Running | Status::Queued | Status::Starting => Stand::Works,
        Status::Waiting | Status::Idle => Stand::Rests,
        Status::Error | Status::Stopped => Stand::Down,
        Status::Unfamiliar(_) => Stand::Unknown,
    }
}

/// How a child ended. What it says itself comes first: who is done may be
/// stopped, or end, afterwards.
fn ending(row: &Session, child: Option<&Child>) -> Ending {
    let said = child.and_then(|child| Some((child.over?, child)));
    if let Some((over, child)) = said
        && is_fresh(over, child.ran, row.created)
    {
        return if child.over_ok {
            Ending::Done
        } else {
            Ending::Failed
        };
    }
    let is_at = |rung| child.is_some_and(|child| child.rung == rung);
    match row.status {
        Status::Stopped if is_at(Rung::StoppedByUs) => Ending::StoppedByUs,
        Status::Stopped => Ending::Stopped,
        Status::Error if is_at(Rung::Dead) => Ending::Died,
        Status::Waiting if is_at(Rung::HandedOver) && child.is_some_and(|c| c.nudges > 0) => {
            Ending::Unresponsive
        }
        Status::Error
        | Status::Waiting
        | Status::Running
        | Status::Idle
        | Status::Queued
        | Status::Starting
        | Status::Unfamiliar(_) => Ending::Open,
    }
}

/// What a step has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing that anybody has to hear.
    Nothing,
    /// The batch is over: its parent is to hear this.
    Announce(String),
    /// The batch is over, and nobody is told.
    Closed,
    /// It is now known that this batch cannot be judged.
    Unjudged,
}

/// What holds for all batches of one list.
pub struct Round<'a> {
    /// Whether a member that is not among the children is only missing for now.
    pub stays: &'a dyn Fn(&SessionId) -> bool,
    /// Children of the smallest batch that is told.
    pub minimum: usize,
    /// The last time in which nobody looked ended then: nothing counts before.
    pub gap: Option<Time>,
    /// When the list came.
    pub now: Time,
}

/// Takes in what a good list says of the children of a parent: all of them but
/// those that are exempt or archived.
pub fn step(parent: &mut Parent, kids: &[Kid], round: &Round) -> Change {
    if !parent.members.is_empty() {
        let here = |id: &SessionId| kids.iter().any(|kid| kid.id == id);
        parent
            .members
            .retain(|member| here(&member.id) || (round.stays)(&member.id));
        if parent.members.is_empty() {
            forget(parent);
            return Change::Closed;
        }
    } else if !opens(parent, kids) {
        return Change::Nothing;
    }
    if join(parent, kids) {
        parent.settling_since = None;
    }
    if parent.members.iter().any(|m| m.ending == Ending::Open) {
        parent.settling_since = None;
        return silence(parent, kids, round);
    }
    let since = *parent.settling_since.get_or_insert(round.now);
    if !has_lasted(since, SETTLE, round) {
        return Change::Nothing;
    }
    let members = std::mem::take(&mut parent.members);
    forget(parent);
    let ids = members.iter().map(|member| member.id.clone());
    parent.announced.extend(ids);
    if members.len() < round.minimum {
        return Change::Closed;
    }
    Change::Announce(words(&members))
}

/// No batch is open, or none is to be: what was seen of it does not count.
pub fn forget(parent: &mut Parent) {
    parent.members.clear();
    parent.settling_since = None;
    parent.silent_since = None;
    parent.unjudged = false;
}

fn has_lasted(since: Time, span: Duration, round: &Round) -> bool {
    let since = since.max(round.gap.unwrap_or_default());
    round.now.since(since) >= span
}

/// Those who were not told of.
fn new<'a>(parent: &Parent, kids: &'a [Kid<'a>]) -> impl Iterator<Item = &'a Kid<'a>> {
    kids.iter().filter(|kid| !parent.announced.contains(kid.id))
}

/// Whether a batch opens. Where all are over already that is noted, and is no
/// news.
fn opens(parent: &mut Parent, kids: &[Kid]) -> bool {
    let opens = |kid: &Kid| match kid.stand {
        Stand::Works | Stand::Rests => kid.is_open(),
        Stand::Down | Stand::Unknown => false,
    };
    if new(parent, kids).any(opens) {
        parent.batch = parent.batch.saturating_add(1);
        return true;
    }
    if new(parent, kids).all(|kid| !kid.is_open()) {
        let ids: Vec<SessionId> = new(parent, kids).map(|kid| kid.id.clone()).collect();
        parent.announced.extend(ids);
    }
    false
}

/// Takes down what is so of each member. Whether somebody has joined.
fn join(parent: &mut Parent, kids: &[Kid]) -> bool {
    let before = parent.members.len();
    for kid in kids {
        if parent.announced.contains(kid.id) {
            continue;
        }
        let known = parent.members.iter().position(|m| m.id == *kid.id);
        let at = known.unwrap_or_else(|| {
            parent.members.push(Member {
                id: kid.id.clone(),
                group: String::new(),
                ending: Ending::Open,
                rests: false,
            });
            parent.members.len() - 1
        });
        let member = &mut parent.members[at];
        kid.group.clone_into(&mut member.group);
        member.ending = kid.ending;
        member.rests = is_at_rest(kid);
    }
    parent.members.len() > before
}

fn is_at_rest(kid: &Kid) -> bool {
    match kid.stand {
        Stand::Rests | Stand::Down => true,
        Stand::Works | Stand::Unknown => false,
    }
}

/// A batch is open in which perhaps nobody will ever say anything.
fn silence(parent: &mut Parent, kids: &[Kid], round: &Round) -> Change {
    let mute = |kid: &&Kid| kid.stand == Stand::Rests && !kid.said;
    if new(parent, kids).filter(mute).count() < parent.members.len() {
        parent.silent_since = None;
        return Change::Nothing;
    }
    let since = *parent.silent_since.get_or_insert(round.now);
    let small = parent.members.len() < round.minimum;
    if parent.unjudged || small || !has_lasted(since, MUTE, round) {
        return Change::Nothing;
    }
    parent.unjudged = true;
    Change::Unjudged
}

/// When the children of a parent are to be asked for what they have done;
/// `None`: there is no need.
pub fn asked_at(parent: &Parent, kids: &[Kid], minimum: usize) -> Option<Time> {
    if new(parent, kids).count() < minimum {
        return None;
    }
    let news = has_come_to_rest(parent, kids);
    let is_open = !parent.members.is_empty();
    let unheard = is_open && new(parent, kids).any(Kid::waits_unheard);
    if !news && !unheard {
        return None;
    }
    let [first, most] = ASKED_APART;
    let doublings = if news {
        0
    } else {
        parent.asks.clamp(1, 16) - 1
    };
    let apart = first.saturating_mul(1 << doublings).min(most);
    Some(parent.asked.map_or(Time(0), |asked| asked.plus(apart)))
}

/// Whether somebody has come to rest since the last step, so that it may have
/// said something.
pub fn has_come_to_rest(parent: &Parent, kids: &[Kid]) -> bool {
    let known = |kid: &Kid| parent.members.iter().find(|m| m.id == *kid.id);
    new(parent, kids).any(|kid| match known(kid) {
        Some(member) => is_at_rest(kid) && !member.rests,
        None => kid.waits_unheard(),
    })
}

/// What a parent hears of a batch that is over. It counts, and leaves to others
/// what follows: no word of it permits anything.
fn words(members: &[Member]) -> String {
    let count = |ending| members.iter().filter(|m| m.ending == ending).count();
    let mut counts = String::new();
    for ending in Ending::ALL.iter().copied() {
        let times = count(ending);
        if times > 0 {
            if !counts.is_empty() {
                counts.push_str(", ");
            }
            counts.push_str(&format!("{times} {}", outcome(ending)));
        }
    }
    let number = members.len();
    let children = if number == 1 { "child" } else { "children" };
    let group = common_group(members);
    let finished = if count(Ending::Done) == number {
        "finished"
    } else {
        "ended"
    };
    let claimed = if count(Ending::Done) + count(Ending::Failed) > 0 {
        " (what they say themselves, not checked)"
    } else {
        ""
    };
    format!("{number} {children}{group} {finished}: {counts}{claimed}")
}

fn outcome(ending: Ending) -> &'static str {
    match ending {
        Ending::Open => "open",
        Ending::Done => "done",
        Ending::Failed => "failed",
        Ending::Stopped => "stopped",
        Ending::StoppedByUs => "stopped by the watchdog",
        Ending::Died => "died",
        Ending::Unresponsive => "without an answer",
    }
}

/// The group, where all have the same one.
fn common_group(members: &[Member]) -> String {
    let first = members.first().map_or("", |member| &member.group);
    if first.is_empty() || members.iter().any(|member| member.group != first) {
        return String::new();
    }
    // It ends where we say that it ends.
    let group = harmless(first, TITLE).replace('"', "'");
    format!(" of group \"{group}\"")
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "batch_counted_tests.rs"]
mod counted;
