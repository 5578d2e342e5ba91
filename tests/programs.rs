//! Scenarios: agent-deck as a program that is missing, hangs, prints anything,
//! or leaves things behind; and what it is given. The real binary on the
//! stand-in deck; the whole ledger is compared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod scene;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use common::{Deck, recording, wait_for};
use scene::{
    POLL, acts, count, impatient, left_behind, pane, polls, records, restart, revival, show, story,
    turns, watching,
};

/// Nothing.
const NONE: [&str; 0] = [];

#[test]
fn grandchild_keeps_the_pipe_open() {
    let deck = impatient();
    let id = deck.row("conductor-ops").dead().add();
    for command in ["list", "show", "output", "restart"] {
        deck.trap(command).with("grandchild", "").set();
    }
    let daemon = watching(&deck);
    turns(&deck, &daemon, 3);
    assert_eq!(acts(&deck), revival(&id));
    assert_eq!(story(&deck, &id)[..2], ["attempt", "accepted"]);
    if cfg!(target_os = "linux") {
        // What a restart leaves behind is not ended: it may be an agent.
        deck.no_trap("list");
        turns(&deck, &daemon, 1);
        assert_eq!(left_behind(&deck), 1);
    }
}

/// Takes agent-deck away, in one of the ways in which it can be missing.
fn break_program(deck: &Deck, how: &str) {
    let (program, aside) = (deck.file("bin/agent-deck"), deck.file("bin/aside"));
    match how {
        "missing" => std::fs::rename(program, aside).unwrap(),
        "not executable" => {
            std::fs::rename(&program, aside).unwrap();
            std::fs::write(&program, "").unwrap();
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o600)).unwrap();
        }
        "exit 127" => deck.trap("list").exit(127).set(),
        other => panic!("{other}"),
    }
}

fn mend_program(deck: &Deck, how: &str) {
    match how {
        "exit 127" => deck.no_trap("list"),
        _ => std::fs::rename(deck.file("bin/aside"), deck.file("bin/agent-deck")).unwrap(),
    }
}

