//! Screens of other tools: codex, gemini, opencode, aider, shells, pagers.
//! Drawn after what they print, not recorded. Does not know of Claude.

use super::read;
use crate::model::Silence::{self, *};

fn other(text: &str) -> Option<Silence> {
    read(text).other
}

/// A few lines of work above, blank rows below.
fn after(text: &str) -> String {
    format!("some output\n  more of it\n\n{text}\n\n\n\n")
}

#[test]
fn an_empty_screen_is_empty() {
    for text in ["", "\n\n\n", "   \n\x1b[0m\n", "\u{a0}\n", "\0\r"] {
        let seen = read(text);
        assert_eq!(
            (seen.claude, seen.other, seen.decision),
            (Some(Empty), Some(Empty), false)
        );
    }
}

#[test]
fn an_agent_at_rest_shows_no_sign() {
    for text in [
        "• All tests pass.\n\n\x1b[1m›\x1b[0m \x1b[2mExplain this codebase\x1b[0m\n\n  \x1b[2m? for shortcuts\x1b[0m   100% context left",
        "› fix it\n\n• Fixed.\n\n› \n\n  gpt-5 high · ~/proj",
        "✦ All done.\n╭────────────────────────────╮\n│ >   Type your message or @path/to/file │\n╰────────────────────────────╯\n ~/proj (main*)   no sandbox   gemini (99% context left)",
        "┃\n┃  Ask anything...\n┃\n┃  Build  model\n  tab agents  ctrl+p commands",
        "Tokens: 2.3k sent, 212 received.\n────────────────────────────\n> ",
        "> fix it\n\nFixed.\n\n>>> ",
        "I have read the file. It looks good.",
        "1. Read the file\n2. Change it\n3. Run the tests",
        "50% done, 5$ spent, item # 3",
        "全部完成。",
    ] {
        let seen = read(&after(text));
        assert_eq!((seen.other, seen.decision), (None, false), "{text}");
        // It is no box of Claude's.
        assert_eq!(seen.claude, Some(NoComposer), "{text}");
    }
}

#[test]
fn questions_and_menus_forbid() {
    for text in [
        "Allow command?\n› 1. Yes, proceed\n  2. No, and tell Codex what to do differently\n  Press enter to confirm or esc to cancel",
        "│ Allow execution of: 'ls'?  │\n│ ● 1. Yes, allow once       │\n│   2. No (esc)              │",
        "│ Do you want to  │\n│ proceed with it │",
        "Permission required\n  Allow once   Allow always   Reject",
        "Add file to the chat? (Y)es/(N)o/(D)on't ask again [Yes]:",
        "Run this command?\n → Run (y) (enter)\n   Reject (esc)",
        "Overwrite? [y/N]",
        "Proceed (Y/n)?",
        "Are you sure you want to continue connecting (yes/no/[fingerprint])?",
        "  1) yes\n  2) no",
        "  9. Other\n  10. No, stop",
        "  1. A long option that is\n     broken in two\n  2. No",
        "❯ Yes\n  No",
        "› Allow\n  Deny",
        "❯ ◯ eslint\n  ◉ prettier",
        "? Pick one: (Use arrow keys)",
        "↑/↓ to navigate",
        "Press any key to continue",
        "Press RETURN to continue",
        "        <Yes>      <No>",
        "  < OK >   <Cancel>",
    ] {
        let seen = read(&after(text));
        assert_eq!((seen.other, seen.decision), (Some(Dialog), true), "{text}");
        assert_eq!(seen.claude, Some(Dialog), "{text}");
    }
    // Questions in words no list knows; they are no decision that is seen.
    for text in [
        "What is your name?",
        "Name of the project:",
        "要继续吗?",
        "Really (default: no)?",
    ] {
        let seen = read(&after(text));
        assert_eq!((seen.other, seen.decision), (Some(Dialog), false), "{text}");
    }
}

#[test]
fn numbers_alone_are_no_menu() {
    for text in [
        "  1. Node\n  2. Nothing else",
        "  1. Yes\n  3. No",
        "  1. Yes\n\n\n\n\n  2. Maybe",
        "  v1.2 yes\n  2.0 no",
        "  100. yes\n  101. no",
        "❯ yesterday",
        "* 1. one\n* 2. two",
    ] {
        assert!(!read(&after(text)).decision, "{text}");
    }
}

#[test]
fn secrets_are_not_answered() {
    for text in [
        "[sudo] password for u:",
        "Enter passphrase for key '/k/id': ",
        "Password:",
        "Verification code: ",
        "Enter your API key:",
        "Username for 'https://example.org': ",
    ] {
        assert_eq!(other(&after(text)), Some(Credentials), "{text}");
    }
}

#[test]
fn pagers_editors_and_searches_are_left() {
    for text in [
        "line\n--More--(12%)",
        "line\n(END)",
        "line\n\x1b[7m(END)\x1b[27m",
        "line\n:",
        "lines 1-40/200 20%",
        " Manual page ls(1) line 1 (press h for help or q to quit)",
        "~\n~\n-- INSERT --            1,1   All",
        "~\n~\n\"file\" 12L, 340B",
        "~\n~\n~",
        "^G Help    ^O Write Out\n^X Exit    ^R Read File",
        "F1Help  F10Quit",
        "  one\n  two\n  2/12\n> ",
    ] {
        assert_eq!(other(&after(text)), Some(Menu), "{text}");
    }
    for text in ["(reverse-i-search)`git': git push", "bck-i-search: git_"] {
        assert_eq!(other(&after(text)), Some(Search), "{text}");
    }
}

#[test]
fn work_is_left_alone() {
    for text in [
        "• Working (3s • esc to interrupt)\n\n› \x1b[2mFind a bug\x1b[0m",
        "⠋ Thinking\n\n>",
        "working  esc interrupt",
        "Generating. Ctrl+C to stop",
    ] {
        assert_eq!(other(&after(text)), Some(Busy), "{text}");
    }
}

#[test]
fn typed_text_is_a_draft() {
    for text in [
        "› half a sentence\n\n  ? for shortcuts   100% context left",
        "\x1b[1m›\x1b[0m half \x1b[2ma hint\x1b[0m",
        "> half",
        ">>> print(1)",
        "▌ half\n  ⏎ send",
        "│ > half a sentence          │\n╰────────────────────────────╯\n ~/proj",
        "┃ > half",
        "u@host:~/proj$ rm -r",
        "[u@host proj]# ls",
        "% ls",
        "❯ half",
        "❯\u{a0}half",
    ] {
        assert_eq!(other(&after(text)), Some(Draft), "{text}");
    }
}

#[test]
fn a_shell_would_run_what_is_typed() {
    for text in [
        "u@host:~/proj$ ",
        "u@host:~/proj#",
        "bash-5.2$ ",
        "[u@host proj]$",
        "host% ",
        "(venv) u@h ~ $",
        "$",
    ] {
        assert_eq!(other(&after(text)), Some(ShellMode), "{text}");
    }
}

#[test]
fn what_is_far_above_does_not_forbid() {
    let lines = "  a line of work\n".repeat(40);
    for sign in [
        "Do you want to proceed?\n❯ 1. Yes\n  2. No",
        "› an old message",
        "[sudo] password for u:",
    ] {
        assert_eq!(other(&format!("{sign}\n{lines}> \n")), None, "{sign}");
    }
    // Even so far as the head of a tall dialog may be.
    assert_eq!(
        other(&format!("Allow command?\n{}\n", "  a line\n".repeat(20))),
        Some(Dialog)
    );
}
