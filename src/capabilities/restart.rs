//! Capability 1: is this critical session dead for certain (DESIGN 3.2)?
//!
//! [`judge`] is asked again and again with what has been looked at so far, and
//! says what to look at next, why to leave it alone, or that it is dead. Cheap
//! looks come first.
//!
//! This file does not know budgets (`guard.rs`), nor how one looks.

use std::time::Duration;

use super::cause::{Cause, Refusal};
use super::look::{Finding, FirstLook, Look};
use crate::clock::{Time, spoken};
use crate::deck::processes::{
    alive_beside_shell, bare_shell, deck_commands, maybe_alive, pane_process, server_of, stops,
};
use crate::model::{Flags, Pane, Process, Session, Shown, Sight, Status, Substate, Traces};
use crate::state::State;

/// A session younger than this is left alone (the manual: 60 s).
pub const YOUNG: Duration = Duration::from_secs(60);
/// Between two looks that have to agree while the terminal UI runs. DESIGN 3.2
/// asks for one second at least; but when another process has touched the
/// database, the interface drops what it was saving, and a stop is only stored
/// by a later sweep: seen after 15 s.
pub const UI_CONFIRM: Duration = Duration::from_secs(20);
/// While somebody writes the database it is looked at again after this: nearly
/// always a matter of milliseconds.
const BUSY_AGAIN: Duration = Duration::from_millis(300);
/// Between two looks at a pane that stands (DESIGN 3.2).
const PANE_CONFIRM: Duration = Duration::from_secs(2);
/// A first look older than this is no longer the first of two.
const CONFIRM_MOST: Duration = Duration::from_secs(60);

/// Whether a session is critical: conductor-like, or opted in by a flag file.
pub fn is_critical(session: &Session, flags: &Flags) -> bool {
    session.is_conductor_like() || flags.autorestart.contains(&session.id)
}

/// The critical rows of a list that read dead.
pub fn wishes<'a>(rows: &'a [Session], flags: &'a Flags) -> impl Iterator<Item = &'a Session> {
    rows.iter()
        .filter(|row| row.status == Status::Error && !row.archived && is_critical(row, flags))
}

/// The place of a session in the queue, smaller first: conductors, then the one
/// that has waited longest since it died or was last tried.
pub fn turn_order(row: &Session, state: &State) -> (bool, Time, String) {
    let memory = state.sessions.get(&row.id);
    let waits_since = memory
        .map(|m| m.last_restart().max(m.dead_since).unwrap_or_default())
        .unwrap_or_default();
    (!row.is_conductor_like(), waits_since, row.id.to_string())
}

/// Judges what has been looked at so far.
pub fn judge(look: &Look, now: Time) -> Finding {
    if let Some(refusal) = outside(look, look.before, now) {
        return Finding::Leave(refusal);
    }
    let Some(shown) = &look.shown else {
        return Finding::AskShow;
    };
    let shown = match shown {
        Ok(shown) => shown,
        Err(why) => return leave(Cause::NoAnswer, format!("session show: {why}")),
    };
    if let Some(refusal) = listed(look, shown) {
        return Finding::Leave(refusal);
    }
    let pane = match &look.pane {
        None if needs_no_pane(look, shown) => &Pane::Gone,
        None => return Finding::AskPane,
        Some(Ok(pane)) => pane,
        Some(Err(why)) => return leave(Cause::NoAnswer, format!("session output --pane: {why}")),
    };
    if let Some(refusal) = held(shown, pane) {
        return Finding::Leave(refusal);
    }
    let Some(after) = &look.after else {
        return Finding::AskProcesses;
    };
    if let Some(refusal) = outside(look, after, now).or_else(|| alive(look, shown, pane, after)) {
        return Finding::Leave(refusal);
    }
    if let Some(refusal) = eyes(look, after) {
        return Finding::Leave(refusal);
    }
    confirmed(look, shown, pane, after, now)
}

fn leave(cause: Cause, sentence: String) -> Finding {
    Finding::Leave(refuse(cause, sentence, None))
}

fn refuse(cause: Cause, sentence: String, again: Option<Time>) -> Refusal {
    Refusal {
        cause,
        sentence,
        again,
    }
}

