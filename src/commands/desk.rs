//! What a reading command has before it: the settings, the memory of the
//! daemon, the flags, and agent-deck's lists of this moment.
//!
//! It is a watchdog between two turns that never takes one. This file does not
//! know what is asked of it.

use super::Failed;
use super::life::{self, Life};
use crate::capabilities::look::Finding;
use crate::capabilities::restart::is_critical;
use crate::cli::Exit;
use crate::clock::{Clock, Time};
use crate::config::{Environment, Settings, VARIABLES, given_value};
use crate::guard::{self, Purpose};
use crate::machine::Machine;
use crate::machine::memory::{self, Found};
use crate::model::{NoAnswer, Profile, Scope, Session, SessionId, Status};
use crate::remember;
use crate::state::State;
use crate::turn;
use crate::watch::Watch;
use crate::world::World;

/// A watchdog that only looks.
pub struct Desk {
    /// The real world; it logs nothing and changes nothing.
    pub machine: Machine,
    /// Memory, flags, lists.
    pub watch: Watch,
    /// Whether a watchdog lives.
    pub life: Life,
    /// Why the memory of earlier runs cannot be used; budgets count as spent.
    pub lost: Option<String>,
    /// What cannot be listed now, and why.
    pub unlisted: Vec<(Option<Profile>, NoAnswer)>,
    /// What is odd about settings and profiles, in words.
    pub remarks: Vec<String>,
    /// What was found by looking at sessions that read dead.
    pub found: Vec<(SessionId, Finding)>,
    /// The moment at which the lists were complete.
    pub now: Time,
}

/// Sessions that read dead and are looked at for one command: each look runs two
/// programs, and when all died together their number says enough.
const LOOKS: usize = 10;

impl Desk {
    /// Reads the memory and the flags. Asks agent-deck nothing yet.
    ///
    /// # Errors
    /// When a setting is wrong, or signals cannot be had.
    pub fn open(environment: Environment) -> Result<Desk, Failed> {
        let usage = |why| Failed::new(Exit::Usage, why);
        Desk::of(Settings::read(environment).map_err(usage)?, environment)
    }

    /// The same, with the settings of this shell.
    ///
    /// # Errors
    /// When signals cannot be had.
    pub fn of(own: Settings, environment: Environment) -> Result<Desk, Failed> {
        let (folder, clock) = (own.folder(), Clock::start());
        let (state, lost) = match memory::load(&folder, &clock, false) {
            Found::State(state) => (state, None),
            Found::Lost(state, _, why) => (state, Some(why)),
            Found::Refused(why) => (State::spent(clock.now()), Some(why)),
        };
        let life = life::look(&folder, &clock, &state);
        let (settings, remarks) = match &life.holder {
            Some(holder) if life.is_well() => as_given(environment, &holder.given, own),
            Some(_) | None => (own, Vec::new()),
        };
        let system = |why| Failed::new(Exit::System, why);
        let mut machine = Machine::reader(settings, clock).map_err(system)?;
        let mut watch = Watch::new(state, machine.rules());
        watch.last_turn = memory::last_turn(&folder, &machine.clock);
        watch.flags = machine.flags();
        Ok(Desk {
            now: machine.now(),
            machine,
            watch,
            life,
            lost,
            unlisted: Vec::new(),
            remarks,
            found: Vec::new(),
        })
    }

    /// Lists the profiles, and books what is seen as a turn would: in this copy
    /// of the memory alone.
    pub fn list(&mut self) {
        let profiles = match self.machine.profiles() {
            Ok(profiles) => profiles,
            Err(why) => {
                self.unlisted.push((None, why));
                return;
            }
        };
        for (_, subject, sentence) in self.machine.take_kept() {
            self.remarks.push(format!("{subject}: {sentence}"));
        }
        self.watch.sight = self.machine.processes(Scope::Panes);
        for profile in profiles {
            match self.machine.list(&profile) {
                Ok(rows) => {
                    let watch = &mut self.watch;
                    let rows: Vec<_> = rows
                        .into_iter()
                        .filter(|row| !watch.belongs_elsewhere(row))
                        .collect();
                    let now = self.machine.now();
                    let (flags, sight) = (&watch.flags, &watch.sight);
                    remember::list(&mut watch.state, &profile, &rows, flags, sight, now);
                    watch.take_rows(&profile, rows, now);
                }
                Err(why) => self.unlisted.push((Some(profile), why)),
            }
        }
        self.machine.take_kept();
        self.now = self.machine.now();
    }

    /// Looks at a session as a turn would before it restarts it.
    pub fn examine(&mut self, row: &Session) {
        let finding = turn::examine(&self.watch, &mut self.machine, row);
        self.found.push((row.id.clone(), finding));
        self.now = self.machine.now();
    }

    /// The same for those that read dead while the guard would agree.
    pub fn examine_dead(&mut self) {
        let dead: Vec<Session> = self
            .watch
            .all_rows()
            .filter(|row| row.status == Status::Error && !row.archived)
            .filter(|row| is_critical(row, &self.watch.flags))
            .take(LOOKS)
            .cloned()
            .collect();
        for row in dead {
            let around = self.watch.surroundings();
            let (state, id) = (&self.watch.state, &row.id);
            if guard::verdict(state, &around, id, Purpose::Dead, self.now).agrees() {
                self.examine(&row);
            }
        }
    }

    /// What was found by looking at a session.
    pub fn finding(&self, id: &SessionId) -> Option<&Finding> {
        let found = self.found.iter().find(|(found, _)| found == id);
        found.map(|(_, finding)| finding)
    }
}

/// The settings of the watchdog that lives, and where those of this shell differ.
fn as_given(environment: Environment, given: &[String], own: Settings) -> (Settings, Vec<String>) {
    let there = |name: &str| {
        if VARIABLES.contains(&name) {
            given_value(given, name)
        } else {
            environment(name)
        }
    };
    let differs = |pair: &&String| !given.contains(pair);
    let remark = |pair: &String| {
        let name = pair.split('=').next().unwrap_or_default();
        match given_value(given, name) {
            Some(value) => {
                let value = value.to_string_lossy();
                format!("{pair} in this shell, and the watchdog has {value}")
            }
            None => format!("{pair} in this shell, and the watchdog does not have it"),
        }
    };
    let remarks = own.given.iter().filter(differs).map(remark).collect();
    // What a running watchdog goes by can be read.
    (Settings::read(&there).unwrap_or(own), remarks)
}
