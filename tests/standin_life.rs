//! What the stand-in does beyond answering: fake agents that live and die,
//! restarts that go wrong, forced behaviours, the ledger, and that nothing is
//! left behind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Deck, is_running, wait_for};

/// Printed status of a row, by `list`.
fn status(deck: &Deck, id: &str) -> String {
    listed(deck, id, "status")
}

fn listed(deck: &Deck, id: &str, key: &str) -> String {
    let output = deck.agent_deck(&["list", "--json"]);
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = rows.as_array().unwrap().iter().find(|row| row["id"] == id);
    row.unwrap()[key].as_str().unwrap().to_owned()
}

/// Runs `session <verb> <id> --json`; exit code and answer.
fn session(deck: &Deck, verb: &str, id: &str) -> (i32, serde_json::Value) {
    let output = deck.agent_deck(&["-p", "default", "session", verb, id, "--json"]);
    let answer = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code().unwrap(), answer)
}

fn ended(deck: &Deck, id: &str) {
    wait_for("the end of the session", || {
        (status(deck, id) == "error").then_some(())
    });
}

#[test]
fn an_agent_lives_dies_and_comes_back() {
    let deck = Deck::new();
    let id = deck.row("conductor-ops").add();
    deck.start_tmux();
    let old = deck.start_agent(&id);
    assert_eq!(status(&deck, &id), "waiting");
    if cfg!(target_os = "linux") {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{old}/{file}")).unwrap();
        assert_eq!(read("comm"), "claude\n");
        let marker = format!("AGENTDECK_INSTANCE_ID={id}");
        assert!(read("environ").split('\0').any(|var| var == marker));
        let own_id = deck.get(&id, "agent_session_id").unwrap();
        assert!(read("cmdline").split('\0').any(|arg| arg == own_id));
        let stat = read("stat");
        let parent = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap();
        let parent = std::fs::read_to_string(format!("/proc/{parent}/comm"));
        assert_eq!(parent.unwrap(), "tmux: server\n");
    }

    let name = listed(&deck, &id, "tmux_session");
    deck.kill_agent(&id);
    ended(&deck, &id);
    assert_eq!(deck.agent_pid(&id), None);
    assert_eq!(session(&deck, "restart", &id).0, 0);
    assert_eq!(status(&deck, &id), "waiting");
    let new = deck.agent_pid(&id).unwrap();
    assert!(is_running(new) && new != old);
    // A dead one gets a new name, a living one is respawned under its own.
    let renamed = listed(&deck, &id, "tmux_session");
    assert_ne!(renamed, name);
    assert_eq!(
        renamed.rsplit_once('_').unwrap().0,
        name.rsplit_once('_').unwrap().0
    );
    assert!(
        deck.file(format!("locks/instance-spawn-{id}.stamp"))
            .exists()
    );
    assert!(
        !deck
            .file(format!("locks/instance-spawn-{id}.lock"))
            .exists()
    );
    session(&deck, "restart", &id);
    assert_eq!(listed(&deck, &id, "tmux_session"), renamed);
    wait_for("the old agent's end", || (!is_running(new)).then_some(()));
    let log: Vec<String> = deck.agent_log().into_iter().map(|line| line.1).collect();
    let started = log.iter().filter(|what| *what == "start").count();
    assert_eq!(started, 3, "{log:?}");

    assert_eq!(session(&deck, "stop", &id).0, 0);
    assert_eq!(status(&deck, &id), "stopped");
    assert_eq!(deck.agent_pid(&id), None);
    assert_eq!(session(&deck, "start", &id).0, 0);
    assert!(is_running(deck.agent_pid(&id).unwrap()));
}

#[test]
fn a_dead_server_takes_its_agents_along_and_a_restart_brings_up_another() {
    let deck = Deck::new();
    let ids = ["a", "b"].map(|title| deck.row(title).add());
    deck.start_tmux();
    let pids = ids.each_ref().map(|id| deck.start_agent(id));
    deck.kill_tmux();
    for (id, pid) in ids.iter().zip(pids) {
        ended(&deck, id);
        wait_for("the agent's end", || (!is_running(pid)).then_some(()));
    }
    session(&deck, "restart", &ids[0]);
    assert!(is_running(deck.agent_pid(&ids[0]).unwrap()));
    assert_eq!(status(&deck, &ids[0]), "waiting");
    assert_eq!(status(&deck, &ids[1]), "error");
}

