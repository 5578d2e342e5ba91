//! What a good list changes in the memory: who is well since when, who died,
//! who was restarted by somebody else, who is gone, and what became of the last
//! restart.
//!
//! This file does not know how the list came, and it restarts nobody.

use std::time::Duration;

use crate::capabilities::restart::{YOUNG, is_critical};
use crate::clock::{Time, spoken};
use crate::deck::processes::{bare_shell, pane_process};
use crate::model::{
    Flags, Level, NoAnswer, Process, Profile, Session, SessionId, Sight, Status, Substate,
};
use crate::outcome::{self, Line, WELL};
use crate::state::{Agent, Memory, State};
use crate::telling::{self, Kind, keep, resolve};
use crate::together;
use crate::watch::Deck;

/// A session that good lists have lacked this long is gone (DESIGN 3.1).
pub const GONE: Duration = Duration::from_secs(600);
/// Budgets of a gone session are kept this long (DESIGN 3.1).
pub const FORGET: Duration = Duration::from_secs(86_400);
/// An empty list where sessions were known is believed after this (DESIGN 3.1).
const EMPTY: Duration = Duration::from_secs(600);
/// Lists in a row without a usable answer that are told (DESIGN 3.1).
pub const FAILURES: u32 = 3;
/// A login problem on the screen of a living session is told after this, so
/// that a line that merely quotes one and scrolls away is not.
const AUTH_TOLD: Duration = Duration::from_secs(60);
/// A bare shell is told after this, so that a look in the middle of a start is
/// not: agents are there within 2 s (contract 5.2).
const BARE_TOLD: Duration = Duration::from_secs(10);
/// A new process this much before the stamp of our own command is still ours:
/// the command starts before the stamp is taken.
const OWN_SLACK: Duration = Duration::from_secs(2);

/// A line for `watchdog.log`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// How loud.
    pub level: Level,
    /// Title and id, or the profile.
    pub subject: String,
    /// What happened.
    pub sentence: String,
}

/// What else a list brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Lines to write.
    pub notes: Vec<Note>,
    /// Outcomes of restarts.
    pub outcomes: Vec<(SessionId, Line)>,
}

impl News {
    fn note(&mut self, level: Level, row: &Session, sentence: String) {
        let subject = format!("{} {}", row.title, row.id);
        self.notes.push(Note {
            level,
            subject,
            sentence,
        });
    }
}

/// Title and id, as subjects of lines are written.
pub fn subject(memory: &Memory, id: &SessionId) -> String {
    format!("{} {id}", memory.title)
}

/// There was no usable list. Nothing moves but the count.
pub fn no_list(state: &mut State, profile: &Profile, why: &NoAnswer, now: Time) -> Vec<Note> {
    let memory = state.profile(profile);
    memory.failures = memory.failures.saturating_add(1);
    memory.failing_since.get_or_insert(now);
    let failures = memory.failures;
    if failures >= FAILURES {
        let text = format!("no sessions of profile {profile} can be listed: {why}");
        keep(
            state,
            Kind::List,
            profile.as_str(),
            Level::Critical,
            &text,
            now,
        );
    }
    match failures {
        1 => vec![Note {
            level: Level::Warning,
            subject: format!("profile {profile}"),
            sentence: format!("no list, nothing is done: {why}"),
        }],
        _ => Vec::new(),
    }
}

/// Whether an empty list may be believed. While sessions were known it has to
/// stand for ten minutes.
pub fn believe_empty(state: &mut State, profile: &Profile, now: Time) -> bool {
    let known = state
        .sessions
        .values()
        .any(|m| m.profile == *profile && m.missing_since.is_none());
    let memory = state.profile(profile);
    if !known {
        return true;
    }
    let since = *memory.empty_since.get_or_insert(now);
    now.since(since) >= EMPTY
}

