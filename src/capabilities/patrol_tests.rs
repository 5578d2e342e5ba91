//! Timers and episodes of children, and what they need, as tables.

use super::*;
use crate::guard::{Limits, Surroundings, nudge_verdict};
use crate::model::{Flags, Profile, SessionId};
use crate::state::State;

const NOW: Time = Time(2_000_000_000_000);
const THRESHOLD: Duration = Duration::from_secs(600);

fn at(seconds: u64) -> Time {
    NOW.plus(Duration::from_secs(seconds))
}

fn row() -> Session {
    let profile = Profile::parse("default").unwrap();
    Session {
        title: "fix-the-tests".to_owned(),
        group: "work".to_owned(),
        tool: "claude".to_owned(),
        command: "claude".to_owned(),
        status: Status::Waiting,
        parent: "1a2b3c4d-1755900000".to_owned(),
        ..Session::new(profile, SessionId::parse("1a2b3c4d-1755900001").unwrap())
    }
}

fn free() -> Screen {
    Screen {
        raw: [0; 32],
        content: [0; 32],
        claude: None,
        other: None,
        decision: false,
        asks: "",
        background: false,
    }
}

/// A child that waits.
fn child() -> Child {
    let mut child = Child::new(&row(), None);
    child.rung = Rung::Watching;
    child
}

/// What a child needs at a moment.
fn needs(child: &Child, row: &Session, screen: &Screen, now: Time) -> Need {
    let mut state = State::default();
    state.children.push(child.clone());
    let flags = Flags::default();
    let around = Surroundings {
        flags: &flags,
        limits: Limits::default(),
        remembered: true,
    };
    let verdict = nudge_verdict(&state, &around, row, now);
    let terms = Terms {
        threshold: THRESHOLD,
        step: around.limits.nudge_dedup,
        triage: false,
        may_stop: false,
        nudge: &verdict,
    };
    need(child, row, screen, &terms, now)
}

/// The same where there is triage, and both opt-ins of the last rung are given.
fn needs_with_all(child: &Child, now: Time) -> Need {
    let mut state = State::default();
    state.children.push(child.clone());
    let flags = Flags::default();
    let around = Surroundings {
        flags: &flags,
        limits: Limits::default(),
        remembered: true,
    };
    let verdict = nudge_verdict(&state, &around, &row(), now);
    let terms = Terms {
        threshold: THRESHOLD,
        step: around.limits.nudge_dedup,
        triage: true,
        may_stop: true,
        nudge: &verdict,
    };
    need(child, &row(), &free(), &terms, now)
}

#[test]
fn children_have_a_parent_and_are_no_conductors_nor_plain_shells() {
    let is = |change: &dyn Fn(&mut Session)| {
        let mut row = row();
        change(&mut row);
        is_child(&row)
    };
    assert!(is(&|_| {}));
    assert!(is(&|row| row.tool = "codex".to_owned()));
    assert!(!is(&|row| row.parent.clear()));
    assert!(!is(&|row| row.title = "conductor-b".to_owned()));
    assert!(!is(&|row| row.group = "watchers/night".to_owned()));
    assert!(!is(&|row| row.archived = true));
    let shell = |row: &mut Session| {
        row.tool = "shell".to_owned();
        row.command = "bash".to_owned();
    };
    assert!(!is(&shell));
    // An agent that has quit to its shell is a child that cannot be asked.
    assert!(is(&|row| row.tool = "shell".to_owned()));
}

#[test]
fn an_unchanged_pane_is_due_after_the_threshold_and_not_at_it() {
    let mut child = child();
    assert_eq!(read(&mut child, "a", None, at(0)), Read::Moved);
    assert_eq!(read(&mut child, "a", None, at(600)), Read::Still);
    assert!(matches!(
        needs(&child, &row(), &free(), at(600)),
        Need::Nothing(Some(until)) if until > at(600) && until < at(601)
    ));
    assert_eq!(needs(&child, &row(), &free(), at(601)), Need::Ask);
}

