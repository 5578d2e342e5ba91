//! Scenarios: what is remembered across runs, and what is forgotten (sections
//! 5, 6 and 7).
//!
//! This file does not know what is told.

use agent_deck_watchdog::clock::Time;
use agent_deck_watchdog::state::State;

use super::{HOUR, Stage};
use crate::deck::{Answer, OnStart};
use crate::disk::Written;

#[test]
fn silent_when_healthy() {
    let mut stage = Stage::new();
    for number in 0..12 {
        stage.session(&format!("conductor-{number}"));
    }
    stage.seconds(HOUR);
    stage.nothing_happened();
    assert_eq!(stage.log(), "");
    assert!(stage.play.sim.ledger.iter().all(|call| call.verb == "list"));
    assert!(stage.play.sim.ledger.len() <= 720, "one list a poll");
    assert!(stage.play.sim.saves <= 3, "{} saves", stage.play.sim.saves);
}

#[test]
fn damaged_state_file() {
    let whole = {
        let mut stage = Stage::new();
        stage.session("conductor-a");
        stage.seconds(30);
        stage.play.sim.disk.as_ref().unwrap().bytes()
    };
    let half = whole[..whole.len() / 2].to_vec();
    for bytes in [
        vec![0; 100],
        half,
        b"[]".to_vec(),
        b"{\"version\": 99}".to_vec(),
        Vec::new(),
    ] {
        let mut stage = Stage::new();
        let clocks = stage.play.sim.clocks.reading();
        assert!(State::decode(&bytes, Time(0), &clocks).is_err());
        let id = stage.dead("conductor-a");
        stage.row(&id).on_start = OnStart::Lives;
        stage.sim().disk = Some(Written::Bytes(bytes));
        stage.seconds(HOUR);
        // Three restarts just done.
        stage.at_about(&id, &[300]);
    }
}

#[test]
fn removed_sessions_leave() {
    let mut stage = Stage::new();
    stage.play.poll = 60_000;
    let stays = stage.session("conductor-stays");
    for number in 0..50 {
        let id = stage.session(&format!("conductor-{number}"));
        stage.seconds(120);
        stage.sim().user_ends(&id, "remove", 500);
        stage.seconds(HOUR);
    }
    assert_eq!(stage.restarts(), []);
    stage.seconds(25 * HOUR);
    let known = stage.play.on_disk()["sessions"]
        .as_object()
        .cloned()
        .unwrap();
    assert_eq!(known.keys().collect::<Vec<_>>(), [stays.as_str()]);
    assert_eq!(stage.told(), [""; 0]);
}

#[test]
fn logout_and_login() {
    let mut stage = Stage::new();
    let used = stage.session("conductor-a");
    let other = stage.session("conductor-b");
    for _ in 0..2 {
        stage.seconds(65);
        stage.sim().end_agent(&used);
    }
    stage.seconds(3);
    assert_eq!(stage.times(&used).len(), 2);
    stage.play.reboot(100_000);
    stage.row(&used).on_start = OnStart::Ends(2000);
    let back = (stage.play.sim.truth() - crate::clock::START) / 1000;
    stage.seconds(180);
    let later = |times: Vec<u64>| times.into_iter().filter(|at| *at >= back).count();
    assert_eq!(later(stage.times(&used)), 1, "one is left for that window");
    assert_eq!(later(stage.times(&other)), 1);
}

#[test]
fn a_crash_between_decision_and_start_counts_as_a_restart() {
    for after in [false, true] {
        let mut stage = Stage::new();
        let id = stage.dead("conductor-a");
        // The second save is that of the intent.
        stage.sim().crash_at = Some((2, after));
        stage.seconds(40);
        // Before it is written nothing was decided; behind it, it may have begun.
        stage.at_about(&id, if after { &[] } else { &[1] });
        stage.seconds(60);
        assert_eq!(stage.times(&id).len(), 1);
        let first = if after { "unknown" } else { "accepted" };
        assert_eq!(stage.outcomes()[0], first);
    }
}

#[test]
fn a_crash_while_the_command_runs_waits_for_its_end() {
    for mode in [Stage::new, Stage::cron] {
        let mut stage = mode();
        let id = stage.dead("conductor-a");
        let other = stage.dead("conductor-b");
        stage.row(&id).answer = Answer::Takes(150_000);
        // The third save notes that the command runs.
        stage.sim().crash_at = Some((3, true));
        stage.seconds(140);
        assert_eq!((stage.times(&id).len(), stage.times(&other).len()), (1, 0));
        stage.seconds(200);
        assert_eq!((stage.times(&id).len(), stage.times(&other).len()), (1, 1));
        assert_eq!(stage.outcomes()[..2], ["unknown", "done"]);
    }
}

