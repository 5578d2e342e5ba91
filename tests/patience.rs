//! Scenarios that take their time: deadlines, second looks and doubts that no
//! setting shortens. The real binary on the stand-in deck; the whole ledger is
//! compared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod scene;

use std::time::Duration;

use common::{Daemon, Deck, is_running, write};
use rustix::process::Signal;
use scene::{
    Agent, Interface, POLL, WORKED, acts, count, flag, impatient, kill_session, left_behind, pane,
    polled_every, polls, records, refused, restart, revival, show, spent, story, turns, watching,
    with_agents,
};

#[test]
fn a_hanging_list_is_killed_at_its_deadline_with_its_grandchild() {
    let deck = polled_every(300);
    let id = deck.row("conductor-ops").add();
    let daemon = watching(&deck);
    deck.trap("list")
        .hang()
        .with("grandchild", "")
        .times(1)
        .set();
    daemon.signal(Signal::HUP);
    deck.wait("the hanging list", || (polls(&deck) == 2).then_some(()));
    if cfg!(target_os = "linux") {
        deck.wait("the grandchild", || (left_behind(&deck) == 1).then_some(()));
    }
    deck.unset(&id, "pane");
    // Noted meanwhile, and served when the list is over.
    daemon.signal(Signal::HUP);
    let line = daemon.wait_for_line("watchdog.log", "no list, nothing is done");
    assert!(line.contains("profile default"), "{line}");
    assert_eq!(left_behind(&deck), 0);
    daemon.wait_for_line("watchdog.log", "sessions are listed again, after 1 list");
    deck.wait("a restart", || (acts(&deck) == revival(&id)).then_some(()));
    let lists: Vec<u64> = deck
        .ledger()
        .iter()
        .filter(|call| call.args == POLL)
        .map(|call| call.at)
        .collect();
    assert_eq!(lists.len(), 3);
    // It counts from the start of the program, which takes its time to say so.
    assert!(lists[2] - lists[1] >= 29_500, "{lists:?}");
}

#[test]
fn restart_is_never_cut_short() {
    let deck = with_agents();
    let id = deck.row("conductor-ops").dead().add();
    let next = deck.row("worker").dead().add();
    flag(&deck, "autorestart", &next);
    deck.trap_for("restart", &id)
        .delay(Duration::from_secs(4))
        .set();
    let mut daemon = deck.daemon();
    deck.wait_for_call(|call| call.is("session restart", &id));
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
    // The command has ended by itself, and nothing began after the signal.
    assert_eq!(acts(&deck), revival(&id));
    let ended = deck.ended();
    let (call, code, _) = ended.last().unwrap();
    assert!(call.is("session restart", &id) && *code == 0, "{call:?}");
    assert!(deck.agent_pid(&id).is_some());
    assert_eq!(story(&deck, &id), WORKED[..2]);
    assert_eq!(spent(&deck, &id), 1);
    // The next run knows of it.
    assert_eq!(deck.once().status.code(), Some(0));
    assert_eq!(acts(&deck), [revival(&id), revival(&next)].concat());
    assert_eq!(story(&deck, &id), WORKED);
}

#[test]
fn beside_the_terminal_interface_two_looks_must_agree() {
    let deck = with_agents();
    let _interface = Interface::open(&deck);
    let id = deck.row("conductor-ops").dead().add();
    let daemon = watching(&deck);
    daemon.wait_for_line("watchdog.log", "restart: done");
    let calls = deck.ledger();
    let looks: Vec<u64> = calls
        .iter()
        .filter(|call| call.is("session show", &id))
        .map(|call| call.at)
        .collect();
    assert_eq!(looks.len(), 2);
    assert!(looks[1] - looks[0] >= 950, "{looks:?}");
    assert_eq!(acts(&deck), revival(&id));
    assert_eq!(story(&deck, &id), WORKED);
}

