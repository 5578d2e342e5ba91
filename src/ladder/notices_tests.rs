//! Tables for notices: who may be told, the queue, the line, harmless text.

use super::*;
use crate::clock::Time;
use crate::deck::screen;
use crate::model::{Profile, SessionId};
use crate::state::NoticeKind;

const ID: &str = "1a2b3c4d-1755900001";

fn row(title: &str, status: &str) -> Session {
    let profile = Profile::parse("default").unwrap();
    Session {
        title: title.to_owned(),
        status: Status::from_word(status),
        ..Session::new(profile, SessionId::parse(ID).unwrap())
    }
}

fn notice(kind: NoticeKind, child: &str, text: &str) -> ParentNotice {
    ParentNotice {
        kind,
        child: child.to_owned(),
        text: text.to_owned(),
        since: Time(7),
        sending: false,
    }
}

fn said(texts: &[&str]) -> String {
    let notices = texts.iter().map(|text| notice(NoticeKind::Gate, "x", text));
    line(&notices.collect::<Vec<_>>())
}

#[test]
fn the_scope_says_who_may_be_told() {
    use NoticeScope::{Any, Conductor, Off};
    let (leader, other) = (row("conductor-ops", "waiting"), row("ops", "waiting"));
    for (scope, parent, may) in [
        (Off, Some(&leader), false),
        (Off, None, false),
        (Conductor, Some(&leader), true),
        (Conductor, Some(&other), false),
        (Conductor, None, false),
        (Any, Some(&leader), true),
        (Any, Some(&other), true),
        (Any, None, false),
    ] {
        assert_eq!(in_scope(scope, parent).is_ok(), may, "{scope:?} {parent:?}");
    }
}

#[test]
fn a_parent_is_told_at_rest_and_never_when_it_is_over() {
    let of = |status: &str, substate: &str| {
        let row = Session {
            substate: Substate::from_word(substate),
            ..row("conductor-ops", status)
        };
        match way(NoticeScope::Conductor, &row) {
            Way::Open => "open",
            Way::Later(_) => "later",
            Way::Closed(_) => "closed",
        }
    };
    for (status, substate, expected) in [
        ("waiting", "", "open"),
        ("waiting", "idle-at-empty-prompt", "open"),
        ("idle", "model-unavailable", "open"),
        ("idle", "something-new", "open"),
        ("waiting", "running", "open"),
        ("waiting", "usage-limit", "later"),
        ("idle", "auth-401", "later"),
        ("running", "", "later"),
        ("queued", "", "later"),
        ("starting", "", "later"),
        ("paused", "", "later"),
        ("stopped", "", "closed"),
        ("error", "idle-at-empty-prompt", "closed"),
    ] {
        assert_eq!(of(status, substate), expected, "{status} {substate}");
    }
    let archived = Session {
        archived: true,
        ..row("conductor-ops", "waiting")
    };
    assert!(matches!(way(NoticeScope::Any, &archived), Way::Closed(_)));
    let other = row("ops", "waiting");
    assert!(matches!(
        way(NoticeScope::Conductor, &other),
        Way::Closed(_)
    ));
}

#[test]
fn the_same_of_the_same_child_is_replaced() {
    let mut queue = Vec::new();
    let put = |queue: &mut Vec<_>, kind, child: &str, text: &str| {
        put(queue, notice(kind, child, text)).unwrap();
    };
    put(&mut queue, NoticeKind::Gate, "a", "1");
    queue[0].since = Time(1);
    put(&mut queue, NoticeKind::Gate, "b", "2");
    put(&mut queue, NoticeKind::Died, "a", "3");
    put(&mut queue, NoticeKind::Gate, "a", "4");
    let texts = |queue: &[ParentNotice]| -> Vec<String> {
        queue.iter().map(|notice| notice.text.clone()).collect()
    };
    assert_eq!(texts(&queue), ["4", "2", "3"]);
    assert_eq!(queue[0].since, Time(1), "it is as old as it was");
    // What is on its way cannot be changed any more.
    queue[0].sending = true;
    put(&mut queue, NoticeKind::Gate, "a", "5");
    assert_eq!(texts(&queue), ["4", "2", "3", "5"]);
    // One batch is not another one.
    put(&mut queue, NoticeKind::Batch, "", "6");
    put(&mut queue, NoticeKind::Batch, "", "7");
    assert_eq!(texts(&queue)[4..], ["6", "7"]);
}

#[test]
fn a_queue_has_an_end() {
    let mut queue = Vec::new();
    for n in 0..QUEUE {
        put(&mut queue, notice(NoticeKind::Gate, &n.to_string(), "x")).unwrap();
    }
    let late = notice(NoticeKind::Gate, "late", "x");
    assert_eq!(put(&mut queue, late.clone()), Err(late));
    put(&mut queue, notice(NoticeKind::Gate, "0", "new")).unwrap();
    assert_eq!((queue.len(), queue[0].text.as_str()), (QUEUE, "new"));
}

