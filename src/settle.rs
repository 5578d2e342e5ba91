//! What becomes of commands that a run left behind, or that outlived their
//! deadline: they are watched, never doubled, and booked when they end.
//!
//! This file does not know why they were begun.

use std::time::Duration;

use crate::clock::{Time, spoken};
use crate::deck::argv::{RESTART_DEADLINE, SEND_DEADLINE, STOP_DEADLINE};
use crate::deck::processes::deck_commands;
use crate::guard::begun;
use crate::model::{Level, Process, ProcessMark, Profile, Restarted, Scope, SessionId, Sight};
use crate::state::Intent;
use crate::telling::{self, Kind};
use crate::watch::Watch;
use crate::world::World;
use crate::{outcome, report};

/// A run that ended between the decision and the start of its command may have
/// started it this much later than the decision says.
const START_SLACK: Duration = Duration::from_secs(2);

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
            let late = world.now().since(intent.since) >= deadline(&intent);
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
        Sight::Seen(table) if intent.sends => table.iter().any(|p| sends(p, &intent.id)),
        Sight::Seen(table) => {
            let wanted = if intent.stops { "stop" } else { "restart" };
            let changing = deck_commands(&table).changing;
            changing.iter().any(|(_, verb)| verb.contains(wanted))
        }
        Sight::Blind(_) => world.now().since(intent.since) < deadline(intent),
    }
}

/// Whether a process sends a message to that session.
fn sends(process: &Process, id: &SessionId) -> bool {
    let has = |word: &str| process.args.iter().any(|arg| arg == word);
    process.own && !process.zombie && has("send") && has(id.as_str())
}

/// After this a command is told to be late.
fn deadline(intent: &Intent) -> Duration {
    match (intent.sends, intent.stops) {
        (true, _) => SEND_DEADLINE,
        (false, true) => STOP_DEADLINE,
        (false, false) => RESTART_DEADLINE,
    }
}

/// A command whose answer nobody read: the agent may be running, so the budget
/// stays used and the processes are looked at.
fn lost<W: World>(watch: &mut Watch, world: &mut W, intent: &Intent) {
    let now = world.now();
    let over = format!("the {} ended", intent.in_words());
    telling::resolve(&mut watch.state, Kind::Hang, intent.id.as_str(), &over, now);
    if intent.tells {
        // What it said is told by now, as far as is known (`parents::recover`).
        let sentence = "the message to it ended: nobody waited for the answer, it counts";
        return world.note(Level::Info, intent.id.as_str(), sentence);
    }
    if intent.sends {
        // That its screen stays as it was says something of a message that went out.
        let child = watch.state.known_child_mut(&intent.id);
        if let Some(child) = child.filter(|_| intent.process.is_none()) {
            child.asked.clear();
        }
        let sentence = format!(
            "{}?): nobody waited for the answer, it counts",
            report::ASKED
        );
        return world.note(Level::Info, intent.id.as_str(), &sentence);
    }
    if intent.stops {
        // The next list says what became of it.
        let sentence = "the stop ended: nobody waited for the answer, it counts";
        return world.note(Level::Warning, intent.id.as_str(), sentence);
    }
    if intent.process.is_none() {
        let at = now.min(intent.since.plus(START_SLACK));
        begun(&mut watch.state, &intent.id, at);
    }
    let text = "the command ended while nobody waited for its answer".to_owned();
    let answer = Restarted::Unknown(text);
    let line = outcome::answered(&mut watch.state, &intent.id, &answer, now);
    report::outcome(watch, world, &intent.id, &line);
    watch.plan_passes(now);
}

/// Reports a command that outlived its deadline.
pub fn still_running<W: World>(watch: &mut Watch, world: &mut W, profile: &Profile) {
    let now = world.now();
    let Some(intent) = running(watch, profile) else {
        return;
    };
    intent.reported = true;
    let intent = intent.clone();
    let id = &intent.id;
    let text = hang_text(watch, &intent, now);
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

fn hang_text(watch: &Watch, intent: &Intent, now: Time) -> String {
    let title = watch
        .state
        .sessions
        .get(&intent.id)
        .map_or("", |m| &m.title);
    format!(
        "the {} ({title}) still runs after {}; it is left alone and nothing else changes its \
         profile until it ends",
        intent.in_words(),
        spoken(now.since(intent.since))
    )
}

/// The command that was begun in a profile and not yet seen to end.
fn running<'a>(watch: &'a mut Watch, profile: &Profile) -> Option<&'a mut Intent> {
    watch.state.profile(profile).running.as_mut()
}

/// It has begun as this process.
pub fn started(watch: &mut Watch, profile: &Profile, mark: ProcessMark, now: Time) {
    if let Some(intent) = running(watch, profile) {
        intent.process = Some(mark);
        intent.since = now;
    }
}

/// It has ended.
pub fn close(watch: &mut Watch, profile: &Profile) {
    watch.state.profile(profile).running = None;
}
