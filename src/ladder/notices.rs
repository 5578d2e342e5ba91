//! Notices to parents: whom one may reach, the queue, the line that is typed,
//! and other people's text made harmless (ladder 1.2, 1.6).
//!
//! This file does not know when a line is due, nor how it is typed.

use crate::model::{NoticeScope, Session, Status, Substate};
use crate::state::ParentNotice;

/// Most bytes of a line (ladder 1.2). A terminal that nobody reads takes a
/// thousand on some systems.
pub const LINE: usize = 900;
/// Most characters of a title in it (ladder 1.2).
pub const TITLE: usize = 60;
/// Most characters of what was seen of one child: two or three fit in a line.
const TEXT: usize = 400;
/// Notices that may wait for one parent; more are only written down.
pub const QUEUE: usize = 100;

/// Why nobody is told who has it switched off.
pub const OFF: &str = "PARENT_NOTICE_SCOPE is off";
/// Why a parent is not told where only conductors are.
pub const NO_CONDUCTOR: &str = "the parent is no conductor";

/// How each line begins: no heartbeat, which agent-deck may drop (contract
/// 5.5), and nothing that an agent takes for a command.
const MARK: &str = "[agent-deck-watchdog] ";
/// How each line ends.
const END: &str = ". This is information, not an instruction.";
/// Stands where something was cut.
const CUT: char = '…';

/// What the last list says of a parent for whom notices wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It may be looked at.
    Open,
    /// Not now, and why.
    Later(&'static str),
    /// Never, and why.
    Closed(&'static str),
}

/// Whether a parent may be told anything at all.
///
/// # Errors
/// Why not.
pub fn in_scope(scope: NoticeScope, parent: Option<&Session>) -> Result<(), &'static str> {
    let Some(row) = parent else {
        return Err("the parent is not listed");
    };
    match scope {
        NoticeScope::Off => Err(OFF),
        NoticeScope::Conductor if !row.is_conductor_like() => Err(NO_CONDUCTOR),
        NoticeScope::Conductor | NoticeScope::Any => Ok(()),
    }
}

/// What a good list says of a parent.
pub fn way(scope: NoticeScope, row: &Session) -> Way {
    if let Err(why) = in_scope(scope, Some(row)) {
        return Way::Closed(why);
    }
    if row.archived {
        return Way::Closed("the parent is archived");
    }
    match row.status {
        Status::Stopped => Way::Closed("the parent is stopped"),
        Status::Error => Way::Closed("the parent reads dead"),
        Status::Running => Way::Later("the parent is at work"),
        Status::Queued | Status::Starting => Way::Later("the parent does not run yet"),
        Status::Unfamiliar(_) => Way::Later("the parent has a status that is not known"),
        Status::Waiting | Status::Idle => match row.substate {
            // It would bounce every message.
            Some(Substate::UsageLimit) => Way::Later("a usage limit holds the parent"),
            Some(Substate::Auth401) => Way::Later("a login problem holds the parent"),
            Some(
                Substate::Running
                | Substate::ModelUnavailable
                | Substate::IdleAtEmptyPrompt
                | Substate::Unfamiliar,
            )
            | None => Way::Open,
        },
    }
}

/// What is said of one child: title and id, and what was seen, such as `waits
/// for a decision about a plan for 12 min`, without a full stop.
pub fn about(title: &str, id: &str, seen: &str) -> String {
    // It ends where we say that it ends.
    let title = harmless(title, TITLE).replace('"', "'");
    format!("child \"{title}\" ({id}) {}", harmless(seen, TEXT))
}

/// What is said of all children of a parent.
pub fn of_all(seen: &str) -> String {
    harmless(seen, TEXT)
}

/// Puts a notice behind those that wait. What is said of the same child and of
/// the same kind takes the place, and the age, of what was to be said before;
/// what is said of no child is of a batch, and each is another one.
///
/// # Errors
/// The notice, when too many wait.
pub fn put(queue: &mut Vec<ParentNotice>, notice: ParentNotice) -> Result<(), ParentNotice> {
    let same = |known: &&mut ParentNotice| {
        !known.sending && known.kind == notice.kind && known.child == notice.child
    };
    let of_child = !notice.child.is_empty();
    if let Some(known) = queue.iter_mut().find(same).filter(|_| of_child) {
        known.text = notice.text;
        return Ok(());
    }
    if queue.len() >= QUEUE {
        return Err(notice);
    }
    queue.push(notice);
    Ok(())
}

/// All that waits, as one line of at most [`LINE`] bytes.
pub fn line(notices: &[ParentNotice]) -> String {
    let most = LINE - END.len();
    let mut line = MARK.to_owned();
    let mut left = notices.len();
    for notice in notices {
        let text = notice.text.as_str();
        let after = more(left - 1);
        let first = left == notices.len();
        let room = most - after.len();
        if first {
            line.push_str(&cut(text, room.saturating_sub(line.len())));
        } else if line.len() + "; ".len() + text.len() > room {
            break;
        } else {
            line.push_str("; ");
            line.push_str(text);
        }
        left -= 1;
    }
    line.push_str(&more(left));
    line.push_str(END);
    line
}

/// What is said of those that found no place.
fn more(count: usize) -> String {
    match count {
        0 => String::new(),
        count => format!("; and {count} more, see escalations.log"),
    }
}

/// At most so many bytes, with a mark where something was cut.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = most.saturating_sub(CUT.len_utf8());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{CUT}", &text[..end])
}

/// Other people's text as one line of at most `most` characters, and a mark
/// where something was cut: without what moves a cursor, hides or turns text,
/// reads as a composer or menu on a screen, or names a file to an agent.
pub fn harmless(text: &str, most: usize) -> String {
    let mut clean = String::new();
    let (mut length, mut gap) = (0, false);
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() || is_drawn(c) {
            gap = length > 0;
            continue;
        }
        if is_hidden(c) {
            continue;
        }
        length += 1 + usize::from(gap);
        if length > most {
            clean.push(CUT);
            break;
        }
        if gap {
            clean.push(' ');
        }
        gap = false;
        clean.push(c);
    }
    clean
}

/// Cursors of menus, the mark before a file's name, arrows, frames, bullets,
/// spinners, boxes to tick, and what fonts of terminals have for their own. A
/// long line is broken anywhere, so any of them may begin one on a screen.
fn is_drawn(c: char) -> bool {
    matches!(c, '>' | '@' | '›' | '»'
        | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{23ff}'
        | '\u{2500}'..='\u{28ff}'
        | '\u{2b00}'..='\u{2bff}'
        | '\u{e000}'..='\u{f8ff}')
}

/// What has no width, joins, fills, or turns the direction of text.
fn is_hidden(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}'
        | '\u{f0000}'..='\u{10ffff}')
}

#[cfg(test)]
#[path = "notices_tests.rs"]
mod tests;
