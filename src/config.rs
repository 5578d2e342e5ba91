//! Settings: the environment, read once, checked, with every error naming the
//! variable, the value and what is allowed (DESIGN 2.2).
//!
//! This file does not know what the settings are used for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::host::users;
use crate::model::Profile;

mod ladder;

pub use ladder::{BATCH_MIN, Ladder, MAX_NUDGES, SCOPE, TERMINATE, TRIAGE_TIMEOUT};

/// What may be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The user's home.
    pub home: PathBuf,
    /// `XDG_DATA_HOME`, when set.
    pub xdg_data_home: Option<OsString>,
    /// `XDG_CONFIG_HOME`, when set.
    pub xdg_config_home: Option<OsString>,
    /// `TMUX_TMPDIR`, when set.
    pub tmux_tmpdir: Option<OsString>,
    /// `AGENT_DECK_ROOT`.
    pub root: PathBuf,
    /// Whether `AGENT_DECK_ROOT` was set.
    pub root_is_set: bool,
    /// `AGENT_DECK_BIN`, or the places to look at.
    pub bin: Bin,
    /// `AGENT_DECK_PROFILE`.
    pub profiles: Wanted,
    /// `TELEGRAM_ESCALATION_CHAT_ID`; empty: escalations are only logged.
    pub chat_id: String,
    /// `MIN_GLOBAL_RESTART_INTERVAL_S`.
    pub spacing: Duration,
    /// `POLLER_RESTART_DEDUP_S`.
    pub poller_dedup: Duration,
    /// `WAITING_PATROL_THRESHOLD_S`.
    pub threshold: Duration,
    /// `WAITING_PATROL_NUDGE_DEDUP_S`.
    pub nudge_dedup: Duration,
    /// `SAFETY_POLL_S`.
    pub poll: Duration,
    /// The same while every death is noticed at once: longer, unless it is set.
    pub calm_poll: Duration,
    /// `PROCESS_WATCH`.
    pub process_watch: bool,
    /// Those of the ladder.
    pub ladder: Ladder,
    /// [`VARIABLES`] that are set, as `NAME=value`.
    pub given: Vec<String>,
}

/// Variables on which it depends what is watched, and how: what a run was given
/// is written down, so that a command asked from another shell goes by the same.
pub const VARIABLES: [&str; 18] = [
    "AGENT_DECK_BIN",
    "AGENT_DECK_PROFILE",
    "TELEGRAM_ESCALATION_CHAT_ID",
    "MIN_GLOBAL_RESTART_INTERVAL_S",
    "POLLER_RESTART_DEDUP_S",
    "WAITING_PATROL_THRESHOLD_S",
    "WAITING_PATROL_NUDGE_DEDUP_S",
    "WAITING_PATROL_MAX_NUDGES",
    "PARENT_NOTICE_SCOPE",
    "BATCH_NOTICE_MIN_CHILDREN",
    "TRIAGE_CMD",
    "TRIAGE_TIMEOUT_S",
    "WAITING_PATROL_TERMINATE",
    "SAFETY_POLL_S",
    "PROCESS_WATCH",
    "TMUX_TMPDIR",
    "XDG_DATA_HOME",
    "XDG_CONFIG_HOME",
];

/// Where agent-deck is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bin {
    /// Named by the user.
    Named(PathBuf),
    /// The first of these that is there.
    Search(Vec<PathBuf>),
}

/// Which profiles are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// These.
    Named(Vec<Profile>),
    /// All that agent-deck lists.
    All,
}

/// One whole-number setting: name, default and range.
pub struct Whole {
    /// Variable.
    pub name: &'static str,
    /// What is counted, such as ` of seconds`; may be empty.
    pub unit: &'static str,
    /// Default.
    pub default: u64,
    /// Smallest value.
    pub least: u64,
    /// Largest value.
    pub most: u64,
}

const SECONDS: &str = " of seconds";

