//! The variables: are their values allowed, and does the running watchdog have
//! those that this shell has?
//!
//! systemd gives the watchdog the variables of a settings file, which a shell
//! does not have: they count here too. This file does not know what they are for.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::Found;
use super::case::{Case, Watcher};
use super::shell::{Ourselves, quoted};
use crate::commands::paper::Said;
use crate::config::{Environment, Settings};
use crate::host::folder::read_small;
use crate::host::users::{self, me, passwd};

/// The settings file that the unit reads, below HOME.
pub const FILE: &str = ".config/agent-deck-watchdog.env";
/// Most bytes of it that are read.
const FILE_MOST: u64 = 64 << 10;

/// The variables of [`Settings`].
const SETTINGS: [&str; 16] = [
    "AGENT_DECK_ROOT",
    "AGENT_DECK_BIN",
    "AGENT_DECK_PROFILE",
    "TELEGRAM_ESCALATION_CHAT_ID",
    "POLLER_RESTART_DEDUP_S",
    "WAITING_PATROL_THRESHOLD_S",
    "WAITING_PATROL_NUDGE_DEDUP_S",
    "WAITING_PATROL_MAX_NUDGES",
    "PARENT_NOTICE_SCOPE",
    "BATCH_NOTICE_MIN_CHILDREN",
    "TRIAGE_CMD",
    "TRIAGE_TIMEOUT_S",
    "WAITING_PATROL_TERMINATE",
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
    let home = home.map(PathBuf::from).or_else(users::home);
    let path = home.unwrap_or_default().join(FILE);
    let text = read_small(&path, FILE_MOST).unwrap_or_default();
    File {
        pairs: pairs(&String::from_utf8_lossy(&text)),
        path,
    }
}

/// `NAME=value` lines as systemd reads them, without its rarer ways to quote.
pub fn pairs(text: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for line in text.lines().map(str::trim) {
        let Some((name, value)) = line.split_once('=') else {
            continue;
        };
        if line.starts_with(['#', ';']) {
            continue;
        }
        let mut value = value.trim();
        for quote in ['"', '\''] {
            let bare = value.strip_prefix(quote);
            value = bare.and_then(|v| v.strip_suffix(quote)).unwrap_or(value);
        }
        pairs.push((name.trim_end().to_owned(), value.to_owned()));
    }
    pairs
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
    pub fn set(&self, name: &str, value: Option<&OsStr>, watcher: Option<&Watcher>) -> String {
        let by_systemd = watcher.is_some_and(|w| !w.environ.get("INVOCATION_ID").is_empty());
        let stands = self.pairs.iter().any(|(known, _)| known == name);
        if !by_systemd && !stands {
            return set_here(name, value);
        }
        let path = quoted(&self.path);
        let mut mends = Said::default();
        if stands {
            mends.say(format_args!("sed -i.bak '/^{name}=/d' {path}"));
        }
        if let Some(value) = value {
            let pair = format!("{name}={}", value.display());
            let pair = quoted(&pair);
            mends.say(format_args!("(umask 077; echo {pair} >> {path})"));
        }
        if by_systemd {
            mends.say(format_args!("systemctl --user restart agent-deck-watchdog"));
        }
        mends.0.join(" && ")
    }
}

/// A command that sets a variable of a shell, or takes it away.
pub fn set_here(name: &str, value: Option<&OsStr>) -> String {
    match value {
        Some(value) => format!("export {name}={}", quoted(value)),
        None => format!("unset {name}"),
    }
}

/// Reads the settings. Variables whose values are not allowed are named, each of
/// them, and count as not set. `None` when there is no home to go on with.
pub fn checks(environment: Environment, file: &File, found: &Found) -> Option<Settings> {
    let mut wrong: Vec<String> = Vec::new();
    loop {
        let lookup = |name: &str| match wrong.iter().any(|wrong| wrong == name) {
            true if name == "HOME" => Some(passwd(me())?.1.into()),
            true => None,
            false => environment(name),
        };
        let known = passwd(me());
        let why = match Settings::read(&lookup) {
            Ok(settings) => {
                let again = wrong.iter().any(|wrong| wrong == "HOME");
                match home(&settings.home, known.as_ref(), found) {
                    Lies::Elsewhere => return None,
                    Lies::Nowhere if !again && known.is_some() => {
                        wrong.push("HOME".to_owned());
                        continue;
                    }
                    Lies::Nowhere | Lies::Here => {}
                }
                relative(&lookup, file, found);
                allowed(&settings, &lookup, file, found);
                return Some(settings);
            }
            Err(why) => why,
        };
        // The sentence begins with the variable.
        let other = |c: char| !c.is_ascii_uppercase() && c != '_';
        let name = &why[..why.find(other).unwrap_or(why.len())];
        let again = name.is_empty() || wrong.iter().any(|wrong| wrong == name);
        let mend = match &known {
            Some((_, home)) if name == "HOME" => set_here(name, Some(home.as_ref())),
            Some(_) | None => file.set(name, None, None),
        };
        if !again || wrong.is_empty() {
            found.problem("settings", format_args!("{why}"), format_args!("{mend}"));
        }
        if again {
            return None;
        }
        wrong.push(name.to_owned());
    }
}

