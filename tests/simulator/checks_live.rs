//! What has to happen within its time: whoever can be asked and is due is asked,
//! whoever is deaf and at rest is restarted.
//!
//! This file does not know what else may hold something back than what it looks
//! at; as long as any of that is so, the time begins anew.

use std::collections::BTreeMap;

use agent_deck_watchdog::model::{AgentSays, Declared, SessionId, Status, Substate};

use crate::checks::{self, broken};
use crate::deck::{Answer, Row, Stored, Terminal};
use crate::front::Plan;
use crate::sim::Sim;

const MINUTE: u64 = 60_000;
/// So long after a time in which nobody looked nobody is asked, and a pane
/// far from its time is read that seldom.
const SETTLES: u64 = MINUTE;
const READ_FAR: u64 = 20 * MINUTE;
/// A new poller is given a minute, and two looks are half a minute apart.
const DEAF: u64 = MINUTE + 3 * 30_000;

/// Since when nothing stands against it, and what must stay as it is.
type Since = BTreeMap<SessionId, (u64, (u64, Option<u64>))>;

/// Who waits for something.
#[derive(Default)]
pub struct Live {
    children: Since,
    deaf: Since,
    not_before: u64,
}

impl Live {
    /// Nothing is due by anything that was so before that moment.
    pub fn disturbed(&mut self, until: u64) {
        self.children.clear();
        self.deaf.clear();
        self.not_before = self.not_before.max(until);
    }
}

/// A turn is over.
pub fn turn_over(sim: &mut Sim) {
    let now = sim.clocks.truth;
    if now < sim.checks.live.not_before || sim.dry_run || sim.leaving {
        return;
    }
    let rows = sim.rows.clone();
    let quiet = is_quiet(sim);
    let (mut children, mut deaf) = (Since::new(), Since::new());
    for row in &rows {
        let calm = quiet && is_calm(sim, row);
        let marks = (row.front.content, row.hook.as_ref().map(|hook| hook.1));
        if calm && is_askable(sim, row) {
            children.insert(row.id.clone(), (now, marks));
        } else if calm && is_deaf(sim, row, &rows) {
            deaf.insert(row.id.clone(), (now, marks));
        }
    }
    keep_older(&mut children, &sim.checks.live.children);
    keep_older(&mut deaf, &sim.checks.live.deaf);
    let poll = sim.checks.poll;
    let wait = rows.iter().filter(|row| !row.parent.is_empty()).count();
    let rounds = wait as u64 / 2 + 1;
    let turn = poll.max(3 * 16_000) + 2 * poll;
    let asked = sim.checks.threshold + SETTLES + READ_FAR + rounds * turn;
    let served = DEAF + sim.checks.spacing + 3 * poll + 30_000;
    for (due, bound, what) in [
        (&children, asked, "waits, and nobody asks"),
        (&deaf, served, "is deaf at rest, and nobody restarts"),
    ] {
        let late = due.iter().find(|(_, (since, _))| now - since > bound);
        if let Some((id, (since, _))) = late {
            broken(sim, &format!("{what} {id} for {} s", (now - since) / 1000));
        }
    }
    sim.checks.live.children = children;
    sim.checks.live.deaf = deaf;
}

fn keep_older(new: &mut Since, old: &Since) {
    for (id, (since, marks)) in new {
        if let Some((older, _)) = old.get(id).filter(|(_, known)| known == marks) {
            *since = *older;
        }
    }
}

/// Nothing that concerns everybody is wrong.
fn is_quiet(sim: &Sim) -> bool {
    let now = sim.clocks.truth;
    let faults = &sim.faults;
    let over = |until: u64| until <= now;
    sim.commands.is_empty()
        && sim
            .files
            .pause
            .is_none_or(|(_, until)| until.is_some_and(over))
        && faults.profiles.is_none_or(|(_, until)| over(until))
        && [faults.no_start, faults.blind, faults.unsaved, faults.slow.1]
            .into_iter()
            .all(over)
}

/// Nothing that concerns this one is wrong: it lives and is at its prompt.
fn is_calm(sim: &Sim, row: &Row) -> bool {
    let now = sim.clocks.truth;
    let faults = &sim.faults;
    let prompts = matches!(row.substate, None | Some(Substate::IdleAtEmptyPrompt));
    let holds = sim.files.hold.iter();
    !row.removed
        && !row.archived
        && row.unlisted <= now
        && row.stored == Stored::Alive
        && row.lie.is_none()
        && matches!(row.terminal, Terminal::Stands(_))
        && row.agent.is_some()
        && row.lingering.is_empty()
        && !row.auth_hold
        && prompts
        && row.front.stand.is_none()
        && matches!(row.says, None | Some(AgentSays::Idle))
        && !row.suspended
        && row.show_answers.is_none()
        && faults.of_list(&row.profile, now).is_none()
        && faults.of_pane(&row.id, now).is_none()
        && holds
            .filter(|(id, until)| *id == row.id && until.is_none_or(|until| until > now))
            .count()
            == 0
}

fn is_askable(sim: &Sim, row: &Row) -> bool {
    let now = sim.clocks.truth;
    let child = sim.checks.recount.child(&row.id);
    let within = |at: Option<u64>, ms: u64| at.is_some_and(|at| now - at < ms);
    let may = child.is_none_or(|child| {
        child.nudges < 3
            && child.silent.is_none()
            && !within(child.last, sim.checks.nudge_dedup)
            && !within(child.refused, 5 * MINUTE + sim.checks.poll)
    });
    let gap = sim.checks.recount.gaps.get(&row.profile).copied();
    may && !within(gap, SETTLES)
        && !row.parent.is_empty()
        && !checks::is_conductor_like(row)
        && row.word == Status::Waiting
        && row.done.is_none_or(|done| !done.fresh)
        && row.command != "bash"
}

fn is_deaf(sim: &Sim, row: &Row, rows: &[Row]) -> bool {
    let now = sim.clocks.truth;
    let Some(bot) = &row.bot else { return false };
    let Some(folder) = bot.folder(true) else {
        return false;
    };
    let rivals = rows.iter().filter(|other| {
        let other_bot = other.bot.as_ref();
        let same = other_bot.is_some_and(|theirs| {
            theirs.folder(true).as_ref() == Some(&folder)
                || theirs.token.is_some() && theirs.token == bot.token
        });
        other.id != row.id && same
    });
    let checks = &sim.checks;
    bot.is_owned(&row.title, true)
        && rivals.count() == 0
        // Nobody looks into a sandbox.
        && !row.sandboxed
        && checks::is_critical(sim, row)
        && sim.fitting(row, true).is_empty()
        && matches!(row.word, Status::Waiting | Status::Idle)
        && !row.front.background
        && !matches!(bot.declared, Declared::Unknown(_))
        && sim.faults.ps.is_none_or(|(_, until)| until <= now)
        && checks.since(None, now.saturating_sub(5 * MINUTE)) == 0
        && checks.since(Some(&row.id), now.saturating_sub(180 * MINUTE)) < 2
        && checks.bots.waits(&row.id, checks.poller_dedup, now) == 0
        && checks.limited <= now
        && row.answer == Answer::Usual
        && row.plan == Plan::Usual
}
