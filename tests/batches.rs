//! Scenarios of children that are over together: when that is told, how it is
//! worded, and how often agent-deck is asked what they have done. The real binary
//! on the stand-in deck.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/past.rs"]
mod past;
mod scene;
#[path = "scene/waiting.rs"]
mod waiting;

use common::Deck;
use past::{once, pass};
use scene::{acts, count, impatient, polls, turns, watching};
use serde_json::Value;
use waiting::{after, child, children, said_before, says, until};

/// A little more than the time for which all must be over, and quiet.
const SETTLE: u64 = 121;
/// How the line of a batch begins, behind its number.
const OVER: &str = "is over: ";

/// A conductor that is well, and may be written to.
fn parent(deck: &Deck) -> String {
    deck.conductor("ops").add()
}

/// A conductor with three children that are at work, seen once.
fn three_at_work(deck: &Deck) -> (String, [String; 3]) {
    let parent = parent(deck);
    let ids = ["one", "two", "three"];
    let ids = ids.map(|title| child(deck, title, &parent).status("running").add());
    once(deck).silent();
    assert_eq!(asked(deck, &parent), 0, "nobody has come to rest");
    (parent, ids)
}

/// How often agent-deck was asked what the children of a session have done.
fn asked(deck: &Deck, parent: &str) -> usize {
    let question = children(parent);
    let calls = deck.ledger();
    calls.iter().filter(|call| call.args == question).count()
}

/// A child comes to rest.
fn rests(deck: &Deck, id: &str) {
    deck.set(id, "status", "waiting");
    deck.set(id, "substate", "idle-at-empty-prompt");
}

/// A child has said that its work is over, and comes to rest.
fn done(deck: &Deck, id: &str, word: &str) {
    says(deck, id, word);
    rests(deck, id);
}

/// The user stops a child.
fn stopped(deck: &Deck, id: &str) {
    deck.set(id, "status", "stopped");
    deck.unset(id, "pane");
}

/// What was told of batches, without the time.
fn lines(deck: &Deck) -> Vec<String> {
    let log = deck.read("watchdog.log");
    let text = |line: &str| Some(line.split_once(OVER)?.1.to_owned());
    log.lines().filter_map(text).collect()
}

/// What is remembered of a parent.
fn remembered(deck: &Deck, id: &str) -> Value {
    let state: Value = serde_json::from_str(&deck.read("state.json")).unwrap();
    let parents = state["state"]["parents"].as_array().unwrap();
    let parent = parents.iter().find(|parent| parent["id"] == *id);
    parent.cloned().unwrap_or_default()
}

#[test]
fn batch_told_once() {
    let deck = Deck::new();
    let (parent, [one, two, three]) = three_at_work(&deck);
    done(&deck, &one, "ok");
    done(&deck, &two, "ok");
    deck.unset(&three, "pane");
    once(&deck).silent();
    assert_eq!(asked(&deck, &parent), 1);
    until(&deck, "its death", || {
        pass(&deck, 61);
        count(&deck, "watchdog.log", &[&three, "it died"]) == 1
    });
    once(&deck).silent();
    after(&deck, SETTLE - 20).silent();
    assert_eq!(lines(&deck), [""; 0], "it is quiet for less than 120 s");
    after(&deck, 20).silent();
    let told = "3 children of group \"work\" ended: 2 done, 1 died (what they say themselves, not \
                checked)";
    assert_eq!(lines(&deck), [told]);
    assert_eq!(
        count(&deck, "watchdog.log", &[&parent, "batch 1 is over"]),
        1
    );
    let typed = || deck.typed(&parent).matches(told).count();
    until(&deck, "word to the parent", || {
        pass(&deck, 301);
        typed() == 1
    });
    for _ in 0..3 {
        after(&deck, 3600).silent();
    }
    // Nor by a daemon that takes over, and crashes.
    let mut daemon = watching(&deck);
    turns(&deck, &daemon, 2);
    daemon.crash();
    // Whatever those three do now, and whoever is called the same.
    for id in [&one, &two] {
        deck.set(id, "status", "running");
        once(&deck).silent();
        done(&deck, id, "fail");
    }
    stopped(&deck, &three);
    once(&deck).silent();
    after(&deck, 3600).silent();
    assert_eq!((lines(&deck), typed()), (vec![told.to_owned()], 1));
    assert_eq!(remembered(&deck, &parent)["batch"], 1);
    // No batch needs an answer any more; a question to a child does.
    assert_eq!(asked(&deck, &parent), 2);
    for id in [&one, &two, &three] {
        assert_eq!(deck.sends_to(id).len(), 0, "who is done is not asked");
    }
}

