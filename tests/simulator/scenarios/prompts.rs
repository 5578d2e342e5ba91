//! Scenarios: screens that nothing is typed into (section 4).
//!
//! This file does not know how a screen is read.

use agent_deck_watchdog::model::{AgentSays, SessionId, Silence, Substate};

use super::{HOUR, Stage};
use crate::deck::OnStart;

/// For hours nothing is typed, and one line tells of it.
fn silence(stage: &mut Stage, id: &SessionId, told: &str) {
    stage.seconds(601);
    stage.seconds(5 * HOUR);
    assert_eq!(stage.calls("send"), []);
    assert_eq!(stage.restarts(), []);
    let lines = stage.told();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains(id.as_str()) && lines[0].contains(told),
        "{lines:?}"
    );
}

#[test]
fn never_answer_a_prompt() {
    for since in [0, 400] {
        let mut stage = Stage::new();
        let id = stage.child("worker-a");
        stage.seconds(since);
        stage.sim().stands(&id, Some(Silence::Dialog));
        stage.row(&id).says = Some(AgentSays::Dialog);
        silence(
            &mut stage,
            &id,
            "for a decision about a permission, in a dialog on its screen",
        );
        // Answered by its user, it is over.
        stage.sim().works(&id, 400_000);
        stage.seconds(30);
        let told = stage.told();
        assert!(told.len() == 2 && told[1].contains("worker-a"), "{told:?}");
    }
}

#[test]
fn first_run_dialog_is_no_crash() {
    let mut stage = Stage::new();
    let id = stage.session("conductor-a");
    stage.row(&id).on_start = OnStart::Asks;
    stage.sim().user_ends(&id, "stop", 500);
    stage.seconds(5);
    stage.sim().user_starts(&id);
    stage.seconds(5 * HOUR);
    assert_eq!((stage.calls("send"), stage.restarts()), (vec![], vec![]));
    assert_eq!(stage.budget_used(&id), 0);
    let told = stage.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("dialog") || told[0].contains("decision"),
        "{told:?}"
    );
    // It is nobody's child: no parent could have been told.
    assert_eq!(stage.says("undeliverable"), 0);
}

#[test]
fn unknown_screen_means_silence() {
    for stand in [
        Silence::NoComposer,
        Silence::ShellMode,
        Silence::Menu,
        Silence::Search,
        Silence::Queued,
        Silence::Unclear,
        Silence::Empty,
        Silence::Busy,
        Silence::Interrupted,
        Silence::Credentials,
        Silence::UsageLimit,
    ] {
        let mut stage = Stage::new();
        let id = stage.child_at("worker-a", stand);
        silence(&mut stage, &id, "nothing may be typed into it");
        // Free again, which no record says: seen in time, and asked when it has
        // waited.
        stage.sim().stands(&id, None);
        stage.seconds(20 * 60 + 640);
        assert_eq!(stage.sends(&id).len(), 1, "{stand:?}");
    }
}

#[test]
fn draft_is_not_touched() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    stage.seconds(595);
    stage.sim().stands(&id, Some(Silence::Draft));
    silence(&mut stage, &id, "draft");
}

#[test]
fn what_opens_before_the_last_look_is_seen_in_time() {
    for stand in [Silence::Dialog, Silence::Draft, Silence::Menu] {
        // After the look that makes it due, and after the one before the message.
        for looks in 0..2 {
            let mut stage = Stage::new();
            let id = stage.child("worker-a");
            stage.row(&id).front.trap = Some((looks, 30, stand));
            stage.seconds(2 * HOUR);
            assert_eq!(stage.row(&id).front.trap, None);
            let typed = &stage.play.sim.typed;
            let into = typed.iter().filter(|typed| typed.stood.is_some()).count();
            // The rest of a second is agent-deck's.
            assert_eq!(into, looks as usize, "{typed:?}");
            assert_eq!(stage.play.sim.checks.seen.opened_after.len(), into);
        }
    }
}

#[test]
fn vetoes_of_agent_and_deck() {
    let mut stage = Stage::new();
    let busy = stage.child("worker-a");
    stage.row(&busy).says = Some(AgentSays::Busy);
    let shell = stage.child("worker-b");
    stage.row(&shell).says = Some(AgentSays::Shell);
    let unfamiliar = stage.child("worker-c");
    stage.row(&unfamiliar).says = Some(AgentSays::Unfamiliar);
    let suspended = stage.child("worker-d");
    stage.row(&suspended).suspended = true;
    let limited = stage.child("worker-e");
    stage.row(&limited).substate = Some(Substate::UsageLimit);
    let logged_out = stage.child("worker-f");
    stage.row(&logged_out).substate = Some(Substate::Auth401);
    let held = stage.child("worker-g");
    let hold = (held.clone(), None);
    stage.sim().files.hold.push(hold);
    let plain = stage.child("worker-h");
    stage.row(&plain).command = "bash";
    stage.seconds(3 * HOUR);
    assert_eq!(stage.calls("send"), []);
    // Each is told once, but what the user holds and what is no agent.
    let told = stage.told();
    assert_eq!(told.len(), 6, "{told:?}");
    for id in [
        &busy,
        &shell,
        &unfamiliar,
        &suspended,
        &limited,
        &logged_out,
    ] {
        let lines = told.iter().filter(|line| line.contains(id.as_str()));
        assert_eq!(lines.count(), 1, "{id}: {told:?}");
    }
}
