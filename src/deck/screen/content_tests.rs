//! The digest of a screen's content: what must not change it, and what must.
//! Does not know whether anything may be typed.

use super::panes_tests::{DONE, FREE, HINT, pane, plain};
use super::read;
use super::recordings_tests::{TABLE, answer, screen};
use crate::model::Digest;

fn content(text: &str) -> Digest {
    read(text).content
}

/// The turns of a working day, above a screen.
fn history() -> String {
    (0..500)
        .map(|n| format!("❯ turn {n}\n\n● done {n}\n\n"))
        .collect()
}

/// Without the rows at the top, down to one with text.
fn scrolled(text: &str) -> String {
    let (_, rest) = text.split_once('\n').unwrap();
    format!("{rest}\n")
}

#[test]
fn a_screen_at_rest_keeps_its_digest() {
    for name in ["idle-turn-120x40", "idle-turn-long-120x40"] {
        let (first, later) = (screen(name), screen(&format!("{name}.later")));
        let digest = content(&first);
        assert_ne!(first, later, "{name}");
        for same in [
            later.clone(),
            scrolled(&first),
            scrolled(&later),
            plain(&first),
            format!("{}{first}", history()),
            format!("{}{}", history(), plain(&later)),
            // Other bytes for the same cells.
            first
                .replace("\x1b[39m", "\x1b[0m\x1b[39m")
                .replace("[38;5;", "[38;2;1;2;"),
            first.replace('\n', "\x1b[0m\n"),
        ] {
            assert_eq!(content(&same), digest, "{name}: {same}");
        }
    }
}

#[test]
fn every_recorded_screen_keeps_it_without_colours_and_below_history() {
    for (name, _, _) in TABLE {
        let text = screen(name);
        let digest = content(&text);
        assert_eq!(content(&plain(&text)), digest, "{name}");
        // Those that show the head of the agent's screen show all of it.
        if text.contains("Claude Code") && !name.contains("trust") && name != "first-run-no-network"
        {
            assert_eq!(content(&format!("{}{text}", history())), digest, "{name}");
        }
    }
}

#[test]
fn a_screen_with_a_box_keeps_it_when_it_moves_up_a_row() {
    for (name, _, _) in TABLE {
        let text = screen(name);
        if plain(&text).contains("❯\u{a0}") && !plain(&text).contains("suspended") {
            assert_eq!(content(&scrolled(&text)), content(&text), "{name}");
        }
    }
}

#[test]
fn an_answer_of_agent_deck_has_the_digest_of_its_screen() {
    // Both are of the same kind of session, with other names and times.
    let same = |text: &str| {
        plain(text)
            .replace("l-idle", "idle-turn")
            .replace("l-perm", "perm-bash")
            .replace("Baked", "Worked")
    };
    for (json, name) in [
        ("output-pane-idle", "idle-turn-120x40"),
        ("output-pane-perm", "perm-bash-120x40"),
    ] {
        assert_eq!(
            content(&same(&answer(json))),
            content(&same(&screen(name))),
            "{name}"
        );
    }
}

#[test]
fn something_new_gives_another_digest() {
    let digests: Vec<_> = [
        DONE,
        "❯ please finish this\n\n● All finished!\n\n✻ Worked for 12s",
        "❯ please finish this\n\n● All finished.\n\n✻ Worked for 13s",
        "❯ please finish this\n\n● All finished.\n  More.\n\n✻ Worked for 12s",
        "❯ please finish this\n\n● All finished.\n\n✻ Worked for 12s\n\n❯ go on",
    ]
    .iter()
    .map(|above| content(&pane(80, above, FREE, HINT)))
    .collect();
    for (at, digest) in digests.iter().enumerate() {
        assert!(!digests[..at].contains(digest), "{at}");
    }
    // A line anywhere in the window of every recorded screen.
    for (name, _, _) in TABLE.iter().filter(|row| row.0.starts_with("idle-turn")) {
        let text = screen(name);
        let at = text[..text.rfind('✻').unwrap()].rfind('\n').unwrap() + 1;
        let more = format!("{}● One line more.\n{}", &text[..at], &text[at..]);
        assert_ne!(content(&more), content(&text), "{name}");
    }
    // An option of a dialog, whose box is not there.
    let dialog = screen("perm-bash-120x40");
    assert_ne!(
        content(&dialog),
        content(&screen("perm-bash-second-120x40"))
    );
    assert_ne!(content(&dialog), content(&dialog.replace("touch", "trash")));
}

