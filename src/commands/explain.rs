//! `explain`: why the watchdog did, or did not, act on one session, and what
//! would have to change for it to act.
//!
//! The rules answer for themselves; this file only puts their answers in a row.

use super::desk::Desk;
use super::find::Known;
use super::ladder::{standing, waits};
use super::paper::{Light, Paper, Said, add, short, wrap};
use super::rows::{Row, critical_by, row};
use super::status::{json_row, last, lifts};
use super::{Failed, Report};
use crate::capabilities::look::Finding;
use crate::capabilities::patrol::{is_child, silence};
use crate::cli::Exit;
use crate::clock::{Time, spoken};
use crate::guard::{self, Verdict};
use crate::host::logs::escape;
use crate::json::{Value, object, put};
use crate::model::{Pane, Session, Status};
use crate::telling;
use crate::world::World;

/// Columns before a sentence.
const INDENT: usize = 13;

/// One session, explained.
pub struct Explained<'a> {
    desk: &'a Desk,
    row: Row<'a>,
    /// Why nothing may be typed into it, where it is a child that waits, or a
    /// parent for whom something waits.
    silence: Option<Result<&'static str, String>>,
    /// Every rule about a message to it as a parent, where one waits.
    notice: Option<Verdict>,
    /// Every rule about its stop, where it is a child and stops are allowed.
    stop: Option<Verdict>,
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
        let child = row.status == Status::Waiting && is_child(row);
        let parent = matches!(row.status, Status::Waiting | Status::Idle)
            && waits(desk, &row.id).is_some_and(|waits| waits.verdict().is_some());
        if child || parent {
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
    let watch = &desk.watch;
    let stops = listed.filter(|row| is_child(row) && watch.rules.limits.terminate);
    Ok(Explained {
        notice: waits(desk, &known.id).and_then(|waits| waits.verdict()),
        stop: stops
            .map(|row| guard::stop_verdict(&watch.state, &watch.surroundings(), row, desk.now)),
        desk,
        row,
        silence,
    })
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
    fn watched(&self, said: &mut Said) {
        let flags = &self.desk.watch.flags;
        let mark = self
            .row
            .listed
            .and_then(|listed| critical_by(listed, flags));
        match mark {
            Some(mark) => said.say(format_args!(
                "critical, since {mark}: restarted when it dies"
            )),
            None if self.row.critical => said.say(format_args!("critical when it was last listed")),
            None => said.say(format_args!("not critical: never restarted")),
        }
        if let Some(owner) = self.row.owner {
            let (since, state) = match (owner.deaf_since, owner.missing_since) {
                (Some(at), _) => (Some(at), "deaf for certain for "),
                (None, Some(at)) => (Some(at), "no poller seen for "),
                (None, None) if owner.heard => (None, "its poller was seen"),
                (None, None) => (None, "not yet known whether it has a poller"),
            };
            let since = since.map(|at| spoken(self.desk.now.since(at)));
            let since = since.unwrap_or_default();
            said.say(format_args!("owner of a Telegram bot: {state}{since}"));
        }
        match self.row.listed {
            Some(listed) if is_child(listed) => {
                let parent = self.desk.chosen(&|row| row.id.as_str() == listed.parent);
                let title = parent.first().map(|parent| &parent.title);
                let parent = escape(title.unwrap_or(&listed.parent));
                said.say(format_args!(
                    "a child of {parent}: asked when it waits unseen"
                ));
            }
            Some(_) | None => {}
        }
    }

    /// What was observed, and since when.
    fn observed(&self, said: &mut Said) {
        let now = self.desk.now;
        said.say(format_args!("{}", escape(&self.row.observed())));
        if let Some(agent) = self.row.memory.and_then(|memory| memory.agent) {
            let age = spoken(now.since(agent.started));
            said.say(format_args!(
                "its agent was last seen as process {}, started {age} ago",
                agent.pid
            ));
        }
        let well = self.row.memory.and_then(|memory| memory.well_since);
        if let Some(well) = well {
            said.say(format_args!("well for {}", spoken(now.since(well))));
        }
        for (profile, why) in &self.desk.unlisted {
            if profile
                .as_ref()
                .is_none_or(|profile| profile == self.row.profile)
            {
                said.say(format_args!(
                    "cannot be listed now: {}",
                    escape(&why.to_string())
                ));
            }
        }
        match self.desk.finding(self.row.id) {
            None => {}
            Some(Finding::Dead(evidence)) => said.say(format_args!("dead: {}", escape(evidence))),
            Some(Finding::LookAgain(..)) => said.say(format_args!("dead in a first look")),
            Some(Finding::Leave(_)) => {
                if let Some((rule, sentence)) = self.row.left_alone(self.desk) {
                    said.say(format_args!("left alone: {rule}: {}", escape(&sentence)));
                }
            }
            Some(
                Finding::AskShow | Finding::AskPane | Finding::AskList | Finding::AskProcesses,
            ) => {}
        }
    }

    /// What of it is remembered: the child's timer and episode, the last act.
    fn remembered(&self, said: &mut Said) {
        let now = self.desk.now;
        if let Some(child) = self.row.child {
            if let Some(since) = child.since {
                said.say(format_args!(
                    "its screen is the same for {}",
                    spoken(now.since(since))
                ));
            }
            if let Some(opened) = child.opened {
                let ago = spoken(now.since(opened));
                said.say(format_args!(
                    "in an episode for {ago}, {} messages in it",
                    child.nudges
                ));
            }
        }
        if let Some(standing) = standing(&self.row, self.desk) {
            said.0.extend(standing.sentences());
        }
        let memory = self.row.memory;
        if let Some(memory) = memory.filter(|memory| memory.since_well > 0) {
            let count = memory.since_well;
            said.say(format_args!(
                "{count} restarts since it was last well for ten minutes"
            ));
        }
        match self.row.last_act() {
            Some(act) => said.say(format_args!("{}", last(&act, now))),
            None => said.say(format_args!("nothing is remembered that was done about it")),
        }
    }

    /// What it is to hear of its children, and why it has not heard it yet.
    fn children(&self, said: &mut Said) {
        if let Some(waits) = waits(self.desk, self.row.id) {
            said.0.extend(waits.sentences());
        }
        match &self.silence {
            Some(Ok("")) | None => {}
            Some(Ok(why)) if self.notice.is_some() => said.say(format_args!(
                "nothing may be typed to it; its screen shows now: {why}"
            )),
            Some(Err(why)) if self.notice.is_some() => {
                said.say(format_args!("its screen cannot be read: {}", escape(why)));
            }
            Some(_) => {}
        }
    }

    /// The open episodes about it.
    fn told(&self, said: &mut Said) {
        let id = self.row.id.as_str();
        for episode in &self.desk.watch.saved.episodes {
            if telling::is_about(&episode.key, id) {
                let age = spoken(self.desk.now.since(episode.opened));
                said.say(format_args!("{age} ago: {}", escape(&episode.text)));
            }
        }
    }

    /// What would have to change for the watchdog to act.
    fn to_act(&self, said: &mut Said) {
        let life = &self.desk.life;
        if !life.is_well() {
            said.say(format_args!(
                "a watchdog would have to run: it {}",
                life.sentence(self.desk.now)
            ));
        }
        let id = self.row.id;
        let Some(listed) = self.row.listed else {
            said.say(format_args!("agent-deck would have to list it"));
            return;
        };
        if self.row.critical {
            self.to_restart(listed, said);
        }
        if is_child(listed) {
            self.to_ask(listed, said);
        }
        if !self.row.critical && !is_child(listed) {
            said.say(format_args!(
                "it would have to be critical (agent-deck-watchdog watch {id}) or somebody's child"
            ));
        }
    }

    fn to_restart(&self, listed: &Session, said: &mut Said) {
        let id = self.row.id;
        match (&listed.status, listed.archived) {
            (_, true) => said.say(format_args!("it would have to be taken out of the archive")),
            (Status::Stopped, false) => said.say(format_args!(
                "somebody stopped it: it would have to be started (agent-deck -p {} session start \
                 {id})",
                self.row.profile
            )),
            (Status::Error, false) => match self.desk.finding(id) {
                Some(Finding::Leave(refusal)) => said.say(format_args!(
                    "this would have to change: {}",
                    escape(&refusal.sentence)
                )),
                Some(Finding::LookAgain(at, _)) => said.say(format_args!(
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
            _ => said.say(format_args!(
                "it would have to die: be listed as error, its terminal gone, no process left that \
                 may be its agent"
            )),
        }
        self.lifting(&self.row.restart, "to be restarted", said);
        if self
            .row
            .owner
            .is_some_and(|owner| owner.deaf_since.is_some())
        {
            said.say(format_args!("it is deaf: it would have to be at rest"));
            self.lifting(&self.row.poller, "to be restarted for its poller", said);
        }
    }

    fn to_ask(&self, listed: &Session, said: &mut Said) {
        if listed.status != Status::Waiting {
            said.say(format_args!(
                "to be asked it would have to wait (be listed as waiting)"
            ));
            return;
        }
        let threshold = self.desk.watch.rules.threshold;
        match self.row.child.and_then(|child| child.since) {
            Some(since) if self.desk.now.since(since) <= threshold => said.say(format_args!(
                "to be asked its screen would have to stay the same for {} more",
                spoken(since.plus(threshold).since(self.desk.now))
            )),
            Some(_) => {}
            None => said.say(format_args!(
                "to be asked its screen would have to stay the same for {}",
                spoken(threshold)
            )),
        }
        match &self.silence {
            Some(Ok("")) | None => {}
            Some(Ok(why)) => said.say(format_args!(
                "to be asked its input would have to be free; its screen shows now: {why}"
            )),
            Some(Err(why)) => said.say(format_args!(
                "to be asked its screen would have to be read: {}",
                escape(why)
            )),
        }
        self.lifting(&self.row.nudge, "to be asked", said);
    }

    /// The rules that would have to lift.
    fn lifting(&self, verdict: &Option<Verdict>, what: &str, said: &mut Said) {
        let Some(verdict) = verdict else { return };
        for answer in verdict.refusals() {
            let (word, numbers) = (answer.rule.word(), &answer.numbers);
            let lifts = lifts(answer, self.desk.now);
            said.say(format_args!(
                "{what} {word} would have to lift: {numbers}{lifts}"
            ));
        }
    }

    /// Every verdict with its name.
    fn verdicts(&self) -> [(&'static str, &Option<Verdict>); 5] {
        [
            ("restart", &self.row.restart),
            ("for poller", &self.row.poller),
            ("message", &self.row.nudge),
            ("notice", &self.notice),
            ("stop", &self.stop),
        ]
    }

    fn sections(&self) -> [(&'static str, Vec<String>); 6] {
        type Tell<'a> = fn(&Explained<'a>, &mut Said);
        let sections: [(&str, Tell); 6] = [
            ("watched", Explained::watched),
            ("observed", Explained::observed),
            ("remembered", Explained::remembered),
            ("children", Explained::children),
            ("told", Explained::told),
            ("to act", Explained::to_act),
        ];
        sections.map(|(label, tell)| {
            let mut said = Said::default();
            tell(self, &mut said);
            (label, said.0)
        })
    }
}

impl Report for Explained<'_> {
    fn text(&self, paper: &Paper) -> String {
        let mut page = String::new();
        let (title, id) = (short(self.row.title, 40), self.row.id);
        let profile = escape(self.row.profile.as_str());
        let name = format_args!("{title} {id}, profile {profile}");
        paper.lit(&mut page, Light::Strong, name);
        page.push_str("\n\n");
        for remark in &self.desk.remarks {
            wrap(&mut page, "! ", &escape(remark), 2);
        }
        for (label, sentences) in self.sections() {
            let mut label = label;
            for sentence in sentences {
                wrap(&mut page, &format!("{label:<INDENT$}"), &sentence, INDENT);
                label = "";
            }
        }
        for (name, verdict) in self.verdicts() {
            let Some(verdict) = verdict else { continue };
            add(&mut page, format_args!("\nguardrails, {name}\n"));
            for answer in &verdict.answers {
                let (word, light) = match answer.refuses {
                    true => ("no", Light::Red),
                    false => ("yes", Light::Green),
                };
                page.push_str("  ");
                paper.lit(&mut page, light, format_args!("{word:<3}"));
                let (word, numbers) = (answer.rule.word(), &answer.numbers);
                let lifts = lifts(answer, self.desk.now);
                add(&mut page, format_args!(" {word:<14}{numbers}{lifts}\n"));
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
            let mut answers = Vec::new();
            for answer in verdict.iter().flat_map(|verdict| &verdict.answers) {
                answers.push(object!({
                    "rule": answer.rule.word(),
                    "agrees": !answer.refuses,
                    "numbers": answer.numbers,
                    "until": answer.lifts.map(Time::rfc3339),
                }));
            }
            let name = format!("guard_{}", name.replace(' ', "_"));
            put(map, &name, &answers);
        }
        all
    }
}
