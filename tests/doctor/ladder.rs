//! The user's triage program, and the two opt-ins to stop children. Does not know
//! when either is due.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::common::write;
use super::scene::flag;
use super::{doctor, healthy};

#[test]
fn a_triage_program_that_cannot_be_run_is_a_problem() {
    let (deck, _) = healthy();
    let program = deck.home().join("my triage");
    let (shown, name) = (program.display(), format!("'{}'", program.display()));
    let found = doctor(&deck);
    assert_eq!(found.one("triage", "ok").0, "off, TRIAGE_CMD is not set");
    deck.setting("TRIAGE_CMD", program.to_str().unwrap());
    let us = Path::new(env!("CARGO_BIN_EXE_agent-deck-watchdog")).display();
    let found = doctor(&deck);
    let (text, mend) = found.only("triage");
    assert!(text.contains(&format!("{shown} is not there")), "{text}");
    let wanted = format!("{us} print triage > {name} && chmod 700 {name}");
    assert_eq!(mend, wanted);
    write(&program, "#!/bin/sh\n");
    for (mode, sentence, wanted) in [
        (0o600, "is not executable", format!("chmod 700 {name}")),
        (0o722, "others may change", format!("chmod go-w {name}")),
    ] {
        fs::set_permissions(&program, PermissionsExt::from_mode(mode)).unwrap();
        let found = doctor(&deck);
        let (text, mend) = found.only("triage");
        assert!(text.contains(sentence), "{text}");
        assert_eq!(mend, wanted);
    }
    fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
    let found = doctor(&deck);
    assert_eq!(found.trouble(), [""; 0]);
    assert_eq!(found.one("triage", "ok").0, format!("on, through {shown}"));
    fs::remove_file(&program).unwrap();
    fs::create_dir(&program).unwrap();
    let found = doctor(&deck);
    let (text, mend) = found.only("triage");
    assert!(text.contains("is a folder"), "{text}");
    assert_eq!(mend, "unset TRIAGE_CMD");
}

#[test]
fn one_opt_in_without_the_other_is_a_warning() {
    let (deck, id) = healthy();
    doctor(&deck).one("autostop", "ok");
    deck.setting("WAITING_PATROL_TERMINATE", "1");
    let found = doctor(&deck);
    let (text, mend) = found.one("autostop", "warning");
    assert!(text.contains("stops nobody"), "{text}");
    assert_eq!(mend, "unset WAITING_PATROL_TERMINATE");
    flag(&deck, "autostop", &id);
    let found = doctor(&deck);
    assert!(found.one("autostop", "ok").0.starts_with("on, "));
    deck.setting("WAITING_PATROL_TERMINATE", "");
    let found = doctor(&deck);
    let (text, mend) = found.one("autostop", "warning");
    assert!(text.contains("WAITING_PATROL_TERMINATE is not 1"), "{text}");
    assert_eq!(mend, "export WAITING_PATROL_TERMINATE=1");
    assert_eq!(found.trouble(), [""; 0]);
}
