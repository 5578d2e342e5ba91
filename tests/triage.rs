//! Rung 2 of the ladder on the real binary: the user's own program, its three
//! words, and what it may never do (scenarios, section 9). Does not know how the
//! program is run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/past.rs"]
mod past;
mod scene;
#[path = "scene/waiting.rs"]
mod waiting;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use common::screens::{dialog, free_composer};
use common::{Deck, wait_for, write};
use past::{once, pass, run};
use scene::{count, flag};
use waiting::{DEDUP, THRESHOLD, after, child, remembered, told, until, until_asked};

/// A triage program, and the setting that names it. It writes down about whom it
/// was asked.
fn program(deck: &Deck, script: &str) -> PathBuf {
    let path = deck.home().join("my triage");
    let ledger = deck.root().join("triaged");
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = probe ]; then exit 0; fi\n\
         echo \"$AGENT_DECK_TRIAGE_ID\" >> '{}'\n{script}\n",
        ledger.display()
    );
    write(&path, text);
    fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
    // While another test's child still has our file open, it is not run.
    wait_for("the program", || {
        Command::new(&path).arg("probe").status().ok()
    });
    deck.setting("TRIAGE_CMD", path.to_str().unwrap());
    path
}

/// About whom it was asked so far.
fn asked(deck: &Deck) -> Vec<String> {
    let ledger = fs::read_to_string(deck.root().join("triaged"));
    ledger
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// A conductor that is well.
fn conductor(deck: &Deck) -> String {
    deck.conductor("ops").add()
}

/// Three questions an hour apart, each answered with other words, and another
/// hour: rung 1 is over.
fn three_in_vain(deck: &Deck, kids: &[&String]) {
    once(deck).silent();
    for nudge in 1..=3 {
        let wait = if nudge == 1 { THRESHOLD } else { DEDUP };
        pass(deck, wait);
        for kid in kids {
            until_asked(deck, kid, nudge);
        }
        for kid in kids {
            deck.set(kid, "pane", free_composer(&format!("● Answer {nudge}.")));
        }
        after(deck, 10).silent();
    }
    pass(deck, DEDUP);
}

/// One child beyond nudging.
fn stuck(script: &str) -> (Deck, String, String) {
    let deck = Deck::new();
    program(&deck, script);
    let ops = conductor(&deck);
    let kid = child(&deck, "fix-the-tests", &ops).add();
    three_in_vain(&deck, &[&kid]);
    (deck, ops, kid)
}

fn says(deck: &Deck, words: &str) -> usize {
    count(deck, "watchdog.log", &[words])
}

#[test]
fn triage_off_by_default() {
    let deck = Deck::new();
    deck.install_escalate();
    let ops = conductor(&deck);
    let kid = child(&deck, "fix-the-tests", &ops).add();
    let other = child(&deck, "asks", &ops).pane(dialog()).add();
    three_in_vain(&deck, &[&kid]);
    for _ in 0..6 {
        after(&deck, 2 * DEDUP).silent();
    }
    deck.unset(&other, "pane");
    after(&deck, DEDUP).silent();
    assert_eq!(remembered(&deck, &kid)["rung"], "handed-over");
    for call in deck.ledger() {
        let known = ["agent-deck", "ps", "escalate.sh"];
        assert!(known.contains(&call.program.as_str()), "{call:?}");
    }
    assert_eq!(says(&deck, "triage"), 0);
}

/// It reads the screen as plain text, and more time means silence for an hour;
/// when three of them are used up, the conductor hears of it.
#[test]
fn more_time_is_silence_and_is_used_up() {
    let (deck, ops, kid) = stuck("cat > \"$HOME/read\"; env > \"$HOME/env\"; echo Extend");
    deck.setting("TELEGRAM_BOT_TOKEN", "123456:secret");
    for call in 1..=3 {
        once(&deck).silent();
        assert_eq!(asked(&deck), vec![kid.clone(); call]);
        let child = remembered(&deck, &kid);
        assert_eq!(
            (child["rung"].as_str(), child["extends"].as_u64()),
            (Some("triage"), Some(call as u64))
        );
        after(&deck, 600).silent();
        assert_eq!(asked(&deck).len(), call, "the dwell");
        pass(&deck, DEDUP);
    }
    let read = fs::read_to_string(deck.home().join("read")).unwrap();
    assert!(
        read.contains("● Answer 3.") && !read.contains('\u{1b}'),
        "{read}"
    );
    let env = fs::read_to_string(deck.home().join("env")).unwrap();
    assert!(env.contains("AGENT_DECK_TRIAGE_NUDGES=3"), "{env}");
    assert!(
        env.contains("AGENT_DECK_TRIAGE_TITLE=fix-the-tests"),
        "{env}"
    );
    assert!(!env.contains("secret"), "{env}");
    assert_eq!(says(&deck, "triage says extend after"), 3);
    assert_eq!(says(&deck, "fallback: no"), 3);
    assert_eq!(deck.sends_to(&ops).len(), 0);
    once(&deck).silent();
    assert_eq!(asked(&deck).len(), 3);
    assert_eq!(remembered(&deck, &kid)["rung"], "handed-over");
    until(&deck, "a line", || !deck.sends_to(&ops).is_empty());
    assert_eq!(deck.sends_to(&kid).len(), 3);
}

/// T12: once more, and only once in an episode.
#[test]
fn retry_is_one_question_more() {
    let (deck, _, kid) = stuck("echo retry");
    once(&deck).silent();
    assert_eq!(asked(&deck).len(), 1);
    let child = remembered(&deck, &kid);
    assert_eq!(
        (&child["retried"], &child["extends"]),
        (&true.into(), &0.into())
    );
    until_asked(&deck, &kid, 4);
    deck.set(&kid, "pane", free_composer("● Answer 4."));
    after(&deck, 10).silent();
    assert_eq!(remembered(&deck, &kid)["retry_due"], false);
    for call in 2..=4 {
        after(&deck, DEDUP).silent();
        assert_eq!(asked(&deck).len(), call);
        assert_eq!(remembered(&deck, &kid)["extends"], call - 1);
    }
    assert_eq!(says(&deck, "not a second time"), 3);
    after(&deck, DEDUP).silent();
    assert_eq!((asked(&deck).len(), deck.sends_to(&kid).len()), (4, 4));
    assert_eq!(remembered(&deck, &kid)["rung"], "handed-over");
}

#[test]
fn terminate_is_told_and_stops_nobody() {
    let (deck, ops, kid) = stuck("echo TERMINATE; echo rm -rf everything");
    once(&deck).silent();
    assert_eq!(remembered(&deck, &kid)["rung"], "handed-over");
    until(&deck, "a line", || !deck.sends_to(&ops).is_empty());
    let line = &deck.sends_to(&ops)[0].message;
    assert!(line.contains("triage advises to stop it"), "{line}");
    assert_eq!(told(&deck), [format!("unanswered:{kid}")]);
    for _ in 0..3 {
        after(&deck, DEDUP).silent();
    }
    assert_eq!((asked(&deck).len(), deck.sends_to(&kid).len()), (1, 3));
    let stops = |call: &common::Call| call.is("session stop", &kid);
    assert!(!deck.ledger().iter().any(stops));
    for log in ["watchdog.log", "escalations.log", "state.json"] {
        assert!(!deck.read(log).contains("everything"), "{log}");
    }
}

#[test]
fn triage_strict_verdict() {
    let (deck, ops, kid) = stuck("echo do not terminate");
    deck.setting("TRIAGE_TIMEOUT_S", "1");
    for (script, why) in [
        ("echo do not terminate", "none of the three words"),
        ("echo retry; sleep 3600", "did not answer in time"),
        ("echo terminate; exit 1", "it failed"),
    ] {
        program(&deck, script);
        once(&deck).silent();
        assert_eq!(
            says(&deck, "fallback: yes, it"),
            asked(&deck).len(),
            "{script}"
        );
        assert_eq!(
            count(&deck, "watchdog.log", &["triage says extend", why]),
            1,
            "{script}"
        );
        pass(&deck, DEDUP);
    }
    assert_eq!(remembered(&deck, &kid)["extends"], 3);
    let (mine, theirs) = (deck.sends_to(&kid), deck.sends_to(&ops));
    assert_eq!((mine.len(), theirs.len()), (3, 0));
    assert!(!deck.read("watchdog.log").contains("do not terminate"));
}

#[test]
fn a_program_that_is_not_there_is_more_time() {
    let (deck, _, kid) = stuck("true");
    fs::remove_file(deck.home().join("my triage")).unwrap();
    once(&deck).silent();
    assert_eq!(says(&deck, "fallback: yes, it cannot be run"), 1);
    let child = remembered(&deck, &kid);
    assert_eq!(
        (&child["extends"], &child["triage_open"]),
        (&1.into(), &false.into())
    );
}

#[test]
fn triage_budget_rotates() {
    let deck = Deck::new();
    program(&deck, "echo extend");
    let ops = conductor(&deck);
    let kids = ["one", "two", "three", "four"].map(|title| child(&deck, title, &ops).add());
    three_in_vain(&deck, &kids.each_ref());
    for tick in 1..=4 {
        after(&deck, 60).silent();
        assert_eq!(asked(&deck).len(), tick);
    }
    let mut all = asked(&deck);
    all.sort();
    let mut wanted = kids.to_vec();
    wanted.sort();
    assert_eq!(all, wanted);
}

/// A dialog that opens before the program is asked: it is not asked.
#[test]
fn a_decision_is_never_triaged() {
    let (deck, _, kid) = stuck("echo terminate");
    deck.set(&kid, "screen-0", free_composer("● Answer 3."));
    deck.set(&kid, "screen-1", dialog());
    deck.set(&kid, "panes", "screen-0\nscreen-1\n");
    once(&deck).silent();
    assert_eq!(asked(&deck), [""; 0]);
    after(&deck, DEDUP).silent();
    assert_eq!(asked(&deck), [""; 0]);
    let child = remembered(&deck, &kid);
    assert_eq!(
        (&child["rung"], &child["triage_open"]),
        (&"gated".into(), &false.into())
    );
}

#[test]
fn nothing_is_started_while_paused_or_in_a_dry_run() {
    let (deck, _, kid) = stuck("echo terminate");
    let said = run(&deck, &["--once", "--dry-run"]).out;
    assert!(said.contains("would be triaged"), "{said}");
    flag(&deck, "", "pause");
    once(&deck).silent();
    assert_eq!(asked(&deck), [""; 0]);
    assert_eq!(remembered(&deck, &kid)["rung"], "nudged");
}

/// A daemon is killed while the program runs: that call counts, and is not made
/// again within the hour.
#[test]
fn a_call_that_nobody_heard_of_counts() {
    let (deck, _, kid) = stuck("echo terminate; exec sleep 3600");
    let mut daemon = deck.daemon();
    wait_for("a call", || (!asked(&deck).is_empty()).then_some(()));
    assert_eq!(remembered(&deck, &kid)["triage_open"], true);
    daemon.crash();
    once(&deck).silent();
    let child = remembered(&deck, &kid);
    assert_eq!(
        (&child["extends"], &child["triage_open"]),
        (&1.into(), &false.into())
    );
    assert_eq!(child["rung"], "triage");
    assert_eq!(asked(&deck).len(), 1);
    assert_eq!(says(&deck, "fallback: yes"), 1);
}

/// What goes on meanwhile is more urgent: a dead conductor is restarted while
/// the program runs.
#[test]
fn it_holds_nobody_up() {
    let (deck, _, kid) = stuck("echo terminate; exec sleep 3600");
    let dead = deck.conductor("dead").add();
    let mut daemon = deck.daemon();
    wait_for("a call", || (!asked(&deck).is_empty()).then_some(()));
    deck.unset(&dead, "pane");
    deck.wait_for_call(|call| call.is("session restart", &dead));
    assert_eq!(remembered(&deck, &kid)["triage_open"], true);
    assert!(daemon.stop().success());
}
