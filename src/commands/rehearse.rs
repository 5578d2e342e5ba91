//! `doctor --rehearse <session>`: everything that comes before a restart or a
//! message, gone through with the clock in hand, and nothing done: would it work
//! tonight?
//!
//! This file does not know how any of it is judged.

use std::time::Duration;

use super::desk::Desk;
use super::doctor::{Check, Doctor, ok, problem, warning};
use super::find::Known;
use super::paper::Light;
use super::rows::critical_by;
use super::status::lifts;
use crate::capabilities::eyes;
use crate::capabilities::look::Finding;
use crate::capabilities::patrol::{is_child, silence};
use crate::clock::{millis, spoken};
use crate::deck::processes::pane_process;
use crate::guard::{self, Purpose, Verdict};
use crate::model::{NoAnswer, Pane, Scope, Session, Shown, Sight, Status};
use crate::world::World;

/// A message begins within this time of the look, or not at all (DESIGN 3.4).
const LOOK_TO_SEND: Duration = Duration::from_millis(250);

/// Goes through it all.
pub fn rehearse(desk: &mut Desk, known: &Known) -> Doctor {
    let differs =
        |remark: &String| warning("settings", remark.clone(), "agent-deck-watchdog doctor");
    let mut checks: Vec<Check> = desk.remarks.iter().map(differs).collect();
    let Some(row) = &known.row else {
        let sentence = format!("agent-deck does not list {}", known.name());
        checks.push(problem("list", sentence, "agent-deck list --json"));
        return Doctor { checks };
    };
    checks.push(listed(desk, row));
    let mut took = Duration::ZERO;
    checks.push(show(desk, row, &mut took));
    let before = took;
    let (check, pane) = look(desk, row, &mut took);
    checks.push(check);
    let reading = took - before;
    checks.push(processes(desk, row, &mut took));
    checks.push(files(desk, row));
    let flags = &desk.watch.flags;
    let mark = critical_by(row, flags);
    let child = is_child(row);
    if mark.is_none() && !child {
        let sentence = "it is neither critical nor a child: nothing would be done about it";
        let mend = format!("agent-deck-watchdog watch {}", row.id);
        checks.push(warning("watched", sentence, mend));
    }
    if let Some(mark) = mark {
        checks.push(ok("watched", format!("critical: {mark}")));
        let red = checks.iter().find(|check| check.light == Light::Red);
        let broken = red.map(|check| check.name);
        checks.push(match broken {
            Some(name) => {
                let sentence = format!("it could not be restarted, see {name}");
                problem("restart", sentence, "agent-deck-watchdog doctor")
            }
            None => restart(desk, row, took),
        });
    }
    if child {
        checks.push(message(desk, row, pane, reading));
    }
    Doctor { checks }
}

fn ms(span: Duration) -> String {
    format!("in {} ms", millis(span))
}

/// Runs one step, and adds what it took.
fn timed<T>(
    desk: &mut Desk,
    took: &mut Duration,
    step: impl FnOnce(&mut Desk) -> T,
) -> (T, String) {
    let begin = desk.machine.now();
    let done = step(desk);
    let span = desk.machine.now().since(begin);
    *took += span;
    (done, ms(span))
}

fn listed(desk: &mut Desk, row: &Session) -> Check {
    let mut took = Duration::ZERO;
    let (rows, span) = timed(desk, &mut took, |desk| desk.machine.list(&row.profile));
    match rows {
        Ok(rows) => ok(
            "list",
            format!(
                "listed as {} among {} rows, {span}",
                row.status.word(),
                rows.len()
            ),
        ),
        Err(why) => problem(
            "list",
            format!("{why}, {span}"),
            "agent-deck-watchdog doctor",
        ),
    }
}

fn show(desk: &mut Desk, row: &Session, took: &mut Duration) -> Check {
    let (shown, span) = timed(desk, took, |desk| desk.machine.show(&row.profile, &row.id));
    let begun = |shown: &Shown| !shown.agent_session.is_empty();
    match shown {
        Ok(shown) if shown.auth_hold => problem(
            "show",
            format!("agent-deck holds it for a login problem, {span}"),
            format!("agent-deck -p {} session attach {}", row.profile, row.id),
        ),
        Ok(shown) if begun(&shown) => ok(
            "show",
            format!(
                "{}, its agent has a session id, {span}",
                shown.status.word()
            ),
        ),
        Ok(shown) => ok(
            "show",
            format!("{}, no agent session id, {span}", shown.status.word()),
        ),
        Err(why) => problem(
            "show",
            format!("{why}, {span}"),
            "agent-deck-watchdog doctor",
        ),
    }
}

fn look(desk: &mut Desk, row: &Session, took: &mut Duration) -> (Check, Result<Pane, NoAnswer>) {
    let (pane, span) = timed(desk, took, |desk| desk.machine.pane(&row.profile, &row.id));
    let check = match &pane {
        Ok(Pane::Stands(_)) => ok("terminal", format!("stands, read {span}")),
        Ok(Pane::Gone) if row.status == Status::Error => ok("terminal", format!("gone, {span}")),
        Ok(Pane::Gone) => warning(
            "terminal",
            format!(
                "gone, although it is listed as {}, {span}",
                row.status.word()
            ),
            "agent-deck-watchdog doctor",
        ),
        Err(why) => problem(
            "terminal",
            format!("{why}, {span}"),
            "agent-deck-watchdog doctor",
        ),
    };
    (check, pane)
}