#[test]
fn agents_that_end_by_themselves_and_tools_that_stay() {
    let deck = Deck::new();
    deck.start_tmux();
    let id = deck.row("short").file("agent", "tool exit:1:3").add();
    deck.start_agent_that_may_end(&id);
    ended(&deck, &id);
    let id = deck.row("shell").file("agent_program", "bash").add();
    let shell = deck.start_agent(&id);
    if cfg!(target_os = "linux") {
        let comm = std::fs::read_to_string(format!("/proc/{shell}/comm"));
        assert_eq!(comm.unwrap(), "bash\n");
        // The tool of the first one is still there, and known as a tool.
        let tool = wait_for("the tool", || tool_of(&deck));
        assert_ne!(tool, shell);
        deck.kill_tmux();
        wait_for("the tool's end", || (!is_running(tool)).then_some(()));
    }
}

/// A process that runs this deck's `bash` with `CLAUDECODE`.
fn tool_of(deck: &Deck) -> Option<u32> {
    let bash = deck.file("bin/bash");
    let bash = bash.to_str().unwrap();
    let pids = std::fs::read_dir("/proc").unwrap();
    let pids = pids.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let has = |pid: u32, file: &str, word: &str| {
        let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&bytes)
            .split('\0')
            .any(|w| w == word)
    };
    pids.into_iter()
        .find(|pid| has(*pid, "cmdline", bash) && has(*pid, "environ", "CLAUDECODE=1"))
}

#[test]
fn restarts_that_do_not_help() {
    for with_tmux in [false, true] {
        let deck = Deck::new();
        if with_tmux {
            deck.start_tmux();
        }
        let plan = "no-effect\nexit 1 HTTP 429\ndies\nunknown\nworks";
        let id = deck.row("x").dead().file("after_restart", plan).add();
        assert_eq!(session(&deck, "restart", &id).0, 0);
        assert_eq!(status(&deck, &id), "error");
        let (code, answer) = session(&deck, "restart", &id);
        assert_eq!(code, 1);
        assert_eq!(answer["error"], "failed to restart session: HTTP 429");
        assert_eq!(session(&deck, "restart", &id).0, 0);
        ended(&deck, &id);
        assert_eq!(session(&deck, "restart", &id).0, 0);
        assert_eq!(status(&deck, &id), "unknown");
        for _ in 0..2 {
            assert_eq!(session(&deck, "restart", &id).0, 0);
            assert_eq!(status(&deck, &id), "waiting");
        }
        assert_eq!(deck.agent_pid(&id).is_some(), with_tmux);
    }
}

#[test]
fn two_restarts_at_once_hide_a_living_agent() {
    let deck = Deck::new();
    let id = deck.row("x").dead().add();
    let lock = deck.file(format!("locks/instance-spawn-{id}.lock"));
    std::fs::write(&lock, std::process::id().to_string()).unwrap();
    let second = std::thread::scope(|scope| {
        let second = scope.spawn(|| session(&deck, "restart", &id));
        wait_for("the second's wait", || {
            deck.agent_log().into_iter().find(|line| line.1 == "wait")
        });
        deck.set(&id, "pane", "the first restart's agent");
        std::fs::remove_file(&lock).unwrap();
        second.join().unwrap()
    });
    assert_eq!(second.0, 0);
    assert_eq!(status(&deck, &id), "error");
    assert!(deck.get(&id, "pane.lost").is_some());
    // A lock whose holder is gone holds up nobody.
    let mut child = Command::new(deck.file("bin/ps"))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.wait().unwrap();
    std::fs::write(&lock, child.id().to_string()).unwrap();
    assert_eq!(session(&deck, "restart", &id).0, 0);
    assert_eq!(status(&deck, &id), "waiting");
}

