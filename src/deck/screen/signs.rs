//! Words and shapes that several readers of a screen look for.
//!
//! Broad on purpose: a false hit costs a message to somebody, a miss could
//! answer a question (ladder 1.5). Other languages are not known here. This
//! file does not know where on the screen it looks.

use super::lines::{Line, push};

/// Phrases of dialogs, questions and menus. Those of Claude were recorded
/// (section 3.3) or are matched by agent-deck (contract 6.8).
const DECISION: &str = "do you want to |would you like to proceed|do you trust|do you approve|\
    do you allow|one you trust?|new mcp server found|ready to code?|what to do differently|\
    tell claude what|allow once|allow always|always allow|allow this|allow command|\
    allow execution|allow?|approve?|proceed?|continue?|are you sure|waiting for approval|\
    awaiting approval|requires approval|approval required|needs your approval|\
    needs your permission|permission required|select an option|choose an option|select one|\
    to select|to navigate|arrow key|arrow-key|enter to confirm|enter to accept|\
    enter to approve|enter to continue|enter to set|enter to choose|enter to submit|↵ to |\
    press enter|press return|hit enter| any key|esc to cancel|esc to go back|esc to close|\
    esc to exit|(esc)|[y/n|(y/n|y/n?|[yes/no|(yes/no|(y)es|[y]es| (y)|<yes>|<ok>|< ok >|<cancel>";

/// First words of what a menu without numbers offers.
const OFFERS: &str = "yes|no|allow|approve|accept|deny|reject|trust";
/// Lines between two numbers of one menu: texts of options are wrapped.
const APART: usize = 4;

/// Whether one of the phrases, which `|` parts, is in a text.
#[inline(never)]
pub fn has(text: &str, phrases: &str) -> bool {
    any(phrases, &|words| text.contains(words))
}

/// Whether a text begins with one of the phrases.
#[inline(never)]
pub fn begins(text: &str, phrases: &str) -> bool {
    any(phrases, &|words| text.starts_with(words))
}

/// Whether a text is one of those.
#[inline(never)]
pub fn is_one(text: &str, texts: &str) -> bool {
    any(texts, &|one| one == text)
}

fn any(phrases: &str, fits: &dyn Fn(&str) -> bool) -> bool {
    phrases.split('|').any(fits)
}

/// The first character of a text and what follows; `\0` of none.
pub fn head(text: &str) -> (char, &str) {
    let mut chars = text.chars();
    (chars.next().unwrap_or_default(), chars.as_str())
}

/// Lines as one text: lower case, without the sides of boxes, one blank
/// between words. So a phrase that is broken at its blanks is found.
#[inline(never)]
pub fn flat(lines: &[Line]) -> String {
    let mut flat = String::new();
    for line in lines {
        let mut gap = true;
        for c in line.text.chars() {
            if matches!(c, ' ' | '\u{a0}' | '│' | '┃' | '║' | '|') {
                gap = true;
                continue;
            }
            if gap && !flat.is_empty() {
                push(&mut flat, ' ');
            }
            gap = false;
            push(&mut flat, c.to_ascii_lowercase());
        }
    }
    flat
}

/// What stands before the chosen line of a menu, or before what is typed.
pub fn is_cursor(c: char) -> bool {
    matches!(c, '❯' | '›' | '>' | '▶' | '►' | '➤' | '➜' | '→' | '»' | '▌')
}

/// What stands before the agent's messages.
pub fn is_bullet(c: char) -> bool {
    matches!(c, '●' | '⏺')
}

/// The glyphs that spinners turn through (recordings, section 2; contract 4.3).
pub fn is_spinner(c: char) -> bool {
    matches!(c, '·' | '✢' | '✳' | '✶' | '✻' | '✽' | '*') || is_braille(c)
}

/// The block of which many other spinners are made.
pub fn is_braille(c: char) -> bool {
    matches!(c, '\u{2800}'..='\u{28ff}')
}

/// Whether a line begins as the line does that moves while an agent works, or
/// the one that closes a turn.
pub fn spinner(text: &str) -> bool {
    let (first, rest) = head(text);
    is_spinner(first) && rest.starts_with(' ')
}