/// What can be said without asking agent-deck about the session.
fn outside(look: &Look, sight: &Sight, now: Time) -> Option<Refusal> {
    if look.row.archived {
        return Some(refuse(Cause::Archived, "it is archived".to_owned(), None));
    }
    let Sight::Seen(table) = sight else {
        return young(look, now).or_else(|| locked(&look.traces, now));
    };
    // Whether a shell in its terminal is a bare one is judged later, with what
    // agent-deck says of it; any other living process means hands off.
    if let Some((pid, why)) = alive_beside_shell(table, &look.row.id, "") {
        return Some(living(pid, &why));
    }
    let refusal = young(look, now).or_else(|| locked(&look.traces, now));
    refusal.or_else(|| others(look.row, &look.own, table, now))
}

/// Other programs are at it. `own` are our own commands that still run.
pub(super) fn others(row: &Session, own: &[u32], table: &[Process], now: Time) -> Option<Refusal> {
    let activity = deck_commands(table);
    if let Some(pid) = activity.watchdog {
        let sentence = format!("agent-deck's Python watchdog runs too (process {pid}); end one");
        return Some(refuse(Cause::OtherWatchdog, sentence, None));
    }
    if let Some(pid) = stops(table, &row.id, &row.title) {
        let sentence = format!("agent-deck stops it (process {pid})");
        return Some(refuse(
            Cause::BeingStopped,
            sentence,
            Some(now.plus(PANE_CONFIRM)),
        ));
    }
    let parent = |pid| table.iter().find(|p| p.pid == pid).map_or(0, |p| p.parent);
    let ours = |pid: u32| own.contains(&pid) || own.contains(&parent(pid));
    let (pid, verb) = activity.changing.into_iter().find(|(pid, _)| !ours(*pid))?;
    let sentence = format!("agent-deck {verb} runs (process {pid})");
    let again = Some(now.plus(PANE_CONFIRM));
    Some(refuse(Cause::OtherCommand, sentence, again))
}

/// Somebody starts it or writes the database at the moment, or that cannot be
/// looked at.
pub(super) fn locked(traces: &Traces, now: Time) -> Option<Refusal> {
    if let Some(why) = &traces.unreadable {
        let sentence = format!("agent-deck's files about it cannot be looked at: {why}");
        return Some(refuse(Cause::NoAnswer, sentence, None));
    }
    if traces.database_busy {
        let sentence =
            "somebody writes the profile's database: a stop may wait to be saved there, \
                        and a restart could not be"
                .to_owned();
        return Some(refuse(
            Cause::DatabaseBusy,
            sentence,
            Some(now.plus(BUSY_AGAIN)),
        ));
    }
    let pid = traces.spawn_lock?;
    let sentence = format!("process {pid} holds its spawn lock");
    Some(refuse(
        Cause::SpawnLock,
        sentence,
        Some(now.plus(PANE_CONFIRM)),
    ))
}

fn living(pid: u32, why: &str) -> Refusal {
    let sentence = format!("it reads dead, but process {pid} may be its agent: {why}");
    refuse(Cause::MaybeAlive, sentence, None)
}

fn young(look: &Look, now: Time) -> Option<Refusal> {
    // A stamp that lies ahead was written before the clock was set back, nobody
    // knows how long ago: not after we saw it dead.
    let ahead = look.memory.dead_since.unwrap_or(now);
    let started = look.memory.agent.map(|agent| agent.started);
    let (at, what) = last_birth(look.row, &look.traces, started, ahead, now)?;
    (now.since(at) < YOUNG).then(|| {
        let sentence = format!(
            "it was {what} {} ago, less than a minute",
            spoken(now.since(at))
        );
        refuse(Cause::Young, sentence, Some(at.plus(YOUNG)))
    })
}

/// When a session last began to live, and how that is known. A stamp that lies
/// ahead counts as `ahead`.
pub(super) fn last_birth(
    row: &Session,
    traces: &Traces,
    agent: Option<Time>,
    ahead: Time,
    now: Time,
) -> Option<(Time, &'static str)> {
    let hook = traces.hook.as_ref();
    let started = hook.filter(|hook| hook.event == "SessionStart");
    let births = [
        ("created", row.created),
        ("spawned", traces.spawned),
        ("started", started.map(|hook| hook.at)),
        ("started", agent),
    ];
    births
        .into_iter()
        .filter_map(|(what, at)| Some((at.map(|at| if at > now { ahead } else { at })?, what)))
        .max()
}

