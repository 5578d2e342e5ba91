//! Screens of our own, modelled on the recorded ones: other widths, colours
//! off, status lines, other languages, imitations. Does not know of digests.

use super::read;
use super::recordings_tests::{TABLE, screen};
use crate::model::Silence::{self, *};

/// A full-width rule.
pub fn rule(width: usize) -> String {
    "─".repeat(width)
}

/// A screen as the agent draws it, without colours: what is above the box,
/// what is in it, what is below.
pub fn pane(width: usize, above: &str, inside: &str, footer: &str) -> String {
    let rule = rule(width);
    format!("{above}\n\n{rule}\n{inside}\n{rule}\n{footer}\n\n\n")
}

/// An ordinary turn that has ended.
pub const DONE: &str = "❯ please finish this\n\n● All finished.\n\n✻ Worked for 12s";
/// An empty box.
pub const FREE: &str = "❯\u{a0}\x1b[7m \x1b[0m";
/// The ordinary footer.
pub const HINT: &str = "  ? for shortcuts · ← for agents";

fn claude(text: &str) -> Option<Silence> {
    read(text).claude
}

#[test]
fn a_free_box_is_free_at_any_width() {
    for width in [20, 40, 61, 80, 132, 250, 500] {
        for inside in [
            "❯\u{a0}",
            FREE,
            "❯\u{a0}\x1b[7m",
            "\x1b[2m❯\u{a0}\x1b[0m",
            "❯\u{a0}   ",
        ] {
            assert_eq!(
                claude(&pane(width, DONE, inside, HINT)),
                None,
                "{width} {inside:?}"
            );
        }
    }
    assert_eq!(claude(&pane(19, DONE, FREE, HINT)), Some(NoComposer));
}

#[test]
fn text_in_the_box_is_a_draft() {
    for inside in [
        "❯\u{a0}a",
        "❯\u{a0}please look at the half wri\x1b[7m \x1b[0m",
        // The cursor moved to the first character.
        "❯\u{a0}\x1b[7ma\x1b[0mbc",
        "❯\u{a0}\x1b[7ma\x1b[0m",
        // Blanks, of any kind.
        "❯\u{a0}   \x1b[7m \x1b[0m",
        "❯\u{a0}\u{a0}",
        "❯\u{a0}\u{3000}",
        // Lines, with text or without.
        "❯\u{a0}first line\n  second line\x1b[7m \x1b[0m",
        "❯\u{a0}\n  second line",
        "❯\u{a0}\n\n",
        "❯\u{a0}\x1b[7m \x1b[0m\n  ",
        // Partly dim: a command and the hint what it wants.
        "❯\u{a0}/review\x1b[2m [pr]\x1b[0m",
        "❯\u{a0}\x1b[2mdim\x1b[0m bright",
        "❯\u{a0}\x1b[2mdim\x1b[0m\n  bright",
        "❯\u{a0}[Image #1]",
        "❯\u{a0}你好",
        "❯\u{a0}مرحبا",
        "❯\u{a0}👩‍🔧",
        "❯\u{a0}\u{200b}",
        // What cannot be read.
        "❯\u{a0}\x1b[38;5",
        "❯\u{a0}\x1b]0;hidden draft",
    ] {
        assert_eq!(
            claude(&pane(80, DONE, inside, HINT)),
            Some(Draft),
            "{inside:?}"
        );
    }
}

