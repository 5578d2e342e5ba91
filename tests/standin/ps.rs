//! `ps`: prints the deck's file `ps`; without it, when there is a file
//! `ps.live`, the processes of this deck and whoever called us, as procps would;
//! else it fails. Reads `/proc`. Does not know who looks for what.
//!
//! A process is of this deck when its arguments or its environment name the
//! deck's folder, or its HOME is the home around that folder; a zombie, when its
//! parent is. The file `ps.users` gives processes to somebody else: lines of
//! number, user name and user number.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::Answer;
use crate::deck::{Deck, now_ms};
use crate::traps;

/// Ticks a second of `/proc/<pid>/stat`, everywhere.
const TICKS: u64 = 100;

/// A column: its name, its header, its width, and whether it is a number.
struct Column {
    name: &'static str,
    header: &'static str,
    width: usize,
    right: bool,
}

const fn column(name: &'static str, header: &'static str, width: usize, right: bool) -> Column {
    Column {
        name,
        header,
        width,
        right,
    }
}

/// What can be asked for, other names for the same in `same`.
const COLUMNS: &[Column] = &[
    column("pid", "PID", 7, true),
    column("ppid", "PPID", 7, true),
    column("pgid", "PGID", 7, true),
    column("sid", "SID", 7, true),
    column("uid", "UID", 5, true),
    column("user", "USER", 8, false),
    column("stat", "STAT", 4, false),
    column("state", "S", 1, false),
    column("comm", "COMMAND", 15, false),
    column("args", "COMMAND", 27, false),
    column("etime", "ELAPSED", 11, true),
    column("etimes", "ELAPSED", 7, true),
    column("tty", "TT", 8, false),
];

/// Names that mean another one.
fn same(name: &str) -> &str {
    match name {
        "euser" | "ruser" | "uname" => "user",
        "euid" | "ruid" => "uid",
        "s" => "state",
        "ucmd" | "ucomm" => "comm",
        "command" | "cmd" => "args",
        "sess" | "session" => "sid",
        "pgrp" => "pgid",
        "tt" | "tname" => "tty",
        other => other,
    }
}

/// What is wanted.
#[derive(Default)]
struct Wish {
    /// Place in [`COLUMNS`], and the header.
    columns: Vec<(usize, String)>,
    pids: Vec<u32>,
    everybody: bool,
}

/// Answers a call.
pub fn ps(deck: &Deck, args: &[String]) -> io::Result<Answer> {
    traps::answer(deck, "ps", None, |_| {
        if let Some(stdout) = deck.read("ps") {
            return Ok(Answer::printed(stdout));
        }
        if !deck.has("ps.live") {
            return Ok(Answer::complaint(1, "ps: the deck has no file `ps`"));
        }
        match wish(args) {
            Ok(wish) => Ok(Answer::printed(table(deck, &wish)?)),
            Err(why) => Ok(Answer::complaint(1, &format!("error: {why}"))),
        }
    })
}

/// Reads the arguments: dashes or none (`ax`), columns in one word or in many.
fn wish(args: &[String]) -> Result<Wish, String> {
    let mut wish = Wish::default();
    let mut left = args.iter();
    while let Some(arg) = left.next() {
        let letters = arg.strip_prefix('-').unwrap_or(arg);
        for (n, letter) in letters.char_indices() {
            let rest = &letters[n + letter.len_utf8()..];
            match letter {
                'A' | 'e' | 'x' | 'a' => wish.everybody = true,
                'w' => {}
                'o' | 'p' => {
                    let mut next = || left.next().map(String::as_str).unwrap_or_default();
                    let value = if rest.is_empty() { next() } else { rest };
                    match letter {
                        'o' => wish.add_columns(value)?,
                        _ => wish
                            .pids
                            .extend(value.split(',').map_while(|p| p.parse::<u32>().ok())),
                    }
                    break;
                }
                other => return Err(format!("unsupported option -{other}")),
            }
        }
    }
    if wish.columns.is_empty() {
        wish.add_columns("pid,tty,stat,args")?;
    }
    Ok(wish)
}

