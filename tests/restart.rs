//! Scenarios: which sessions are critical, and what a restart does and does not
//! do. The real binary on the stand-in deck; the whole ledger is compared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod scene;

use common::{Deck, now, recording, write};
use scene::{
    Interface, WORKED, acts, count, flag, impatient, no_flag, pane, records, restart, revival,
    show, spent, story, turns, watching, with_agents,
};

#[test]
fn critical_by_title_prefix() {
    let deck = with_agents();
    let id = deck.row("conductor-ops").dead().add();
    let mut daemon = watching(&deck);
    daemon.wait_for_line("watchdog.log", "restart: done");
    turns(&deck, &daemon, 3);
    assert!(daemon.stop().success());
    assert_eq!(acts(&deck), revival(&id));
    assert_eq!(story(&deck, &id), WORKED);
    assert_eq!(count(&deck, "watchdog.log", &[&id, "lives again"]), 1);
    assert_eq!(daemon.said(), (String::new(), String::new()));
}

#[test]
fn critical_by_group() {
    let deck = with_agents();
    let groups = ["conductor", "watchers", "watchers/night", "workers"];
    let ids = groups.map(|group| deck.row("plain").group(group).dead().add());
    let mut critical = ids[..3].to_vec();
    critical.sort();
    let daemon = watching(&deck);
    deck.wait("three restarts", || {
        (count(&deck, "restart.log", &["\"done\""]) == 3).then_some(())
    });
    turns(&deck, &daemon, 3);
    // All have waited equally long, so the order is that of their ids.
    assert_eq!(
        acts(&deck),
        critical
            .iter()
            .flat_map(|id| revival(id))
            .collect::<Vec<_>>()
    );
    for id in &critical {
        assert_eq!(*story(&deck, id).last().unwrap(), "done");
    }
    let attempts = records(&deck, "restart.log").into_iter();
    let times: Vec<String> = attempts
        .filter(|record| record["event"] == "attempt")
        .map(|record| record["time"].as_str().unwrap().to_owned())
        .collect();
    // A second apart or more, so no two have the same.
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
}

#[test]
fn critical_by_conductor_flag() {
    let deck = with_agents();
    let id = deck.row("plain").file("is_conductor", "true").dead().add();
    let no = deck.row("plain").file("is_conductor", "false").dead().add();
    assert_eq!(deck.once().status.code(), Some(0));
    assert_eq!(deck.once().status.code(), Some(0));
    assert_eq!(acts(&deck), revival(&id));
    assert_eq!(
        (story(&deck, &id), story(&deck, &no)),
        (WORKED.map(str::to_owned).to_vec(), vec![])
    );
}

#[test]
fn critical_by_opt_in_file() {
    let deck = with_agents();
    let worker = deck.row("worker").dead().add();
    let other = deck.row("other").add();
    flag(&deck, "autorestart", &other);
    let daemon = watching(&deck);
    turns(&deck, &daemon, 2);
    assert_eq!(acts(&deck), [""; 0]);
    flag(&deck, "autorestart", &worker);
    daemon.wait_for_line("watchdog.log", "restart: done");
    assert_eq!(acts(&deck), revival(&worker));
    // What has no flag any more may fail as it likes.
    no_flag(&deck, "autorestart", &other);
    turns(&deck, &daemon, 1);
    deck.unset(&other, "pane");
    turns(&deck, &daemon, 3);
    assert_eq!(acts(&deck), revival(&worker));
    assert_eq!(story(&deck, &other), [""; 0]);
}

#[test]
fn names_that_share_a_prefix() {
    let deck = impatient();
    let id = deck.row("conductor-a").dead().add();
    let last = if id.ends_with('7') { '8' } else { '7' };
    let alike = format!("{}{last}", &id[..id.len() - 1]);
    let alike = deck.row("conductor-a2").id(&alike).add();
    let before = deck.get(&alike, "pane");
    assert_eq!(deck.once().status.code(), Some(0));
    assert_eq!(acts(&deck), revival(&id));
    assert!(deck.get(&id, "pane").is_some());
    assert_eq!(deck.get(&alike, "pane"), before);
}

