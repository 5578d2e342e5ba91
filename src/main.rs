//! agent-deck-watchdog: the map is in `lib.rs`; here is one match to an exit code.

use std::process::ExitCode;

// See contrib/no-unwind.
#[cfg(no_unwind)]
use no_unwind as _;

use agent_deck_watchdog::cli::{self, Command, Exit};
use agent_deck_watchdog::config::Settings;
use agent_deck_watchdog::host::dumps;
use agent_deck_watchdog::machine::{eprintln_quietly, println_quietly};
use agent_deck_watchdog::{commands, daemon};

fn main() -> ExitCode {
    dumps::none_after_a_panic();
    let exit = match cli::parse(std::env::args_os().skip(1)) {
        Ok(Command::Help(text)) => print(text.trim_end()),
        Ok(Command::Version) => print(cli::VERSION),
        Ok(Command::Watch(mode)) => match Settings::read(&|name| std::env::var_os(name)) {
            Ok(settings) => daemon::run(settings, mode),
            Err(why) => usage(&why),
        },
        Ok(Command::Ask(ask, json)) => commands::run(&ask, json, &|name| std::env::var_os(name)),
        Err(why) => usage(&why),
    };
    ExitCode::from(exit as u8)
}

fn print(text: &str) -> Exit {
    println_quietly(text);
    Exit::Done
}

fn usage(why: &str) -> Exit {
    eprintln_quietly(&format!("agent-deck-watchdog: {why}"));
    Exit::Usage
}
