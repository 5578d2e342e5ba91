//! tmux: is it there, and is the one that is looked at that of the sessions?
//!
//! With another TMUX_TMPDIR every session reads dead. Which is theirs, living
//! agents say themselves. This file does not know what follows for a session.

use std::ffi::OsStr;
use std::fmt::{Display, Formatter};
use std::path::{Path, PathBuf};

use super::case::Case;
use super::environ::Environ;
use super::shell::{numbers, quoted};
use crate::capabilities::eyes;
use crate::deck::processes::is_tmux_server;
use crate::host::exec::USUAL_PLACES;
use crate::machine::bin::on_path;
use crate::model::Sight;

/// Where tmux keeps its sockets unless TMUX_TMPDIR says otherwise (tmux(1)).
const STANDARD: &str = "/tmp";
/// Where agent-deck looks beside PATH and the usual places (contract 1.1).
const BY_DECK: [&str; 4] = [
    "/opt/homebrew/bin",
    "/opt/local/bin",
    "/home/linuxbrew/.linuxbrew/bin",
    "/snap/bin",
];

/// How much of agent-deck's words is shown.
const REASON: usize = 300;

/// All of it.
pub fn checks(case: &mut Case) {
    program(case);
    let theirs = sockets(case);
    let named = server(case, &theirs);
    sessions(case, named);
}

fn program(case: &Case) {
    let found = case.found;
    let path = case.value("PATH");
    if let Some(place) = on_path("tmux", &path, &[]) {
        return found.ok("tmux", format_args!("{}, by PATH", place.display()));
    }
    let none = OsStr::new("");
    let place = on_path("tmux", none, &USUAL_PLACES);
    let shown = Shown(&path);
    match place.or_else(|| on_path("tmux", none, &BY_DECK)) {
        Some(place) => found.warning(
            "tmux",
            format_args!(
                "it is not in {shown}; agent-deck finds {} all the same",
                place.display()
            ),
            format_args!(
                "export PATH=\"$PATH:{}\"",
                place.parent().unwrap_or(&place).display()
            ),
        ),
        None => found.problem(
            "tmux",
            format_args!(
                "there is none in {shown} nor in {}, {}: agent-deck sees no session without it",
                USUAL_PLACES.join(", "),
                BY_DECK.join(", ")
            ),
            format_args!("{} tmux", installer()),
        ),
    }
}

/// A PATH in a sentence.
pub struct Shown<'a>(pub &'a OsStr);

impl Display for Shown<'_> {
    fn fmt(&self, out: &mut Formatter) -> std::fmt::Result {
        match self.0.len() {
            0 => out.write_str("PATH, which is not set,"),
            1..=60 => write!(out, "PATH ({})", self.0.display()),
            _ => write!(
                out,
                "the {} folders of PATH",
                std::env::split_paths(self.0).count()
            ),
        }
    }
}

/// How a program is installed on this system.
pub fn installer() -> &'static str {
    const MANAGERS: [(&str, &str); 6] = [
        ("apt-get", "sudo apt-get install"),
        ("brew", "brew install"),
        ("dnf", "sudo dnf install"),
        ("pacman", "sudo pacman -S"),
        ("apk", "sudo apk add"),
        ("zypper", "sudo zypper install"),
    ];
    let path = OsStr::new("/usr/bin:/bin:/sbin:/usr/sbin");
    for (manager, install) in MANAGERS {
        if on_path(manager, path, &BY_DECK).is_some() {
            return install;
        }
    }
    MANAGERS[0].1
}

