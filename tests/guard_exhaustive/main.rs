//! Every short sequence of events against the guard, counted again by a second
//! counter that is slow and stupid.
//!
//! `GUARD_DEPTH=7 cargo test --test guard_exhaustive` goes deeper. This file
//! does not know why a session is dead, nor what is told of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use agent_deck_watchdog::clock::{Reading, Time};
use agent_deck_watchdog::guard::{
    Limits, Permit, Purpose, Surroundings, Verdict, begun, permit, verdict,
};
use agent_deck_watchdog::model::{Flags, Profile, Restarted, Session, SessionId, Status};
use agent_deck_watchdog::outcome::{Since, answered, end_backoffs, verify, well};
use agent_deck_watchdog::state::State;

mod counter;

use counter::{Fact, What, reasons, window};

/// Two sessions of one profile.
const IDS: [&str; 2] = ["aaaaaaaa-1755900000", "bbbbbbbb-1755900001"];
/// Between the permit and the start of the command, and until its answer.
const START_MS: u64 = 700;
const ANSWER_MS: u64 = 300;

/// What can happen to one session or to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// A restart is asked for, and answered so.
    Restart(usize, Answer),
    /// A restart is asked for, and its command goes on.
    Begin(usize),
    /// The command that goes on ends without an answer.
    End,
    /// Seconds pass.
    Wait(u64),
    /// The state is written and read back by the next run, while the wall
    /// clock steps by so many seconds.
    Reload(i64),
    /// The same across a boot, with the clock set back: no time is known to
    /// have passed, 20 s have.
    Reboot,
    /// It reads dead as before when the cool-down is over.
    NoEffect(usize),
    /// A new agent was seen.
    Done(usize),
    /// It has been well for ten minutes.
    Well(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Accepted,
    Failed,
    Skipped,
    RateLimit,
    Host,
}

const EVENTS: [Event; 18] = [
    Event::Restart(0, Answer::Accepted),
    Event::Restart(0, Answer::Failed),
    Event::Restart(0, Answer::Skipped),
    Event::Restart(0, Answer::RateLimit),
    Event::Restart(0, Answer::Host),
    Event::Restart(1, Answer::Accepted),
    Event::Restart(1, Answer::Skipped),
    Event::Begin(0),
    Event::End,
    Event::Wait(20),
    Event::Wait(61),
    Event::Wait(240),
    Event::Reload(3600),
    Event::Reload(-3600),
    Event::Reboot,
    Event::NoEffect(0),
    Event::Done(0),
    Event::Well(0),
];

/// One moment of one sequence.
#[derive(Clone)]
struct Node {
    state: State,
    /// Line of the present run, wall clock, boot clock, true time.
    now: Time,
    wall: u64,
    boot: u64,
    boots: u32,
    truth: u64,
    /// True time that passed unseen, at the moment it did: (when, how much).
    unseen: Vec<(u64, u64)>,
    facts: Vec<Fact>,
    open: Option<usize>,
    path: Vec<Event>,
}

fn id(session: usize) -> SessionId {
    SessionId::parse(IDS[session]).unwrap()
}

fn profile() -> Profile {
    Profile::parse("default").unwrap()
}

fn start() -> Node {
    let mut state = State::default();
    for (session, title) in ["conductor-a", "conductor-b"].iter().enumerate() {
        state.memory(&profile(), &id(session), title).ran = true;
    }
    Node {
        state,
        now: Time(1_800_000_000_000),
        wall: 1_800_000_000_000,
        boot: 50_000_000,
        boots: 0,
        truth: 0,
        unseen: Vec::new(),
        facts: Vec::new(),
        open: None,
        path: Vec::new(),
    }
}

impl Node {
    fn wait(&mut self, ms: u64) {
        self.now = self.now.plus(Duration::from_millis(ms));
        self.wall += ms;
        self.boot += ms;
        self.truth += ms;
        end_backoffs(&mut self.state, self.now);
    }

    fn reading(&self) -> Reading {
        Reading {
            wall: self.wall,
            boot: self.boot,
            boot_id: format!("boot {}", self.boots),
        }
    }

    fn fact(&mut self, what: What) {
        self.facts.push(Fact {
            at: self.truth,
            what,
        });
    }

    /// What the watchdog can know to have passed since a moment.
    fn known_age(&self, at: u64) -> u64 {
        let unseen: u64 = self
            .unseen
            .iter()
            .filter(|(when, _)| *when >= at)
            .map(|(_, ms)| ms)
            .sum();
        self.truth - at - unseen
    }
}

