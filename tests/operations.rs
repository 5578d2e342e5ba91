//! The watchdog in odd surroundings: switched off, with nothing to do, beside
//! the program that it replaces. The real binary on the stand-in deck.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/past.rs"]
mod past;
mod scene;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use common::Deck;
use past::{count, once, restarted};
use scene::{acts, flag, impatient, revival, turns, watching};

#[test]
fn every_exit_has_a_reason() {
    // By the exit code and one line.
    let deck = impatient();
    let mut first = watching(&deck);
    let taken = once(&deck);
    assert_eq!(
        (taken.code(), taken.out.as_str(), taken.err.as_str()),
        (Some(4), "", "")
    );
    assert_eq!(
        count(
            &deck,
            "watchdog.log",
            "this --once run leaves: the lock is held by the daemon"
        ),
        1
    );
    assert!(first.stop().success());

    deck.setting("HOME", "no/where");
    let homeless = once(&deck);
    assert_eq!(homeless.code(), Some(2));
    assert!(
        homeless.err.contains("HOME=no/where cannot be used"),
        "{}",
        homeless.err
    );
    assert_eq!(
        (homeless.err.lines().count(), homeless.out.as_str()),
        (1, "")
    );

    does_nothing();
}

/// It stays and does nothing: by one line.
fn does_nothing() {
    type Setup = fn(&Deck);
    let setups: [(&str, Setup); 3] = [
        (
            "watchdog: paused: it watches and tells, and acts on nothing",
            |deck| flag(deck, "", "pause"),
        ),
        (
            "watchdog: no session is critical, so nothing is restarted",
            |_| (),
        ),
        (
            "profile night: not watched: agent-deck has no such profile",
            |deck| {
                deck.setting("AGENT_DECK_PROFILE", "night");
            },
        ),
    ];
    for (line, setup) in setups {
        let deck = impatient();
        deck.row("plain").add();
        if line.contains("paused") {
            deck.row("conductor-ops").add();
        }
        setup(&deck);
        let mut daemon = watching(&deck);
        daemon.wait_for_line("watchdog.log", line);
        if !line.contains("night") {
            turns(&deck, &daemon, 3);
        }
        assert!(daemon.stop().success());
        assert_eq!(
            count(&deck, "watchdog.log", line),
            1,
            "{}",
            deck.read("watchdog.log")
        );
    }
}

/// agent-deck's Python watchdog, as far as can be seen from outside.
struct Python(Child);

impl Python {
    fn start(deck: &Deck) -> Python {
        // A script of that name; what it is run by only has to be called so.
        let python = deck.root().join("python3");
        std::os::unix::fs::symlink("/bin/sh", &python).unwrap();
        let script = deck.home().join(".agent-deck/watchdog/watchdog.py");
        fs::create_dir_all(script.parent().unwrap()).unwrap();
        fs::set_permissions(script.parent().unwrap(), PermissionsExt::from_mode(0o700)).unwrap();
        fs::write(&script, "read -r line\n").unwrap();
        let mut command = Command::new(python);
        command
            .arg(script)
            .env_clear()
            .env("HOME", deck.home())
            .stdin(Stdio::piped());
        Python(command.spawn().unwrap())
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn python_watchdog_still_there() {
    let deck = impatient();
    let id = deck.row("conductor-ops").dead().add();
    let python = Python::start(&deck);
    let mut daemon = watching(&deck);
    turns(&deck, &daemon, 3);
    let line = "agent-deck's Python watchdog runs too (process ";
    assert_eq!(
        count(&deck, "watchdog.log", line),
        1,
        "{}",
        deck.read("watchdog.log")
    );
    assert_eq!(restarted(&deck), [""; 0]);
    drop(python);
    deck.wait_for_call(|call| call.is("session restart", &id));
    assert!(daemon.stop().success());
}

#[test]
fn no_helper_tools_needed() {
    let deck = impatient();
    for tool in ["ps", "curl"] {
        deck.uninstall(tool);
    }
    deck.start_tmux();
    let id = deck.row("conductor-ops").dead().add();
    once(&deck).silent();
    assert_eq!(acts(&deck), revival(&id));
}
