//! The command line: arguments in, a command out.
//!
//! This file does not know what a command does.

use std::ffi::OsString;
use std::time::Duration;

use crate::clock::{Time, parse_span};

mod help;

pub use help::{COMMANDS, HELP, Rule};

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Watch: the main job.
    Watch(Mode),
    /// One of the other commands, and whether to print JSON.
    Ask(Ask, bool),
    /// Print this help text.
    Help(&'static str),
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

/// The commands beside the main job (DESIGN 2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// What is watched, what is held back and why.
    Status {
        /// Quiet sessions too.
        all: bool,
    },
    /// Is everything set up?
    Doctor {
        /// Send a message to try the way.
        send_test: bool,
    },
    /// Would it work for this session?
    Rehearse(String),
    /// What happened.
    History {
        /// From when on.
        since: When,
        /// Of this session alone.
        session: Option<String>,
    },
    /// Why it did, or did not, act on this session.
    Explain(String),
    /// Forget the failures of this session.
    Clear(String),
    /// Treat it as critical.
    Watch {
        /// Id or title.
        session: String,
        /// No longer.
        off: bool,
    },
    /// Leave it alone.
    Hold {
        /// Id or title.
        session: String,
        /// Until when.
        until: Until,
    },
    /// Leave all alone.
    Pause(Until),
    /// A file of `contrib/`.
    Print(String),
}

/// A moment, given as a span or as a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// So long from now, or ago.
    Span(Duration),
    /// At this wall time.
    At(Time),
}

/// Until when a flag counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until it is taken away.
    Open,
    /// Until then.
    Then(When),
    /// It is taken away now.
    Off,
}

/// How the program ends (DESIGN 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Looked and found trouble.
    Trouble = 1,
    /// Wrong use or a wrong setting.
    Usage = 2,
    /// Another instance runs.
    Taken = 4,
    /// The system failed us.
    System = 5,
}

/// What `--version` prints.
pub const VERSION: &str = concat!("agent-deck-watchdog ", env!("CARGO_PKG_VERSION"));

/// `history` without `--since`: a night.
const NIGHT: Duration = Duration::from_secs(12 * 3600);

/// A command line, taken apart.
struct Line {
    rule: &'static Rule,
    /// Options with their values.
    options: Vec<(String, String)>,
    /// The words behind the command's name.
    words: Vec<String>,
    help: bool,
    version: bool,
}

/// Reads the arguments behind the program's name.
///
/// # Errors
/// A sentence that names the argument and what is allowed.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, String> {
    let mut line = Line {
        rule: &COMMANDS[0],
        options: Vec::new(),
        words: Vec::new(),
        help: false,
        version: false,
    };
    take_apart(&mut line, lexopt::Parser::from_args(args))?;
    // Help and version win over everything that stands beside them.
    if line.help {
        return Ok(Command::Help(line.rule.help));
    }
    if line.version {
        return Ok(Command::Version);
    }
    command(&line)
}

fn take_apart(line: &mut Line, mut parser: lexopt::Parser) -> Result<(), String> {
    use lexopt::prelude::{Long, Short, Value};
    loop {
        let rule = line.rule;
        let said = |problem: lexopt::Error| usage(rule, &problem.to_string());
        let Some(argument) = parser.next().map_err(said)? else {
            return Ok(());
        };
        match argument {
            Short('h') | Long("help") => line.help = true,
            Short('V') | Long("version") => line.version = true,
            Long(name) => {
                let known = |option: &&&str| option.trim_end_matches('=') == name;
                let Some(option) = rule.options.iter().find(known) else {
                    return Err(said(argument.unexpected()));
                };
                let mut value = OsString::new();
                if option.ends_with('=') {
                    value = parser.value().map_err(said)?;
                }
                let name = option.trim_end_matches('=').to_owned();
                line.options.push((name, text(rule, value)?));
            }
            Short(_) => return Err(said(argument.unexpected())),
            Value(word) => {
                let word = text(rule, word)?;
                if rule.name.is_empty() {
                    line.rule = named(&word)?;
                } else if line.words.len() < rule.words.1 {
                    line.words.push(word);
                } else {
                    return Err(usage(rule, &format!("unexpected argument {word:?}")));
                }
            }
        }
    }
}

fn text(rule: &Rule, value: OsString) -> Result<String, String> {
    let wrong = |value: OsString| {
        let shown = value.to_string_lossy();
        usage(rule, &format!("{shown:?} is not valid UTF-8"))
    };
    value.into_string().map_err(wrong)
}

fn named(word: &str) -> Result<&'static Rule, String> {
    let known = COMMANDS.iter().find(|rule| rule.name == word);
    known.ok_or_else(|| usage(&COMMANDS[0], &format!("there is no command {word:?}")))
}

/// The problem, and what is allowed instead.
fn usage(rule: &Rule, problem: &str) -> String {
    if rule.name.is_empty() {
        let names: Vec<&str> = COMMANDS[1..].iter().map(|rule| rule.name).collect();
        return format!(
            "{problem}; allowed are --once, --dry-run, --verbose, --help, --version, and the \
             commands {}",
            names.join(", ")
        );
    }
    let usage = rule.help.lines().next().unwrap_or_default();
    format!("{problem}; {}", usage.replace("Usage:", "usage:"))
}

