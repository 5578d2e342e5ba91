//! The ladder on the real binary: what the conductor hears of its children, and
//! what nobody hears (scenarios, section 9). Does not know how a line is typed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/past.rs"]
mod past;
mod scene;
#[path = "scene/waiting.rs"]
mod waiting;

use common::Deck;
use common::screens::{dialog, free_composer};
use past::once;
use scene::count;
use waiting::{DEDUP, THRESHOLD, after, all_told, child, remembered, says, until, until_asked};

/// A conductor that is well, and may be written to.
fn conductor(deck: &Deck) -> String {
    deck.conductor("ops").add()
}

/// What was typed to it, line by line.
fn lines(deck: &Deck, id: &str) -> Vec<String> {
    let sends = deck.sends_to(id).into_iter();
    sends.map(|send| send.message).collect()
}

fn until_lines(deck: &Deck, id: &str, times: usize) {
    until(deck, "a line", || lines(deck, id).len() >= times);
}

/// Its terminal and agent end.
fn ends(deck: &Deck, id: &str) {
    deck.unset(id, "pane");
    deck.unset(id, "substate");
}

/// Time for a death to be confirmed: three looks half a minute apart.
fn a_minute_dead(deck: &Deck) {
    once(deck).silent();
    for _ in 0..3 {
        after(deck, 31).silent();
    }
}

#[test]
fn death_told_once() {
    let deck = Deck::new();
    let ops = conductor(&deck);
    let kid = child(&deck, "fix-the-tests", &ops).add();
    once(&deck).silent();
    ends(&deck, &kid);
    a_minute_dead(&deck);
    until_lines(&deck, &ops, 1);
    let line = &lines(&deck, &ops)[0];
    for part in [
        "[agent-deck-watchdog]",
        "\"fix-the-tests\"",
        &kid,
        "is dead for",
    ] {
        assert!(line.contains(part), "{line} lacks {part}");
    }
    for _ in 0..3 {
        after(&deck, 400).silent();
    }
    assert_eq!(lines(&deck, &ops).len(), 1);
    let to_owner = format!("died:{kid}");
    assert_eq!(
        all_told(&deck)
            .iter()
            .filter(|key| **key == to_owner)
            .count(),
        1
    );
    assert_eq!(count(&deck, "watchdog.log", &[&kid, "it died"]), 1);
    assert_eq!(remembered(&deck, &kid)["rung"], "dead");
}

#[test]
fn death_needs_confirmation() {
    let deck = Deck::new();
    let ops = conductor(&deck);
    let kid = child(&deck, "fix-the-tests", &ops).add();
    once(&deck).silent();
    for _ in 0..4 {
        deck.set(&kid, "printed", "error");
        after(&deck, 40).silent();
        deck.set(&kid, "printed", "running");
        after(&deck, 20).silent();
    }
    assert_eq!((deck.sends().len(), all_told(&deck).len()), (0, 0));
}

#[test]
fn no_parent_no_notice() {
    let deck = Deck::new();
    let ops = conductor(&deck);
    let orphan = deck.row("no-parent").add();
    let quiet = child(&deck, "quiet", &ops);
    let quiet = quiet.file("no_transition_notify", "true").add();
    once(&deck).silent();
    for id in [&orphan, &quiet] {
        ends(&deck, id);
    }
    a_minute_dead(&deck);
    for _ in 0..3 {
        after(&deck, 400).silent();
    }
    assert_eq!((deck.sends().len(), all_told(&deck).len()), (0, 0));
    assert_eq!(remembered(&deck, &quiet)["rung"], "dead");
}

/// Three questions an hour apart, and then its conductor hears of it, once.
#[test]
fn who_does_not_answer_is_handed_over() {
    let deck = Deck::new();
    let ops = conductor(&deck);
    let kid = child(&deck, "fix-the-tests", &ops).add();
    once(&deck).silent();
    for nudge in 1..=3 {
        let wait = if nudge == 1 { THRESHOLD } else { DEDUP };
        after(&deck, wait).silent();
        until_asked(&deck, &kid, nudge);
        // Its own words move the screen, and it waits again.
        deck.set(&kid, "pane", free_composer(&format!("● Answer {nudge}.")));
        after(&deck, 10).silent();
    }
    assert_eq!(lines(&deck, &ops), [""; 0]);
    after(&deck, DEDUP).silent();
    until_lines(&deck, &ops, 1);
    let line = &lines(&deck, &ops)[0];
    assert!(line.contains("was asked 3 times to report"), "{line}");
    let child = remembered(&deck, &kid);
    assert_eq!(child["rung"], "handed-over");
    assert!(child["told"]["at"].is_u64(), "{child}");
    for _ in 0..3 {
        after(&deck, DEDUP).silent();
    }
    assert_eq!(
        (lines(&deck, &ops).len(), deck.sends_to(&kid).len()),
        (1, 3)
    );
}

/// A permission dialog: the conductor is told, and not one byte reaches it.
#[test]
fn a_decision_is_told_and_not_one_byte_is_typed() {
    let deck = Deck::new();
    let ops = conductor(&deck);
    let kid = child(&deck, "fix-the-tests", &ops).pane(dialog()).add();
    once(&deck).silent();
    after(&deck, THRESHOLD).silent();
    until_lines(&deck, &ops, 1);
    let line = &lines(&deck, &ops)[0];
    assert!(line.contains("waits for a decision about"), "{line}");
    for _ in 0..3 {
        after(&deck, DEDUP).silent();
    }
    assert_eq!(lines(&deck, &ops).len(), 1);
    assert_eq!(
        (deck.typed(&kid), deck.sends_to(&kid).len()),
        (String::new(), 0)
    );
    assert_eq!(remembered(&deck, &kid)["rung"], "gated");
}

/// Three children finish: one notice, and none of them is asked.
#[test]
fn three_that_finish_are_one_notice() {
    let deck = Deck::new();
    let ops = conductor(&deck);
    let titles = ["one", "two", "three"];
    let kids = titles.map(|title| child(&deck, title, &ops).status("running").add());
    once(&deck).silent();
    for kid in &kids {
        says(&deck, kid, "ok");
        deck.set(kid, "status", "waiting");
        deck.set(kid, "substate", "idle-at-empty-prompt");
    }
    once(&deck).silent();
    after(&deck, 121).silent();
    until_lines(&deck, &ops, 1);
    let line = &lines(&deck, &ops)[0];
    assert!(
        line.contains("3 children") && line.contains("finished: 3 done"),
        "{line}"
    );
    for _ in 0..3 {
        after(&deck, DEDUP).silent();
    }
    assert_eq!(deck.sends().len(), 1);
    for kid in &kids {
        assert_eq!(remembered(&deck, kid)["rung"], "settled");
    }
}

/// What is to be said of one that waits is not said when it does not any more.
#[test]
fn who_goes_on_is_not_told_of() {
    let deck = Deck::new();
    let ops = conductor(&deck);
    deck.set(&ops, "printed", "running");
    let kid = child(&deck, "fix-the-tests", &ops).pane(dialog()).add();
    once(&deck).silent();
    after(&deck, THRESHOLD).silent();
    after(&deck, 40).silent();
    assert_eq!(lines(&deck, &ops), [""; 0]);
    deck.set(&kid, "printed", "running");
    after(&deck, 20).silent();
    deck.unset(&ops, "printed");
    for _ in 0..3 {
        after(&deck, 60).silent();
    }
    assert_eq!(lines(&deck, &ops), [""; 0]);
}
