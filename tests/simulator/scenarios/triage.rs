//! Scenarios: rung 2 of the ladder (section 9; T10 to T15), with a movable clock.
//!
//! This file does not know how a program is run.

use agent_deck_watchdog::ladder::triage::{Advice, Answer};
use agent_deck_watchdog::model::{SessionId, Silence, Status};

use super::{HOUR, Stage};
use crate::front::Mood;
use crate::triages::says;

/// When a child that does not answer is due for triage: ten minutes, and then an
/// hour after each of three questions, and what the readings take.
const DUE: u64 = 600 + 3 * HOUR + 60;

/// A stage whose triage program gives this advice.
fn advised(advice: Advice) -> Stage {
    let mut stage = Stage::new();
    stage.sim().triage.on = true;
    stage.sim().triage.answer = says(advice);
    stage
}

/// A child that takes questions and goes on waiting.
fn mute(stage: &mut Stage, title: &str) -> SessionId {
    let id = stage.child(title);
    stage.row(&id).mood = Mood::Echoes;
    id
}

fn triages(stage: &Stage, id: &SessionId) -> usize {
    let calls = stage.calls("triage").into_iter();
    calls.filter(|(_, of)| of == id.as_str()).count()
}

/// Runs until the program was asked, and has not answered.
fn until_asked(stage: &mut Stage) {
    for _ in 0..DUE + 60 {
        if !stage.calls("triage").is_empty() {
            return;
        }
        stage.seconds(1);
    }
    panic!("nobody was asked about: {}", stage.log());
}

fn rung(stage: &Stage, id: &SessionId) -> String {
    let child = stage.remembered_child(id);
    child["rung"].as_str().unwrap_or_default().to_owned()
}

fn handed_over(stage: &Stage) -> Vec<String> {
    let told = stage.told().into_iter();
    told.filter(|line| line.contains("was asked")).collect()
}

/// T11: without a program the owner hears of it instead.
#[test]
fn whoever_queues_for_triage_and_begins_anew_has_lost_its_turn() {
    let mut stage = advised(Advice::Extend);
    stage.sim().triage.takes = 60_000;
    let ids = ["a", "b"].map(|title| mute(&mut stage, title));
    until_asked(&mut stage);
    stage.seconds(30);
    let (asked, queued) = match triages(&stage, &ids[0]) {
        1 => (&ids[0], &ids[1]),
        _ => (&ids[1], &ids[0]),
    };
    assert_eq!(triages(&stage, queued), 0);
    // It works for longer than an episode outlasts, and waits anew.
    stage.sim().works(queued, 400_000);
    stage.seconds(400 + 2 * HOUR);
    assert!(triages(&stage, asked) >= 2);
    assert_eq!(triages(&stage, queued), 0, "{}", stage.log());
    stage.play.promises_were_kept("this scenario");
}

#[test]
fn triage_off_by_default() {
    let mut stage = Stage::new();
    let id = mute(&mut stage, "worker-a");
    stage.seconds(DUE);
    assert_eq!((triages(&stage, &id), handed_over(&stage).len()), (0, 1));
    assert_eq!(rung(&stage, &id), "handed-over");
}

/// T10, T13, T14: three times more time, an hour each, and then rung 3.
#[test]
fn triage_extends_three_times_and_no_more() {
    let mut stage = advised(Advice::Extend);
    let id = mute(&mut stage, "worker-a");
    stage.seconds(DUE);
    assert_eq!((triages(&stage, &id), handed_over(&stage).len()), (1, 0));
    assert_eq!(rung(&stage, &id), "triage");
    assert_eq!(stage.says("triage says extend after 5 s, fallback: no"), 1);
    stage.seconds(HOUR / 2);
    assert_eq!(triages(&stage, &id), 1, "silence for a step");
    stage.seconds(5 * HOUR);
    assert_eq!(triages(&stage, &id), 3);
    let told = handed_over(&stage);
    assert!(
        told.len() == 1 && !told[0].contains("triage advises"),
        "{told:?}"
    );
    assert_eq!(stage.sends(&id).len(), 3);
    let times: Vec<u64> = stage.calls("triage").iter().map(|(at, _)| *at).collect();
    let apart = |two: &[u64]| two[1] - two[0] >= HOUR;
    assert!(times.windows(2).all(apart), "{times:?}");
}

