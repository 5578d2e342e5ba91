//! How notices end: each once in `escalations.log`, whatever became of it.
//!
//! This file does not know when that is.

use crate::json::{Map, put};
use crate::model::{Level, SessionId};
use crate::state::{NoticeKind, ParentNotice};
use crate::telling::{self, Kind};
use crate::watch::Watch;
use crate::world::{Record, World};

/// How a notice ended, and what is to be said of that.
pub(super) enum End<'a> {
    /// Its parent was told, or may have been.
    Told(&'a str),
    /// Its parent cannot be told.
    Not(&'a str),
}

/// Some of a parent's notices end, and leave its queue.
pub(super) fn some_end<W: World>(
    watch: &mut Watch,
    world: &mut W,
    id: &SessionId,
    which: &dyn Fn(&ParentNotice) -> bool,
    how: &End,
) {
    let Some(parent) = watch.state.known_parent_mut(id) else {
        return;
    };
    let title = parent.title.clone();
    let (over, kept) = std::mem::take(&mut parent.queue)
        .into_iter()
        .partition(which);
    parent.queue = kept;
    let over: Vec<ParentNotice> = over;
    if parent.queue.is_empty() {
        parent.gone_since = None;
        watch.rounds.parents.retain(|known, _| known != id);
    }
    for notice in over {
        end(watch, world, &title, id.as_str(), &notice, how);
    }
}

/// A notice has ended: it is written down, and what hangs on it is done.
pub(super) fn end<W: World>(
    watch: &mut Watch,
    world: &mut W,
    title: &str,
    id: &str,
    notice: &ParentNotice,
    how: &End,
) {
    let now = world.now();
    let child = SessionId::parse(&notice.child);
    let about = child.as_ref().map_or(id, SessionId::as_str);
    let key = Kind::Notice.key(about);
    let (outcome, level, why) = match how {
        End::Told(why) => ("told", Level::Info, *why),
        End::Not(why) => ("undeliverable", Level::Warning, *why),
    };
    let mut line = Map::new();
    put(&mut line, "episode", &key);
    put(&mut line, "severity", &Level::Warning.word());
    put(&mut line, "channel", &"parent");
    put(&mut line, "outcome", &outcome);
    put(&mut line, "parent", &id);
    put(&mut line, "kind", &notice.kind.word());
    if !why.is_empty() {
        put(&mut line, "why", &why);
    }
    put(&mut line, "text", &notice.text);
    world.record(Record::Escalation(line));
    let because = if why.is_empty() { "" } else { ", " };
    let sentence = format!("{outcome}{because}{why}: {}", notice.text);
    world.note(level, &format!("{title} {id}"), &sentence);
    match notice.kind {
        NoticeKind::HandedOver => {
            if let Some(child) = child.and_then(|id| watch.state.known_child_mut(&id)) {
                child.told = Some(now);
                let id = child.id.clone();
                let dwell = watch.rules.limits.nudge_dedup;
                watch.read_pane_by(&id, now.plus(dwell));
            }
        }
        // Nobody else is told of these.
        NoticeKind::Stopped | NoticeKind::Batch => {
            if matches!(how, End::Not(_)) {
                let text = format!("{title} ({id}) cannot be told, {why}: {}", notice.text);
                telling::mention(&mut watch.state, &key, Level::Warning, &text, now);
            }
        }
        NoticeKind::Gate | NoticeKind::CannotAsk | NoticeKind::Held | NoticeKind::Died => {}
    }
}
