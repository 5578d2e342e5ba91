//! Scenarios of notices to parents: when they are typed, as what, how often, and
//! where they stand when they cannot be. The notices are put into the state by
//! hand. The real binary on the stand-in deck.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[cfg(target_os = "linux")]
#[path = "common/killed.rs"]
mod killed;
#[path = "common/past.rs"]
mod past;
mod scene;
#[path = "scene/waiting.rs"]
mod waiting;

use common::{Deck, now, screens, write};
use past::{once, pass, run};
use scene::{acts, count, flag, impatient, pane, polled_every, records, show, watching};
use serde_json::{Value, json};
use waiting::{after, all_told, child, remembered, until};

/// How a line begins and ends.
const MARK: &str = "[agent-deck-watchdog] ";
const END: &str = ". This is information, not an instruction.";

fn state(deck: &Deck) -> Value {
    serde_json::from_str(&deck.read("state.json")).unwrap()
}

/// Puts notices down for a parent: kind, child and text of each.
fn queue(deck: &Deck, parent: &str, notices: &[(&str, &str, &str)]) {
    if deck.read("state.json").is_empty() {
        once(deck).silent();
    }
    let mut state = state(deck);
    let parents = &mut state["state"]["parents"];
    if parents.is_null() {
        *parents = json!([]);
    }
    let parents = parents.as_array_mut().unwrap();
    if !parents.iter().any(|known| known["id"] == *parent) {
        parents.push(json!({
            "id": parent, "profile": "default", "title": "", "last_told": null, "queue": [],
            "batch": 0, "members": [], "announced": [], "unjudged": false,
        }));
    }
    let known = parents.iter_mut().find(|known| known["id"] == *parent);
    let queue = known.unwrap()["queue"].as_array_mut().unwrap();
    for (kind, child, text) in notices {
        queue.push(json!({
            "kind": kind, "child": child, "text": text, "since": {"at": now() * 1000},
            "sending": false,
        }));
    }
    let path = deck.watchdog_dir().join("state.json");
    write(&path, format!("{state:#}\n"));
}

/// A conductor that is well, and may be written to.
fn parent(deck: &Deck) -> String {
    deck.conductor("ops").add()
}

/// Notices that still wait.
fn waits(deck: &Deck) -> usize {
    let parents = state(deck)["state"]["parents"].clone();
    let queues = parents.as_array().unwrap().iter();
    queues
        .map(|known| known["queue"].as_array().unwrap().len())
        .sum()
}

/// What became of notices: outcome and episode of each.
fn ends(deck: &Deck) -> Vec<(String, String)> {
    let all = records(deck, "escalations.log").into_iter();
    let own = all.filter(|record| record["channel"] == "parent");
    let text = |record: &Value, name: &str| record[name].as_str().unwrap().to_owned();
    own.map(|record| (text(&record, "outcome"), text(&record, "episode")))
        .collect()
}

fn end(outcome: &str, subject: &str) -> (String, String) {
    (outcome.to_owned(), format!("notice:{subject}"))
}

/// Runs until so many lines were sent to it.
fn until_told(deck: &Deck, id: &str, times: usize) {
    until(deck, "a line", || deck.sends_to(id).len() >= times);
}

/// What reaches an agent that is told this.
fn typed(texts: &str) -> String {
    format!("{MARK}{texts}{END}\r")
}

