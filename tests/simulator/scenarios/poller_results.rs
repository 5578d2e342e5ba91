//! Scenarios: what a restart for a poller led to, and pollers that no restart
//! mends (section 3).
//!
//! This file does not know when a conductor is restarted for its poller.

use super::{HOUR, Stage};

#[test]
fn process_without_reception() {
    let mut stage = Stage::new();
    let id = stage.owner("conductor-a", "a");
    let hears = stage.owner("conductor-b", "b");
    stage.seconds(100);
    let silent = stage.play.sim.pollers.iter_mut().find(|p| p.of == id);
    silent.unwrap().connected = Some(false);
    stage.seconds(590);
    assert_eq!(stage.told(), [""; 0]);
    stage.seconds(5 * HOUR);
    let told = stage.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("suspected deaf") && told[0].contains(id.as_str()),
        "{told:?}"
    );
    assert_eq!(stage.restarts(), []);
    assert_eq!(stage.calls_of(&hears), stage.calls_of(&id));
}

#[test]
fn without_a_network_nothing_is_said_of_pollers() {
    let mut stage = Stage::new();
    stage.owner("conductor-a", "a");
    stage.owner("conductor-b", "b");
    stage.sim().faults.offline = u64::MAX;
    stage.seconds(5 * HOUR);
    stage.nothing_happened();
    assert_eq!(stage.log(), "");
}

#[test]
fn two_conductors_one_token() {
    for by_folder in [false, true] {
        let mut stage = Stage::new();
        let first = stage.owner("conductor-a", "a");
        let second = stage.owner("conductor-b", if by_folder { "a" } else { "b" });
        if !by_folder {
            stage.bot(&first).token = Some(1);
            stage.bot(&second).token = Some(1);
        }
        stage.seconds(100);
        stage.sim().pollers_end(&first);
        stage.seconds(6 * HOUR - 110);
        assert!(stage.restarts().len() <= 1);
        let told = stage.told();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains(first.as_str()) && told[0].contains(second.as_str()));
    }
}

#[test]
fn old_poller_survives() {
    let mut stage = Stage::new();
    let id = stage.owner("conductor-a", "a");
    stage.seconds(100);
    stage.bot(&id).stubborn = true;
    stage.sim().end_agent(&id);
    stage.seconds(HOUR);
    assert_eq!(stage.times(&id).len(), 1);
    let outcomes = stage.outcomes();
    assert_eq!(outcomes, ["accepted", "done", "duplicate poller"]);
    let orphan = stage
        .play
        .sim
        .pollers
        .iter()
        .find(|p| p.agent.is_none())
        .unwrap()
        .pid;
    let told = stage.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains(&format!("processes [{orphan}] poll Telegram")),
        "{told:?}"
    );
    // It is never ended by us; somebody does.
    assert!(stage.play.sim.pollers.iter().any(|p| p.pid == orphan));
    stage.sim().pollers.retain(|p| p.pid != orphan);
    stage.seconds(60);
    assert!(stage.told()[1].contains("nobody else polls the Telegram folder"));
}

#[test]
fn an_orphan_does_not_hear_for_a_conductor() {
    let mut stage = Stage::new();
    let id = stage.owner("conductor-a", "a");
    stage.bot(&id).stubborn = true;
    stage.bot(&id).starts = None;
    stage.seconds(100);
    stage.sim().end_agent(&id);
    stage.seconds(3000);
    // Once for its death, once since the orphan is not its own.
    assert_eq!(stage.times(&id).len(), 2);
}

#[test]
fn restart_did_not_help() {
    let mut stage = Stage::new();
    let id = stage.deaf("conductor-a", "a");
    stage.seconds(3500);
    assert_eq!(stage.times(&id).len(), 1);
    assert_eq!(stage.outcomes(), ["accepted", "done", "no poller"]);
    let told = stage.told();
    assert_eq!(told.len(), 1, "{told:?}");
    let says = |text| told[0].contains(text);
    assert!(says("was restarted and nobody polls Telegram for it") && says("Check the plugin"));
    // Somebody mends it.
    stage.sim().poller_starts(&id);
    stage.seconds(60);
    assert!(stage.told()[1].contains("has a Telegram poller again"));
}

#[test]
fn healthy_again_but_deaf() {
    let mut stage = Stage::new();
    let id = stage.owner("conductor-a", "a");
    stage.seconds(100);
    stage.bot(&id).starts = None;
    stage.sim().end_agent(&id);
    stage.seconds(90);
    assert_eq!(stage.times(&id).len(), 1);
    stage.seconds(45);
    let outcomes = stage.outcomes();
    assert_eq!(
        outcomes[..3],
        ["accepted", "done", "no poller"],
        "{outcomes:?}"
    );
    // From there on the poller rules decide.
    stage.seconds(HOUR - 300);
    let attempts = stage.restart_lines("attempt");
    let capabilities: Vec<_> = attempts.iter().map(|line| &line["capability"]).collect();
    assert_eq!(capabilities, ["restart", "poller"]);
    stage.seconds(300);
    assert_eq!(stage.times(&id).len(), 2, "once per 3600 s");
}

#[test]
fn flapping_poller() {
    let mut stage = Stage::new();
    let id = stage.owner("conductor-a", "a");
    stage.seconds(10);
    for look in 0..60 {
        if look % 2 == 0 {
            stage.sim().pollers_end(&id);
        } else {
            stage.sim().poller_starts(&id);
        }
        stage.seconds(30);
    }
    let told = stage.told();
    let flaps = told.iter().filter(|line| line.contains("comes and goes"));
    assert_eq!(flaps.count(), 1, "{told:?}");
    assert!(stage.times(&id).len() <= 1);
    // It stays: that is told when the window has passed.
    stage.sim().pollers_end(&id);
    stage.sim().poller_starts(&id);
    stage.seconds(HOUR);
    let told = stage.told();
    assert!(told.iter().any(|line| line.contains("stays")), "{told:?}");
}
