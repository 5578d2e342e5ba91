//! Scenarios of waiting children: who is asked, when, and how often. The real
//! binary on the stand-in deck; the whole ledger is compared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/past.rs"]
mod past;
mod scene;
#[path = "scene/waiting.rs"]
mod waiting;

use common::{Deck, free_composer, now, screens};
use past::{once, pass};
use scene::{POLL, acts, count, flag, impatient, no_flag, pane, polls, turns, watching};
use waiting::{
    DEDUP, THRESHOLD, TYPED, after, child, parent, question, remembered, send, ten_minutes_on,
    texts, told, until, until_asked,
};

/// A conductor and a child of it that waits, read once.
fn one_child(deck: &Deck) -> String {
    let id = child(deck, "fix-the-tests", &parent(deck)).add();
    once(deck).silent();
    assert_eq!(acts(deck), [pane(&id)]);
    id
}

#[test]
fn nudge_after_600s() {
    let deck = Deck::new();
    let id = one_child(&deck);
    after(&deck, 500).silent();
    assert_eq!(acts(&deck), [pane(&id)]);
    pass(&deck, 101);
    until_asked(&deck, &id, 1);
    assert_eq!(acts(&deck), question(&id));
    assert_eq!(deck.typed(&id), TYPED);
    let sent = &deck.sends()[0];
    assert_eq!((sent.id.as_str(), sent.profile.as_str()), (&*id, "default"));
    assert_eq!(sent.message, "report status?");
    assert_eq!(sent.flags, ["--no-wait", "--json"]);
    let line = deck.read("watchdog.log");
    assert_eq!(
        count(&deck, "watchdog.log", &[&id, "(nudge 1 of 3)"]),
        1,
        "{line}"
    );
    // It is looked at afterwards, and that is all.
    after(&deck, 60).silent();
    assert_eq!(acts(&deck), [question(&id), vec![pane(&id)]].concat());
    assert_eq!(
        (deck.read("restart.log"), told(&deck).len()),
        ("".to_owned(), 0)
    );
}

#[test]
fn a_daemon_asks_in_the_first_turn_after_the_threshold() {
    let deck = impatient();
    deck.patrol_after(2, 3600);
    let id = child(&deck, "fix-the-tests", &parent(&deck)).add();
    let mut daemon = watching(&deck);
    assert_eq!(deck.wait_for_typed(&id), TYPED);
    turns(&deck, &daemon, 3);
    assert!(daemon.stop().success());
    let calls = deck.ledger();
    let at = |args: &str| calls.iter().find(|call| call.args == args).unwrap().at;
    assert!(at(&send(&id)) - at(&pane(&id)) > 2000, "{calls:#?}");
    let acts = acts(&deck);
    assert_eq!(acts[..4], question(&id));
    assert_eq!(acts[4..].iter().filter(|act| **act != pane(&id)).count(), 0);
    assert_eq!(daemon.said(), (String::new(), String::new()));
}

#[test]
fn nudge_dedup_3600s() {
    let deck = Deck::new();
    let id = one_child(&deck);
    pass(&deck, THRESHOLD);
    until_asked(&deck, &id, 1);
    after(&deck, 3000).silent();
    // Also when a daemon takes over, and leaves.
    let mut daemon = watching(&deck);
    turns(&deck, &daemon, 2);
    assert!(daemon.stop().success());
    assert_eq!(deck.sends().len(), 1);
    pass(&deck, DEDUP - 3000);
    until_asked(&deck, &id, 2);
    let mut again = question(&id);
    again.retain(|act| act.contains("send"));
    let sends: Vec<String> = acts(&deck)
        .into_iter()
        .filter(|act| act.contains("send"))
        .collect();
    assert_eq!(sends, [again.clone(), again].concat());
    assert_eq!(deck.typed(&id), TYPED.repeat(2));
    assert_eq!(told(&deck), [""; 0]);
}

#[test]
fn own_echo_does_not_count() {
    let deck = Deck::new();
    let id = one_child(&deck);
    // Eight hours: nothing on its screen changes but the messages themselves.
    pass(&deck, THRESHOLD);
    for hour in 1..=8 {
        until_asked(&deck, &id, hour.min(3));
        for _ in 0..2 {
            after(&deck, 1500).silent();
            assert_eq!(deck.sends().len(), hour.min(3));
        }
        pass(&deck, DEDUP - 3000);
    }
    assert_eq!(deck.typed(&id), TYPED.repeat(3));
    let unanswered = texts(&deck, &format!("unanswered:{id}"));
    assert!(unanswered[0].contains("asked 3 times"), "{unanswered:?}");
    let reminders = unanswered[1..].iter();
    assert!(reminders.clone().all(|text| text.starts_with("still, ")));
    assert!(reminders.len() <= 1, "{unanswered:?}");
}

