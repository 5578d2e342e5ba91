//! Runs one program: with a deadline, bounded output, a group of its own and an
//! environment without our affairs (DESIGN 3.1).
//!
//! Output goes to files without a name, not to pipes: a grandchild that keeps
//! them open holds nobody up, and our own end breaks nobody's pipe. Two kinds of
//! programs: those that may be ended ([`run`], [`Running::poll_or_kill`]), and
//! those that never are ([`start`], then [`Running::poll_end`]). This file does
//! not know what is run, nor what the output means.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::nameless::{contents, nameless_file, size};
use super::whole;
use crate::model::ProcessMark;

/// How much of what it complains is read, in bytes.
const COMPLAINT_MAX: usize = 8 * 1024;

/// How much it may complain, in bytes, before that is too much as well.
const COMPLAINT_BOUND: u64 = 1024 * 1024;

/// Longest time between two looks at a running program: how long it can write
/// beyond its bound before it is ended. Its end itself wakes us at once.
const GLANCE: Duration = Duration::from_millis(100);

/// How long a killed program may take to be gone. Only one that hangs inside
/// the kernel (dead network disk) takes longer; it is left to itself.
const DEATH_MAX: Duration = Duration::from_secs(2);

/// Variables that children do not get, beside those that begin as [`PRIVATE_PREFIXES`] say.
const PRIVATE: [&str; 7] = [
    "TMUX",
    "TMUX_PANE",
    "CLAUDE_CONFIG_DIR",
    "CLAUDECODE",
    "NOTIFY_SOCKET",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
];

const PRIVATE_PREFIXES: [&str; 2] = ["AGENTDECK_", "WATCHDOG_"];

/// The bot's token and where it lies: only for whoever is told to keep them.
const TOKEN: [&str; 2] = ["TELEGRAM_BOT_TOKEN", "TELEGRAM_STATE_DIR"];

/// Where programs are, should PATH not say so (cron, launchd): agent-deck needs tmux.
#[cfg(not(target_os = "macos"))]
pub const USUAL_PLACES: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];
/// The same, with Homebrew's.
#[cfg(target_os = "macos")]
pub const USUAL_PLACES: [&str; 4] = ["/opt/homebrew/bin", "/usr/local/bin", "/usr/bin", "/bin"];

/// What is to be run, and within which bounds.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Absolute path.
    pub program: &'a Path,
    /// Arguments behind the program's name.
    pub args: &'a [&'a str],
    /// From when on it is late, counted also while the machine sleeps.
    pub deadline: Duration,
    /// Most bytes of output that are wanted.
    pub most: usize,
    /// Variables on top of ours.
    pub extra_env: &'a [(&'a str, &'a str)],
    /// Whether it gets the bot token, if we have it.
    pub keep_token: bool,
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself or by a signal.
    Exited {
        /// Exit code; `None`: by a signal.
        code: Option<i32>,
        /// The signal, if it was one.
        signal: Option<i32>,
        /// What it said, at most `most` bytes.
        stdout: Vec<u8>,
        /// What it complained, at most 8 KiB.
        stderr: Vec<u8>,
        /// It said more than `most` bytes, or complained without end (and was
        /// ended for it, if it may be).
        overflow: bool,
    },
    /// Not within its deadline; it was ended.
    Late,
    /// It could not be run at all; the text names it.
    NoProgram(String),
    /// The machine has no room for one more process or file; the text says so.
    NoProcess(String),
}

/// Why a program did not even start: nothing has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotStarted {
    /// See [`End::NoProgram`].
    NoProgram(String),
    /// See [`End::NoProcess`].
    NoProcess(String),
}

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotStarted::NoProgram(why) | NotStarted::NoProcess(why) => f.write_str(why),
        }
    }
}

impl From<NotStarted> for String {
    fn from(why: NotStarted) -> String {
        why.to_string()
    }
}

impl From<NotStarted> for End {
    fn from(why: NotStarted) -> End {
        match why {
            NotStarted::NoProgram(why) => End::NoProgram(why),
            NotStarted::NoProcess(why) => End::NoProcess(why),
        }
    }
}

/// A program that was started. Dropping this ends nothing.
#[derive(Debug)]
pub struct Running {
    /// `None` once its end was handed out.
    child: Option<Child>,
    mark: ProcessMark,
    stdout: File,
    stderr: File,
    most: usize,
    started: Duration,
    deadline: Duration,
    /// Why and when we ended it.
    killed: Option<(Reason, Duration)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Late,
    TooMuch,
}

/// Killed ones that were not gone in time, so that they can still be reaped.
static LINGERING: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// Starts a program that has nothing to read.
///
/// # Errors
/// When it does not start; nothing has happened then.
pub fn start(call: &Call<'_>) -> Result<Running, NotStarted> {
    begin(call, Stdio::null())
}

