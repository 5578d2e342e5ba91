//! What several checks look at: programs with a short deadline, the variables of
//! living agents and of the watchdog, the programs that a restart needs.
//!
//! Of an environment only the variables in [`NAMES`] are kept: others may be
//! secrets. This file does not know what is made of it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::commands::desk::Desk;
use crate::commands::life::Kind;
use crate::config::Bin;
use crate::deck::processes::server_of;
use crate::deck::telegram::normalised;
use crate::host::exec::{self, Call, End, USUAL_PLACES};
use crate::host::lock::Mode;
use crate::machine::bin::is_program;
use crate::model::{Process, Sight};

/// A program that only says something has this long.
const DEADLINE: Duration = Duration::from_secs(5);
/// Most bytes that it may say.
const MOST: usize = 256 * 1024;

/// Variables that are looked at.
pub const NAMES: [&str; 7] = [
    "PATH",
    "HOME",
    "TMUX",
    "TMUX_TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "NO_COLOR",
];

/// Some variables of an environment. One that is empty is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen(Vec<(&'static str, String)>);

impl Seen {
    /// Of this very process.
    pub fn ours() -> Seen {
        let mut seen = Seen::default();
        for name in NAMES {
            let value = std::env::var_os(name).unwrap_or_default();
            seen.set(name, &value.to_string_lossy());
        }
        seen
    }

    /// Of another process of this user, where that can be seen.
    pub fn of_process(pid: u32) -> Option<Seen> {
        let bytes = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let mut seen = Seen::default();
        let text = String::from_utf8_lossy(&bytes);
        for (name, value) in text.split('\0').filter_map(|pair| pair.split_once('=')) {
            seen.set(name, value);
        }
        (!bytes.is_empty()).then_some(seen)
    }

    /// Sets a variable, if it is one of those that are looked at.
    pub fn set(&mut self, name: &str, value: &str) {
        let Some(name) = NAMES.iter().find(|known| **known == name) else {
            return;
        };
        self.0.retain(|(known, _)| known != name);
        if !value.is_empty() {
            self.0.push((name, value.to_owned()));
        }
    }

    /// The value of a variable; empty: not set.
    pub fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map_or("", |(_, value)| value)
    }

    /// The folder in which a place that such a variable names lies: what it says,
    /// or what counts without it.
    pub fn place(&self, name: &str) -> PathBuf {
        let home = Path::new(self.get("HOME"));
        let value = Path::new(self.get(name).trim());
        let folder = match name {
            "TMUX_TMPDIR" => match self.socket_folder() {
                Some(folder) => folder,
                None if value.as_os_str().is_empty() => PathBuf::from("/tmp"),
                None => value.to_owned(),
            },
            _ if value.is_absolute() => value.to_owned(),
            "XDG_CONFIG_HOME" => home.join(".config"),
            _ => home.join(".local/share"),
        };
        normalised(&folder)
    }

    /// The folder of the sockets by what tmux itself tells those inside: its
    /// `tmux-<uid>` lies in it.
    fn socket_folder(&self) -> Option<PathBuf> {
        let socket = self.get("TMUX").split(',').next()?;
        let folder = Path::new(socket).parent()?;
        let named = folder.file_name()?.to_str()?.starts_with("tmux-");
        named.then(|| folder.parent().map(Path::to_owned))?
    }
}

/// A living agent: what tmux has started in a terminal of agent-deck.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its process.
    pub pid: u32,
    /// The id of its session.
    pub id: String,
    /// The title of its session; `None`: it is not listed.
    pub title: Option<String>,
    /// Its variables.
    pub seen: Seen,
    /// The tmux server above it.
    pub server: u32,
}

/// What is around.
pub struct Around {
    /// Living agents; or why they cannot be seen.
    pub agents: Result<Vec<Agent>, String>,
    /// The running daemon, and its variables where they can be seen.
    pub daemon: Option<(u32, Option<Seen>)>,
    /// The variables of this command.
    pub ours: Seen,
    /// Programs that a restart needs, and the folder where they are.
    pub programs: Vec<(String, PathBuf)>,
}