fn processes(desk: &mut Desk, row: &Session, took: &mut Duration) -> Check {
    let (sight, span) = timed(desk, took, |desk| desk.machine.processes(Scope::All));
    let rows = desk.watch.rows(&row.profile);
    let mend = "agent-deck-watchdog doctor";
    if let Some(why) = eyes::wrong_place(rows, desk.now, &sight) {
        return problem("processes", why, mend);
    }
    if let Some(why) = eyes::blind(&row.profile, rows, &sight) {
        return warning(
            "processes",
            format!("{why}: deaths are found by polling"),
            mend,
        );
    }
    match &sight {
        Sight::Blind(why) => warning("processes", why.clone(), mend),
        Sight::Seen(table) => match pane_process(table, &row.id) {
            Some(agent) => ok(
                "processes",
                format!(
                    "its agent is process {}, {} seen {span}",
                    agent.pid,
                    table.len()
                ),
            ),
            None => ok(
                "processes",
                format!("no process of it, {} seen {span}", table.len()),
            ),
        },
    }
}

fn files(desk: &mut Desk, row: &Session) -> Check {
    let traces = desk.machine.traces(&row.profile, &row.id);
    if let Some(why) = traces.unreadable {
        return problem("files", why, "agent-deck-watchdog doctor");
    }
    if let Some(pid) = traces.spawn_lock {
        let sentence = format!("process {pid} starts it at the moment");
        return warning("files", sentence, format!("ps -p {pid}"));
    }
    if traces.database_busy {
        let sentence = "somebody writes the database at the moment: a restart would wait";
        return warning("files", sentence, "agent-deck-watchdog doctor");
    }
    match traces.hook {
        Some(hook) => ok("files", format!("its last hook record is {}", hook.event)),
        None => ok(
            "files",
            "no hook record of it: its end is found by its process",
        ),
    }
}

fn restart(desk: &mut Desk, row: &Session, took: Duration) -> Check {
    let rests = match row.status {
        _ if row.archived => Some("it is archived: it would be left alone"),
        Status::Stopped => Some("it was stopped on purpose: it would be left alone"),
        _ => None,
    };
    if let Some(why) = rests {
        return warning("restart", why, "agent-deck-watchdog status");
    }
    let dead = row.status == Status::Error;
    if dead {
        desk.examine(row);
        if let Some(Finding::Leave(refusal)) = desk.finding(&row.id) {
            let sentence = format!("it would be left alone: {}", refusal.sentence);
            return warning("restart", sentence, "agent-deck-watchdog status");
        }
    }
    let around = desk.watch.surroundings();
    let now = desk.now;
    let verdict = guard::verdict(&desk.watch.state, &around, &row.id, Purpose::Dead, now);
    if !verdict.agrees() {
        return refused("restart", &verdict, desk);
    }
    let when = if dead {
        "it is dead, and"
    } else {
        "if it died now,"
    };
    let sentence = format!(
        "{when} agent-deck session restart {} would begin about {} ms after it is noticed",
        row.id,
        millis(took)
    );
    ok("restart", sentence)
}

/// The rules that would hold it back.
fn refused(name: &'static str, verdict: &Verdict, desk: &Desk) -> Check {
    let rules: Vec<String> = verdict
        .refusals()
        .map(|a| format!("{} ({}{})", a.rule.word(), a.numbers, lifts(a, desk.now)))
        .collect();
    let sentence = format!("it would wait for {}", rules.join(", "));
    warning(name, sentence, "agent-deck-watchdog status")
}

fn message(
    desk: &mut Desk,
    row: &Session,
    pane: Result<Pane, NoAnswer>,
    reading: Duration,
) -> Check {
    let around = desk.watch.surroundings();
    let verdict = guard::nudge_verdict(&desk.watch.state, &around, row, desk.now);
    let inspect = format!("agent-deck -p {} session attach {}", row.profile, row.id);
    match pane {
        Ok(Pane::Stands(screen)) if screen.decision => {
            let sentence = format!(
                "it would be told, not asked: {} is on its screen",
                screen.asks
            );
            return warning("message", sentence, inspect);
        }
        Ok(Pane::Stands(screen)) => {
            if let Some(why) = silence(row, &screen) {
                let sentence = format!("it would be told, not asked: {why}");
                return warning("message", sentence, inspect);
            }
        }
        Ok(Pane::Gone) | Err(_) => {
            return warning("message", "it could not be asked: no terminal", inspect);
        }
    }
    if !verdict.agrees() {
        return refused("message", &verdict, desk);
    }
    if reading > LOOK_TO_SEND {
        let sentence = format!(
            "its input is free, but reading its screen took {} ms: more than {} ms, and nothing \
             is typed",
            millis(reading),
            millis(LOOK_TO_SEND)
        );
        return warning("message", sentence, "uptime");
    }
    let threshold = spoken(desk.watch.rules.threshold);
    ok(
        "message",
        format!("its input is free: asked after {threshold} on the same screen"),
    )
}
