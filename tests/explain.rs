//! `explain` and `doctor --rehearse`: what they say of one session. They change
//! nothing. Does not know how anything is decided.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "common/asked.rs"]
mod asked;
mod common;
#[path = "common/past.rs"]
mod past;
mod scene;

use asked::{contains, fits_80_columns, json, said};
use common::free_composer;
use past::{once, run};
use scene::{flag, impatient};

#[test]
fn explain_says_what_would_have_to_change() {
    let deck = impatient();
    let lead = deck.row("lead").add();
    let child = deck
        .row("child")
        .child_of(&lead)
        .waiting_on(free_composer("All done."))
        .add();
    deck.row("worker").add();
    deck.conductor("old")
        .status("stopped")
        .without("pane")
        .add();
    deck.conductor("kept").file("archived", "").add();
    let held = deck.conductor("held").dead().add();
    flag(&deck, "hold", &held);
    once(&deck).silent();
    for (wanted, parts) in [
        ("worker", &["not critical", "agent-deck-watchdog watch"][..]),
        (
            "child",
            &[
                "a child of lead",
                "stay the same for",
                "guardrails, message",
            ],
        ),
        ("conductor-old", &["somebody stopped it", "session start"]),
        (
            "conductor-held",
            &["no held hold file", "held would have to lift"],
        ),
        (&child[..8], &["a child of lead"]),
        (&held, &["conductor-held"]),
    ] {
        let (code, text) = said(&deck, &["explain", wanted]);
        assert_eq!(code, 0, "{text}");
        fits_80_columns(&text);
        contains(&text, parts);
    }
    let told = json(&deck, &["explain", "child", "--json"]);
    assert_eq!(told["child"], true);
    assert!(told["guard_message"].as_array().unwrap().len() > 5);
    assert!(!told["to_act_text"].as_array().unwrap().is_empty());
}

#[test]
fn a_title_of_two_sessions_lists_them() {
    let deck = impatient();
    let (one, two) = (deck.row("twin").add(), deck.row("twin").add());
    for command in [
        &["explain", "twin"][..],
        &["hold", "twin"],
        &["doctor", "--rehearse", "twin"],
    ] {
        let run = run(&deck, command);
        assert_eq!((run.code(), run.out.as_str()), (Some(2), ""));
        contains(&run.err, &["2 sessions are meant by \"twin\"", &one, &two]);
    }
    let run = run(&deck, &["explain", "nobody"]);
    assert_eq!(run.code(), Some(2));
    contains(&run.err, &["no session has the id or title \"nobody\""]);
}

#[test]
fn a_rehearsal_goes_through_it_and_does_nothing() {
    let deck = impatient();
    let id = deck.conductor("ops").add();
    let lead = deck.row("lead").add();
    deck.row("child")
        .child_of(&lead)
        .waiting_on(free_composer("All done."))
        .add();
    once(&deck).silent();
    let calls = deck.ledger().len();
    let (code, text) = said(&deck, &["doctor", "--rehearse", &id]);
    assert_eq!(code, 0, "{text}");
    contains(
        &text,
        &[
            "ok list listed as waiting",
            "ok terminal stands",
            "ok restart if it died now",
        ],
    );
    let (_, text) = said(&deck, &["doctor", "--rehearse", "child"]);
    contains(&text, &["message"]);
    flag(&deck, "hold", &id);
    let (_, text) = said(&deck, &["doctor", "--rehearse", &id]);
    contains(&text, &["warning restart it would wait for held"]);
    let (_, text) = said(&deck, &["doctor", "--rehearse", &lead]);
    contains(
        &text,
        &["warning watched it is neither critical nor a child"],
    );
    for call in &deck.ledger()[calls..] {
        assert!(
            !call.args.contains("restart") && !call.args.contains("send"),
            "{call:?}"
        );
    }
}

#[test]
fn a_rehearsal_says_what_would_not_be_restarted() {
    let deck = impatient();
    let stopped = deck
        .conductor("stopped")
        .status("stopped")
        .without("pane")
        .add();
    let archived = deck.conductor("kept").dead().file("archived", "").add();
    let new = deck
        .conductor("new")
        .dead()
        .without("agent_session_id")
        .add();
    let dead = deck.conductor("dead").dead().add();
    for (id, part) in [
        (&stopped, "warning restart it was stopped on purpose"),
        (&archived, "warning restart it is archived"),
        (
            &new,
            "warning restart it would be left alone: it was added and never ran",
        ),
        (
            &dead,
            "ok restart it is dead, and agent-deck session restart",
        ),
    ] {
        let (code, text) = said(&deck, &["doctor", "--rehearse", id]);
        assert_eq!(code, 0, "{text}");
        contains(&text, &[part]);
    }
    deck.trap("list").exit(1).set();
    let run = run(&deck, &["doctor", "--rehearse", &dead]);
    assert_ne!(run.code(), Some(0));
    assert!(!run.out.contains("ok      restart"), "{}", run.out);
}
