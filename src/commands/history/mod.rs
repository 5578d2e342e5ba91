//! `history`: the night as a person would tell it, from the three logs.
//!
//! | file | what |
//! | --- | --- |
//! | `lines.rs` | files and lines |
//! | `parts.rs` | a line, taken apart |
//! | `names.rs` | what sessions are called |
//! | `story.rs` | from lines to a story |
//! | `runs.rs` | when the watchdog itself ran |
//! | `page.rs` | the story on one screen |
//!
//! agent-deck need not be there for it. This file does not know what the lines
//! mean.

use std::fmt::Arguments;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::paper::{Light, Paper, Said, wrap};
use super::{FORMAT, Failed, Report};
use crate::clock::{Time, spoken, wall_of};
use crate::host::lock::{Mode, read_holder};
use crate::host::logs::escape;
use crate::json::{Map, Value, object, put};
use lines::{Entry, Lines};
use names::Names;
use runs::{LEAST, Runs, Sign};
use story::{Item, Summary, Teller};

mod lines;
mod names;
mod page;
mod parts;
mod runs;
mod story;

/// What happened.
pub struct History {
    folder: String,
    from: Time,
    to: Time,
    /// The session that was asked for: its id, or what was asked for where the
    /// logs know none.
    session: Option<String>,
    lines: Lines,
    items: Vec<Item>,
    summary: Summary,
    runs: Runs,
    sign: Option<Sign>,
}

/// Reads what happened between two wall times, of one session or of all.
///
/// # Errors
/// When the folder cannot be read, or several sessions have that title.
pub fn history(
    folder: &Path,
    from: Time,
    to: Time,
    wanted: Option<&str>,
) -> Result<History, Failed> {
    let mut lines = lines::read(folder, from, to)?;
    let names = Names::new(&lines.entries);
    let session = match wanted {
        Some(wanted) => names
            .find(wanted, &lines.entries)?
            .or(Some(wanted.to_owned())),
        None => None,
    };
    let mut runs = Runs::new(lines.before);
    let mut teller = Teller::new(names);
    let mut last = None;
    for (at, entry) in lines.entries.iter().enumerate() {
        match entry.kind {
            lines::Kind::Start | lines::Kind::End => runs.tell(entry, last),
            _ if session.as_ref().is_none_or(|id| entry.is_about(id)) => {
                teller.tell(entry, &lines.entries[at + 1..]);
            }
            _ => {}
        }
        last = Some(entry.at);
    }
    let sign = sign(folder);
    runs.end(sign, to);
    let (mut items, summary) = teller.end();
    for item in runs.items.drain(..).rev() {
        let at = items.partition_point(|told| told.at < item.at);
        items.insert(at, item);
    }
    if let Some(id) = &session {
        lines.entries.retain(|entry| entry.is_about(id));
    }
    Ok(History {
        folder: folder.display().to_string(),
        from,
        to,
        session,
        lines,
        items,
        summary,
        runs,
        sign,
    })
}

/// The last sign of life, as the lock file shows it.
fn sign(folder: &Path) -> Option<Sign> {
    let lock = folder.join("lock");
    let holder = read_holder(&lock).ok()?;
    Some(Sign {
        at: wall_of(fs::metadata(&lock).ok()?.modified().ok()?),
        once: holder.mode == Mode::Once,
        poll: Duration::from_secs(holder.poll_s),
    })
}

impl Report for History {
    fn text(&self, paper: &Paper) -> String {
        let (mut page, mut head) = (String::new(), String::new());
        wrap(&mut head, "", &self.in_numbers(), 2);
        if self.items.is_empty() {
            page.push_str(&head);
        } else {
            paper.lit(
                &mut page,
                Light::Strong,
                format_args!("{}", head.trim_end()),
            );
            page.push_str("\n\n");
        }
        page.push_str(&page::lay_out(&self.items, paper));
        let remarks = self.remarks();
        if !remarks.is_empty() {
            page.push('\n');
        }
        for remark in remarks {
            wrap(&mut page, "", &escape(&remark), 2);
        }
        page
    }

    fn json(&self) -> Value {
        let Summary {
            restarts,
            in_vain,
            given_up,
            nudges,
            stops,
            told,
            written,
            not_told,
        } = self.summary;
        let stamp = Time::rfc3339;
        let (mut entries, mut gaps, mut unread) = (Vec::new(), Vec::new(), Vec::new());
        for entry in &self.lines.entries {
            entries.push(line(entry));
        }
        for gap in &self.runs.gaps {
            let (from, to) = (stamp(gap.from), stamp(gap.to));
            gaps.push(object!({ "from": from, "to": to, "certain": gap.certain }));
        }
        for (file, why) in &self.lines.unread {
            unread.push(object!({ "file": file, "why": why }));
        }
        object!({
            "format": FORMAT,
            "since": stamp(self.from),
            "until": stamp(self.to),
            "session": self.session,
            "summary": object!({
                "restarts": restarts,
                "restarts_in_vain": in_vain,
                "given_up": given_up,
                "nudges": nudges,
                "stops": stops,
                "told": told,
                "only_written_down": written,
                "not_told": not_told,
                "not_run_s": self.runs.away(self.from).as_secs(),
            }),
            "entries": entries,
            "gaps": gaps,
            "last_sign_of_life": self.sign.map(|sign| stamp(sign.at)),
            "lines_unreadable": self.lines.torn,
            "lines_of_python_watchdog": self.lines.foreign,
            "lines_dated_ahead": self.lines.ahead,
            "lines_left_out": self.lines.left_out,
            "files_not_read": unread,
        })
    }
}

