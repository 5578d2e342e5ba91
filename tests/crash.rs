//! The watchdog is killed with -9, at every point of a pass and while a restart
//! runs: whoever comes next stays inside the guardrails, and goes on. The real
//! binary on the stand-in deck.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[cfg(target_os = "linux")]
#[path = "common/killed.rs"]
mod killed;
#[path = "common/past.rs"]
mod past;

use std::fs;
use std::time::{Duration, UNIX_EPOCH};

use common::{Deck, is_running, wait_for};
use past::{Story, count, once, pass, restarted};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Runs passes that are not killed until no command of a killed one is left.
fn settled(deck: &Deck) {
    wait_for("the end of what was begun", || {
        let ran = once(deck);
        // A program that was just being started may hold the lock of the killed
        // watchdog a moment longer.
        if ran.code() == Some(4) {
            return None;
        }
        ran.silent();
        intent(deck).is_null().then_some(())
    });
}

/// What the state says of a restart that runs.
fn intent(deck: &Deck) -> Value {
    let state: Value = serde_json::from_str(&deck.read("state.json")).unwrap_or_default();
    state["state"]["profiles"][0]["running"].clone()
}

#[cfg(target_os = "linux")]
mod points {
    use super::killed::killed_at;
    use super::*;

    /// Kills passes at every fourth point from `first` on, and at the next one,
    /// until a pass ends earlier.
    fn at_points(first: usize) {
        for n in (first..).step_by(4) {
            let deck = Deck::new();
            once(&deck).silent();
            let plan = "no-effect\nexit 1\nworks";
            for title in ["conductor-a", "conductor-b"] {
                deck.row(title).dead().file("after_restart", plan).add();
            }
            // Long enough to be killed in the middle of it.
            deck.trap("restart").delay(Duration::from_millis(15)).set();
            let got_there = killed_at(&deck, n);
            let what = format!("killed at {n}");
            let mut story = Story::of(&deck);
            for (seconds, again) in [(0, 0), (30, n / 2), (61, n + 1), (61, 0)] {
                story.pass(seconds);
                if again > 0 {
                    killed_at(&deck, again);
                }
                settled(&deck);
                story.inside_the_guardrails(&what);
            }
            // And then everybody is well again.
            wait_for("both", || {
                story.pass(61 * 20);
                settled(&deck);
                story.inside_the_guardrails(&what);
                let printed = deck.agent_deck(&["-p", "default", "list", "--json"]).stdout;
                (!String::from_utf8(printed).unwrap().contains("\"error\"")).then_some(())
            });
            if !got_there {
                assert!(n > 20, "a pass has more than {n} changes");
                return;
            }
        }
    }

    // Two of them, for two processors.
    #[test]
    fn killed_at_every_write_point() {
        at_points(1);
    }

    #[test]
    fn killed_at_every_other_write_point() {
        at_points(3);
    }
}

/// A deck with two dead conductors, the restart of the first of which takes
/// long, and a daemon that was killed meanwhile.
fn killed_in_a_restart(deck: &Deck, span: Duration) -> (String, String) {
    deck.setting("SAFETY_POLL_S", "1");
    deck.setting("MIN_GLOBAL_RESTART_INTERVAL_S", "1");
    let slow = deck.row("conductor-slow").dead().add();
    let mut daemon = deck.daemon();
    deck.trap_for("restart", &slow).delay(span).set();
    deck.wait_for_call(|call| call.is("session restart", &slow));
    let next = deck.row("conductor-next").dead().add();
    daemon.crash();
    (slow, next)
}

/// Unix milliseconds at which the restart of a session ended.
fn end_of_restart(deck: &Deck, id: &str) -> Option<u64> {
    let ended = deck.ended().into_iter();
    ended
        .filter(|(call, _, _)| call.is("session restart", id))
        .map(|(_, _, at)| at)
        .next()
}

#[test]
fn the_next_daemon_waits_for_a_restart_that_was_left_behind() {
    let deck = Deck::new();
    let (slow, next) = killed_in_a_restart(&deck, Duration::from_secs(3));
    let mut daemon = deck.daemon();
    refused_meanwhile(&deck, &next);
    assert_eq!(once(&deck).code(), Some(4));
    assert_eq!(end_of_restart(&deck, &slow), None, "it is not cut short");
    daemon.wait_for_line(
        "restart.log",
        "the command ended while nobody waited for its answer",
    );
    let begin = deck
        .wait_for_call(|call| call.is("session restart", &next))
        .at;
    assert!(begin >= end_of_restart(&deck, &slow).unwrap());
    daemon.wait_for_line("restart.log", "agent-deck accepted it");
    assert!(daemon.stop().success());
    assert_eq!(restarted(&deck), [slow, next]);
}