impl Around {
    /// Looks around.
    pub fn look(desk: &Desk) -> Around {
        let agents = match &desk.watch.sight {
            Sight::Seen(table) => Ok(agents(desk, table)),
            Sight::Blind(why) => Err(why.clone()),
        };
        let runs = matches!(desk.life.kind, Kind::Watching | Kind::Stuck);
        let holder = desk.life.holder.as_ref();
        let holder = holder.filter(|h| runs && h.mode == Mode::Daemon);
        let ours = Seen::ours();
        let mut around = Around {
            agents,
            daemon: holder.map(|holder| (holder.pid, Seen::of_process(holder.pid))),
            ours,
            programs: Vec::new(),
        };
        around.programs = around.find(&wanted(desk));
        around
    }

    /// Agents of listed sessions.
    pub fn listed(&self) -> impl Iterator<Item = &Agent> {
        let agents = self.agents.iter().flatten();
        agents.filter(|agent| agent.title.is_some())
    }

    /// What sessions are started with: what the living agents have, else what
    /// this command has.
    pub fn sessions(&self) -> Vec<Seen> {
        let mut all: Vec<Seen> = self.listed().map(|agent| agent.seen.clone()).collect();
        if all.is_empty() {
            let mut ours = self.ours.clone();
            // Somebody's own tmux.
            ours.set("TMUX", "");
            all.push(ours);
        }
        all
    }

    /// Where each of these programs is, as the agents find it, else as we do.
    fn find(&self, wanted: &[String]) -> Vec<(String, PathBuf)> {
        let agents = self.listed().map(|agent| &agent.seen);
        let paths: Vec<&str> = agents
            .chain([&self.ours])
            .map(|seen| seen.get("PATH"))
            .collect();
        let mut found = Vec::new();
        for name in wanted {
            let folder = paths.iter().find_map(|path| on_path(path, name));
            found.extend(folder.map(|folder| (name.clone(), folder)));
        }
        found
    }

    /// A short PATH with which everything is found that is there.
    pub fn short_path(&self) -> String {
        with_folders("", &self.programs.iter().collect::<Vec<_>>())
    }

    /// Programs that are there and are not found with this PATH, each with the
    /// folder where it is.
    pub fn lacking(&self, path: &str, home: &Path) -> Vec<&(String, PathBuf)> {
        let lacks = |(name, _): &&(String, PathBuf)| {
            let elsewhere = [home.join(".local/bin"), PathBuf::from("/opt/homebrew/bin")];
            let deck = name == DECK && elsewhere.iter().any(|f| is_program(&f.join(name)));
            !deck && on_path(path, name).is_none()
        };
        self.programs.iter().filter(lacks).collect()
    }
}

/// The program that everything is asked of; it is looked for beyond PATH.
pub const DECK: &str = "agent-deck";

fn agents(desk: &Desk, table: &[Process]) -> Vec<Agent> {
    let mut agents: Vec<Agent> = Vec::new();
    for process in table.iter().filter(|p| p.own && !p.zombie) {
        let (Some(id), Some(server)) = (&process.instance, server_of(table, process)) else {
            continue;
        };
        // Further panes of a session are split off from its first one.
        if agents.iter().any(|agent| agent.id == *id) {
            continue;
        }
        let Some(seen) = Seen::of_process(process.pid) else {
            continue;
        };
        let row = desk.watch.all_rows().find(|row| row.id.as_str() == id);
        agents.push(Agent {
            pid: process.pid,
            id: id.clone(),
            title: row.map(|row| row.title.clone()),
            seen,
            server: server.pid,
        });
    }
    agents
}

/// What agent-deck and the agents of the listed sessions are started with.
fn wanted(desk: &Desk) -> Vec<String> {
    let mut wanted = vec!["tmux".to_owned()];
    let mut add = |name: &str| {
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if plain && !name.is_empty() && !wanted.iter().any(|known| known == name) {
            wanted.push(name.to_owned());
        }
    };
    if matches!(desk.machine.settings.bin, Bin::Search(_)) {
        add(DECK);
    }
    for row in desk.watch.all_rows().filter(|row| !row.archived) {
        let program = row.command.split(' ').next().unwrap_or_default();
        // A wrapper that is named by its path is found without PATH.
        if !program.contains('/') {
            add(program);
        }
        if row.telegram.is_some() {
            add("bun");
        }
    }
    // Servers of tools run on it.
    add("node");
    wanted
}