/// T12: one question more at once, and a second retry is more time: four calls
/// in an episode at most.
#[test]
fn triage_retry_asks_once_more() {
    let mut stage = advised(Advice::Retry);
    let id = mute(&mut stage, "worker-a");
    stage.seconds(DUE + 60);
    let times = stage.sends(&id);
    let (asked, _) = stage.calls("triage")[0];
    assert_eq!(times.len(), 4, "{}", stage.log());
    assert!((asked + 5..asked + 20).contains(&times[3]), "{times:?}");
    stage.seconds(8 * HOUR);
    assert_eq!((stage.sends(&id).len(), triages(&stage, &id)), (4, 4));
    assert_eq!(stage.says("not a second time"), 3);
    assert_eq!(handed_over(&stage).len(), 1);
    assert_eq!(rung(&stage, &id), "handed-over");
}

/// The question that triage wants is put by the rules of every question.
#[test]
fn triage_retry_types_into_nothing_but_a_free_composer() {
    let mut stage = advised(Advice::Retry);
    let id = mute(&mut stage, "worker-a");
    until_asked(&mut stage);
    // A reader is in between: somebody begins to type.
    stage.sim().stands(&id, Some(Silence::Draft));
    stage.seconds(HOUR);
    assert_eq!(stage.sends(&id).len(), 3);
    assert_eq!(stage.says("triage says retry"), 1);
}

/// T15: rung 3 at once.
#[test]
fn triage_terminate_tells_and_stops_nothing() {
    let mut stage = advised(Advice::Terminate);
    let id = mute(&mut stage, "worker-a");
    stage.seconds(DUE + 60);
    let told = handed_over(&stage);
    assert!(
        told.len() == 1 && told[0].contains("triage advises to stop it"),
        "{told:?}"
    );
    assert_eq!(rung(&stage, &id), "handed-over");
    stage.seconds(8 * HOUR);
    assert_eq!((triages(&stage, &id), stage.calls("stop").len()), (1, 0));
    assert_eq!(
        handed_over(&stage)
            .iter()
            .filter(|l| !l.starts_with("still"))
            .count(),
        1
    );
}

#[test]
fn triage_fallback_is_more_time() {
    let mut stage = advised(Advice::Extend);
    stage.sim().triage.answer = Answer {
        advice: Advice::Extend,
        fallback: Some("it failed"),
    };
    let id = mute(&mut stage, "worker-a");
    stage.seconds(DUE);
    assert_eq!(
        stage.says("triage says extend after 5 s, fallback: yes, it failed"),
        1
    );
    assert_eq!(stage.remembered_child(&id)["extends"], 1);
}

/// One call a tick; whoever has waited for one longest comes next.
#[test]
fn triage_budget_rotates() {
    for cron in [false, true] {
        let mut stage = if cron { Stage::cron() } else { Stage::new() };
        stage.sim().triage.on = true;
        let ids: Vec<SessionId> = (0..4)
            .map(|n| mute(&mut stage, &format!("worker-{n}")))
            .collect();
        for round in 1..=3 {
            let more = if cron { 600 } else { 120 };
            stage.seconds(if round == 1 { DUE + more } else { HOUR });
            for id in &ids {
                assert_eq!(triages(&stage, id), round, "{}", stage.log());
            }
        }
    }
}