/// Starts a program that may read `input`: from a file without a name, so that
/// whoever does not read it blocks nobody.
///
/// # Errors
/// As [`start`].
pub fn start_with(call: &Call<'_>, input: &[u8]) -> Result<Running, NotStarted> {
    let refused = |e: io::Error| not_started(call.program, &e);
    let file = nameless_file().map_err(refused)?;
    // This moves nothing: it is read from its begin.
    file.write_all_at(input, 0).map_err(refused)?;
    begin(call, Stdio::from(file))
}

fn begin(call: &Call<'_>, input: Stdio) -> Result<Running, NotStarted> {
    LINGERING
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    let refused = |e: io::Error| not_started(call.program, &e);
    let (stdout, stderr) = (
        nameless_file().map_err(refused)?,
        nameless_file().map_err(refused)?,
    );
    let child = Command::new(call.program)
        .args(call.args)
        .env_clear()
        .envs(environment(std::env::vars_os(), call.keep_token))
        .envs(call.extra_env.iter().copied())
        .current_dir("/")
        .stdin(input)
        .stdout(stdout.try_clone().map_err(refused)?)
        .stderr(stderr.try_clone().map_err(refused)?)
        .process_group(0)
        .spawn()
        .map_err(refused)?;
    let pid = child.id();
    // It is there until it is reaped, so its entry can be read.
    let ticks = stat(pid).map_or(0, |stat| stat.ticks);
    Ok(Running {
        child: Some(child),
        mark: ProcessMark { pid, ticks },
        stdout,
        stderr,
        most: call.most,
        started: uptime(),
        deadline: call.deadline,
        killed: None,
    })
}

/// Runs a program that may be ended, to its end. `pulse` is called over and
/// over and waits at most as long as it is told; it should come back earlier
/// when a child ends.
pub fn run(call: &Call<'_>, pulse: &mut dyn FnMut(Duration)) -> End {
    let mut running = match start(call) {
        Ok(running) => running,
        Err(why) => return why.into(),
    };
    loop {
        if let Some(end) = running.poll_or_kill() {
            return end;
        }
        pulse(running.next_look());
    }
}

impl Running {
    /// How this very process can be found again later.
    pub fn mark(&self) -> ProcessMark {
        self.mark
    }

    /// Whether its deadline has passed.
    pub fn is_late(&self) -> bool {
        self.age() > self.deadline
    }

    /// How long to wait at most before looking again.
    pub fn next_look(&self) -> Duration {
        match self.deadline.saturating_sub(self.age()) {
            Duration::ZERO => GLANCE,
            left => left.min(GLANCE),
        }
    }

    /// Its end, handed out once. Never ends it, nor what it leaves behind.
    pub fn poll_end(&mut self) -> Option<End> {
        self.has_ended().then(|| self.reap())
    }

    /// As [`Running::poll_end`], but one that is late or says too much is ended
    /// with its whole group, and so is what it leaves behind.
    pub fn poll_or_kill(&mut self) -> Option<End> {
        self.child.as_ref()?;
        if self.has_ended() {
            // It is not reaped yet, so no other group can have its number.
            self.kill_group();
            // Late also when nobody looked in time: what it says is old.
            let late = match self.killed {
                Some((Reason::Late, _)) => true,
                Some((Reason::TooMuch, _)) => false,
                None => self.is_late(),
            };
            let end = self.reap();
            return Some(if late { End::Late } else { end });
        }
        match self.killed {
            None if self.is_late() => self.kill(Reason::Late),
            None if self.says_too_much() => self.kill(Reason::TooMuch),
            Some((_, at)) if uptime().saturating_sub(at) > DEATH_MAX => {
                LINGERING
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend(self.child.take());
                return Some(End::Late);
            }
            None | Some(_) => {}
        }
        None
    }

    /// So long ago it was started.
    pub fn age(&self) -> Duration {
        uptime().saturating_sub(self.started)
    }

    /// Ends one that may be ended, with its whole group, and waits for nothing.
    pub fn end(mut self) {
        if self.child.is_some() {
            self.kill_group();
            LINGERING
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(self.child.take());
        }
    }

    fn kill(&mut self, reason: Reason) {
        self.kill_group();
        self.killed = Some((reason, uptime()));
    }

