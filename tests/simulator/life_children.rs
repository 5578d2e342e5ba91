//! What a seed makes happen to children and to what stands on screens.
//!
//! This file does not know what the watchdog should make of it.

use agent_deck_watchdog::model::{AgentSays, Delivery, SessionId, Silence, Status};

use crate::chance::Chance;
use crate::deck::{Row, Terminal};
use crate::faults::Fault;
use crate::front::{Mood, Plan};
use crate::sim::Sim;

const MINUTE: u64 = 60_000;
const STANDS: [Silence; 10] = [
    Silence::Dialog,
    Silence::Dialog,
    Silence::Dialog,
    Silence::Draft,
    Silence::NoComposer,
    Silence::Suggestion,
    Silence::Queued,
    Silence::ShellMode,
    Silence::Menu,
    Silence::Busy,
];

/// A session becomes a child, or its tool another one.
pub fn born(chance: &mut Chance, row: &mut Row) {
    row.parent = "0a0a0a0a-1755900000".to_owned();
    if chance.percent(10) {
        row.command = "codex";
        row.says = None;
    }
    row.mood = mood(chance);
    row.front.trap = chance.percent(40).then(|| snare(chance));
}

/// What opens around the moment of a message.
fn snare(chance: &mut Chance) -> (u32, u64, Silence) {
    let stand = *chance.pick(&STANDS).unwrap_or(&Silence::Dialog);
    let looks = chance.within(0, 1) as u32;
    (looks, chance.within(1, 400), stand)
}

fn mood(chance: &mut Chance) -> Mood {
    let works = chance.within(500, 8 * MINUTE);
    let moods = [
        Mood::Works(works),
        Mood::Works(5000),
        Mood::Echoes,
        Mood::Ignores,
        Mood::Dies,
        Mood::Asks,
    ];
    *chance.pick(&moods).unwrap_or(&Mood::Echoes)
}

/// One of those that live at a prompt.
pub fn anybody(chance: &mut Chance, sim: &Sim) -> Option<SessionId> {
    let lives = |row: &&Row| {
        let stands = matches!(row.terminal, Terminal::Stands(_)) && row.agent.is_some();
        !row.removed && stands && (!row.parent.is_empty() || row.bot.is_some())
    };
    let there: Vec<&Row> = sim.rows.iter().filter(lives).collect();
    chance.pick(&there).map(|row| row.id.clone())
}

/// Something happens to one of them.
pub fn happens(chance: &mut Chance, sim: &mut Sim) {
    let Some(id) = anybody(chance, sim) else {
        return;
    };
    let ms = chance.within(500, 15 * MINUTE);
    match chance.within(0, 99) {
        0..=12 => sim.works(&id, ms),
        13..=19 => opens(chance, sim, &id),
        20..=44 => trap(chance, sim, &id),
        45..=49 => sim.moves(&id),
        50..=56 => flickers(chance, sim, &id),
        57..=66 => plan(chance, sim, &id),
        67..=71 => {
            let mood = mood(chance);
            sim.row(&id).mood = mood;
        }
        72..=78 => says(chance, sim, &id),
        79..=83 => panes_fail(chance, sim, &id),
        84..=86 => {
            sim.send(&id, false);
        }
        87..=89 => {
            let truth = sim.truth();
            let row = sim.row(&id);
            row.front.background = !row.front.background;
            row.front.since = truth;
        }
        90..=92 => {
            let truth = sim.truth();
            sim.faults.slow = (chance.within(100, 3000), truth + ms);
        }
        93..=95 => {
            let word = if chance.percent(50) {
                Status::Idle
            } else {
                Status::Waiting
            };
            sim.word(&id, word);
        }
        _ => suspends(chance, sim, &id),
    }
}

/// A person or the agent opens something, and closes it after a while.
fn opens(chance: &mut Chance, sim: &mut Sim, id: &SessionId) {
    let stand = *chance.pick(&STANDS).unwrap_or(&Silence::Dialog);
    sim.stands(id, Some(stand));
    if stand == Silence::Dialog && chance.percent(50) {
        sim.row(id).says = Some(AgentSays::Dialog);
    }
    let lasts = chance.within(1000, 25 * MINUTE);
    let id = id.clone();
    sim.after(lasts, move |sim| closes(sim, &id));
}

