//! Capability 2 in a turn: looks for the pollers of those who own a Telegram
//! bot, has the deaf ones restarted when they are at rest, and tells what it
//! must not mend.
//!
//! This file does not know what makes an owner deaf, nor how processes are
//! looked at.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::act::act;
use crate::capabilities::poller::{self, REST_PATIENCE, Seen, Verdict};
use crate::capabilities::restart::is_critical;
use crate::clock::{Time, spoken};
use crate::deck::processes::{pane_pids, pane_process};
use crate::guard::{self, Purpose, Rule};
use crate::model::{
    Level, Pane, Pollers, Process, Profile, Scope, Session, Sight, Status, Telegram,
};
use crate::remember::{FORGET, GONE};
use crate::state::say;
use crate::telling::{self, Kind};
use crate::watch::Watch;
use crate::world::World;
use crate::{pace, refusal, report};

mod tell;

use tell::{hears, known, shared, tell_habits, tell_once, tell_others, too_long, unknown};

/// A look older than this is repeated before somebody is ended.
const FRESH: Duration = Duration::from_secs(1);
/// What took longer than this to look at may have changed meanwhile.
const TOO_OLD: Duration = Duration::from_secs(5);
/// The grace in which a restarted owner starts its poller (DESIGN 3.3).
const START_GRACE: Duration = Duration::from_secs(60);
/// A process list that cannot be read is told after this: one hitch is no news.
const UNSEEN_TOLD: Duration = Duration::from_secs(60);
/// What is told of an owner as such.
const KINDS: [Kind; 5] = [
    Kind::Deaf,
    Kind::PollerUnknown,
    Kind::Duplicate,
    Kind::Flapping,
    Kind::Suspected,
];

/// An owner of a bot, and what is known around it.
struct Owner {
    row: Session,
    agent: Option<Process>,
    telegram: Telegram,
}

impl Owner {
    fn name(&self) -> String {
        format!("{} ({})", self.row.title, self.row.id)
    }
}

/// One look at everybody.
struct Look<'a> {
    at: Time,
    owners: &'a [Owner],
    pollers: Pollers,
}

/// When the next look is due, if anybody may own a bot, or did.
pub fn next_due(watch: &Watch) -> Option<Time> {
    let known = !watch.state.owners.is_empty();
    (known || candidates(watch).next().is_some()).then_some(watch.pollers_due)
}

/// Those whose list or environment says that they may own a bot, in good lists.
fn candidates(watch: &Watch) -> impl Iterator<Item = (&Session, Option<&Process>)> {
    let good = |row: &&Session| watch.state.is_listed(&row.profile);
    watch.all_rows().filter(good).filter_map(|row| {
        // Most rows own nothing: no process is looked for then.
        let agent = poller::may_own(row, None).then(|| agent_of(&watch.sight, row))?;
        poller::may_own(row, agent).then_some((row, agent))
    })
}

fn agent_of<'a>(sight: &'a Sight, row: &Session) -> Option<&'a Process> {
    match sight {
        Sight::Seen(table) => pane_process(table, &row.id),
        Sight::Blind(_) => None,
    }
}

/// Looks for pollers, if that is due. False when it is not.
pub fn step<W: World>(watch: &mut Watch, world: &mut W) -> bool {
    let now = world.now();
    if world.leaving() || next_due(watch).is_none_or(|due| due > now) {
        return false;
    }
    watch.pollers_due = now.plus(poller::LOOKS_APART);
    // A poller is compared with the agent of this moment.
    pace::search(watch, world);
    let candidates: Vec<(Session, Option<Process>)> = candidates(watch)
        .map(|(row, agent)| (row.clone(), agent.cloned()))
        .collect();
    let mut owners = Vec::new();
    for (row, agent) in candidates {
        let telegram = world.telegram(&row, agent.as_ref());
        if poller::owns(&row, &telegram) {
            owners.push(Owner {
                row,
                agent,
                telegram,
            });
        }
    }
    miss(watch, &owners, now);
    if owners.is_empty() {
        return true;
    }
    match world.pollers() {
        Ok(pollers) => {
            watch.state.pollers_unseen = None;
            let text = "the processes that poll Telegram can be seen again";
            telling::resolve(&mut watch.state, Kind::PollerUnknown, "ps", text, now);
            let look = Look {
                at: now,
                owners: &owners,
                pollers,
            };
            for owner in &owners {
                one(watch, world, owner, &look);
            }
        }
        Err(why) => blind(watch, world, &owners, &why),
    }
    true
}

