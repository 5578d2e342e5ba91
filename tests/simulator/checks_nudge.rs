//! The promises about typing, checked when a message begins and when it is
//! typed.
//!
//! This file does not know how the watchdog decides.

use std::collections::BTreeMap;

use agent_deck_watchdog::model::{AgentSays, Profile, SessionId, Silence, Status};

use crate::checks::{self, broken};
use crate::checks_ladder;
use crate::deck::{Row, Stored};
use crate::sim::{Command, Sim};

const MINUTE: u64 = 60_000;
/// A message begins at most this long after the look that permits it.
const LOOK_AGE: u64 = 250;
/// Messages in one episode, and in one turn.
const EPISODE: u32 = 3;
const TURN: u32 = 2;
/// Panes of children read in one turn, and the looks right before a message or a stop.
const READS: u32 = 20 + TURN + 2;
/// How exactly waiting is counted again, but for a poll: what is read in between
/// takes time.
pub const SLACK: u64 = 20_000;

/// A look at a pane: what was true when it was asked.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub asked: u64,
    pub answered: u64,
    /// What stood there.
    pub stand: Option<Silence>,
    pub background: bool,
    pub content: u64,
}

/// What was seen of panes and agents.
#[derive(Default)]
pub struct Seen {
    /// The last look at each pane; none when it could not be read.
    pub panes: BTreeMap<SessionId, Look>,
    /// The last answer of an agent about itself, and when.
    pub says: BTreeMap<SessionId, (Option<AgentSays>, u64)>,
    /// Dialogs and drafts that opened between the look and the typing.
    pub opened_after: Vec<SessionId>,
    /// When the look was asked for that permitted the last message.
    permitted: BTreeMap<SessionId, u64>,
    reads: BTreeMap<SessionId, Vec<u64>>,
}

/// All that must hold when `session send` begins.
pub fn send_begins(sim: &mut Sim, profile: &Profile, id: &SessionId) {
    checks::changes_something(sim, "sends");
    checks_ladder::acts(sim, id, "sends to");
    let Some(row) = sim.rows.iter().find(|row| row.id == *id).cloned() else {
        return broken(sim, &format!("sends to {id}, which is in no deck"));
    };
    let mut what = harm(sim, &row);
    what.extend(unseen(sim, &row));
    what.extend(out_of_bounds(sim, &row));
    if row.profile != *profile {
        what.push("in another profile");
    }
    for what in what {
        broken(sim, &format!("sends to {id} ({}): {what}", row.title));
    }
    let look = sim.checks.seen.panes.get(id).map_or(0, |look| look.asked);
    sim.checks.seen.permitted.insert(id.clone(), look);
}

/// All that must hold when a line to a parent begins, as far as it is checked.
pub fn notice_begins(sim: &mut Sim, profile: &Profile, id: &SessionId, line: &str) {
    checks::changes_something(sim, "tells a parent");
    checks_ladder::notice_begins(sim, id, line);
    let Some(row) = sim.rows.iter().find(|row| row.id == *id).cloned() else {
        return broken(sim, &format!("tells {id}, which is in no deck"));
    };
    let mut what = unseen(sim, &row);
    let marked = line.starts_with("[agent-deck-watchdog] ") && !line.contains(char::is_control);
    what.extend(said(vec![
        (row.profile != *profile, "in another profile"),
        (!marked || line.len() > 900, "with a line that is not ours"),
    ]));
    for what in what {
        broken(sim, &format!("tells {id} ({}): {what}", row.title));
    }
    let look = sim.checks.seen.panes.get(id).map_or(0, |look| look.asked);
    sim.checks.seen.permitted.insert(id.clone(), look);
}

/// Who must not be written to.
pub fn harm(sim: &Sim, row: &Row) -> Vec<&'static str> {
    let checks = &sim.checks;
    let shown = checks.shown.get(&row.id).copied().unwrap_or(0);
    let listed = checks.listed.get(&row.profile).map_or(0, |(at, _)| *at);
    let look = checks.last_look;
    let known = row.changed < shown;
    let says = checks.seen.says.get(&row.id).copied();
    let mut facts = vec![
        (row.parent.is_empty(), "it is no child"),
        (checks::is_conductor_like(row), "waiting is its job"),
        (row.archived && row.changed < listed, "it is archived"),
        (
            row.stored == Stored::Stopped && known,
            "it was stopped on purpose",
        ),
        (row.removed && known, "it is removed"),
        (known && row.status() != Status::Waiting, "it does not wait"),
        (row.auth_hold && known, "it is held for a login problem"),
        (
            row.show_answers.is_some() && known,
            "another session goes by its id",
        ),
        (
            !checks.blind && row.suspended && row.changed < look,
            "its agent is suspended",
        ),
        (
            !checks.blind && says.is_none_or(|(says, at)| at < shown || !may_be_idle(says)),
            "its agent says that it is not idle, or was not asked",
        ),
        (
            row.tool() == "shell" || row.command == "bash",
            "what is typed would run as a command",
        ),
    ];
    facts.extend(checks::user_forbids(sim, row));
    said(facts)
}

