//! The stand-in against recordings of the real agent-deck 1.14.0: the same
//! situation, the same bytes and exit code. Where the stand-in drifted from the
//! real program, every other test would prove nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Deck, Row, hook_record, now, recording};
use serde_json::Value;

/// Compares one answer with a recording; shows both as text when they differ.
fn same(deck: &Deck, args: &str, exit: i32, name: &str) {
    let words: Vec<&str> = args.split(' ').collect();
    same_words(deck, &words, exit, name);
}

fn same_words(deck: &Deck, args: &[&str], exit: i32, name: &str) {
    let output = deck.agent_deck(args);
    assert_eq!(text(output.stdout), text(recording(name)), "{name}");
    assert_eq!(output.status.code(), Some(exit), "{name}");
    deck.ledger();
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn json(name: &str) -> Value {
    serde_json::from_slice(&recording(name)).unwrap()
}

/// A row with the names and paths of a recorded one (of `list` or `show`). What
/// it prints as status is left to the situation.
fn like<'a>(deck: &'a Deck, recorded: &Value) -> Row<'a> {
    let of = |key: &str| recorded[key].as_str().unwrap_or_default().to_owned();
    let mut row = deck
        .row(&of("title"))
        .id(&of("id"))
        .profile(&of("profile"))
        .group(&of("group"))
        .file("path", of("path"))
        .file("tmux", of("tmux_session"));
    for (key, file) in [
        ("claude_session_id", "agent_session_id"),
        ("title_locked", "title_locked"),
        ("can_fork", "can_fork"),
    ] {
        if let Some(value) = recorded.get(key) {
            let value = value.as_str().map_or(value.to_string(), str::to_owned);
            row = row.file(file, value);
        }
    }
    for key in ["auth_hold", "spawn_failure", "extra_args"] {
        if let Some(value) = recorded.get(key) {
            row = row.file(key, value.to_string());
        }
    }
    match recorded["channels"].as_array() {
        Some(channels) => row.file("channels", channels[0].as_str().unwrap()),
        None => row,
    }
}

/// A row made from what `list` printed for it.
fn first<'a>(deck: &'a Deck, name: &str) -> Row<'a> {
    like(deck, &json(name)[0])
}

#[test]
fn version_and_profiles() {
    let deck = Deck::new();
    same(&deck, "version", 0, "version.stdout");
    for name in ["nv", "nosuch", "mixed", "mix", "cap"] {
        deck.profile(name);
    }
    same(&deck, "profile list --json", 0, "profile-list.json");
    for name in ["default", "nv", "nosuch", "mixed", "mix", "cap"] {
        std::fs::remove_file(deck.file("profiles").join(name).join("state.db")).unwrap();
    }
    same(&deck, "profile list --json", 0, "profile-list-none.json");
}

#[test]
fn lists_that_are_no_list() {
    let deck = Deck::new();
    same(&deck, "-p default list --json", 0, "list-empty.stdout");
    same(
        &deck,
        "-p nosuch list --json",
        0,
        "list-unknown-profile.stdout",
    );
    same(
        &deck,
        "-p a/b list --json",
        0,
        "list-profile-with-slash.stdout",
    );
    // As the real one, it has made the profiles it was asked for.
    assert!(deck.file("profiles/nosuch/state.db").exists());
    assert!(deck.file("profiles/b/state.db").exists());
    deck.profile("bad");
    std::fs::write(deck.file("profiles/bad/state.db"), "garbage").unwrap();
    same(&deck, "-p bad list --json", 1, "list-db-corrupt.stdout");
    let show = "-p bad session show 00000000-1111111111 --json";
    same(&deck, show, 1, "show-db-corrupt.json");
    let restart = "-p bad session restart 00000000-1111111111 --json";
    same(&deck, restart, 1, "restart-db-corrupt.json");
}

#[test]
fn a_list_of_fifteen() {
    let deck = Deck::new();
    let rows = json("list-mixed.json");
    let rows = rows.as_array().unwrap();
    for recorded in rows {
        let row = like(&deck, recorded).status("starting");
        let row = match recorded["title"].as_str().unwrap() {
            "never started" => row.never_started(),
            "crash exit3" | "clean exit0" | "killed tmux" => row.dead(),
            "stopped one" => row.stopped(),
            "archived one" => row.stopped().file("archived", "2026-11-30T16:53:20Z"),
            "busy one" => row.status("running"),
            "auth one" | "sock one" => row.file("substate", "auth-401"),
            "plain one" => row.without("substate"),
            _ => row,
        };
        row.add();
    }
    same(&deck, "-p mixed list --json", 0, "list-mixed.json");
}

