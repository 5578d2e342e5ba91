//! The user agent of launchd that starts the watchdog (macOS).
//!
//! The text of the plist is judged as text. This file does not know what launchd
//! makes of other keys.

use super::super::around::{Around, ask, typed};
use super::super::{Check, ok, problem, warning};
use crate::commands::desk::Desk;
use crate::deck::telegram::read;

const NAME: &str = "launchd";
/// The plist that `print launchd` is for, below home.
const PLIST: &str = "Library/LaunchAgents/com.agentdeck.watchdog.plist";

/// Commands that install it and start it.
pub fn install(exe: &str) -> String {
    format!("{exe} print launchd >~/{PLIST} && launchctl bootstrap gui/$(id -u) ~/{PLIST}")
}

/// The checks of the plist. False: there is none.
pub fn checks(desk: &mut Desk, around: &Around, found: &mut Vec<Check>) -> bool {
    let home = desk.machine.settings.home.clone();
    let file = home.join(PLIST);
    let exe = super::program(&home);
    let text = match read(&file) {
        Ok(Some(text)) => text,
        Ok(None) => return false,
        Err(why) => {
            found.push(problem(NAME, why, install(&exe)));
            return true;
        }
    };
    let before = found.len();
    judge(&text, &install(&exe), found);
    if let Some(path) = path(&text, &home.to_string_lossy()) {
        let mut seen = around.ours.clone();
        seen.set("PATH", &path);
        let set = |_: &str, _: &str| install(&exe);
        super::fits(NAME, "the plist", &seen, &home, around, &set, found);
    }
    let user = rustix::process::geteuid().as_raw();
    let target = format!("gui/{user}/com.agentdeck.watchdog");
    if let Ok((code, _)) = ask(desk, "launchctl", &["print", &target], &[])
        && code != 0
    {
        let mend = format!("launchctl bootstrap gui/{user} ~/{PLIST}");
        found.push(warning(NAME, "the plist is there and not loaded", mend));
    }
    if found.len() == before {
        let sentence = format!("{} is as it should be", typed(&file, &home));
        found.push(ok(NAME, sentence));
    }
    true
}

/// What of a plist cannot stay so.
fn judge(text: &str, mend: &str, found: &mut Vec<Check>) {
    if text.contains("watchdog.py") {
        let sentence = "it starts the Python watchdog; two must not watch one deck";
        found.push(problem(NAME, sentence, mend));
        return;
    }
    if !text.contains("agent-deck-watchdog") {
        found.push(problem(NAME, "its plist starts no watchdog", mend));
    }
    if !is_true(text, "AbandonProcessGroup") {
        let sentence = "without AbandonProcessGroup a tmux server that a restart started ends with \
                        the watchdog, and all agents in it";
        found.push(problem(NAME, sentence, mend));
    }
    if !text.contains("<key>KeepAlive</key>") {
        found.push(warning(
            NAME,
            "without KeepAlive nobody starts it after a crash",
            mend,
        ));
    }
    if !is_true(text, "RunAtLoad") {
        found.push(warning(
            NAME,
            "without RunAtLoad nobody starts it at login",
            mend,
        ));
    }
}

/// Whether a key is set to true.
fn is_true(text: &str, key: &str) -> bool {
    let key = format!("<key>{key}</key>");
    let rest = text.split_once(&key).map(|(_, rest)| rest.trim_start());
    rest.is_some_and(|rest| rest.starts_with("<true"))
}

/// The PATH that a shell in it, or its variables, set.
fn path(text: &str, home: &str) -> Option<String> {
    let set = text
        .split_once("PATH=")
        .map(|(_, rest)| rest.trim_start_matches(['"', '\'']));
    let key = || {
        let (_, rest) = text.split_once("<key>PATH</key>")?;
        rest.trim_start().strip_prefix("<string>")
    };
    let rest = set.or_else(key)?;
    let end = rest.find(['"', '\'', ';', '<', ' ']).unwrap_or(rest.len());
    Some(rest[..end].replace("$HOME", home))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = include_str!("../../../../contrib/com.agentdeck.watchdog.plist");

    fn said(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        judge(text, "mend", &mut found);
        found.into_iter().map(|check| check.sentence).collect()
    }

    #[test]
    fn the_printed_plist_is_as_it_should_be() {
        assert_eq!(said(OURS), [""; 0]);
        let path = path(OURS, "/Users/u").unwrap();
        assert!(
            path.starts_with("/Users/u/.local/bin:/opt/homebrew/bin:"),
            "{path}"
        );
        assert!(path.ends_with(":/usr/sbin:/sbin"), "{path}");
    }

    #[test]
    fn each_key_that_lacks_is_named() {
        for (from, to, word) in [
            (
                "<key>AbandonProcessGroup</key>",
                "<key>X</key>",
                "AbandonProcessGroup",
            ),
            ("<key>KeepAlive</key>", "<key>X</key>", "KeepAlive"),
            (
                "<key>RunAtLoad</key>\n  <true/>",
                "<key>RunAtLoad</key><false/>",
                "RunAtLoad",
            ),
            ("agent-deck-watchdog", "python3 watchdog.py #", "Python"),
        ] {
            let found = said(&OURS.replace(from, to));
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains(word), "{found:?}");
        }
        assert_eq!(said("garbage").len(), 4);
    }

    #[test]
    fn path_may_stand_among_the_variables() {
        let text = "<key>PATH</key>\n  <string>/a:/b</string>";
        assert_eq!(path(text, "/h").unwrap(), "/a:/b");
        assert_eq!(path("garbage", "/h"), None);
    }
}
