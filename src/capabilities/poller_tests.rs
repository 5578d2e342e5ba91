//! Owners, folders, looks and rest, as tables.

use super::*;
use crate::model::{Poller, Profile, SessionId};

const NOW: Time = Time(2_000_000_000_000);

fn at(seconds: u64) -> Time {
    NOW.plus(Duration::from_secs(seconds))
}

fn row() -> Session {
    let profile = Profile::parse("default").unwrap();
    Session {
        title: "conductor-ops".to_owned(),
        group: "conductor".to_owned(),
        tool: "claude".to_owned(),
        status: Status::Waiting,
        created: Some(NOW.minus(Duration::from_secs(7200))),
        telegram: Some("plugin:telegram@claude-plugins-official".to_owned()),
        ..Session::new(profile, SessionId::parse("1a2b3c4d-1755900000").unwrap())
    }
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(format!("/home/u/tg/{name}"))
}

fn telegram(declared: Declared, environment: Option<Option<PathBuf>>) -> Telegram {
    Telegram {
        declared,
        environment,
        default: folder("default"),
        token: None,
    }
}

fn owner() -> Owner {
    Owner::new(&row(), None)
}

fn with(own: &[u32]) -> Seen {
    Seen {
        own: own.to_vec(),
        orphans: Vec::new(),
        connected: true,
    }
}

#[test]
fn an_owner_has_the_channel_or_is_a_conductor_that_declares_a_folder() {
    let agent = |folder: Option<PathBuf>| Process {
        telegram: folder,
        ..Process::default()
    };
    let (plain, set) = (agent(None), agent(Some(folder("ops"))));
    let mut row = row();
    assert!(may_own(&row, Some(&plain)) && may_own(&row, None));
    row.telegram = None;
    assert!(may_own(&row, Some(&set)) && may_own(&row, None));
    assert!(!may_own(&row, Some(&plain)));
    row.title = "worker".to_owned();
    assert!(!may_own(&row, Some(&set)) && !may_own(&row, None));

    let mut row = self::row();
    for status in [
        Status::Error,
        Status::Stopped,
        Status::Queued,
        Status::Starting,
    ] {
        row.status = status;
        assert!(!may_own(&row, None), "{:?}", row.status);
    }
    row.status = Status::Running;
    assert!(may_own(&row, None));
    row.archived = true;
    assert!(!may_own(&row, None));
}

#[test]
fn without_a_channel_only_what_is_certain_makes_an_owner() {
    let mut row = row();
    let unknown = Declared::Unknown("x".to_owned());
    assert!(owns(&row, &telegram(unknown.clone(), None)));
    row.telegram = None;
    for (declared, environment, is) in [
        (Declared::Nothing, None, false),
        (Declared::Folder(folder("a")), None, true),
        (unknown, None, false),
        (Declared::Nothing, Some(Some(folder("a"))), true),
        (Declared::Folder(folder("a")), Some(None), false),
    ] {
        let telegram = telegram(declared, environment);
        assert_eq!(owns(&row, &telegram), is, "{telegram:?}");
    }
}

#[test]
fn the_folder_is_known_when_nothing_contradicts() {
    let declared = || Declared::Folder(folder("a"));
    let set = |name: &str| Some(Some(folder(name)));
    for (declared, environment, expected) in [
        (declared(), set("a"), Some("a")),
        (declared(), None, Some("a")),
        (declared(), set("b"), None),
        (declared(), Some(None), None),
        (Declared::Nothing, set("b"), Some("b")),
        (Declared::Nothing, Some(None), Some("default")),
        (Declared::Nothing, None, Some("default")),
        (Declared::Unknown("x".to_owned()), set("b"), None),
    ] {
        let telegram = telegram(declared, environment);
        let found = self::expected(&telegram).ok();
        assert_eq!(found, expected.map(folder), "{telegram:?}");
    }
}

#[test]
fn pollers_fit_by_folder_and_by_descent() {
    let poller = |pid, ancestors: &[u32], folder| Poller {
        pid,
        ancestors: ancestors.to_vec(),
        folder,
        connected: Some(pid != 3),
    };
    let pollers = Pollers {
        all: vec![
            poller(1, &[200, 100], Some(folder("a"))),
            poller(2, &[200, 100], Some(folder("a2"))),
            poller(3, &[1], Some(folder("a"))),
            poller(4, &[200, 100], None),
        ],
        network: true,
    };
    let known = telegram(Declared::Nothing, None);
    let see = |name, panes: &[u32]| super::seen(&pollers, &known, &folder(name), panes);
    let found = see("a", &[200]);
    assert_eq!((&found.own[..], &found.orphans[..]), (&[1][..], &[3][..]));
    assert!(found.connected);
    // Where the agent is not seen the benefit of the doubt holds.
    assert_eq!(see("a", &[]).own, [1, 3]);
    assert_eq!(see("a2", &[300, 200]).own, [2]);
    assert_eq!(see("other", &[200]), Seen::default());
    assert_eq!(see("default", &[200]).own, [4]);
}