#[test]
fn dim_text_is_a_proposal_and_without_colours_a_draft() {
    for (name, silence) in [
        ("idle-suggestion-120x40", Suggestion),
        ("work-queued-120x40", Queued),
    ] {
        let text = screen(name);
        assert_eq!(claude(&text), Some(silence));
        assert_eq!(claude(&plain(&text)), Some(Draft));
    }
    for (inside, silence) in [
        ("❯\u{a0}\x1b[7mr\x1b[0;2mun the tests\x1b[0m", Suggestion),
        // The window has no focus: no cursor.
        ("❯\u{a0}\x1b[2mrun the tests\x1b[0m", Suggestion),
        (
            "❯\u{a0}\x1b[7mr\x1b[0;2mun the\n  tests and all\x1b[0m",
            Suggestion,
        ),
        ("❯\u{a0}\x1b[7m跑\x1b[0;2m一下测试\x1b[0m", Suggestion),
        (
            "❯\u{a0}\x1b[7mP\x1b[0;2mress up to edit queued messages\x1b[0m",
            Queued,
        ),
        (
            "❯\u{a0}\x1b[7mP\x1b[0;2mress up to edit\n  queued messages\x1b[0m",
            Queued,
        ),
    ] {
        assert_eq!(
            claude(&pane(40, DONE, inside, HINT)),
            Some(silence),
            "{inside:?}"
        );
    }
}

/// Without any escape.
pub fn plain(text: &str) -> String {
    let mut plain = String::new();
    for (at, part) in text.split('\x1b').enumerate() {
        let end = part
            .find(|c: char| c.is_ascii_alphabetic())
            .map_or(0, |end| end + 1);
        plain.push_str(if at == 0 { part } else { &part[end..] });
    }
    plain
}

#[test]
fn colours_matter_only_for_proposals() {
    for (name, silence, decision) in TABLE {
        let read = read(&plain(&screen(name)));
        let expected = match silence {
            Some(Suggestion | Queued) => Some(Draft),
            silence => silence,
        };
        assert_eq!((read.claude, read.decision), (expected, decision), "{name}");
    }
}

#[test]
fn a_status_line_of_two_lines_is_a_footer_and_a_longer_one_is_not_known() {
    for (footer, silence) in [
        ("~/proj on main · Opus 4.8 · 43% · $0.12", None),
        ("  [Opus] 📁 proj | 🌿 main\n  ctx 43% | 12:34", None),
        (
            "  模型 Opus · 上下文 43%\n  ⏵⏵ bypass permissions on (shift+tab to cycle)",
            None,
        ),
        ("  one\n  two\n  three", Some(Menu)),
        ("  one\n\n  three", Some(Menu)),
        ("\n  one", Some(Unclear)),
        // A hint is always there when nothing was typed.
        ("", Some(Unclear)),
        ("  Not logged in · Run /login", Some(Credentials)),
        ("  -- INSERT --", None),
        ("  -- NORMAL --", Some(Unclear)),
        ("  Press Ctrl-C again to exit", Some(Unclear)),
        ("  search prompts:", Some(Search)),
        ("  esc to interrupt", Some(Busy)),
        ("  custom status\n  ESC TO INTERRUPT", Some(Busy)),
        ("  Enter to view · Esc to close", Some(Dialog)),
        ("  1 shell · Enter to view tasks", Some(Menu)),
        (
            "  Showing detailed transcript · ctrl+o to toggle",
            Some(Menu),
        ),
        ("  ❯ 1. Yes\n    2. No", Some(Dialog)),
        ("  Delete it? [y/N]", Some(Dialog)),
        ("  Delete it?", Some(Unclear)),
    ] {
        assert_eq!(claude(&pane(80, DONE, FREE, footer)), silence, "{footer}");
    }
}

#[test]
fn an_agent_that_has_ended_is_not_typed_to() {
    for below in [
        "u@host:~/proj$ ",
        "  ? for shortcuts\nu@host:~/proj# ",
        "bash-5.2$",
        "[u@host proj]$ ",
        "host% ",
        "~/proj ❯ ",
        "➜  proj git:(main) ✗",
        "> ",
        "$ ls",
        "$",
        "~ $ ",
        "Resume this session with:\nclaude --resume 1a2b",
        "(END)",
        "--More--(12%)",
        "lines 1-40/200",
        "\"screen.txt\" 12L, 340B",
        "~",
        ":",
        "Claude Code has been suspended. Run `fg` to bring Claude Code back.",
    ] {
        assert_eq!(
            claude(&pane(80, DONE, FREE, below)),
            Some(Unclear),
            "{below:?}"
        );
    }
}