/// Waits until the second session's refusal is written down.
fn refused_meanwhile(deck: &Deck, next: &str) {
    deck.wait("the refusal", || {
        let log = deck.read("restart.log");
        let lines = log
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut refusals =
            lines.filter(|line| line["event"] == "refusal" && line["session"] == next);
        refusals.find(|line| line["rule"] == "busy" || line["rule"] == "other-command")
    });
}

#[test]
fn cron_runs_wait_for_a_restart_that_was_left_behind() {
    let deck = Deck::new();
    let (slow, next) = killed_in_a_restart(&deck, Duration::from_secs(2));
    let mut runs = 0;
    deck.wait("the next restart", || {
        once(&deck).silent();
        runs += 1;
        (restarted(&deck).len() == 2).then_some(())
    });
    assert!(runs > 2, "{runs}");
    refused_meanwhile(&deck, &next);
    let begin = deck
        .wait_for_call(|call| call.is("session restart", &next))
        .at;
    assert!(begin >= end_of_restart(&deck, &slow).unwrap());
    assert_eq!(restarted(&deck), [slow, next]);
    assert_eq!(
        count(&deck, "restart.log", "nobody waited for its answer"),
        1
    );
}

#[test]
fn killed_between_intent_and_result() {
    // Killed with its command, as by a machine that stops.
    let deck = Deck::new();
    let id = deck.row("conductor-ops").dead().add();
    deck.trap("restart").hang().times(1).set();
    let mut run = deck.daemon_with(&["--once"]);
    let pid = deck.wait("the saved process", || {
        intent(&deck)["process"]["pid"].as_i64()
    });
    deck.wait_for_call(|call| call.is("session restart", &id));
    deck.wait("the trap to be taken", || {
        (!deck.file("traps/restart").exists()).then_some(())
    });
    run.crash();
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    wait_for("its end", || {
        (!is_running(pid.as_raw_nonzero().get().cast_unsigned())).then_some(())
    });
    slot_stays_used(&deck, &id);
}

#[test]
fn killed_before_the_command_began() {
    let deck = Deck::new();
    let id = deck
        .row("conductor-ops")
        .dead()
        .file("after_restart", "no-effect\nworks")
        .add();
    once(&deck).silent();
    let path = deck.watchdog_dir().join("state.json");
    let mut state: Value = serde_json::from_str(&deck.read("state.json")).unwrap();
    let profile = &mut state["state"]["profiles"][0];
    assert_eq!(profile["running"], Value::Null);
    let since = state["state"]["last_restart"].clone();
    state["state"]["profiles"][0]["running"] =
        json!({"id": id, "since": since, "process": null, "reported": false});
    common::write(&path, state.to_string());
    slot_stays_used(&deck, &id);
}

/// One restart was begun and nobody knows how it ended: it counts.
fn slot_stays_used(deck: &Deck, id: &str) {
    for _ in 0..3 {
        once(deck).silent();
    }
    assert_eq!(restarted(deck), [id]);
    assert_eq!(intent(deck), Value::Null);
    assert_eq!(
        count(deck, "restart.log", "nobody waited for its answer"),
        1
    );
    pass(deck, 45);
    once(deck).silent();
    assert_eq!(restarted(deck), [id]);
    pass(deck, 25);
    once(deck).silent();
    assert_eq!(restarted(deck), [id, id]);
}

#[test]
fn a_daemon_that_is_killed_again_and_again() {
    let deck = Deck::new();
    deck.setting("SAFETY_POLL_S", "1");
    once(&deck).silent();
    let id = deck
        .row("conductor-ops")
        .dead()
        .file("after_restart", "no-effect")
        .add();
    let mut story = Story::of(&deck);
    // Each one gets beyond a list; 31 s lie between them.
    for _ in 0..12 {
        let lists = || {
            let calls = deck.ended().into_iter();
            calls.filter(|(call, _, _)| call.args.contains("default list"))
        };
        let before = lists().count();
        let mut daemon = deck.daemon();
        deck.wait("a decision", || {
            let (_, _, listed) = lists().nth(before)?;
            let saved = fs::metadata(deck.watchdog_dir().join("state.json")).ok()?;
            let saved = saved
                .modified()
                .unwrap()
                .duration_since(UNIX_EPOCH)
                .unwrap();
            (saved.as_millis() >= listed.into()).then_some(())
        });
        daemon.crash();
        settled(&deck);
        story.pass(31);
        story.inside_the_guardrails("killed every 31 s");
    }
    // Some were killed before their restart began, and it counts all the same;
    // but in the end it is served.
    assert!(story.restarts.len() <= 4, "{:?}", story.restarts);
    let before = story.restarts.len();
    story.pass(3600);
    settled(&deck);
    story.inside_the_guardrails("an hour later");
    assert_eq!(story.restarts.len(), before + 1);
    assert!(story.restarts.iter().all(|(_, of)| *of == id));
}
