//! Without a limit of nudges capability 3 is the manual's: a week of children,
//! beside the ten lines of its rule (ladder I12).
//!
//! This file does not know how the watchdog decides.

use std::collections::BTreeMap;

use agent_deck_watchdog::model::{SessionId, Status};

use super::{DAY, Stage};
use crate::front::Mood;

const THRESHOLD: u64 = 600;
const DEDUP: u64 = 3600;
const POLL: u64 = 60;
/// Six that are due together are asked in three turns, and the list before them is a
/// poll old.
const SLACK: u64 = 5 * POLL;

/// What the manual keeps of a child: its screen and since when, and when it was
/// last asked; in seconds.
#[derive(Default)]
struct Kept {
    screen: Option<(u64, u64)>,
    asked: Option<u64>,
}

impl Kept {
    /// A child as it is listed; returns since when it would be asked.
    fn sees(&mut self, waits: bool, screen: u64, now: u64) -> Option<u64> {
        if !waits {
            self.screen = None;
            return None;
        }
        let (same, since) = *self.screen.get_or_insert((screen, now));
        if same != screen {
            self.screen = Some((screen, now));
            return None;
        }
        let due = (since + THRESHOLD).max(self.asked.map_or(0, |at| at + DEDUP));
        (due <= now).then_some(due)
    }
}

/// Children that answer in as many ways as there are ones that move a screen.
fn children(stage: &mut Stage) -> Vec<SessionId> {
    let moods = [
        Mood::Echoes,
        Mood::Works(1000),
        Mood::Works(90_000),
        Mood::Works(15 * 60_000),
        Mood::Works(50 * 60_000),
        Mood::Works(2 * 3_600_000),
    ];
    let mut ids = Vec::new();
    for (number, mood) in moods.into_iter().enumerate() {
        let id = stage.child(&format!("worker-{number}"));
        stage.row(&id).mood = mood;
        ids.push(id);
    }
    ids
}

#[test]
fn without_a_limit_a_week_is_the_manuals() {
    let mut stage = Stage::new();
    stage.play.poll = POLL * 1000;
    stage.play.calm_poll = POLL * 1000;
    stage.sim().checks.unlimited = true;
    let ids = children(&mut stage);
    let rests = stage.session("worker-without-parent");
    let mut manual: BTreeMap<SessionId, Kept> = BTreeMap::new();
    let (mut sent, mut seen) = (0, 0);
    for round in 0..7 * DAY / POLL {
        stage.seconds(POLL);
        let now = (round + 1) * POLL;
        for call in &stage.play.sim.ledger[seen..] {
            let of = ids.iter().find(|id| id.as_str() == call.of);
            if call.verb != "send" {
                let reads = ["list", "show", "pane", "children"].contains(&call.verb);
                assert!(reads, "{call:?}");
                continue;
            }
            let kept = manual.entry(of.expect("a child").clone()).or_default();
            let at = (call.at - crate::clock::START) / 1000;
            let ripe = kept
                .screen
                .is_some_and(|(_, since)| at + SLACK >= since + THRESHOLD);
            let rested = kept.asked.is_none_or(|asked| at >= asked + DEDUP);
            assert!(
                ripe && rested,
                "the manual would not ask {} at {at}",
                call.of
            );
            kept.asked = Some(at);
            sent += 1;
        }
        seen = stage.play.sim.ledger.len();
        for id in &ids {
            let row = stage.row(id);
            let (waits, screen) = (row.word == Status::Waiting, row.front.content);
            let due = manual
                .entry(id.clone())
                .or_default()
                .sees(waits, screen, now);
            let late = due.is_some_and(|due| now > due + SLACK);
            assert!(
                !late,
                "at {now} the manual would have asked {id} since {due:?}"
            );
        }
    }
    assert!(stage.sends(&rests).is_empty());
    // An hour, or an hour of work and ten minutes, between two.
    assert!(sent > 4 * 7 * 23, "{sent}");
    stage.play.promises_were_kept("this scenario");
}
