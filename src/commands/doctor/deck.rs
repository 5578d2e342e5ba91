//! agent-deck: where it is, its version against what is used, the profiles, its
//! configuration.
//!
//! This file does not know what is in a session.

use std::path::{Path, PathBuf};

use super::{Case, Check, quoted};
use crate::commands::paper::Light;
use crate::config::{Bin, Wanted};
use crate::deck::telegram::{declared, readable};
use crate::machine::bin::{is_program, on_path};
use crate::machine::profiles::foreign;
use crate::model::{Declared, NoAnswer, Profile};

/// The version that this was tried with.
const TRIED: (u32, u32, u32) = (1, 14, 0);
/// Below this no terminal can be looked at: `session output --pane` (contract 10).
const LEAST: (u32, u32, u32) = (1, 9, 24);
/// What is missing below a version, newest first (contract 10).
const MISSING: [((u32, u32, u32), &str); 4] = [
    (
        TRIED,
        "children are not told from others, so none is asked to report",
    ),
    (
        (1, 11, 0),
        "a message left in the composer passes for one that arrived",
    ),
    ((1, 10, 11), "login problems are only seen on the screen"),
    ((1, 9, 66), "nor are they or usage limits seen at all"),
];
/// Finds it wherever it is.
const SEARCH: &str = "export AGENT_DECK_BIN=\"$(find / -name agent-deck -type f -perm -u+x \
                      -print -quit 2>/dev/null)\"";
/// Where else it may be.
const FURTHER: [&str; 4] = [
    "/usr/bin",
    "/opt/local/bin",
    "/home/linuxbrew/.linuxbrew/bin",
    "/snap/bin",
];

/// All of it; lists what there is to be listed.
pub fn checks(case: &mut Case) {
    // What is run gets this HOME too, and might make something there.
    let homeless = |check: &Check| {
        let home = check.name == "user" || check.sentence.starts_with("HOME");
        home && check.light == Light::Red
    };
    if case.checks.iter().any(homeless) {
        return leave(case, "it is not asked with a wrong HOME");
    }
    if program(case) {
        profiles(case);
        case.desk.list();
    }
    configuration(case);
}

/// agent-deck is not asked any more.
fn leave(case: &mut Case, why: &str) {
    let why = NoAnswer::Failed(why.to_owned());
    case.desk.unlisted.push((None, why));
}

/// Whether it can be run. One that hangs is not asked again.
fn program(case: &mut Case) -> bool {
    let found = match case.desk.machine.program.find() {
        Ok(found) => found,
        Err(why) => {
            let mend = elsewhere(case);
            case.problem("agent-deck", why, mend);
            case.desk
                .unlisted
                .push((None, NoAnswer::NoProgram("it was not found".to_owned())));
            return false;
        }
    };
    let shown = found.display();
    let how = match &case.desk.machine.settings.bin {
        Bin::Named(_) => ", named by AGENT_DECK_BIN",
        Bin::Search(_) => "",
    };
    let name = quoted(&found);
    match case.desk.machine.version() {
        Ok(Some(version)) => {
            case.version = Some(version);
            case.ok("agent-deck", format!("{shown}{how}"));
            let judged = lacks(version);
            let (a, b, c) = version;
            let mend = format!("{name} update");
            match judged {
                Lacks::Nothing(remark) => case.ok("version", format!("{a}.{b}.{c}{remark}")),
                Lacks::Some(what) => {
                    let sentence = format!("{a}.{b}.{c} is old: {what}");
                    case.warning("version", sentence, mend);
                }
                Lacks::Panes => {
                    let (x, y, z) = LEAST;
                    let sentence = format!(
                        "{a}.{b}.{c} is older than {x}.{y}.{z} and cannot show a terminal, so no \
                         session is ever restarted"
                    );
                    case.problem("version", sentence, mend);
                }
            }
            true
        }
        Ok(None) => {
            case.ok("agent-deck", format!("{shown}{how}"));
            let sentence =
                format!("{shown} names no version: a development build, or no agent-deck");
            case.warning("version", sentence, format!("{name} version"));
            true
        }
        Err(why) => {
            let sentence = format!("{shown}{how}: {why}");
            let mend = match is_program(&found) {
                true => format!("{name} version"),
                false => format!("chmod +x {name}"),
            };
            case.problem("agent-deck", sentence, mend);
            let asked = NoAnswer::Failed(
                "it was not asked, since it tells not even its version".to_owned(),
            );
            case.desk.unlisted.push((None, asked));
            false
        }
    }
}