impl Wish {
    fn add_columns(&mut self, list: &str) -> Result<(), String> {
        for word in list.split([',', ' ']).filter(|word| !word.is_empty()) {
            let (name, header) = word
                .split_once('=')
                .map_or((word, None), |(n, h)| (n, Some(h)));
            let place = COLUMNS.iter().position(|column| column.name == same(name));
            let unknown = || format!("unknown user-defined format specifier \"{name}\"");
            let place = place.ok_or_else(unknown)?;
            let header = header.unwrap_or(COLUMNS[place].header);
            self.columns.push((place, header.to_owned()));
        }
        Ok(())
    }
}

fn table(deck: &Deck, wish: &Wish) -> io::Result<Vec<u8>> {
    let all = processes()?;
    let users = names();
    let given = given_away(deck);
    let mut out = Vec::new();
    if wish.columns.iter().any(|(_, header)| !header.is_empty()) {
        let headers = wish.columns.iter().map(|(_, h)| h.clone().into_bytes());
        line(&mut out, wish, headers.collect());
    }
    for process in all.values() {
        let wanted = match wish.everybody {
            true => belongs(deck, &all, process),
            false => wish.pids.contains(&process.pid),
        };
        if !wanted {
            continue;
        }
        let cells = wish.columns.iter();
        let cells = cells.map(|(at, _)| process.cell(COLUMNS[*at].name, &users, &given));
        line(&mut out, wish, cells.collect());
    }
    Ok(out)
}

/// One line: all but the last column padded.
fn line(out: &mut Vec<u8>, wish: &Wish, cells: Vec<Vec<u8>>) {
    let last = cells.len() - 1;
    for (n, (cell, (at, _))) in cells.into_iter().zip(&wish.columns).enumerate() {
        let column = &COLUMNS[*at];
        let gap = vec![b' '; column.width.saturating_sub(cell.len())];
        match (column.right, n == last) {
            (true, _) => out.extend([gap, cell].concat()),
            (false, true) => out.extend(cell),
            (false, false) => out.extend([cell, gap].concat()),
        }
        out.push(if n == last { b'\n' } else { b' ' });
    }
}

/// A process as `/proc` has it.
struct Process {
    pid: u32,
    parent: u32,
    group: String,
    session: String,
    user: u32,
    state: String,
    comm: Vec<u8>,
    args: Vec<u8>,
    environ: Vec<u8>,
    /// Seconds since it began.
    age: u64,
}

impl Process {
    fn read(pid: u32, boot_ms: u64) -> Option<Process> {
        let folder = format!("/proc/{pid}");
        let bytes = |file: &str| std::fs::read(format!("{folder}/{file}")).unwrap_or_default();
        let stat = bytes("stat");
        let open = stat.iter().position(|b| *b == b'(')?;
        let close = stat.iter().rposition(|b| *b == b')')?;
        let rest = String::from_utf8_lossy(&stat[close + 1..]).into_owned();
        let words: Vec<&str> = rest.split_whitespace().collect();
        let began_ms = boot_ms + words.get(19)?.parse::<u64>().ok()? * 1000 / TICKS;
        Some(Process {
            pid,
            parent: words.get(1)?.parse().ok()?,
            group: (*words.get(2)?).to_owned(),
            session: (*words.get(3)?).to_owned(),
            user: std::fs::metadata(&folder).ok()?.uid(),
            state: (*words.first()?).to_owned(),
            comm: stat[open + 1..close].to_vec(),
            args: bytes("cmdline"),
            environ: bytes("environ"),
            age: now_ms().saturating_sub(began_ms) / 1000,
        })
    }

