//! How far apart turns are, and when processes have to be searched for.
//!
//! A list is the dearest thing a turn does, and a search through all processes
//! the next one. Both only look for what no hint has revealed: while every hint
//! source lives, lists are further apart and processes are not searched for.
//!
//! This file does not know what a turn does.

use crate::capabilities::restart::is_critical;
use crate::clock::Time;
use crate::model::{Scope, Session, Status};
use crate::watch::{Deck, Watch};
use crate::world::World;

/// When the next turn is due after one that began at that moment, if nothing
/// happens. Asked again whenever something happened, since it falls back to the
/// shorter distance as soon as one hint source is missing.
pub fn next_turn<W: World>(watch: &Watch, world: &mut W, begin: Time) -> Time {
    let longest = watch.rules.pace.unwrap_or(watch.rules.poll);
    let calm = longest > watch.rules.poll && is_calm(watch, world);
    begin.plus(if calm { longest } else { watch.rules.poll })
}

/// Whether no critical session of any profile can die unnoticed.
pub fn is_calm<W: World>(watch: &Watch, world: &mut W) -> bool {
    let mut decks = watch.decks.iter();
    let all = decks.all(|deck| is_noticed(watch, world, deck));
    all && !watch.decks.is_empty()
}

/// Whether none of the critical sessions in this list can die unnoticed: hooks
/// and flags are watched, and so is the process of each that is not at rest. A
/// list that failed since then says nothing of that.
pub fn is_noticed<W: World>(watch: &Watch, world: &mut W, deck: &Deck) -> bool {
    let rows = &deck.rows;
    let mut pids = Vec::new();
    let at_rest = |row: &Session| row.archived || row.status == Status::Stopped;
    for row in rows.iter().filter(|row| is_critical(row, &watch.flags)) {
        let memory = watch.state.sessions.get(&row.id);
        match memory.and_then(|memory| memory.agent) {
            _ if at_rest(row) => {}
            Some(agent) if row.status.is_alive() && !row.runs_in_shell() => {
                pids.push(agent.pid);
            }
            Some(_) | None => return false,
        }
    }
    // Where all are dead, it is the processes that say whether that is true.
    let any_alive = rows.iter().any(|row| row.status.is_alive() && !row.is_ssh);
    let all_dead = !any_alive && rows.iter().any(|row| row.status == Status::Error);
    !all_dead && watch.state.is_listed(&deck.profile) && world.notices(&pids)
}

/// Searches for processes.
pub fn search<W: World>(watch: &mut Watch, world: &mut W) {
    watch.sight = world.processes(Scope::Panes);
    watch.sighted = world.now();
}
