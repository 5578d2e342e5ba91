//! `session send`, step by step as agent-deck does it (contract 5.5): it types
//! whatever stands on the screen by then, and so answers dialogs.
//!
//! This file does not know the watchdog, but for whose message it is.

use agent_deck_watchdog::model::{Delivery, SessionId, Silence, Status};

use crate::checks_nudge;
use crate::deck::Terminal;
use crate::front::{Mood, Plan};
use crate::sim::Sim;

/// Until the text is typed, and until it is known that it arrived.
const TYPES_MS: u64 = 650;
const SUBMITTED_MS: u64 = 450;
/// A draft is held before it is cleared.
const DRAFT_MS: u64 = 2100;
/// A dialog takes the text for a draft twice.
const DIALOG_MS: u64 = 4050;
/// agent-deck gives up to find a sign.
const NO_EVIDENCE_MS: u64 = 10_800;

/// Something that reached a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    /// True time.
    pub at: u64,
    pub id: SessionId,
    /// What stood there; `None`: the message arrived.
    pub stood: Option<Silence>,
}

impl Sim {
    /// A message to a session, by whomever.
    pub fn send(&mut self, id: &SessionId, ours: bool) -> u32 {
        let pid = self.begin("send", id, ours);
        let plan = if ours {
            self.row(id).plan.clone()
        } else {
            Plan::Usual
        };
        let (types, lasts) = match &plan {
            Plan::Usual | Plan::ArrivesBut(_) | Plan::Left(_) => (TYPES_MS, SUBMITTED_MS),
            Plan::Takes(ms) => (TYPES_MS, *ms),
            Plan::Late(ms) => (*ms, SUBMITTED_MS),
            Plan::Nothing(answer) => {
                let answer = answer.clone();
                self.after(40, move |sim| sim.sent(pid, answer));
                return pid;
            }
        };
        let id = id.clone();
        self.after(types, move |sim| sim.types(&id, pid, plan, lasts));
        pid
    }

    fn sent(&mut self, pid: u32, answer: Delivery) {
        self.deliveries.insert(pid, answer);
        self.end(pid);
    }

    /// The text and Enter go to the terminal.
    fn types(&mut self, id: &SessionId, pid: u32, plan: Plan, lasts: u64) {
        let ours = self.commands.iter().any(|c| c.pid == pid && c.ours);
        let row = self.row(id);
        if row.agent.is_none() || !matches!(row.terminal, Terminal::Stands(_)) {
            let why = Delivery::NoEvidence("send_failed: no server".to_owned());
            return self.after(50, move |sim| sim.sent(pid, why));
        }
        let stood = row.front.stand;
        if ours {
            let at = self.truth();
            checks_nudge::is_typed(self, id, stood);
            let id = id.clone();
            self.typed.push(Typed { at, id, stood });
        }
        let (more, answer) = match stood {
            None => self.types_freely(id, plan),
            Some(stood) => self.types_into(id, stood),
        };
        self.after(lasts + more, move |sim| sim.sent(pid, answer));
    }

    /// Into a free composer.
    fn types_freely(&mut self, id: &SessionId, plan: Plan) -> (u64, Delivery) {
        match plan {
            Plan::Left(word) => {
                self.stands(id, Some(Silence::Draft));
                return (6000, Delivery::LeftBehind(word));
            }
            Plan::ArrivesBut(answer) => {
                self.arrives(id);
                return (NO_EVIDENCE_MS, answer);
            }
            Plan::Usual | Plan::Takes(_) | Plan::Late(_) | Plan::Nothing(_) => {}
        }
        self.arrives(id);
        (0, Delivery::Delivered)
    }

    /// Into something else: this is what nobody wanted.
    fn types_into(&mut self, id: &SessionId, stood: Silence) -> (u64, Delivery) {
        let nothing = Delivery::NoEvidence("no_evidence: ".to_owned());
        match stood {
            Silence::Dialog => {
                self.stands(id, None);
                self.word(id, Status::Running);
                let id = id.clone();
                self.after(60_000, move |sim| sim.waits(&id));
                (DIALOG_MS, Delivery::Answered)
            }
            // Held, put aside, and typed back.
            Silence::Draft | Silence::Suggestion => {
                self.arrives(id);
                self.stands(id, Some(Silence::Draft));
                (DRAFT_MS, Delivery::Delivered)
            }
            // Runs as a command; kills the tool.
            Silence::ShellMode | Silence::Queued => {
                self.moves(id);
                (0, Delivery::Delivered)
            }
            Silence::Empty
            | Silence::NoComposer
            | Silence::Menu
            | Silence::Search
            | Silence::Busy
            | Silence::Credentials
            | Silence::UsageLimit
            | Silence::Interrupted
            | Silence::Unclear => (NO_EVIDENCE_MS, nothing),
        }
    }

    /// The message is the agent's.
    fn arrives(&mut self, id: &SessionId) {
        match self.row(id).mood {
            Mood::Works(ms) => self.works(id, ms),
            Mood::Echoes => {
                self.hook(id, "UserPromptSubmit");
                self.moves(id);
            }
            Mood::Ignores => {}
            Mood::Dies => {
                self.moves(id);
                let id = id.clone();
                self.after(500, move |sim| sim.end_agent(&id));
            }
            Mood::Asks => {
                self.hook(id, "UserPromptSubmit");
                self.stands(id, Some(Silence::Dialog));
            }
        }
    }
}
