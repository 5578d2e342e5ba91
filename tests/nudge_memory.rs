//! What is remembered of messages and of who waits: when the watchdog or the
//! machine is gone for a while, when it is killed, when its memory is lost. And
//! what else goes on while a message is under way. The real binary on the
//! stand-in deck; the whole ledger is compared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/past.rs"]
mod past;
mod scene;
#[path = "scene/waiting.rs"]
mod waiting;

use std::fs;
use std::time::{Duration, SystemTime};

use common::{Deck, is_running, now};
use past::{once, pass, restarted};
use rustix::process::Signal;
use scene::{POLL, acts, count, flag, impatient, pane, polled_every, revival, watching};
use waiting::{
    DEDUP, THRESHOLD, TYPED, after, child, parent, question, remembered, send, ten_minutes_on,
    told, until, until_asked,
};

/// Lets the machine sleep, or the watchdog be down, for so many seconds: its
/// last turn is as old as that.
fn sleep(deck: &Deck, seconds: u64) {
    pass(deck, seconds);
    let state = deck.watchdog_dir().join("state.json");
    let then = SystemTime::now() - Duration::from_secs(seconds);
    let state = fs::File::options().write(true).open(state).unwrap();
    state.set_modified(then).unwrap();
}

#[test]
fn suspend_is_not_waiting() {
    let deck = Deck::new();
    let id = child(&deck, "sleeper", &parent(&deck)).add();
    once(&deck).silent();
    for _ in 0..5 {
        sleep(&deck, 60);
        once(&deck).silent();
    }
    sleep(&deck, 8 * 3600);
    once(&deck).silent();
    sleep(&deck, 60);
    once(&deck).silent();
    // It has waited six minutes.
    assert_eq!(deck.sends(), []);
    for _ in 0..3 {
        sleep(&deck, 60);
        once(&deck).silent();
    }
    assert_eq!(acts(&deck), [pane(&id)]);
    sleep(&deck, 62);
    until_asked(&deck, &id, 1);
    assert_eq!(acts(&deck), question(&id));
}

#[test]
fn after_a_gap_nobody_is_asked_for_a_minute() {
    let deck = Deck::new();
    let id = child(&deck, "sleeper", &parent(&deck)).add();
    once(&deck).silent();
    for _ in 0..10 {
        sleep(&deck, 59);
        once(&deck).silent();
    }
    sleep(&deck, 8 * 3600);
    once(&deck).silent();
    sleep(&deck, 30);
    once(&deck).silent();
    // Ten minutes are over, the minute after waking is not.
    assert_eq!(acts(&deck), [pane(&id)]);
    sleep(&deck, 31);
    until_asked(&deck, &id, 1);
}

#[test]
fn cron_every_five_minutes_is_no_gap() {
    let deck = Deck::new();
    let id = child(&deck, "slow", &parent(&deck)).add();
    for _ in 0..4 {
        once(&deck).silent();
        sleep(&deck, 300);
    }
    once(&deck).silent();
    sleep(&deck, 301);
    until_asked(&deck, &id, 1);
    assert_eq!(deck.typed(&id), TYPED);
}

/// A daemon that is killed while a message is on its way.
fn killed_in_a_send(deck: &Deck, id: &str) {
    let mut daemon = watching(deck);
    deck.wait_for_sends(id, 1);
    daemon.crash();
}

#[test]
fn killed_between_intent_and_result() {
    let deck = impatient();
    let parent = parent(&deck);
    let id = child(&deck, "first", &parent).add();
    ten_minutes_on(&deck);
    deck.sends_take(3000);
    killed_in_a_send(&deck, &id);
    let other = child(&deck, "second", &parent).add();
    // The command lives on, and nobody else is written to meanwhile.
    once(&deck).silent();
    assert_eq!(deck.sends().len(), 1);
    deck.wait_for_typed(&id);
    let counts = "nobody waited for the answer, it counts";
    until(&deck, "the end of it", || {
        count(&deck, "watchdog.log", &[counts]) == 1
    });
    // The nudge counts as given.
    assert_eq!(remembered(&deck, &id)["nudges"], 1);
    pass(&deck, THRESHOLD);
    deck.sends_take(0);
    until_asked(&deck, &other, 1);
    after(&deck, 2900).silent();
    assert_eq!(deck.sends_to(&id).len(), 1);
    assert_eq!(deck.typed(&id), TYPED);
    pass(&deck, 101);
    until_asked(&deck, &id, 2);
    assert_eq!(told(&deck), [""; 0]);
}

#[test]
fn a_signal_waits_for_the_message() {
    let deck = impatient();
    let id = child(&deck, "first", &parent(&deck)).add();
    ten_minutes_on(&deck);
    deck.sends_take(2000);
    let mut daemon = watching(&deck);
    deck.wait_for_sends(&id, 1);
    daemon.signal(Signal::TERM);
    assert!(daemon.wait().success());
    assert_eq!(
        (deck.typed(&id), acts(&deck)),
        (TYPED.to_owned(), question(&id))
    );
    assert_eq!(count(&deck, "watchdog.log", &[&id, "(nudge 1 of 3)"]), 1);
    deck.sends_take(0);
    after(&deck, 900).silent();
    assert_eq!(deck.sends().len(), 1);
}

