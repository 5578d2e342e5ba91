//! The user agent of launchd that starts the watchdog (macOS).
//!
//! The text of the plist is judged as text. This file does not know what launchd
//! makes of other keys.

use std::fmt::Arguments;

use super::super::Found;
use super::super::case::Case;
use super::super::shell::{Ourselves, Typed};
use crate::commands::paper::Light;
use crate::deck::telegram::read;
use crate::host::users::me;

const NAME: &str = "launchd";
/// The plist that `print launchd` is for, below home.
const PLIST: &str = "Library/LaunchAgents/com.agentdeck.watchdog.plist";

/// Commands that install it and start it.
pub fn install() -> String {
    format!("{Ourselves} print launchd >~/{PLIST} && launchctl bootstrap gui/$(id -u) ~/{PLIST}")
}

/// The checks of the plist. False: there is none.
pub fn checks(case: &mut Case) -> bool {
    let found = case.found;
    let home = case.home().to_owned();
    let file = home.join(PLIST);
    let install = install();
    let text = match read(&file) {
        Ok(Some(text)) => text,
        Ok(None) => return false,
        Err(why) => {
            found.problem(NAME, format_args!("{why}"), format_args!("{install}"));
            return true;
        }
    };
    let before = found.count();
    judge(&text, &install, found);
    if let Some(path) = path(&text, &home.to_string_lossy()) {
        let mut environ = case.ours.clone();
        environ.set("PATH", path.as_ref());
        super::fits(case, NAME, "the plist", &environ, &|_, _| install.clone());
    }
    let user = me();
    let target = format!("gui/{user}/com.agentdeck.watchdog");
    if let Ok((1.., _)) = case.ask("launchctl", &["print", &target], &[]) {
        found.warning(
            NAME,
            format_args!("the plist is there and not loaded"),
            format_args!("launchctl bootstrap gui/{user} ~/{PLIST}"),
        );
    }
    if found.count() == before {
        let (path, home) = (&*file, &*home);
        let file = Typed { path, home };
        found.ok(NAME, format_args!("{file} is as it should be"));
    }
    true
}

/// What of a plist cannot stay so.
fn judge(text: &str, mend: &str, found: &Found) {
    let say = |light, sentence: Arguments| {
        found.say(NAME, light, sentence, format_args!("{mend}"));
    };
    if text.contains("watchdog.py") {
        return say(
            Light::Red,
            format_args!("it starts the Python watchdog; two must not watch one deck"),
        );
    }
    if !text.contains("agent-deck-watchdog") {
        say(Light::Red, format_args!("its plist starts no watchdog"));
    }
    if !is_true(text, "AbandonProcessGroup") {
        say(
            Light::Red,
            format_args!(
                "without AbandonProcessGroup a tmux server that a restart started ends with the \
                 watchdog, and all agents in it"
            ),
        );
    }
    if !text.contains("<key>KeepAlive</key>") {
        say(
            Light::Yellow,
            format_args!("without KeepAlive nobody starts it after a crash"),
        );
    }
    if !is_true(text, "RunAtLoad") {
        say(
            Light::Yellow,
            format_args!("without RunAtLoad nobody starts it at login"),
        );
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
    let rest = match text.split_once("PATH=") {
        Some((_, rest)) => rest.trim_start_matches(['"', '\'']),
        None => {
            let (_, rest) = text.split_once("<key>PATH</key>")?;
            rest.trim_start().strip_prefix("<string>")?
        }
    };
    let end = rest.find(['"', '\'', ';', '<', ' ']).unwrap_or(rest.len());
    Some(rest[..end].replace("$HOME", home))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = include_str!("../../../../contrib/com.agentdeck.watchdog.plist");

    fn said(text: &str) -> Vec<String> {
        let found = Found::default();
        judge(text, "mend", &found);
        found
            .0
            .into_inner()
            .into_iter()
            .map(|check| check.sentence)
            .collect()
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
