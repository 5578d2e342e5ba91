//! A week of forty children under four conductors, as a daemon or by cron, with
//! all promises checked at each deed; in the end the world heals.
//!
//! `WEEK_SEEDS=100 WEEK_FROM=0 cargo test --test simulator week` runs more of
//! them, and `make soak` thousands. This file does not know what happens in one.

use crate::chance::Chance;
use crate::run::{Mode, Play};
use crate::sim::Sim;
use crate::{healing, life_week, number};

const MINUTE: u64 = 60_000;
const DAY: u64 = 24 * 60 * MINUTE;
/// Nothing is done by people for so long a day.
const NIGHT: u64 = 8 * 60 * MINUTE;

fn play(seed: u64) -> (Play, Chance) {
    let mut chance = Chance::new(seed);
    let mut sim = Sim::new();
    life_week::deck(&mut chance, &mut sim);
    sim.triage.on = chance.percent(50);
    sim.checks.ladder.terminate = chance.percent(50);
    let mode = match chance.percent(80) {
        true => Mode::Daemon,
        false => Mode::Cron,
    };
    let mut play = Play::new(sim, mode);
    play.poll = match mode {
        Mode::Daemon => 5 * MINUTE,
        // Each run of cron reads all that it may.
        Mode::Cron => 15 * MINUTE,
    };
    play.calm_poll = play.poll;
    (play, chance)
}

/// What happens in a day, and the night after it.
fn day(play: &mut Play, chance: &mut Chance) {
    let end = play.sim.truth() + DAY;
    let kept = |play: &Play| play.sim.checks.violations.is_empty();
    while play.sim.truth() < end - NIGHT && kept(play) {
        let next = play.sim.truth() + chance.within(MINUTE, 60 * MINUTE);
        play.until(next);
        life_week::happens(chance, play);
    }
    play.until(end);
}

/// Weeks that never come to the point prove nothing.
#[derive(Clone, Debug, Default)]
struct Points {
    weeks: u64,
    restarts: usize,
    sends: usize,
    notices: usize,
    deaths: usize,
    handed_over: usize,
    decisions: usize,
    batches: usize,
    triages: usize,
    stops: usize,
}

impl Points {
    fn count(&mut self, sim: &Sim) {
        let calls = |verb| sim.ledger.iter().filter(|call| call.verb == verb).count();
        let ladder = &sim.checks.ladder;
        self.weeks += 1;
        self.restarts += calls("restart");
        self.sends += calls("send");
        self.notices += calls("notice");
        self.triages += calls("triage");
        self.deaths += ladder.lines_of("died");
        self.handed_over += ladder.lines_of("handed-over");
        self.decisions += ladder.lines_of("gate");
        self.batches += ladder.lines_of("batch");
        self.stops += ladder.stops();
    }

    fn all(&mut self) -> [&mut usize; 9] {
        [
            &mut self.restarts,
            &mut self.sends,
            &mut self.notices,
            &mut self.deaths,
            &mut self.handed_over,
            &mut self.decisions,
            &mut self.batches,
            &mut self.triages,
            &mut self.stops,
        ]
    }

    fn plus(mut self, mut other: Points) -> Points {
        self.weeks += other.weeks;
        for (sum, part) in self.all().into_iter().zip(other.all()) {
            *sum += *part;
        }
        self
    }
}

fn one(seed: u64) -> Points {
    let (mut play, mut chance) = play(seed);
    for _ in 0..7 {
        day(&mut play, &mut chance);
    }
    if play.mode == Mode::Cron {
        // As crontab.example has it: what is over is told by the next runs.
        play.poll = MINUTE;
    }
    healing(&mut play);
    play.promises_were_kept(&format!(
        "WEEK_FROM={seed} WEEK_SEEDS=1 cargo test --test simulator week"
    ));
    let mut points = Points::default();
    points.count(&play.sim);
    points
}

#[test]
fn week() {
    let (from, seeds) = (number("WEEK_FROM", 0), number("WEEK_SEEDS", 20));
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let every = |first: u64| (from + first..from + seeds).step_by(threads as usize);
    let mut points = std::thread::scope(|scope| {
        let each = |first| {
            scope.spawn(move || every(first).map(one).fold(Points::default(), Points::plus))
        };
        let running: Vec<_> = (0..threads).map(each).collect();
        let parts = running
            .into_iter()
            .map(|thread| thread.join().expect("all promises kept"));
        parts.fold(Points::default(), Points::plus)
    });
    println!("{points:?}");
    if seeds >= 20 {
        assert!(points.all().iter().all(|times| **times > 0), "{points:?}");
    }
}
