//! Scenarios: when a conductor counts as deaf, and when it is restarted for it
//! (section 3).
//!
//! This file does not know what comes after such a restart.

use agent_deck_watchdog::model::{AgentSays, Declared, Silence, Status};

use super::{DAY, HOUR, Stage};
use crate::bots::{Bot, default_folder, folder};
use crate::faults::Fault;

#[test]
fn poller_gone_one_restart() {
    let mut stage = Stage::new();
    let id = stage.owner("conductor-a", "a");
    stage.seconds(100);
    stage.sim().pollers_end(&id);
    stage.seconds(HOUR);
    // Two looks 30 s apart.
    let times = stage.times(&id);
    assert!(
        times.len() == 1 && (130..=165).contains(&times[0]),
        "{times:?}"
    );
    let attempts = stage.restart_lines("attempt");
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0]["capability"], "poller");
    assert_eq!(attempts[0]["session"], id.as_str());
    let evidence = attempts[0]["evidence"].as_str().unwrap();
    assert!(evidence.contains("/home/u/tg/a"), "{evidence}");
    assert_eq!(stage.outcomes(), ["accepted", "done", "poller"]);
    assert_eq!(stage.calls("send"), []);
    assert_eq!(stage.told(), [""; 0]);
}

#[test]
fn poller_dedup_3600s() {
    let mut stage = Stage::new();
    stage.play.poll = 20_000;
    let id = stage.deaf("conductor-a", "a");
    let other = stage.deaf("conductor-b", "b");
    stage.seconds(3500);
    let (first, second) = (stage.times(&id), stage.times(&other));
    assert_eq!((first.len(), second.len()), (1, 1), "{first:?} {second:?}");
    assert!(
        (60..=100).contains(&(second[0] - first[0])),
        "{first:?} {second:?}"
    );
    // While it does not help the distance doubles, up to a day.
    stage.seconds(3 * DAY);
    let times = stage.times(&id);
    let hours: Vec<u64> = times
        .windows(2)
        .map(|two| (two[1] - two[0]) / HOUR)
        .collect();
    assert_eq!(hours, [1, 2, 4, 8, 16, 24], "{times:?}");
}

#[test]
fn poller_match_is_exact() {
    let mut stage = Stage::new();
    stage.play.poll = 20_000;
    let id = stage.deaf("conductor-bot", "bot");
    let other = stage.owner("conductor-bot2", "bot2");
    stage.seconds(2 * DAY);
    assert!(!stage.times(&id).is_empty());
    assert_eq!(stage.times(&other), [0; 0]);
    let attempts = stage.restart_lines("attempt");
    assert!(attempts.iter().all(|line| line["session"] == id.as_str()));
}

#[test]
fn no_channel_no_check() {
    let mut stage = Stage::new();
    stage.session("conductor-a");
    stage.session("worker-b");
    stage.seconds(2 * HOUR);
    stage.nothing_happened();
    assert!(stage.play.sim.ledger.iter().all(|call| call.verb == "list"));
    assert_eq!(stage.log(), "");
}

#[test]
fn state_dir_from_env_file() {
    let mut stage = Stage::new();
    let id = stage.deaf("conductor-ops", "ops");
    let why = "/home/u/.agent-deck/ops.env:3: the value needs a shell";
    stage.bot(&id).declared = Declared::Unknown(why.to_owned());
    stage.seconds(5 * HOUR);
    assert_eq!(stage.restarts(), []);
    let told = stage.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("ops.env:3") && told[0].contains("unknown"),
        "{told:?}"
    );
    assert_eq!(stage.says("ops.env:3"), 1);
    // Mended: the expected folder is the expanded value.
    stage.bot(&id).declared = Declared::Folder(folder("ops"));
    stage.seconds(100);
    assert_eq!(stage.times(&id).len(), 1);
    let attempt = &stage.restart_lines("attempt")[0];
    assert!(
        attempt["evidence"]
            .as_str()
            .unwrap()
            .contains("/home/u/tg/ops")
    );
}

#[test]
fn configuration_and_environment_disagree() {
    for environment in [None, Some(folder("old"))] {
        let mut stage = Stage::new();
        let id = stage.deaf("conductor-a", "a");
        stage.bot(&id).environment = environment;
        stage.seconds(5 * HOUR);
        assert_eq!(stage.restarts(), []);
        assert_eq!(stage.told().len(), 1, "{:?}", stage.told());
    }
}

#[test]
fn the_environment_alone_and_the_default_folder_count() {
    let mut stage = Stage::new();
    let set = stage.session("conductor-a");
    let bot = Bot {
        channel: false,
        declared: Declared::Nothing,
        starts: None,
        ..Bot::at("a")
    };
    stage.row(&set).bot = Some(bot.clone());
    let plain = stage.session("conductor-b");
    let nothing = Bot {
        channel: true,
        environment: None,
        ..bot
    };
    stage.row(&plain).bot = Some(nothing);
    let pid = stage.sim().poller_starts(&plain);
    let default = default_folder();
    assert!(
        stage
            .play
            .sim
            .pollers
            .iter()
            .all(|p| p.pid != pid || p.polls(&default))
    );
    stage.seconds(HOUR);
    assert_eq!((stage.times(&set).len(), stage.times(&plain).len()), (1, 0));
}

