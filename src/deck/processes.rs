//! Which of the machine's processes are agents, tmux servers, agent-deck: pure
//! questions to a table of processes, and the table itself (Linux).
//!
//! This file does not know which session is wanted, nor what follows from an answer.

use crate::model::Process;

mod agents;
mod commands;
#[cfg(target_os = "linux")]
mod proc;

pub use agents::{alive_beside_shell, bare_shell, maybe_alive, pane_pids, pane_process};
pub use commands::{
    DeckActivity, deck_commands, is_agent_deck, is_python_watchdog, mark_known_as, stops,
};
#[cfg(target_os = "linux")]
pub use proc::look;

/// The processes cannot be seen here.
#[cfg(not(target_os = "linux"))]
pub fn look(
    _scope: crate::model::Scope,
    _now: crate::clock::Time,
    _boot_ms: u64,
) -> crate::model::Sight {
    crate::model::Sight::Blind("processes can be seen on Linux only".to_owned())
}

/// Whether it is a tmux server, which names itself so on Linux.
pub fn is_tmux_server(process: &Process) -> bool {
    process.name.starts_with("tmux: server")
}

/// The tmux server whose pane process this is.
pub fn server_of<'a>(table: &'a [Process], process: &Process) -> Option<&'a Process> {
    table
        .iter()
        .find(|p| p.pid == process.parent && is_tmux_server(p))
}

/// Shells by their short names.
const SHELLS: [&str; 6] = ["bash", "sh", "zsh", "dash", "fish", "ksh"];
/// Other programs whose first word without a dash is the program that counts.
const INTERPRETERS: [&str; 4] = ["node", "nodejs", "bun", "deno"];

/// Last element of a path; a login shell's leading dash is taken off.
fn base_name(path: &str) -> &str {
    path.rsplit('/')
        .next()
        .unwrap_or(path)
        .trim_start_matches('-')
}

/// Whether a program is a shell, by its name or path.
pub fn is_shell(name: &str) -> bool {
    SHELLS.contains(&base_name(name))
}

/// Where in its arguments a process names the program it runs: first, or behind
/// an interpreter. `None` when there are no arguments, or only a script's text.
fn program_at(args: &[String]) -> Option<usize> {
    let first = base_name(args.first()?);
    let flag = if is_shell(first) || first.starts_with("python") {
        'c'
    } else if INTERPRETERS.contains(&first) {
        'e'
    } else {
        return Some(0);
    };
    let program = args
        .iter()
        .enumerate()
        .skip(1)
        .find(|(_, arg)| gives_text(arg, flag) || !arg.starts_with('-'));
    match program {
        Some((_, text)) if text.starts_with('-') => None,
        Some((at, _)) => Some(at),
        None => Some(0),
    }
}

/// `-c`, `-lc`, `-e`, `--eval`: the program is the text that follows.
fn gives_text(arg: &str, flag: char) -> bool {
    match arg.strip_prefix("--") {
        Some(long) => long.starts_with("eval"),
        None => arg.starts_with('-') && arg.contains(flag),
    }
}