/// Books a good list.
pub fn list(state: &mut State, deck: &Deck, flags: &Flags, sight: &Sight) -> News {
    let (profile, now) = (&deck.profile, deck.listed);
    let mut news = News::default();
    answered(state, profile, &mut news, now);
    if !deck.rows.is_empty() {
        state.profile(profile).empty_since = None;
    }
    let critical = |row: &&Session| is_critical(row, flags);
    let rows: Vec<&Session> = deck.rows.iter().filter(critical).collect();
    for row in &rows {
        one(state, row, sight, &mut news, now);
    }
    let listed = |id: &SessionId| deck.row(id).filter(critical).is_some();
    missing(state, profile, &listed, &mut news, now);
    together::book(state, profile, &deck.rows, &rows, sight, now);
    news
}

/// The end of a time without lists.
fn answered(state: &mut State, profile: &Profile, news: &mut News, now: Time) {
    let memory = state.profile(profile);
    let failures = std::mem::take(&mut memory.failures);
    memory.failing_since = None;
    if failures > 0 {
        news.notes.push(Note {
            level: Level::Info,
            subject: format!("profile {profile}"),
            sentence: format!("sessions are listed again, after {failures} lists that failed"),
        });
        let text = format!("sessions of profile {profile} are listed again");
        resolve(state, Kind::List, profile.as_str(), &text, now);
    }
}

/// Books one critical row.
fn one(state: &mut State, row: &Session, sight: &Sight, news: &mut News, now: Time) {
    let memory = state.memory(&row.profile, &row.id, &row.title);
    if memory.title != row.title {
        memory.title.clone_from(&row.title);
    }
    memory.profile.clone_from(&row.profile);
    memory.missing_since = None;
    process_seen(state, row, sight, news, now);
    if row.archived {
        at_rest(
            state,
            row,
            "archived",
            "it is archived, left alone",
            news,
            now,
        );
        return;
    }
    match &row.status {
        Status::Running | Status::Waiting | Status::Idle => {
            living(state, row, news, now);
            bare(state, row, sight, now);
        }
        Status::Error => {
            let memory = state.memory(&row.profile, &row.id, &row.title);
            memory.well_since = None;
            memory.dead_since.get_or_insert(now);
        }
        Status::Stopped => {
            let memory = state.memory(&row.profile, &row.id, &row.title);
            memory.stopped_since.get_or_insert(now);
            at_rest(
                state,
                row,
                "stopped",
                "it was stopped on purpose, left alone",
                news,
                now,
            );
        }
        Status::Queued | Status::Starting | Status::Unfamiliar(_) => {
            let memory = state.memory(&row.profile, &row.id, &row.title);
            memory.well_since = None;
            memory.dead_since = None;
            if let Status::Unfamiliar(word) = &row.status {
                let sentence = format!("its status {word:?} is not known here, left alone");
                written_once(state, row, "unfamiliar-status", &sentence, news, now);
            }
        }
    }
}

/// Looks whether a new process of it is there: ours, or somebody else's restart.
pub fn process_seen(state: &mut State, row: &Session, sight: &Sight, news: &mut News, now: Time) {
    let process = match sight {
        Sight::Seen(table) => pane_process(table, &row.id),
        Sight::Blind(_) => None,
    };
    let memory = state.memory(&row.profile, &row.id, &row.title);
    let pending = memory
        .attempt
        .as_ref()
        .filter(|a| a.outcome.is_none())
        .map(|a| a.at);
    let ours = |at: Time| pending.is_some_and(|begun| at.plus(OWN_SLACK) >= begun);
    let mut new_agent = false;
    if let Some(process) = process {
        new_agent = ours(process.started);
        if is_another(memory.agent, process) {
            if memory.agent.is_some() && !new_agent {
                others(memory, row, process.started, news);
            }
            memory.agent = Some(Agent {
                pid: process.pid,
                started: process.started,
            });
        }
        memory.ran = true;
    } else if row.status.is_alive() && renamed(memory, row) && pending.is_none() {
        others(memory, row, now, news);
    }
    if row.status.is_alive() && memory.tmux_session != row.tmux_session {
        memory.tmux_session.clone_from(&row.tmux_session);
    }
    let since = outcome::Since {
        row,
        new_agent,
        seen: matches!(sight, Sight::Seen(_)),
    };
    if let Some(line) = outcome::verify(state, &row.id, &since, now) {
        news.outcomes.push((row.id.clone(), line));
    }
}

