//! The loops around the turns, shaped as the daemon's and as cron's, and how a
//! run ends: by itself, by a crash, with its machine.
//!
//! This file does not know what a turn does.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use agent_deck_watchdog::capabilities::restart::UI_CONFIRM;
use agent_deck_watchdog::clock::Time;
use agent_deck_watchdog::guard::Limits;
use agent_deck_watchdog::model::SessionId;
use agent_deck_watchdog::pace;
use agent_deck_watchdog::remember;
use agent_deck_watchdog::report;
use agent_deck_watchdog::saving;
use agent_deck_watchdog::state::{Life, State};
use agent_deck_watchdog::turn;
use agent_deck_watchdog::watch::{Rules, Watch};
use agent_deck_watchdog::{parents, stop, triage};
use agent_deck_watchdog::{telling, world::World};

use crate::disk::Written;
use crate::sim::{Hint, Sim};
use crate::views::Crash;
use crate::{checks, checks_ladder, checks_live};

/// So long a `--once` run stays for a second look.
const ONCE_STAYS: Duration = UI_CONFIRM.saturating_add(Duration::from_secs(4));
/// Looks between two turns in which nothing at all happens are a busy loop.
const IDLE_MOST: usize = 30;

/// How the watchdog is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As a daemon.
    Daemon,
    /// By cron, each minute.
    Cron,
}

/// A watchdog on a machine.
pub struct Play {
    pub sim: Sim,
    pub mode: Mode,
    /// Poll distance in milliseconds.
    pub poll: u64,
    /// The same while all is calm.
    pub calm_poll: u64,
    /// Between a crash and the next start.
    pub down: u64,
    /// The watchdog between two turns, while one runs.
    pub watch: Option<Watch>,
    /// When the next run of cron is due.
    next_turn: u64,
    /// When the daemon's last turn began.
    began: Time,
    /// Something asked for a list at once.
    at_once: bool,
    idle: (u64, usize),
}

impl Play {
    /// A watchdog that has not been started.
    pub fn new(sim: Sim, mode: Mode) -> Play {
        let mut play = Play {
            sim,
            mode,
            poll: 5000,
            calm_poll: 5000,
            down: 1000,
            watch: None,
            next_turn: 0,
            began: Time(0),
            at_once: false,
            idle: (0, 0),
        };
        let checks = &mut play.sim.checks;
        for (setting, usual) in [
            (&mut checks.spacing, 60_000),
            (&mut checks.threshold, 600_000),
            (&mut checks.nudge_dedup, 3_600_000),
            (&mut checks.poller_dedup, 3_600_000),
        ] {
            if *setting == 0 {
                *setting = usual;
            }
        }
        play
    }

    /// Runs it for so many seconds.
    pub fn seconds(&mut self, seconds: u64) -> &mut Play {
        let end = self.sim.truth() + seconds * 1000;
        self.until(end);
        self
    }

    /// Runs it until that moment, or until a promise is broken.
    pub fn until(&mut self, end: u64) {
        while self.sim.truth() < end && self.sim.checks.violations.is_empty() {
            if self.mode == Mode::Cron && self.sim.truth() < self.next_turn {
                let next = self.next_turn.min(end) - self.sim.truth();
                self.sim.advance(next);
                continue;
            }
            let mut watch = self.watch.take().unwrap_or_else(|| self.start());
            self.sim.checks.poll = self.poll.max(self.calm_poll);
            let ran = catch_unwind(AssertUnwindSafe(|| match self.mode {
                Mode::Daemon => self.daemon(&mut watch, end),
                Mode::Cron => self.once(&mut watch),
            }));
            match ran {
                Ok(stays) => self.watch = stays.then_some(watch),
                Err(crash) if crash.is::<Crash>() => self.crashed(self.down),
                Err(other) => {
                    self.print_history();
                    resume_unwind(other)
                }
            }
        }
    }

    /// The run is over, whatever it held in its hands.
    pub fn crashed(&mut self, down: u64) {
        self.watch = None;
        self.sim.waited_for = None;
        self.sim.watched.clear();
        self.sim.checks.crashed();
        self.sim.triage.crashed();
        self.sim.checks.live.disturbed(self.sim.clocks.truth + down);
        if self.on_disk()["parcel"]["handed_over"] == true {
            self.sim.checks.message_lost();
        }
        // What was paid for and perhaps never begun is not tried again at once.
        let profiles = self.on_disk()["profiles"].as_array().cloned();
        let running = profiles.iter().flatten().map(|known| &known["running"]);
        for intent in running.filter(|of| of["sends"] == true && of["tells"] == false) {
            let id = intent["id"].as_str().and_then(SessionId::parse);
            if let Some(id) = id.filter(|_| intent["process"].is_null()) {
                self.sim.checks.recount.counts(&id);
            }
        }
        if profiles
            .iter()
            .flatten()
            .any(|known| known["running"] != serde_json::Value::Null)
        {
            let dedup = self
                .sim
                .checks
                .poller_dedup
                .max(self.sim.checks.nudge_dedup);
            self.sim
                .checks
                .live
                .disturbed(self.sim.clocks.truth + dedup);
        }
        self.sim.advance(down);
    }

