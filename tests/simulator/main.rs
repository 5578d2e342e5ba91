//! A deterministic simulator: the turn code of the daemon on a machine that is
//! made of a seed. Sessions live, die, lie and vanish; programs fail, hang and
//! answer nonsense; clocks step, machines sleep; the watchdog crashes anywhere.
//! After each deed the promises of DESIGN 1.1 are checked, and that everything
//! is served again when the world heals.
//!
//! `SIM_SEEDS=1000 SIM_FROM=0 cargo test --test simulator seeds` runs more of
//! them. This file does not know what happens in one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]

mod bots;
mod chance;
mod checks;
mod checks_ladder;
mod checks_live;
mod checks_nudge;
mod checks_poller;
mod clock;
mod commands;
mod deck;
mod disk;
mod faults;
mod front;
mod life;
mod life_bots;
mod life_children;
mod life_week;
mod processes;
mod recount;
mod run;
mod scenarios;
mod sending;
mod sim;
mod triages;
mod user;
mod views;
mod week;
mod world;

use chance::Chance;
use run::{Mode, Play};
use sim::Sim;

const MINUTE: u64 = 60_000;
/// Simulated time of trouble.
const TROUBLE: u64 = 120 * MINUTE;
/// The same, where it is run once for each save.
const CRASHES: u64 = 8 * MINUTE;

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(usual)
}

/// A machine of this seed, and its chances.
fn play(seed: u64) -> (Play, Chance) {
    let mut chance = Chance::new(seed);
    let mut sim = Sim::new();
    life::deck(&mut chance, &mut sim);
    sim.checks.spacing = if chance.percent(80) { 60_000 } else { 90_000 };
    let mode = if chance.percent(75) {
        Mode::Daemon
    } else {
        Mode::Cron
    };
    sim.dry_run = seed % 20 == 19;
    let mut play = Play::new(sim, mode);
    play.poll = match mode {
        Mode::Daemon => *chance.pick(&[5000, 5000, 15_000, 60_000]).unwrap_or(&5000),
        Mode::Cron => 60_000,
    };
    // As it is where the poll is not set.
    if play.poll == 5000 && chance.percent(50) {
        play.calm_poll = 15_000;
    }
    (play, chance)
}

/// Trouble for so long.
fn trouble(play: &mut Play, chance: &mut Chance, lasts: u64) {
    let end = play.sim.truth() + lasts;
    while play.sim.truth() < end && play.sim.checks.violations.is_empty() {
        let next = play.sim.truth() + chance.within(500, 60_000);
        play.until(next.min(end));
        life::happens(chance, play);
    }
}

/// The world heals, and everything is served.
fn healing(play: &mut Play) {
    life::heal(play);
    // The longest distance of a crash loop, the longest command before it, and
    // a minute for each.
    let most = (60 + 20 + 5 + 2 * play.sim.rows.len() as u64) * MINUTE;
    let end = play.sim.truth() + most;
    while !life::unserved(&play.sim).is_empty() && play.sim.checks.violations.is_empty() {
        if play.sim.truth() > end {
            let left = life::unserved(&play.sim);
            return checks::broken(&mut play.sim, &format!("never served again: {left:?}"));
        }
        play.seconds(60);
    }
    let end = play.sim.truth() + 75 * MINUTE;
    while play.sim.checks.violations.is_empty() {
        // Whoever was started anew waits again.
        life_children::heal(&mut play.sim);
        life_bots::heal(&mut play.sim);
        play.seconds(15 * 60);
        let open = open(play);
        if open.is_empty() {
            return;
        }
        // A limit stands until as much again as its own length has passed; who
        // came and went is counted for half an hour; who waits, waits.
        let waits = [
            "duplicate-poller:",
            "poller-flaps:",
            "nudge-went-wrong:",
            "cannot-ask:",
            "unanswered:",
        ];
        let lasts =
            |key: &String| key.ends_with(":all") || waits.iter().any(|kind| key.starts_with(kind));
        let waits = open.iter().all(lasts);
        if !waits || play.sim.truth() > end {
            return checks::broken(&mut play.sim, &format!("told and never ended: {open:?}"));
        }
    }
}

