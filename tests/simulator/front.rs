//! What stands on a session's screen, and how its agent takes a message.
//!
//! This file does not know the watchdog, nor how a screen is read.

use agent_deck_watchdog::model::{AgentSays, Delivery, SessionId, Silence, Status};

use crate::deck::{Lie, Terminal};
use crate::sim::Sim;

/// A terminal's rows, as far as they matter.
#[derive(Clone, Debug)]
pub struct Front {
    /// A new number for each new content.
    pub content: u64,
    /// What stands where the composer should be; `None`: a free composer.
    pub stand: Option<Silence>,
    /// Something runs in the background.
    pub background: bool,
    /// True time since which it stands there.
    pub since: u64,
    /// Opened a moment after a look of the watchdog from which it may act: after
    /// how many of them, after how many milliseconds, and what.
    pub trap: Option<(u32, u64, Silence)>,
}

impl Front {
    /// A free composer.
    pub fn free() -> Front {
        Front {
            content: 1,
            stand: None,
            background: false,
            since: 0,
            trap: None,
        }
    }

    /// A decision is asked for.
    pub fn decides(&self) -> bool {
        self.stand == Some(Silence::Dialog)
    }

    /// The same in a tool whose composer is not known.
    pub fn of_other_tool(&self) -> Option<Silence> {
        self.stand.filter(|stand| {
            matches!(
                stand,
                Silence::Dialog
                    | Silence::Draft
                    | Silence::Menu
                    | Silence::Search
                    | Silence::Credentials
            )
        })
    }
}

/// How an agent takes a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// It works for so many milliseconds and waits with another screen.
    Works(u64),
    /// Its screen shows the message, and that is all.
    Echoes,
    /// Nothing at all changes.
    Ignores,
    /// It ends.
    Dies,
    /// It asks back in a dialog.
    Asks,
}

/// How the next messages to a session go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// As usual.
    Usual,
    /// It is typed as usual, and the command takes so many milliseconds.
    Takes(u64),
    /// Nothing is typed before so many milliseconds have passed.
    Late(u64),
    /// Nothing is typed, and this is said.
    Nothing(Delivery),
    /// The text stays in the input box.
    Left(String),
    /// The message arrives, and this is said.
    ArrivesBut(Delivery),
}

impl Sim {
    /// Something else stands on its screen.
    pub fn stands(&mut self, id: &SessionId, stand: Option<Silence>) {
        let truth = self.truth();
        let row = self.row(id);
        if row.front.stand == stand || !matches!(row.terminal, Terminal::Stands(_)) {
            return;
        }
        row.front.stand = stand;
        row.front.since = truth;
        self.moves(id);
        self.tell_history(format!("on the screen of {id}: {stand:?}"));
    }

    /// Its screen shows something new.
    pub fn moves(&mut self, id: &SessionId) {
        self.row(id).front.content += 1;
    }

    /// What agent-deck prints of a living session changes.
    pub fn word(&mut self, id: &SessionId, word: Status) {
        let truth = self.truth();
        let row = self.row(id);
        if row.word == word {
            return;
        }
        row.word = word.clone();
        row.changed = truth;
        self.tell_history(format!("{id} is {}", word.word()));
    }

    /// It works for a while and waits again, with another screen.
    pub fn works(&mut self, id: &SessionId, ms: u64) {
        if !self.is_at_work_or_waits(id) {
            return;
        }
        self.hook(id, "UserPromptSubmit");
        self.stands(id, None);
        self.moves(id);
        self.word(id, Status::Running);
        self.row(id).says = Some(AgentSays::Busy);
        let agent = self.row(id).agent.map(|agent| agent.pid);
        let id = id.clone();
        self.after(ms, move |sim| {
            if sim.row(&id).agent.map(|agent| agent.pid) == agent {
                sim.waits(&id);
            }
        });
    }

    /// Its turn is over.
    pub fn waits(&mut self, id: &SessionId) {
        if !self.is_at_work_or_waits(id) {
            return;
        }
        self.row(id).says = Some(AgentSays::Idle);
        self.word(id, Status::Waiting);
        self.moves(id);
        self.hook(id, "Stop");
    }

    fn is_at_work_or_waits(&mut self, id: &SessionId) -> bool {
        let row = self.row(id);
        let lies = row.lie.is_some_and(|lie| lie != Lie::Leftover);
        !lies && row.agent.is_some() && matches!(row.terminal, Terminal::Stands(_))
    }

    /// What opens right after a look, if something does.
    pub fn trap(&mut self, id: &SessionId) {
        let child = self.checks.recount.child(id);
        let waited = child.map_or(0, |child| child.waited(self.clocks.truth));
        let owns = self
            .rows
            .iter()
            .any(|row| row.id == *id && row.bot.is_some());
        if waited <= self.checks.threshold && !owns {
            return;
        }
        let Some(row) = self.rows.iter_mut().find(|row| row.id == *id) else {
            return;
        };
        match &mut row.front.trap {
            None => {}
            Some((0, ms, stand)) => {
                let (ms, stand) = (*ms, *stand);
                row.front.trap = None;
                let id = id.clone();
                self.after(ms, move |sim| sim.stands(&id, Some(stand)));
            }
            Some((more, ..)) => *more -= 1,
        }
    }
}
