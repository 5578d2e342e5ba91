//! Damaged, mixed and senseless screens: never free unless an undamaged box is
//! the last thing there, by a second and plainer reading. Does not know why
//! anything is silent.

use super::panes_tests::plain;
use super::read;
use super::recordings_tests::{TABLE, answer, screen};
use crate::model::Silence;

/// A plain reading: the last lines are rule, prompt, the same rule, one or two
/// lines of text; the prompt has nothing behind it, or may have when a proposal
/// is claimed.
fn has_box(text: &str, proposal: bool) -> bool {
    let plain = plain(text);
    let lines: Vec<&str> = plain
        .trim_end()
        .split('\n')
        .map(|l| l.trim_end_matches(' '))
        .collect();
    (1..=2).any(|below| {
        let Some(lower) = lines.len().checked_sub(below + 1) else {
            return false;
        };
        let rule = lines[lower];
        let is_rule = rule.chars().count() >= 20 && rule.chars().all(|c| c == '─');
        let upper = lines[..lower].iter().rposition(|line| *line == rule);
        let inside = upper.map_or(&[][..], |upper| &lines[upper + 1..lower]);
        is_rule
            && lines[lower + 1..]
                .iter()
                .all(|line| !line.trim().is_empty())
            && match inside {
                [one] if !proposal => *one == "❯\u{a0}",
                [first, ..] => proposal && first.starts_with("❯\u{a0}"),
                [] => false,
            }
    })
}

/// How many were free, so that no test passes by silence alone.
fn check(text: &str, what: &str) -> usize {
    match read(text).claude {
        None => assert!(has_box(text, false), "free without a box: {what}\n{text}"),
        Some(Silence::Suggestion) => assert!(has_box(text, true), "{what}\n{text}"),
        Some(_) => return 0,
    }
    1
}

/// All recorded screens, without the agent's banner and the blank rows at the
/// end: most of their bytes, and not what is to be damaged.
fn screens() -> Vec<(&'static str, String)> {
    let mut all: Vec<_> = TABLE.iter().map(|row| (row.0, screen(row.0))).collect();
    for name in ["output-pane-idle", "output-pane-perm"] {
        all.push((name, answer(name)));
    }
    for (_, text) in &mut all {
        let from = text.find('╯').map_or(0, |at| at + '╯'.len_utf8());
        *text = format!("{}\n\n", text[from..].trim_end_matches('\n'));
    }
    all
}

/// A generator after Marsaglia (xorshift64): the same numbers in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most.max(1) as u64).unwrap()
    }
}

#[test]
fn a_line_less_or_twice_or_a_cut_frees_nothing() {
    let mut free = 0;
    for (name, text) in screens() {
        if has_nothing_to_lose(&text) {
            continue;
        }
        let lines: Vec<&str> = text.split('\n').collect();
        for at in 0..lines.len() {
            let (before, after) = (&lines[..at], &lines[at + 1..]);
            for (what, parts) in [
                ("without", [before, after].concat()),
                ("twice", [before, &[lines[at]], &lines[at..]].concat()),
                ("up to", before.to_vec()),
                ("from", lines[at..].to_vec()),
                ("blanked", [before, &[""], after].concat()),
                ("beheaded", [before, &[beheaded(lines[at])], after].concat()),
            ] {
                free += check(&parts.join("\n"), &format!("{name} {what} line {at}"));
            }
        }
    }
    assert!(free > 800, "{free}");
}

/// Whether there is no box that is free but for something beside it.
fn has_nothing_to_lose(text: &str) -> bool {
    use Silence::{Dialog, Draft, NoComposer};
    matches!(read(text).claude, Some(Dialog | NoComposer | Draft))
}

/// Without its first character.
fn beheaded(line: &str) -> &str {
    let mut chars = line.chars();
    chars.next();
    chars.as_str()
}

#[test]
fn a_dialog_is_not_freed_by_any_loss() {
    for (name, text) in screens() {
        if !has_nothing_to_lose(&text) {
            continue;
        }
        let lines: Vec<&str> = text.split('\n').collect();
        for from in 0..lines.len() {
            for upto in [1, 4, 12].map(|length| (from + length).min(lines.len())) {
                let rest = [&lines[..from], &lines[upto..]].concat().join("\n");
                let seen = read(&rest).claude;
                assert!(
                    seen.is_some_and(|s| s != Silence::Suggestion),
                    "{name} {from} {upto}"
                );
            }
        }
    }
}

