//! `doctor --rehearse <session>`: everything that comes before a restart or a
//! message, gone through with the clock in hand, and nothing done: would it work
//! tonight?
//!
//! This file does not know how any of it is judged.

use std::fmt::Arguments;
use std::time::Duration;

use super::desk::Desk;
use super::doctor::{Doctor, Found};
use super::find::Known;
use super::paper::add;
use super::rows::critical_by;
use super::status::lifts;
use crate::capabilities::eyes;
use crate::capabilities::look::Finding;
use crate::capabilities::patrol::{is_child, silence};
use crate::clock::{Time, millis, spoken};
use crate::deck::processes::pane_process;
use crate::guard::{self, Purpose, Verdict};
use crate::model::{NoAnswer, Pane, Scope, Session, Sight, Status};
use crate::world::World;

/// A message begins within this time of the look, or not at all (DESIGN 3.4).
const LOOK_TO_SEND: Duration = Duration::from_millis(250);

/// A walk through it all.
struct Walk<'a> {
    desk: &'a mut Desk,
    row: &'a Session,
    found: Found,
    /// What the steps took so far, as far as a restart takes them.
    took: Duration,
}

/// Goes through it all.
pub fn rehearse(desk: &mut Desk, known: &Known) -> Doctor {
    let found = Found::default();
    for remark in &desk.remarks {
        let doctor = format_args!("agent-deck-watchdog doctor");
        found.warning("settings", format_args!("{remark}"), doctor);
    }
    let Some(row) = &known.row else {
        let sentence = format_args!("agent-deck does not list {}", known.name());
        found.problem("list", sentence, format_args!("agent-deck list --json"));
        return found.all();
    };
    let mut walk = Walk {
        desk,
        row,
        found,
        took: Duration::ZERO,
    };
    walk.listed();
    // No restart begins with a list.
    walk.took = Duration::ZERO;
    walk.show();
    let before = walk.took;
    let pane = walk.look();
    let reading = walk.took - before;
    walk.processes();
    walk.files();
    let mark = critical_by(row, &walk.desk.watch.flags);
    let child = is_child(row);
    if mark.is_none() && !child {
        walk.found.warning(
            "watched",
            format_args!("it is neither critical nor a child: nothing would be done about it"),
            format_args!("agent-deck-watchdog watch {}", row.id),
        );
    }
    if let Some(mark) = mark {
        walk.found.ok("watched", format_args!("critical: {mark}"));
        match walk.found.red(&|_| true) {
            Some(name) => walk.broken(
                "restart",
                format_args!("it could not be restarted, see {name}"),
            ),
            None => walk.restart(),
        }
    }
    if child {
        walk.message(pane, reading);
    }
    walk.found.all()
}

