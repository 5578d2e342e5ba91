//! What a seed makes happen to bots and their pollers.
//!
//! This file does not know what the watchdog should make of it.

use agent_deck_watchdog::model::{Declared, SessionId};

use crate::bots::{Bot, folder};
use crate::chance::Chance;
use crate::deck::{Row, Terminal};
use crate::faults::Fault;
use crate::sim::Sim;

const MINUTE: u64 = 60_000;

/// A session owns a bot, and its poller polls.
pub fn born(chance: &mut Chance, sim: &mut Sim, id: &SessionId, number: u64) {
    let mut bot = Bot::at(&format!("bot{number}"));
    let shape = chance.within(0, 9);
    match shape {
        0..=4 => {}
        5 => bot.channel = false,
        6 => {
            bot.declared = Declared::Nothing;
        }
        7 => {
            bot.declared = Declared::Nothing;
            bot.environment = None;
        }
        8 => bot.declared = Declared::Unknown("config.toml:7: broken".to_owned()),
        _ => bot.environment = Some(folder("elsewhere")),
    }
    bot.starts = starts(chance);
    sim.row(id).bot = Some(bot);
    sim.poller_starts(id);
}

fn starts(chance: &mut Chance) -> Option<u64> {
    match chance.within(0, 9) {
        0..=1 => None,
        2 => Some(40_000),
        _ => Some(chance.within(500, 8000)),
    }
}

/// Something happens to one of them.
pub fn happens(chance: &mut Chance, sim: &mut Sim) {
    let owners: Vec<&Row> = sim
        .rows
        .iter()
        .filter(|row| row.bot.is_some() && !row.removed)
        .collect();
    let Some(id) = chance.pick(&owners).map(|row| row.id.clone()) else {
        return;
    };
    let truth = sim.truth();
    match chance.within(0, 99) {
        0..=39 => sim.pollers_end(&id),
        40..=49 => comes_back(sim, &id),
        50..=54 => flaps(chance, sim, &id),
        55..=59 => {
            let of = sim.pollers.iter_mut().filter(|p| p.of == id);
            of.for_each(|poller| poller.connected = Some(false));
        }
        60..=64 => {
            let bot = sim.row(&id).bot.as_mut();
            bot.into_iter().for_each(|bot| bot.stubborn = !bot.stubborn);
        }
        65..=72 => {
            let starts = starts(chance);
            let bot = sim.row(&id).bot.as_mut();
            bot.into_iter().for_each(|bot| bot.starts = starts);
        }
        73..=82 => {
            let faults = [Fault::Hangs, Fault::Fails, Fault::NoProgram];
            let fault = *chance.pick(&faults).unwrap_or(&Fault::Fails);
            let until = truth + chance.within(1000, 10 * MINUTE);
            sim.tell_history(format!("ps fails: {fault:?} until {until}"));
            sim.faults.ps = Some((fault, until));
        }
        83..=86 => sim.faults.offline = truth + chance.within(1000, 20 * MINUTE),
        _ => settings(chance, sim, &id),
    }
}

fn comes_back(sim: &mut Sim, id: &SessionId) {
    let row = sim.row(id);
    if row.agent.is_some() && matches!(row.terminal, Terminal::Stands(_)) {
        sim.poller_starts(id);
    }
}

fn flaps(chance: &mut Chance, sim: &mut Sim, id: &SessionId) {
    for n in 0..chance.within(2, 10) {
        let of = id.clone();
        sim.after(n * 50_000, move |sim| sim.pollers_end(&of));
        let of = id.clone();
        sim.after(n * 50_000 + 25_000, move |sim| comes_back(sim, &of));
    }
}

/// Somebody edits the files; a living agent keeps what it was started with.
fn settings(chance: &mut Chance, sim: &mut Sim, id: &SessionId) {
    let truth = sim.truth();
    let number = sim.rows.iter().position(|row| row.id == *id).unwrap_or(0);
    let declared = match chance.within(0, 5) {
        0 => Declared::Nothing,
        1 => Declared::Unknown("ops.env:3: needs a shell".to_owned()),
        // The folder of another one, perhaps.
        2 => Declared::Folder(folder("bot0")),
        _ => Declared::Folder(folder(&format!("bot{number}"))),
    };
    let token = chance.percent(10).then_some(1);
    sim.tell_history(format!("files of {id} say {declared:?}, token {token:?}"));
    let Some(bot) = sim.row(id).bot.as_mut() else {
        return;
    };
    bot.declared = declared;
    bot.token = token;
    bot.changed = truth;
}

/// Each has its own folder again, and one poller.
pub fn heal(sim: &mut Sim) {
    sim.pollers.clear();
    let truth = sim.truth();
    let ids: Vec<SessionId> = sim.rows.iter().map(|row| row.id.clone()).collect();
    for (number, id) in ids.into_iter().enumerate() {
        let row = sim.row(&id);
        let Some(bot) = row.bot.as_mut() else {
            continue;
        };
        // Nobody looks into a sandbox.
        row.sandboxed = false;
        let healthy = Bot {
            changed: truth,
            ..Bot::at(&format!("bot{number}"))
        };
        *bot = healthy;
        comes_back(sim, &id);
    }
}
