//! A systemd unit as text: what it says, and what of it cannot stay so. Pure.
//!
//! Names and rules are those of systemd.unit(5), systemd.service(5),
//! systemd.exec(5). This file does not know where the text was found.

use std::time::Duration;

use super::super::around::{Seen, list};
use super::super::{Check, ok, problem, warning};
use crate::clock::parse_span;
use crate::host::logs::escape;

/// Name of the line that tells about the unit.
pub const NAME: &str = "unit";
/// Name of the line that tells what systemd says of it.
const STATE: &str = "unit state";

/// What the files of a unit say, the later ones above the earlier ones.
#[derive(Debug, Default)]
pub struct Unit {
    lines: Vec<(String, String)>,
}

/// Settings of the service that agents could not bear, since those that a
/// restart starts inherit them; whether nothing works then; the value that is
/// none; what they do.
const FENCES: [(&str, bool, &str, &str); 8] = [
    (
        "PrivateTmp",
        true,
        "no",
        "hides the socket of tmux, so that every session looks dead",
    ),
    (
        "ProtectHome",
        true,
        "no",
        "hides or locks agent-deck's files",
    ),
    (
        "DynamicUser",
        true,
        "no",
        "is another user, who sees no session",
    ),
    (
        "PrivateUsers",
        true,
        "no",
        "is another user, who sees no session",
    ),
    (
        "NoNewPrivileges",
        false,
        "no",
        "takes sudo from agents that a restart starts",
    ),
    (
        "MemoryDenyWriteExecute",
        false,
        "no",
        "stops node in agents that a restart starts",
    ),
    (
        "MemoryMax",
        false,
        "infinity",
        "counts the agents that a restart starts",
    ),
    (
        "RuntimeMaxSec",
        false,
        "infinity",
        "ends the watchdog after that time",
    ),
];

impl Unit {
    /// Takes what one more file says.
    pub fn read(&mut self, text: &str) {
        let mut line = String::new();
        for part in text.lines() {
            let part = part.trim();
            // A comment between the parts of a line is skipped.
            if part.starts_with(['#', ';']) {
                continue;
            }
            line.push_str(part.trim_end_matches('\\'));
            if part.ends_with('\\') {
                line.push(' ');
                continue;
            }
            if let Some((key, value)) = line.split_once('=') {
                let pair = (key.trim_end().to_owned(), value.trim_start().to_owned());
                self.lines.push(pair);
            }
            line.clear();
        }
    }

    /// The values of a setting that is a list; an empty one begins it anew.
    pub fn all(&self, key: &str) -> Vec<&str> {
        let mut all = Vec::new();
        for (name, value) in &self.lines {
            if name == key {
                if value.is_empty() {
                    all.clear();
                } else {
                    all.push(value.as_str());
                }
            }
        }
        all
    }

    /// The value of a setting that is no list; empty when there is none. systemd
    /// leaves out an empty one.
    pub fn get(&self, key: &str) -> &str {
        let mut lines = self.lines.iter().rev();
        let found = lines.find(|(name, value)| name == key && !value.is_empty());
        found.map_or("", |(_, value)| value)
    }

    /// The command that it starts, as words.
    pub fn command(&self, home: &str) -> Vec<String> {
        let mut command = words(&specified(self.get("ExecStart"), home));
        if let Some(program) = command.first_mut() {
            *program = program
                .trim_start_matches(['@', '-', ':', '+', '!', '|'])
                .to_owned();
        }
        command
    }

    /// The files with variables: path, and whether it must be there.
    pub fn env_files(&self, home: &str) -> Vec<(String, bool)> {
        let files = self.all("EnvironmentFile").into_iter();
        files
            .map(|file| {
                let path = file.trim_start_matches('-');
                (specified(path, home), path == file)
            })
            .collect()
    }

    /// The variables that its lines set, into what is there already.
    pub fn environment(&self, home: &str, seen: &mut Seen) {
        for line in self.all("Environment") {
            for word in words(&specified(line, home)) {
                if let Some((name, value)) = word.split_once('=') {
                    seen.set(name, value);
                }
            }
        }
    }
}

