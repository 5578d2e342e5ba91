//! Scenarios: what a restart led to (section 2).
//!
//! This file does not know who is restarted when.

use agent_deck_watchdog::model::Restarted;

use super::Stage;
use crate::deck::{Answer, Lie, OnStart, Terminal};

#[test]
fn restart_without_effect() {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-a");
    stage.row(&id).on_start = OnStart::Nothing;
    stage.seconds(300);
    stage.at_about(&id, &[0, 60]);
    let told = stage.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("restarting changes nothing"), "{told:?}");
    assert!(told[0].contains("the tmux server is stuck"), "{told:?}");
    assert_eq!(
        stage.outcomes(),
        ["accepted", "no effect", "accepted", "no effect"]
    );
}

#[test]
fn same_screen_after_restart() {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-a");
    let row = stage.row(&id);
    row.terminal = Terminal::Ended;
    row.sandboxed = true;
    row.on_start = OnStart::Nothing;
    stage.seconds(70);
    assert_eq!(stage.outcomes()[..2], ["accepted", "no effect"]);
    assert_eq!(stage.told().len(), 1);
}

#[test]
fn half_started() {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-a");
    stage.row(&id).on_start = OnStart::Nothing;
    let of = id.clone();
    stage
        .sim()
        .after(1000, move |sim| sim.row(&of).lie = Some(Lie::Starting));
    stage.seconds(58);
    assert_eq!(stage.outcomes(), ["accepted"]);
    stage.seconds(242);
    stage.at_about(&id, &[0]);
    assert_eq!(stage.outcomes(), ["accepted", "unverified"]);
    assert_eq!(stage.told().len(), 1, "{:?}", stage.told());
}

#[test]
fn skipped_is_not_done() {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-a");
    stage.answers(&id, Restarted::Skipped("it is being looked at".to_owned()));
    stage.seconds(120);
    // Again after 15 s, then 30 s, then 60 s.
    stage.at_about(&id, &[0, 15, 45, 105]);
    assert_eq!(stage.outcomes(), ["skipped"; 4]);
    assert!(
        stage
            .log()
            .contains("agent-deck declined: it is being looked at")
    );
    assert_eq!(stage.budget_used(&id), 0);
    assert_eq!(stage.says("restart: done"), 0);
}

#[test]
fn skipped_for_its_freshness_waits_a_minute() {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-a");
    let reason = "started 3s ago (within 1m0s freshness window)".to_owned();
    stage.answers(&id, Restarted::Skipped(reason));
    stage.seconds(65);
    stage.at_about(&id, &[0, 60]);
}

#[test]
fn a_restart_by_somebody_else_is_a_recovery() {
    let mut stage = Stage::new();
    let id = stage.session("conductor-a");
    stage.seconds(62);
    stage.row(&id).on_start = OnStart::Ends(4000);
    stage.sim().restart(&id, false);
    stage.seconds(58);
    assert_eq!(stage.restarts(), []);
    assert_eq!(stage.says("was restarted by somebody else"), 1);
    stage.row(&id).on_start = OnStart::Lives;
    stage.seconds(60);
    // Its cool-down is over.
    stage.at_about(&id, &[122]);
}

#[test]
fn an_answer_that_was_lost_is_no_failure() {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-a");
    let text = "failed to save session state: database is locked".to_owned();
    let row = stage.row(&id);
    row.answer = Answer::DoneBut(Restarted::Unknown(text));
    stage.seconds(300);
    stage.at_about(&id, &[0]);
    assert_eq!(stage.outcomes(), ["unknown", "done"]);
}

#[test]
fn restart_log_tells_why() {
    let mut stage = Stage::new();
    let works = stage.dead("conductor-a");
    let fails = stage.dead("conductor-b");
    stage.fails(&fails, "exit 1");
    stage.seconds(70);
    let log = &stage.play.sim.restart_log;
    let events = |event: &str, id: &agent_deck_watchdog::model::SessionId| {
        let fits = |line: &&serde_json::Map<_, _>| {
            line["event"] == event && line["session"] == id.as_str()
        };
        log.iter().filter(fits).cloned().collect::<Vec<_>>()
    };
    let attempt = &events("attempt", &works)[0];
    assert_eq!(attempt["capability"], "restart");
    assert_eq!(attempt["title"], "conductor-a");
    assert!(
        attempt["evidence"]
            .as_str()
            .unwrap()
            .contains("its terminal is gone")
    );
    let rules = attempt["guard"].as_object().unwrap();
    assert!(
        rules["spacing"]
            .as_str()
            .unwrap()
            .contains("60 s between any two"),
        "{rules:?}"
    );
    assert_eq!(events("outcome", &works).last().unwrap()["outcome"], "done");
    let refusal = &events("refusal", &fails)[0];
    assert_eq!(refusal["rule"], "spacing");
    assert_eq!(events("outcome", &fails)[0]["outcome"], "failed");
}
