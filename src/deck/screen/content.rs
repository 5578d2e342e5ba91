//! What a person would call the content of a screen, as a digest.
//!
//! Two captures of a screen at rest have the same one, whatever the colours,
//! the hints below the input box, the row at which it stands or the width of
//! its rules (contract 4.3; recordings, section 2). This file does not know
//! whether anything may be typed.

use super::composer::{Composer, Ink};
use super::lines::{Line, push};
use super::signs::{self, flat, has};
use crate::model::Digest;

/// Lines counted upward from the input box (recordings, section 2).
const ABOVE: usize = 15;
/// Lines of a screen without one: as far as a tall dialog reaches.
const WHOLE: usize = 30;

/// Lines below the box up to which they are the user's status line, which may
/// move, and no content.
const STATUS: usize = 5;

/// Units of sizes, and of them in a second without its stroke (contract 4.3).
const SIZES: &str = "b|kb|mb|gb|tb|kib|mib|gib|tib|bs|kbs|mbs|gbs|kibs|mibs|gibs";

/// Digest of the content. Of the input box itself only counts whether something
/// is in it: proposals come and go, and without colours they are drafts.
#[inline(never)]
pub fn digest(lines: &[Line], composer: Option<&Composer>) -> Digest {
    let (lines, most, class) = match composer.filter(|composer| composer.footer.len() <= STATUS) {
        None => (lines, WHOLE, 'n'),
        Some(composer) => {
            let class = match composer.ink {
                Ink::Empty => 'e',
                Ink::Hint | Ink::Queued | Ink::Text => 't',
                Ink::Shell => 's',
            };
            (composer.above, ABOVE, class)
        }
    };
    let mut out = String::from(class);
    let mut counted = 0;
    let mut gap = false;
    for (at, line) in lines.iter().enumerate().rev() {
        if counted >= most || ends_banner(&lines[..=at]) {
            break;
        }
        if is_moving(&line.text) {
            continue;
        }
        let before = out.len();
        push_line(&mut out, &flat(std::slice::from_ref(line)));
        // A run of blank lines counts as one, but not in the digest.
        let blank = out.len() == before;
        if !blank {
            out.push('\n');
        }
        counted += usize::from(!blank || (!gap && counted > 0));
        gap = blank;
    }
    super::sha256(&out)
}

/// Whether the last line is the lower side of the box with which the agent
/// begins its screen: what is above it is of before. Its upper side may be cut
/// off.
fn ends_banner(lines: &[Line]) -> bool {
    let begins = |line: &Line, corner| signs::begins(&line.text, corner);
    lines.last().is_some_and(|line| begins(line, "╰")) && {
        let head = lines.iter().rfind(|line| begins(line, "╭"));
        head.is_none_or(|head| has(&head.text, "Claude Code"))
    }
}

/// Lines that move while nothing happens: spinners, retries, tips.
fn is_moving(text: &str) -> bool {
    let tip = has(text, "⎿") && has(text, "Tip: ");
    tip || has(text, "etrying in ") || (signs::spinner(text) && signs::moves(text))
}

/// The words of a line without what moves in it: counters in brackets,
/// measures, bars, what turns or blinks.
fn push_line(out: &mut String, line: &str) {
    let mut skip = false;
    // Where the last word began, if it was a bare number.
    let mut number = None;
    for word in line.split(' ') {
        let kind = kind(word);
        skip |= kind == Kind::Counter;
        if skip {
            skip = !word.ends_with(')');
            continue;
        }
        if word.chars().all(is_bar) {
            continue;
        }
        if kind == Kind::Size {
            out.truncate(number.unwrap_or(out.len()));
        }
        number = (kind == Kind::Number).then_some(out.len());
        out.push_str(match kind {
            Kind::Size | Kind::Measure => "#",
            Kind::Number | Kind::Counter | Kind::Word => word,
        });
        out.push(' ');
    }
}

/// What a word counts.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// `3.4`
    Number,
    /// `MB`
    Size,
    /// `45%`, `1.2MB/s`, `[12:34:56]`
    Measure,
    /// `(53s`, with which `(53s · ↓ 749 tokens)` begins.
    Counter,
    /// Nothing.
    Word,
}

fn kind(word: &str) -> Kind {
    let mut unit = String::new();
    let (mut digits, mut clock, mut last) = (false, false, ' ');
    for c in word.chars() {
        if c.is_ascii_digit() {
            digits = true;
            clock |= last == ':';
        } else if !matches!(
            c,
            '(' | ')' | '[' | ']' | ',' | '<' | '>' | '~' | '/' | '.' | ':'
        ) {
            push(&mut unit, c);
        }
        last = c;
    }
    let is = |units| signs::is_one(&unit, units);
    match (digits, unit.is_empty()) {
        (false, _) if is(SIZES) => Kind::Size,
        (false, _) => Kind::Word,
        (true, true) if clock => Kind::Measure,
        (true, true) => Kind::Number,
        (true, false) if unit == "%" || is(SIZES) || (clock && is("am|pm")) => Kind::Measure,
        (true, false) if word.starts_with('(') && is("s|m|h") => Kind::Counter,
        (true, false) => Kind::Word,
    }
}

/// A part of a rule, a box, a bar, also of a plain one (`[###...]`), or what
/// turns or blinks.
fn is_bar(c: char) -> bool {
    matches!(c, '\u{2500}'..='\u{259f}' | '▰' | '▱' | '■' | '□')
        || matches!(c, '[' | ']' | '=' | '>' | '#' | '.' | '-')
        || signs::is_spinner(c)
        || signs::is_bullet(c)
}
