//! The promises of DESIGN 1.1, checked at each deed against what is true.
//!
//! This file does not know how the watchdog decides. It knows what may change
//! between its last look and its deed, which nobody can see.

use std::collections::BTreeMap;

use agent_deck_watchdog::deck::trouble::{Trouble, classify};
use agent_deck_watchdog::model::{Profile, Restarted, SessionId};

use crate::checks_ladder::Ladder;
use crate::checks_live::Live;
use crate::checks_nudge::Seen;
use crate::checks_poller::{self, PollerLooks};
use crate::deck::{Row, Stored, Terminal};
use crate::recount::Recount;
use crate::sim::Sim;

const MINUTE: u64 = 60_000;
/// A list this old may be believed, and it takes its time.
const FRESH: u64 = 1500;

/// A restart command that began.
#[derive(Clone, Debug)]
struct Begun {
    at: u64,
    id: SessionId,
    pid: u32,
    /// What is declined or cannot be done is no restart.
    counts: bool,
    /// It was for a poller.
    deaf: bool,
}

/// What has been seen so far.
#[derive(Default)]
pub struct Checks {
    /// `MIN_GLOBAL_RESTART_INTERVAL_S` in milliseconds.
    pub spacing: u64,
    /// The settings of the two others, in milliseconds.
    pub threshold: u64,
    pub nudge_dedup: u64,
    /// `WAITING_PATROL_MAX_NUDGES` is 0.
    pub unlimited: bool,
    pub poller_dedup: u64,
    pub poll: u64,
    pub recount: Recount,
    pub seen: Seen,
    pub bots: PollerLooks,
    pub live: Live,
    pub ladder: Ladder,
    /// What was broken.
    pub violations: Vec<String>,
    begun: Vec<Begun>,
    pub last_look: u64,
    pub blind: bool,
    pub panes_blind: bool,
    pub shown: BTreeMap<SessionId, u64>,
    pub listed: BTreeMap<Profile, (u64, bool)>,
    hinted: BTreeMap<SessionId, u64>,
    /// No restart before: a limit was answered, and the answer was saved.
    pub limited: u64,
    limit_unsaved: u64,
    last_message: Option<u64>,
    told: BTreeMap<String, (u64, usize)>,
    lines: usize,
    /// The last message, when it did not arrive.
    undelivered: Option<String>,
}

impl Checks {
    pub fn turn_begins(&mut self) {
        self.recount.turn_begins();
        self.ladder.turn_begins();
    }

    /// A list came, asked for at that moment; `None`: it was none.
    pub fn listed(&mut self, profile: &Profile, asked: Option<u64>) {
        let known = self.listed.entry(profile.clone()).or_default();
        *known = (asked.unwrap_or(known.0), asked.is_some());
    }

    /// Not even the profiles could be listed.
    pub fn nothing_listed(&mut self) {
        self.listed
            .values_mut()
            .for_each(|(_, usable)| *usable = false);
    }

    pub fn shown(&mut self, id: &SessionId, asked: u64) {
        self.shown.insert(id.clone(), asked);
    }

    pub fn looked(&mut self, truth: u64, blind: bool) {
        self.last_look = truth;
        self.blind = blind;
    }

    pub fn hinted(&mut self, id: &SessionId, truth: u64) {
        self.hinted.insert(id.clone(), truth);
    }

    pub fn began(&mut self, at: u64, id: &SessionId, pid: u32, deaf: bool) {
        self.begun.push(Begun {
            at,
            id: id.clone(),
            pid,
            counts: true,
            deaf,
        });
    }

    /// An answer was read.
    pub fn answered(&mut self, truth: u64, pid: u32, answer: &Restarted) {
        let Some(begun) = self.begun.iter_mut().find(|begun| begun.pid == pid) else {
            return;
        };
        let trouble = match answer {
            Restarted::Skipped(_) | Restarted::NotStarted(_) => {
                begun.counts = false;
                None
            }
            Restarted::Accepted(text) | Restarted::Failed(text) => classify(text, &begun.id, ""),
            Restarted::Unknown(_) => None,
        };
        match (trouble, answer) {
            (Some(Trouble::RateLimit), _) => self.limit_unsaved = truth + 3 * MINUTE,
            (Some(Trouble::Host), Restarted::Failed(_)) => begun.counts = false,
            (Some(Trouble::Host) | None, _) => {}
        }
        if begun.deaf && !begun.counts {
            self.bots.give_back(&begun.id);
        }
    }

    /// The state was written: what was answered cannot be forgotten any more.
    pub fn saved(&mut self) {
        self.limited = self.limited.max(std::mem::take(&mut self.limit_unsaved));
        self.recount.saved();
    }

