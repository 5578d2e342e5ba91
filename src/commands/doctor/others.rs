//! Watchdogs: ours, a second one, and agent-deck's Python one. Two must not act
//! on the same sessions.
//!
//! Locks are never taken: who holds one is read in a list of the system's, where
//! there is one. This file does not know what a watchdog does.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Case, Environ, same};
use crate::cli::COMMANDS;
use crate::commands::life::Kind;
use crate::deck::processes::deck_commands;
use crate::host::folder::read_small;
use crate::host::lock::read_holder;
use crate::model::Process;

/// Our unit; the Python watchdog's has the same name (contract 9).
const UNIT: &str = "agent-deck-watchdog.service";
/// Longest unit file that is read.
const UNIT_MOST: u64 = 64 << 10;

/// All of it.
pub fn checks(case: &mut Case) {
    ours(case);
    second(case);
    python(case);
}

/// Whether a process is this program at its main job, which changes things.
fn watches(process: &Process) -> bool {
    let program = process.args.first().map_or("", String::as_str);
    let named = process.name.starts_with("agent-deck-watc")
        || program.rsplit('/').next() == Some("agent-deck-watchdog");
    let words = process.args.get(1..).unwrap_or_default();
    let other = |word: &String| word == "--dry-run" || COMMANDS[1..].iter().any(|c| c.name == word);
    named && process.own && !process.zombie && !words.iter().any(other)
}

/// The running process that the lock file of a folder names.
pub fn holder(folder: &Path, table: &[Process]) -> Option<u32> {
    let holder = read_holder(&folder.join("lock")).ok()?;
    let process = table.iter().find(|p| p.pid == holder.pid)?;
    watches(process).then_some(holder.pid)
}

/// The watchdog that holds a lock on a folder, where the system lists locks.
pub fn keeper<'a>(folder: &Path, table: &'a [Process]) -> Option<&'a Process> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let holders = holders(&locks, fs::metadata(folder).ok()?.ino());
    let mut watching = table.iter().filter(|p| watches(p));
    watching.find(|p| holders.contains(&p.pid))
}

/// Who holds a lock of `flock` on the file of that number. The device stands in
/// front of it, but not every file system's (btrfs): the number has to do.
fn holders(locks: &str, inode: u64) -> Vec<u32> {
    let held = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, _, pid, place, ..] = fields[..] else {
            return None;
        };
        let number = place.rsplit(':').next()?.parse::<u64>().ok()?;
        (number == inode).then(|| pid.parse().ok())?
    };
    locks.lines().filter_map(held).collect()
}

/// Whether ours is alive.
fn ours(case: &mut Case) {
    let life = case.desk.life.clone();
    let sentence = life.sentence(case.desk.now);
    let pid = life.holder.as_ref().map_or(0, |holder| holder.pid);
    match life.kind {
        Kind::Watching | Kind::ByCron | Kind::Unreadable => case.ok("watchdog", sentence),
        Kind::Ended | Kind::Never => {
            let mend = start(case);
            case.warning("watchdog", sentence, mend);
        }
        Kind::Silent | Kind::Stuck => case.problem("watchdog", sentence, format!("kill -9 {pid}")),
    }
}

/// The unit of this name, where it is as a rule.
fn unit(case: &Case) -> PathBuf {
    let home = &case.desk.machine.settings.home;
    home.join(".config/systemd/user").join(UNIT)
}

/// A command that starts ours: with its unit, else for one turn. What is to
/// start it for good is looked at elsewhere.
fn start(case: &Case) -> String {
    let unit = unit(case);
    match cfg!(target_os = "linux") && unit.is_file() && !is_pythons(&unit) {
        true => "systemctl --user enable --now agent-deck-watchdog".to_owned(),
        false => format!("{} --once", super::ourselves()),
    }
}

fn is_pythons(unit: &Path) -> bool {
    let text = read_small(unit, UNIT_MOST).unwrap_or_default();
    String::from_utf8_lossy(&text)
        .lines()
        .any(|line| line.trim_start().starts_with("Exec") && line.contains("watchdog.py"))
}

/// Other processes of this program that work on the same HOME.
fn second(case: &mut Case) {
    let ours = case.watcher.as_ref().map(|watcher| watcher.pid);
    let home = case.desk.machine.settings.home.clone();
    let others = case
        .table
        .iter()
        .filter(|p| watches(p) && Some(p.pid) != ours);
    let mut others: Vec<(u32, Environ)> = others.map(|p| (p.pid, Environ::of(p.pid))).collect();
    // One that is just starting shows no variables yet: whose it is, is not known.
    others.retain(|(_, environ)| {
        let its = environ.value("HOME").map(PathBuf::from);
        its.is_some_and(|its| same(&its, &home))
    });
    let folder = case.folder();
    for (pid, environ) in &others {
        let root = environ.value("AGENT_DECK_ROOT").map(PathBuf::from);
        let its = root
            .unwrap_or_else(|| home.join(".agent-deck"))
            .join("watchdog");
        let what = match same(&its, &folder) {
            true => "it waits for the lock of the first".to_owned(),
            false => format!("its folder is {}, ours {}", its.display(), folder.display()),
        };
        let sentence = format!("a second one runs, process {pid}: {what}");
        case.problem("second watchdog", sentence, format!("kill {pid}"));
    }
    if others.is_empty() && case.blind.is_none() {
        case.ok("second watchdog", "none runs");
    }
}

/// The process of agent-deck's Python watchdog.
fn python(case: &mut Case) {
    let name = "python watchdog";
    match deck_commands(&case.table).watchdog {
        Some(pid) => {
            let sentence = format!(
                "agent-deck's Python watchdog runs, process {pid}: two must not act on the same \
                 sessions"
            );
            let mend = match is_pythons(&unit(case)) {
                true => "systemctl --user disable --now agent-deck-watchdog".to_owned(),
                false => format!("kill {pid}"),
            };
            case.problem(name, sentence, mend);
        }
        None if case.blind.is_none() => case.ok(name, "does not run"),
        None => {}
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
