//! Which processes poll Telegram, from what `ps` prints and from their
//! environments.
//!
//! The plugin is started as `bun run --cwd …/telegram/… start` and has a
//! `bun server.ts` below it; the first is the poller, whose environment the
//! second shares. What is ambiguous is an error, never "no poller". This file
//! does not know whose pollers they are, nor how `ps` is run.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::cursor::{Cursor, among, number};
use super::shell::VARIABLE;
use super::words::is_name;
use super::{default_folder, normalised};
use crate::host::whole;
use crate::model::Poller;

/// Arguments of `ps` for everybody's processes: number, parent, user, state,
/// command line. procps and BusyBox do not cut lines that go to a file (BusyBox
/// at 2048 bytes, and it refuses `-ww`); the others do without `-ww`.
#[cfg(target_os = "linux")]
pub const PS_ARGS: [&str; 3] = ["-A", "-o", "pid=,ppid=,user=,stat=,args="];
/// Arguments of `ps`: see above.
#[cfg(not(target_os = "linux"))]
pub const PS_ARGS: [&str; 3] = ["-Aww", "-o", "pid=,ppid=,user=,stat=,args="];

/// What `ps` needs in its environment: with `COLUMNS` procps cuts lines all the same.
pub const PS_ENV: [(&str, &str); 1] = [("COLUMNS", "")];

/// A line of `ps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PsRow {
    /// Process number.
    pub pid: u32,
    /// Parent's number.
    pub parent: u32,
    /// Of the user that this program runs as, as far as `ps` prints names whole.
    pub own: bool,
    /// Has ended and waits to be reaped.
    pub zombie: bool,
    /// Command line, words joined by blanks.
    pub args: Vec<u8>,
}

/// `TELEGRAM_STATE_DIR` in the environment of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateDir {
    /// There is no such process of ours any more.
    Gone,
    /// It is not set.
    Unset,
    /// Its value.
    Set(OsString),
}

/// Reads what `ps` printed. `me` is the number of this process, which must be
/// among them: else it is no list of this machine.
///
/// # Errors
/// When any line cannot be read, or the last one is cut.
pub fn ps_rows(stdout: &[u8], me: u32) -> Result<Vec<PsRow>, String> {
    let user = lines(stdout).find_map(|line| match row(line, b"") {
        Some((row, user)) if row.pid == me => Some(user),
        Some(_) | None => None,
    });
    let Some(user) = user else {
        return Err("ps does not show this process".to_owned());
    };
    let mut rows = Vec::new();
    for line in lines(stdout) {
        let Some((row, _)) = row(line, user) else {
            return Err("what ps prints cannot be read".to_owned());
        };
        rows.push(row);
    }
    match stdout.ends_with(b"\n") {
        true => Ok(rows),
        false => Err("what ps prints ends within a line".to_owned()),
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.split(|&byte| byte == b'\n')
}

/// One line and its user; whether it is one of `own`'s. Kernel threads and the
/// dead may have no arguments.
fn row<'a>(line: &'a [u8], own: &[u8]) -> Option<(PsRow, &'a [u8])> {
    let mut cursor = Cursor { text: line, at: 0 };
    let pid = number(cursor.column())?;
    let parent = number(cursor.column())?;
    let user = cursor.column();
    let state = cursor.column();
    cursor.take_while(|byte| byte == b' ');
    // A name with a blank in it would shift the columns.
    let letter = |byte: &u8| byte.is_ascii_alphabetic() || b"<+?".contains(byte);
    let stands = state
        .first()
        .is_some_and(|byte| byte.is_ascii_uppercase() || *byte == b'?');
    if !stands || state.len() > 8 || !state.iter().all(letter) {
        return None;
    }
    let row = PsRow {
        pid,
        parent,
        own: user == own,
        zombie: state.starts_with(b"Z"),
        args: cursor.rest().to_owned(),
    };
    Some((row, user))
}

/// The pollers among these processes. `env` looks into the environment of one.
///
/// # Errors
/// When an environment cannot be read.
pub fn pollers(
    rows: &[PsRow],
    env: &mut dyn FnMut(u32) -> Result<StateDir, String>,
) -> Result<Vec<Poller>, String> {
    let mut pollers: Vec<Poller> = Vec::new();
    let candidates: Vec<&PsRow> = rows.iter().filter(|row| polls(row)).collect();
    for row in &candidates {
        let ancestors = ancestors(rows, row);
        let counted = pollers.iter().any(|poller| poller.pid == row.pid);
        if counted
            || candidates
                .iter()
                .any(|other| ancestors.contains(&other.pid))
        {
            continue;
        }
        let folder = match env(row.pid)? {
            StateDir::Gone => continue,
            StateDir::Unset => None,
            StateDir::Set(value) => Some(normalised(Path::new(&value))),
        };
        pollers.push(Poller {
            pid: row.pid,
            ancestors,
            folder,
            connected: None,
        });
    }
    Ok(pollers)
}

