//! The promises about the ladder, its notices and its last rung (ladder 1.13),
//! checked when something is done and after each turn.
//!
//! Episodes are those of `recount.rs`. This file does not know the table.

use std::collections::{BTreeMap, BTreeSet};

use agent_deck_watchdog::model::{Profile, SessionId};
use agent_deck_watchdog::state::{Child, Rung};
use agent_deck_watchdog::watch::Watch;

use crate::checks::{self, broken};
use crate::deck::Stored;
use crate::disk::Written;
use crate::sim::Sim;

const MINUTE: u64 = 60_000;
/// Between two messages to one parent (ladder 1.2), but for what the wall clock
/// loses when it is read in whole seconds.
const NOTICE_INTERVAL: u64 = 5 * MINUTE - 1000;
/// Rungs that nobody reaches from a decision or a limit (I9).
const UPPER: [Rung; 3] = [Rung::Triage, Rung::HandedOver, Rung::Stopping];

/// Kind, child or parent, and of which episode or batch.
type Line = (String, String, u32);

/// What was seen so far.
#[derive(Default)]
pub struct Ladder {
    /// `WAITING_PATROL_TERMINATE` is 1.
    pub terminate: bool,
    /// Where each child stood after the last turn, and where it would come back to.
    rungs: BTreeMap<SessionId, (Rung, Rung)>,
    /// Who was acted on since the turn began.
    acted: BTreeSet<SessionId>,
    /// When each parent was last written to, true time.
    told: BTreeMap<SessionId, u64>,
    /// What parents were told in a line.
    lines: BTreeSet<Line>,
    /// Those of the last line.
    last: Vec<Line>,
    /// Stops that were begun: child and episode.
    stops: BTreeSet<(SessionId, u32)>,
    /// Lists that came since the turn began.
    lists: usize,
}

impl Ladder {
    pub fn turn_begins(&mut self) {
        self.acted.clear();
        self.lists = 0;
    }

    /// The memory is lost, and with it which batches there were.
    pub fn lost(&mut self) {
        self.lines.retain(|(kind, ..)| kind != "batch");
    }

    /// agent-deck refused the last line before anything was typed.
    pub fn not_told(&mut self) {
        for line in self.last.drain(..) {
            self.lines.remove(&line);
        }
    }

    /// A good list came.
    pub fn listed(&mut self) {
        self.lists += 1;
    }

    /// How many lines told of something of that kind.
    pub fn lines_of(&self, kind: &str) -> usize {
        self.lines.iter().filter(|(of, ..)| of == kind).count()
    }

    /// How many children were stopped.
    pub fn stops(&self) -> usize {
        self.stops.len()
    }
}

/// I8: a child is acted on at most once in a turn.
pub fn acts(sim: &mut Sim, id: &SessionId, what: &str) {
    if !sim.checks.ladder.acted.insert(id.clone()) {
        broken(sim, &format!("{what} {id}: a second act in one turn"));
    }
}

fn episode(sim: &Sim, id: &SessionId) -> u32 {
    sim.checks
        .recount
        .child(id)
        .map_or(0, |child| child.episode)
}

/// All that must hold when `session stop` begins (I5).
pub fn stop_begins(sim: &mut Sim, profile: &Profile, id: &SessionId) {
    checks::changes_something(sim, "stops");
    acts(sim, id, "stops");
    let Some(row) = sim.rows.iter().find(|row| row.id == *id).cloned() else {
        return broken(sim, &format!("stops {id}, which is in no deck"));
    };
    let what = crate::checks_nudge::harm(sim, &row)
        .into_iter()
        .chain(crate::checks_nudge::unseen(sim, &row));
    let now = sim.clocks.truth;
    let child = sim.checks.recount.child(id);
    let asked = child.map_or(0, |child| child.nudges);
    let unsure = child.is_some_and(|child| child.unsure);
    let last = child.and_then(|child| child.last);
    let flag = sim.files.autostop.contains(id);
    let facts = [
        (
            !sim.checks.ladder.terminate,
            "the setting does not allow it",
        ),
        (!flag, "it has no autostop file"),
        (asked < 3 && !unsure, "before it was asked three times"),
        (
            last.is_none_or(|at| now - at < 2 * sim.checks.nudge_dedup),
            "within two steps of the last question",
        ),
        (row.profile != *profile, "in another profile"),
        (row.stored == Stored::Stopped, "it is stopped"),
    ];
    let facts = facts
        .into_iter()
        .filter(|(is, _)| *is)
        .map(|(_, what)| what);
    for what in what.chain(facts).collect::<Vec<_>>() {
        broken(sim, &format!("stops {id} ({}): {what}", row.title));
    }
    // It was looked at right before, as with a message.
    let reads = &mut sim.checks.recount.reads;
    *reads = reads.saturating_sub(2);
    let episode = episode(sim, id);
    if !sim.checks.ladder.stops.insert((id.clone(), episode)) {
        broken(sim, &format!("stops {id} a second time in one episode"));
    }
}