    /// The run ended without a word.
    pub fn crashed(&mut self) {
        self.limit_unsaved = 0;
        self.hinted.clear();
        self.listed.clear();
        self.recount.crashed();
        self.seen.crashed();
    }

    /// What was on its way may never have gone out: it is not sent again, and
    /// what is told next may look like a repetition.
    pub fn message_lost(&mut self) {
        self.told.clear();
        self.last_message = None;
    }

    /// The user did something about it: what follows is news again.
    pub fn user_acts(&mut self, id: &SessionId) {
        self.told.retain(|line, _| !line.contains(id.as_str()));
    }

    /// The user asks to forget the failures of a session.
    pub fn cleared(&mut self, id: &SessionId) {
        self.user_acts(id);
        self.recount.cleared(id);
    }

    /// Restarts for pollers.
    pub fn for_pollers(&self) -> usize {
        self.begun.iter().filter(|begun| begun.deaf).count()
    }

    /// Restarts that count, of one session or all, since a moment.
    pub fn since(&self, id: Option<&SessionId>, moment: u64) -> usize {
        let counts = |b: &&Begun| b.counts && b.at > moment && id.is_none_or(|id| b.id == *id);
        self.begun.iter().filter(counts).count()
    }
}

/// Something was broken.
pub fn broken(sim: &mut Sim, what: &str) {
    sim.tell_history(format!("BROKEN: {what}"));
    sim.checks.violations.push(what.to_owned());
}

/// A dry run does nothing.
pub fn changes_something(sim: &mut Sim, what: &str) {
    if sim.dry_run {
        broken(sim, &format!("a dry run {what}"));
    }
}

/// All that must hold when `session restart` begins.
pub fn restart_begins(sim: &mut Sim, profile: &Profile, id: &SessionId) {
    changes_something(sim, "restarts");
    let Some(row) = sim.rows.iter().find(|row| row.id == *id).cloned() else {
        return broken(sim, &format!("restarts {id}, which is in no deck"));
    };
    let deaf = is_for_poller(sim);
    let mut what = harm(sim, &row, deaf);
    if deaf {
        checks_poller::restart_begins(sim, &row);
    }
    what.extend(out_of_bounds(sim, &row));
    what.extend(unseen(sim, &row));
    if row.profile != *profile {
        what.push("in another profile");
    }
    for what in what {
        broken(sim, &format!("restarts {id} ({}): {what}", row.title));
    }
}

/// Whether the restart that begins is for a poller, as its line says.
pub fn is_for_poller(sim: &Sim) -> bool {
    let line = sim.restart_log.last();
    line.is_some_and(|line| line["event"] == "attempt" && line["capability"] == "poller")
}

/// Titles and groups that make a session critical.
pub fn is_conductor_like(row: &Row) -> bool {
    row.is_conductor
        || row.title.starts_with("conductor-")
        || ["conductor", "watchers"].contains(&row.group.split('/').next().unwrap_or(""))
}

pub fn is_critical(sim: &Sim, row: &Row) -> bool {
    is_conductor_like(row) || sim.files.autorestart.contains(&row.id)
}

/// A pause or hold that the watchdog can have seen.
pub fn user_forbids(sim: &Sim, row: &Row) -> [(bool, &'static str); 2] {
    let (files, now) = (&sim.files, sim.clocks.truth);
    let known = files.changed < sim.checks.last_look;
    let lasts = |until: Option<u64>| until.is_none_or(|until| until > now);
    let paused = files.pause.is_some_and(|(_, until)| lasts(until));
    let mut holds = files.hold.iter();
    let held = holds.any(|(id, until)| *id == row.id && lasts(*until));
    [
        (known && paused, "it is paused"),
        (known && held, "it is held"),
    ]
}

/// Promise 1: what may not be restarted.
fn harm(sim: &Sim, row: &Row, deaf: bool) -> Vec<&'static str> {
    let checks = &sim.checks;
    let (look, blind) = (checks.last_look, checks.blind);
    let shown = checks.shown.get(&row.id).copied().unwrap_or(0);
    let listed = checks.listed.get(&row.profile).map_or(0, |(at, _)| *at);
    let hinted = checks.hinted.get(&row.id).is_some_and(|at| *at >= listed);
    let known = row.changed < shown;
    let flags_known = sim.files.changed < look;
    let critical = is_critical(sim, row);
    let lives = row.agent.is_some() && row.terminal != Terminal::Shell;
    let typing = |c: &crate::sim::Command| c.verb == "send" && !c.ours;
    let other = |c: &&crate::sim::Command| c.profile == row.profile && c.began < look && !typing(c);
    let mut facts = vec![
        (
            lives && !blind && !deaf && row.agent_changed < look,
            "its agent lives",
        ),
        (
            !row.lingering.is_empty() && !blind && !deaf && row.changed < look,
            "its old agent lingers",
        ),
        (row.stored == Stored::Stopped && known, "it is stopped"),
        (
            row.leaving.is_some_and(|at| at < look) && !blind,
            "somebody is stopping it",
        ),
        (row.archived && row.changed < listed, "it is archived"),
        (
            row.archived && !hinted && row.changed + FRESH < look,
            "it is archived for a while",
        ),
        (row.removed && known, "it is removed"),
        (!row.ran() && known, "it never ran"),
        (row.auth_hold && known, "it is held for a login problem"),
        (!critical && flags_known, "it is not critical"),
        (
            sim.commands.iter().filter(other).any(|c| !blind || c.ours),
            "another command runs",
        ),
    ];
    facts.extend(user_forbids(sim, row));
    facts
        .into_iter()
        .filter(|(is, _)| *is)
        .map(|(_, what)| what)
        .collect()
}

