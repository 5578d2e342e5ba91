//! Scenarios of all three capabilities together: the daemon, runs by cron, a dry
//! run, what is written down. The real binary on the stand-in deck; the whole
//! ledger is compared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/past.rs"]
mod past;
mod scene;
#[path = "scene/waiting.rs"]
mod waiting;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use common::{Deck, free_composer};
use past::{once, pass, restarted, run};
use scene::{acts, count, records, restart, story, turns, watching};
use waiting::{DEDUP, THRESHOLD, TYPED, child, send, told, until, until_asked};

/// A deck with one trigger for each capability.
struct Night {
    deck: Deck,
    dead: String,
    deaf: String,
    child: String,
}

/// One critical that is about to die, one that is deaf, a child that waits.
/// Nothing was looked at yet.
fn night() -> Night {
    let deck = Deck::new();
    deck.live_ps();
    let folder = deck.home_folder("tg/ops");
    deck.meta_env("ops", "TELEGRAM_STATE_DIR", &folder);
    let deaf = deck.conductor("ops").telegram().add();
    let dead = deck.conductor("web").add();
    let child = child(&deck, "fix-the-tests", &deaf).add();
    Night {
        deck,
        dead,
        deaf,
        child,
    }
}

impl Night {
    /// The watchdog has looked once; now the one is dead, and the others have
    /// been deaf and waiting for long.
    fn ripe(self) -> Night {
        once(&self.deck).silent();
        pass(&self.deck, THRESHOLD);
        self.deck.unset(&self.dead, "pane");
        self
    }

    /// The calls that change something, sorted.
    fn changes(&self) -> Vec<String> {
        let mut acts = acts(&self.deck);
        acts.retain(|act| act.contains(" restart ") || act.contains(" send "));
        acts.sort();
        acts
    }

    /// One of each.
    fn all(&self) -> Vec<String> {
        let mut all = [restart(&self.dead), restart(&self.deaf), send(&self.child)];
        all.sort();
        all.to_vec()
    }
}

#[test]
fn every_capability_wired() {
    let night = night();
    let deck = &night.deck;
    once(deck).silent();
    pass(deck, THRESHOLD);
    deck.setting("MIN_GLOBAL_RESTART_INTERVAL_S", "5");
    deck.setting("SAFETY_POLL_S", "1");
    let mut daemon = watching(deck);
    deck.wait_for_call(|call| call.is("session restart", &night.deaf));
    deck.unset(&night.dead, "pane");
    deck.wait("all three", || (night.changes().len() == 3).then_some(()));
    turns(deck, &daemon, 2);
    assert!(daemon.stop().success());
    assert_eq!(night.changes(), night.all());
    assert_eq!(deck.typed(&night.child), TYPED);
    let restarts: Vec<u64> = deck
        .ledger()
        .iter()
        .filter(|call| call.args.contains(" session restart "))
        .map(|call| call.at)
        .collect();
    assert!(restarts[1] - restarts[0] >= 5000, "{restarts:?}");
    assert_eq!(restarted(deck), [night.deaf.as_str(), &night.dead]);
    assert_eq!(daemon.said(), (String::new(), String::new()));
}

#[test]
fn once_runs_one_pass() {
    let night = night().ripe();
    let deck = &night.deck;
    until_asked(deck, &night.child, 1);
    // The deaf one has to wait for its minute.
    let mut wanted = vec![restart(&night.dead), send(&night.child)];
    wanted.sort();
    assert_eq!(night.changes(), wanted);
    // All that was started has ended.
    assert_eq!(deck.ended().len(), deck.ledger().len());
}

#[test]
fn once_remembers_timers() {
    let night = night();
    let deck = &night.deck;
    let mut asked_after = None;
    for minute in 0..15_u64 {
        once(deck).silent();
        let asked = !deck.sends().is_empty();
        asked_after = asked_after.or(asked.then_some(minute));
        pass(deck, 60);
    }
    // And the rest of the hour, with fewer runs.
    for _ in 0..5 {
        once(deck).silent();
        pass(deck, 520);
    }
    let after = asked_after.unwrap();
    // In the first run that sees more than 600 s; a look at its screen that took
    // too long leaves it to the next one.
    assert!((10..=14).contains(&after), "{after}");
    let mut wanted = vec![restart(&night.deaf), send(&night.child)];
    wanted.sort();
    assert_eq!(night.changes(), wanted);
    assert_eq!(deck.typed(&night.child), TYPED);
}

#[test]
fn once_keeps_the_guardrails() {
    let night = night().ripe();
    for _ in 0..6 {
        once(&night.deck).silent();
    }
    until_asked(&night.deck, &night.child, 1);
    assert_eq!(restarted(&night.deck), [night.dead.as_str()]);
    assert_eq!(night.deck.sends().len(), 1);
}

