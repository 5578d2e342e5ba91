//! Scenarios: what comes of messages (section 4).
//!
//! This file does not know when a child is due.

use agent_deck_watchdog::model::{Delivery, SessionId, Silence};

use super::{DAY, HOUR, Stage};
use crate::deck::Done;
use crate::front::{Mood, Plan};
use crate::sim::Call;

/// Lines that were told of a child.
fn told_of(stage: &Stage, id: &SessionId) -> Vec<String> {
    let told = stage.told().into_iter();
    told.filter(|line| line.contains(id.as_str())).collect()
}

#[test]
fn answered_nudges_stay_bounded() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    stage.row(&id).mood = Mood::Works(20_000);
    stage.seconds(DAY);
    let times = stage.sends(&id);
    assert_eq!(times.len(), 3, "{times:?}");
    assert!(
        times.windows(2).all(|two| two[1] - two[0] >= 3600),
        "{times:?}"
    );
    let told = told_of(&stage, &id);
    assert!(told[0].contains("was asked 3 times to report"), "{told:?}");
    // Reminders every six hours.
    assert!(told.len() <= 4, "{told:?}");
    // Back at work for five minutes: a new episode.
    stage.sim().works(&id, 310_000);
    stage.seconds(1000);
    assert_eq!(stage.sends(&id).len(), 4);
}

#[test]
fn refused_ones_do_not_take_the_turn_of_others() {
    let mut stage = Stage::new();
    // As far apart as they are tried again.
    stage.play.poll = 300_000;
    stage.play.calm_poll = 300_000;
    let refused = ["a", "b", "c"].map(|name| stage.child(name));
    for id in &refused {
        let why = "failed to initialize storage".to_owned();
        stage.row(id).plan = Plan::Nothing(Delivery::Refused(why));
    }
    stage.seconds(1200);
    let ids = ["d", "e", "f"].map(|name| stage.child(name));
    stage.seconds(3 * HOUR);
    stage.play.promises_were_kept("this scenario");
    for id in &ids {
        assert!(stage.sends(id).len() >= 2, "{:?}", stage.sends(id));
    }
    // Nor are they forgotten.
    for id in &refused {
        assert!(stage.sends(id).len() > 10, "{:?}", stage.sends(id));
    }
}

/// It says so half a minute before the next question, the call of triage, its handing
/// over or its stop is due, when its conductor's children were not asked for a while.
#[test]
fn who_is_done_is_left_alone_on_every_rung() {
    for (rung, triage) in [
        (0, false),
        (1, false),
        (2, false),
        (3, false),
        (3, true),
        (4, false),
    ] {
        let mut stage = Stage::new();
        stage.sim().triage.on = triage;
        stage.sim().checks.ladder.terminate = true;
        let conductor = stage.session("conductor-ops");
        let id = stage.child("worker-a");
        stage.row(&id).parent = conductor.to_string();
        stage.row(&id).mood = Mood::Echoes;
        stage.sim().files.autostop.push(id.clone());
        stage.seconds(600 - 30 + rung * HOUR);
        let before = stage.play.sim.ledger.clone();
        let acts = |call: &&Call| ["send", "triage", "stop", "notice"].contains(&call.verb);
        let acted = before.iter().filter(acts).count() as u64;
        assert!(acted >= rung, "{rung}: {before:?}");
        let at = stage.sim().clocks.wall();
        let truth = stage.sim().truth();
        stage.row(&id).done = Some(Done {
            at,
            truth,
            ok: true,
            fresh: true,
        });
        stage.seconds(2 * HOUR);
        let after = stage.play.sim.ledger.iter().filter(acts).count() as u64;
        assert_eq!(
            after,
            acted,
            "rung {rung}, triage {triage}:\n{}",
            stage.log()
        );
        stage.play.promises_were_kept("this scenario");
    }
}

#[test]
fn refused_send_stays_due() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    let why = "failed to initialize storage".to_owned();
    stage.row(&id).plan = Plan::Nothing(Delivery::Refused(why));
    stage.seconds(605);
    stage.row(&id).plan = Plan::Usual;
    stage.seconds(600);
    let times = stage.sends(&id);
    assert_eq!(times.len(), 2, "{times:?}");
    assert!((300..=310).contains(&(times[1] - times[0])), "{times:?}");
    assert_eq!(
        stage.says("nudge 1 of 3"),
        1,
        "the refused one does not count"
    );
    assert_eq!(
        stage.says("not asked to report, tried again every 5 min"),
        1
    );
}