/// What `session show` says against a restart.
fn listed(look: &Look, shown: &Shown) -> Option<Refusal> {
    let status = shown.status.word();
    match shown.status {
        Status::Error if was_stopped(look) => {
            let sentence = "it was stopped, and has not lived since".to_owned();
            return Some(refuse(Cause::Stopped, sentence, None));
        }
        Status::Error => {}
        Status::Stopped => {
            return Some(refuse(
                Cause::Stopped,
                "it was stopped on purpose".to_owned(),
                None,
            ));
        }
        Status::Running
        | Status::Waiting
        | Status::Idle
        | Status::Queued
        | Status::Starting
        | Status::Unfamiliar(_) => {
            let sentence = format!("session show says {status}");
            return Some(refuse(Cause::NotDead, sentence, None));
        }
    }
    if shown.auth_hold {
        let sentence = "agent-deck holds it for a login problem; log in again".to_owned();
        return Some(refuse(Cause::AuthHold, sentence, None));
    }
    let ran = look.memory.ran
        || !shown.agent_session.is_empty()
        || look.traces.hook.is_some()
        || look.traces.spawned.is_some();
    (!ran).then(|| {
        let sentence = "it was added and never ran, as far as can be seen".to_owned();
        refuse(Cause::NeverRan, sentence, None)
    })
}

/// Whether it was seen to be stopped, and nobody has started it since.
fn was_stopped(look: &Look) -> bool {
    let stopped = look.memory.stopped_since;
    stopped.is_some_and(|at| look.traces.spawned.is_none_or(|spawned| spawned <= at))
}

/// Whether its terminal does not matter: the end of its process was witnessed,
/// and no banner over a terminal that stands could hold it back.
fn needs_no_pane(look: &Look, shown: &Shown) -> bool {
    look.witnessed && ended(look, look.before) && shown.substate != Some(Substate::Auth401)
}

/// A login problem over a pane that stands; once the pane is gone other
/// substates are ignored.
fn held(shown: &Shown, pane: &Pane) -> Option<Refusal> {
    match (pane, shown.substate) {
        (Pane::Stands(_), Some(Substate::Auth401)) => {
            let sentence = "its screen shows a login problem; log in again".to_owned();
            Some(refuse(Cause::AuthHold, sentence, None))
        }
        (Pane::Stands(_) | Pane::Gone, _) => None,
    }
}

/// Whether its agent may be alive, now that the agent's own session id is known.
fn alive(look: &Look, shown: &Shown, pane: &Pane, sight: &Sight) -> Option<Refusal> {
    let Sight::Seen(table) = sight else {
        return None;
    };
    let alive = if is_bare_shell(look, shown, pane, sight) {
        alive_beside_shell(table, &look.row.id, &shown.agent_session)
    } else {
        maybe_alive(table, &look.row.id, &shown.agent_session)
    };
    alive.map(|(pid, why)| living(pid, &why))
}

/// Whether the terminal holds a bare shell where an agent should be.
fn is_bare_shell(look: &Look, shown: &Shown, pane: &Pane, sight: &Sight) -> bool {
    let Sight::Seen(table) = sight else {
        return false;
    };
    let command = if shown.command.is_empty() {
        &look.row.command
    } else {
        &shown.command
    };
    matches!(pane, Pane::Stands(_))
        && shown.tool == "shell"
        && !command.is_empty()
        && !look.row.is_ssh
        && !look.traces.sandboxed
        && bare_shell(table, &look.row.id).is_some()
}

/// Whether what is seen from here proves anything.
fn eyes(look: &Look, sight: &Sight) -> Option<Refusal> {
    if let Some(why) = &look.wrong_place {
        return Some(refuse(Cause::WrongEyes, why.clone(), None));
    }
    let why = match sight {
        Sight::Blind(why) => why,
        Sight::Seen(_) => look.blind.as_ref()?,
    };
    (!look.life_seen).then(|| {
        let sentence = format!(
            "{why}, and no session was seen alive from here since boot: perhaps the sessions \
             live under another user, HOME or TMUX_TMPDIR"
        );
        refuse(Cause::WrongEyes, sentence, None)
    })
}

