//! The variables: are their values allowed, and does the running watchdog have
//! those that this shell has?
//!
//! systemd gives the watchdog the variables of a settings file, which a shell
//! does not have: they count here too. This file does not know what they are for.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::{Case, Check, Watcher, ok, problem, quoted, warning};
use crate::config::{Environment, Settings};
use crate::host::folder::read_small;

/// The settings file that the unit reads, below HOME.
pub const FILE: &str = ".config/agent-deck-watchdog.env";
/// Most bytes of it that are read.
const FILE_MOST: u64 = 64 << 10;

/// The variables of [`Settings`].
const SETTINGS: [&str; 10] = [
    "AGENT_DECK_ROOT",
    "AGENT_DECK_BIN",
    "AGENT_DECK_PROFILE",
    "TELEGRAM_ESCALATION_CHAT_ID",
    "POLLER_RESTART_DEDUP_S",
    "WAITING_PATROL_THRESHOLD_S",
    "WAITING_PATROL_NUDGE_DEDUP_S",
    "MIN_GLOBAL_RESTART_INTERVAL_S",
    "SAFETY_POLL_S",
    "PROCESS_WATCH",
];
/// Others that decide what is seen. agent-deck ignores the last two where they
/// are no absolute paths (contract 7.1).
const PLACES: [&str; 4] = ["HOME", "TMUX_TMPDIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"];

/// The settings file.
pub struct File {
    pub path: PathBuf,
    pairs: Vec<(String, String)>,
}

/// Reads it; one that is not there says nothing.
pub fn file(environment: Environment) -> File {
    let home = environment("HOME").filter(|home| !home.is_empty());
    let home = home.map(PathBuf::from).or_else(std::env::home_dir);
    let path = home.unwrap_or_default().join(FILE);
    let text = read_small(&path, FILE_MOST).unwrap_or_default();
    File {
        pairs: pairs(&String::from_utf8_lossy(&text)),
        path,
    }
}

/// `NAME=value` lines as systemd reads them, without its rarer ways to quote.
fn pairs(text: &str) -> Vec<(String, String)> {
    let line = |line: &str| {
        let line = line.trim();
        let (name, value) = line.split_once('=')?;
        let value = value.trim();
        let bare = ['"', '\'']
            .iter()
            .find_map(|q| value.strip_prefix(*q)?.strip_suffix(*q));
        let comment = line.starts_with(['#', ';']);
        (!comment).then(|| (name.trim_end().to_owned(), bare.unwrap_or(value).to_owned()))
    };
    text.lines().filter_map(line).collect()
}

impl File {
    /// The last value of a variable.
    pub fn value(&self, name: &str) -> Option<OsString> {
        let mut lines = self.pairs.iter().rev();
        let (_, value) = lines.find(|(known, _)| known == name)?;
        (!value.is_empty()).then(|| OsString::from(value))
    }

    /// A command that sets a variable, or takes it away, where it comes from:
    /// in this file when it stands there or a watchdog of systemd runs.
    pub fn set(&self, name: &str, value: Option<&str>, watcher: Option<&Watcher>) -> String {
        let by_systemd = watcher.is_some_and(|w| w.environ.value("INVOCATION_ID").is_some());
        let stands = self.pairs.iter().any(|(known, _)| known == name);
        if !by_systemd && !stands {
            return match value {
                Some(value) => format!("export {name}={}", quoted(value)),
                None => format!("unset {name}"),
            };
        }
        let path = quoted(&self.path);
        let mut mend = String::new();
        let mut add = |part: &str| {
            if !mend.is_empty() {
                mend.push_str(" && ");
            }
            mend.push_str(part);
        };
        if stands {
            add(&format!("sed -i.bak '/^{name}=/d' {path}"));
        }
        if let Some(value) = value {
            let line = quoted(format!("{name}={value}"));
            add(&format!("(umask 077; echo {line} >> {path})"));
        }
        if by_systemd {
            add("systemctl --user restart agent-deck-watchdog");
        }
        mend
    }
}

