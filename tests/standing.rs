//! What `status` and `explain` say of the ladder: where a child stands, what is
//! in its way, what waits for its parent. They change nothing. Does not know how
//! any of it is decided.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "common/asked.rs"]
mod asked;
mod common;
#[path = "common/past.rs"]
mod past;
mod scene;
#[path = "scene/waiting.rs"]
mod waiting;

use asked::{contains, fits_80_columns, json, said};
use common::screens::dialog;
use common::{Deck, write};
use past::{once, pass};
use scene::flag;
use serde_json::{Value, json as value};
use waiting::{DEDUP, THRESHOLD, after, child, until_asked};

/// What a command says, in lines that fit.
fn page(deck: &Deck, args: &[&str], parts: &[&str]) -> String {
    let (_, text) = said(deck, args);
    fits_80_columns(&text);
    contains(&text, parts);
    text
}

/// The row of a session in `status --json`.
fn of(status: &Value, id: &str) -> Value {
    let rows = status["sessions"].as_array().unwrap();
    let row = rows.iter().find(|row| row["id"] == *id);
    row.cloned().unwrap()
}

/// A conductor at work, which hears nothing for now.
fn busy_conductor(deck: &Deck) -> String {
    let ops = deck.conductor("ops").add();
    deck.set(&ops, "printed", "running");
    ops
}

#[test]
fn children_at_work_are_no_news() {
    let deck = Deck::new();
    let ops = deck.conductor("ops").add();
    for title in ["one", "two"] {
        child(&deck, title, &ops).status("running").add();
    }
    once(&deck).silent();
    let (code, text) = said(&deck, &["status"]);
    assert_eq!(code, 0, "{text}");
    assert!(
        !text.contains("rung") && !text.contains("PARENTS"),
        "{text}"
    );
    page(
        &deck,
        &["status", "--all"],
        &["PARENTS conductor-ops (", "batch 1 of its children: 2 open"],
    );
    let status = json(&deck, &["status", "--json"]);
    assert_eq!(status["parents"][0]["batch"]["number"], 1);
    assert_eq!(
        status["parents"][0]["batch"]["members"][1]["ending"],
        "open"
    );
    let told = json(&deck, &["explain", "one", "--json"]);
    assert!(told["ladder"].is_null(), "{told}");
}

#[test]
fn one_that_was_asked_stands_on_its_rung() {
    let deck = Deck::new();
    let ops = deck.conductor("ops").add();
    let kid = child(&deck, "fix-the-tests", &ops).add();
    once(&deck).silent();
    pass(&deck, THRESHOLD);
    until_asked(&deck, &kid, 1);
    let parts = [
        "rung nudged: asked 1 of 3 times; it is asked again in",
        "at the earliest",
    ];
    page(&deck, &["status"], &parts);
    page(&deck, &["explain", &kid], &parts);
    let ladder = of(&json(&deck, &["status", "--json"]), &kid)["ladder"].clone();
    assert_eq!(ladder["rung"], "nudged");
    assert_eq!(
        (&ladder["nudges"], &ladder["nudges_most"]),
        (&value!(1), &value!(3))
    );
    assert_eq!(ladder["next"]["what"], "it is asked again");
    assert!(
        ladder["gate"].is_null() && ladder["death"].is_null(),
        "{ladder}"
    );
    // Whoever never leaves the first rung.
    deck.setting("WAITING_PATROL_MAX_NUDGES", "0");
    once(&deck).silent();
    page(
        &deck,
        &["explain", &kid],
        &["rung nudged: asked 1 time, without a limit"],
    );
    // The last one leads to its parent, or to the program that is asked first.
    deck.setting("WAITING_PATROL_MAX_NUDGES", "1");
    once(&deck).silent();
    page(&deck, &["explain", &kid], &["it is handed over in"]);
    deck.setting("TRIAGE_CMD", "/opt/triage");
    once(&deck).silent();
    page(&deck, &["explain", &kid], &["triage is asked in"]);
}

#[test]
fn a_decision_and_the_notice_that_waits_are_shown() {
    let deck = Deck::new();
    let ops = busy_conductor(&deck);
    let kid = child(&deck, "fix-the-tests", &ops).pane(dialog()).add();
    once(&deck).silent();
    let parts = ["rung gated", "a decision is on its screen", "not told yet"];
    page(&deck, &["explain", &kid], &parts);
    after(&deck, THRESHOLD).silent();
    page(
        &deck,
        &["status"],
        &[
            "rung gated: asked 0 of 3 times",
            "told 0 s ago; nothing is typed into it",
            "PARENTS conductor-ops (",
            "gate waits to be told for 0 s: child \"fix-the-tests\"",
            "not told yet: the parent is at work; it waits for",
        ],
    );
    page(
        &deck,
        &["explain", "conductor-ops"],
        &[
            "children gate waits to be told",
            "the parent is at work",
            "guardrails, notice",
            "yes notice-interval",
        ],
    );
    let status = json(&deck, &["status", "--json"]);
    let gate = &of(&status, &kid)["ladder"]["gate"];
    assert!(
        gate["since"].is_string() && gate["told"].is_string(),
        "{gate}"
    );
    let parent = &status["parents"][0];
    assert_eq!(
        (&parent["id"], &parent["why"]),
        (&value!(ops), &value!("the parent is at work"))
    );
    let notice = &parent["notices"][0];
    assert_eq!(
        (&notice["kind"], &notice["child"]),
        (&value!("gate"), &value!(kid))
    );
    assert_eq!(notice["sending"], false);
    // At rest, with a dialog of its own.
    deck.unset(&ops, "printed");
    deck.set(&ops, "pane", dialog());
    page(
        &deck,
        &["explain", &ops],
        &["nothing may be typed to it; its screen shows now:"],
    );
    let told = json(&deck, &["explain", &ops, "--json"]);
    assert!(!told["guard_notice"].as_array().unwrap().is_empty());
    assert!(!told["children_text"].as_array().unwrap().is_empty());
    assert_eq!(told["guard_stop"], value!([]));
}

