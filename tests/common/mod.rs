//! Helpers of the tests that run the real binary: a deck in a temporary home,
//! played by the stand-in (`tests/standin/`), and the watchdog run on it.
//!
//! ```ignore
//! mod common;
//! let deck = common::Deck::new();
//! let id = deck.row("conductor-ops").dead().add();
//! let daemon = deck.daemon();
//! deck.wait_for_call(|call| call.is("session restart", &id));
//! ```
//!
//! Everything lies below one folder that is removed with the [`Deck`]; whatever
//! was started on it ends then. This file does not know the watchdog's rules.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agents;
mod config;
mod pollers;
mod row;
mod run;
pub mod screens;
mod sends;
mod trap;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[allow(unused_imports)] // not every test names them
pub use {
    agents::is_running, pollers::Poller, row::Row, run::Daemon, screens::free_composer,
    sends::Send, trap::Trap,
};

/// How long a test waits for what must come; long, for slow machines.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// How often it looks meanwhile.
const LOOK: Duration = Duration::from_millis(5);

/// The parts the stand-in plays.
const PARTS: &[&str] = &[
    "agent-deck",
    "ps",
    "escalate.sh",
    "curl",
    "tmux: server",
    "claude",
    "bash",
    "bun",
    "node",
];

/// Makes decks of one test process differ.
static DECKS: AtomicU32 = AtomicU32::new(0);

/// A home with an agent-deck in it.
pub struct Deck {
    root: PathBuf,
    number: u32,
    rows: AtomicU32,
    settings: Mutex<Vec<(String, String)>>,
    server: Mutex<Option<Child>>,
}

/// One line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Unix milliseconds of its start.
    pub at: u64,
    /// File name of the program.
    pub program: String,
    /// Arguments, joined by spaces.
    pub args: String,
}

impl Call {
    /// Whether it is a call of `agent-deck` with these words and that id, such
    /// as `session restart`.
    pub fn is(&self, words: &str, id: &str) -> bool {
        let padded = format!(" {} ", self.args);
        self.program == "agent-deck" && padded.contains(&format!(" {words} {id} "))
    }
}