/// The first folder of a PATH, or of the places that our children get beside it,
/// that has such a program.
pub fn on_path(path: &str, name: &str) -> Option<PathBuf> {
    let folders = path.split(':').chain(USUAL_PLACES).map(Path::new);
    let mut folders = folders.filter(|folder| folder.is_absolute());
    let found = folders.find(|folder| is_program(&folder.join(name)))?;
    Some(found.to_owned())
}

/// Runs a program that only says something. `Err`: it is not there, or does not
/// answer; else its exit code and what it said.
pub fn ask(
    desk: &mut Desk,
    name: &str,
    args: &[&str],
    extra_env: &[(&str, &str)],
) -> Result<(i32, String), String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let folder = on_path(&path, name).ok_or("it is not installed")?;
    run(desk, &folder.join(name), args, extra_env)
}

/// The same by its path.
pub fn run(
    desk: &mut Desk,
    program: &Path,
    args: &[&str],
    extra_env: &[(&str, &str)],
) -> Result<(i32, String), String> {
    let call = Call {
        program,
        args,
        deadline: DEADLINE,
        most: MOST,
        extra_env,
        keep_token: false,
    };
    let pulse = &mut desk.machine.pulse;
    match exec::run(&call, &mut |longest| pulse.rest(longest)) {
        End::Exited { code, stdout, .. } => {
            let text = String::from_utf8_lossy(&stdout).into_owned();
            Ok((code.unwrap_or(-1), text))
        }
        End::Late => Err("it does not answer".to_owned()),
        End::NoProgram(why) | End::NoProcess(why) => Err(why),
    }
}

/// A word as a shell takes it as it stands.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A path as people type it.
pub fn typed(path: &Path, home: &Path) -> String {
    let text = match path.strip_prefix(home) {
        Ok(rest) => Path::new("~").join(rest),
        Err(_) => path.to_owned(),
    };
    let text = text.to_string_lossy();
    match text.strip_prefix("~/") {
        Some(rest) => format!("~/{}", quoted(rest)),
        None => quoted(&text),
    }
}

/// This very program, as people type it.
pub fn program(home: &Path) -> String {
    let path = std::env::current_exe().unwrap_or_else(|_| "agent-deck-watchdog".into());
    typed(&path, home)
}

/// Words side by side.
pub fn list<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.collect();
    words.join(" ")
}

/// Where programs are as a rule.
const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";

/// A PATH with the missing folders in front.
pub fn with_folders(path: &str, lacking: &[&(String, PathBuf)]) -> String {
    let mut folders: Vec<OsString> = Vec::new();
    for (_, folder) in lacking {
        let folder = folder.clone().into_os_string();
        let usual = USUAL_PLACES.iter().any(|place| folder == *place);
        if !usual && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    let mut text = String::new();
    for folder in &folders {
        text.push_str(&folder.to_string_lossy());
        text.push(':');
    }
    text.push_str(if path.is_empty() { USUAL } else { path });
    text
}

/// Variables that lead to agent-deck's files.
pub const DECK_PLACES: [&str; 2] = ["XDG_CONFIG_HOME", "XDG_DATA_HOME"];
/// The same, and the one that leads to tmux.
pub const PLACES: [&str; 3] = ["TMUX_TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"];

/// Variables by which a watcher and sessions must agree: name, and what the
/// sessions have that the watcher lacks. `""`: they have none.
pub fn disagreements(
    watcher: &Seen,
    sessions: &[Seen],
    names: &[&'static str],
) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for &name in names {
        let place = watcher.place(name);
        // One with a home of its own has its files there as well.
        let alike = |seen: &&Seen| name == "TMUX_TMPDIR" || seen.get("HOME") == watcher.get("HOME");
        let mut sessions = sessions.iter().filter(alike);
        let other = sessions.find(|seen| seen.place(name) != place);
        if let Some(other) = other {
            found.push((name, other.place(name).to_string_lossy().into_owned()));
        }
    }
    found
}

#[cfg(test)]
#[path = "around_tests.rs"]
mod tests;