/// What tells a line that moves from one that closes a turn.
pub fn moves(text: &str) -> bool {
    has(text, "…|etrying in")
}

/// Whether a decision is asked for.
pub fn decision(lines: &[Line]) -> bool {
    has(&flat(lines), DECISION) || has_menu(lines)
}

/// What a decision is about, by words that were recorded or seen (section 3.3);
/// the first that fit.
const KINDS: [(&str, &str); 6] = [
    ("one you trust?|do you trust", "trust in its folder"),
    ("api key", "an API key"),
    ("new mcp server found", "an MCP server"),
    ("bypass permissions", "working without permissions"),
    ("would you like to proceed|ready to code?", "a plan"),
    ("do you want to |allow|approv|permission", "a permission"),
];

/// What the decision on these lines is about.
pub fn kind(lines: &[Line]) -> &'static str {
    let flat = flat(lines);
    let fits = KINDS.iter().find(|(words, _)| has(&flat, words));
    fits.map_or("a question or a menu", |(_, kind)| kind)
}

/// A cursor before an entry, or neighbours of which one is yes or no.
fn has_menu(lines: &[Line]) -> bool {
    // The last entry: its line and number, and whether it is yes or no.
    let mut last = (0, 0, false);
    for (at, line) in lines.iter().enumerate() {
        let line = flat(std::slice::from_ref(line));
        let (first, rest) = head(&line);
        let chosen = is_cursor(first);
        let text = if chosen || is_bullet(first) {
            rest.trim_start_matches(' ')
        } else {
            &line
        };
        let (number, text) = entry(text);
        if chosen && (number > 0 || is_one(first_word(text), OFFERS) || is_mark(head(text).0)) {
            return true;
        }
        if number == 0 {
            continue;
        }
        let answer = is_one(first_word(text), "yes|no");
        if last.1 > 0 && number == last.1 + 1 && at - last.0 <= APART && (last.2 || answer) {
            return true;
        }
        last = (at, number, answer);
    }
    false
}

/// The number of `1. Yes` or `2) No`, and the rest; 0 of anything else.
fn entry(text: &str) -> (usize, &str) {
    let (number, rest) = match text.as_bytes() {
        [a @ b'0'..=b'9', b'.' | b')', b' ', ..] => (usize::from(a - b'0'), &text[3..]),
        [a @ b'1'..=b'9', b @ b'0'..=b'9', b'.' | b')', b' ', ..] => (
            usize::from(a - b'0') * 10 + usize::from(b - b'0'),
            &text[4..],
        ),
        _ => (0, text),
    };
    (number, rest)
}

/// What can be marked in a menu.
fn is_mark(c: char) -> bool {
    matches!(c, '○' | '◯' | '◉' | '◻' | '◼' | '☐' | '☑' | '☒' | '✔' | '✓')
}

/// The letters and digits with which a text begins.
fn first_word(text: &str) -> &str {
    let ends = |b: u8| b.is_ascii() && !b.is_ascii_alphanumeric();
    &text[..text.bytes().position(ends).unwrap_or(text.len())]
}

/// The last line of less or vi: `:`, `~`, `lines 1-40/200`, `"file" 12L, 340B`.
pub fn is_place(line: &str) -> bool {
    is_one(line, ":|~") || begins(line, "lines |\"")
}

/// What stands behind a shell's prompt: `u@host:~$ text`, `[u@host ~]# text`,
/// `% text`. `None`: no such prompt.
#[inline(never)]
pub fn shell_prompt(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let at = bytes.iter().position(|b| matches!(b, b'$' | b'#' | b'%'))?;
    let (before, rest) = (&text[..at], &text[at + 1..]);
    let single = !has(before.trim_end_matches(' '), " ") || has(before, "@");
    // `5%` counts something.
    let counts = bytes[at] == b'%' && before.ends_with(|c: char| c.is_ascii_digit());
    let ends = rest.is_empty() || begins(rest, " ");
    (single && ends && !counts).then_some(rest)
}