impl Deck {
    /// A fresh home with the empty profile `default`.
    pub fn new() -> Deck {
        let number = DECKS.fetch_add(1, Ordering::Relaxed);
        // Short, since a socket's path below it may have only 104 bytes.
        let name = format!("adw-{}-{number}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&root);
        let deck = Deck {
            root,
            number,
            rows: AtomicU32::new(0),
            settings: Mutex::default(),
            server: Mutex::default(),
        };
        for folder in ["bin", "profiles", "hooks", "locks"] {
            std::fs::create_dir_all(deck.file(folder)).unwrap();
        }
        write(&deck.file("owner"), std::process::id().to_string());
        let program = standin();
        for part in PARTS {
            symlink(&program, deck.file("bin").join(part)).unwrap();
        }
        deck.profile("default");
        deck
    }

    /// The folder that holds everything.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `HOME` of all that runs here.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// agent-deck's data folder, which is the stand-in's deck as well.
    pub fn dir(&self) -> PathBuf {
        self.home().join(".local/share/agent-deck")
    }

    /// A path in it.
    pub fn file(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir().join(name)
    }

    /// The watchdog's folder; made by the watchdog.
    pub fn watchdog_dir(&self) -> PathBuf {
        self.home().join(".agent-deck/watchdog")
    }

    /// Makes a profile.
    pub fn profile(&self, name: &str) {
        let folder = self.file("profiles").join(name);
        std::fs::create_dir_all(folder.join("sessions")).unwrap();
        if !folder.join("state.db").exists() {
            write(&folder.join("state.db"), "");
        }
    }

    /// Takes a program off the PATH, as if it were not installed.
    pub fn uninstall(&self, program: &str) {
        std::fs::remove_file(self.file("bin").join(program)).unwrap();
    }

    /// Puts an `escalate.sh` into the watchdog's folder that leads to the ledger.
    pub fn install_escalate(&self) {
        let folder = self.watchdog_dir();
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).unwrap();
        let script = folder.join("escalate.sh");
        let interpreter = self.file("bin/escalate.sh");
        write(&script, format!("#!{}\n", interpreter.display()));
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o700)).unwrap();
        // While another test's child, forked at the wrong moment, still has our
        // file open, the kernel does not run it ("text file busy").
        wait_for("the script", || {
            Command::new(&script).arg("--stand-in-probe").status().ok()
        });
    }

    /// Begins a row; see [`Row`] for its defaults.
    pub fn row(&self, title: &str) -> Row<'_> {
        Row::new(self, title, self.rows.fetch_add(1, Ordering::Relaxed))
    }

    /// Begins the row of a conductor: its title, and agent-deck's group for them.
    pub fn conductor(&self, name: &str) -> Row<'_> {
        self.row(&format!("conductor-{name}")).group("conductor")
    }

    /// Folder of a row.
    pub fn row_dir(&self, id: &str) -> PathBuf {
        let profiles = std::fs::read_dir(self.file("profiles")).unwrap();
        profiles
            .map(|profile| profile.unwrap().path().join("sessions").join(id))
            .find(|row| row.is_dir())
            .unwrap_or_else(|| panic!("no row {id}"))
    }

    /// Sets one of a row's files (the list is in `tests/standin/session.rs`).
    pub fn set(&self, id: &str, file: &str, content: impl AsRef<[u8]>) {
        write(&self.row_dir(id).join(file), content);
    }

    /// Removes one of a row's files.
    pub fn unset(&self, id: &str, file: &str) {
        let _ = std::fs::remove_file(self.row_dir(id).join(file));
    }

    /// Reads one of a row's files.
    pub fn get(&self, id: &str, file: &str) -> Option<String> {
        std::fs::read_to_string(self.row_dir(id).join(file)).ok()
    }

    /// Removes a row altogether.
    pub fn remove_row(&self, id: &str) {
        let aside = self.root.join(format!("removed-{id}"));
        std::fs::rename(self.row_dir(id), &aside).unwrap();
        std::fs::remove_dir_all(aside).unwrap();
    }

    /// Writes a hook record as agent-deck does: aside, renamed, then the `.sid`.
    pub fn hook(&self, id: &str, event: &str, status: &str, written: u64) {
        let own_id = self.get(id, "agent_session_id").unwrap_or_default();
        let record = hook_record(status, &own_id, event, written, "/home/u/proj");
        let folder = self.file("hooks");
        let aside = folder.join(format!(".{id}.json.tmp-{written}"));
        write(&aside, record);
        std::fs::rename(aside, folder.join(format!("{id}.json"))).unwrap();
        let sid = folder.join(format!("{id}.sid"));
        if event == "SessionEnd" {
            let _ = std::fs::remove_file(sid);
        } else {
            write(&sid, own_id);
        }
    }

    /// All calls so far. Fails when the stand-in itself went wrong.
    pub fn ledger(&self) -> Vec<Call> {
        let broken = std::fs::read_to_string(self.file("broken"));
        assert!(broken.is_err(), "the stand-in is broken: {broken:?}");
        self.calls("ledger")
            .into_iter()
            .map(|(call, _)| call)
            .collect()
    }

    /// All calls that have ended, with exit code and unix milliseconds of the end.
    pub fn ended(&self) -> Vec<(Call, i32, u64)> {
        let calls = self.calls("ended").into_iter();
        calls
            .map(|(call, rest)| {
                let (code, end) = rest.split_once('\t').unwrap();
                (call, code.parse().unwrap(), end.parse().unwrap())
            })
            .collect()
    }

    fn calls(&self, file: &str) -> Vec<(Call, String)> {
        let text = std::fs::read_to_string(self.file(file)).unwrap_or_default();
        let line = |line: &str| {
            let mut words = line.splitn(4, '\t');
            let mut next = || words.next().unwrap_or_default().to_owned();
            let (at, program, args) = (next().parse().unwrap(), next(), next());
            (Call { at, program, args }, next())
        };
        text.lines().map(line).collect()
    }

    /// Waits until the ledger as a whole is as wanted; returns it.
    pub fn wait_for_ledger(&self, fits: impl Fn(&[Call]) -> bool) -> Vec<Call> {
        self.wait("the ledger", || {
            Some(self.ledger()).filter(|calls| fits(calls))
        })
    }

    /// Waits for the first call that fits; returns it.
    pub fn wait_for_call(&self, fits: impl Fn(&Call) -> bool) -> Call {
        self.wait("a call", || {
            self.ledger().into_iter().find(|call| fits(call))
        })
    }

    /// As [`wait_for`]; on failure shows ledger and log.
    pub fn wait<T>(&self, what: &str, look: impl FnMut() -> Option<T>) -> T {
        patiently(look).unwrap_or_else(|| {
            let log = std::fs::read_to_string(self.watchdog_dir().join("watchdog.log"));
            let calls = self.ledger();
            panic!(
                "{what} did not come.\nledger: {calls:#?}\nlog:\n{}",
                log.unwrap_or_default()
            )
        })
    }

    /// Environments of the calls so far, with their program; needs
    /// [`Deck::dump_environ`].
    pub fn environs(&self) -> Vec<(String, Vec<String>)> {
        let mut files: Vec<PathBuf> = std::fs::read_dir(self.file("environ"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                !path
                    .file_name()
                    .unwrap()
                    .as_encoded_bytes()
                    .starts_with(b".")
            })
            .collect();
        files.sort();
        let environ = |path: PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let bytes = std::fs::read(path).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            let vars = text.split_terminator('\0').map(str::to_owned).collect();
            (name.splitn(3, '-').nth(2).unwrap().to_owned(), vars)
        };
        files.into_iter().map(environ).collect()
    }

    /// Makes each call write down its environment.
    pub fn dump_environ(&self) {
        write(&self.file("dump-environ"), "");
    }

    /// Runs the deck's `agent-deck` as a user would; this too is in the ledger.
    pub fn agent_deck(&self, args: &[&str]) -> Output {
        let mut command = Command::new(self.file("bin/agent-deck"));
        self.clean(command.args(args)).output().unwrap()
    }
}