/// Promise 2: the guardrails, in true time.
fn out_of_bounds(sim: &Sim, row: &Row) -> Vec<&'static str> {
    let checks = &sim.checks;
    let ago = |ms: u64| sim.clocks.truth.saturating_sub(ms);
    let facts = [
        (
            checks.since(Some(&row.id), ago(5 * MINUTE)) >= 3,
            "a fourth time in 300 s",
        ),
        (
            checks.since(Some(&row.id), ago(MINUTE)) > 0,
            "within its cool-down",
        ),
        (
            checks.since(None, ago(checks.spacing)) > 0,
            "within the spacing",
        ),
        (sim.clocks.truth < checks.limited, "during a rate limit"),
    ];
    facts
        .into_iter()
        .filter(|(is, _)| *is)
        .map(|(_, what)| what)
        .collect()
}

/// What was not seen is not acted on.
fn unseen(sim: &Sim, row: &Row) -> Vec<&'static str> {
    let checks = &sim.checks;
    let (asked, usable) = checks
        .listed
        .get(&row.profile)
        .copied()
        .unwrap_or((0, false));
    let hinted = checks.hinted.get(&row.id).is_some_and(|at| *at >= asked);
    let shown = checks.shown.get(&row.id).copied().unwrap_or(0);
    let facts = [
        (!usable && !hinted, "without a list and without a hint"),
        (shown + 20_000 < sim.clocks.truth, "without a fresh show"),
    ];
    facts
        .into_iter()
        .filter(|(is, _)| *is)
        .map(|(_, what)| what)
        .collect()
}

/// A message goes out: never two within a minute, never the same news twice.
pub fn message_goes_out(sim: &mut Sim, message: &str) {
    let truth = sim.clocks.truth;
    let near = sim
        .checks
        .last_message
        .is_some_and(|at| truth - at < MINUTE);
    sim.checks.last_message = Some(truth);
    if near {
        broken(sim, "two messages within a minute");
    }
    let arrives = sim.sends == agent_deck_watchdog::world::Sent::Delivered;
    let undelivered = (!arrives).then(|| message.to_owned());
    let before = std::mem::replace(&mut sim.checks.undelivered, undelivered);
    if before.is_some_and(|text| text == message) {
        // Another try of the same one.
        return;
    }
    for line in message.lines().filter(|line| !line.starts_with("and ")) {
        sim.checks.lines += 1;
        let number = sim.checks.lines;
        let known = sim
            .checks
            .told
            .insert(without_digits(line), (truth, number));
        // Between two tellings of the same something else was told of it.
        let again = known.is_some_and(|(at, n)| truth - at < 6 * 60 * MINUTE && n + 1 == number);
        if again {
            broken(sim, &format!("told the same twice: {line}"));
        }
    }
}

/// The line without its numbers; titles and ids stay.
fn without_digits(line: &str) -> String {
    let bare = |word: &str| match word.contains('-') {
        true => word.to_owned(),
        false => word
            .chars()
            .map(|c| if c.is_ascii_digit() { '#' } else { c })
            .collect(),
    };
    line.split(' ').map(bare).collect::<Vec<_>>().join(" ")
}

/// No question is asked all the time: of any session at most 40 a minute, of
/// any list at most one a poll and those that were hinted at.
pub fn calls_are_bounded(sim: &mut Sim) {
    let now = sim.clocks.truth;
    let Some(last) = sim.ledger.last().cloned() else {
        return;
    };
    let lately = sim
        .ledger
        .iter()
        .rev()
        .take_while(|call| now - call.at < MINUTE);
    let same = lately
        .filter(|call| call.verb == last.verb && call.of == last.of)
        .count();
    if same > 40 {
        broken(
            sim,
            &format!("{same} calls of {} {} in a minute", last.verb, last.of),
        );
    }
}