#[test]
fn of_the_box_counts_only_whether_something_is_in_it() {
    let of = |inside: &str, footer: &str| content(&pane(80, DONE, inside, footer));
    let free = of(FREE, HINT);
    for footer in [
        "",
        "  my status 12:00",
        "  my status 12:01\n  two",
        "  one\n  two\n  three $0.12",
    ] {
        assert_eq!(of(FREE, footer), free, "{footer}");
    }
    let draft = of("❯\u{a0}draft", HINT);
    assert_eq!(of("❯\u{a0}another\n  of two lines", ""), draft);
    assert_eq!(
        of("❯\u{a0}\x1b[7mr\x1b[0;2mun the tests\x1b[0m", HINT),
        draft
    );
    let shell = of("!\u{a0}", HINT);
    assert_ne!(free, draft);
    assert_ne!(free, shell);
    assert_ne!(draft, shell);
}

#[test]
fn what_moves_by_itself_does_not_count() {
    let of = |above: &str| content(&pane(80, &format!("❯ go\n\n● ok\n\n{above}"), FREE, HINT));
    for same in [
        &[
            "✻ Moonwalking… (3s · ↓ 12 tokens)",
            "· Whirring… (1m 4s · ↓ 749 tokens)",
            "",
        ][..],
        &[
            "✻ API error · Retrying in 4s · attempt 4/10",
            "✻ 401 invalid x-api-key · Retrying in 25s · attempt 10/10\n  ⎿  Tip: Use /memory",
        ],
        &[
            "● Calling demo… (ctrl+o to expand)",
            "  Calling demo… (ctrl+o to expand)",
        ],
        &[
            "  ⎿ \u{a0}Running… (4s · timeout 10m)",
            "  ⎿ \u{a0}Running… (1m 2s · timeout 10m)",
        ],
        &[
            "  building  12% [==>     ] 1.2MB/s",
            "  building 100% [======>] 730 KB/s",
        ],
        &["  ███░░░░ 43% · 12:34", "  █████░░ 71% · 12:35:01"],
        &["⠋ waiting (3s)", "⠙ waiting (14s)"],
        &["  one\n\n\n  two", "  one\n\n  two  "],
        &["  a ──── b", "  a ─────────────── b"],
        &[
            "  loaded (3.4 MB) at [12:34:56]",
            "  loaded (11 MB) at [1:00:02]",
        ],
    ] {
        for other in same {
            assert_eq!(of(other), of(same[0]), "{other}");
        }
    }
    for (one, other) in [
        ("  line 29 of a long answer", "  line 30 of a long answer"),
        ("  (see 3 files)", "  (see 4 files)"),
        ("  port 80:", "  port 81:"),
        ("  v1.2.3", "  v1.2.4"),
        ("  f(3s2)", "  f(4s2)"),
        ("  wait… done", "  wait… gone"),
    ] {
        assert_ne!(of(one), of(other), "{one}");
    }
}

#[test]
fn rules_may_be_longer_on_another_screen() {
    let wide = content(&pane(132, DONE, FREE, HINT));
    assert_eq!(content(&pane(61, DONE, FREE, HINT)), wide);
    let [ask, narrow] = ["ask-120x40", "ask-60x40"].map(|name| plain(&screen(name)));
    // Without the head, which has another form.
    let below = |text: &str| text[text.find("❯ please").unwrap()..].to_owned();
    assert_eq!(content(&below(&ask)), content(&below(&narrow)));
}

#[test]
fn the_raw_digest_is_over_the_bytes() {
    let text = screen("idle-turn-120x40");
    let later = screen("idle-turn-120x40.later");
    assert_eq!(read(&text).raw, read(&text).raw);
    assert_ne!(read(&text).raw, read(&later).raw);
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let hex: String = read("abc").raw.iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hex, abc);
}