/// The watchdog's folder: names and contents.
fn contents(deck: &Deck) -> BTreeMap<PathBuf, Vec<u8>> {
    let Ok(entries) = fs::read_dir(deck.watchdog_dir()) else {
        return BTreeMap::new();
    };
    let files = entries.map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| (path.clone(), fs::read(path).unwrap_or_default());
    files.map(read).collect()
}

#[test]
fn dry_run_changes_nothing() {
    let night = night().ripe();
    let deck = &night.deck;
    deck.install_escalate();
    deck.setting("TELEGRAM_ESCALATION_CHAT_ID", "4711");
    let before = contents(deck);
    let would = [
        (&night.dead, "would be restarted"),
        (&night.deaf, "would be restarted"),
        (&night.child, "would be asked to report"),
    ];
    // One after another, as the spacing has it: the deaf one in a second deck.
    let says = |id: &str, text: &str| {
        until_said(deck, id, text);
    };
    says(would[0].0, would[0].1);
    says(would[2].0, would[2].1);
    deck.set(&night.dead, "pane", free_composer("● Back."));
    says(would[1].0, would[1].1);
    deck.unset(&night.dead, "pane");
    assert!(contents(deck) == before, "it changed something");
    assert_eq!(night.changes(), [""; 0]);
    assert_eq!(count(deck, "escalations.log", &[""]), 0);
    assert_eq!(deck.typed(&night.child), "");
    // A real run afterwards has its whole budget, and the nudge is still due.
    until_asked(deck, &night.child, 1);
    assert_eq!(story(deck, &night.dead), ["attempt", "accepted"]);
}

/// Runs dry until it says so of a session.
fn until_said(deck: &Deck, id: &str, text: &str) {
    deck.wait(text, || {
        let ran = run(deck, &["--once", "--dry-run"]);
        assert_eq!((ran.code(), ran.err.as_str()), (Some(0), ""));
        let mut about = ran.out.lines().filter(|line| line.contains(id));
        about.any(|line| line.contains(text)).then_some(())
    });
}

#[test]
fn three_log_files() {
    let night = night().ripe();
    let deck = &night.deck;
    until_asked(deck, &night.child, 1);
    pass(deck, 61);
    until(deck, "both restarts", || restarted(deck).len() == 2);
    pass(deck, 61);
    until(deck, "word of the deaf", || !told(deck).is_empty());
    let nudge = "asked to report status (nudge 1 of 3)";
    let line = deck.wait_for_line("watchdog.log", nudge);
    assert!(line.contains(&night.child) && line.contains("T"), "{line}");
    for (log, id) in [
        ("restart.log", &night.dead),
        ("escalations.log", &night.deaf),
    ] {
        let record = &records(deck, log)[0];
        assert!(record["time"].as_str().unwrap().ends_with('Z'), "{record}");
        assert!(record.to_string().contains(id.as_str()), "{record}");
    }
    // Each where it belongs.
    assert_eq!(count(deck, "restart.log", &[&night.child]), 0);
    assert_eq!(told(deck), [format!("deaf:{}", night.deaf)]);
}

#[test]
fn digests_not_pane_text() {
    let night = night();
    let deck = &night.deck;
    deck.install_escalate();
    deck.setting("TELEGRAM_ESCALATION_CHAT_ID", "4711");
    deck.home_file("tg/ops/.env", "TELEGRAM_BOT_TOKEN=1:hunter2\n");
    let screen = free_composer("● The password is hunter2.");
    for id in [&night.deaf, &night.dead, &night.child] {
        deck.set(id, "pane", &screen);
    }
    // A message that goes wrong, with the word in the draft and in the error.
    let draft = common::screens::draft("1. hunter2");
    let other = child(deck, "draft", &night.deaf)
        .pane(&screen)
        .at_send(draft)
        .add();
    let night = night.ripe();
    let deck = &night.deck;
    until_asked(deck, &night.child, 1);
    until_asked(deck, &other, 1);
    pass(deck, 61);
    until(deck, "both restarts", || restarted(deck).len() == 2);
    for _ in 0..3 {
        pass(deck, DEDUP);
        once(deck).silent();
    }
    assert!(
        deck.ledger()
            .iter()
            .any(|call| call.program == "escalate.sh")
    );
    for (file, content) in contents(deck) {
        let text = String::from_utf8_lossy(&content);
        assert!(!text.contains("hunter2"), "{}: {text}", file.display());
    }
    for call in deck.ledger() {
        assert!(!call.args.contains("hunter2"), "{call:?}");
    }
}