fn command(line: &Line) -> Result<Command, String> {
    let rule = line.rule;
    if line.words.len() < rule.words.0 {
        let what = if rule.name == "print" {
            "what"
        } else {
            "a session"
        };
        return Err(usage(rule, &format!("{} needs {what}", rule.name)));
    }
    let given = |name: &str| line.options.iter().any(|(option, _)| option == name);
    let value = |name: &str| {
        let mut found = line.options.iter().filter(|(option, _)| option == name);
        found.next_back().map(|(_, value)| value.clone())
    };
    let word = |at: usize| line.words.get(at).cloned().unwrap_or_default();
    let ask = match rule.name {
        "" => {
            return Ok(Command::Watch(Mode {
                once: given("once"),
                dry_run: given("dry-run"),
                verbose: given("verbose"),
            }));
        }
        "status" => Ask::Status { all: given("all") },
        "doctor" => match value("rehearse") {
            Some(session) => Ask::Rehearse(session),
            None => Ask::Doctor {
                send_test: given("send-test"),
            },
        },
        "history" => Ask::History {
            since: match value("since") {
                Some(text) => when(rule, &text)?,
                None => When::Span(NIGHT),
            },
            session: value("session"),
        },
        "explain" => Ask::Explain(word(0)),
        "clear" => Ask::Clear(word(0)),
        "watch" => Ask::Watch {
            session: word(0),
            off: match word(1).as_str() {
                "" => false,
                "off" => true,
                other => return Err(usage(rule, &format!("{other:?} cannot be used"))),
            },
        },
        "hold" => Ask::Hold {
            session: word(0),
            until: until(rule, &word(1))?,
        },
        "pause" => Ask::Pause(until(rule, &word(0))?),
        _ => Ask::Print(word(0)),
    };
    Ok(Command::Ask(ask, given("json")))
}

fn until(rule: &Rule, word: &str) -> Result<Until, String> {
    match word {
        "" => Ok(Until::Open),
        "off" => Ok(Until::Off),
        other => Ok(Until::Then(when(rule, other)?)),
    }
}

fn when(rule: &Rule, text: &str) -> Result<When, String> {
    let span = parse_span(text).map(When::Span);
    let found = span.or_else(|| Time::parse_stamp(text).map(When::At));
    found.ok_or_else(|| {
        let problem = format!(
            "{text:?} cannot be used: a span such as 30m, 8h or 2d, or a time such as \
             2026-11-30T22:00Z"
        );
        usage(rule, &problem)
    })
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
        assert_eq!(parsed(&["--once", "--help"]), Ok(Command::Help(HELP)));
        assert_eq!(parsed(&["-V"]), Ok(Command::Version));
    }

    #[track_caller]
    fn reads(args: &str, ask: Ask, json: bool) {
        let words: Vec<&str> = args.split(' ').collect();
        assert_eq!(parsed(&words), Ok(Command::Ask(ask, json)), "{args}");
    }

    #[test]
    fn questions_are_read_with_what_stands_behind_them() {
        let x = || "x".to_owned();
        reads("status", Ask::Status { all: false }, false);
        reads("status --json --all", Ask::Status { all: true }, true);
        reads("doctor", Ask::Doctor { send_test: false }, false);
        reads("doctor --send-test", Ask::Doctor { send_test: true }, false);
        reads("doctor --rehearse x", Ask::Rehearse(x()), false);
        reads("explain x --json", Ask::Explain(x()), true);
        reads("print man", Ask::Print("man".to_owned()), false);
        let history = |since, session| Ask::History { since, session };
        reads("history", history(When::Span(NIGHT), None), false);
        let hour = When::Span(Duration::from_secs(3600));
        let args = "history --since 1h --session=x --json";
        reads(args, history(hour, Some(x())), true);
        let at = When::At(Time::parse_rfc3339("2026-11-30T22:00:00Z").unwrap());
        reads(
            "history --since=2026-11-30T22:00Z",
            history(at, None),
            false,
        );
    }

    #[test]
    fn the_users_words_are_read_with_their_end() {
        let session = || "x".to_owned();
        let hour = When::Span(Duration::from_secs(3600));
        let at = When::At(Time::parse_rfc3339("2026-11-30T22:00:00Z").unwrap());
        reads("clear x", Ask::Clear(session()), false);
        for (args, off) in [("watch x", false), ("watch x off", true)] {
            let session = session();
            reads(args, Ask::Watch { session, off }, false);
        }
        for (word, until) in [
            ("", Until::Open),
            (" 1h", Until::Then(hour)),
            (" 2026-11-30T22:00Z", Until::Then(at)),
            (" off", Until::Off),
        ] {
            let session = session();
            reads(
                &format!("hold x{word}"),
                Ask::Hold { session, until },
                false,
            );
            reads(&format!("pause{word} --json"), Ask::Pause(until), true);
        }
    }

    #[test]
    fn each_command_has_its_own_help() {
        for rule in &COMMANDS[1..] {
            assert_eq!(parsed(&[rule.name, "--help"]), Ok(Command::Help(rule.help)));
        }
    }

    #[test]
    fn what_is_not_allowed_is_named_with_what_is() {
        for (args, named, allowed) in [
            ("--onec", "--onec", "--once, --dry-run, --verbose"),
            ("statsu", "statsu", "status, doctor"),
            ("--once=1", "1", "--once, --dry-run"),
            ("-x", "-x", "--once, --dry-run"),
            ("--json", "--json", "--once, --dry-run"),
            ("status --once", "--once", "status [--all]"),
            ("status x", "x", "status [--all]"),
            ("explain", "a session", "explain <session>"),
            ("explain a b", "b", "explain <session>"),
            ("watch x on", "on", "watch <session> [off]"),
            ("hold x 2x", "2x", "30m"),
            ("pause 8", "8", "30m"),
            ("history --since yesterday", "yesterday", "8h"),
            ("history --since", "--since", "history [--since"),
            ("print", "print needs", "print <what>"),
        ] {
            let words: Vec<&str> = args.split(' ').collect();
            let error = parsed(&words).unwrap_err();
            for part in [named, allowed] {
                assert!(error.contains(part), "{args}: {error:?} lacks {part:?}");
            }
        }
    }
}
