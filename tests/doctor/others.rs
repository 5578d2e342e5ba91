//! Other watchdogs: a second one of ours, and agent-deck's Python one. Does not
//! know how they are told apart.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Child, Command, Stdio};

use super::common::Deck;
use super::scene::watching;
use super::{doctor, healthy};

#[test]
fn a_second_watchdog_is_named_whatever_its_folder() {
    let (deck, _) = healthy();
    let mut first = watching(&deck);
    let root = deck.home().join("other root");
    deck.setting("AGENT_DECK_ROOT", root.to_str().unwrap());
    let second = deck.daemon();
    deck.wait("the second one", || {
        root.join("watchdog/lock").exists().then_some(())
    });
    deck.setting("AGENT_DECK_ROOT", "");
    let found = doctor(&deck);
    let (text, mend) = found.only("second watchdog");
    assert!(text.contains("other root/watchdog"), "{text}");
    assert_eq!(mend, format!("kill {}", second.pid()));
    drop(second);
    let second = deck.daemon();
    let found = deck.wait("the second one again", || {
        let found = doctor(&deck);
        (!found.trouble().is_empty()).then_some(found)
    });
    let (text, mend) = found.only("second watchdog");
    assert!(text.contains("waits for the lock"), "{text}");
    assert_eq!(mend, format!("kill {}", second.pid()));
    drop(second);
    assert!(first.stop().success());
}

/// agent-deck's Python watchdog, as far as can be seen from outside.
struct Python(Child);

impl Python {
    fn start(deck: &Deck) -> Python {
        let python = deck.root().join("python3");
        symlink("/bin/sh", &python).unwrap();
        let script = deck.home().join(".agent-deck/watchdog/watchdog.py");
        fs::write(&script, "read -r line\n").unwrap();
        fs::set_permissions(&script, PermissionsExt::from_mode(0o600)).unwrap();
        let mut command = Command::new(python);
        let command = command.arg(script).env_clear().env("HOME", deck.home());
        Python(command.stdin(Stdio::piped()).spawn().unwrap())
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
    let (deck, _) = healthy();
    let python = Python::start(&deck);
    let found = doctor(&deck);
    assert_eq!(
        found.only("python watchdog").1,
        format!("kill {}", python.0.id())
    );
    let unit = ".config/systemd/user/agent-deck-watchdog.service";
    let unit = deck.home_file(
        unit,
        "[Service]\nExecStart=/usr/bin/python3 %h/x/watchdog.py\n",
    );
    let found = doctor(&deck);
    let (_, mend) = found.only("python watchdog");
    assert_eq!(mend, "systemctl --user disable --now agent-deck-watchdog");
    fs::remove_file(unit).unwrap();
    drop(python);
    doctor(&deck).one("python watchdog", "ok");
}
