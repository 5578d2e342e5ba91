//! The operating system fails at any one call of a pass: no room, no handles, no
//! processes, a disk that cannot be written. Whoever comes next stays inside the
//! guardrails, nothing is restarted that no log tells of, and all is well in the
//! end. The real binary on the stand-in deck, behind strace, which injects the
//! failures; skipped aloud where there is none.
//!
//! `FAULTS=all cargo test --test faults` tries every call.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/past.rs"]
mod past;

use std::process::Command;

use common::{Deck, wait_for};
use past::{Story, once, restarted, through_shell};

/// Calls of the system, how each may fail, and of how many one is tried as a rule:
/// most of those that read look at the machine's processes.
const CALLS: [(&str, &[&str], usize); 12] = [
    ("openat", &["EMFILE", "EACCES"], 61),
    ("read", &["EIO"], 61),
    ("/statx?$", &["EACCES"], 13),
    ("write", &["ENOSPC", "EIO"], 3),
    ("fsync", &["EIO"], 1),
    ("/rename", &["EROFS", "ENOSPC"], 1),
    ("/unlink", &["EROFS"], 1),
    ("getdents64", &["EIO"], 1),
    ("/^v?fork|^clone", &["EAGAIN", "ENOMEM"], 3),
    ("memfd_create", &["EMFILE"], 3),
    ("flock", &["ENOLCK"], 1),
    ("utimensat", &["EACCES"], 1),
];

/// Two dead conductors, of which each comes back at the third try.
fn deck() -> Deck {
    let deck = Deck::new();
    once(&deck).silent();
    for title in ["conductor-a", "conductor-b"] {
        let plan = "no-effect\nexit 1\nworks";
        deck.row(title).dead().file("after_restart", plan).add();
    }
    deck
}

/// A pass in which the `n`th such call fails; whether there are that many.
fn fails_at(deck: &Deck, call: &str, error: &str, n: usize) -> bool {
    let trace = deck.root().join("trace");
    let path = std::env::var("PATH").unwrap();
    let script = format!(
        "exec /usr/bin/env PATH='{path}' strace -E PATH=\"$PATH\" -qq -o '{}' \
         -e 'trace={call}' -e 'inject={call}:error={error}:when={n}' \"$0\" \"$@\"",
        trace.display()
    );
    let ran = through_shell(deck, &script, &["--once"]).output().unwrap();
    let code = ran.status.code();
    let err = String::from_utf8_lossy(&ran.stderr);
    assert!(code.is_some(), "{call} {error} {n}: {ran:?}");
    assert!(!err.contains("panicked"), "{call} {error} {n}: {err}");
    std::fs::read_to_string(&trace)
        .unwrap()
        .contains("(INJECTED)")
}

/// Everything that follows is as it should be.
fn all_is_well(deck: &Deck, what: &str) {
    let mut story = Story::of(deck);
    for seconds in [0, 30, 61] {
        story.pass(seconds);
        once(deck);
        story.inside_the_guardrails(what);
    }
    wait_for("both", || {
        story.pass(61 * 20);
        once(deck);
        story.inside_the_guardrails(what);
        let printed = deck.agent_deck(&["-p", "default", "list", "--json"]).stdout;
        (!String::from_utf8(printed).unwrap().contains("\"error\"")).then_some(())
    });
    let told = past::count(deck, "restart.log", "\"event\":\"attempt\"");
    let lost = past::count(deck, "watchdog.log", "restart.log");
    let begun = restarted(deck).len();
    assert!(
        told + lost >= begun,
        "{what}: {begun} restarts, {told} attempts"
    );
}

fn tried(call: &str, errors: &[&str], each: usize) -> usize {
    let mut points = 0;
    for error in errors {
        for n in (1..).step_by(each) {
            let deck = deck();
            if !fails_at(&deck, call, error, n) {
                break;
            }
            points += 1;
            all_is_well(&deck, &format!("{call} {error} {n}"));
        }
    }
    println!("{call}: {points} points");
    points
}

#[test]
fn any_call_of_the_system_may_fail() {
    if Command::new("strace").arg("-V").output().is_err() {
        println!("skipped: there is no strace");
        return;
    }
    let all = std::env::var("FAULTS").is_ok_and(|which| which == "all");
    let points: usize = std::thread::scope(|scope| {
        let running: Vec<_> = CALLS
            .iter()
            .map(|(call, errors, each)| {
                let each = if all { 1 } else { *each };
                scope.spawn(move || tried(call, errors, each))
            })
            .collect();
        running
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    println!("{points} points in all");
    assert!(points > 30, "only {points} points");
}