#[test]
fn notices_are_merged() {
    let deck = Deck::new();
    let id = parent(&deck);
    let kid = child(&deck, "fix-the-tests", &id).status("running").add();
    let three = [
        ("gate", &*kid, "child one waits"),
        ("died", &*kid, "child one died"),
        ("batch", "", "all 3 children ended"),
    ];
    queue(&deck, &id, &three);
    until_told(&deck, &id, 1);
    let line = "child one waits; child one died; all 3 children ended";
    assert_eq!(deck.typed(&id), typed(line));
    let sent = &deck.sends()[0];
    assert_eq!(sent.message, format!("{MARK}{line}{END}"));
    assert_eq!(sent.flags, ["--no-wait", "--json"]);
    let send = format!("-p default session send {id} {MARK}{line}{END} --no-wait --json");
    assert_eq!(acts(&deck), [pane(&id), show(&id), pane(&id), send]);
    let three = [end("told", &kid), end("told", &kid), end("told", &id)];
    assert_eq!(ends(&deck), three);
    assert_eq!(count(&deck, "watchdog.log", &[&id, "told: child one"]), 2);
    assert_eq!(waits(&deck), 0);
    // The next one not before 300 s, and then at once.
    queue(&deck, &id, &[("gate", &kid, "child one waits again")]);
    after(&deck, 290).silent();
    once(&deck).silent();
    assert_eq!(deck.sends().len(), 1);
    pass(&deck, 11);
    until_told(&deck, &id, 2);
    let both = [typed(line), typed("child one waits again")].concat();
    assert_eq!(deck.typed(&id), both);
    for _ in 0..3 {
        after(&deck, 400).silent();
    }
    assert_eq!((deck.sends().len(), ends(&deck).len()), (2, 4));
}

#[test]
fn a_line_has_an_end() {
    let deck = Deck::new();
    let id = parent(&deck);
    let text = "a child with a rather long name died for a rather long reason";
    let many: Vec<String> = (0..40).map(|n| format!("{n:08}-1755900000")).collect();
    let notices: Vec<_> = many.iter().map(|kid| ("died", &**kid, text)).collect();
    queue(&deck, &id, &notices);
    until_told(&deck, &id, 1);
    let message = &deck.sends()[0].message;
    assert!(message.len() <= 900, "{message}");
    assert!(
        message.contains("; and 28 more, see escalations.log. This is"),
        "{message}"
    );
    assert_eq!(ends(&deck).len(), 40);
    assert_eq!((waits(&deck), deck.sends().len()), (0, 1));
}

#[test]
fn notice_waits_for_the_parent() {
    for (what, minutes) in [("free in the end", 25), ("never free", 65)] {
        let deck = Deck::new();
        let id = deck.conductor("ops").status("running").add();
        queue(&deck, &id, &[("died", "", "child one died")]);
        for _ in 0..minutes / 5 {
            after(&deck, 300).silent();
        }
        // Not even its screen is read.
        assert_eq!(acts(&deck), [""; 0], "{what}");
        deck.set(&id, "status", "idle");
        deck.set(&id, "substate", "idle-at-empty-prompt");
        if minutes < 30 {
            assert_eq!((ends(&deck), waits(&deck)), (vec![], 1));
            until_told(&deck, &id, 1);
            assert_eq!(ends(&deck), [end("told", &id)]);
            assert_eq!(deck.typed(&id), typed("child one died"));
        }
        for _ in 0..3 {
            after(&deck, 400).silent();
        }
        if minutes > 30 {
            assert_eq!(ends(&deck), [end("undeliverable", &id)]);
            assert_eq!(
                count(&deck, "escalations.log", &["at work", "child one died"]),
                1
            );
            assert_eq!((deck.typed(&id), acts(&deck).len()), (String::new(), 0));
        }
    }
}

#[test]
fn notice_to_a_dead_parent() {
    for what in ["stopped", "dead", "archived", "removed", "no conductor"] {
        let deck = Deck::new();
        deck.row("somebody else").add();
        if what != "no conductor" {
            deck.setting("PARENT_NOTICE_SCOPE", "any");
        }
        let row = deck.row("boss");
        let id = match what {
            "stopped" => row.stopped().add(),
            "dead" => row.dead().add(),
            "archived" => row.archived().add(),
            _ => row.add(),
        };
        let kid = child(&deck, "fix-the-tests", &id).status("running").add();
        once(&deck).silent();
        if what == "removed" {
            deck.remove_row(&id);
        }
        queue(
            &deck,
            &id,
            &[("died", &kid, "it died"), ("batch", "", "all ended")],
        );
        once(&deck).silent();
        if what == "removed" {
            after(&deck, 590).silent();
            assert_eq!((ends(&deck), waits(&deck)), (vec![], 2));
            after(&deck, 11).silent();
        }
        for _ in 0..3 {
            after(&deck, 400).silent();
        }
        let both = [end("undeliverable", &kid), end("undeliverable", &id)];
        assert_eq!(ends(&deck), both, "{what}");
        // Of the batch nobody else would hear.
        let episodes = all_told(&deck);
        let to_owner = episodes
            .iter()
            .filter(|key| **key == format!("notice:{id}"));
        assert_eq!(to_owner.count(), 2, "{what}: {episodes:?}");
        assert_eq!(deck.sends(), [], "{what}");
    }
}

