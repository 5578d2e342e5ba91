//! `explain`: why the watchdog did, or did not, act on one session, and what
//! would have to change for it to act.
//!
//! The rules answer for themselves; this file only puts their answers in a row.

use serde_json::Value;

use super::desk::Desk;
use super::find::Known;
use super::paper::{Light, Paper, short, wrapped};
use super::rows::{Row, critical_by, row};
use super::status::{json_row, last, lifts};
use super::{Failed, Report};
use crate::capabilities::look::Finding;
use crate::capabilities::patrol::{is_child, silence};
use crate::cli::Exit;
use crate::clock::{Time, spoken};
use crate::guard::Verdict;
use crate::host::logs::escape;
use crate::json::{object, put};
use crate::model::{Pane, Session, Status};
use crate::telling;
use crate::world::World;

/// Columns before a sentence.
const INDENT: usize = 13;

/// One session, explained.
pub struct Explained<'a> {
    desk: &'a Desk,
    row: Row<'a>,
    /// Why nothing may be typed into it, where it is a child that waits.
    silence: Option<Result<&'static str, String>>,
}

/// Looks at one session.
///
/// # Errors
/// When nothing is known of it but its id.
pub fn explain<'a>(desk: &'a mut Desk, known: &'a Known) -> Result<Explained<'a>, Failed> {
    let mut silence = None;
    if let Some(row) = &known.row {
        let critical = critical_by(row, &desk.watch.flags).is_some();
        if critical && row.status == Status::Error && !row.archived {
            desk.examine(row);
        }
        if row.status == Status::Waiting && is_child(row) {
            silence = Some(why_silent(desk, row));
        }
    }
    let Some(profile) = &known.profile else {
        return Err(Failed {
            exit: Exit::Usage,
            why: format!("nothing is known of {}", known.id),
        });
    };
    let desk: &Desk = desk;
    let listed = known.row.as_ref();
    let row = row(
        &desk.watch,
        &known.id,
        &known.title,
        profile,
        listed,
        desk.now,
    );
    Ok(Explained { desk, row, silence })
}

/// Why nothing may be typed into a child: an empty word when its input is free.
fn why_silent(desk: &mut Desk, row: &Session) -> Result<&'static str, String> {
    match desk.machine.pane(&row.profile, &row.id) {
        Ok(Pane::Stands(screen)) if screen.decision => Ok(screen.asks),
        Ok(Pane::Stands(screen)) => Ok(silence(row, &screen).unwrap_or("")),
        Ok(Pane::Gone) => Ok("a terminal that is gone"),
        Err(why) => Err(why.to_string()),
    }
}

