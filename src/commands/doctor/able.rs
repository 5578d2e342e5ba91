//! What the watchdog can do, all in all: each capability is on, or impossible
//! and why. What is switched off on purpose was said with its switch.
//!
//! This file does not know how any of it was found out.

use super::Case;
use crate::capabilities::patrol::is_child;
use crate::capabilities::restart::is_critical;
use crate::commands::paper::Light;

/// Checks without which nothing is done.
const NEEDED: [&str; 9] = [
    "system",
    "user",
    "folder",
    "disk",
    "memory",
    "agent-deck",
    "profile",
    "tmux",
    "tmux server",
];

/// All of it.
pub fn checks(case: &mut Case) {
    let red = |case: &Case, names: &[&str]| {
        let checks = case.checks.iter().filter(|c| c.light == Light::Red);
        let mut found: Vec<&str> = Vec::new();
        for check in checks.filter(|check| names.contains(&check.name)) {
            if !found.contains(&check.name) {
                found.push(check.name);
            }
        }
        found.join(", ")
    };
    let needed = red(case, &NEEDED);
    let off = case.desk.watch.flags.pause.is_some();
    let watch = &case.desk.watch;
    let rows = watch.all_rows().filter(|row| !row.archived).count();
    let critical = watch
        .all_rows()
        .filter(|row| is_critical(row, &watch.flags));
    let critical = critical.filter(|row| !row.archived).count();
    let children = watch.all_rows().filter(|row| is_child(row)).count();
    let first = watch.all_rows().next().map(|row| row.id.to_string());
    let on = if off { "off on purpose (pause)" } else { "on" };

    let no_panes = red(case, &["version"]);
    let mut impossible = needed.clone();
    if !no_panes.is_empty() {
        impossible = format!("{impossible} {no_panes}").trim_start().to_owned();
    }
    // How that is mended stands there.
    if !impossible.is_empty() {
        case.problem(
            "restart",
            format!("impossible as long as there is a problem with {impossible}"),
            "",
        );
    } else if critical == 0 && rows > 0 {
        let us = super::ourselves();
        let sentence =
            format!("{on}, but none of {rows} sessions is critical: no conductor, no flag");
        let mend = format!("{us} watch {}", first.unwrap_or_default());
        case.warning("restart", sentence, mend);
    } else {
        case.ok(
            "restart",
            format!("{on}; {critical} of {rows} sessions are critical"),
        );
    }
    if !needed.is_empty() {
        case.problem(
            "patrol",
            format!("impossible as long as there is a problem with {needed}"),
            "",
        );
    } else if case.version.is_some_and(|version| version < (1, 14, 0)) {
        let mend = format!("{} update", case.deck());
        let sentence =
            "impossible: agent-deck before 1.14.0 does not list whose child a session is";
        case.warning("patrol", sentence, mend);
    } else {
        case.ok(
            "patrol",
            format!("{on}; of {rows} sessions, children that may wait: {children}"),
        );
    }
}
