//! Own instructions of one turn, counted by valgrind on decks of several sizes,
//! played by the stand-in: a run of some turns and one of more, and the
//! difference. Its agent-deck is another process and not counted.
//!
//! All sessions are at work and none is critical: older valgrinds know no pidfds,
//! and without those a watchdog of critical sessions searches all of /proc, which
//! says more of the machine than of the watchdog.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::deck::{Deck, Kind};
use crate::system::wait;
use crate::watchdog::Watchdog;
use crate::{Out, Wish};

/// Sessions of the decks.
pub const SESSIONS: [u32; 3] = [10, 100, 1000];
/// Turns of the two runs.
const FEW: usize = 4;
const MORE: usize = 12;
/// How long a run may take.
const LIMIT: Duration = Duration::from_secs(300);

/// Own instructions of a turn.
#[derive(Clone, Copy)]
pub struct Turn {
    /// When the list says what the one before said.
    pub same: f64,
    /// When one session got another title.
    pub changed: f64,
}

/// For each size, or why they were not counted.
pub type Counted = Result<Vec<Turn>, &'static str>;

/// Counts them.
pub fn measure(wish: &Wish) -> Out<Counted> {
    let Some(counted) = &wish.counted else {
        return Ok(Err("no build that could be counted was given"));
    };
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Ok(Err("valgrind is missing"));
    }
    let each: Out<Vec<Turn>> = SESSIONS.iter().map(|n| of(wish, counted, *n)).collect();
    each.map(Ok)
}

fn of(wish: &Wish, counted: &Path, sessions: u32) -> Out<Turn> {
    let deck = Deck::new(&wish.tools, Kind::StandIn, 0, 0)?;
    let ids: Out<Vec<String>> = (0..sessions).map(|n| deck.add_working(n)).collect();
    let ids = ids?;
    let title = deck.row(&ids[0]).join("title");
    let mut looks = 0_u32;
    let mut turn = |changing: bool| -> Out<f64> {
        let mut look = || {
            looks += u32::from(changing);
            fs::write(&title, format!("worker-{looks}"))
        };
        let (few, few_turns) = run(&deck, counted, FEW, &mut look)?;
        let (more, more_turns) = run(&deck, counted, MORE, &mut look)?;
        Ok((more - few) / (more_turns - few_turns))
    };
    Ok(Turn {
        same: turn(false)?,
        changed: turn(true)?,
    })
}

/// A run until so many lists have begun, with something done again and again
/// meanwhile: instructions, and how many lists it were.
fn run(
    deck: &Deck,
    counted: &Path,
    lists: usize,
    meanwhile: &mut dyn FnMut() -> std::io::Result<()>,
) -> Out<(f64, f64)> {
    let file = deck.home.join("callgrind");
    let command = [
        "valgrind".to_owned(),
        "--tool=callgrind".to_owned(),
        format!("--callgrind-out-file={}", file.display()),
        std::path::absolute(counted)?.display().to_string(),
    ];
    let watchdog = Watchdog::new("counted", command.to_vec());
    let mut running = watchdog.start(deck, &[("SAFETY_POLL_S", "1")])?;
    let since = running.since;
    let enough = || {
        let done = meanwhile();
        (done.is_err() || deck.ledger().lists(since) >= lists).then_some(done)
    };
    let Some(done) = wait(LIMIT, enough)? else {
        running.still_runs()?;
        return Err("it lists the deck too seldom under valgrind".into());
    };
    done?;
    running.stop()?;
    let text = fs::read_to_string(file)?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    let total = total.ok_or("callgrind gives no total")?.trim().parse()?;
    Ok((total, deck.ledger().lists(since) as f64))
}
