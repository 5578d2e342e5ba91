//! One watched session at a time: what was observed, what is wanted, what holds
//! it back, what was last done.
//!
//! The guard's own verdicts, not a second opinion. This file does not know how a
//! row is printed.

use super::desk::Desk;
use crate::capabilities::look::Finding;
use crate::capabilities::patrol::is_child;
use crate::capabilities::restart::is_critical;
use crate::clock::{Time, spoken};
use crate::config::Wanted;
use crate::guard::{self, Answer, BURST_WINDOW, Purpose, Rule, Verdict};
use crate::model::{Flags, Profile, Session, SessionId, Status};
use crate::remember::GONE;
use crate::state::{Child, Memory, Owner};
use crate::telling;
use crate::watch::Watch;

/// One watched session.
pub struct Row<'a> {
    /// Full id.
    pub id: &'a SessionId,
    /// Title, as listed or as remembered.
    pub title: &'a str,
    /// Profile.
    pub profile: &'a Profile,
    /// Its row in the list of this moment.
    pub listed: Option<&'a Session>,
    /// It is restarted when it dies.
    pub critical: bool,
    /// What is remembered of its restarts.
    pub memory: Option<&'a Memory>,
    /// What is remembered of its bot.
    pub owner: Option<&'a Owner>,
    /// What is remembered of its waiting, where it is a child.
    pub child: Option<&'a Child>,
    /// Every rule about a restart now, where it is critical.
    pub restart: Option<Verdict>,
    /// Every rule about a restart for its poller, where it is an owner.
    pub poller: Option<Verdict>,
    /// Every rule about a message, where it is a child.
    pub nudge: Option<Verdict>,
    /// Its profile was listed just now.
    profile_listed: bool,
    now: Time,
}

/// What was last done about a session.
pub struct Act<'a> {
    /// When.
    pub at: Time,
    /// What, such as `restarted`.
    pub what: &'static str,
    /// What came of it; empty while that is not known.
    pub outcome: &'static str,
    /// Why it was done.
    pub reason: &'a str,
}

/// All watched sessions: the critical ones, the owners, the children.
pub fn rows<'a>(watch: &'a Watch, wanted: &Wanted, now: Time) -> Vec<Row<'a>> {
    let state = &watch.state;
    let wanted = match wanted {
        Wanted::Named(named) => Some(named),
        Wanted::All => None,
    };
    let mut rows: Vec<Row> = Vec::new();
    let mut critical = 0;
    // The critical ones stand first.
    let mut add = |row: Row<'a>| {
        let at = if row.critical { critical } else { rows.len() };
        critical += usize::from(row.critical);
        rows.insert(at, row);
    };
    for listed in watch.all_rows() {
        let owner = state.owners.iter().any(|owner| owner.id == listed.id);
        if is_critical(listed, &watch.flags) || owner || is_child(listed) {
            let (title, profile) = (&listed.title, &listed.profile);
            add(row(watch, &listed.id, title, profile, Some(listed), now));
        }
    }
    for (id, memory) in state.sessions.iter() {
        // Those of a profile that cannot be listed, and those that have just left.
        let gone = memory.missing_since.is_some_and(|at| now.since(at) >= GONE);
        let ours = wanted.is_none_or(|wanted| wanted.contains(&memory.profile));
        if watch.row(id).is_none() && !gone && ours {
            add(row(watch, id, &memory.title, &memory.profile, None, now));
        }
    }
    rows
}

/// By which mark a session is critical, if it is (the manual's marks).
pub fn critical_by(row: &Session, flags: &Flags) -> Option<&'static str> {
    match () {
        () if row.title.starts_with("conductor-") => Some("its title begins with conductor-"),
        () if row.is_conductor => Some("agent-deck marks it as a conductor"),
        () if row.is_conductor_like() => Some("its group is conductor or watchers, or below one"),
        () if flags.autorestart.contains(&row.id) => Some("a file autorestart/<id> says so"),
        () => None,
    }
}

/// One session, watched or not.
pub fn row<'a>(
    watch: &'a Watch,
    id: &'a SessionId,
    title: &'a str,
    profile: &'a Profile,
    listed: Option<&'a Session>,
    now: Time,
) -> Row<'a> {
    let (state, around) = (&watch.state, watch.surroundings());
    let memory = state.sessions.get(id);
    let owner = state.owners.iter().find(|owner| owner.id == *id);
    let critical = match listed {
        Some(listed) => is_critical(listed, &watch.flags),
        None => memory.is_some() || watch.flags.autorestart.contains(id),
    };
    let child = listed.filter(|listed| is_child(listed));
    let verdict = |purpose| guard::verdict(state, &around, id, purpose, now);
    Row {
        id,
        title,
        profile,
        listed,
        critical,
        memory,
        owner,
        child: state.known_child(id),
        restart: critical.then(|| verdict(Purpose::Dead)),
        poller: (critical && owner.is_some()).then(|| verdict(Purpose::Deaf)),
        nudge: child.map(|listed| guard::nudge_verdict(state, &around, listed, now)),
        profile_listed: watch.decks.iter().any(|deck| deck.profile == *profile),
        now,
    }
}