#[test]
fn answered_nudges_stay_bounded() {
    let deck = Deck::new();
    let id = one_child(&deck);
    pass(&deck, THRESHOLD);
    for hour in 1..=6 {
        let answer = format!("● Still at it, hour {hour}.");
        deck.set(&id, "after_send", free_composer(&answer));
        until_asked(&deck, &id, hour.min(3));
        // The answer is a new screen; it stands for the rest of the hour.
        once(&deck).silent();
        pass(&deck, DEDUP);
    }
    for _ in 0..3 {
        after(&deck, 6 * 3600).silent();
    }
    assert_eq!(deck.sends().len(), 3);
    let unanswered = texts(&deck, &format!("unanswered:{id}"));
    let first = |text: &&String| !text.starts_with("still, ");
    assert_eq!(unanswered.iter().filter(first).count(), 1, "{unanswered:?}");
}

#[test]
fn pane_change_restarts_the_clock() {
    let deck = Deck::new();
    let id = one_child(&deck);
    pass(&deck, 590);
    deck.set(&id, "pane", free_composer("● Something new."));
    once(&deck).silent();
    after(&deck, 500).silent();
    assert_eq!(acts(&deck), [pane(&id)]);
    pass(&deck, 101);
    until_asked(&deck, &id, 1);
    assert_eq!(acts(&deck), question(&id));
    assert_eq!(deck.typed(&id), TYPED);
}

#[test]
fn status_change_evicts() {
    let deck = Deck::new();
    let id = one_child(&deck);
    let runs = |seconds| {
        deck.set(&id, "status", "running");
        once(&deck).silent();
        after(&deck, seconds).silent();
        deck.set(&id, "status", "waiting");
        once(&deck).silent();
    };
    pass(&deck, 550);
    runs(10);
    after(&deck, 500).silent();
    assert_eq!(acts(&deck), [pane(&id)]);
    pass(&deck, 101);
    until_asked(&deck, &id, 1);
    // It was asked, and that blocks the rest of the hour, whatever it does.
    runs(400);
    after(&deck, 2000).silent();
    assert_eq!(deck.sends().len(), 1);
    pass(&deck, DEDUP - 2000);
    until_asked(&deck, &id, 2);
    assert_eq!(remembered(&deck, &id)["nudges"], 1, "a new episode");
}

#[test]
fn no_parent_no_nudge() {
    let deck = Deck::new();
    deck.row("alone").add();
    for _ in 0..4 {
        once(&deck).silent();
        pass(&deck, 6 * 3600);
    }
    // Not even its screen is read.
    assert_eq!(acts(&deck), [""; 0]);
    assert_eq!(
        (deck.read("watchdog.log"), told(&deck).len()),
        ("".to_owned(), 0)
    );
}

#[test]
fn conductor_like_sessions_exempt() {
    let deck = Deck::new();
    let parent = parent(&deck);
    deck.conductor("b").child_of(&parent).add();
    deck.row("conductor-c").child_of(&parent).add();
    child(&deck, "plain", &parent)
        .group("conductor/night")
        .add();
    child(&deck, "watcher", &parent).group("watchers").add();
    // Nor are those who are no agents, or gone.
    child(&deck, "shell", &parent)
        .tool("shell")
        .file("command", "bash")
        .add();
    child(&deck, "archived", &parent)
        .file("archived", "2026-11-30T16:53:20Z")
        .add();
    for _ in 0..4 {
        once(&deck).silent();
        pass(&deck, 6 * 3600);
    }
    assert_eq!(acts(&deck), [""; 0]);
    assert_eq!(told(&deck), [""; 0]);
}

#[test]
fn running_outranks_the_screen() {
    let deck = Deck::new();
    let parent = parent(&deck);
    let screen = free_composer("⠿ Pondering wholly new words");
    let id = child(&deck, "busy", &parent)
        .status("running")
        .pane(screen)
        .add();
    for status in ["running", "idle", "stopped", "unknown", "paused"] {
        deck.set(&id, "printed", status);
        once(&deck).silent();
        after(&deck, 660).silent();
    }
    assert_eq!(acts(&deck), [""; 0]);
}

