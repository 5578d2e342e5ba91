//! What the agent says last, right above its input box: that it works, that it
//! was refused, that it was broken off.
//!
//! Only there: what stands further up, or inside a message, is history or
//! somebody's quotation. This file does not know what is in the box.

use super::lines::Line;
use super::signs::{self, begins, flat, has, head};
use crate::model::Silence;

/// Lines above the box among which the line that moves while the agent works
/// is: its tips, tasks and queued messages may be below it.
const NEAR: usize = 60;
/// How far into the last message the words for a limit go
/// (`Opus weekly limit reached`), in bytes.
const EARLY: usize = 30;

/// How a last message begins that says that the agent may not work. Recorded:
/// 401, 403, low credit. The rest are words of other versions and of
/// subscriptions.
const CREDENTIALS: &str = "please run /login|invalid api key ·|credit balance too low|\
    credit balance is too low|not logged in ·|oauth token revoked|oauth token has expired|\
    oauth authentication is|api error: 401|api error: 403|api error (401|api error (403|\
    failed to authenticate|your organization has been|your organization does|\
    this organization has been|login expired";
/// The same for limits. Recorded: 429 of both kinds.
const LIMIT: &str = "api error: request rejected (429|api error: 429|api error (429|\
    claude usage limit|claude ai usage limit|usage limit reached";
/// Words of a limit that stand early in such a message, which goes on to say
/// when it is reset.
const LIMIT_EARLY: &str = "limit reached|hit your|out of extra usage";
/// What is written below a turn that a user broke off.
const INTERRUPTED: &str = "interrupted ·|interrupted by user|[request interrupted";

/// What the lines above the box forbid.
#[inline(never)]
pub fn silence(above: &[Line]) -> Option<Silence> {
    let above = without_blanks(above);
    let last = &above.last()?.text;
    // A queued message is shown there, moved in.
    if begins(last, " ") && begins(last.trim_start_matches(' '), "❯ ") {
        return Some(Silence::Queued);
    }
    if works(above) {
        return Some(Silence::Busy);
    }
    refusal(above)
}

fn without_blanks(mut lines: &[Line]) -> &[Line] {
    while let [before @ .., last] = lines
        && last.is_blank()
    {
        lines = before;
    }
    lines
}

/// Whether the last message is followed by a line that moves. Such a line may
/// be broken on a narrow screen, and has a bullet where motion is reduced.
fn works(above: &[Line]) -> bool {
    let mut moves = false;
    for line in above.iter().rev().take(NEAR) {
        let (first, rest) = head(&line.text);
        if signs::is_bullet(first) {
            // Its first word.
            let rest = rest.trim_start_matches(' ');
            let word = rest.split(' ').next().unwrap_or_default();
            return word.ends_with('…');
        }
        if begins(&line.text, "❯ ") {
            return false;
        }
        moves = !line.is_blank() && (moves || signs::moves(&line.text));
        if moves && signs::spinner(&line.text) {
            return true;
        }
    }
    false
}

/// The last message or result, if it is one paragraph. Closing lines
/// (`✻ Worked for 3s`) may follow it.
fn last_message(mut above: &[Line]) -> &[Line] {
    loop {
        let start = above
            .iter()
            .rposition(Line::is_blank)
            .map_or(0, |at| at + 1);
        let lines = &above[start..];
        if lines.first().is_some_and(|line| signs::spinner(&line.text)) {
            above = without_blanks(&above[..start]);
            continue;
        }
        let head = lines
            .iter()
            .rposition(|line| signs::is_bullet(head(&line.text).0) || is_result(&line.text));
        return head.map_or(&[], |head| &lines[head..]);
    }
}

fn is_result(text: &str) -> bool {
    begins(text.trim_start_matches(' '), "⎿")
}

fn refusal(above: &[Line]) -> Option<Silence> {
    let lines = last_message(above);
    let text = flat(lines);
    let text = head(&text).1.trim_start_matches(' ');
    let early = text.get(..EARLY).unwrap_or(text);
    if begins(text, CREDENTIALS) || has(text, "· please run /login") {
        Some(Silence::Credentials)
    } else if begins(text, LIMIT) || (has(text, "reset") && has(early, LIMIT_EARLY)) {
        Some(Silence::UsageLimit)
    } else if lines.first().is_some_and(|line| is_result(&line.text)) && begins(text, INTERRUPTED) {
        Some(Silence::Interrupted)
    } else {
        None
    }
}