#[test]
fn a_new_pane_input_and_time_without_a_reading_do_not_count() {
    let mut moved = child();
    read(&mut moved, "a", None, at(0));
    read(&mut moved, "b", None, at(590));
    assert_eq!(moved.since, Some(at(590)));

    let mut typed = child();
    read(&mut typed, "a", None, at(0));
    read(&mut typed, "a", Some(at(540)), at(545));
    assert_eq!(typed.since, Some(at(540)));
    // A stamp that lies ahead says nothing.
    read(&mut typed, "a", Some(at(9000)), at(550));
    assert_eq!(typed.since, Some(at(540)));

    let mut unread_child = child();
    read(&mut unread_child, "a", None, at(0));
    unread(&mut unread_child, at(300));
    assert_eq!(unread(&mut unread_child, at(600)), at(300));
    read(&mut unread_child, "a", None, at(900));
    assert_eq!(unread_child.since, Some(at(600)));
    assert_eq!(unread_child.unread_since, None);

    let mut asleep = child();
    read(&mut asleep, "a", None, at(0));
    gap(&mut asleep, Duration::from_secs(500), at(510));
    assert_eq!(asleep.since, Some(at(500)));
    gap(&mut asleep, Duration::from_secs(9000), at(520));
    assert_eq!(asleep.since, Some(at(520)));
}

#[test]
fn another_status_ends_the_timer_and_only_rest_ends_the_episode() {
    let mut child = child();
    read(&mut child, "a", None, at(0));
    child.opened = Some(at(601));
    child.nudges = 2;
    child.last_nudge = Some(at(602));
    child.silent = "x".to_owned();
    let with = |status| Session { status, ..row() };
    let working = with(Status::Running);
    assert_eq!(listed(&mut child, &working, at(610)), Listed::Left);
    assert_eq!((child.since, child.digest.as_str()), (None, ""));
    // It waits again before it has recovered.
    assert_eq!(listed(&mut child, &row(), at(650)), Listed::Waits);
    assert_eq!(child.nudges, 2);
    assert_eq!(listed(&mut child, &working, at(700)), Listed::Left);
    let dead = with(Status::Error);
    assert_eq!(listed(&mut child, &dead, at(800)), Listed::Error);
    assert_eq!(child.dying_since, Some(at(800)));
    for seconds in [900, 1199] {
        assert_eq!(listed(&mut child, &working, at(seconds)), Listed::Left);
    }
    assert_eq!(child.dying_since, None);
    assert_eq!(listed(&mut child, &working, at(1200)), Listed::Recovered);
    assert_eq!((child.nudges, child.silent.as_str()), (0, ""));
    // The time of the last nudge outlives the episode.
    assert_eq!(child.last_nudge, Some(at(602)));
    assert!(!is_over(&child, Duration::from_secs(3600), at(4201)));
    assert!(is_over(&child, Duration::from_secs(3600), at(4202)));
}

#[test]
fn who_stops_archives_or_finishes_it_ends_the_episode_at_once() {
    type Change = fn(&mut Session);
    let cases: [(Change, Listed); 3] = [
        (|row| row.status = Status::Stopped, Listed::Stopped),
        (|row| row.archived = true, Listed::Exempt),
        (|row| row.created = Some(at(0)), Listed::Completed),
    ];
    for (change, says) in cases {
        let mut child = child();
        read(&mut child, "a", None, at(0));
        child.opened = Some(at(601));
        child.over = Some(at(605));
        child.nudges = 1;
        let mut row = row();
        row.created = Some(at(606));
        change(&mut row);
        assert_eq!(listed(&mut child, &row, at(610)), says);
        assert_eq!((child.opened, child.nudges, child.waits), (None, 0, false));
    }
}