impl Explained<'_> {
    /// Whether it is watched, and by which rule.
    fn watched(&self) -> Vec<String> {
        let mut said = Vec::new();
        let flags = &self.desk.watch.flags;
        let mark = self
            .row
            .listed
            .and_then(|listed| critical_by(listed, flags));
        match mark {
            Some(mark) => said.push(format!("critical, since {mark}: restarted when it dies")),
            None if self.row.critical => said.push("critical when it was last listed".to_owned()),
            None => said.push("not critical: never restarted".to_owned()),
        }
        if let Some(owner) = self.row.owner {
            let since = |at: Option<Time>, what: &str| {
                at.map(|at| format!("{what} for {}", spoken(self.desk.now.since(at))))
            };
            let state = since(owner.deaf_since, "deaf for certain")
                .or_else(|| since(owner.missing_since, "no poller seen"))
                .unwrap_or_else(|| match owner.heard {
                    true => "its poller was seen".to_owned(),
                    false => "not yet known whether it has a poller".to_owned(),
                });
            said.push(format!("owner of a Telegram bot: {state}"));
        }
        match self.row.listed {
            Some(listed) if is_child(listed) => {
                let parent = self.desk.chosen(&|row| row.id.as_str() == listed.parent);
                let title = parent.first().map(|parent| &parent.title);
                let parent = escape(title.unwrap_or(&listed.parent));
                said.push(format!("a child of {parent}: asked when it waits unseen"));
            }
            Some(_) | None => {}
        }
        said
    }

    /// What was observed, and since when.
    fn observed(&self) -> Vec<String> {
        let now = self.desk.now;
        let mut said = vec![escape(&self.row.observed())];
        if let Some(agent) = self.row.memory.and_then(|memory| memory.agent) {
            let age = spoken(now.since(agent.started));
            said.push(format!(
                "its agent was last seen as process {}, started {age} ago",
                agent.pid
            ));
        }
        let well = self.row.memory.and_then(|memory| memory.well_since);
        if let Some(well) = well {
            said.push(format!("well for {}", spoken(now.since(well))));
        }
        for (profile, why) in &self.desk.unlisted {
            if profile
                .as_ref()
                .is_none_or(|profile| profile == self.row.profile)
            {
                said.push(format!(
                    "cannot be listed now: {}",
                    escape(&why.to_string())
                ));
            }
        }
        match self.desk.finding(self.row.id) {
            None => {}
            Some(Finding::Dead(evidence)) => said.push(format!("dead: {}", escape(evidence))),
            Some(Finding::LookAgain(..)) => said.push("dead in a first look".to_owned()),
            Some(Finding::Leave(_)) => {
                if let Some((rule, sentence)) = self.row.left_alone(self.desk) {
                    said.push(format!("left alone: {rule}: {}", escape(&sentence)));
                }
            }
            Some(
                Finding::AskShow | Finding::AskPane | Finding::AskList | Finding::AskProcesses,
            ) => {}
        }
        said
    }

    /// What of it is remembered: the child's timer and episode, the last act.
    fn remembered(&self) -> Vec<String> {
        let now = self.desk.now;
        let mut said = Vec::new();
        if let Some(child) = self.row.child {
            if let Some(since) = child.since {
                said.push(format!(
                    "its screen is the same for {}",
                    spoken(now.since(since))
                ));
            }
            if let Some(opened) = child.opened {
                let ago = spoken(now.since(opened));
                said.push(format!(
                    "in an episode for {ago}, {} messages in it",
                    child.nudges
                ));
            }
        }
        let memory = self.row.memory;
        if let Some(memory) = memory.filter(|memory| memory.since_well > 0) {
            let count = memory.since_well;
            said.push(format!(
                "{count} restarts since it was last well for ten minutes"
            ));
        }
        match self.row.last_act() {
            Some(act) => said.push(last(&act, now)),
            None => said.push("nothing is remembered that was done about it".to_owned()),
        }
        said
    }

    /// The open episodes about it.
    fn told(&self) -> Vec<String> {
        let id = self.row.id.as_str();
        let episodes = self.desk.watch.saved.episodes.iter();
        episodes
            .filter(|episode| telling::is_about(&episode.key, id))
            .map(|episode| {
                let age = spoken(self.desk.now.since(episode.opened));
                format!("{age} ago: {}", escape(&episode.text))
            })
            .collect()
    }

    /// What would have to change for the watchdog to act.
    fn to_act(&self) -> Vec<String> {
        let mut said = Vec::new();
        let life = &self.desk.life;
        if !life.is_well() {
            said.push(format!(
                "a watchdog would have to run: it {}",
                life.sentence(self.desk.now)
            ));
        }
        let id = self.row.id;
        let Some(listed) = self.row.listed else {
            said.push("agent-deck would have to list it".to_owned());
            return said;
        };
        if self.row.critical {
            self.to_restart(listed, &mut said);
        }
        if is_child(listed) {
            self.to_ask(listed, &mut said);
        }
        if !self.row.critical && !is_child(listed) {
            said.push(format!(
                "it would have to be critical (agent-deck-watchdog watch {id}) or somebody's child"
            ));
        }
        said
    }

    fn to_restart(&self, listed: &Session, said: &mut Vec<String>) {
        let id = self.row.id;
        match (&listed.status, listed.archived) {
            (_, true) => said.push("it would have to be taken out of the archive".to_owned()),
            (Status::Stopped, false) => said.push(format!(
                "somebody stopped it: it would have to be started (agent-deck -p {} session start \
                 {id})",
                self.row.profile
            )),
            (Status::Error, false) => match self.desk.finding(id) {
                Some(Finding::Leave(refusal)) => said.push(format!(
                    "this would have to change: {}",
                    escape(&refusal.sentence)
                )),
                Some(Finding::LookAgain(at, _)) => said.push(format!(
                    "a second look in {} would have to agree",
                    spoken(at.since(self.desk.now))
                )),
                Some(
                    Finding::Dead(_)
                    | Finding::AskShow
                    | Finding::AskPane
                    | Finding::AskList
                    | Finding::AskProcesses,
                )
                | None => {}
            },
            _ => said.push(
                "it would have to die: be listed as error, its terminal gone, no process left that \
                 may be its agent"
                    .to_owned(),
            ),
        }
        self.lifting(&self.row.restart, "to be restarted", said);
        if self
            .row
            .owner
            .is_some_and(|owner| owner.deaf_since.is_some())
        {
            said.push("it is deaf: it would have to be at rest".to_owned());
            self.lifting(&self.row.poller, "to be restarted for its poller", said);
        }
    }

    fn to_ask(&self, listed: &Session, said: &mut Vec<String>) {
        if listed.status != Status::Waiting {
            said.push("to be asked it would have to wait (be listed as waiting)".to_owned());
            return;
        }
        let threshold = self.desk.watch.rules.threshold;
        match self.row.child.and_then(|child| child.since) {
            Some(since) if self.desk.now.since(since) <= threshold => said.push(format!(
                "to be asked its screen would have to stay the same for {} more",
                spoken(since.plus(threshold).since(self.desk.now))
            )),
            Some(_) => {}
            None => said.push(format!(
                "to be asked its screen would have to stay the same for {}",
                spoken(threshold)
            )),
        }
        match &self.silence {
            Some(Ok("")) | None => {}
            Some(Ok(why)) => said.push(format!(
                "to be asked its input would have to be free; its screen shows now: {why}"
            )),
            Some(Err(why)) => said.push(format!(
                "to be asked its screen would have to be read: {}",
                escape(why)
            )),
        }
        self.lifting(&self.row.nudge, "to be asked", said);
    }

    /// The rules that would have to lift.
    fn lifting(&self, verdict: &Option<Verdict>, what: &str, said: &mut Vec<String>) {
        for answer in verdict.iter().flat_map(Verdict::refusals) {
            let (word, numbers) = (answer.rule.word(), &answer.numbers);
            let lifts = lifts(answer, self.desk.now);
            said.push(format!(
                "{what} {word} would have to lift: {numbers}{lifts}"
            ));
        }
    }

    /// Every verdict with its name.
    fn verdicts(&self) -> [(&'static str, &Option<Verdict>); 3] {
        [
            ("restart", &self.row.restart),
            ("for poller", &self.row.poller),
            ("message", &self.row.nudge),
        ]
    }

    fn sections(&self) -> [(&'static str, Vec<String>); 5] {
        [
            ("watched", self.watched()),
            ("observed", self.observed()),
            ("remembered", self.remembered()),
            ("told", self.told()),
            ("to act", self.to_act()),
        ]
    }
}

impl Report for Explained<'_> {
    fn text(&self, paper: &Paper) -> String {
        let (title, id) = (short(self.row.title, 40), self.row.id);
        let name = format!(
            "{title} {id}, profile {}",
            escape(self.row.profile.as_str())
        );
        let mut page = format!("{}\n\n", paper.lit(Light::Strong, &name));
        for remark in &self.desk.remarks {
            page.push_str(&wrapped("! ", &escape(remark), 2));
        }
        for (label, sentences) in self.sections() {
            let mut label = label;
            for sentence in sentences {
                page.push_str(&wrapped(&format!("{label:<INDENT$}"), &sentence, INDENT));
                label = "";
            }
        }
        for (name, verdict) in self.verdicts() {
            let Some(verdict) = verdict else { continue };
            page.push_str(&format!("\nguardrails, {name}\n"));
            for answer in &verdict.answers {
                let (word, light) = match answer.refuses {
                    true => ("no", Light::Red),
                    false => ("yes", Light::Green),
                };
                let line = format!(
                    "{:<14}{}{}",
                    answer.rule.word(),
                    answer.numbers,
                    lifts(answer, self.desk.now)
                );
                page.push_str(&format!(
                    "  {} {line}\n",
                    paper.lit(light, &format!("{word:<3}"))
                ));
            }
        }
        page
    }

    fn json(&self) -> Value {
        let mut all = json_row(&self.row, self.desk);
        let Value::Object(map) = &mut all else {
            return all;
        };
        put(map, "format", &super::FORMAT);
        for (label, sentences) in self.sections() {
            let name = format!("{}_text", label.replace(' ', "_"));
            put(map, &name, &sentences);
        }
        for (name, verdict) in self.verdicts() {
            let answers = verdict.iter().flat_map(|verdict| &verdict.answers);
            let answers: Vec<Value> = answers
                .map(|answer| {
                    object!({
                        "rule": answer.rule.word(),
                        "agrees": !answer.refuses,
                        "numbers": answer.numbers,
                        "until": answer.lifts.map(Time::rfc3339),
                    })
                })
                .collect();
            let name = format!("guard_{}", name.replace(' ', "_"));
            put(map, &name, &answers);
        }
        all
    }
}
