//! The help texts, and what may stand behind each command.
//!
//! This file does not know how a command line is read, nor what a command does.

/// One command: its name, what may stand behind it, its help text.
pub struct Rule {
    /// Name; empty for the main job.
    pub name: &'static str,
    /// Its options; those that take a value end with `=`.
    pub options: &'static [&'static str],
    /// The smallest and the largest number of words behind its name.
    pub words: (usize, usize),
    /// Its help text; the first line is its usage.
    pub help: &'static str,
}

/// What `--help` prints.
pub const HELP: &str = "\
Usage: agent-deck-watchdog [--once] [--dry-run] [--verbose] | <command>

Restarts agent-deck sessions that died or went deaf, asks those that wait.
  --once     one turn, for cron        --dry-run  say it, change nothing
  --verbose  log each turn             --version  name and version
  status     is it alive, what is held back and why
  doctor     is everything set up so that it can work?
  history    what happened while I slept
  explain    why it did, or did not, act on one session
  watch, hold, pause, clear   your own words; print   unit files and others
Each command has --help, and all but print have --json.
Settings (environment): AGENT_DECK_ROOT, AGENT_DECK_BIN, AGENT_DECK_PROFILE,
  MIN_GLOBAL_RESTART_INTERVAL_S, SAFETY_POLL_S, PROCESS_WATCH, NO_COLOR,
  TELEGRAM_ESCALATION_CHAT_ID, POLLER_RESTART_DEDUP_S, PARENT_NOTICE_SCOPE,
  WAITING_PATROL_THRESHOLD_S, WAITING_PATROL_NUDGE_DEDUP_S, TRIAGE_TIMEOUT_S,
  WAITING_PATROL_MAX_NUDGES, WAITING_PATROL_TERMINATE, TRIAGE_CMD,
  BATCH_NOTICE_MIN_CHILDREN. See agent-deck-watchdog(1), or its print man.
Logs: $AGENT_DECK_ROOT/watchdog/, by default ~/.agent-deck/watchdog/.
Exit: 0 done, 1 trouble found, 2 wrong use, 4 another instance, 5 system error.
";

/// All commands, the main job first.
pub const COMMANDS: [Rule; 10] = [
    Rule {
        name: "",
        options: &["once", "dry-run", "verbose"],
        words: (0, 0),
        help: HELP,
    },
    Rule {
        name: "status",
        options: &["all", "json"],
        words: (0, 0),
        help: "\
Usage: agent-deck-watchdog status [--all] [--json]

Says whether the watchdog is alive, what needs attention, and one row for each
watched session: what was observed and wanted, its restarts, what holds it
back, how far asking has come, what was last done; then what waits to be told
to parents. Sessions of which there is nothing to say are counted.

  --all   a row for those too
  --json  for programs; the shape is in agent-deck-watchdog(1)
Exit: 0 all is well, 1 no sign of life for three polls, or something given up.
",
    },
    Rule {
        name: "doctor",
        options: &["send-test", "rehearse=", "json"],
        words: (0, 0),
        help: "\
Usage: agent-deck-watchdog doctor [--send-test] [--rehearse <session>] [--json]

Looks at everything that has to be right for the watchdog to work, one line
each: ok, warning or problem, with a command that mends it. Changes nothing.

  --send-test           let escalate.sh send a message to try the way
  --rehearse <session>  instead: look at this session as before a restart or
                        a question, with times, and do nothing
  --json                for programs; the shape is in agent-deck-watchdog(1)
Exit: 0 no problem, 1 a problem.
",
    },
    Rule {
        name: "history",
        options: &["since=", "session=", "json"],
        words: (0, 0),
        help: "\
Usage: agent-deck-watchdog history [--since <when>] [--session <name>] [--json]

Tells from the logs what happened: restarts and what came of them, what was
left alone and why, what was told, when the watchdog itself did not run.

  --since <when>       8h, 30m, 2d, or a time such as 2026-11-30T22:00Z;
                       without it the last 12 hours
  --session <name>     of this one alone, by id or title
  --json               for programs; the shape is in agent-deck-watchdog(1)
",
    },
    Rule {
        name: "explain",
        options: &["json"],
        words: (1, 1),
        help: "\
Usage: agent-deck-watchdog explain <session> [--json]

Says of one session, by id or title, why it is watched or not, what was
observed, how far asking has come, what it is to hear of its children, every
guardrail with its numbers of this moment, and what would have to change for the
watchdog to act.

  --json  for programs; the shape is in agent-deck-watchdog(1)
",
    },
    Rule {
        name: "clear",
        options: &["json"],
        words: (1, 1),
        help: "\
Usage: agent-deck-watchdog clear <session> [--json]

Ends the back-off of a session that was given up, and the episode of a child
that does not answer. What counts restarts and messages stays. A running
watchdog does it within a second; else the next one does. It is logged.
",
    },
    Rule {
        name: "watch",
        options: &["json"],
        words: (1, 2),
        help: "\
Usage: agent-deck-watchdog watch <session> [off] [--json]

Treats a session, by id or title, as critical: it is restarted when it dies.
With off no longer (but for those that title or group make critical).
",
    },
    Rule {
        name: "hold",
        options: &["json"],
        words: (1, 2),
        help: "\
Usage: agent-deck-watchdog hold <session> [<until> | off] [--json]

Leaves a session, by id or title, alone: it is neither restarted, stopped
nor written to.
Until: 2h, 30m, 1d, or a time such as 2026-11-30T22:00Z; without it for good.
",
    },
    Rule {
        name: "pause",
        options: &["json"],
        words: (0, 1),
        help: "\
Usage: agent-deck-watchdog pause [<until> | off] [--json]

Watches and tells, but restarts, stops and writes to nobody.
Until: 2h, 30m, 1d, or a time such as 2026-11-30T22:00Z; without it for good.
",
    },
    Rule {
        name: "print",
        options: &[],
        words: (1, 1),
        help: "\
Usage: agent-deck-watchdog print <what>

Prints a file that comes along: systemd, launchd, cron, onfailure (a unit that
tells when the first one failed), logrotate, escalate, triage or man. The first
three name this very binary, and the PATH of your shell. For example:

  agent-deck-watchdog print systemd > \\
    ~/.config/systemd/user/agent-deck-watchdog.service
",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_help_text_stays_short_and_within_80_columns() {
        for Rule { name, help, .. } in &COMMANDS {
            assert!(help.lines().count() < 20, "{name}");
            for line in help.lines() {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }

    #[test]
    fn every_help_text_begins_with_its_command_and_names_its_options() {
        for rule in &COMMANDS {
            let usage = format!("Usage: agent-deck-watchdog {}", rule.name);
            assert!(rule.help.starts_with(usage.trim_end()), "{}", rule.name);
            for option in rule.options {
                let option = format!("--{}", option.trim_end_matches('='));
                assert!(rule.help.contains(&option), "{} {option}", rule.name);
            }
            assert!(HELP.contains(rule.name), "{}", rule.name);
        }
    }
}
