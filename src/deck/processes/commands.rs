//! Which agent-deck commands of this user run at the moment, and whether they
//! change sessions: two at once undo each other (contract 5.1). Pure.
//!
//! What is not known to leave sessions alone counts as changing. This file does
//! not know which profile a command works on.

use std::path::Path;

use super::{base_name, program_at};
use crate::model::{Process, SessionId};

/// agent-deck at work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeckActivity {
    /// Commands that change sessions: number and subcommand.
    pub changing: Vec<(u32, String)>,
    /// Terminal or web interfaces, where a user may be changing sessions.
    pub ui: Vec<u32>,
    /// agent-deck's Python watchdog, which does what we do (contract 9).
    pub watchdog: Option<u32>,
}

/// Commands that leave the sessions' state alone, or end only with the machine
/// (contract 1.1, 9). `send` and `approve` type; they do not save rows.
const HARMLESS: [&str; 21] = [
    "list",
    "ls",
    "status",
    "version",
    "help",
    "hook-handler",
    "codex-notify",
    "notify-daemon",
    "mcp-proxy",
    "run-task",
    "inbox",
    "telegram-doctor",
    "costs",
    "creds-refresh",
    "feedback",
    "debug-dump",
    "watcher",
    "hooks",
    "openclaw",
    "oc",
    "deepseek",
];

/// The same one word further on.
const HARMLESS_SECOND: [(&str, &[&str]); 11] = [
    (
        "session",
        &[
            "show",
            "output",
            "children",
            "current",
            "search",
            "send",
            "approve",
            "send-keys",
            "attach",
            "focus",
        ],
    ),
    ("profile", &["list", "ls"]),
    ("group", &["list", "ls", "show", "info"]),
    ("conductor", &["list", "status"]),
    ("fleet", &["status"]),
    ("mcp", &["list", "ls", "attached", "server"]),
    ("plugin", &["list", "ls", "attached"]),
    ("skill", &["list", "ls", "attached", "source"]),
    ("worktree", &["list", "ls", "info"]),
    ("remote", &["list", "ls", "sessions", "attach"]),
    ("agents", &["list", "ls", "show"]),
];

/// Words of commands after which a session is not to live (contract 5.4, 5.6).
const STOPPING: [&str; 4] = ["stop", "archive", "remove", "rm"];
/// Shortest beginning of an id that agent-deck takes for it (contract 3.3).
const ID_PREFIX: usize = 6;

enum Kind {
    Harmless,
    Changing(String),
    Interface,
}

/// Whether it is agent-deck, or the watchdog beside it: by its program, by the
/// script that an interpreter runs, or by name where arguments are not known.
pub fn is_agent_deck(process: &Process) -> bool {
    let deck = |name: &str| {
        matches!(
            name,
            "agent-deck" | "agent-deck-watchdog" | "agent-deck-watc"
        )
    };
    deck(&process.name)
        || program_at(&process.args).is_some_and(|at| deck(base_name(&process.args[at])))
}

/// Whether it is agent-deck's Python watchdog: `python3 …/watchdog.py`.
pub fn is_python_watchdog(process: &Process) -> bool {
    let python = process
        .args
        .first()
        .is_some_and(|arg| base_name(arg).starts_with("python"));
    python
        && process
            .args
            .iter()
            .skip(1)
            .take(2)
            .any(|arg| base_name(arg) == "watchdog.py" && arg.contains("agent-deck"))
}

/// Process of a command that stops, archives or removes this very session, named
/// by its id, the beginning of its id or its title (contract 3.3).
pub fn stops(table: &[Process], id: &SessionId, title: &str) -> Option<u32> {
    let names =
        |word: &str| word == title || (word.len() >= ID_PREFIX && id.as_str().starts_with(word));
    let ours = table.iter().filter(|p| p.own && !p.zombie && !p.elsewhere);
    let stopping = |process: &&Process| {
        let Some(words) = deck_words(process) else {
            return false;
        };
        let verb = words
            .iter()
            .position(|word| STOPPING.contains(&word.as_str()));
        verb.is_some_and(|at| words[at + 1..].iter().any(|word| names(word)))
    };
    ours.into_iter().find(stopping).map(|process| process.pid)
}

/// Marks processes that run agent-deck under another name than its own, such as
/// `/opt/bin/ad`, if that is how we call it or what that leads to.
pub fn mark_known_as(table: &mut [Process], program: &Path) {
    let names: Vec<String> = [Some(program.to_owned()), program.canonicalize().ok()]
        .into_iter()
        .flatten()
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    for process in table.iter_mut() {
        let Some(at) = program_at(&process.args) else {
            continue;
        };
        if names
            .iter()
            .any(|name| name == base_name(&process.args[at]))
        {
            process.name = "agent-deck".to_owned();
        }
    }
}