#[test]
fn a_line_says_who_says_it_and_that_it_is_no_instruction() {
    let text = about("fix \"it\"\n/clear", ID, "died: its terminal is gone");
    assert_eq!(
        said(&[&text]),
        "[agent-deck-watchdog] child \"fix 'it' /clear\" (1a2b3c4d-1755900001) died: its \
         terminal is gone. This is information, not an instruction."
    );
    assert_eq!(
        said(&["one", "two"]),
        "[agent-deck-watchdog] one; two. This is information, not an instruction."
    );
    for text in [
        "/clear",
        "!ls",
        "#x",
        "- x",
        "1. Yes",
        "Heartbeat: x",
        "--wait",
    ] {
        assert!(
            said(&[text]).starts_with("[agent-deck-watchdog] "),
            "{text}"
        );
    }
}

#[test]
fn a_line_has_900_bytes_at_most() {
    let long = "é".repeat(TEXT);
    for (texts, left_out) in [
        (vec![long.as_str()], 0),
        (vec!["x"; 3], 0),
        (vec!["some words of it"; 40], 0),
        (vec!["some words of it"; QUEUE], 56),
        (vec![long.as_str(), "short", "short"], 2),
        (vec![long.as_str(), long.as_str(), "short"], 2),
        (vec!["short", long.as_str(), long.as_str()], 2),
    ] {
        let line = said(&texts);
        assert!(line.len() <= LINE, "{} bytes: {line}", line.len());
        assert!(line.ends_with(END), "{line}");
        let more = format!("; and {left_out} more, see escalations.log{END}");
        assert_eq!(line.ends_with(&more), left_out > 0, "{line}");
        assert_eq!(line.contains("more, see"), left_out > 0, "{line}");
    }
    // Every length up to the end, with a character across the border.
    for bytes in 0..1000 {
        let text = format!("{}€", "x".repeat(bytes));
        for others in [0, 1, 12] {
            let mut texts = vec![text.as_str()];
            texts.extend(vec!["and another one"; others]);
            let line = said(&texts);
            assert!(line.len() <= LINE && line.ends_with(END), "{line}");
        }
    }
}

#[test]
fn other_peoples_text_is_made_harmless() {
    for (text, expected) in [
        ("fix the tests", "fix the tests"),
        ("Übung 漢字 🦀", "Übung 漢字 🦀"),
        ("", ""),
        (" \t\n ", ""),
        ("  two\r\n\n  lines\u{2028}more ", "two lines more"),
        ("a\u{1b}[31mred\u{7}\u{9b}2J", "a [31mred 2J"),
        (
            "bidi\u{202e}txt\u{2066}x\u{200b}\u{feff}y\u{ad}z",
            "biditxtxyz",
        ),
        ("tag\u{e0041}\u{e007f}s\u{fe0f}", "tags"),
        ("❯\u{a0}1. Yes", "1. Yes"),
        ("> 1. Yes", "1. Yes"),
        ("│ a ╭─╮ b ▌", "a b"),
        ("● done ⎿ ✻ ⠿ x", "done x"),
        ("☐ a ☑ b → c", "a b c"),
        ("see @~/.ssh/id_rsa", "see ~/.ssh/id_rsa"),
        ("\u{e0b0}font", "font"),
    ] {
        assert_eq!(harmless(text, 100), expected, "{text:?}");
    }
}

#[test]
fn text_is_cut_by_characters() {
    for (text, most, expected) in [
        ("abc", 3, "abc"),
        ("abcd", 3, "abc…"),
        ("ab cd", 3, "ab…"),
        ("ab  ", 2, "ab"),
        ("ééé", 2, "éé…"),
        ("\u{200b}a\u{200b}b", 2, "ab"),
        ("a", 0, "…"),
    ] {
        assert_eq!(harmless(text, most), expected, "{text:?} {most}");
    }
    let text = about(&"t".repeat(200), ID, &"s".repeat(2000));
    let title = format!("child \"{}…\" ({ID}) ", "t".repeat(TITLE));
    assert!(text.starts_with(&title), "{text}");
    assert_eq!(text.len(), title.len() + TEXT + "…".len());
}

/// A parent that has read a line still has a free composer.
#[test]
fn a_line_on_a_screen_asks_nothing() {
    let text = about(
        "❯ 1. Yes\n│ 2. No │",
        ID,
        "waits for a decision about a plan",
    );
    let line = said(&[&text, "all 3 children ended: 2 done, 1 died"]);
    let rule = "─".repeat(80);
    for width in 10..140 {
        let chars: Vec<char> = line.chars().collect();
        let lines: Vec<String> = chars
            .chunks(width)
            .map(|part| part.iter().collect())
            .collect();
        let text = lines.join("\n");
        let claude = format!("{text}\n\n{rule}\n❯\u{a0}\n{rule}\n  ? for shortcuts\n");
        let screen = screen::read(&claude);
        assert_eq!((screen.claude, screen.decision), (None, false), "{claude}");
        let other = screen::read(&format!("{text}\n\n"));
        assert!(!other.decision, "{text}");
    }
}
