//! The simulated machine as a turn sees it: each question takes its time, and
//! each deed is checked.
//!
//! This file does not know what a turn makes of the answers.

use std::panic::resume_unwind;

use agent_deck_watchdog::clock::Time;
use agent_deck_watchdog::guard::{NudgePermit, Permit};
use agent_deck_watchdog::model::{
    AgentSays, Declared, Delivery, Flags, HookRecord, Level, NoAnswer, Pane, Pause, Pollers,
    Process, ProcessMark, Profile, Restarted, Scope, Screen, Session, SessionId, Shown, Sight,
    Telegram, Traces,
};
use agent_deck_watchdog::state::State;
use agent_deck_watchdog::world::{Channel, Ran, Record, Sent, World};

use crate::checks;
use crate::deck::Row;
use crate::sim::{Call, Sim};

/// Milliseconds that agent-deck's commands take (contract 14.1), and ours.
const LIST_MS: u64 = 120;
const SHOW_MS: u64 = 60;
const PANE_MS: u64 = 60;
const LOOK_MS: u64 = 2;
const SAVE_MS: u64 = 4;
/// Until `escalate.sh` has an outcome.
const SEND_MS: u64 = 1500;
const LIST_DEADLINE: u64 = 30_000;
const READ_DEADLINE: u64 = 15_000;
const RESTART_DEADLINE: u64 = 180_000;

/// Thrown where the run is to end at once.
pub struct Crash;

impl Sim {
    fn call(&mut self, verb: &'static str, of: &str) {
        let at = self.truth();
        self.ledger.push(Call {
            at,
            verb,
            of: of.to_owned(),
        });
        checks::calls_are_bounded(self);
    }

    fn fault_of_show(&mut self, id: &SessionId, usual: u64) -> Result<(), NoAnswer> {
        let Some(fault) = self.faults.of_show(id, self.truth()) else {
            self.advance(usual);
            return Ok(());
        };
        let (ms, answer) = fault.answer(READ_DEADLINE);
        self.advance(ms);
        answer.map_or(Ok(()), Err)
    }

    fn printed(&self, row: &Row) -> Session {
        Session {
            title: row.title.clone(),
            group: row.group.clone(),
            tool: row.tool().to_owned(),
            command: "claude".to_owned(),
            status: row.status(),
            substate: row.printed_substate(),
            tmux_session: row.tmux_name.clone(),
            created: Some(self.clocks.line_of_wall(row.created)),
            archived: row.archived,
            is_conductor: row.is_conductor,
            ..Session::new(row.profile.clone(), row.id.clone())
        }
    }

    fn known(&mut self, profile: &Profile, id: &SessionId) -> Result<&mut Row, NoAnswer> {
        let here = |row: &&mut Row| row.id == *id && row.profile == *profile && !row.removed;
        self.rows.iter_mut().find(here).ok_or(NoAnswer::NotFound)
    }

    /// The run ends here, if this is where it has to.
    fn crash_if(&mut self, after: bool) {
        if self.crash_at == Some((self.saves, after)) {
            self.crash_at = None;
            let when = if after { "after" } else { "before" };
            self.tell_history(format!("CRASH {when} save {}", self.saves));
            resume_unwind(Box::new(Crash));
        }
    }
}

impl World for Sim {
    fn now(&mut self) -> Time {
        self.clocks.now()
    }

    fn profiles(&mut self) -> Result<Vec<Profile>, NoAnswer> {
        let truth = self.truth();
        if let Some((fault, _)) = self.faults.profiles.filter(|(_, until)| *until > truth) {
            let (ms, answer) = fault.answer(READ_DEADLINE);
            self.advance(ms);
            self.checks.nothing_listed();
            return answer.map_or(Ok(Vec::new()), Err);
        }
        Ok(self.profiles.clone())
    }

