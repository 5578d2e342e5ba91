//! The lines of cron that start the watchdog.
//!
//! Cron expands nothing in its settings, gives a short PATH, and takes HOME from
//! the user database (crontab(5)). This file does not know what else starts it.

use std::ffi::OsStr;
use std::path::Path;

use super::super::Found;
use super::super::case::Case;
use super::super::environ::Environ;
use super::super::shell::{Ourselves, quoted};
use crate::cli::COMMANDS;
use crate::host::users::{me, passwd};
use crate::machine::bin::is_program;

const NAME: &str = "cron";
/// What cron gives where the crontab sets no PATH.
const PATH: &str = "/usr/bin:/bin";
/// A line that starts a watchdog.
struct Job {
    /// The command.
    command: String,
    /// At each start of the machine, not by the clock.
    reboot: bool,
    /// The variables that count for it.
    environ: Environ,
}

/// The lines of a crontab that start a watchdog, ours or the Python one.
fn jobs(text: &str) -> Vec<Job> {
    let mut environ = Environ::default();
    environ.set("PATH", OsStr::new(PATH));
    let mut jobs = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some((name, value)) = assignment(line) {
            environ.set(name, OsStr::new(value));
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
                environ: environ.clone(),
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
    let Some((_, rest)) = command.split_once("agent-deck-watchdog") else {
        return command.contains("watchdog.py");
    };
    let mut words = rest.split(['"', '\'', ' ']).filter(|word| !word.is_empty());
    let word = words.next().unwrap_or_default();
    let asked = COMMANDS[1..].iter().any(|asked| asked.name == word);
    !asked && !["--help", "--version", "--dry-run"].contains(&word)
}

/// A command that adds a line for the watchdog.
pub fn install() -> String {
    format!("{{ crontab -l; {Ourselves} print cron; }} | crontab -")
}

/// A command that sets a variable for all lines.
fn variable_set(name: &str, value: &OsStr) -> String {
    let line = format!("{name}={}", value.display());
    let line = quoted(&line);
    format!("{{ echo {line}; crontab -l | sed '/^{name} *=/d'; }} | crontab -")
}

/// The checks of cron's lines. False: none starts the watchdog.
pub fn checks(case: &mut Case) -> bool {
    let text = match case.ask("crontab", &["-l"], &[]) {
        Ok((0, text)) => text,
        // There is no crontab, or no cron.
        Ok(_) | Err(_) => return false,
    };
    let found = case.found;
    let jobs = jobs(&text);
    // What cron gives.
    let (_, standard) = passwd(me()).unwrap_or_default();
    for job in &jobs {
        let before = found.count();
        judge(job, case.home(), &standard, found);
        let mut environ = job.environ.clone();
        if environ.get("HOME").is_empty() {
            environ.set("HOME", case.home().as_os_str());
        }
        // One that makes its own environment.
        let own = ["PATH=", ". ", "source ", "-l"];
        if !own.iter().any(|word| job.command.contains(word)) {
            super::fits(case, NAME, "cron", &environ, &variable_set);
        }
        if found.count() == before {
            let when = match job.reboot {
                true => "at each reboot",
                false => "by the clock",
            };
            let command = &job.command;
            found.ok(NAME, format_args!("starts it {when}: {command}"));
        }
    }
    !jobs.is_empty()
}

/// What of a line cannot stay so. `standard`: the home that cron gives.
fn judge(job: &Job, home: &Path, standard: &str, found: &Found) {
    let shown = &job.command;
    if shown.contains("watchdog.py") {
        return found.problem(
            NAME,
            format_args!(
                "a line starts the Python watchdog ({shown}); two must not watch one deck"
            ),
            format_args!("crontab -l | grep -v watchdog.py | crontab -"),
        );
    }
    if !job.reboot && !shown.contains("--once") {
        found.problem(
            NAME,
            format_args!("a line without --once starts a daemon each time: {shown}"),
            format_args!(
                "crontab -l | sed 's/\\(agent-deck-watchdog\"\\{{0,1\\}}\\) *$/\\1 --once/' | \
                 crontab -"
            ),
        );
    }
    let set = job.environ.get("HOME");
    let (from, given) = match set.is_empty() {
        true => ("cron gives", OsStr::new(standard)),
        false => ("the crontab sets", set),
    };
    if !given.is_empty() && Path::new(given) != home {
        found.problem(
            NAME,
            format_args!(
                "{from} HOME={}, and agent-deck's files are in {}",
                given.display(),
                home.display()
            ),
            format_args!("{}", variable_set("HOME", home.as_os_str())),
        );
    }
    let path = job.environ.get("PATH").to_string_lossy();
    if path.split(':').any(|folder| folder.starts_with(['$', '~'])) {
        let right = path.replace("$HOME", &home.to_string_lossy());
        found.warning(
            NAME,
            format_args!("cron expands nothing in PATH={path}"),
            format_args!("{}", variable_set("PATH", right.as_ref())),
        );
    }
    if let Some(named) = named(shown, home)
        && !is_program(Path::new(&named))
    {
        found.problem(
            NAME,
            format_args!("{named} is not there or not executable"),
            format_args!("crontab -e  # this one is {Ourselves}"),
        );
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
        let found = Found::default();
        for job in jobs(text) {
            judge(&job, Path::new("/home/you"), standard, &found);
        }
        let sentences = found.0.into_inner().into_iter().map(|check| check.sentence);
        sentences
            .filter(|text| !text.contains("is not there"))
            .collect()
    }

    #[test]
    fn the_example_is_as_it_should_be() {
        let jobs = jobs(OURS);
        assert_eq!(jobs.len(), 1);
        assert_eq!(jobs[0].environ.get("HOME"), "/home/you");
        assert_eq!(
            jobs[0].environ.get("PATH"),
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
