//! Steps that the scenarios of the real binary share: an impatient deck, turns
//! on demand, the whole ledger in a form that can be compared, records of the
//! JSON logs. Does not know any scenario.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::ErrorKind;
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixDatagram;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::common::{Daemon, Deck, PATIENCE, write};

/// What `restart.log` says of a restart that worked.
pub const WORKED: [&str; 3] = ["attempt", "accepted", "done"];

/// A deck whose watchdog polls each second and waits a second between restarts.
pub fn impatient() -> Deck {
    polled_every(1)
}

/// The same with another distance between polls; at the longest one, 300 s,
/// what happens soon is not owed to a poll.
pub fn polled_every(seconds: u32) -> Deck {
    let deck = Deck::new();
    deck.setting("SAFETY_POLL_S", &seconds.to_string());
    deck.setting("MIN_GLOBAL_RESTART_INTERVAL_S", "1");
    deck
}

/// An impatient deck whose restarts bring up agents: processes under tmux.
pub fn with_agents() -> Deck {
    let deck = impatient();
    deck.start_tmux();
    deck
}

/// The arguments of `session show`.
pub fn show(id: &str) -> String {
    format!("-p default session show {id} --json")
}

/// The arguments of `session output`.
pub fn pane(id: &str) -> String {
    format!("-p default session output {id} --pane --json")
}

/// The arguments of `session restart`.
pub fn restart(id: &str) -> String {
    format!("-p default session restart {id} --json")
}

/// What it takes to restart a session whose terminal is gone.
pub fn revival(id: &str) -> Vec<String> {
    vec![show(id), pane(id), restart(id)]
}

/// The arguments of the poll.
pub const POLL: &str = "-p default list --json";

/// The whole ledger but its polls: the arguments of each call of `agent-deck`,
/// and the whole line of any other program. Looks that are repeated in the same
/// order count once; what changes something is never left out.
pub fn acts(deck: &Deck) -> Vec<String> {
    const POLLS: [&str; 3] = ["version", "profile list --json", POLL];
    let mut acts: Vec<String> = Vec::new();
    for call in deck.ledger() {
        let line = match call.program.as_str() {
            "agent-deck" => call.args,
            program => format!("{program} {}", call.args),
        };
        // What children have said of their work is asked for once a minute at
        // most, and counted by tests of its own.
        let of_work = line.starts_with("-p default session children ");
        if of_work || POLLS.contains(&line.as_str()) {
            continue;
        }
        acts.push(line);
        drop_repeated_looks(&mut acts);
    }
    acts
}

fn drop_repeated_looks(acts: &mut Vec<String>) {
    let is_look = |act: &String| {
        let looks = ["-p default session show ", "-p default session output "];
        looks.iter().any(|look| act.starts_with(look))
    };
    for length in 1..=4 {
        let Some(second) = acts.len().checked_sub(length) else {
            return;
        };
        let Some(first) = second.checked_sub(length) else {
            return;
        };
        if acts[first..second] == acts[second..] && acts[second..].iter().all(is_look) {
            acts.truncate(second);
        }
    }
}

/// Makes the daemon look at the whole deck so many times; the last of these
/// turns is complete when this returns. Only for one that is [`watching`]: before
/// that it may not listen to signals yet.
pub fn turns(deck: &Deck, daemon: &Daemon, times: usize) {
    // A turn is complete when the next one has begun.
    for _ in 0..=times {
        let seen = polls(deck);
        daemon.signal(Signal::HUP);
        deck.wait("a poll", || (polls(deck) > seen).then_some(()));
    }
}

/// Starts the daemon and waits until its first turn is complete: it watches
/// everything it can watch.
pub fn watching(deck: &Deck) -> Daemon<'_> {
    let path = deck.root().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    deck.setting("NOTIFY_SOCKET", path.to_str().unwrap());
    let daemon = deck.daemon();
    let mut message = [0; 1024];
    loop {
        match manager.recv(&mut message) {
            Ok(length) if message[..length].starts_with(b"STATUS=") => break,
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => panic!("no status came: {e}"),
        }
    }
    daemon
}

/// Polls begun so far, of all profiles.
pub fn polls(deck: &Deck) -> usize {
    let calls = deck.ledger();
    let is_poll = |args: &str| args.ends_with(" list --json") && args.starts_with("-p ");
    calls.iter().filter(|call| is_poll(&call.args)).count()
}

