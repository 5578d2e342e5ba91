//! `doctor`: is everything set up so that it can work?
//!
//! One check looks at one thing and says ok, warning or problem in one line,
//! with a command that mends it. Checks change nothing and never take the lock.
//! This file does not know what is looked at.

use serde_json::{Value, json};

use super::paper::{Light, Paper, wrapped};
use super::{FORMAT, Report};
use crate::cli::Exit;
use crate::host::logs::escape;

pub mod agents;
pub mod around;
pub mod screen;
pub mod service;

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

/// All is well.
pub fn ok(name: &'static str, sentence: impl Into<String>) -> Check {
    Check {
        name,
        light: Light::Green,
        sentence: sentence.into(),
        mend: String::new(),
    }
}

/// It works, but not as it could.
pub fn warning(name: &'static str, sentence: impl Into<String>, mend: impl Into<String>) -> Check {
    Check {
        name,
        light: Light::Yellow,
        sentence: sentence.into(),
        mend: mend.into(),
    }
}

/// It cannot work like this.
pub fn problem(name: &'static str, sentence: impl Into<String>, mend: impl Into<String>) -> Check {
    Check {
        name,
        light: Light::Red,
        sentence: sentence.into(),
        mend: mend.into(),
    }
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

/// What all checks found.
pub struct Doctor {
    /// In the order in which they were made.
    pub checks: Vec<Check>,
}

/// Looks at all of it.
pub fn doctor(desk: &mut super::desk::Desk) -> Doctor {
    let mut checks = service::checks(desk);
    checks.extend(agents::checks(desk));
    checks.extend(screen::checks(desk));
    Doctor { checks }
}

impl Report for Doctor {
    fn text(&self, paper: &Paper) -> String {
        let mut page = String::new();
        for check in &self.checks {
            let word = paper.lit(check.light, &format!("{:<8}", check.word()));
            let name = check.name;
            // Colours take no column.
            let line = wrapped(
                &format!("{:<8}{name:<16} ", ""),
                &escape(&check.sentence),
                INDENT,
            );
            page.push_str(&word);
            page.push_str(&line[8..]);
            if !check.mend.is_empty() {
                page.push_str(&format!("{:INDENT$}$ {}\n", "", escape(&check.mend)));
            }
        }
        page
    }

    fn json(&self) -> Value {
        let checks: Vec<Value> = self
            .checks
            .iter()
            .map(|check| {
                json!({
                    "name": check.name,
                    "result": check.word(),
                    "text": check.sentence,
                    "mend": check.mend,
                })
            })
            .collect();
        json!({ "format": FORMAT, "checks": checks })
    }

    fn exit(&self) -> Exit {
        let red = self.checks.iter().any(|check| check.light == Light::Red);
        if red { Exit::Trouble } else { Exit::Done }
    }
}
