//! Can the watchdog read the screens of those that wait now? A status line of
//! several lines, a screen without colours or an unknown one hides the composer
//! from it: then it tells, but never asks.
//!
//! No word of a screen is kept. This file does not know how a screen is read.

use std::path::{Path, PathBuf};

use super::case::{Agent, Case};
use super::environ::Environ;
use super::shell::{Edit, Typed, quoted};
use crate::capabilities::patrol::{is_child, is_claude};
use crate::commands::paper::add;
use crate::deck::screen::{FOOTER, Form};
use crate::deck::telegram::read;
use crate::json::Value;
use crate::model::{NoAnswer, Screen, Session, Silence, Status};

const NAME: &str = "screens";
/// Screens that are read: each takes a run of agent-deck.
const LOOKS: usize = 5;

/// Sessions whose composer is hidden for the same reason.
struct Hides {
    titles: String,
    why: String,
    mend: String,
}

/// Whether the composers of those that wait are seen.
pub fn checks(case: &mut Case) {
    let waiting = case.desk.chosen(&|row| {
        let watched = is_child(row) || row.telegram.is_some();
        watched && row.status == Status::Waiting && !row.archived
    });
    let mut found: Vec<Hides> = Vec::new();
    let (mut seen, mut blind) = (0, 0);
    for row in waiting.iter().filter(|row| is_claude(row)).take(LOOKS) {
        let (screen, form) = match case.desk.machine.form(&row.profile, &row.id) {
            Ok(Some(read)) => read,
            Ok(None) => continue,
            Err(why) => {
                blind += 1;
                // The next one would wait as long.
                if why == NoAnswer::Late {
                    break;
                }
                continue;
            }
        };
        seen += 1;
        let Some(next) = hides(case, row, &screen, &form) else {
            continue;
        };
        match found.iter_mut().find(|known| known.why == next.why) {
            Some(known) => add(&mut known.titles, format_args!(", {}", next.titles)),
            None => found.push(next),
        }
    }
    for Hides { titles, why, mend } in &found {
        case.found.warning(
            NAME,
            format_args!("told about and not asked: {titles}: {why}"),
            format_args!("{mend}"),
        );
    }
    if !found.is_empty() {
        return;
    }
    let line = match has_status_line(&case.home().join(".claude/settings.json")) {
        true => "is set",
        false => "is not set",
    };
    let unread = match blind {
        0 => String::new(),
        _ => format!(" ({blind} could not be read)"),
    };
    let looked = match seen {
        0 => format!("no screen of a waiting Claude to look at now{unread}"),
        _ => format!(
            "{seen} of {} waiting sessions looked at{unread}, each is read as it should be",
            waiting.len()
        ),
    };
    case.found
        .ok(NAME, format_args!("{looked}; statusLine {line}"));
}

/// What hides a composer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hidden {
    /// More lines below it than a footer has.
    Footer,
    /// What stands below it looks like something else.
    Line,
    /// What is proposed cannot be told from what is typed.
    NoColour,
    /// It is not where it should be.
    Unknown,
}

/// What hides the composer of a Claude's screen, if something does that is not
/// of the moment.
fn judge(screen: &Screen, form: &Form, status_line: bool) -> Option<Hidden> {
    if screen.decision {
        return None;
    }
    match screen.claude? {
        Silence::Menu if status_line && form.footer > FOOTER => Some(Hidden::Footer),
        Silence::Unclear if status_line => Some(Hidden::Line),
        Silence::Draft if !form.coloured => Some(Hidden::NoColour),
        Silence::NoComposer => Some(Hidden::Unknown),
        Silence::Empty
        | Silence::Dialog
        | Silence::Draft
        | Silence::Suggestion
        | Silence::Queued
        | Silence::ShellMode
        | Silence::Menu
        | Silence::Search
        | Silence::Busy
        | Silence::Credentials
        | Silence::UsageLimit
        | Silence::Interrupted
        | Silence::Unclear => None,
    }
}