/// The objects of `restart.log` or `escalations.log`.
pub fn records(deck: &Deck, log: &str) -> Vec<Value> {
    let text = deck.read(log);
    let object = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    text.lines().map(object).collect()
}

/// What `restart.log` says of one session, in short: `attempt`, `accepted`, and
/// so on; refusals by their rule.
pub fn story(deck: &Deck, id: &str) -> Vec<String> {
    let records = records(deck, "restart.log").into_iter();
    let word = |record: &Value| {
        let text = |name: &str| record[name].as_str().map(str::to_owned);
        let word = text("outcome").or_else(|| text("rule"));
        word.or_else(|| text("event")).unwrap()
    };
    records
        .filter(|record| record["session"] == *id)
        .map(|record| word(&record))
        .collect()
}

/// How many lines of a log have all these words.
pub fn count(deck: &Deck, log: &str, words: &[&str]) -> usize {
    let log = deck.read(log);
    let fits = |line: &&str| words.iter().all(|word| line.contains(word));
    log.lines().filter(fits).count()
}

/// How many restarts of the last 300 s are booked for one session.
pub fn spent(deck: &Deck, id: &str) -> usize {
    let file: Value = serde_json::from_str(&deck.read("state.json")).unwrap();
    let booked = &file["state"]["sessions"][id]["restarts"];
    booked.as_array().unwrap().len()
}

/// Why a session is left alone at the moment: the rule, written down or not.
pub fn refused(deck: &Deck, id: &str) -> Option<String> {
    let file: Value = serde_json::from_str(&deck.read("state.json")).unwrap();
    let rule = file["state"]["sessions"][id]["refusal"]["rule"].as_str()?;
    Some(rule.to_owned())
}

/// Processes that the stand-in has left behind on this deck.
pub fn left_behind(deck: &Deck) -> usize {
    let program = deck.file("bin/ps");
    let line = [program.to_str().unwrap(), "--stand-in-grandchild", ""].join("\0");
    let commands = std::fs::read_dir("/proc").unwrap().map(|process| {
        let process = process.unwrap().path();
        std::fs::read(process.join("cmdline")).unwrap_or_default()
    });
    commands
        .filter(|command| *command == line.as_bytes())
        .count()
}

/// Sets a flag file of the watchdog.
pub fn flag(deck: &Deck, folder: &str, name: &str) {
    let folder = deck.watchdog_dir().join(folder);
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(&folder).unwrap();
    write(&folder.join(name), "");
}

/// Takes a flag file away.
pub fn no_flag(deck: &Deck, folder: &str, name: &str) {
    std::fs::remove_file(deck.watchdog_dir().join(folder).join(name)).unwrap();
}

/// A living agent of a session, seen by its environment, that is not below the
/// deck's tmux server; ends with this value. Of no certain age: an agent that a
/// tmux server has started makes its session a young one.
pub struct Agent(Child);

impl Agent {
    /// One with these variables and arguments.
    pub fn start(deck: &Deck, variables: &[(&str, &str)], args: &[&str]) -> Agent {
        let mut claude = Command::new(deck.file("bin/claude"));
        claude
            .args(args)
            .env_clear()
            .envs(variables.iter().copied())
            .stdin(Stdio::piped());
        Agent(claude.spawn().unwrap())
    }

    /// The agent of this session.
    pub fn of(deck: &Deck, id: &str) -> Agent {
        Agent::start(deck, &[("AGENTDECK_INSTANCE_ID", id)], &[])
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process that is agent-deck's terminal interface, as far as can be seen from
/// outside; ends with this value.
pub struct Interface(Child);

impl Interface {
    /// Opens it for the user of this deck.
    pub fn open(deck: &Deck) -> Interface {
        let mut cat = Command::new("/bin/cat");
        cat.arg0("agent-deck")
            .env_clear()
            .env("HOME", deck.home())
            .stdin(Stdio::piped());
        Interface(cat.spawn().unwrap())
    }
}

impl Drop for Interface {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// As `tmux kill-session` does.
pub fn kill_session(deck: &Deck, id: &str) {
    let mut tmux = UnixStream::connect(deck.file("tmux.sock")).unwrap();
    writeln!(tmux, "stop\tdefault\t{id}").unwrap();
    tmux.read_to_string(&mut String::new()).unwrap();
}
