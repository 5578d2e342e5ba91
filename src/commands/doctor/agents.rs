//! The living agents against the watchdog: do both look at the same place, does
//! a restart find the agents' programs, and who could end all agents at once?
//!
//! Linux: elsewhere neither variables nor control groups can be seen. This file
//! does not know how the watchdog is started.

use std::fs;

use super::around::{
    Agent, Around, DECK_PLACES, Seen, disagreements, list, program, quoted, with_folders,
};
use super::service::{self, lingers, unit, variable_set};
use super::{Check, ok, problem, warning};
use crate::commands::desk::Desk;
use crate::host::logs::escape;

const PLACES: &str = "agents' places";
const PATH: &str = "agents' PATH";
const GROUP: &str = "tmux's group";

/// The living agents against the watchdog.
pub fn checks(desk: &mut Desk) -> Vec<Check> {
    let around = Around::look(desk);
    let mut found = Vec::new();
    let agents = match &around.agents {
        Ok(agents) => agents,
        Err(why) => {
            found.push(ok(
                "agents",
                format!("cannot be seen here: {}", escape(why)),
            ));
            return found;
        }
    };
    let (who, seen) = watchdog(&around);
    let has_unit = unit(desk, &around).is_some();
    found.extend(strangers(
        seen,
        agents,
        &program(&desk.machine.settings.home),
    ));
    if around.listed().next().is_none() {
        found.push(ok("agents", "no agent of a listed session lives now"));
        return found;
    }
    let runs = around.daemon.is_some();
    let set = |name: &str, value: &str| {
        let set = variable_set(runs && has_unit, name, value);
        // The one that runs does not get it from a shell.
        if runs && !has_unit {
            set + "  # and start the watchdog again"
        } else {
            set
        }
    };
    places(&around, &who, seen, &set, &mut found);
    found.push(path(&around, &who, seen, &set));
    groups(desk, &around, &mut found);
    found
}

/// Whose variables count: those of the running watchdog, else of this command.
fn watchdog(around: &Around) -> (String, &Seen) {
    match &around.daemon {
        Some((pid, Some(seen))) => (format!("the running watchdog (process {pid})"), seen),
        Some((_, None)) | None => ("this command".to_owned(), &around.ours),
    }
}

/// Agents of another deck, when a variable is why their sessions are not listed.
fn strangers(ours: &Seen, agents: &[Agent], exe: &str) -> Option<Check> {
    let strangers = agents.iter().filter(|agent| agent.title.is_none());
    let mut other = Vec::new();
    for agent in strangers {
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
            let (theirs, own) = (agent.seen.get(name), ours.get(name));
            let differs = match name {
                "HOME" => theirs != own,
                _ => agent.seen.place(name) != ours.place(name),
            };
            if differs {
                other.push((name, theirs));
                break;
            }
        }
    }
    let (name, value) = *other.first()?;
    let (value, mend) = match value {
        "" => ("not set", format!("env -u {name}")),
        value => (value, format!("env {name}={}", quoted(value))),
    };
    Some(warning(
        PLACES,
        format!(
            "{} living agents belong to sessions that are not listed here; with the first {name} is \
             {}: another deck, which this watchdog does not watch",
            other.len(),
            escape(value)
        ),
        format!("{mend} {exe} doctor"),
    ))
}

type Set<'a> = &'a dyn Fn(&str, &str) -> String;

/// Whether the watchdog looks where the agents live.
fn places(around: &Around, who: &str, seen: &Seen, set: Set, found: &mut Vec<Check>) {
    let before = found.len();
    let listed: Vec<&Agent> = around.listed().collect();
    for (name, value) in disagreements(seen, &around.sessions(), &DECK_PLACES) {
        let there = |agent: &&&Agent| agent.seen.place(name).to_string_lossy() == value;
        let count = listed.iter().filter(there).count();
        let first = listed
            .iter()
            .find(there)
            .and_then(|agent| agent.title.as_deref());
        let sentence = format!(
            "with {count} of {} agents ({}) {name} leads to {}, with {who} to {}: it looks at \
             another deck",
            listed.len(),
            escape(first.unwrap_or_default()),
            escape(&value),
            seen.place(name).display()
        );
        found.push(problem(PLACES, sentence, set(name, &value)));
    }
    if found.len() == before {
        let sentence = format!("{} agents and {who} look at the same deck", listed.len());
        found.push(ok(PLACES, sentence));
    }
}

