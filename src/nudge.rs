//! Asking a child to report: permit, saved intent, a last look, the message,
//! and what became of it.
//!
//! This file does not know when a child is due, nor what permits to type.

use std::time::Duration;

use crate::capabilities::patrol;
use crate::clock::Time;
use crate::guard::{self, Slot};
use crate::ladder::{Deed, Event, Shows};
use crate::model::{Delivery, Level, Session, Status};
use crate::parents;
use crate::saving::save;
use crate::state::{Backoff, NoticeKind, say};
use crate::telling::{self, Kind};
use crate::typing::{Doubt, second_look, still_free};
use crate::watch::Watch;
use crate::world::{Ran, World};
use crate::{report, rungs, settle};

/// What agent-deck refused before it typed is tried again after this many
/// seconds (ladder T6: 5 min).
const REFUSED_SECONDS: u64 = 300;
/// Where the next list is late, so long between two looks for it: a list takes up
/// to two seconds (contract 14.1).
const SOON: Duration = Duration::from_secs(2);

/// It is due and must not be typed into: told once.
pub fn cannot_ask<W: World>(watch: &mut Watch, world: &mut W, row: &Session, why: &str) {
    let now = world.now();
    if watch.rules.dry_run {
        note(
            world,
            row,
            &format!("would be told: it waits and cannot be asked: {why}"),
        );
    }
    rungs::happens(watch, world, &row.id, Event::Screen(Shows::NoComposer));
    if say(&mut watch.state.child(row).said, "cannot ask") {
        let seen = format!(
            "waits and cannot be asked to report, since nothing may be typed into it: {why}"
        );
        let text = format!("{} ({}) {seen}", row.title, row.id);
        let subject = row.id.as_str();
        let level = Level::Warning;
        telling::keep(
            &mut watch.state,
            Kind::CannotAsk,
            subject,
            level,
            &text,
            now,
        );
        parents::notify(watch, world, &row.id, NoticeKind::CannotAsk, &seen);
    }
}

/// Asks a child whose screen, with this digest, makes it due. Returns when it
/// may be due again.
pub fn ask<W: World>(
    watch: &mut Watch,
    world: &mut W,
    row: &Session,
    digest: &str,
) -> Option<Time> {
    let poll = watch.rules.poll;
    if !has_its_turn(watch, row) {
        return Some(next_turn(watch, row, world.now()));
    }
    if let Err(why) = second_look(watch, world, row, &[Status::Waiting]) {
        return match why {
            Doubt::Told(why) => {
                cannot_ask(watch, world, row, &why);
                None
            }
            Doubt::Later(why) => later(watch, world, row, &why),
        };
    }
    if world.end_waits() {
        return Some(world.now().plus(poll));
    }
    // A pause or hold that was put down a moment ago counts.
    let now = world.now();
    watch.take_flags(world.flags(), now);
    let around = watch.surroundings();
    if watch.rules.dry_run {
        let sentence = match guard::nudge_verdict(&watch.state, &around, row, now) {
            verdict if verdict.agrees() => "would be asked to report".to_owned(),
            verdict => format!("would not be asked to report: {}", verdict.sentence()),
        };
        note(world, row, &sentence);
        return None;
    }
    let (state, around) = watch.to_permit();
    let Ok((permit, slot)) = guard::nudge_permit(state, &around, row, digest, now) else {
        return Some(now.plus(poll));
    };
    watch.rounds.sends_left -= 1;
    // A run of cron that cannot write it down would not know of it the next time.
    if !save(watch, world, true) && watch.rules.pace.is_none() {
        give_back(watch, world, row, slot);
        return None;
    }
    if let Err(why) = still_free(world, row, digest) {
        give_back(watch, world, row, slot);
        return later(watch, world, row, why);
    }
    match world.begin_send(permit) {
        Err(why) => answered(watch, world, row, &Delivery::NotStarted(why), slot),
        Ok(mark) => {
            let now = world.now();
            watch.state.child(row).doubt_since = None;
            guard::nudge_begun(&mut watch.state, row, now);
            settle::started(watch, &row.profile, mark, now);
            save(watch, world, false);
            match world.finish_send() {
                Ran::Ended(delivery) => answered(watch, world, row, &delivery, slot),
                Ran::StillRunning => {
                    rungs::happens(watch, world, &row.id, Event::Deed(Deed::Asked));
                    settle::still_running(watch, world, &row.profile);
                }
            }
        }
    }
    save(watch, world, true);
    Some(world.now().plus(patrol::ECHO))
}

/// Whether it may be acted on since the last list: one act a child and tick (ladder
/// P3), so what triage advises waits for a new one.
fn has_its_turn(watch: &Watch, row: &Session) -> bool {
    let listed = watch.deck(&row.profile).map(|deck| deck.listed);
    let triaged = watch
        .state
        .known_child(&row.id)
        .and_then(|child| child.triaged);
    watch.rounds.sends_left > 0 && triaged <= listed
}

