//! How long a death lasts: a conductor dies in four ways, and its agent is
//! brought back by each watchdog, and by hand as soon as the session is gone.
//!
//! For each of them there is a deck whose conductors die one by one, and one
//! for the deaths of its tmux server, so that a conductor dies but once a round.
//! A round lasts more than a minute: younger sessions are restarted neither by
//! agent-deck nor by ours. Each death meets a watchdog that has just settled, with
//! an empty memory, so that no earlier restart holds it back.

use std::rc::Rc;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::deck::{Deck, Kind};
use crate::idle::{CHILDREN, CONDUCTORS, median};
use crate::parts::now_ns;
use crate::system::{pause, send, wait};
use crate::watchdog::Watchdog;
use crate::{Out, Wish};

/// A session younger than a minute is left alone; some seconds to be sure.
const OLD: Duration = Duration::from_secs(63);
/// Deaths are spread over this time, to meet all moments between two polls.
const SPREAD: Duration = Duration::from_secs(5);
/// Who has not brought it back by then never will.
const LIMIT: Duration = Duration::from_secs(45);

/// A way to die.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// SIGKILL to the agent.
    Killed,
    /// The agent ends by itself.
    OwnExit,
    /// `tmux kill-session`.
    SessionKilled,
    /// SIGKILL to the tmux server.
    ServerKilled,
}

/// All of them, with their names in the table.
pub const CAUSES: [(Cause, &str); 4] = [
    (Cause::Killed, "SIGKILL of the agent"),
    (Cause::OwnExit, "its own exit"),
    (Cause::SessionKilled, "tmux kill-session"),
    (Cause::ServerKilled, "tmux server killed"),
];

/// Some conductors of a deck, how they die, and who brings them back.
pub struct Cell {
    deck: Rc<Deck>,
    /// One, or all.
    victims: Vec<String>,
    /// How.
    pub cause: Cause,
    /// Which watchdog; none: by hand.
    pub by: Option<usize>,
    /// What one `session show` took before each death, in nanoseconds.
    pub shows: Vec<f64>,
    /// Each death.
    pub trials: Vec<Trial>,
}

/// One death; nanoseconds since it.
#[derive(Clone, Copy)]
pub struct Trial {
    /// Until tmux has its session no more.
    pub gone: f64,
    /// Until the first restart command begins and until its agent does, if they do.
    pub back: Option<(f64, f64)>,
}

impl Cell {
    /// Whose deck it is.
    pub fn kind(&self) -> Kind {
        self.deck.kind
    }

    /// Median of one time, over the deaths from which it came back.
    pub fn median(&self, time: impl Fn(&Trial) -> Option<f64>) -> Option<f64> {
        median(self.trials.iter().filter_map(time))
    }
}

/// About how long a round takes, in seconds.
pub fn round_s(decks: usize, watchdogs: usize) -> usize {
    (decks * (CAUSES.len() * (1 + watchdogs * 7) + 10 * (1 + watchdogs))).max(66)
}

/// Makes the decks for one kind.
pub fn cells(wish: &Wish, kind: Kind) -> Out<Vec<Cell>> {
    let deck = || Deck::new(&wish.tools, kind, CONDUCTORS, CHILDREN).map(Rc::new);
    let mut cells = Vec::new();
    for by in std::iter::once(None).chain((0..wish.watchdogs.len()).map(Some)) {
        let shared = deck()?;
        for (n, (cause, _)) in CAUSES.into_iter().enumerate() {
            let deck = match cause {
                Cause::ServerKilled => deck()?,
                Cause::Killed | Cause::OwnExit | Cause::SessionKilled => Rc::clone(&shared),
            };
            let victims = match cause {
                Cause::ServerKilled => deck.conductors.clone(),
                Cause::Killed | Cause::OwnExit | Cause::SessionKilled => {
                    vec![deck.conductors[n].clone()]
                }
            };
            cells.push(Cell {
                deck,
                victims,
                cause,
                by,
                shows: Vec::new(),
                trials: Vec::new(),
            });
        }
    }
    // In turns: the same death for everybody, then the next one.
    cells.sort_by_key(|cell| cell.cause);
    Ok(cells)
}

/// Lets them all die, round by round.
pub fn happen(wish: &Wish, cells: &mut [Cell]) -> Out<()> {
    for round in 0..wish.deaths {
        let share = round as f64 / wish.deaths as f64;
        for cell in &mut *cells {
            cell.die(&wish.watchdogs, SPREAD.mul_f64(share))?;
        }
        eprintln!("bench: round {} of {} is over", round + 1, wish.deaths);
    }
    Ok(())
}

impl Cell {
    fn die(&mut self, watchdogs: &[Watchdog], delay: Duration) -> Out<()> {
        let deck = &self.deck;
        let id = &self.victims[0];
        self.grow_old()?;
        let (row, took) = deck.by_hand(&["session", "show", id])?;
        let tmux = row.get("tmux_session").and_then(Value::as_str);
        let tmux = tmux.ok_or("a session without tmux")?;
        let mut watchdog = match self.by {
            Some(n) => Some(watchdogs[n].start(deck, &[])?),
            None => None,
        };
        if let Some(watchdog) = &mut watchdog {
            watchdog.settle()?;
            pause(delay)?;
        }
        let end = deck.before_end(id)?;
        let death = match self.cause {
            Cause::Killed => kill(deck.agent(id)?.process, Signal::KILL)?,
            // Asked for in this way; it ends with code 0.
            Cause::OwnExit => kill(deck.agent(id)?.process, Signal::TERM)?,
            Cause::SessionKilled => deck.kill_session(id, tmux)?,
            Cause::ServerKilled => deck.kill_server(id)?,
        };
        let gone = end.wait()?;
        if self.by.is_none() {
            deck.by_hand(&["session", "restart", id])?;
        }
        let lives = || deck.ledger().starts.into_iter().find(|a| a.at > death);
        let agent = wait(LIMIT, lives)?;
        if let Some(watchdog) = watchdog {
            watchdog.stop()?;
        }
        let ledger = deck.ledger();
        let acts = ["session restart ", "session start "];
        let is_act = |args: &str| acts.iter().any(|act| args.contains(act));
        let restart = ledger.since(death).find(|call| is_act(&call.args));
        let after = |time: u64| time.saturating_sub(death) as f64;
        let back = agent.zip(restart);
        self.shows.push(took as f64);
        self.trials.push(Trial {
            gone: after(gone),
            back: back.map(|(agent, restart)| (after(restart.begin), after(agent.at))),
        });
        deck.revive()
    }

    /// Waits until all that shall die are old enough to be restarted.
    fn grow_old(&self) -> Out<()> {
        for id in &self.victims {
            let age = Duration::from_nanos(now_ns() - self.deck.agent(id)?.at);
            pause(OLD.saturating_sub(age))?;
        }
        Ok(())
    }
}

/// Sends it; returns the moment.
fn kill(process: u32, signal: Signal) -> Out<u64> {
    let now = now_ns();
    send(process, signal)?;
    Ok(now)
}