/// Accepted, but not wise; else which are set.
fn allowed(settings: &Settings, lookup: Environment, file: &File, found: &Found) {
    for sentence in settings.warnings() {
        let name = sentence.split('=').next().unwrap_or_default();
        let mend = file.set(name, None, None);
        found.warning(
            "settings",
            format_args!("{sentence}"),
            format_args!("{mend}"),
        );
    }
    if found.count() > 0 {
        return;
    }
    let mut set: Vec<&str> = Vec::new();
    for name in SETTINGS {
        if lookup(name).is_some() {
            set.push(name);
        }
    }
    if set.is_empty() {
        set.push("none");
    }
    let set = set.join(", ");
    found.ok("settings", format_args!("all are allowed; set: {set}"));
}

/// Where the home is.
enum Lies {
    Here,
    /// With another user: as this one nothing true can be said of it.
    Elsewhere,
    Nowhere,
}

/// Whether the home is there, and whose it is. `known`: who we are.
fn home(home: &Path, known: Option<&(String, String)>, found: &Found) -> Lies {
    let shown = home.display();
    match std::fs::metadata(home) {
        // Somebody may have been given a home that root made.
        Ok(there) if there.uid() == me() => Lies::Here,
        Ok(_) if me() != 0 && may(home, Access::WRITE_OK).is_ok() => Lies::Here,
        Ok(there) => {
            let owner = match passwd(there.uid()) {
                Some((name, _)) => name,
                None => format!("#{}", there.uid()),
            };
            found.problem(
                "user",
                format_args!(
                    "HOME={shown} belongs to user {owner}, and this runs as user {}: nothing is \
                     done like that, and nothing more can be said",
                    me()
                ),
                format_args!("sudo -H -u {} {Ourselves} doctor", quoted(&owner)),
            );
            Lies::Elsewhere
        }
        Err(error) => {
            let mend = set_here("HOME", known.map(|(_, home)| home.as_ref()));
            found.problem(
                "user",
                format_args!("HOME={shown} cannot be looked at: {error}"),
                format_args!("{mend}"),
            );
            Lies::Nowhere
        }
    }
}

/// Folders that are left out, since they begin nowhere.
fn relative(lookup: Environment, file: &File, found: &Found) {
    for name in &PLACES[2..] {
        let value = lookup(name).unwrap_or_default();
        if value.is_empty() || Path::new(&value).is_absolute() {
            continue;
        }
        found.warning(
            "settings",
            format_args!(
                "{name}={} is no absolute path, so agent-deck ignores it",
                value.display()
            ),
            format_args!("{}", file.set(name, None, None)),
        );
    }
}

/// Where this shell and the running watchdog differ: what is found from here is
/// not what it sees.
pub fn compare(case: &mut Case) {
    const NAME: &str = "its variables";
    let Some(Watcher { pid, environ }) = &case.watcher else {
        return;
    };
    if environ.is_empty() {
        let sentence = format_args!("those of the running watchdog, process {pid}, cannot be read");
        return case.found.ok(NAME, sentence);
    }
    let (mut names, mut mends) = (Said::default(), Said::default());
    let mut sees = "its settings count here";
    for name in SETTINGS.iter().chain(&PLACES) {
        let here = (case.here)(name).unwrap_or_default();
        let there = environ.get(name);
        if here == there {
            continue;
        }
        if PLACES.contains(name) {
            sees = "what is seen from here it may not see";
        }
        let there = Some(there).filter(|there| !there.is_empty());
        mends.say(format_args!("{}", set_here(name, there)));
        match there {
            Some(there) => names.say(format_args!("{name}={}", there.display())),
            None => names.say(format_args!("no {name}")),
        }
    }
    if names.0.is_empty() {
        let sentence = format_args!("the running watchdog, process {pid}, has the same");
        return case.found.ok(NAME, sentence);
    }
    case.found.warning(
        NAME,
        format_args!(
            "the running watchdog, process {pid}, has {} and this shell has not: {sees}",
            names.0.join(", ")
        ),
        format_args!("{}", mends.0.join("; ")),
    );
}

/// Whether this user may do that with a file.
#[inline(never)]
pub fn may(path: &Path, how: Access) -> Result<(), Errno> {
    access(path, how)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::environ::Environ;
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
        let found = Found::default();
        let settings = super::checks(&lookup, &empty(), &found);
        let checks = found.0.into_inner();
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
        let found = Found::default();
        let settings = super::checks(&lookup, &empty(), &found);
        let checks = found.0.into_inner();
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
            environ: {
                let mut environ = Environ::default();
                environ.set("INVOCATION_ID", "x".as_ref());
                environ
            },
        };
        let file = File {
            pairs: pairs("A=1"),
            ..empty()
        };
        assert_eq!(file.set("B", Some("x y".as_ref()), None), "export B='x y'");
        assert_eq!(file.set("B", None, None), "unset B");
        let path = "/h/.config/agent-deck-watchdog.env";
        assert_eq!(
            file.set("A", None, None),
            format!("sed -i.bak '/^A=/d' {path}")
        );
        assert_eq!(
            file.set("B", Some("/x".as_ref()), Some(&by_systemd)),
            format!(
                "(umask 077; echo B=/x >> {path}) && systemctl --user restart agent-deck-watchdog"
            )
        );
    }
}
