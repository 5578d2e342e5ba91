//! What the logs say, and what they never say. The real binary on the stand-in
//! deck.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/past.rs"]
mod past;
mod scene;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use common::{Deck, write};
use past::{once, pass, run};
use scene::{impatient, polls, records, story, turns, watching};
use serde_json::Value;

/// Whether a line begins with the time, as all do.
fn is_dated(line: &str) -> bool {
    let line = line.trim_start_matches("{\"time\":\"");
    let digits = |range: std::ops::Range<usize>| {
        line.get(range)
            .is_some_and(|part| part.bytes().all(|b| b.is_ascii_digit()))
    };
    digits(0..4)
        && digits(5..7)
        && digits(8..10)
        && line.get(10..11) == Some("T")
        && line.get(19..20) == Some("Z")
}

#[test]
fn silent_when_healthy() {
    let deck = impatient();
    deck.setting("MIN_GLOBAL_RESTART_INTERVAL_S", "60");
    for title in ["conductor-a", "conductor-b", "conductor-c", "plain"] {
        for status in ["running", "waiting", "idle"] {
            deck.row(title).status(status).add();
        }
    }
    let mut daemon = watching(&deck);
    turns(&deck, &daemon, 10);
    assert!(daemon.stop().success());
    assert_eq!(daemon.said(), (String::new(), String::new()));
    let log = deck.read("watchdog.log");
    let lines: Vec<&str> = log
        .lines()
        .filter(|line| !line.contains("no fast path"))
        .collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(
        lines[0].contains(" starts as process ") && lines[1].ends_with(": ends, as a signal asked")
    );
    assert!(lines.iter().all(|line| is_dated(line)), "{log}");
    for log in ["restart.log", "escalations.log"] {
        assert!(!deck.watchdog_dir().join(log).exists());
    }
    let calls = deck.ledger();
    let (first, rest) = calls.split_at(2);
    assert_eq!(
        [&first[0].args, &first[1].args],
        ["version", "profile list --json"]
    );
    assert!(
        rest.iter().all(|call| call.args == scene::POLL),
        "{calls:?}"
    );
}

#[test]
fn three_log_files() {
    let deck = Deck::new();
    let limit = "exit 1 HTTP 429: slow down";
    let id = deck
        .row("conductor-ops")
        .dead()
        .file("after_restart", limit)
        .add();
    once(&deck).silent();
    assert_eq!(story(&deck, &id), ["attempt", "limited"]);
    let told = records(&deck, "escalations.log");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["episode"], "rate-limit:all");
    let log = deck.read("watchdog.log");
    assert_eq!(
        log.lines().filter(|line| line.contains(&id)).count(),
        2,
        "{log}"
    );
    for name in ["watchdog.log", "restart.log", "escalations.log"] {
        let log = deck.read(name);
        assert!(log.ends_with('\n') && log.lines().all(is_dated), "{log}");
    }
}

#[test]
fn restart_log_tells_why() {
    let deck = Deck::new();
    deck.start_tmux();
    let works = deck.row("conductor-a").dead().add();
    once(&deck).silent();
    let fails = deck
        .row("conductor-b")
        .dead()
        .file("after_restart", "exit 1 no such thing")
        .add();
    deck.wait("the new agent", || {
        once(&deck).silent();
        (story(&deck, &works).last()? == "done").then_some(())
    });
    pass(&deck, 61);
    once(&deck).silent();
    assert_eq!(story(&deck, &works), ["attempt", "accepted", "done"]);
    assert_eq!(story(&deck, &fails), ["spacing", "attempt", "failed"]);
    let records = records(&deck, "restart.log");
    for record in &records {
        let text = |name: &str| {
            record[name]
                .as_str()
                .unwrap_or_else(|| panic!("{name}: {record}"))
        };
        assert_eq!(text("capability"), "restart");
        assert_eq!(text("profile"), "default");
        assert!([&works, &fails].contains(&&text("session").to_owned()));
        assert!(text("title").starts_with("conductor-"));
    }
    for record in records.iter().filter(|record| record["event"] == "attempt") {
        assert_ne!(record["evidence"], "", "{record}");
        let rules = record["guard"].as_object().unwrap();
        let agrees = |rule: &Value| rule.as_str().unwrap().starts_with("yes: ");
        assert!(rules.values().all(agrees), "{record}");
        for rule in ["burst-limit", "spacing", "cool-down", "crash-loop"] {
            assert!(rules.contains_key(rule), "{record}");
        }
    }
    let refusal = records
        .iter()
        .find(|record| record["event"] == "refusal")
        .unwrap();
    assert!(
        refusal["text"].as_str().unwrap().contains("60 s"),
        "{refusal}"
    );
    assert_eq!(refusal["rule"], "spacing");
    let rules = refusal["guard"].as_object().unwrap().iter();
    let refusing = rules.filter(|(_, says)| says.as_str().unwrap().starts_with("no: "));
    assert_eq!(
        refusing.map(|(rule, _)| rule).collect::<Vec<_>>(),
        ["spacing"]
    );
    let failure = records.last().unwrap();
    assert!(
        failure["text"].as_str().unwrap().contains("no such thing"),
        "{failure}"
    );
}

