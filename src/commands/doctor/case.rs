//! What the checks look at: the desk, the settings file, the running watchdog,
//! the processes, the living agents, and the programs that a restart needs.
//!
//! This file does not know what is made of it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::environ::Environ;
use super::shell::quoted;
use super::{Found, others, settings};
use crate::commands::desk::Desk;
use crate::config::{Bin, Environment};
use crate::deck::processes::server_of;
use crate::host::exec::{self, Call, End, USUAL_PLACES};
use crate::machine::bin::{is_program, on_path};
use crate::model::{Process, Scope, Session, Sight};
use crate::world::World;

/// A program that only says something has this long.
pub const DEADLINE: Duration = Duration::from_secs(5);
/// Most bytes that it may say.
const MOST: usize = 256 << 10;

/// The program that everything is asked of; it is looked for beyond PATH.
pub const DECK: &str = "agent-deck";

/// What the checks look at.
pub struct Case<'a> {
    pub desk: &'a mut Desk,
    /// The variables of this shell, and those of the settings file.
    pub here: Environment<'a>,
    pub file: &'a settings::File,
    pub found: &'a Found,
    /// Whether a message is to be sent.
    pub send_test: bool,
    /// The daemon that holds the lock of our folder.
    pub watcher: Option<Watcher>,
    /// All processes that can be seen.
    pub sight: Sight,
    /// Version of agent-deck.
    pub version: Option<(u32, u32, u32)>,
    /// The variables of this command alone.
    pub ours: Environ,
    /// Living agents, once they were looked for.
    pub agents: Vec<Agent>,
    /// Programs that a restart needs, and where they are; known with the agents.
    pub programs: Vec<(String, PathBuf)>,
}

/// A running watchdog.
pub struct Watcher {
    pub pid: u32,
    pub environ: Environ,
}

/// A living agent: what tmux has started in a terminal of agent-deck.
pub struct Agent {
    /// Its process.
    pub pid: u32,
    /// Its session; `None`: it is not listed.
    pub row: Option<Session>,
    /// Its variables.
    pub environ: Environ,
    /// The tmux server above it.
    pub server: u32,
}

