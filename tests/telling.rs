//! What is told, to whom, how often, and what becomes of it. The real binary on
//! the stand-in deck, with an `escalate.sh` that sends nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/past.rs"]
mod past;
mod scene;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use common::{Call, Deck};
use past::{once, pass, restarted};
use scene::{impatient, polls, records, turns, watching};

/// What agent-deck says when it cannot tell sessions apart; told at once.
const AMBIGUOUS: &str = "exit 1 AMBIGUOUS: two of them";

/// A deck with a way out.
fn with_chat() -> Deck {
    let deck = impatient();
    deck.install_escalate();
    deck.setting("TELEGRAM_ESCALATION_CHAT_ID", "4711");
    deck
}

/// A session that cannot be restarted.
fn trouble(deck: &Deck, title: &str) -> String {
    deck.row(title)
        .dead()
        .file("after_restart", AMBIGUOUS)
        .add()
}

/// Calls of the script.
fn told(deck: &Deck) -> Vec<Call> {
    let calls = deck.ledger().into_iter();
    calls.filter(|call| call.program == "escalate.sh").collect()
}

/// What became of messages so far.
fn outcomes(deck: &Deck) -> Vec<String> {
    let records = records(deck, "escalations.log").into_iter();
    records
        .map(|record| record["outcome"].as_str().unwrap().to_owned())
        .collect()
}