    /// The state as it is on the disk; null when there is none.
    pub fn on_disk(&self) -> serde_json::Value {
        let bytes = self
            .sim
            .disk
            .as_ref()
            .map(Written::bytes)
            .unwrap_or_default();
        let mut file: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
        file["state"].take()
    }

    /// kill -9 now.
    pub fn kill(&mut self) {
        self.sim.tell_history("CRASH".to_owned());
        self.crashed(1000);
    }

    /// The machine starts anew: nothing lives on it, and what was not yet on
    /// the disk is lost.
    pub fn reboot(&mut self, down: u64) {
        self.sim.tell_history("the machine reboots".to_owned());
        self.sim.kill_server(0);
        self.sim.end_of_all_processes();
        self.sim.clocks.reboot();
        self.sim.disk = self.sim.durable_disk.clone();
        self.crashed(down);
    }

    /// A new run, with the memory of the last one.
    fn start(&mut self) -> Watch {
        let sim = &mut self.sim;
        sim.clocks.begin_run();
        sim.tell_history("the watchdog starts".to_owned());
        sim.hints.clear();
        sim.leaving = false;
        let now = sim.clocks.now();
        let state = match &sim.disk {
            Some(file) => match State::decode(&file.bytes(), now, &sim.clocks.reading()) {
                Ok(state) => state,
                Err(why) => {
                    sim.tell_history(format!("the state cannot be read: {why}"));
                    sim.memory_lost();
                    State::spent(now)
                }
            },
            None if !sim.was_used() => State::default(),
            None => {
                sim.memory_lost();
                State::spent(now)
            }
        };
        let ms = Duration::from_millis;
        let rules = Rules {
            limits: Limits {
                spacing: ms(sim.checks.spacing),
                poller_dedup: ms(sim.checks.poller_dedup),
                nudge_dedup: ms(sim.checks.nudge_dedup),
                max_nudges: if sim.checks.unlimited { 0 } else { 3 },
                terminate: sim.checks.ladder.terminate,
            },
            threshold: ms(sim.checks.threshold),
            scope: agent_deck_watchdog::model::NoticeScope::Conductor,
            batch_min: 2,
            triage: sim.triage.on,
            poll: ms(self.poll),
            pace: (self.mode == Mode::Daemon).then(|| ms(self.calm_poll.max(self.poll))),
            dry_run: sim.dry_run,
            wanted: sim.profiles.clone(),
            eyes: Life {
                boot_id: sim.clocks.boot_id(),
                eyes: sim.eyes.clone(),
            },
        };
        let mut watch = Watch::new(state, rules);
        let touched = sim.touched.map(|wall| sim.clocks.line_of_wall(wall));
        watch.last_turn = touched.map(|touched| touched.min(now));
        if !sim.dry_run {
            telling::forget_handed_over(&mut watch.state, sim);
            parents::recover(&mut watch, sim);
            triage::recover(&mut watch, sim);
            stop::recover(&mut watch, sim);
        }
        self.next_turn = self.sim.truth();
        self.at_once = true;
        watch
    }

    /// One turn, or what is between two; as `daemon::forever`. Whether it stays.
    fn daemon(&mut self, watch: &mut Watch, end: u64) -> bool {
        let left = self.until_next_turn(watch);
        let sim = &mut self.sim;
        if left == 0 {
            self.at_once = false;
            self.began = sim.now();
            sim.checks.turn_begins();
            let before = checks_ladder::standing(watch);
            turn::turn(watch, sim);
            checks_ladder::look(watch, sim, Some(&before));
            follow(watch, sim);
            sim.turn_complete();
            return true;
        }
        let mut look = false;
        for hint in std::mem::take(&mut sim.hints) {
            let now = sim.now();
            match hint {
                Hint::Ended(id) => {
                    sim.checks.hinted(&id, sim.clocks.truth);
                    turn::ended(watch, &id, now);
                }
                Hint::Hook(id) => {
                    sim.checks.hinted(&id, sim.clocks.truth);
                    self.at_once |= turn::hook(watch, sim, &id);
                }
                Hint::ServerEnded | Hint::Flags => self.at_once = true,
            }
            look = true;
        }
        let now = sim.now();
        let due = turn::next_due(watch).is_some_and(|due| due <= now);
        let beside = sim.telling || sim.sent.is_some() || sim.triage.is_open();
        if look || due || beside {
            self.between(watch);
        }
        self.wait(watch, end);
        if self.sim.leaving {
            saving::save(watch, &mut self.sim, true);
            self.sim.tell_history("the watchdog leaves".to_owned());
            return false;
        }
        true
    }

