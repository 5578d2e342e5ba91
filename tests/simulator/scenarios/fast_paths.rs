//! Scenarios: lists are rare while no death can go unnoticed, and nothing is
//! lost by that, whatever fast path is cut off.
//!
//! This file does not know how hints come about.

use agent_deck_watchdog::model::SessionId;

use super::{HOUR, Stage};
use crate::deck::OnStart;
use crate::sim::Sim;

/// What agent-deck itself takes to list, to show and to read a pane.
const OWN_TIME: u64 = 500;
/// `SAFETY_POLL_S`, and the same while all is calm.
const POLL: u64 = 5000;
const CALM: u64 = 15_000;

/// A stage as it is where `SAFETY_POLL_S` is not set.
fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.play.calm_poll = CALM;
    stage
}

/// How an agent can come to its end.
#[derive(Clone, Copy, Debug)]
enum Death {
    Killed,
    OwnExit,
    SessionKilled,
    ServerKilled,
    PaneRemains,
}

const DEATHS: [Death; 5] = [
    Death::Killed,
    Death::OwnExit,
    Death::SessionKilled,
    Death::ServerKilled,
    Death::PaneRemains,
];

impl Death {
    fn comes(self, sim: &mut Sim, id: &SessionId) {
        match self {
            Death::Killed | Death::PaneRemains => sim.end_agent(id),
            Death::OwnExit => {
                sim.hook(id, "SessionEnd");
                sim.end_agent(id);
            }
            Death::SessionKilled => sim.kill_terminal(id, 0),
            Death::ServerKilled => sim.kill_server(0),
        }
    }
}

/// Milliseconds from a death to the beginning of its restart.
fn served_after(hooks: bool, processes: bool, death: Death, moment: u64) -> u64 {
    let mut stage = stage();
    let ids = ["conductor-a", "conductor-b"].map(|title| stage.session(title));
    let id = &ids[0];
    stage.row(id).sandboxed = matches!(death, Death::PaneRemains);
    stage.sim().folder_watch = hooks;
    stage.sim().process_watch = processes;
    stage.seconds(60);
    let dies = stage.play.sim.truth() + moment;
    stage.play.until(dies);
    death.comes(stage.sim(), id);
    stage.seconds(60);
    let ledger = &stage.play.sim.ledger;
    let restart = ledger.iter().find(|call| call.verb == "restart");
    restart.map_or(u64::MAX, |call| call.at - dies)
}

/// Also with a fast path that still works: at once.
#[test]
fn every_death_is_served_within_a_poll_whatever_fast_path_is_cut_off() {
    for (hooks, processes) in [(true, true), (false, true), (true, false), (false, false)] {
        for death in DEATHS {
            for moment in [0, 400, 2600, 4900, 5100, 9900, 14_900] {
                let after = served_after(hooks, processes, death, moment);
                let hinted = processes || hooks && matches!(death, Death::OwnExit);
                // Two looks two seconds apart, where its end was not witnessed.
                let confirms = matches!(death, Death::PaneRemains) && !processes;
                let most = match (hinted, confirms) {
                    (true, _) => OWN_TIME,
                    (false, false) => POLL + OWN_TIME,
                    (false, true) => POLL + 2000 + 2 * OWN_TIME,
                };
                assert!(
                    after <= most,
                    "hooks {hooks}, processes {processes}, {death:?} at {moment}: {after} ms"
                );
            }
        }
    }
}

/// What no hint reveals is found by the next list.
#[test]
fn a_death_that_no_hint_reveals_costs_a_calm_poll() {
    let mut latest = 0;
    for moment in (0..CALM).step_by(700) {
        let mut stage = stage();
        let id = stage.session("conductor-a");
        stage.seconds(60);
        let dies = stage.play.sim.truth() + moment;
        stage.play.until(dies);
        stage.sim().mute = true;
        stage.sim().kill_terminal(&id, 0);
        stage.seconds(60);
        let ledger = stage.play.sim.ledger.iter();
        let mut restarts = ledger.filter(|call| call.verb == "restart");
        latest = latest.max(restarts.next().unwrap().at - dies);
    }
    assert!(
        (CALM - 700..=CALM + OWN_TIME).contains(&latest),
        "{latest} ms"
    );
}

