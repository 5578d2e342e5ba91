//! The last rung of the ladder on the real binary: who is stopped, who never is,
//! and that it happens once, whatever happens meanwhile (ladder T22 to T24, I5).
//! Does not know how a stop is done.
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

use common::screens::{dialog, free_composer};
use common::{Deck, wait_for};
use past::{once, pass, run};
use scene::{count, flag, no_flag, records};
use waiting::{DEDUP, THRESHOLD, after, all_told, child, remembered, texts, until, until_asked};

/// Both opt-ins.
fn opt_in(deck: &Deck, kid: &str) {
    deck.setting("WAITING_PATROL_TERMINATE", "1");
    flag(deck, "autostop", kid);
}

/// A child that was asked once in vain, as often as it may be here, and of which
/// somebody was told; an hour from now it may be stopped.
fn handed_over(deck: &Deck) -> String {
    deck.setting("WAITING_PATROL_MAX_NUDGES", "1");
    let ops = deck.conductor("ops").add();
    let kid = child(deck, "fix-the-tests", &ops).add();
    once(deck).silent();
    pass(deck, THRESHOLD);
    until_asked(deck, &kid, 1);
    deck.set(&kid, "pane", free_composer("● I do not know."));
    after(deck, 10).silent();
    pass(deck, DEDUP);
    until(deck, "a line", || !deck.sends_to(&ops).is_empty());
    let known = remembered(deck, &kid);
    assert_eq!(known["rung"], "handed-over");
    assert!(known["told"]["at"].is_u64(), "{known}");
    kid
}

/// One that is due.
fn due() -> (Deck, String) {
    let deck = Deck::new();
    let kid = handed_over(&deck);
    opt_in(&deck, &kid);
    pass(&deck, DEDUP);
    (deck, kid)
}

fn stops(deck: &Deck, kid: &str) -> usize {
    let ledger = deck.ledger();
    ledger
        .iter()
        .filter(|call| call.is("session stop", kid))
        .count()
}

/// Outcomes in `restart.log`.
fn outcomes(deck: &Deck, kid: &str) -> Vec<String> {
    let records = records(deck, "restart.log").into_iter();
    let stop = records.filter(|record| record["event"] == "stop" && record["session"] == *kid);
    stop.map(|record| {
        assert_eq!(record["action"], "stop");
        record["outcome"].as_str().unwrap().to_owned()
    })
    .collect()
}

fn rung(deck: &Deck, kid: &str) -> String {
    let rung = &remembered(deck, kid)["rung"];
    rung.as_str().unwrap_or_default().to_owned()
}

/// The command that is under way, as the state says.
#[cfg(target_os = "linux")]
fn running(deck: &Deck) -> serde_json::Value {
    let state: serde_json::Value =
        serde_json::from_str(&deck.read("state.json")).unwrap_or_default();
    state["state"]["profiles"][0]["running"].clone()
}

fn until_stopped(deck: &Deck, kid: &str) {
    until(deck, "a stop", || stops(deck, kid) > 0);
}

/// Hours in which nothing may happen.
fn hours_without(deck: &Deck, kid: &str, known: usize) {
    for _ in 0..4 {
        after(deck, DEDUP).silent();
    }
    assert_eq!(stops(deck, kid), known);
}

#[test]
fn it_is_stopped_once_and_all_are_told() {
    let (deck, kid) = due();
    let ops = remembered(&deck, &kid)["parent"]
        .as_str()
        .unwrap()
        .to_owned();
    until_stopped(&deck, &kid);
    assert_eq!(rung(&deck, &kid), "stopping");
    assert_eq!(outcomes(&deck, &kid), ["begun", "accepted"]);
    after(&deck, 400).silent();
    assert_eq!(rung(&deck, &kid), "stopped-by-us");
    assert_eq!(outcomes(&deck, &kid), ["begun", "accepted", "done"]);
    until(&deck, "a line", || deck.sends_to(&ops).len() == 2);
    let line = &deck.sends_to(&ops)[1].message;
    assert!(line.contains("was stopped by the watchdog"), "{line}");
    let said = texts(&deck, &format!("unanswered:{kid}"));
    let done: Vec<&String> = said
        .iter()
        .filter(|t| t.contains("stopped by the watchdog"))
        .collect();
    assert_eq!(done.len(), 1, "{said:?}");
    assert!(
        !said.iter().any(|text| text.contains("at work again")),
        "{said:?}"
    );
    for part in ["stop: begun", "stop: accepted", "stop: done"] {
        assert_eq!(count(&deck, "watchdog.log", &[&kid, part]), 1, "{part}");
    }
    hours_without(&deck, &kid, 1);
    assert!(!all_told(&deck).contains(&format!("died:{kid}")));
    assert_eq!(deck.sends_to(&ops).len(), 2);
}

#[test]
fn without_both_opt_ins_it_is_not_stopped() {
    for (terminate, flagged) in [(false, false), (true, false), (false, true)] {
        let deck = Deck::new();
        let kid = handed_over(&deck);
        if terminate {
            deck.setting("WAITING_PATROL_TERMINATE", "1");
        }
        if flagged {
            flag(&deck, "autostop", &kid);
            flag(&deck, "autostop", "not-an-id");
        }
        hours_without(&deck, &kid, 0);
        assert_eq!(rung(&deck, &kid), "handed-over");
    }
}

