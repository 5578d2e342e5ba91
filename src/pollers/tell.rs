//! What is told of the owners of Telegram bots.
//!
//! This file does not know how any of it was found out.

use std::path::Path;

use super::{Owner, REST_PATIENCE};
use crate::capabilities::poller::{self, Seen};
use crate::clock::{Time, spoken};
use crate::model::Level;
use crate::telling::{self, Kind};
use crate::watch::Watch;
use crate::world::World;

/// Its folder cannot be said: written down and told once.
pub(super) fn unknown<W: World>(watch: &mut Watch, world: &mut W, owner: &Owner, why: &str) {
    let now = world.now();
    poller::unknown(watch.state.owner(&owner.row));
    let text = format!(
        "the Telegram folder of {} is unknown, so its poller is not looked after: {why}",
        owner.name()
    );
    tell_once(watch, world, Kind::PollerUnknown, owner, &text, now);
}

/// Its folder is known.
pub(super) fn known(watch: &mut Watch, owner: &Owner, now: Time) {
    let id = owner.row.id.as_str();
    let text = format!("the Telegram folder of {} is known", owner.name());
    telling::resolve(&mut watch.state, Kind::PollerUnknown, id, &text, now);
}

/// Two that share a bot steal each other's messages, and a restart of one would
/// end the poller of the other.
pub(super) fn shared<W: World>(
    watch: &mut Watch,
    world: &mut W,
    owner: &Owner,
    other: &Owner,
    folder: &Path,
) {
    let now = world.now();
    poller::unknown(watch.state.owner(&owner.row));
    // Told of both as one, unless the other one's folder is unknown.
    if owner.row.id > other.row.id && poller::expected(&other.telegram).is_ok() {
        return;
    }
    let text = format!(
        "{} and {} use the same Telegram bot ({}): only one of them can hear it. Give each its \
         own TELEGRAM_STATE_DIR and bot; until then neither is restarted for it",
        owner.name(),
        other.name(),
        folder.display()
    );
    tell_once(watch, world, Kind::Duplicate, owner, &text, now);
}

/// Pollers of its folder that are not its own, or more than one.
pub(super) fn tell_others<W: World>(
    watch: &mut Watch,
    world: &mut W,
    owner: &Owner,
    seen: &Seen,
    folder: &Path,
) {
    let now = world.now();
    let (id, folder) = (owner.row.id.as_str(), folder.display());
    let alone = seen.orphans.is_empty() && seen.own.len() < 2;
    let memory = watch.state.owner(&owner.row);
    memory.others_since = (!alone).then(|| memory.others_since.unwrap_or(now));
    // An old one may be ending, a new one starting: two looks have to agree.
    let since = memory.others_since.unwrap_or(now);
    if !alone && now.since(since) < poller::LOOKS_APART {
        return;
    }
    let text = if !seen.orphans.is_empty() {
        format!(
            "processes {:?} poll Telegram for {folder} and do not belong to the agent of {}: they \
             take its messages. They are not ended; end them by hand",
            seen.orphans,
            owner.name()
        )
    } else if seen.own.len() > 1 {
        format!(
            "processes {:?} all poll Telegram for {folder} below the agent of {}: they take each \
             other's messages",
            seen.own,
            owner.name()
        )
    } else {
        let text = format!("nobody else polls the Telegram folder of {}", owner.name());
        return telling::resolve(&mut watch.state, Kind::Duplicate, id, &text, now);
    };
    tell_once(watch, world, Kind::Duplicate, owner, &text, now);
}

/// What its poller does that no restart mends.
pub(super) fn tell_habits(watch: &mut Watch, owner: &Owner, now: Time) {
    let (id, name) = (owner.row.id.as_str(), owner.name());
    let memory = watch.state.owner(&owner.row);
    let flapping = poller::flapping(memory);
    let suspected = poller::suspected(memory, now);
    let state = &mut watch.state;
    match flapping {
        Some(times) => {
            let text = format!(
                "the Telegram poller of {name} comes and goes: missing {times} times in half an hour"
            );
            telling::keep(state, Kind::Flapping, id, Level::Warning, &text, now);
        }
        None => {
            let text = format!("the Telegram poller of {name} stays");
            telling::resolve(state, Kind::Flapping, id, &text, now);
        }
    }
    match suspected {
        Some(_) => {
            let text = format!(
                "{name} is suspected deaf: its poller has had no connection for ten minutes and more, \
                 while others have"
            );
            telling::keep(state, Kind::Suspected, id, Level::Warning, &text, now);
        }
        None => {
            let text = format!("the Telegram poller of {name} has a connection");
            telling::resolve(state, Kind::Suspected, id, &text, now);
        }
    }
}

/// It has a poller.
pub(super) fn hears(watch: &mut Watch, owner: &Owner, now: Time) {
    let text = format!("{} has a Telegram poller again", owner.name());
    watch.state.owner(&owner.row).said.clear();
    let id = owner.row.id.as_str();
    telling::resolve(&mut watch.state, Kind::Deaf, id, &text, now);
}

/// It stays deaf, and cannot be mended: told when that takes too long.
pub(super) fn too_long(watch: &mut Watch, owner: &Owner, why: &str, now: Time) {
    let since = watch.state.owner(&owner.row).deaf_since.unwrap_or(now);
    let id = owner.row.id.as_str();
    // Reasons change from look to look: the first one is told.
    if now.since(since) >= REST_PATIENCE && !telling::is_open(&watch.state, Kind::Deaf, id) {
        let text = format!(
            "nobody polls Telegram for {} for {}, and it cannot be restarted: {why}",
            owner.name(),
            spoken(now.since(since))
        );
        telling::keep(
            &mut watch.state,
            Kind::Deaf,
            id,
            Level::Critical,
            &text,
            now,
        );
    }
}

/// Told as an episode, and written down when it opens.
pub(super) fn tell_once<W: World>(
    watch: &mut Watch,
    world: &mut W,
    kind: Kind,
    owner: &Owner,
    text: &str,
    now: Time,
) {
    let id = owner.row.id.as_str();
    if !telling::is_open(&watch.state, kind, id) {
        let subject = format!("{} {id}", owner.row.title);
        world.note(Level::Warning, &subject, text);
    }
    telling::keep(&mut watch.state, kind, id, Level::Warning, text, now);
}