    fn kill_group(&self) {
        if let Some(group) = as_pid(self.mark.pid) {
            // Nobody left to end is the usual case at a good end.
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
    }

    /// Whether it has ended and was not handed out, without reaping it.
    fn has_ended(&self) -> bool {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match (&self.child, as_pid(self.mark.pid)) {
            (Some(_), Some(pid)) => match rustix::process::waitid(WaitId::Pid(pid), how) {
                Ok(status) => status.is_some(),
                Err(Errno::INTR) => false,
                // No such child: the system reaped it and kept no status.
                Err(_) => true,
            },
            (None, _) | (_, None) => false,
        }
    }

    fn reap(&mut self) -> End {
        let status = self
            .child
            .take()
            .and_then(|mut child| child.try_wait().ok()?);
        End::Exited {
            code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            stdout: contents(&self.stdout, self.most),
            stderr: contents(&self.stderr, COMPLAINT_MAX),
            overflow: self.says_too_much(),
        }
    }

    fn says_too_much(&self) -> bool {
        size(&self.stdout) > u64::try_from(self.most).unwrap_or(u64::MAX)
            || size(&self.stderr) > COMPLAINT_BOUND
    }
}

/// Whether that process, started by this or an earlier run, still runs. A
/// zombie has ended, and another process with its number is not it.
pub fn still_runs(mark: ProcessMark) -> bool {
    match stat(mark.pid) {
        Some(stat) => stat.alive && (mark.ticks == 0 || stat.ticks == mark.ticks),
        // Where there is no such list of processes, the number has to do.
        None if stat(std::process::id()).is_none() => {
            as_pid(mark.pid).is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
        }
        None => false,
    }
}

struct Stat {
    alive: bool,
    /// Start, in ticks since boot.
    ticks: u64,
}

/// The parts of `/proc/<pid>/stat` that are wanted here, by `proc(5)`: field 3
/// is the state, 22 the start. The name in field 2 may hold anything, so what
/// counts begins behind its last parenthesis.
fn stat(pid: u32) -> Option<Stat> {
    let bytes = whole::bytes(format!("/proc/{pid}/stat").as_ref()).ok()?;
    let behind = bytes.iter().rposition(|&b| b == b')')? + 1;
    let mut fields = std::str::from_utf8(bytes.get(behind..)?)
        .ok()?
        .split_ascii_whitespace();
    let alive = !matches!(fields.next()?, "Z" | "X" | "x");
    Some(Stat {
        alive,
        ticks: fields.nth(18)?.parse().ok()?,
    })
}

fn as_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Time since boot, the time asleep included.
fn uptime() -> Duration {
    #[cfg(target_os = "linux")]
    let id = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let id = rustix::time::ClockId::Monotonic;
    rustix::time::clock_gettime(id)
        .try_into()
        .unwrap_or_default()
}

/// What children get of our environment, with a PATH that leads somewhere.
fn environment(
    ours: impl Iterator<Item = (OsString, OsString)>,
    keep_token: bool,
) -> Vec<(OsString, OsString)> {
    let mut path = OsString::new();
    let mut env = Vec::new();
    for (name, value) in ours {
        if name == "PATH" {
            path = value;
        } else if !is_private(&name, keep_token) {
            env.push((name, value));
        }
    }
    for place in USUAL_PLACES {
        if !std::env::split_paths(&path).any(|known| known == Path::new(place)) {
            path.push(if path.is_empty() { "" } else { ":" });
            path.push(place);
        }
    }
    env.push(("PATH".into(), path));
    env
}

fn is_private(name: &OsStr, keep_token: bool) -> bool {
    let name = name.as_encoded_bytes();
    PRIVATE.iter().any(|private| private.as_bytes() == name)
        || PRIVATE_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix.as_bytes()))
        || (!keep_token && TOKEN.iter().any(|token| token.as_bytes() == name))
}

/// Tells a program that cannot be run from a machine that is full.
fn not_started(program: &Path, error: &io::Error) -> NotStarted {
    let name = program.display();
    let full = [
        Errno::AGAIN,
        Errno::NOMEM,
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOSPC,
    ];
    if full
        .iter()
        .any(|full| error.raw_os_error() == Some(full.raw_os_error()))
    {
        return NotStarted::NoProcess(format!("{name}: the machine cannot start it: {error}"));
    }
    let there = std::fs::metadata(program);
    NotStarted::NoProgram(match (error.kind(), there) {
        (io::ErrorKind::NotFound, Ok(_)) => format!("{name}: its interpreter is missing"),
        (io::ErrorKind::NotFound, Err(_)) => format!("{name}: does not exist"),
        (_, Ok(there)) if there.is_dir() => format!("{name}: is a folder"),
        (io::ErrorKind::PermissionDenied, Ok(_)) => format!("{name}: is not executable"),
        (_, _) => format!("{name}: {error}"),
    })
}

#[cfg(test)]
#[path = "exec_tests.rs"]
mod tests;
