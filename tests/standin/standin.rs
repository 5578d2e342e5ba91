//! The stand-in deck: one program that plays `agent-deck` and its surroundings
//! for tests, demo and bench. It answers in the bytes and exit codes that were
//! recorded from agent-deck 1.14.0. It does not know the watchdog and uses
//! nothing of it: it is a second opinion.
//!
//! Which part it plays is the file name of `argv[0]`: `agent-deck`, `ps`,
//! `escalate.sh`, `curl`, `tmux: server`, `claude` (also `bash`, `bun`, `node`:
//! they only sit there). The folder of `argv[0]` must be `<deck>/bin`; symlinks
//! or copies do. For an `escalate.sh` elsewhere write a file whose first line is
//! `#!<deck>/bin/escalate.sh`.
//!
//! # The folder `<deck>`
//!
//! It is at the same time agent-deck's data folder. All files are optional.
//!
//! | file | meaning |
//! | --- | --- |
//! | `owner` | process number; with it gone, or the folder gone, whatever still runs ends |
//! | `ledger` | one line per call, at its start: `<unix ms> TAB <program> TAB <arguments>` |
//! | `ended` | the same at its end, and `TAB <exit code> TAB <unix ms of the end>` |
//! | `agent.log` | `<unix ms> TAB <what> TAB <id> TAB <process>`: `start` and `end` of fake agents, `wait` of a command for a spawn lock |
//! | `broken` | what the stand-in itself could not do; a test should find none |
//! | `dump-environ` | present: each call leaves `environ/<unix ms>-<process>-<program>`, NUL-separated |
//! | `version`, `default_profile` | instead of `v1.14.0` and `default` |
//! | `ps` | what `ps` prints; without it and `ps.live` it fails |
//! | `ps.live`, `ps.users` | present: `ps` prints the processes of this deck and its callers; whose they are said to be, see `ps.rs` |
//! | `send_ms` | how long a `send` takes; half of it before anything is typed (0) |
//! | `curl/` | made by `curl`: `<n>.args` (one a line) and `<n>.stdin` |
//! | `freshness` | present: `restart` skips healthy rows started less than 60 s ago |
//! | `stop_gap_ms` | time between the end of tmux and the saved status in `stop` (60) |
//! | `tmux.on` | present: agents are real processes under a `tmux: server`, which `restart` and `start` start when it does not run |
//! | `no-tmux` | present: no tmux session can be seen, as from a wrong `TMUX_TMPDIR` |
//! | `tmux.sock`, `tmux.lock` | made by the server |
//! | `hooks/<id>.json` | hook records, read only |
//! | `locks/instance-spawn-<id>.{lock,stamp}` | made by `restart` and `start` |
//! | `profiles/<profile>/state.db` | empty: a good database; with other content than SQLite's: a broken one |
//! | `profiles/<profile>/sessions/<id>/` | a row, see `session.rs` |
//! | `traps/<command>/[<key>/]` | a forced behaviour, see `traps.rs` |

mod acts;
mod agent;
mod answers;
mod cli;
mod deck;
mod json;
mod ps;
mod send;
mod session;
mod status;
mod terminal;
mod tmux;
mod tools;
mod traps;

use std::io::Write;
use std::process::ExitCode;

use deck::{Deck, now_ms};

/// Last argument of a call that only asks whether the program can be run.
const PROBE: &str = "--stand-in-probe";

/// What a call prints and how it ends.
#[derive(Default)]
pub struct Answer {
    /// Bytes for stdout.
    pub stdout: Vec<u8>,
    /// Bytes for stderr.
    pub stderr: Vec<u8>,
    /// Exit code.
    pub code: i32,
}

impl Answer {
    /// Only stdout, exit 0.
    pub fn printed(stdout: Vec<u8>) -> Answer {
        Answer {
            stdout,
            ..Answer::default()
        }
    }

    /// Only an exit code and a line on stderr.
    pub fn complaint(code: i32, text: &str) -> Answer {
        Answer {
            stdout: Vec::new(),
            stderr: format!("{text}\n").into_bytes(),
            code,
        }
    }
}

fn main() -> ExitCode {
    let mut argv = std::env::args_os();
    let argv0 = argv.next().unwrap_or_default();
    let args: Vec<String> = argv.map(|a| a.to_string_lossy().into_owned()).collect();
    let (deck, name) = match Deck::find(&argv0) {
        Ok(found) => found,
        Err(why) => return broken(None, &why),
    };
    if args.last().is_some_and(|a| a == PROBE) {
        return ExitCode::SUCCESS;
    }
    if args.first().is_some_and(|a| a == traps::GRANDCHILD) {
        deck.sit();
        return ExitCode::SUCCESS;
    }
    let outcome = match name.as_str() {
        "tmux: server" => tmux::serve(&deck).map(|()| 0),
        "claude" | "bash" | "bun" | "node" => agent::run(&deck, &name),
        _ => call(&deck, &name, args),
    };
    match outcome {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(255)),
        // A deck that was taken away under a running call is the end of a test.
        Err(_) if deck.is_over() => ExitCode::FAILURE,
        Err(why) => broken(Some(&deck), &format!("{name}: {why}")),
    }
}

/// The stand-in itself has failed: loud, and with a code nothing else uses.
fn broken(deck: Option<&Deck>, why: &str) -> ExitCode {
    eprintln!("stand-in: {why}");
    if let Some(deck) = deck {
        let _ = deck.append("broken", &format!("{why}\n"));
    }
    ExitCode::from(70)
}

/// One call of a program that answers and ends; in the ledger from start to end.
fn call(deck: &Deck, name: &str, mut args: Vec<String>) -> std::io::Result<i32> {
    // Run through a `#!` line the script's own path comes first.
    if name == "escalate.sh" && args.first().is_some_and(|a| a.ends_with("/escalate.sh")) {
        args.remove(0);
    }
    let started = now_ms();
    let line = format!("{started}\t{name}\t{}", escaped(&args.join(" ")));
    deck.append("ledger", &format!("{line}\n"))?;
    if deck.has("dump-environ") {
        dump_environ(deck, started, name)?;
    }
    let answer = match name {
        "agent-deck" => cli::run(deck, &args)?,
        "ps" => ps::ps(deck, &args)?,
        "escalate.sh" => tools::escalate(deck)?,
        "curl" => tools::curl(deck, &args)?,
        other => Answer::complaint(70, &format!("stand-in: no part named {other}")),
    };
    // A reader that has gone away is no trouble of ours.
    let _ = std::io::stderr().write_all(&answer.stderr);
    let _ = std::io::stdout().write_all(&answer.stdout);
    let _ = std::io::stdout().flush();
    deck.append("ended", &format!("{line}\t{}\t{}\n", answer.code, now_ms()))?;
    Ok(answer.code)
}

/// Text for one line of a table: control characters and backslashes escaped.
fn escaped(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || c == '\\' {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

fn dump_environ(deck: &Deck, started: u64, name: &str) -> std::io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let mut bytes = Vec::new();
    for (key, value) in std::env::vars_os() {
        bytes.extend_from_slice(key.as_bytes());
        bytes.push(b'=');
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(0);
    }
    let folder = deck.file("environ");
    deck::folder(&folder)?;
    let file = format!("{started}-{}-{name}", std::process::id());
    deck::save(&folder.join(file), &bytes)
}