/// Episodes that are open about what is still there.
fn open(play: &Play) -> Vec<String> {
    let episodes = play.on_disk()["episodes"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let open = episodes
        .iter()
        .filter_map(|episode| episode["key"].as_str());
    // A worker that is dead stays so.
    let at_rest = |row: &deck::Row| {
        row.removed || row.agent.is_none() && !checks::is_critical(&play.sim, row)
    };
    let removed = |key: &str| {
        let mut rows = play.sim.rows.iter();
        rows.any(|row| at_rest(row) && key.ends_with(row.id.as_str()))
    };
    open.filter(|key| !removed(key))
        .map(str::to_owned)
        .collect()
}

/// Seeds that never come to the point prove nothing.
#[derive(Debug, Default)]
struct Points {
    seeds: usize,
    restarts: usize,
    for_pollers: usize,
    sends: usize,
    opened_after: usize,
    silenced: usize,
}

impl Points {
    fn count(&mut self, sim: &Sim) {
        let calls = |verb| sim.ledger.iter().filter(|call| call.verb == verb).count();
        self.seeds += 1;
        self.restarts += calls("restart");
        self.sends += calls("send");
        self.for_pollers += sim.checks.for_pollers();
        self.opened_after += sim.checks.seen.opened_after.len();
        let silent = |line: &&(_, String)| line.1.contains("its screen stayed as it was");
        self.silenced += sim.notes.iter().filter(silent).count();
    }

    fn enough(&self) {
        println!("{self:?}");
        let least = self.seeds / 4;
        assert!(
            self.for_pollers >= least && self.sends >= least && self.restarts >= least,
            "{self:?}"
        );
    }
}

#[test]
fn seeds() {
    let from = number("SIM_FROM", 0);
    let mut points = Points::default();
    for seed in from..from + number("SIM_SEEDS", 50) {
        let (mut play, mut chance) = play(seed);
        trouble(&mut play, &mut chance, TROUBLE);
        if !play.sim.dry_run {
            healing(&mut play);
        }
        play.promises_were_kept(&format!(
            "SIM_FROM={seed} SIM_SEEDS=1 cargo test --test simulator seeds"
        ));
        points.count(&play.sim);
    }
    if points.seeds >= 20 {
        points.enough();
    }
}

/// Trouble with short times, so that rung 2 is reached, and a program that says
/// anything.
#[test]
fn seeds_of_triage() {
    let from = number("SIM_FROM", 2000);
    let mut asked = 0;
    for seed in from..from + number("SIM_SEEDS", 20) {
        let (mut play, mut chance) = play(seed);
        let sim = &mut play.sim;
        sim.triage.on = true;
        (play.mode, play.poll) = (Mode::Daemon, 5000);
        (sim.checks.threshold, sim.checks.nudge_dedup) = (MINUTE / 2, MINUTE);
        for _ in 0..12 {
            let answers = triages::ANSWERS;
            play.sim.triage.answer = *chance.pick(&answers).unwrap_or(&answers[0]);
            play.sim.triage.takes = chance.within(1, 90_000);
            play.sim.triage.crashes = chance.percent(10);
            trouble(&mut play, &mut chance, TROUBLE / 12);
        }
        play.promises_were_kept(&format!(
            "SIM_FROM={seed} SIM_SEEDS=1 cargo test --test simulator seeds_of_triage"
        ));
        let calls = play.sim.ledger.iter();
        asked += calls.filter(|call| call.verb == "triage").count();
    }
    println!("asked {asked} times");
    assert!(asked >= 20 || from != 2000, "only {asked} times");
}

/// The same seed again and again, with a crash at its first save, its second,
/// and so on: before it is written, and after.
#[test]
fn a_crash_at_every_save() {
    let from = number("SIM_FROM", 1000);
    let mut crashes = 0;
    for seed in from..from + number("SIM_SEEDS", 6) {
        let most = number("SIM_SAVES", 30);
        for (save, after) in (1..=most).flat_map(|save| [(save, false), (save, true)]) {
            let (mut play, mut chance) = play(seed);
            play.sim.dry_run = false;
            play.sim.disk_is_good = true;
            play.sim.crash_at = Some((save, after));
            play.down = chance.within(200, 20_000);
            trouble(&mut play, &mut chance, CRASHES);
            // Nobody waits for the command that ran, and it may still run.
            play.seconds(120);
            play.promises_were_kept(&format!("a crash at save {save} of seed {seed}, {after}"));
            if play.sim.crash_at.is_some() {
                break;
            }
            crashes += 1;
        }
    }
    assert!(crashes > 100, "only {crashes} crashes");
}