#[test]
fn a_stop_is_explained_where_it_is_allowed() {
    let deck = Deck::new();
    let ops = deck.conductor("ops").add();
    let kid = child(&deck, "fix-the-tests", &ops).add();
    once(&deck).silent();
    let (_, text) = said(&deck, &["explain", &kid]);
    assert!(!text.contains("guardrails, stop"), "{text}");
    deck.setting("WAITING_PATROL_TERMINATE", "1");
    once(&deck).silent();
    page(
        &deck,
        &["explain", &kid],
        &[
            "guardrails, stop",
            "no opt-in WAITING_PATROL_TERMINATE set, autostop file not set",
            "no nudges it was not handed over after 3 nudges",
        ],
    );
}

#[test]
fn a_death_is_shown() {
    let deck = Deck::new();
    let ops = busy_conductor(&deck);
    let kid = child(&deck, "fix-the-tests", &ops).add();
    once(&deck).silent();
    deck.unset(&kid, "pane");
    deck.unset(&kid, "substate");
    once(&deck).silent();
    for _ in 0..3 {
        after(&deck, 31).silent();
    }
    page(
        &deck,
        &["status"],
        &["rung dead", "reads dead for", "confirmed"],
    );
    let death = of(&json(&deck, &["status", "--json"]), &kid)["ladder"]["death"].clone();
    assert_eq!(death["confirmed"], true);
    // It lives again: its episode ends in five minutes.
    deck.set(&kid, "pane", common::screens::free_composer("● Here."));
    deck.set(&kid, "substate", "running");
    deck.set(&kid, "status", "running");
    after(&deck, DEDUP).silent();
    page(&deck, &["explain", &kid], &["its episode ends in"]);
}

/// Changes what is remembered of one.
fn remember(deck: &Deck, id: &str, change: impl FnOnce(&mut Value)) {
    let path = deck.watchdog_dir().join("state.json");
    let mut state: Value = serde_json::from_str(&deck.read("state.json")).unwrap();
    let children = state["state"]["children"].as_array_mut().unwrap();
    change(
        children
            .iter_mut()
            .find(|child| child["id"] == *id)
            .unwrap(),
    );
    write(&path, state.to_string());
}

#[test]
fn what_follows_on_the_upper_rungs_counts_from_the_last_deed() {
    let deck = Deck::new();
    let ops = busy_conductor(&deck);
    let kid = child(&deck, "fix-the-tests", &ops).add();
    deck.setting("WAITING_PATROL_TERMINATE", "1");
    deck.setting("TRIAGE_CMD", "/opt/triage");
    once(&deck).silent();
    pass(&deck, THRESHOLD);
    until_asked(&deck, &kid, 1);
    let before = |part: u64| value!({ "at": (common::now() - part) * 1000 });
    remember(&deck, &kid, |child| {
        child["rung"] = value!("triage");
        child["triaged"] = before(3000);
        child["last_nudge"] = before(600);
        child["extends"] = value!(1);
    });
    let parts = [
        "given more time 1 of 3 times",
        "triage is asked again in 49 min",
    ];
    page(&deck, &["explain", &kid], &parts);
    remember(&deck, &kid, |child| {
        child["last_nudge"] = before(3000);
        child["retry_due"] = value!(true);
    });
    page(
        &deck,
        &["explain", &kid],
        &["it is asked once more in 9 min"],
    );
    // The last rung follows only where both opt-ins are given.
    remember(&deck, &kid, |child| {
        child["rung"] = value!("handed-over");
        child["nudges"] = value!(3);
        child["told"] = before(600);
    });
    let alone = page(&deck, &["explain", &kid], &["told of it 10 min ago"]);
    assert!(!alone.contains("it is stopped in"), "{alone}");
    flag(&deck, "autostop", &kid);
    page(&deck, &["explain", &kid], &["it is stopped in 49 min"]);
}

#[test]
fn a_conductor_with_a_dialog_is_not_said_to_be_asked() {
    let deck = Deck::new();
    let ops = deck.conductor("ops").pane(dialog()).add();
    // Five minutes after its start a dialog of that is looked for.
    deck.set(&ops, "created", (common::now() - 300).to_string());
    once(&deck).silent();
    let text = page(&deck, &["explain", &ops], &["rung gated"]);
    assert!(!text.contains("asked 0"), "{text}");
}

#[test]
fn a_parent_that_was_told_says_when() {
    let deck = Deck::new();
    let ops = deck.conductor("ops").add();
    child(&deck, "fix-the-tests", &ops).pane(dialog()).add();
    once(&deck).silent();
    pass(&deck, THRESHOLD);
    waiting::until(&deck, "a line to the parent", || {
        !deck.sends_to(&ops).is_empty()
    });
    page(&deck, &["explain", &ops], &["children last written to"]);
}