/// All that must hold of what a line tells a parent: it was written down before,
/// comes after a pause, and nothing is told twice (I3, I4).
pub fn notice_begins(sim: &mut Sim, id: &SessionId, line: &str) {
    let now = sim.clocks.truth;
    let before = sim.checks.ladder.told.insert(id.clone(), now);
    if let Some(at) = before.filter(|at| now - at < NOTICE_INTERVAL) {
        broken(sim, &format!("tells {id} after {} ms", now - at));
    }
    let queue = on_its_way(sim, id);
    // A daemon that cannot write knows it as well.
    if queue.is_empty() && sim.faults.unsaved <= now {
        broken(sim, &format!("tells {id} what is not written down: {line}"));
    }
    sim.checks.ladder.last.clear();
    for (kind, child, batch) in queue {
        let episode = match SessionId::parse(&child) {
            Some(child) => episode(sim, &child),
            None => batch,
        };
        let once = ["died", "handed-over", "stopped", "batch"].contains(&kind.as_str());
        let about = if child.is_empty() {
            id.to_string()
        } else {
            child
        };
        let key = (kind.clone(), about.clone(), episode);
        sim.checks.ladder.last.push(key.clone());
        if !sim.checks.ladder.lines.insert(key) && once {
            let text = format!("tells {id} of {about} twice in episode {episode}: {kind}");
            broken(sim, &text);
        }
    }
}

/// The notices to a parent that the state on the disk has as being sent: kind,
/// child, number of the batch.
fn on_its_way(sim: &Sim, id: &SessionId) -> Vec<(String, String, u32)> {
    let Some(Written::State(saved)) = &sim.disk else {
        return Vec::new();
    };
    let parent = saved.0.known_parent(id);
    let queue = parent.into_iter().flat_map(|parent| {
        let sending = parent.queue.iter().filter(|notice| notice.sending);
        sending.map(|n| (n.kind.word().to_owned(), n.child.clone(), parent.batch))
    });
    queue.collect()
}

/// Where a child stands: its rung, its nudges, when its episode opened.
type Standing = (SessionId, Rung, u32, Option<u64>);

/// What of the children a turn without any list must not change (I7).
pub fn standing(watch: &Watch) -> Vec<Standing> {
    let of = |child: &Child| {
        let opened = child.opened.map(|at| at.0);
        (child.id.clone(), child.rung, child.nudges, opened)
    };
    watch.state.children.iter().map(of).collect()
}

/// A turn is over, or what is between two.
pub fn look(watch: &Watch, sim: &mut Sim, before: Option<&[Standing]>) {
    if before.is_some_and(|before| sim.checks.ladder.lists == 0 && before != standing(watch)) {
        broken(sim, "a turn without a list changed a child");
    }
    for child in &watch.state.children {
        let stands = (child.rung, child.under);
        let rungs = &mut sim.checks.ladder.rungs;
        let stood = rungs.get(&child.id).copied();
        if stood == Some(stands) {
            continue;
        }
        rungs.insert(child.id.clone(), stands);
        if let Some(what) = rises(child, stood) {
            broken(sim, &format!("{} {what}", child.id));
        }
    }
}

/// I9: what is wrong with the way from where it stood to where it stands.
fn rises(child: &Child, stood: Option<(Rung, Rung)>) -> Option<String> {
    let from = stood.map(|(rung, _)| rung);
    let back = stood.is_some_and(|(_, under)| under == child.rung);
    if from == Some(child.rung) || !UPPER.contains(&child.rung) || back {
        return None;
    }
    let in_the_way = child.asks || child.held_since.is_some();
    let frozen = matches!(from, Some(Rung::Gated | Rung::Held));
    let word = from.map_or("nothing", Rung::word);
    (in_the_way || frozen).then(|| format!("rose from {word} to {}", child.rung.word()))
}