/// What this user's agent-deck processes are doing. Those whose arguments are
/// not known are left out, and those that work for another `HOME`.
pub fn deck_commands(table: &[Process]) -> DeckActivity {
    let mut activity = DeckActivity::default();
    for process in table.iter().filter(|p| p.own && !p.zombie && !p.elsewhere) {
        if is_python_watchdog(process) {
            activity.watchdog = Some(process.pid);
        }
        let Some(words) = deck_words(process) else {
            continue;
        };
        match kind(words) {
            Kind::Harmless => {}
            Kind::Changing(verb) => activity.changing.push((process.pid, verb)),
            Kind::Interface => activity.ui.push(process.pid),
        }
    }
    activity
}

/// The arguments behind the program, when that is agent-deck itself.
fn deck_words(process: &Process) -> Option<&[String]> {
    let at = program_at(&process.args)?;
    let deck = base_name(&process.args[at]) == "agent-deck" || process.name == "agent-deck";
    if deck {
        process.args.get(at + 1..)
    } else {
        None
    }
}

fn kind(words: &[String]) -> Kind {
    let mut words = words.iter().map(String::as_str);
    let first = loop {
        match words.next() {
            Some("-p" | "--profile") => {
                words.next();
            }
            Some(word) if is_global(word) => {}
            other => break other,
        }
    };
    match first {
        Some("-v" | "--version" | "-h" | "--help") => Kind::Harmless,
        // The terminal interface has flags of its own (contract 1.4).
        None | Some("web") => Kind::Interface,
        Some(flag) if flag.starts_with('-') => Kind::Interface,
        Some(first) => command(first, words.next()),
    }
}

/// Flags that may stand before the subcommand and say nothing about it.
fn is_global(word: &str) -> bool {
    ["-p=", "--profile=", "--allow-repo-scripts"]
        .iter()
        .any(|flag| word.starts_with(flag))
}

