//! Who runs: one watchdog on one deck, whoever starts the others and however.
//! The real binary on the stand-in deck.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/past.rs"]
mod past;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use common::{Daemon, Deck, is_running};
use past::{Run, count, once, restarted, through_shell};

/// A deck whose watchdogs look each second, with a critical session that lives.
fn deck() -> (Deck, String) {
    let deck = Deck::new();
    deck.setting("SAFETY_POLL_S", "1");
    let id = deck.row("conductor-ops").add();
    (deck, id)
}

/// A daemon that has begun.
fn started(deck: &Deck) -> Daemon<'_> {
    let daemon = deck.daemon();
    daemon.wait_for_line("watchdog.log", &start(&daemon));
    daemon
}

fn start(daemon: &Daemon) -> String {
    format!("starts as process {}:", daemon.pid())
}

/// Waits for so many more lists.
fn lists(deck: &Deck, more: usize) {
    let lists = || {
        deck.ledger()
            .iter()
            .filter(|call| call.args.contains("list"))
            .count()
    };
    let wanted = lists() + more;
    deck.wait_for_ledger(|_| lists() >= wanted);
}

/// Left at once because another instance runs, without a word but in the log.
#[track_caller]
fn left(deck: &Deck, ran: &Run, lines: usize) {
    assert_eq!(
        (ran.code(), ran.out.as_str(), ran.err.as_str()),
        (Some(4), "", "")
    );
    assert_eq!(
        count(
            deck,
            "watchdog.log",
            "this --once run leaves: the lock is held by"
        ),
        lines
    );
}

#[test]
fn one_arbiter() {
    let (deck, id) = deck();
    let mut both = [deck.daemon(), deck.daemon()];
    deck.wait_for_line("watchdog.log", "starts as process");
    deck.unset(&id, "pane");
    deck.wait_for_call(|call| call.is("session restart", &id));
    lists(&deck, 2);
    assert_eq!(restarted(&deck), [id.as_str()]);
    assert_eq!(count(&deck, "watchdog.log", "starts as process"), 1);
    // The other one tries on, and takes over.
    let log = deck.read("watchdog.log");
    let first = both
        .iter()
        .position(|daemon| log.contains(&start(daemon)))
        .unwrap();
    assert!(both[first].stop().success());
    let second = &mut both[1 - first];
    second.wait_for_line("watchdog.log", &start(second));
    lists(&deck, 2);
    assert!(second.stop().success());
    assert_eq!(restarted(&deck), [id.as_str()]);
}

#[test]
fn a_once_run_leaves_when_a_daemon_runs() {
    let (deck, id) = deck();
    let _daemon = started(&deck);
    deck.set(&id, "after_restart", "no-effect");
    deck.unset(&id, "pane");
    for run in 1..=3 {
        left(&deck, &once(&deck), run);
    }
    deck.wait_for_call(|call| call.is("session restart", &id));
    left(&deck, &once(&deck), 4);
    assert_eq!(restarted(&deck), [id.as_str()]);
}

#[test]
fn a_second_spelling_of_the_root_is_the_same_root() {
    let (deck, id) = deck();
    let _daemon = started(&deck);
    let root = deck.home().join(".agent-deck");
    let link = deck.home().join("other-spelling");
    symlink(&root, &link).unwrap();
    let dotted = deck.home().join(".agent-deck/../.agent-deck");
    let spellings = [
        format!("{}/", root.display()),
        link.display().to_string(),
        dotted.display().to_string(),
    ];
    for (n, spelling) in spellings.iter().enumerate() {
        deck.setting("AGENT_DECK_ROOT", spelling);
        left(&deck, &once(&deck), n + 1);
    }
    deck.unset(&id, "pane");
    deck.wait_for_call(|call| call.is("session restart", &id));
    left(&deck, &once(&deck), 4);
    assert_eq!(restarted(&deck), [id.as_str()]);
}

#[test]
fn another_root_does_not_watch_the_same_profile() {
    let (deck, id) = deck();
    let mut first = started(&deck);
    lists(&deck, 1);
    let other = deck.home().join("other-root");
    deck.setting("AGENT_DECK_ROOT", other.to_str().unwrap());
    let log = || fs::read_to_string(other.join("watchdog/watchdog.log")).unwrap_or_default();
    deck.unset(&id, "pane");
    assert_eq!(once(&deck).code(), Some(4));
    let second = deck.daemon();
    let refusal = "another watchdog watches it";
    deck.wait("the other's refusal", || {
        (log().matches(refusal).count() == 2).then_some(())
    });
    deck.wait_for_call(|call| call.is("session restart", &id));
    lists(&deck, 2);
    assert_eq!(restarted(&deck), [id.as_str()]);
    assert!(first.stop().success());
    deck.wait("its turn", || {
        log()
            .contains("profile default: is watched now")
            .then_some(())
    });
    drop(second);
    assert_eq!(log().matches(refusal).count(), 2, "said once by each");
    assert_eq!(restarted(&deck), [id.as_str()]);
}

