//! The processes of the stand-in as `ps` shows them, its pollers of Telegram,
//! and what its agents say of themselves. Only where there is a `/proc`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::process::{Command, Output};

use common::{Deck, is_running, wait_for};
use rustix::process::{Pid, Signal, kill_process};

fn ps(deck: &Deck, args: &[&str]) -> Output {
    Command::new(deck.file("bin/ps"))
        .args(args)
        .output()
        .unwrap()
}

/// Lines of `ps -A` with these columns.
fn lines(deck: &Deck, columns: &str) -> Vec<String> {
    let output = ps(deck, &["-A", "-ww", "-o", columns]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// The columns of the line that begins with this process.
fn line(deck: &Deck, pid: u32, columns: &str) -> Option<Vec<String>> {
    let wanted = pid.to_string();
    let split = |line: String| line.split_whitespace().map(str::to_owned).collect();
    let lines = lines(deck, columns).into_iter().map(split);
    lines.into_iter().find(|words: &Vec<_>| words[0] == wanted)
}

fn environ(pid: u32) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text.split_terminator('\0').map(str::to_owned).collect()
}

fn terminate(pid: u32) {
    let raw = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(raw, Signal::TERM).unwrap();
}

fn restart(deck: &Deck, id: &str) {
    let output = deck.agent_deck(&["-p", "default", "session", "restart", id, "--json"]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn ps_shows_the_processes_of_its_deck() {
    let deck = Deck::new();
    let other = Deck::new();
    let foreign = other.orphan_poller(None);
    deck.start_tmux();
    deck.live_ps();
    let folder = deck.home_folder("tg/ops");
    let row = deck.conductor("ops").telegram().agent("poller");
    let id = row.agent_env(&[("TELEGRAM_STATE_DIR", &folder)]).add();
    let agent = deck.start_agent(&id);
    let poller = deck.wait_for_pollers(&id, 1)[0];

    let columns = "pid=,ppid=,uid=,state=,comm=,args=";
    let shown = wait_for("the poller's arguments", || {
        line(&deck, poller, columns).filter(|words| words.len() > 7)
    });
    assert_eq!(shown[1], agent.to_string());
    assert_eq!(shown[2], rustix::process::getuid().as_raw().to_string());
    assert_eq!(shown[4], "bun");
    assert!(shown[5].ends_with("/bun") && shown[6] == "run");
    assert!(shown.iter().any(|word| word.ends_with("/telegram/0.0.6")));
    assert!(environ(poller).contains(&format!("TELEGRAM_STATE_DIR={folder}")));
    assert!(environ(poller).contains(&format!("AGENTDECK_INSTANCE_ID={id}")));
    assert!(environ(poller).contains(&"CLAUDECODE=1".to_owned()));
    // This test has called it, and stands in it.
    assert!(line(&deck, std::process::id(), columns).is_some());
    assert!(line(&deck, foreign.pid(), columns).is_none());
    // A stranger by somebody else's word.
    let stray = deck.orphan_poller(folder);
    let given = format!("{} alice 4242\n", stray.pid());
    std::fs::write(deck.file("ps.users"), given).unwrap();
    let shown = line(&deck, stray.pid(), "pid=,user=,uid=").unwrap();
    assert_eq!(shown[1..], ["alice", "4242"]);
    let pid = stray.pid();
    drop(stray);
    assert!(!is_running(pid));
}

#[test]
fn ps_takes_arguments_in_many_forms() {
    let deck = Deck::new();
    assert_eq!(ps(&deck, &["-A"]).status.code(), Some(1));
    deck.live_ps();
    let pid = std::process::id();
    for args in [
        &["-A", "-o", "pid=,ppid="][..],
        &["-e", "-opid=", "-o", "ppid="],
        &["-axww", "-o", "pid=", "-o", "ppid="],
        &["axww", "-o", "pid= ppid="],
        &["-p", &pid.to_string(), "-o", "pid=,ppid="],
    ] {
        let output = ps(&deck, args);
        let text = String::from_utf8(output.stdout).unwrap();
        let own = text.lines().find(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some(&pid.to_string()) && words.count() == 1
        });
        assert!(own.is_some() && output.status.success(), "{args:?}: {text}");
    }
    let headed = lines(&deck, "pid,ppid,user,stat,args");
    assert_eq!(headed[0], "    PID    PPID USER     STAT COMMAND");
    let headed = lines(&deck, "pid=,user=WHO,state=");
    assert_eq!(headed[0], "        WHO      ");
    let bad = ps(&deck, &["-A", "-o", "pid=,bogus="]);
    assert_eq!((bad.status.code(), bad.stdout), (Some(1), Vec::new()));
    let why = "error: unknown user-defined format specifier \"bogus\"\n";
    assert_eq!(String::from_utf8(bad.stderr).unwrap(), why);
    // What is written down outranks what is seen, and a trap both.
    std::fs::write(deck.file("ps"), "1 init\n").unwrap();
    assert_eq!(ps(&deck, &["-A"]).stdout, b"1 init\n");
    deck.trap("ps").exit(1).set();
    assert_eq!(ps(&deck, &["-A"]).status.code(), Some(1));
}

#[test]
fn pollers_come_and_go() {
    let deck = Deck::new();
    deck.start_tmux();
    let row = deck
        .conductor("ops")
        .next_agent("poller")
        .agent("no-poller");
    let id = row.add();
    let agent = deck.start_agent(&id);
    let first = deck.wait_for_pollers(&id, 1)[0];
    // Reaped when it ends, and the agent goes on.
    deck.kill_pollers(&id);
    wait_for("its end", || (!exists(first)).then_some(()));
    assert!(is_running(agent));
    restart(&deck, &id);
    let replaced = deck.agent_pid(&id).unwrap();
    assert!(deck.pollers(&id).is_empty());

    deck.set(&id, "agent", "poller-after:20");
    restart(&deck, &id);
    assert!(!is_running(agent) && !is_running(replaced));
    let next = deck.wait_for_pollers(&id, 1)[0];
    // One that reads the pipe of its agent goes with it.
    deck.kill_agent(&id);
    wait_for("the poller's end", || (!is_running(next)).then_some(()));

    deck.set(&id, "agent", "stubborn-poller");
    restart(&deck, &id);
    let stubborn = deck.wait_for_pollers(&id, 1)[0];
    wait_for("it to take signals", || {
        handles_term(stubborn).then_some(())
    });
    restart(&deck, &id);
    deck.wait_for_pollers(&id, 2);
    terminate(stubborn);
    deck.kill_agent(&id);
    assert!(is_running(stubborn));
    drop(deck);
    wait_for("its end", || (!is_running(stubborn)).then_some(()));
}

#[test]
fn owners_of_a_channel() {
    let deck = Deck::new();
    let id = deck.conductor("ops").telegram().link_disabled().add();
    let shown = deck.agent_deck(&["session", "show", &id, "--json"]).stdout;
    let shown: serde_json::Value = serde_json::from_slice(&shown).unwrap();
    assert_eq!(shown["plugin_channel_link_disabled"], true);
    assert_eq!(
        shown["channels"][0],
        "plugin:telegram@claude-plugins-official"
    );
    assert_eq!(shown["title"], "conductor-ops");
}

fn exists(pid: u32) -> bool {
    std::fs::exists(format!("/proc/{pid}")).unwrap()
}

/// Whether a process does something of its own on SIGTERM.
fn handles_term(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .unwrap_or("0");
    u64::from_str_radix(caught.trim(), 16).unwrap() & 1 << 14 != 0
}

#[test]
fn a_poller_that_nobody_has_reaped() {
    let deck = Deck::new();
    deck.start_tmux();
    deck.live_ps();
    let id = deck.conductor("ops").agent("zombie-poller").add();
    deck.start_agent(&id);
    let pid = wait_for("a poller", || deck.get(&id, "pollers")?.trim().parse().ok());
    let shown = wait_for("the zombie", || {
        line(&deck, pid, "pid=,state=,args=").filter(|words| words[1] == "Z")
    });
    assert_eq!(shown[2..], ["[bun]", "<defunct>"]);
    assert!(deck.pollers(&id).is_empty());
    let left = deck.left_poller(&id, "/home/u/tg");
    assert!(environ(left.pid()).contains(&"CLAUDECODE=1".to_owned()));
}

#[test]
fn agents_say_how_they_are() {
    let deck = Deck::new();
    deck.start_tmux();
    let id = deck.row("x").own_status("waiting permission prompt").add();
    let pid = deck.start_agent(&id);
    let file = deck.status_file(&id);
    let said = wait_for("its word", || std::fs::read(&file).ok());
    let said: serde_json::Value = serde_json::from_slice(&said).unwrap();
    assert_eq!(said["status"], "waiting");
    assert_eq!(said["waitingFor"], "permission prompt");
    assert_eq!(said["pid"], pid);
    let own_id = deck.get(&id, "agent_session_id").unwrap();
    assert_eq!(said["sessionId"], own_id.as_str());
    deck.says(&id, "idle");
    deck.says(&id, "");
    deck.says(&id, "busy");
    // It stays after SIGKILL.
    deck.kill_agent(&id);
    wait_for("the end", || deck.agent_pid(&id).is_none().then_some(()));
    assert!(file.exists());
    // It goes with SIGTERM, with a restart and with the tmux server.
    restart(&deck, &id);
    for how in ["signal", "restart", "server"] {
        let file = deck.status_file(&id);
        wait_for("its word", || file.exists().then_some(()));
        match how {
            "signal" => {
                terminate(deck.agent_pid(&id).unwrap());
                wait_for("the end", || deck.agent_pid(&id).is_none().then_some(()));
                restart(&deck, &id);
            }
            "restart" => restart(&deck, &id),
            _ => deck.kill_tmux(),
        }
        wait_for("its end", || (!file.exists()).then_some(()));
    }
}