#[test]
fn a_dead_server_takes_all_but_the_stopped() {
    let deck = Deck::new();
    for recorded in json("list-tmux-server-dead.json").as_array().unwrap() {
        let archived = recorded["archived_at"].as_str().unwrap();
        let row = like(&deck, recorded);
        let row = match recorded["title"].as_str().unwrap() {
            "auth one" => row.file("auth_hold", "{}"),
            // Its stored substate is that of a screen which is gone.
            "sock one" => row.file("substate", "auth-401"),
            "archived one" => row.file("archived", archived),
            _ => row,
        };
        row.add();
    }
    std::fs::write(deck.file("no-tmux"), "").unwrap();
    same(
        &deck,
        "-p mixed list --json",
        0,
        "list-tmux-server-dead.json",
    );
}

#[test]
fn rows_one_by_one() {
    let deck = Deck::new();
    first(&deck, "list-one.json").status("starting").add();
    same(&deck, "-p default list --json", 0, "list-one.json");

    let name = "list-conductor-channels.json";
    first(&deck, name).never_started().add();
    same(&deck, "-p cond list --json", 0, name);

    // The stored status says running and one sample does not change that.
    let name = "list-running-sticks.json";
    first(&deck, name)
        .status("running")
        .without("substate")
        .add();
    same(&deck, "-p z1 list --json", 0, name);

    let recorded = json("list-queued.json");
    let recorded = recorded.as_array().unwrap();
    like(&deck, &recorded[0]).file("status", "running").add();
    for row in &recorded[1..] {
        like(&deck, row).status("queued").dead().add();
    }
    same(&deck, "-p cap list --json", 0, "list-queued.json");
}

#[test]
fn rows_of_real_agents() {
    let deck = Deck::new();
    for recorded in json("list-real-agent.json").as_array().unwrap() {
        let row = like(&deck, recorded);
        match recorded["title"].as_str().unwrap() {
            "l-draft" => row.without("substate").add(),
            "l-bg" => row.file("status", "running").add(),
            _ => row.add(),
        };
    }
    same(&deck, "-p long list --json", 0, "list-real-agent.json");
}

#[test]
fn fresh_hook_records_outrank_the_screen() {
    let deck = Deck::new();
    let (prompt, seed) = ("idle-at-empty-prompt", "seed");
    for (name, profile, event, status, substate) in [
        (
            "hook-masks-auth-banner",
            "z4",
            "Stop",
            "waiting",
            "auth-401",
        ),
        (
            "permission-hook-on-busy-screen",
            "z5",
            "PermissionRequest",
            "waiting",
            "running",
        ),
        ("starting-prints-unknown", "z2", seed, "starting", prompt),
    ] {
        let name = &format!("list-{name}.json");
        let row = first(&deck, name).status("starting");
        let id = row.file("substate", substate).add();
        deck.hook(&id, event, status, now());
        same(&deck, &format!("-p {profile} list --json"), 0, name);
        // Two minutes later the record is worth nothing.
        deck.hook(&id, event, "running", now() - 121);
        let listed = text(deck.agent_deck(&["-p", profile, "list", "--json"]).stdout);
        assert!(!listed.contains("\"status\": \"running\""), "{listed}");
    }
    // The dead record of a row whose pane stands.
    let id = deck.row("cleared").add();
    deck.hook(&id, "SessionEnd", "dead", now());
    let listed = text(deck.agent_deck(&["list", "--json"]).stdout);
    assert!(listed.contains("\"status\": \"error\""), "{listed}");
    assert!(!deck.file(format!("hooks/{id}.sid")).exists());
}

#[test]
fn shown_rows() {
    let deck = Deck::new();
    let shown = |name: &str| like(&deck, &json(name)).status("starting");
    for case in [
        "crashed-sigkill",
        "crashed-exit3",
        "archived",
        "running",
        "conductor",
        "never-started-later",
        "socket-closed",
        "auth-hold",
    ] {
        let name = &format!("show-{case}.json");
        let row = shown(name);
        let row = match case {
            "archived" => row.stopped(),
            "running" => row.status("running"),
            "conductor" => row,
            "socket-closed" | "auth-hold" => row.file("substate", "auth-401"),
            _ => row.dead(),
        };
        let id = row.add();
        let profile = json(name)["profile"].as_str().unwrap().to_owned();
        same(
            &deck,
            &format!("-p {profile} session show {id} --json"),
            0,
            name,
        );
    }
    let id = "c32b63cd-1796057553";
    deck.unset(id, "pane");
    deck.set(
        id,
        "auth_hold",
        json("show-auth-death.json")["auth_hold"].to_string(),
    );
    let show = format!("-p mixed session show {id} --json");
    same(&deck, &show, 0, "show-auth-death.json");

    // A fresh record hides the hold, not the banner.
    let name = "show-hook-masks-auth-banner.json";
    let id = shown(name)
        .file("substate", "auth-401")
        .file("auth_hold", "{}")
        .add();
    deck.hook(&id, "Stop", "waiting", now());
    same(&deck, &format!("-p z4 session show {id} --json"), 0, name);
}

