//! The way to a person: script, curl, token, and a message to try it. Does not
//! know what is sent.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::common::{Deck, write};
use super::{doctor, examined, healthy};

/// The script that we ship, with a bot.
fn shipped(deck: &Deck) -> PathBuf {
    let script = deck.watchdog_dir().join("escalate.sh");
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/escalate.sh");
    write(&script, fs::read(ours).unwrap());
    fs::set_permissions(&script, PermissionsExt::from_mode(0o700)).unwrap();
    script
}

#[test]
fn curl_and_a_token_are_needed_to_tell() {
    let (deck, _) = healthy();
    shipped(&deck);
    let found = doctor(&deck);
    let (text, mend) = found.only("bot token");
    assert!(text.contains(".claude/channels/telegram/.env"), "{text}");
    assert!(
        mend.contains("read -rs") && mend.contains("umask 077"),
        "{mend}"
    );
    let secret = "123456:AAH-secret";
    deck.home_file(
        ".claude/channels/telegram/.env",
        &format!("TELEGRAM_BOT_TOKEN={secret}\n"),
    );
    let found = doctor(&deck);
    assert_eq!(found.trouble(), [""; 0]);
    assert!(
        found
            .one("bot token", "warning")
            .1
            .starts_with("chmod 600 ")
    );
    assert!(!found.said().contains("AAH"), "{}", found.said());
    deck.setting("TELEGRAM_BOT_TOKEN", "secret");
    let found = doctor(&deck);
    assert_eq!(found.only("bot token").1, "unset TELEGRAM_BOT_TOKEN");
    assert!(!found.said().contains("=secret"), "{}", found.said());
    deck.setting("TELEGRAM_BOT_TOKEN", secret);
    deck.uninstall("curl");
    let found = doctor(&deck);
    let usual = ["/usr/local/bin/curl", "/usr/bin/curl", "/bin/curl"];
    if usual.iter().any(|curl| Path::new(curl).exists()) {
        assert_eq!(found.trouble(), [""; 0], "{}", found.said());
    } else {
        assert!(found.only("curl").1.ends_with(" curl"), "{}", found.said());
    }
}

#[test]
fn a_script_that_is_missing_is_made_by_the_mend() {
    let (deck, _) = healthy();
    let script = deck.watchdog_dir().join("escalate.sh");
    fs::set_permissions(&script, PermissionsExt::from_mode(0o600)).unwrap();
    let mend = format!("chmod 700 {}", script.display());
    assert_eq!(doctor(&deck).only("escalate.sh").1, mend);
    fs::remove_file(&script).unwrap();
    let us = env!("CARGO_BIN_EXE_agent-deck-watchdog");
    let (us, script) = (Path::new(us).display(), script.display());
    let mend = format!("{us} print escalate > {script} && chmod 700 {script}");
    assert_eq!(doctor(&deck).only("escalate.sh").1, mend);
    // Nobody asked to be told.
    deck.setting("TELEGRAM_ESCALATION_CHAT_ID", "");
    let found = doctor(&deck);
    assert_eq!(found.trouble(), [""; 0]);
    found.one("chat", "warning");
}

#[test]
fn a_message_is_sent_only_when_asked_for() {
    let (deck, _) = healthy();
    doctor(&deck);
    let sent = |deck: &Deck| {
        let calls = deck.ledger().into_iter();
        calls.filter(|call| call.program == "escalate.sh").count()
    };
    assert_eq!(sent(&deck), 0);
    let args = ["doctor", "--send-test", "--json"];
    examined(&deck, &args).one("test message", "ok");
    assert_eq!(sent(&deck), 1);
    let script = "#!/bin/sh\necho curl: no such host >&2\nexit 75\n";
    write(&deck.watchdog_dir().join("escalate.sh"), script);
    let rights = PermissionsExt::from_mode(0o700);
    fs::set_permissions(deck.watchdog_dir().join("escalate.sh"), rights).unwrap();
    let found = examined(&deck, &args);
    let (text, _) = found.only("test message");
    assert!(
        text.contains("75") && text.contains("no such host"),
        "{text}"
    );
}
