//! `watch`, `hold`, `pause` and `clear`: the user's own words, put down as files
//! that a daemon, now or later, goes by.
//!
//! Each is written into the log with who asked. This file does not know what the
//! flags lead to.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::desk::{Desk, subject};
use super::find::{Known, find};
use super::life::Kind;
use super::paper::{Paper, wrapped};
use super::{FORMAT, Failed, Report};
use crate::cli::{Exit, Until, When};
use crate::clock::{Time, spoken};
use crate::config::{Environment, given_value};
use crate::host::flags::{self, AUTORESTART, CLEAR, HOLD, PAUSE};
use crate::host::logs::{Logs, escape};
use crate::json::object;
use crate::model::{Level, SessionId};
use crate::world::World;

/// So long `clear` waits for a running daemon to take its request up.
const TAKEN_UP: Duration = Duration::from_secs(3);
/// The latest end of a hold or pause: later ones are slips of the pen.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// What was put down or taken away, and what is in force now.
pub struct Done {
    /// The session, where one was meant.
    session: Option<Known>,
    /// Sentences.
    said: Vec<String>,
    /// The same for programs.
    force: Value,
}

impl Report for Done {
    fn text(&self, _paper: &Paper) -> String {
        self.said.iter().map(|said| wrapped("", said, 2)).collect()
    }

    fn json(&self) -> Value {
        object!({
            "format": FORMAT,
            "session": self.session.as_ref().map(|known| known.id.as_str()),
            "title": self.session.as_ref().map(|known| &known.title),
            "in_force": self.force,
            "text": self.said.join(" "),
        })
    }
}

/// Who asks, for the log.
fn who(environment: Environment) -> String {
    let names = ["SUDO_USER", "USER", "LOGNAME"];
    let mut names = names.iter().filter_map(|name| environment(name));
    match names.find(|name| !name.is_empty()) {
        Some(name) => escape(&name.to_string_lossy()),
        None => format!("user {}", rustix::process::getuid().as_raw()),
    }
}

fn system(why: String) -> Failed {
    Failed::new(Exit::System, why)
}

/// The session that is meant. One that nobody lists is meant by its full id when
/// that cannot be checked, or when the flag to be taken away is there.
fn meant(
    desk: &mut Desk,
    wanted: &str,
    flag: &str,
    environment: Environment,
) -> Result<Known, Failed> {
    desk.list();
    if let Some((here, there)) = other_profile(desk, environment) {
        let why = format!(
            "AGENT_DECK_PROFILE={here} in this shell, and the watchdog that runs watches {there}: \
             unset it, or ask that one"
        );
        return Err(Failed::new(Exit::Usage, why));
    }
    let found = find(desk, wanted);
    // A title may look like an id, but for the number behind the dash.
    let id = SessionId::parse(wanted).filter(|id| id.created().is_some());
    let Some(id) = id.filter(|_| found.is_err()) else {
        return found;
    };
    let folder = desk.machine.settings.folder();
    if desk.unlisted.is_empty() && !flags::is_there(&folder, &format!("{flag}/{id}")) {
        return found;
    }
    Ok(Known {
        id,
        title: String::new(),
        profile: None,
        row: None,
    })
}

/// The profiles that this shell asks for, and those that are watched, where the
/// two differ: the session that is meant may be in another deck.
fn other_profile(desk: &Desk, environment: Environment) -> Option<(String, String)> {
    let name = "AGENT_DECK_PROFILE";
    let here = environment(name).filter(|value| !value.is_empty())?;
    let there = given_value(&desk.machine.settings.given, name).unwrap_or_else(|| "default".into());
    (here != there).then(|| {
        let text = |value: &OsString| escape(&value.to_string_lossy());
        (text(&here), text(&there))
    })
}