#[test]
fn escalation_log_tells_the_outcome() {
    let deck = impatient();
    deck.install_escalate();
    let ambiguous = "exit 1 AMBIGUOUS: two of them";
    let outcomes = || -> Vec<String> {
        let records = records(&deck, "escalations.log");
        records
            .iter()
            .map(|record| record["outcome"].as_str().unwrap().to_owned())
            .collect()
    };
    let trouble = |title: &str| {
        deck.row(title)
            .dead()
            .file("after_restart", ambiguous)
            .add()
    };
    trouble("conductor-a");
    once(&deck).silent();
    assert_eq!(outcomes(), ["local only"]);

    deck.setting("TELEGRAM_ESCALATION_CHAT_ID", "4711");
    trouble("conductor-b");
    pass(&deck, 2);
    once(&deck).silent();
    assert_eq!(outcomes()[1..], ["sent"]);
    trouble("conductor-c");
    pass(&deck, 2);
    once(&deck).silent();
    assert_eq!(outcomes()[2..], ["rate-limited"]);
    deck.trap("escalate.sh").exit(1).set();
    pass(&deck, 61);
    once(&deck).silent();
    assert_eq!(outcomes()[3..], ["deduplicated", "failed"]);
    for record in records(&deck, "escalations.log") {
        for part in ["episode", "severity", "text"] {
            assert!(
                record[part].as_str().is_some_and(|text| !text.is_empty()),
                "{record}"
            );
        }
    }
}

#[test]
fn verbose_shows_ticks() {
    let deck = impatient();
    deck.row("conductor-a").add();
    deck.row("plain").add();
    let ticks = || {
        deck.read("watchdog.log")
            .matches("default: tick: 2 sessions, 1 critical")
            .count()
    };
    let mut daemon = watching(&deck);
    turns(&deck, &daemon, 3);
    assert!(daemon.stop().success());
    assert_eq!(ticks(), 0);
    let (before, mut daemon) = (polls(&deck), deck.daemon_with(&["--verbose"]));
    deck.wait("three ticks", || (ticks() >= 3).then_some(()));
    assert!(daemon.stop().success());
    assert_eq!(ticks(), polls(&deck) - before);
    assert_eq!(daemon.said(), (String::new(), String::new()));
}

/// A daemon has written its first line; then something is done to the log, and
/// then a session dies, which takes some lines.
fn logged_around(deed: impl Fn(&Path)) -> (Deck, String) {
    let deck = impatient();
    let id = deck.row("conductor-ops").add();
    let mut daemon = watching(&deck);
    let path = deck.watchdog_dir().join("watchdog.log");
    deed(&path);
    deck.unset(&id, "pane");
    daemon.wait_for_line("watchdog.log", "agent-deck accepted it");
    assert!(daemon.stop().success());
    drop(daemon);
    (deck, id)
}

#[test]
fn log_truncated_underneath() {
    let (deck, id) = logged_around(|path| {
        let copy = path.with_extension("copy");
        fs::copy(path, copy).unwrap();
        fs::File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_len(0)
            .unwrap();
    });
    let log = deck.read("watchdog.log");
    assert!(log.lines().all(is_dated) && !log.contains('\0'), "{log}");
    assert!(log.lines().next().unwrap().contains(&id), "{log}");
    assert!(deck.read("watchdog.copy").contains("starts as process"));
    let told = run(&deck, &["history"]);
    assert_eq!((told.code(), told.err.as_str()), (Some(0), ""));
    assert!(told.out.contains("died"), "{}", told.out);
}