/// Seconds between any two restarts (the manual: 60).
pub const SPACING: Whole = Whole {
    name: "MIN_GLOBAL_RESTART_INTERVAL_S",
    unit: SECONDS,
    default: 60,
    least: 1,
    most: 86_400,
};
/// Seconds between two lists when nothing else wakes the watchdog (the manual: 5).
pub const POLL: Whole = Whole {
    name: "SAFETY_POLL_S",
    unit: SECONDS,
    default: 5,
    least: 1,
    most: 300,
};
/// Seconds between two restarts of one session for its poller (the manual: 3600).
pub const POLLER_DEDUP: Whole = Whole {
    name: "POLLER_RESTART_DEDUP_S",
    unit: SECONDS,
    default: 3600,
    least: 1,
    most: 604_800,
};
/// Seconds that a child waits on an unchanged screen before it is asked (the
/// manual: 600).
pub const THRESHOLD: Whole = Whole {
    name: "WAITING_PATROL_THRESHOLD_S",
    unit: SECONDS,
    default: 600,
    least: 1,
    most: 86_400,
};
/// Seconds between two nudges of one child (the manual: 3600).
pub const NUDGE_DEDUP: Whole = Whole {
    name: "WAITING_PATROL_NUDGE_DEDUP_S",
    unit: SECONDS,
    default: 3600,
    least: 1,
    most: 604_800,
};
/// Between two lists while no death can go unnoticed, where `SAFETY_POLL_S` is
/// not set: what no hint reveals is found this late. A list starts a program of
/// 50 MB and several tmux commands a session (contract 11).
pub const CALM_POLL: Duration = Duration::from_secs(15);
/// Below this the spacing is accepted with a warning (DESIGN 2.2).
pub const SPACING_SAFE: u64 = 60;

/// Looks a variable up.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

impl Settings {
    /// Reads the settings out of an environment.
    ///
    /// # Errors
    /// A sentence that names the variable, the value and what is allowed.
    pub fn read(environment: Environment) -> Result<Settings, String> {
        let home = home(environment)?;
        let mut settings = Settings {
            xdg_data_home: set(environment, "XDG_DATA_HOME"),
            xdg_config_home: set(environment, "XDG_CONFIG_HOME"),
            tmux_tmpdir: set(environment, "TMUX_TMPDIR"),
            root: home.join(".agent-deck"),
            root_is_set: false,
            bin: Bin::Search(Vec::new()),
            profiles: Wanted::All,
            chat_id: String::new(),
            spacing: Duration::ZERO,
            poller_dedup: Duration::ZERO,
            threshold: Duration::ZERO,
            nudge_dedup: Duration::ZERO,
            poll: Duration::ZERO,
            calm_poll: CALM_POLL,
            process_watch: true,
            ladder: Ladder::read(environment)?,
            given: given(environment),
            home,
        };
        settings.fill(environment)?;
        Ok(settings)
    }

    /// Fills in what may be wrong.
    fn fill(&mut self, environment: Environment) -> Result<(), String> {
        if let Some(root) = set(environment, "AGENT_DECK_ROOT") {
            self.root = absolute("AGENT_DECK_ROOT", root)?;
            self.root_is_set = true;
        }
        self.bin = bin(environment, &self.home)?;
        self.profiles = profiles(environment)?;
        self.chat_id = chat_id(environment)?;
        self.spacing = seconds(environment, &SPACING)?;
        self.poller_dedup = seconds(environment, &POLLER_DEDUP)?;
        self.threshold = seconds(environment, &THRESHOLD)?;
        self.nudge_dedup = seconds(environment, &NUDGE_DEDUP)?;
        self.poll = seconds(environment, &POLL)?;
        if set(environment, POLL.name).is_some() {
            self.calm_poll = self.poll;
        }
        self.process_watch = process_watch(environment)?;
        Ok(())
    }

    /// What is accepted, but not wise.
    pub fn warnings(&self) -> Vec<String> {
        let spacing = self.spacing.as_secs();
        let mut warnings = Vec::new();
        if spacing < SPACING_SAFE {
            warnings.push(format!(
                "{}={spacing} is below {SPACING_SAFE}: restarts may follow each other faster \
                 than the manual promises",
                SPACING.name
            ));
        }
        warnings
    }

    /// Our own folder.
    pub fn folder(&self) -> PathBuf {
        self.root.join("watchdog")
    }
}

/// What is set of [`VARIABLES`].
fn given(environment: Environment) -> Vec<String> {
    let pair = |name: &&str| {
        let value = set(environment, name)?;
        Some(format!("{name}={}", value.to_string_lossy()))
    };
    VARIABLES.iter().filter_map(pair).collect()
}