#[test]
fn rows_that_are_not_found() {
    let deck = Deck::new();
    let id = "00000000-1111111111";
    for (words, exit, name) in [
        (format!("show {id}"), 2, "show-not-found.json"),
        (format!("restart {id}"), 2, "restart-not-found.json"),
        (format!("output {id} --pane"), 2, "output-not-found.json"),
        (format!("send {id} x --no-wait"), 2, "send-not-found.json"),
        ("children nosuch".to_owned(), 2, "children-not-found.json"),
        ("show".to_owned(), 2, "show-no-id.json"),
    ] {
        same(
            &deck,
            &format!("-p mixed session {words} --json"),
            exit,
            name,
        );
    }
    for (id, path) in [("20f07ea9-1796057629", "d1"), ("459552e0-1796057629", "d2")] {
        let row = deck.row("same title").profile("mixed").id(id);
        row.file("path", format!("/home/u/proj/{path}")).add();
    }
    let show = ["-p", "mixed", "session", "show", "same title", "--json"];
    same_words(&deck, &show, 1, "show-ambiguous.json");
}

#[test]
fn screens() {
    let deck = Deck::new();
    let name = "output-pane-idle.json";
    let id = first(&deck, "list-one.json")
        .pane(json(name)["content"].as_str().unwrap())
        .add();
    let output = format!("-p default session output {id} --pane --json");
    same(&deck, &output, 0, name);
    deck.unset(&id, "pane");
    same(&deck, &output, 1, "output-pane-dead.json");

    for (show, name) in [
        (
            "show-crashed-exit3.json",
            "output-pane-dead-spawn-failure.json",
        ),
        ("show-auth-death.json", "output-pane-auth-death.json"),
    ] {
        let row = like(&deck, &json(show)).dead();
        let id = row
            .file("notice", json(name)["content"].as_str().unwrap())
            .add();
        let output = format!("-p mixed session output {id} --pane --json");
        same(&deck, &output, 0, name);
    }
    // Bytes that are no text, as Go prints them.
    let id = deck.row("bytes").pane(b"a\xff\xf0\x9f<\x1b[0m").add();
    let output = deck.agent_deck(&["session", "output", &id, "--pane", "--json"]);
    let line = r#"  "content": "a\ufffd\ufffd\ufffd\u003c\u001b[0m","#;
    assert_eq!(text(output.stdout).lines().nth(1), Some(line));
}

/// A row of profile `mixed` as the answers of `restart` name it.
fn mixed<'a>(deck: &'a Deck, answer: &str) -> (Row<'a>, String) {
    let answer = json(answer);
    let id = answer["id"].as_str().unwrap();
    let row = deck.row(answer["title"].as_str().unwrap());
    let restart = format!("-p mixed session restart {id} --json");
    (row.profile("mixed").id(id), restart)
}

#[test]
fn restarts() {
    for (name, exit) in [
        ("restart-crashed.json", 0),
        ("restart-stopped.json", 0),
        ("restart-archived.json", 0),
        ("restart-auth-hold.json", 0),
        ("restart-skipped-auth-hold.json", 0),
        ("restart-skipped-auth-death.json", 0),
    ] {
        let deck = Deck::new();
        let (row, restart) = mixed(&deck, name);
        let hold = |show: &str| json(show)["auth_hold"].to_string();
        let row = match name {
            "restart-stopped.json" => row.stopped(),
            "restart-archived.json" => row.archived(),
            // A stored status that looks healthy defeats the guard.
            "restart-auth-hold.json" => row
                .status("starting")
                .file("auth_hold", hold("show-auth-hold.json")),
            "restart-skipped-auth-hold.json" => row
                .status("error")
                .file("auth_hold", hold("show-auth-hold.json")),
            "restart-skipped-auth-death.json" => row
                .dead()
                .status("error")
                .file("auth_hold", hold("show-auth-death.json")),
            _ => row.dead(),
        };
        let id = row.add();
        same(&deck, &restart, exit, name);
        assert_eq!(deck.get(&id, "pane").is_some(), !name.contains("death"));
    }
}