impl Drop for Deck {
    fn drop(&mut self) {
        self.kill_tmux();
        // What still runs sees that `bin` is gone and ends; until then it may
        // add a file to a folder that is just being removed.
        let _ = std::fs::remove_dir_all(self.file("bin"));
        let end = Instant::now() + Duration::from_secs(5);
        while std::fs::remove_dir_all(&self.root).is_err() && self.root.exists() {
            if Instant::now() > end {
                return;
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// A hook record in agent-deck's bytes (contract 7.3).
pub fn hook_record(status: &str, own_id: &str, event: &str, written: u64, cwd: &str) -> String {
    format!(
        "{{\"status\":\"{status}\",\"session_id\":\"{own_id}\",\"event\":\"{event}\",\
         \"ts\":{written},\"cwd\":\"{cwd}\"}}"
    )
}

/// Waits until something is there; looks often, gives up late.
pub fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    patiently(look).unwrap_or_else(|| panic!("{what} did not come"))
}

fn patiently<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        let seen = look();
        if seen.is_some() || Instant::now() > end {
            return seen;
        }
        std::thread::sleep(LOOK);
    }
}

/// Seconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_secs()
}

/// A copy of the program there, made by another one: what is being written
/// cannot be run, and a program that another test starts at the same moment
/// would hold our open file for a while.
pub fn copy_program(to: &Path) {
    let mut copy = Command::new("cp");
    copy.arg(env!("CARGO_BIN_EXE_agent-deck-watchdog")).arg(to);
    assert!(copy.status().unwrap().success());
}

/// Writes a file aside and renames it into place.
pub fn write(path: &Path, content: impl AsRef<[u8]>) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let aside = path.with_file_name(format!(".{name}.new"));
    std::fs::write(&aside, content).unwrap();
    std::fs::rename(&aside, path).unwrap();
}

/// A recorded answer of the real agent-deck.
pub fn recording(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    std::fs::read(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The stand-in's program, an example of this package.
fn standin() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let program = profile.join("examples/standin");
    assert!(
        program.is_file(),
        "{} is missing: `cargo build --example standin` (with the test's profile)",
        program.display()
    );
    program
}
