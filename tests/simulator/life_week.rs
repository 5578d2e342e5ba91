//! The week of a deck: four conductors and forty children. Work is given, done,
//! failed, forgotten; conductors are busy, asked, stopped, replaced; people start
//! anew what has died, and sleep at night.
//!
//! This file does not know what the watchdog should make of it.

use agent_deck_watchdog::model::{SessionId, Silence, Status, Substate};

use crate::chance::Chance;
use crate::deck::{Done, Row};
use crate::run::Play;
use crate::sim::{Hint, Sim};
use crate::{life, life_children};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const CONDUCTORS: u64 = 4;
const CHILDREN: u64 = 40;

fn conductor(number: u64) -> SessionId {
    SessionId::parse(&format!("{number:08x}-1755900000")).unwrap()
}

/// They all live, and the children wait for work.
pub fn deck(chance: &mut Chance, sim: &mut Sim) {
    for number in 0..CONDUCTORS {
        sim.add(
            &conductor(number),
            "default",
            &format!("conductor-{number}"),
        );
    }
    for number in 0..CHILDREN {
        child(chance, sim, number % CONDUCTORS);
    }
}

/// One more child of that conductor.
fn child(chance: &mut Chance, sim: &mut Sim, of: u64) {
    let number = 100 + sim.rows.len() as u64;
    let id = SessionId::parse(&format!("{number:08x}-1755900000")).unwrap();
    sim.add(&id, "default", &format!("worker-{number}"));
    life_children::born(chance, sim.row(&id));
    sim.row(&id).parent = conductor(of).to_string();
    if chance.percent(50) {
        sim.files.autostop.push(id);
    }
}

fn one_of(chance: &mut Chance, sim: &Sim, fits: impl Fn(&Row) -> bool) -> Option<SessionId> {
    let there: Vec<&Row> = sim.rows.iter().filter(|row| fits(row)).collect();
    chance.pick(&there).map(|row| row.id.clone())
}

/// Something happens, once or a few times an hour.
pub fn happens(chance: &mut Chance, play: &mut Play) {
    let sim = &mut play.sim;
    match chance.within(0, 99) {
        0..=34 => work(chance, sim),
        35..=49 => renew(chance, sim),
        50..=59 => of_a_conductor(chance, sim),
        60..=63 => held(chance, sim),
        64..=67 => triage(chance, sim),
        68..=82 => life_children::happens(chance, sim),
        _ => life::happens(chance, play),
    }
}

/// A child is given work, and it ends somehow.
fn work(chance: &mut Chance, sim: &mut Sim) {
    let at_rest = |row: &Row| {
        !row.parent.is_empty() && !row.removed && row.agent.is_some() && row.lie.is_none()
    };
    let Some(id) = one_of(chance, sim, at_rest) else {
        return;
    };
    let lasts = chance.within(MINUTE, 90 * MINUTE);
    sim.works(&id, lasts);
    let agent = sim.row(&id).agent.map(|agent| agent.pid);
    let ends = chance.within(0, 9);
    let answered = chance.within(MINUTE, 10 * HOUR);
    sim.after(lasts + 1, move |sim| {
        if sim.row(&id).agent.map(|agent| agent.pid) == agent {
            over(sim, &id, ends, answered);
        }
    });
}

/// What its work comes to.
fn over(sim: &mut Sim, id: &SessionId, ends: u64, answered: u64) {
    match ends {
        0..=3 => {
            let at = sim.clocks.wall();
            sim.row(id).done = Some(Done {
                at,
                truth: sim.clocks.truth,
                ok: ends != 3,
                fresh: true,
            });
        }
        4..=5 => {
            sim.stands(id, Some(Silence::Dialog));
            let id = id.clone();
            sim.after(answered, move |sim| sim.stands(&id, None));
        }
        6 => sim.word(id, Status::Idle),
        7 => sim.end_agent(id),
        // It waits, and nobody knows for what.
        _ => {}
    }
}

/// What has died is started again, or is replaced.
fn renew(chance: &mut Chance, sim: &mut Sim) {
    let dead = |row: &Row| !row.removed && row.agent.is_none() && !row.parent.is_empty();
    let Some(id) = one_of(chance, sim, dead) else {
        return;
    };
    if chance.percent(70) {
        return sim.user_starts(&id);
    }
    sim.user_ends(&id, "remove", 300);
    let of = chance.within(0, CONDUCTORS - 1);
    child(chance, sim, of);
}

/// A conductor is busy, asked, dead, stopped for a while, or replaced.
fn of_a_conductor(chance: &mut Chance, sim: &mut Sim) {
    let id = conductor(chance.within(0, CONDUCTORS - 1));
    let ms = chance.within(10 * MINUTE, 8 * HOUR);
    match chance.within(0, 9) {
        0..=3 => sim.works(&id, ms / 4),
        4..=5 => {
            sim.stands(&id, Some(Silence::Dialog));
            sim.after(ms / 4, move |sim| sim.stands(&id, None));
        }
        6 => sim.end_agent(&id),
        7 => sim.row(&id).front.trap = Some((0, chance.within(1, 400), Silence::Draft)),
        8 => {
            sim.user_ends(&id, "stop", 300);
            sim.after(ms, move |sim| sim.user_starts(&id));
        }
        _ => {
            sim.user_ends(&id, "archive", 300);
            sim.after(ms, move |sim| sim.user_starts(&id));
        }
    }
}

/// A limit holds a child for some hours.
fn held(chance: &mut Chance, sim: &mut Sim) {
    let Some(id) = life_children::anybody(chance, sim) else {
        return;
    };
    let truth = sim.truth();
    let row = sim.row(&id);
    row.substate = Some(Substate::UsageLimit);
    row.changed = truth;
    sim.tell_history(format!("a usage limit holds {id}"));
    sim.after(chance.within(MINUTE, 5 * HOUR), move |sim| {
        let truth = sim.truth();
        let row = sim.row(&id);
        row.substate = None;
        row.changed = truth;
    });
}

/// Triage thinks otherwise from now on; somebody opts a child in or out.
fn triage(chance: &mut Chance, sim: &mut Sim) {
    let answers = crate::triages::ANSWERS;
    sim.triage.answer = *chance.pick(&answers).unwrap_or(&answers[0]);
    sim.triage.takes = chance.within(1, 90_000);
    let Some(id) = one_of(chance, sim, |row| !row.parent.is_empty() && !row.removed) else {
        return;
    };
    sim.files.changed = sim.clocks.truth;
    let files = &mut sim.files.autostop;
    match files.iter().position(|known| *known == id) {
        Some(at) => drop(files.remove(at)),
        None => files.push(id),
    }
    sim.hints.push(Hint::Flags);
}
