//! Scenarios: children that die (section 9), and what freezes the ladder.
//!
//! This file does not know how parents are written to.

use agent_deck_watchdog::model::{SessionId, Silence, Substate};

use super::{DAY, HOUR, Stage};
use crate::deck::Lie;
use crate::front::{Mood, Plan};

fn died(stage: &Stage, id: &SessionId) -> Vec<String> {
    let told = stage.told().into_iter();
    told.filter(|line| line.contains(id.as_str()) && line.contains("is dead"))
        .collect()
}

#[test]
fn death_told_once() {
    for restarted in [false, true] {
        let mut stage = Stage::new();
        let id = stage.child("worker-a");
        stage.seconds(100);
        stage.sim().end_agent(&id);
        stage.seconds(150);
        assert_eq!(died(&stage, &id).len(), 1, "{}", stage.log());
        if restarted {
            stage.play.kill();
        }
        stage.seconds(DAY);
        assert_eq!(died(&stage, &id).len(), 1);
        assert_eq!(stage.restarts(), []);
        // Alive for five minutes, it may die anew.
        stage.sim().user_starts(&id);
        stage.seconds(200);
        stage.sim().end_agent(&id);
        stage.seconds(400);
        assert_eq!(died(&stage, &id).len(), 1, "too short to have recovered");
        stage.sim().user_starts(&id);
        stage.seconds(60);
        stage.sim().works(&id, 400_000);
        stage.seconds(450);
        stage.sim().end_agent(&id);
        stage.seconds(300);
        assert_eq!(died(&stage, &id).len(), 2, "{}", stage.log());
    }
}

#[test]
fn death_needs_confirmation() {
    let mut stage = Stage::new();
    stage.session("conductor-a");
    let id = stage.child("worker-a");
    stage.seconds(100);
    for _ in 0..20 {
        stage.row(&id).lie = Some(Lie::Banner);
        stage.seconds(20);
        stage.sim().speaks_true(&id, Lie::Banner);
        stage.seconds(5);
    }
    assert_eq!(stage.told(), [""; 0], "{}", stage.log());
    stage.sim().end_agent(&id);
    stage.seconds(55);
    assert_eq!(died(&stage, &id).len(), 0);
    stage.seconds(60);
    assert_eq!(died(&stage, &id).len(), 1);
}

/// A living agent below `error` is told as what it is, and late.
#[test]
fn an_error_over_a_living_agent_is_told_as_one() {
    let mut stage = Stage::new();
    stage.session("conductor-a");
    let id = stage.child("worker-a");
    stage.seconds(100);
    stage.row(&id).lie = Some(Lie::Banner);
    stage.seconds(170);
    assert_eq!(died(&stage, &id).len(), 0);
    stage.seconds(100);
    assert_eq!(died(&stage, &id).len(), 0);
    let told = stage.told();
    assert!(
        told.len() == 1 && told[0].contains("reads error for 3 min, although its agent lives"),
        "{told:?}"
    );
}

/// T31, and a row that was added and never started.
#[test]
fn what_was_dead_before_and_what_never_lived_is_no_news() {
    let mut stage = Stage::new();
    let old = stage.child("worker-a");
    stage.sim().end_agent(&old);
    let never = stage.child("worker-b");
    let row = stage.row(&never).clone().never_started();
    *stage.row(&never) = row;
    stage.seconds(HOUR);
    assert_eq!(stage.told(), [""; 0], "{}", stage.log());
}

#[test]
fn restart_comes_before_the_notice() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    stage.sim().files.autorestart.push(id.clone());
    stage.seconds(100);
    stage.sim().end_agent(&id);
    stage.seconds(600);
    assert_eq!((stage.restarts().len(), died(&stage, &id).len()), (1, 0));
    // Its restarts are given up: then one.
    stage.fails(&id, "exit status 1");
    stage.sim().end_agent(&id);
    stage.seconds(3 * HOUR);
    assert_eq!(died(&stage, &id).len(), 1, "{}", stage.log());
}

