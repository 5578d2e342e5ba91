//! Scenarios in which all three capabilities, cron and the user meet (sections
//! 1, 2, 5 and 7).
//!
//! This file does not know what any of the capabilities looks at.

use agent_deck_watchdog::model::Silence;

use super::{DAY, HOUR, Stage};
use crate::deck::OnStart;
use crate::disk::Written;

#[test]
fn stopped_stays_stopped() {
    let mut stage = Stage::new();
    stage.play.poll = 20_000;
    let id = stage.deaf("conductor-a", "a");
    let row = stage.row(&id);
    row.group = "conductor".to_owned();
    row.is_conductor = true;
    row.parent = "0a0a0a0a-1755900000".to_owned();
    stage.sim().files.autorestart.push(id.clone());
    stage.sim().user_ends(&id, "stop", 300);
    stage.sim().advance(400);
    stage.seconds(DAY);
    stage.nothing_happened();
    assert_eq!((stage.calls("send"), stage.calls("ps")), (vec![], vec![]));
}

#[test]
fn stop_wins_the_race() {
    // Decided for its poller, and stopped before the command is issued: what
    // is read last is what the watchdog decides by.
    for after in [0, 20, 40, 60, 90, 120, 150, 200] {
        let mut stage = Stage::new();
        let id = stage.deaf("conductor-a", "a");
        stage.seconds(29);
        stage.play.until(crate::clock::START + 29_900 + after);
        stage.sim().user_ends(&id, "stop", 30);
        stage.seconds(HOUR);
        assert!(stage.times(&id).len() <= 1);
        if stage.times(&id).is_empty() {
            assert_eq!(stage.told(), [""; 0]);
        }
    }
    // One that was stopped when the watchdog started.
    let mut stage = Stage::new();
    let id = stage.deaf("conductor-a", "a");
    stage.sim().user_ends(&id, "stop", 30);
    stage.sim().advance(100);
    stage.seconds(DAY / 4);
    stage.nothing_happened();
}

#[test]
fn title_equal_to_an_id() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    let other = stage.session("worker-b");
    stage.row(&other).title = id.to_string();
    stage.row(&id).show_answers = Some(other);
    stage.seconds(5 * HOUR);
    assert_eq!(stage.calls("send"), []);
    let told = stage.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains(id.as_str()), "{told:?}");
}

#[test]
fn once_runs_one_pass() {
    let mut stage = Stage::cron();
    stage.sim().checks.threshold = 60_000;
    stage.sim().checks.spacing = 1000;
    let child = stage.child("worker-a");
    let deaf = stage.deaf("conductor-a", "a");
    stage.seconds(120);
    let dead = stage.dead("conductor-b");
    stage.seconds(50);
    // What is due is served by the runs that see it.
    assert_eq!(stage.times(&dead).len(), 1);
    assert_eq!(stage.times(&deaf).len(), 1);
    assert_eq!(stage.sends(&child).len(), 1);
    assert!(stage.play.watch.is_none() && stage.play.sim.commands.is_empty());
}

#[test]
fn dry_run_changes_nothing() {
    for cron in [false, true] {
        let mut stage = if cron { Stage::cron() } else { Stage::new() };
        let dead = stage.dead("conductor-a");
        let deaf = stage.deaf("conductor-b", "b");
        let child = stage.child("worker-a");
        let dialog = stage.child_at("worker-b", Silence::Dialog);
        stage.sim().dry_run = true;
        stage.seconds(HOUR);
        assert_eq!((stage.restarts(), stage.calls("send")), (vec![], vec![]));
        assert_eq!(stage.told(), [""; 0]);
        assert!(stage.play.sim.disk.is_none() && stage.play.sim.restart_log.is_empty());
        assert!(stage.says("conductor-a 1a2b3c00-1755900000: would be restarted") > 0);
        if !cron {
            assert!(stage.says("conductor-b 1a2b3c01-1755900001: would be restarted") > 0);
            assert!(stage.says("worker-a 1a2b3c02-1755900002: would be asked") > 0);
        }
        stage.sim().dry_run = false;
        stage.play.kill();
        stage.seconds(800);
        assert_eq!(stage.times(&dead).len(), 1);
        assert_eq!(stage.times(&deaf).len(), 1);
        assert_eq!(stage.sends(&child).len(), 1);
        assert_eq!(stage.sends(&dialog).len(), 0);
        assert_eq!(stage.budget_used(&dead) + stage.budget_used(&deaf), 2);
    }
}

#[test]
fn a_lost_memory_asks_and_reconnects_nobody_for_an_hour() {
    let mut stage = Stage::new();
    let child = stage.child("worker-a");
    let deaf = stage.deaf("conductor-a", "a");
    stage.sim().disk = Some(Written::Bytes(vec![0; 100]));
    stage.seconds(3590);
    assert_eq!((stage.calls("send"), stage.restarts()), (vec![], vec![]));
    stage.seconds(100);
    assert_eq!(stage.sends(&child).len(), 1);
    assert_eq!(stage.times(&deaf).len(), 1);
}

#[test]
fn a_dead_owner_is_the_business_of_the_first_capability() {
    let mut stage = Stage::new();
    let id = stage.owner("conductor-a", "a");
    stage.seconds(100);
    stage.row(&id).on_start = OnStart::Lives;
    stage.sim().end_agent(&id);
    stage.seconds(HOUR);
    assert_eq!(stage.times(&id).len(), 1);
    let attempts = stage.restart_lines("attempt");
    assert_eq!(attempts[0]["capability"], "restart");
    assert_eq!(stage.outcomes(), ["accepted", "done", "poller"]);
    assert_eq!(stage.told(), [""; 0]);
}