#[test]
fn poller_restart_obeys_the_guards() {
    let mut stage = Stage::new();
    let deaf = stage.owner("conductor-a", "a");
    let dead = stage.session("conductor-b");
    stage.seconds(100);
    stage.sim().pollers_end(&deaf);
    stage.seconds(34);
    stage.sim().end_agent(&dead);
    stage.seconds(200);
    let all: Vec<u64> = stage.restarts().into_iter().map(|(at, _)| at).collect();
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(all[1] - all[0] >= 60, "{all:?}");
    assert_eq!(
        stage.budget_used(&deaf),
        1,
        "it counts in its three per 300 s"
    );
    // Two deaths of it within that window, and it has none left.
    let at = stage.times(&deaf)[0];
    stage.row(&deaf).on_start = crate::deck::OnStart::Ends(1000);
    stage.sim().end_agent(&deaf);
    stage.seconds(200);
    let times = stage.times(&deaf);
    assert!(
        times.iter().filter(|t| **t < at + 300).count() <= 3,
        "{times:?}"
    );
    assert!(times.len() >= 3, "{times:?}");
}

#[test]
fn held_and_paused_owners_stay_deaf() {
    let mut stage = Stage::new();
    let held = stage.deaf("conductor-a", "a");
    let hold = (held.clone(), None);
    stage.sim().files.hold.push(hold);
    stage.seconds(HOUR);
    assert_eq!(stage.restarts(), []);
    stage.sim().files.hold.clear();
    stage.sim().files.pause = Some((0, None));
    stage.seconds(HOUR);
    assert_eq!(stage.restarts(), []);
    stage.sim().files.pause = None;
    stage.seconds(100);
    assert_eq!(stage.times(&held).len(), 1);
}

#[test]
fn an_owner_that_is_not_at_rest_is_waited_for_and_told() {
    let mut stage = Stage::new();
    let dialog = stage.deaf("conductor-a", "a");
    stage.row(&dialog).front.stand = Some(Silence::Dialog);
    let draft = stage.deaf("conductor-b", "b");
    stage.row(&draft).front.stand = Some(Silence::Draft);
    let background = stage.deaf("conductor-c", "c");
    stage.row(&background).front.background = true;
    let works = stage.deaf("conductor-d", "d");
    stage.row(&works).word = Status::Running;
    let busy = stage.deaf("conductor-e", "e");
    stage.row(&busy).says = Some(AgentSays::Busy);
    let suspended = stage.deaf("conductor-f", "f");
    stage.row(&suspended).suspended = true;
    stage.seconds(29 * 60);
    stage.nothing_happened();
    stage.seconds(5 * 60);
    // Told after half an hour, each once.
    let told = stage.told();
    assert_eq!(told.len(), 6, "{told:?}");
    assert!(
        told.iter()
            .all(|line| line.contains("it cannot be restarted")),
        "{told:?}"
    );
    stage.seconds(2 * HOUR);
    assert_eq!((stage.restarts(), stage.told().len()), (vec![], 6));
    // It comes to rest.
    stage.sim().stands(&dialog, None);
    stage.seconds(100);
    assert_eq!(stage.times(&dialog).len(), 1);
}

#[test]
fn no_process_list_no_verdict() {
    for fault in [Fault::NoProgram, Fault::Fails, Fault::Hangs] {
        let mut stage = Stage::new();
        let id = stage.deaf("conductor-a", "a");
        stage.sim().faults.ps = Some((fault, u64::MAX));
        stage.seconds(HOUR);
        assert_eq!(stage.restarts(), []);
        assert_eq!(stage.told().len(), 1, "{:?}", stage.told());
        assert_eq!(stage.says("whether Telegram is polled is unknown"), 1);
        stage.sim().faults.ps = None;
        stage.seconds(100);
        assert_eq!(stage.times(&id).len(), 1);
    }
}

#[test]
fn a_young_owner_is_given_a_minute() {
    let mut stage = Stage::new();
    let id = stage.owner("conductor-a", "a");
    stage.bot(&id).starts = Some(50_000);
    stage.seconds(100);
    stage.sim().restart(&id, false);
    stage.seconds(HOUR);
    assert_eq!(stage.restarts(), []);
    assert_eq!(stage.told(), [""; 0]);
}

#[test]
fn an_owner_that_is_not_critical_is_told_only() {
    let mut stage = Stage::new();
    let id = stage.deaf("helper", "a");
    stage.seconds(5 * HOUR);
    assert_eq!(stage.restarts(), []);
    let told = stage.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains(id.as_str()) && told[0].contains("not critical"),
        "{told:?}"
    );
}
