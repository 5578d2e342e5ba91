//! Hook records: where they are looked for, whether the agents write them there,
//! whether agents are told to write any; and how fast an end is noticed.
//!
//! agent-deck's own `hooks status` is not asked, since it removes old records
//! (contract 7.4). This file does not know what a record says.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::case::Case;
use super::settings::may;
use super::shell::{Edit, quoted};
use crate::deck::places::Roots;
use crate::host::folder::read_small;
use crate::host::lock::read_holder;
use crate::host::wait::Watched;
use crate::host::whole;
use crate::json::Value;
use crate::model::Session;
use rustix::fs::Access;

/// The events whose records are of use (contract 7.5).
const EVENTS: [&str; 5] = [
    "SessionStart",
    "UserPromptSubmit",
    "PermissionRequest",
    "Stop",
    "SessionEnd",
];
/// The command that writes them.
const HANDLER: &str = "hook-handler";
/// Longest settings file that is read.
const SETTINGS_MOST: u64 = 4 << 20;
const FOLDER: &str = "hook folder";

/// Entries of a hook folder that are looked at.
const ENTRIES: usize = 10_000;

/// All of it.
pub fn checks(case: &mut Case) {
    match case.desk.machine.roots.hooks() {
        Ok(hooks) => {
            let installed = installed(case);
            folder(case, &hooks, installed);
        }
        Err(error) => case.found.problem(
            FOLDER,
            format_args!("{error}"),
            format_args!("ls -ld ~/.local/share/agent-deck ~/.agent-deck"),
        ),
    }
    fast_path(case);
}

/// Whether two paths lead to the same place.
pub fn same(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().map(PathBuf::into_os_string);
    a == b || real(a).is_ok_and(|a| real(b).is_ok_and(|b| a == b))
}

/// Where records are looked for has to be where they are written.
fn folder(case: &Case, hooks: &Path, installed: bool) {
    let found = case.found;
    let roots = &case.desk.machine.roots;
    let shown = hooks.display();
    // By an agent's own variables.
    for agent in case.listed() {
        let home = agent.environ.get("HOME");
        if home.is_empty() {
            continue;
        }
        let xdg = agent.environ.get("XDG_DATA_HOME");
        let theirs = Roots {
            home: home.into(),
            xdg_data_home: Some(xdg.to_owned()).filter(|xdg| !xdg.is_empty()),
            xdg_config_home: None,
            agent_deck_root: None,
        };
        let written = theirs.data(&["hooks"]).unwrap_or_default().join("hooks");
        if same(&written, hooks) || written.is_relative() {
            continue;
        }
        let title = agent.row.as_ref().map_or("", |row| row.title.as_str());
        return found.problem(
            FOLDER,
            format_args!(
                "the agent of {title} writes its records to {}, and {shown} is watched",
                written.display()
            ),
            format_args!("{}", mend(case, &written, xdg)),
        );
    }
    // By newer records elsewhere.
    let standard = Roots {
        agent_deck_root: None,
        ..roots.clone()
    };
    let places = [
        standard.data(&["hooks"]).unwrap_or_default().join("hooks"),
        roots.home.join(".local/share/agent-deck/hooks"),
        roots.home.join(".agent-deck/hooks"),
    ];
    let (count, newest) = records(hooks);
    for written in places {
        if !same(&written, hooks) && records(&written).1 > newest {
            return found.problem(
                FOLDER,
                format_args!(
                    "the newest records are in {}, and {shown} is watched",
                    written.display()
                ),
                format_args!("{}", mend(case, &written, OsStr::new(""))),
            );
        }
    }
    there(case, hooks, count, installed);
}