/// The last step: the terminal is gone, or two looks agree that nobody is in it.
fn confirmed(look: &Look, shown: &Shown, pane: &Pane, sight: &Sight, now: Time) -> Finding {
    // Where processes cannot be seen, a user interface may be running.
    let ui = match sight {
        Sight::Seen(table) => !deck_commands(table).ui.is_empty(),
        Sight::Blind(_) => true,
    };
    let evidence = match pane {
        Pane::Gone if look.pane.is_none() => {
            "error in show, the end of its process was seen and no process of it lives".to_owned()
        }
        Pane::Gone => "error in show, its terminal is gone and no process of it lives".to_owned(),
        Pane::Stands(_) if is_bare_shell(look, shown, pane, sight) => {
            "error in show, its terminal holds a bare shell in two looks".to_owned()
        }
        Pane::Stands(_) if look.witnessed && ended(look, sight) => {
            "error in show, the end of its process was seen".to_owned()
        }
        Pane::Stands(_) if ended(look, sight) => {
            "error in show, its terminal stands still in two looks and no process of it lives"
                .to_owned()
        }
        Pane::Stands(_) => {
            let sentence = "it reads dead, but its terminal stands".to_owned();
            return leave(Cause::TerminalStands, sentence);
        }
    };
    let wait = match pane {
        Pane::Stands(_) if !look.witnessed || is_bare_shell(look, shown, pane, sight) => {
            Some(if ui { UI_CONFIRM } else { PANE_CONFIRM })
        }
        Pane::Stands(_) | Pane::Gone => ui.then_some(UI_CONFIRM),
    };
    let (at, pane) = (now, pane.clone());
    let finding = match wait {
        Some(wait) => second_look(look, FirstLook { at, pane }, wait, evidence),
        None => Finding::Dead(evidence),
    };
    match finding {
        Finding::Dead(evidence) if ui || look.stale => still_listed(look, evidence),
        other => other,
    }
}

/// `show` has no word for archived, and the user interface archives before it
/// stops: a list of this moment has the last word.
fn still_listed(look: &Look, evidence: String) -> Finding {
    match &look.listed {
        None => Finding::AskList,
        Some(Err(why)) => leave(Cause::NoAnswer, format!("list: {why}")),
        Some(Ok(row)) if row.archived => leave(Cause::Archived, "it is archived".to_owned()),
        Some(Ok(row)) if row.status == Status::Stopped => {
            leave(Cause::Stopped, "it was stopped on purpose".to_owned())
        }
        Some(Ok(row)) if row.status != Status::Error => {
            leave(Cause::NotDead, format!("list says {}", row.status.word()))
        }
        Some(Ok(_)) => Finding::Dead(evidence),
    }
}

/// Two looks `wait` apart have to agree.
fn second_look(look: &Look, this: FirstLook, wait: Duration, evidence: String) -> Finding {
    let now = this.at;
    let Some(first) = look
        .first
        .as_ref()
        .filter(|f| now.since(f.at) < CONFIRM_MOST)
    else {
        return Finding::LookAgain(now.plus(wait), this);
    };
    if first.pane != this.pane {
        let sentence = "it reads dead, but its terminal changed between two looks".to_owned();
        return leave(Cause::TerminalStands, sentence);
    }
    if now.since(first.at) < wait {
        return Finding::LookAgain(first.at.plus(wait), first.clone());
    }
    Finding::Dead(evidence)
}

/// Whether somebody's terminal holds a process that does not let itself be looked into.
fn hides_a_pane(table: &[Process]) -> bool {
    table
        .iter()
        .any(|p| p.opaque && server_of(table, p).is_some())
}

/// Whether no pane process of it is to be found, where processes can be seen.
fn ended(look: &Look, sight: &Sight) -> bool {
    match sight {
        Sight::Seen(table) if look.blind.is_none() && !hides_a_pane(table) => {
            pane_process(table, &look.row.id).is_none()
        }
        // What cannot be looked into proves nothing.
        Sight::Seen(_) | Sight::Blind(_) => look.witnessed,
    }
}

#[cfg(test)]
#[path = "restart_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "restart_confirm_tests.rs"]
mod confirm_tests;