/// What hides the composer of a session, in words.
fn hides(case: &Case, row: &Session, screen: &Screen, form: &Form) -> Option<Hides> {
    let id = Some(&row.id);
    let of_row = |agent: &&Agent| agent.row.as_ref().map(|row| &row.id) == id;
    let agent = case.agents.iter().find(of_row);
    let none = Environ::default();
    let environ = agent.map_or(&none, |agent| &agent.environ);
    let file = status_line(case, row, environ.get("CLAUDE_CONFIG_DIR").as_ref());
    let hidden = judge(screen, form, file.is_some())?;
    let (path, home) = (file.unwrap_or_default(), case.home());
    let typed = Typed { path: &path, home };
    let mut mend = match hidden {
        Hidden::Footer | Hidden::Line => Edit(&path).to_string(),
        Hidden::NoColour | Hidden::Unknown => format!(
            "agent-deck -p {} session attach {}",
            quoted(row.profile.as_str()),
            row.id
        ),
    };
    let why = match hidden {
        Hidden::Footer => format!(
            "{} lines stand below its composer, at most {FOOTER} are known as a footer; the \
             command of statusLine in {typed} must print one line",
            form.footer
        ),
        Hidden::Line => format!(
            "the line below its composer looks like a prompt or a question; the command of \
             statusLine in {typed} must not end in : ? $ # % or >"
        ),
        Hidden::NoColour => {
            let set = !environ.get("NO_COLOR").is_empty();
            let cause = match set {
                true => "NO_COLOR is in its environment",
                false => "choose a theme with /config",
            };
            if set {
                mend = "tmux set-environment -gu NO_COLOR  # then restart the session".to_owned();
            }
            format!(
                "it has no colours, so what Claude proposes cannot be told from what is typed: \
                 {cause}"
            )
        }
        Hidden::Unknown => "its composer is not where it should be: another version of Claude, a \
                            panel, or an agent that has ended"
            .to_owned(),
    };
    Some(Hides {
        titles: row.title.clone(),
        why,
        mend,
    })
}

/// The settings that hold its status line, if any do; the strongest.
fn status_line(case: &Case, row: &Session, config: &Path) -> Option<PathBuf> {
    let config = match config.as_os_str().is_empty() {
        true => case.home().join(".claude"),
        false => config.to_owned(),
    };
    let project = Path::new(&row.path).join(".claude");
    for (folder, name) in [
        (&project, "settings.local.json"),
        (&project, "settings.json"),
        (&config, "settings.json"),
    ] {
        let file = folder.join(name);
        if has_status_line(&file) {
            return Some(file);
        }
    }
    None
}

/// Whether settings of Claude have a status line.
fn has_status_line(file: &Path) -> bool {
    let text = read(file).ok().flatten().unwrap_or_default();
    let settings: Value = crate::json::read(text.as_bytes()).unwrap_or_default();
    let command = settings
        .get("statusLine")
        .and_then(|line| line.get("command"))
        .and_then(Value::as_str);
    command.is_some_and(|command| !command.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deck::screen;
    use crate::scratch::Scratch;

    fn rule() -> String {
        "─".repeat(80)
    }

    /// A Claude's screen with this in its composer and below it.
    fn claude(content: &str, below: &str) -> String {
        let rule = rule();
        format!("Done.\n\n{rule}\n❯\u{a0}{content}\n{rule}\n{below}\n")
    }

    fn hidden(content: &str, status_line: bool) -> Option<Hidden> {
        judge(&screen::read(content), &screen::form(content), status_line)
    }

    #[test]
    fn only_what_hides_the_composer_for_good_is_named() {
        let dim = "\u{1b}[7mt\u{1b}[0;2mry this\u{1b}[0m";
        let plain = "\u{1b}[7mP\u{1b}[0m\u{1b}[39m\u{1b}[49mress up to edit queued messages";
        let long = "  a\n  b\n  c";
        for (content, status_line, found) in [
            (claude("", "  ? for shortcuts"), true, None),
            (claude("", "  model\n  ? for shortcuts"), true, None),
            (claude("", long), true, Some(Hidden::Footer)),
            // A menu, as far as anybody knows.
            (claude("", long), false, None),
            (claude("", "  u@host:~/proj$"), true, Some(Hidden::Line)),
            (
                claude("try this", "  ? for shortcuts"),
                false,
                Some(Hidden::NoColour),
            ),
            (claude(dim, "  ? for shortcuts"), false, None),
            // As a Claude draws that hint with NO_COLOR.
            (
                claude(plain, "  ? for shortcuts"),
                false,
                Some(Hidden::NoColour),
            ),
            (
                claude("mine", "  \u{1b}[38;5;246m? for shortcuts"),
                false,
                None,
            ),
            ("starting up\n".to_owned(), false, Some(Hidden::Unknown)),
            (String::new(), true, None),
            (
                "Do you want to proceed?\n❯ 1. Yes\n  2. No\n".to_owned(),
                true,
                None,
            ),
        ] {
            assert_eq!(hidden(&content, status_line), found, "{content}");
        }
    }

    #[test]
    fn a_status_line_is_a_command_in_the_settings() {
        let home = Scratch::new();
        for (text, set) in [
            (
                r#"{"statusLine":{"type":"command","command":"~/line.sh"}}"#,
                true,
            ),
            (r#"{"statusLine":{"type":"command","command":" "}}"#, false),
            (r#"{"statusLine":"x"}"#, false),
            ("{", false),
            ("", false),
        ] {
            assert_eq!(
                has_status_line(&home.write("settings.json", text)),
                set,
                "{text}"
            );
        }
        assert!(!has_status_line(&home.join("none")) && !has_status_line(home.path()));
    }
}