/// Start times are computed from ticks, so the same process may differ by a
/// few milliseconds from pass to pass: the number decides, and a whole second.
fn is_another(known: Option<Agent>, process: &Process) -> bool {
    known.is_none_or(|agent| {
        agent.pid != process.pid || agent.started.0.abs_diff(process.started.0) > 1000
    })
}

fn renamed(memory: &Memory, row: &Session) -> bool {
    !memory.tmux_session.is_empty()
        && !row.tmux_session.is_empty()
        && memory.tmux_session != row.tmux_session
}

/// Somebody else restarted it: that is a recovery and starts the cool-down.
fn others(memory: &mut Memory, row: &Session, at: Time, news: &mut News) {
    memory.restarted_by_others = memory.restarted_by_others.max(Some(at));
    memory.dead_since = None;
    memory.well_since = None;
    memory.nothing_refuses();
    news.note(
        Level::Info,
        row,
        "was restarted by somebody else".to_owned(),
    );
}

/// It is listed alive.
fn living(state: &mut State, row: &Session, news: &mut News, now: Time) {
    let memory = state.memory(&row.profile, &row.id, &row.title);
    let born = row.created.unwrap_or_default();
    // A row that was just added prints `idle` without ever having run.
    let bare_idle = row.status == Status::Idle && row.substate.is_none();
    if now.since(born) >= YOUNG && !bare_idle {
        memory.ran = true;
    }
    memory.stopped_since = None;
    // What was not written down as dead need not be written down as alive.
    let told = !memory.said.is_empty() || memory.attempt.is_some();
    if let Some(dead) = memory.dead_since.take().filter(|_| told) {
        news.note(
            Level::Info,
            row,
            format!("lives again after {}", spoken(now.since(dead))),
        );
    }
    memory.nothing_refuses();
    let well = *memory.well_since.get_or_insert(now);
    let while_shown = |substate, since: Option<Time>| {
        (row.substate == Some(substate)).then(|| since.unwrap_or(now))
    };
    memory.usage_limit = while_shown(Substate::UsageLimit, memory.usage_limit);
    memory.auth_since = while_shown(Substate::Auth401, memory.auth_since);
    let troubled = memory.since_well > 0 || memory.without_effect > 0 || memory.skipped.is_some();
    let auth = memory.auth_since;
    let well = now.since(well) >= WELL;
    if well && (troubled || telling::is_open(state, Kind::Down, row.id.as_str())) {
        outcome::well(state, &row.id, now);
    }
    let name = format!("{} ({})", row.title, row.id);
    resolve(
        state,
        Kind::Mismatch,
        row.id.as_str(),
        &format!("{name} reads alive again"),
        now,
    );
    match auth {
        None => {
            let text = format!("{name} has no login problem any more");
            resolve(state, Kind::Auth, row.id.as_str(), &text, now);
        }
        Some(since) if now.since(since) >= AUTH_TOLD => {
            let text = format!("{name} is alive, but held for a login problem; log in again");
            keep(
                state,
                Kind::Auth,
                row.id.as_str(),
                Level::Critical,
                &text,
                now,
            );
        }
        Some(_) => {}
    }
}

/// It is listed alive, and its terminal holds a shell where an agent should be:
/// told, not repaired (DESIGN 3.2).
fn bare(state: &mut State, row: &Session, sight: &Sight, now: Time) {
    let is_bare = row.runs_in_shell()
        && match sight {
            Sight::Seen(table) => bare_shell(table, &row.id).is_some(),
            Sight::Blind(_) => false,
        };
    let memory = state.memory(&row.profile, &row.id, &row.title);
    memory.bare_since = is_bare.then(|| memory.bare_since.unwrap_or(now));
    let name = format!("{} ({})", row.title, row.id);
    match memory.bare_since {
        None => {
            let text = format!("{name} has its agent again");
            resolve(state, Kind::BareShell, row.id.as_str(), &text, now);
        }
        Some(since) if now.since(since) >= BARE_TOLD => {
            let text = format!(
                "{name} is listed as {}, but its terminal holds a bare shell: its agent has ended",
                row.status.word()
            );
            keep(
                state,
                Kind::BareShell,
                row.id.as_str(),
                Level::Critical,
                &text,
                now,
            );
        }
        Some(_) => {}
    }
}

