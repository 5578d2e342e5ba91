//! Screens of tools whose input box is not known: plain shells, other agents,
//! programs that they run.
//!
//! Nothing can be permitted by what is known here; so every sign of a menu,
//! question, dialog or draft forbids. This file does not know which tool it is.

use super::lines::Line;
use super::signs::{self, begins, flat, has, head};
use crate::model::Silence;

/// Lines with text, from the end, among which a prompt is looked for.
const NEAR: usize = 12;

/// Words of agents at work.
const BUSY: &str = "to interrupt|esc interrupt|esc to stop|ctrl+c to stop|ctrl-c to stop";
/// Words of pagers and editors.
const PAGERS: &str = "--more--|(end)|manual page |-- insert --|-- normal --|-- visual|\
    -- replace --|q to quit|q: quit|press q |^x exit|f10quit|e325:";
/// Words of a search in the history.
const SEARCHES: &str = "i-search|search prompts:";
/// What is asked for where nothing is shown.
const SECRETS: &str = "password|passphrase|passcode|verification code|api key|username";
/// What stands in the empty input box of other agents.
const PROPOSALS: &str = "type your message|type a message|ask anything|send a message";

/// What the end of a screen forbids; `decision` is what it asks for.
#[inline(never)]
pub fn silence(lines: &[Line], decision: bool) -> Option<Silence> {
    let Some((last, before)) = lines.split_last() else {
        return Some(Silence::Empty);
    };
    let line = flat(std::slice::from_ref(last));
    let end = flat(super::last(lines, 2));
    let near = super::last(lines, NEAR);
    let asks = line.ends_with(':');
    if asks && has(&line, SECRETS) {
        Some(Silence::Credentials)
    } else if has(&end, SEARCHES) {
        Some(Silence::Search)
    } else if has(&end, PAGERS) || signs::is_place(&line) || before.last().is_some_and(is_count) {
        Some(Silence::Menu)
    } else if decision {
        Some(Silence::Dialog)
    } else if has(&flat(near), BUSY) || near.iter().any(turns) {
        Some(Silence::Busy)
    } else if asks || line.ends_with('?') {
        Some(Silence::Dialog)
    } else {
        match signs::shell_prompt(&last.text) {
            // What is typed would be run.
            Some("") => Some(Silence::ShellMode),
            Some(_) => Some(Silence::Draft),
            None => has_draft(near).then_some(Silence::Draft),
        }
    }
}

/// `3/12`, above the prompt of a list that is searched.
fn is_count(line: &Line) -> bool {
    let text = line.text.trim_start_matches(' ');
    has(text, "/") && text.bytes().all(|b| b == b'/' || b.is_ascii_digit())
}

/// A line that begins with a turning braille character.
fn turns(line: &Line) -> bool {
    let text = line.text.trim_start_matches(' ');
    signs::is_braille(head(text).0) && signs::spinner(text)
}

/// Whether text that is not dim follows the last prompt: what is above it are
/// messages of before.
fn has_draft(near: &[Line]) -> bool {
    for line in near.iter().rev() {
        let text = flat(std::slice::from_ref(line));
        let (first, rest) = head(&text);
        // `>>>`
        let rest = rest.trim_start_matches('>');
        if !signs::is_cursor(first) || !(rest.is_empty() || rest.starts_with(' ')) {
            continue;
        }
        let text = rest.trim_start_matches(' ');
        let prompt = line.text.len() - line.text.trim_start_matches(' ').len() + 1;
        let dim = line.dim > 0 && line.bright <= prompt;
        return !text.is_empty() && !dim && !begins(text, PROPOSALS);
    }
    false
}
