//! A watchdog under measurement: its command, and one run of it on a deck with
//! an unused folder. Does not know what it does.

use std::fs::{self, File};
use std::process::Child;
use std::time::Duration;

use rustix::process::Signal;

use crate::Out;
use crate::deck::Deck;
use crate::parts::now_ns;
use crate::system::{send, wait};

/// It has settled when it has listed the deck and then called nothing for so long.
const SILENCE: Duration = Duration::from_secs(2);
/// Whoever never falls silent is taken as it is.
const SETTLE: Duration = Duration::from_secs(30);
/// How long it may take to leave.
const LEAVE: Duration = Duration::from_secs(20);

/// Its name in the table, and its command.
pub struct Watchdog {
    /// Short.
    pub name: &'static str,
    /// Program and arguments.
    pub command: Vec<String>,
}

/// A running one; ended when dropped.
pub struct Running<'a> {
    deck: &'a Deck,
    child: Child,
    /// When it was started.
    pub since: u64,
}

impl Watchdog {
    /// One of this command.
    pub fn new(name: &'static str, command: Vec<String>) -> Watchdog {
        Watchdog { name, command }
    }

    /// Starts it with an empty memory, default settings and these variables.
    pub fn start<'a>(&self, deck: &'a Deck, settings: &[(&str, &str)]) -> Out<Running<'a>> {
        let folder = deck.home.join(".agent-deck/watchdog");
        let _ = fs::remove_dir_all(&folder);
        let (program, args) = self.command.split_first().ok_or("an empty command")?;
        let said = File::create(deck.home.join("said"))?;
        let since = now_ns();
        let child = deck
            .command(program)
            .args(args)
            .envs(settings.iter().copied())
            .stdout(said.try_clone()?)
            .stderr(said)
            .spawn()
            .map_err(|why| format!("{program}: {why}"))?;
        Ok(Running { deck, child, since })
    }
}

impl Running<'_> {
    /// Its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has seen the deck and is at rest.
    pub fn settle(&mut self) -> Out<()> {
        let silent = || {
            let ledger = self.deck.ledger();
            let last = ledger.since(self.since).map(|call| call.end);
            let last = last.max_by_key(|end| end.unwrap_or(u64::MAX))??;
            let silence = u128::from(now_ns().saturating_sub(last));
            (ledger.lists(self.since) > 0 && silence >= SILENCE.as_nanos()).then_some(())
        };
        wait(SETTLE, silent)?;
        self.still_runs()
    }

    /// Fails when it has ended.
    pub fn still_runs(&mut self) -> Out<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                let said = fs::read_to_string(self.deck.home.join("said")).unwrap_or_default();
                Err(format!("the watchdog has ended ({status}): {said}").into())
            }
        }
    }

    /// Asks it to leave and waits for that.
    pub fn stop(mut self) -> Out<()> {
        send(self.process(), Signal::TERM)?;
        let child = &mut self.child;
        match wait(LEAVE, || child.try_wait().ok()?)? {
            Some(_) => Ok(()),
            None => Err("the watchdog does not leave".into()),
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