/// Why, of the last one.
fn why(deck: &Deck) -> String {
    let records = records(deck, "escalations.log");
    records.last().unwrap()["why"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn no_chat_id_local_only() {
    type Setup = fn(&Deck);
    let setups: [(&str, Setup); 4] = [
        ("no chat id", |deck| deck.install_escalate()),
        ("an empty chat id", |deck| {
            deck.install_escalate();
            deck.setting("TELEGRAM_ESCALATION_CHAT_ID", "");
        }),
        ("no script", |deck| {
            deck.setting("TELEGRAM_ESCALATION_CHAT_ID", "4711")
        }),
        ("a script that cannot be run", |deck| {
            deck.install_escalate();
            deck.setting("TELEGRAM_ESCALATION_CHAT_ID", "4711");
            let script = deck.watchdog_dir().join("escalate.sh");
            fs::set_permissions(script, PermissionsExt::from_mode(0o600)).unwrap();
        }),
    ];
    for (what, setup) in setups {
        let deck = Deck::new();
        setup(&deck);
        let id = trouble(&deck, "conductor-ops");
        once(&deck).silent();
        assert_eq!(outcomes(&deck), ["local only"], "{what}");
        let record = &records(&deck, "escalations.log")[0];
        assert!(record["text"].as_str().unwrap().contains(&id), "{record}");
        pass(&deck, 7200);
        once(&deck).silent();
        assert_eq!(told(&deck), [], "{what}");
    }
}

#[test]
fn chat_id_set() {
    for (plan, runs, level, text) in [
        (
            "exit 1 HTTP 429",
            1,
            "warning",
            "a rate limit, all restarts wait (reset unknown, next try in 3 min)",
        ),
        (AMBIGUOUS, 1, "critical", "two of them"),
        (
            "exit 1 no such thing",
            3,
            "critical",
            "3 restarts since it was last well, 3 times in a row with: ",
        ),
        ("no-effect", 2, "critical", "restarting changes nothing"),
    ] {
        let deck = with_chat();
        deck.setting("TELEGRAM_BOT_TOKEN", "1234:token");
        deck.dump_environ();
        let id = deck
            .row("conductor-ops")
            .dead()
            .file("after_restart", plan)
            .add();
        for run in 1..=runs {
            assert_eq!(told(&deck), [], "{plan}: run {run}");
            once(&deck).silent();
            pass(&deck, 61);
        }
        let told = told(&deck);
        assert_eq!(told.len(), 1, "{plan}: {told:?}");
        let (severity, message) = told[0].args.split_once(' ').unwrap();
        assert_eq!(severity, level, "{plan}");
        assert!(message.contains(text), "{plan}: {message}");
        assert!(
            message.contains(&id) || plan.contains("429"),
            "{plan}: {message}"
        );
        assert_eq!(outcomes(&deck).last().unwrap(), "sent", "{plan}");
        for (program, variables) in deck.environs() {
            let script = program == "escalate.sh";
            let has = |variable: &str| variables.iter().any(|other| other == variable);
            assert_eq!(has("TELEGRAM_BOT_TOKEN=1234:token"), script, "{program}");
            assert!(has("TELEGRAM_ESCALATION_CHAT_ID=4711") || !script);
        }
    }
}

#[test]
fn a_hanging_script_delays_nothing() {
    let deck = with_chat();
    deck.trap("escalate.sh").hang().set();
    let first = trouble(&deck, "conductor-a");
    let second = deck.row("conductor-b").add();
    let mut daemon = watching(&deck);
    deck.wait_for_call(|call| call.program == "escalate.sh");
    deck.unset(&second, "pane");
    deck.wait_for_call(|call| call.is("session restart", &second));
    turns(&deck, &daemon, 3);
    assert_eq!(restarted(&deck), [first, second]);
    let ended = deck.ended();
    assert!(
        !ended
            .iter()
            .any(|(call, _, _)| call.program == "escalate.sh")
    );
    // Nor the end of the daemon.
    assert!(daemon.stop().success());
    assert_eq!(told(&deck).len(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn no_zombies() {
    let deck = with_chat();
    deck.start_tmux();
    trouble(&deck, "conductor-a");
    let daemon = watching(&deck);
    deck.wait("a message", || {
        outcomes(&deck)
            .iter()
            .any(|outcome| outcome == "sent")
            .then_some(())
    });
    deck.trap("list").exit(1).times(3).set();
    for title in ["conductor-b", "conductor-c"] {
        let id = deck.row(title).dead().add();
        deck.wait_for_call(|call| call.is("session restart", &id));
    }
    turns(&deck, &daemon, 10);
    let mut most = 0;
    deck.wait("an end of all children", || {
        let children = children(daemon.pid());
        most = most.max(children);
        (children == 0).then_some(())
    });
    assert!(most <= 2, "{most} children at once");
}

/// How many children a process has, those that wait to be reaped included.
#[cfg(target_os = "linux")]
fn children(parent: u32) -> usize {
    let is_child = |entry: fs::DirEntry| {
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        (fields.nth(1)? == parent.to_string()).then_some(())
    };
    let entries = fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| is_child(entry.ok()?)).count()
}

#[test]
fn a_script_says_when_to_try_again() {
    let deck = with_chat();
    deck.trap("escalate.sh")
        .exit(75)
        .stdout("429\nretry-after: 200\n")
        .set();
    trouble(&deck, "conductor-ops");
    once(&deck).silent();
    assert_eq!(outcomes(&deck), ["failed"]);
    assert_eq!(why(&deck), "try 1 of 5 failed, again in 200 s");
    // Later messages wait meanwhile.
    pass(&deck, 100);
    trouble(&deck, "conductor-later");
    once(&deck).silent();
    pass(&deck, 90);
    once(&deck).silent();
    assert_eq!(told(&deck).len(), 1);
    deck.no_trap("escalate.sh");
    pass(&deck, 15);
    once(&deck).silent();
    assert_eq!(told(&deck).len(), 2);
    assert_eq!(told(&deck)[0].args, told(&deck)[1].args);
    pass(&deck, 61);
    once(&deck).silent();
    assert_eq!(told(&deck).len(), 3);
    assert!(told(&deck)[2].args.contains("conductor-later"));
}

#[test]
fn poison_message() {
    let deck = with_chat();
    deck.trap("escalate.sh").exit(75).set();
    let id = trouble(&deck, "conductor-ops");
    once(&deck).silent();
    fs::create_dir_all(deck.watchdog_dir().join("hold")).unwrap();
    fs::write(deck.watchdog_dir().join("hold").join(id), "").unwrap();
    // Never more than a message a minute, so the first distance is 60 s.
    for (tries, seconds) in [(1, 60), (2, 120), (3, 480), (4, 1800)] {
        assert_eq!(told(&deck).len(), tries);
        assert!(
            why(&deck).starts_with(&format!("try {tries} of 5 failed")),
            "{}",
            why(&deck)
        );
        pass(&deck, seconds - 10);
        once(&deck).silent();
        assert_eq!(told(&deck).len(), tries, "too early");
        pass(&deck, 11);
        once(&deck).silent();
    }
    assert_eq!(told(&deck).len(), 5);
    assert_eq!(why(&deck), "given up after 5 tries");
    assert_eq!(outcomes(&deck), ["failed"; 5]);
    for _ in 0..10 {
        pass(&deck, 1800);
        once(&deck).silent();
    }
    assert_eq!(told(&deck).len(), 5, "five times in all");
}

#[test]
fn any_other_end_of_the_script_is_final() {
    for code in [1, 2, 70, 127] {
        let deck = with_chat();
        deck.trap("escalate.sh").exit(code).set();
        trouble(&deck, "conductor-ops");
        once(&deck).silent();
        assert_eq!(outcomes(&deck), ["failed"]);
        assert_eq!(why(&deck), format!("escalate.sh: exit {code}"));
        pass(&deck, 3600);
        once(&deck).silent();
        assert_eq!(told(&deck).len(), 1, "exit {code}");
    }
}

#[test]
fn a_script_that_others_may_change_is_not_run() {
    for (mode, runs) in [(0o720, 0), (0o702, 0), (0o755, 1)] {
        let deck = with_chat();
        let script = deck.watchdog_dir().join("escalate.sh");
        std::fs::set_permissions(&script, PermissionsExt::from_mode(mode)).unwrap();
        trouble(&deck, "conductor-ops");
        once(&deck).silent();
        assert_eq!(told(&deck).len(), runs, "{mode:o}");
        if runs == 0 {
            assert_eq!(outcomes(&deck), ["failed"]);
            assert_eq!(
                why(&deck),
                "escalate.sh: not run, since others may change it"
            );
        }
    }
}

#[test]
fn a_message_under_way_in_a_crash_is_not_sent_twice() {
    let deck = with_chat();
    deck.trap("escalate.sh")
        .delay(Duration::from_millis(300))
        .set();
    trouble(&deck, "conductor-ops");
    let mut daemon = deck.daemon();
    deck.wait_for_call(|call| call.program == "escalate.sh");
    daemon.crash();
    let mut daemon = watching(&deck);
    turns(&deck, &daemon, 2);
    assert!(daemon.stop().success());
    assert_eq!(outcomes(&deck), ["unknown"]);
    assert!(why(&deck).contains("not sent again"), "{}", why(&deck));
    // It was not cut short either.
    deck.wait("the script's end", || {
        let mut ended = deck.ended().into_iter();
        ended.find(|(call, code, _)| call.program == "escalate.sh" && *code == 0)
    });
    assert_eq!(told(&deck).len(), 1);
    assert!(polls(&deck) > 0);
}

#[test]
fn one_incident_few_alerts() {
    let deck = with_chat();
    deck.setting("MIN_GLOBAL_RESTART_INTERVAL_S", "60");
    let plan = "exit 1 no such thing";
    let id = deck
        .row("conductor-ops")
        .dead()
        .file("after_restart", plan)
        .add();
    for _ in 0..5 {
        once(&deck).silent();
        pass(&deck, 61);
    }
    assert_eq!(told(&deck).len(), 1);
    // Fifteen hours of it.
    for _ in 0..44 {
        once(&deck).silent();
        pass(&deck, 1200);
    }
    assert_eq!(told(&deck).len(), 3, "{:#?}", told(&deck));
    deck.set(&id, "after_restart", "works");
    for _ in 0..6 {
        once(&deck).silent();
        pass(&deck, 1200);
    }
    let told = told(&deck);
    assert_eq!(told.len(), 4, "{told:#?}");
    let says = |n: usize, text: &str| assert!(told[n].args.contains(text), "{:#?}", told[n]);
    says(0, "Given up for now; next try in ");
    says(1, "still, for 6 h");
    says(2, "still, for 12 h");
    says(3, "recovered after 1");
    for n in 1..4 {
        // They carry news: how many restarts so far.
        says(n, " restarts");
        assert_ne!(told[n].args, told[n - 1].args);
    }
}