#[test]
fn title_equal_to_an_id() {
    let deck = impatient();
    let id = deck.row("conductor-ops").dead().add();
    let other = deck.row(&id).add();
    let daemon = watching(&deck);
    let line = daemon.wait_for_line("watchdog.log", "not restarted");
    assert!(line.contains(&format!("session {other} answers")), "{line}");
    turns(&deck, &daemon, 3);
    assert_eq!(acts(&deck), [show(&id)]);
    assert_eq!(story(&deck, &id), ["no-answer"]);
}

#[test]
fn confusion_escalates() {
    let deck = impatient();
    deck.install_escalate();
    deck.setting("TELEGRAM_ESCALATION_CHAT_ID", "42");
    let id = deck.row("conductor-ops").dead().add();
    let answer = recording("show-ambiguous.json");
    deck.trap("restart").stdout(answer).exit(1).set();
    let daemon = watching(&deck);
    deck.wait_for_call(|call| call.program == "escalate.sh");
    turns(&deck, &daemon, 3);
    let mut acts = acts(&deck);
    let told = acts.pop().unwrap();
    assert_eq!(acts, revival(&id));
    let begin = format!("escalate.sh critical conductor-ops ({id}) cannot be restarted");
    assert!(told.starts_with(&begin), "{told}");
    assert!(
        told.contains("title 'same title' is held by multiple sessions"),
        "{told}"
    );
    assert_eq!(story(&deck, &id)[..2], ["attempt", "failed"]);
}

#[test]
fn skipped_is_not_done() {
    let deck = Deck::new();
    write(&deck.file("freshness"), "");
    let started = (now() - 10).to_string();
    let id = deck
        .row("conductor-ops")
        .dead()
        .file("started", started)
        .add();
    let next = deck.row("worker").dead().add();
    flag(&deck, "autorestart", &next);
    assert_eq!(deck.once().status.code(), Some(0));
    // The slot was given back: the next one does not have to wait its minute.
    assert_eq!(acts(&deck), [revival(&id), revival(&next)].concat());
    assert_eq!(story(&deck, &id), ["attempt", "skipped"]);
    assert_eq!(spent(&deck, &id), 0);
    let line = deck.wait_for_line("watchdog.log", "restart: skipped");
    assert!(
        line.contains(&id) && line.contains("freshness window"),
        "{line}"
    );
    for _ in 0..3 {
        assert_eq!(deck.once().status.code(), Some(0));
    }
    assert_eq!(acts(&deck), [revival(&id), revival(&next)].concat());
}

#[test]
fn somebody_else_is_restarting() {
    let deck = with_agents();
    let id = deck.row("conductor-ops").dead().add();
    let lock = deck.file(format!("locks/instance-spawn-{id}.lock"));
    write(&lock, std::process::id().to_string());
    let daemon = watching(&deck);
    let line = daemon.wait_for_line("watchdog.log", "not restarted (spawn-lock)");
    assert!(
        line.contains(&format!("process {} holds", std::process::id())),
        "{line}"
    );
    turns(&deck, &daemon, 3);
    assert_eq!(acts(&deck), [""; 0]);
    // The holder dies without having removed it.
    let mut child = std::process::Command::new("/bin/sh")
        .args(["-c", ":"])
        .spawn()
        .unwrap();
    child.wait().unwrap();
    write(&lock, child.id().to_string());
    daemon.wait_for_line("watchdog.log", "restart: done");
    assert_eq!(acts(&deck), revival(&id));
    assert_eq!(story(&deck, &id), [&["spawn-lock"][..], &WORKED].concat());
}

