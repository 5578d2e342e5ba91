//! Reads a screen: may something be typed there, has it changed, does it ask?
//!
//! Typing is by permission (DESIGN 3.4): into a Claude session only when its
//! free input box is the last thing on the screen. Everything here errs on the
//! side of silence. What the words and shapes are was recorded from a real
//! agent (`tests/recordings/screens`); "recordings, section 3" in comments is
//! that index. Parts are not inlined into one another, which weighs kilobytes.
//! This room does not know which session a screen belongs to, and no text
//! leaves it but through [`plain`], for the user's own triage program.

use sha2::{Digest as _, Sha256};

use crate::model::{Digest, Screen, Silence};

mod closing;
mod composer;
mod content;
mod lines;
mod other;
mod signs;

pub use composer::FOOTER;
use composer::{Composer, Ink};
use lines::Line;

/// Lines with text, from the end, in which a dialog is looked for when there
/// is no input box. Tall ones may have lost their head above.
const WINDOW: usize = 25;

/// Reads the `content` of `session output --pane --json` (contract 4.1): up to
/// 2000 lines of history, then the visible screen.
pub fn read(content: &str) -> Screen {
    let lines = lines::tail(content);
    let composer = composer::find(&lines);
    let window = match &composer {
        Some(composer) => composer.footer,
        None => last(&lines, WINDOW),
    };
    let decision = signs::decision(window);
    let claude = match &composer {
        Some(composer) => silence(composer, decision),
        None if lines.is_empty() => Some(Silence::Empty),
        None if decision => Some(Silence::Dialog),
        None => Some(Silence::NoComposer),
    };
    let other = match &composer {
        // Claude's own input box, whatever the row calls its tool.
        Some(_) => claude,
        None => other::silence(last(&lines, WINDOW), decision),
    };
    Screen {
        raw: sha256(content),
        content: content::digest(&lines, composer.as_ref()),
        claude,
        other,
        decision,
        asks: if decision { signs::kind(window) } else { "" },
        background: composer.as_ref().is_some_and(Composer::has_background),
    }
}

/// How a screen is drawn, as far as that can hide a composer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Lines below the composer; 0 where there is none.
    pub footer: usize,
    /// Something on it has a colour or is dim. With `NO_COLOR` a Claude still
    /// reverses its cursor, and draws what is dim otherwise like typed text.
    pub coloured: bool,
}

/// Looks at how the same `content` is drawn.
pub fn form(content: &str) -> Form {
    let lines = lines::tail(content);
    Form {
        footer: composer::find(&lines).map_or(0, |composer| composer.footer.len()),
        coloured: content.split("\u{1b}[").skip(1).any(colours),
    }
}

/// Lines of a screen that a triage program reads (ladder 1.2).
const PLAIN_LINES: usize = 200;
/// Bytes of them (ladder 1.2).
const PLAIN_BYTES: usize = 32 * 1024;

/// The last lines of the same `content` without escapes and control characters.
pub fn plain(content: &str) -> String {
    let lines = lines::tail(content);
    let first = lines.len().saturating_sub(PLAIN_LINES);
    let mut text = String::new();
    for line in &lines[first..] {
        text.push_str(&line.text);
        text.push('\n');
    }
    let mut start = text.len().saturating_sub(PLAIN_BYTES);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.split_off(start)
}

/// Whether a sequence sets a colour, or dims (ECMA-48, 8.3.117).
fn colours(sequence: &str) -> bool {
    let (codes, _) = sequence.split_once('m').unwrap_or_default();
    codes.split(';').any(|code| match code.as_bytes() {
        b"2" => true,
        [b'3' | b'4' | b'9', digit] => matches!(digit, b'0'..=b'8'),
        _ => false,
    })
}

#[inline(never)]
fn sha256(text: &str) -> Digest {
    Sha256::digest(text.as_bytes()).into()
}

/// What forbids to type where an input box is. What a caller may overrule, a
/// proposal, comes last.
fn silence(composer: &Composer, decision: bool) -> Option<Silence> {
    if decision {
        return Some(Silence::Dialog);
    }
    if !composer.is_last() {
        return Some(Silence::Menu);
    }
    match composer.ink {
        Ink::Shell => return Some(Silence::ShellMode),
        Ink::Text => return Some(Silence::Draft),
        Ink::Queued => return Some(Silence::Queued),
        Ink::Hint | Ink::Empty => {}
    }
    if let Some(silence) = composer.footer_forbids() {
        return Some(silence);
    }
    if let Some(silence) = closing::silence(composer.above) {
        return Some(silence);
    }
    (composer.ink == Ink::Hint).then_some(Silence::Suggestion)
}

/// The lines from the one on behind which only so many have text.
fn last(lines: &[Line], most: usize) -> &[Line] {
    let texts = lines
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, l)| !l.is_blank());
    let start = texts.take(most).last().map_or(0, |(at, _)| at);
    &lines[start..]
}

#[cfg(test)]
#[path = "screen/content_tests.rs"]
mod content_tests;
#[cfg(test)]
#[path = "screen/mutation_tests.rs"]
mod mutation_tests;
#[cfg(test)]
#[path = "screen/other_tests.rs"]
mod other_tests;
#[cfg(test)]
#[path = "screen/panes_tests.rs"]
mod panes_tests;
#[cfg(test)]
#[path = "screen/plain_tests.rs"]
mod plain_tests;
#[cfg(test)]
#[path = "screen/recordings_tests.rs"]
mod recordings_tests;