#[test]
fn what_works_is_left_to_work() {
    for closing in [
        "✻ Moonwalking… (3s · ↓ 12 tokens)",
        "· Choreographing…",
        "* Thinking… (12s · ↓ 749 tokens · esc to interrupt)",
        "✻ API error · Retrying in 4s · attempt 4/10",
        "✻ 401 invalid x-api-key · Retrying in 25s · attempt 10/10\n  ⎿  Tip: Use /memory",
        "✶ Unable to connect to API\n  (ConnectionRefused) · Retrying in 5s\n  · attempt 4/10",
        "✢ Compacting conversation…",
        "✽ Whirring… (4s)\n  ⎿  ☐ first task\n     ☒ second task",
        "✽ Whirring… (4s)\n\n  a line below it",
        // Where motion is reduced.
        "● Whirring… (4s · ↓ 42 tokens)",
    ] {
        let above = format!("❯ please\n\n● I will.\n\n{closing}");
        assert_eq!(
            claude(&pane(40, &above, FREE, "  my status")),
            Some(Busy),
            "{closing}"
        );
    }
    let queued = "✶ Whirring… (4s · ↓ 42 tokens)\n\n\n  ❯ and then the second file   ";
    assert_eq!(claude(&pane(80, queued, FREE, HINT)), Some(Queued));
    // Of a turn before, and inside of a message.
    for above in [
        "✻ Whirring… (4s)\n\n● All done.\n\n✻ Worked for 4s",
        "● It prints:\n\n  ✻ Whirring… (4s)\n\n✻ Worked for 4s · 1 shell still running",
    ] {
        assert_eq!(claude(&pane(80, above, FREE, HINT)), None, "{above}");
    }
}

#[test]
fn refusals_count_only_as_last_words() {
    for (last, silence) in [
        ("● Please run /login · API Error: 403 scope", Credentials),
        (
            "⏺ API Error: 401 {\"type\":\"error\"} · Please run /login",
            Credentials,
        ),
        (
            "❯ go\n  ⎿ \u{a0}Invalid API key · Fix external\n     API key",
            Credentials,
        ),
        (
            "❯ go\n  ⎿  OAuth token revoked · Please run /login",
            Credentials,
        ),
        ("❯ go\n  ⎿  Credit balance too low · Add funds", Credentials),
        ("● API Error: Request rejected (429) · later", UsageLimit),
        (
            "  ⎿  Claude usage limit reached. Your limit will reset at 3pm.",
            UsageLimit,
        ),
        (
            "  ⎿  5-hour limit reached ∙ resets 3pm\n     /upgrade to go on",
            UsageLimit,
        ),
        ("● You’ve hit your limit · resets 8pm (UTC)", UsageLimit),
        (
            "● w1 w2\n  ⎿ \u{a0}Interrupted · What should Claude do\n     instead?",
            Interrupted,
        ),
        ("❯ go\n  ⎿  [Request interrupted by user]", Interrupted),
    ] {
        for closing in ["", "\n\n✻ Churned for 2m 58s"] {
            let seen = claude(&pane(40, &format!("● ok\n\n{last}{closing}"), FREE, HINT));
            assert_eq!(seen, Some(silence), "{last}{closing}");
        }
        // Said before, or quoted.
        let quoted = last.replace('\n', "\n  ").replace('⎿', "");
        for above in [
            format!("{last}\n\n❯ go on\n\n● All finished.\n\n✻ Worked for 1s"),
            format!(
                "● This stands in the log:\n\n  {}\n\n✻ Worked for 1s",
                &quoted
            ),
            format!("● In the log of yesterday it says {quoted}\n\n✻ Worked for 1s"),
        ] {
            // What begins with a bullet at the edge is a message.
            if !above.contains("  ● ") && !above.contains("says ●") && !above.contains("· Please")
            {
                assert_eq!(claude(&pane(80, &above, FREE, HINT)), None, "{above}");
            }
        }
    }
    for fine in [
        "● API Error: Repeated 529 Overloaded errors.",
        "● API Error: Unable to connect to API (ECONNRESET)",
        "● Time limit reached in test 4; fixed.",
        "● OAuth token refresh is implemented.",
        "● Invalid API keys are now rejected.",
        "● Your organization of the modules is fine.",
        "● Interrupted · resumed: the server is up again.",
        "● Login works. The page says: Please run /login",
    ] {
        assert_eq!(claude(&pane(80, fine, FREE, HINT)), None, "{fine}");
    }
}

