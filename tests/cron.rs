//! `--once`, as cron runs it, and `--dry-run`. The real binary on the stand-in
//! deck.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/past.rs"]
mod past;
mod scene;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use common::Deck;
use past::{Story, count, once, pass, restarted, run};
use rustix::process::Signal;
use scene::{Agent, acts, flag, impatient, polls, records, revival, show, story, watching};

#[test]
fn once_runs_one_pass() {
    let deck = Deck::new();
    deck.start_tmux();
    let id = deck.row("conductor-ops").dead().add();
    let stopped = deck.row("conductor-old").stopped().add();
    once(&deck).silent();
    assert_eq!(acts(&deck), revival(&id));
    assert_eq!(polls(&deck), 1);
    // All that was started has ended.
    assert_eq!(deck.ended().len(), deck.ledger().len());
    assert!(deck.agent_pid(&id).is_some() && deck.agent_pid(&stopped).is_none());
}

#[test]
fn once_keeps_the_guardrails() {
    for plan in ["no-effect", "exit 1 no such thing"] {
        let deck = Deck::new();
        let id = deck
            .row("conductor-ops")
            .dead()
            .file("after_restart", plan)
            .add();
        let other = deck
            .row("conductor-two")
            .dead()
            .file("after_restart", plan)
            .add();
        let mut cron = Story::of(&deck);
        for _ in 0..6 {
            once(&deck).silent();
            cron.pass(5);
        }
        assert_eq!(restarted(&deck).len(), 1, "{plan}");
        // And over an hour.
        for _ in 0..60 {
            once(&deck).silent();
            cron.inside_the_guardrails(plan);
            cron.pass(60);
        }
        // Two or three at first, then after 5, 10, 20 and 40 min.
        for id in [&id, &other] {
            let restarts = cron.restarts.iter().filter(|(_, of)| of == id).count();
            assert!((4..=6).contains(&restarts), "{plan}: {:?}", cron.restarts);
        }
    }
}

/// Everything in a folder: name, rights, content, time of the last change.
fn tree(folder: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>, i64)> {
    let mut tree = BTreeMap::new();
    let Ok(entries) = fs::read_dir(folder) else {
        return tree;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let about = fs::symlink_metadata(&path).unwrap();
        let changed = about.mtime() * 1_000_000_000 + about.mtime_nsec();
        let content = fs::read(&path).unwrap_or_default();
        tree.extend(self::tree(&path));
        tree.insert(path, (about.mode(), content, changed));
    }
    tree
}

/// All that a run could change: the watchdog's folder and agent-deck's files.
fn world(deck: &Deck) -> BTreeMap<PathBuf, (u32, Vec<u8>, i64)> {
    let mut world = tree(&deck.home().join(".agent-deck"));
    for folder in ["profiles", "hooks", "locks"] {
        world.extend(tree(&deck.file(folder)));
    }
    let home = fs::read_dir(deck.home()).unwrap();
    world.extend(home.map(|entry| (entry.unwrap().path(), (0, Vec::new(), 0))));
    world
}

/// Runs dry, and compares the world before and after.
fn dry(deck: &Deck, what: &str) {
    let before = world(deck);
    let ran = run(deck, &["--once", "--dry-run"]);
    let ended = (ran.code(), ran.err.as_str());
    assert_eq!(ended, (Some(0), ""), "{what}");
    assert!(world(deck) == before, "{what}: it changed something");
}

/// The same without `--once`.
fn dry_daemon(deck: &Deck, what: &str) {
    let before = world(deck);
    let seen = polls(deck);
    let mut daemon = deck.daemon_with(&["--dry-run", "--verbose"]);
    deck.wait("a second turn", || (polls(deck) >= seen + 2).then_some(()));
    assert!(daemon.stop().success());
    assert_eq!(daemon.said().1, "", "{what}");
    assert!(world(deck) == before, "{what}: it changed something");
}

#[test]
fn dry_run_changes_nothing() {
    let deck = impatient();
    let id = deck
        .row("conductor-ops")
        .dead()
        .file("after_restart", "exit 1 AMBIGUOUS")
        .add();
    deck.row("conductor-two").add();
    dry(&deck, "right after installation");
    dry_daemon(&deck, "right after installation");
    assert!(!deck.home().join(".agent-deck").exists());

    deck.install_escalate();
    deck.setting("TELEGRAM_ESCALATION_CHAT_ID", "4711");
    flag(&deck, "clear", &id);
    flag(&deck, "hold", "not-an-id");
    dry(&deck, "with flags");
    dry_daemon(&deck, "with flags");
    assert_eq!(
        acts(&deck)
            .iter()
            .filter(|act| **act != show(&id) && **act != scene::pane(&id))
            .count(),
        0
    );

    // A real run afterwards has its whole budget.
    once(&deck).silent();
    assert_eq!(story(&deck, &id), ["attempt", "failed"]);
    assert_eq!(restarted(&deck), [id.as_str()]);
    let told = |deck: &Deck| {
        deck.ledger()
            .iter()
            .filter(|call| call.program == "escalate.sh")
            .count()
    };
    assert_eq!(told(&deck), 1);

    // With something to tell, and something to restart again.
    pass(&deck, 7 * 3600);
    dry(&deck, "with a reminder that is due");
    dry_daemon(&deck, "with a reminder that is due");
    assert_eq!(told(&deck), 1);
    assert_eq!(restarted(&deck), [id.as_str()]);
    once(&deck).silent();
    assert_eq!((told(&deck), restarted(&deck).len()), (2, 2));

    let path = deck.watchdog_dir().join("state.json");
    fs::write(&path, "broken").unwrap();
    dry(&deck, "with a broken state");
    fs::remove_file(&path).unwrap();
    dry(&deck, "with a lost state");
}