/// What to do about one that was not found.
fn elsewhere(case: &Case) -> String {
    let settings = &case.desk.machine.settings;
    let home: Vec<PathBuf> = [".local/bin", "go/bin", "bin"]
        .iter()
        .map(|folder| settings.home.join(folder))
        .collect();
    let mut further: Vec<&str> = FURTHER.to_vec();
    further.extend(home.iter().filter_map(|folder| folder.to_str()));
    further.extend(["/usr/local/bin", "/opt/homebrew/bin"]);
    let path = case.value("PATH").unwrap_or_default();
    match on_path("agent-deck", &path, &further) {
        Some(found) => case.set("AGENT_DECK_BIN", &found.to_string_lossy()),
        None => match &settings.bin {
            Bin::Named(named) if named.is_file() => format!("chmod +x {}", quoted(named)),
            Bin::Named(_) | Bin::Search(_) => SEARCH.to_owned(),
        },
    }
}

enum Lacks {
    Nothing(&'static str),
    Some(String),
    Panes,
}

/// What a version lacks of what is used.
fn lacks(version: (u32, u32, u32)) -> Lacks {
    if version < LEAST {
        return Lacks::Panes;
    }
    let missing: Vec<&str> = MISSING
        .iter()
        .filter(|(first, _)| version < *first)
        .map(|(_, what)| *what)
        .collect();
    match missing[..] {
        [] if (version.0, version.1) > (TRIED.0, TRIED.1) => {
            Lacks::Nothing(", newer than 1.14.0, with which this was tried")
        }
        [] => Lacks::Nothing(""),
        [..] => Lacks::Some(missing.join("; ")),
    }
}

/// Whether the wanted profiles are there and ours.
fn profiles(case: &mut Case) {
    let listed = match case.desk.machine.list_profiles() {
        Ok(rows) => rows,
        Err(why) => {
            let mend = format!("{} profile list", case.deck());
            return case.problem("profile", format!("none can be listed: {why}"), mend);
        }
    };
    let names: Vec<&str> = listed.iter().map(|row| row.name.as_str()).collect();
    let wanted = match &case.desk.machine.settings.profiles {
        Wanted::Named(named) => named.clone(),
        Wanted::All => {
            let ours = listed.iter().filter(|row| !row.internal);
            ours.map(|row| row.name.clone()).collect()
        }
    };
    if wanted.is_empty() {
        let mend = format!("{} list", case.deck());
        return case.problem("profile", "agent-deck has no profile", mend);
    }
    for profile in wanted {
        if !names.contains(&profile.as_str()) {
            let (has, mend) = match (names.first(), without_xdg(case, &profile)) {
                (_, Some(folder)) => (
                    format!("it is at {}, not below XDG_DATA_HOME", folder.display()),
                    case.unset("XDG_DATA_HOME"),
                ),
                (None, None) => (
                    "it has none yet".to_owned(),
                    format!("{} list", case.deck()),
                ),
                (Some(one), None) => {
                    let mend = case.set("AGENT_DECK_PROFILE", one);
                    (format!("it has {}", names.join(", ")), mend)
                }
            };
            let sentence = format!("agent-deck has no profile {profile} here; {has}");
            case.problem("profile", sentence, mend);
            continue;
        }
        one(case, &profile);
    }
}

/// Where a profile is that is not found because of XDG_DATA_HOME.
fn without_xdg(case: &Case, profile: &Profile) -> Option<PathBuf> {
    let mut roots = case.desk.machine.roots.clone();
    roots.xdg_data_home.take()?;
    let exists = roots.profile_exists(profile).unwrap_or(false);
    roots.profile(profile).ok().filter(|_| exists)
}

fn one(case: &mut Case, profile: &Profile) {
    let roots = &case.desk.machine.roots;
    let (exists, folder) = (roots.profile_exists(profile), roots.profile(profile));
    let (exists, folder) = match (exists, folder) {
        (Ok(exists), Ok(folder)) => (exists, folder),
        (Err(error), _) | (_, Err(error)) => {
            let sentence = format!("{profile} cannot be looked at: {error}");
            return case.problem(
                "profile",
                sentence,
                "ls -ld ~/.local/share/agent-deck ~/.agent-deck",
            );
        }
    };
    let shown = folder.display();
    if !exists {
        let sentence = format!(
            "{profile} is listed, but is not at {shown}: agent-deck has another HOME or XDG_DATA_HOME"
        );
        let mend = match roots.xdg_data_home.is_some() {
            true => case.unset("XDG_DATA_HOME"),
            false => format!("ls -ld {}", quoted(&folder)),
        };
        return case.problem("profile", sentence, mend);
    }
    if let Some(why) = foreign(&folder) {
        let us = super::ourselves();
        let mend = format!(
            "sudo -H -u \"$(ls -ld {} | awk '{{print $3}}')\" {us} doctor",
            quoted(&folder)
        );
        return case.problem("profile", format!("{profile}: {why}"), mend);
    }
    // One of this HOME is named among the watchdogs.
    let keeper = super::others::keeper(&folder, &case.table);
    if let Some(pid) = keeper
        .filter(|keeper| keeper.elsewhere)
        .map(|keeper| keeper.pid)
    {
        let sentence = format!(
            "{profile} is watched by another watchdog, process {pid}, that has another HOME"
        );
        return case.problem("profile", sentence, format!("kill {pid}"));
    }
    case.ok("profile", format!("{profile}, at {shown}"));
}

/// Whether `config.toml` counts at all, and says what can be understood.
fn configuration(case: &mut Case) {
    let name = "config.toml";
    let roots = &case.desk.machine.roots;
    let file = match roots.config_toml() {
        Ok(file) => file,
        Err(error) => {
            let mend = "ls -ld ~/.config/agent-deck ~/.agent-deck";
            return case.problem(name, error.to_string(), mend);
        }
    };
    let mend = |file: &Path| format!("\"${{EDITOR:-vi}}\" {}", quoted(file));
    if let Err(why) = readable(&file) {
        let sentence =
            format!("{why}: agent-deck leaves all of it out, and what it says is unknown");
        return case.problem(name, sentence, mend(&file));
    }
    if !file.exists() {
        return case.ok(
            name,
            format!("{} is not there, defaults count", file.display()),
        );
    }
    match declared(roots, "", "", "/") {
        Declared::Unknown(why) if why.ends_with("has the wrong type") => {
            let sentence = format!("{why}: agent-deck leaves all of the file out");
            case.problem(name, sentence, mend(&file));
        }
        Declared::Unknown(why) => {
            let sentence = format!("what all sessions are started with cannot be said: {why}");
            case.warning(name, sentence, mend(&file));
        }
        Declared::Nothing | Declared::Folder(_) => {
            case.ok(name, format!("{} can be read", file.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn an_old_version_lacks_what_came_later() {
        for (version, words) in [
            ((1, 9, 23), None),
            ((0, 30, 0), None),
            ((1, 9, 24), Some(4)),
            ((1, 9, 66), Some(3)),
            ((1, 10, 10), Some(3)),
            ((1, 10, 11), Some(2)),
            ((1, 11, 0), Some(1)),
            ((1, 13, 9), Some(1)),
            ((1, 14, 0), Some(0)),
            ((1, 14, 9), Some(0)),
            ((2, 0, 0), Some(0)),
        ] {
            let found = match lacks(version) {
                Lacks::Nothing(remark) => {
                    assert_eq!(remark.is_empty(), version < (1, 15, 0));
                    Some(0)
                }
                Lacks::Some(what) => Some(what.split("; ").count()),
                Lacks::Panes => None,
            };
            assert_eq!(found, words, "{version:?}");
        }
    }

    #[test]
    fn a_program_is_looked_for_in_whole_folders_only() {
        assert_eq!(on_path("sh", OsStr::new("bin:usr/bin"), &[]), None);
        assert!(on_path("sh", OsStr::new(""), &["/bin"]).is_some());
    }
}
