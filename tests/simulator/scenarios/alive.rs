//! Scenarios: who is not dead although it looks so (sections 1 and 2).
//!
//! This file does not know what restarts may cost.

use agent_deck_watchdog::model::{SessionId, Substate};

use super::{DAY, HOUR, Stage};
use crate::deck::{Lie, Stored, Terminal};
use crate::faults::Fault;
use crate::sim::OTHER_SERVER;

#[test]
fn error_with_a_live_screen() {
    for lie in [Lie::Leftover, Lie::Banner, Lie::LostName, Lie::Elsewhere] {
        let mut stage = Stage::new();
        stage.session("conductor-b");
        let id = stage.session("conductor-a");
        stage.row(&id).lie = Some(lie);
        stage.seconds(120);
        stage.nothing_happened();
        assert_eq!(stage.says("not restarted (maybe-alive)"), 1, "{lie:?}");
    }
    // No process of it is found, and yet its screen moves.
    let mut stage = Stage::new();
    let id = stage.session("conductor-a");
    let row = stage.row(&id);
    row.agent = None;
    row.lie = Some(Lie::Leftover);
    stage.seconds(120);
    stage.nothing_happened();
    assert_eq!(stage.says("not restarted (terminal-stands)"), 1);
}

#[test]
fn quiet_is_not_dead() {
    let mut stage = Stage::new();
    stage.play.poll = 60_000;
    stage.session("conductor-a");
    let idle = stage.session("conductor-b");
    stage.row(&idle).word = agent_deck_watchdog::model::Status::Idle;
    stage.seconds(6 * HOUR);
    stage.nothing_happened();
    assert_eq!(stage.log(), "");
}

fn all(stage: &mut Stage, lie: Lie, sessions: usize) -> Vec<SessionId> {
    let ids: Vec<SessionId> = (0..sessions)
        .map(|n| stage.session(&format!("conductor-{n}")))
        .collect();
    for id in &ids {
        let row = stage.row(id);
        row.lie = Some(lie);
        if lie == Lie::Elsewhere
            && let Some(agent) = row.agent.as_mut()
        {
            agent.server = OTHER_SERVER;
        }
    }
    ids
}

#[test]
fn looking_from_the_wrong_place() {
    let mut stage = Stage::new();
    all(&mut stage, Lie::Elsewhere, 8);
    stage.seconds(HOUR);
    assert_eq!(stage.restarts(), []);
    let told = stage.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("8 sessions of this profile read dead while their agents live"),
        "{told:?}"
    );
}

#[test]
fn socket_lost_agents_alive() {
    let mut stage = Stage::new();
    let ids: Vec<SessionId> = (0..5)
        .map(|n| stage.session(&format!("conductor-{n}")))
        .collect();
    stage.seconds(60);
    for id in &ids {
        stage.row(id).lie = Some(Lie::LostName);
    }
    stage.seconds(HOUR);
    assert_eq!(stage.restarts(), []);
    let told = stage.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("SIGUSR1"), "{told:?}");
}

#[test]
fn agents_that_take_seconds_to_end_are_no_wrong_place() {
    for server in [true, false] {
        let mut stage = Stage::new();
        let ids = [stage.session("conductor-a"), stage.session("conductor-b")];
        stage.seconds(4);
        if server {
            stage.sim().kill_server(8000);
        } else {
            ids.iter()
                .for_each(|id| stage.sim().kill_terminal(id, 8000));
        }
        stage.seconds(300);
        let told = stage.told();
        assert!(
            !told.iter().any(|line| line.contains("another user")),
            "{told:?}"
        );
        assert!(told[0].contains("died together"), "{told:?}");
        assert_eq!(
            (stage.times(&ids[0]).len(), stage.times(&ids[1]).len()),
            (1, 1)
        );
    }
}