#[test]
fn dry_run_beside_a_daemon() {
    let deck = impatient();
    let id = deck.row("conductor-ops").add();
    flag(&deck, "hold", &id);
    let mut daemon = watching(&deck);
    deck.unset(&id, "pane");
    let ran = run(&deck, &["--once", "--dry-run"]);
    assert_eq!((ran.code(), ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.contains("not restarted (held)"), "{}", ran.out);
    deck.wait_for_line("watchdog.log", "not restarted (held)");
    assert!(daemon.stop().success());
    assert_eq!(restarted(&deck), [""; 0]);
}

#[test]
fn dry_run_explains() {
    let deck = Deck::new();
    let alive = deck.row("conductor-alive").dead().add();
    let agent = Agent::start(&deck, &[("AGENTDECK_INSTANCE_ID", &alive)], &[]);
    let sessions = [
        (
            alive,
            "not restarted (maybe-alive): it reads dead, but process ",
        ),
        (
            deck.row("conductor-well").add(),
            "listed as waiting: nothing to do",
        ),
        (
            deck.row("conductor-busy").status("running").add(),
            "listed as running: nothing to do",
        ),
        (
            deck.row("conductor-off").stopped().add(),
            "listed as stopped: nothing to do",
        ),
        (
            deck.row("conductor-gone").archived().add(),
            "archived: would be left alone",
        ),
        (
            deck.row("conductor-new").never_started().add(),
            "not restarted (never-ran): ",
        ),
        (
            deck.row("conductor-young").dead().age(10).add(),
            "not restarted (young): ",
        ),
    ];
    let plain = deck.row("plain").dead().add();
    let ran = run(&deck, &["--once", "--dry-run", "--verbose"]);
    assert_eq!((ran.code(), ran.err.as_str()), (Some(0), ""));
    for (id, what) in &sessions {
        let about = ran.out.lines().filter(|line| line.contains(id.as_str()));
        let about: Vec<&str> = about.collect();
        assert!(
            about.iter().any(|line| line.contains(what)),
            "{what}: {}",
            ran.out
        );
    }
    assert!(!ran.out.contains(&plain), "{}", ran.out);
    drop(agent);

    // Of those that may be restarted one would be, since a real run waits 60 s.
    for title in ["conductor-one", "conductor-two", "conductor-three"] {
        deck.row(title).dead().add();
    }
    let ran = run(&deck, &["--once", "--dry-run"]);
    assert_eq!(
        ran.out.matches("would be restarted: ").count(),
        1,
        "{}",
        ran.out
    );
    assert_eq!(restarted(&deck), [""; 0]);
}

#[test]
fn dry_run_names_the_limit() {
    let deck = Deck::new();
    let row = deck.row("conductor-ops").dead();
    let id = row.file("after_restart", "no-effect").add();
    let says = |text: &str| {
        // Also when somebody has read it before.
        for _ in 0..2 {
            let ran = run(&deck, &["--once", "--dry-run"]);
            let mut about = ran.out.lines().filter(|line| line.contains(&id));
            assert!(about.any(|line| line.contains(text)), "{text}: {}", ran.out);
        }
    };
    once(&deck).silent();
    says("not restarted (cool-down): spacing (60 s");
    pass(&deck, 65);
    flag(&deck, "hold", &id);
    says("not restarted (held): held (hold file)");
    once(&deck).silent();
    says("not restarted (held): held (hold file)");
    assert_eq!(restarted(&deck), [id.as_str()]);
}

#[test]
fn once_waits_for_a_message_but_not_with_a_restart() {
    let deck = Deck::new();
    deck.install_escalate();
    deck.setting("TELEGRAM_ESCALATION_CHAT_ID", "4711");
    deck.trap("escalate.sh").hang().set();
    deck.row("conductor-ops")
        .dead()
        .file("after_restart", "exit 1 AMBIGUOUS")
        .add();
    let mut first = deck.daemon_with(&["--once"]);
    deck.wait_for_call(|call| call.program == "escalate.sh");
    assert_eq!(restarted(&deck).len(), 1);
    // The next one meets the lock.
    assert_eq!(once(&deck).code(), Some(4));
    // Whoever cannot wait may end it; the message is not sent twice.
    first.signal(Signal::TERM);
    assert!(first.wait().success());
    deck.no_trap("escalate.sh");
    pass(&deck, 120);
    once(&deck).silent();
    let told: Vec<_> = records(&deck, "escalations.log");
    assert_eq!(told[0]["outcome"], "unknown", "{told:?}");
    let calls = deck.ledger().into_iter();
    assert_eq!(
        calls.filter(|call| call.program == "escalate.sh").count(),
        1
    );
}

#[test]
fn once_says_when_it_cannot_look() {
    let deck = Deck::new();
    deck.trap("list").exit(1).set();
    assert_eq!(once(&deck).code(), Some(5));
    assert_eq!(count(&deck, "watchdog.log", "no list, nothing is done"), 1);
}