/// `bun` as the program, and `telegram` in its arguments, in whatever case:
/// forks name their folders as they like. An agent that itself runs under bun
/// names the channel as `plugin:telegram@…`, which does not count.
fn polls(row: &PsRow) -> bool {
    let mut cursor = Cursor {
        text: &row.args,
        at: 0,
    };
    let program = cursor.column().rsplit(|&byte| byte == b'/').next();
    if !row.own || row.zombie || !among(b"bun bun.exe", program.unwrap_or_default()) {
        return false;
    }
    while !cursor.rest().is_empty() {
        let word = cursor.column();
        let holds = |what: &[u8]| {
            word.windows(what.len())
                .any(|part| part.eq_ignore_ascii_case(what))
        };
        if holds(b"telegram") && !holds(b"plugin:telegram") {
            return true;
        }
    }
    false
}

/// Parents of a process, nearest first. A list that was not taken in one moment
/// could go in circles.
fn ancestors(rows: &[PsRow], of: &PsRow) -> Vec<u32> {
    let mut ancestors = Vec::new();
    let mut next = Some(of);
    while let Some(row) = next {
        let parent = row.parent;
        if parent == 0 || parent == of.pid || ancestors.contains(&parent) {
            break;
        }
        ancestors.push(parent);
        next = rows.iter().find(|row| row.pid == parent);
    }
    ancestors
}

/// Looks into the environment of a process (Linux).
///
/// # Errors
/// When it is there and cannot be read.
pub fn environment(pid: u32) -> Result<StateDir, String> {
    in_proc(Path::new("/proc"), pid)
}

fn in_proc(proc: &Path, pid: u32) -> Result<StateDir, String> {
    let number = pid.to_string();
    let folder = proc.join(&number);
    let unreadable = || Err(["the environment of process ", &number, " cannot be read"].concat());
    // `ps` cuts names of users: the owner of the folder is certain.
    let us = rustix::process::geteuid().as_raw();
    let bytes = std::fs::metadata(&folder).and_then(|meta| match meta.uid() == us {
        true => whole::bytes(&folder.join("environ")),
        false => Err(ErrorKind::NotFound.into()),
    });
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(error) if is_gone(&error) => return Ok(StateDir::Gone),
        Err(_) => return unreadable(),
    };
    if bytes.is_empty() {
        // It has ended and waits to be reaped, or shows nothing.
        return match whole::bytes(&folder.join("cmdline")) {
            Ok(args) if !args.is_empty() => unreadable(),
            Ok(_) | Err(_) => Ok(StateDir::Gone),
        };
    }
    let value_of = |name: &str| {
        let mut variables = bytes.split(|&byte| byte == 0);
        variables.find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    };
    if let Some(value) = value_of(VARIABLE) {
        return Ok(StateDir::Set(OsStr::from_bytes(value).to_owned()));
    }
    // Where it is not set the plugin goes by its own environment.
    let path = |name| {
        value_of(name)
            .filter(|v| !v.is_empty())
            .map(|v| Path::new(OsStr::from_bytes(v)))
    };
    let config = path("CLAUDE_CONFIG_DIR").map(Path::to_owned);
    Ok(
        match config.or_else(|| Some(path("HOME")?.join(".claude"))) {
            Some(config) => StateDir::Set(default_folder(&config).into_os_string()),
            None => StateDir::Unset,
        },
    )
}

fn is_gone(error: &std::io::Error) -> bool {
    let ended = rustix::io::Errno::SRCH.raw_os_error();
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(ended)
}

/// The value, if this is our variable.
fn value(variable: &[u8]) -> Option<&[u8]> {
    variable
        .strip_prefix(VARIABLE.as_bytes())?
        .strip_prefix(b"=")
}

/// Arguments of the `ps` that prints a process' command line and environment,
/// where there is no `/proc`.
pub fn environment_args(pid: &str) -> [&str; 5] {
    ["eww", "-o", "command=", "-p", pid]
}

/// Reads what that `ps` printed; nothing, when the process is gone. A value ends
/// where the next ` NAME=` begins: that is how `ps` prints them, one behind
/// another.
///
/// # Errors
/// When no environment is shown, or it can be read in two ways.
pub fn environment_of(stdout: &[u8]) -> Result<StateDir, String> {
    let text = stdout.strip_suffix(b"\n").unwrap_or(stdout);
    if text.is_empty() {
        return Ok(StateDir::Gone);
    }
    let mut found: Option<Vec<u8>> = None;
    let (mut inside, mut shown, mut twice) = (false, false, false);
    for word in text.split(|&byte| byte == b' ') {
        let name = word.split(|&byte| byte == b'=').next().unwrap_or_default();
        let assigns = name.len() < word.len() && is_name(name);
        // Every process of ours has one of these: else all are hidden.
        shown |= assigns && among(b"HOME PATH", name);
        inside &= !assigns;
        if let Some(value) = value(word) {
            twice = found.is_some();
            inside = true;
            found = Some(value.to_owned());
        } else if inside && let Some(found) = &mut found {
            found.push(b' ');
            found.extend_from_slice(word);
        }
    }
    if !shown || twice || text.contains(&b'\n') {
        return Err("what ps prints of an environment is ambiguous".to_owned());
    }
    Ok(match found {
        Some(value) => StateDir::Set(OsString::from_vec(value)),
        None => StateDir::Unset,
    })
}

#[cfg(test)]
#[path = "pollers_tests.rs"]
mod tests;
