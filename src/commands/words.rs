//! `watch`, `hold`, `pause` and `clear`: the user's own words, put down as files
//! that a daemon, now or later, goes by.
//!
//! Each is written into the log with who asked. This file does not know what the
//! flags lead to.

use std::ffi::OsString;
use std::time::Duration;

use super::desk::{Desk, subject};
use super::find::{Known, find};
use super::life::Kind;
use super::paper::{Paper, Said, add, wrap};
use super::{FORMAT, Failed, Report};
use crate::cli::{Exit, Until, When};
use crate::clock::{Time, spoken};
use crate::config::{Environment, given_value};
use crate::host::flags::{self, AUTORESTART, CLEAR, HOLD, PAUSE};
use crate::host::logs::{Logs, escape};
use crate::json::{Map, Value, object, put};
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
    said: Said,
    /// The same for programs.
    force: Value,
}

impl Report for Done {
    fn text(&self, _paper: &Paper) -> String {
        let mut page = String::new();
        for said in &self.said.0 {
            wrap(&mut page, "", said, 2);
        }
        page
    }

    fn json(&self) -> Value {
        object!({
            "format": FORMAT,
            "session": self.session.as_ref().map(|known| known.id.as_str()),
            "title": self.session.as_ref().map(|known| &known.title),
            "in_force": self.force,
            "text": self.said.0.join(" "),
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

/// What is to be written down.
struct Order<'a> {
    /// The session that is asked for; `None`: all are meant.
    wanted: Option<&'a str>,
    /// The flag of all, or the folder of such flags.
    flag: &'static str,
    /// What stands in the file beside who asks; `None`: it is taken away.
    content: Option<String>,
    /// What the log says.
    sentence: &'a str,
}

/// What was written down.
struct Written<'a> {
    known: Option<&'a Known>,
    /// Whose name it is, fit to be shown.
    name: &'a str,
    flag: &'a str,
    /// False: there was nothing to be taken away.
    changed: bool,
}

/// What is said of it: a sentence, and what is in force.
type Tell<'a> = &'a dyn Fn(&mut Desk, &Written) -> (String, Value);

/// Puts a flag down, or takes it away, writes that down, and says what else is in
/// force.
fn carry_out(
    desk: &mut Desk,
    order: &Order,
    environment: Environment,
    tell: Tell,
) -> Result<Done, Failed> {
    let mut session = None;
    let (mut name, mut flag) = ("watchdog".to_owned(), order.flag.to_owned());
    if let Some(wanted) = order.wanted {
        let known = meant(desk, wanted, &flag, environment)?;
        name = known.name();
        add(&mut flag, format_args!("/{}", known.id));
        session = Some(known);
    }
    let (who, folder) = (who(environment), desk.machine.settings.folder());
    let changed = match &order.content {
        Some(content) => flags::put(&folder, &flag, &format!("{content}by {who}\n")).map(|()| true),
        None => flags::take(&folder, &flag)
            .map_err(|e| format!("{}: {e}", folder.join(&flag).display())),
    };
    let changed = match changed {
        Ok(changed) => changed,
        Err(why) => return Err(Failed::new(Exit::System, why)),
    };
    if changed {
        let at = Time(desk.machine.clock.reading().wall);
        let sentence = format!("{}, says {who}", order.sentence);
        Logs::new(&folder).note(at, Level::Info, &name, &sentence);
    }
    let written = Written {
        known: session.as_ref(),
        name: &name,
        flag: &flag,
        changed,
    };
    let (what, force) = tell(desk, &written);
    let mut said = Said(vec![what]);
    if session.is_some() {
        surroundings(desk, &mut said);
    }
    if !desk.life.is_well() {
        let sign = desk.life.sign;
        let sign = sign.map_or(String::new(), |ago| format!(" since {}", spoken(ago)));
        said.say(format_args!(
            "No watchdog runs here{sign}; the next one goes by it."
        ));
    }
    Ok(Done {
        session,
        said,
        force,
    })
}

/// `watch <session> [off]`.
///
/// # Errors
/// When it is not known who is meant, or the flag cannot be written.
pub fn watch(
    desk: &mut Desk,
    wanted: &str,
    off: bool,
    environment: Environment,
) -> Result<Done, Failed> {
    let order = Order {
        wanted: Some(wanted),
        flag: AUTORESTART,
        content: (!off).then(String::new),
        sentence: match off {
            false => "treated as critical from now on",
            true => "no longer treated as critical for its flag",
        },
    };
    carry_out(desk, &order, environment, &|_, written| {
        let row = written.known.and_then(|known| known.row.as_ref());
        let by_itself = row.filter(|row| row.is_conductor_like());
        let name = written.name;
        let what = match (off, by_itself) {
            (false, _) => format!("{name} is critical now: it is restarted when it dies."),
            (true, None) if !written.changed => format!("{name} was not critical."),
            (true, None) => format!("{name} is not critical any more."),
            (true, Some(row)) => format!(
                "{name} stays critical: its title or group says so. To have it left alone: \
                 agent-deck-watchdog hold {}",
                row.id
            ),
        };
        let critical = !off || by_itself.is_some();
        (what, object!({ "critical": critical }))
    })
}

/// `hold <session> [<until> | off]`, and for all `pause [<until> | off]`.
///
/// # Errors
/// When it is not known who is meant, or the flag cannot be written.
pub fn hold(
    desk: &mut Desk,
    wanted: Option<&str>,
    until: Until,
    environment: Environment,
) -> Result<Done, Failed> {
    let (held, flag) = match wanted {
        Some(_) => ("held", HOLD),
        None => ("paused", PAUSE),
    };
    let end = end(desk, until)?;
    let (content, words) = match end {
        Some(end) => {
            let stamp = end.rfc3339();
            (format!("{stamp}\n"), format!("until {stamp}"))
        }
        None => (String::new(), "until that is taken back".to_owned()),
    };
    let on = until != Until::Off;
    let sentence = match on {
        true => format!("{held} {words}"),
        false => format!("no longer {held}"),
    };
    let order = Order {
        wanted,
        flag,
        content: Some(content).filter(|_| on),
        sentence: &sentence,
    };
    carry_out(desk, &order, environment, &|_, written| {
        let name = written.name;
        let what = match (wanted, on) {
            (None, true) => {
                format!(
                    "Paused {words}: it watches and tells, and restarts, stops and writes to nobody."
                )
            }
            (None, false) if !written.changed => "It was not paused.".to_owned(),
            (None, false) => "Not paused any more.".to_owned(),
            (Some(_), true) => {
                format!("{name} is left alone {words}: neither restarted, stopped nor written to.")
            }
            (Some(_), false) if !written.changed => format!("{name} was not held."),
            (Some(_), false) => format!("{name} is not held any more."),
        };
        let mut force = Map::new();
        put(&mut force, held, &on);
        put(&mut force, "until", &end.map(Time::rfc3339));
        (what, Value::Object(force))
    })
}

/// `clear <session>`.
///
/// # Errors
/// When it is not known who is meant, or the flag cannot be written.
pub fn clear(desk: &mut Desk, wanted: &str, environment: Environment) -> Result<Done, Failed> {
    let order = Order {
        wanted: Some(wanted),
        flag: CLEAR,
        content: Some(String::new()),
        sentence: "its failures are to be forgotten",
    };
    carry_out(desk, &order, environment, &|desk, written| {
        let folder = desk.machine.settings.folder();
        let end = desk.machine.now().plus(TAKEN_UP);
        // A run by cron comes when it comes.
        let watches = desk.life.kind == Kind::Watching;
        while watches && flags::is_there(&folder, written.flag) && desk.machine.now() < end {
            desk.machine.pulse.rest(Duration::from_millis(50));
        }
        let taken = !flags::is_there(&folder, written.flag);
        let (state, id) = (&desk.watch.saved, written.known.map(|known| &known.id));
        let remembered = id
            .is_some_and(|id| state.sessions.get(id).is_some() || state.known_child(id).is_some());
        let name = written.name;
        let what = match taken {
            _ if !remembered => {
                format!("Nothing is remembered of {name} that could be forgotten.")
            }
            true => format!(
                "The failures of {name} are forgotten: what was given up is tried again. The \
                 restarts of the last 300 s and the times of messages still count."
            ),
            false => format!("Noted: the failures of {name} are forgotten with the next turn."),
        };
        (what, object!({ "cleared": taken }))
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

/// What else is in force, and what could not be checked.
fn surroundings(desk: &mut Desk, said: &mut Said) {
    if let Some(pause) = desk.machine.flags().pause {
        let until = pause
            .until
            .map_or(String::new(), |at| format!(" until {}", at.rfc3339()));
        said.say(format_args!(
            "The watchdog is paused{until}: it acts on nothing."
        ));
    }
    for (profile, why) in &desk.unlisted {
        let of = subject(profile, "agent-deck");
        said.say(format_args!(
            "It could not be checked: {of}: {}.",
            escape(&why.to_string())
        ));
    }
}
