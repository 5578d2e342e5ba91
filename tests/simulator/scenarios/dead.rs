//! Scenarios: what counts as critical, and who is dead (section 1).
//!
//! This file does not know what restarts may cost.

use agent_deck_watchdog::model::Status;

use super::{DAY, HOUR, Stage};
use crate::deck::{Lie, OnStart, Stored, Terminal};
use crate::faults::Fault;

#[test]
fn critical_by_title_prefix() {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-ops");
    stage.seconds(30);
    stage.at_about(&id, &[0]);
    let verbs: Vec<&str> = stage.play.sim.ledger.iter().map(|call| call.verb).collect();
    assert_eq!(verbs[..4], ["list", "show", "pane", "restart"]);
    assert!(verbs[4..].iter().all(|verb| *verb == "list"), "{verbs:?}");
}

#[test]
fn critical_by_group() {
    let mut stage = Stage::new();
    let mut ids = Vec::new();
    for group in ["conductor", "watchers", "watchers/night", "workers"] {
        let id = stage.dead(group);
        stage.row(&id).group = group.to_owned();
        ids.push(id);
    }
    stage.seconds(240);
    stage.at_about(&ids[0], &[0]);
    stage.at_about(&ids[1], &[60]);
    stage.at_about(&ids[2], &[120]);
    assert_eq!(stage.calls_of(&ids[3]), 0);
}

#[test]
fn critical_by_conductor_flag() {
    let mut stage = Stage::new();
    let marked = stage.dead("plain");
    stage.row(&marked).is_conductor = true;
    let unmarked = stage.dead("as plain");
    stage.seconds(300);
    stage.at_about(&marked, &[0]);
    assert_eq!(stage.calls_of(&unmarked), 0);
    assert_eq!(stage.says("is_conductor"), 0);
}

#[test]
fn critical_by_opt_in_file() {
    let mut stage = Stage::new();
    let id = stage.dead("worker");
    stage.seconds(60);
    stage.nothing_happened();
    stage.row(&id).on_start = OnStart::Ends(3000);
    stage.sim().files.autorestart.push(id.clone());
    stage.seconds(10);
    stage.at_about(&id, &[60]);
    stage.sim().files.autorestart.clear();
    stage.seconds(HOUR);
    stage.at_about(&id, &[60]);
}

#[test]
fn ordinary_worker_left_alone() {
    let mut stage = Stage::new();
    let id = stage.dead("worker");
    stage.seconds(HOUR);
    stage.nothing_happened();
    assert_eq!((stage.calls_of(&id), stage.log().as_str()), (0, ""));
}

#[test]
fn stopped_stays_stopped() {
    let mut stage = Stage::new();
    stage.play.poll = 60_000;
    let id = stage.dead("conductor-off");
    let flags = &mut stage.sim().files.autorestart;
    flags.push(id.clone());
    let row = stage.row(&id);
    row.group = "conductor".to_owned();
    row.is_conductor = true;
    row.stored = Stored::Stopped;
    stage.seconds(DAY);
    stage.nothing_happened();
    assert_eq!(stage.calls_of(&id), 0);
    assert_eq!(stage.says("stopped on purpose"), 1);
}

#[test]
fn archived_stays_archived() {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-old");
    stage.row(&id).archived = true;
    stage.seconds(HOUR);
    stage.nothing_happened();
    assert_eq!((stage.calls_of(&id), stage.says("it is archived")), (0, 1));
}

#[test]
fn never_started_is_no_crash() {
    let mut stage = Stage::new();
    let id = stage.session("conductor-new");
    let row = stage.row(&id);
    *row = row.clone().never_started();
    assert_eq!(row.status(), Status::Error);
    stage.seconds(HOUR);
    stage.nothing_happened();
    assert_eq!(stage.says("never ran"), 1);
}

