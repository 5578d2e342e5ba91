//! Every condition of DESIGN 3.2 by itself, against a session that is dead for
//! certain in every other respect.

use super::*;
use crate::model::{HookRecord, NoAnswer, Process, Profile, Screen, SessionId, Traces};
use crate::state::Memory;

pub(super) const NOW: Time = Time(2_000_000_000_000);
pub(super) const ID: &str = "1a2b3c4d-1755900000";
const AGENT: &str = "aa501433-f9d6-4091-b492-1a6cb29f729c";

pub(super) fn ago(seconds: u64) -> Time {
    NOW.minus(Duration::from_secs(seconds))
}

/// A situation, dead for certain until a test changes something.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) row: Session,
    pub(super) memory: Memory,
    pub(super) traces: Traces,
    pub(super) shown: Result<Shown, NoAnswer>,
    pub(super) pane: Result<Pane, NoAnswer>,
    pub(super) table: Vec<Process>,
    pub(super) blind: Option<String>,
    pub(super) life_seen: bool,
    pub(super) stale: bool,
    pub(super) wrong_place: Option<String>,
    pub(super) witnessed: bool,
    pub(super) first: Option<FirstLook>,
    pub(super) listed: Result<Session, NoAnswer>,
}

pub(super) fn dead() -> Case {
    let id = SessionId::parse(ID).unwrap();
    let profile = Profile::parse("default").unwrap();
    let row = Session {
        title: "conductor-ops".to_owned(),
        group: "conductor".to_owned(),
        tool: "claude".to_owned(),
        command: "claude".to_owned(),
        status: Status::Error,
        tmux_session: "agentdeck_conductor-ops_9f8e7d6c".to_owned(),
        created: Some(ago(7200)),
        ..Session::new(profile.clone(), id.clone())
    };
    let mut memory = Memory::new(profile, row.title.clone(), None);
    memory.ran = true;
    Case {
        shown: Ok(Shown {
            id,
            status: Status::Error,
            substate: None,
            tool: "claude".to_owned(),
            command: "claude".to_owned(),
            tmux_session: row.tmux_session.clone(),
            agent_session: AGENT.to_owned(),
            auth_hold: false,
            link_disabled: false,
            quiet: false,
            spawn_failure: None,
        }),
        pane: Ok(Pane::Gone),
        listed: Ok(row.clone()),
        row,
        memory,
        traces: Traces::default(),
        table: vec![process(100, 1, "tmux: server", "tmux new-session")],
        blind: None,
        life_seen: true,
        stale: false,
        wrong_place: None,
        witnessed: false,
        first: None,
    }
}

/// A terminal that stands, with a screen of its own.
pub(super) fn stands(number: u8) -> Pane {
    Pane::Stands(Screen {
        raw: [number; 32],
        content: [number; 32],
        claude: None,
        other: None,
        decision: false,
        asks: "",
        background: false,
    })
}

pub(super) fn process(pid: u32, parent: u32, name: &str, command: &str) -> Process {
    Process {
        pid,
        parent,
        own: true,
        started: ago(7000),
        name: name.to_owned(),
        args: command.split_whitespace().map(str::to_owned).collect(),
        ..Process::default()
    }
}

/// A process of the session, in its terminal.
pub(super) fn in_pane(name: &str) -> Process {
    Process {
        instance: Some(ID.to_owned()),
        ..process(200, 100, name, name)
    }
}

pub(super) fn shown(change: impl Fn(&mut Shown)) -> Case {
    let mut case = dead();
    change(case.shown.as_mut().unwrap());
    case
}

pub(super) fn with(change: impl Fn(&mut Case)) -> Case {
    let mut case = dead();
    change(&mut case);
    case
}

/// Looks as far as it takes.
pub(super) fn finding(case: &Case) -> Finding {
    let before = Sight::Seen(case.table.clone());
    let mut look = Look {
        row: &case.row,
        memory: &case.memory,
        traces: case.traces.clone(),
        before: &before,
        after: None,
        shown: None,
        pane: None,
        listed: None,
        first: case.first.clone(),
        witnessed: case.witnessed,
        blind: case.blind.clone(),
        life_seen: case.life_seen,
        stale: case.stale,
        wrong_place: case.wrong_place.clone(),
        own: vec![555],
    };
    loop {
        match judge(&look, NOW) {
            Finding::AskShow => look.shown = Some(case.shown.clone()),
            Finding::AskPane => look.pane = Some(case.pane.clone()),
            Finding::AskList => look.listed = Some(case.listed.clone()),
            Finding::AskProcesses => look.after = Some(before.clone()),
            done @ (Finding::Dead(_) | Finding::LookAgain(..) | Finding::Leave(_)) => return done,
        }
    }
}

