//! The lines of cron that start the watchdog.
//!
//! Cron expands nothing in its settings, gives a short PATH, and takes HOME from
//! the user database (crontab(5)). This file does not know what else starts it.

use std::path::Path;

use super::super::around::{Around, Seen, ask, program, quoted};
use super::super::{Check, ok, problem, warning};
use crate::commands::desk::Desk;
use crate::host::logs::escape;
use crate::machine::bin::is_program;

const NAME: &str = "cron";
/// What cron gives where the crontab sets no PATH.
const PATH: &str = "/usr/bin:/bin";
/// Words behind the watchdog's name with which it does not watch.
const ASKS: [&str; 12] = [
    "status",
    "doctor",
    "history",
    "explain",
    "clear",
    "watch",
    "hold",
    "pause",
    "print",
    "--help",
    "--version",
    "--dry-run",
];

/// A line that starts a watchdog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// The command.
    pub command: String,
    /// At each start of the machine, not by the clock.
    pub reboot: bool,
    /// The variables that count for it.
    pub seen: Seen,
}

/// The lines of a crontab that start a watchdog, ours or the Python one.
pub fn jobs(text: &str) -> Vec<Job> {
    let mut seen = Seen::default();
    seen.set("PATH", PATH);
    let mut jobs = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some((name, value)) = assignment(line) {
            seen.set(name, value);
            continue;
        }
        let reboot = line.starts_with("@reboot");
        let fields = if line.starts_with('@') { 1 } else { 5 };
        let mut command = line;
        for _ in 0..fields {
            let rest = command.split_once(char::is_whitespace);
            command = rest.map_or("", |(_, rest)| rest.trim_start());
        }
        if watches(command) {
            jobs.push(Job {
                command: command.to_owned(),
                reboot,
                seen: seen.clone(),
            });
        }
    }
    jobs
}

/// `NAME = value`, the value in quotes or not.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end().trim_matches(['"', '\'']);
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let named = !name.is_empty() && name.chars().all(plain);
    named.then(|| (name, value.trim().trim_matches(['"', '\''])))
}

/// Whether a command watches: it names the watchdog, and nothing that it is
/// only asked.
fn watches(command: &str) -> bool {
    let python = command.contains("watchdog.py");
    let rest = command
        .split_once("agent-deck-watchdog")
        .map(|(_, rest)| rest);
    let word = rest.and_then(|rest| rest.split(['"', '\'', ' ']).find(|word| !word.is_empty()));
    python || (rest.is_some() && !word.is_some_and(|word| ASKS.contains(&word)))
}

/// A command that adds a line for the watchdog.
pub fn install(home: &Path, path: &str) -> String {
    format!(
        "{{ crontab -l; echo HOME={}; echo PATH={}; echo '* * * * * '{}' --once'; }} | crontab -",
        quoted(&home.to_string_lossy()),
        quoted(path),
        program(home).replace("~/", "'\"$HOME\"/'"),
    )
}

/// A command that sets a variable for all lines.
fn variable_set(name: &str, value: &str) -> String {
    let line = quoted(&format!("{name}={value}"));
    format!("{{ echo {line}; crontab -l | sed '/^{name} *=/d'; }} | crontab -")
}

/// The checks of cron's lines. False: none starts the watchdog.
pub fn checks(desk: &mut Desk, around: &Around, found: &mut Vec<Check>) -> bool {
    let text = match ask(desk, "crontab", &["-l"], &[]) {
        Ok((0, text)) => text,
        // There is no crontab, or no cron.
        Ok(_) | Err(_) => return false,
    };
    let jobs = jobs(&text);
    let home = desk.machine.settings.home.clone();
    for job in &jobs {
        let before = found.len();
        judge(job, &home, passwd_home().as_deref(), found);
        let mut seen = job.seen.clone();
        if seen.get("HOME").is_empty() {
            seen.set("HOME", &home.to_string_lossy());
        }
        // One that makes its own environment.
        let own = ["PATH=", ". ", "source ", "-l"];
        if !own.iter().any(|word| job.command.contains(word)) {
            super::fits(NAME, "cron", &seen, &home, around, &variable_set, found);
        }
        if found.len() == before {
            let when = if job.reboot {
                "at each reboot"
            } else {
                "by the clock"
            };
            found.push(ok(
                NAME,
                format!("starts it {when}: {}", escape(&job.command)),
            ));
        }
    }
    !jobs.is_empty()
}

/// The home that the user database names, which is what cron gives.
fn passwd_home() -> Option<String> {
    let user = rustix::process::geteuid().as_raw().to_string();
    let passwd = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = passwd
        .lines()
        .find(|line| line.split(':').nth(2) == Some(&user))?;
    line.split(':').nth(5).map(str::to_owned)
}

