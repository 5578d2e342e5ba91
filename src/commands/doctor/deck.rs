//! agent-deck: where it is, its version against what is used, the profiles, its
//! configuration.
//!
//! This file does not know what is in a session.

use std::path::PathBuf;

use super::Check;
use super::case::{Case, DECK};
use super::others;
use super::shell::{Edit, Ourselves, quoted};
use crate::commands::paper::{Light, add};
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
        ": children are not told from others, so none is asked to report",
    ),
    (
        (1, 11, 0),
        "; a message left in the composer passes for one that arrived",
    ),
    ((1, 10, 11), "; login problems are only seen on the screen"),
    ((1, 9, 66), "; nor are they or usage limits seen at all"),
];
/// Finds it wherever it is.
const SEARCH: &str = "export AGENT_DECK_BIN=\"$(find / -name agent-deck -type f -perm -u+x \
                      -print -quit 2>/dev/null)\"";
/// Where else it may be.
const FURTHER: [&str; 6] = [
    "/usr/bin",
    "/opt/local/bin",
    "/home/linuxbrew/.linuxbrew/bin",
    "/snap/bin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
];

const NAME: &str = "profile";

/// All of it; lists what there is to be listed.
pub fn checks(case: &mut Case) {
    // What is run gets this HOME too, and might make something there.
    let homeless = |check: &Check| check.name == "user" || check.sentence.starts_with("HOME");
    if case.found.red(&homeless).is_some() {
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
    let path = match case.desk.machine.program.find() {
        Ok(path) => path,
        Err(why) => {
            let mend = elsewhere(case);
            case.found
                .problem(DECK, format_args!("{why}"), format_args!("{mend}"));
            leave(case, "it was not found");
            return false;
        }
    };
    let (shown, name) = (path.display(), quoted(&path));
    let how = match &case.desk.machine.settings.bin {
        Bin::Named(_) => ", named by AGENT_DECK_BIN",
        Bin::Search(_) => "",
    };
    match case.desk.machine.version() {
        Ok(version) => {
            case.version = version;
            case.found.ok(DECK, format_args!("{shown}{how}"));
        }
        Err(why) => {
            let mend = match is_program(&path) {
                true => format_args!("{name} version"),
                false => format_args!("chmod +x {name}"),
            };
            case.found
                .problem(DECK, format_args!("{shown}{how}: {why}"), mend);
            leave(
                case,
                "it was not asked, since it tells not even its version",
            );
            return false;
        }
    }
    let (light, sentence) = match case.version {
        Some(version) => judge(version),
        None => (
            Light::Yellow,
            "it names no version: a development build, or no agent-deck".to_owned(),
        ),
    };
    let mend = match light {
        Light::Green => format_args!(""),
        _ if case.version.is_none() => format_args!("{name} version"),
        _ => format_args!("{name} update"),
    };
    case.found
        .say("version", light, format_args!("{sentence}"), mend);
    true
}

/// What to do about one that was not found.
fn elsewhere(case: &Case) -> String {
    let home = case.home().display();
    let own = format!("{home}/.local/bin:{home}/go/bin:{home}/bin");
    let found = on_path(DECK, &case.value("PATH"), &FURTHER);
    let found = found.or_else(|| on_path(DECK, own.as_ref(), &[]));
    match (found, &case.desk.machine.settings.bin) {
        (Some(found), _) => case.set("AGENT_DECK_BIN", found.as_os_str()),
        (None, Bin::Named(named)) if named.is_file() => format!("chmod +x {}", quoted(named)),
        (None, Bin::Named(_) | Bin::Search(_)) => SEARCH.to_owned(),
    }
}

/// What a version lacks of what is used, and how bad that is.
fn judge(version: (u32, u32, u32)) -> (Light, String) {
    let (a, b, c) = version;
    let mut said = format!("{a}.{b}.{c}");
    if version < LEAST {
        let (x, y, z) = LEAST;
        add(
            &mut said,
            format_args!(
                " is older than {x}.{y}.{z} and cannot show a terminal, so no session is ever restarted"
            ),
        );
        return (Light::Red, said);
    }
    if (a, b) > (TRIED.0, TRIED.1) {
        said.push_str(", newer than 1.14.0, with which this was tried");
    }
    if version >= TRIED {
        return (Light::Green, said);
    }
    said.push_str(" is old");
    for (first, what) in MISSING {
        if version < first {
            said.push_str(what);
        }
    }
    (Light::Yellow, said)
}

/// Whether the wanted profiles are there and ours.
fn profiles(case: &mut Case) {
    let deck = case.deck();
    let found = case.found;
    let listed = match case.desk.machine.list_profiles() {
        Ok(rows) => rows,
        Err(why) => {
            return found.problem(
                NAME,
                format_args!("none can be listed: {why}"),
                format_args!("{deck} profile list"),
            );
        }
    };
    let names: Vec<&str> = listed.iter().map(|row| row.name.as_str()).collect();
    let mut wanted: Vec<&Profile> = Vec::new();
    match &case.desk.machine.settings.profiles {
        Wanted::Named(named) => wanted.extend(named),
        Wanted::All => {
            for row in &listed {
                if !row.internal {
                    wanted.push(&row.name);
                }
            }
        }
    }
    if wanted.is_empty() {
        found.problem(
            NAME,
            format_args!("agent-deck has no profile"),
            format_args!("{deck} list"),
        );
    }
    for profile in wanted {
        if names.contains(&profile.as_str()) {
            one(case, profile);
            continue;
        }
        let (has, mend) = match (without_xdg(case, profile), names.first()) {
            (Some(folder), _) => (
                format!("it is at {}, not below XDG_DATA_HOME", folder.display()),
                case.unset("XDG_DATA_HOME"),
            ),
            (None, Some(one)) => (
                format!("it has {}", names.join(", ")),
                case.set("AGENT_DECK_PROFILE", one.as_ref()),
            ),
            (None, None) => ("it has none yet".to_owned(), format!("{deck} list")),
        };
        found.problem(
            NAME,
            format_args!("agent-deck has no profile {profile} here; {has}"),
            format_args!("{mend}"),
        );
    }
}

/// Where a profile is that is not found because of XDG_DATA_HOME.
fn without_xdg(case: &Case, profile: &Profile) -> Option<PathBuf> {
    let mut roots = case.desk.machine.roots.clone();
    roots.xdg_data_home.take()?;
    let exists = roots.profile_exists(profile).unwrap_or(false);
    roots.profile(profile).ok().filter(|_| exists)
}

fn one(case: &Case, profile: &Profile) {
    let found = case.found;
    let roots = &case.desk.machine.roots;
    let (exists, folder) = match (roots.profile_exists(profile), roots.profile(profile)) {
        (Ok(exists), Ok(folder)) => (exists, folder),
        (Err(error), _) | (_, Err(error)) => {
            return found.problem(
                NAME,
                format_args!("{profile} cannot be looked at: {error}"),
                format_args!("ls -ld ~/.local/share/agent-deck ~/.agent-deck"),
            );
        }
    };
    let (shown, name) = (folder.display(), quoted(&folder));
    if !exists {
        let mend = match roots.xdg_data_home.is_some() {
            true => case.unset("XDG_DATA_HOME"),
            false => format!("ls -ld {name}"),
        };
        found.problem(
            NAME,
            format_args!(
                "{profile} is listed, but is not at {shown}: agent-deck has another HOME or \
                 XDG_DATA_HOME"
            ),
            format_args!("{mend}"),
        );
    } else if let Some(why) = foreign(&folder) {
        found.problem(
            NAME,
            format_args!("{profile}: {why}"),
            format_args!("sudo -H -u \"$(ls -ld {name} | awk '{{print $3}}')\" {Ourselves} doctor"),
        );
    // One of this HOME is named among the watchdogs.
    } else if let Some(keeper) = others::keeper(&folder, case.table())
        && keeper.elsewhere
    {
        let pid = keeper.pid;
        found.problem(
            NAME,
            format_args!(
                "{profile} is watched by another watchdog, process {pid}, that has another HOME"
            ),
            format_args!("kill {pid}"),
        );
    } else {
        found.ok(NAME, format_args!("{profile}, at {shown}"));
    }
}

/// Whether `config.toml` counts at all, and says what can be understood.
fn configuration(case: &Case) {
    const NAME: &str = "config.toml";
    let found = case.found;
    let roots = &case.desk.machine.roots;
    let file = match roots.config_toml() {
        Ok(file) => file,
        Err(error) => {
            return found.problem(
                NAME,
                format_args!("{error}"),
                format_args!("ls -ld ~/.config/agent-deck ~/.agent-deck"),
            );
        }
    };
    let shown = file.display();
    let (light, why, what) = match readable(&file) {
        Err(why) => (
            Light::Red,
            why,
            ": agent-deck leaves all of it out, and what it says is unknown",
        ),
        Ok(()) if !file.exists() => {
            return found.ok(NAME, format_args!("{shown} is not there, defaults count"));
        }
        Ok(()) => match declared(roots, "", "", "/") {
            Declared::Unknown(why) if why.ends_with("has the wrong type") => {
                (Light::Red, why, ": agent-deck leaves all of the file out")
            }
            Declared::Unknown(why) => (
                Light::Yellow,
                why,
                ": so what all sessions are started with cannot be said",
            ),
            Declared::Nothing | Declared::Folder(_) => {
                return found.ok(NAME, format_args!("{shown} can be read"));
            }
        },
    };
    let mend = Edit(&file);
    found.say(
        NAME,
        light,
        format_args!("{why}{what}"),
        format_args!("{mend}"),
    );
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
            let (light, said) = judge(version);
            let found = match light {
                Light::Green | Light::Strong => {
                    assert_eq!(said.contains("newer"), version >= (1, 15, 0));
                    Some(0)
                }
                Light::Yellow => Some(said.matches([';', ':']).count()),
                Light::Red => None,
            };
            assert_eq!(found, words, "{said}");
        }
    }

    #[test]
    fn a_program_is_looked_for_in_whole_folders_only() {
        assert_eq!(on_path("sh", OsStr::new("bin:usr/bin"), &[]), None);
        assert!(on_path("sh", OsStr::new(""), &["/bin"]).is_some());
    }
}
