//! tmux: is it there, and is the one that is looked at that of the sessions?
//!
//! With another TMUX_TMPDIR every session reads dead. Which is theirs, living
//! agents say themselves. This file does not know what follows for a session.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::{Case, Check, Environ, quoted};
use crate::capabilities::eyes;
use crate::commands::paper::Light;
use crate::deck::processes::{is_tmux_server, pane_process, server_of};
use crate::host::exec::USUAL_PLACES;
use crate::machine::bin::on_path;
use crate::model::{Process, Sight};

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
    let path = case.value("PATH").unwrap_or_default();
    program(case, &path);
    let theirs = sockets(case);
    let named = server(case, &theirs);
    sessions(case, named);
}

fn program(case: &mut Case, path: &OsStr) {
    let beside: Vec<&str> = USUAL_PLACES.into_iter().chain(BY_DECK).collect();
    if let Some(found) = on_path("tmux", path, &[]) {
        return case.ok("tmux", format!("{}, by PATH", found.display()));
    }
    match on_path("tmux", OsStr::new(""), &beside) {
        Some(found) => {
            let folder = found.parent().unwrap_or(Path::new("/"));
            let sentence = format!(
                "it is not in {}; agent-deck finds {} all the same",
                shown(path),
                found.display()
            );
            let mend = format!("export PATH=\"$PATH:{}\"", folder.display());
            case.warning("tmux", sentence, mend);
        }
        None => {
            let sentence = format!(
                "there is none in {} nor in {}: agent-deck sees no session without it",
                shown(path),
                beside.join(", ")
            );
            case.problem("tmux", sentence, installed_by("tmux"));
        }
    }
}

/// A PATH in a sentence.
pub fn shown(path: &OsStr) -> String {
    match path.len() {
        0 => "PATH, which is not set,".to_owned(),
        1..=60 => format!("PATH ({})", path.to_string_lossy()),
        _ => format!(
            "the {} folders of PATH",
            std::env::split_paths(path).count()
        ),
    }
}

/// How a program is installed on this system.
pub fn installed_by(package: &str) -> String {
    let there = |manager: &&(&str, &str)| {
        on_path(
            manager.0,
            OsStr::new("/usr/bin:/bin:/sbin:/usr/sbin"),
            &BY_DECK,
        )
        .is_some()
    };
    let managers = [
        ("brew", "brew install"),
        ("apt-get", "sudo apt-get install"),
        ("dnf", "sudo dnf install"),
        ("pacman", "sudo pacman -S"),
        ("apk", "sudo apk add"),
        ("zypper", "sudo zypper install"),
    ];
    let found = managers.iter().find(there);
    format!("{} {package}", found.map_or(managers[1].1, |found| found.1))
}

/// Where the tmux of the listed sessions has its sockets, each place once; of
/// all agents of this HOME, where no session is listed.
fn sockets(case: &Case) -> Vec<PathBuf> {
    let rows: Vec<_> = case.desk.watch.all_rows().collect();
    let home = (case.here)("HOME");
    let ours = |p: &&Process| {
        let pane = p.own && p.instance.is_some() && server_of(&case.table, p).is_some();
        pane && Environ::of(p.pid).value("HOME") == home
    };
    let panes: Vec<&Process> = match rows.is_empty() {
        true => case.table.iter().filter(ours).collect(),
        false => {
            let rows = rows.iter().filter(|row| !row.is_ssh);
            rows.filter_map(|row| pane_process(&case.table, &row.id))
                .collect()
        }
    };
    let mut places: Vec<PathBuf> = Vec::new();
    for pane in panes {
        let own = Environ::of(pane.pid).value("TMUX");
        let of_server = || {
            let server = server_of(&case.table, pane)?;
            Some(place(Environ::of(server.pid).value("TMUX_TMPDIR").as_ref()))
        };
        let found = own.as_ref().and_then(of_socket).or_else(of_server);
        places.extend(found.filter(|found| !places.contains(found)));
    }
    places
}

/// The place of `<place>/tmux-<user>/<name>,<server>,<session>`; nothing for a
/// socket that was named by its path.
fn of_socket(tmux: &OsString) -> Option<PathBuf> {
    let tmux = tmux.to_str()?;
    let socket = Path::new(tmux.rsplitn(3, ',').last()?);
    let folder = socket.parent()?;
    let named = folder.file_name()?.to_str()?.starts_with("tmux-");
    let place = folder.parent()?;
    named.then(|| place.canonicalize().unwrap_or_else(|_| place.to_owned()))
}

/// The place that a TMUX_TMPDIR leads to. agent-deck is run in `/`, and tmux
/// leaves out what is not there.
fn place(value: Option<&OsString>) -> PathBuf {
    let real = |path: &Path| Path::new("/").join(path).canonicalize();
    let set = value.and_then(|value| real(Path::new(value)).ok());
    set.unwrap_or_else(|| real(Path::new(STANDARD)).unwrap_or_else(|_| STANDARD.into()))
}

