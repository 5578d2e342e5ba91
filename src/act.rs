//! The one place that restarts: permit, saved intent, command, saved outcome.
//!
//! This file does not know why a session is dead or deaf, nor what the rules say.

use crate::capabilities::restart::is_critical;
use crate::clock::Time;
use crate::guard::{self, Purpose, begun};
use crate::model::{Restarted, Session, Status};
use crate::outcome;
use crate::saving::save;
use crate::telling;
use crate::watch::Watch;
use crate::world::{Ran, World};
use crate::{refusal, report, settle};

/// Restarts a session that is dead or deaf, if the guard permits.
pub fn act<W: World>(
    watch: &mut Watch,
    world: &mut W,
    row: &Session,
    purpose: Purpose,
    evidence: &str,
) {
    let id = &row.id;
    if world.leaving() {
        return;
    }
    // A pause or hold that was put down a moment ago counts.
    let now = world.now();
    watch.take_flags(world.flags(), now);
    if !is_critical(row, &watch.flags) {
        return watch.unplan(id);
    }
    if let Some(due) = last_outcome(watch, world, row, purpose, now) {
        return watch.plan_next(id, None, Some(due), now);
    }
    if row.telegram.is_some() {
        // What becomes of its poller is looked for afterwards.
        watch.state.owner(row);
    }
    let verdict = guard::verdict(&watch.state, &watch.surroundings(), id, purpose, now);
    let (state, around) = watch.to_permit();
    let permit = match guard::permit(state, &around, id, purpose, evidence, now) {
        Ok(permit) => permit,
        Err(verdict) => return refusal::by_guard(watch, world, row, purpose, &verdict),
    };
    if watch.rules.dry_run {
        report::would(world, row, evidence);
        settle::close(watch, &row.profile);
        return watch.unplan(id);
    }
    // When this fails the run goes on with its budgets in memory: it has
    // written them before, or the guard would not have agreed (DESIGN 2.3). A
    // deaf one can wait, since a run of cron would forget that it was restarted.
    let saved = save(watch, world, true);
    if !saved && purpose == Purpose::Deaf && watch.rules.pace.is_none() {
        settle::close(watch, &row.profile);
        return guard::give_back(&mut watch.state, id);
    }
    report::attempt(world, row, purpose, evidence, &verdict);
    match world.begin_restart(permit) {
        Err(why) => answered(watch, world, row, &Restarted::NotStarted(why)),
        Ok(mark) => {
            let now = world.now();
            begun(&mut watch.state, id, now);
            settle::started(watch, &row.profile, mark, now);
            telling::count_restart(&mut watch.state, id.as_str());
            save(watch, world, false);
            match world.finish_restart() {
                Ran::Ended(answer) => answered(watch, world, row, &answer),
                Ran::StillRunning => settle::still_running(watch, world, &row.profile),
            }
        }
    }
    watch.unplan(id);
    watch.plan_passes(world.now());
    save(watch, world, true);
}

/// Before the next try the last one gets its outcome, since two in a row without
/// effect allow no third. When that cannot be told yet: from when on.
fn last_outcome<W: World>(
    watch: &mut Watch,
    world: &mut W,
    row: &Session,
    purpose: Purpose,
    now: Time,
) -> Option<Time> {
    let due = outcome::due(&watch.state, &row.id)?;
    if due > now {
        return Some(due);
    }
    // A dead one is dead for certain, whatever the last list said.
    let mut row = row.clone();
    if purpose == Purpose::Dead {
        row.status = Status::Error;
    }
    let since = outcome::Since {
        row: &row,
        new_agent: false,
        seen: true,
    };
    let line = outcome::verify(&mut watch.state, &row.id, &since, now)?;
    report::outcome(watch, world, &row.id, &line);
    None
}

fn answered<W: World>(watch: &mut Watch, world: &mut W, row: &Session, answer: &Restarted) {
    settle::close(watch, &row.profile);
    let line = outcome::answered(&mut watch.state, &row.id, answer, world.now());
    report::outcome(watch, world, &row.id, &line);
}
