//! The frame of the `agent-deck` command line: global flag, subcommands, flags,
//! errors and exit codes (contract 1). Does not know what the commands do.

use std::io;

use crate::Answer;
use crate::acts;
use crate::answers;
use crate::deck::{self, Deck, now_ms};
use crate::json::Json;
use crate::send;
use crate::session::Session;
use crate::traps;

/// What all commands of one call share.
pub struct Call<'a> {
    /// The deck.
    pub deck: &'a Deck,
    /// The argument of `-p`, empty when there was none.
    pub profile_arg: String,
    /// The profile that is used.
    pub profile: String,
    /// `--json` was given.
    pub json: bool,
    /// `-q` or `--quiet` was given.
    pub quiet: bool,
}

/// Flags and positionals of one subcommand.
pub struct Words {
    /// Names without dashes, with the value of those that take one.
    pub flags: Vec<(String, String)>,
    /// The rest, in order.
    pub rest: Vec<String>,
}

impl Words {
    /// Whether a flag was given.
    pub fn has(&self, name: &str) -> bool {
        self.flags.iter().any(|(flag, _)| flag == name)
    }

    /// The value of a flag.
    pub fn value(&self, name: &str) -> Option<&str> {
        let found = self.flags.iter().find(|(flag, _)| flag == name)?;
        Some(&found.1)
    }
}

/// What a subcommand accepts.
struct Command {
    /// As in the usage text, and as the name of its trap folder.
    name: &'static str,
    /// Head of the usage text.
    usage: &'static str,
    switches: &'static [&'static str],
    valued: &'static [&'static str],
}

const OF_SESSION: &[Command] = &[
    plain("show", "session show [id|title]"),
    with(
        "output",
        "session output <id|title>",
        &["copy", "pane"],
        &[],
    ),
    with(
        "restart",
        "session restart [id|title]",
        &["force", "all"],
        &["env"],
    ),
    with(
        "send",
        "session send <id|title> <message>",
        &["no-wait", "wait", "stream", "draft", "defer-if-busy"],
        &["message-file", "timeout", "defer-timeout"],
    ),
    with("children", "session children [id]", &["follow"], &[]),
    with("start", "session start <id|title>", &[], &["m", "message"]),
    plain("stop", "session stop <id|title>"),
    plain("archive", "session archive <id|title>"),
];

const LIST: Command = Command {
    name: "list",
    usage: "list",
    switches: &["json", "all"],
    valued: &[],
};

const PROFILE_LIST: Command = plain("profile-list", "profile list");

/// Words the real program knows and this one does not play.
const NOT_PLAYED: &[&str] = &[
    "add",
    "launch",
    "remove",
    "rm",
    "status",
    "conductor",
    "group",
    "fleet",
    "hooks",
    "telegram-doctor",
    "fork",
    "mcp",
    "worktree",
];

const fn plain(name: &'static str, usage: &'static str) -> Command {
    with(name, usage, &[], &[])
}

const fn with(
    name: &'static str,
    usage: &'static str,
    switches: &'static [&'static str],
    valued: &'static [&'static str],
) -> Command {
    Command {
        name,
        usage,
        switches,
        valued,
    }
}

/// Answers one call.
pub fn run(deck: &Deck, args: &[String]) -> io::Result<Answer> {
    let (profile_arg, words) = global(args);
    let wanted = [
        Some(profile_arg.clone()),
        std::env::var("AGENTDECK_PROFILE").ok(),
        deck.text("default_profile"),
    ];
    let wanted = wanted.into_iter().flatten().find(|name| !name.is_empty());
    let wanted = wanted.unwrap_or_else(|| "default".to_owned());
    let profile = wanted.rsplit('/').next().unwrap_or(&wanted).to_owned();
    let mut call = Call {
        deck,
        profile_arg,
        profile,
        json: false,
        quiet: false,
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["version", ..] => traps::answer(deck, "version", None, |_| Ok(answers::version(deck))),
        ["list" | "ls", rest @ ..] => list(&mut call, rest),
        ["profile", "list", rest @ ..] => match call.parse(&PROFILE_LIST, rest) {
            Err(usage) => Ok(usage),
            Ok(_) => traps::answer(deck, "profile-list", None, |_| answers::profiles(&call)),
        },
        ["session", verb, rest @ ..] => match OF_SESSION.iter().find(|c| c.name == *verb) {
            Some(command) => session(&mut call, command, rest),
            None => Ok(Answer {
                stdout: b"Usage: agent-deck session <command> [options]\n".to_vec(),
                stderr: format!("Error: unknown session command: {verb}\n").into_bytes(),
                code: 1,
            }),
        },
        [word, ..] if NOT_PLAYED.contains(word) => Ok(Answer::complaint(
            1,
            &format!("stand-in: no part for {word}"),
        )),
        // The real program would boot its terminal UI on the user's deck.
        _ => {
            deck.append("ledger", &format!("{}\tagent-deck\tTUI\n", now_ms()))?;
            Ok(Answer::complaint(1, "stand-in: this would boot the TUI"))
        }
    }
}