#[test]
fn no_program_no_verdict() {
    let ways = ["missing", "not executable", "exit 127"];
    let decks = ways.map(|_| impatient());
    let ids = decks.each_ref().map(|deck| deck.row("conductor-ops").add());
    let mut daemons = decks.each_ref().map(watching);
    for ((deck, id), how) in decks.iter().zip(&ids).zip(ways) {
        break_program(deck, how);
        deck.unset(id, "pane");
    }
    for deck in &decks {
        deck.wait_for_line(
            "escalations.log",
            "no sessions of profile default can be listed",
        );
    }
    for ((deck, id), how) in decks.iter().zip(&ids).zip(ways) {
        assert_eq!((acts(deck), story(deck, id)), (vec![], vec![]), "{how}");
        assert_eq!(count(deck, "watchdog.log", &[id, "reads dead"]), 0);
        assert_eq!(
            count(deck, "watchdog.log", &["no list, nothing is done"]),
            1
        );
        mend_program(deck, how);
    }
    for ((deck, id), daemon) in decks.iter().zip(&ids).zip(&mut daemons) {
        deck.wait("a restart", || (acts(deck) == revival(id)).then_some(()));
        assert_eq!(
            count(deck, "watchdog.log", &["sessions are listed again, after"]),
            1
        );
        assert!(daemon.stop().success());
        // Told once, and that it is over.
        let levels: Vec<_> = records(deck, "escalations.log")
            .into_iter()
            .map(|record| record["severity"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(levels, ["critical", "info"]);
    }
}

#[test]
fn boot_before_the_cli() {
    let deck = impatient();
    let id = deck.row("conductor-ops").dead().add();
    let profile = deck.file("profiles/default");
    let later = deck.root().join("later");
    std::fs::rename(&profile, &later).unwrap();
    break_program(&deck, "missing");
    let daemon = watching(&deck);
    deck.wait_for_line("escalations.log", "is not an executable file");
    assert_eq!(deck.ledger(), []);
    let said = |words: &[&str]| count(&deck, "watchdog.log", words);
    assert_eq!(said(&["starts as process", "is not an executable file"]), 1);
    assert_eq!(said(&["nothing is done", "is not an executable file"]), 1);
    // Without the profile, which must not be called into being.
    mend_program(&deck, "missing");
    let line = daemon.wait_for_line("watchdog.log", "not watched");
    assert!(
        line.contains("profile default") && line.contains("waiting for it"),
        "{line}"
    );
    assert_eq!((polls(&deck), profile.exists()), (0, false));
    std::fs::rename(&later, &profile).unwrap();
    deck.wait("a restart", || (acts(&deck) == revival(&id)).then_some(()));
    turns(&deck, &daemon, 1);
    assert_eq!(count(&deck, "watchdog.log", &["not watched"]), 1);
}

#[test]
fn clean_environment_for_the_cli() {
    let deck = impatient();
    deck.dump_environ();
    deck.install_escalate();
    let private = [
        "TMUX",
        "TMUX_PANE",
        "AGENTDECK_PROFILE",
        "AGENTDECK_INSTANCE_ID",
        "CLAUDE_CONFIG_DIR",
        "CLAUDECODE",
        "TELEGRAM_STATE_DIR",
        "TELEGRAM_BOT_TOKEN",
        "INVOCATION_ID",
        "JOURNAL_STREAM",
        "WATCHDOG_USEC",
        "WATCHDOG_PID",
    ];
    private.iter().for_each(|name| deck.setting(name, "leaked"));
    deck.setting("TELEGRAM_ESCALATION_CHAT_ID", "42");
    let id = deck.row("conductor-ops").dead().add();
    deck.trap("restart")
        .stdout(recording("show-ambiguous.json"))
        .exit(1)
        .set();
    let daemon = watching(&deck);
    deck.wait_for_call(|call| call.program == "escalate.sh");
    turns(&deck, &daemon, 1);
    let acts = acts(&deck);
    assert_eq!(acts[..3], revival(&id));
    assert_eq!(acts.len(), 4);
    for call in deck
        .ledger()
        .iter()
        .filter(|call| call.program == "agent-deck")
    {
        let names_no_profile = ["version", "profile list --json"].contains(&call.args.as_str());
        assert!(
            names_no_profile || call.args.starts_with("-p default "),
            "{call:?}"
        );
    }
    let mut names = private.to_vec();
    names.push("NOTIFY_SOCKET");
    let path = format!("PATH={}", deck.file("bin").display());
    let home = format!("HOME={}", deck.home().display());
    let leaks = |variables: &[String]| {
        let name = |variable: &String| variable.split_once('=').unwrap().0.to_owned();
        let found = variables.iter().map(name);
        found
            .filter(|name| names.contains(&name.as_str()))
            .collect::<Vec<_>>()
    };
    let environs = deck.environs();
    for (program, variables) in &environs {
        let allowed: &[&str] = match program.as_str() {
            // The token, or the folder where it is.
            "escalate.sh" => &["TELEGRAM_BOT_TOKEN", "TELEGRAM_STATE_DIR"],
            _ => &[],
        };
        assert_eq!(leaks(variables), allowed, "{program}");
        assert!(variables.contains(&home), "{program} {variables:?}");
        let has_path = variables.iter().any(|variable| variable.starts_with(&path));
        assert!(has_path, "{program} {variables:?}");
    }
    assert!(environs.iter().any(|(program, _)| program == "escalate.sh"));
}

#[test]
fn bare_path() {
    let usual = ["/usr/local/bin", "/usr/bin", "/bin", "/opt/homebrew/bin"];
    if usual
        .iter()
        .any(|folder| Path::new(folder).join("agent-deck").exists())
    {
        eprintln!("skipped: this machine has an agent-deck of its own");
        return;
    }
    for path in [None, Some(""), Some("/usr/bin:/bin")] {
        let deck = impatient();
        deck.dump_environ();
        let id = deck.row("conductor-ops").dead().add();
        let once = || {
            let mut watchdog = deck.watchdog(&["--once", "--verbose"]);
            watchdog.env_remove("AGENT_DECK_BIN").env_remove("PATH");
            if let Some(path) = path {
                watchdog.env("PATH", path);
            }
            watchdog.status().unwrap().code()
        };
        let local = deck.home().join(".local/bin/agent-deck");
        assert_eq!(once(), Some(5));
        for place in [
            usual[0],
            usual[3],
            local.parent().unwrap().to_str().unwrap(),
        ] {
            let place = format!("{place}/agent-deck");
            assert_eq!(
                count(&deck, "watchdog.log", &["starts", &place]),
                1,
                "{path:?}"
            );
        }
        let program = deck.file("bin/agent-deck");
        install_script(&local, &format!("exec '{}' \"$@\"", program.display()));
        assert_eq!(once(), Some(0));
        assert_eq!(acts(&deck), revival(&id), "{path:?}");
        // Which finds tmux, too.
        for (_, variables) in deck.environs() {
            let path = variables
                .iter()
                .find_map(|variable| variable.strip_prefix("PATH="));
            let folders: Vec<&str> = path.unwrap().split(':').collect();
            assert!(
                folders.contains(&"/usr/bin") && folders.contains(&"/bin"),
                "{folders:?}"
            );
        }
    }
}

/// A shell script that can be run.
fn install_script(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("#!/bin/sh\n[ \"$1\" = probe ] || {text}\n")).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o700)).unwrap();
    // Another test's child, forked at the wrong moment, may have it open.
    wait_for("the script", || {
        Command::new(path).arg("probe").status().ok()
    });
}