/// The process list says nothing: nobody is deaf. Written down once, and told
/// when it lasts.
fn blind<W: World>(watch: &mut Watch, world: &mut W, owners: &[Owner], why: &str) {
    let now = world.now();
    let text = format!("whether Telegram is polled is unknown, nothing is done about it: {why}");
    for owner in owners {
        poller::unknown(watch.state.owner(&owner.row));
    }
    if watch.state.pollers_unseen.is_none() {
        world.note(Level::Warning, "pollers", &text);
    }
    let since = *watch.state.pollers_unseen.get_or_insert(now);
    if now.since(since) >= UNSEEN_TOLD {
        let kind = Kind::PollerUnknown;
        telling::keep(&mut watch.state, kind, "ps", Level::Warning, &text, now);
    }
}

/// Books who is no owner (any more), in lists that are good.
fn miss(watch: &mut Watch, owners: &[Owner], now: Time) {
    let mut memories = std::mem::take(&mut watch.state.owners);
    for memory in &mut memories {
        if owners.iter().any(|owner| owner.row.id == memory.id) {
            memory.missed_since = None;
            continue;
        }
        if !watch.state.is_listed(&memory.profile) {
            continue;
        }
        poller::unknown(memory);
        // One that is listed and dead is not gone.
        let mut rows = watch.decks.iter().filter_map(|deck| deck.row(&memory.id));
        if rows.any(|row| row.status == Status::Error) {
            memory.missed_since = None;
            continue;
        }
        let since = *memory.missed_since.get_or_insert(now);
        if now.since(since) >= GONE {
            for kind in KINDS {
                telling::forget(&mut watch.state, kind, memory.id.as_str());
            }
        }
    }
    let kept = watch.rules.limits.poller_dedup.max(FORGET);
    memories.retain(|memory| {
        let restarted = memory.restarted.is_some_and(|at| now.since(at) < kept);
        restarted || memory.missed_since.is_none_or(|at| now.since(at) < FORGET)
    });
    let gone = |since: Option<Time>| since.is_some_and(|at| now.since(at) >= GONE);
    if owners.is_empty() && memories.iter().all(|memory| gone(memory.missed_since)) {
        watch.state.pollers_unseen = None;
        let text = "nobody owns a Telegram bot any more";
        telling::resolve(&mut watch.state, Kind::PollerUnknown, "ps", text, now);
    }
    watch.state.owners = memories;
}

/// A time in which nobody looked: looks before and after it prove nothing together.
pub fn after_gap(watch: &mut Watch, profile: &Profile) {
    for owner in &mut watch.state.owners {
        if owner.profile == *profile {
            poller::unknown(owner);
        }
    }
}

