//! `doctor`: is everything set up so that it can work?
//!
//! One check looks at one thing and says ok, warning or problem in one line,
//! with a command that mends it. Checks change nothing, never take the lock, and
//! go on whatever is broken. This file does not know what is looked at.
//!
//! | file | what |
//! | --- | --- |
//! | `settings.rs` | variables, here and in the running watchdog |
//! | `ours.rs` | our folder, logs, memory, the clock |
//! | `deck.rs` | agent-deck, profiles, lists, its configuration |
//! | `tmux.rs` | tmux, and whether it is that of the sessions |
//! | `hooks.rs` | hook records, and how fast ends are noticed |
//! | `others.rs` | other watchdogs, and ours |
//! | `words.rs` | the user's own words: flags and pause |
//! | `telling.rs` | the way to a person |
//! | `pollers.rs` | Telegram pollers |
//! | `able.rs` | what the watchdog can do, all in all |
//! | `service.rs` | who starts it: systemd, launchd, cron |
//! | `agents.rs` | places, PATH and groups of the living agents |
//! | `screen.rs` | whether their screens can be read |
//! | `around.rs` | what the last three look at |

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::desk::Desk;
use super::paper::{Light, Paper, wrapped};
use super::{FORMAT, Report};
use crate::cli::Exit;
use crate::config::Environment;
use crate::host::logs::escape;
use crate::model::{Process, Scope, Sight};
use crate::world::World;

mod able;
mod deck;
mod hooks;
mod others;
mod ours;
mod pollers;
mod settings;
mod telling;
mod tmux;
mod words;

pub use settings::FILE;

pub mod agents;
pub mod around;
pub mod screen;
pub mod service;

/// Columns before the sentence: the light's word and the name.
const INDENT: usize = 25;

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was looked at, one or two words.
    pub name: &'static str,
    /// Green, yellow or red.
    pub light: Light,
    /// What was found, naming the thing, the value and what is allowed.
    pub sentence: String,
    /// A command that mends it and can be pasted; empty when nothing is wrong.
    pub mend: String,
}

/// All is well.
pub fn ok(name: &'static str, sentence: impl Into<String>) -> Check {
    Check {
        name,
        light: Light::Green,
        sentence: sentence.into(),
        mend: String::new(),
    }
}

/// It works, but not as it could.
pub fn warning(name: &'static str, sentence: impl Into<String>, mend: impl Into<String>) -> Check {
    Check {
        name,
        light: Light::Yellow,
        sentence: sentence.into(),
        mend: mend.into(),
    }
}

/// It cannot work like this.
pub fn problem(name: &'static str, sentence: impl Into<String>, mend: impl Into<String>) -> Check {
    Check {
        name,
        light: Light::Red,
        sentence: sentence.into(),
        mend: mend.into(),
    }
}

impl Check {
    fn word(&self) -> &'static str {
        match self.light {
            Light::Green | Light::Strong => "ok",
            Light::Yellow => "warning",
            Light::Red => "problem",
        }
    }
}

/// Makes all checks. What is broken is a problem among others.
pub fn doctor(environment: Environment, send_test: bool) -> Doctor {
    let file = settings::file(environment);
    let lookup = |name: &str| {
        let here = environment(name).filter(|value| !value.is_empty());
        here.or_else(|| file.value(name))
    };
    let (settings, mut checks) = settings::checks(&lookup, &file);
    let opened = settings.map(|settings| Desk::of(settings, &lookup));
    match opened {
        None => {}
        Some(Err(failed)) => checks.push(problem("system", failed.why, "ulimit -a")),
        Some(Ok(mut desk)) => {
            let mut case = Case::new(&mut desk, &lookup, &file, checks);
            settings::compare(&mut case);
            ours::checks(&mut case);
            deck::checks(&mut case);
            tmux::checks(&mut case);
            hooks::checks(&mut case);
            others::checks(&mut case);
            pollers::checks(&mut case);
            telling::checks(&mut case, send_test);
            words::checks(&mut case);
            case.checks.extend(service::checks(case.desk));
            case.checks.extend(agents::checks(case.desk));
            case.checks.extend(screen::checks(case.desk));
            able::checks(&mut case);
            checks = case.checks;
        }
    }
    Doctor { checks }
}

/// What the checks look at, and what they found so far.
struct Case<'a> {
    desk: &'a mut Desk,
    /// The variables of this shell, and those of the settings file.
    here: Environment<'a>,
    file: &'a settings::File,
    /// The daemon that holds the lock of our folder, with its environment.
    watcher: Option<Watcher>,
    /// All processes that can be seen.
    table: Vec<Process>,
    /// Why none can be seen.
    blind: Option<String>,
    /// Version of agent-deck.
    version: Option<(u32, u32, u32)>,
    checks: Vec<Check>,
}

/// A running watchdog.
struct Watcher {
    pid: u32,
    environ: Environ,
}

/// A process' environment; empty where it cannot be read.
#[derive(Default)]
struct Environ(Vec<u8>);

/// Longest environment that is read.
const ENVIRON_MOST: u64 = 256 << 10;