/// The value of a variable in what a run was given.
pub fn given_value(given: &[String], name: &str) -> Option<OsString> {
    let value = |pair: &String| {
        let (known, value) = pair.split_once('=')?;
        (known == name).then(|| OsString::from(value))
    };
    given.iter().find_map(value)
}

/// A variable that is set and not empty.
fn set(environment: Environment, name: &str) -> Option<OsString> {
    environment(name).filter(|value| !value.is_empty())
}

fn home(environment: Environment) -> Result<PathBuf, String> {
    let home = match set(environment, "HOME") {
        Some(home) => PathBuf::from(home),
        None => users::home()
            .filter(|home| !home.as_os_str().is_empty())
            .ok_or(
                "HOME is not set, and /etc/passwd names no home: set HOME to your home folder",
            )?,
    };
    if !home.is_absolute() || home == Path::new("/") {
        return Err(format!(
            "HOME={} cannot be used: it must be an absolute path below /",
            home.display()
        ));
    }
    Ok(home)
}

fn absolute(name: &str, value: OsString) -> Result<PathBuf, String> {
    let path = PathBuf::from(value);
    if path.is_absolute() && path != Path::new("/") {
        return Ok(path);
    }
    Err(format!(
        "{name}={} cannot be used: it must be an absolute path below /",
        path.display()
    ))
}

fn bin(environment: Environment, home: &Path) -> Result<Bin, String> {
    if let Some(named) = set(environment, "AGENT_DECK_BIN") {
        return Ok(Bin::Named(absolute("AGENT_DECK_BIN", named)?));
    }
    let name = "agent-deck";
    let mut places = vec![PathBuf::from("/usr/local/bin").join(name)];
    if let Some(path) = set(environment, "PATH") {
        let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
        places.extend(folders.map(|folder| folder.join(name)));
    }
    places.push(home.join(".local/bin").join(name));
    places.push(PathBuf::from("/opt/homebrew/bin").join(name));
    let mut known = Vec::new();
    places.retain(|place| {
        !known.contains(place) && {
            known.push(place.clone());
            true
        }
    });
    Ok(Bin::Search(places))
}

fn profiles(environment: Environment) -> Result<Wanted, String> {
    let name = "AGENT_DECK_PROFILE";
    let text = match set(environment, name) {
        Some(text) => text
            .into_string()
            .map_err(|_| format!("{name} is not valid UTF-8"))?,
        None => "default".to_owned(),
    };
    if text == "all" {
        return Ok(Wanted::All);
    }
    let mut named: Vec<Profile> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let profile = Profile::parse(part).ok_or_else(|| {
            format!(
                "{name}={text:?} cannot be used: {part:?} is no profile name (one name, a comma \
                 list of names, or all)"
            )
        })?;
        if !named.contains(&profile) {
            named.push(profile);
        }
    }
    Ok(Wanted::Named(named))
}

fn chat_id(environment: Environment) -> Result<String, String> {
    let name = "TELEGRAM_ESCALATION_CHAT_ID";
    let Some(text) = set(environment, name) else {
        return Ok(String::new());
    };
    let text = text.to_string_lossy().trim().to_owned();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '@');
    if text.is_empty() || text.len() > 64 || !text.chars().all(plain) {
        return Err(format!(
            "{name}={text:?} cannot be used: a chat's number, such as -1001234567890, or @channel"
        ));
    }
    Ok(text)
}

fn process_watch(environment: Environment) -> Result<bool, String> {
    let name = "PROCESS_WATCH";
    match set(environment, name)
        .map(|value| value.to_string_lossy().into_owned())
        .as_deref()
    {
        None | Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(other) => Err(format!("{name}={other:?} cannot be used: on or off")),
    }
}

fn seconds(environment: Environment, setting: &Whole) -> Result<Duration, String> {
    whole(environment, setting).map(Duration::from_secs)
}

fn whole(environment: Environment, setting: &Whole) -> Result<u64, String> {
    let Whole {
        name,
        unit,
        default,
        least,
        most,
    } = *setting;
    let Some(value) = set(environment, name) else {
        return Ok(default);
    };
    let text = value.to_string_lossy();
    let number = text
        .parse::<u64>()
        .ok()
        .filter(|n| (least..=most).contains(n));
    number.ok_or_else(|| {
        format!("{name}={text:?} cannot be used: a whole number{unit} from {least} to {most}")
    })
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