#[test]
fn restarts_that_fail() {
    let deck = Deck::new();
    let name = "restart-missing-dir.json";
    let row = deck.row("gone").file("path", "/home/u/proj/d1");
    let id = row.dead().file("missing_dir", "").add();
    same(&deck, &format!("session restart {id} --json"), 1, name);
    assert_eq!(deck.get(&id, "pane"), None);

    let name = "restart-dead-db-locked.json";
    let id = deck.row("locked").dead().add();
    deck.trap_for("restart", &id).with("db_locked", "1").set();
    same(&deck, &format!("session restart {id} --json"), 1, name);
    // It was started all the same, under a name nobody knows.
    assert!(deck.get(&id, "pane.lost").is_some());
    assert_eq!(deck.get(&id, "pane"), None);
}

#[test]
fn restarts_right_after_a_start_are_skipped() {
    let deck = Deck::new();
    std::fs::write(deck.file("freshness"), "").unwrap();
    for (name, recorded) in [
        ("restart-skipped-fresh.json", "3s ago"),
        ("restart-skipped-crashloop.json", "4s ago"),
    ] {
        let (row, restart) = mixed(&deck, name);
        row.dead().file("started", now().to_string()).add();
        let words: Vec<&str> = restart.split(' ').collect();
        let output = text(deck.agent_deck(&words).stdout);
        // How long ago it was depends on the machine.
        let (head, tail) = output.split_once("was started ").unwrap();
        let (seconds, tail) = tail.split_once("s ago").unwrap();
        assert!(seconds.parse::<u64>().unwrap() < 60, "{output}");
        let normal = format!("{head}was started {recorded}{tail}");
        assert_eq!(normal, text(recording(name)));
    }
}

#[test]
fn stops_starts_archives() {
    let deck = Deck::new();
    let (row, _) = mixed(&deck, "stop.json");
    let id = row.add();
    let stop = format!("-p mixed session stop {id} --json");
    same(&deck, &stop, 0, "stop.json");
    assert_eq!(deck.get(&id, "status").as_deref(), Some("stopped"));
    same(&deck, &stop, 1, "stop-again.json");

    let (row, _) = mixed(&deck, "archive.json");
    let id = row.add();
    let archive = format!("-p mixed session archive {id} --json");
    same(&deck, &archive, 0, "archive.json");

    let answer = json("start.json");
    let row = first(&deck, "list-one.json").never_started();
    let own_id = answer["claude_session_id"].as_str().unwrap();
    let id = row.file("agent_session_id", own_id).add();
    let start = format!("-p default session start {id} --json");
    same(&deck, &start, 0, "start.json");
    let id = deck.row("start after crash").add();
    let start = format!("session start {id} --json");
    same(&deck, &start, 1, "start-already-running.json");
}

#[test]
fn children_and_their_reports() {
    let deck = Deck::new();
    let answer = json("children-done.json");
    let parent = answer["parent"].as_str().unwrap();
    for child in answer["children"].as_array().unwrap() {
        let of = |key: &str| child[key].as_str().unwrap_or_default();
        let row = deck.row(of("title")).id(of("id")).child_of(parent);
        let report = ["done_status", "done_summary", "done_at"]
            .map(of)
            .join("\n");
        let row = row.never_started();
        match of("done_status") {
            "" => row.add(),
            _ => row.file("done", report).add(),
        };
    }
    deck.row("lead").id(parent).add();
    let children = format!("session children {parent} --json");
    same(&deck, &children, 0, "children-done.json");
    let children = "session children 634436b6-1796062950 --json";
    same(&deck, children, 0, "children-none.json");
    // `list` names the parent as well, and where it lives.
    let listed = text(deck.agent_deck(&["list", "--json"]).stdout);
    let wanted = format!(
        "\"id\": \"634436b6-1796062950\",\n    \"parent_session_id\": \"{parent}\",\n    \
         \"parent_project_path\": \"/home/u/proj\",\n    \"title\": \"kid1\","
    );
    assert!(listed.contains(&wanted), "{listed}");
}

#[test]
fn hook_records() {
    let events = ["session-start", "permission-request", "stop", "session-end"];
    for event in events.into_iter().chain(["foreign-session-end"]) {
        let name = format!("hook-{event}.json");
        let record = json(&name);
        let of = |key: &str| record[key].as_str().unwrap();
        let (own_id, written) = (of("session_id"), record["ts"].as_u64().unwrap());
        let made = hook_record(of("status"), own_id, of("event"), written, of("cwd"));
        assert_eq!(made, text(recording(&name)));
    }
}
