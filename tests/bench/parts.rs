//! The two parts that the bench plays on its decks, and the ledger they write.
//!
//! As `agent-deck` it stands in front of the real or the stand-in one: it notes
//! begin and end of the call and passes everything through. As `claude` it is
//! the agent: it notes its start, shows a free input box and sits there. `HOME`
//! is the folder of the deck, in a watchdog's environment as in an agent's:
//!
//! | file in it | what |
//! | --- | --- |
//! | `cli` | symlink to the `agent-deck` behind the front |
//! | `ledger` | one line each, tabs between, times in monotonic nanoseconds: `begin TIME PROCESS ARGUMENTS`, `end TIME PROCESS CODE`, `agent TIME PROCESS SESSION` |

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::time::{ClockId, clock_gettime};

use crate::Out;

/// The clock that all processes share, in nanoseconds.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

fn note(home: &Path, what: &str, text: &str) -> Out<()> {
    let line = format!("{what}\t{}\t{}\t{text}\n", now_ns(), std::process::id());
    let mut ledger = OpenOptions::new()
        .append(true)
        .create(true)
        .open(home.join("ledger"))?;
    Ok(ledger.write_all(line.as_bytes())?)
}

fn home() -> Out<PathBuf> {
    Ok(PathBuf::from(std::env::var_os("HOME").ok_or("no HOME")?))
}

/// Plays `agent-deck`.
pub fn front(args: Vec<OsString>) -> Out<i32> {
    let home = home()?;
    let words: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
    note(
        &home,
        "begin",
        &words.join(" ").replace(['\t', '\n', '\r'], " "),
    )?;
    // Under its own name: the stand-in finds its deck by it.
    let status = Command::new(home.join("cli").read_link()?)
        .args(&args)
        .status()?;
    let by_signal = || 128 + status.signal().unwrap_or(0);
    let code = status.code().unwrap_or_else(by_signal);
    note(&home, "end", &code.to_string())?;
    Ok(code)
}

/// Plays `claude`, which ends by itself, with code 0, when it is sent SIGTERM.
pub fn agent() -> Out<i32> {
    let now = Arc::new(AtomicBool::new(true));
    signal_hook::flag::register_conditional_shutdown(signal_hook::consts::SIGTERM, 0, now)?;
    let id = std::env::var("AGENTDECK_INSTANCE_ID").unwrap_or_default();
    note(&home()?, "agent", &id)?;
    let rule = "─".repeat(80);
    println!("✻ Welcome back!\n\n{rule}\n❯\u{a0}\n{rule}\n  ? for shortcuts");
    // Whatever is typed is read and forgotten; the end of the terminal is ours.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(0)
}

/// A call of `agent-deck`.
pub struct Call {
    /// When it began.
    pub begin: u64,
    /// When it ended.
    pub end: Option<u64>,
    process: u32,
    /// Its arguments.
    pub args: String,
}

/// The start of an agent.
#[derive(Clone)]
pub struct Start {
    /// When.
    pub at: u64,
    /// Its process.
    pub process: u32,
    /// Its session.
    pub id: String,
}

/// All that was noted so far, in order.
#[derive(Default)]
pub struct Ledger {
    /// The calls.
    pub calls: Vec<Call>,
    /// The starts of agents.
    pub starts: Vec<Start>,
}

impl Ledger {
    /// Reads the ledger of a deck; what is half written counts the next time.
    pub fn read(home: &Path) -> Ledger {
        let mut text = String::new();
        let file = File::open(home.join("ledger"));
        let _ = file.and_then(|mut file| file.read_to_string(&mut text));
        let mut ledger = Ledger::default();
        for line in text.split_inclusive('\n') {
            if let Some(line) = line.strip_suffix('\n') {
                ledger.take(line);
            }
        }
        ledger
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let mut words = line.splitn(4, '\t');
        let (what, at, process) = (words.next()?, words.next()?, words.next()?);
        let (at, process) = (at.parse().ok()?, process.parse().ok()?);
        let text = words.next()?.to_owned();
        match what {
            "begin" => self.calls.push(Call {
                begin: at,
                end: None,
                process,
                args: text,
            }),
            "end" => {
                let of_it = |call: &&mut Call| call.process == process;
                self.calls.iter_mut().rev().find(of_it)?.end = Some(at);
            }
            "agent" => self.starts.push(Start {
                at,
                process,
                id: text,
            }),
            _ => {}
        }
        Some(())
    }

    /// The calls since a time.
    pub fn since(&self, time: u64) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(move |call| call.begin >= time)
    }

    /// Number of lists since a time.
    pub fn lists(&self, time: u64) -> usize {
        let is_list = |call: &&Call| {
            let args = format!(" {}", call.args);
            args.contains(" list ") && !args.contains(" profile list ")
        };
        self.since(time).filter(is_list).count()
    }
}
