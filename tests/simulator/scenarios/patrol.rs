//! Scenarios: how long a child has waited (sections 4, 5 and 7).
//!
//! This file does not know what stands on screens.

use agent_deck_watchdog::model::{AgentSays, Silence, Status};

use super::{DAY, HOUR, Stage};
use crate::deck::{Lie, Terminal};
use crate::faults::Fault;
use crate::front::Mood;

#[test]
fn nudge_after_600s() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    stage.seconds(600);
    assert_eq!(stage.calls("send"), []);
    stage.seconds(15);
    stage.asked_at(&id, &[600]);
    let typed = &stage.play.sim.typed;
    assert_eq!(typed.len(), 1);
    assert_eq!((&typed[0].id, typed[0].stood), (&id, None));
    assert_eq!(
        stage.says("worker-a 1a2b3c00-1755900000: asked to report status (nudge 1 of 3)"),
        1
    );
    assert_eq!((stage.restarts(), stage.told()), (vec![], vec![]));
}

#[test]
fn nudge_dedup_3600s() {
    for restarted in [false, true] {
        let mut stage = Stage::new();
        let id = stage.child("worker-a");
        stage.row(&id).mood = Mood::Echoes;
        stage.seconds(2000);
        if restarted {
            stage.play.kill();
        }
        stage.seconds(2 * HOUR - 2000);
        let times = stage.sends(&id);
        assert_eq!(times.len(), 2, "{times:?}");
        assert!((3600..=3606).contains(&(times[1] - times[0])), "{times:?}");
    }
}

#[test]
fn pane_change_restarts_the_clock() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    stage.seconds(590);
    stage.sim().moves(&id);
    stage.seconds(700);
    // At most one poll after it is due, and never before.
    stage.asked_at(&id, &[1190]);
}

#[test]
fn status_change_evicts() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    stage.seconds(550);
    stage.sim().word(&id, Status::Running);
    stage.seconds(10);
    stage.sim().word(&id, Status::Waiting);
    stage.seconds(700);
    stage.asked_at(&id, &[1160]);
    // A nudge given shortly before still blocks the next one.
    let asked = stage.sends(&id)[0];
    stage.seconds(300);
    stage.sim().word(&id, Status::Running);
    stage.seconds(10);
    stage.sim().word(&id, Status::Waiting);
    stage.seconds(HOUR);
    stage.asked_at(&id, &[1160, asked + 3600]);
}

#[test]
fn no_parent_no_nudge() {
    let mut stage = Stage::new();
    stage.session("worker-a");
    stage.seconds(DAY);
    stage.nothing_happened();
    assert!(stage.play.sim.ledger.iter().all(|call| call.verb == "list"));
}

#[test]
fn conductor_like_sessions_exempt() {
    let mut stage = Stage::new();
    let parent = stage.session("conductor-a");
    let id = stage.session("conductor-b");
    stage.row(&id).parent = parent.to_string();
    let grouped = stage.session("watch-c");
    stage.row(&grouped).parent = parent.to_string();
    stage.row(&grouped).group = "watchers/night".to_owned();
    stage.seconds(DAY);
    stage.nothing_happened();
    assert!(stage.play.sim.ledger.iter().all(|call| call.verb == "list"));
}

#[test]
fn unreadable_pane_does_not_age() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    stage.seconds(300);
    let until = stage.play.sim.truth() + 600_000;
    stage
        .sim()
        .faults
        .pane
        .insert(id.clone(), (Fault::Fails, until));
    stage.seconds(600);
    assert_eq!(stage.calls("send"), []);
    // The first reading that failed is the one at three quarters of the time.
    stage.seconds(145);
    assert_eq!(stage.calls("send"), [], "450 s and 145 s");
    stage.seconds(30);
    let times = stage.sends(&id);
    assert!(
        times.len() == 1 && (1050..1075).contains(&times[0]),
        "{times:?}"
    );
}

#[test]
fn pane_gone_is_unreachable() {
    for process_gone in [false, true] {
        let mut stage = Stage::new();
        let id = stage.child("worker-a");
        stage.seconds(60);
        if process_gone {
            // Listed as waiting, and a bare shell is all that is left.
            stage.row(&id).terminal = Terminal::Shell;
            stage.row(&id).lie = Some(Lie::Shell);
        } else {
            stage
                .sim()
                .faults
                .pane
                .insert(id.clone(), (Fault::Fails, u64::MAX));
        }
        stage.seconds(599);
        assert_eq!(stage.told(), [""; 0]);
        stage.seconds(5 * HOUR);
        assert_eq!(stage.calls("send"), []);
        let told = stage.told();
        let unreachable = told
            .iter()
            .filter(|line| line.contains("cannot be reached"));
        assert_eq!(unreachable.count(), 1, "{told:?}");
    }
}