/// One owner.
fn one<W: World>(watch: &mut Watch, world: &mut W, owner: &Owner, look: &Look) {
    let traces = world.traces(&owner.row.profile, &owner.row.id);
    let now = look.at;
    let memory = watch.state.owner(&owner.row);
    memory.title.clone_from(&owner.row.title);
    memory.profile.clone_from(&owner.row.profile);
    let folder = match poller::expected(&owner.telegram) {
        Ok(folder) => folder,
        Err(why) => return unknown(watch, world, owner, &why),
    };
    if traces.sandboxed {
        let why = "it runs in a sandbox, which is not looked into";
        return unknown(watch, world, owner, why);
    }
    if let Some(other) = rival(owner, look.owners, &folder) {
        return shared(watch, world, owner, other, &folder);
    }
    known(watch, owner, now);
    let panes = panes_of(&watch.sight, &owner.row);
    let seen = poller::seen(&look.pollers, &owner.telegram, &folder, &panes);
    tell_others(watch, world, owner, &seen, &folder);
    if seen.own.is_empty() && poller::is_young(&owner.row, owner.agent.as_ref(), &traces, now) {
        return poller::unknown(watch.state.owner(&owner.row));
    }
    let memory = watch.state.owner(&owner.row);
    let verdict = poller::book(memory, &seen, look.pollers.network, now);
    result(watch, world, owner, &seen, now);
    tell_habits(watch, owner, now);
    match verdict {
        Verdict::Hears => hears(watch, owner, now),
        Verdict::Missing => {
            let subject = format!("{} {}", owner.row.title, owner.row.id);
            let sentence = "nobody polls Telegram for it, looked at again in 30 s";
            world.detail(&subject, sentence);
        }
        Verdict::Deaf => deaf(watch, world, owner, &folder, look),
    }
}

fn panes_of(sight: &Sight, row: &Session) -> Vec<u32> {
    match sight {
        Sight::Seen(table) => pane_pids(table, &row.id),
        Sight::Blind(_) => Vec::new(),
    }
}

/// Another owner whose settings lead to the same folder or the same bot.
fn rival<'a>(owner: &Owner, owners: &'a [Owner], folder: &Path) -> Option<&'a Owner> {
    owners.iter().find(|other| {
        let same_bot =
            owner.telegram.token.is_some() && other.telegram.token == owner.telegram.token;
        let same_folder = poller::expected(&other.telegram).is_ok_and(|f: PathBuf| f == folder);
        other.row.id != owner.row.id && (same_bot || same_folder)
    })
}

/// What a restart brought, once that can be said.
fn result<W: World>(watch: &mut Watch, world: &mut W, owner: &Owner, seen: &Seen, now: Time) {
    let memory = watch.state.owner(&owner.row);
    let Some(at) = memory.pending else { return };
    let over = now.since(at) >= START_GRACE;
    let (outcome, sentence) = match (seen.own.len(), seen.orphans.len()) {
        (0, _) if !over => return,
        (0, _) => {
            memory.pending = None;
            let sentence = "it lives again, and nobody polls Telegram for it".to_owned();
            let advice = world.poller_advice(&owner.row, owner.agent.as_ref());
            let text = format!(
                "{} was restarted and nobody polls Telegram for it. {advice}",
                owner.name()
            );
            let (kind, id) = (Kind::Deaf, owner.row.id.as_str());
            telling::keep(&mut watch.state, kind, id, Level::Critical, &text, now);
            ("no poller", sentence)
        }
        (1, 0) => {
            memory.pending = None;
            let sentence = format!(
                "its poller was seen {} after the restart",
                spoken(now.since(at))
            );
            ("poller", sentence)
        }
        (_, _) => {
            memory.pending = None;
            let all: Vec<u32> = seen.own.iter().chain(&seen.orphans).copied().collect();
            (
                "duplicate poller",
                format!("processes {all:?} poll Telegram for it"),
            )
        }
    };
    report::poller(world, &owner.row, outcome, &sentence);
}