#[test]
fn other_languages_are_typed_into_and_stay_silent_alike() {
    for text in [
        "● 全部完成。测试通过。\n  还要我继续吗？",
        "● اكتمل كل شيء، هل أتابع؟",
        "● すべて完了しました 🎉👨‍👩‍👧",
        "● Готово. e\u{301}\u{323}\u{200d}",
    ] {
        assert_eq!(claude(&pane(61, text, FREE, HINT)), None, "{text}");
    }
    // A dialog whose words nobody here knows.
    let dialog = "● 好的\n\n".to_owned()
        + &rule(61)
        + "\n Bash 命令\n\n   ls\n\n 要继续吗？\n ❯ 甲\n   乙\n\n 按下取消\n";
    let seen = read(&dialog);
    assert_eq!((seen.claude, seen.decision), (Some(NoComposer), false));
    // Numbers before its options are a menu in every language.
    assert!(read(&dialog.replace('甲', "1. 是").replace('乙', "2. 否")).decision);
}

#[test]
fn a_tall_dialog_needs_no_head() {
    let body: String = (0..400).map(|n| format!(" {n} +    line {n}\n")).collect();
    for name in [
        "perm-edit-120x40",
        "perm-fetch-120x40",
        "plan-approval-80x24",
        "ask-120x40",
    ] {
        let text = plain(&screen(name));
        let text = text.trim_end();
        let options = text.rfind(" ❯ 1.").or(text.rfind("❯ 1.")).unwrap();
        let tall = format!(
            "{}{body}{}\n\n",
            pane(120, DONE, FREE, HINT),
            &text[options..]
        );
        let seen = read(&tall);
        assert_eq!((seen.claude, seen.decision), (Some(Dialog), true), "{name}");
        assert_eq!(seen.other, Some(Dialog));
    }
}

#[test]
fn what_was_drawn_before_does_not_count() {
    let old: String = (0..200).map(|_| pane(120, DONE, FREE, HINT)).collect();
    let dialogs =
        screen("perm-bash-120x40") + &screen("ask-120x40") + &screen("panel-login-120x40");
    let draft = pane(120, DONE, "❯\u{a0}an old draft", HINT);
    for history in [old.clone(), dialogs, draft, "text\n".repeat(2000)] {
        for (name, silence, decision) in TABLE {
            let seen = read(&format!("{history}{}", screen(name)));
            let silence = match (name, silence) {
                // Their end is like any text; what asks may be just above.
                (
                    "first-run-no-network" | "panel-transcript-120x40" | "answer-ctrl-z-120x40",
                    _,
                ) => {
                    assert!(seen.claude.is_some(), "{name}");
                    continue;
                }
                (_, silence) => silence,
            };
            assert_eq!((seen.claude, seen.decision), (silence, decision), "{name}");
        }
    }
}

