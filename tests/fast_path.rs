//! Scenarios: what is noticed at once. The poll is five minutes away in all of
//! them, so that nothing is owed to it; the real binary on the stand-in deck.
//!
//! A session whose agent started less than a minute ago is left alone, and the
//! agents of an ordinary test run are younger: what is restarted here at once
//! has no process, and what has one is left alone with a reason.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod scene;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use common::{Daemon, Deck, now};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::process::Signal;
use scene::{
    Agent, WORKED, acts, count, flag, kill_session, polled_every, polls, refused, revival, story,
    turns, watching,
};

/// A deck with a tmux server, polled every five minutes.
fn patient() -> Deck {
    let deck = polled_every(300);
    deck.start_tmux();
    deck
}

/// The end of a session without an agent process, by a hook record.
fn end_by_hook(deck: &Deck, id: &str) {
    deck.unset(id, "pane");
    deck.hook(id, "SessionEnd", "dead", now());
}

/// The one poll of the start was all, and one session came back.
fn came_back(deck: &Deck, id: &str) {
    deck.wait_for_line("watchdog.log", &format!("{id}: restart: done"));
    assert_eq!(acts(deck), revival(id));
    assert_eq!(story(deck, id), WORKED);
    assert_eq!(polls(deck), 1);
    assert!(deck.agent_pid(id).is_some());
}

/// Two decks on which an agent ends; on the second one processes are not watched.
/// The end is noticed at once on the first one only. It shows in the reason why
/// nothing is done, which is another one for a living agent than for one that
/// has ended too young.
fn noticed_at_once(agent: &str, end: impl Fn(&Deck, &str)) {
    let decks = [patient(), patient()];
    decks[1].setting("PROCESS_WATCH", "off");
    let conductor = |deck: &Deck| {
        let id = deck
            .row("conductor-ops")
            .prints("error")
            .file("agent_once", agent)
            .add();
        deck.start_agent_that_may_end(&id);
        id
    };
    let ids = decks.each_ref().map(conductor);
    let _daemons = decks.each_ref().map(watching);
    if decks
        .iter()
        .zip(&ids)
        .any(|(deck, id)| deck.agent_pid(id).is_none())
    {
        eprintln!("skipped: the machine is too slow to see the agents alive");
        return;
    }
    for (deck, id) in decks.iter().zip(&ids) {
        assert_eq!(refused(deck, id).as_deref(), Some("maybe-alive"));
        end(deck, id);
    }
    let [watched, polled] = &decks;
    watched.wait_for_line("watchdog.log", "not restarted (young)");
    assert_eq!(count(polled, "watchdog.log", &["young"]), 0);
    assert_eq!(acts(watched), [""; 0]);
}

#[test]
fn fast_path_beats_the_poll_when_an_agent_is_killed() {
    noticed_at_once("", Deck::kill_agent);
}

#[test]
fn fast_path_beats_the_poll_when_an_agent_ends_by_itself() {
    noticed_at_once("tool exit:1500:0", |_, _| {});
}

#[test]
fn fast_path_beats_the_poll_when_tmux_loses_the_session() {
    noticed_at_once("", kill_session);
}

#[test]
fn fast_path_beats_the_poll_when_the_tmux_server_ends() {
    noticed_at_once("", |deck, _| deck.kill_tmux());
}

#[test]
fn a_dead_record_beside_a_living_agent_restarts_nobody() {
    let deck = patient();
    let id = deck.row("conductor-ops").add();
    let other = deck.row("conductor-web").add();
    let _agent = Agent::of(&deck, &id);
    let daemon = watching(&deck);
    // As `/clear` writes them.
    deck.hook(&id, "SessionEnd", "dead", now());
    end_by_hook(&deck, &other);
    came_back(&deck, &other);
    turns(&deck, &daemon, 2);
    assert_eq!(deck.get(&id, "status").as_deref(), Some("waiting"));
    deck.hook(&id, "SessionStart", "waiting", now());
    turns(&deck, &daemon, 2);
    assert_eq!(acts(&deck), revival(&other));
}

#[test]
fn a_second_hint_while_a_restart_runs_is_served_after_it() {
    let deck = patient();
    let [first, second] = ["conductor-a", "conductor-b"].map(|title| deck.row(title).add());
    deck.trap_for("restart", &first)
        .delay(Duration::from_secs(2))
        .set();
    let _daemon = watching(&deck);
    end_by_hook(&deck, &first);
    deck.wait_for_call(|call| call.is("session restart", &first));
    end_by_hook(&deck, &second);
    let next = deck.wait_for_call(|call| call.is("session restart", &second));
    let ended = deck.ended();
    let (_, code, end) = ended
        .iter()
        .find(|(call, ..)| call.is("session restart", &first))
        .unwrap();
    assert_eq!(*code, 0);
    assert!(next.at >= *end, "{} {end}", next.at);
    deck.wait_for_line("watchdog.log", &format!("{second}: restart: done"));
    assert_eq!(acts(&deck), [revival(&first), revival(&second)].concat());
    assert_eq!(polls(&deck), 1);
}

#[test]
fn a_flag_file_is_seen_at_once() {
    let deck = patient();
    let id = deck.row("worker").dead().add();
    let _daemon = watching(&deck);
    flag(&deck, "autorestart", &id);
    deck.wait_for_line("watchdog.log", &format!("{id}: restart: done"));
    assert_eq!(acts(&deck), revival(&id));
}