#[test]
fn parent_outside_scope() {
    for (scope, title, typed_to) in [
        ("conductor", "boss", false),
        ("off", "conductor-ops", false),
        ("conductor", "conductor-ops", true),
        ("any", "boss", true),
    ] {
        let deck = Deck::new();
        deck.setting("PARENT_NOTICE_SCOPE", scope);
        let id = deck.row(title).add();
        queue(&deck, &id, &[("died", "", "child one died")]);
        until(&deck, "an end", || !ends(&deck).is_empty());
        let outcome = if typed_to { "told" } else { "undeliverable" };
        assert_eq!(ends(&deck), [end(outcome, &id)], "{scope} {title}");
        assert_eq!(deck.sends().len(), usize::from(typed_to), "{scope} {title}");
        if !typed_to {
            assert_eq!(acts(&deck), [""; 0]);
        }
    }
}

#[test]
fn parent_with_a_prompt() {
    let deck = Deck::new();
    let id = deck.conductor("ops").waiting_on(screens::dialog()).add();
    queue(&deck, &id, &[("gate", "", "child one waits")]);
    for screen in [
        screens::dialog(),
        screens::plan(),
        screens::question(),
        screens::draft("merge it when"),
        screens::busy(),
        screens::shell_mode("rm -r"),
        screens::plain(),
    ] {
        deck.set(&id, "pane", &screen);
        for _ in 0..2 {
            after(&deck, 60).silent();
        }
        assert_eq!(
            (deck.sends(), deck.typed(&id)),
            (vec![], String::new()),
            "{screen}"
        );
        assert_eq!((ends(&deck), waits(&deck)), (vec![], 1), "{screen}");
    }
    deck.set(&id, "pane", screens::free_composer("● Done."));
    until_told(&deck, &id, 1);
    assert_eq!(deck.typed(&id), typed("child one waits"));
    assert_eq!(deck.answered(&id), [""; 0]);
    // A dialog that stays for the whole time.
    deck.set(&id, "pane", screens::dialog());
    queue(&deck, &id, &[("gate", "", "child two waits")]);
    for _ in 0..5 {
        after(&deck, 400).silent();
    }
    assert_eq!(ends(&deck)[1..], [end("undeliverable", &id)]);
    assert_eq!(count(&deck, "escalations.log", &["a decision is on"]), 1);
    assert_eq!(deck.sends().len(), 1);
}