/// Somebody wants it so: no timer runs, nothing is told.
fn at_rest(
    state: &mut State,
    row: &Session,
    rule: &str,
    sentence: &str,
    news: &mut News,
    now: Time,
) {
    let memory = state.memory(&row.profile, &row.id, &row.title);
    memory.well_since = None;
    memory.dead_since = None;
    memory.agent = None;
    written_once(state, row, rule, sentence, news, now);
    telling::drop_all(state, row.id.as_str());
}

fn written_once(
    state: &mut State,
    row: &Session,
    rule: &str,
    sentence: &str,
    news: &mut News,
    now: Time,
) {
    let memory = state.memory(&row.profile, &row.id, &row.title);
    memory.refuse(rule, sentence, false, now);
    if memory.say(rule) {
        news.note(Level::Info, row, sentence.to_owned());
    }
}

/// A profile that was watched is not there, or not to be watched any more: when
/// its sessions are gone, nothing is told of it any more.
pub fn unwatched(state: &mut State, profile: &Profile, now: Time) -> News {
    let mut news = News::default();
    missing(state, profile, &|_| false, &mut news, now);
    let gone = |m: &Memory| m.missing_since.is_some_and(|at| now.since(at) >= GONE);
    let is_own = |m: &&Memory| m.profile == *profile;
    let own = state.sessions.values().filter(is_own).count();
    let left = |m: &&Memory| is_own(m) && gone(m);
    if own > 0 && own == state.sessions.values().filter(left).count() {
        telling::drop_all(state, profile.as_str());
    }
    news
}

/// agent-deck lists profiles again, and this wanted one is not among them.
pub fn answers_again(state: &mut State, profile: &Profile, now: Time) {
    if state
        .known_profile(profile)
        .is_some_and(|known| known.failures > 0)
    {
        state.profile(profile).failures = 0;
        state.profile(profile).failing_since = None;
        let text = format!("agent-deck answers again, and knows no profile {profile}");
        resolve(state, Kind::List, profile.as_str(), &text, now);
    }
}

/// Who is not in the list (any more).
fn missing(
    state: &mut State,
    profile: &Profile,
    listed: &dyn Fn(&SessionId) -> bool,
    news: &mut News,
    now: Time,
) {
    let mut gone = Vec::new();
    for (id, memory) in state
        .sessions
        .iter_mut()
        .filter(|(_, m)| m.profile == *profile)
    {
        if listed(id) {
            continue;
        }
        let since = *memory.missing_since.get_or_insert(now);
        if now.since(since) >= GONE && (memory.dead_since.is_some() || memory.well_since.is_some())
        {
            memory.dead_since = None;
            memory.well_since = None;
            memory.agent = None;
            let sentence = "is no longer listed as critical, no longer watched".to_owned();
            let subject = subject(memory, id);
            news.notes.push(Note {
                level: Level::Info,
                subject,
                sentence,
            });
            gone.push(id.clone());
        }
    }
    for id in gone {
        telling::drop_all(state, id.as_str());
    }
    state
        .sessions
        .retain(|_, m| m.missing_since.is_none_or(|at| now.since(at) < FORGET));
}

/// The processes whose end is a hint: the pane processes of the critical rows,
/// and (without an id) their tmux servers.
pub fn watched(decks: &[Deck], flags: &Flags, sight: &Sight) -> Vec<(Option<SessionId>, u32)> {
    let Sight::Seen(table) = sight else {
        return Vec::new();
    };
    let mut servers = Vec::new();
    let mut watched = Vec::new();
    let critical = |row: &&Session| is_critical(row, flags) && !row.archived;
    for row in decks.iter().flat_map(|deck| &deck.rows).filter(critical) {
        if let Some(pane) = pane_process(table, &row.id) {
            if !servers.contains(&pane.parent) {
                servers.push(pane.parent);
            }
            watched.push((Some(row.id.clone()), pane.pid));
        }
    }
    watched.extend(servers.into_iter().map(|pid| (None, pid)));
    watched
}
