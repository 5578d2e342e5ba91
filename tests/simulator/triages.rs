//! The user's triage program on the simulated machine, and the promises about it.
//!
//! This file does not know what follows from an answer.

use std::panic::resume_unwind;
use std::time::Duration;

use agent_deck_watchdog::capabilities::patrol;
use agent_deck_watchdog::ladder::triage::{Advice, Answer, Case, Heard};
use agent_deck_watchdog::model::{Pane, SessionId};

use crate::checks::{self, broken};
use crate::checks_ladder;
use crate::checks_nudge::SLACK;
use crate::disk::Written;
use crate::sim::Sim;
use crate::views::Crash;

/// Until it has answered, as a rule.
const TAKES_MS: u64 = 5000;
/// Questions to a child before triage is asked about it.
const NUDGES: u32 = 3;

/// All that it may come to.
pub const ANSWERS: [Answer; 4] = [
    says(Advice::Retry),
    says(Advice::Extend),
    says(Advice::Terminate),
    Answer {
        advice: Advice::Extend,
        fallback: Some("it failed"),
    },
];

/// The program.
pub struct Triage {
    /// It is set.
    pub on: bool,
    /// What it says.
    pub answer: Answer,
    /// The child it is asked about, and for which call.
    asked: Option<(SessionId, u64)>,
    /// Milliseconds until it has answered.
    pub takes: u64,
    /// The watchdog is killed while it runs.
    pub crashes: bool,
    heard: Option<Heard>,
    calls: u64,
}

impl Default for Triage {
    fn default() -> Triage {
        Triage {
            on: false,
            answer: says(Advice::Extend),
            asked: None,
            takes: TAKES_MS,
            crashes: false,
            heard: None,
            calls: 0,
        }
    }
}

/// An answer in its own words.
pub const fn says(advice: Advice) -> Answer {
    Answer {
        advice,
        fallback: None,
    }
}

impl Triage {
    /// It runs, or its answer was not taken yet.
    pub fn is_open(&self) -> bool {
        self.asked.is_some()
    }

    pub fn has_answered(&self) -> bool {
        self.heard.is_some()
    }

    /// Whoever asked is gone.
    pub fn crashed(&mut self) {
        self.asked = None;
        self.heard = None;
    }
}

impl Sim {
    /// It is asked about a child, if the screen is still the one.
    pub fn triage_begins(&mut self, case: &Case) -> Result<(), String> {
        checks::changes_something(self, "asks triage");
        checks_ladder::acts(self, &case.id, "asks triage about");
        let pane = self.look_at(&case.profile, &case.id);
        let Ok(Pane::Stands(screen)) = pane else {
            return Err("no screen".to_owned());
        };
        if screen.decision || patrol::digest(&screen) != case.digest {
            return Err("another screen".to_owned());
        }
        for what in self.forbid_triage(case) {
            let text = format!("asks triage about {} ({}): {what}", case.id, case.title);
            broken(self, &text);
        }
        self.call("triage", case.id.as_str());
        self.checks.recount.triages += 1;
        self.triage.calls += 1;
        let (call, takes) = (self.triage.calls, self.triage.takes);
        self.triage.asked = Some((case.id.clone(), call));
        if self.triage.crashes {
            self.after(takes / 2, |sim| {
                sim.tell_history("CRASH while triage runs".to_owned());
                resume_unwind(Box::new(Crash));
            });
        }
        self.after(takes, move |sim| {
            let asked = sim.triage.asked.as_ref();
            let id = asked.filter(|(_, of)| *of == call).map(|(id, _)| id);
            sim.triage.heard = id.map(|id| Heard {
                id: id.clone(),
                answer: sim.triage.answer,
                took: Duration::from_millis(takes),
            });
        });
        Ok(())
    }

    fn forbid_triage(&self, case: &Case) -> Vec<&'static str> {
        let (checks, now) = (&self.checks, self.clocks.truth);
        let child = checks.recount.child(&case.id);
        let asked = child.map_or(0, |child| child.nudges);
        let unsure = child.is_some_and(|child| child.unsure);
        let last = child.and_then(|child| child.last);
        let waited = child.map_or(0, |child| child.waited(now));
        let row = self.rows.iter().find(|row| row.id == case.id);
        let disk = self.disk.as_ref().map(Written::bytes).unwrap_or_default();
        let disk: serde_json::Value = serde_json::from_slice(&disk).unwrap_or_default();
        let children = disk["state"]["children"].as_array();
        let open = |c: &serde_json::Value| c["id"] == case.id.as_str() && c["triage_open"] == true;
        let open = children.is_some_and(|all| all.iter().any(open));
        let facts = [
            (!self.triage.on, "there is no program"),
            (self.triage.is_open(), "while another one runs"),
            (checks.recount.triages > 0, "a second time in one turn"),
            (asked < NUDGES && !unsure, "before it was asked three times"),
            (
                last.is_some_and(|at| now - at < checks.nudge_dedup),
                "soon after a question",
            ),
            (
                waited + SLACK + checks.poll < checks.threshold,
                "before it has waited so long",
            ),
            (
                row.is_none_or(|row| row.archived || row.parent.is_empty()),
                "it is no child",
            ),
            (
                self.faults.unsaved <= now && !open,
                "before that was written down",
            ),
        ];
        let facts = facts.into_iter().filter(|(is, _)| *is);
        facts.map(|(_, what)| what).collect()
    }

    /// Its answer, once.
    pub fn triage_answers(&mut self) -> Option<Heard> {
        let heard = self.triage.heard.take()?;
        self.triage.asked = None;
        if heard.answer.advice == Advice::Retry {
            self.checks.recount.retried(&heard.id);
        }
        Some(heard)
    }
}