#[test]
fn screens_drawn_over_each_other_free_nothing() {
    let mut chance = Chance(88_172_645_463_325_252);
    let screens = screens();
    let mut free = 0;
    for round in 0..1500 {
        let (one, two) = (chance.below(screens.len()), chance.below(screens.len()));
        let mut lines: Vec<&str> = screens[one].1.split('\n').collect();
        let over: Vec<&str> = screens[two].1.split('\n').collect();
        let (from, at) = (chance.below(over.len()), chance.below(lines.len()));
        let count = chance.below(over.len() - from + 1);
        for (row, line) in over[from..from + count].iter().enumerate() {
            match lines.get_mut(at + row) {
                Some(place) => *place = line,
                None => lines.push(line),
            }
        }
        let what = format!("round {round}: {} over {}", screens[two].0, screens[one].0);
        free += check(&lines.join("\n"), &what);
    }
    assert!(free > 100, "{free}");
}

#[test]
fn characters_that_change_or_go_free_nothing() {
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let with = [
        '\u{1b}', '[', '7', 'm', ';', ' ', '\u{a0}', '─', '❯', '\n', 'x', '\0', '\r', '\t', '中',
    ];
    let mut free = 0;
    for (name, text) in screens() {
        // The rows from the input box on are the ones to hit.
        let chars: Vec<char> = text.trim_end_matches('\n').chars().collect();
        for round in 0..15 {
            let mut chars = chars.clone();
            for _ in 0..=chance.below(3) {
                let at = chars.len() - 1 - chance.below(chars.len().min(700));
                match chance.below(3) {
                    0 => _ = chars.remove(at),
                    1 => chars[at] = with[chance.below(with.len())],
                    _ => chars.insert(at, with[chance.below(with.len())]),
                }
            }
            let text: String = chars.into_iter().collect();
            free += usize::from(read(&text).claude.is_none());
            // A broken escape is text to the one reading and none to the other.
            if plain(&text).contains('❯') && !has_stray_escape(&text) {
                check(&text, &format!("{name} {round}"));
            }
        }
    }
    assert!(free > 100, "{free}");
}

/// Whether anything but colours is escaped: the plain reading knows no more.
fn has_stray_escape(text: &str) -> bool {
    let colour = |part: &str| {
        let inside = part.strip_prefix('[').and_then(|rest| rest.split_once('m'));
        inside.is_some_and(|(codes, _)| codes.chars().all(|c| c.is_ascii_digit() || c == ';'))
    };
    text.split('\x1b').skip(1).any(|part| !colour(part))
        || text
            .chars()
            .any(|c| c.is_control() && c != '\n' && c != '\x1b')
}

#[test]
fn senseless_bytes_are_read_in_time_and_never_free() {
    let mega = 1 << 18;
    for text in [
        "a".repeat(32 * mega),
        "\n".repeat(8 * mega),
        "\x1b".repeat(mega),
        "\x1b[".repeat(mega),
        "\x1b]".repeat(mega),
        "\x1b[7m".repeat(mega),
        format!("\x1b]{}", "x".repeat(8 * mega)),
        format!("\x1b[{}", "1;".repeat(4 * mega)),
        "(1s(".repeat(mega),
        "❯\u{a0}\n".repeat(mega),
        format!("{}\n", "─".repeat(80)).repeat(mega / 16),
        "❯\u{a0}".repeat(mega),
        "\r\0\t\u{301}\u{200d}".repeat(mega / 4),
        "1. yes ".repeat(mega),
        format!("╰\n{}", "╰ ⠋ ● (3s\n".repeat(mega / 8)),
    ] {
        assert!(read(&text).claude.is_some());
    }
    let mut chance = Chance(7);
    let parts = [
        "\x1b[",
        "\x1b]8;;",
        "\x07",
        "m",
        "2",
        "7",
        ";",
        "❯\u{a0}",
        "────────────────────────",
        "\n",
        " ",
        "(",
        "3s",
        ")",
        "●",
        "⎿ ",
        "…",
        "1. Yes",
        "\r",
        "\0",
        "中",
        "\u{301}",
    ];
    for _ in 0..2000 {
        let count = chance.below(60);
        let text: String = (0..count)
            .map(|_| parts[chance.below(parts.len())])
            .collect();
        let seen = read(&text);
        assert!(seen.claude.is_some() || has_box(&text, false) || has_stray_escape(&text));
    }
}
