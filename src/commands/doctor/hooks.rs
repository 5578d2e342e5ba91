//! Hook records: where they are looked for, whether the agents write them there,
//! whether agents are told to write any; and how fast an end is noticed.
//!
//! agent-deck's own `hooks status` is not asked, since it removes old records
//! (contract 7.4). This file does not know what a record says.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use serde_json::Value;

use super::{Case, Environ, quoted, same};
use crate::deck::places::Roots;
use crate::deck::processes::pane_process;
use crate::host::folder::read_small;
use crate::host::lock::read_holder;
use crate::host::wait::Watched;
use crate::model::Session;

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
/// Entries of a hook folder that are looked at.
const ENTRIES: usize = 10_000;

/// All of it.
pub fn checks(case: &mut Case) {
    let hooks = case.desk.machine.roots.hooks();
    match hooks {
        Ok(hooks) => {
            let installed = installed(case);
            folder(case, &hooks, installed);
        }
        Err(error) => {
            let mend = "ls -ld ~/.local/share/agent-deck ~/.agent-deck";
            case.problem("hook folder", error.to_string(), mend);
        }
    }
    fast_path(case);
}

/// Living agents of listed sessions on this machine, with their numbers.
fn agents(case: &Case) -> Vec<(Session, u32, Option<PathBuf>)> {
    let rows = case.desk.watch.all_rows().filter(|row| !row.is_ssh);
    let agent = |row: &Session| {
        let agent = pane_process(&case.table, &row.id)?;
        Some((row.clone(), agent.pid, agent.config_dir.clone()))
    };
    rows.filter_map(agent).collect()
}

/// Where records are looked for has to be where they are written.
fn folder(case: &mut Case, hooks: &Path, installed: bool) {
    let agents = agents(case);
    let roots = &case.desk.machine.roots;
    // By an agent's own variables.
    for (row, pid, _) in &agents {
        let environ = Environ::of(*pid);
        let Some(home) = environ.value("HOME") else {
            continue;
        };
        let theirs = Roots {
            home: home.into(),
            xdg_data_home: environ.value("XDG_DATA_HOME"),
            xdg_config_home: None,
            agent_deck_root: None,
        };
        let written = theirs.data(&["hooks"]).map(|data| data.join("hooks"));
        if let Some(written) = written.ok().filter(|written| !same(written, hooks)) {
            let sentence = format!(
                "the agent of {} writes its records to {}, and {} is watched",
                row.title,
                written.display(),
                hooks.display()
            );
            let mend = mend(case, &written, theirs.xdg_data_home);
            return case.problem("hook folder", sentence, mend);
        }
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
    let newest_here = newest(hooks);
    let newer = places
        .into_iter()
        .find(|place| !same(place, hooks) && newest(place) > newest_here);
    if let Some(written) = newer {
        let sentence = format!(
            "the newest records are in {}, and {} is watched",
            written.display(),
            hooks.display()
        );
        let mend = mend(case, &written, None);
        return case.problem("hook folder", sentence, mend);
    }
    there(case, hooks, agents.len(), installed);
}

/// Whether it is there and can be watched.
fn there(case: &mut Case, hooks: &Path, agents: usize, installed: bool) {
    let (shown, name) = (hooks.display(), quoted(hooks));
    if !hooks.is_dir() {
        let mend = format!("mkdir -p -m 700 {name}");
        return match (agents, installed) {
            (0, _) | (_, false) => case.ok(
                "hook folder",
                format!("{shown} is not there yet; it is made with the first record"),
            ),
            (n, true) => case.problem(
                "hook folder",
                format!(
                    "{shown} is not there, though {n} agents live: it was moved or removed, and \
                     until the next record what they do is found by polling alone"
                ),
                mend,
            ),
        };
    }
    match access(hooks, Access::READ_OK | Access::EXEC_OK) {
        Ok(()) => {
            let records = records(hooks).count();
            case.ok("hook folder", format!("{shown}, {records} records"));
        }
        Err(_) => {
            let sentence = format!("{shown} cannot be read");
            case.problem("hook folder", sentence, format!("chmod u+rwx {name}"));
        }
    }
}

/// What makes the watchdog watch another folder than it does.
fn mend(case: &Case, written: &Path, xdg: Option<std::ffi::OsString>) -> String {
    let roots = &case.desk.machine.roots;
    let stale = roots
        .agent_deck_root
        .as_ref()
        .map(|root| root.join("hooks"));
    match (stale.filter(|stale| stale.is_dir()), xdg) {
        // A folder that stands in the way.
        (Some(stale), _) => format!("mv {0} {0}.old", quoted(stale)),
        (None, Some(xdg)) => case.set("XDG_DATA_HOME", &xdg.to_string_lossy()),
        (None, None) if roots.xdg_data_home.is_some() => case.unset("XDG_DATA_HOME"),
        (None, None) => format!("ls -ld {}", quoted(written)),
    }
}

fn records(hooks: &Path) -> impl Iterator<Item = fs::DirEntry> {
    let entries = fs::read_dir(hooks).into_iter().flatten().flatten();
    let record = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.ends_with(".json") && !name.starts_with('.')
    };
    entries.take(ENTRIES).filter(record)
}

/// When the newest record of a folder was written.
fn newest(hooks: &Path) -> Option<std::time::SystemTime> {
    let modified = |entry: fs::DirEntry| entry.metadata().ok()?.modified().ok();
    records(hooks).filter_map(modified).max()
}