#[test]
fn not_before_an_hour_and_not_after_the_flag_is_gone() {
    let deck = Deck::new();
    let kid = handed_over(&deck);
    opt_in(&deck, &kid);
    after(&deck, 3000).silent();
    assert_eq!(stops(&deck, &kid), 0);
    no_flag(&deck, "autostop", &kid);
    hours_without(&deck, &kid, 0);
    flag(&deck, "", "pause");
    flag(&deck, "autostop", &kid);
    hours_without(&deck, &kid, 0);
}

/// What has happened to a child that is due.
type Change<'a> = &'a dyn Fn(&Deck, &str);

/// Somebody is at it, or it is not certain: it is left alone, as often as one
/// looks.
#[test]
fn who_may_not_be_typed_into_is_not_stopped() {
    let asks = |deck: &Deck, kid: &str| deck.set(kid, "pane", dialog());
    let runs = |deck: &Deck, kid: &str| deck.set(kid, "printed", "running");
    let moves = |deck: &Deck, kid: &str| {
        deck.set(kid, "screen-0", free_composer("● I do not know."));
        deck.set(kid, "screen-1", free_composer("● I do."));
        deck.set(kid, "panes", "screen-0\nscreen-1\n");
    };
    let held = |deck: &Deck, kid: &str| deck.set(kid, "substate", "usage-limit");
    let draft = |deck: &Deck, kid: &str| {
        let screen = free_composer("● I do not know.");
        deck.set(kid, "pane", screen.replacen("❯\u{a0}", "❯\u{a0}why not", 1));
    };
    let changes: [Change; 5] = [&draft, &asks, &runs, &moves, &held];
    for (which, change) in changes.into_iter().enumerate() {
        let (deck, kid) = due();
        change(&deck, &kid);
        for _ in 0..3 {
            after(&deck, 200).silent();
        }
        assert_eq!(stops(&deck, &kid), 0, "{which}");
        let known = remembered(&deck, &kid);
        assert_eq!(known["silent"].as_str().unwrap_or_default(), "", "{known}");
    }
}

#[test]
fn a_dry_run_says_what_it_would_do() {
    let (deck, kid) = due();
    wait_for("a look", || {
        let said = run(&deck, &["--once", "--dry-run"]).out;
        said.contains("would be stopped").then_some(())
    });
    assert_eq!((stops(&deck, &kid), outcomes(&deck, &kid).len()), (0, 0));
}

/// T24: refused, or still there: told once, and never tried again.
#[test]
fn one_that_does_not_stop_is_told_and_left_alone() {
    let refused = br#"{"success":false,"code":"INVALID_OPERATION","error":"no"}"#;
    for failing in [true, false] {
        let (deck, kid) = due();
        match failing {
            true => deck.trap("stop").stdout(refused).exit(1).set(),
            // Says that it did, and nothing has happened.
            false => {
                let said = format!(r#"{{"success":true,"id":"{kid}"}}"#);
                deck.trap("stop").stdout(said).set();
            }
        }
        until_stopped(&deck, &kid);
        after(&deck, 70).silent();
        let last = outcomes(&deck, &kid).pop();
        assert_eq!(last.as_deref(), Some("failed"));
        let known = remembered(&deck, &kid);
        assert_eq!(known["silent"], "could not be stopped");
        assert_eq!(known["rung"], "handed-over");
        hours_without(&deck, &kid, 1);
        let said = texts(&deck, &format!("unanswered:{kid}"));
        let failed = said
            .iter()
            .filter(|text| text.contains("could not be stopped"));
        assert_eq!(failed.count(), 1, "{said:?}");
    }
}

/// It outlives its deadline: it is neither ended nor doubled.
#[test]
fn a_run_that_dies_while_it_stops_counts_as_done() {
    let (deck, kid) = due();
    deck.trap("stop").with("act", "").hang().set();
    let mut daemon = deck.daemon();
    deck.wait_for_call(|call| call.is("session stop", &kid));
    daemon.crash();
    after(&deck, 10).silent();
    assert_eq!(stops(&deck, &kid), 1);
    // By now it may be stopped, or about to be.
    let known = remembered(&deck, &kid);
    assert!(
        known["silent"] != "" || known["rung"] == "stopped-by-us",
        "{known}"
    );
    hours_without(&deck, &kid, 1);
}

/// Killed at every point of a pass that stops: never a second stop, and somebody
/// hears what became of it.
#[cfg(target_os = "linux")]
#[test]
fn killed_at_every_write_point_it_stops_once() {
    for n in 1.. {
        let (deck, kid) = due();
        deck.trap("stop")
            .delay(std::time::Duration::from_millis(15))
            .set();
        let got_there = killed::killed_at(&deck, n);
        // What a killed run began may still be under way, and hold its lock.
        wait_for("an end", || {
            let ran = once(&deck);
            let over = ran.code() == Some(0) && running(&deck).is_null();
            over.then_some(())
        });
        for _ in 0..2 {
            after(&deck, 30).silent();
        }
        for _ in 0..3 {
            after(&deck, DEDUP).silent();
        }
        let told = texts(&deck, &format!("unanswered:{kid}"));
        let ends = |text: &&String| {
            text.contains("was stopped by the watchdog") || text.contains("could not be stopped")
        };
        assert_eq!(
            told.iter().filter(ends).count(),
            1,
            "killed at {n}: {told:?}"
        );
        assert!(stops(&deck, &kid) <= 1, "killed at {n}");
        if !got_there {
            assert!(n > 10, "a pass has more than {n} changes");
            return;
        }
    }
}