/// Whether the sessions' tmux is the one that is looked at, from this shell and
/// by the running watchdog. False when it was named as wrong.
fn server(case: &mut Case, theirs: &[PathBuf]) -> bool {
    let name = "TMUX_TMPDIR";
    let here = (case.here)(name);
    if let Some(value) = here.as_ref().filter(|_| theirs.is_empty()) {
        let real = Path::new(value);
        if real.is_relative() || !real.is_dir() {
            let sentence = format!(
                "{name}={} is no folder with an absolute path, so tmux takes {}",
                real.display(),
                place(Some(value)).display()
            );
            let mend = case.file.set(name, None, None);
            case.warning("tmux server", sentence, mend);
            return true;
        }
    }
    let mut views = vec![("this shell", here, None)];
    if let Some(watcher) = &case.watcher
        && !watcher.environ.0.is_empty()
    {
        let value = watcher.environ.value(name);
        views.push(("the running watchdog", value, Some(watcher)));
    }
    let mut wrong = Vec::new();
    for (who, value, watcher) in views {
        let looks = place(value.as_ref());
        let Some(lives) = theirs.iter().find(|lives| **lives != looks) else {
            continue;
        };
        let value = value.map_or("not set".to_owned(), |v| v.to_string_lossy().into_owned());
        let sentence = format!(
            "sessions live in the tmux below {}, and {who} looks below {} ({name}: {value}): it \
             sees them dead",
            lives.display(),
            looks.display()
        );
        let right = lives.to_string_lossy();
        let right = (*lives != place(None)).then_some(&*right);
        wrong.push((sentence, case.file.set(name, right, watcher)));
    }
    if wrong.is_empty() {
        let servers = case.table.iter().filter(|p| p.own && is_tmux_server(p));
        let servers = servers.count();
        let sentence = match (theirs.first(), servers) {
            (Some(lives), _) => {
                format!("the sessions live below {}, as is looked", lives.display())
            }
            (None, 0) => "none of this user runs".to_owned(),
            (None, n) => format!("{n} of this user, none with an agent of a listed session"),
        };
        case.ok("tmux server", sentence);
    }
    let named = !wrong.is_empty();
    for (sentence, mend) in wrong {
        case.problem("tmux server", sentence, mend);
    }
    !named
}

/// Whether what is seen of each profile can be believed.
fn sessions(case: &mut Case, right_tmux: bool) {
    // Why nothing could be asked, or without tmux not be answered, was said.
    let known = |check: &Check| check.name == "tmux" && check.light == Light::Red;
    let unlisted = match case.checks.iter().any(known) {
        true => Vec::new(),
        false => case.desk.unlisted.clone(),
    };
    for (profile, why) in unlisted {
        let Some(profile) = profile else {
            continue;
        };
        let mend = format!("{} -p {} list", case.deck(), quoted(profile.as_str()));
        let why: String = why.to_string().chars().take(REASON).collect();
        let sentence = format!("profile {profile} cannot be listed: {why}");
        case.problem("sessions", sentence, mend);
    }
    let mut said = Vec::new();
    for deck in &case.desk.watch.decks {
        let sight = match &case.blind {
            Some(why) => Sight::Blind(why.clone()),
            None => Sight::Seen(case.table.clone()),
        };
        let rows = &deck.rows;
        let count = |test: fn(&&crate::model::Session) -> bool| rows.iter().filter(test).count();
        let alive = count(|row| row.status.is_alive());
        let wrong = eyes::wrong_place(rows, deck.listed, &sight);
        let blind = eyes::blind(&deck.profile, rows, &sight);
        said.push((deck.profile.clone(), rows.len(), alive, wrong, blind));
    }
    for (profile, rows, alive, wrong, blind) in said {
        if let Some(wrong) = wrong {
            // Named already, where it is the tmux.
            if right_tmux {
                let mut servers = case.table.iter().filter(|p| p.own && is_tmux_server(p));
                let server = servers.next().map_or(String::new(), |p| p.pid.to_string());
                case.problem("sessions", wrong, format!("kill -USR1 {server}"));
            }
        } else if case.blind.is_some() && alive > 0 {
            // Said once, below.
        } else if let Some(blind) = blind.filter(|_| alive > 0) {
            let sentence = format!(
                "{blind}: this runs in a container or PID namespace of its own, or as another \
                 user; run the watchdog where the sessions run"
            );
            case.problem("sessions", sentence, "ps -e | grep 'tmux: server'");
        } else {
            let sentence = format!("profile {profile} lists {rows}, {alive} of them alive");
            case.ok("sessions", sentence);
        }
    }
    if let Some(why) = case.blind.clone() {
        let sentence = format!(
            "{why}: who died is believed only where life was seen from here since the machine \
             booted, and fewer things are repaired"
        );
        let mend = match cfg!(target_os = "linux") {
            true => "sudo mount -o remount,hidepid=0 /proc",
            false => "",
        };
        case.warning("processes", sentence, mend);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_says_where_its_tmux_lives() {
        let of = |text: &str| of_socket(&OsString::from(text));
        let tmp = Path::new("/tmp").canonicalize().unwrap();
        assert_eq!(of("/tmp/tmux-0/default,123,4"), Some(tmp.clone()));
        assert_eq!(
            of("/no/where/tmux-1000/x,y,123,4"),
            Some("/no/where".into())
        );
        assert_eq!(of("/tmp/own.sock,123,4"), None);
        assert_eq!(of(""), None);
        let value = |text: &str| place(Some(&OsString::from(text)));
        assert_eq!(place(None), tmp);
        assert_eq!(value("/no/where"), tmp);
        assert_eq!(value("tmp"), tmp);
        let usr = Path::new("/usr").canonicalize().unwrap();
        assert_eq!(value("/usr/"), usr);
    }

    #[test]
    fn whatever_is_missing_can_be_installed_somehow() {
        let mend = installed_by("tmux");
        assert!(
            mend.ends_with(" tmux") && mend.split(' ').count() >= 3,
            "{mend}"
        );
    }
}
