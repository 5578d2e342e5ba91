//! Nothing is ever typed but into a free input box: scenarios of dialogs,
//! drafts, strange screens, and of messages that went wrong. The real binary on
//! the stand-in deck; the whole ledger is compared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/past.rs"]
mod past;
mod scene;
#[path = "scene/waiting.rs"]
mod waiting;

use std::fs;
use std::path::Path;

use common::{Deck, Row, free_composer, screens};
use past::{once, pass};
use rustix::process::{Pid, Signal, kill_process};
use scene::{acts, count, flag, pane, show};
use waiting::{
    DEDUP, THRESHOLD, TYPED, after, child, parent, question, ten_minutes_on, texts, told, until,
    until_asked,
};

/// Recorded screens of the real agent that ask for a decision: "silent" in the
/// table of the recordings, with an option to pick, or a panel.
const DECISIONS: [&str; 39] = [
    "apikey-confirm-120x40",
    "ask-120x40",
    "ask-200x50",
    "ask-60x40",
    "ask-80x24",
    "ask-multi-120x40",
    "mcp-approval-120x40",
    "mcp-approval-60x40",
    "panel-config-120x40",
    "panel-help-120x40",
    "panel-login-120x40",
    "panel-model-120x40",
    "panel-model-80x24",
    "panel-resume-120x40",
    "panel-rewind-120x40",
    "perm-bash-120x40",
    "perm-bash-200x50",
    "perm-bash-60x40",
    "perm-bash-80x24",
    "perm-bash-rm-120x40",
    "perm-bash-second-120x40",
    "perm-edit-120x40",
    "perm-edit-60x40",
    "perm-edit-80x24",
    "perm-fetch-120x40",
    "perm-fetch-60x40",
    "perm-mcp-120x40",
    "perm-write-120x40",
    "plan-approval-120x40",
    "plan-approval-200x50",
    "plan-approval-60x40",
    "plan-approval-80x24",
    "shortcuts-120x40",
    "slash-menu-120x40",
    "at-menu-120x40",
    "panel-history-120x40",
    "panel-transcript-120x40",
    "trust-120x40",
    "trust-second-120x40",
];

/// Those on which nothing may be typed for another reason: "silent" or "busy".
const SILENT: [&str; 31] = [
    "after-send-apikey-120x40",
    "after-send-ask-120x40",
    "after-send-mcp-approval-120x40",
    "after-send-perm-bash-120x40",
    "after-send-perm-bash-second-120x40",
    "after-send-plan-approval-120x40",
    "after-send-trust-120x40",
    "after-send-work-queued-120x40",
    "answer-ctrl-z-120x40",
    "answer-esc-120x40",
    "bash-mode-120x40",
    "draft-120x40",
    "draft-60x40",
    "draft-80x24",
    "draft-after-turn-120x40",
    "draft-multiline-120x40",
    "draft-multiline-60x40",
    "err-401-120x40",
    "err-401-late-120x40",
    "err-403-120x40",
    "err-429-120x40",
    "err-429-late-120x40",
    "err-credit-120x40",
    "err-limit-120x40",
    "err-refused-120x40",
    "first-run-no-network",
    "work-bash-120x40",
    "work-draft-120x40",
    "work-interrupted-120x40",
    "work-queued-120x40",
    "work-stream-120x40",
];

/// Busy as well, with nothing in its input box.
const THINKING: &str = "work-think-120x40";

/// A suggested prompt is "no danger", and agent-deck would take it for a draft:
/// silence too.
const SUGGESTED: [&str; 2] = ["idle-suggestion-120x40", "idle-suggestion-80x24"];

/// "no" and "no danger" in the table: these are asked.
const FREE: [&str; 17] = [
    "after-long-bg-120x40",
    "after-send-bash-mode-120x40",
    "err-529-120x40",
    "err-drop-120x40",
    "err-dropall-late-120x40",
    "err-refused-late-120x40",
    "idle-accept-edits-120x40",
    "idle-background-120x40",
    "idle-fresh-120x40",
    "idle-plan-mode-120x40",
    "idle-turn-120x40",
    "idle-turn-120x40.later",
    "idle-turn-200x50",
    "idle-turn-60x40",
    "idle-turn-80x24",
    "idle-turn-long-120x40",
    "idle-turn-long-120x40.later",
];