    fn cell(
        &self,
        column: &str,
        users: &Names,
        given: &BTreeMap<u32, (String, String)>,
    ) -> Vec<u8> {
        let (days, hours) = (self.age / 86_400, self.age / 3600 % 24);
        let clock = format!("{:02}:{:02}", self.age / 60 % 60, self.age % 60);
        let given = given.get(&self.pid);
        let text = match column {
            "pid" => self.pid.to_string(),
            "ppid" => self.parent.to_string(),
            "pgid" => self.group.clone(),
            "sid" => self.session.clone(),
            "uid" => given.map_or(self.user.to_string(), |(_, number)| number.clone()),
            "user" => {
                let own = || users.get(&self.user).cloned();
                let name = given.map(|(name, _)| name.clone()).or_else(own);
                name.unwrap_or_else(|| self.user.to_string())
            }
            "state" => self.state.clone(),
            "stat" if self.group == self.session && self.pid.to_string() == self.group => {
                format!("{}s", self.state)
            }
            "stat" => self.state.clone(),
            "etimes" => self.age.to_string(),
            "etime" if days > 0 => format!("{days}-{hours:02}:{clock}"),
            "etime" if hours > 0 => format!("{hours:02}:{clock}"),
            "etime" => clock,
            "comm" => return self.comm.clone(),
            "args" => return self.command_line(),
            _ => "?".to_owned(),
        };
        text.into_bytes()
    }

    /// Arguments with blanks between them, or the name of what has none.
    fn command_line(&self) -> Vec<u8> {
        if self.args.is_empty() {
            let mark: &[u8] = if self.state == "Z" {
                b" <defunct>"
            } else {
                b""
            };
            return [b"[", &self.comm[..], b"]", mark].concat();
        }
        let words = self.args.strip_suffix(b"\0").unwrap_or(&self.args);
        let shown = |b: &u8| if *b < b' ' { b' ' } else { *b };
        words.iter().map(shown).collect()
    }
}

fn processes() -> io::Result<BTreeMap<u32, Process>> {
    let uptime = std::fs::read_to_string("/proc/uptime")?;
    let seconds = uptime.split(['.', ' ']).next().unwrap_or_default();
    let up_ms = seconds.parse::<u64>().map_err(io::Error::other)? * 1000;
    let boot_ms = now_ms().saturating_sub(up_ms);
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        if let Some(process) = pid.and_then(|pid| Process::read(pid, boot_ms)) {
            all.insert(process.pid, process);
        }
    }
    Ok(all)
}

/// Of this deck, or above this call.
fn belongs(deck: &Deck, all: &BTreeMap<u32, Process>, process: &Process) -> bool {
    let mut above = Some(std::process::id());
    while let Some(process_above) = above.and_then(|pid| all.get(&pid)) {
        if process_above.pid == process.pid {
            return true;
        }
        above = Some(process_above.parent);
    }
    let of_deck = |process: &Process| {
        let names = |bytes: &[u8]| contains(bytes, deck.dir.as_os_str().as_bytes());
        names(&process.args) || names(&process.environ) || at_home(deck, &process.environ)
    };
    match process.state.as_str() {
        "Z" => all.get(&process.parent).is_some_and(of_deck),
        _ => of_deck(process),
    }
}

/// Whether its HOME is a folder around the deck, below the root and its like.
fn at_home(deck: &Deck, environ: &[u8]) -> bool {
    let mut values = environ.split(|b| *b == 0);
    let home = values.find_map(|value| value.strip_prefix(b"HOME="));
    home.map(|home| Path::new(OsStr::from_bytes(home)))
        .is_some_and(|home| deck.dir.starts_with(home) && home.components().count() > 2)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

type Names = BTreeMap<u32, String>;

/// User names by number, as far as the machine's own file has them.
fn names() -> Names {
    let text = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = |line: &str| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        Some((number.parse().ok()?, name.to_owned()))
    };
    text.lines().filter_map(user).collect()
}

/// Processes that are said to be somebody else's: name and number.
fn given_away(deck: &Deck) -> BTreeMap<u32, (String, String)> {
    let text = deck.text("ps.users").unwrap_or_default();
    let one = |line: &str| {
        let mut words = line.split_whitespace();
        let pid = words.next()?.parse().ok()?;
        Some((pid, (words.next()?.to_owned(), words.next()?.to_owned())))
    };
    text.lines().filter_map(one).collect()
}