/// The variables of an environment file, into what is there already.
pub fn env_file(text: &str, seen: &mut Seen) {
    for line in text.lines().map(str::trim) {
        if let Some((name, value)) = line.split_once('=') {
            let value = value.trim().trim_matches(['"', '\'']);
            seen.set(name.trim(), value);
        }
    }
}

/// `%h` and its like; what is not known stays.
fn specified(text: &str, home: &str) -> String {
    text.replace("%h", home).replace("%%", "%")
}

/// Words, some of them in quotes.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut begun = false;
    for c in text.chars() {
        if quote == Some(c) {
            quote = None;
        } else if quote.is_none() && matches!(c, '"' | '\'') {
            quote = Some(c);
            begun = true;
        } else if quote.is_none() && c.is_whitespace() {
            if begun {
                words.push(std::mem::take(&mut word));
            }
            begun = false;
        } else {
            word.push(c);
            begun = true;
        }
    }
    if begun {
        words.push(word);
    }
    words
}

/// A command that sets one line of the unit, whatever its files say.
pub fn line_set(section: &str, name: &str, line: &str) -> String {
    format!(
        "d=~/.config/systemd/user/agent-deck-watchdog.service.d; mkdir -p $d && {{ echo \
         '[{section}]'; echo '{line}'; }} >$d/zz-{name}.conf && systemctl --user daemon-reload"
    )
}

fn service(name: &str, value: &str) -> String {
    line_set("Service", name, &format!("{name}={value}"))
}

/// What of a unit cannot stay so. `once`: it starts single runs.
pub fn judge(unit: &Unit, once: bool) -> Vec<Check> {
    let mut found = Vec::new();
    match unit.get("KillMode") {
        "process" => {}
        other => {
            let mode = if other.is_empty() {
                "control-group"
            } else {
                other
            };
            found.push(problem(
                NAME,
                format!(
                    "KillMode={} ends a tmux server that a restart started, and all agents in it, \
                     when the watchdog stops; allowed: process",
                    escape(mode)
                ),
                service("KillMode", "process"),
            ));
        }
    }
    for (name, breaks, mend, what) in FENCES {
        let value = unit.get(name);
        let off = ["infinity", "no", "false", "off", "0", "n", "f", ""];
        if off.contains(&value.to_ascii_lowercase().as_str()) {
            continue;
        }
        let sentence = format!("{name}={} {what}", escape(value));
        let mend = service(name, mend);
        found.push(if breaks {
            problem(NAME, sentence, mend)
        } else {
            warning(NAME, sentence, mend)
        });
    }
    if !once {
        starts(unit, &mut found);
    }
    found
}

/// How it is started, again and again.
fn starts(unit: &Unit, found: &mut Vec<Check>) {
    let mut weak = |sentence: String, mend| found.push(warning(NAME, sentence, mend));
    let set = |value: &str, standard: &str| escape(if value.is_empty() { standard } else { value });
    let restart = unit.get("Restart");
    if !matches!(restart, "always" | "on-failure") {
        weak(
            format!(
                "Restart={}: after a crash nobody starts it again; allowed: always, on-failure",
                set(restart, "no")
            ),
            service("Restart", "always"),
        );
    }
    let prevented = unit.all("RestartPreventExitStatus").join(" ");
    let missing = |code: &&str| !prevented.split_whitespace().any(|known| known == *code);
    if ["2", "4"].iter().any(missing) {
        weak(
            format!(
                "RestartPreventExitStatus={prevented} lets a wrong setting (2) or a second instance \
                 (4) start it over and over; both belong there"
            ),
            service("RestartPreventExitStatus", "2 4"),
        );
    }
    if gives_up(unit) {
        weak(
            "the start limit leaves it off for good after some quick failures in a row; \
             StartLimitIntervalSec=0 never gives up"
                .to_owned(),
            line_set("Unit", "StartLimitIntervalSec", "StartLimitIntervalSec=0"),
        );
    }
    let kind = unit.get("Type");
    if kind != "notify" {
        weak(
            format!(
                "Type={} does not hear from the watchdog that it is ready and alive; allowed: \
                 notify",
                set(kind, "simple")
            ),
            service("Type", "notify"),
        );
    }
    if matches!(unit.get("WatchdogSec"), "" | "0" | "infinity") {
        weak(
            "WatchdogSec is not set: nobody notices when it hangs".to_owned(),
            service("WatchdogSec", "120"),
        );
    }
}