/// One line of a log for programs; what does not apply is not there.
fn line(entry: &Entry) -> Value {
    let mut object = Map::new();
    let capability = if entry.deaf { "poller" } else { "restart" };
    let (outcome, rule, capability) = match entry.kind {
        lines::Kind::Refusal => ("", entry.word.as_str(), capability),
        lines::Kind::Attempt | lines::Kind::Outcome => (entry.word.as_str(), "", capability),
        lines::Kind::Told | lines::Kind::Stop => (entry.word.as_str(), "", ""),
        _ => ("", "", ""),
    };
    let mut add = |name: &str, text: &str| {
        if !text.is_empty() {
            put(&mut object, name, &text);
        }
    };
    add("time", &entry.at.rfc3339());
    add("log", entry.log);
    add("event", entry.kind.word());
    add("level", &entry.level);
    add("session", &entry.session);
    add("title", &entry.title);
    add("profile", &entry.profile);
    add("capability", capability);
    add("outcome", outcome);
    add("rule", rule);
    add("episode", &entry.episodes);
    add("parent", &entry.parent);
    add("text", &entry.text);
    add("why", &entry.why);
    Value::Object(object)
}

/// `1 nudge`, `2 nudges`.
fn count(n: u64, one: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{n} {one}{s}")
}

fn times(n: u64) -> String {
    match n {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        n => format!("{n} times"),
    }
}

impl History {
    /// The first line.
    fn in_numbers(&self) -> String {
        let of = &self.summary;
        let mut parts = Said::default();
        let mut add = |n, part: Arguments| {
            if n > 0 {
                parts.say(part);
            }
        };
        let restarts = count(of.restarts, "restart");
        add(of.restarts, format_args!("{restarts}"));
        add(of.in_vain, format_args!("{} in vain", of.in_vain));
        add(of.given_up, format_args!("{} given up", of.given_up));
        let nudges = count(of.nudges, "nudge");
        add(of.nudges, format_args!("{nudges}"));
        let stops = count(of.stops, "stop");
        add(of.stops, format_args!("{stops}"));
        for (n, what) in [
            (of.told, "told"),
            (of.written, "only written down"),
            (of.not_told, "not told"),
        ] {
            add(n, format_args!("{what} {}", times(n)));
        }
        if parts.0.is_empty() {
            let nothing = match self.lines.entries.is_empty() {
                true => "nothing is written down",
                false => "no restart, no nudge, nobody told",
            };
            parts.say(format_args!("{nothing}"));
        }
        let away = self.runs.away(self.from);
        // A restart of the watchdog is no time without one.
        if away >= LEAST {
            let away = spoken(away);
            parts.say(format_args!("the watchdog did not run for {away}"));
        }
        let whose = match &self.session {
            Some(id) => format!("{}: ", escape(id)),
            None => String::new(),
        };
        let (parts, from) = (parts.0.join(", "), self.from.rfc3339());
        format!("{whose}{parts}; since {from}").replace("written down; since", "written down since")
    }

    /// What there is to say about the logs themselves.
    fn remarks(&self) -> Vec<String> {
        let lines = &self.lines;
        let mut said = Said::default();
        for (n, what) in [
            (lines.torn, "cannot be read: torn, or not by this program."),
            (
                lines.foreign,
                "of agent-deck's Python watchdog: not told here.",
            ),
            (
                lines.ahead,
                "with a date later than now: was the clock set back?",
            ),
            (lines.left_out, "too many: only the newest are told here."),
        ] {
            if n > 0 {
                said.say(format_args!("{} {what}", count(n, "line")));
            }
        }
        let mut unread = Said::default();
        for (file, why) in &lines.unread {
            unread.say(format_args!("{file} ({why})"));
        }
        if !unread.0.is_empty() {
            said.say(format_args!("Not read: {}.", unread.0.join(", ")));
        }
        if !lines.any {
            said.say(format_args!("There are no logs in {}.", self.folder));
        }
        if let Some(sign) = self.sign {
            let once = match sign.once {
                true => {
                    ". It runs in single runs (--once): of those that found nothing to do, and of \
                     those that did not come, there are no lines"
                }
                false => "",
            };
            let at = sign.at.rfc3339();
            said.say(format_args!(
                "The watchdog's last sign of life: {at}{once}."
            ));
        }
        said.0
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
