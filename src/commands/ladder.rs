//! Where a child stands on the ladder, and what waits for a parent: in
//! sentences, and for programs.
//!
//! It repeats what is remembered and asks the guard. This file does not know how
//! a child climbs, nor how a parent is told.

use super::desk::Desk;
use super::paper::{Said, add};
use super::rows::Row;
use crate::capabilities::patrol::{HELD, MAX_EXTENDS, RECOVERY, is_child, limit};
use crate::clock::{Time, spoken};
use crate::deaths::DEATH_CONFIRM;
use crate::guard::{self, Verdict};
use crate::host::logs::escape;
use crate::json::{Value, object};
use crate::ladder::notices::{self, Way};
use crate::model::SessionId;
use crate::parents::NOTICE_DEFER;
use crate::state::{Child, Ending, Parent, Rung};
use crate::watch::Watch;

/// What a child has of the ladder, where an episode is open.
pub struct Standing<'a> {
    row: &'a Row<'a>,
    child: &'a Child,
    watch: &'a Watch,
    now: Time,
}

/// Where a child stands; `None`: no episode is open.
pub fn standing<'a>(row: &'a Row<'a>, desk: &'a Desk) -> Option<Standing<'a>> {
    let child = row.child?;
    (child.opened.is_some() || child.rung == Rung::Gated).then_some(Standing {
        row,
        child,
        watch: &desk.watch,
        now: desk.now,
    })
}

