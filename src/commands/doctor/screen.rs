//! Can the watchdog read the screens of those that wait now? A status line of
//! several lines, a screen without colours or an unknown one hides the composer
//! from it: then it tells, but never asks.
//!
//! No word of a screen is kept. This file does not know how a screen is read.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::around::{Seen, typed};
use super::{Check, ok, warning};
use crate::capabilities::patrol::{is_child, is_claude};
use crate::commands::desk::Desk;
use crate::deck::processes::pane_process;
use crate::deck::screen::{FOOTER, Form};
use crate::deck::telegram::read;
use crate::host::logs::escape;
use crate::model::{NoAnswer, Process, Screen, Session, Sight, Silence, Status};

const NAME: &str = "screens";
/// Screens that are read: each takes a run of agent-deck.
const LOOKS: usize = 5;

/// Whether the composers of those that wait are seen.
pub fn checks(desk: &mut Desk) -> Vec<Check> {
    let waits = |row: &&Session| {
        let watched = is_child(row) || row.telegram.is_some();
        watched && row.status == Status::Waiting && !row.archived
    };
    let waiting: Vec<Session> = desk.watch.all_rows().filter(waits).cloned().collect();
    let home = desk.machine.settings.home.clone();
    let mut found = Vec::new();
    let (mut seen, mut blind) = (0, 0);
    for row in waiting.iter().filter(|row| is_claude(row)).take(LOOKS) {
        match desk.machine.form(&row.profile, &row.id) {
            Ok(Some((screen, form))) => {
                seen += 1;
                let files = settings(desk, row);
                let file = files.iter().find(|file| has_status_line(file));
                let colour = no_colour(desk, row);
                if let Some(hidden) = judge(&screen, &form, file.is_some()) {
                    found.push(told(
                        row,
                        hidden,
                        &form,
                        file.map(PathBuf::as_path),
                        &home,
                        colour,
                    ));
                }
            }
            Ok(None) => {}
            // The next one would wait as long.
            Err(NoAnswer::Late) => {
                blind += 1;
                break;
            }
            Err(_) => blind += 1,
        }
    }
    if found.is_empty() {
        found.push(ok(NAME, summary(&home, waiting.len(), seen, blind)));
    }
    found
}

fn summary(home: &Path, waiting: usize, seen: usize, blind: usize) -> String {
    let file = home.join(".claude/settings.json");
    let line = if has_status_line(&file) {
        "is set"
    } else {
        "is not set"
    };
    let unread = match blind {
        0 => String::new(),
        _ => format!(" ({blind} could not be read)"),
    };
    if seen == 0 {
        return format!("no screen of a waiting Claude to look at now{unread}; statusLine {line}");
    }
    format!(
        "{seen} of {waiting} waiting sessions looked at{unread}, each is read as it should be; \
         statusLine {line}"
    )
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

fn told(
    row: &Session,
    hidden: Hidden,
    form: &Form,
    file: Option<&Path>,
    home: &Path,
    no_colour: bool,
) -> Check {
    let title = escape(&row.title);
    let file = file.map_or(String::new(), |file| typed(file, home));
    let edit = format!("${{EDITOR:-vi}} {file}");
    let attach = format!("agent-deck -p {} session attach {}", row.profile, row.id);
    let (why, mend) = match hidden {
        Hidden::Footer => (
            format!(
                "{} lines stand below its composer, at most {FOOTER} are known as a footer; the \
                 command of statusLine in {file} must print one line",
                form.footer
            ),
            edit,
        ),
        Hidden::Line => (
            format!(
                "the line below its composer looks like a prompt or a question; the command of \
                 statusLine in {file} must not end in : ? $ # % or >"
            ),
            edit,
        ),
        Hidden::NoColour if no_colour => (
            "it has no colours, since NO_COLOR is in its environment: what Claude proposes cannot be told \
             from what is typed"
                .to_owned(),
            "tmux set-environment -gu NO_COLOR  # then restart the session".to_owned(),
        ),
        Hidden::NoColour => (
            "it has no colours: what Claude proposes cannot be told from what is typed; choose a \
             theme with /config"
                .to_owned(),
            attach,
        ),
        Hidden::Unknown => (
            "its composer is not where it should be: another version of Claude, a panel, or an \
             agent that has ended"
                .to_owned(),
            attach,
        ),
    };
    warning(
        NAME,
        format!("{title} is told about and not asked: {why}"),
        mend,
    )
}

/// The settings that may hold its status line, the strongest first.
fn settings(desk: &Desk, row: &Session) -> Vec<PathBuf> {
    let set = agent(desk, row).and_then(|agent| agent.config_dir.clone());
    let config = set.unwrap_or_else(|| desk.machine.settings.home.join(".claude"));
    let project = Path::new(&row.path).join(".claude");
    vec![
        project.join("settings.local.json"),
        project.join("settings.json"),
        config.join("settings.json"),
    ]
}

/// Whether settings of Claude have a status line.
fn has_status_line(file: &Path) -> bool {
    let text = read(file).ok().flatten().unwrap_or_default();
    let settings: Value = serde_json::from_slice(text.as_bytes()).unwrap_or_default();
    let line = settings
        .get("statusLine")
        .and_then(|line| line.get("command"));
    line.and_then(Value::as_str)
        .is_some_and(|command| !command.trim().is_empty())
}

/// The agent of a session, where it is seen.
fn agent<'a>(desk: &'a Desk, row: &Session) -> Option<&'a Process> {
    match &desk.watch.sight {
        Sight::Seen(table) => pane_process(table, &row.id),
        Sight::Blind(_) => None,
    }
}

/// Whether its agent has `NO_COLOR`.
fn no_colour(desk: &Desk, row: &Session) -> bool {
    let seen = agent(desk, row).and_then(|agent| Seen::of_process(agent.pid));
    seen.is_some_and(|seen| !seen.get("NO_COLOR").is_empty())
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
