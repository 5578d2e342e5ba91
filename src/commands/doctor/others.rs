//! Watchdogs: ours, a second one, and agent-deck's Python one. Two must not act
//! on the same sessions.
//!
//! Locks are never taken: who holds one is read in a list of the system's, where
//! there is one. This file does not know what a watchdog does.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::case::Case;
use super::environ::Environ;
use super::hooks::same;
use super::service::UNIT;
use super::shell::Ourselves;
use crate::cli::COMMANDS;
use crate::commands::life::Kind;
use crate::deck::processes::deck_commands;
use crate::host::folder::read_small;
use crate::host::whole;
use crate::model::Process;

/// Longest unit file that is read.
const UNIT_MOST: u64 = 64 << 10;

/// All of it.
pub fn checks(case: &mut Case) {
    ours(case);
    second(case);
    python(case);
}

/// Whether a process is this program at its main job, which changes things.
pub fn watches(process: &Process) -> bool {
    let program = process.args.first().map_or("", String::as_str);
    let named = process.name.starts_with("agent-deck-watc")
        || program.rsplit('/').next() == Some("agent-deck-watchdog");
    let words = process.args.get(1..).unwrap_or_default();
    let other = |word: &String| word == "--dry-run" || COMMANDS[1..].iter().any(|c| c.name == word);
    named && process.own && !process.zombie && !words.iter().any(other)
}

/// The watchdog that holds a lock on a folder, where the system lists locks.
pub fn keeper<'a>(folder: &Path, table: &'a [Process]) -> Option<&'a Process> {
    let locks = whole::text("/proc/locks");
    let holders = holders(&locks, fs::metadata(folder).ok()?.ino());
    let mut watching = table.iter().filter(|p| watches(p));
    watching.find(|p| holders.contains(&p.pid))
}

/// Who holds a lock of `flock` on the file of that number. The device stands in
/// front of it, but not every file system's (btrfs): the number has to do.
fn holders(locks: &str, inode: u64) -> Vec<u32> {
    let mut holders = Vec::new();
    for line in locks.lines() {
        let mut fields = line.split_ascii_whitespace();
        let (Some("FLOCK"), Some(pid), Some(place)) = (fields.nth(1), fields.nth(2), fields.next())
        else {
            continue;
        };
        let number = place.rsplit(':').next().unwrap_or_default();
        if number.parse() == Ok(inode) {
            holders.extend(pid.parse::<u32>().ok());
        }
    }
    holders
}

/// Whether ours is alive.
fn ours(case: &Case) {
    const NAME: &str = "watchdog";
    let found = case.found;
    let life = &case.desk.life;
    let sentence = life.sentence(case.desk.now);
    let sentence = format_args!("{sentence}");
    let pid = life.holder.as_ref().map_or(0, |holder| holder.pid);
    match life.kind {
        Kind::Watching | Kind::ByCron | Kind::Unreadable => found.ok(NAME, sentence),
        Kind::Silent | Kind::Stuck => {
            found.problem(NAME, sentence, format_args!("kill -9 {pid}"));
        }
        // What is to start it for good is looked at elsewhere.
        Kind::Ended | Kind::Never => {
            let unit = unit(case);
            let by_unit = cfg!(target_os = "linux") && unit.is_file() && !is_pythons(&unit);
            let mend = match by_unit {
                true => format_args!("systemctl --user enable --now agent-deck-watchdog"),
                false => format_args!("{Ourselves} --once"),
            };
            found.warning(NAME, sentence, mend);
        }
    }
}

/// The unit of this name, where it is as a rule. The Python watchdog's has the
/// same name (contract 9).
fn unit(case: &Case) -> PathBuf {
    case.home().join(".config/systemd/user").join(UNIT)
}

fn is_pythons(unit: &Path) -> bool {
    let text = read_small(unit, UNIT_MOST).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let starts = |line: &str| line.trim_start().starts_with("Exec") && line.contains("watchdog.py");
    text.lines().any(starts)
}