/// Reads the settings. Variables whose values are not allowed are named, each of
/// them, and count as not set. `None` when there is no home to go on with.
pub fn checks(environment: Environment, file: &File) -> (Option<Settings>, Vec<Check>) {
    let mut checks = Vec::new();
    let mut wrong: Vec<String> = Vec::new();
    loop {
        let lookup = |name: &str| match wrong.iter().any(|wrong| wrong == name) {
            true if name == "HOME" => Some(passwd(me())?.1.into()),
            true => None,
            false => environment(name),
        };
        let why = match Settings::read(&lookup) {
            Ok(settings) => {
                let again = wrong.iter().any(|wrong| wrong == "HOME");
                let lies = home(&settings.home, &mut checks);
                match lies {
                    Lies::Elsewhere => return (None, checks),
                    Lies::Nowhere if !again && passwd(me()).is_some() => {
                        wrong.push("HOME".to_owned());
                        continue;
                    }
                    Lies::Nowhere | Lies::Here => {}
                }
                relative(&lookup, file, &mut checks);
                allowed(&settings, &lookup, file, &mut checks);
                return (Some(settings), checks);
            }
            Err(why) => why,
        };
        // The sentence begins with the variable.
        let letter = |c: char| c.is_ascii_uppercase() || c == '_';
        let name = why.split(|c| !letter(c)).next().unwrap_or_default();
        let again = name.is_empty() || wrong.iter().any(|wrong| wrong == name);
        let mend = match (name, passwd(me())) {
            ("HOME", Some((_, home))) => format!("export HOME={}", quoted(home)),
            _ => file.set(name, None, None),
        };
        let name = name.to_owned();
        if !again || wrong.is_empty() {
            checks.push(problem("settings", why, mend));
        }
        if again {
            return (None, checks);
        }
        wrong.push(name);
    }
}

/// Accepted, but not wise; else which are set.
fn allowed(settings: &Settings, lookup: Environment, file: &File, checks: &mut Vec<Check>) {
    for sentence in settings.warnings() {
        let name = sentence.split('=').next().unwrap_or_default();
        let mend = file.set(name, None, None);
        checks.push(warning("settings", sentence, mend));
    }
    if checks.is_empty() {
        let set = SETTINGS.iter().filter(|name| lookup(name).is_some());
        let set: Vec<&str> = set.copied().collect();
        let set = match set[..] {
            [] => "none is set".to_owned(),
            [..] => format!("set: {}", set.join(", ")),
        };
        checks.push(ok("settings", format!("all are allowed; {set}")));
    }
}

/// Where the home is.
enum Lies {
    Here,
    /// With another user: as this one nothing true can be said of it.
    Elsewhere,
    Nowhere,
}

/// Whether the home is there, and whose it is.
fn home(home: &Path, checks: &mut Vec<Check>) -> Lies {
    let shown = home.display();
    match std::fs::metadata(home) {
        // Somebody may have been given a home that root made.
        Ok(there) if there.uid() == me() => Lies::Here,
        Ok(_) if me() != 0 && access(home, Access::WRITE_OK).is_ok() => Lies::Here,
        Ok(there) => {
            let owner = match passwd(there.uid()) {
                Some((name, _)) => name,
                None => format!("#{}", there.uid()),
            };
            let sentence = format!(
                "HOME={shown} belongs to user {owner}, and this runs as user {}: nothing is done \
                 like that, and nothing more can be said",
                me()
            );
            let us = super::ourselves();
            let mend = format!("sudo -H -u {} {us} doctor", quoted(owner));
            checks.push(problem("user", sentence, mend));
            Lies::Elsewhere
        }
        Err(error) => {
            let sentence = format!("HOME={shown} cannot be looked at: {error}");
            let mend = match passwd(me()) {
                Some((_, home)) => format!("export HOME={}", quoted(home)),
                None => "unset HOME".to_owned(),
            };
            checks.push(problem("user", sentence, mend));
            Lies::Nowhere
        }
    }
}

/// Folders that are left out, since they begin nowhere.
fn relative(lookup: Environment, file: &File, checks: &mut Vec<Check>) {
    for name in &PLACES[2..] {
        let Some(value) = lookup(name).filter(|value| Path::new(value).is_relative()) else {
            continue;
        };
        let sentence = format!(
            "{name}={} is no absolute path, so agent-deck ignores it",
            value.to_string_lossy()
        );
        checks.push(warning("settings", sentence, file.set(name, None, None)));
    }
}

/// Where this shell and the running watchdog differ: what is found from here is
/// not what it sees.
pub fn compare(case: &mut Case) {
    let Some(watcher) = &case.watcher else {
        return;
    };
    let pid = watcher.pid;
    if watcher.environ.0.is_empty() {
        let sentence = format!("those of the running watchdog, process {pid}, cannot be read");
        return case.ok("its variables", sentence);
    }
    let mut differ = Vec::new();
    for name in SETTINGS.iter().chain(&PLACES) {
        let (here, there) = ((case.here)(name), watcher.environ.value(name));
        if here != there {
            differ.push((*name, there));
        }
    }
    if differ.is_empty() {
        let sentence = format!("the running watchdog, process {pid}, has the same");
        return case.ok("its variables", sentence);
    }
    let sees = match differ.iter().any(|(name, _)| PLACES.contains(name)) {
        true => "what is seen from here it may not see",
        false => "its settings count here",
    };
    let (mut names, mut mends) = (Vec::new(), Vec::new());
    for (name, there) in differ {
        let there = there.map(|value| value.to_string_lossy().into_owned());
        mends.push(match &there {
            Some(value) => format!("export {name}={}", quoted(value)),
            None => format!("unset {name}"),
        });
        names.push(match there {
            Some(value) => format!("{name}={value}"),
            None => format!("no {name}"),
        });
    }
    let sentence = format!(
        "the running watchdog, process {pid}, has {} and this shell has not: {sees}",
        names.join(", ")
    );
    case.warning("its variables", sentence, mends.join("; "));
}

