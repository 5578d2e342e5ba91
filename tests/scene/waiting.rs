//! Steps that the scenarios of waiting children share: what asking one looks
//! like in the ledger, runs until it was asked, what was told. Does not know any
//! scenario.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use agent_deck_watchdog::clock::Time;
use serde_json::Value;

use super::common::{Deck, Row, now, wait_for};
use super::past::{Run, once, pass};
use super::scene::{pane, records, show};

/// All that reaches the agent of a child that is asked.
pub const TYPED: &str = "report status?\r";
/// A little more than the ten minutes.
pub const THRESHOLD: u64 = 601;
/// A little more than the hour between two messages.
pub const DEDUP: u64 = 3601;

/// A conductor that is well, the parent of a deck's children. What it hears of
/// them has tests of its own.
pub fn parent(deck: &Deck) -> String {
    deck.setting("PARENT_NOTICE_SCOPE", "off");
    deck.conductor("ops").add()
}

/// A child in the making: it waits on a free composer.
pub fn child<'a>(deck: &'a Deck, title: &str, parent: &str) -> Row<'a> {
    deck.row(title).child_of(parent)
}

/// A child says that its work is over: `ok` or `fail`, as of this moment.
pub fn says(deck: &Deck, id: &str, word: &str) {
    deck.set(id, "done", said_before(word, 0));
}

/// What agent-deck has of a child that said so that many seconds ago.
pub fn said_before(word: &str, seconds: u64) -> String {
    let at = Time((now() - seconds) * 1000).rfc3339();
    format!("{word}\nmerge it now\n{at}")
}

/// The arguments of the question what the children of a session have done.
pub fn children(parent: &str) -> String {
    format!("-p default session children {parent} --json")
}

/// The arguments of the message.
pub fn send(id: &str) -> String {
    format!("-p default session send {id} report status? --no-wait --json")
}

/// What it takes to ask a child that was read before: the screen, twice.
pub fn question(id: &str) -> Vec<String> {
    vec![pane(id), show(id), pane(id), send(id)]
}

/// Runs once an hour of the watchdog's life has passed, or however long.
pub fn after(deck: &Deck, seconds: u64) -> Run {
    pass(deck, seconds);
    once(deck)
}

/// Runs until something of that kind has come about: a look that took more than
/// 250 ms permits nothing, and the next run tries again.
pub fn until(deck: &Deck, what: &str, mut come: impl FnMut() -> bool) {
    wait_for(what, || {
        if !come() {
            once(deck).silent();
        }
        come().then_some(())
    });
}

/// Runs until so many messages were sent.
pub fn until_asked(deck: &Deck, id: &str, times: usize) {
    until(deck, "a message", || deck.sends_to(id).len() >= times);
}

/// A deck's children that have waited for more than ten minutes, as far as the
/// watchdog knows: it has read each of them once.
pub fn ten_minutes_on(deck: &Deck) {
    let unread = || {
        let state: Value = serde_json::from_str(&deck.read("state.json")).unwrap_or_default();
        let children = state["state"]["children"].as_array();
        children.is_none_or(|all| all.iter().any(|child| child["since"].is_null()))
    };
    until(deck, "a first reading of all", || !unread());
    pass(deck, THRESHOLD);
}

/// What the owner was told so far: the episode. Nothing is told twice unless it
/// is listed twice.
pub fn told(deck: &Deck) -> Vec<String> {
    let mut told = all_told(deck);
    told.retain(|episode| !episode.starts_with("notice:"));
    told
}

/// The same, with what parents heard or could not hear.
pub fn all_told(deck: &Deck) -> Vec<String> {
    let records = records(deck, "escalations.log").into_iter();
    let told = records.filter(|record| record["outcome"] != "deduplicated");
    told.map(|record| record["episode"].as_str().unwrap().to_owned())
        .collect()
}

/// The texts of what was told of one episode.
pub fn texts(deck: &Deck, episode: &str) -> Vec<String> {
    let records = records(deck, "escalations.log").into_iter();
    let fits = records.filter(|record| record["episode"] == *episode);
    fits.map(|record| record["text"].as_str().unwrap().to_owned())
        .collect()
}

/// What the watchdog remembers of one child.
pub fn remembered(deck: &Deck, id: &str) -> Value {
    let state: Value = serde_json::from_str(&deck.read("state.json")).unwrap();
    let children = state["state"]["children"].as_array().unwrap();
    let child = children.iter().find(|child| child["id"] == *id);
    child.cloned().unwrap_or_default()
}