impl Walk<'_> {
    /// What a step took that began then, in words. It counts.
    fn since(&mut self, begin: Time) -> String {
        let span = self.desk.machine.now().since(begin);
        self.took += span;
        format!("in {} ms", millis(span))
    }

    /// Something that `doctor` knows more of.
    fn broken(&self, name: &'static str, sentence: Arguments) {
        let doctor = format_args!("agent-deck-watchdog doctor");
        self.found.problem(name, sentence, doctor);
    }

    /// The same, when it works all the same.
    fn odd(&self, name: &'static str, sentence: Arguments) {
        let doctor = format_args!("agent-deck-watchdog doctor");
        self.found.warning(name, sentence, doctor);
    }

    /// It would be left alone.
    fn rests(&self, name: &'static str, sentence: Arguments) {
        let status = format_args!("agent-deck-watchdog status");
        self.found.warning(name, sentence, status);
    }

    /// A command that shows its terminal.
    fn attach(&self) -> String {
        let (profile, id) = (&self.row.profile, &self.row.id);
        format!("agent-deck -p {profile} session attach {id}")
    }

    fn listed(&mut self) {
        const NAME: &str = "list";
        let begin = self.desk.machine.now();
        let rows = self.desk.machine.list(&self.row.profile);
        let span = self.since(begin);
        match rows {
            Ok(rows) => {
                let (word, count) = (self.row.status.word(), rows.len());
                let sentence = format_args!("listed as {word} among {count} rows, {span}");
                self.found.ok(NAME, sentence);
            }
            Err(why) => self.broken(NAME, format_args!("{why}, {span}")),
        }
    }

    fn show(&mut self) {
        const NAME: &str = "show";
        let begin = self.desk.machine.now();
        let shown = self.desk.machine.show(&self.row.profile, &self.row.id);
        let span = self.since(begin);
        match shown {
            Ok(shown) if shown.auth_hold => self.found.problem(
                NAME,
                format_args!("agent-deck holds it for a login problem, {span}"),
                format_args!("{}", self.attach()),
            ),
            Ok(shown) => {
                let what = match shown.agent_session.is_empty() {
                    true => "no agent session id",
                    false => "its agent has a session id",
                };
                let word = shown.status.word();
                self.found.ok(NAME, format_args!("{word}, {what}, {span}"));
            }
            Err(why) => self.broken(NAME, format_args!("{why}, {span}")),
        }
    }

    fn look(&mut self) -> Result<Pane, NoAnswer> {
        const NAME: &str = "terminal";
        let begin = self.desk.machine.now();
        let pane = self.desk.machine.pane(&self.row.profile, &self.row.id);
        let span = self.since(begin);
        match &pane {
            Ok(Pane::Stands(_)) => self.found.ok(NAME, format_args!("stands, read {span}")),
            Ok(Pane::Gone) if self.row.status == Status::Error => {
                self.found.ok(NAME, format_args!("gone, {span}"));
            }
            Ok(Pane::Gone) => {
                let word = self.row.status.word();
                let sentence = format_args!("gone, although it is listed as {word}, {span}");
                self.odd(NAME, sentence);
            }
            Err(why) => self.broken(NAME, format_args!("{why}, {span}")),
        }
        pane
    }

    fn processes(&mut self) {
        const NAME: &str = "processes";
        let begin = self.desk.machine.now();
        let sight = self.desk.machine.processes(Scope::All);
        let span = self.since(begin);
        let (row, now) = (self.row, self.desk.now);
        let rows = self.desk.watch.rows(&row.profile);
        if let Some(why) = eyes::wrong_place(rows, now, &sight) {
            return self.broken(NAME, format_args!("{why}"));
        }
        if let Some(why) = eyes::blind(&row.profile, rows, &sight) {
            return self.odd(NAME, format_args!("{why}: deaths are found by polling"));
        }
        let table = match &sight {
            Sight::Seen(table) => table,
            Sight::Blind(why) => return self.odd(NAME, format_args!("{why}")),
        };
        let agent = match pane_process(table, &row.id) {
            Some(agent) => format!("its agent is process {}", agent.pid),
            None => "no process of it".to_owned(),
        };
        let sentence = format_args!("{agent}, {} seen {span}", table.len());
        self.found.ok(NAME, sentence);
    }

    fn files(&mut self) {
        const NAME: &str = "files";
        let traces = self.desk.machine.traces(&self.row.profile, &self.row.id);
        if let Some(why) = traces.unreadable {
            self.broken(NAME, format_args!("{why}"));
        } else if let Some(pid) = traces.spawn_lock {
            let sentence = format_args!("process {pid} starts it at the moment");
            self.found
                .warning(NAME, sentence, format_args!("ps -p {pid}"));
        } else if traces.database_busy {
            self.odd(
                NAME,
                format_args!("somebody writes the database at the moment: a restart would wait"),
            );
        } else if let Some(hook) = traces.hook {
            let sentence = format_args!("its last hook record is {}", hook.event);
            self.found.ok(NAME, sentence);
        } else {
            self.found.ok(
                NAME,
                format_args!("no hook record of it: its end is found by its process"),
            );
        }
    }

    fn restart(&mut self) {
        const NAME: &str = "restart";
        let row = self.row;
        let rests = match row.status {
            _ if row.archived => "it is archived",
            Status::Stopped => "it was stopped on purpose",
            _ => "",
        };
        if !rests.is_empty() {
            return self.rests(NAME, format_args!("{rests}: it would be left alone"));
        }
        let dead = row.status == Status::Error;
        if dead {
            self.desk.examine(row);
            if let Some(Finding::Leave(refusal)) = self.desk.finding(&row.id) {
                let why = &refusal.sentence;
                return self.rests(NAME, format_args!("it would be left alone: {why}"));
            }
        }
        let watch = &self.desk.watch;
        let (around, now) = (watch.surroundings(), self.desk.now);
        let verdict = guard::verdict(&watch.state, &around, &row.id, Purpose::Dead, now);
        if !verdict.agrees() {
            return self.refused(NAME, &verdict);
        }
        let when = match dead {
            true => "it is dead, and",
            false => "if it died now,",
        };
        let sentence = format_args!(
            "{when} agent-deck session restart {} would begin about {} ms after it is noticed",
            row.id,
            millis(self.took)
        );
        self.found.ok(NAME, sentence);
    }

    /// The rules that would hold it back.
    fn refused(&self, name: &'static str, verdict: &Verdict) {
        let mut rules = String::new();
        for answer in verdict.refusals() {
            let between = if rules.is_empty() { "" } else { ", " };
            let (word, numbers) = (answer.rule.word(), &answer.numbers);
            let lifts = lifts(answer, self.desk.now);
            add(
                &mut rules,
                format_args!("{between}{word} ({numbers}{lifts})"),
            );
        }
        self.rests(name, format_args!("it would wait for {rules}"));
    }

    fn message(&self, pane: Result<Pane, NoAnswer>, reading: Duration) {
        const NAME: &str = "message";
        let (row, watch) = (self.row, &self.desk.watch);
        let told = match &pane {
            Ok(Pane::Stands(screen)) if screen.decision => {
                format!(
                    "it would be told, not asked: {} is on its screen",
                    screen.asks
                )
            }
            Ok(Pane::Stands(screen)) => match silence(row, screen) {
                Some(why) => format!("it would be told, not asked: {why}"),
                None => String::new(),
            },
            Ok(Pane::Gone) | Err(_) => "it could not be asked: no terminal".to_owned(),
        };
        if !told.is_empty() {
            let attach = format_args!("{}", self.attach());
            return self.found.warning(NAME, format_args!("{told}"), attach);
        }
        let (around, now) = (watch.surroundings(), self.desk.now);
        let verdict = guard::nudge_verdict(&watch.state, &around, row, now);
        if !verdict.agrees() {
            return self.refused(NAME, &verdict);
        }
        let threshold = spoken(watch.rules.threshold);
        if reading > LOOK_TO_SEND {
            self.found.warning(
                NAME,
                format_args!(
                    "its input is free, but reading its screen took {} ms: more than {} ms, and \
                     nothing is typed",
                    millis(reading),
                    millis(LOOK_TO_SEND)
                ),
                format_args!("uptime"),
            );
        } else {
            let sentence =
                format_args!("its input is free: asked after {threshold} on the same screen");
            self.found.ok(NAME, sentence);
        }
    }
}
