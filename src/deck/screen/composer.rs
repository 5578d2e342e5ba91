//! Claude's input box: where it is, what is in it, what is below it.
//!
//! A line that begins with `❯` and a no-break space, a full-width rule above
//! and one of the same width below (recordings, section 3.1). Rules with a
//! name inside, as other versions may draw, count as none: silence. This file
//! does not know what stands above the box.

use super::lines::Line;
use super::signs;
use crate::model::Silence;

/// Shortest rule, in columns. The narrowest screen recorded has 60.
const RULE: usize = 20;
/// Columns of the prompt.
const PROMPT: usize = 2;
/// Lines below the box that are a footer; more are a menu or a help text
/// (recordings, section 3.2).
pub const FOOTER: usize = 2;
/// Lines below a box at which it is taken for a drawing in the history.
const FAR: usize = 40;
/// The proposal that is none.
const QUEUED: &str = "edit queued messages";

/// What is in the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Nothing.
    Empty,
    /// Dim text, its first character under the cursor.
    Hint,
    /// The dim text that says that a message is queued.
    Queued,
    /// Any other text, of one line or several.
    Text,
    /// `!` in place of `❯`.
    Shell,
}

/// The last box of a capture.
#[derive(Debug)]
pub struct Composer<'a> {
    /// The lines above its upper rule.
    pub above: &'a [Line],
    /// What is in it.
    pub ink: Ink,
    /// All below its lower rule, without blank lines at the end.
    pub footer: &'a [Line],
}

/// Finds the box between the last two rules of a capture.
#[inline(never)]
pub fn find(lines: &[Line]) -> Option<Composer<'_>> {
    let lower = lines.iter().rposition(is_rule)?;
    let upper = lines[..lower].iter().rposition(is_rule)?;
    let inside = &lines[upper + 1..lower];
    let footer = &lines[lower + 1..];
    if lines[upper].text != lines[lower].text || footer.len() > FAR {
        return None;
    }
    let first = &inside.first()?.text;
    let ink = if signs::begins(first, "!\u{a0}") {
        Ink::Shell
    } else if signs::begins(first, "❯\u{a0}") {
        ink(inside)
    } else {
        return None;
    };
    Some(Composer {
        above: &lines[..upper],
        ink,
        footer,
    })
}

#[inline(never)]
fn is_rule(line: &Line) -> bool {
    line.text.len() >= RULE * '─'.len_utf8() && line.text.chars().all(|c| c == '─')
}

fn ink(inside: &[Line]) -> Ink {
    let mut ink = Line::default();
    for line in inside {
        ink.dim += line.dim;
        ink.reversed += line.reversed;
        // The prompt itself does not count.
        let prompt = if ink.text.is_empty() { PROMPT } else { 0 };
        ink.bright += line.bright.saturating_sub(prompt);
        ink.text.push_str(&line.text);
    }
    if ink.text.len() == "❯\u{a0}".len() && inside.len() == 1 {
        // A cursor behind blanks that somebody typed.
        let moved = inside[0].cursor.is_some_and(|column| column > PROMPT);
        return if moved { Ink::Text } else { Ink::Empty };
    }
    if ink.bright > 0 || ink.dim == 0 || ink.reversed > 1 {
        return Ink::Text;
    }
    if signs::has(&signs::flat(inside), QUEUED) {
        Ink::Queued
    } else {
        Ink::Hint
    }
}

/// What runs in the background, in the footer's words. `shell` was recorded,
/// the others stand for what else the agent may run there.
const BACKGROUND: &str = "shell|task|background|bash|agent|local|monitor|job|teammate|workflow";

/// An editing mode in which letters are commands; the first of two keys that
/// leave; words of an agent that has left; a pager that shows a box.
const UNSETTLED: &str = "-- normal|-- visual| again to |has been suspended|--resume|(end)|--more--";

/// The prompt of a shell, a question, the last line of an editor: below the box
/// of an agent that has ended, or of a drawing.
fn is_foreign(line: &Line) -> bool {
    let text = &line.text;
    signs::shell_prompt(text).is_some()
        || signs::is_place(text)
        || signs::is_cursor(signs::head(text).0)
        || signs::is_cursor(text.chars().next_back().unwrap_or_default())
        || matches!(text.as_bytes().last(), Some(b'?' | b':'))
}

impl Composer<'_> {
    /// Whether nothing but a footer is below it.
    pub fn is_last(&self) -> bool {
        self.footer.len() <= FOOTER
    }

    /// What in the footer forbids to type. An empty box always has one (a hint,
    /// a mode, the user's status line): the hint goes when something is typed,
    /// be it a blank (recordings, section 3.5).
    pub fn footer_forbids(&self) -> Option<Silence> {
        if self.footer.is_empty() || self.footer.iter().any(Line::is_blank) {
            return Some(Silence::Unclear);
        }
        let text = signs::flat(self.footer);
        let says = |phrases| signs::has(&text, phrases);
        if says("search prompts:|i-search") {
            Some(Silence::Search)
        } else if says("interrupt") {
            Some(Silence::Busy)
        } else if says("run /login|not logged in") {
            Some(Silence::Credentials)
        } else if says("enter to |esc to |to toggle") {
            Some(Silence::Menu)
        } else if says(UNSETTLED) || self.footer.iter().any(is_foreign) {
            Some(Silence::Unclear)
        } else {
            None
        }
    }

    /// Whether the footer counts shells or tasks, as `1 shell`.
    pub fn has_background(&self) -> bool {
        if !self.is_last() {
            return false;
        }
        let text = signs::flat(self.footer);
        let mut counted = false;
        for word in text.split(' ') {
            if counted && signs::begins(word, BACKGROUND) {
                return true;
            }
            counted = word.bytes().all(|b| b.is_ascii_digit()) && word != "0";
        }
        false
    }
}