#[test]
fn two_looks_that_find_nobody_half_a_minute_apart_mean_deaf() {
    let mut owner = owner();
    assert_eq!(book(&mut owner, &with(&[7]), true, at(0)), Verdict::Hears);
    assert_eq!(book(&mut owner, &with(&[]), true, at(30)), Verdict::Missing);
    assert_eq!(book(&mut owner, &with(&[]), true, at(59)), Verdict::Missing);
    assert_eq!(book(&mut owner, &with(&[]), true, at(60)), Verdict::Deaf);
    assert_eq!(owner.deaf_since, Some(at(60)));
    unknown(&mut owner);
    assert_eq!(book(&mut owner, &with(&[]), true, at(90)), Verdict::Missing);
    owner.fruitless = 3;
    assert_eq!(book(&mut owner, &with(&[7]), true, at(120)), Verdict::Hears);
    assert_eq!((owner.missing_since, owner.fruitless), (None, 0));
}

#[test]
fn a_poller_that_comes_and_goes_is_counted_in_a_window() {
    let mut owner = owner();
    for round in 0..3 {
        assert_eq!(flapping(&owner), None);
        book(&mut owner, &with(&[7]), true, at(90 * round));
        book(&mut owner, &with(&[]), true, at(90 * round + 30));
        // What is not known in between is no absence of its own.
        unknown(&mut owner);
        book(&mut owner, &with(&[]), true, at(90 * round + 60));
    }
    assert_eq!(flapping(&owner), Some(3));
    book(&mut owner, &with(&[7]), true, at(30 + 1800));
    assert_eq!(flapping(&owner), None);
}

#[test]
fn no_connection_is_suspicious_only_while_others_have_one() {
    let silent = Seen {
        connected: false,
        ..with(&[7])
    };
    let mut owner = owner();
    book(&mut owner, &silent, true, at(0));
    assert_eq!(suspected(&owner, at(599)), None);
    assert_eq!(suspected(&owner, at(600)), Some(at(0)));
    book(&mut owner, &silent, false, at(630));
    assert_eq!(suspected(&owner, at(9000)), None);
    book(&mut owner, &silent, true, at(660));
    book(&mut owner, &with(&[7]), true, at(690));
    assert_eq!(suspected(&owner, at(9000)), None);
}

#[test]
fn a_minute_is_given_to_start_a_poller() {
    let started = |seconds| Process {
        started: at(seconds),
        ..Process::default()
    };
    let young = |agent: &Process, now| is_young(&row(), Some(agent), &Traces::default(), now);
    assert!(young(&started(0), at(59)));
    assert!(!young(&started(0), at(60)));
    assert!(!is_young(&row(), None, &Traces::default(), at(0)));
}

/// An answer about a session that waits.
fn shown() -> Shown {
    Shown {
        id: row().id,
        status: Status::Waiting,
        substate: Some(Substate::IdleAtEmptyPrompt),
        tool: "claude".to_owned(),
        command: "claude".to_owned(),
        tmux_session: String::new(),
        agent_session: String::new(),
        auth_hold: false,
        link_disabled: false,
        quiet: false,
        spawn_failure: None,
    }
}

#[test]
fn only_an_agent_at_rest_is_ended() {
    let shown = shown();
    let screen = Screen {
        raw: [0; 32],
        content: [0; 32],
        claude: None,
        other: None,
        decision: false,
        asks: "",
        background: false,
    };
    let agent = Process::default();
    let rests = |shown: &Shown, screen: &Screen, agent: &Process, says| {
        unrest(shown, screen, Some(agent), says).is_none()
    };
    assert!(rests(&shown, &screen, &agent, Some(AgentSays::Idle)));
    assert!(rests(&shown, &screen, &agent, None));
    for says in [
        AgentSays::Busy,
        AgentSays::Shell,
        AgentSays::Dialog,
        AgentSays::Unfamiliar,
    ] {
        assert!(!rests(&shown, &screen, &agent, Some(says)), "{says:?}");
    }
    for (status, at_rest) in [
        (Status::Idle, true),
        (Status::Running, false),
        (Status::Error, false),
        (Status::Stopped, false),
        (Status::Queued, false),
    ] {
        let shown = Shown {
            status: status.clone(),
            ..shown.clone()
        };
        assert_eq!(rests(&shown, &screen, &agent, None), at_rest, "{status:?}");
    }
    let change = |change: &dyn Fn(&mut Screen)| {
        let mut screen = screen.clone();
        change(&mut screen);
        rests(&shown, &screen, &agent, None)
    };
    assert!(!change(&|s| s.claude = Some(Silence::Draft)));
    assert!(!change(&|s| s.claude = Some(Silence::NoComposer)));
    assert!(change(&|s| s.claude = Some(Silence::Suggestion)));
    assert!(!change(&|s| s.decision = true));
    assert!(!change(&|s| s.background = true));
    let suspended = Process {
        suspended: true,
        ..Process::default()
    };
    assert!(!rests(&shown, &screen, &suspended, None));
    let held = Shown {
        auth_hold: true,
        ..shown.clone()
    };
    assert!(!rests(&held, &screen, &agent, None));
}