/// Whether a restart by the watchdog finds the programs of the agents.
fn path(around: &Around, who: &str, seen: &Seen, set: Set) -> Check {
    let home = std::path::Path::new(seen.get("HOME"));
    let path = seen.get("PATH");
    let lacking = around.lacking(path, home);
    let names = list(around.programs.iter().map(|(name, _)| name.as_str()));
    let Some((_, folder)) = lacking.first() else {
        return ok(PATH, format!("{who} finds what the agents find: {names}"));
    };
    let names = list(lacking.iter().map(|(name, _)| name.as_str()));
    warning(
        PATH,
        format!(
            "{who} does not find {names}, which the agents find ({}): what a restart starts may \
             end at once",
            folder.display()
        ),
        set("PATH", &with_folders(path, &lacking)),
    )
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
fn groups(desk: &Desk, around: &Around, found: &mut Vec<Check>) {
    let unit = unit(desk, around).unwrap_or_default();
    let ours = around.daemon.as_ref().and_then(|(pid, _)| service_of(*pid));
    let kills = ["/usr/lib/systemd/logind.conf", "/etc/systemd/logind.conf"]
        .map(|file| fs::read_to_string(file).unwrap_or_default())
        .concat();
    let facts = Facts {
        ours: ours.as_deref().unwrap_or(service::UNIT),
        kill_mode: unit.get("KillMode"),
        lingers: lingers(),
        kills: kills_processes(&kills),
    };
    let before = found.len();
    let mut known: Vec<String> = Vec::new();
    for agent in around.listed() {
        for pid in [agent.server, agent.pid] {
            let group = group(pid);
            if known.contains(&group) {
                continue;
            }
            let check = judge(&group, &facts);
            let told = |check: &Check| found.iter().any(|told| told.mend == check.mend);
            if check.light != super::Light::Green && !told(&check) {
                found.push(check);
            }
            known.push(group);
        }
    }
    if found.len() == before {
        let first = known.first().map_or("", String::as_str);
        found.push(judge(first, &facts));
    }
}

/// The control group of a process, as systemd names it; empty: none.
fn group(pid: u32) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
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
    let services = group.split('/').rev();
    let mut services = services.filter(|part| part.ends_with(".service"));
    services.next().filter(|name| !name.starts_with("user@"))
}

/// `KillUserProcesses` of logind.conf(5). What is commented out in the file is
/// what counts without it.
fn kills_processes(text: &str) -> bool {
    let mut kills = ("", "");
    for line in text.lines().map(str::trim) {
        let plain = line.trim_start_matches('#');
        if let Some(value) = plain.strip_prefix("KillUserProcesses=") {
            if plain == line {
                kills.1 = value;
            } else {
                kills.0 = value;
            }
        }
    }
    let value = if kills.1.is_empty() { kills.0 } else { kills.1 };
    matches!(value, "yes" | "true" | "on" | "1")
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
    let session = parts.find(|part| part.starts_with("session-") && part.ends_with(".scope"));
    let service = service_in(group);
    if let Some(session) = session {
        return match facts.kills {
            true => problem(
                GROUP,
                format!(
                    "all agents live in the login {session}, and KillUserProcesses=yes ends them \
                         with the logout"
                ),
                format!("loginctl enable-linger && {scope}"),
            ),
            false => ok(
                GROUP,
                format!("the login {}; a logout leaves it alone", escape(session)),
            ),
        };
    }
    if let Some(name) = service.filter(|name| [facts.ours, service::UNIT].contains(name)) {
        return match facts.kill_mode {
            "process" => ok(
                GROUP,
                format!("{name}, which KillMode=process makes harmless"),
            ),
            _ => problem(
                GROUP,
                format!("all agents live in {name}: to stop the watchdog would end them"),
                unit::line_set("Service", "KillMode", "KillMode=process"),
            ),
        };
    }
    if let Some(name) = service.filter(|name| !HARMLESS.contains(name) && !name.contains("tmux")) {
        return warning(
            GROUP,
            format!(
                "all agents live in {}: to stop or restart it would end them",
                escape(name)
            ),
            scope,
        );
    }
    let of_user = group.contains("/user@");
    match facts.lingers {
        Some(false) if of_user => warning(
            GROUP,
            "all agents live below the user's service manager, which ends with the last logout",
            "loginctl enable-linger",
        ),
        Some(_) | None => match group.rsplit('/').next().filter(|last| !last.is_empty()) {
            Some(last) => ok(
                GROUP,
                format!("{}; nothing ends it with a logout", escape(last)),
            ),
            None => ok(GROUP, "the agents are in no group that anything ends"),
        },
    }
}

#[cfg(test)]
#[path = "agents_tests.rs"]
mod tests;
