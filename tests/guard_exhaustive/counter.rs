//! The stupid counter: it keeps a list of all that ever happened and goes
//! through the whole of it at each question.
//!
//! This file does not know how the guard counts.

use super::{Answer, Node};

/// One line of the stupid counter's list. Times are true seconds times 1000.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    pub at: u64,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A restart of that session began; the answer follows at once or later.
    Began(usize),
    Answered(usize, Answer),
    /// It ended and nobody knows how.
    Unknown(usize),
    NoEffect(usize),
    Done(usize),
    Well(usize),
}

/// Seconds of the rules, written down a second time.
pub fn window(node: &Node, session: usize, ms: u64, age: impl Fn(&Node, u64) -> u64) -> usize {
    restarts(node)
        .iter()
        .filter(|f| f.0 == session && age(node, f.1) < ms)
        .count()
}

/// Restarts that count: began, and neither declined nor stopped by the machine.
fn restarts(node: &Node) -> Vec<(usize, u64)> {
    let mut kept: Vec<(usize, u64)> = Vec::new();
    for fact in &node.facts {
        match fact.what {
            What::Began(session) => kept.push((session, fact.at)),
            What::Answered(session, Answer::Skipped | Answer::Host) => {
                let last = kept.iter().rposition(|(s, _)| *s == session).unwrap();
                kept.remove(last);
            }
            What::Answered(..)
            | What::Unknown(_)
            | What::NoEffect(_)
            | What::Done(_)
            | What::Well(_) => {}
        }
    }
    kept
}

/// The crash loop of a session: restarts since it was well, and when it may be
/// tried again (true time).
fn crash_loop(node: &Node, session: usize) -> Option<(u64, u64)> {
    let mut count: usize = 0;
    let mut streak = 0;
    let mut last = 0;
    let mut before = (0, 0);
    for fact in &node.facts {
        match fact.what {
            What::Began(s) if s == session => {
                before = (count, last);
                count += 1;
                last = fact.at;
            }
            What::Answered(s, Answer::Skipped | Answer::Host | Answer::RateLimit)
                if s == session =>
            {
                (count, last) = before;
            }
            What::NoEffect(s) if s == session => {
                streak += 1;
                if streak >= 2 && count < 3 {
                    count = 3;
                }
            }
            What::Done(s) if s == session => streak = 0,
            What::Well(s) if s == session => (count, streak) = (0, 0),
            What::Began(_)
            | What::Answered(..)
            | What::Unknown(_)
            | What::NoEffect(_)
            | What::Done(_)
            | What::Well(_) => {}
        }
    }
    let minutes = *[5, 10, 20, 40, 60]
        .get(count.checked_sub(3)?)
        .unwrap_or(&60);
    Some((minutes * 60_000, last))
}

/// Back-off of all sessions after limits: 180 s, doubled while they go on.
fn rate_limit(node: &Node) -> Option<(u64, u64)> {
    let mut standing: Option<(u64, u64)> = None;
    for fact in &node.facts {
        // It is over when as much again and a minute have passed.
        let passed = |at: u64| node.known_age(at) - node.known_age(fact.at);
        standing = standing.filter(|(ms, at)| passed(*at) < 2 * ms + 60_000);
        match fact.what {
            What::Answered(_, Answer::RateLimit) => {
                let ms = standing.map_or(180_000, |(ms, _)| (2 * ms).min(1_800_000));
                standing = Some((ms, fact.at));
            }
            What::Answered(_, Answer::Accepted) => standing = None,
            What::Began(_)
            | What::Answered(..)
            | What::Unknown(_)
            | What::NoEffect(_)
            | What::Done(_)
            | What::Well(_) => {}
        }
    }
    standing
}

fn host_trouble(node: &Node) -> Option<(u64, u64)> {
    let mut standing = None;
    for fact in &node.facts {
        match fact.what {
            What::Answered(_, Answer::Host) => standing = Some((60_000, fact.at)),
            What::Answered(_, Answer::Accepted) => standing = None,
            What::Began(_)
            | What::Answered(..)
            | What::Unknown(_)
            | What::NoEffect(_)
            | What::Done(_)
            | What::Well(_) => {}
        }
    }
    standing
}

/// After `skipped`: 15 s, doubled up to 5 min.
fn declined(node: &Node, session: usize) -> Option<(u64, u64)> {
    let mut standing: Option<(u64, u64)> = None;
    for fact in &node.facts {
        match fact.what {
            What::Answered(s, Answer::Skipped) if s == session => {
                let ms = standing.map_or(15_000, |(ms, _)| (2 * ms).min(300_000));
                standing = Some((ms, fact.at));
            }
            What::Answered(s, Answer::Accepted) if s == session => standing = None,
            What::Well(s) if s == session => standing = None,
            What::Began(_)
            | What::Answered(..)
            | What::Unknown(_)
            | What::NoEffect(_)
            | What::Done(_)
            | What::Well(_) => {}
        }
    }
    standing
}

/// Every reason the counter has to refuse.
pub fn reasons(node: &Node, session: usize, spacing: u64) -> Vec<&'static str> {
    let mut reasons = Vec::new();
    let mut add = |refuses: bool, what| {
        if refuses {
            reasons.push(what);
        }
    };
    let waits =
        |back_off: Option<(u64, u64)>| back_off.is_some_and(|(ms, at)| node.known_age(at) < ms);
    let age = Node::known_age;
    add(node.open.is_some(), "busy");
    add(window(node, session, 300_000, age) >= 3, "burst-limit");
    add((0..2).any(|s| window(node, s, spacing, age) > 0), "spacing");
    add(window(node, session, 60_000, age) > 0, "cool-down");
    add(waits(rate_limit(node)), "rate-limit");
    add(waits(host_trouble(node)), "host-trouble");
    add(waits(crash_loop(node, session)), "crash-loop");
    add(waits(declined(node, session)), "skipped");
    reasons
}