/// 1.5, line 5: a word about an older task says nothing of this one.
#[test]
fn a_completion_counts_if_it_came_after_the_work_began() {
    let with = |status| Session {
        status,
        created: Some(at(100)),
        ..row()
    };
    for (over, ran, settled) in [
        (None, None, false),
        (Some(99), None, false),
        (Some(100), None, true),
        (Some(200), Some(201), false),
        (Some(201), Some(201), true),
    ] {
        let mut child = child();
        child.over = over.map(at);
        child.ran = ran.map(at);
        assert_eq!(
            is_settled(&child, &with(Status::Waiting)),
            settled,
            "{over:?} {ran:?}"
        );
    }
    // The moment in which it is seen to begin to run is kept while it runs.
    let mut child = child();
    listed(&mut child, &with(Status::Running), at(300));
    listed(&mut child, &with(Status::Running), at(400));
    assert_eq!(child.ran, Some(at(300)));
    listed(&mut child, &with(Status::Waiting), at(500));
    listed(&mut child, &with(Status::Running), at(600));
    assert_eq!(child.ran, Some(at(600)));
}

#[test]
fn a_decision_and_a_limit_are_told_once_and_a_closed_composer_comes_before_asking() {
    let mut child = child();
    read(&mut child, "a", None, at(0));
    let taken = Screen {
        claude: Some(Silence::Draft),
        ..free()
    };
    let why = Silence::Draft.word();
    assert_eq!(needs(&child, &row(), &taken, at(700)), Need::CannotAsk(why));
    // Another tool has no composer that we know.
    let mut other = row();
    other.tool = "codex".to_owned();
    other.command = "codex".to_owned();
    assert_eq!(needs(&child, &other, &taken, at(700)), Need::Ask);
    // Nothing is said while the next nudge is not due.
    child.last_nudge = Some(at(0));
    child.nudges = 1;
    assert_eq!(
        needs(&child, &row(), &taken, at(700)),
        Need::Nothing(Some(at(3600)))
    );
    let decision = Screen {
        decision: true,
        asks: "a plan",
        ..free()
    };
    assert_eq!(shows(&row(), &decision), Shows::Decision);
    child.rung = Rung::Gated;
    let told = needs(&child, &row(), &decision, at(700));
    assert_eq!(told, Need::Decision("a plan"));
    child.gate = "a".to_owned();
    child.gate_told = Some(at(700));
    let again = needs(&child, &row(), &decision, at(9000));
    assert_eq!(again, Need::Nothing(None), "the same one");
    read(&mut child, "b", None, at(800));
    let soon = needs(&child, &row(), &decision, at(1500));
    assert_eq!(soon, Need::Nothing(Some(at(4300))), "one in a dwell");
    for substate in [
        Substate::UsageLimit,
        Substate::Auth401,
        Substate::ModelUnavailable,
    ] {
        let held = Session {
            substate: Some(substate),
            ..row()
        };
        assert_eq!(shows(&held, &free()), Shows::Limit);
        let mut child = super::tests::child();
        read(&mut child, "a", None, at(0));
        child.rung = Rung::Held;
        child.held_since = Some(at(500));
        let early = needs(&child, &held, &free(), at(700));
        assert_eq!(early, Need::Nothing(Some(at(1100))));
        let due = needs(&child, &held, &free(), at(1100));
        assert!(matches!(due, Need::Limit(_)), "{substate:?}");
        child.said.push(HELD.to_owned());
        assert_eq!(needs(&child, &held, &free(), at(9000)), Need::Nothing(None));
    }
}

#[test]
fn after_three_nudges_somebody_hears_of_it() {
    let mut child = child();
    read(&mut child, "a", None, at(0));
    child.rung = Rung::Nudged;
    child.nudges = 3;
    child.last_nudge = Some(at(0));
    assert!(matches!(
        needs(&child, &row(), &free(), at(3599)),
        Need::Nothing(_)
    ));
    assert_eq!(needs(&child, &row(), &free(), at(3600)), Need::HandOver);
    assert_eq!(needs_with_all(&child, at(3600)), Need::Triage);
    child.nudges = 1;
    child.silent = "its screen stayed as it was".to_owned();
    assert_eq!(needs(&child, &row(), &free(), at(3600)), Need::HeldBack);
}