#[test]
fn error_with_a_live_screen() {
    let deck = impatient();
    // A false banner over a living agent.
    let banner = deck
        .row("conductor-a")
        .file("substate", "model-unavailable")
        .add();
    let _agent = Agent::of(&deck, &banner);
    // Its tmux name was lost, and only its arguments tell whose agent it is.
    let lost = deck.row("conductor-b").dead().add();
    let own_id = deck.get(&lost, "agent_session_id").unwrap();
    let _other = Agent::start(&deck, &[], &["--resume", &own_id]);
    // The eyes are the right ones.
    deck.row("worker").add();
    // What a dead agent has left behind is no agent.
    let dead = deck.row("conductor-c").dead().add();
    let variables = [
        ("AGENTDECK_INSTANCE_ID", dead.as_str()),
        ("CLAUDECODE", "1"),
    ];
    let _tool = Agent::start(&deck, &variables, &[]);
    // An ending agent may linger, so this is not said at once.
    deck.wait("two refusals", || {
        assert_eq!(deck.once().status.code(), Some(0));
        std::thread::sleep(Duration::from_secs(1));
        (count(&deck, "watchdog.log", &["not restarted (maybe-alive)"]) == 2).then_some(())
    });
    assert_eq!(deck.once().status.code(), Some(0));
    for id in [&banner, &lost] {
        assert_eq!(story(&deck, id).last().unwrap(), "maybe-alive");
    }
    let acts = acts(&deck);
    let (of_dead, others): (Vec<_>, Vec<_>) = acts.into_iter().partition(|act| act.contains(&dead));
    assert_eq!(of_dead, revival(&dead));
    assert!(
        others
            .iter()
            .all(|act| [show(&lost), pane(&lost)].contains(act)),
        "{others:?}"
    );
}

#[test]
fn looking_from_the_wrong_place() {
    let deck = impatient();
    let ids: Vec<String> = (0..8)
        .map(|n| deck.row(&format!("conductor-{n}")).add())
        .collect();
    deck.start_tmux();
    let agents: Vec<u32> = ids.iter().map(|id| deck.start_agent(id)).collect();
    // agent-deck asks another tmux server than theirs.
    write(&deck.file("no-tmux"), "");
    let daemon = watching(&deck);
    turns(&deck, &daemon, 3);
    assert!(agents.into_iter().all(is_running));
    for id in &ids {
        assert_eq!(refused(&deck, id).as_deref(), Some("maybe-alive"));
    }
    // Agents that are ending may linger, so this is not told at once.
    deck.wait_for_line("escalations.log", "TMUX_TMPDIR");
    turns(&deck, &daemon, 3);
    assert_eq!(acts(&deck), [""; 0]);
    let told = records(&deck, "escalations.log");
    assert_eq!(told.len(), 1, "{told:?}");
    let text = told[0].to_string();
    assert!(
        text.contains("8 sessions of this profile read dead while their agents live"),
        "{text}"
    );
}

/// A deck with a tmux server, polled every five minutes, so that nothing is owed
/// to the poll.
#[cfg(target_os = "linux")]
fn patient() -> Deck {
    let deck = polled_every(300);
    deck.start_tmux();
    deck
}

#[cfg(target_os = "linux")]
#[test]
fn fast_path_for_agents_that_are_older_than_a_minute() {
    let decks = [patient(), patient(), patient()];
    let ids: Vec<String> = decks
        .iter()
        .map(|deck| deck.row("conductor-ops").add())
        .collect();
    for (deck, id) in decks.iter().zip(&ids) {
        deck.start_agent(id);
    }
    let _daemons: Vec<Daemon> = decks.iter().map(watching).collect();
    std::thread::sleep(Duration::from_secs(62));
    decks[0].kill_agent(&ids[0]);
    kill_session(&decks[1], &ids[1]);
    decks[2].kill_tmux();
    for (deck, id) in decks.iter().zip(&ids) {
        deck.wait_for_line("watchdog.log", &format!("{id}: restart: done"));
    }
    // Its end was witnessed, so its terminal does not matter.
    for n in [0, 1] {
        assert_eq!(acts(&decks[n]), [show(&ids[n]), restart(&ids[n])]);
    }
    // With the server gone there is a list at once: whichever comes first.
    let witnessed = vec![show(&ids[2]), restart(&ids[2])];
    let found = acts(&decks[2]);
    assert!(found == witnessed || found == revival(&ids[2]), "{found:?}");
    let polls = [0, 1].map(|n| polls(&decks[n]));
    assert_eq!(polls, [1, 1]);
}