impl Row<'_> {
    /// What was observed, in a few words.
    pub fn observed(&self) -> String {
        let missing = self.memory.and_then(|memory| memory.missing_since);
        let ago = |since: Option<Time>| since.map(|at| spoken(self.now.since(at)));
        match self.listed {
            None => match ago(missing.filter(|_| self.profile_listed)) {
                Some(ago) => format!("gone for {ago}"),
                None => "not listed".to_owned(),
            },
            Some(row) if row.archived => "archived".to_owned(),
            Some(row) => {
                let word = row.status.word();
                let dead = self.memory.and_then(|memory| memory.dead_since);
                match ago(dead.filter(|_| row.status == Status::Error)) {
                    Some(ago) => format!("{word} for {ago}"),
                    None => word.to_owned(),
                }
            }
        }
    }

    /// What the watchdog wants of it.
    pub fn wanted(&self) -> &'static str {
        let rests = |row: &Session| row.archived || row.status == Status::Stopped;
        match self.listed {
            None if self.profile_listed => "nothing",
            None => "alive",
            Some(row) if rests(row) => "nothing",
            Some(_) if self.critical && self.owner.is_some() => "alive, polled",
            Some(_) if self.critical => "alive",
            Some(_) if self.nudge.is_some() => "a report",
            Some(_) => "polled",
        }
    }

    /// Whether it reads dead and should not.
    pub fn is_dead(&self) -> bool {
        let dead = |row: &Session| row.status == Status::Error && !row.archived;
        self.critical && self.listed.is_some_and(dead)
    }

    /// Restarts in the sliding window.
    pub fn restarts(&self) -> usize {
        let stamps = self.memory.map_or(&[][..], |memory| &memory.restarts);
        let counts = |at: &&Time| self.now.since(**at) < BURST_WINDOW;
        stamps.iter().filter(counts).count()
    }

    /// Why it is left alone, where it reads dead: found just now, or remembered
    /// where it was not looked at.
    pub fn left_alone(&self, desk: &Desk) -> Option<(String, String)> {
        if let Some(Finding::Leave(refusal)) = desk.finding(self.id) {
            return Some((refusal.cause.word().to_owned(), refusal.sentence.clone()));
        }
        let known = self.memory.and_then(|memory| memory.refusal.as_ref())?;
        // What the guard says now stands beside it.
        let agrees = self.restart.as_ref().is_some_and(Verdict::agrees);
        let ago = spoken(self.now.since(known.since));
        let sentence = format!("for {ago}: {}", known.sentence);
        (self.is_dead() && agrees).then(|| (known.rule.clone(), sentence))
    }

    /// When the next restart of it may be, where the window is full.
    pub fn next_slot(&self) -> Option<Time> {
        let burst = |answer: &&Answer| answer.rule == Rule::Burst;
        self.restart.as_ref()?.answers.iter().find(burst)?.lifts
    }

    /// The rules that hold back what would be done now.
    pub fn held_back(&self) -> Vec<&Answer> {
        let deaf = self.owner.is_some_and(|owner| owner.deaf_since.is_some());
        let waits = self.child.is_some_and(|child| child.opened.is_some());
        let (verdicts, all) = match () {
            () if self.is_dead() => ([&self.restart, &None], true),
            () if deaf => ([&self.poller, &None], true),
            () if waits => ([&self.nudge, &None], true),
            // What the user has said holds at any time, a back-off while it lasts.
            () => ([&self.restart, &self.nudge], false),
        };
        let mut held = Vec::new();
        for verdict in verdicts.into_iter().flatten() {
            for answer in &verdict.answers {
                let standing = matches!(answer.rule, Rule::Held | Rule::CrashLoop | Rule::Silenced);
                if answer.refuses && (all || standing) {
                    held.push(answer);
                }
            }
        }
        held
    }

    /// What was last done about it.
    pub fn last_act(&self) -> Option<Act<'_>> {
        let mut last: Option<Act> = None;
        let mut add = |at, what, outcome, reason| {
            if last.as_ref().is_none_or(|last| last.at <= at) {
                last = Some(Act {
                    at,
                    what,
                    outcome,
                    reason,
                });
            }
        };
        if let Some(attempt) = self.memory.and_then(|memory| memory.attempt.as_ref()) {
            let outcome = attempt.outcome.map_or("", |outcome| outcome.word());
            add(attempt.at, "restarted", outcome, &*attempt.evidence);
        }
        if let Some(child) = self.child
            && let Some(at) = child.last_nudge
        {
            let outcome = match child.asked.is_empty() {
                true => "",
                false => "no sign yet",
            };
            add(at, "asked to report", outcome, "it waited unseen");
        }
        if let Some(at) = self.memory.and_then(|memory| memory.restarted_by_others) {
            add(at, "restarted by somebody else", "", "");
        }
        last
    }

    /// Whether there is nothing to say of it.
    pub fn is_quiet(&self, watch: &Watch) -> bool {
        let told =
            |episode: &crate::state::Episode| telling::is_about(&episode.key, self.id.as_str());
        let due = self.child.is_some_and(|child| child.opened.is_some());
        let missing = self
            .memory
            .is_some_and(|memory| memory.missing_since.is_some());
        !self.is_dead()
            && !due
            && !missing
            && self.restarts() == 0
            && self.held_back().is_empty()
            && !watch.saved.episodes.iter().any(told)
    }
}