/// Where the tmux of the listed sessions has its sockets, each place once; of
/// all agents of this HOME, where no session is listed.
fn sockets(case: &Case) -> Vec<PathBuf> {
    let home = (case.here)("HOME").unwrap_or_default();
    let none = case.desk.rows().is_empty();
    let mut places: Vec<PathBuf> = Vec::new();
    for agent in &case.agents {
        if agent.row.is_none() && !(none && agent.environ.get("HOME") == home) {
            continue;
        }
        let place = match agent.environ.socket_folder() {
            Some(folder) => real(folder),
            None => place(Environ::of(agent.server).get("TMUX_TMPDIR")),
        };
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The place that a TMUX_TMPDIR leads to. agent-deck is run in `/`, and tmux
/// leaves out what is not there.
fn place(value: &OsStr) -> PathBuf {
    let set = Path::new("/").join(value);
    match value.is_empty() || !set.exists() {
        true => real(Path::new(STANDARD)),
        false => real(&set),
    }
}

/// Whether the sessions' tmux is the one that is looked at, from this shell and
/// by the running watchdog. False when it was named as wrong.
fn server(case: &Case, theirs: &[PathBuf]) -> bool {
    const NAME: &str = "tmux server";
    let found = case.found;
    let variable = "TMUX_TMPDIR";
    let here = (case.here)(variable).unwrap_or_default();
    let path = Path::new(&here);
    if theirs.is_empty() && !here.is_empty() && (path.is_relative() || !path.is_dir()) {
        found.warning(
            NAME,
            format_args!(
                "{variable}={} is no folder with an absolute path, so tmux takes {}",
                path.display(),
                place(&here).display()
            ),
            format_args!("{}", case.file.set(variable, None, None)),
        );
        return true;
    }
    let watcher = case.watcher.as_ref();
    let watcher = watcher.filter(|watcher| !watcher.environ.is_empty());
    let theirs_too = watcher.map(|watcher| watcher.environ.get(variable));
    let views = [
        ("this shell", Some(here.as_os_str()), None),
        ("the running watchdog", theirs_too, watcher),
    ];
    let mut named = false;
    for (who, value, watcher) in views {
        let Some(value) = value else {
            continue;
        };
        let looks = place(value);
        let Some(lives) = theirs.iter().find(|lives| **lives != looks) else {
            continue;
        };
        let right = Some(lives.as_os_str()).filter(|_| *lives != place(OsStr::new("")));
        let value = match value.is_empty() {
            true => OsStr::new("not set"),
            false => value,
        };
        named = true;
        found.problem(
            NAME,
            format_args!(
                "sessions live in the tmux below {}, and {who} looks below {} ({variable}: {}): \
                 it sees them dead",
                lives.display(),
                looks.display(),
                value.display()
            ),
            format_args!("{}", case.file.set(variable, right, watcher)),
        );
    }
    if named {
        return false;
    }
    match (theirs.first(), servers(case).len()) {
        (Some(lives), _) => found.ok(
            NAME,
            format_args!("the sessions live below {}, as is looked", lives.display()),
        ),
        (None, 0) => found.ok(NAME, format_args!("none of this user runs")),
        (None, n) => found.ok(
            NAME,
            format_args!("{n} of this user, none with an agent of a listed session"),
        ),
    }
    true
}

/// The tmux servers of this user.
fn servers(case: &Case) -> Vec<u32> {
    let mut servers = Vec::new();
    for process in case.table() {
        if process.own && is_tmux_server(process) {
            servers.push(process.pid);
        }
    }
    servers
}

/// Whether what is seen of each profile can be believed.
fn sessions(case: &mut Case, right_tmux: bool) {
    const NAME: &str = "sessions";
    let (found, deck) = (case.found, case.deck());
    // Why nothing could be asked, or without tmux not be answered, was said.
    let known = found.red(&|check| check.name == "tmux").is_some();
    for (profile, why) in &case.desk.unlisted {
        let Some(profile) = profile.as_ref().filter(|_| !known) else {
            continue;
        };
        let why = why.to_string();
        let shown = why.chars().take(REASON).collect::<String>();
        found.problem(
            NAME,
            format_args!("profile {profile} cannot be listed: {shown}"),
            format_args!("{deck} -p {} list", quoted(profile.as_str())),
        );
    }
    let blind = matches!(case.sight, Sight::Blind(_));
    for seen in &case.desk.watch.decks {
        let (profile, rows) = (&seen.profile, &seen.rows);
        let alive = rows.iter().filter(|row| row.status.is_alive()).count();
        if let Some(wrong) = eyes::wrong_place(rows, seen.listed, &case.sight) {
            // Named already, where it is the tmux.
            if right_tmux {
                found.problem(
                    NAME,
                    format_args!("{wrong}"),
                    format_args!("kill -USR1 {}", numbers(&servers(case), " ")),
                );
            }
        } else if blind && alive > 0 {
            // Said once, below.
        } else if let Some(why) = eyes::blind(profile, rows, &case.sight)
            && alive > 0
        {
            found.problem(
                NAME,
                format_args!(
                    "{why}: this runs in a container or PID namespace of its own, or as another \
                     user; run the watchdog where the sessions run"
                ),
                format_args!("ps -e | grep 'tmux: server'"),
            );
        } else {
            let count = rows.len();
            found.ok(
                NAME,
                format_args!("profile {profile} lists {count}, {alive} of them alive"),
            );
        }
    }
    if let Some(why) = case.blind() {
        let mend = match cfg!(target_os = "linux") {
            true => format_args!("sudo mount -o remount,hidepid=0 /proc"),
            false => format_args!(""),
        };
        found.warning(
            "processes",
            format_args!(
                "{why}: who died is believed only where life was seen from here since the machine \
                 booted, and fewer things are repaired"
            ),
            mend,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_leads_where_tmux_goes() {
        let tmp = Path::new("/tmp").canonicalize().unwrap();
        let value = |text: &str| place(OsStr::new(text));
        assert_eq!(value(""), tmp);
        assert_eq!(value("/no/where"), tmp);
        assert_eq!(value("tmp"), tmp);
        let usr = Path::new("/usr").canonicalize().unwrap();
        assert_eq!(value("/usr/"), usr);
    }

    #[test]
    fn whatever_is_missing_can_be_installed_somehow() {
        assert!(installer().split(' ').count() >= 2, "{}", installer());
    }
}