/// T12 to T14 and T22: a dwell before each.
#[test]
fn the_higher_rungs_have_their_dwell() {
    let mut child = child();
    read(&mut child, "a", None, at(0));
    child.nudges = 3;
    child.last_nudge = Some(at(0));
    child.rung = Rung::Triage;
    child.triaged = Some(at(3600));
    child.triage_open = true;
    assert_eq!(needs_with_all(&child, at(9000)), Need::Nothing(None));
    child.triage_open = false;
    assert_eq!(
        needs_with_all(&child, at(3700)),
        Need::Nothing(Some(at(7200)))
    );
    assert_eq!(needs_with_all(&child, at(7200)), Need::Triage);
    child.extends = MAX_EXTENDS;
    assert_eq!(needs_with_all(&child, at(7200)), Need::HandOver);

    child.rung = Rung::HandedOver;
    assert_eq!(
        needs_with_all(&child, at(9000)),
        Need::Nothing(None),
        "not told yet"
    );
    child.told = Some(at(8000));
    assert_eq!(
        needs_with_all(&child, at(9000)),
        Need::Nothing(Some(at(11_600)))
    );
    assert_eq!(needs_with_all(&child, at(11_600)), Need::Stop);
    assert_eq!(
        needs(&child, &row(), &free(), at(11_600)),
        Need::Nothing(None)
    );
    child.silent = "x".to_owned();
    assert_eq!(needs_with_all(&child, at(11_600)), Need::Nothing(None));
}

/// Three quarters of the way to the moment, but never less than a poll, nor over
/// the moment itself.
#[test]
fn readings_become_denser_towards_the_moment() {
    let seconds = Duration::from_secs;
    for (due, longest, next) in [
        (600, READ_HINTED, 450),
        (600, READ_FAR, 30),
        (3600, READ_HINTED, 1200),
        (150, READ_HINTED, 112),
        (36, READ_FAR, 27),
        (8, READ_HINTED, 6),
        (6, READ_HINTED, 5),
        (3, READ_HINTED, 3),
        (0, READ_HINTED, 5),
    ] {
        let read = next_reading(Some(at(due)), seconds(5), longest, seconds(5), at(0));
        assert_eq!(read.as_secs(), next, "due in {due}");
    }
    let mut at_readings = vec![0];
    while at_readings.len() < 20 && at_readings[at_readings.len() - 1] < 600_000 {
        let now = Time(at_readings[at_readings.len() - 1]);
        let due = Some(Time(600_001));
        let distance = next_reading(due, seconds(1), READ_HINTED, seconds(5), now);
        at_readings.push(now.plus(distance).0);
    }
    let last: Vec<u64> = at_readings.windows(2).map(|w| w[1] - w[0]).collect();
    assert_eq!(at_readings[at_readings.len() - 1], 600_001);
    assert!(
        last[last.len() - 2] <= 10_000 && last[last.len() - 1] <= 5000,
        "{last:?}"
    );
    assert!(at_readings.len() <= 7, "{at_readings:?}");
}

#[test]
fn where_no_moment_is_known_readings_become_rarer() {
    let seconds = Duration::from_secs;
    let mut distance = seconds(5);
    let mut distances = Vec::new();
    for _ in 0..8 {
        distance = next_reading(None, distance, READ_HINTED, seconds(5), at(0));
        distances.push(distance.as_secs());
    }
    assert_eq!(distances, [30, 60, 120, 240, 480, 960, 1200, 1200]);
    let unhinted = next_reading(None, distance, READ_FAR, seconds(5), at(0));
    assert_eq!(unhinted, READ_FAR);
}
