//! The way to a person: `escalate.sh`, the chat, curl and a bot's token; and a
//! message to try it, when that is asked for.
//!
//! Of the token only whether there is one is known here; it is never shown. What
//! belongs to the script that we ship is checked only where that lies there.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Case, quoted, tmux};
use crate::deck::telegram;
use crate::host::exec::{self, Call, End, USUAL_PLACES};
use crate::host::folder::read_small;
use crate::machine::bin::{is_program, on_path};
use crate::machine::escalation::{DEADLINE, TRY_AGAIN};

const CHAT: &str = "TELEGRAM_ESCALATION_CHAT_ID";
const TOKEN: &str = "TELEGRAM_BOT_TOKEN";
/// Longest script and other file that is read.
const FILE_MOST: u64 = 256 << 10;
/// How much of what the script complains is shown.
const COMPLAINT: usize = 200;
/// A token's number has so many digits at least, and its secret so many letters.
const TOKEN_LEAST: (usize, usize) = (6, 20);

/// All of it.
pub fn checks(case: &mut Case, send_test: bool) {
    let script = case.folder().join("escalate.sh");
    let chat = case.value(CHAT);
    let begun = case.checks.len();
    let usable = usable(case, &script, chat.is_some());
    if chat.is_none() {
        let sentence = format!(
            "{CHAT} is not set: what is to be told is only written down; the number of a chat belongs there"
        );
        let guess = allowed(&plugin_folder(case)).unwrap_or("123456789".to_owned());
        let mend = case.set(CHAT, &guess);
        case.warning("chat", sentence, mend);
    }
    if usable && is_shipped(&script) {
        shipped(case);
    }
    let trouble = case.checks[begun..]
        .iter()
        .any(|check| !check.mend.is_empty());
    if !trouble {
        let how = if send_test {
            ""
        } else {
            "; --send-test tries it"
        };
        let sentence = format!("on, through {}{how}", script.display());
        case.ok("telling", sentence);
    }
    if send_test {
        test_message(case, &script, usable && chat.is_some());
    }
}

/// Whether the script can be run. Without a chat it is no problem that it cannot.
fn usable(case: &mut Case, script: &Path, wanted: bool) -> bool {
    let (name, shown) = (quoted(script), script.display());
    let made = match script.parent() {
        Some(folder) if !folder.exists() => format!("mkdir -p -m 700 {} && ", quoted(folder)),
        Some(_) | None => String::new(),
    };
    let (sentence, mend) = match fs::metadata(script) {
        Err(_) => (
            format!("{shown} is not there: nobody is told"),
            format!(
                "{made}{} print escalate > {name} && chmod 700 {name}",
                super::ourselves()
            ),
        ),
        Ok(there) if !there.is_file() => (
            format!("{shown} is no file"),
            format!("mv {name} {name}.old"),
        ),
        Ok(there) if ![0, rustix::process::geteuid().as_raw()].contains(&there.uid()) => (
            format!(
                "{shown} belongs to user {}, who decides what it does",
                there.uid()
            ),
            format!("sudo chown \"$(id -u)\" {name}"),
        ),
        Ok(there) if there.mode() & 0o022 != 0 => (
            format!("others may change {shown}, which is run with the bot's token"),
            format!("chmod 700 {name}"),
        ),
        Ok(_) if !is_program(script) => (
            format!("{shown} is not executable: nobody is told"),
            format!("chmod 700 {name}"),
        ),
        Ok(_) => return true,
    };
    match wanted {
        true => case.problem("escalate.sh", sentence, mend),
        false => case.warning("escalate.sh", sentence, mend),
    }
    false
}

/// Whether it is ours, or one made from it.
fn is_shipped(script: &Path) -> bool {
    let text = read_small(script, FILE_MOST).unwrap_or_default();
    String::from_utf8_lossy(&text).contains(TOKEN)
}

/// Where the Telegram plugin keeps its token.
fn plugin_folder(case: &Case) -> PathBuf {
    let home = &case.desk.machine.settings.home;
    let set = case.value("TELEGRAM_STATE_DIR").map(PathBuf::from);
    set.unwrap_or_else(|| telegram::default_folder(&home.join(".claude")))
}

/// What our script needs.
fn shipped(case: &mut Case) {
    let path = case.value("PATH").unwrap_or_default();
    if on_path("curl", &path, &USUAL_PLACES).is_none() {
        let sentence = format!(
            "there is none in {} nor in {}: nothing can be sent",
            tmux::shown(&path),
            USUAL_PLACES.join(", ")
        );
        case.problem("curl", sentence, tmux::installed_by("curl"));
    }
    let folder = plugin_folder(case);
    let file = folder.join(".env");
    let name = quoted(&file);
    if let Some(token) = case.value(TOKEN) {
        if !looks_like_a_token(&token.to_string_lossy()) {
            let sentence = format!("{TOKEN} does not look like one (digits, a colon, letters)");
            let mend = case.unset(TOKEN);
            case.problem("bot token", sentence, mend);
        }
        return;
    }
    if telegram::token(&folder).is_none() {
        let sentence = format!(
            "neither {TOKEN} nor a line of that name in {} is there: nothing can be sent",
            file.display()
        );
        let mend = format!(
            "mkdir -p {} && read -rs T && (umask 077; printf '{TOKEN}=%s\\n' \"$T\" >> {name})",
            quoted(&folder)
        );
        case.problem("bot token", sentence, mend);
    } else if fs::metadata(&file).is_ok_and(|there| there.mode() & 0o077 != 0) {
        let sentence = format!("others may read the bot's token in {}", file.display());
        case.warning("bot token", sentence, format!("chmod 600 {name}"));
    }
}