/// A deck with a child on each of these screens, which all have stood for more
/// than ten minutes.
fn on_screens<'a, S: AsRef<[u8]>>(
    screens: impl IntoIterator<Item = (&'a str, S)>,
) -> (Deck, Vec<(&'a str, String)>) {
    let deck = Deck::new();
    let parent = parent(&deck);
    let one = |(name, screen)| (name, child(&deck, name, &parent).pane(screen).add());
    let ids = screens.into_iter().map(one).collect();
    ten_minutes_on(&deck);
    (deck, ids)
}

/// A recorded screen, by its name.
fn recorded(name: &'static str) -> (&'static str, Vec<u8>) {
    (name, screens::recorded(name))
}

/// Runs until each of these children was told of; not one byte may reach them.
fn only_told(deck: &Deck, ids: &[(&str, String)]) {
    let known = |id: &String| told(deck).iter().any(|episode| episode.ends_with(&**id));
    until(deck, "word of all", || ids.iter().all(|(_, id)| known(id)));
    // For hours.
    for _ in 0..2 {
        after(deck, DEDUP).silent();
    }
    for (name, id) in ids {
        assert_eq!(deck.typed(id), "", "{name}");
    }
    // Much was read, and nothing else was called for.
    const READ: [&str; 2] = [" session output ", " session show "];
    let read = |act: &String| READ.iter().any(|word| act.contains(word));
    let rest: Vec<String> = acts(deck).into_iter().filter(|act| !read(act)).collect();
    assert_eq!(rest, [""; 0]);
    // Each is told once.
    for (name, id) in ids {
        let mut about = told(deck);
        about.retain(|episode| episode.ends_with(id.as_str()));
        assert_eq!(about.len(), 1, "{name}: {about:?}");
    }
}

#[test]
fn every_recorded_screen_is_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/screens");
    let names = fs::read_dir(folder).unwrap().filter_map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name.strip_suffix(".ansi").map(str::to_owned)
    });
    let mut there: Vec<String> = names.collect();
    there.sort();
    let here = DECISIONS
        .iter()
        .chain(&SILENT)
        .chain(&SUGGESTED)
        .chain(&FREE);
    let mut here: Vec<&str> = here.copied().chain([THINKING]).collect();
    here.sort_unstable();
    assert_eq!(here, there);
}

#[test]
fn never_answer_a_prompt() {
    let (deck, ids) = on_screens(DECISIONS.map(recorded));
    only_told(&deck, &ids);
    let decisions = told(&deck)
        .into_iter()
        .filter(|e| e.starts_with("decision:"));
    // The other five are menus and pagers.
    assert_eq!(decisions.count(), DECISIONS.len() - 5);
}

#[test]
fn unknown_screen_means_silence() {
    let rule = "─".repeat(80);
    let box_in = |foot: &str| format!("● Done.\n\n{rule}\n❯\u{a0}\n{foot}");
    let screens = [
        ("empty", String::new()),
        ("plain", screens::plain()),
        ("busy", screens::busy()),
        ("shell", screens::shell_mode("")),
        ("suggestion", screens::suggestion("run the tests")),
        ("no lower rule", box_in("  ? for shortcuts\n")),
        (
            "a menu below",
            box_in(&format!("{rule}\n  /help\n  /model\n  /init\n")),
        ),
        (
            "a tall status line",
            box_in(&format!("{rule}\n  a\n  b\n  c\n  d\n")),
        ),
        (
            "new words",
            "Ĉu vi permesas tion?\n\n ▸ Jes\n   Ne\n".to_owned(),
        ),
        (
            "an old prompt",
            format!("● Done.\n\n{rule}\n❯ old\n{rule}\n  ? for shortcuts\n"),
        ),
    ];
    let (deck, ids) = on_screens(screens);
    only_told(&deck, &ids);
}

#[test]
fn draft_is_not_touched() {
    let names = SILENT.into_iter().chain(SUGGESTED).chain([THINKING]);
    let drafts = [
        ("a draft", screens::draft("please also").into_bytes()),
        (
            "a coloured draft",
            screens::coloured_draft("please also").into_bytes(),
        ),
    ];
    let (deck, ids) = on_screens(names.map(recorded).chain(drafts));
    only_told(&deck, &ids);
}

#[test]
fn every_free_recorded_screen_is_asked() {
    let (deck, ids) = on_screens(FREE.map(recorded));
    deck.setting("SAFETY_POLL_S", "1");
    let mut daemon = deck.daemon();
    for (_, id) in &ids {
        deck.wait_for_typed(id);
    }
    assert!(daemon.stop().success());
    for (name, id) in &ids {
        assert_eq!(deck.typed(id), TYPED, "{name}");
        let mut own = acts(&deck);
        own.retain(|act| act.contains(id.as_str()) && act.contains(" send "));
        assert_eq!(own, [waiting::send(id)], "{name}");
    }
}