#[test]
fn a_restart_comes_right_after_a_slow_message() {
    let deck = polled_every(300);
    let conductor = parent(&deck);
    let ids: Vec<String> = (0..6)
        .map(|n| child(&deck, &format!("child-{n}"), &conductor).add())
        .collect();
    ten_minutes_on(&deck);
    deck.sends_take(3000);
    let daemon = watching(&deck);
    let first = deck.wait_for_call(|call| call.args.contains(" session send "));
    deck.unset(&conductor, "pane");
    deck.hook(&conductor, "SessionEnd", "dead", now());
    deck.wait_for_call(|call| call.is("session restart", &conductor));
    let calls: Vec<String> = deck.ledger().into_iter().map(|call| call.args).collect();
    let sent = calls.iter().position(|args| *args == first.args).unwrap();
    let restart = calls
        .iter()
        .position(|args| args.contains(" session restart "));
    // Nobody's screen is read and nobody is asked in between.
    let between: Vec<&String> = calls[sent + 1..restart.unwrap()]
        .iter()
        .filter(|args| *args != POLL)
        .collect();
    assert_eq!(between, revival(&conductor)[..2].iter().collect::<Vec<_>>());
    let ended = deck.ended();
    let end = ended
        .iter()
        .find(|(call, _, _)| call.args == first.args)
        .unwrap();
    assert_eq!(end.1, 0, "it was not cut short");
    drop(daemon);
    assert_eq!(restarted(&deck), [conductor]);
    assert!(ids.iter().any(|id| deck.typed(id) == TYPED));
}

#[test]
fn a_lost_memory_counts_everybody_as_asked() {
    for (what, keep_log) in [("removed", true), ("broken", false)] {
        let deck = Deck::new();
        let id = child(&deck, "first", &parent(&deck)).add();
        ten_minutes_on(&deck);
        until_asked(&deck, &id, 1);
        let state = deck.watchdog_dir().join("state.json");
        if keep_log {
            // Only a line of the log says that this folder was used.
            fs::remove_file(&state).unwrap();
            assert!(!deck.watchdog_dir().join("restart.log").exists());
        } else {
            fs::write(&state, "{").unwrap();
            fs::remove_file(deck.watchdog_dir().join("watchdog.log")).unwrap();
        }
        once(&deck).silent();
        assert_eq!(told(&deck), ["state-lost:state"], "{what}");
        for _ in 0..4 {
            after(&deck, 880).silent();
        }
        assert_eq!(deck.sends().len(), 1, "{what}");
        pass(&deck, DEDUP - 4 * 880);
        until_asked(&deck, &id, 2);
        assert_eq!(
            count(&deck, "watchdog.log", &["begins as spent"]),
            1,
            "{what}"
        );
    }
}

#[test]
fn a_folder_that_was_never_used_begins_fresh() {
    let deck = Deck::new();
    let id = child(&deck, "first", &parent(&deck)).add();
    once(&deck).silent();
    fs::remove_file(deck.watchdog_dir().join("state.json")).unwrap();
    ten_minutes_on(&deck);
    until_asked(&deck, &id, 1);
    assert_eq!(told(&deck), [""; 0]);
}

#[test]
fn a_message_that_hangs_is_not_ended_and_nothing_else_begins() {
    let deck = impatient();
    deck.patrol_after(1, 3600);
    let conductor = parent(&deck);
    let id = child(&deck, "first", &conductor).add();
    flag(&deck, "hold", &conductor);
    deck.trap("send").hang().set();
    let mut daemon = watching(&deck);
    let call = deck.wait_for_sends(&id, 1);
    let running = deck.wait("its mark", || sending(&deck));
    daemon.crash();
    // Whoever comes next finds it under way.
    child(&deck, "second", &conductor).add();
    for _ in 0..3 {
        after(&deck, 20).silent();
    }
    assert_eq!(deck.sends(), call);
    // Late: told, and left alone.
    after(&deck, 20).silent();
    assert_eq!(told(&deck), [format!("restart-hangs:{id}")]);
    let line = "still runs after";
    assert_eq!(count(&deck, "watchdog.log", &["message to", line]), 1);
    assert_eq!(sending(&deck), Some(running));
    assert!(is_running(running), "it is not ended");
    assert_eq!(deck.sends(), call);
}

/// Process number of the message that the state says is under way.
fn sending(deck: &Deck) -> Option<u32> {
    let state: serde_json::Value = serde_json::from_str(&deck.read("state.json")).ok()?;
    let process = &state["state"]["profiles"][0]["running"]["process"];
    u32::try_from(process["pid"].as_u64()?).ok()
}

#[test]
fn who_has_left_is_forgotten_after_a_day() {
    let deck = Deck::new();
    let id = child(&deck, "first", &parent(&deck)).add();
    ten_minutes_on(&deck);
    until_asked(&deck, &id, 1);
    deck.remove_row(&id);
    for _ in 0..3 {
        after(&deck, 3600).silent();
    }
    assert_eq!(remembered(&deck, &id)["id"], id.as_str());
    for _ in 0..2 {
        after(&deck, 12 * 3600).silent();
    }
    assert_eq!(remembered(&deck, &id)["id"], serde_json::Value::Null);
    let message = send(&id);
    assert_eq!(acts(&deck).iter().filter(|act| **act == message).count(), 1);
}