    fn list(&mut self, profile: &Profile) -> Result<Vec<Session>, NoAnswer> {
        self.call("list", profile.as_str());
        let asked = self.truth();
        if let Some(fault) = self.faults.of_list(profile, asked) {
            let (ms, answer) = fault.answer(LIST_DEADLINE);
            self.advance(ms);
            self.checks.listed(profile, None);
            return answer.map_or(Ok(Vec::new()), Err);
        }
        let here = |row: &&Row| row.profile == *profile && !row.removed && row.unlisted <= asked;
        let rows: Vec<Session> = self
            .rows
            .iter()
            .filter(here)
            .map(|row| self.printed(row))
            .collect();
        self.advance(LIST_MS);
        self.checks.listed(profile, Some(asked));
        Ok(rows)
    }

    fn show(&mut self, profile: &Profile, id: &SessionId) -> Result<Shown, NoAnswer> {
        self.call("show", id.as_str());
        let asked = self.truth();
        self.fault_of_show(id, SHOW_MS)?;
        let row = self.known(profile, id)?;
        if let Some(other) = &row.show_answers {
            let text = format!("asked for {id}, session {other} answers");
            return Err(NoAnswer::Ambiguous(text));
        }
        let shown = Shown {
            id: row.id.clone(),
            status: row.status(),
            substate: row.printed_substate(),
            tool: row.tool().to_owned(),
            command: "claude".to_owned(),
            tmux_session: row.tmux_name.clone(),
            agent_session: row.agent_session.clone(),
            auth_hold: row.auth_hold,
            link_disabled: false,
        };
        self.checks.shown(id, asked);
        Ok(shown)
    }

    fn pane(&mut self, profile: &Profile, id: &SessionId) -> Result<Pane, NoAnswer> {
        self.call("pane", id.as_str());
        self.fault_of_show(id, PANE_MS)?;
        let changes = self.known(profile, id)?.screen();
        Ok(changes.map_or(Pane::Gone, |changes| {
            let mut raw = [0; 32];
            raw[..8].copy_from_slice(&changes.to_le_bytes());
            Pane::Stands(Screen {
                raw,
                content: raw,
                claude: None,
                other: None,
                decision: false,
                asks: "",
                background: false,
            })
        }))
    }

    fn processes(&mut self, scope: Scope) -> Sight {
        let sight = self.sight(scope);
        if scope == Scope::All {
            let truth = self.truth();
            self.checks.looked(truth, matches!(sight, Sight::Blind(_)));
        }
        self.advance(LOOK_MS);
        sight
    }

    fn traces(&mut self, _profile: &Profile, id: &SessionId) -> Traces {
        let Some(row) = self.rows.iter().find(|row| row.id == *id) else {
            return Traces::default();
        };
        let hook = row.hook.as_ref().map(|(event, at)| HookRecord {
            event: event.clone(),
            at: self.clocks.line_of_wall(*at),
        });
        Traces {
            hook,
            spawned: row.spawned.map(|at| self.clocks.line_of_wall(at)),
            spawn_lock: row.spawn_lock,
            sandboxed: row.sandboxed,
            database_busy: false,
            unreadable: None,
        }
    }

    fn begin_send(&mut self, permit: NudgePermit) -> Result<ProcessMark, String> {
        Err(format!("no message to {} is played yet", permit.id()))
    }

    fn finish_send(&mut self) -> Ran<Delivery> {
        Ran::Ended(Delivery::Unknown("nothing was begun".to_owned()))
    }

    fn pollers(&mut self) -> Result<Pollers, String> {
        Ok(Pollers::default())
    }

    fn telegram(&mut self, _row: &Session, _agent: Option<&Process>) -> Telegram {
        Telegram {
            declared: Declared::Nothing,
            environment: None,
            default: "/home/u/.claude/channels/telegram".into(),
            token: None,
        }
    }

    fn poller_advice(&mut self, _row: &Session, _agent: Option<&Process>) -> String {
        String::new()
    }

    fn agent_says(&mut self, _agent: &Process) -> Option<AgentSays> {
        None
    }