#[test]
fn killed_between_save_and_answer() {
    let deck = impatient();
    let id = parent(&deck);
    let kid = child(&deck, "fix-the-tests", &id).add();
    once(&deck).silent();
    queue(
        &deck,
        &id,
        &[("handed-over", &kid, "child one does not answer")],
    );
    deck.sends_take(3000);
    let mut daemon = watching(&deck);
    deck.wait_for_sends(&id, 1);
    daemon.crash();
    once(&deck).silent();
    assert_eq!((ends(&deck), waits(&deck)), (vec![end("told", &kid)], 0));
    assert!(!remembered(&deck, &kid)["told"].is_null());
    deck.wait_for_typed(&id);
    let counts = "nobody waited for the answer, it counts";
    until(&deck, "the end of it", || {
        count(&deck, "watchdog.log", &[&id, counts]) == 1
    });
    deck.sends_take(0);
    for _ in 0..3 {
        after(&deck, 150).silent();
    }
    assert_eq!((deck.sends().len(), ends(&deck).len()), (1, 1));
    assert_eq!(deck.typed(&id), typed("child one does not answer"));
    assert_eq!(count(&deck, "watchdog.log", &["asked to report"]), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn killed_at_every_write_point_it_tells_once() {
    let mut sent = 0;
    for n in 1.. {
        let deck = Deck::new();
        let id = parent(&deck);
        queue(&deck, &id, &[("died", "", "child one died")]);
        let got_there = killed::killed_at(&deck, n);
        // What a killed run began may still be under way, and hold its lock.
        common::wait_for("an end", || {
            let ran = once(&deck);
            if ran.code() == Some(4) {
                return None;
            }
            ran.silent();
            let running = &state(&deck)["state"]["profiles"][0]["running"];
            (waits(&deck) == 0 && running.is_null()).then_some(())
        });
        after(&deck, 400).silent();
        let times = deck.sends().len();
        assert!(times <= 1, "killed at {n}: told {times} times");
        assert!(
            count(&deck, "escalations.log", &["told", "child one died"]) >= 1,
            "{n}"
        );
        sent += times;
        if !got_there {
            assert!(n > 4 && sent > 0, "a pass has more than {n} changes");
            return;
        }
    }
}

#[test]
fn what_was_refused_is_tried_again_and_what_may_have_arrived_is_not() {
    for (answer, times, misfires) in [
        ("not-running", 2, 0),
        ("db-error", 2, 0),
        ("line_too_long", 2, 0),
        ("no_evidence", 1, 0),
        ("unverified", 1, 0),
        ("send_failed", 1, 0),
        ("typed_not_submitted", 1, 1),
    ] {
        let deck = Deck::new();
        let id = deck.conductor("ops").sends(&[answer, "submitted"]).add();
        queue(&deck, &id, &[("died", "", "child one died")]);
        until_told(&deck, &id, 1);
        once(&deck).silent();
        let over = times == 1;
        assert_eq!(ends(&deck).len(), usize::from(over), "{answer}");
        after(&deck, 290).silent();
        assert_eq!(deck.sends().len(), 1, "{answer}");
        pass(&deck, 11);
        until(&deck, "an end", || ends(&deck).len() == 1);
        after(&deck, 400).silent();
        assert_eq!(ends(&deck), [end("told", &id)], "{answer}");
        assert_eq!(deck.sends().len(), times, "{answer}");
        let loud = format!("nudge-went-wrong:{id}");
        assert_eq!(waiting::texts(&deck, &loud).len(), misfires, "{answer}");
    }
}

#[test]
fn a_hook_record_brings_the_list_and_the_line() {
    let deck = polled_every(300);
    let id = deck.conductor("ops").status("running").add();
    queue(&deck, &id, &[("died", "", "child one died")]);
    let mut daemon = watching(&deck);
    deck.set(&id, "substate", "idle-at-empty-prompt");
    deck.set(&id, "status", "waiting");
    deck.hook(&id, "Stop", "waiting", now());
    deck.wait_for_sends(&id, 1);
    assert_eq!(deck.wait_for_typed(&id), typed("child one died"));
    assert!(daemon.stop().success());
    assert_eq!(ends(&deck), [end("told", &id)]);
}

#[test]
fn a_pause_and_a_hold_keep_it_from_telling() {
    let deck = Deck::new();
    let id = parent(&deck);
    queue(&deck, &id, &[("died", "", "child one died")]);
    flag(&deck, "hold", &id);
    after(&deck, 400).silent();
    scene::no_flag(&deck, "hold", &id);
    write(&deck.watchdog_dir().join("pause"), "");
    after(&deck, 400).silent();
    assert_eq!((acts(&deck), waits(&deck)), (vec![], 1));
    std::fs::remove_file(deck.watchdog_dir().join("pause")).unwrap();
    until_told(&deck, &id, 1);
    assert_eq!(ends(&deck), [end("told", &id)]);
}

#[test]
fn a_dry_run_says_what_it_would_tell() {
    let deck = Deck::new();
    let id = parent(&deck);
    queue(&deck, &id, &[("died", "", "child one died")]);
    let before = deck.read("state.json");
    let dry = run(&deck, &["--once", "--dry-run"]);
    let line = format!("would be told: {MARK}child one died{END}");
    assert!(dry.out.contains(&line), "{}", dry.out);
    assert_eq!((deck.sends(), deck.read("state.json")), (vec![], before));
    assert_eq!(deck.read("escalations.log"), "");
}