/// T16 to T18: no nudge is counted while a decision is visible, and none is
/// forgotten.
#[test]
fn a_decision_freezes_the_ladder_and_is_told_once_a_dwell() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    stage.row(&id).mood = Mood::Echoes;
    stage.seconds(700);
    stage.asked_at(&id, &[600]);
    stage.sim().stands(&id, Some(Silence::Dialog));
    stage.sim().hook(&id, "PermissionRequest");
    stage.seconds(650);
    let told = |stage: &Stage| {
        let told = stage.told().into_iter();
        told.filter(|line| line.contains("for a decision")).count()
    };
    assert_eq!(
        (stage.remembered_child(&id)["rung"].as_str(), told(&stage)),
        (Some("gated"), 1)
    );
    // Another question within the dwell is not told before it is over.
    stage.sim().moves(&id);
    stage.sim().hook(&id, "PermissionRequest");
    stage.seconds(1300);
    assert_eq!(told(&stage), 1);
    stage.seconds(2700);
    assert_eq!(told(&stage), 2);
    stage.sim().stands(&id, None);
    stage.sim().hook(&id, "PostToolUse");
    stage.seconds(60);
    let child = stage.remembered_child(&id);
    assert_eq!(
        (child["rung"].as_str(), child["nudges"].as_u64()),
        (Some("nudged"), Some(1))
    );
    assert_eq!(stage.sends(&id).len(), 1);
}

/// T19, T20: the timer begins anew when the limit is gone.
#[test]
fn a_limit_is_told_once_and_nobody_is_asked_meanwhile() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    stage.row(&id).substate = Some(Substate::UsageLimit);
    stage.seconds(5 * HOUR);
    let told = stage.told();
    assert!(
        told.len() == 1 && told[0].contains("usage limit"),
        "{told:?}"
    );
    assert_eq!(stage.remembered_child(&id)["rung"], "held");
    stage.row(&id).substate = None;
    stage.seconds(590);
    assert_eq!(stage.calls("send"), []);
    // The pane is read rarely while nothing is due.
    stage.seconds(1900);
    assert_eq!(stage.sends(&id).len(), 1, "{}", stage.log());
}

/// I12: with no limit the child is asked each hour for ever.
#[test]
fn without_a_limit_nudges_go_on_each_hour() {
    let mut stage = Stage::new();
    stage.sim().checks.unlimited = true;
    let id = stage.child("worker-a");
    stage.row(&id).mood = Mood::Echoes;
    stage.seconds(8 * HOUR + 700);
    assert_eq!(stage.sends(&id).len(), 9, "{:?}", stage.sends(&id));
    assert_eq!(stage.told(), [""; 0]);
    assert_eq!(stage.says("(nudge 8)"), 1);
}

#[test]
fn restarts_come_first() {
    let mut stage = Stage::new();
    let critical = stage.session("conductor-a");
    let ids: Vec<SessionId> = (0..8)
        .map(|n| stage.child(&format!("worker-{n}")))
        .collect();
    for id in &ids {
        stage.row(id).plan = Plan::Takes(15_000);
    }
    stage.seconds(600);
    stage.sim().end_agent(&critical);
    stage.seconds(300);
    let first = stage.calls("send")[0].0;
    assert!(stage.times(&critical)[0] <= first, "{}", stage.log());
    // No turn has more than two; that is checked at each.
    assert_eq!(stage.calls("send").len(), 8);
}

/// One that comes back and only waits is asked as before.
#[test]
fn who_was_dead_and_waits_is_asked_again() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    stage.seconds(100);
    stage.sim().end_agent(&id);
    stage.seconds(HOUR);
    assert_eq!(stage.remembered_child(&id)["rung"], "dead");
    stage.sim().user_starts(&id);
    stage.seconds(1000);
    assert_eq!(stage.sends(&id).len(), 1, "{}", stage.log());
}