/// Takes the global profile flag, which counts only before the subcommand.
fn global(args: &[String]) -> (String, Vec<String>) {
    let mut profile = String::new();
    let mut left = args.iter();
    let mut words = Vec::new();
    while let Some(arg) = left.next() {
        let value = |flag: &str| arg.strip_prefix(flag)?.strip_prefix('=');
        if arg == "-p" || arg == "--profile" {
            profile = left.next().cloned().unwrap_or_default();
        } else if let Some(name) = value("-p").or_else(|| value("--profile")) {
            name.clone_into(&mut profile);
        } else {
            words.push(arg.clone());
            words.extend(left.by_ref().cloned());
        }
    }
    (profile, words)
}

fn list(call: &mut Call, rest: &[&str]) -> io::Result<Answer> {
    let words = match call.parse(&LIST, rest) {
        Ok(words) => words,
        Err(usage) => return Ok(usage),
    };
    if words.has("all") {
        return Ok(Answer::complaint(1, "stand-in: no part for list --all"));
    }
    traps::answer(call.deck, "list", Some(&call.profile), |_| {
        match call.open() {
            Ok(()) => answers::list(call),
            // This command prints its errors as text on stdout.
            Err(why) => Ok(Answer {
                stdout: format!("Error: {why}\n").into_bytes(),
                stderr: Vec::new(),
                code: 1,
            }),
        }
    })
}

fn session(call: &mut Call, command: &Command, rest: &[&str]) -> io::Result<Answer> {
    let words = match call.parse(command, rest) {
        Ok(words) => words,
        Err(usage) => return Ok(usage),
    };
    let call = &*call;
    let Some(wanted) = words.rest.first().filter(|id| !id.is_empty()) else {
        return Ok(call.without_id(command));
    };
    let key = call.find(wanted).map(|row| row.id);
    let key = key.as_deref().unwrap_or(wanted);
    traps::answer(call.deck, command.name, Some(key), |trap| {
        let row = match call.open() {
            Ok(()) => call.find(wanted),
            // Exit 1 tells a database that cannot be read from a missing row.
            Err(why) => Err(call.failed("NOT_FOUND", &why, 1, Vec::new())),
        };
        let row = match row {
            Ok(row) => row,
            Err(answer) => return Ok(answer),
        };
        match command.name {
            "show" => answers::show(call, &row),
            "output" => answers::output(call, row, words.has("pane")),
            "children" => answers::children(call, &row),
            "restart" => acts::restart(call, row, words.has("force"), trap.db_locked),
            "start" => acts::start(call, row),
            "stop" => acts::stop(call, row, trap.db_locked),
            "archive" => acts::archive(call, row),
            "send" => send::send(call, row, &words),
            other => Err(io::Error::other(format!("no command {other}"))),
        }
    })
}