#[test]
fn late_answer_is_no_answer() {
    let mut stage = Stage::new();
    let id = stage.session("conductor-a");
    stage.seconds(2);
    stage.sim().process_watch = false;
    stage.play.watch.as_mut().unwrap().looks.clear();
    let profile = stage.row(&id).profile.clone();
    let until = stage.play.sim.truth() + 100_000;
    stage
        .sim()
        .faults
        .list
        .insert(profile, (Fault::Hangs, until));
    let before = stage.remembered(&id);
    stage.seconds(60);
    assert_eq!((stage.restarts().len(), stage.told().len()), (0, 0));
    stage.seconds(30);
    assert_eq!(stage.told().len(), 1);
    assert_eq!(stage.remembered(&id), before);
    stage.seconds(120);
    let told = stage.told();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].contains("agent-deck did not answer in time"),
        "{told:?}"
    );
    assert!(told[1].contains("are listed again after"), "{told:?}");
    assert_eq!(stage.restarts(), []);
}

#[test]
fn no_program_no_verdict() {
    let mut stage = Stage::new();
    let id = stage.session("conductor-a");
    stage.seconds(30);
    let before = stage.remembered(&id);
    let profile = stage.row(&id).profile.clone();
    let until = stage.play.sim.truth() + 1_200_000;
    stage
        .sim()
        .faults
        .list
        .insert(profile, (Fault::NoProgram, until));
    stage.seconds(1190);
    assert_eq!(stage.remembered(&id), before);
    assert_eq!(stage.told().len(), 1, "{:?}", stage.told());
    stage.seconds(60);
    assert_eq!(stage.restarts(), []);
    assert_eq!(stage.says("sessions are listed again"), 1);
    assert!(
        stage.told()[1].contains("are listed again after"),
        "{:?}",
        stage.told()
    );
}

#[test]
fn somebody_else_is_restarting() {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-a");
    stage.row(&id).spawn_lock = Some(4711);
    stage.seconds(90);
    assert_eq!(stage.restarts(), []);
    assert_eq!(stage.says("process 4711 holds its spawn lock"), 1);
    stage.row(&id).spawn_lock = None;
    stage.seconds(30);
    assert_eq!(stage.times(&id).len(), 1);
}

#[test]
fn stop_wins_the_race() {
    for command in [true, false] {
        let mut stage = Stage::new();
        stage.sim().ui = (!command).then_some(50);
        let first = stage.dead("conductor-a");
        let second = stage.dead("conductor-b");
        let was_stopped = stage.dead("conductor-c");
        stage.row(&was_stopped).stored = Stored::Stopped;
        // Its turn comes at 60 s.
        stage.seconds(59);
        let id = second.clone();
        stage.sim().after(1300, move |sim| {
            if command {
                sim.user_ends(&id, "stop", 20_000);
            } else {
                sim.stopped_in_the_interface(&id, 900);
            }
        });
        stage.seconds(HOUR);
        assert_eq!(stage.order(), [first.to_string()], "{command}");
    }
}

#[test]
fn a_stop_of_a_living_one_is_no_death() {
    for verb in ["stop", "archive", "remove"] {
        for saved in [60, 300, 1000, 20_000] {
            let mut stage = Stage::new();
            let id = stage.session("conductor-a");
            stage.session("conductor-b");
            stage.seconds(62);
            stage.sim().user_ends(&id, verb, saved);
            stage.seconds(400);
            assert_eq!(stage.restarts(), [], "{verb} {saved}");
        }
    }
}

#[test]
fn auth_hold_means_hands_off() {
    for gone in [true, false] {
        let mut stage = Stage::new();
        stage.play.poll = 60_000;
        let id = stage.session("conductor-a");
        let row = stage.row(&id);
        row.auth_hold = true;
        if gone {
            row.agent = None;
            row.terminal = Terminal::Gone;
        }
        stage.seconds(DAY);
        assert_eq!(stage.restarts(), []);
        let told = stage.told();
        if gone {
            assert!(told[0].contains("log in again"), "{told:?}");
        }
        let reminders = told[1..].iter().all(|line| line.starts_with("still, for "));
        assert!(reminders && told.len() <= 4, "{told:?}");
    }
}

#[test]
fn alive_but_logged_out() {
    let mut stage = Stage::new();
    let id = stage.session("conductor-a");
    stage.row(&id).substate = Some(Substate::Auth401);
    stage.seconds(HOUR);
    assert_eq!((stage.restarts(), stage.calls_of(&id)), (vec![], 0));
    let told = stage.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("is alive, but held for a login problem"),
        "{told:?}"
    );
}
