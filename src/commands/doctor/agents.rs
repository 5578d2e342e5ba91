//! The living agents against the watchdog: do both look at the same place, does
//! a restart find the agents' programs, and who could end all agents at once?
//!
//! Linux: elsewhere neither variables nor control groups can be seen. This file
//! does not know how the watchdog is started.

use std::ffi::OsStr;

use super::Check;
use super::case::Case;
use super::environ::{DECK_PLACES, Environ};
use super::service::unit::Line;
use super::service::{UNIT, lingers, unit, variable_set};
use super::shell::{Ourselves, quoted};
use crate::commands::paper::Light;
use crate::host::whole;

const PLACES: &str = "agents' places";
const GROUP: &str = "tmux's group";

/// The living agents against the watchdog.
pub fn checks(case: &mut Case) {
    const NAME: &str = "agents";
    let found = case.found;
    if let Some(why) = case.blind() {
        return found.ok(NAME, format_args!("cannot be seen here: {why}"));
    }
    // Whose variables count.
    let (who, environ) = match &case.watcher {
        Some(watcher) if !watcher.environ.is_empty() => (
            format!("the running watchdog (process {})", watcher.pid),
            &watcher.environ,
        ),
        Some(_) | None => ("this command".to_owned(), &case.ours),
    };
    strangers(case, environ);
    if case.listed().next().is_none() {
        let sentence = format_args!("no agent of a listed session lives now");
        return found.ok(NAME, sentence);
    }
    let unit = unit(case);
    let has_unit = unit.is_some() && case.watcher.is_some();
    let set = |name: &str, value: &OsStr| {
        let set = variable_set(has_unit, name, value);
        match case.watcher.is_some() && !has_unit {
            // The one that runs does not get it from a shell.
            true => set + "  # and start the watchdog again",
            false => set,
        }
    };
    places(case, &who, environ, &set);
    path(case, &who, environ, &set);
    groups(case, unit.unwrap_or_default().get("KillMode"));
}

/// Agents of another deck, when a variable is why their sessions are not listed.
fn strangers(case: &Case, ours: &Environ) {
    let mut first = None;
    let mut count = 0;
    for agent in &case.agents {
        if agent.row.is_some() {
            continue;
        }
        let theirs = &agent.environ;
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
            let same = match name {
                "HOME" => theirs.get(name) == ours.get(name),
                _ => theirs.place(name) == ours.place(name),
            };
            if !same {
                count += 1;
                first = first.or(Some((name, theirs.get(name))));
                break;
            }
        }
    }
    let Some((name, value)) = first else {
        return;
    };
    let mend = match value.is_empty() {
        true => format!("-u {name}"),
        false => format!("{name}={}", quoted(value)),
    };
    let value = match value.is_empty() {
        true => OsStr::new("not set"),
        false => value,
    };
    case.found.warning(
        PLACES,
        format_args!(
            "{count} living agents belong to sessions that are not listed here; with the first \
             {name} is {}: another deck, which this watchdog does not watch",
            value.display()
        ),
        format_args!("env {mend} {Ourselves} doctor"),
    );
}

type Set<'a> = &'a dyn Fn(&str, &OsStr) -> String;

/// Whether the watchdog looks where the agents live.
fn places(case: &Case, who: &str, environ: &Environ, set: Set) {
    let found = case.found;
    let before = found.count();
    let all = case.listed().count();
    for name in DECK_PLACES {
        let Some(value) = environ.other_place(&case.sessions(), name) else {
            continue;
        };
        let mut titles = Vec::new();
        for agent in case.listed() {
            if agent.environ.place(name) == value {
                titles.extend(agent.row.as_ref().map(|row| row.title.as_str()));
            }
        }
        found.problem(
            PLACES,
            format_args!(
                "with {} of {all} agents ({}) {name} leads to {}, with {who} to {}: it looks at \
                 another deck",
                titles.len(),
                titles.first().unwrap_or(&""),
                value.display(),
                environ.place(name).display()
            ),
            format_args!("{}", set(name, value.as_os_str())),
        );
    }
    if found.count() == before {
        let sentence = format_args!("{all} agents and {who} look at the same deck");
        found.ok(PLACES, sentence);
    }
}

/// Whether a restart by the watchdog finds the programs of the agents.
fn path(case: &Case, who: &str, environ: &Environ, set: Set) {
    const NAME: &str = "agents' PATH";
    let found = case.found;
    if let Some(lacking) = case.lacking(environ.get("PATH")) {
        return found.warning(
            NAME,
            format_args!(
                "{who} does not find {}, which the agents find ({}): what a restart starts may \
                 end at once",
                lacking.names,
                lacking.folder.display()
            ),
            format_args!("{}", set("PATH", &lacking.path)),
        );
    }
    let mut names = String::new();
    for (name, _) in &case.programs {
        names.push(' ');
        names.push_str(name);
    }
    found.ok(
        NAME,
        format_args!("{who} finds what the agents find:{names}"),
    );
}

/// What is known around a control group.
struct Facts<'a> {
    /// The service that the watchdog runs in, if it does.
    ours: &'a str,
    /// `KillMode` of the watchdog's unit.
    kill_mode: &'a str,
    /// Whether the user's services outlive the last logout.
    lingers: Option<bool>,
    /// Whether a logout ends what the session started.
    kills: bool,
}

