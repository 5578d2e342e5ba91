//! `doctor`: is everything set up so that it can work?
//!
//! One check looks at one thing and says ok, warning or problem in one line,
//! with a command that mends it. Checks change nothing, never take the lock, and
//! go on whatever is broken. This file does not know what is looked at.
//!
//! | file | what |
//! | --- | --- |
//! | `settings.rs` | variables, here and in the running watchdog |
//! | `ours.rs` | our folder, logs, memory, the clock |
//! | `deck.rs` | agent-deck, profiles, lists, its configuration |
//! | `tmux.rs` | tmux, and whether it is that of the sessions |
//! | `hooks.rs` | hook records, and how fast ends are noticed |
//! | `others.rs` | other watchdogs, and ours |
//! | `words.rs` | the user's own words: flags and pause |
//! | `telling.rs` | the way to a person |
//! | `ladder.rs` | the user's triage program, and the opt-ins to stop a child |
//! | `pollers.rs` | Telegram pollers |
//! | `service.rs` | who starts it: systemd, launchd, cron |
//! | `agents.rs` | places, PATH and groups of the living agents |
//! | `screen.rs` | whether their screens can be read |
//! | `able.rs` | what the watchdog can do, all in all |
//! | `case.rs` | what the checks look at |
//! | `environ.rs` | the variables of a process |
//! | `shell.rs` | words and commands as a shell takes them |

use std::cell::RefCell;
use std::fmt::Arguments;

use super::desk::Desk;
use super::paper::{Light, Paper, add, wrap};
use super::{FORMAT, Report};
use crate::cli::Exit;
use crate::config::Environment;
use crate::host::logs::escape;
use crate::json::{Value, object};

mod able;
mod agents;
mod case;
mod deck;
mod environ;
mod hooks;
mod ladder;
mod others;
mod ours;
mod pollers;
mod screen;
mod service;
mod settings;
mod shell;
mod telling;
mod tmux;
mod words;

use case::Case;
pub use settings::FILE;

/// Columns before the sentence: the light's word and the name.
const INDENT: usize = 25;

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was looked at, one or two words.
    pub name: &'static str,
    /// Green, yellow or red.
    pub light: Light,
    /// What was found, naming the thing, the value and what is allowed.
    pub sentence: String,
    /// A command that mends it and can be pasted; empty when nothing is wrong.
    pub mend: String,
}

impl Check {
    fn word(&self) -> &'static str {
        match self.light {
            Light::Green | Light::Strong => "ok",
            Light::Yellow => "warning",
            Light::Red => "problem",
        }
    }
}

/// What was found so far. It can be added to while that is looked at of which
/// it speaks.
#[derive(Default)]
pub struct Found(RefCell<Vec<Check>>);

impl Found {
    /// All is well.
    pub fn ok(&self, name: &'static str, sentence: Arguments) {
        self.say(name, Light::Green, sentence, format_args!(""));
    }

    /// It works, but not as it could.
    pub fn warning(&self, name: &'static str, sentence: Arguments, mend: Arguments) {
        self.say(name, Light::Yellow, sentence, mend);
    }

    /// It cannot work like this.
    pub fn problem(&self, name: &'static str, sentence: Arguments, mend: Arguments) {
        self.say(name, Light::Red, sentence, mend);
    }

    /// It is as good as that.
    #[inline(never)]
    fn say(&self, name: &'static str, light: Light, sentence: Arguments, mend: Arguments) {
        self.0.borrow_mut().push(Check {
            name,
            light,
            sentence: sentence.to_string(),
            mend: mend.to_string(),
        });
    }

    /// So many checks were made.
    fn count(&self) -> usize {
        self.0.borrow().len()
    }

    /// With what there is a problem of that kind: the first one.
    pub fn red(&self, kind: &dyn Fn(&Check) -> bool) -> Option<&'static str> {
        let checks = self.0.borrow();
        let mut red = checks.iter().filter(|check| check.light == Light::Red);
        red.find(|check| kind(check)).map(|check| check.name)
    }

    /// All of it.
    pub fn all(self) -> Doctor {
        Doctor {
            checks: self.0.into_inner(),
        }
    }
}

/// The checks, in their order.
const CHECKS: [fn(&mut Case); 15] = [
    settings::compare,
    ours::checks,
    deck::checks,
    |case| case.look_around(),
    tmux::checks,
    hooks::checks,
    others::checks,
    pollers::checks,
    telling::checks,
    words::checks,
    |case| ladder::checks(case),
    service::checks,
    agents::checks,
    screen::checks,
    able::checks,
];

/// Makes all checks. What is broken is a problem among others.
pub fn doctor(environment: Environment, send_test: bool) -> Doctor {
    let file = settings::file(environment);
    let lookup = |name: &str| {
        let here = environment(name).filter(|value| !value.is_empty());
        here.or_else(|| file.value(name))
    };
    let found = Found::default();
    let opened = settings::checks(&lookup, &file, &found);
    match opened.map(|settings| Desk::of(settings, &lookup)) {
        None => {}
        Some(Err(failed)) => {
            found.problem(
                "system",
                format_args!("{}", failed.why),
                format_args!("ulimit -a"),
            );
        }
        Some(Ok(mut desk)) => {
            let mut case = Case::new(&mut desk, &lookup, &file, &found, send_test);
            for check in CHECKS {
                check(&mut case);
            }
        }
    }
    found.all()
}

/// What all checks found.
pub struct Doctor {
    /// In the order in which they were made.
    pub checks: Vec<Check>,
}

impl Report for Doctor {
    fn text(&self, paper: &Paper) -> String {
        let mut page = String::new();
        for check in &self.checks {
            // Colours take no column.
            let word = format_args!("{:<8}", check.word());
            paper.lit(&mut page, check.light, word);
            let head = format!("{:<8}{:<16} ", "", check.name);
            let mut line = String::new();
            wrap(&mut line, &head, &escape(&check.sentence), INDENT);
            page.push_str(&line[8..]);
            if !check.mend.is_empty() {
                let mend = escape(&check.mend);
                add(&mut page, format_args!("{:INDENT$}$ {mend}\n", ""));
            }
        }
        page
    }

    fn json(&self) -> Value {
        let mut checks = Vec::new();
        for check in &self.checks {
            checks.push(object!({
                "name": check.name,
                "result": check.word(),
                "text": check.sentence,
                "mend": check.mend,
            }));
        }
        object!({ "format": FORMAT, "checks": checks })
    }

    fn exit(&self) -> Exit {
        let red = self.checks.iter().any(|check| check.light == Light::Red);
        if red { Exit::Trouble } else { Exit::Done }
    }
}
