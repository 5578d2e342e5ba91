//! Scenarios: the guardrails (section 2).
//!
//! This file does not know how dead sessions are recognised.

use agent_deck_watchdog::model::{Restarted, SessionId};

use super::{HOUR, Stage};
use crate::deck::{Answer, OnStart};

#[test]
fn three_restarts_per_300s() {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-a");
    stage.fails(&id, "exit 1");
    stage.seconds(300);
    stage.at_about(&id, &[0, 60, 120]);
    assert_eq!(stage.told().len(), 1, "{:?}", stage.told());
    let escalations = &stage.play.sim.escalation_log;
    assert_eq!(
        escalations
            .iter()
            .filter(|line| line["outcome"] == "sent")
            .count(),
        1
    );
    // Then crash-loop distances, for ever: 5, 10, 20, 40, 60, 60 min.
    stage.seconds(5 * HOUR);
    let minutes: Vec<u64> = stage
        .times(&id)
        .windows(2)
        .map(|two| (two[1] - two[0]) / 60)
        .collect();
    assert_eq!(minutes, [1, 1, 5, 10, 20, 40, 60, 60, 60]);
}

#[test]
fn one_restart_per_60s_overall() {
    for spacing in [60, 90] {
        let mut stage = Stage::new();
        stage.sim().checks.spacing = spacing * 1000;
        let ids = [stage.session("conductor-a"), stage.session("conductor-b")];
        stage.seconds(62);
        stage.sim().kill_server(0);
        stage.seconds(300);
        stage.at_about(&ids[0], &[62]);
        stage.at_about(&ids[1], &[62 + spacing]);
    }
}

#[test]
fn cool_down_60s() {
    let mut stage = Stage::new();
    let id = stage.session("conductor-a");
    stage.row(&id).on_start = OnStart::Ends(5000);
    stage.seconds(62);
    stage.sim().end_agent(&id);
    stage.seconds(59);
    stage.at_about(&id, &[62]);
    stage.row(&id).on_start = OnStart::Lives;
    stage.seconds(300);
    stage.at_about(&id, &[62, 122]);
}

#[test]
fn rate_limit_in_restart_output() {
    for text in ["HTTP 429", "Rate Limit exceeded", "RATE LIMIT"] {
        let mut stage = Stage::new();
        let ids = [stage.dead("conductor-a"), stage.dead("conductor-b")];
        for id in &ids {
            stage.fails(id, text);
        }
        stage.seconds(1300);
        // 180 s, then 360 s, then 720 s.
        let times: Vec<u64> = stage.restarts().into_iter().map(|(at, _)| at).collect();
        let gaps: Vec<u64> = times.windows(2).map(|two| (two[1] - two[0]) / 60).collect();
        assert_eq!(gaps, [3, 6, 12], "{text}: {times:?}");
        assert_eq!(
            stage
                .told()
                .iter()
                .filter(|l| l.contains("a rate limit"))
                .count(),
            1
        );
        assert_eq!(stage.remembered(&ids[0])["since_well"], 0);
    }
}

#[test]
fn confusion_escalates() {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-a");
    stage.fails(&id, "AMBIGUOUS: 'x' matches several sessions");
    stage.seconds(300);
    assert!(stage.order().iter().all(|of| of == id.as_str()));
    let told = stage.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("matches several sessions"), "{told:?}");
}

#[test]
fn recovered_before_its_turn() {
    let mut stage = Stage::new();
    let first = stage.dead("conductor-a");
    let second = stage.dead("conductor-b");
    stage.seconds(40);
    stage.sim().user_starts(&second);
    stage.seconds(120);
    stage.at_about(&first, &[0]);
    stage.at_about(&second, &[]);
    assert_eq!(stage.budget_used(&second), 0);
    assert_eq!(
        stage.says("conductor-b 1a2b3c01-1755900001: not restarted (spacing)"),
        1
    );
    assert_eq!(
        stage.says("conductor-b 1a2b3c01-1755900001: lives again"),
        1
    );
}

#[test]
fn failing_restart_is_not_hammered() {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-a");
    stage.fails(&id, "exit 1");
    stage.seconds(150);
    stage.at_about(&id, &[0, 60, 120]);
    let told = stage.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("Given up for now; next try in"),
        "{told:?}"
    );
}

fn fourteen(limited: bool) -> (Vec<u64>, Vec<String>) {
    let mut stage = Stage::new();
    let ids: Vec<SessionId> = (0..14)
        .map(|n| stage.session(&format!("conductor-{n}")))
        .collect();
    if limited {
        for id in &ids {
            let of = id.clone();
            // From the fifth on.
            stage.sim().after(62_000 + 210_000, move |sim| {
                sim.row(&of).answer = Answer::Says(Restarted::Failed("HTTP 429".to_owned()));
            });
        }
    }
    stage.seconds(62);
    stage.sim().kill_server(0);
    stage.seconds(if limited { 400 } else { 900 });
    (
        stage.restarts().into_iter().map(|(at, _)| at).collect(),
        stage.order(),
    )
}