/// What of a line cannot stay so. `standard`: the home that cron gives.
fn judge(job: &Job, home: &Path, standard: Option<&str>, found: &mut Vec<Check>) {
    let shown = escape(&job.command);
    if job.command.contains("watchdog.py") {
        found.push(problem(
            NAME,
            format!("a line starts the Python watchdog ({shown}); two must not watch one deck"),
            "crontab -l | grep -v watchdog.py | crontab -",
        ));
        return;
    }
    if !job.reboot && !job.command.contains("--once") {
        found.push(problem(
            NAME,
            format!("a line without --once starts a daemon each time: {shown}"),
            "crontab -l | sed 's/\\(agent-deck-watchdog\"\\{0,1\\}\\) *$/\\1 --once/' | crontab -",
        ));
    }
    let set = job.seen.get("HOME");
    let given = if set.is_empty() {
        standard.unwrap_or("")
    } else {
        set
    };
    if !given.is_empty() && Path::new(given) != home {
        let from = if set.is_empty() {
            "cron gives"
        } else {
            "the crontab sets"
        };
        found.push(problem(
            NAME,
            format!(
                "{from} HOME={}, and agent-deck's files are in {}",
                escape(given),
                home.display()
            ),
            variable_set("HOME", &home.to_string_lossy()),
        ));
    }
    let path = job.seen.get("PATH");
    if path.split(':').any(|folder| folder.starts_with(['$', '~'])) {
        found.push(warning(
            NAME,
            format!("cron expands nothing in PATH={}", escape(path)),
            variable_set("PATH", &path.replace("$HOME", &home.to_string_lossy())),
        ));
    }
    if let Some(named) = named(&job.command, home)
        && !is_program(Path::new(&named))
    {
        found.push(problem(
            NAME,
            format!("{} is not there or not executable", escape(&named)),
            format!("crontab -e  # this one is {}", program(home)),
        ));
    }
}

/// The absolute path of the watchdog in a command.
fn named(command: &str, home: &Path) -> Option<String> {
    let words = command.split([' ', '"', '\'', ';', '&']);
    let word = words
        .into_iter()
        .find(|word| word.ends_with("agent-deck-watchdog"))?;
    let home = home.to_string_lossy();
    let word = word.replace("${HOME}", &home).replace("$HOME", &home);
    let word = match word.strip_prefix("~/") {
        Some(rest) => format!("{home}/{rest}"),
        None => word,
    };
    word.starts_with('/').then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = include_str!("../../../../contrib/crontab.example");

    /// What is said of a crontab, but for the binary that is not there.
    fn said(text: &str, standard: &str) -> Vec<String> {
        let mut found = Vec::new();
        for job in jobs(text) {
            judge(&job, Path::new("/home/you"), Some(standard), &mut found);
        }
        let sentences = found.into_iter().map(|check| check.sentence);
        sentences
            .filter(|text| !text.contains("is not there"))
            .collect()
    }

    #[test]
    fn the_example_is_as_it_should_be() {
        let jobs = jobs(OURS);
        assert_eq!(jobs.len(), 1);
        assert_eq!(jobs[0].seen.get("HOME"), "/home/you");
        assert_eq!(
            jobs[0].seen.get("PATH"),
            "/home/you/.local/bin:/usr/local/bin:/usr/bin:/bin"
        );
        assert_eq!(said(OURS, "/root"), [""; 0]);
        let path = "/home/you/.agent-deck/watchdog/agent-deck-watchdog";
        assert_eq!(
            named(&jobs[0].command, Path::new("/home/you")).unwrap(),
            path
        );
    }

    #[test]
    fn lines_that_watch_are_told_from_others() {
        for (line, watches) in [
            ("* * * * * agent-deck-watchdog --once", true),
            (
                "*/5 * * * 1-5 \"$HOME/x y/agent-deck-watchdog\" --once >/dev/null",
                true,
            ),
            ("@reboot /opt/agent-deck-watchdog", true),
            ("* * * * * python3 ~/.agent-deck/watchdog.py", true),
            ("#* * * * * agent-deck-watchdog --once", false),
            ("* * * * * agent-deck-watchdog status || mail me", false),
            ("* * * * * \"/opt/agent-deck-watchdog\" doctor", false),
            ("0 3 * * * backup", false),
            ("agent-deck-watchdog", false),
            ("\u{fffd}\u{0}", false),
        ] {
            assert_eq!(jobs(line).len(), usize::from(watches), "{line}");
        }
    }

    #[test]
    fn each_wrong_line_is_named() {
        let line = "* * * * * /opt/agent-deck-watchdog --once";
        for (text, standard, word) in [
            (line.to_owned(), "/root", "cron gives HOME=/root"),
            (
                format!("HOME=/other\n{line}"),
                "/home/you",
                "the crontab sets HOME=/other",
            ),
            (
                format!("PATH = \"$HOME/bin:/bin\"\n{line}"),
                "/home/you",
                "expands nothing",
            ),
            (line.replace(" --once", ""), "/home/you", "without --once"),
            (
                "* * * * * python3 agent-deck/watchdog.py".to_owned(),
                "/home/you",
                "Python",
            ),
        ] {
            let found = said(&text, standard);
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert!(found[0].contains(word), "{text}: {found:?}");
        }
        for text in [
            line.to_owned(),
            line.replace("* * * * *", "@reboot").replace(" --once", ""),
            // What comes behind a line does not count for it.
            format!("{line}\nHOME=/other"),
        ] {
            assert_eq!(said(&text, "/home/you"), [""; 0], "{text}");
        }
    }
}