#[test]
fn text_left_in_the_composer() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    stage.row(&id).plan = Plan::Left("typed_not_submitted".to_owned());
    stage.seconds(5 * HOUR);
    assert_eq!(stage.sends(&id).len(), 1);
    let told = told_of(&stage, &id);
    let left = |line: &&String| line.contains("text was left in its input box");
    assert_eq!(told.iter().filter(left).count(), 1, "{told:?}");
    // Nothing more in this episode, even when somebody has cleared the line.
    stage.row(&id).plan = Plan::Usual;
    stage.sim().stands(&id, None);
    stage.seconds(3 * HOUR);
    assert_eq!(stage.sends(&id).len(), 1);
    stage.sim().works(&id, 400_000);
    stage.seconds(1100);
    assert_eq!(stage.sends(&id).len(), 2, "a new episode");
}

#[test]
fn same_screen_after_nudge() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    stage.row(&id).mood = Mood::Ignores;
    stage.seconds(620);
    let told = told_of(&stage, &id);
    assert!(told[0].contains("its screen stayed as it was"), "{told:?}");
    stage.seconds(5 * HOUR);
    assert_eq!(stage.sends(&id).len(), 1);
    assert_eq!(told_of(&stage, &id).len(), 1);
}

#[test]
fn own_echo_does_not_count() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    stage.row(&id).mood = Mood::Echoes;
    stage.seconds(8 * HOUR);
    let times = stage.sends(&id);
    assert_eq!(times.len(), 3, "{times:?}");
    assert!(
        times.windows(2).all(|two| two[1] - two[0] >= 3600),
        "{times:?}"
    );
    let told = told_of(&stage, &id);
    assert!(told[0].contains("was asked 3 times"), "{told:?}");
}

#[test]
fn an_answered_dialog_is_told_loudly_and_ends_it() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    // Right after the look before the message.
    stage.row(&id).front.trap = Some((1, 200, Silence::Dialog));
    stage.seconds(700);
    assert_eq!(stage.play.sim.typed[0].stood, Some(Silence::Dialog));
    stage.seconds(5 * HOUR);
    assert_eq!(stage.sends(&id).len(), 1);
    let told = told_of(&stage, &id);
    assert!(told[0].contains("a dialog was on its screen, and the message answered it"));
}

#[test]
fn perhaps_in_vain_counts() {
    for answer in [
        Delivery::NoEvidence("no_evidence: ".to_owned()),
        Delivery::Unknown("delivery \"\"".to_owned()),
    ] {
        let mut stage = Stage::new();
        let id = stage.child("worker-a");
        stage.row(&id).mood = Mood::Echoes;
        stage.row(&id).plan = Plan::ArrivesBut(answer);
        stage.seconds(8 * HOUR);
        assert_eq!(stage.sends(&id).len(), 3);
    }
}

#[test]
fn a_message_that_hangs_is_left_and_not_doubled() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    let critical = stage.session("conductor-a");
    stage.row(&id).plan = Plan::Takes(400_000);
    stage.seconds(610);
    stage.sim().end_agent(&critical);
    stage.seconds(300);
    let told = told_of(&stage, &id);
    assert!(told[0].contains("still runs after"), "{told:?}");
    assert_eq!(
        stage.times(&critical),
        [0; 0],
        "nothing else changes its profile"
    );
    stage.seconds(150);
    assert_eq!(stage.times(&critical).len(), 1);
    assert_eq!(stage.sends(&id).len(), 1);
    stage.seconds(HOUR);
    assert_eq!(stage.sends(&id).len(), 2);
}

#[test]
fn a_message_in_another_profile_holds_nobody_up() {
    let mut stage = Stage::new();
    let id = stage.child("worker-a");
    stage.row(&id).plan = Plan::Takes(400_000);
    let other = crate::scenarios::id_of("0d0d0d0d-1755900000");
    stage.sim().add(&other, "night", "conductor-n");
    stage.seconds(610);
    stage.sim().end_agent(&other);
    stage.seconds(70);
    assert_eq!(
        stage.times(&other).len(),
        1,
        "as soon as nobody waits for it"
    );
}

#[test]
fn a_hundred_waiting_children_hold_up_no_restart() {
    let mut stage = Stage::new();
    let children: Vec<SessionId> = (0..100)
        .map(|n| stage.child(&format!("worker-{n}")))
        .collect();
    for id in &children {
        stage.row(id).mood = Mood::Echoes;
        stage.row(id).plan = Plan::Takes(4000);
    }
    let critical = stage.session("conductor-a");
    stage.seconds(660);
    assert!(stage.calls("send").len() > 1, "they are being asked");
    stage.sim().end_agent(&critical);
    let died = (stage.play.sim.truth() - crate::clock::START) / 1000;
    stage.seconds(30);
    let times = stage.times(&critical);
    // One message under way, and a look or two.
    assert!(times.len() == 1 && times[0] <= died + 7, "{died} {times:?}");
    // Each is asked once, two a turn, and none is forgotten.
    stage.seconds(600);
    for id in &children {
        assert_eq!(stage.sends(id).len(), 1, "{id}");
    }
}