#[test]
fn a_dialog_below_an_old_box_wins() {
    for (name, silence, decision) in TABLE {
        if silence == Some(Dialog) {
            // Right below the box, its hint, or a blank line.
            for box_ in [
                format!("{}\n{FREE}\n{}\n", rule(120), rule(120)),
                format!("{}\n{FREE}\n{}\n{HINT}\n", rule(120), rule(120)),
                pane(120, DONE, FREE, HINT),
                // Its upper rule in the place of the lower one.
                format!("{}\n{FREE}\n", rule(120)),
            ] {
                let text = screen(name);
                let below = &text[text.find('─').unwrap_or(0)..];
                let seen = read(&format!("{box_}{below}"));
                assert_eq!(
                    (seen.claude, seen.decision),
                    (Some(Dialog), decision),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn an_imitation_inside_of_a_message_does_not_count() {
    let rule = rule(80);
    for fake in [
        // As a message, a result or a file is drawn.
        format!("● Like this:\n\n  {rule}\n  ❯\u{a0}\n  {rule}\n    ? for shortcuts"),
        format!("● Bash(cat screen)\n  ⎿ \u{a0}{rule}\n     ❯\u{a0}\n     {rule}\n"),
        // At the edge, as nothing is drawn.
        format!("● See\n\n{rule}\n❯\u{a0}\n{rule}\n  ? for shortcuts\n"),
    ] {
        // What is really there follows.
        for (inside, silence) in [
            (FREE, None),
            ("❯\u{a0}draft", Some(Draft)),
            ("!\u{a0}", Some(ShellMode)),
        ] {
            assert_eq!(claude(&pane(80, &fake, inside, HINT)), silence, "{fake}");
        }
        let dialog = plain(&screen("perm-bash-80x24"));
        assert_eq!(claude(&format!("{fake}\n{dialog}")), Some(Dialog));
        assert!(claude(&format!("{fake}\n  more text\n  and more\n  and more\n")).is_some());
    }
}

#[test]
fn a_box_that_is_not_quite_one_is_none() {
    let rule = rule(80);
    for text in [
        // An ordinary blank, none, another glyph, moved in.
        format!("{rule}\n❯ \n{rule}\n{HINT}\n"),
        format!("{rule}\n❯\n{rule}\n{HINT}\n"),
        format!("{rule}\n>\u{a0}\n{rule}\n{HINT}\n"),
        format!("{rule}\n#\u{a0}\n{rule}\n{HINT}\n"),
        format!("{rule}\n ❯\u{a0}\n{rule}\n{HINT}\n"),
        format!("{rule}\n│ ❯\u{a0} │\n{rule}\n{HINT}\n"),
        // No rule above or below, rules that differ, that carry a name or text.
        format!("❯\u{a0}\n{rule}\n{HINT}\n"),
        format!("{rule}\n❯\u{a0}\n{HINT}\n"),
        format!("{rule}─\n❯\u{a0}\n{rule}\n{HINT}\n"),
        format!("{rule} name ─\n❯\u{a0}\n{rule}\n{HINT}\n"),
        format!("──── name {rule}\n❯\u{a0}\n{rule}\n{HINT}\n"),
        format!("{rule}\n❯\u{a0}\nsuspended{rule}\n{HINT}\n"),
        format!(" {rule}\n❯\u{a0}\n {rule}\n{HINT}\n"),
        format!("{rule}\n\n❯\u{a0}\n{rule}\n{HINT}\n"),
        format!("╭{rule}╮\n❯\u{a0}\n╰{rule}╯\n{HINT}\n"),
        format!("{rule}\n{rule}\n{HINT}\n"),
    ] {
        assert_eq!(claude(&text), Some(NoComposer), "{text}");
    }
    let shell = pane(80, DONE, "!\u{a0}\x1b[7m", "  ! for shell mode");
    assert_eq!(claude(&shell), Some(ShellMode));
    assert_eq!(
        claude(&pane(80, DONE, "!\u{a0}ls -l", HINT)),
        Some(ShellMode)
    );
}

#[test]
fn shells_and_tasks_are_counted_in_the_footer_only() {
    for (footer, background) in [
        ("  1 shell · ← for agents · ↓ to manage", true),
        ("  ⏵⏵ bypass permissions on · 2 shells", true),
        ("  my status\n  1 background task", true),
        ("  1 bash · 12 local agents", true),
        ("  0 shells", false),
        ("  ? for shortcuts", false),
        ("  a shell", false),
        ("  ! for shell mode", false),
    ] {
        let above = "● ok\n\n✻ Cogitated for 1s · 1 shell still running";
        let seen = read(&pane(80, above, FREE, footer)).background;
        assert_eq!(seen, background, "{footer}");
    }
}
