//! The last rung of the ladder: a child that two opt-ins allow to stop is
//! stopped, once an episode (ladder T22 to T24).
//!
//! The intent is saved before the command, the command is never ended and never
//! repeated, and only a list says that it is stopped. This file does not know
//! when a child is due, nor what the rules say.

use crate::capabilities::patrol;
use crate::clock::Time;
use crate::guard;
use crate::ladder::{Deed, Event, Listed};
use crate::model::{Level, Session, SessionId, Status, Stopped};
use crate::parents;
use crate::saving::save;
use crate::state::{NoticeKind, Rung, say};
use crate::telling::{self, Kind};
use crate::typing::{Doubt, second_look, still_free};
use crate::watch::{Deck, Watch};
use crate::world::{Ran, World};
use crate::{report, rungs, settle};

/// Its stop was begun, and what came of it is not known. No second one follows
/// in this episode, whatever happens.
const BEGUN: &str = "its stop was begun";
/// What is remembered of one that did not stop.
const FAILED: &str = "could not be stopped";

/// Stops a child whose screen, with this digest, makes it due. Returns when it
/// may be due again.
pub fn stop<W: World>(
    watch: &mut Watch,
    world: &mut W,
    row: &Session,
    digest: &str,
) -> Option<Time> {
    let poll = watch.rules.poll;
    if world.leaving() || world.end_waits() {
        return Some(world.now().plus(poll));
    }
    if let Err(why) = looks(watch, world, row, digest) {
        not_stopped(watch, world, row, &why);
        return None;
    }
    // A flag, pause or hold that was put down or taken away a moment ago counts.
    let now = world.now();
    watch.take_flags(world.flags(), now);
    let verdict = guard::stop_verdict(&watch.state, &watch.surroundings(), row, now);
    if watch.rules.dry_run {
        dry(world, row, &verdict);
        return None;
    }
    let (state, around) = watch.to_permit();
    let permit = match guard::stop_permit(state, &around, row, now) {
        Ok(permit) => permit,
        Err(verdict) => {
            not_stopped(watch, world, row, &verdict.sentence());
            return verdict.lifts().filter(|lifts| *lifts > now);
        }
    };
    BEGUN.clone_into(&mut watch.state.child(row).silent);
    // What cannot be written down might be done twice.
    let saved = save(watch, world, true);
    let free = match saved {
        true => still_free(world, row, digest),
        false => Err("the state cannot be written"),
    };
    if let Err(why) = free {
        settle::close(watch, &row.profile);
        watch.state.child(row).silent.clear();
        save(watch, world, true);
        not_stopped(watch, world, row, why);
        return Some(world.now().plus(poll));
    }
    begins(watch, world, &row.id);
    report::stop_begins(world, row, &verdict);
    match world.begin_stop(permit) {
        Err(why) => answered(watch, world, row, &Stopped::NotStarted(why)),
        Ok(mark) => {
            let now = world.now();
            settle::started(watch, &row.profile, mark, now);
            save(watch, world, true);
            match world.finish_stop() {
                Ran::Ended(answer) => answered(watch, world, row, &answer),
                Ran::StillRunning => settle::still_running(watch, world, &row.profile),
            }
        }
    }
    save(watch, world, true);
    None
}

/// The looks that a message wants as well: who may not be typed into is not
/// stopped either, since somebody may be at it.
fn looks<W: World>(
    watch: &Watch,
    world: &mut W,
    row: &Session,
    digest: &str,
) -> Result<(), String> {
    match second_look(watch, world, row, &[Status::Waiting]) {
        Ok(()) => still_free(world, row, digest).map_err(str::to_owned),
        Err(Doubt::Told(why) | Doubt::Later(why)) => Err(why),
    }
}

fn dry<W: World>(world: &mut W, row: &Session, verdict: &guard::Verdict) {
    let sentence = match verdict.agrees() {
        true => "would be stopped".to_owned(),
        false => format!("would not be stopped: {}", verdict.sentence()),
    };
    world.note(Level::Info, &report::named(row), &sentence);
}

/// It is left alone; each reason is written down once an episode.
fn not_stopped<W: World>(watch: &mut Watch, world: &mut W, row: &Session, why: &str) {
    let word = format!("not stopped: {why}");
    if say(&mut watch.state.child(row).said, &word) {
        world.note(Level::Info, &report::named(row), &word);
    }
}