pub(super) fn cause(case: &Case) -> Option<Cause> {
    match finding(case) {
        Finding::Leave(refusal) => Some(refusal.cause),
        Finding::Dead(_)
        | Finding::LookAgain(..)
        | Finding::AskShow
        | Finding::AskPane
        | Finding::AskList
        | Finding::AskProcesses => None,
    }
}

pub(super) fn is_dead(case: &Case) -> bool {
    matches!(finding(case), Finding::Dead(_))
}

#[test]
fn a_session_whose_terminal_and_processes_are_gone_is_dead() {
    assert!(is_dead(&dead()));
}

#[test]
fn what_show_says_against_a_restart_is_heeded() {
    for (status, expected) in [
        (Status::Running, Cause::NotDead),
        (Status::Waiting, Cause::NotDead),
        (Status::Idle, Cause::NotDead),
        (Status::Queued, Cause::NotDead),
        (Status::Starting, Cause::NotDead),
        (Status::Unfamiliar("paused".to_owned()), Cause::NotDead),
        (Status::Stopped, Cause::Stopped),
    ] {
        let case = shown(|s| s.status = status.clone());
        assert_eq!(cause(&case), Some(expected), "{status:?}");
    }
    assert_eq!(cause(&shown(|s| s.auth_hold = true)), Some(Cause::AuthHold));
    for why in [
        NoAnswer::Late,
        NoAnswer::NotFound,
        NoAnswer::Garbage("x".to_owned()),
    ] {
        assert_eq!(
            cause(&with(|c| c.shown = Err(why.clone()))),
            Some(Cause::NoAnswer)
        );
        assert_eq!(
            cause(&with(|c| c.pane = Err(why.clone()))),
            Some(Cause::NoAnswer)
        );
    }
}

#[test]
fn archived_rows_are_left_alone_whatever_show_says() {
    assert_eq!(
        cause(&with(|c| c.row.archived = true)),
        Some(Cause::Archived)
    );
}

#[test]
fn a_login_problem_holds_only_over_a_pane_that_stands() {
    let auth = |pane: Pane| {
        let mut case = shown(|s| s.substate = Some(Substate::Auth401));
        case.pane = Ok(pane);
        case
    };
    assert_eq!(cause(&auth(stands(1))), Some(Cause::AuthHold));
    assert!(is_dead(&auth(Pane::Gone)));
}

#[test]
fn one_sign_that_it_ever_ran_is_enough_and_none_is_not() {
    let never = || {
        let mut case = shown(|s| s.agent_session = String::new());
        case.memory.ran = false;
        case
    };
    assert_eq!(cause(&never()), Some(Cause::NeverRan));
    let hook = HookRecord {
        event: "Stop".to_owned(),
        at: ago(500),
    };
    let signs: [&dyn Fn(&mut Case); 4] = [
        &|c| c.memory.ran = true,
        &|c| c.traces.hook = Some(hook.clone()),
        &|c| c.traces.spawned = Some(ago(500)),
        &|c| c.shown.as_mut().unwrap().agent_session = AGENT.to_owned(),
    ];
    for change in signs {
        let mut case = never();
        change(&mut case);
        assert!(is_dead(&case));
    }
}

