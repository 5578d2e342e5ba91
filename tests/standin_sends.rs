//! The stand-in's `session send` against what was recorded from the real
//! agent-deck and the real agent: the same bytes of answer, the same bytes at
//! the agent, the same accidents. And what else a test can make of a screen.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Deck, Row, free_composer, recording, screens, wait_for};
use serde_json::Value;

const MESSAGE: &str = "report status?";

/// Sends the message; exit code and answer.
fn send(deck: &Deck, id: &str) -> (i32, Value) {
    let words = ["-p", "default", "session", "send", id, MESSAGE];
    let output = deck.agent_deck(&[&words[..], &["--no-wait", "--json"]].concat());
    let answer = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code().unwrap(), answer)
}

/// The screen as `session output` prints it.
fn screen(deck: &Deck, id: &str) -> String {
    let output = deck.agent_deck(&["session", "output", id, "--pane", "--json"]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    answer["content"].as_str().unwrap_or_default().to_owned()
}

/// A text without its colours.
fn plain(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut plain = parts.next().unwrap().to_owned();
    plain.extend(parts.map(|part| part.split_once('m').unwrap().1));
    plain
}

/// A row as a recorded answer names it; sends, and compares whole bytes.
fn same<'a>(deck: &'a Deck, name: &str, exit: i32, dress: impl Fn(Row<'a>) -> Row<'a>) -> String {
    let recorded: Value = serde_json::from_slice(&recording(name)).unwrap();
    let of = |key: &str| recorded[key].as_str().unwrap();
    let mut row = deck.row(of("session_title")).id(of("session_id"));
    if let Some(held) = recorded.get("held_for_composer_ms") {
        row = row.file("held_for_composer_ms", held.to_string());
    }
    let id = dress(row).add();
    let words = ["session", "send", &id, MESSAGE, "--no-wait", "--json"];
    let output = deck.agent_deck(&words);
    let (said, wanted) = (output.stdout, recording(name));
    assert_eq!(
        String::from_utf8(said).unwrap(),
        String::from_utf8(wanted).unwrap()
    );
    assert_eq!(output.status.code(), Some(exit), "{name}");
    id
}

#[test]
fn recorded_answers() {
    let deck = Deck::new();
    let id = same(&deck, "send-idle-submitted.json", 0, |row| row);
    assert_eq!(deck.typed(&id), "report status?\r");
    let id = same(&deck, "send-busy.json", 0, |row| row.pane(screens::busy()));
    assert_eq!(deck.typed(&id), "report status?\r");
    let id = same(&deck, "send-with-draft.json", 0, |row| {
        row.pane(screens::draft("half typed"))
    });
    assert_eq!(deck.typed(&id), "\x03report status?\rhalf typed");
    let id = same(&deck, "send-plain-screen.json", 1, |row| {
        row.pane(screens::plain())
    });
    assert!(deck.typed(&id).starts_with("report status?\r\r"));
    let id = same(&deck, "send-typed-not-submitted.json", 1, |row| {
        row.sends(&["typed_not_submitted"])
    });
    assert!(screen(&deck, &id).contains("❯\u{a0}report status?\n"));
    let other = |row: Row<'_>, word: &str| row.tool("gemini").sends(&[word]).add();
    // Two sends to one session were recorded.
    let id = same(&deck, "send-other-tool-typed.json", 1, |row| {
        row.tool("gemini").sends(&["typed"])
    });
    assert_eq!(deck.typed(&id), "report status?\r");
    deck.set(&id, "send_result", "line_too_long");
    let long = "a".repeat(120_000);
    let output = deck.agent_deck(&["session", "send", &id, &long, "--no-wait", "--json"]);
    assert_eq!(output.stdout, recording("send-line-too-long.json"));
    let id = other(deck.row("other"), "db-error");
    let output = deck.agent_deck(&["session", "send", &id, MESSAGE, "--no-wait", "--json"]);
    assert_eq!(output.stdout, recording("send-db-corrupt.json"));
    assert_eq!(
        (output.status.code(), deck.typed(&id)),
        (Some(1), String::new())
    );
    let id = deck.row("alpha one").never_started().add();
    let output = deck.agent_deck(&["session", "send", &id, MESSAGE, "--no-wait", "--json"]);
    assert_eq!(output.stdout, recording("send-never-started.json"));
}

/// Recorded screen, delivery, and what a Ctrl+C, the text and an Enter were
/// followed by: the option or the draft that was typed in again.
const DIALOGS: &[(&str, &str, &str)] = &[
    ("perm-bash-120x40", "submitted", "1. Yes"),
    ("perm-bash-80x24", "submitted", "1. Yes"),
    ("perm-bash-60x40", "submitted", "1. Yes"),
    ("perm-bash-200x50", "submitted", "1. Yes"),
    ("perm-bash-rm-120x40", "submitted", "1. Yes"),
    ("perm-edit-80x24", "submitted", "1. Yes"),
    ("perm-write-120x40", "submitted", "1. Yes"),
    ("perm-fetch-60x40", "submitted", "1. Yes"),
    ("perm-mcp-120x40", "submitted", "1. Yes"),
    (
        "plan-approval-80x24",
        "submitted",
        "1. Yes, and use auto mode",
    ),
    ("ask-120x40", "submitted", "1. SQLite"),
    ("ask-multi-120x40", "no_evidence", "1. SQLite"),
    ("trust-120x40", "no_evidence", "1. Yes, I trust this folder"),
    ("trust-second-120x40", "no_evidence", "2. No, exit"),
    (
        "apikey-confirm-120x40",
        "no_evidence",
        "2. No (recommended)",
    ),
    (
        "mcp-approval-120x40",
        "no_evidence",
        "1. Use this MCP server",
    ),
];

#[test]
fn dialogs_are_answered_and_the_message_is_lost() {
    let deck = Deck::new();
    for (name, delivery, option) in DIALOGS {
        let id = deck.row(name).pane(screens::recorded(name)).add();
        let (code, answer) = send(&deck, &id);
        assert_eq!(answer["delivery"], *delivery, "{name}");
        assert_eq!(code, i32::from(*delivery != "submitted"), "{name}");
        assert_eq!(answer["saved_draft"], *option, "{name}");
        assert_eq!(answer["draft_restored"], true, "{name}");
        assert_eq!(deck.answered(&id), [*option], "{name}");
        let typed = deck.typed(&id);
        assert!(
            typed.starts_with("\x03\x03report status?\r"),
            "{name}: {typed:?}"
        );
        assert!(typed.ends_with(&format!("\r{option}")), "{name}: {typed:?}");
        let after = plain(&screen(&deck, &id));
        assert!(!after.contains(MESSAGE), "{name}: {after}");
        let left = after.contains(&format!("\n❯\u{a0}{option}"));
        assert_eq!(left, *name != "ask-multi-120x40", "{name}: {after}");
    }
    let name = "perm-bash-second-120x40";
    let id = deck.row(name).pane(screens::recorded(name)).add();
    send(&deck, &id);
    assert!(deck.answered(&id)[0].starts_with("2. Yes, and always allow"));
    for name in ["panel-model-120x40", "panel-login-120x40"] {
        let id = deck.row(name).pane(screens::recorded(name)).add();
        assert_eq!(send(&deck, &id).1["delivery"], "no_evidence");
        assert!(deck.answered(&id)[0].starts_with("1. "), "{name}");
    }
    for (name, screen) in [
        ("dialog", screens::dialog()),
        ("plan", screens::plan()),
        ("question", screens::question()),
        ("trust", screens::trust()),
    ] {
        let id = deck.row(name).pane(screen).add();
        send(&deck, &id);
        assert_eq!(deck.answered(&id).len(), 1, "{name}");
    }
}

#[test]
fn free_composers_get_text_and_one_enter() {
    let deck = Deck::new();
    for name in [
        "idle-fresh-120x40",
        "idle-turn-120x40",
        "idle-turn-long-120x40.later",
        "idle-turn-200x50",
        "idle-turn-60x40",
        "idle-turn-80x24",
        "idle-accept-edits-120x40",
        "idle-plan-mode-120x40",
        "idle-background-120x40",
        "work-stream-120x40",
        "work-bash-120x40",
        "work-interrupted-120x40",
        "err-401-120x40",
        "err-credit-120x40",
        "shortcuts-120x40",
        "panel-transcript-120x40",
    ] {
        let id = deck.row(name).pane(screens::recorded(name)).add();
        let (code, answer) = send(&deck, &id);
        assert_eq!(
            (code, &answer["delivery"]),
            (0, &"submitted".into()),
            "{name}"
        );
        assert!(answer.get("saved_draft").is_none(), "{name}");
        assert_eq!(deck.typed(&id), "report status?\r", "{name}");
        // The screen has the message above a composer that is free again.
        let after = plain(&screen(&deck, &id));
        assert_eq!(
            after.matches("\n❯ report status?").count(),
            1,
            "{name}: {after}"
        );
        send(&deck, &id);
        assert_eq!(deck.typed(&id), "report status?\r".repeat(2), "{name}");
    }
}

#[test]
fn drafts_and_what_is_taken_for_one() {
    let deck = Deck::new();
    for (name, interrupts, draft) in [
        ("draft-80x24", 1, "please look at the half wri"),
        ("draft-multiline-60x40", 1, "first line second line"),
        ("work-draft-120x40", 1, "a draft while"),
        ("slash-menu-120x40", 1, "/"),
        ("idle-suggestion-80x24", 2, "run the tests"),
        ("work-queued-120x40", 1, "Press up to edit queued messages"),
        ("after-send-perm-bash-120x40", 1, "1. Yes"),
    ] {
        let id = deck.row(name).pane(screens::recorded(name)).add();
        let (code, answer) = send(&deck, &id);
        assert_eq!(
            (code, &answer["delivery"]),
            (0, &"submitted".into()),
            "{name}"
        );
        assert_eq!(answer["saved_draft"], draft, "{name}");
        let typed = format!("{}report status?\r{draft}", "\x03".repeat(interrupts));
        assert_eq!(deck.typed(&id), typed, "{name}");
        let killed = deck.get(&id, "killed_tool").is_some();
        assert_eq!(killed, name.starts_with("work-queued"), "{name}");
        let after = plain(&screen(&deck, &id));
        assert!(
            after.contains(&format!("\n❯\u{a0}{draft}")),
            "{name}: {after}"
        );
        assert!(deck.answered(&id).is_empty(), "{name}");
    }
    let row = deck.row("gone").pane(screens::coloured_draft("half"));
    let id = row.file("draft_restored", "false").add();
    let answer = send(&deck, &id).1;
    assert_eq!(answer["draft_restore_failed"], true);
    assert!(answer.get("draft_restored").is_none());
    assert_eq!(deck.typed(&id), "\x03report status?\r");
    let id = deck.row("hint").pane(screens::suggestion("run it")).add();
    assert_eq!(send(&deck, &id).1["saved_draft"], "run it");
}

#[test]
fn other_screens() {
    let deck = Deck::new();
    for (name, delivery, answered) in [
        ("panel-config-120x40", "typed", 0),
        ("panel-help-120x40", "no_evidence", 0),
        ("panel-resume-120x40", "no_evidence", 0),
        ("panel-rewind-120x40", "no_evidence", 1),
        ("panel-history-120x40", "no_evidence", 0),
    ] {
        let id = deck.row(name).pane(screens::recorded(name)).add();
        let (code, answer) = send(&deck, &id);
        assert_eq!((code, &answer["delivery"]), (1, &delivery.into()), "{name}");
        assert_eq!(deck.answered(&id).len(), answered, "{name}");
        assert!(deck.typed(&id).starts_with(MESSAGE), "{name}");
    }
    let name = "bash-mode-120x40";
    let id = deck.row(name).pane(screens::recorded(name)).add();
    assert_eq!(send(&deck, &id).1["delivery"], "submitted");
    assert_eq!(deck.get(&id, "ran").as_deref(), Some("report status?\n"));
    let id = deck.row("shell").pane(screens::shell_mode("ls -l")).add();
    send(&deck, &id);
    assert_eq!(
        deck.get(&id, "ran").as_deref(),
        Some("ls -lreport status?\n")
    );
    let id = deck.row("codex").tool("codex").add();
    let (code, answer) = send(&deck, &id);
    assert_eq!((code, &answer["delivery"]), (0, &"unverified".into()));
    assert_eq!(answer["submitted"], false);
}

#[test]
fn forced_results() {
    let deck = Deck::new();
    let plan = [
        "nothing",
        "no_evidence",
        "send_failed",
        "not-running",
        "submitted",
    ];
    let id = deck
        .row("x")
        .waiting_on(screens::dialog())
        .sends(&plan)
        .add();
    let first = screen(&deck, &id);
    let (code, answer) = send(&deck, &id);
    assert_eq!((code, &answer["submitted"]), (0, &true.into()));
    assert_eq!(
        (deck.typed(&id).as_str(), screen(&deck, &id)),
        ("", first.clone())
    );
    assert_eq!(send(&deck, &id).1["delivery"], "no_evidence");
    assert_eq!(screen(&deck, &id), first);
    let typed = deck.typed(&id);
    assert_eq!(typed, format!("report status?{}", "\r".repeat(18)));
    let (code, answer) = send(&deck, &id);
    assert_eq!((code, &answer["code"]), (1, &"INVALID_OPERATION".into()));
    assert_eq!(answer["delivery"], "send_failed");
    let (code, answer) = send(&deck, &id);
    assert_eq!((code, answer.get("delivery")), (1, None));
    assert_eq!(deck.typed(&id), typed);
    for _ in 0..2 {
        assert_eq!(send(&deck, &id).1["delivery"], "submitted");
    }
    assert!(deck.answered(&id).is_empty());
    let row = deck.row("drawn").file("after_send", screens::busy());
    let id = row.add();
    send(&deck, &id);
    assert_eq!(screen(&deck, &id), screens::busy());
    let flags = &deck.sends_to(&id)[0].flags;
    assert_eq!(
        (flags.join(" "), deck.sends().len()),
        ("--no-wait --json".to_owned(), 7)
    );
    assert_eq!(deck.sends()[0].message, MESSAGE);
}

#[test]
fn screens_that_change_between_two_looks() {
    let deck = Deck::new();
    let [free, dialog] = [free_composer("idle"), screens::dialog()];
    let id = deck.row("x").panes(&[&free, &free, &dialog]).add();
    assert_eq!(screen(&deck, &id), free);
    assert_eq!(screen(&deck, &id), free);
    // It is up when the send types, although no reading has shown it.
    send(&deck, &id);
    assert_eq!(deck.answered(&id), ["1. Yes"]);
    let after = screen(&deck, &id);
    assert!(after.contains("❯\u{a0}1. Yes") && !after.contains("Esc to cancel"));
    assert_eq!(screen(&deck, &id), after);

    let id = deck.row("y").at_send(&dialog).add();
    let before = screen(&deck, &id);
    assert_eq!(screen(&deck, &id), before);
    send(&deck, &id);
    assert_eq!(deck.answered(&id), ["1. Yes"]);
    send(&deck, &id);
    assert_eq!(deck.answered(&id).len(), 1);

    let id = deck.row("z").file("pane_fails", "hung").add();
    let output = deck.agent_deck(&["session", "output", &id, "--pane", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, recording("output-pane-tmux-hung.json"));
    let listed = String::from_utf8(deck.agent_deck(&["list", "--json"]).stdout).unwrap();
    assert!(!listed.contains("\"status\": \"error\""), "{listed}");
}

#[test]
fn sends_take_their_time() {
    let deck = Deck::new();
    deck.sends_take(100);
    let id = deck.row("x").add();
    let begin = Instant::now();
    send(&deck, &id);
    assert!(begin.elapsed() >= Duration::from_millis(100));
    // Half of it is over when something is typed: one that is killed then has
    // typed all the same, and one that is killed before has not.
    deck.set(&id, "send_result", "slow:200000");
    deck.unset(&id, "typed");
    let mut slow = std::process::Command::new(deck.file("bin/agent-deck"))
        .args(["session", "send", &id, MESSAGE, "--json"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("its start", || (deck.sends().len() == 2).then_some(()));
    slow.kill().unwrap();
    slow.wait().unwrap();
    assert_eq!(deck.typed(&id), "");
    assert_eq!(deck.ended().len(), 1);
}

#[test]
fn any_screen_is_printed_byte_by_byte() {
    let deck = Deck::new();
    for state in ["idle", "perm"] {
        let name = &format!("screens/output-pane-{state}.json");
        let recorded: Value = serde_json::from_slice(&recording(name)).unwrap();
        let of = |key: &str| recorded[key].as_str().unwrap();
        let row = deck.row(of("session_title")).id(of("session_id"));
        let id = row.pane(of("content")).add();
        let output = deck.agent_deck(&["session", "output", &id, "--pane", "--json"]);
        assert_eq!(output.stdout, recording(name), "{name}");
    }
    let id = deck.row("all").add();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings/screens");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_none_or(|end| end != "ansi") {
            continue;
        }
        let bytes = std::fs::read(file).unwrap();
        deck.set(&id, "pane", &bytes);
        assert_eq!(screen(&deck, &id).into_bytes(), bytes);
        seen += 1;
    }
    assert!(seen >= 90, "{seen}");
}
