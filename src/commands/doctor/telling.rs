//! The way to a person: `escalate.sh`, the chat, curl and a bot's token; and a
//! message to try it, when that is asked for.
//!
//! Of the token only whether there is one is known here; it is never shown. What
//! belongs to the script that we ship is checked only where that lies there.

use std::fmt::Arguments;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::case::Case;
use super::shell::{Ourselves, quoted};
use super::tmux::{Shown, installer};
use crate::commands::paper::Light;
use crate::deck::telegram;
use crate::host::exec::{Call, USUAL_PLACES};
use crate::host::folder::read_small;
use crate::host::trust::{self, Hands};
use crate::json::Value;
use crate::machine::bin::{is_program, on_path};
use crate::machine::escalation::{DEADLINE, TRY_AGAIN};

const CHAT: &str = "TELEGRAM_ESCALATION_CHAT_ID";
const TOKEN: &str = "TELEGRAM_BOT_TOKEN";
const FOLDER: &str = "TELEGRAM_STATE_DIR";
/// Longest script and other file that is read.
const FILE_MOST: u64 = 256 << 10;
/// How much of what the script complains is shown.
const COMPLAINT: usize = 200;
/// A token's number has so many digits at least, and its secret so many letters.
const TOKEN_LEAST: (usize, usize) = (6, 20);

/// All of it.
pub fn checks(case: &mut Case) {
    let found = case.found;
    let script = case.folder().join("escalate.sh");
    let chat = case.value(CHAT);
    let before = found.count();
    let usable = usable(case, &script, !chat.is_empty());
    if chat.is_empty() {
        let guess = allowed(&plugin_folder(case)).unwrap_or("123456789".to_owned());
        found.warning(
            "chat",
            format_args!(
                "{CHAT} is not set: what is to be told is only written down; the number of a chat \
                 belongs there"
            ),
            format_args!("{}", case.set(CHAT, guess.as_ref())),
        );
    }
    if usable && is_shipped(&script) {
        shipped(case);
    }
    if found.count() == before {
        let how = match case.send_test {
            true => "",
            false => "; --send-test tries it",
        };
        found.ok(
            "telling",
            format_args!("on, through {}{how}", script.display()),
        );
    }
    if case.send_test {
        test_message(case, &script, usable && !chat.is_empty());
    }
}

/// Whether the script can be run. Without a chat it is no problem that it cannot.
fn usable(case: &Case, script: &Path, wanted: bool) -> bool {
    const NAME: &str = "escalate.sh";
    let light = match wanted {
        true => Light::Red,
        false => Light::Yellow,
    };
    if script.exists() {
        return is_sound(case, NAME, script, light);
    }
    let (name, shown) = (quoted(script), script.display());
    let folder = case.folder();
    let made = match folder.exists() {
        true => String::new(),
        false => format!("mkdir -p -m 700 {} && ", quoted(&folder)),
    };
    case.found.say(
        NAME,
        light,
        format_args!("{shown} is not there: nobody is told"),
        format_args!("{made}{Ourselves} print escalate > {name} && chmod 700 {name}"),
    );
    false
}

/// Whether a program that is there and that the watchdog runs can be run, and is
/// in nobody else's hands.
pub(super) fn is_sound(case: &Case, check: &'static str, program: &Path, light: Light) -> bool {
    let (name, shown) = (quoted(program), program.display());
    let say = |sentence: Arguments, mend: Arguments| {
        case.found.say(check, light, sentence, mend);
        false
    };
    if !program.is_file() {
        return say(
            format_args!("{shown} is no file"),
            format_args!("mv {name} {name}.old"),
        );
    }
    match trust::other_hands(program) {
        Some(Hands::Owner(owner)) => say(
            format_args!("{shown} belongs to user {owner}, who decides what it does: not run"),
            format_args!("sudo chown \"$(id -u)\" {name}"),
        ),
        Some(Hands::Others) => say(
            format_args!("others may change {shown}: not run"),
            format_args!("chmod go-w {name}"),
        ),
        Some(Hands::Folder(folder)) => say(
            format_args!("others may put another one in the place of {shown}: not run"),
            format_args!("chmod o-w {}", quoted(&folder)),
        ),
        None if !is_program(program) => say(
            format_args!("{shown} is not executable"),
            format_args!("chmod 700 {name}"),
        ),
        None => true,
    }
}

/// Whether it is ours, or one made from it.
fn is_shipped(script: &Path) -> bool {
    let text = read_small(script, FILE_MOST).unwrap_or_default();
    String::from_utf8_lossy(&text).contains(TOKEN)
}