/// It is deaf for certain: restarted, when the guard agrees and it is at rest.
fn deaf<W: World>(watch: &mut Watch, world: &mut W, owner: &Owner, folder: &PathBuf, look: &Look) {
    let row = &owner.row;
    let now = world.now();
    if !is_critical(row, &watch.flags) {
        if poller::flapping(watch.state.owner(row)).is_some() {
            // That is told already.
            return;
        }
        let text = format!(
            "nobody polls Telegram for {} ({}), and it is not critical: it is not restarted",
            owner.name(),
            folder.display()
        );
        return tell_once(watch, world, Kind::Deaf, owner, &text, now);
    }
    let around = watch.surroundings();
    let verdict = guard::verdict(&watch.state, &around, &row.id, Purpose::Deaf, now);
    if !verdict.agrees() {
        refusal::by_guard(watch, world, row, Purpose::Deaf, &verdict);
        // Who asked for a pause or hold need not be told of it.
        let asked = |a: &guard::Answer| matches!(a.rule, Rule::Paused | Rule::Held);
        if !verdict.refusals().any(asked) {
            too_long(watch, owner, &verdict.sentence(), now);
        }
        return;
    }
    if now.since(look.at) > FRESH && !still_deaf(world, owner, folder) {
        return;
    }
    let looked = world.now();
    match unrest(watch, world, row) {
        Unrest::AtRest if world.now().since(looked) > TOO_OLD => return,
        Unrest::AtRest => {}
        Unrest::Because(why) => return wait_for_rest(watch, world, owner, &why),
        Unrest::NoOwner => return poller::unknown(watch.state.owner(row)),
    }
    let evidence = poller::evidence(watch.state.owner(row), folder, world.now());
    act(watch, world, row, Purpose::Deaf, &evidence);
}

/// Whether it has no poller at this moment either: others were served since the
/// look, which may have taken its time.
fn still_deaf<W: World>(world: &mut W, owner: &Owner, folder: &PathBuf) -> bool {
    let panes = panes_of(&world.processes(Scope::Panes), &owner.row);
    let pollers = world.pollers();
    pollers.is_ok_and(|pollers| {
        let seen = poller::seen(&pollers, &owner.telegram, folder, &panes);
        seen.own.is_empty()
    })
}

/// Whether it can be ended at this moment.
enum Unrest {
    /// It can.
    AtRest,
    /// It cannot, and why.
    Because(String),
    /// Its user does not want it to have a channel, and it has none.
    NoOwner,
}

fn unrest<W: World>(watch: &Watch, world: &mut W, row: &Session) -> Unrest {
    // `show` has no word for archived.
    match world.list(&row.profile) {
        Ok(rows) if rows.iter().any(|r| is_same_owner(r, row)) => {}
        Ok(_) => return Unrest::Because("it is no longer listed as it was".to_owned()),
        Err(why) => return Unrest::Because(format!("list: {why}")),
    }
    let shown = match world.show(&row.profile, &row.id) {
        Ok(shown) if shown.link_disabled && row.telegram.is_none() => return Unrest::NoOwner,
        Ok(shown) => shown,
        Err(why) => return Unrest::Because(format!("session show: {why}")),
    };
    let sight = world.processes(Scope::All);
    let traces = world.traces(&row.profile, &row.id);
    let own: Vec<u32> = watch.state.running_pids().collect();
    if let Some(why) = poller::disturbed(row, &traces, &sight, &own, world.now()) {
        return Unrest::Because(why);
    }
    let agent = agent_of(&sight, row);
    let says = agent.and_then(|agent| world.agent_says(agent));
    // The screen last: it is what may change at any moment.
    let screen = match world.pane(&row.profile, &row.id) {
        Ok(Pane::Stands(screen)) => screen,
        Ok(Pane::Gone) => return Unrest::Because("its terminal is gone".to_owned()),
        Err(why) => return Unrest::Because(format!("session output --pane: {why}")),
    };
    match poller::unrest(&shown, &screen, agent, says) {
        Some(why) => Unrest::Because(why),
        None => Unrest::AtRest,
    }
}

fn is_same_owner(listed: &Session, row: &Session) -> bool {
    listed.id == row.id && !listed.archived && listed.telegram == row.telegram
}

/// It is waited for; told when that takes too long.
fn wait_for_rest<W: World>(watch: &mut Watch, world: &mut W, owner: &Owner, why: &str) {
    let memory = watch.state.owner(&owner.row);
    if say(&mut memory.said, "not-at-rest") || watch.rules.dry_run {
        let sentence = format!("nobody polls Telegram for it, but {why}");
        let rule = "not-at-rest";
        report::refusal(world, &owner.row, Purpose::Deaf, rule, &sentence, None);
    }
    let now = world.now();
    too_long(watch, owner, why, now);
}