impl<'a> Case<'a> {
    pub fn new(
        desk: &'a mut Desk,
        here: Environment<'a>,
        file: &'a settings::File,
        found: &'a Found,
        send_test: bool,
    ) -> Case<'a> {
        let sight = desk.machine.processes(Scope::All);
        let life = &desk.life;
        let holder = life.holder.as_ref().filter(|_| life.has_process());
        let pid = holder.map(|holder| holder.pid).filter(|pid| match &sight {
            Sight::Seen(table) => table.iter().any(|p| p.pid == *pid && others::watches(p)),
            Sight::Blind(_) => true,
        });
        Case {
            watcher: pid.map(|pid| Watcher {
                pid,
                environ: Environ::of(pid),
            }),
            desk,
            here,
            file,
            found,
            send_test,
            sight,
            version: None,
            ours: Environ::ours(),
            agents: Vec::new(),
            programs: Vec::new(),
        }
    }

    /// All processes that can be seen.
    pub fn table(&self) -> &[Process] {
        match &self.sight {
            Sight::Seen(table) => table,
            Sight::Blind(_) => &[],
        }
    }

    /// Why none can be seen.
    pub fn blind(&self) -> Option<&str> {
        match &self.sight {
            Sight::Seen(_) => None,
            Sight::Blind(why) => Some(why),
        }
    }

    /// Our folder.
    pub fn folder(&self) -> PathBuf {
        self.desk.machine.settings.folder()
    }

    /// The user's home.
    pub fn home(&self) -> &Path {
        &self.desk.machine.settings.home
    }

    /// A variable as the watchdog has it: the running one, else the next one
    /// that is started with this shell's variables or with the settings file.
    pub fn value(&self, name: &str) -> OsString {
        match &self.watcher {
            Some(watcher) if !watcher.environ.is_empty() => watcher.environ.get(name).to_owned(),
            Some(_) | None => (self.here)(name).unwrap_or_default(),
        }
    }

    /// A command that gives the watchdog this value of a variable.
    pub fn set(&self, name: &str, value: &OsStr) -> String {
        self.file.set(name, Some(value), self.watcher.as_ref())
    }

    /// A command that takes the variable from it.
    pub fn unset(&self, name: &str) -> String {
        self.file.set(name, None, self.watcher.as_ref())
    }

    /// agent-deck as it is called in a shell.
    pub fn deck(&mut self) -> String {
        match self.desk.machine.program.find() {
            Ok(program) => quoted(&program).to_string(),
            Err(_) => DECK.to_owned(),
        }
    }

    /// Runs a program that only says something. `Err`: it is not there, or does
    /// not answer; else its exit code and what it said.
    pub fn ask(
        &mut self,
        name: &str,
        args: &[&str],
        extra_env: &[(&str, &str)],
    ) -> Result<(i32, String), String> {
        let path = self.ours.get("PATH");
        let program = on_path(name, path, &USUAL_PLACES).ok_or("it is not installed")?;
        let call = Call {
            program: &program,
            args,
            deadline: DEADLINE,
            most: MOST,
            extra_env,
            keep_token: false,
        };
        let (code, stdout, _) = self.run(&call)?;
        Ok((code, stdout))
    }

    /// Runs a program: its exit code, -1 when a signal ended it, and what it said
    /// on both ways.
    pub fn run(&mut self, call: &Call) -> Result<(i32, String, String), String> {
        let pulse = &mut self.desk.machine.pulse;
        match exec::run(call, &mut |longest| pulse.rest(longest)) {
            End::Exited {
                code,
                stdout,
                stderr,
                ..
            } => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                Ok((code.unwrap_or(-1), text(&stdout), text(&stderr)))
            }
            End::Late => Err(format!(
                "it did not end within {} s",
                call.deadline.as_secs()
            )),
            End::NoProgram(why) | End::NoProcess(why) => Err(why),
        }
    }

    /// Looks for the living agents of this user, and for the programs.
    pub fn look_around(&mut self) {
        let mut agents: Vec<Agent> = Vec::new();
        let mut ids: Vec<&str> = Vec::new();
        for process in self.table() {
            let (Some(id), Some(server)) = (&process.instance, server_of(self.table(), process))
            else {
                continue;
            };
            let environ = Environ::of(process.pid);
            // Further panes of a session are split off from its first one.
            let fits = process.own && !process.zombie && !environ.is_empty();
            if !fits || ids.contains(&id.as_str()) {
                continue;
            }
            ids.push(id);
            let row = self.desk.chosen(&|row| row.id.as_str() == id).pop();
            agents.push(Agent {
                pid: process.pid,
                row,
                environ,
                server: server.pid,
            });
        }
        self.agents = agents;
        let mut programs = Vec::new();
        for name in self.wanted() {
            let find = |environ: &Environ| on_path(&name, environ.get("PATH"), &USUAL_PLACES);
            let mut found = None;
            for agent in self.listed() {
                found = found.or_else(|| find(&agent.environ));
            }
            if let Some(found) = found.or_else(|| find(&self.ours)) {
                programs.push((name, found));
            }
        }
        self.programs = programs;
    }

    /// What agent-deck and the agents of the listed sessions are started with.
    fn wanted(&self) -> Vec<String> {
        let mut wanted = vec!["tmux".to_owned()];
        let mut add = |name: &str| {
            let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
            if plain && !name.is_empty() && !wanted.iter().any(|known| known == name) {
                wanted.push(name.to_owned());
            }
        };
        if matches!(self.desk.machine.settings.bin, Bin::Search(_)) {
            add(DECK);
        }
        for row in self.desk.rows() {
            if row.archived {
                continue;
            }
            // A wrapper that is named by its path, with marks, is found without PATH.
            add(row.command.split(' ').next().unwrap_or_default());
            if row.telegram.is_some() {
                add("bun");
            }
        }
        // Servers of tools run on it.
        add("node");
        wanted
    }

    /// Agents of listed sessions.
    pub fn listed(&self) -> impl Iterator<Item = &Agent> {
        self.agents.iter().filter(|agent| agent.row.is_some())
    }

    /// What sessions are started with: what the living agents have, else what
    /// this command has.
    pub fn sessions(&self) -> Vec<Environ> {
        let mut all: Vec<Environ> = Vec::new();
        for agent in self.listed() {
            all.push(agent.environ.clone());
        }
        if all.is_empty() {
            let mut ours = self.ours.clone();
            // Somebody's own tmux.
            ours.set("TMUX", OsStr::new(""));
            all.push(ours);
        }
        all
    }

    /// What is there of these programs and is not found with this PATH.
    pub fn lacking(&self, path: &OsStr) -> Option<Lacking> {
        lacking(&self.programs, path, self.home())
    }
}

