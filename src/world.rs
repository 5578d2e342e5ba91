//! What a turn needs from the world outside: one trait, so that the daemon and
//! the simulator drive the same code.
//!
//! This file does not know how anything is done; `machine.rs` does, and the
//! simulator in `tests/` does it differently.

use std::time::Duration;

use crate::clock::Time;
use crate::guard::{NoticePermit, NudgePermit, Permit, StopPermit};
use crate::json::Map;
use crate::ladder::triage::{Case, Heard};
use crate::model::{
    AgentSays, Completion, Delivery, Flags, Level, NoAnswer, Pane, Pollers, Process, ProcessMark,
    Profile, Restarted, Scope, Session, SessionId, Shown, Sight, Stopped, Telegram, Traces,
};
use crate::state::State;

/// How a started command that changes something went on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ran<Answer> {
    /// It ended with this answer.
    Ended(Answer),
    /// It still runs after its deadline and was left alone.
    StillRunning,
}

/// What came of handing a message to `escalate.sh`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Exit 0.
    Delivered,
    /// Exit 75: try again, not before this long.
    TryAgain(Duration),
    /// Any other end; the text says which.
    Refused(String),
}

/// Where a message about to be told can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// `escalate.sh` and a chat id are there.
    Script,
    /// Only the log: no chat id, or no executable script.
    LocalOnly,
}

/// A line of one of the two JSON logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// For `restart.log`: attempts, refusals that matter, outcomes.
    Restart(Map),
    /// For `escalations.log`.
    Escalation(Map),
}

/// The machine, agent-deck and our own folder, as a turn sees them.
pub trait World {
    /// The present.
    fn now(&mut self) -> Time;

    /// Names of the profiles that exist among those to be watched.
    ///
    /// # Errors
    /// When agent-deck does not answer.
    fn profiles(&mut self) -> Result<Vec<Profile>, NoAnswer>;

    /// `list --json` of one profile. An empty profile is an empty list.
    ///
    /// # Errors
    /// When there is no whole, timely answer.
    fn list(&mut self, profile: &Profile) -> Result<Vec<Session>, NoAnswer>;

    /// `session show --json`.
    ///
    /// # Errors
    /// When there is no whole, timely answer about that very id.
    fn show(&mut self, profile: &Profile, id: &SessionId) -> Result<Shown, NoAnswer>;

    /// `session output --pane --json`.
    ///
    /// # Errors
    /// When it cannot be said whether there is a terminal.
    fn pane(&mut self, profile: &Profile, id: &SessionId) -> Result<Pane, NoAnswer>;

    /// `session children --json`: what the children of a session last said of
    /// their work.
    ///
    /// # Errors
    /// When there is no whole, timely answer about that very session.
    fn children(
        &mut self,
        profile: &Profile,
        parent: &SessionId,
    ) -> Result<Vec<Completion>, NoAnswer>;

    /// The machine's processes.
    fn processes(&mut self, scope: Scope) -> Sight;

    /// agent-deck's files about one session.
    fn traces(&mut self, profile: &Profile, id: &SessionId) -> Traces;

    /// The processes that poll Telegram.
    ///
    /// # Errors
    /// When that cannot be said for certain, and why.
    fn pollers(&mut self) -> Result<Pollers, String>;

    /// The folder that the poller of a session should have. `agent` is its pane
    /// process, where that is seen.
    fn telegram(&mut self, row: &Session, agent: Option<&Process>) -> Telegram;

    /// What to check around the poller of a session, as far as files say.
    fn poller_advice(&mut self, row: &Session, agent: Option<&Process>) -> String;

    /// What an agent says of itself in its own status file; `None`: nothing.
    fn agent_says(&mut self, agent: &Process) -> Option<AgentSays>;

    /// The user's flag files.
    fn flags(&mut self) -> Flags;

    /// Takes the request file `clear/<id>` away.
    ///
    /// # Errors
    /// When it stays: the request would be met again and again.
    fn take_clear(&mut self, id: &SessionId) -> Result<(), String>;

    /// Starts `session restart`. Consumes the permit: no other door leads here.
    ///
    /// # Errors
    /// When the program could not be started; nothing has happened then.
    fn begin_restart(&mut self, permit: Permit) -> Result<ProcessMark, String>;

    /// Waits for the started restart, up to its deadline; never ends it.
    fn finish_restart(&mut self) -> Ran<Restarted>;

    /// Starts `session send` with the question. Consumes the permit.
    ///
    /// # Errors
    /// As [`World::begin_restart`].
    fn begin_send(&mut self, permit: NudgePermit) -> Result<ProcessMark, String>;

    /// Starts `session send` with this line, which was made harmless. Consumes
    /// the permit.
    ///
    /// # Errors
    /// As [`World::begin_restart`].
    fn begin_notice(&mut self, permit: NoticePermit, line: &str) -> Result<ProcessMark, String>;

    /// Waits for the started send, of either kind, up to its deadline; never ends it.
    fn finish_send(&mut self) -> Ran<Delivery>;

    /// Starts `session stop`. Consumes the permit.
    ///
    /// # Errors
    /// As [`World::begin_restart`].
    fn begin_stop(&mut self, permit: StopPermit) -> Result<ProcessMark, String>;

    /// Waits for the started stop, up to its deadline; never ends it.
    fn finish_stop(&mut self) -> Ran<Stopped>;

    /// Asks the triage program about a child, by the text of its screen; the
    /// answer comes from [`World::triaged`].
    ///
    /// # Errors
    /// When its screen is not the one that makes it due, or cannot be read:
    /// nothing has happened then.
    fn begin_triage(&mut self, case: &Case) -> Result<(), String>;

    /// What came of the last [`World::begin_triage`], once something has.
    fn triaged(&mut self) -> Option<Heard>;

    /// Whether that process, started by this or an earlier run, still runs.
    fn still_runs(&mut self, mark: ProcessMark) -> bool;

    /// Writes the state down. `durable` also waits for the disk.
    ///
    /// # Errors
    /// When it is not written; the old one is whole then.
    fn save(&mut self, state: &State, durable: bool) -> Result<(), String>;

    /// A line for `watchdog.log`.
    fn note(&mut self, level: Level, subject: &str, sentence: &str);

    /// A line for `watchdog.log` that only `--verbose` wants.
    fn detail(&mut self, subject: &str, sentence: &str);

    /// A line for one of the JSON logs; the time is added.
    fn record(&mut self, record: Record);

    /// Where messages go at present.
    fn channel(&mut self) -> Channel;

    /// Starts telling; the outcome comes from [`World::told`].
    fn tell(&mut self, level: Level, message: &str);

    /// The outcome of the last [`World::tell`], once it has one.
    fn told(&mut self) -> Option<Sent>;

    /// Whether hooks, flags and the ends of all these processes are noticed at
    /// once.
    fn notices(&mut self, pids: &[u32]) -> bool;

    /// Whether the end of an agent was noticed and not served yet: what is not
    /// urgent does not begin before that.
    fn end_waits(&mut self) -> bool;

    /// Whether the watchdog is on its way out: nothing new may begin.
    fn leaving(&mut self) -> bool;
}
