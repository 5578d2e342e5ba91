//! The promises about the one restart that ends a living agent: of a conductor
//! whose poller is gone.
//!
//! This file does not know how the watchdog decides.

use std::collections::BTreeMap;

use agent_deck_watchdog::model::{AgentSays, SessionId, Silence, Status};

use crate::checks::{self, broken};
use crate::deck::{Row, Terminal};
use crate::sim::Sim;

const MINUTE: u64 = 60_000;
/// Two looks that agree are so far apart.
const APART: u64 = 30_000;
/// The longest distance of two such restarts.
const MOST: u64 = 24 * 60 * MINUTE;
/// The last look at a screen is that fresh.
const LOOK_AGE: u64 = 250;

/// What looks showed of one session.
#[derive(Clone, Debug, Default)]
struct Looks {
    /// Without a break no poller since.
    absent: Option<u64>,
    last: Option<u64>,
    /// Such restarts, and how many since a poller was last seen.
    restarted: Option<u64>,
    fruitless: u32,
    /// As it was before the last one.
    before: Option<(Option<u64>, Option<u64>)>,
}

/// What looks showed.
#[derive(Default)]
pub struct PollerLooks {
    sessions: BTreeMap<SessionId, Looks>,
}

impl PollerLooks {
    /// Time until the next one is allowed.
    pub fn waits(&self, id: &SessionId, dedup: u64, now: u64) -> u64 {
        let Some(looks) = self.sessions.get(id) else {
            return 0;
        };
        let distance = distance(looks, dedup);
        looks
            .restarted
            .map_or(0, |at| (at + distance).saturating_sub(now))
    }

    /// The memory is lost: everybody has just been restarted for it.
    pub fn lost(&mut self, now: u64) {
        for looks in self.sessions.values_mut() {
            looks.restarted = Some(now);
            looks.fruitless = 1;
            looks.absent = None;
        }
    }

    /// It did not happen after all.
    pub fn give_back(&mut self, id: &SessionId) {
        if let Some(looks) = self.sessions.get_mut(id) {
            (looks.restarted, looks.absent) = looks.before.unwrap_or_default();
            looks.fruitless = looks.fruitless.saturating_sub(1);
        }
    }
}

fn distance(looks: &Looks, dedup: u64) -> u64 {
    let doublings = looks.fruitless.saturating_sub(1).min(20);
    (dedup << doublings).min(MOST.max(dedup))
}

/// Pollers were asked for; `seen`: they could be seen.
pub fn looked(sim: &mut Sim, seen: bool) {
    let now = sim.clocks.truth;
    let blind = sim.checks.panes_blind;
    let rows = sim.rows.clone();
    let listed = |row: &Row| sim.checks.recount.listed_at(&row.profile);
    // A list takes its time.
    let there = |row: &Row| !row.removed || row.changed + 1000 >= listed(row);
    if !rows.iter().any(|row| there(row) && may_own(row, blind)) {
        broken(sim, "looks for pollers, and nobody owns a bot");
    }
    for row in &rows {
        let fitting = sim.fitting(row, !blind && row.agent.is_some());
        let any = !fitting.is_empty()
            || !sim.fitting(row, false).is_empty()
            || !sim.fitting(row, true).is_empty();
        let looks = sim.checks.bots.sessions.entry(row.id.clone()).or_default();
        if !seen {
            looks.absent = None;
        } else if fitting.is_empty() {
            looks.absent.get_or_insert(now);
        } else {
            looks.absent = None;
        }
        if seen && any {
            looks.fruitless = 0;
        }
        looks.last = seen.then_some(now);
    }
}

/// Whether it owns a bot, as far as anybody can say.
fn may_own(row: &Row, blind: bool) -> bool {
    let Some(bot) = &row.bot else { return false };
    bot.is_owned(&row.title, !blind) || bot.is_owned(&row.title, false)
}

/// All that must hold for such a restart beside the guardrails of all.
pub fn restart_begins(sim: &mut Sim, row: &Row) {
    let mut what = unrest(sim, row);
    what.extend(unproven(sim, row));
    let (now, dedup) = (sim.clocks.truth, sim.checks.poller_dedup);
    if sim.checks.bots.waits(&row.id, dedup, now) > 0 {
        what.push("within the distance of two such restarts");
    }
    for what in what {
        broken(
            sim,
            &format!("restarts {} for its poller: {what}", row.title),
        );
    }
    let looks = sim.checks.bots.sessions.entry(row.id.clone()).or_default();
    looks.before = Some((looks.restarted.replace(now), looks.absent.take()));
    looks.fruitless += 1;
}

/// It is at rest, as it was last seen.
fn unrest(sim: &Sim, row: &Row) -> Vec<&'static str> {
    let checks = &sim.checks;
    let now = sim.clocks.truth;
    let look = checks.last_look;
    let shown = checks.shown.get(&row.id).copied().unwrap_or(0);
    let known = row.changed < shown;
    let Some(pane) = checks.seen.panes.get(&row.id) else {
        return vec!["its pane could not be read"];
    };
    let (says, asked) = checks.seen.says.get(&row.id).copied().unwrap_or((None, 0));
    let rests = matches!(row.status(), Status::Waiting | Status::Idle);
    let alive = row.agent.is_some() && matches!(row.terminal, Terminal::Stands(_));
    let unseen = checks.blind;
    let facts = [
        (known && !rests, "it is not at rest"),
        (known && !alive, "it does not live"),
        (now - pane.answered > LOOK_AGE, "the look is too old"),
        (
            pane.stand.is_some_and(|stand| stand != Silence::Suggestion),
            "its composer is not free",
        ),
        (pane.background, "something runs in its background"),
        (
            !unseen && row.suspended && row.changed < look,
            "its agent is suspended",
        ),
        (!unseen && asked < shown, "its agent was not asked"),
        (
            !unseen && !matches!(says, None | Some(AgentSays::Idle)),
            "its agent is not idle",
        ),
        (
            !unseen && young(row, now, look),
            "it is younger than a minute",
        ),
    ];
    facts
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, what)| *what)
        .collect()
}

fn young(row: &Row, now: u64, look: u64) -> bool {
    row.agent
        .is_some_and(|agent| agent.started < look && now - agent.started < MINUTE)
}

/// It is deaf for certain.
fn unproven(sim: &Sim, row: &Row) -> Vec<&'static str> {
    let now = sim.clocks.truth;
    let blind = sim.checks.blind;
    let Some(bot) = &row.bot else {
        return vec!["it owns no bot"];
    };
    let looks = sim.checks.bots.sessions.get(&row.id);
    let agreed = looks.and_then(|looks| Some(looks.last? - looks.absent?));
    let last = looks.and_then(|looks| looks.last).unwrap_or(0);
    let same = row.agent_changed + APART < now && bot.changed < last;
    let facts = [
        (!bot.is_owned(&row.title, !blind) && same, "it is no owner"),
        (
            bot.folder(!blind).is_none() && same,
            "its folder is not certain",
        ),
        (
            agreed.is_none_or(|apart| apart < APART),
            "two looks apart did not agree that nobody polls",
        ),
        (
            !checks::is_critical(sim, row) && sim.files.changed < sim.checks.last_look,
            "it is not critical",
        ),
    ];
    facts
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, what)| *what)
        .collect()
}