/// When it may have its turn: with the next list, so that who was due before it is
/// not before it again.
fn next_turn(watch: &Watch, row: &Session, now: Time) -> Time {
    let pace = watch.rules.pace.unwrap_or(watch.rules.poll);
    let listed = watch.deck(&row.profile).map(|deck| deck.listed.plus(pace));
    listed.max(Some(now.plus(SOON))).unwrap_or(now)
}

/// It cannot be asked at this moment: tried again soon. Returns when.
fn later<W: World>(watch: &mut Watch, world: &mut W, row: &Session, why: &str) -> Option<Time> {
    let now = world.now();
    let since = *watch.state.child(row).doubt_since.get_or_insert(now);
    if now.since(since) >= watch.rules.threshold {
        cannot_ask(watch, world, row, why);
        return None;
    }
    Some(now.plus(watch.rules.poll))
}

/// Nothing was typed.
fn give_back<W: World>(watch: &mut Watch, world: &mut W, row: &Session, slot: Slot) {
    settle::close(watch, &row.profile);
    guard::return_nudge(&mut watch.state, row, slot);
    save(watch, world, true);
}

/// Books what came of a message.
fn answered<W: World>(
    watch: &mut Watch,
    world: &mut W,
    row: &Session,
    delivery: &Delivery,
    slot: Slot,
) {
    settle::close(watch, &row.profile);
    let now = world.now();
    let count = watch.state.child(row).nudges;
    let asked = match watch.rules.limits.max_nudges {
        0 => format!("{}{count})", report::ASKED),
        most if count > most => format!("{}{count}, as triage advises)", report::ASKED),
        most => format!("{}{count} of {most})", report::ASKED),
    };
    watch.state.child(row).retry = None;
    if delivery.may_have_arrived() {
        rungs::happens(watch, world, &row.id, Event::Deed(Deed::Asked));
    }
    match delivery {
        Delivery::Delivered => note(world, row, &asked),
        Delivery::NoEvidence(why) | Delivery::Unknown(why) => {
            note(world, row, &format!("{asked}, perhaps in vain: {why}"));
        }
        Delivery::Answered => {
            note(world, row, &asked);
            let why = "a dialog was on its screen, and the message answered it";
            misfire(watch, world, row, why);
        }
        Delivery::LeftBehind(why) => {
            note(world, row, &asked);
            misfire(
                watch,
                world,
                row,
                &format!("text was left in its input box: {why}"),
            );
        }
        Delivery::Refused(why) | Delivery::NotStarted(why) => {
            guard::return_nudge(&mut watch.state, row, slot);
            let child = watch.state.child(row);
            child.retry = Some(Backoff {
                since: now,
                seconds: REFUSED_SECONDS,
            });
            if say(&mut child.said, "refused") {
                let sentence = format!("not asked to report, tried again every 5 min: {why}");
                note(world, row, &sentence);
            }
        }
    }
}

/// Something else than a message came of it: nothing more is typed in this
/// episode, and it is told loudly.
fn misfire<W: World>(watch: &mut Watch, world: &mut W, row: &Session, why: &str) {
    let now = world.now();
    why.clone_into(&mut watch.state.child(row).silent);
    let handed_over = rungs::happens(watch, world, &row.id, Event::Deed(Deed::Misfired));
    let seen = format!("was asked to report, and {why}; nothing more is typed into it");
    let text = format!("{} ({}) {seen}: please look", row.title, row.id);
    note(world, row, why);
    let level = Level::Critical;
    telling::raise(
        &mut watch.state,
        Kind::Misfire,
        row.id.as_str(),
        level,
        &text,
        now,
    );
    if handed_over.is_some() {
        parents::notify(watch, world, &row.id, NoticeKind::HandedOver, &seen);
    }
}

/// A pane after a message: it must have changed, or something else was answered.
pub fn echo<W: World>(watch: &mut Watch, world: &mut W, row: &Session, digest: &str) {
    let now = world.now();
    let profile = watch.state.known_profile(&row.profile);
    let running = profile.and_then(|profile| profile.running.as_ref());
    if running.is_some_and(|intent| intent.id == row.id) {
        // It is still on its way.
        return;
    }
    let child = watch.state.child(row);
    if child.asked.is_empty() {
        return;
    }
    if child.asked != digest {
        child.asked.clear();
        return;
    }
    if child
        .last_nudge
        .is_some_and(|at| now.since(at) >= patrol::ECHO)
    {
        child.asked.clear();
        misfire(watch, world, row, "its screen stayed as it was");
    }
}

fn note<W: World>(world: &mut W, row: &Session, sentence: &str) {
    world.note(Level::Info, &format!("{} {}", row.title, row.id), sentence);
}