impl Standing<'_> {
    /// What follows, and when at the earliest; `None`: nothing by itself.
    fn next(&self) -> Option<(&'static str, Time)> {
        let (child, rules) = (self.child, &self.watch.rules);
        let step = rules.limits.nudge_dedup;
        // Nothing follows for one that does not wait, but for its end.
        let waited = child.since.map(|since| since.plus(rules.threshold));
        let after = |at: Option<Time>, span| at.map(|at| at.plus(span));
        let asked = waited.max(after(child.last_nudge, step));
        match child.rung {
            _ if child.recovering_since.is_some() => {
                after(child.recovering_since, RECOVERY).map(|at| ("its episode ends", at))
            }
            Rung::Dying => {
                after(child.dying_since, DEATH_CONFIRM).map(|at| ("it counts as dead", at))
            }
            _ if waited.is_none() => None,
            Rung::Watching | Rung::Nudged if !child.silent.is_empty() => None,
            Rung::Watching | Rung::Nudged => asked.map(|at| (self.after_waiting(), at)),
            Rung::Gated if child.gate != child.digest => waited
                .max(after(child.gate_told, step))
                .map(|at| ("its decision is told", at)),
            Rung::Held if !child.said.iter().any(|said| said == HELD) => waited
                .max(after(child.held_since, rules.threshold))
                .map(|at| ("what holds it is told", at)),
            Rung::Triage if child.triage_open => None,
            Rung::Triage if child.retry_due => asked.map(|at| ("it is asked once more", at)),
            // A step after the last call, and after the question that it led to.
            Rung::Triage => asked
                .max(after(child.triaged, step))
                .map(|at| (self.after_triage(), at)),
            Rung::HandedOver if self.may_stop() => {
                let told = after(child.told, step);
                told.map(|told| ("it is stopped", waited.unwrap_or(told).max(told)))
            }
            Rung::Clear
            | Rung::Gated
            | Rung::Held
            | Rung::CannotAsk
            | Rung::HandedOver
            | Rung::Stopping
            | Rung::StoppedByUs
            | Rung::Dead
            | Rung::Settled => None,
        }
    }

    /// What follows on rung 1.
    fn after_waiting(&self) -> &'static str {
        let most = self.watch.rules.limits.max_nudges;
        match self.child.nudges {
            0 => "it is asked to report",
            asked if most == 0 || asked < most => "it is asked again",
            _ if self.watch.rules.triage => "triage is asked",
            _ => "it is handed over",
        }
    }

    /// What follows on rung 2.
    fn after_triage(&self) -> &'static str {
        match self.watch.rules.triage && self.child.extends < MAX_EXTENDS {
            true => "triage is asked again",
            false => "it is handed over",
        }
    }

    fn may_stop(&self) -> bool {
        let flag = self.watch.flags.autostop.contains(&self.child.id);
        let limits = self.watch.rules.limits;
        // Fewer were never a hand-over for want of an answer.
        let asked = self.child.nudges >= limits.max_nudges.max(1);
        flag && asked && self.child.silent.is_empty() && limits.terminate
    }

    /// What holds it, as the list of this moment says.
    fn hold(&self) -> Option<(&'static str, Time)> {
        let since = self.child.held_since?;
        let what = self.row.listed.and_then(limit);
        Some((what.unwrap_or("a limit or login problem"), since))
    }

    /// Whether its decision on the screen was told.
    fn gate_is_told(&self) -> bool {
        self.child.gate_told.is_some() && self.child.gate == self.child.digest
    }

    /// In sentences: the rung and what follows first, then what is in the way.
    pub fn sentences(&self) -> Vec<String> {
        let mut said = Said::default();
        let (child, now) = (self.child, self.now);
        let ago = |at: Time| spoken(now.since(at));
        let mut first = format!("rung {}", child.rung.word());
        // Who is no child shows a dialog at its start, and is never asked.
        if self.row.listed.is_none_or(is_child) {
            add(&mut first, format_args!(": {}", self.nudges()));
        }
        if child.triaged.is_some() && child.extends > 0 {
            let extends = child.extends;
            add(
                &mut first,
                format_args!(", given more time {extends} of {MAX_EXTENDS} times"),
            );
        }
        match self.next() {
            Some((what, at)) if at > now => {
                let left = spoken(at.since(now));
                add(
                    &mut first,
                    format_args!("; {what} in {left} at the earliest"),
                );
            }
            Some((what, _)) => add(&mut first, format_args!("; {what} next")),
            None => {}
        }
        said.say(format_args!("{first}"));
        if child.rung == Rung::Gated {
            let since = child
                .since
                .map_or_else(String::new, |at| format!(" for {}", ago(at)));
            let told = match child.gate_told.filter(|_| self.gate_is_told()) {
                Some(at) => format!("told {} ago", ago(at)),
                None => "not told yet".to_owned(),
            };
            said.say(format_args!(
                "a decision is on its screen{since}, {told}; nothing is typed into it"
            ));
        }
        if let Some((what, since)) = self.hold() {
            said.say(format_args!("held by {what} for {}", ago(since)));
        }
        if let Some(since) = child.dying_since {
            let confirmed = match child.rung {
                Rung::Dead => "confirmed",
                _ => "not confirmed",
            };
            said.say(format_args!("reads dead for {}, {confirmed}", ago(since)));
        }
        if let Some(told) = child.told {
            said.say(format_args!("somebody was told of it {} ago", ago(told)));
        }
        said.0
    }

    /// How often it was asked, of how many times.
    fn nudges(&self) -> String {
        let asked = self.child.nudges;
        let s = if asked == 1 { "" } else { "s" };
        match self.watch.rules.limits.max_nudges {
            0 => format!("asked {asked} time{s}, without a limit"),
            most => format!("asked {asked} of {most} times"),
        }
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let (child, rules) = (self.child, &self.watch.rules);
        let stamp = |at: Option<Time>| at.map(Time::rfc3339);
        let gate = (child.rung == Rung::Gated).then(|| {
            let told = child.gate_told.filter(|_| self.gate_is_told());
            object!({ "since": stamp(child.since), "told": stamp(told) })
        });
        let hold = self
            .hold()
            .map(|(what, since)| object!({ "what": what, "since": since.rfc3339() }));
        let death = child.dying_since.map(
            |since| object!({ "since": since.rfc3339(), "confirmed": child.rung == Rung::Dead }),
        );
        let next = self
            .next()
            .map(|(what, at)| object!({ "what": what, "at": at.rfc3339() }));
        object!({
            "rung": child.rung.word(),
            "under": child.under.word(),
            "opened": stamp(child.opened),
            "nudges": child.nudges,
            "nudges_most": Some(rules.limits.max_nudges).filter(|most| *most > 0),
            "last_nudge": stamp(child.last_nudge),
            "extends": child.extends,
            "extends_most": MAX_EXTENDS,
            "next": next,
            "gate": gate,
            "hold": hold,
            "death": death,
            "told": stamp(child.told),
            "recovering_since": stamp(child.recovering_since),
        })
    }
}

/// A parent that was written to, for whom something waits, or of whose children a
/// batch is open.
pub struct Waits<'a> {
    parent: &'a Parent,
    desk: &'a Desk,
}

/// What waits for a parent, and what it was told; `None`: nothing.
pub fn waits<'a>(desk: &'a Desk, id: &SessionId) -> Option<Waits<'a>> {
    let parent = desk.watch.state.known_parent(id)?;
    let waits = Waits { parent, desk };
    (waits.is_open() || parent.last_told.is_some()).then_some(waits)
}

/// All parents for whom something waits, or of whose children a batch is open.
pub fn all_waits(desk: &Desk) -> Vec<Waits<'_>> {
    let mut all = Vec::new();
    for parent in &desk.watch.state.parents {
        let waits = Waits { parent, desk };
        if waits.is_open() {
            all.push(waits);
        }
    }
    all
}

