//! One line to one parent: the looks, the permit, the marks, the message, and
//! what became of it.
//!
//! This file does not know when a parent is due.

use super::over::{End, some_end};
use super::{AT_REST, LOOK_AGAIN, NOTICE_DEFER};
use crate::capabilities::patrol;
use crate::clock::{Time, spoken};
use crate::guard;
use crate::ladder::notices;
use crate::model::{Delivery, Level, Pane, Session, SessionId};
use crate::saving::save;
use crate::settle;
use crate::state::{ParentNotice, State};
use crate::telling::{self, Kind};
use crate::typing::{Doubt, second_look, still_free};
use crate::watch::{Reading, Watch};
use crate::world::{Ran, World};

/// Looks at a parent and tells it what waits, if it is free.
pub(super) fn look<W: World>(watch: &mut Watch, world: &mut W, row: &Session) {
    let now = world.now();
    let reading = Reading {
        last: now,
        due: now.plus(LOOK_AGAIN),
    };
    *watch.rounds.parents.get_or_make(&row.id, || reading) = reading;
    watch.rounds.reads_left = watch.rounds.reads_left.saturating_sub(1);
    let Err(why) = free(watch, world, row).and_then(|digest| tell(watch, world, row, &digest))
    else {
        return;
    };
    world.detail(&named(row), &format!("not told yet: {why}"));
    let now = world.now();
    let expired = |notice: &ParentNotice| now.since(notice.since) >= NOTICE_DEFER;
    some_end(watch, world, &row.id, &expired, &End::Not(&why));
}

/// The digest of its screen, when nothing speaks against typing there.
fn free<W: World>(watch: &Watch, world: &mut W, row: &Session) -> Result<String, String> {
    let screen = match world.pane(&row.profile, &row.id) {
        Ok(Pane::Stands(screen)) => screen,
        Ok(Pane::Gone) => return Err("the parent's terminal is gone".to_owned()),
        Err(why) => return Err(why.to_string()),
    };
    if screen.decision {
        return Err("a decision is on the parent's screen".to_owned());
    }
    if let Some(why) = patrol::silence(row, &screen) {
        return Err(format!("nothing may be typed to the parent: {why}"));
    }
    match second_look(watch, world, row, &AT_REST) {
        Ok(()) => Ok(patrol::digest(&screen)),
        Err(Doubt::Told(why) | Doubt::Later(why)) => Err(why),
    }
}

/// Types the line: permit, marks, saved intent, a last look, the message.
fn tell<W: World>(
    watch: &mut Watch,
    world: &mut W,
    row: &Session,
    digest: &str,
) -> Result<(), String> {
    if world.end_waits() {
        return Err("something else is more urgent".to_owned());
    }
    // A pause or hold that was put down a moment ago counts.
    let now = world.now();
    watch.take_flags(world.flags(), now);
    let known = watch.state.known_parent(&row.id);
    let Some(line) = known.map(|parent| notices::line(&parent.queue)) else {
        return Ok(());
    };
    if watch.rules.dry_run {
        return dry(watch, world, row, &line);
    }
    let (state, around) = watch.to_permit();
    let (permit, before) =
        guard::notice_permit(state, &around, row, now).map_err(|verdict| verdict.sentence())?;
    mark(state, &row.id, true);
    watch.rounds.sends_left -= 1;
    // A run of cron that cannot write it down would not know of it the next time.
    if !save(watch, world, true) && watch.rules.pace.is_none() {
        give_back(watch, world, row, before);
        return Err("the state cannot be written".to_owned());
    }
    if let Err(why) = still_free(world, row, digest) {
        give_back(watch, world, row, before);
        return Err(why.to_owned());
    }
    match world.begin_notice(permit, &line) {
        Err(why) => answered(watch, world, row, &Delivery::NotStarted(why)),
        Ok(mark) => {
            let now = world.now();
            guard::notice_begun(&mut watch.state, row, now);
            settle::started(watch, &row.profile, mark, now);
            save(watch, world, false);
            match world.finish_send() {
                Ran::Ended(delivery) => answered(watch, world, row, &delivery),
                Ran::StillRunning => {
                    settle::still_running(watch, world, &row.profile);
                    sent(watch, world, row, "the message is still under way");
                }
            }
        }
    }
    save(watch, world, true);
    Ok(())
}

/// A dry run says what it would type, and then lets it be.
fn dry<W: World>(
    watch: &mut Watch,
    world: &mut W,
    row: &Session,
    line: &str,
) -> Result<(), String> {
    world.note(Level::Info, &named(row), &format!("would be told: {line}"));
    if let Some(parent) = watch.state.known_parent_mut(&row.id) {
        parent.queue.clear();
    }
    Ok(())
}

/// All that waits for a parent is on its way, or not after all.
fn mark(state: &mut State, id: &SessionId, sending: bool) {
    if let Some(parent) = state.known_parent_mut(id) {
        for notice in &mut parent.queue {
            notice.sending = sending;
        }
    }
}

/// Nothing was typed.
fn give_back<W: World>(watch: &mut Watch, world: &mut W, row: &Session, before: Option<Time>) {
    guard::return_notice(&mut watch.state, row, before);
    mark(&mut watch.state, &row.id, false);
    save(watch, world, true);
}

/// Books what came of a line.
fn answered<W: World>(watch: &mut Watch, world: &mut W, row: &Session, delivery: &Delivery) {
    settle::close(watch, &row.profile);
    let now = world.now();
    match delivery {
        Delivery::Delivered => sent(watch, world, row, ""),
        Delivery::NoEvidence(why) | Delivery::Unknown(why) => {
            sent(watch, world, row, &format!("perhaps in vain: {why}"));
        }
        Delivery::Answered => {
            let why = "a dialog was on its screen, and the message answered it";
            sent(watch, world, row, why);
            misfire(watch, row, why, now);
        }
        Delivery::LeftBehind(why) if !delivery.is_too_long() => {
            let why = format!("text was left in its input box: {why}");
            sent(watch, world, row, &why);
            misfire(watch, row, &why, now);
        }
        // The interval since this try goes by first (ladder 1.6).
        Delivery::LeftBehind(why) | Delivery::Refused(why) | Delivery::NotStarted(why) => {
            mark(&mut watch.state, &row.id, false);
            let again = spoken(guard::NOTICE_INTERVAL);
            let sentence = format!("not told, tried again in {again}: {why}");
            world.note(Level::Info, &named(row), &sentence);
        }
    }
}

/// The line went out, or may have.
fn sent<W: World>(watch: &mut Watch, world: &mut W, row: &Session, why: &str) {
    let end = End::Told(why);
    some_end(watch, world, &row.id, &|notice| notice.sending, &end);
}

/// Something else than to tell it came of a line: that is told loudly.
fn misfire(watch: &mut Watch, row: &Session, why: &str, now: Time) {
    let text = format!(
        "{} ({}) was told of its children, and {why}: please look",
        row.title, row.id
    );
    let key = Kind::Misfire.key(row.id.as_str());
    telling::mention(&mut watch.state, &key, Level::Critical, &text, now);
}

fn named(row: &Session) -> String {
    format!("{} {}", row.title, row.id)
}