#[test]
fn hup_reopens_logs_and_looks_at_once() {
    let deck = patient();
    let id = deck.row("conductor-ops").add();
    let daemon = watching(&deck);
    let log = deck.watchdog_dir().join("watchdog.log");
    let rotated = deck.watchdog_dir().join("watchdog.log.old");
    std::fs::rename(log, &rotated).unwrap();
    let before = std::fs::read_to_string(&rotated).unwrap();
    deck.unset(&id, "pane");
    daemon.signal(Signal::HUP);
    deck.wait_for_line("watchdog.log", &format!("{id}: restart: done"));
    assert_eq!(std::fs::read_to_string(&rotated).unwrap(), before);
    assert_eq!(acts(&deck), revival(&id));
    assert_eq!(polls(&deck), 2);
}

#[test]
fn hooks_directory_comes_and_goes() {
    let deck = patient();
    let titles = ["conductor-a", "conductor-b", "conductor-c"];
    let ids = titles.map(|title| deck.row(title).add());
    let (hooks, aside) = (deck.file("hooks"), deck.root().join("aside"));
    std::fs::remove_dir(&hooks).unwrap();
    // All lists say that all live: no poll can find a death.
    let all_live = deck.agent_deck(&["-p", "default", "list", "--json"]);
    deck.trap("list").stdout(all_live.stdout).set();
    let daemon = watching(&deck);
    deck.wait_for_line("watchdog.log", "no fast path: hooks are left to polling");
    status_says(&deck, "no fast path: hooks are left to polling");
    // Made later.
    std::fs::create_dir(&hooks).unwrap();
    deck.wait_for_line("watchdog.log", "the fast path is back");
    status_says(&deck, "fast path on");
    has_the_fast_path(&deck, &ids[0]);
    // Swapped by rename.
    std::fs::create_dir(&aside).unwrap();
    exchange(&aside, &hooks);
    turns(&deck, &daemon, 1);
    has_the_fast_path(&deck, &ids[1]);
    // A link that now leads elsewhere.
    let places = ["first", "second"].map(|name| deck.root().join(name));
    places
        .iter()
        .for_each(|place| std::fs::create_dir(place).unwrap());
    std::fs::rename(&aside, deck.root().join("older")).unwrap();
    symlink(&places[0], &aside).unwrap();
    exchange(&aside, &hooks);
    turns(&deck, &daemon, 1);
    std::fs::rename(&aside, deck.root().join("oldest")).unwrap();
    symlink(&places[1], &aside).unwrap();
    std::fs::rename(&aside, &hooks).unwrap();
    turns(&deck, &daemon, 1);
    has_the_fast_path(&deck, &ids[2]);
    assert_eq!(count(&deck, "watchdog.log", &["no fast path"]), 1);
    assert_eq!(
        acts(&deck),
        ids.iter().flat_map(|id| revival(id)).collect::<Vec<_>>()
    );
}

/// Each takes the other's place, and at no moment is there none.
fn exchange(one: &Path, other: &Path) {
    let flags = RenameFlags::EXCHANGE;
    renameat_with(CWD, one, CWD, other, flags).unwrap();
}

/// `status` comes to say so.
fn status_says(deck: &Deck, words: &str) {
    deck.wait(words, || {
        let text = String::from_utf8(deck.run(&["status"]).stdout).unwrap();
        let flat: Vec<&str> = text.split_whitespace().collect();
        flat.join(" ").contains(words).then_some(())
    });
}

/// A hook record leads to a restart.
fn has_the_fast_path(deck: &Deck, id: &str) {
    end_by_hook(deck, id);
    deck.wait_for_line("watchdog.log", &format!("{id}: restart: done"));
}

#[test]
fn hook_rewritten_in_the_same_second() {
    let deck = patient();
    let id = deck.row("conductor-ops").add();
    let _daemon = watching(&deck);
    let written = now();
    // Equal in size: the names of these two events are.
    deck.hook(&id, "PreCompact", "live", written);
    deck.unset(&id, "pane");
    deck.hook(&id, "SessionEnd", "dead", written);
    came_back(&deck, &id);
}

#[test]
fn event_queue_overflow() {
    let room = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events");
    let room: u32 = room.unwrap().trim().parse().unwrap();
    if room > 200_000 {
        eprintln!("skipped: {room} events fit into a queue here");
        return;
    }
    let deck = patient();
    let id = deck.row("conductor-ops").add();
    let mut daemon = watching(&deck);
    // It cannot read while it stands still.
    stand_still(&daemon);
    let names = ["a.json", "b.json"].map(|name| deck.file("hooks").join(name));
    std::fs::write(&names[0], "{}").unwrap();
    for n in 0..room as usize {
        if n == room as usize / 2 {
            deck.unset(&id, "pane");
        }
        std::fs::rename(&names[n % 2], &names[(n + 1) % 2]).unwrap();
    }
    // Its place in the queue was taken: only a full scan finds this one.
    daemon.signal(Signal::CONT);
    deck.wait_for_line("watchdog.log", &format!("{id}: restart: done"));
    assert_eq!(acts(&deck), revival(&id));
    assert_eq!(polls(&deck), 2);
    assert!(daemon.stop().success());
}

fn stand_still(daemon: &Daemon) {
    daemon.signal(Signal::STOP);
    common::wait_for("the daemon to stand still", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", daemon.pid())).unwrap();
        stat.contains(") T ").then_some(())
    });
}
