//! A systemd unit as text: what it says, and what of it cannot stay so. Pure.
//!
//! Names and rules are those of systemd.unit(5), systemd.service(5),
//! systemd.exec(5). This file does not know where the text was found.

use std::ffi::OsStr;
use std::fmt::{Arguments, Display, Formatter};
use std::time::Duration;

use super::super::Found;
use super::super::environ::Environ;
use super::super::settings::pairs;
use crate::clock::parse_span;
use crate::commands::paper::Light;

/// Name of the line that tells about the unit.
pub const NAME: &str = "unit";
/// Name of the line that tells what systemd says of it.
pub const STATE: &str = "unit state";

/// What the files of a unit say, the later ones above the earlier ones.
#[derive(Debug, Default)]
pub struct Unit {
    lines: Vec<(String, String)>,
}

/// Has what changed take effect.
pub const RESTART: &str = "systemctl --user restart agent-deck-watchdog";

/// Settings of the service that agents could not bear, since those that a
/// restart starts inherit them; how bad that is; the value that is none; what
/// they do.
const FENCES: [(&str, Light, &str, &str); 8] = [
    (
        "PrivateTmp",
        Light::Red,
        "no",
        "hides the socket of tmux, so that every session looks dead",
    ),
    (
        "ProtectHome",
        Light::Red,
        "no",
        "hides or locks agent-deck's files",
    ),
    ("DynamicUser", Light::Red, "no", OTHER_USER),
    ("PrivateUsers", Light::Red, "no", OTHER_USER),
    (
        "NoNewPrivileges",
        Light::Yellow,
        "no",
        "takes sudo from agents that a restart starts",
    ),
    (
        "MemoryDenyWriteExecute",
        Light::Yellow,
        "no",
        "stops node in agents that a restart starts",
    ),
    (
        "MemoryMax",
        Light::Yellow,
        "infinity",
        "counts the agents that a restart starts",
    ),
    (
        "RuntimeMaxSec",
        Light::Yellow,
        "infinity",
        "ends the watchdog after that time",
    ),
];
const OTHER_USER: &str = "is another user, who sees no session";

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

    /// The same, with what counts without it.
    fn or<'a>(&'a self, key: &str, standard: &'a str) -> &'a str {
        match self.get(key) {
            "" => standard,
            value => value,
        }
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
        let mut files = Vec::new();
        for file in self.all("EnvironmentFile") {
            let path = file.trim_start_matches('-');
            files.push((specified(path, home), path == file));
        }
        files
    }

    /// The variables that its lines set, into what is there already.
    pub fn environment(&self, home: &str, environ: &mut Environ) {
        for line in self.all("Environment") {
            for word in words(&specified(line, home)) {
                if let Some((name, value)) = word.split_once('=') {
                    environ.set(name, OsStr::new(value));
                }
            }
        }
    }
}

/// The variables of an environment file, into what is there already.
pub fn env_file(text: &str, environ: &mut Environ) {
    for (name, value) in pairs(text) {
        environ.set(&name, OsStr::new(&value));
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

/// A command that sets one line of the unit, whatever its files say: section,
/// name, line.
pub struct Line<'a>(pub &'a str, pub &'a str, pub &'a str);

impl Display for Line<'_> {
    fn fmt(&self, out: &mut Formatter) -> std::fmt::Result {
        let Line(section, name, line) = self;
        write!(
            out,
            "d=~/.config/systemd/user/agent-deck-watchdog.service.d; mkdir -p $d && {{ echo \
             '[{section}]'; echo '{line}'; }} >$d/zz-{name}.conf && systemctl --user daemon-reload"
        )
    }
}

/// What of a unit cannot stay so. `once`: it starts single runs.
pub fn judge(unit: &Unit, once: bool, found: &Found) {
    let mode = unit.or("KillMode", "control-group");
    if mode != "process" {
        say(
            found,
            Light::Red,
            format_args!(
                "KillMode={mode} ends a tmux server that a restart started, and all agents in it, \
                 when the watchdog stops; allowed: process"
            ),
            "KillMode=process",
        );
    }
    for (name, light, none, what) in FENCES {
        let value = unit.get(name);
        let off = ["infinity", "no", "false", "off", "0", "n", "f", ""];
        if !off.contains(&value.to_ascii_lowercase().as_str()) {
            let line = format!("{name}={none}");
            let sentence = format_args!("{name}={value} {what}");
            say(found, light, sentence, &line);
        }
    }
    if !once {
        starts(unit, found);
    }
}

