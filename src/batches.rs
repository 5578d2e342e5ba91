//! Batches in a turn: takes down what a list says of the children of each
//! parent, asks agent-deck what they have said of their work, and tells a parent
//! whose children are all over.
//!
//! This file does not know when a batch is over, nor how a parent is told.

use crate::capabilities::patrol::is_child;
use crate::clock::Time;
use crate::ladder::batch::{self, ASKED_APART, Change, Kid, Round};
use crate::ladder::notices;
use crate::model::{Completion, Level, Profile, Session, SessionId};
use crate::parents;
use crate::remember::{FORGET, GONE};
use crate::state::{Parent, State};
use crate::watch::{Deck, Watch};
use crate::world::World;

/// Parents whose children are asked for in a turn: it takes 0.07 s (contract
/// 5.5b), and up to 15 s where agent-deck hangs.
const ASKS: u32 = 1;

/// A turn begins: children may be asked for.
pub fn refill(watch: &mut Watch) {
    watch.rounds.asks_left = ASKS;
}

/// A listed parent that may be told, and its children.
struct Family<'a> {
    parent: &'a Session,
    kids: Vec<Kid<'a>>,
}

/// What has come about in one batch.
pub struct News {
    parent: SessionId,
    subject: String,
    batch: u32,
    change: Change,
}

/// Books a good list. To be told when the list was taken in, and before anything
/// is saved.
pub fn book<W: World>(watch: &mut Watch, world: &mut W, deck: &Deck) -> Vec<News> {
    let mut all = families(watch, deck);
    for family in &all {
        let row = family.parent;
        let parent = watch.state.parent(&deck.profile, &row.id, &row.title);
        parent.title.clone_from(&row.title);
        parent.profile.clone_from(&row.profile);
    }
    let asked = ask_one(watch, world, deck, &all);
    if asked.is_some() {
        all = families(watch, deck);
    }
    let mut news = Vec::new();
    let mut parents = std::mem::take(&mut watch.state.parents);
    parents.retain_mut(|parent| {
        if parent.profile != deck.profile {
            return true;
        }
        let family = all.iter().find(|family| family.parent.id == parent.id);
        let kids = family.map_or(&[][..], |family| &family.kids);
        let was_asked = asked.as_ref() == Some(&parent.id);
        let change = step(watch, parent, kids, deck, was_asked);
        if change != Change::Nothing {
            news.push(News {
                parent: parent.id.clone(),
                subject: format!("{} {}", parent.title, parent.id),
                batch: parent.batch,
                change,
            });
        }
        is_remembered(&watch.state, parent, deck)
    });
    watch.state.parents = parents;
    news
}

/// The parents of a list that may be told, with their children.
fn families<'a>(watch: &Watch, deck: &'a Deck) -> Vec<Family<'a>> {
    let mut families: Vec<Family> = Vec::new();
    let rows = deck.rows.iter();
    for row in rows.filter(|row| !row.parent.is_empty() && is_child(row)) {
        let kid = Kid::of(row, watch.state.known_child(&row.id));
        let own = |family: &&mut Family| family.parent.id.as_str() == row.parent;
        if let Some(family) = families.iter_mut().find(own) {
            family.kids.push(kid);
            continue;
        }
        let id = SessionId::parse(&row.parent);
        let parent = id.and_then(|id| deck.row(&id));
        if let Some(parent) = parent.filter(|parent| is_told(watch, parent)) {
            let kids = vec![kid];
            families.push(Family { parent, kids });
        }
    }
    families
}

/// Whether batches of that parent are told.
fn is_told(watch: &Watch, row: &Session) -> bool {
    let scope = notices::in_scope(watch.rules.scope, Some(row));
    scope.is_ok() && !row.archived && watch.rules.batch_min > 0
}

fn minimum(watch: &Watch) -> usize {
    usize::try_from(watch.rules.batch_min).unwrap_or(usize::MAX)
}

/// What a list changes for one parent.
fn step(watch: &Watch, parent: &mut Parent, kids: &[Kid], deck: &Deck, was_asked: bool) -> Change {
    let Some(row) = deck.row(&parent.id) else {
        return Change::Nothing;
    };
    if !is_told(watch, row) {
        batch::forget(parent);
        return Change::Nothing;
    }
    let minimum = minimum(watch);
    // Who has just come to rest is heard before it is judged.
    let unheard = batch::has_come_to_rest(parent, kids);
    if unheard && !was_asked && batch::asked_at(parent, kids, minimum).is_some() {
        return Change::Nothing;
    }
    let now = deck.listed;
    let missing = |id: &SessionId| {
        let since = watch.state.known_child(id).map(|child| child.missed_since);
        let gone = |since: Option<Time>| since.is_some_and(|at| now.since(at) >= GONE);
        deck.row(id).is_none() && since.is_some_and(|since| !gone(since))
    };
    let known = watch.state.known_profile(&deck.profile);
    let round = Round {
        stays: &missing,
        minimum,
        gap: known.and_then(|profile| profile.gap),
        now,
    };
    batch::step(parent, kids, &round)
}