/// Programs that are there and are not found with a PATH.
pub struct Lacking {
    /// Their names.
    pub names: String,
    /// The folder of the first.
    pub folder: PathBuf,
    /// A PATH with which they are found.
    pub path: OsString,
    /// Without the first no session is seen.
    pub dire: bool,
}

fn lacking(programs: &[(String, PathBuf)], path: &OsStr, home: &Path) -> Option<Lacking> {
    let mut lacking: Option<Lacking> = None;
    for (name, place) in programs {
        let elsewhere = [home.join(".local/bin"), PathBuf::from("/opt/homebrew/bin")];
        let deck = name == DECK
            && elsewhere
                .iter()
                .any(|folder| is_program(&folder.join(name)));
        let folder = place.parent().unwrap_or(place);
        if deck || on_path(name, path, &USUAL_PLACES).is_some() {
            continue;
        }
        let lacking = lacking.get_or_insert_with(|| Lacking {
            names: String::new(),
            folder: folder.to_owned(),
            path: OsString::new(),
            dire: name == DECK || name == "tmux",
        });
        if !lacking.names.is_empty() {
            lacking.names.push(' ');
        }
        lacking.names.push_str(name);
        if !std::env::split_paths(&lacking.path).any(|known| known == folder) {
            lacking.path.push(folder);
            lacking.path.push(":");
        }
    }
    if let Some(lacking) = &mut lacking {
        let usual = OsStr::new("/usr/local/bin:/usr/bin:/bin");
        lacking
            .path
            .push(if path.is_empty() { usual } else { path });
    }
    lacking
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_lacks_is_known_with_its_folder() {
        let home = Scratch::new();
        for file in ["bin/claude-x", ".local/bin/agent-deck", "opt/agent-deck"] {
            let file = home.write(file, "");
            fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        home.write("bin/plain", "");
        let (bin, opt) = (home.join("bin"), home.join("opt"));
        let path = format!("relative:{}:{}", bin.display(), opt.display());
        let path = OsStr::new(&path);
        let mut programs = Vec::new();
        for name in ["claude-x", DECK, "plain"] {
            let found = on_path(name, path, &USUAL_PLACES);
            programs.extend(found.map(|found| (name.to_owned(), found)));
        }
        assert_eq!(programs.len(), 2);
        assert!(lacking(&programs, path, home.path()).is_none());
        // agent-deck is looked for in more places than PATH.
        let found = lacking(&programs, OsStr::new("/usr/bin"), home.path()).unwrap();
        assert_eq!((found.names.as_str(), &found.folder), ("claude-x", &bin));
        let set = format!("{}:/usr/bin", bin.display());
        assert_eq!(found.path, OsString::from(set));
        assert!(!found.dire);
        let found = lacking(&programs, OsStr::new(""), &bin).unwrap();
        assert_eq!(found.names, "claude-x agent-deck");
        let path = found.path.into_string().unwrap();
        assert!(
            path.ends_with("/opt:/usr/local/bin:/usr/bin:/bin"),
            "{path}"
        );
    }
}
