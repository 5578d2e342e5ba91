//! What a reading command has before it: the settings, the memory of the
//! daemon, the flags, and agent-deck's lists of this moment.
//!
//! It is a watchdog between two turns that never takes one. This file does not
//! know what is asked of it.

use super::Failed;
use super::life::{self, Life};
use crate::capabilities::cause::{Cause, Refusal};
use crate::capabilities::look::Finding;
use crate::capabilities::restart::is_critical;
use crate::cli::Exit;
use crate::clock::{Clock, Time};
use crate::config::{Environment, Settings, VARIABLES, given_value};
use crate::guard::{self, Purpose};
use crate::machine::Machine;
use crate::machine::memory::{self, Found};
use crate::model::{NoAnswer, Profile, Session, SessionId, Status};
use crate::pace;
use crate::remember;
use crate::state::State;
use crate::turn;
use crate::watch::{Deck, Watch};
use crate::world::World;

/// A watchdog that only looks.
pub struct Desk {
    /// The real world; it logs nothing and changes nothing.
    pub machine: Machine,
    /// Memory, flags, lists.
    pub watch: Watch,
    /// Whether a watchdog lives.
    pub life: Life,
    /// What follows from a memory of earlier runs that cannot be used.
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
        match Settings::read(environment) {
            Ok(own) => Desk::of(own, environment),
            Err(why) => Err(Failed::new(Exit::Usage, why)),
        }
    }

    /// The same, with the settings of this shell.
    ///
    /// # Errors
    /// When signals cannot be had.
    pub fn of(mut settings: Settings, environment: Environment) -> Result<Desk, Failed> {
        let (folder, clock) = (settings.folder(), Clock::start());
        let (mut lost, mut usable) = (None, true);
        let state = match memory::load(&folder, &clock, false) {
            Found::State(state) => state,
            Found::Lost(state, _, why) => {
                lost = Some(format!("every limit counts as used up: {why}"));
                state
            }
            Found::Refused(why) => {
                lost = Some(format!("no watchdog can start: {why}"));
                usable = false;
                State::spent(clock.now())
            }
        };
        let life = life::look(&folder, &clock, &state, settings.calm_poll);
        let mut remarks = Vec::new();
        if let Some(holder) = &life.holder
            && let Some(given) = &holder.given
            && (life.has_process() || life.is_well())
        {
            remarks = differences(&settings.given, given);
            as_given(environment, given, &mut settings);
        }
        let mut machine = match Machine::reader(settings, clock) {
            Ok(machine) => machine,
            Err(why) => return Err(Failed::new(Exit::System, why)),
        };
        let mut watch = Watch::new(state, machine.rules());
        watch.remembered = usable;
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
        pace::search(&mut self.watch, &mut self.machine);
        for profile in profiles {
            match self.machine.list(&profile) {
                Ok(rows) => {
                    let now = self.machine.now();
                    let watch = &mut self.watch;
                    let Some(rows) = turn::believed(watch, &profile, rows, now) else {
                        let why = "an empty list where sessions were known, not believed yet";
                        let why = NoAnswer::Garbage(why.to_owned());
                        self.unlisted.push((Some(profile), why));
                        continue;
                    };
                    let deck = Deck::new(&profile, rows, now);
                    remember::list(&mut watch.state, &deck, &watch.flags, &watch.sight);
                    watch.take(deck);
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
        let mut dead = self.chosen(&|row| {
            let dead = row.status == Status::Error && !row.archived;
            dead && is_critical(row, &self.watch.flags)
        });
        dead.truncate(LOOKS);
        for row in dead {
            let around = self.watch.surroundings();
            let (state, id) = (&self.watch.state, &row.id);
            if guard::verdict(state, &around, id, Purpose::Dead, self.now).agrees() {
                self.examine(&row);
                let late = |refusal: &Refusal| refusal.cause == Cause::NoAnswer;
                if matches!(self.finding(&row.id), Some(Finding::Leave(why)) if late(why)) {
                    // The next one would take as long to say the same.
                    return;
                }
            }
        }
    }

    /// All sessions that are listed.
    pub fn rows(&self) -> Vec<&Session> {
        let mut rows = Vec::new();
        for deck in &self.watch.decks {
            rows.extend(&deck.rows);
        }
        rows
    }

    /// Those that fit, to be kept while something is asked.
    pub fn chosen(&self, fits: &dyn Fn(&Session) -> bool) -> Vec<Session> {
        let mut chosen = Vec::new();
        for row in self.rows() {
            if fits(row) {
                chosen.push(row.clone());
            }
        }
        chosen
    }

    /// What was found by looking at a session.
    pub fn finding(&self, id: &SessionId) -> Option<&Finding> {
        let found = self.found.iter().find(|(found, _)| found == id);
        found.map(|(_, finding)| finding)
    }
}

/// What cannot be listed: one profile, or that for which `all` is the word.
pub fn subject(profile: &Option<Profile>, all: &str) -> String {
    match profile {
        Some(profile) => format!("profile {profile}"),
        None => all.to_owned(),
    }
}

/// Makes the settings those of the watchdog that lives.
fn as_given(environment: Environment, given: &[String], settings: &mut Settings) {
    let there = |name: &str| match VARIABLES.contains(&name) {
        true => given_value(given, name),
        false => environment(name),
    };
    // What a running watchdog goes by can be read.
    if let Ok(read) = Settings::read(&there) {
        *settings = read;
    }
}

/// Where the settings of this shell differ from those of the watchdog that lives.
fn differences(own: &[String], given: &[String]) -> Vec<String> {
    let said = |given: &[String], name: &str| match given_value(given, name) {
        Some(value) => format!("{name}={}", value.to_string_lossy()),
        None => format!("no {name}"),
    };
    let mut remarks = Vec::new();
    for name in VARIABLES {
        let (here, there) = (said(own, name), said(given, name));
        if here != there {
            remarks.push(format!(
                "the watchdog has {there}, which counts; this shell has {here}"
            ));
        }
    }
    remarks
}