/// Whether a parent is still worth remembering: it or a child of it was listed
/// within a day. So are those it was told of.
fn is_remembered(state: &State, parent: &mut Parent, deck: &Deck) -> bool {
    let listed = |id: &SessionId| deck.row(id).is_some();
    parent
        .announced
        .retain(|id| listed(id) || state.known_child(id).is_some());
    let child = |row: &Session| row.parent == parent.id.as_str();
    if listed(&parent.id) || !parent.queue.is_empty() || deck.rows.iter().any(child) {
        parent.missed_since = None;
        return true;
    }
    let since = *parent.missed_since.get_or_insert(deck.listed);
    deck.listed.since(since) < FORGET
}

/// Asks for the children of the parent that has been left unasked longest, if
/// one is due. Which one it was.
fn ask_one<W: World>(
    watch: &mut Watch,
    world: &mut W,
    deck: &Deck,
    families: &[Family],
) -> Option<SessionId> {
    if watch.rounds.asks_left == 0 {
        return None;
    }
    let minimum = minimum(watch);
    let due = families.iter().filter_map(|family| {
        let parent = watch.state.known_parent(&family.parent.id)?;
        let at = batch::asked_at(parent, &family.kids, minimum)?;
        let news = batch::has_come_to_rest(parent, &family.kids);
        (at <= deck.listed).then_some((parent.asked, family.parent, news))
    });
    let (_, row, news) = due.min_by_key(|(asked, ..)| *asked)?;
    if world.leaving() || world.end_waits() {
        return None;
    }
    watch.rounds.asks_left -= 1;
    let parent = ask(&mut watch.state, world, deck, &row.id);
    parent.asks = if news {
        1
    } else {
        parent.asks.saturating_add(1)
    };
    Some(row.id.clone())
}

/// Asks what the children of a parent have said, once more before one of them is
/// typed into: who is done is left alone. Not more often than once a minute, and
/// whether or not the parent is told of batches. True: it was asked.
pub fn refresh<W: World>(
    watch: &mut Watch,
    world: &mut W,
    profile: &Profile,
    parent: &str,
) -> bool {
    let Some(id) = SessionId::parse(parent) else {
        return false;
    };
    let now = world.now();
    let known = watch.state.known_parent(&id);
    let asked = known.and_then(|parent| parent.asked);
    if world.leaving() || asked.is_some_and(|at| now.since(at) < ASKED_APART[0]) {
        return false;
    }
    let mut decks = watch.decks.iter();
    let Some(deck) = decks.find(|deck| deck.profile == *profile) else {
        return false;
    };
    ask(&mut watch.state, world, deck, &id);
    true
}

/// Asks for the children of a parent, and notes what they have said.
fn ask<'a, W: World>(
    state: &'a mut State,
    world: &mut W,
    deck: &Deck,
    id: &SessionId,
) -> &'a mut Parent {
    let answer = world.children(&deck.profile, id);
    let now = world.now();
    let title = deck.row(id).map_or("", |row| &row.title);
    match answer {
        Ok(said) => {
            for one in said {
                hear(state, deck, id, &one, now);
            }
        }
        Err(why) => {
            let sentence = format!("what its children have done is not known: {why}");
            world.detail(&format!("{title} {id}"), &sentence);
        }
    }
    let parent = state.parent(&deck.profile, id, title);
    parent.asked = Some(now);
    parent
}

/// Notes what a child has said, if it is a listed child of that parent. A stamp
/// that lies ahead proves nothing.
fn hear(state: &mut State, deck: &Deck, parent: &SessionId, said: &Completion, now: Time) {
    let own = |row: &&Session| row.parent == parent.as_str() && is_child(row);
    let Some(row) = deck.row(&said.id).filter(own) else {
        return;
    };
    if said.at <= now {
        let child = state.child(row);
        child.over = Some(said.at);
        child.over_ok = said.ok;
    }
}

/// Tells what has come about. It is in the state already, and what is told goes
/// into the same one: they are saved together.
pub fn tell<W: World>(watch: &mut Watch, world: &mut W, news: Vec<News>) {
    for one in news {
        let batch = format!("batch {}", one.batch);
        match &one.change {
            Change::Nothing => {}
            Change::Closed => {
                world.detail(&one.subject, &format!("{batch} is closed without a word"));
            }
            Change::Unjudged => {
                let sentence = format!(
                    "{batch} cannot be judged: all have been at rest for an hour, and none ever \
                     said that its work is over"
                );
                world.note(Level::Info, &one.subject, &sentence);
            }
            Change::Announce(text) => {
                let sentence = format!("{batch} is over: {text}");
                world.note(Level::Info, &one.subject, &sentence);
                parents::notify_batch(watch, world, &one.parent, text);
            }
        }
    }
}