    fn flags(&mut self) -> Flags {
        let truth = self.truth();
        let ahead = |until: &Option<u64>| until.is_none_or(|until| until > truth);
        let line = |at: u64| Time((self.clocks.now().0 + at).saturating_sub(truth));
        Flags {
            autorestart: self.files.autorestart.clone(),
            hold: self
                .files
                .hold
                .iter()
                .filter(|(_, until)| ahead(until))
                .map(|(id, until)| (id.clone(), until.map(line)))
                .collect(),
            pause: self
                .files
                .pause
                .filter(|(_, until)| ahead(until))
                .map(|(since, until)| Pause {
                    since: line(since),
                    until: until.map(line),
                }),
            clear: self.files.clear.clone(),
            trouble: None,
        }
    }

    fn take_clear(&mut self, id: &SessionId) -> Result<(), String> {
        checks::changes_something(self, "removes a clear file");
        if self.faults.unsaved > self.truth() {
            return Err("read-only file system".to_owned());
        }
        self.files.clear.retain(|other| other != id);
        self.checks.user_acts(id);
        Ok(())
    }

    fn begin_restart(&mut self, permit: Permit) -> Result<ProcessMark, String> {
        self.advance(1);
        if self.faults.no_start > self.truth() {
            return Err("no such file".to_owned());
        }
        let (profile, id) = (permit.profile().clone(), permit.id().clone());
        self.call("restart", id.as_str());
        checks::restart_begins(self, &profile, &id);
        let pid = self.restart(&id, true);
        self.waited_for = Some(pid);
        self.checks.began(self.clocks.truth, &id, pid);
        Ok(ProcessMark {
            pid,
            ticks: u64::from(pid),
        })
    }

    fn finish_restart(&mut self) -> Ran<Restarted> {
        let Some(pid) = self.waited_for.take() else {
            return Ran::Ended(Restarted::Unknown("no restart was begun".to_owned()));
        };
        let end = self.truth() + RESTART_DEADLINE;
        while self.truth() < end {
            self.advance(50);
            if let Some(answer) = self.answers.remove(&pid) {
                self.tell_history(format!("it answers {answer:?}"));
                self.checks.answered(self.clocks.truth, pid, &answer);
                return Ran::Ended(answer);
            }
        }
        self.tell_history("it goes on".to_owned());
        Ran::StillRunning
    }

    fn still_runs(&mut self, mark: ProcessMark) -> bool {
        self.commands.iter().any(|command| command.pid == mark.pid)
    }

    fn save(&mut self, state: &State, durable: bool) -> Result<(), String> {
        checks::changes_something(self, "saves");
        self.advance(SAVE_MS);
        if self.faults.unsaved > self.truth() {
            return Err("no space left on device".to_owned());
        }
        self.saves += 1;
        self.crash_if(false);
        let bytes = state.encode(self.clocks.now(), &self.clocks.reading());
        if durable {
            self.durable_disk = Some(bytes.clone());
        }
        self.disk = Some(bytes);
        self.checks.saved();
        self.saved_step = self.clocks.step;
        self.crash_if(true);
        Ok(())
    }

    fn note(&mut self, level: Level, subject: &str, sentence: &str) {
        self.tell_history(format!("  {}: {subject}: {sentence}", level.word()));
        self.notes.push((level, format!("{subject}: {sentence}")));
    }

    fn detail(&mut self, _subject: &str, _sentence: &str) {}

    fn record(&mut self, record: Record) {
        if self.dry_run {
            return;
        }
        match record {
            Record::Restart(line) => self.restart_log.push(line),
            Record::Escalation(line) => self.escalation_log.push(line),
        }
    }

    fn channel(&mut self) -> Channel {
        self.channel
    }

    fn tell(&mut self, level: Level, message: &str) {
        checks::changes_something(self, "tells");
        checks::message_goes_out(self, message);
        self.tell_history(format!("  TOLD {}: {message}", level.word()));
        self.messages
            .push((self.clocks.truth, level, message.to_owned()));
        self.telling = true;
        let sends = self.sends.clone();
        self.after(SEND_MS, move |sim| {
            sim.telling = false;
            sim.sent = Some(sends);
        });
    }

    fn told(&mut self) -> Option<Sent> {
        self.sent.take()
    }

    fn leaving(&mut self) -> bool {
        self.leaving
    }
}