#[test]
fn first_run_dialog_is_no_crash() {
    let deck = Deck::new();
    let id = child(&deck, "new", &parent(&deck))
        .pane(screens::trust())
        .add();
    flag(&deck, "autorestart", &id);
    ten_minutes_on(&deck);
    for _ in 0..3 {
        after(&deck, 60).silent();
    }
    assert_eq!(acts(&deck), [pane(&id)]);
    assert_eq!(
        (deck.typed(&id), deck.read("restart.log")),
        ("".to_owned(), "".to_owned())
    );
    assert_eq!(told(&deck), [format!("decision:{id}")]);
}

/// A child whose screens, one a reading, are these; read once, and ten minutes on.
fn moving(deck: &Deck, dress: impl FnOnce(Row<'_>) -> Row<'_>) -> String {
    let id = dress(child(deck, "moving", &parent(deck))).add();
    once(deck).silent();
    pass(deck, THRESHOLD);
    id
}

#[test]
fn a_dialog_that_opens_before_the_last_look_is_not_answered() {
    let deck = Deck::new();
    let free = free_composer("● Done.");
    let screens = [free.clone(), free, screens::dialog()];
    let id = moving(&deck, |row| row.panes(&screens));
    once(&deck).silent();
    assert_eq!(acts(&deck), [pane(&id), show(&id), pane(&id)]);
    // The dialog is a new screen: told when it has stood for ten minutes.
    once(&deck).silent();
    assert_eq!(told(&deck), [""; 0]);
    for _ in 0..3 {
        after(&deck, THRESHOLD).silent();
    }
    assert_eq!(told(&deck), [format!("decision:{id}")]);
    assert_eq!((deck.sends(), deck.typed(&id)), (vec![], "".to_owned()));
    assert_eq!(deck.answered(&id), [""; 0]);
}

/// It was told loudly, once, in these words; whatever is on its screen later,
/// nothing more is typed in this episode.
fn told_loudly_and_left_alone(deck: &Deck, id: &str, words: &str) {
    let episode = format!("nudge-went-wrong:{id}");
    let typed = deck.typed(id);
    for hour in 0..2 {
        deck.set(id, "pane", free_composer(&format!("● Hour {hour}.")));
        once(deck).silent();
        after(deck, DEDUP).silent();
    }
    let log = deck.read("escalations.log");
    assert_eq!(
        count(deck, "escalations.log", &[&episode, "\"critical\""]),
        1,
        "{log}"
    );
    assert!(texts(deck, &episode)[0].contains(words), "{log}");
    assert_eq!(deck.typed(id), typed);
    assert_eq!(deck.sends().len(), 1);
    // Not before the episode is over: it was at work for five minutes.
    deck.set(id, "printed", "running");
    once(deck).silent();
    after(deck, 301).silent();
    deck.unset(id, "printed");
    once(deck).silent();
    pass(deck, THRESHOLD);
    deck.unset(id, "send_result");
    until_asked(deck, id, 2);
    assert_eq!(deck.typed(id), format!("{typed}{TYPED}"));
}

#[test]
fn a_dialog_that_opens_behind_the_last_look_is_told_loudly() {
    let deck = Deck::new();
    let id = moving(&deck, |row| row.at_send(screens::dialog()));
    until_asked(&deck, &id, 1);
    assert_eq!(acts(&deck), question(&id));
    assert_eq!(deck.answered(&id), ["1. Yes"]);
    assert_eq!(told(&deck), [format!("nudge-went-wrong:{id}")]);
    told_loudly_and_left_alone(
        &deck,
        &id,
        "a dialog was on its screen, and the message answered it",
    );
    assert_eq!(deck.answered(&id).len(), 1);
}

#[test]
fn text_left_in_the_composer() {
    let deck = Deck::new();
    let id = moving(&deck, |row| row.sends(&["typed_not_submitted"]));
    until_asked(&deck, &id, 1);
    assert_eq!(told(&deck), [format!("nudge-went-wrong:{id}")]);
    told_loudly_and_left_alone(&deck, &id, "text was left in its input box");
}

#[test]
fn same_screen_after_nudge() {
    let deck = Deck::new();
    let id = moving(&deck, |row| row.sends(&["nothing"]));
    until_asked(&deck, &id, 1);
    after(&deck, 8).silent();
    assert_eq!(told(&deck), [format!("nudge-went-wrong:{id}")]);
    after(&deck, DEDUP).silent();
    assert_eq!(deck.sends().len(), 1);
    told_loudly_and_left_alone(&deck, &id, "its screen stayed as it was");
}

#[test]
fn refused_send_stays_due() {
    for refusal in ["db-error", "not-running"] {
        let deck = Deck::new();
        let id = moving(&deck, |row| row.sends(&[refusal]));
        until_asked(&deck, &id, 1);
        after(&deck, 250).silent();
        assert_eq!(acts(&deck), [question(&id), vec![pane(&id)]].concat());
        pass(&deck, 51);
        until_asked(&deck, &id, 2);
        deck.unset(&id, "send_result");
        pass(&deck, 301);
        until_asked(&deck, &id, 3);
        assert_eq!(deck.typed(&id), TYPED, "{refusal}");
        // Written down once, and what was not typed does not count.
        assert_eq!(count(&deck, "watchdog.log", &[&id, "again every 5 min"]), 1);
        assert_eq!(count(&deck, "watchdog.log", &[&id, "(nudge 1 of 3)"]), 1);
        assert_eq!(told(&deck), [""; 0]);
    }
}

#[test]
fn what_an_agent_says_of_itself_forbids_and_never_permits() {
    let deck = Deck::new();
    deck.start_tmux();
    let parent = parent(&deck);
    let says = |status: &str, screen: String| {
        let row = child(&deck, status, &parent).own_status(status);
        let id = row.pane(screen).add();
        deck.start_agent(&id);
        if !status.is_empty() {
            deck.says(&id, status);
        }
        id
    };
    let free = || free_composer("● Done.");
    let idle = says("idle", free());
    let unheard = says("", free());
    let dialog = says("idle ", screens::dialog());
    let silent = ["busy", "shell", "waiting permission prompt"].map(|status| says(status, free()));
    let stopped = says("idle  ", free());
    let pid = i32::try_from(deck.agent_pid(&stopped).unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::STOP).unwrap();
    ten_minutes_on(&deck);
    for asked in [&idle, &unheard] {
        until_asked(&deck, asked, 1);
    }
    let known = |id: &String| told(&deck).iter().any(|episode| episode.ends_with(&**id));
    let left = [&silent[0], &silent[1], &silent[2], &stopped, &dialog];
    until(&deck, "word of the others", || {
        left.iter().all(|id| known(id))
    });
    assert_eq!(
        (deck.typed(&idle), deck.typed(&unheard)),
        (TYPED.to_owned(), TYPED.to_owned())
    );
    for id in left {
        assert_eq!(deck.typed(id), "");
    }
    assert_eq!(deck.sends().len(), 2);
}

#[test]
fn limited_and_logged_out_children_are_not_asked() {
    let deck = Deck::new();
    let parent = parent(&deck);
    let ids = ["usage-limit", "auth-401"].map(|substate| {
        let row = child(&deck, substate, &parent).prints("waiting");
        row.file("substate", substate).add()
    });
    ten_minutes_on(&deck);
    let known = |id: &String| told(&deck).contains(&format!("held:{id}"));
    until(&deck, "word of both", || ids.iter().all(known));
    for _ in 0..3 {
        after(&deck, DEDUP).silent();
    }
    assert_eq!((deck.sends(), told(&deck).len()), (vec![], 2));
}

#[test]
fn unreadable_pane_does_not_age() {
    let deck = Deck::new();
    let id = child(&deck, "hidden", &parent(&deck)).add();
    once(&deck).silent();
    after(&deck, 250).silent();
    deck.set(&id, "pane_fails", "no such pane");
    once(&deck).silent();
    after(&deck, 500).silent();
    deck.unset(&id, "pane_fails");
    once(&deck).silent();
    after(&deck, 250).silent();
    assert_eq!(acts(&deck), [pane(&id)]);
    pass(&deck, 101);
    until_asked(&deck, &id, 1);
    assert_eq!(acts(&deck), question(&id));
    assert_eq!(told(&deck), [""; 0]);
}

#[test]
fn pane_gone_is_unreachable() {
    let deck = Deck::new();
    let id = child(&deck, "gone", &parent(&deck))
        .dead()
        .prints("waiting")
        .add();
    once(&deck).silent();
    after(&deck, 500).silent();
    assert_eq!(told(&deck), [""; 0]);
    for _ in 0..3 {
        after(&deck, 101).silent();
    }
    assert_eq!(told(&deck), [format!("unreachable:{id}")]);
    assert_eq!(acts(&deck), [pane(&id)]);
    deck.set(&id, "pane", free_composer("● Back."));
    once(&deck).silent();
    let last = texts(&deck, &format!("unreachable:{id}")).pop().unwrap();
    assert!(last.contains("can be reached again"), "{last}");
}