#[test]
fn a_stop_is_seen_as_a_death_for_a_moment() {
    let deck = Deck::new();
    let id = deck.row("x").add();
    std::fs::write(deck.file("stop_gap_ms"), "100000").unwrap();
    let mut stop = Command::new(deck.file("bin/agent-deck"))
        .args(["session", "stop", &id])
        .spawn()
        .unwrap();
    ended(&deck, &id);
    stop.kill().unwrap();
    stop.wait().unwrap();
    std::fs::write(deck.file("stop_gap_ms"), "0").unwrap();
    session(&deck, "restart", &id);
    deck.trap("stop").with("db_locked", "1").times(1).set();
    assert_eq!(session(&deck, "stop", &id).0, 1);
    assert_eq!(status(&deck, &id), "error");
    session(&deck, "restart", &id);
    assert_eq!(session(&deck, "stop", &id).0, 0);
    assert_eq!(status(&deck, &id), "stopped");
}

#[test]
fn forced_answers() {
    let deck = Deck::new();
    let [one, two] = ["one", "two"].map(|title| deck.row(title).dead().add());
    let list = || deck.agent_deck(&["list", "--json"]);
    let good = list().stdout;
    deck.trap("list").stdout(b"\xff[").times(2).set();
    for _ in 0..2 {
        assert_eq!(list().stdout, b"\xff[");
    }
    assert_eq!(list().stdout, good);
    deck.trap("list").exit(127).set();
    assert_eq!(
        (list().status.code(), list().stdout),
        (Some(127), Vec::new())
    );
    deck.no_trap("list");
    deck.trap("list").with("stderr", "notice\n").set();
    assert_eq!(
        (list().stderr, list().stdout),
        (b"notice\n".to_vec(), good.clone())
    );
    deck.no_trap("list");
    deck.profile("other");
    deck.trap_for("list", "other").exit(1).set();
    assert_eq!(list().stdout, good);
    let other = deck.agent_deck(&["-p", "other", "list", "--json"]);
    assert_eq!(other.status.code(), Some(1));

    deck.trap_for("show", &one).stdout("{").set();
    let show = |id: &str| deck.agent_deck(&["session", "show", id, "--json"]).stdout;
    assert_eq!(show(&one), b"{");
    assert!(show(&two).len() > 100);
    // It has acted although it says otherwise.
    deck.trap("restart").with("act", "").exit(1).set();
    let restart = deck.agent_deck(&["session", "restart", &two, "--json"]);
    assert_eq!(restart.status.code(), Some(1));
    assert_eq!(status(&deck, &two), "waiting");
    let start = Instant::now();
    deck.trap("version").delay(Duration::from_millis(80)).set();
    assert_eq!(
        deck.agent_deck(&["version"]).stdout,
        b"Agent Deck v1.14.0\n"
    );
    assert!(start.elapsed() >= Duration::from_millis(80));
}

#[test]
fn a_grandchild_keeps_the_pipe_open() {
    let deck = Deck::new();
    deck.row("x").add();
    deck.trap("list").with("grandchild", "").set();
    let mut list = Command::new(deck.file("bin/agent-deck"))
        .args(["list", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(list.wait().unwrap().success());
    let mut pipe = list.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).unwrap();
        text
    });
    deck.trap("list").hang().times(1).set();
    let hung = Command::new(deck.file("bin/agent-deck"))
        .arg("list")
        .spawn()
        .unwrap()
        .id();
    deck.wait_for_ledger(|calls| calls.len() == 2);
    assert!(is_running(hung) && !reader.is_finished());
    // Both end with the deck, and then the reader gets to the end.
    drop(deck);
    assert!(reader.join().unwrap().starts_with("[\n"));
    wait_for("the hung one's end", || (!is_running(hung)).then_some(()));
}