fn closes(sim: &mut Sim, id: &SessionId) {
    sim.stands(id, None);
    let row = sim.row(id);
    if row.says == Some(AgentSays::Dialog) {
        row.says = Some(AgentSays::Idle);
    }
}

/// Something opens right after one of the next looks of the watchdog.
fn trap(chance: &mut Chance, sim: &mut Sim, id: &SessionId) {
    let snare = snare(chance);
    sim.row(id).front.trap = Some(snare);
    let id = id.clone();
    let lasts = chance.within(20 * MINUTE, 60 * MINUTE);
    sim.after(lasts, move |sim| closes(sim, &id));
}

/// It is busy for so short a time that a list may miss it.
fn flickers(chance: &mut Chance, sim: &mut Sim, id: &SessionId) {
    for n in 0..chance.within(1, 6) {
        let id = id.clone();
        let lasts = chance.within(200, 3000);
        sim.after(n * 7000, move |sim| sim.works(&id, lasts));
    }
}

fn plan(chance: &mut Chance, sim: &mut Sim, id: &SessionId) {
    let text = |text: &str| text.to_owned();
    let takes = chance.within(500, 14_000);
    let plans = [
        Plan::Usual,
        Plan::Takes(takes),
        Plan::Takes(5 * MINUTE),
        Plan::Late(takes),
        Plan::Late(4 * MINUTE),
        Plan::Nothing(Delivery::Refused(text("failed to initialize storage"))),
        Plan::Nothing(Delivery::Unknown(text("{\"a"))),
        Plan::Left(text("typed_not_submitted")),
        Plan::ArrivesBut(Delivery::NoEvidence(text("no_evidence"))),
        Plan::ArrivesBut(Delivery::Unknown(text("no usable answer"))),
    ];
    let plan = chance.pick(&plans).cloned().unwrap_or(Plan::Usual);
    sim.tell_history(format!("messages to {id} will be {plan:?}"));
    sim.row(id).plan = plan;
}

fn says(chance: &mut Chance, sim: &mut Sim, id: &SessionId) {
    let words = [
        None,
        Some(AgentSays::Idle),
        Some(AgentSays::Busy),
        Some(AgentSays::Shell),
        Some(AgentSays::Unfamiliar),
    ];
    let says = *chance.pick(&words).unwrap_or(&None);
    sim.tell_history(format!("the agent of {id} says {says:?}"));
    sim.row(id).says = says;
    let id = id.clone();
    let lasts = chance.within(1000, 20 * MINUTE);
    sim.after(lasts, move |sim| sim.row(&id).says = Some(AgentSays::Idle));
}

fn panes_fail(chance: &mut Chance, sim: &mut Sim, id: &SessionId) {
    let faults = [Fault::Hangs, Fault::Garbage, Fault::Fails, Fault::NoProgram];
    let fault = *chance.pick(&faults).unwrap_or(&Fault::Fails);
    let until = sim.truth() + chance.within(1000, 15 * MINUTE);
    sim.tell_history(format!("panes of {id} fail: {fault:?} until {until}"));
    sim.faults.pane.insert(id.clone(), (fault, until));
}

fn suspends(chance: &mut Chance, sim: &mut Sim, id: &SessionId) {
    let truth = sim.truth();
    let row = sim.row(id);
    row.suspended = true;
    row.changed = truth;
    sim.tell_history(format!("the agent of {id} is suspended"));
    let id = id.clone();
    sim.after(chance.within(1000, 20 * MINUTE), move |sim| {
        let truth = sim.truth();
        let row = sim.row(&id);
        row.suspended = false;
        row.changed = truth;
    });
}

/// Somebody answers them all, and they have work to do.
pub fn heal(sim: &mut Sim) {
    let ids: Vec<SessionId> = sim.rows.iter().map(|row| row.id.clone()).collect();
    for id in ids {
        let row = sim.row(&id);
        row.suspended = false;
        row.plan = Plan::Usual;
        row.mood = Mood::Works(5000);
        row.front.trap = None;
        row.front.background = false;
        row.front.stand = None;
        row.says = Some(AgentSays::Idle);
        if !row.parent.is_empty() && !crate::checks::is_conductor_like(row) {
            row.word = Status::Running;
        }
    }
}