/// Says it, with the line that mends it.
fn say(found: &Found, light: Light, sentence: Arguments, line: &str) {
    let (name, _) = line.split_once('=').unwrap_or_default();
    let section = match name.starts_with("Start") {
        true => "Unit",
        false => "Service",
    };
    let mend = Line(section, name, line);
    found.say(NAME, light, sentence, format_args!("{mend}"));
}

/// How it is started, again and again.
fn starts(unit: &Unit, found: &Found) {
    let weak = |sentence: Arguments, line: &str| say(found, Light::Yellow, sentence, line);
    let restart = unit.or("Restart", "no");
    if !matches!(restart, "always" | "on-failure") {
        weak(
            format_args!(
                "Restart={restart}: after a crash nobody starts it again; allowed: always, \
                 on-failure"
            ),
            "Restart=always",
        );
    }
    let prevented = unit.all("RestartPreventExitStatus").join(" ");
    let has = |code| prevented.split(' ').any(|known| known == code);
    if !(has("2") && has("4")) {
        weak(
            format_args!(
                "RestartPreventExitStatus={prevented} lets a wrong setting (2) or a second \
                 instance (4) start it over and over; both belong there"
            ),
            "RestartPreventExitStatus=2 4",
        );
    }
    if gives_up(unit) {
        weak(
            format_args!(
                "the start limit leaves it off for good after some quick failures in a row; \
                 StartLimitIntervalSec=0 never gives up"
            ),
            "StartLimitIntervalSec=0",
        );
    }
    let kind = unit.or("Type", "simple");
    if kind != "notify" {
        weak(
            format_args!(
                "Type={kind} does not hear from the watchdog that it is ready and alive; allowed: \
                 notify"
            ),
            "Type=notify",
        );
    }
    if matches!(unit.get("WatchdogSec"), "" | "0" | "infinity") {
        weak(
            format_args!("WatchdogSec is not set: nobody notices when it hangs"),
            "WatchdogSec=120",
        );
    }
}

/// Whether quick failures keep it off: as many starts as the limit allows fit
/// into the limit's span.
fn gives_up(unit: &Unit) -> bool {
    let seconds = |text: &str, standard: u64| match text.strip_suffix("ec").unwrap_or(text) {
        "" => Some(Duration::from_secs(standard)),
        "infinity" => Some(Duration::MAX),
        text => match text.parse() {
            Ok(seconds) => Some(Duration::from_secs(seconds)),
            Err(_) => parse_span(text.strip_suffix("in").unwrap_or(text)),
        },
    };
    let span = unit.or("StartLimitIntervalSec", unit.get("StartLimitInterval"));
    let span = seconds(span, 10);
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
    let first = command.first().map_or("", String::as_str);
    let first = first.rsplit('/').next().unwrap_or_default();
    let text = command.join(" ");
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
pub fn judge_state(text: &str, runs: Option<u32>, found: &Found) {
    let mut said = Unit::default();
    said.read(text);
    if said.get("NeedDaemonReload") == "yes" {
        found.warning(
            STATE,
            format_args!("its files have changed since systemd read them"),
            format_args!("systemctl --user daemon-reload && {RESTART}"),
        );
    }
    let journal = "journalctl --user -u agent-deck-watchdog -n 20 --no-pager";
    let result = said.get("Result");
    match (said.get("ActiveState"), runs) {
        ("active" | "reloading", _) => found.ok(STATE, format_args!("active")),
        ("activating", _) if said.get("SubState") == "auto-restart" => found.problem(
            STATE,
            format_args!("it ends again and again (result: {result})"),
            format_args!("{journal}"),
        ),
        ("activating", _) => found.ok(STATE, format_args!("it is being started")),
        ("failed", _) => found.problem(
            STATE,
            format_args!("it has failed (result: {result})"),
            format_args!("{journal}; {RESTART}"),
        ),
        (state, Some(pid)) => found.warning(
            STATE,
            format_args!("{state}: the watchdog that runs is not the unit's"),
            format_args!("kill {pid} && {RESTART}"),
        ),
        (state, None) => found.warning(
            STATE,
            format_args!("{state}: no watchdog runs"),
            format_args!("{RESTART}"),
        ),
    }
}

#[cfg(test)]
#[path = "unit_tests.rs"]
mod tests;