/// Whether it is there and can be watched.
fn there(case: &Case, hooks: &Path, count: usize, installed: bool) {
    let found = case.found;
    let (shown, name) = (hooks.display(), quoted(hooks));
    let agents = case.listed().count();
    if !hooks.is_dir() && (agents == 0 || !installed) {
        found.ok(
            FOLDER,
            format_args!("{shown} is not there yet; it is made with the first record"),
        );
    } else if !hooks.is_dir() {
        found.problem(
            FOLDER,
            format_args!(
                "{shown} is not there, though {agents} agents live: it was moved or removed, and \
                 until the next record what they do is found by polling alone"
            ),
            format_args!("mkdir -p -m 700 {name}"),
        );
    } else if may(hooks, Access::READ_OK | Access::EXEC_OK).is_err() {
        found.problem(
            FOLDER,
            format_args!("{shown} cannot be read"),
            format_args!("chmod u+rwx {name}"),
        );
    } else {
        found.ok(FOLDER, format_args!("{shown}, {count} records"));
    }
}

/// What makes the watchdog watch another folder than it does.
fn mend(case: &Case, written: &Path, xdg: &OsStr) -> String {
    let roots = &case.desk.machine.roots;
    let root = roots.agent_deck_root.as_deref();
    let stale = root.unwrap_or(Path::new("")).join("hooks");
    // A folder that stands in the way.
    if root.is_some() && stale.is_dir() {
        format!("mv {0} {0}.old", quoted(&stale))
    } else if !xdg.is_empty() {
        case.set("XDG_DATA_HOME", xdg)
    } else if roots.xdg_data_home.is_some() {
        case.unset("XDG_DATA_HOME")
    } else {
        format!("ls -ld {}", quoted(written))
    }
}

/// How many records a folder has, and when the newest was written: seconds, and
/// billionths of one.
fn records(hooks: &Path) -> (usize, (i64, i64)) {
    let (mut count, mut newest) = (0, (0, 0));
    let Ok(entries) = fs::read_dir(hooks) else {
        return (count, newest);
    };
    for entry in entries.take(ENTRIES) {
        let Ok(entry) = entry else { continue };
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.ends_with(".json") || name.starts_with('.') {
            continue;
        }
        count += 1;
        if let Ok(there) = entry.metadata() {
            newest = newest.max((there.mtime(), there.mtime_nsec()));
        }
    }
    (count, newest)
}

/// Whether the agents are told to call agent-deck: in each configuration folder
/// that a living agent has, else in the usual one. Whether they are in one.
fn installed(case: &mut Case) -> bool {
    const NAME: &str = "hooks";
    let deck = case.deck();
    let found = case.found;
    let rows = case.desk.rows();
    if !rows.is_empty() && !rows.into_iter().any(is_claude) {
        found.ok(NAME, format_args!("no claude session is listed"));
        return false;
    }
    let standard = case.home().join(".claude");
    let mut somewhere = false;
    for config in configs(case, &standard) {
        let file = config.join("settings.json");
        let shown = file.display();
        // A link into a folder of dotfiles is read by the agent all the same.
        let text = match file.is_symlink() {
            true => whole::bytes(&file),
            false => read_small(&file, SETTINGS_MOST),
        };
        let settings: Value = match text {
            Ok(bytes) => match crate::json::read(&bytes) {
                Ok(settings) => settings,
                Err(error) => {
                    let mend = Edit(&file);
                    let sentence = format_args!("{shown} is not JSON: {error}");
                    found.problem(NAME, sentence, format_args!("{mend}"));
                    continue;
                }
            },
            Err(_) => Value::Null,
        };
        let lacks = lacks(&settings);
        let all = lacks.len() == EVENTS.len();
        somewhere |= !all;
        if lacks.is_empty() {
            found.ok(NAME, format_args!("installed in {shown}"));
            continue;
        }
        let what = match all {
            true => String::new(),
            false => format!(" for {}", lacks.join(", ")),
        };
        let there = match config == standard {
            true => String::new(),
            false => format!("CLAUDE_CONFIG_DIR={} ", quoted(&config)),
        };
        found.warning(
            NAME,
            format_args!(
                "no hooks of agent-deck{what} in {shown}: what agents do is found by polling \
                 alone (they read it when they start)"
            ),
            format_args!("{there}{deck} hooks install"),
        );
    }
    somewhere
}