/// Where the Telegram plugin keeps its token.
fn plugin_folder(case: &Case) -> PathBuf {
    match case.value(FOLDER) {
        set if set.is_empty() => telegram::default_folder(&case.home().join(".claude")),
        set => PathBuf::from(set),
    }
}

/// What our script needs.
fn shipped(case: &Case) {
    const NAME: &str = "bot token";
    let found = case.found;
    let path = case.value("PATH");
    if on_path("curl", &path, &USUAL_PLACES).is_none() {
        found.problem(
            "curl",
            format_args!(
                "there is none in {} nor in {}: nothing can be sent",
                Shown(&path),
                USUAL_PLACES.join(", ")
            ),
            format_args!("{} curl", installer()),
        );
    }
    let folder = plugin_folder(case);
    let file = folder.join(".env");
    let (name, shown) = (quoted(&file), file.display());
    let token = case.value(TOKEN);
    if !token.is_empty() {
        if !looks_like_a_token(&token.to_string_lossy()) {
            found.problem(
                NAME,
                format_args!("{TOKEN} does not look like one (digits, a colon, letters)"),
                format_args!("{}", case.unset(TOKEN)),
            );
        }
    } else if telegram::token(&folder).is_none() {
        found.problem(
            NAME,
            format_args!(
                "neither {TOKEN} nor a line of that name in {shown} is there: nothing can be sent"
            ),
            format_args!(
                "mkdir -p {} && read -rs T && (umask 077; printf '{TOKEN}=%s\\n' \"$T\" >> {name})",
                quoted(&folder)
            ),
        );
    } else if fs::metadata(&file).is_ok_and(|there| there.mode() & 0o077 != 0) {
        found.warning(
            NAME,
            format_args!("others may read the bot's token in {shown}"),
            format_args!("chmod 600 {name}"),
        );
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
    let access: Value = crate::json::read(&text).ok()?;
    let person = access.get("allowFrom")?.as_array()?.first()?.as_str()?;
    let digits = !person.is_empty() && person.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| person.to_owned())
}

/// Sends a message, and says how that went.
fn test_message(case: &mut Case, script: &Path, possible: bool) {
    const NAME: &str = "test message";
    let found = case.found;
    let failed = |why: Arguments| {
        found.problem(NAME, why, format_args!("{Ourselves} doctor --send-test"));
    };
    if !possible {
        return failed(format_args!("not sent: see above"));
    }
    // As the running watchdog would give them to it.
    let names = [CHAT, TOKEN, FOLDER, "TELEGRAM_API_BASE"];
    let mut values = Vec::new();
    for name in names {
        values.push(case.value(name).into_string().unwrap_or_default());
    }
    let mut extra_env: Vec<(&str, &str)> = Vec::new();
    for (name, value) in names.into_iter().zip(&values) {
        if !value.is_empty() {
            extra_env.push((name, value));
        }
    }
    let call = Call {
        program: script,
        args: &[
            "info",
            "A test message from agent-deck-watchdog: you can be told.",
        ],
        deadline: DEADLINE,
        most: 64 << 10,
        extra_env: &extra_env,
        keep_token: true,
    };
    let (code, stderr) = match case.run(&call) {
        Ok((code, _, stderr)) => (code, stderr),
        Err(why) => return failed(format_args!("not sent: {why}")),
    };
    let what = match code {
        0 => return found.ok(NAME, format_args!("sent: look whether it has arrived")),
        -1 => return failed(format_args!("not sent: the script was ended by a signal")),
        TRY_AGAIN => "the watchdog would try again",
        78 => "it is not set up",
        _ => "it would not be tried again",
    };
    let complaint = complaint(&stderr);
    failed(format_args!("not sent (exit {code}, {what}): {complaint}"));
}

/// The script's last words, without what may be a secret.
fn complaint(text: &str) -> String {
    let mut last = "it said nothing";
    for line in text.lines() {
        if !line.trim().is_empty() {
            last = line;
        }
    }
    let last: String = last.chars().take(COMPLAINT).collect();
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
            assert!(!complaint(&line).contains(secret), "{line}");
        }
        let said = complaint("first\nescalate.sh: curl failed with code 6\n\n");
        assert_eq!(said, "escalate.sh: curl failed with code 6");
        assert_eq!(complaint(""), "it said nothing");
        assert_eq!(complaint("ä:ö"), "ä:ö");
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