/// Whether something could end all agents at once.
fn groups(case: &Case, kill_mode: &str) {
    let ours = case.watcher.as_ref().and_then(|w| service_of(w.pid));
    let facts = Facts {
        ours: ours.as_deref().unwrap_or(UNIT),
        kill_mode,
        lingers: lingers(),
        kills: ["/etc/systemd/logind.conf", "/usr/lib/systemd/logind.conf"]
            .iter()
            .find_map(|file| kills_processes(&whole::text(file)))
            .unwrap_or(false),
    };
    let mut known: Vec<String> = Vec::new();
    let mut told: Vec<Check> = Vec::new();
    for agent in case.listed() {
        for pid in [agent.server, agent.pid] {
            let group = group(pid);
            if known.contains(&group) {
                continue;
            }
            let check = judge(&group, &facts);
            let first = told.first().map(|first| first.light);
            // What is well is said when there is nothing else to say.
            if first == Some(Light::Green) && check.light != Light::Green {
                told.clear();
            }
            let same = told.iter().any(|told| told.mend == check.mend);
            if told.is_empty() || (check.light != Light::Green && !same) {
                told.push(check);
            }
            known.push(group);
        }
    }
    case.found.0.borrow_mut().append(&mut told);
}

/// The control group of a process, as systemd names it; empty: none.
fn group(pid: u32) -> String {
    let text = whole::text(&format!("/proc/{pid}/cgroup"));
    group_in(&text).to_owned()
}

/// The same out of the file (cgroups(7)): the unified hierarchy, else systemd's own.
fn group_in(text: &str) -> &str {
    let of = |mark: &str| {
        let line = text.lines().find_map(|line| line.split_once(mark));
        line.map(|(_, path)| path).filter(|path| *path != "/")
    };
    of("0::")
        .or_else(|| of(":name=systemd:"))
        .unwrap_or_default()
}

/// The service whose control group a process is in.
pub fn service_of(pid: u32) -> Option<String> {
    service_in(&group(pid)).map(str::to_owned)
}

/// The innermost service of a path, but for the user's service manager itself.
fn service_in(group: &str) -> Option<&str> {
    let mut parts = group.rsplit('/');
    let name = parts.find(|part| part.ends_with(".service"))?;
    (!name.starts_with("user@")).then_some(name)
}

/// `KillUserProcesses` of logind.conf(5). What is commented out in the file is
/// what counts without it.
fn kills_processes(text: &str) -> Option<bool> {
    let mut kills = None;
    for key in ["#KillUserProcesses=", "KillUserProcesses="] {
        for line in text.lines() {
            let value = line.trim().strip_prefix(key);
            let yes = value.map(|value| ["yes", "true", "on", "1"].contains(&value));
            kills = yes.or(kills);
        }
    }
    kills
}

/// Services that leave alone what runs in their group (`KillMode=process`).
const HARMLESS: [&str; 4] = [
    "cron.service",
    "crond.service",
    "ssh.service",
    "sshd.service",
];

/// Who could end what lives in a control group.
fn judge(group: &str, facts: &Facts) -> Check {
    let scope = "systemd-run --user --scope tmux new-session -d  # when no session runs";
    let mut parts = group.split('/');
    let login = parts.find(|part| part.starts_with("session-") && part.ends_with(".scope"));
    let service = service_in(group).unwrap_or_default();
    let ours = [facts.ours, UNIT].contains(&service);
    let of_user = group.contains("/user@");
    let harmless = HARMLESS.contains(&service) || service.contains("tmux");
    let last = group.rsplit('/').next().unwrap_or_default();
    let (light, sentence, mend) = if let Some(login) = login {
        match facts.kills {
            true => (
                Light::Red,
                format!(
                    "all agents live in the login {login}, and KillUserProcesses=yes ends them \
                     with the logout"
                ),
                format!("loginctl enable-linger && {scope}"),
            ),
            false => (
                Light::Green,
                format!("the login {login}; a logout leaves it alone"),
                String::new(),
            ),
        }
    } else if ours && facts.kill_mode == "process" {
        (
            Light::Green,
            format!("{service}, which KillMode=process makes harmless"),
            String::new(),
        )
    } else if ours {
        let line = Line("Service", "KillMode", "KillMode=process");
        (
            Light::Red,
            format!("all agents live in {service}: to stop the watchdog would end them"),
            line.to_string(),
        )
    } else if !service.is_empty() && !harmless {
        (
            Light::Yellow,
            format!("all agents live in {service}: to stop or restart it would end them"),
            scope.to_owned(),
        )
    } else if of_user && facts.lingers == Some(false) {
        (
            Light::Yellow,
            "all agents live below the user's service manager, which ends with the last logout"
                .to_owned(),
            "loginctl enable-linger".to_owned(),
        )
    } else {
        let last = if last.is_empty() { "no group" } else { last };
        (
            Light::Green,
            format!("{last}; nothing ends it with a logout"),
            String::new(),
        )
    };
    Check {
        name: GROUP,
        light,
        sentence,
        mend,
    }
}

#[cfg(test)]
#[path = "agents_tests.rs"]
mod tests;