/// Lists of the last so many milliseconds.
fn lists(stage: &Stage, lately: u64) -> usize {
    let since = stage.play.sim.truth() - lately;
    let ledger = stage.play.sim.ledger.iter();
    ledger
        .filter(|call| call.verb == "list" && call.at >= since)
        .count()
}

#[test]
fn calm_decks_are_listed_four_times_a_minute_and_processes_are_not_searched() {
    let mut stage = stage();
    let ids = ["conductor-a", "conductor-b"].map(|title| stage.session(title));
    stage.seconds(60);
    let before = stage.play.sim.searches;
    stage.seconds(HOUR);
    assert_eq!(stage.play.sim.searches, before);
    assert!((236..=240).contains(&lists(&stage, HOUR * 1000)));
    // One that is at rest needs no watching, one that cannot be restarted does.
    stage.sim().user_ends(&ids[0], "stop", 500);
    stage.seconds(60);
    let before = stage.play.sim.searches;
    stage.seconds(600);
    assert!((38..=42).contains(&lists(&stage, 600_000)));
    assert_eq!(stage.play.sim.searches, before);
    stage.fails(&ids[1], "exit 1");
    stage.row(&ids[1]).on_start = OnStart::Nothing;
    stage.sim().end_agent(&ids[1]);
    stage.seconds(60);
    assert!(lists(&stage, 60_000) >= 11);
}

#[test]
fn a_record_of_a_session_that_no_list_knows_leads_to_a_list_once() {
    let mut stage = stage();
    stage.session("conductor-a");
    let stranger = stage.session("of another profile");
    stage.row(&stranger).unlisted = u64::MAX;
    // Not when a list is due by itself.
    stage.seconds(65);
    let mut count = stage.calls("list").len();
    stage.sim().hook(&stranger, "UserPromptSubmit");
    stage.seconds(1);
    count += 1;
    assert_eq!(stage.calls("list").len(), count);
    for _ in 0..4 * 15 {
        stage.sim().hook(&stranger, "UserPromptSubmit");
        stage.seconds(1);
    }
    assert_eq!(stage.calls("list").len(), count + 4);
    // One that was just started is known a moment later.
    let new = stage.session("conductor-new");
    stage.seconds(1);
    assert_eq!(stage.remembered(&new), serde_json::Value::Null);
    stage.sim().hook(&new, "SessionStart");
    stage.seconds(1);
    assert_eq!(stage.remembered(&new)["title"], "conductor-new");
}

#[test]
fn twenty_children_that_wait_cost_few_readings_and_are_asked_in_time() {
    let mut stage = stage();
    stage.session("conductor-a");
    let children: Vec<SessionId> = (0..20)
        .map(|n| stage.child(&format!("worker-{n}")))
        .collect();
    stage.seconds(590);
    let readings = |stage: &Stage| stage.calls("pane").len();
    assert!(readings(&stage) <= 20 * 4, "{}", readings(&stage));
    stage.seconds(200);
    for child in &children {
        let asked = stage.sends(child);
        // Two are asked in a turn.
        assert!(
            matches!(asked[..], [at] if (600..760).contains(&at)),
            "{asked:?}"
        );
    }
    let before = readings(&stage);
    stage.seconds(HOUR - 800);
    let an_hour = readings(&stage) - before;
    assert!(an_hour <= 20 * 7, "{an_hour}");
}

/// A hook record moves the timer at once; what moves without one is noticed by
/// the readings, which are a poll apart near the time.
#[test]
fn the_timer_of_a_child_is_exact_to_a_poll_near_its_time() {
    let mut stage = stage();
    let [by_hook, late] = ["by-hook", "late"].map(|title| stage.child(title));
    stage.seconds(100);
    stage.sim().moves(&by_hook);
    stage.sim().hook(&by_hook, "Stop");
    stage.seconds(494);
    stage.sim().moves(&late);
    stage.seconds(300);
    stage.asked_at(&by_hook, &[700]);
    assert_eq!(stage.sends(&late), [0; 0]);
    stage.seconds(320);
    stage.asked_at(&late, &[1195]);
}