#[test]
fn fourteen_at_once() {
    let (times, order) = fourteen(false);
    let soon = |(n, at): (usize, &u64)| (62 + 60 * n as u64..66 + 61 * n as u64).contains(at);
    assert!(
        times.len() == 14 && times.iter().enumerate().all(soon),
        "{times:?}"
    );
    assert_eq!(order, fourteen(false).1);
    let (times, _) = fourteen(true);
    assert_eq!(
        times.len(),
        5,
        "a 429 at the fifth stops the rest: {times:?}"
    );
}

#[test]
fn restart_is_never_cut_short() {
    let mut stage = Stage::new();
    let slow = stage.dead("conductor-a");
    let other = stage.dead("conductor-b");
    stage.row(&slow).answer = Answer::Takes(100_000);
    stage.seconds(200);
    stage.at_about(&slow, &[0]);
    stage.at_about(&other, &[100]);
    assert_eq!(stage.says("wrong-eyes"), 0, "{}", stage.log());
    assert!(stage.row(&slow).agent.is_some());
}

#[test]
fn a_restart_that_never_ends_is_reported_and_not_doubled() {
    let mut stage = Stage::new();
    let stuck = stage.dead("conductor-a");
    let other = stage.dead("conductor-b");
    let elsewhere = stage.dead("conductor-c");
    let night = agent_deck_watchdog::model::Profile::parse("night").unwrap();
    stage.sim().profiles.push(night.clone());
    stage.row(&elsewhere).profile = night;
    stage.row(&stuck).answer = Answer::Takes(1_200_000);
    stage.seconds(600);
    stage.play.kill();
    stage.seconds(500);
    stage.at_about(&stuck, &[0]);
    stage.at_about(&other, &[]);
    stage.at_about(&elsewhere, &[180]);
    let hangs = stage
        .told()
        .iter()
        .filter(|line| line.contains("still runs after 3 min"))
        .count();
    assert_eq!(hangs, 1, "{:?}", stage.told());
    stage.seconds(300);
    assert_eq!(stage.times(&other).len(), 1);
    assert_eq!(stage.times(&stuck).len(), 1);
}

#[test]
fn a_pause_counts_although_a_command_takes_minutes() {
    let mut stage = Stage::new();
    let slow = stage.dead("conductor-a");
    let held = stage.dead("conductor-b");
    let paused = stage.dead("conductor-c");
    stage.session("conductor-d");
    stage.row(&slow).answer = Answer::Takes(100_000);
    let id = held.clone();
    stage.sim().after(50_000, move |sim| {
        sim.files.hold.push((id, None));
        sim.files.changed = sim.clocks.truth;
        sim.hints.push(crate::sim::Hint::Flags);
    });
    stage.sim().after(60_000, |sim| {
        sim.files.pause = Some((sim.clocks.truth, None));
        sim.files.changed = sim.clocks.truth;
        sim.hints.push(crate::sim::Hint::Flags);
    });
    stage.seconds(400);
    assert_eq!(stage.order(), [slow.to_string()]);
    stage.sim().files.pause = None;
    stage.seconds(120);
    assert_eq!(stage.order(), [slow.to_string(), paused.to_string()]);
}

#[test]
fn a_hold_or_failure_taken_away_before_its_time_frees_at_once() {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-a");
    let until = stage.play.sim.truth() + 7_200_000;
    stage.sim().files.hold.push((id.clone(), Some(until)));
    stage.seconds(600);
    stage.sim().files.hold.clear();
    stage.fails(&id, "exit 1");
    stage.seconds(200);
    stage.at_about(&id, &[600, 660, 720]);
    // Its crash loop would last until 1020; three in 300 s stand until 900.
    stage.sim().files.clear.push(id.clone());
    stage.seconds(120);
    stage.at_about(&id, &[600, 660, 720, 900]);
}

#[test]
fn budget_forgets() {
    let mut stage = Stage::new();
    let id = stage.session("conductor-a");
    for restart in 1..=4 {
        stage.seconds(900);
        stage.sim().end_agent(&id);
        stage.seconds(3);
        assert_eq!(stage.times(&id).len(), restart);
        stage.seconds(700);
        stage.sim().sleep(10 * 86_400_000);
    }
}

#[test]
fn death_before_suspend() {
    let mut stage = Stage::new();
    let id = stage.session("conductor-a");
    stage.sim().process_watch = false;
    stage.seconds(61);
    stage.sim().end_agent(&id);
    stage.seconds(3);
    stage.sim().sleep(8 * 3_600_000);
    stage.seconds(6);
    stage.at_about(&id, &[8 * HOUR + 64]);
}