/// Asks all rules; both counters have to say the same.
fn ask(node: &mut Node, session: usize, spacing: u64, flags: &Flags) -> bool {
    let asked = verdict(
        &node.state,
        &around(flags, spacing),
        &id(session),
        Purpose::Dead,
        node.now,
    );
    let words: Vec<&str> = asked.refusals().map(|answer| answer.rule.word()).collect();
    let expected = reasons(node, session, spacing);
    assert_eq!(
        words, expected,
        "{asked:?} of {session} after {:?}",
        node.path
    );
    lifts_are_right(node, session, spacing, &asked);
    expected.is_empty()
}

/// Asks for a permit, which is given when all rules agree.
fn take(node: &mut Node, session: usize, spacing: u64, flags: &Flags) -> Option<Permit> {
    let agreed = ask(node, session, spacing, flags);
    let before = (!agreed).then(|| node.state.clone());
    let around = around(flags, spacing);
    let permit = permit(
        &mut node.state,
        &around,
        &id(session),
        Purpose::Dead,
        "test",
        node.now,
    )
    .ok();
    assert_eq!(permit.is_some(), agreed, "{:?}", node.path);
    if let Some(before) = before {
        assert_eq!(
            node.state, before,
            "a refusal changed something: {:?}",
            node.path
        );
    }
    if let Some(permit) = &permit {
        assert_eq!((permit.id(), permit.profile()), (&id(session), &profile()));
    }
    permit
}

fn around(flags: &Flags, spacing: u64) -> Surroundings<'_> {
    Surroundings {
        flags,
        limits: Limits {
            spacing: Duration::from_millis(spacing),
            ..Limits::default()
        },
        remembered: true,
    }
}

/// A refusal that names the moment when it lifts is right to the millisecond.
fn lifts_are_right(node: &mut Node, session: usize, spacing: u64, verdict: &Verdict) {
    let Some(lifts) = verdict.lifts().filter(|_| !verdict.agrees()) else {
        return;
    };
    let (truth, ms) = (node.truth, lifts.0 - node.now.0);
    node.truth = truth + ms - 1;
    assert!(
        !reasons(node, session, spacing).is_empty(),
        "too late: {:?}",
        node.path
    );
    node.truth = truth + ms;
    assert_eq!(
        reasons(node, session, spacing),
        [""; 0],
        "too early: {:?}",
        node.path
    );
    node.truth = truth;
}

/// The promises themselves, in true time.
fn promises_hold(node: &Node, session: usize, spacing: u64) {
    let age = |node: &Node, at: u64| node.truth - at;
    let path = &node.path;
    assert!(
        window(node, session, 300_000, age) <= 3,
        "more than 3 in 300 s: {path:?}"
    );
    assert!(
        window(node, session, 60_000, age) <= 1,
        "within the cool-down: {path:?}"
    );
    let near: usize = (0..2).map(|s| window(node, s, spacing, age)).sum();
    assert!(near <= 1, "two within the spacing: {path:?}");
}

/// Carries an event out; `None` when it cannot happen, or changed nothing.
fn follow(node: &Node, event: Event, spacing: u64, flags: &Flags) -> Option<Node> {
    let mut next = node.clone();
    next.path.push(event);
    match event {
        Event::Restart(session, answer) => {
            take(&mut next, session, spacing, flags)?;
            next.begin(session, spacing);
            next.wait(ANSWER_MS);
            next.open = None;
            next.close(session, &answer.text());
            next.fact(What::Answered(session, answer));
        }
        Event::Begin(session) => {
            take(&mut next, session, spacing, flags)?;
            next.begin(session, spacing);
        }
        Event::End => {
            let session = next.open.take()?;
            next.close(session, &Restarted::Unknown(String::new()));
            next.fact(What::Unknown(session));
        }
        Event::Wait(seconds) => next.wait(seconds * 1000),
        Event::Reload(step) => next.reload(step),
        Event::Reboot => next.reboot(),
        Event::NoEffect(session) => next.judge(session, false)?,
        Event::Done(session) => next.judge(session, true)?,
        Event::Well(session) => {
            let memory = next.state.sessions.get(&id(session)).unwrap();
            if next.open.is_some() || memory.since_well == 0 && memory.skipped.is_none() {
                return None;
            }
            let now = next.now;
            well(&mut next.state, &id(session), now);
            next.fact(What::Well(session));
        }
    }
    Some(next)
}

impl Answer {
    fn text(self) -> Restarted {
        match self {
            Answer::Accepted => Restarted::Accepted(String::new()),
            Answer::Failed => Restarted::Failed("exit 1".to_owned()),
            Answer::Skipped => Restarted::Skipped("something".to_owned()),
            Answer::RateLimit => Restarted::Failed("HTTP 429".to_owned()),
            Answer::Host => Restarted::Failed("cannot fork".to_owned()),
        }
    }
}

