//! The simulated clocks: true time, a wall clock that steps, a boot clock that
//! begins anew, and the line of the present run.
//!
//! This file does not know what happens meanwhile.

use agent_deck_watchdog::clock::{Reading, Time};

/// The wall clock at true time zero.
const WALL: u64 = 1_796_000_000_000;
/// True time at the start of every simulation: sessions are older than this run.
pub const START: u64 = 10 * 86_400_000;

/// All clocks; milliseconds.
pub struct Clocks {
    /// True time. Everything that is checked is checked in it.
    pub truth: u64,
    /// How far the wall clock is off.
    pub step: i64,
    booted: u64,
    boots: u32,
    run: Reading,
}

impl Clocks {
    /// Ten days after boot.
    pub fn new() -> Clocks {
        let run = Reading {
            wall: 0,
            boot: 0,
            boot_id: String::new(),
        };
        let mut clocks = Clocks {
            truth: START,
            step: 0,
            booted: 0,
            boots: 1,
            run,
        };
        clocks.begin_run();
        clocks
    }

    /// A new process starts: its line begins at the wall clock.
    pub fn begin_run(&mut self) {
        self.run = self.reading();
    }

    /// The machine starts anew.
    pub fn reboot(&mut self) {
        self.booted = self.truth;
        self.boots += 1;
    }

    /// The machine's clocks.
    pub fn reading(&self) -> Reading {
        Reading {
            wall: self.wall(),
            boot: self.truth - self.booted,
            boot_id: self.boot_id(),
        }
    }

    /// Name of the present boot.
    pub fn boot_id(&self) -> String {
        format!("boot {}", self.boots)
    }

    /// The wall clock.
    pub fn wall(&self) -> u64 {
        (WALL + self.truth).saturating_add_signed(self.step)
    }

    /// The present on the line of this run.
    pub fn now(&self) -> Time {
        Time(self.run.wall + (self.truth - self.booted).saturating_sub(self.run.boot))
    }

    /// A wall time on the line of this run, as `Clock::from_wall_ahead` has it.
    pub fn line_of_wall(&self, wall: u64) -> Time {
        Time((self.now().0 + wall).saturating_sub(self.wall()))
    }

    /// A true moment on the line of this run.
    pub fn line_of_truth(&self, truth: u64) -> Time {
        Time(self.now().0.saturating_sub(self.truth - truth))
    }
}