impl Waits<'_> {
    fn is_open(&self) -> bool {
        !self.parent.queue.is_empty() || !self.parent.members.is_empty()
    }

    /// Whether there is nothing to say of it: its children are at work, or too few
    /// to be told of together.
    pub fn is_quiet(&self) -> bool {
        let least = usize::try_from(self.desk.watch.rules.batch_min).unwrap_or(usize::MAX);
        let settles = self.parent.settling_since.is_some() && self.parent.members.len() >= least;
        self.parent.queue.is_empty() && !settles
    }

    /// Title and id, fit to be shown.
    pub fn name(&self) -> String {
        format!("{} ({})", escape(&self.parent.title), self.parent.id)
    }

    /// Every rule about a message to it, where one waits.
    pub fn verdict(&self) -> Option<Verdict> {
        let watch = &self.desk.watch;
        let row = watch.row(&self.parent.id)?;
        let around = watch.surroundings();
        let waits = !self.parent.queue.is_empty();
        waits.then(|| guard::notice_verdict(&watch.state, &around, row, self.desk.now))
    }

    /// Why what waits has not been typed, as far as lists and rules say it.
    fn why(&self) -> String {
        let watch = &self.desk.watch;
        let Some(row) = watch.row(&self.parent.id) else {
            return "the parent is not listed".to_owned();
        };
        match notices::way(watch.rules.scope, row) {
            Way::Closed(why) | Way::Later(why) => return why.to_owned(),
            Way::Open => {}
        }
        match self.verdict().filter(|verdict| !verdict.agrees()) {
            Some(verdict) => verdict.sentence(),
            None => "it has to show a free input box".to_owned(),
        }
    }

    /// In sentences: each notice and why it waits, the last message, the batch.
    pub fn sentences(&self) -> Vec<String> {
        let (parent, now) = (self.parent, self.desk.now);
        let ago = |at: Time| spoken(now.since(at));
        let mut said = Said::default();
        for notice in &parent.queue {
            let (kind, text) = (notice.kind.word(), escape(&notice.text));
            let state = match notice.sending {
                true => "is being sent",
                false => "waits to be told",
            };
            let since = ago(notice.since);
            said.say(format_args!("{kind} {state} for {since}: {text}"));
        }
        if let Some(oldest) = parent.queue.iter().map(|notice| notice.since).min() {
            let left = spoken(oldest.plus(NOTICE_DEFER).since(now));
            let why = self.why();
            said.say(format_args!(
                "not told yet: {why}; it waits for {left} more at most, then it is only written down"
            ));
        }
        if let Some(told) = parent.last_told {
            said.say(format_args!("last written to {} ago", ago(told)));
        }
        if !parent.members.is_empty() {
            let settling = match parent.settling_since {
                Some(at) => format!("; all are over for {}", ago(at)),
                None => String::new(),
            };
            let (batch, count) = (parent.batch, self.by_ending());
            said.say(format_args!(
                "batch {batch} of its children: {count}{settling}"
            ));
        }
        said.0
    }

    /// Members of the batch by how they ended, such as `1 open, 2 done`.
    fn by_ending(&self) -> String {
        let mut text = String::new();
        for (ending, count) in self.endings() {
            let comma = if text.is_empty() { "" } else { ", " };
            add(&mut text, format_args!("{comma}{count} {}", ending.word()));
        }
        text
    }

    fn endings(&self) -> Vec<(Ending, usize)> {
        let mut counts: Vec<(Ending, usize)> = Vec::new();
        for member in &self.parent.members {
            match counts.iter_mut().find(|(known, _)| *known == member.ending) {
                Some((_, count)) => *count += 1,
                None => counts.push((member.ending, 1)),
            }
        }
        counts
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let parent = self.parent;
        let stamp = |at: Option<Time>| at.map(Time::rfc3339);
        let mut queue = Vec::new();
        for notice in &parent.queue {
            queue.push(object!({
                "kind": notice.kind.word(),
                "child": Some(&notice.child).filter(|child| !child.is_empty()),
                "since": notice.since.rfc3339(),
                "until": notice.since.plus(NOTICE_DEFER).rfc3339(),
                "sending": notice.sending,
                "text": notice.text,
            }));
        }
        let batch = (!parent.members.is_empty()).then(|| {
            let mut members = Vec::new();
            for member in &parent.members {
                members.push(object!({ "id": member.id.as_str(), "ending": member.ending.word() }));
            }
            object!({
                "number": parent.batch,
                "members": members,
                "settling_since": stamp(parent.settling_since),
            })
        });
        object!({
            "id": parent.id.as_str(),
            "title": parent.title,
            "profile": parent.profile.as_str(),
            "last_told": stamp(parent.last_told),
            "why": (!parent.queue.is_empty()).then(|| self.why()),
            "notices": queue,
            "batch": batch,
        })
    }
}
