//! The one place that acts: permit, saved intent, command, saved outcome.
//! And what becomes of commands that a run left behind.
//!
//! This file does not know why a session is dead, nor what the rules say.

use std::time::Duration;

use crate::capabilities::restart::is_critical;
use crate::clock::{Time, spoken};
use crate::deck::argv::RESTART_DEADLINE;
use crate::deck::processes::deck_commands;
use crate::guard::{self, begun};
use crate::model::{Level, Profile, Restarted, Scope, Session, SessionId, Sight, Status};
use crate::outcome;
use crate::saving::save;
use crate::state::Intent;
use crate::telling::{self, Kind};
use crate::watch::Watch;
use crate::world::{Ran, World};
use crate::{refusal, report};

/// A run that ended between the decision and the start of its command may have
/// started it this much later than the decision says.
const START_SLACK: Duration = Duration::from_secs(2);

/// Restarts a session that is dead, if the guard permits.
pub fn act<W: World>(watch: &mut Watch, world: &mut W, row: &Session, evidence: &str) {
    let id = &row.id;
    if world.leaving() {
        return;
    }
    // A pause or hold that was put down a moment ago counts.
    watch.flags = world.flags();
    if !is_critical(row, &watch.flags) {
        return watch.unplan(id);
    }
    let now = world.now();
    if let Some(due) = last_outcome(watch, world, row, now) {
        return watch.plan_next(id, None, Some(due), now);
    }
    let verdict = guard::verdict(&watch.state, &watch.surroundings(), id, now);
    let around = guard::Surroundings {
        flags: &watch.flags,
        spacing: watch.rules.spacing,
        remembered: watch.remembered,
    };
    let permit = match guard::permit(&mut watch.state, &around, id, evidence, now) {
        Ok(permit) => permit,
        Err(verdict) => return refusal::by_guard(watch, world, row, &verdict),
    };
    if watch.rules.dry_run {
        report::would(world, row, evidence);
        close(watch, &row.profile);
        return watch.unplan(id);
    }
    // When this fails the run goes on with its budgets in memory: it has
    // written them before, or the guard would not have agreed (DESIGN 2.3).
    save(watch, world, true);
    report::attempt(world, row, evidence, &verdict);
    match world.begin_restart(permit) {
        Err(why) => answered(watch, world, row, &Restarted::NotStarted(why)),
        Ok(mark) => {
            let now = world.now();
            begun(&mut watch.state, id, now);
            if let Some(intent) = running(watch, &row.profile) {
                intent.process = Some(mark);
                intent.since = now;
            }
            telling::count_restart(&mut watch.state, id.as_str());
            save(watch, world, false);
            match world.finish_restart() {
                Ran::Ended(answer) => answered(watch, world, row, &answer),
                Ran::StillRunning => still_running(watch, world, &row.profile),
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
    now: Time,
) -> Option<Time> {
    let due = outcome::due(&watch.state, &row.id)?;
    if due > now {
        return Some(due);
    }
    // It is dead for certain, whatever the last list said.
    let row = Session {
        status: Status::Error,
        ..row.clone()
    };
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
    close(watch, &row.profile);
    let line = outcome::answered(&mut watch.state, &row.id, answer, world.now());
    report::outcome(watch, world, &row.id, &line);
}

/// Looks after commands that still ran when their run or their deadline ended.
pub fn settle<W: World>(watch: &mut Watch, world: &mut W) {
    let open: Vec<(Profile, Intent)> = watch
        .state
        .profiles
        .iter()
        .filter_map(|profile| Some((profile.name.clone(), profile.running.clone()?)))
        .collect();
    for (profile, intent) in open {
        if goes_on(world, &intent) {
            let late = world.now().since(intent.since) >= RESTART_DEADLINE;
            if late && !intent.reported {
                still_running(watch, world, &profile);
            }
            continue;
        }
        close(watch, &profile);
        lost(watch, world, &intent);
    }
}

/// Whether the command of an intent still runs, as far as can be seen.
fn goes_on<W: World>(world: &mut W, intent: &Intent) -> bool {
    if let Some(mark) = intent.process {
        return world.still_runs(mark);
    }
    match world.processes(Scope::All) {
        Sight::Seen(table) => deck_commands(&table)
            .changing
            .iter()
            .any(|(_, verb)| verb.contains("restart")),
        Sight::Blind(_) => world.now().since(intent.since) < RESTART_DEADLINE,
    }
}

/// A command whose answer nobody read: the agent may be running, so the budget
/// stays used and the processes are looked at.
fn lost<W: World>(watch: &mut Watch, world: &mut W, intent: &Intent) {
    let now = world.now();
    if intent.process.is_none() {
        let at = now.min(intent.since.plus(START_SLACK));
        begun(&mut watch.state, &intent.id, at);
    }
    let text = "the command ended while nobody waited for its answer".to_owned();
    let answer = Restarted::Unknown(text);
    let line = outcome::answered(&mut watch.state, &intent.id, &answer, now);
    report::outcome(watch, world, &intent.id, &line);
    let over = format!("the restart of {} ended", intent.id);
    telling::resolve(&mut watch.state, Kind::Hang, intent.id.as_str(), &over, now);
    watch.plan_passes(now);
}

fn still_running<W: World>(watch: &mut Watch, world: &mut W, profile: &Profile) {
    let now = world.now();
    let Some(intent) = running(watch, profile) else {
        return;
    };
    intent.reported = true;
    let (id, since) = (intent.id.clone(), intent.since);
    let text = hang_text(watch, &id, since, now);
    world.note(Level::Critical, id.as_str(), &text);
    telling::keep(
        &mut watch.state,
        Kind::Hang,
        id.as_str(),
        Level::Critical,
        &text,
        now,
    );
}

fn hang_text(watch: &Watch, id: &SessionId, since: Time, now: Time) -> String {
    let title = watch.state.sessions.get(id).map_or("", |m| &m.title);
    format!(
        "the restart of {title} ({id}) still runs after {}; it is left alone and nothing else \
         changes its profile until it ends",
        spoken(now.since(since))
    )
}

fn running<'a>(watch: &'a mut Watch, profile: &Profile) -> Option<&'a mut Intent> {
    watch.state.profile(profile).running.as_mut()
}

fn close(watch: &mut Watch, profile: &Profile) {
    watch.state.profile(profile).running = None;
}