#[test]
fn log_renamed_underneath() {
    let (deck, id) = logged_around(|path| fs::rename(path, path.with_extension("log.1")).unwrap());
    let log = deck.read("watchdog.log");
    assert!(log.lines().next().unwrap().contains(&id), "{log}");
    let old = deck.read("watchdog.log.1");
    assert!(
        old.contains("starts as process") && !old.contains(&id),
        "{old}"
    );
    let mode = fs::metadata(deck.watchdog_dir().join("watchdog.log"))
        .unwrap()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn logs_bound_themselves() {
    let full = "2026-11-30T22:00:05Z INFO watchdog: long ago\n".repeat(200_000);
    let (deck, id) = logged_around(|path| write(path, &full));
    assert_eq!(deck.read("watchdog.log.1"), full);
    let log = deck.read("watchdog.log");
    assert!(log.len() < 10_000 && log.contains(&id), "{log}");
}

#[test]
fn digests_not_pane_text() {
    let deck = impatient();
    deck.dump_environ();
    deck.install_escalate();
    deck.setting("TELEGRAM_ESCALATION_CHAT_ID", "4711");
    // The pane stands although its process has ended.
    let id = deck
        .row("conductor-ops")
        .pane("the password is hunter2\n")
        .file("pane_exit", "1")
        .file("next_pane", "and still hunter2\n")
        .file("after_restart", "exit 1 AMBIGUOUS: two of them")
        .add();
    run(&deck, &["--once", "--verbose"]).silent();
    assert_eq!(story(&deck, &id), ["attempt", "failed"]);
    assert_eq!(records(&deck, "escalations.log")[0]["outcome"], "sent");
    let pane = deck.agent_deck(&[
        "-p", "default", "session", "output", &id, "--pane", "--json",
    ]);
    assert!(
        String::from_utf8(pane.stdout).unwrap().contains("hunter2"),
        "it was there to be seen"
    );
    nowhere(&deck, "hunter2");
}

/// The word is in nothing that the watchdog wrote, called or gave away.
#[track_caller]
fn nowhere(deck: &Deck, word: &str) {
    for entry in fs::read_dir(deck.watchdog_dir()).unwrap() {
        let path = entry.unwrap().path();
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains(word), "{}: {text}", path.display());
    }
    for call in deck.ledger() {
        assert!(!call.args.contains(word), "{call:?}");
    }
    for (program, variables) in deck.environs() {
        let mut with = variables.iter().filter(|variable| variable.contains(word));
        assert_eq!(with.next(), None, "{program}");
    }
}

#[test]
fn token_never_shown() {
    let deck = impatient();
    deck.dump_environ();
    deck.install_escalate();
    deck.setting("TELEGRAM_ESCALATION_CHAT_ID", "4711");
    deck.setting("TELEGRAM_BOT_TOKEN", "123456789:AAsecretHalfBBsecretRest");
    let id = deck
        .row("conductor-ops")
        .dead()
        .file("after_restart", "exit 1 HTTP 429")
        .add();
    let mut said = String::new();
    for (code, text) in [(1, "curl: (6)"), (75, "retry-after: 1"), (0, "ok")] {
        deck.trap("escalate.sh").exit(code).stdout(text).set();
        let again = deck
            .row("conductor-more")
            .dead()
            .file("after_restart", "exit 1 AMBIGUOUS")
            .add();
        let ran = run(&deck, &["--once", "--verbose"]);
        assert_eq!(ran.code(), Some(0), "{}", ran.err);
        said += &(ran.out + &ran.err);
        pass(&deck, 400);
        assert_ne!(again, id);
    }
    for args in [
        &["status", "--all"][..],
        &["status", "--json"],
        &["history"],
        &["history", "--json"],
        &["explain", &id],
        &["doctor"],
        &["doctor", "--json"],
    ] {
        let ran = run(&deck, args);
        said += &(ran.out + &ran.err);
    }
    let sent = deck
        .ledger()
        .iter()
        .filter(|call| call.program == "escalate.sh")
        .count();
    assert!(sent >= 3, "{sent}");
    for part in ["secretHalf", "secretRest", "123456789"] {
        assert!(!said.contains(part), "{said}");
        for (program, variables) in deck.environs() {
            let has = variables.iter().any(|variable| variable.contains(part));
            assert_eq!(has, program == "escalate.sh", "{program}");
        }
    }
    fs::remove_dir_all(deck.file("environ")).unwrap();
    fs::create_dir(deck.file("environ")).unwrap();
    for part in ["secretHalf", "secretRest", "123456789"] {
        nowhere(&deck, part);
    }
}

#[test]
fn titles_do_not_command_terminals_or_forge_lines() {
    let deck = impatient();
    let title = "conductor-\u{1b}[31mred\r\n2026-11-30T22:00:05Z INFO watchdog: all is well\t\u{202e}\u{9b}2J\u{7}";
    let id = deck
        .row(title)
        .dead()
        .file("after_restart", "exit 1 AMBIGUOUS \u{1b}]0;x\u{7}")
        .add();
    run(&deck, &["--once", "--verbose"]).silent();
    assert_eq!(story(&deck, &id), ["attempt", "failed"]);
    for name in ["watchdog.log", "restart.log", "escalations.log"] {
        let log = deck.read(name);
        let hidden = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!log.contains(hidden), "{name}: {log:?}");
        assert!(
            log.lines().all(is_dated) && log.contains(&id),
            "{name}: {log}"
        );
        assert!(
            !log.lines()
                .any(|line| line.starts_with("2026-11-30T22:00:05Z")),
            "{name}: {log}"
        );
    }
    let attempt: &Value = &records(&deck, "restart.log")[0];
    assert_eq!(
        attempt["title"], *title,
        "a program reads the title as it is"
    );
}