#[test]
fn any_bytes() {
    let deck = impatient();
    // A terminal that stands although its process has ended: two looks at these
    // bytes have to agree.
    let screen = b"\xff\xfe half \xe2\x96 \x1b[31m\x1b]0;x\x07 \x00 \xed\xa0\x80\n";
    let stands = deck
        .row("conductor-a\u{1b}[31m\u{7}\u{202e}")
        .file("pane_exit", "1")
        .pane(screen)
        .add();
    let daemon = watching(&deck);
    deck.wait("a restart", || {
        (acts(&deck) == revival(&stands)).then_some(())
    });
    turns(&deck, &daemon, 1);
    // Answers that are no text, or no JSON, or not all of it.
    let other = deck.row("conductor-b").dead().add();
    let answers: [&[u8]; 4] = [
        b"\xff\xfe\x00",
        b"[{\"id\":\"1a2b3c4d-1755900000\",\"title\":\"\\ud800\",\"status\":\"error\"}]",
        b"[{\"id\":\"\\u0000\"},{\"id\":7},[],null",
        b"\x1b[2J{\"success\":false,\"error\":\"\xe2\x96\"}",
    ];
    for answer in answers {
        for command in ["show", "output", "list"] {
            deck.trap(command).stdout(answer).set();
            turns(&deck, &daemon, 2);
        }
        deck.no_trap("list");
    }
    for command in ["show", "output"] {
        deck.no_trap(command);
    }
    deck.trap("restart")
        .stdout(b"\xff{\"success\":true")
        .exit(1)
        .times(1)
        .set();
    deck.wait_for_call(|call| call.is("session restart", &other));
    turns(&deck, &daemon, 2);
    let acts = acts(&deck);
    let changing: Vec<_> = acts.iter().filter(|act| act.contains("restart")).collect();
    assert_eq!(changing, [&restart(&stands), &restart(&other)]);
    let looks = [&stands, &other].map(|id| [show(id), pane(id)]).concat();
    assert!(
        acts.iter()
            .all(|act| looks.contains(act) || changing.contains(&act)),
        "{acts:?}"
    );
    for log in ["watchdog.log", "restart.log", "escalations.log"] {
        let text =
            String::from_utf8(std::fs::read(deck.watchdog_dir().join(log)).unwrap_or_default());
        let text = text.unwrap();
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
        assert!(!text.contains("half"), "the screen is in {log}");
    }
}

#[test]
fn healthy_tick_is_cheap() {
    let deck = impatient();
    for n in 0..10 {
        let title = if n < 3 { "conductor-x" } else { "worker" };
        deck.row(title).status(["running", "idle"][n % 2]).add();
    }
    let begin = std::time::Instant::now();
    let mut daemon = watching(&deck);
    let lines = deck.read("watchdog.log");
    deck.wait("five polls", || (polls(&deck) == 5).then_some(()));
    assert!(daemon.stop().success());
    let calls: Vec<String> = deck.ledger().into_iter().map(|call| call.args).collect();
    assert_eq!(calls[..2], ["version", "profile list --json"]);
    assert!(calls[2..].iter().all(|args| args == POLL), "{calls:?}");
    // One poll a second; the first one came at once.
    let seconds = begin.elapsed().as_secs();
    assert!(
        calls.len() as u64 - 2 <= seconds + 2,
        "{} in {seconds} s",
        calls.len()
    );
    let end = deck.read("watchdog.log");
    let news: Vec<&str> = end.strip_prefix(&lines).unwrap().lines().collect();
    assert_eq!(news.len(), 1, "{news:?}");
    assert!(news[0].ends_with("INFO watchdog: ends, as a signal asked"));
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert_eq!(deck.read("restart.log") + &deck.read("escalations.log"), "");
    assert_eq!(daemon.said(), (String::new(), String::new()));
    assert_eq!(acts(&deck), NONE);
}
