//! The user's own words: what is held and paused, and flags that mean nobody.
//!
//! This file does not know what a flag leads to.

use super::case::Case;
use super::shell::{Ourselves, quoted};
use crate::clock::{Time, spoken};
use crate::commands::paper::Said;
use crate::host::flags::{AUTORESTART, AUTOSTOP, FOLDERS, HOLD, names};
use crate::model::SessionId;

/// Flags without a session that are named one by one.
const NAMED: usize = 5;

/// All of it.
pub fn checks(case: &mut Case) {
    in_force(case);
    strays(case);
}

fn until(end: Option<Time>, now: Time) -> String {
    match end {
        Some(end) => format!("for {} more", spoken(end.since(now))),
        None => "until that is taken back".to_owned(),
    }
}

fn in_force(case: &Case) {
    let found = case.found;
    let flags = &case.desk.watch.flags;
    let now = case.desk.now;
    if let Some(why) = &flags.trouble {
        found.problem(
            HOLD,
            format_args!("nothing is done, since anybody may be held: {why}"),
            format_args!("chmod 700 {}", quoted(&case.folder().join(HOLD))),
        );
    } else if let Some(pause) = &flags.pause {
        found.warning(
            "pause",
            format_args!(
                "restart, pollers and patrol are switched off on purpose: paused for {}, {}",
                spoken(now.since(pause.since)),
                until(pause.until, now)
            ),
            format_args!("{Ourselves} pause off"),
        );
    }
    let mut held = Said::default();
    for (id, end) in &flags.hold {
        if let Some(row) = case.desk.watch.row(id) {
            held.say(format_args!("{} {}", row.title, until(*end, now)));
        }
    }
    if !held.0.is_empty() {
        let (count, held) = (held.0.len(), held.0.join("; "));
        found.ok(HOLD, format_args!("{count} left alone on purpose: {held}"));
    }
}

/// Flags that name no session.
fn strays(case: &Case) {
    const NAME: &str = "flags";
    let found = case.found;
    let complete = case.desk.unlisted.is_empty() && case.desk.remarks.is_empty();
    let before = found.count();
    let (mut count, mut strays) = (0, 0);
    for flag in FOLDERS {
        let folder = case.folder().join(flag);
        let names = match names(&folder) {
            Ok(names) => names,
            // The hold folder is named above.
            Err(_) if flag == HOLD => continue,
            Err(error) => {
                found.problem(
                    NAME,
                    format_args!("{}: {error}", folder.display()),
                    format_args!("chmod 700 {}", quoted(&folder)),
                );
                continue;
            }
        };
        count += names.len();
        for name in names {
            let id = SessionId::parse(&name);
            let row = id.as_ref().and_then(|id| case.desk.watch.row(id));
            if row.is_some() || (id.is_some() && !complete) {
                continue;
            }
            strays += 1;
            if strays <= NAMED {
                stray(case, flag, &name, id.is_some());
            }
        }
    }
    if strays > NAMED {
        let all = FOLDERS.join(" ");
        found.warning(
            NAME,
            format_args!("{} more that name no session", strays - NAMED),
            format_args!("cd {} && ls {all}", quoted(&case.folder())),
        );
    } else if found.count() == before {
        found.ok(NAME, format_args!("{count}, each of a listed session"));
    }
}

/// Why a flag means nobody, and what to do about it.
fn stray(case: &Case, flag: &str, name: &str, is_id: bool) {
    let path = case.folder().join(flag).join(name);
    let titled = case.desk.chosen(&|row| row.title == name);
    let mut put = String::new();
    let mut why = match is_id {
        true => "names a session that no watched profile lists",
        false => "is no session's id, and counts for nobody",
    };
    if let [row] = &titled[..]
        && flag != AUTOSTOP
    {
        why = "names a session by its title, and counts for nobody";
        let word = if flag == AUTORESTART { "watch" } else { flag };
        put = format!("{Ourselves} {word} {} && ", row.id);
    }
    case.found.warning(
        "flags",
        format_args!("{flag}/{name} {why}"),
        format_args!("{put}rm {}", quoted(&path)),
    );
}