/// `<digits>:<letters, digits, - and _>`.
fn looks_like_a_token(text: &str) -> bool {
    let letter = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    text.split_once(':').is_some_and(|(number, secret)| {
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        digits && !secret.is_empty() && secret.bytes().all(letter)
    })
}

/// The person whom the plugin lets talk to the bot: a private chat has their number.
fn allowed(folder: &Path) -> Option<String> {
    let text = read_small(&folder.join("access.json"), FILE_MOST).ok()?;
    let access: Value = serde_json::from_slice(&text).ok()?;
    let person = access.get("allowFrom")?.get(0)?.as_str()?;
    let digits = !person.is_empty() && person.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| person.to_owned())
}

/// Sends a message, and says how that went.
fn test_message(case: &mut Case, script: &Path, possible: bool) {
    let name = "test message";
    let again = format!("{} doctor --send-test", super::ourselves());
    if !possible {
        return case.problem(name, "not sent: see above", again);
    }
    // As the running watchdog would give them to it.
    let text = |name: &str| {
        let value = case.value(name).and_then(|value| value.into_string().ok());
        value.map(|value| (name.to_owned(), value))
    };
    let env: Vec<(String, String)> = [CHAT, TOKEN, "TELEGRAM_STATE_DIR", "TELEGRAM_API_BASE"]
        .into_iter()
        .filter_map(text)
        .collect();
    let env: Vec<(&str, &str)> = env.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let call = Call {
        program: script,
        args: &[
            "info",
            "A test message from agent-deck-watchdog: you can be told.",
        ],
        deadline: DEADLINE,
        most: 64 << 10,
        extra_env: &env,
        keep_token: true,
    };
    let pulse = &mut case.desk.machine.pulse;
    let end = exec::run(&call, &mut |longest| pulse.rest(longest));
    let (code, stderr) = match end {
        End::Exited { code, stderr, .. } => (code, stderr),
        End::Late => {
            let sentence = format!(
                "not sent: the script did not end within {} s",
                DEADLINE.as_secs()
            );
            return case.problem(name, sentence, again);
        }
        End::NoProgram(why) | End::NoProcess(why) => {
            return case.problem(name, format!("not sent: {why}"), again);
        }
    };
    let complaint = complaint(&stderr);
    match code {
        Some(0) => case.ok(name, "sent: look whether it has arrived"),
        Some(TRY_AGAIN) => {
            let sentence =
                format!("not sent now (exit 75, the watchdog would try again): {complaint}");
            case.problem(name, sentence, again);
        }
        Some(code) => {
            let what = if code == 78 {
                "it is not set up"
            } else {
                "it would not be tried again"
            };
            case.problem(
                name,
                format!("not sent (exit {code}, {what}): {complaint}"),
                again,
            );
        }
        None => case.problem(name, "not sent: the script was ended by a signal", again),
    }
}

/// The script's last words, without what may be a secret.
fn complaint(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    let last: String = last
        .unwrap_or("it said nothing")
        .chars()
        .take(COMPLAINT)
        .collect();
    match holds_a_token(&last) {
        true => "what it said is not shown, since it may hold the token".to_owned(),
        false => last,
    }
}

/// Whether something in a text is like a bot's token, alone or in an address.
fn holds_a_token(text: &str) -> bool {
    let (digits, letters) = TOKEN_LEAST;
    text.match_indices([':', '%']).any(|(at, _)| {
        let number = text[..at]
            .bytes()
            .rev()
            .take_while(u8::is_ascii_digit)
            .count();
        let rest = text[at + 1..].strip_prefix("3A").unwrap_or(&text[at + 1..]);
        let letter = |b: &u8| b.is_ascii_alphanumeric() || b"-_".contains(b);
        number >= digits && rest.bytes().take_while(letter).count() >= letters
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_token_is_known_by_its_form_and_never_shown() {
        for (text, is_one) in [
            ("123456:AAH-x_9", true),
            ("1:a", true),
            ("", false),
            ("123456", false),
            (":abc", false),
            ("12a:abc", false),
            ("123:a b", false),
        ] {
            assert_eq!(looks_like_a_token(text), is_one, "{text}");
        }
        let secret = "AAH0123456789abcdefghijklm";
        for line in [
            format!("curl: https://api.telegram.org/bot123456789:{secret}/sendMessage"),
            format!("x 123456789%3A{secret}"),
        ] {
            assert!(!complaint(line.as_bytes()).contains(secret), "{line}");
        }
        let said = complaint(b"first\nescalate.sh: curl failed with code 6\n\n");
        assert_eq!(said, "escalate.sh: curl failed with code 6");
        assert_eq!(complaint(b""), "it said nothing");
        assert_eq!(complaint("ä:ö".as_bytes()), "ä:ö");
    }

    #[test]
    fn the_person_whom_the_plugin_knows_is_proposed() {
        let folder = Scratch::new();
        let of = |text: &str| {
            folder.write("access.json", text);
            allowed(folder.path())
        };
        assert_eq!(
            of(r#"{"allowFrom":["412587349","2"]}"#).as_deref(),
            Some("412587349")
        );
        for text in ["", "{}", r#"{"allowFrom":[]}"#, r#"{"allowFrom":["-1;x"]}"#] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