#[test]
fn young_for_a_minute_from_whatever_birth_is_the_latest() {
    let started = |at| HookRecord {
        event: "SessionStart".to_owned(),
        at,
    };
    type Birth = (&'static str, fn(&mut Case, Time));
    let births: [Birth; 4] = [
        ("created", |c, at| c.row.created = Some(at)),
        ("spawned", |c, at| c.traces.spawned = Some(at)),
        ("process", |c, at| {
            c.memory.agent = Some(crate::state::Agent {
                pid: 9,
                started: at,
            });
        }),
        ("hook", |c, at| {
            c.traces.hook = Some(HookRecord {
                event: "SessionStart".to_owned(),
                at,
            });
        }),
    ];
    for (name, birth) in births {
        let born = |at| with(|c| birth(c, at));
        let Finding::Leave(refusal) = finding(&born(ago(59))) else {
            panic!("{name}")
        };
        assert_eq!(refusal.cause, Cause::Young, "{name}");
        assert_eq!(refusal.again, Some(ago(59).plus(YOUNG)), "{name}");
        assert!(is_dead(&born(ago(60))), "{name}");
    }
    // Another event is no birth.
    let stop = |c: &mut Case| {
        c.traces.hook = Some(HookRecord {
            event: "Stop".to_owned(),
            ..started(ago(3))
        });
    };
    assert!(is_dead(&with(stop)));
}

#[test]
fn a_birth_that_lies_ahead_does_not_freeze_it_for_days() {
    let mut case = with(|c| c.traces.spawned = Some(NOW.plus(Duration::from_secs(86_400))));
    case.memory.dead_since = Some(ago(10));
    assert_eq!(cause(&case), Some(Cause::Young));
    case.memory.dead_since = Some(ago(60));
    assert!(is_dead(&case));
}

#[test]
fn a_process_that_may_be_its_agent_means_hands_off() {
    let mut orphan = in_pane("claude");
    orphan.parent = 1;
    let resumed = process(300, 1, "claude", &format!("claude --resume {AGENT}"));
    for process in [in_pane("claude"), in_pane("node"), orphan.clone(), resumed] {
        let case = with(|c| c.table.push(process.clone()));
        assert_eq!(cause(&case), Some(Cause::MaybeAlive), "{process:?}");
    }
    let zombie = Process {
        zombie: true,
        ..in_pane("claude")
    };
    let tool = Process {
        inside_agent: true,
        ..orphan.clone()
    };
    let other = Process {
        instance: Some("1a2b3c4d-1755900001".to_owned()),
        ..orphan
    };
    for process in [zombie, tool, other] {
        assert!(
            is_dead(&with(|c| c.table.push(process.clone()))),
            "{process:?}"
        );
    }
}

#[test]
fn nothing_is_done_while_another_command_changes_sessions() {
    for command in [
        "session stop x",
        "session archive x",
        "-p a remove x",
        "session restart x",
    ] {
        let deck = process(
            300,
            1,
            "agent-deck",
            &format!("/usr/bin/agent-deck {command}"),
        );
        let case = with(|c| c.table.push(deck.clone()));
        assert_eq!(cause(&case), Some(Cause::OtherCommand), "{command}");
        let elsewhere = Process {
            elsewhere: true,
            ..deck
        };
        assert!(
            is_dead(&with(|c| c.table.push(elsewhere.clone()))),
            "{command}"
        );
    }
    assert_eq!(
        cause(&with(|c| c.traces.spawn_lock = Some(42))),
        Some(Cause::SpawnLock)
    );
    let busy = with(|c| c.traces.database_busy = true);
    assert_eq!(cause(&busy), Some(Cause::DatabaseBusy));
    let unreadable = |c: &mut Case| c.traces.unreadable = Some("denied".to_owned());
    assert_eq!(cause(&with(unreadable)), Some(Cause::NoAnswer));
}

#[test]
fn a_stop_is_remembered_until_somebody_starts_it() {
    let mut case = with(|c| c.memory.stopped_since = Some(ago(500)));
    assert_eq!(cause(&case), Some(Cause::Stopped));
    case.traces.spawned = Some(ago(501));
    assert_eq!(cause(&case), Some(Cause::Stopped));
    case.traces.spawned = Some(ago(499));
    assert!(is_dead(&case));
    let stop = process(
        300,
        1,
        "agent-deck",
        &format!("agent-deck session stop {ID}"),
    );
    assert_eq!(
        cause(&with(|c| c.table.push(stop.clone()))),
        Some(Cause::BeingStopped)
    );
}

#[test]
fn from_the_wrong_place_nobody_is_dead() {
    let case = with(|c| c.wrong_place = Some("elsewhere".to_owned()));
    assert_eq!(cause(&case), Some(Cause::WrongEyes));
}

#[test]
fn eyes_that_see_nothing_prove_nothing_unless_life_was_seen_through_them() {
    let blind = with(|c| c.blind = Some("nobody is seen".to_owned()));
    assert!(is_dead(&blind));
    let case = Case {
        life_seen: false,
        ..blind
    };
    assert_eq!(cause(&case), Some(Cause::WrongEyes));
    // Eyes that see need no earlier life.
    assert!(is_dead(&Case {
        life_seen: false,
        ..dead()
    }));
}

#[test]
fn conductors_come_first_then_who_has_waited_longest() {
    let mut state = State::default();
    let mut row = |id: &str, title: &str, dead: Time, tried: Option<Time>| {
        let mut row = dead_row(id, title);
        row.group = String::new();
        let memory = state.memory(&row.profile, &row.id, title);
        memory.dead_since = Some(dead);
        memory.restarts = tried.into_iter().collect();
        row
    };
    let rows = [
        row("a-1", "worker", ago(900), None),
        row("b-2", "conductor-late", ago(300), Some(ago(70))),
        row("c-3", "conductor-early", ago(300), None),
        row("d-4", "conductor-last", ago(60), None),
    ];
    let mut order: Vec<&Session> = rows.iter().collect();
    order.sort_by_key(|row| turn_order(row, &state));
    let ids: Vec<&str> = order.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids, ["c-3", "b-2", "d-4", "a-1"]);
}

fn dead_row(id: &str, title: &str) -> Session {
    let id = SessionId::parse(id).unwrap();
    Session {
        id,
        title: title.to_owned(),
        ..dead().row
    }
}
