//! What a watchdog costs while nothing happens: memory, descriptors, wake-ups,
//! time on a processor, all of its own process; commands of agent-deck are
//! counted, not weighed. Does not know how they are printed.

use std::path::Path;

use crate::deck::{Deck, Kind};
use crate::parts::now_ns;
use crate::system::{Memory, Used, descriptors, logged, memory, pause, used};
use crate::watchdog::Watchdog;
use crate::{Out, Wish};

/// The deck.
pub const CONDUCTORS: u32 = 5;
/// Its children, which wait.
pub const CHILDREN: u32 = 20;
/// How often the price of a single command is asked.
const ASKED: usize = 9;

/// All that was measured on one deck.
pub struct Idle {
    /// Which one.
    pub kind: Kind,
    /// What one `session show` takes there by hand, in nanoseconds.
    pub show: f64,
    /// The same for `list`.
    pub list: f64,
    /// One for each watchdog.
    pub runs: Vec<Run>,
}

/// One watchdog.
pub struct Run {
    /// Bytes of its program's file, if the command names a file.
    pub size: Option<u64>,
    /// At the end.
    pub memory: Memory,
    /// At the end.
    pub descriptors: usize,
    /// During the time it was looked at.
    pub used: Used,
    /// Commands of agent-deck meanwhile.
    pub calls: usize,
    /// Bytes logged meanwhile.
    pub logged: u64,
}

/// Measures all watchdogs in turns.
pub fn measure(wish: &Wish, kind: Kind) -> Out<Idle> {
    let deck = Deck::new(&wish.tools, kind, CONDUCTORS, CHILDREN)?;
    let price = |args: &[&str]| -> Out<f64> {
        let times: Out<Vec<u64>> = (0..ASKED).map(|_| Ok(deck.by_hand(args)?.1)).collect();
        Ok(median(times?.iter().map(|time| *time as f64)).unwrap_or(0.0))
    };
    let show = price(&["session", "show", &deck.conductors[0]])?;
    let list = price(&["list"])?;
    let runs: Out<Vec<Run>> = wish
        .watchdogs
        .iter()
        .map(|watchdog| one(wish, &deck, watchdog))
        .collect();
    Ok(Idle {
        kind,
        show,
        list,
        runs: runs?,
    })
}

fn one(wish: &Wish, deck: &Deck, watchdog: &Watchdog) -> Out<Run> {
    let mut running = watchdog.start(deck, &[])?;
    running.settle()?;
    let folder = deck.home.join(".agent-deck/watchdog");
    let (begin, before, log) = (now_ns(), used(running.process())?, logged(&folder));
    pause(wish.idle)?;
    running.still_runs()?;
    let after = used(running.process())?;
    let program = watchdog.command.first().map_or("", String::as_str);
    let run = Run {
        size: Path::new(program).metadata().ok().map(|file| file.len()),
        memory: memory(running.process())?,
        descriptors: descriptors(running.process())?,
        used: Used {
            threads: after.threads,
            cpu: after
                .cpu
                .zip(before.cpu)
                .map(|(after, before)| after - before),
            wakes: after.wakes.saturating_sub(before.wakes),
        },
        calls: deck.ledger().since(begin).count(),
        logged: logged(&folder).saturating_sub(log),
    };
    running.stop()?;
    Ok(run)
}

/// The middle one, of an even number the mean of the two.
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.len().checked_sub(1)? / 2, sorted.len() / 2);
    Some((sorted[low] + sorted[high]) / 2.0)
}
