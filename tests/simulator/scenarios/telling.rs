//! Scenarios: what people are told, and how often (sections 6 and 8).
//!
//! This file does not know why sessions die.

use std::time::Duration;

use agent_deck_watchdog::world::{Channel, Sent};

use super::{DAY, HOUR, Stage};
use crate::clock::START;
use crate::deck::{Answer, OnStart};

/// Outcomes in `escalations.log`, in order.
fn outcomes(stage: &Stage) -> Vec<String> {
    let log = stage.play.sim.escalation_log.iter();
    log.map(|line| line["outcome"].as_str().unwrap().to_owned())
        .collect()
}

/// Seconds at which messages went out.
fn times(stage: &Stage) -> Vec<u64> {
    stage
        .play
        .sim
        .messages
        .iter()
        .map(|(at, _, _)| (at - START) / 1000)
        .collect()
}

fn failing() -> Stage {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-a");
    stage.fails(&id, "exit 1");
    stage
}

#[test]
fn no_chat_id_local_only() {
    let mut stage = failing();
    stage.sim().channel = Channel::LocalOnly;
    stage.seconds(300);
    assert_eq!(stage.told(), [""; 0]);
    assert_eq!(outcomes(&stage), ["local only"]);
}

#[test]
fn chat_id_set() {
    let mut stage = failing();
    stage.seconds(300);
    assert_eq!(stage.told().len(), 1);
    assert_eq!(outcomes(&stage), ["sent"]);
    let mut stage = Stage::new();
    let id = stage.dead("conductor-a");
    stage.fails(&id, "HTTP 429");
    stage.seconds(10);
    assert_eq!(
        (stage.told().len(), outcomes(&stage)),
        (1, vec!["sent".to_owned()])
    );
}

#[test]
fn escalation_log_tells_the_outcome() {
    let mut stage = failing();
    let other = stage.session("conductor-b");
    stage.seconds(70);
    stage.row(&other).substate = Some(agent_deck_watchdog::model::Substate::Auth401);
    // Told at 120 s; the other one at 130 s waits for its minute.
    stage.seconds(130);
    assert_eq!(outcomes(&stage), ["sent", "rate-limited", "sent"]);
    stage.sim().sends = Sent::Refused("escalate.sh: exit 1".to_owned());
    let first = stage.play.sim.rows[0].id.clone();
    stage.fails(&first, "HTTP 429");
    stage.seconds(7 * HOUR);
    assert!(outcomes(&stage).contains(&"failed".to_owned()));
    assert!(outcomes(&stage).contains(&"deduplicated".to_owned()));
    stage.sim().channel = Channel::LocalOnly;
    stage.seconds(7 * HOUR);
    assert!(outcomes(&stage).contains(&"local only".to_owned()));
    for line in &stage.play.sim.escalation_log {
        assert!(!line["text"].as_str().unwrap().is_empty());
        assert!(!line["episode"].as_str().unwrap().is_empty());
    }
}

#[test]
fn long_alert() {
    let mut stage = Stage::new();
    for number in 0..60 {
        let title = format!("conductor-{number}-{}", "\u{1f642}\u{e9}".repeat(60));
        let id = stage.session(&title);
        stage.row(&id).substate = Some(agent_deck_watchdog::model::Substate::Auth401);
    }
    stage.seconds(300);
    let (_, _, text) = &stage.play.sim.messages[0];
    assert!(text.chars().count() < 4096, "{}", text.chars().count());
    let shown = text
        .lines()
        .filter(|line| line.contains("login problem"))
        .count();
    assert!(
        text.ends_with(&format!("and {} more, see escalations.log", 60 - shown)),
        "{text}"
    );
}

#[test]
fn poison_message() {
    // Telegram says no: final.
    let mut stage = failing();
    stage.sim().sends = Sent::Refused("escalate.sh: exit 1".to_owned());
    stage.seconds(HOUR);
    assert_eq!(
        (times(&stage).len(), outcomes(&stage)),
        (1, vec!["failed".to_owned()])
    );
    // Not now: five tries in all, at growing distances, counted across runs.
    let mut stage = failing();
    stage.sim().sends = Sent::TryAgain(Duration::from_secs(40));
    stage.seconds(200);
    stage.play.kill();
    stage.seconds(3 * HOUR);
    let times = times(&stage);
    assert_eq!(times.len(), 5, "{times:?}");
    let gaps: Vec<u64> = times.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(gaps[0] >= 40 && gaps.is_sorted(), "{gaps:?}");
    assert_eq!(outcomes(&stage), ["failed"; 5]);
}

#[test]
fn one_incident_few_alerts() {
    let mut stage = failing();
    let id = stage.play.sim.rows[0].id.clone();
    stage.seconds(15 * HOUR);
    stage.row(&id).answer = Answer::Usual;
    stage.seconds(2 * HOUR);
    let told = stage.told();
    assert!((3..=4).contains(&told.len()), "{told:?}");
    assert!(told[1].starts_with("still, for 6 h"), "{told:?}");
    assert!(told.last().unwrap().contains("recovered after"), "{told:?}");
    assert!(told.last().unwrap().contains("restarts"), "{told:?}");
    let gaps = times(&stage)
        .windows(2)
        .map(|two| two[1] - two[0])
        .collect::<Vec<u64>>();
    assert!(
        gaps[..gaps.len() - 1].iter().all(|gap| *gap >= 6 * HOUR),
        "{gaps:?}"
    );
}

#[test]
fn reminders_carry_news() {
    let mut stage = failing();
    stage.seconds(DAY + HOUR);
    let told = stage.told();
    let different: std::collections::BTreeSet<&String> = told.iter().collect();
    assert!(told.len() >= 4 && different.len() == told.len(), "{told:?}");
    let gaps: Vec<u64> = times(&stage)
        .windows(2)
        .map(|two| two[1] - two[0])
        .collect();
    assert!(gaps.is_sorted(), "{gaps:?}");
}

#[test]
fn what_is_due_together_goes_as_one() {
    let mut stage = Stage::new();
    for number in 0..5 {
        let id = stage.session(&format!("conductor-{number}"));
        stage.row(&id).substate = Some(agent_deck_watchdog::model::Substate::Auth401);
    }
    stage.seconds(HOUR);
    assert_eq!((times(&stage).len(), stage.told().len()), (1, 5));
}

#[test]
fn a_standing_refusal_is_told_after_ten_minutes() {
    let mut stage = Stage::new();
    let id = stage.session("conductor-a");
    stage.session("conductor-b");
    stage.seconds(60);
    stage.row(&id).lie = Some(crate::deck::Lie::LostName);
    stage.seconds(590);
    assert_eq!(stage.told(), [""; 0]);
    stage.seconds(HOUR);
    assert_eq!(stage.told().len(), 1, "{:?}", stage.told());
    assert!(stage.told()[0].contains("is not restarted: it reads dead, but process"));
    stage.row(&id).lie = None;
    stage.seconds(120);
    assert!(
        stage.told()[1].contains("reads alive again"),
        "{:?}",
        stage.told()
    );
}

#[test]
fn a_crash_loop_is_told_once_and_ends() {
    let mut stage = Stage::new();
    let id = stage.dead("conductor-a");
    stage.row(&id).on_start = OnStart::Ends(3000);
    stage.seconds(HOUR);
    assert_eq!(stage.told().len(), 1, "{:?}", stage.told());
    stage.row(&id).on_start = OnStart::Lives;
    stage.seconds(2 * HOUR);
    assert_eq!(stage.told().len(), 2, "{:?}", stage.told());
    assert!(stage.told()[1].contains("recovered after"));
}