#[test]
fn a_daemon_tells_it_in_the_first_turn_after_the_quiet_time() {
    let deck = impatient();
    let (_, ids) = three_at_work(&deck);
    for id in &ids {
        done(&deck, id, "ok");
    }
    once(&deck).silent();
    pass(&deck, SETTLE);
    let mut daemon = watching(&deck);
    daemon.wait_for_line("watchdog.log", OVER);
    turns(&deck, &daemon, 2);
    assert!(daemon.stop().success());
    let told = "3 children of group \"work\" finished: 3 done (what they say themselves, not \
                checked)";
    assert_eq!(lines(&deck), [told]);
}

#[test]
fn batch_not_over() {
    let deck = Deck::new();
    let (parent, [one, two, three]) = three_at_work(&deck);
    done(&deck, &one, "ok");
    stopped(&deck, &two);
    for _ in 0..4 {
        after(&deck, 3600).silent();
    }
    rests(&deck, &three);
    once(&deck).silent();
    // At first it is asked every minute, then ever more rarely.
    let before = asked(&deck, &parent);
    for _ in 0..10 {
        after(&deck, 600).silent();
    }
    let more = asked(&deck, &parent) - before;
    assert!((5..=8).contains(&more), "{more}");
    deck.set(&three, "status", "idle");
    for _ in 0..4 {
        after(&deck, 3600).silent();
    }
    // What it says of an older task is no end of this one.
    deck.set(&three, "status", "running");
    once(&deck).silent();
    deck.set(&three, "done", said_before("ok", 7000));
    rests(&deck, &three);
    for _ in 0..3 {
        after(&deck, 1201).silent();
    }
    assert_eq!(lines(&deck), [""; 0]);
    assert_eq!(
        remembered(&deck, &parent)["members"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

#[test]
fn a_single_child_is_no_batch() {
    let deck = Deck::new();
    let parent = parent(&deck);
    let id = child(&deck, "alone", &parent).status("running").add();
    once(&deck).silent();
    stopped(&deck, &id);
    for _ in 0..4 {
        after(&deck, 3600).silent();
    }
    assert_eq!(lines(&deck), [""; 0]);
    assert_eq!(acts(&deck), [""; 0]);
    assert_eq!(remembered(&deck, &parent)["announced"][0], id.as_str());
}

#[test]
fn batch_wording() {
    let deck = Deck::new();
    let parent = parent(&deck);
    let at_work = |title: &str, group: &str| {
        let row = child(&deck, title, &parent).group(group);
        row.status("running").add()
    };
    let one = at_work("merge me", "work");
    let two = at_work("go on", "work");
    let three = at_work("three", "play");
    once(&deck).silent();
    done(&deck, &one, "ok");
    done(&deck, &two, "fail");
    stopped(&deck, &three);
    once(&deck).silent();
    after(&deck, SETTLE).silent();
    let told = "3 children ended: 1 done, 1 failed, 1 stopped (what they say themselves, not \
                checked)";
    assert_eq!(lines(&deck), [told]);
    for word in ["finished", "merge", "go", "continue", "complete"] {
        assert!(!told.split(' ').any(|said| said == word));
    }
}

#[test]
fn what_was_over_when_it_was_first_seen_is_not_told() {
    let deck = Deck::new();
    let parent = parent(&deck);
    let report = said_before("ok", 0);
    for title in ["one", "two"] {
        child(&deck, title, &parent).file("done", &report).add();
    }
    child(&deck, "three", &parent).stopped().add();
    for _ in 0..3 {
        once(&deck).silent();
        pass(&deck, 600);
    }
    assert_eq!(asked(&deck, &parent), 1, "before it was judged");
    assert_eq!(lines(&deck), [""; 0]);
    // The next batch is of those who come now.
    let new = ["four", "five"].map(|title| child(&deck, title, &parent).status("running").add());
    once(&deck).silent();
    for id in &new {
        done(&deck, id, "ok");
    }
    once(&deck).silent();
    after(&deck, SETTLE).silent();
    let told = lines(&deck);
    assert!(
        told.len() == 1 && told[0].starts_with("2 children"),
        "{told:?}"
    );
}

#[test]
fn a_batch_that_cannot_be_judged_is_mentioned_once() {
    let deck = Deck::new();
    let parent = parent(&deck);
    for title in ["one", "two"] {
        child(&deck, title, &parent).add();
    }
    for _ in 0..9 {
        once(&deck).silent();
        pass(&deck, 600);
    }
    let words = [&parent, "batch 1 cannot be judged"];
    assert_eq!(count(&deck, "watchdog.log", &words.map(|word| word)), 1);
}

#[test]
fn only_parents_in_scope_are_asked_for_and_told() {
    for (setting, value, ordinary, told) in [
        ("PARENT_NOTICE_SCOPE", "conductor", true, false),
        ("PARENT_NOTICE_SCOPE", "any", true, true),
        ("PARENT_NOTICE_SCOPE", "off", false, false),
        ("BATCH_NOTICE_MIN_CHILDREN", "0", false, false),
        ("BATCH_NOTICE_MIN_CHILDREN", "4", false, false),
        ("BATCH_NOTICE_MIN_CHILDREN", "3", false, true),
    ] {
        let deck = Deck::new();
        deck.setting(setting, value);
        let parent = match ordinary {
            true => deck.row("lead").add(),
            false => parent(&deck),
        };
        let ids = ["one", "two", "three"];
        let ids = ids.map(|title| child(&deck, title, &parent).status("running").add());
        once(&deck).silent();
        for id in &ids {
            done(&deck, id, "ok");
        }
        once(&deck).silent();
        after(&deck, SETTLE).silent();
        let seen = (asked(&deck, &parent), lines(&deck).len());
        let times = usize::from(told);
        assert_eq!(seen, (times, times), "{setting}={value}");
    }
}

#[test]
fn a_question_that_fails_says_nothing_and_is_put_again() {
    let deck = Deck::new();
    let (parent, ids) = three_at_work(&deck);
    for id in &ids {
        done(&deck, id, "ok");
    }
    let other = "{\"children\":[],\"parent\":\"1a2b3c4d-1755900000\"}";
    for (number, trap) in [
        deck.trap("children").exit(1),
        deck.trap("children").stdout("[]"),
        deck.trap("children").stdout(other),
    ]
    .into_iter()
    .enumerate()
    {
        deck.no_trap("children");
        trap.set();
        after(&deck, 600).silent();
        assert_eq!(asked(&deck, &parent), number + 1);
    }
    once(&deck).silent();
    assert_eq!(count(&deck, "watchdog.log", &["what its children"]), 0);
    deck.no_trap("children");
    after(&deck, 600).silent();
    after(&deck, SETTLE).silent();
    assert_eq!(lines(&deck).len(), 1);
    assert_eq!(asked(&deck, &parent), 4);
    assert!(polls(&deck) >= 7);
}

#[test]
fn a_removed_child_leaves_its_batch_after_ten_minutes() {
    let deck = Deck::new();
    let (parent, [one, two, three]) = three_at_work(&deck);
    done(&deck, &one, "ok");
    done(&deck, &two, "ok");
    deck.remove_row(&three);
    once(&deck).silent();
    after(&deck, 590).silent();
    assert_eq!(lines(&deck), [""; 0]);
    after(&deck, 20).silent();
    after(&deck, SETTLE).silent();
    let told = lines(&deck);
    assert!(
        told.len() == 1 && told[0].starts_with("2 children of group \"work\" finished"),
        "{told:?}"
    );
    // A parent that is gone with all its children is forgotten after a day.
    for id in [&parent, &one, &two] {
        deck.remove_row(id);
    }
    deck.row("somebody").add();
    once(&deck).silent();
    after(&deck, 80_000).silent();
    assert_eq!(remembered(&deck, &parent)["batch"], 1);
    after(&deck, 7000).silent();
    assert_eq!(remembered(&deck, &parent), Value::Null);
}
