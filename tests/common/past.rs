//! Runs of the watchdog one after another, and time that passes between them:
//! what it has written down is made older. Does not know what that means to it.
#![allow(dead_code, clippy::unwrap_used)]

use std::process::{Command, ExitStatus};
use std::time::{Duration, SystemTime};

use agent_deck_watchdog::clock::each_stamp;
use agent_deck_watchdog::json;

use super::common::{Deck, write};

/// How a run ended, and what it printed.
pub struct Run {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
}

impl Run {
    /// Its exit code.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Ended well and in silence.
    #[track_caller]
    pub fn silent(&self) {
        let Run { status, out, err } = self;
        let said = (status.code(), out.as_str(), err.as_str());
        assert_eq!(said, (Some(0), "", ""));
    }
}

/// Runs the watchdog to its end; one that hangs fails the test.
pub fn run(deck: &Deck, args: &[&str]) -> Run {
    let mut process = deck.daemon_with(args);
    let status = process.wait();
    let (out, err) = process.said();
    Run { status, out, err }
}

/// One pass.
pub fn once(deck: &Deck) -> Run {
    run(deck, &["--once"])
}

/// The watchdog behind a shell script, which has to `exec "$0" "$@"`.
pub fn through_shell(deck: &Deck, script: &str, args: &[&str]) -> Command {
    let real = deck.watchdog(args);
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", script])
        .arg(real.get_program())
        .args(real.get_args())
        .env_clear()
        .envs(
            real.get_envs()
                .filter_map(|(key, value)| Some((key, value?))),
        )
        .current_dir(deck.home());
    shell
}

/// Lets so many seconds pass for the watchdog's memory, and for agent-deck's
/// stamps. No watchdog may run meanwhile.
pub fn pass(deck: &Deck, seconds: u64) {
    let span = Duration::from_secs(seconds);
    let path = deck.watchdog_dir().join("state.json");
    let mut state = json::read(&std::fs::read(&path).unwrap()).unwrap();
    each_stamp(&mut state, &mut |at| at.minus(span));
    write(&path, state.to_string());
    for file in std::fs::read_dir(deck.file("locks")).into_iter().flatten() {
        let file = std::fs::File::options()
            .write(true)
            .open(file.unwrap().path());
        let file = file.unwrap();
        let modified = file
            .metadata()
            .unwrap()
            .modified()
            .unwrap_or(SystemTime::UNIX_EPOCH);
        file.set_modified(modified - span).unwrap();
    }
}

/// Ids of all sessions that were restarted, in order.
pub fn restarted(deck: &Deck) -> Vec<String> {
    let restart = |args: &str| {
        Some(
            args.split_once(" session restart ")?
                .1
                .split(' ')
                .next()?
                .to_owned(),
        )
    };
    let calls = deck.ledger().into_iter();
    calls
        .filter_map(|call| restart(&format!(" {}", call.args)))
        .collect()
}

/// How often a text stands in one of the watchdog's files.
pub fn count(deck: &Deck, file: &str, text: &str) -> usize {
    deck.read(file).matches(text).count()
}

/// Milliseconds that a stamp in the ledger may be off on a machine under load.
const SLACK: u64 = 5000;

/// The restarts of a deck on whose watchdog time passes faster.
pub struct Story<'a> {
    deck: &'a Deck,
    /// Milliseconds that were passed over.
    passed: u64,
    /// Unix milliseconds as the watchdog has lived them, and id.
    pub restarts: Vec<(u64, String)>,
}

impl<'a> Story<'a> {
    /// Nothing has happened yet.
    pub fn of(deck: &'a Deck) -> Story<'a> {
        Story {
            deck,
            passed: 0,
            restarts: Vec::new(),
        }
    }

    /// Lets seconds pass.
    pub fn pass(&mut self, seconds: u64) {
        self.note();
        if self.deck.watchdog_dir().join("state.json").exists() {
            pass(self.deck, seconds);
        }
        self.passed += seconds * 1000;
    }

    fn note(&mut self) {
        let calls = self.deck.ledger().into_iter();
        let restarts: Vec<_> = calls
            .filter(|call| call.args.contains("session restart"))
            .collect();
        for call in &restarts[self.restarts.len()..] {
            let id = call.args.split(' ').nth(4).unwrap().to_owned();
            self.restarts.push((call.at + self.passed, id));
        }
    }

    /// Never two within 60 s, and never more than three of one in 300 s.
    #[track_caller]
    pub fn inside_the_guardrails(&mut self, what: &str) {
        self.note();
        let all = &self.restarts;
        for pair in all.windows(2) {
            assert!(
                pair[1].0 + SLACK >= pair[0].0 + 60_000,
                "{what}: two within 60 s: {all:?}"
            );
        }
        for (at, id) in all {
            let window = all
                .iter()
                .filter(|(other, of)| of == id && *other + SLACK < at + 300_000 && other >= at);
            assert!(
                window.count() <= 3,
                "{what}: more than three in 300 s: {all:?}"
            );
        }
    }
}