impl Call<'_> {
    /// Sorts flags from the rest as the real program does: flags may stand
    /// anywhere, an unknown one ends in exit 2, a wish for help in exit 0.
    fn parse(&mut self, command: &Command, args: &[&str]) -> Result<Words, Answer> {
        const COMMON: &[&str] = &["json", "q", "quiet"];
        // `send` knows the short one only, `list` neither of the two.
        let common = match command.name {
            "send" => &COMMON[..2],
            "list" => &[],
            _ => COMMON,
        };
        let mut words = Words {
            flags: Vec::new(),
            rest: Vec::new(),
        };
        let mut left = args.iter();
        while let Some(arg) = left.next() {
            if *arg == "--" {
                words.rest.extend(left.by_ref().map(|w| (*w).to_owned()));
                break;
            }
            let Some(flag) = arg.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
                words.rest.push((*arg).to_owned());
                continue;
            };
            let flag = flag.strip_prefix('-').unwrap_or(flag);
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (flag, None),
            };
            if command.switches.contains(&name) || common.contains(&name) {
                words.flags.push((name.to_owned(), String::new()));
            } else if command.valued.contains(&name) {
                let value = value.or_else(|| left.next().copied()).unwrap_or("");
                words.flags.push((name.to_owned(), value.to_owned()));
            } else {
                return Err(usage(command, name));
            }
        }
        self.json = words.has("json");
        self.quiet = words.has("q") || words.has("quiet");
        Ok(words)
    }

    /// Opens the profile's database; an unknown profile comes into being.
    fn open(&self) -> Result<(), String> {
        let folder = self.deck.profile(&self.profile);
        let file = folder.join("state.db");
        let opened = deck::folder(&folder).and_then(|()| {
            if !file.exists() {
                deck::save(&file, b"")?;
            }
            std::fs::read(&file)
        });
        let bytes = opened.map_err(|e| format!("failed to initialize storage: {e}"))?;
        if bytes.is_empty() || bytes.starts_with(b"SQLite format 3\0") {
            return Ok(());
        }
        Err(
            "failed to initialize storage: failed to open state database: \
             statedb: wal mode: file is not a database (26)"
                .to_owned(),
        )
    }

    /// The row that is meant: exact title, then id prefix (contract 3.3).
    pub fn find(&self, wanted: &str) -> Result<Session, Answer> {
        let rows = Session::all(self.deck, &self.profile).unwrap_or_default();
        let titled = rows.iter().filter(|row| row.title() == wanted).count();
        let fits = |row: &Session| match titled {
            0 => wanted.len() >= 6 && row.id.starts_with(wanted),
            _ => row.title() == wanted,
        };
        let mut found: Vec<Session> = rows.into_iter().filter(fits).collect();
        match (found.len(), found.pop()) {
            (1, Some(row)) => Ok(row),
            (0, _) | (_, None) => {
                let why = format!("session '{wanted}' not found");
                Err(self.failed("NOT_FOUND", &why, 2, Vec::new()))
            }
            (_, Some(last)) => {
                found.push(last);
                Err(self.ambiguous(wanted, &found))
            }
        }
    }

    fn ambiguous(&self, wanted: &str, rows: &[Session]) -> Answer {
        let mut why = format!("title '{wanted}' is held by multiple sessions:\n");
        for row in rows {
            let short: String = row.id.chars().take(12).collect();
            let path = row.text_or("path", "/home/u/proj");
            why += &format!("  - {} ({short}) at {path}\n", row.title());
        }
        why += "Use the session ID, or rename one of them.";
        self.failed("AMBIGUOUS", &why, 1, Vec::new())
    }

    fn without_id(&self, command: &Command) -> Answer {
        if command.name != "restart" {
            let why = "no session specified and not inside an agent-deck session";
            return self.failed("NOT_FOUND", why, 2, Vec::new());
        }
        let why = "session identifier required (or use --all)";
        let mut answer = self.failed("INVALID_OPERATION", why, 1, Vec::new());
        answer.stdout.extend(usage_head(command));
        answer
    }

    /// A success, printed as a Go map.
    pub fn done(&self, pairs: Vec<(&str, Json)>, text: &str) -> Answer {
        let mut pairs = pairs;
        pairs.push(("success", Json::Bool(true)));
        self.printed(&Json::sorted(pairs), text)
    }

    /// A value in JSON mode, a text else, nothing when quiet.
    pub fn printed(&self, value: &Json, text: &str) -> Answer {
        let stdout = match (self.quiet, self.json) {
            (true, _) => Vec::new(),
            (false, true) => value.printed(),
            (false, false) => format!("{text}\n").into_bytes(),
        };
        Answer {
            stdout,
            ..Answer::default()
        }
    }

    /// A failure: JSON on stdout, or text on stderr.
    pub fn failed(&self, word: &str, why: &str, code: i32, more: Vec<(&str, Json)>) -> Answer {
        if !self.json {
            return Answer::complaint(code, &format!("Error: {why}"));
        }
        let mut pairs = more;
        pairs.push(("success", Json::Bool(false)));
        pairs.push(("error", Json::text(why)));
        pairs.push(("code", Json::text(word)));
        Answer {
            stdout: Json::sorted(pairs).printed(),
            stderr: Vec::new(),
            code,
        }
    }
}

fn usage_head(command: &Command) -> Vec<u8> {
    format!("Usage: agent-deck {} [options]\n", command.usage).into_bytes()
}

fn usage(command: &Command, flag: &str) -> Answer {
    let help = flag == "h" || flag == "help";
    let stderr = match help {
        true => String::new(),
        false => format!("flag provided but not defined: -{flag}\n"),
    };
    Answer {
        stdout: usage_head(command),
        stderr: stderr.into_bytes(),
        code: if help { 0 } else { 2 },
    }
}