#[test]
fn running_outranks_the_screen() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    stage.row(&id).word = Status::Running;
    stage.seconds(11 * 60);
    stage.nothing_happened();
    assert_eq!(stage.calls_of(&id), 0);
}

#[test]
fn long_run_is_left_alone() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    stage.row(&id).word = Status::Running;
    stage.row(&id).says = Some(AgentSays::Busy);
    stage.seconds(40 * 60);
    stage.nothing_happened();
    assert_eq!(stage.log(), "");
}

#[test]
fn somebody_else_just_typed() {
    for by_message in [false, true] {
        let mut stage = Stage::new();
        let id = stage.child("worker-a");
        stage.row(&id).mood = Mood::Ignores;
        stage.seconds(540);
        if by_message {
            stage.sim().send(&id, false);
        }
        stage.sim().hook(&id, "UserPromptSubmit");
        stage.seconds(590);
        assert_eq!(stage.calls("send"), [], "a full 600 s from that input");
        stage.seconds(30);
        // The record has whole seconds.
        stage.asked_at(&id, &[1140]);
    }
}

#[test]
fn suspend_is_not_waiting() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    let critical = stage.session("conductor-a");
    stage.seconds(300);
    stage.sim().sleep(8 * HOUR * 1000);
    stage.seconds(60);
    assert_eq!(stage.calls("send"), [], "it has waited for 6 min");
    // The spacing comes out right, and waking counts as no time.
    stage.sim().end_agent(&critical);
    stage.seconds(235);
    assert_eq!(stage.calls("send"), []);
    assert_eq!(stage.times(&critical).len(), 1);
    stage.seconds(30);
    stage.asked_at(&id, &[8 * HOUR + 600]);
}

#[test]
fn after_waking_nobody_is_asked_for_a_minute() {
    let mut stage = Stage::new();
    let ids: Vec<_> = (0..4)
        .map(|n| stage.child(&format!("worker-{n}")))
        .collect();
    stage.seconds(597);
    stage.sim().sleep(HOUR * 1000);
    stage.seconds(55);
    assert_eq!(stage.calls("send"), [], "no burst");
    stage.seconds(40);
    for id in &ids {
        assert_eq!(stage.sends(id).len(), 1);
    }
}

#[test]
fn once_remembers_timers() {
    let mut stage = Stage::cron();
    let id = stage.child("worker-a");
    stage.row(&id).mood = Mood::Echoes;
    let owner = stage.deaf("conductor-a", "a");
    stage.seconds(60 * 60);
    // The first run that sees more than 600 s.
    let times = stage.sends(&id);
    assert!(
        times.len() == 1 && (600..=665).contains(&times[0]),
        "{times:?}"
    );
    let restarts = stage.times(&owner);
    assert!(restarts.len() == 1 && restarts[0] <= 130, "{restarts:?}");
}

#[test]
fn killed_between_intent_and_result() {
    for takes in [8000, 300_000] {
        let mut stage = Stage::new();
        let id = stage.child("worker-a");
        stage.row(&id).mood = Mood::Echoes;
        stage.row(&id).plan = crate::front::Plan::Takes(takes);
        stage.seconds(590);
        // The third save of a nudge notes that its command runs.
        stage.sim().crash_at = Some((stage.play.sim.saves + 2, true));
        stage.seconds(3500);
        assert!(stage.play.sim.crash_at.is_none());
        assert_eq!(stage.sends(&id).len(), 1, "that nudge counts as given");
        stage.seconds(200);
        assert_eq!(stage.sends(&id).len(), 2);
        assert_eq!(stage.says("nobody waited for the answer, it counts"), 1);
    }
}

#[test]
fn a_profile_that_is_gone_takes_its_episodes_along() {
    let mut stage = Stage::new();
    stage.session("conductor-a");
    let id = crate::scenarios::id_of("0d0d0d0d-1755900000");
    let row = stage.sim().add(&id, "night", "worker-n");
    row.parent = "0a0a0a0a-1755900000".to_owned();
    row.front.stand = Some(Silence::Dialog);
    stage.seconds(700);
    assert_eq!(stage.told().len(), 1);
    stage.sim().profiles.pop();
    stage.seconds(700);
    let told = stage.told();
    assert!(
        told.len() == 2 && told[1].contains("does not wait any more"),
        "{told:?}"
    );
    stage.seconds(DAY + HOUR);
    assert_eq!(stage.told().len(), 2);
    assert!(
        stage.remembered_child(&id).is_null(),
        "forgotten after a day"
    );
}