/// Puts a flag down, or takes it away, and writes that down. False when there
/// was nothing to be taken away.
fn change(
    desk: &Desk,
    flag: &str,
    content: Option<&str>,
    subject: &str,
    sentence: &str,
) -> Result<bool, Failed> {
    let folder = desk.machine.settings.folder();
    let changed = match content {
        Some(content) => {
            flags::put(&folder, flag, content).map_err(system)?;
            true
        }
        None => {
            let why = |e| system(format!("{}: {e}", folder.join(flag).display()));
            flags::take(&folder, flag).map_err(why)?
        }
    };
    if changed {
        note(&folder, desk, subject, sentence);
    }
    Ok(changed)
}

fn note(folder: &Path, desk: &Desk, subject: &str, sentence: &str) {
    let at = Time(desk.machine.clock.reading().wall);
    Logs::new(folder).note(at, Level::Info, subject, sentence);
}

/// `watch <session> [off]`.
pub fn watch(
    desk: &mut Desk,
    wanted: &str,
    off: bool,
    environment: Environment,
) -> Result<Done, Failed> {
    let known = meant(desk, wanted, AUTORESTART, environment)?;
    let (who, name) = (who(environment), known.name());
    let flag = format!("{AUTORESTART}/{}", known.id);
    let content = format!("by {who}\n");
    let sentence = match off {
        false => format!("treated as critical from now on, says {who}"),
        true => format!("no longer treated as critical for its flag, says {who}"),
    };
    let content = (!off).then_some(content.as_str());
    let changed = change(desk, &flag, content, &name, &sentence)?;
    let by_itself = known
        .row
        .as_ref()
        .is_some_and(|row| row.is_conductor_like());
    let mut said = vec![match (off, by_itself) {
        (false, _) => format!("{name} is critical now: it is restarted when it dies."),
        (true, false) if !changed => format!("{name} was not critical."),
        (true, false) => format!("{name} is not critical any more."),
        (true, true) => format!(
            "{name} stays critical: its title or group says so. To have it left alone: \
             agent-deck-watchdog hold {}",
            known.id
        ),
    }];
    said.extend(surroundings(desk));
    Ok(Done {
        session: Some(known),
        said,
        force: object!({ "critical": !off || by_itself }),
    })
}

/// `hold <session> [<until> | off]`.
pub fn hold(
    desk: &mut Desk,
    wanted: &str,
    until: Until,
    environment: Environment,
) -> Result<Done, Failed> {
    let known = meant(desk, wanted, HOLD, environment)?;
    let (who, name) = (who(environment), known.name());
    let flag = format!("{HOLD}/{}", known.id);
    let end = end(desk, until)?;
    let (content, words) = content(until, end, &who);
    let held = content.is_some();
    let sentence = match held {
        true => format!("held {words}, says {who}"),
        false => format!("no longer held, says {who}"),
    };
    let changed = change(desk, &flag, content.as_deref(), &name, &sentence)?;
    let mut said = vec![match held {
        true => format!("{name} is left alone {words}: neither restarted nor asked."),
        false if !changed => format!("{name} was not held."),
        false => format!("{name} is not held any more."),
    }];
    said.extend(surroundings(desk));
    Ok(Done {
        session: Some(known),
        said,
        force: object!({ "held": held, "until": end.map(Time::rfc3339) }),
    })
}

/// `pause [<until> | off]`.
pub fn pause(desk: &mut Desk, until: Until, environment: Environment) -> Result<Done, Failed> {
    let who = who(environment);
    let end = end(desk, until)?;
    let (content, words) = content(until, end, &who);
    let paused = content.is_some();
    let sentence = match paused {
        true => format!("paused {words}, says {who}"),
        false => format!("no longer paused, says {who}"),
    };
    let changed = change(desk, PAUSE, content.as_deref(), "watchdog", &sentence)?;
    let mut said = vec![match paused {
        true => format!("Paused {words}: it watches and tells, and restarts and asks nobody."),
        false if !changed => "It was not paused.".to_owned(),
        false => "Not paused any more.".to_owned(),
    }];
    said.extend(life_remark(desk));
    Ok(Done {
        session: None,
        said,
        force: object!({ "paused": paused, "until": end.map(Time::rfc3339) }),
    })
}