/// Whoever moves while it waits for its turn has to wait for its time anew.
#[test]
fn triage_forgets_a_turn_when_the_screen_moves() {
    let mut stage = advised(Advice::Extend);
    stage.sim().triage.takes = 60_000;
    let ids: Vec<SessionId> = (0..3)
        .map(|n| mute(&mut stage, &format!("worker-{n}")))
        .collect();
    until_asked(&mut stage);
    stage.seconds(20);
    let (_, first) = stage.calls("triage")[0].clone();
    let moved = ids.iter().find(|id| id.as_str() != first).unwrap();
    stage.sim().moves(moved);
    stage.sim().hook(moved, "Notification");
    stage.seconds(400);
    let asked = |stage: &Stage| ids.iter().map(|id| triages(stage, id)).sum::<usize>();
    assert_eq!((asked(&stage), triages(&stage, moved)), (2, 0));
    stage.seconds(600);
    assert_eq!((asked(&stage), triages(&stage, moved)), (3, 1));
}

/// A child that left waiting meanwhile: what is said of it then is dropped.
#[test]
fn triage_comes_too_late_for_who_works_again() {
    for advice in [Advice::Retry, Advice::Terminate] {
        let mut stage = advised(advice);
        let id = mute(&mut stage, "worker-a");
        until_asked(&mut stage);
        stage.sim().word(&id, Status::Running);
        stage.sim().hook(&id, "UserPromptSubmit");
        stage.seconds(2 * HOUR);
        assert_eq!((stage.sends(&id).len(), handed_over(&stage).len()), (3, 0));
        assert_eq!(stage.says("dropped"), 1, "{}", stage.log());
    }
}

/// A decision freezes it; the answer does nothing then.
#[test]
fn triage_of_a_gated_child_is_dropped() {
    let mut stage = advised(Advice::Terminate);
    stage.sim().triage.takes = 20_000;
    let id = mute(&mut stage, "worker-a");
    until_asked(&mut stage);
    stage.sim().stands(&id, Some(Silence::Dialog));
    stage.sim().hook(&id, "PermissionRequest");
    stage.seconds(3 * HOUR);
    assert_eq!((triages(&stage, &id), handed_over(&stage).len()), (1, 0));
    assert_eq!(rung(&stage, &id), "gated");
}

/// Killed while it runs: the call counts, and is not made again at once.
#[test]
fn triage_and_a_crash() {
    for cron in [false, true] {
        let mut stage = if cron { Stage::cron() } else { Stage::new() };
        stage.sim().triage.on = true;
        stage.sim().triage.answer = says(Advice::Terminate);
        let id = mute(&mut stage, "worker-a");
        stage.sim().triage.crashes = true;
        stage.seconds(DUE + 600);
        stage.sim().triage.crashes = false;
        assert_eq!(triages(&stage, &id), 1);
        assert_eq!(stage.says("the watchdog ended before the answer came"), 1);
        let child = stage.remembered_child(&id);
        assert_eq!(
            (&child["extends"], &child["triage_open"]),
            (&1.into(), &false.into())
        );
        assert_eq!(handed_over(&stage).len(), 0);
        // Asked again after a step, and it counts then.
        stage.seconds(HOUR + 120);
        assert_eq!(handed_over(&stage).len(), 1);
    }
}

#[test]
fn triage_in_a_dry_run_is_only_named() {
    let mut stage = advised(Advice::Retry);
    let id = mute(&mut stage, "worker-a");
    stage.seconds(DUE - 120);
    stage.play.kill();
    stage.sim().dry_run = true;
    stage.seconds(600);
    assert_eq!(triages(&stage, &id), 0);
    assert!(stage.says("would be triaged") > 0, "{}", stage.log());
}

/// A pause, and the minute after a time in which nobody looked.
#[test]
fn triage_waits_while_nothing_is_to_be_done() {
    let mut stage = advised(Advice::Extend);
    let id = mute(&mut stage, "worker-a");
    stage.seconds(DUE - 600);
    let now = stage.sim().truth();
    stage.sim().files.pause = Some((now, None));
    stage.seconds(2 * HOUR);
    assert_eq!(triages(&stage, &id), 0);
    stage.sim().files.pause = None;
    stage.seconds(HOUR);
    assert_eq!(triages(&stage, &id), 1);
}