#[test]
fn one_bad_answer_does_not_spread() {
    let deck = with_agents();
    let first = deck.row("conductor-ops").dead().add();
    let mut others = ["b", "c"].map(|title| deck.row(title).dead().add());
    others.sort();
    others.iter().for_each(|id| flag(&deck, "autorestart", id));
    deck.trap_for("show", &first).stdout("{\"id\": \"x").set();
    let daemon = watching(&deck);
    deck.wait("two restarts", || {
        (count(&deck, "restart.log", &["\"done\""]) == 2).then_some(())
    });
    turns(&deck, &daemon, 1);
    let done = |id: &String| story(&deck, id).iter().any(|word| word == "done");
    assert!(others.iter().all(done));
    assert_eq!(story(&deck, &first), ["no-answer"]);
    assert_eq!(spent(&deck, &first), 0);
    let acts = acts(&deck);
    let changing: Vec<&String> = acts.iter().filter(|act| act.contains("restart")).collect();
    assert_eq!(changing, [&restart(&others[0]), &restart(&others[1])]);
    // It is looked at again now and then, in between the others.
    let looks = |id: &str| [show(id), pane(id)];
    let known = [
        looks(&others[0]),
        looks(&others[1]),
        [show(&first), restart(&others[0])],
    ]
    .concat();
    assert!(
        acts.iter()
            .all(|act| known.contains(act) || *act == restart(&others[1])),
        "{acts:?}"
    );
}

#[test]
fn a_stop_in_the_terminal_interface_is_no_death() {
    let deck = with_agents();
    let _interface = Interface::open(&deck);
    let id = deck.row("conductor-ops").add();
    let daemon = watching(&deck);
    turns(&deck, &daemon, 1);
    // The user stops it there: tmux goes first, the status is saved later.
    deck.unset(&id, "pane");
    deck.wait_for_call(|call| call.is("session output", &id));
    deck.set(&id, "status", "stopped");
    daemon.wait_for_line("watchdog.log", "stopped on purpose");
    turns(&deck, &daemon, 3);
    let looks: Vec<String> = acts(&deck);
    let known = [show(&id), pane(&id)];
    assert!(looks.iter().all(|act| known.contains(act)), "{looks:?}");
}

#[test]
fn only_these_commands() {
    let deck = with_agents();
    let mut dead = ["conductor-a", "conductor-b"]
        .map(|title| deck.row(title).dead())
        .map(|row| {
            row.file("after_restart", "exit 1 no such tool\nworks")
                .add()
        });
    dead.sort();
    deck.row("conductor-tg")
        .file("channels", "plugin:telegram@claude-plugins-official")
        .add();
    deck.row("child")
        .child_of(&dead[0])
        .pane("Do you want to proceed?\n❯ 1. Yes")
        .add();
    deck.row("conductor-old").archived().add();
    deck.row("conductor-idle").stopped().add();
    deck.row("conductor-new").never_started().add();
    deck.row("worker").dead().add();
    let held = deck
        .row("conductor-held")
        .dead()
        .file("auth_hold", "{\"reason\":\"401\"}")
        .add();
    let daemon = watching(&deck);
    deck.wait_for_call(|call| call.is("session restart", &dead[1]));
    deck.wait_for_call(|call| call.is("session show", &held));
    turns(&deck, &daemon, 3);
    let mut words: Vec<String> = deck
        .ledger()
        .into_iter()
        .map(|call| {
            let plain = |word: &&str| !word.contains('-') && *word != "default";
            let args: Vec<&str> = call.args.split(' ').filter(plain).collect();
            format!("{} {}", call.program, args.join(" "))
        })
        .collect();
    words.sort();
    words.dedup();
    let allowed = [
        "agent-deck list",
        "agent-deck profile list",
        "agent-deck session output",
        "agent-deck session restart",
        "agent-deck session show",
        "agent-deck version",
        "ps pid=,ppid=,user=,stat=,args=",
    ];
    assert_eq!(words, allowed);
}