/// Whether quick failures keep it off: as many starts as the limit allows fit
/// into the limit's span.
fn gives_up(unit: &Unit) -> bool {
    let seconds = |text: &str, standard: u64| match text.trim_end_matches("ec") {
        "" => Some(Duration::from_secs(standard)),
        "infinity" => Some(Duration::MAX),
        text => match text.parse() {
            Ok(seconds) => Some(Duration::from_secs(seconds)),
            Err(_) => parse_span(text.trim_end_matches("in")),
        },
    };
    let either = |name: &str, old: &str| match unit.get(name) {
        "" => unit.get(old).to_owned(),
        value => value.to_owned(),
    };
    let span = seconds(&either("StartLimitIntervalSec", "StartLimitInterval"), 10);
    let burst: u32 = match unit.get("StartLimitBurst") {
        "" => 5,
        text => text.parse().unwrap_or(0),
    };
    let distance = seconds(unit.get("RestartSec"), 0);
    let (Some(span), Some(distance)) = (span, distance) else {
        // A way to write spans that is not known here says nothing.
        return false;
    };
    !span.is_zero() && burst > 0 && distance.saturating_mul(burst) <= span
}

/// What an environment file holds that systemd does not take.
pub fn env_file_faults(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_start);
    lines.any(|line| line.starts_with("export "))
}

/// What a unit's `ExecStart` starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starts {
    /// agent-deck's Python watchdog.
    Python,
    /// The watchdog, by its path in the first word.
    Ours,
    /// The watchdog, somewhere in the words of a shell.
    ByShell,
    /// Nothing that is known.
    Unknown,
}

/// What such a command starts.
pub fn starts_what(command: &[String]) -> Starts {
    let base = |word: &String| word.rsplit('/').next().unwrap_or_default().to_owned();
    let first = command.first().map(base).unwrap_or_default();
    let text = list(command.iter().map(String::as_str));
    if text.contains("watchdog.py") {
        Starts::Python
    } else if first.starts_with("agent-deck-watchdog") {
        Starts::Ours
    } else if text.contains("agent-deck-watchdog") {
        Starts::ByShell
    } else {
        Starts::Unknown
    }
}

/// What the service manager says of the unit, as `show` prints it. `runs`:
/// the process of a watchdog that lives.
pub fn judge_state(text: &str, runs: Option<u32>) -> Vec<Check> {
    let mut said = Unit::default();
    said.read(text);
    let mut found = Vec::new();
    if said.get("NeedDaemonReload") == "yes" {
        found.push(warning(
            STATE,
            "its files have changed since systemd read them",
            "systemctl --user daemon-reload && systemctl --user restart agent-deck-watchdog",
        ));
    }
    let state = said.get("ActiveState");
    let start = "systemctl --user restart agent-deck-watchdog";
    found.push(match state {
        "active" | "reloading" => ok(STATE, "active"),
        "activating" if said.get("SubState") == "auto-restart" => problem(
            STATE,
            format!(
                "it ends again and again (result: {})",
                escape(said.get("Result"))
            ),
            "journalctl --user -u agent-deck-watchdog -n 20 --no-pager",
        ),
        "activating" => ok(STATE, "it is being started"),
        "failed" => problem(
            STATE,
            format!("it has failed (result: {})", escape(said.get("Result"))),
            format!("journalctl --user -u agent-deck-watchdog -n 20 --no-pager; {start}"),
        ),
        _ => match runs {
            Some(pid) => warning(
                STATE,
                format!(
                    "{}: the watchdog that runs is not the unit's",
                    escape(state)
                ),
                format!("kill {pid} && {start}"),
            ),
            None => warning(STATE, format!("{}: no watchdog runs", escape(state)), start),
        },
    });
    found
}

#[cfg(test)]
#[path = "unit_tests.rs"]
mod tests;
