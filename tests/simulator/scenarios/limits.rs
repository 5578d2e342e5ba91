//! Scenarios: limits of a provider and of the machine are no crashes (section 2).
//!
//! This file does not know how their wordings are recognised.

use agent_deck_watchdog::model::SessionId;

use super::{HOUR, Stage};
use crate::deck::{Answer, OnStart};

#[test]
fn usage_limit_is_not_a_crash() {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-a");
    stage.row(&id).on_start = OnStart::Limited;
    stage.seconds(30);
    assert_eq!(stage.outcomes().last().unwrap(), "limited");
    assert_eq!(stage.remembered(&id)["since_well"], 0);
    stage.sim().end_agent(&id);
    stage.seconds(HOUR);
    stage.play.kill();
    stage.seconds(3 * HOUR);
    stage.at_about(&id, &[0]);
    assert!(
        stage
            .log()
            .contains("usage limit on its screen, reset unknown")
    );
    // At most five hours (contract 6.5).
    stage.row(&id).on_start = OnStart::Lives;
    stage.seconds(2 * HOUR);
    assert_eq!(stage.times(&id).len(), 2);
}

#[test]
fn staggered_resume_after_a_limit() {
    let mut stage = Stage::new();
    let ids: Vec<SessionId> = (0..9)
        .map(|n| stage.dead(&format!("conductor-{n}")))
        .collect();
    stage.fails(&ids[0], "HTTP 429");
    stage.seconds(100);
    stage.row(&ids[0]).answer = Answer::Usual;
    stage.fails(&ids[5], "HTTP 429");
    stage.seconds(800);
    let times: Vec<u64> = stage.restarts().into_iter().map(|(at, _)| at).collect();
    let gaps: Vec<u64> = times.windows(2).map(|two| two[1] - two[0]).collect();
    assert_eq!(gaps[0], 180, "{times:?}");
    let fifth = stage.times(&ids[5])[0];
    let at = times.iter().position(|at| *at == fifth).unwrap();
    assert!(
        gaps[1..at].iter().all(|gap| (60..62).contains(gap)),
        "{times:?}"
    );
    assert!(
        (180..182).contains(&gaps[at]),
        "a new 429 pauses the rest: {times:?}"
    );
}

#[test]
fn host_out_of_processes() {
    for text in [
        "fork/exec tmux: resource temporarily unavailable",
        "open /dev/ptmx: no such device or address",
    ] {
        let mut stage = Stage::new();
        let ids = [stage.dead("conductor-a"), stage.dead("conductor-b")];
        for id in &ids {
            stage.fails(id, text);
        }
        stage.seconds(310);
        let times: Vec<u64> = stage.restarts().into_iter().map(|(at, _)| at).collect();
        assert!(
            times
                .windows(2)
                .all(|two| (60..68).contains(&(two[1] - two[0]))),
            "{times:?}"
        );
        assert!(times.len() >= 5);
        assert_eq!(stage.told().len(), 1, "{:?}", stage.told());
        assert_eq!(
            (stage.budget_used(&ids[0]), stage.budget_used(&ids[1])),
            (0, 0)
        );
    }
}

#[test]
fn same_error_three_times() {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-a");
    stage.fails(&id, "listen: address already in use");
    stage.seconds(200);
    let told = stage.told();
    assert!(
        told[0].contains("3 times in a row with: listen: address already in use"),
        "{told:?}"
    );
}

#[test]
fn no_invented_reset_time() {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-a");
    stage.fails(&id, "usage limit reached");
    stage.seconds(30);
    let told = stage.told();
    assert!(
        told[0].contains("reset unknown, next try in 3 min"),
        "{told:?}"
    );
}