fn me() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Name and home of a user, where the user database is a file.
fn passwd(uid: u32) -> Option<(String, String)> {
    let text = std::fs::read_to_string("/etc/passwd").ok()?;
    let uid = uid.to_string();
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let home = fields.get(5)?;
        (fields[2] == uid).then(|| (fields[0].to_owned(), (*home).to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::super::Environ;
    use super::*;
    use crate::scratch::Scratch;

    fn empty() -> File {
        File {
            path: PathBuf::from("/h/.config/agent-deck-watchdog.env"),
            pairs: Vec::new(),
        }
    }

    #[test]
    fn every_wrong_variable_is_named_and_the_rest_counts() {
        let home = Scratch::new();
        let lookup = |name: &str| match name {
            "HOME" => Some(home.path().into()),
            "SAFETY_POLL_S" => Some("5s".into()),
            "PROCESS_WATCH" => Some("no".into()),
            "AGENT_DECK_PROFILE" => Some("a/b".into()),
            "MIN_GLOBAL_RESTART_INTERVAL_S" => Some("5".into()),
            "XDG_DATA_HOME" => Some("data".into()),
            _ => None,
        };
        let (settings, checks) = super::checks(&lookup, &empty());
        assert_eq!(settings.unwrap().spacing.as_secs(), 5);
        let said: Vec<(&str, &str)> = checks
            .iter()
            .map(|check| (check.word(), check.mend.as_str()))
            .collect();
        assert_eq!(
            said,
            [
                ("problem", "unset AGENT_DECK_PROFILE"),
                ("problem", "unset SAFETY_POLL_S"),
                ("problem", "unset PROCESS_WATCH"),
                ("warning", "unset XDG_DATA_HOME"),
                ("warning", "unset MIN_GLOBAL_RESTART_INTERVAL_S"),
            ]
        );
        assert!(checks[1].sentence.contains("\"5s\"") && checks[1].sentence.contains("1 to 300"));
    }

    #[test]
    fn a_home_that_cannot_be_used_is_not_the_end() {
        let lookup = |name: &str| (name == "HOME").then(|| OsString::from("u"));
        let (settings, checks) = super::checks(&lookup, &empty());
        assert!(checks[0].sentence.starts_with("HOME=u"), "{checks:?}");
        let known = passwd(me());
        assert_eq!(settings.is_some(), known.is_some());
        if let Some((_, home)) = known {
            assert_eq!(checks[0].mend, format!("export HOME={home}"));
        }
    }

    #[test]
    fn the_settings_file_is_read_as_systemd_reads_it() {
        let text = "# A=1\n; B=2\nA=x y\nB = \"z\"\nC='q'\nA=last\nD=\nno line";
        let file = File {
            pairs: pairs(text),
            ..empty()
        };
        let value = |name| file.value(name).map(|v| v.into_string().unwrap());
        assert_eq!(value("A").as_deref(), Some("last"));
        assert_eq!(value("B").as_deref(), Some("z"));
        assert_eq!(value("C").as_deref(), Some("q"));
        assert_eq!((value("D"), value("E")), (None, None));
    }

    #[test]
    fn a_variable_is_mended_where_it_comes_from() {
        let by_systemd = Watcher {
            pid: 1,
            environ: Environ(b"INVOCATION_ID=x\0".to_vec()),
        };
        let file = File {
            pairs: pairs("A=1"),
            ..empty()
        };
        assert_eq!(file.set("B", Some("x y"), None), "export B='x y'");
        assert_eq!(file.set("B", None, None), "unset B");
        let path = "/h/.config/agent-deck-watchdog.env";
        assert_eq!(
            file.set("A", None, None),
            format!("sed -i.bak '/^A=/d' {path}")
        );
        assert_eq!(
            file.set("B", Some("/x"), Some(&by_systemd)),
            format!(
                "(umask 077; echo B=/x >> {path}) && systemctl --user restart agent-deck-watchdog"
            )
        );
    }
}