#[test]
fn profiles_are_shared_out_between_roots() {
    let (deck, _) = deck();
    let night = deck.row("conductor-night").profile("night").dead().add();
    let _first = started(&deck);
    lists(&deck, 1);
    deck.setting(
        "AGENT_DECK_ROOT",
        deck.home().join("other-root").to_str().unwrap(),
    );
    deck.setting("AGENT_DECK_PROFILE", "all");
    once(&deck).silent();
    assert_eq!(restarted(&deck), [night]);
}

#[test]
fn recycled_pid() {
    let (deck, id) = deck();
    deck.unset(&id, "pane");
    let mut bystander = Command::new(deck.file("bin/claude"))
        .env_clear()
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let holder = |pid: u32| {
        format!(
            "{{\"mode\":\"daemon\",\"pid\":{pid},\"poll_s\":5,\
             \"since\":\"2026-11-30T22:00:05Z\",\"version\":\"0.1.0\"}}\n"
        )
    };
    once(&deck).silent();
    let lock = deck.watchdog_dir().join("lock");
    for left in [
        holder(bystander.id()),
        format!("{}\n", bystander.id()),
        holder(1),
    ] {
        fs::write(&lock, left).unwrap();
        once(&deck).silent();
        assert!(is_running(bystander.id()));
    }
    // Its own number, as in a container that starts the same way each time.
    let script = format!("echo \"$$\" >'{}'; exec \"$0\" \"$@\"", lock.display());
    let ran = through_shell(&deck, &script, &["--once"]).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(restarted(&deck), [id]);
    assert_eq!(bystander.try_wait().unwrap(), None);
    drop(bystander.stdin.take());
    bystander.wait().unwrap();
}

#[test]
fn a_deleted_lock_is_taken_anew() {
    let (deck, id) = deck();
    let mut daemon = started(&deck);
    fs::remove_file(deck.watchdog_dir().join("lock")).unwrap();
    daemon.wait_for_line(
        "watchdog.log",
        "lock: was deleted or replaced, and is taken anew",
    );
    left(&deck, &once(&deck), 1);
    deck.unset(&id, "pane");
    deck.wait_for_call(|call| call.is("session restart", &id));
    assert!(daemon.stop().success());
    assert_eq!(restarted(&deck), [id]);
}

#[test]
fn a_deleted_folder_does_not_free_the_budget() {
    let (deck, id) = deck();
    deck.set(&id, "after_restart", "no-effect");
    deck.unset(&id, "pane");
    let mut daemon = started(&deck);
    daemon.wait_for_line("restart.log", "\"outcome\"");
    lists(&deck, 2);
    fs::rename(deck.watchdog_dir(), deck.root().join("taken-away")).unwrap();
    daemon.wait_for_line(
        "watchdog.log",
        "lock: was deleted or replaced, and is taken anew",
    );
    deck.wait("the state", || {
        deck.read("state.json").contains(&id).then_some(())
    });
    daemon.crash();
    // A program that was just being started may hold the lock a moment longer.
    let run = deck.wait("the lock", || {
        Some(once(&deck)).filter(|run| run.code() != Some(4))
    });
    run.silent();
    assert_eq!(restarted(&deck), [id]);
}

#[test]
fn a_replaced_lock_is_another_instance() {
    let (deck, id) = deck();
    let mut daemon = started(&deck);
    let aside = deck.watchdog_dir().join("lock.new");
    let theirs = File::create(&aside).unwrap();
    theirs.lock().unwrap();
    fs::rename(aside, deck.watchdog_dir().join("lock")).unwrap();
    assert_eq!(daemon.wait().code(), Some(4));
    assert_eq!(
        count(
            &deck,
            "watchdog.log",
            "lock: another instance has it now; leaving"
        ),
        1
    );
    deck.unset(&id, "pane");
    left(&deck, &once(&deck), 1);
    assert_eq!(restarted(&deck), [""; 0]);
}

#[test]
fn overlapping_cron_runs() {
    let (deck, id) = deck();
    deck.unset(&id, "pane");
    deck.trap("list").hang().set();
    let mut slow = deck.daemon_with(&["--once"]);
    deck.wait_for_call(|call| call.args.contains("default list"));
    for run in 1..=5 {
        left(&deck, &past::run(&deck, &["--once"]), run);
    }
    assert_eq!(
        deck.ledger()
            .iter()
            .filter(|call| call.args.contains("default list"))
            .count(),
        1
    );
    slow.crash();
    deck.no_trap("list");
    once(&deck).silent();
    assert_eq!(restarted(&deck), [id]);
}