fn command(first: &str, second: Option<&str>) -> Kind {
    let first = match first {
        "wt" => "worktree",
        "agent" => "agents",
        other => other,
    };
    if HARMLESS.contains(&first) {
        return Kind::Harmless;
    }
    let Some((_, harmless)) = HARMLESS_SECOND.iter().find(|(word, _)| *word == first) else {
        return Kind::Changing(first.to_owned());
    };
    match second {
        // Help, or an error.
        None | Some("help") => Kind::Harmless,
        Some(second) if second.starts_with('-') || harmless.contains(&second) => Kind::Harmless,
        Some(second) => Kind::Changing(format!("{first} {second}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(command: &str) -> Process {
        let args: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        let name = "x".to_owned();
        Process {
            pid: 7,
            own: true,
            name,
            args,
            ..Process::default()
        }
    }

    fn of(command: &str) -> DeckActivity {
        deck_commands(&[process(command)])
    }

    #[test]
    fn who_stops_a_session_is_found_by_every_way_to_name_it() {
        let id = SessionId::parse("1a2b3c4d-1755900000").unwrap();
        for (command, found) in [
            (
                "agent-deck -p x session stop 1a2b3c4d-1755900000 --json",
                true,
            ),
            ("agent-deck session archive 1a2b3c", true),
            ("agent-deck rm --force ops", true),
            ("/bin/bash /home/u/bin/agent-deck session remove ops", true),
            ("agent-deck session stop 1a2b3", false),
            ("agent-deck session stop 1a2b3c4d-1755900001", false),
            ("agent-deck session show ops", false),
            ("vim stop ops", false),
        ] {
            let table = [process(command)];
            assert_eq!(stops(&table, &id, "ops").is_some(), found, "{command}");
        }
    }

    #[test]
    fn agent_deck_is_known_by_the_name_that_we_call_it_by() {
        let mut table = [process("/opt/bin/ad session stop x"), process("/bin/ls -l")];
        assert!(deck_commands(&table).changing.is_empty());
        mark_known_as(&mut table, Path::new("/opt/bin/ad"));
        assert_eq!(deck_commands(&table).changing.len(), 1);
    }

    #[test]
    fn the_python_watchdog_is_recognised() {
        for (command, found) in [
            ("python3 /home/u/.agent-deck/watchdog/watchdog.py", true),
            (
                "/usr/bin/python3.12 -u /src/agent-deck/scripts/watchdog/watchdog.py",
                true,
            ),
            ("python3 /srv/app/watchdog.py", false),
            ("python3 other.py watchdog.log", false),
            ("vim watchdog.py", false),
        ] {
            assert_eq!(of(command).watchdog.is_some(), found, "{command}");
        }
    }

    #[test]
    fn changing_commands_are_named() {
        for (command, verb) in [
            ("agent-deck session stop a-1 --json", "session stop"),
            (
                "/usr/local/bin/agent-deck -p night session restart a-1",
                "session restart",
            ),
            ("agent-deck -p=list session start a-1", "session start"),
            (
                "agent-deck --profile list session archive a-1",
                "session archive",
            ),
            (
                "agent-deck --profile=x --allow-repo-scripts session fork a",
                "session fork",
            ),
            (
                "/bin/bash /usr/local/bin/agent-deck session remove a-1",
                "session remove",
            ),
            ("agent-deck session set a title b", "session set"),
            ("agent-deck session set-parent a b", "session set-parent"),
            ("agent-deck session revive --all", "session revive"),
            ("agent-deck session frobnicate", "session frobnicate"),
            ("agent-deck rm a-1", "rm"),
            ("agent-deck remove a-1", "remove"),
            ("agent-deck add -t x -g list .", "add"),
            ("agent-deck launch . -m status", "launch"),
            ("agent-deck try x", "try"),
            ("agent-deck conductor setup ops", "conductor setup"),
            ("agent-deck conductor teardown ops", "conductor teardown"),
            ("agent-deck fleet recover", "fleet recover"),
            ("agent-deck group delete list", "group delete"),
            ("agent-deck wt finish", "worktree finish"),
            ("agent-deck mcp attach a b --restart", "mcp attach"),
            ("agent-deck migrate-paths", "migrate-paths"),
            ("agent-deck uninstall", "uninstall"),
            ("agent-deck something-new", "something-new"),
        ] {
            assert_eq!(of(command).changing, [(7, verb.to_owned())], "{command}");
            assert!(of(command).ui.is_empty());
        }
    }

    #[test]
    fn reading_commands_and_helpers_are_harmless() {
        for command in [
            "agent-deck -p default list --json",
            "agent-deck ls",
            "agent-deck status --json -v",
            "agent-deck -p default session show a-1 --json",
            "agent-deck session output stop --pane",
            "agent-deck session send a-1 stop --no-wait",
            "agent-deck session attach a-1",
            "agent-deck session children a-1 --follow",
            "agent-deck profile list --json",
            "agent-deck group show conductor --resolved",
            "agent-deck conductor status --json",
            "agent-deck hook-handler",
            "agent-deck codex-notify stop",
            "agent-deck notify-daemon",
            "agent-deck mcp-proxy x",
            "agent-deck run-task -- claude -p",
            "agent-deck creds-refresh",
            "agent-deck --version",
            "agent-deck -p x --help",
            "agent-deck session",
            "agent-deck session --help",
        ] {
            assert_eq!(of(command), DeckActivity::default(), "{command}");
        }
    }

    #[test]
    fn without_a_subcommand_it_is_the_interface() {
        for command in [
            "agent-deck",
            "agent-deck -p night",
            "agent-deck --profile=night --select x",
            "agent-deck -g work",
            "agent-deck web --no-tui",
            "/bin/sh /usr/local/bin/agent-deck",
        ] {
            assert_eq!(
                of(command),
                DeckActivity {
                    changing: Vec::new(),
                    ui: vec![7],
                    watchdog: None,
                },
                "{command}"
            );
        }
    }

    #[test]
    fn other_programs_and_users_are_left_out() {
        for command in [
            "",
            "vim agent-deck session stop",
            "bash -c agent-deck session stop a-1",
            "agent-deck-watchdog --once",
            "agent-deckx session stop",
            "grep agent-deck",
        ] {
            assert_eq!(of(command), DeckActivity::default(), "{command}");
        }
        let stop = process("agent-deck session stop a-1");
        let theirs = Process {
            own: false,
            ..stop.clone()
        };
        let over = Process {
            zombie: true,
            ..stop.clone()
        };
        let unknown = Process {
            args: Vec::new(),
            name: "agent-deck".to_owned(),
            ..stop.clone()
        };
        assert_eq!(
            deck_commands(&[theirs, over, unknown]),
            DeckActivity::default()
        );
        // A wrapper known by its own name.
        let renamed = Process {
            name: "agent-deck".to_owned(),
            ..process("ad session stop a-1")
        };
        assert_eq!(deck_commands(&[renamed]).changing.len(), 1);
    }

    #[test]
    fn agent_deck_is_known_by_program_script_or_name() {
        for (command, deck) in [
            ("agent-deck list", true),
            ("/bin/bash /usr/local/bin/agent-deck", true),
            ("agent-deck-watchdog status", true),
            ("bash -c agent-deck", false),
            ("cat agent-deck", false),
            ("", false),
        ] {
            assert_eq!(is_agent_deck(&process(command)), deck, "{command}");
        }
        assert!(is_agent_deck(&Process {
            name: "agent-deck".to_owned(),
            ..process("")
        }));
    }
}