impl Node {
    fn begin(&mut self, session: usize, spacing: u64) {
        self.wait(START_MS);
        begun(&mut self.state, &id(session), self.now);
        self.open = Some(session);
        self.fact(What::Began(session));
        promises_hold(self, session, spacing);
    }

    fn close(&mut self, session: usize, answer: &Restarted) {
        self.state.profile(&profile()).running = None;
        answered(&mut self.state, &id(session), answer, self.now);
    }

    fn reload(&mut self, step: i64) {
        let bytes = self.state.encode(self.now, &self.reading());
        self.wall = self.wall.checked_add_signed(step * 1000).unwrap();
        self.now = Time(self.wall);
        self.state = State::decode(&bytes, self.now, &self.reading()).unwrap();
    }

    fn reboot(&mut self) {
        let bytes = self.state.encode(self.now, &self.reading());
        self.wall -= 3_600_000;
        self.boot = 20_000;
        self.boots += 1;
        self.unseen.push((self.truth, 20_000));
        self.truth += 20_000;
        self.now = Time(self.wall);
        self.state = State::decode(&bytes, self.now, &self.reading()).unwrap();
    }

    /// Looks what became of the last restart. `None` when it is known already.
    fn judge(&mut self, session: usize, new_agent: bool) -> Option<()> {
        let row = Session {
            status: Status::Error,
            is_conductor: true,
            ..Session::new(profile(), id(session))
        };
        if self.open.is_some() {
            return None;
        }
        let since = Since {
            row: &row,
            new_agent,
            seen: true,
        };
        let line = verify(&mut self.state, &id(session), &since, self.now)?;
        assert_eq!(line.outcome, if new_agent { "done" } else { "no effect" });
        self.fact(if new_agent {
            What::Done(session)
        } else {
            What::NoEffect(session)
        });
        Some(())
    }
}

/// Whether an event after the last one makes a sequence that is none of another
/// order: waits are taken the longest first, and one reload is like two.
fn leads_elsewhere(last: Option<&Event>, event: Event) -> bool {
    match (last, event) {
        (Some(Event::Wait(before)), Event::Wait(then)) => *before >= then,
        (Some(Event::Reload(_)), Event::Reload(_) | Event::Reboot) => false,
        _ => true,
    }
}

/// All sequences of `depth` more events. How many there were.
fn explore(node: &mut Node, depth: usize, spacing: u64, flags: &Flags) -> u64 {
    if depth == 0 {
        // The last question of each sequence.
        for session in 0..2 {
            ask(node, session, spacing, flags);
        }
        return 1;
    }
    let mut count = 0;
    for event in EVENTS {
        if leads_elsewhere(node.path.last(), event)
            && let Some(mut next) = follow(node, event, spacing, flags)
        {
            count += explore(&mut next, depth - 1, spacing, flags);
        }
    }
    count
}

fn after(events: &[Event], spacing: u64) -> Node {
    let flags = Flags::default();
    let step = |node: Node, event: &Event| follow(&node, *event, spacing, &flags).unwrap();
    events.iter().fold(start(), step)
}

fn all(mut start: Node, usual_depth: usize, spacing: u64) {
    let depth = std::env::var("GUARD_DEPTH")
        .ok()
        .and_then(|d| d.parse().ok());
    let depth = depth.unwrap_or(usual_depth);
    let count = explore(&mut start, depth, spacing, &Flags::default());
    println!("{count} sequences of {depth} events");
    assert!(count > 500);
}

const ONE: [Event; 2] = [Event::Restart(0, Answer::Accepted), Event::Wait(61)];

#[test]
fn every_sequence_from_nothing() {
    all(start(), 4, 60_000);
}

#[test]
fn every_sequence_from_nothing_with_a_short_spacing() {
    all(start(), 3, 20_000);
}

#[test]
fn every_sequence_from_nothing_with_a_long_spacing() {
    all(start(), 3, 90_000);
}

#[test]
fn every_sequence_after_two_restarts() {
    all(after(&[ONE, ONE].concat(), 60_000), 4, 60_000);
}

#[test]
fn every_sequence_after_three_restarts() {
    all(after(&[ONE, ONE, ONE].concat(), 60_000), 4, 60_000);
}

#[test]
fn every_sequence_in_a_crash_loop() {
    let loop_ = [
        ONE.as_slice(),
        &ONE,
        &ONE,
        &[Event::Wait(240)],
        &ONE,
        &[Event::Wait(240)],
    ];
    all(after(&loop_.concat(), 60_000), 4, 60_000);
}