#[test]
fn unfamiliar_status_is_no_error() {
    let mut stage = Stage::new();
    for (title, lie) in [
        ("conductor-a", Lie::Starting),
        ("conductor-b", Lie::Unfamiliar),
    ] {
        let id = stage.session(title);
        stage.row(&id).lie = Some(lie);
    }
    let queued = stage.dead("conductor-c");
    stage.row(&queued).stored = Stored::Queued;
    stage.seconds(600);
    stage.nothing_happened();
    assert_eq!(stage.says("its status \"paused\" is not known"), 1);
}

#[test]
fn young_session_grace() {
    let mut stage = Stage::new();
    let fails = stage.dead("conductor-a");
    let comes = stage.dead("conductor-b");
    for id in [&fails, &comes] {
        let created = stage.play.sim.clocks.wall() - 10_000;
        stage.row(id).created = created;
    }
    let id = comes.clone();
    stage.sim().after(20_000, move |sim| {
        sim.row(&id).terminal = Terminal::Stands(0);
    });
    stage.seconds(300);
    stage.at_about(&fails, &[50]);
    stage.at_about(&comes, &[]);
    assert!(stage.log().contains("less than a minute"));
}

#[test]
fn everything_dies_at_once() {
    let mut stage = Stage::new();
    let mut critical = Vec::new();
    for number in 0..12 {
        let title = if number % 3 == 0 {
            "conductor-"
        } else {
            "worker-"
        };
        let id = stage.session(&format!("{title}{number}"));
        if number % 3 == 0 {
            critical.push(id);
        }
    }
    // An opted-in worker comes after the conductors.
    stage.row(&critical[0]).title = "worker-0".to_owned();
    stage.sim().files.autorestart.push(critical[0].clone());
    stage.seconds(62);
    stage.sim().kill_server(0);
    stage.seconds(600);
    let told = stage.told();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].starts_with("12 sessions of profile default died together"),
        "{told:?}"
    );
    assert!(told[1].starts_with("4 of 4 critical sessions of profile default are back"));
    critical.rotate_left(1);
    for (number, id) in critical.iter().enumerate() {
        stage.at_about(id, &[62 + 60 * number as u64]);
    }
}

#[test]
fn one_bad_answer_does_not_spread() {
    let mut stage = Stage::new();
    let ids = [
        stage.dead("conductor-a"),
        stage.dead("conductor-b"),
        stage.dead("conductor-c"),
    ];
    stage
        .sim()
        .faults
        .show
        .insert(ids[0].clone(), (Fault::Garbage, u64::MAX));
    stage.seconds(200);
    stage.at_about(&ids[0], &[]);
    stage.at_about(&ids[1], &[0]);
    stage.at_about(&ids[2], &[60]);
    assert_eq!(stage.budget_used(&ids[0]), 0);
    stage.sim().faults.show.clear();
    stage.seconds(70);
    assert_eq!(stage.times(&ids[0]).len(), 1);
}

#[test]
fn fast_path_beats_the_poll() {
    let mut stage = Stage::new();
    let ids = [stage.session("conductor-a"), stage.session("conductor-b")];
    stage.seconds(61);
    let death = stage.play.sim.truth();
    stage.sim().end_agent(&ids[0]);
    stage.seconds(3);
    let begun = stage
        .play
        .sim
        .ledger
        .iter()
        .find(|call| call.verb == "restart")
        .unwrap();
    assert!(begun.at - death < 150, "after {} ms", begun.at - death);
    // Beside a living agent a record of an end is no end.
    stage.seconds(120);
    stage.sim().clears(&ids[1]);
    stage.seconds(300);
    assert_eq!(stage.order(), [ids[0].to_string()]);
}

#[test]
fn names_that_share_a_prefix() {
    let mut stage = Stage::new();
    let dead = stage.dead("conductor-a");
    let lives = stage.session("conductor-a2");
    stage.seconds(300);
    stage.at_about(&dead, &[0]);
    assert_eq!(stage.calls_of(&lives), 0);
}

#[test]
fn title_equal_to_an_id() {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-a");
    let other = stage.session(id.as_str());
    stage.row(&id).show_answers = Some(other);
    stage.seconds(1800);
    assert_eq!(stage.restarts(), []);
    let told = stage.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("ambiguous"), "{told:?}");
}