    fn between(&mut self, watch: &mut Watch) {
        let sim = &mut self.sim;
        let before = (sim.ledger.len(), sim.notes.len(), sim.messages.len());
        turn::between(watch, sim);
        checks_ladder::look(watch, sim, None);
        follow(watch, sim);
        let after = (sim.ledger.len(), sim.notes.len(), sim.messages.len());
        let second = sim.truth() / 1000;
        if before != after || self.idle.0 != second {
            self.idle = (second, 0);
        }
        self.idle.1 += 1;
        if self.idle.1 > IDLE_MOST {
            let due = turn::next_due(watch).map(|due| due.since(sim.now()));
            checks::broken(sim, &format!("a busy loop, next due in {due:?}"));
        }
    }

    /// Milliseconds until the next turn is due.
    fn until_next_turn(&mut self, watch: &Watch) -> u64 {
        let next = pace::next_turn(watch, &mut self.sim, self.began);
        let left = next.since(self.sim.now()).as_millis() as u64;
        if self.at_once { 0 } else { left }
    }

    fn wait(&mut self, watch: &Watch, end: u64) {
        let left = self.until_next_turn(watch);
        let sim = &mut self.sim;
        let now = sim.now();
        let left = left.min(end.saturating_sub(sim.truth()));
        let due = turn::next_due(watch).map_or(left, |due| due.0.saturating_sub(now.0));
        if left > 0 {
            sim.rest(due.min(left).max(1));
        }
    }

    /// One run of cron, as `daemon::once`.
    fn once(&mut self, watch: &mut Watch) -> bool {
        let sim = &mut self.sim;
        self.next_turn = sim.truth() + self.poll;
        sim.checks.turn_begins();
        let before = checks_ladder::standing(watch);
        turn::turn(watch, sim);
        checks_ladder::look(watch, sim, Some(&before));
        let stays = sim.now().plus(ONCE_STAYS);
        loop {
            let now = sim.now();
            let confirms =
                |p: &agent_deck_watchdog::watch::Planned| p.first.is_some() && p.due <= stays;
            let look = watch
                .looks
                .iter()
                .filter(|p| confirms(p))
                .map(|p| p.due)
                .min();
            let piece = turn::next_piece(watch).filter(|due| *due <= now);
            let due = look.into_iter().chain(piece).min();
            let beside = sim.telling || sim.sent.is_some() || sim.triage.is_open();
            if sim.leaving || due.is_none() && !beside {
                break;
            }
            let rest = due.map_or(1000, |due| due.0.saturating_sub(now.0));
            sim.advance(rest.max(1));
            turn::between(watch, sim);
            checks_ladder::look(watch, sim, None);
        }
        sim.turn_complete();
        false
    }

    /// The last lines of what happened, for a person.
    pub fn print_history(&self) {
        let most = crate::number("SIM_LINES", 120) as usize;
        let from = self.sim.history.len().saturating_sub(most);
        for line in &self.sim.history[from..] {
            println!("{line}");
        }
    }

    /// What is remembered of those children that a broken promise names.
    fn print_children(&self) {
        let broken = self.sim.checks.violations.join("\n");
        for child in self.on_disk()["children"].as_array().into_iter().flatten() {
            if child["id"].as_str().is_some_and(|id| broken.contains(id)) {
                println!("{child}");
            }
        }
    }

    /// Fails with the history when a promise was broken.
    pub fn promises_were_kept(&self, repeat: &str) {
        if self.sim.checks.violations.is_empty() {
            return;
        }
        self.print_history();
        self.print_children();
        if let Some(sessions) = self.on_disk()["sessions"].as_object() {
            for (id, memory) in sessions {
                println!("{id} {} refused: {}", memory["title"], memory["refusal"]);
            }
        }
        panic!(
            "{}\nto repeat: {repeat}",
            self.sim.checks.violations.join("\n")
        );
    }
}

impl Sim {
    /// A turn is over: the state file is touched, if there is one.
    fn turn_complete(&mut self) {
        if !self.dry_run && self.disk.is_some() && self.faults.unsaved <= self.truth() {
            self.touched = Some(self.clocks.wall());
        }
        checks_live::turn_over(self);
    }

    /// Every budget begins as spent.
    fn memory_lost(&mut self) {
        let now = self.clocks.truth;
        self.checks.recount.lost(now);
        self.checks.bots.lost(now);
        self.checks.message_lost();
        self.checks.ladder.lost();
        self.all_may_be_done();
        let longest = self.checks.nudge_dedup.max(self.checks.poller_dedup);
        self.checks.live.disturbed(now + longest);
    }

    /// Something was done from this folder, as its logs say.
    fn was_used(&self) -> bool {
        let asked = |line: &str| line.contains(report::ASKED);
        !self.restart_log.is_empty() || self.notes.iter().any(|(_, line)| asked(line))
    }
}

/// Watches the processes whose end is a hint.
fn follow(watch: &Watch, sim: &mut Sim) {
    if sim.process_watch {
        sim.follow(remember::watched(&watch.decks, &watch.flags, &watch.sight));
    }
}