#[test]
fn once_runs_one_pass() {
    let mut stage = Stage::cron();
    let id = stage.dead("conductor-a");
    stage.seconds(50);
    stage.at_about(&id, &[0]);
    let verbs: Vec<&str> = stage.play.sim.ledger.iter().map(|call| call.verb).collect();
    assert_eq!(verbs, ["list", "show", "pane", "restart"]);
}

#[test]
fn once_keeps_the_guardrails() {
    let mut stage = Stage::cron();
    stage.play.poll = 5000;
    let id = stage.dead("conductor-a");
    stage.row(&id).on_start = OnStart::Ends(1000);
    stage.seconds(30);
    stage.at_about(&id, &[0]);
    // An hour of such runs: the promises are checked at each restart.
    stage.seconds(HOUR);
    let times = stage.times(&id);
    assert!((5..=7).contains(&times.len()), "{times:?}");
}

#[test]
fn once_without_memory() {
    let mut stage = Stage::cron();
    let id = stage.dead("conductor-a");
    stage.sim().faults.unsaved = u64::MAX;
    stage.seconds(HOUR);
    assert_eq!(stage.restarts(), []);
    assert!(stage.says("cannot be written, so nothing is done") > 0);
    // Nobody could remember that it was told, so it is not told each minute.
    assert!(stage.told().len() <= 1, "{} lines", stage.told().len());
    stage.sim().faults.unsaved = 0;
    // The log shows that the folder was used, so the budget begins spent.
    stage.seconds(400);
    assert_eq!(stage.times(&id).len(), 1);
}

#[test]
fn disk_full() {
    let mut stage = Stage::new();
    let id = stage.session("conductor-a");
    stage.row(&id).on_start = OnStart::Ends(1000);
    stage.seconds(62);
    stage.sim().faults.unsaved = u64::MAX;
    stage.sim().end_agent(&id);
    // The limits are kept in memory, and it is said once.
    stage.seconds(HOUR);
    let times = stage.times(&id);
    assert!((5..=7).contains(&times.len()), "{times:?}");
    assert_eq!(
        stage.says("cannot be written, limits are kept in memory"),
        1
    );
    stage.sim().faults.unsaved = 0;
    stage.seconds(61);
    assert_eq!(stage.says("is written again"), 1);
    assert_eq!(
        stage.budget_used(&id),
        stage
            .play
            .watch
            .as_ref()
            .unwrap()
            .state
            .sessions
            .get(&id)
            .unwrap()
            .restarts
            .len()
    );
}

#[test]
fn dry_run_changes_nothing() {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-a");
    let other = stage.dead("conductor-b");
    stage.sim().dry_run = true;
    stage.sim().files.clear.push(id.clone());
    stage.seconds(HOUR);
    assert_eq!((stage.restarts(), stage.told()), (vec![], vec![]));
    assert!(stage.play.sim.disk.is_none());
    assert_eq!(stage.play.sim.files.clear.len(), 1);
    assert!(stage.says("would be restarted") >= 2, "{}", stage.log());
    stage.sim().dry_run = false;
    stage.play.kill();
    stage.seconds(70);
    assert_eq!(stage.order(), [id.to_string(), other.to_string()]);
    assert_eq!(stage.budget_used(&id), 1);
}

#[test]
fn a_clock_set_back_freezes_nothing() {
    let mut stage = Stage::new();
    let id = stage.session("conductor-a");
    stage.seconds(100);
    stage.sim().hook(&id, "SessionStart");
    stage.seconds(10);
    stage.sim().clocks.step = -30 * 86_400_000;
    stage.sim().end_agent(&id);
    stage.seconds(HOUR);
    let times = stage.times(&id);
    assert!(times.len() == 1 && times[0] < 300, "{times:?}");
}

#[test]
fn a_clock_set_forward_refills_nothing() {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-a");
    stage.fails(&id, "exit 1");
    for _ in 0..60 {
        stage.seconds(7);
        stage.sim().clocks.step += 600_000;
        stage.play.kill();
    }
    // The promises are checked at each restart.
    assert!(stage.times(&id).len() >= 3);
}