fn may_be_idle(says: Option<AgentSays>) -> bool {
    matches!(says, None | Some(AgentSays::Idle))
}

/// What was not seen is not acted on.
pub fn unseen(sim: &Sim, row: &Row) -> Vec<&'static str> {
    let now = sim.clocks.truth;
    let Some(look) = sim.checks.seen.panes.get(&row.id) else {
        return vec!["its pane could not be read"];
    };
    let other = row.command != "claude";
    let free = if other {
        row_of_look(row, look).is_none()
    } else {
        look.stand.is_none()
    };
    let usable = sim
        .checks
        .listed
        .get(&row.profile)
        .is_some_and(|(_, usable)| *usable);
    said(vec![
        (now - look.asked > LOOK_AGE, "the look is too old"),
        (!free, "its composer is not free"),
        (!usable, "without a list"),
    ])
}

fn row_of_look(row: &Row, look: &Look) -> Option<Silence> {
    let mut front = row.front.clone();
    front.stand = look.stand;
    front.of_other_tool()
}

/// The guardrails, counted again.
fn out_of_bounds(sim: &Sim, row: &Row) -> Vec<&'static str> {
    let checks = &sim.checks;
    let now = sim.clocks.truth;
    let Some(child) = checks.recount.child(&row.id) else {
        return vec!["it was never listed as a child"];
    };
    let within = |at: Option<u64>, ms: u64| at.is_some_and(|at| now - at < ms);
    let gap = checks.recount.gaps.get(&row.profile).copied();
    let lost = checks.recount.lost;
    let ours = |c: &&Command| c.ours && c.profile == row.profile;
    said(vec![
        (
            within(child.last.max(lost), checks.nudge_dedup),
            "twice within the dedup time",
        ),
        (
            within(child.refused, 4 * MINUTE),
            "soon after a refused one",
        ),
        (
            child.nudges >= EPISODE + u32::from(child.retried)
                && !checks.unlimited
                && !child.unsure,
            "too often in one episode",
        ),
        (
            child.silent.is_some() && !child.unsure,
            "after something went wrong",
        ),
        (checks.recount.sends >= TURN, "a third time in one turn"),
        (
            child.waited(now) + SLACK + checks.poll < checks.threshold,
            "before it has waited so long",
        ),
        (within(gap, MINUTE), "soon after nobody looked"),
        (
            sim.commands.iter().any(|c| ours(&c)),
            "while another command of ours runs",
        ),
    ])
}

fn said(facts: Vec<(bool, &'static str)>) -> Vec<&'static str> {
    let facts = facts.into_iter().filter(|(is, _)| *is);
    facts.map(|(_, what)| what).collect()
}

/// The text reaches the terminal. What opened after the look nobody could see:
/// that part is agent-deck's.
pub fn is_typed(sim: &mut Sim, id: &SessionId, stood: Option<Silence>) {
    let Some(stood) = stood else { return };
    let row = sim.row(id).clone();
    if row.command != "claude" && row.front.of_other_tool().is_none() {
        return;
    }
    let looked = sim.checks.seen.permitted.get(id).copied().unwrap_or(0);
    if row.front.since <= looked {
        let text = format!(
            "types into {} of {id}, which stood there at the look",
            stood.word()
        );
        return broken(sim, &text);
    }
    sim.tell_history(format!(
        "typed into {} of {id}: opened after the look",
        stood.word()
    ));
    sim.checks.seen.opened_after.push(id.clone());
}

/// A pane is looked at. Of a child that nobody will ask for minutes this is not
/// done at every poll, and a turn reads a fixed number of them.
pub fn reads_are_bounded(sim: &mut Sim, id: &SessionId) {
    let now = sim.clocks.truth;
    let checks = &mut sim.checks;
    let times = checks.seen.reads.entry(id.clone()).or_default();
    let child = checks.recount.child(id);
    let since = child.map_or(0, |child| child.since);
    times.retain(|at| now - at < MINUTE && *at >= since);
    if child.is_some_and(|child| child.unread.is_some()) {
        times.clear();
    }
    times.push(now);
    let times = times.len();
    let reads = checks.recount.reads;
    let Some(row) = sim.rows.iter().find(|row| row.id == *id) else {
        return;
    };
    let (critical, owns) = (checks::is_critical(sim, row), row.bot.is_some());
    if critical || owns || row.parent.is_empty() {
        return;
    }
    let child = sim.checks.recount.child(id);
    let far = child.is_some_and(|c| c.waited(now) + 3 * MINUTE < sim.checks.threshold);
    // Each 30 s, and once more after a message.
    if far && times > 5 {
        broken(
            sim,
            &format!("reads {id} {times} times a minute, far from its time"),
        );
    }
    if reads > READS {
        broken(sim, &format!("reads {reads} panes in one turn"));
    }
}

impl Seen {
    /// A new run reads all at once.
    pub fn crashed(&mut self) {
        self.reads.clear();
    }
}