/// Books what came of the command. That it is stopped, a list has to say.
fn answered<W: World>(watch: &mut Watch, world: &mut W, row: &Session, answer: &Stopped) {
    settle::close(watch, &row.profile);
    match answer {
        Stopped::Accepted => report::stop_ends(world, row, "accepted", "agent-deck says so"),
        Stopped::Unknown(why) => report::stop_ends(world, row, "unknown", why),
        Stopped::Failed(why) | Stopped::NotStarted(why) => failed(watch, world, row, why),
    }
}

/// A good list came, which nobody has booked yet. Returns who was to be stopped
/// and is; who lives instead has not been stopped.
pub fn book<W: World>(watch: &mut Watch, world: &mut W, deck: &Deck) -> Vec<SessionId> {
    let running = watch.state.known_profile(&deck.profile);
    let busy = running.is_some_and(|profile| profile.running.is_some());
    let all = watch.state.children.iter();
    let begun = all.filter(|child| child.silent == BEGUN && child.profile == deck.profile);
    let rows: Vec<Session> = begun
        .filter_map(|child| deck.row(&child.id))
        .filter(|row| patrol::is_child(row))
        .cloned()
        .collect();
    let mut stopped = Vec::new();
    for row in rows {
        if row.status == Status::Stopped {
            // Between its end and that word it has read dead.
            if watch.state.child(&row).rung == Rung::Dying {
                rungs::happens(watch, world, &row.id, Event::Listed(Listed::Left));
            }
            stopped.push(row.id);
        } else if row.status.is_alive() && !busy {
            let why = format!("it is listed as {}", row.status.word());
            failed(watch, world, &row, &why);
        }
    }
    stopped
}

/// T24: never again in this episode, and its owner hears of it.
fn failed<W: World>(watch: &mut Watch, world: &mut W, row: &Session, why: &str) {
    let now = world.now();
    FAILED.clone_into(&mut watch.state.child(row).silent);
    rungs::happens(watch, world, &row.id, Event::Deed(Deed::StopFailed));
    report::stop_ends(world, row, "failed", why);
    let text = format!(
        "{} ({}) could not be stopped: {why}; it is not tried again: please look",
        row.title, row.id
    );
    let (kind, subject) = (Kind::Unanswered, row.id.as_str());
    telling::keep(&mut watch.state, kind, subject, Level::Warning, &text, now);
}

/// T23: a list that was taken in says that they are stopped, as we have asked.
pub fn tell<W: World>(watch: &mut Watch, world: &mut W, stopped: &[SessionId]) {
    for id in stopped {
        let rung = watch.state.known_child(id).map(|child| child.rung);
        let Some(row) = watch
            .row(id)
            .filter(|_| rung == Some(Rung::StoppedByUs))
            .cloned()
        else {
            continue;
        };
        let now = world.now();
        let seen = "was stopped by the watchdog, as its autostop file and \
            WAITING_PATROL_TERMINATE=1 allow";
        report::stop_ends(world, &row, "done", "it is listed as stopped");
        let text = format!("{} ({id}) {seen}", row.title);
        let key = Kind::Unanswered.key(id.as_str());
        telling::mention(&mut watch.state, &key, Level::Info, &text, now);
        parents::notify(watch, world, id, NoticeKind::Stopped, seen);
    }
}

/// Its stop is about to begin. That it does not answer is over with that: what
/// is told next is what came of it.
fn begins<W: World>(watch: &mut Watch, world: &mut W, id: &SessionId) {
    rungs::happens(watch, world, id, Event::Deed(Deed::StopBegun));
    telling::close(&mut watch.state, Kind::Unanswered, id.as_str());
}

/// A run begins: a stop that the one before had begun, or was about to begin,
/// counts as begun. The next list says what became of it.
pub fn recover<W: World>(watch: &mut Watch, world: &mut W) {
    let profiles = watch.state.profiles.iter();
    let open: Vec<SessionId> = profiles
        .filter_map(|profile| profile.running.as_ref())
        .filter(|intent| intent.stops)
        .map(|intent| intent.id.clone())
        .collect();
    for id in open {
        begins(watch, world, &id);
    }
}