#[test]
fn nothing_is_left_behind() {
    let deck = Deck::new();
    deck.start_tmux();
    let id = deck.row("x").add();
    let first = deck.start_agent(&id);
    deck.kill_tmux();
    session(&deck, "restart", &id);
    let second = deck.agent_pid(&id).unwrap();
    let root = deck.root().to_owned();
    drop(deck);
    assert!(!root.exists());
    for pid in [first, second] {
        wait_for("an agent's end", || (!is_running(pid)).then_some(()));
    }
}

#[test]
fn the_ledger_has_every_call() {
    let deck = Deck::new();
    deck.dump_environ();
    deck.install_escalate();
    let script = deck.watchdog_dir().join("escalate.sh");
    let told = Command::new(&script)
        .args(["critical", "two\nlines \\ \u{1b}[0m"])
        .env_clear()
        .env("TELEGRAM_ESCALATION_CHAT_ID", "42")
        .status();
    assert!(told.unwrap().success());
    deck.trap("escalate.sh")
        .stdout("retry-after: 40\n")
        .exit(75)
        .set();
    let told = Command::new(&script).args(["info", "x"]).output().unwrap();
    assert_eq!(
        (told.status.code(), told.stdout),
        (Some(75), b"retry-after: 40\n".to_vec())
    );
    assert_eq!(deck.agent_deck(&["frobnicate"]).status.code(), Some(1));
    assert_eq!(
        deck.agent_deck(&["session", "frobnicate"]).status.code(),
        Some(1)
    );
    assert_eq!(deck.agent_deck(&["list", "-p", "x"]).status.code(), Some(2));

    let calls = deck.ledger();
    let lines: Vec<String> = calls
        .iter()
        .map(|call| format!("{} {}", call.program, call.args))
        .collect();
    let wanted = [
        r"escalate.sh critical two\nlines \\ \u{1b}[0m",
        "escalate.sh info x",
        "agent-deck frobnicate",
        "agent-deck TUI",
        "agent-deck session frobnicate",
        "agent-deck list -p x",
    ];
    assert_eq!(lines, wanted);
    let codes: Vec<i32> = deck.ended().into_iter().map(|(_, code, _)| code).collect();
    assert_eq!(codes, [0, 75, 1, 1, 2]);
    assert!(deck.ended().iter().all(|(call, _, end)| call.at <= *end));
    let environs = deck.environs();
    let first = environs
        .iter()
        .find(|(program, _)| program == "escalate.sh");
    assert!(first.is_some() && environs.len() == 5);
    let clean = format!("HOME={}", deck.home().display());
    let of_deck = environs
        .iter()
        .filter(|(program, _)| program == "agent-deck");
    for (_, vars) in of_deck {
        assert!(vars.contains(&clean) && vars.len() == 2, "{vars:?}");
    }
}

#[test]
fn ps_and_curl() {
    let deck = Deck::new();
    let ps = || {
        Command::new(deck.file("bin/ps"))
            .arg("axww")
            .output()
            .unwrap()
    };
    assert_eq!(ps().status.code(), Some(1));
    std::fs::write(deck.file("ps"), "1 init\n").unwrap();
    assert_eq!(
        (ps().status.code(), ps().stdout),
        (Some(0), b"1 init\n".to_vec())
    );
    let mut curl = Command::new(deck.file("bin/curl"))
        .args(["--config", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    curl.stdin
        .take()
        .unwrap()
        .write_all(b"url = secret")
        .unwrap();
    assert_eq!(curl.wait_with_output().unwrap().stdout, b"{\"ok\":true}\n");
    let files = std::fs::read_dir(deck.file("curl")).unwrap();
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let texts: Vec<String> = files
        .iter()
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    assert_eq!(texts, ["--config\n-", "url = secret"]);
    deck.uninstall("ps");
    assert!(Command::new(deck.file("bin/ps")).spawn().is_err());
}

#[test]
fn the_watchdog_can_be_run_on_it() {
    let deck = Deck::new();
    deck.setting("SAFETY_POLL_S", "1");
    assert!(deck.run(&["--version"]).status.success());
    let mut daemon = deck.daemon_with(&["--version"]);
    assert!(daemon.wait().success());
}