/// Whether the agents are told to call agent-deck: in each configuration folder
/// that a living agent has, else in the usual one. Whether they are in one.
fn installed(case: &mut Case) -> bool {
    let claude = |row: &&Session| row.tool == "claude" || row.command.contains("claude");
    let rows = case.desk.watch.all_rows().count();
    if rows > 0 && !case.desk.watch.all_rows().any(|row| claude(&row)) {
        case.ok("hooks", "no claude session is listed");
        return false;
    }
    let standard = case.desk.machine.settings.home.join(".claude");
    let mut configs: Vec<PathBuf> = Vec::new();
    for (_, _, config) in agents(case).into_iter().filter(|(row, _, _)| claude(&row)) {
        let config = config.unwrap_or_else(|| standard.clone());
        if !configs.contains(&config) {
            configs.push(config);
        }
    }
    if configs.is_empty() {
        configs.push(standard.clone());
    }
    let mut somewhere = false;
    for config in configs {
        let file = config.join("settings.json");
        let shown = file.display();
        let lacks = match read_small(&file, SETTINGS_MOST) {
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(settings) => lacks(&settings),
                Err(error) => {
                    let sentence = format!("{shown} is not JSON: {error}");
                    let mend = format!("\"${{EDITOR:-vi}}\" {}", quoted(&file));
                    case.problem("hooks", sentence, mend);
                    continue;
                }
            },
            // A link into a folder of dotfiles is read by the agent all the same.
            Err(_) if file.is_symlink() => {
                match fs::read(&file).map(|b| serde_json::from_slice(&b)) {
                    Ok(Ok(settings)) => lacks(&settings),
                    Ok(Err(_)) | Err(_) => EVENTS.to_vec(),
                }
            }
            Err(_) => EVENTS.to_vec(),
        };
        somewhere |= lacks.len() < EVENTS.len();
        if lacks.is_empty() {
            case.ok("hooks", format!("installed in {shown}"));
            continue;
        }
        let deck = case.deck();
        let mend = match config == standard {
            true => format!("{deck} hooks install"),
            false => format!("CLAUDE_CONFIG_DIR={} {deck} hooks install", quoted(&config)),
        };
        let what = match lacks.len() == EVENTS.len() {
            true => String::new(),
            false => format!(" for {}", lacks.join(", ")),
        };
        let sentence = format!(
            "no hooks of agent-deck{what} in {shown}: what agents do is found by polling alone \
             (they read it when they start)"
        );
        case.warning("hooks", sentence, mend);
    }
    somewhere
}

/// The events that have no hook of agent-deck.
fn lacks(settings: &Value) -> Vec<&'static str> {
    let hooks = settings.get("hooks");
    let has = |event: &&&str| {
        let hooks = hooks.and_then(|hooks| hooks.get(**event));
        hooks.is_some_and(|hooks| hooks.to_string().contains(HANDLER))
    };
    EVENTS.iter().filter(|event| !has(event)).copied().collect()
}

/// Whether records and ends are noticed at once: by the running watchdog, else
/// by trying it.
fn fast_path(case: &mut Case) {
    let poll = case.desk.machine.settings.poll.as_secs();
    let off = case
        .value("PROCESS_WATCH")
        .is_some_and(|value| value == "off");
    let lock = case.folder().join("lock");
    let said = read_holder(&lock).map(|holder| holder.fast_path);
    let fast = match (&case.watcher, &case.blind, said) {
        (Some(_), _, Ok(said)) if !said.is_empty() => match said == "on" {
            true => Ok(()),
            false => Err(said),
        },
        (_, Some(why), _) => Err(format!("processes cannot be seen: {why}")),
        (_, None, _) => {
            let machine = &mut case.desk.machine;
            machine.watch_folders();
            let wait = &mut machine.pulse.wait;
            wait.watch_processes(&[(Watched::Server, std::process::id())]);
            wait.fast_path()
        }
    };
    match fast {
        Ok(()) if off => case.ok(
            "fast path",
            "on for hook records; for ends of processes switched off on purpose (PROCESS_WATCH=off)",
        ),
        Ok(()) => case.ok("fast path", "on"),
        Err(why) if why.contains("is not there") => case.ok(
            "fast path",
            "on for ends of processes; for hook records once the hook folder is there",
        ),
        Err(why) => {
            let mend = match &*why {
                why if why.contains("max_user_instances") => {
                    "sudo sysctl fs.inotify.max_user_instances=1024".to_owned()
                }
                why if why.contains("os error 28") => {
                    "sudo sysctl fs.inotify.max_user_watches=524288".to_owned()
                }
                _ => String::new(),
            };
            let sentence = format!("{why}; found within {poll} s all the same");
            case.warning("fast path", sentence, mend);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn events_without_a_hook_are_named() {
        let of = |text: &str| lacks(&serde_json::from_str(text).unwrap());
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
        assert_eq!(newest(hooks.path()), None);
        hooks.write(".a-1.json.tmp-1", "");
        hooks.write("a-1.sid", "");
        assert_eq!(newest(hooks.path()), None);
        hooks.write("a-1.json", "{}");
        assert!(newest(hooks.path()).is_some());
        assert_eq!(records(hooks.path()).count(), 1);
    }
}
