//! `watch`, `hold`, `pause` and `clear`: the files they put down, what they say,
//! what the log says, and that a daemon goes by them.
//! Does not know what the flags lead to.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/past.rs"]
mod past;
mod scene;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Stdio};

use agent_deck_watchdog::clock::Time;
use common::Deck;
use past::{once, restarted, run};
use scene::{flag, impatient, turns, watching};
use serde_json::Value;

/// What a command printed, on one line; it went well.
#[track_caller]
fn done(deck: &Deck, args: &[&str]) -> String {
    let run = run(deck, args);
    assert_eq!((run.code(), run.err.as_str()), (Some(0), ""), "{args:?}");
    assert!(run.out.lines().all(|line| line.chars().count() <= 80));
    run.out.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// It did not, for a reason that the user can mend.
#[track_caller]
fn refused(deck: &Deck, args: &[&str], part: &str) {
    let run = run(deck, args);
    assert_eq!((run.code(), run.out.as_str()), (Some(2), ""), "{args:?}");
    assert!(run.err.contains(part), "{}", run.err);
}

fn there(deck: &Deck, flag: &str) -> bool {
    deck.watchdog_dir().join(flag).exists()
}

#[test]
fn words_are_put_down_as_private_files_and_logged_with_who_asked() {
    let deck = impatient();
    deck.setting("USER", "ana");
    let id = deck.row("worker").add();
    let flag = format!("autorestart/{id}");
    let text = done(&deck, &["watch", "worker"]);
    assert!(
        text.contains(&format!("worker {id} is critical now")),
        "{text}"
    );
    assert!(text.contains("No watchdog runs here"), "{text}");
    for path in ["", "autorestart", &flag] {
        let mode = fs::metadata(deck.watchdog_dir().join(path)).unwrap().mode() & 0o777;
        let wanted = if path == flag { 0o600 } else { 0o700 };
        assert_eq!(mode, wanted, "{path}");
    }
    assert!(done(&deck, &["watch", &id, "off"]).contains("is not critical any more"));
    assert!(!there(&deck, &flag));
    // What is not there need not be taken away, nor written down.
    assert!(done(&deck, &["watch", &id, "off"]).contains("was not critical"));
    let log = deck.read("watchdog.log");
    assert!(log.contains(&format!(
        "worker {id}: treated as critical from now on, says ana"
    )));
    assert!(
        log.contains("no longer treated as critical for its flag, says ana"),
        "{log}"
    );
}

#[test]
fn a_hold_and_a_pause_end_when_they_say() {
    let deck = impatient();
    let id = deck.conductor("ops").add();
    let hold = format!("hold/{id}");
    let text = done(&deck, &["hold", "conductor-ops", "2h"]);
    assert!(text.contains("is left alone until 2"), "{text}");
    let soon = Time((common::now() + 86_400) * 1000).rfc3339();
    let first = deck.read(&hold).lines().next().unwrap().to_owned();
    let left = Time::parse_rfc3339(&first)
        .unwrap()
        .since(Time(common::now() * 1000));
    assert!(left.as_secs() > 7000 && left.as_secs() <= 7200, "{left:?}");
    let text = done(&deck, &["pause", &soon]);
    assert!(text.contains(&format!("Paused until {soon}")), "{text}");
    assert!(deck.read("pause").starts_with(&format!("{soon}\n")));
    refused(
        &deck,
        &["pause", "2199-01-01T00:00Z"],
        "more than a year away",
    );
    // Without an end, until it is taken back.
    let text = done(&deck, &["hold", &id]);
    assert!(text.contains("until that is taken back"), "{text}");
    assert!(text.contains("The watchdog is paused until 2"), "{text}");
    assert!(text.contains(&soon), "{text}");
    assert!(Time::parse_rfc3339(deck.read(&hold).lines().next().unwrap()).is_none());
    assert!(done(&deck, &["pause", "off"]).contains("Not paused any more."));
    assert!(done(&deck, &["hold", &id, "off"]).contains("is not held any more"));
    assert!(!there(&deck, &hold) && !there(&deck, "pause"));
    refused(
        &deck,
        &["pause", "2020-01-01T00:00Z"],
        "2020-01-01T00:00:00Z lies in the past",
    );
    refused(&deck, &["hold", &id, "soon"], "\"soon\" cannot be used");
    refused(
        &deck,
        &["hold", "nobody"],
        "no session has the id or title \"nobody\"",
    );
    assert!(!there(&deck, "pause") && !there(&deck, &hold));
}

#[test]
fn what_cannot_be_checked_is_put_down_by_its_full_id() {
    let deck = impatient();
    let id = deck.conductor("ops").add();
    deck.trap("list").exit(1).set();
    let text = done(&deck, &["hold", &id]);
    assert!(text.contains("It could not be checked"), "{text}");
    assert!(there(&deck, &format!("hold/{id}")));
    refused(&deck, &["hold", "conductor-ops"], "cannot be listed");
    deck.no_trap("list");
    // Of a session that is gone the flag can still be taken away.
    deck.remove_row(&id);
    done(&deck, &["hold", &id, "off"]);
    assert!(!there(&deck, &format!("hold/{id}")));
    refused(&deck, &["hold", &id], "no session");
}

#[test]
fn a_daemon_goes_by_them_at_once() {
    let deck = impatient();
    let id = deck.row("worker").dead().add();
    let held = deck.conductor("held").dead().add();
    let mut daemon = watching(&deck);
    // Held before it could be restarted, or restarted already: either is right.
    let text = done(&deck, &["hold", &held]);
    assert!(!text.contains("No watchdog runs"), "{text}");
    done(&deck, &["pause"]);
    turns(&deck, &daemon, 2);
    let before = restarted(&deck);
    let text = done(&deck, &["watch", "worker"]);
    assert!(text.contains("The watchdog is paused"), "{text}");
    turns(&deck, &daemon, 2);
    assert_eq!(restarted(&deck), before);
    done(&deck, &["pause", "off"]);
    deck.wait_for_call(|call| call.is("session restart", &id));
    assert!(daemon.stop().success());
}

#[test]
fn clear_works_beside_a_daemon_and_without_one() {
    let deck = impatient();
    let id = deck
        .conductor("ops")
        .dead()
        .file("after_restart", "exit 1 cannot start")
        .add();
    once(&deck).silent();
    let text = done(&deck, &["clear", &id]);
    assert!(
        text.contains("Noted") || text.contains("are forgotten"),
        "{text}"
    );
    let mut daemon = watching(&deck);
    deck.wait("the request to be taken up", || {
        (!there(&deck, &format!("clear/{id}"))).then_some(())
    });
    let text = done(&deck, &["clear", "conductor-ops"]);
    assert!(text.contains("The failures of conductor-ops"), "{text}");
    assert!(daemon.stop().success());
    let log = deck.read("watchdog.log");
    assert!(
        log.contains("its failures are to be forgotten, says"),
        "{log}"
    );
    assert!(
        log.contains("its failures are forgotten, as asked by the clear file"),
        "{log}"
    );
}

#[test]
fn their_json_says_what_is_in_force() {
    let deck = impatient();
    let id = deck.row("worker").add();
    for (args, key, value) in [
        (&["watch", "worker", "--json"][..], "critical", true),
        (&["hold", "worker", "1h", "--json"], "held", true),
        (&["hold", "worker", "off", "--json"], "held", false),
        (&["pause", "--json"], "paused", true),
        (&["clear", "worker", "--json"], "cleared", false),
    ] {
        let json: Value = serde_json::from_str(&run(&deck, args).out).unwrap();
        assert_eq!(json["format"], 1);
        assert_eq!(json["in_force"][key], value, "{args:?}");
        let session = &json["session"];
        assert!(args[0] == "pause" || session == id.as_str(), "{args:?}");
    }
    flag(&deck, "hold", &id);
    let run = run(&deck, &["hold", "worker", "2x"]);
    assert!(
        run.err
            .contains("usage: agent-deck-watchdog hold <session>"),
        "{}",
        run.err
    );
}

/// Each flag is whole, whoever else writes it at the same time.
#[test]
fn many_may_write_one_flag_at_once() {
    let deck = impatient();
    let soon = Time((common::now() + 86_400) * 1000).rfc3339();
    let start = || {
        let mut command = deck.watchdog(&["pause", &soon]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    for _ in 0..8 {
        let writers: Vec<Child> = (0..4).map(|_| start()).collect();
        for writer in writers {
            let output = writer.wait_with_output().unwrap();
            assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
        }
        assert!(deck.read("pause").starts_with(&format!("{soon}\n")));
    }
    let left = fs::read_dir(deck.watchdog_dir()).unwrap();
    let left = left.filter(|file| {
        file.as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .contains("tmp")
    });
    assert_eq!(left.count(), 0);
}

/// A stop is the user's own word, and no failure.
#[test]
fn clear_does_not_forget_that_a_session_was_stopped() {
    let deck = impatient();
    let id = deck
        .conductor("ops")
        .status("stopped")
        .without("pane")
        .add();
    once(&deck).silent();
    // agent-deck itself may lose a stop.
    deck.set(&id, "printed", "error");
    once(&deck).silent();
    done(&deck, &["clear", &id]);
    once(&deck).silent();
    once(&deck).silent();
    assert_eq!(restarted(&deck), [""; 0]);
}
