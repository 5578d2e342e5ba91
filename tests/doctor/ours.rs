//! Our own folder, its files and flags, the settings and the clock. Does not know
//! how any of it is judged.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::common::write;
use super::past::once;
use super::scene::flag;
use super::{doctor, healthy, written_ahead};

#[test]
fn a_folder_that_cannot_be_written_to_is_a_problem() {
    let (deck, _) = healthy();
    let folder = deck.watchdog_dir();
    let root = rustix::process::geteuid().is_root();
    // Rights do not hold root back; other people's folders do.
    if root {
        std::os::unix::fs::chown(&folder, Some(65534), None).unwrap();
    } else {
        fs::set_permissions(&folder, PermissionsExt::from_mode(0o500)).unwrap();
    }
    let found = doctor(&deck);
    let (text, mend) = found.only("folder");
    assert!(text.contains(folder.to_str().unwrap()), "{text}");
    let mended = match root {
        true => "sudo chown -R \"$(id -u)\" ",
        false => "chmod u+rwx ",
    };
    assert_eq!(mend, format!("{mended}{}", folder.display()));
    if !root {
        fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).unwrap();
    }
}

#[test]
fn what_lies_in_the_folders_place_is_named() {
    let (deck, _) = healthy();
    let folder = deck.watchdog_dir();
    fs::remove_dir_all(&folder).unwrap();
    doctor(&deck).one("folder", "ok");
    assert!(!folder.exists());
    fs::write(&folder, "").unwrap();
    let found = doctor(&deck);
    let (_, mend) = found.one("folder", "problem");
    assert_eq!(mend, format!("mv {0} {0}.old", folder.display()));
}

#[test]
fn what_others_may_read_or_write_is_named() {
    let (deck, _) = healthy();
    once(&deck).silent();
    let state = deck.watchdog_dir().join("state.json");
    let rights = |mode| fs::set_permissions(&state, PermissionsExt::from_mode(mode)).unwrap();
    rights(0o644);
    let secrets = deck.home_file(".config/agent-deck-watchdog.env", "");
    let found = doctor(&deck);
    let (_, mend) = found.one("files", "warning");
    let (state, secrets) = (state.display(), secrets.display());
    assert_eq!(mend, format!("chmod 600 {state} {secrets}"));
    rights(0o666);
    assert_eq!(
        doctor(&deck).one("files", "problem").1,
        format!("chmod 600 {state}")
    );
}

#[test]
fn a_lost_memory_is_told_and_left_where_it_is() {
    let (deck, _) = healthy();
    once(&deck).silent();
    let folder = deck.watchdog_dir();
    let state = folder.join("state.json");
    write(&state, "{\"version\":99}");
    write(&folder.join("state.json.broken-1"), "");
    fs::set_permissions(&state, PermissionsExt::from_mode(0o600)).unwrap();
    let found = doctor(&deck);
    let lost: Vec<_> = found
        .0
        .iter()
        .filter(|check| check[0] == "memory")
        .collect();
    assert!(lost[0][2].contains("version 99"), "{}", found.said());
    assert!(lost[1][3].starts_with("rm "), "{}", found.said());
    assert_eq!(found.trouble(), [""; 0]);
    assert_eq!(fs::read(&state).unwrap(), b"{\"version\":99}");
}

#[test]
fn a_clock_that_was_set_back_says_by_how_much() {
    let (deck, _) = healthy();
    once(&deck).silent();
    written_ahead(&deck.watchdog_dir().join("state.json"), 3630);
    let found = doctor(&deck);
    let (text, mend) = found.only("clock");
    assert!(
        text.contains("60 min") && text.contains("state.json"),
        "{text}"
    );
    assert!(mend.starts_with("sudo "), "{mend}");
    written_ahead(&deck.watchdog_dir().join("state.json"), 5);
    assert_eq!(doctor(&deck).trouble(), [""; 0]);
    // A log remembers it when files were touched since.
    let log = deck.watchdog_dir().join("watchdog.log");
    write(&log, "2999-11-30T22:00:05Z INFO x: y\n");
    let found = doctor(&deck);
    assert!(
        found.only("clock").0.contains("watchdog.log"),
        "{}",
        found.said()
    );
}

#[test]
fn every_wrong_setting_is_named_and_the_rest_is_looked_at() {
    let (deck, _) = healthy();
    deck.setting("SAFETY_POLL_S", "0");
    deck.setting("PROCESS_WATCH", "maybe");
    deck.setting("MIN_GLOBAL_RESTART_INTERVAL_S", "5");
    let found = doctor(&deck);
    let said = found.said();
    assert_eq!(found.trouble(), ["settings", "settings"], "{said}");
    for (value, mend) in [
        ("SAFETY_POLL_S=\"0\"", "unset SAFETY_POLL_S"),
        ("PROCESS_WATCH=\"maybe\"", "unset PROCESS_WATCH"),
    ] {
        assert!(said.contains(value) && said.contains(mend), "{said}");
    }
    let (text, _) = found.one("settings", "warning");
    assert!(text.contains("is below 60"), "{text}");
    found.one("sessions", "ok");
}

#[test]
fn the_settings_file_of_the_unit_counts_too() {
    let (deck, _) = healthy();
    deck.setting("TELEGRAM_ESCALATION_CHAT_ID", "");
    let file = deck.home_file(
        ".config/agent-deck-watchdog.env",
        "TELEGRAM_ESCALATION_CHAT_ID=42\nWAITING_PATROL_THRESHOLD_S=x\n",
    );
    fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let found = doctor(&deck);
    let mend = format!(
        "sed -i.bak '/^WAITING_PATROL_THRESHOLD_S=/d' {}",
        file.display()
    );
    assert_eq!(found.only("settings").1, mend);
    found.one("telling", "ok");
}

#[test]
fn flags_that_mean_nobody_are_named() {
    let (deck, id) = healthy();
    flag(&deck, "hold", &id);
    flag(&deck, "autorestart", "1a2b3c4d-1755900000");
    flag(&deck, "hold", "a b");
    flag(&deck, "hold", "child");
    fs::write(deck.watchdog_dir().join("pause"), "").unwrap();
    fs::set_permissions(
        deck.watchdog_dir().join("pause"),
        PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    let found = doctor(&deck);
    let said = found.said();
    assert_eq!(found.trouble(), [""; 0], "{said}");
    assert!(
        found.one("hold", "ok").0.contains("conductor-ops"),
        "{said}"
    );
    assert!(
        found.one("pause", "warning").1.ends_with(" pause off"),
        "{said}"
    );
    assert!(
        found.one("restart", "ok").0.starts_with("off on purpose"),
        "{said}"
    );
    let folder = deck.watchdog_dir();
    for mend in [
        format!("rm {}/autorestart/1a2b3c4d-1755900000", folder.display()),
        format!("rm '{}/hold/a b'", folder.display()),
        format!("&& rm {}/hold/child", folder.display()),
    ] {
        assert!(said.contains(&mend), "{mend} in\n{said}");
    }
    // While a profile cannot be listed nobody knows.
    deck.trap("list").exit(1).set();
    let found = doctor(&deck);
    assert_eq!(found.trouble(), ["sessions"]);
    assert!(!found.said().contains("1a2b3c4d"), "{}", found.said());
}