/// The configuration folders of the living agents that are Claude; at least the
/// usual one.
fn configs(case: &Case, standard: &Path) -> Vec<PathBuf> {
    let mut configs: Vec<PathBuf> = Vec::new();
    for agent in case.listed() {
        let config = match agent.environ.get("CLAUDE_CONFIG_DIR") {
            config if config.is_empty() => standard,
            config => Path::new(config),
        };
        let known = configs.iter().any(|known| known == config);
        if agent.row.as_ref().is_some_and(is_claude) && !known {
            configs.push(config.to_owned());
        }
    }
    if configs.is_empty() {
        configs.push(standard.to_owned());
    }
    configs
}

fn is_claude(row: &Session) -> bool {
    row.tool == "claude" || row.command.contains("claude")
}

/// The events that have no hook of agent-deck.
fn lacks(settings: &Value) -> Vec<&'static str> {
    let hooks = settings.get("hooks");
    let mut lacks = Vec::new();
    for event in EVENTS {
        let hooks = hooks.and_then(|hooks| hooks.get(event));
        if !hooks.is_some_and(|hooks| hooks.to_string().contains(HANDLER)) {
            lacks.push(event);
        }
    }
    lacks
}

/// Whether records and ends are noticed at once: by the running watchdog, else
/// by trying it.
fn fast_path(case: &mut Case) {
    const NAME: &str = "fast path";
    let found = case.found;
    let off = case.value("PROCESS_WATCH") == "off";
    let poll = case.desk.machine.settings.poll.as_secs();
    let said = match &case.watcher {
        Some(_) => read_holder(&case.folder().join("lock")).ok(),
        None => None,
    };
    let said = said.map_or(String::new(), |holder| holder.fast_path);
    let why = match (said.as_str(), case.blind()) {
        ("on", _) => None,
        ("", Some(why)) => Some(format!("processes cannot be seen: {why}")),
        ("", None) => {
            let machine = &mut case.desk.machine;
            machine.watch_folders();
            let wait = &mut machine.pulse.wait;
            wait.watch_processes(&[(Watched::Server, std::process::id())]);
            wait.fast_path().err()
        }
        (_, _) => Some(said),
    };
    let Some(why) = why else {
        let what = match off {
            true => {
                " for hook records; for ends of processes switched off on purpose (PROCESS_WATCH=off)"
            }
            false => "",
        };
        return found.ok(NAME, format_args!("on{what}"));
    };
    if why.contains("is not there") {
        let sentence = "on for ends of processes; for hook records once the hook folder is there";
        return found.ok(NAME, format_args!("{sentence}"));
    }
    let mend = if why.contains("max_user_instances") {
        "sudo sysctl fs.inotify.max_user_instances=1024"
    } else if why.contains("os error 28") {
        "sudo sysctl fs.inotify.max_user_watches=524288"
    } else {
        ""
    };
    found.warning(
        NAME,
        format_args!("{why}; found within {poll} s all the same"),
        format_args!("{mend}"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn events_without_a_hook_are_named() {
        let of = |text: &str| lacks(&crate::json::read(text.as_bytes()).unwrap());
        assert_eq!(of("{}"), EVENTS);
        assert_eq!(of("[]"), EVENTS);
        assert_eq!(of(r#"{"hooks":{"Stop":7,"SessionEnd":[]}}"#), EVENTS);
        let hook = r#"[{"hooks":[{"type":"command","command":"agent-deck hook-handler"}]}]"#;
        let all: Vec<String> = EVENTS.iter().map(|e| format!("\"{e}\":{hook}")).collect();
        assert_eq!(of(&format!("{{\"hooks\":{{{}}}}}", all.join(","))), [""; 0]);
        let but_one = format!("{{\"hooks\":{{{}}}}}", all[1..].join(","));
        assert_eq!(of(&but_one), ["SessionStart"]);
    }

    #[test]
    fn the_newest_record_is_found_among_other_files() {
        let hooks = Scratch::new();
        assert_eq!(records(hooks.path()), (0, (0, 0)));
        hooks.write(".a-1.json.tmp-1", "");
        hooks.write("a-1.sid", "");
        assert_eq!(records(hooks.path()), (0, (0, 0)));
        hooks.write("a-1.json", "{}");
        let (count, newest) = records(hooks.path());
        assert!(count == 1 && newest.0 > 0);
    }
}