/// `clear <session>`.
pub fn clear(desk: &mut Desk, wanted: &str, environment: Environment) -> Result<Done, Failed> {
    let known = meant(desk, wanted, CLEAR, environment)?;
    let (who, name) = (who(environment), known.name());
    let flag = format!("{CLEAR}/{}", known.id);
    let content = format!("by {who}\n");
    let sentence = format!("its failures are to be forgotten, says {who}");
    change(desk, &flag, Some(&content), &name, &sentence)?;
    let folder = desk.machine.settings.folder();
    let end = desk.machine.now().plus(TAKEN_UP);
    // A run by cron comes when it comes.
    let watches = desk.life.kind == Kind::Watching;
    while watches && flags::is_there(&folder, &flag) && desk.machine.now() < end {
        desk.machine.pulse.rest(Duration::from_millis(50));
    }
    let taken = !flags::is_there(&folder, &flag);
    let state = &desk.watch.saved;
    let remembered =
        state.sessions.get(&known.id).is_some() || state.known_child(&known.id).is_some();
    let mut said = vec![match taken {
        _ if !remembered => format!("Nothing is remembered of {name} that could be forgotten."),
        true => format!(
            "The failures of {name} are forgotten: what was given up is tried again. The restarts \
             of the last 300 s and the times of messages still count."
        ),
        false => format!("Noted: the failures of {name} are forgotten with the next turn."),
    }];
    said.extend(surroundings(desk));
    Ok(Done {
        session: Some(known),
        said,
        force: object!({ "cleared": taken }),
    })
}

/// The wall time that is meant.
fn end(desk: &Desk, until: Until) -> Result<Option<Time>, Failed> {
    let wall = Time(desk.machine.clock.reading().wall);
    let at = match until {
        Until::Open | Until::Off => return Ok(None),
        Until::Then(When::Span(span)) => wall.plus(span),
        Until::Then(When::At(at)) => at,
    };
    let (end, now) = (at.rfc3339(), wall.rfc3339());
    let why = match () {
        () if at <= wall => format!("{end} lies in the past; it is {now} now"),
        () if at > wall.plus(LONGEST) => {
            format!("{end} is more than a year away; without an end it is for good")
        }
        () => return Ok(Some(at)),
    };
    Err(Failed::new(Exit::Usage, why))
}

/// What stands in the file, if there is to be one, and how long it counts.
fn content(until: Until, end: Option<Time>, who: &str) -> (Option<String>, String) {
    match (until, end) {
        (Until::Off, _) => (None, String::new()),
        (_, Some(end)) => {
            let stamp = end.rfc3339();
            (
                Some(format!("{stamp}\nby {who}\n")),
                format!("until {stamp}"),
            )
        }
        (_, None) => (
            Some(format!("by {who}\n")),
            "until that is taken back".to_owned(),
        ),
    }
}

/// What else is in force, and whether anybody goes by it.
fn surroundings(desk: &mut Desk) -> Vec<String> {
    let mut said = Vec::new();
    let flags = desk.machine.flags();
    if let Some(pause) = flags.pause {
        let until = pause
            .until
            .map_or(String::new(), |at| format!(" until {}", at.rfc3339()));
        said.push(format!(
            "The watchdog is paused{until}: it acts on nothing."
        ));
    }
    for (profile, why) in &desk.unlisted {
        let of = subject(profile, "agent-deck");
        said.push(format!(
            "It could not be checked: {of}: {}.",
            escape(&why.to_string())
        ));
    }
    said.extend(life_remark(desk));
    said
}

/// Says that nobody watches; `None` when somebody does.
fn life_remark(desk: &Desk) -> Option<String> {
    let life = &desk.life;
    let sign = life
        .sign
        .map_or(String::new(), |ago| format!(" since {}", spoken(ago)));
    (!life.is_well()).then(|| format!("No watchdog runs here{sign}; the next one goes by it."))
}
