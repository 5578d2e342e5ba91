//! The command line: arguments in, a command out, and the help text.
//!
//! This file does not know what a command does.

use std::ffi::OsString;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Watch: the main job.
    Watch(Mode),
    /// Print the help text.
    Help,
    /// Print name and version.
    Version,
}

/// How to watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// One complete turn.
    pub once: bool,
    /// Decide and say, change nothing.
    pub dry_run: bool,
    /// Log each turn.
    pub verbose: bool,
}

/// How the program ends (DESIGN 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Wrong use or a wrong setting.
    Usage = 2,
    /// Another instance runs.
    Taken = 4,
    /// The system failed us.
    System = 5,
}

/// What `--version` prints.
pub const VERSION: &str = concat!("agent-deck-watchdog ", env!("CARGO_PKG_VERSION"));

/// What `--help` prints.
pub const HELP: &str = "\
agent-deck-watchdog restarts critical agent-deck sessions that died or whose
Telegram poller is gone, and asks children that wait unseen to report.

Usage: agent-deck-watchdog [--once] [--dry-run] [--verbose]

  --once      one complete turn, then exit (for cron)
  --dry-run   say what would be done, change nothing
  --verbose   log each turn; on a terminal, show the log
  --help      this text
  --version   name and version

Settings (environment): AGENT_DECK_ROOT, AGENT_DECK_BIN, AGENT_DECK_PROFILE,
  MIN_GLOBAL_RESTART_INTERVAL_S, SAFETY_POLL_S, PROCESS_WATCH,
  TELEGRAM_ESCALATION_CHAT_ID, POLLER_RESTART_DEDUP_S,
  WAITING_PATROL_THRESHOLD_S, WAITING_PATROL_NUDGE_DEDUP_S.
  See agent-deck-watchdog(1).
Logs: $AGENT_DECK_ROOT/watchdog/, by default ~/.agent-deck/watchdog/.
Exit: 0 done, 2 wrong use or setting, 4 another instance runs, 5 system error.
";

/// Reads the arguments behind the program's name.
///
/// # Errors
/// A sentence that names the argument and what is allowed.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, String> {
    use lexopt::prelude::{Long, Short, Value};
    let mut parser = lexopt::Parser::from_args(args);
    let mut mode = Mode::default();
    // Help and version win over everything that stands beside them.
    let mut asked = None;
    while let Some(argument) = parser.next().map_err(|e| usage(&e.to_string()))? {
        match argument {
            Long("once") => mode.once = true,
            Long("dry-run") => mode.dry_run = true,
            Long("verbose") => mode.verbose = true,
            Short('h') | Long("help") => asked = asked.or(Some(Command::Help)),
            Short('V') | Long("version") => asked = asked.or(Some(Command::Version)),
            Short(_) | Long(_) | Value(_) => return Err(usage(&argument.unexpected().to_string())),
        }
    }
    Ok(asked.unwrap_or(Command::Watch(mode)))
}

fn usage(problem: &str) -> String {
    format!("{problem}; allowed are --once, --dry-run, --verbose, --help and --version")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Command, String> {
        parse(args.iter().map(OsString::from))
    }

    #[test]
    fn flags_are_read_in_any_order() {
        let mode = |once, dry_run, verbose| {
            Ok(Command::Watch(Mode {
                once,
                dry_run,
                verbose,
            }))
        };
        assert_eq!(parsed(&[]), mode(false, false, false));
        assert_eq!(parsed(&["--once"]), mode(true, false, false));
        assert_eq!(
            parsed(&["--verbose", "--dry-run", "--once"]),
            mode(true, true, true)
        );
        assert_eq!(parsed(&["--once", "--help"]), Ok(Command::Help));
        assert_eq!(parsed(&["-V"]), Ok(Command::Version));
    }

    #[test]
    fn what_is_not_allowed_is_named_with_what_is() {
        for args in [
            &["--onec"][..],
            &["status"],
            &["--once=1"],
            &["-x"],
            &["--once", "--", "x"],
        ] {
            let error = parsed(args).unwrap_err();
            assert!(error.contains("--once, --dry-run, --verbose"), "{error}");
        }
        assert!(parsed(&["--onec"]).unwrap_err().contains("--onec"));
    }

    #[test]
    fn the_help_text_stays_short_and_within_80_columns() {
        assert!(HELP.lines().count() < 20);
        assert!(HELP.lines().all(|line| line.len() < 80));
    }
}