#[test]
fn long_run_is_left_alone() {
    let deck = Deck::new();
    child(&deck, "long", &parent(&deck)).status("running").add();
    for _ in 0..5 {
        once(&deck).silent();
        pass(&deck, 600);
    }
    assert_eq!(acts(&deck), [""; 0]);
    assert_eq!(
        (deck.read("watchdog.log"), told(&deck).len()),
        ("".to_owned(), 0)
    );
}

#[test]
fn somebody_else_just_typed() {
    let deck = Deck::new();
    let id = one_child(&deck);
    pass(&deck, 540);
    deck.hook(&id, "UserPromptSubmit", "waiting", now());
    once(&deck).silent();
    deck.hook(&id, "UserPromptSubmit", "waiting", now() - 500);
    after(&deck, 500).silent();
    assert_eq!(acts(&deck), [pane(&id)]);
    deck.hook(&id, "UserPromptSubmit", "waiting", now() - 601);
    pass(&deck, 101);
    until_asked(&deck, &id, 1);
    assert_eq!(acts(&deck), question(&id));
}

#[test]
fn eight_at_once() {
    let deck = Deck::new();
    let parent = parent(&deck);
    let title = |n| format!("child-{n}");
    let ids: Vec<String> = (0..8)
        .map(|n| child(&deck, &title(n), &parent).add())
        .collect();
    ten_minutes_on(&deck);
    until(&deck, "eight messages", || deck.sends().len() == 8);
    let mut turn = 0;
    for call in deck.ledger() {
        turn += usize::from(call.args.contains(" session send "));
        assert!(turn <= 2, "more than two in a turn");
        if call.args == POLL {
            turn = 0;
        }
    }
    once(&deck).silent();
    for id in &ids {
        assert_eq!(deck.typed(id), TYPED);
        let mut own = acts(&deck);
        own.retain(|act| act.contains(id.as_str()) && act.contains(" send "));
        assert_eq!(own, [send(id)]);
    }
    assert_eq!(
        polls(&deck),
        deck.ledger().iter().filter(|c| c.args == POLL).count()
    );
}

#[test]
fn a_hold_and_a_pause_keep_it_from_asking() {
    let deck = Deck::new();
    let parent = parent(&deck);
    let held = child(&deck, "held", &parent).add();
    let other = child(&deck, "other", &parent).add();
    flag(&deck, "hold", &held);
    ten_minutes_on(&deck);
    common::write(&deck.watchdog_dir().join("pause"), "");
    once(&deck).silent();
    assert_eq!(deck.sends(), []);
    std::fs::remove_file(deck.watchdog_dir().join("pause")).unwrap();
    until_asked(&deck, &other, 1);
    after(&deck, DEDUP).silent();
    assert_eq!(
        (deck.sends_to(&held), deck.typed(&held)),
        (vec![], "".to_owned())
    );
    let words = [&held, "not asked to report", "hold"];
    assert_eq!(count(&deck, "watchdog.log", &words.map(|word| word)), 1);
    no_flag(&deck, "hold", &held);
    until_asked(&deck, &held, 1);
    assert_eq!(deck.typed(&held), TYPED);
}

#[test]
fn other_tools_are_asked_when_nothing_is_asked_of_them() {
    let deck = Deck::new();
    let parent = parent(&deck);
    let with = |tool: &str, screen: &str| {
        child(&deck, tool, &parent)
            .tool(tool)
            .waiting_on(screen)
            .add()
    };
    let free = with("gemini", "I have written the tests.\n\n> \n");
    let menu = with("codex", "Allow this command?\n\n> 1. Yes\n  2. No\n");
    let ended = child(&deck, "ended", &parent)
        .tool("shell")
        .file("command", "opencode")
        .add();
    let odd = child(&deck, "odd", &parent).pane(screens::plain()).add();
    ten_minutes_on(&deck);
    until_asked(&deck, &free, 1);
    for _ in 0..3 {
        after(&deck, 60).silent();
    }
    assert_eq!(deck.typed(&free), TYPED);
    assert_eq!(deck.sends().len(), 1);
    for id in [&menu, &ended, &odd] {
        assert_eq!(deck.typed(id), "");
        assert!(
            told(&deck)
                .iter()
                .any(|episode| episode.ends_with(id.as_str()))
        );
    }
}