/// Other processes of this program that work on the same HOME.
fn second(case: &Case) {
    const NAME: &str = "second watchdog";
    let found = case.found;
    let before = found.count();
    let (home, folder) = (case.home(), case.folder());
    for process in case.table() {
        let pid = process.pid;
        if !watches(process) || case.watcher.as_ref().is_some_and(|ours| ours.pid == pid) {
            continue;
        }
        let environ = Environ::of(pid);
        // One that is just starting shows no variables yet: whose it is, is not known.
        if !same(Path::new(environ.get("HOME")), home) {
            continue;
        }
        let its = match environ.get("AGENT_DECK_ROOT") {
            root if root.is_empty() => home.join(".agent-deck"),
            root => PathBuf::from(root),
        };
        let its = its.join("watchdog");
        let what = match same(&its, &folder) {
            true => "it waits for the lock of the first".to_owned(),
            false => format!("its folder is {}, ours {}", its.display(), folder.display()),
        };
        found.problem(
            NAME,
            format_args!("a second one runs, process {pid}: {what}"),
            format_args!("kill {pid}"),
        );
    }
    if found.count() == before && case.blind().is_none() {
        found.ok(NAME, format_args!("none runs"));
    }
}

/// The process of agent-deck's Python watchdog.
fn python(case: &Case) {
    const NAME: &str = "python watchdog";
    let found = case.found;
    if let Some(pid) = deck_commands(case.table()).watchdog {
        let mend = match is_pythons(&unit(case)) {
            true => format_args!("systemctl --user disable --now agent-deck-watchdog"),
            false => format_args!("kill {pid}"),
        };
        found.problem(
            NAME,
            format_args!(
                "agent-deck's Python watchdog runs, process {pid}: two must not act on the same \
                 sessions"
            ),
            mend,
        );
    } else if case.blind().is_none() {
        found.ok(NAME, format_args!("does not run"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn process(command: &str) -> Process {
        Process {
            own: true,
            args: command.split(' ').map(str::to_owned).collect(),
            ..Process::default()
        }
    }

    #[test]
    fn only_the_main_job_counts_as_a_watchdog() {
        for (command, counts) in [
            ("/x/agent-deck-watchdog", true),
            ("agent-deck-watchdog --once", true),
            ("agent-deck-watchdog --dry-run --once", false),
            ("agent-deck-watchdog status", false),
            ("agent-deck-watchdog doctor --json", false),
            ("agent-deck list", false),
            ("vi /x/agent-deck-watchdog", false),
        ] {
            assert_eq!(watches(&process(command)), counts, "{command}");
        }
        let foreign = Process {
            own: false,
            ..process("agent-deck-watchdog")
        };
        assert!(!watches(&foreign));
    }

    #[test]
    fn holders_of_a_lock_are_read() {
        let locks = "1: FLOCK  ADVISORY  WRITE 7 08:01:42 0 EOF\n\
            1: -> FLOCK  ADVISORY  WRITE 8 08:01:42 0 EOF\n\
            2: POSIX  ADVISORY  WRITE 9 08:01:42 0 EOF\n\
            3: FLOCK  ADVISORY  WRITE 10 00:2e:421 0 EOF\n\
            4: FLOCK  ADVISORY  WRITE -1 08:01:42 0 EOF\ntorn";
        assert_eq!(holders(locks, 42), [7]);
        assert_eq!(holders(locks, 421), [10]);
        assert_eq!(holders("", 42), [0; 0]);
    }

    #[test]
    fn a_unit_of_the_python_watchdog_is_known_by_what_it_starts() {
        let folder = Scratch::new();
        let unit = |text: &str| is_pythons(&folder.write("x.service", text));
        assert!(unit(
            "[Service]\nExecStart=/usr/bin/python3 %h/watchdog.py\n"
        ));
        assert!(!unit(
            "[Service]\n# once watchdog.py\nExecStart=%h/agent-deck-watchdog\n"
        ));
    }
}
