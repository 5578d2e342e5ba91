//! The user's own words: what is held and paused, and flags that mean nobody.
//!
//! This file does not know what a flag leads to.

use super::{Case, ourselves, quoted};
use crate::clock::{Time, spoken};
use crate::host::flags::{AUTORESTART, CLEAR, HOLD, names};
use crate::host::logs::escape;
use crate::model::SessionId;

/// The folders with one file per session; the last is the ladder's.
const FOLDERS: [&str; 4] = [AUTORESTART, HOLD, CLEAR, "autostop"];
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

fn in_force(case: &mut Case) {
    let flags = case.desk.watch.flags.clone();
    let now = case.desk.now;
    if let Some(why) = flags.trouble {
        let folder = case.folder().join(HOLD);
        let sentence = format!("nothing is done, since anybody may be held: {why}");
        case.problem("hold", sentence, format!("chmod 700 {}", quoted(folder)));
    } else if let Some(pause) = flags.pause {
        let sentence = format!(
            "restart, pollers and patrol are switched off on purpose: paused for {}, {}",
            spoken(now.since(pause.since)),
            until(pause.until, now)
        );
        case.warning("pause", sentence, format!("{} pause off", ourselves()));
    }
    let held: Vec<String> = flags
        .hold
        .iter()
        .filter_map(|(id, end)| {
            let title = &case.desk.watch.row(id)?.title;
            Some(format!("{} {}", escape(title), until(*end, now)))
        })
        .collect();
    if !held.is_empty() {
        let sentence = format!("{} left alone on purpose: {}", held.len(), held.join("; "));
        case.ok("hold", sentence);
    }
}

/// Flags that name no session.
fn strays(case: &mut Case) {
    let complete = case.desk.unlisted.is_empty() && case.desk.remarks.is_empty();
    let mut found = 0;
    let mut count = 0;
    for flag in FOLDERS {
        let folder = case.folder().join(flag);
        let names = match names(&folder) {
            Ok(names) => names,
            // The hold folder is named above.
            Err(_) if flag == HOLD => continue,
            Err(error) => {
                found += 1;
                let sentence = format!("{}: {error}", folder.display());
                case.problem("flags", sentence, format!("chmod 700 {}", quoted(folder)));
                continue;
            }
        };
        count += names.len();
        for name in names {
            let id = SessionId::parse(&name);
            let known = id
                .as_ref()
                .is_some_and(|id| case.desk.watch.row(id).is_some());
            if known || (id.is_some() && !complete) {
                continue;
            }
            found += 1;
            if found > NAMED {
                continue;
            }
            let (why, mend) = stray(case, flag, &name);
            case.warning("flags", format!("{flag}/{} {why}", escape(&name)), mend);
        }
    }
    if found > NAMED {
        let sentence = format!("{} more that name no session", found - NAMED);
        let folder = quoted(case.folder());
        case.warning(
            "flags",
            sentence,
            format!("cd {folder} && ls {}", FOLDERS.join(" ")),
        );
    } else if found == 0 {
        let sentence = match count {
            0 => "none".to_owned(),
            n => format!("{n}, each of a listed session"),
        };
        case.ok("flags", sentence);
    }
}

/// Why a flag means nobody, and what to do about it.
fn stray(case: &Case, flag: &str, name: &str) -> (&'static str, String) {
    let path = quoted(case.folder().join(flag).join(name));
    let rows = case.desk.watch.all_rows();
    let mut titled = rows.filter(|row| row.title == name);
    let word = match flag {
        AUTORESTART => "watch",
        other => other,
    };
    match (SessionId::parse(name), titled.next(), titled.next()) {
        (_, Some(row), None) if flag != "autostop" => (
            "names a session by its title, and counts for nobody",
            format!("{} {word} {} && rm {path}", ourselves(), row.id),
        ),
        (None, _, _) => (
            "is no session's id, and counts for nobody",
            format!("rm {path}"),
        ),
        (Some(_), _, _) => (
            "names a session that no watched profile lists",
            format!("rm {path}"),
        ),
    }
}
