//! Acceptance scenarios that end with a question to `doctor`.
//! Does not know how anything is found out.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::common::write;
use super::scene::{flag, no_flag};
use super::{doctor, examined, healthy};

/// For each capability: on, switched off on purpose, or impossible and why.
#[test]
fn installed_is_not_enabled() {
    let (deck, _) = healthy();
    let found = doctor(&deck);
    for name in ["restart", "pollers", "patrol"] {
        let (text, _) = found.one(name, "ok");
        assert!(text.starts_with("on; "), "{name}: {text}");
    }
    found.one("fast path", "ok");
    found.one("telling", "ok");
    // Nothing starts it: that is what installing alone leaves open.
    assert!(
        found
            .said()
            .contains("started by | warning | nothing starts it")
    );
    // On purpose.
    deck.setting("PROCESS_WATCH", "off");
    flag(&deck, "", "pause");
    let found = doctor(&deck);
    for (name, words) in [
        ("restart", "off on purpose"),
        ("patrol", "off on purpose"),
        ("fast path", "off"),
    ] {
        let said = found.said();
        let line = said
            .lines()
            .find(|line| line.starts_with(&format!("{name} | ")));
        assert!(
            line.is_some_and(|line| line.contains(words)),
            "{name}: {said}"
        );
    }
    no_flag(&deck, "", "pause");
    // Impossible, and why.
    deck.setting("AGENT_DECK_PROFILE", "nowhere");
    let found = doctor(&deck);
    for name in ["restart", "patrol"] {
        let (text, _) = found.one(name, "problem");
        assert_eq!(
            text,
            "impossible as long as there is a problem with profile"
        );
    }
}

/// Logging out would end the watchdog with the sessions: that is a matter of
/// lingering.
#[test]
fn logout_and_login() {
    let (deck, _) = healthy();
    let unit = ".config/systemd/user/agent-deck-watchdog.service";
    let printed = deck.run(&["print", "systemd"]);
    deck.home_file(unit, std::str::from_utf8(&printed.stdout).unwrap());
    let found = doctor(&deck);
    let line = found.0.iter().find(|check| check[0] == "linger");
    if !Path::new("/run/systemd/system").is_dir() {
        eprintln!("without systemd nothing lingers, and nothing is said of it");
        assert!(line.is_none());
        return;
    }
    let [_, result, text, mend] = line.unwrap();
    match result.as_str() {
        "warning" => assert_eq!(mend, "loginctl enable-linger"),
        _ => assert!(text.contains("while nobody is logged in"), "{text}"),
    }
}

/// What keeps a message from going out is said by the way that it takes.
#[test]
fn slow_name_lookup() {
    let (deck, _) = healthy();
    let script = deck.watchdog_dir().join("escalate.sh");
    let reason = "curl: (6) Could not resolve host";
    write(
        &script,
        format!("#!/bin/sh\necho '{reason}' >&2\nexit 75\n"),
    );
    fs::set_permissions(&script, PermissionsExt::from_mode(0o700)).unwrap();
    let found = examined(&deck, &["doctor", "--send-test", "--json"]);
    let (text, _) = found.only("test message");
    assert!(text.contains(reason), "{text}");
}
