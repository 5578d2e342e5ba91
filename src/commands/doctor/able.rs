//! What the watchdog can do, all in all: each capability is on, or impossible
//! and why. What is switched off on purpose was said with its switch.
//!
//! This file does not know how any of it was found out.

use super::case::Case;
use super::shell::Ourselves;
use crate::capabilities::patrol::is_child;
use crate::capabilities::restart::is_critical;

/// Checks without which nothing is done; the last one counts for restarts alone.
const NEEDED: [&str; 10] = [
    "system",
    "user",
    "folder",
    "disk",
    "memory",
    "agent-deck",
    "profile",
    "tmux",
    "tmux server",
    VERSION,
];
const VERSION: &str = "version";

/// All of it.
pub fn checks(case: &mut Case) {
    let deck = case.deck();
    let found = case.found;
    let watch = &case.desk.watch;
    let (mut rows, mut critical, mut children) = (0, 0, 0);
    let mut first = String::new();
    for row in case.desk.rows() {
        children += usize::from(is_child(row));
        if !row.archived {
            rows += 1;
            critical += usize::from(is_critical(row, &watch.flags));
        }
        if first.is_empty() {
            first = row.id.to_string();
        }
    }
    let on = match watch.flags.pause {
        Some(_) => "off on purpose (pause)",
        None => "on",
    };
    let mut needed = red(case, &NEEDED);
    let impossible = |name, reds: &[&str]| {
        let reds = reds.join(", ");
        // How that is mended stands there.
        found.problem(
            name,
            format_args!("impossible as long as there is a problem with {reds}"),
            format_args!(""),
        );
    };
    if !needed.is_empty() {
        impossible("restart", &needed);
    } else if critical == 0 && rows > 0 {
        found.warning(
            "restart",
            format_args!("{on}, but none of {rows} sessions is critical: no conductor, no flag"),
            format_args!("{Ourselves} watch {first}"),
        );
    } else {
        let sentence = format_args!("{on}; {critical} of {rows} sessions are critical");
        found.ok("restart", sentence);
    }
    needed.retain(|name| *name != VERSION);
    if !needed.is_empty() {
        impossible("patrol", &needed);
    } else if case.version.is_some_and(|version| version < (1, 14, 0)) {
        found.warning(
            "patrol",
            format_args!(
                "impossible: agent-deck before 1.14.0 does not list whose child a session is"
            ),
            format_args!("{deck} update"),
        );
    } else {
        let sentence = format_args!("{on}; of {rows} sessions, children that may wait: {children}");
        found.ok("patrol", sentence);
    }
}

/// Those of these names that are a problem.
fn red(case: &Case, names: &[&'static str]) -> Vec<&'static str> {
    let mut red = Vec::new();
    for name in names {
        red.extend(case.found.red(&|check| check.name == *name));
    }
    red
}