impl Environ {
    fn of(pid: u32) -> Environ {
        let mut bytes = Vec::new();
        if let Ok(file) = std::fs::File::open(format!("/proc/{pid}/environ")) {
            use std::io::Read;
            let _ = file.take(ENVIRON_MOST).read_to_end(&mut bytes);
        }
        Environ(bytes)
    }

    /// A variable that is set and not empty.
    fn value(&self, name: &str) -> Option<OsString> {
        let mut pairs = self.0.split(|&byte| byte == 0);
        let value = pairs.find_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
        let value = value.filter(|value| !value.is_empty())?;
        Some(OsString::from_vec(value.to_vec()))
    }
}

impl<'a> Case<'a> {
    fn new(
        desk: &'a mut Desk,
        here: Environment<'a>,
        file: &'a settings::File,
        checks: Vec<Check>,
    ) -> Case<'a> {
        let (table, blind) = match desk.machine.processes(Scope::All) {
            Sight::Seen(table) => (table, None),
            Sight::Blind(why) => (Vec::new(), Some(why)),
        };
        let watcher = others::holder(&desk.machine.settings.folder(), &table);
        Case {
            watcher: watcher.map(|pid| Watcher {
                pid,
                environ: Environ::of(pid),
            }),
            desk,
            here,
            file,
            table,
            blind,
            version: None,
            checks,
        }
    }

    fn ok(&mut self, name: &'static str, sentence: impl Into<String>) {
        self.checks.push(ok(name, sentence));
    }

    fn warning(
        &mut self,
        name: &'static str,
        sentence: impl Into<String>,
        mend: impl Into<String>,
    ) {
        self.checks.push(warning(name, sentence, mend));
    }

    fn problem(
        &mut self,
        name: &'static str,
        sentence: impl Into<String>,
        mend: impl Into<String>,
    ) {
        self.checks.push(problem(name, sentence, mend));
    }

    /// Our folder.
    fn folder(&self) -> PathBuf {
        self.desk.machine.settings.folder()
    }

    /// A variable as the watchdog has it: the running one, else the next one
    /// that is started with this shell's variables or with the settings file.
    fn value(&self, name: &str) -> Option<OsString> {
        match &self.watcher {
            Some(watcher) if !watcher.environ.0.is_empty() => watcher.environ.value(name),
            Some(_) | None => (self.here)(name),
        }
    }

    /// A command that gives the watchdog this value of a variable.
    fn set(&self, name: &str, value: &str) -> String {
        self.file.set(name, Some(value), self.watcher.as_ref())
    }

    /// A command that takes the variable from it.
    fn unset(&self, name: &str) -> String {
        self.file.set(name, None, self.watcher.as_ref())
    }

    /// agent-deck as it is called in a shell.
    fn deck(&mut self) -> String {
        match self.desk.machine.program.find() {
            Ok(program) => quoted(program),
            Err(_) => "agent-deck".to_owned(),
        }
    }
}

/// This program as it is called in a shell.
fn ourselves() -> String {
    std::env::current_exe().map_or("agent-deck-watchdog".to_owned(), quoted)
}

/// A path or another text as a shell takes it for one word.
fn quoted(text: impl AsRef<Path>) -> String {
    around::quoted(&text.as_ref().to_string_lossy())
}

/// Whether two paths lead to the same place.
fn same(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// What all checks found.
pub struct Doctor {
    /// In the order in which they were made.
    pub checks: Vec<Check>,
}

impl Report for Doctor {
    fn text(&self, paper: &Paper) -> String {
        let mut page = String::new();
        for check in &self.checks {
            let word = paper.lit(check.light, &format!("{:<8}", check.word()));
            let name = check.name;
            // Colours take no column.
            let line = wrapped(
                &format!("{:<8}{name:<16} ", ""),
                &escape(&check.sentence),
                INDENT,
            );
            page.push_str(&word);
            page.push_str(&line[8..]);
            if !check.mend.is_empty() {
                page.push_str(&format!("{:INDENT$}$ {}\n", "", escape(&check.mend)));
            }
        }
        page
    }

    fn json(&self) -> Value {
        let checks: Vec<Value> = self
            .checks
            .iter()
            .map(|check| {
                json!({
                    "name": check.name,
                    "result": check.word(),
                    "text": check.sentence,
                    "mend": check.mend,
                })
            })
            .collect();
        json!({ "format": FORMAT, "checks": checks })
    }

    fn exit(&self) -> Exit {
        let red = self.checks.iter().any(|check| check.light == Light::Red);
        if red { Exit::Trouble } else { Exit::Done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_every_path_for_one_word() {
        for (path, word) in [
            ("/a/b-c.d", "/a/b-c.d"),
            ("", "''"),
            ("/my files/x", "'/my files/x'"),
            ("/a'b", "'/a'\\''b'"),
            ("/$(x)", "'/$(x)'"),
            ("~", "'~'"),
        ] {
            assert_eq!(quoted(path), word);
        }
    }

    #[test]
    fn an_environment_is_searched_for_whole_names() {
        let environ = Environ(b"XA=1\0A=2\0AB=3\0E=\0A=4\0".to_vec());
        assert_eq!(environ.value("A"), Some("2".into()));
        assert_eq!((environ.value("E"), environ.value("B")), (None, None));
        assert_eq!(Environ::default().value("A"), None);
    }
}
