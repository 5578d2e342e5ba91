//! The simulated machine as a turn sees it: each question takes its time, and
//! each deed is checked.
//!
//! This file does not know what a turn makes of the answers.

use agent_deck_watchdog::clock::Time;
use agent_deck_watchdog::guard::{NoticePermit, NudgePermit, Permit, StopPermit};
use agent_deck_watchdog::ladder::triage::{Case, Heard};
use agent_deck_watchdog::model::{
    AgentSays, Completion, Delivery, Flags, HookRecord, Level, NoAnswer, Pane, Pause, Pollers,
    Process, ProcessMark, Profile, Restarted, Scope, Session, SessionId, Shown, Sight, Stopped,
    Telegram, Traces,
};
use agent_deck_watchdog::state::State;
use agent_deck_watchdog::world::{Channel, Ran, Record, Sent, World};

use crate::bots::{PS_DEADLINE, PS_MS};
use crate::deck::{Done, Row};
use crate::disk::Written;
use crate::sim::{Hint, Sim};
use crate::views::READ_DEADLINE;
use crate::{checks, checks_ladder, checks_nudge, checks_poller};

/// Milliseconds that agent-deck's commands take (contract 14.1), and ours.
const LIST_MS: u64 = 120;
const SHOW_MS: u64 = 60;
const LOOK_MS: u64 = 2;
const SAVE_MS: u64 = 4;
const STOP_MS: u64 = 300;
/// Until `escalate.sh` has an outcome.
const SEND_MS: u64 = 1500;
const LIST_DEADLINE: u64 = 30_000;
const RESTART_DEADLINE: u64 = 180_000;
const SEND_DEADLINE: u64 = 60_000;

fn mark(pid: u32) -> ProcessMark {
    ProcessMark {
        pid,
        ticks: u64::from(pid),
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
        for row in &rows {
            self.row(&row.id).is_listed();
        }
        self.advance(LIST_MS);
        self.checks.listed(profile, Some(asked));
        self.checks.ladder.listed();
        if !rows.is_empty() {
            let (poll, now) = (self.checks.poll, self.clocks.truth);
            self.checks.recount.listed(profile, &rows, poll, now);
        }
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
            command: row.command.to_owned(),
            tmux_session: row.tmux_name.clone(),
            agent_session: row.agent_session.clone(),
            auth_hold: row.auth_hold,
            link_disabled: false,
            quiet: false,
            spawn_failure: None,
        };
        self.checks.shown(id, asked);
        Ok(shown)
    }

    fn pane(&mut self, profile: &Profile, id: &SessionId) -> Result<Pane, NoAnswer> {
        self.call("pane", id.as_str());
        let answer = self.look_at(profile, id);
        let content = match &answer {
            Ok(Pane::Stands(_)) => self.checks.seen.panes.get(id).map(|look| look.content),
            Ok(Pane::Gone) | Err(_) => {
                self.checks.seen.panes.remove(id);
                None
            }
        };
        let mut commands = self.commands.iter();
        let on_its_way = commands.any(|c| c.ours && c.verb == "send" && c.id == *id);
        let now = self.clocks.truth;
        self.checks.recount.read(id, content, on_its_way, now);
        checks_nudge::reads_are_bounded(self, id);
        self.trap(id);
        answer
    }

    fn children(
        &mut self,
        profile: &Profile,
        parent: &SessionId,
    ) -> Result<Vec<Completion>, NoAnswer> {
        self.call("children", parent.as_str());
        self.fault_of_show(parent, SHOW_MS)?;
        self.known(profile, parent)?;
        let children = self.rows.iter().filter(|row| row.parent == parent.as_str());
        let said: Vec<Completion> = children
            .filter_map(|row| {
                let Done { at, truth, ok, .. } = row.done?;
                // Whole seconds are written (contract 5.5b).
                let at = self.clocks.line_of_wall(at / 1000 * 1000);
                // What lies ahead proves nothing.
                if at <= self.clocks.now() {
                    self.checks.recount.completed(&row.id, truth);
                }
                let id = row.id.clone();
                Some(Completion { id, ok, at })
            })
            .collect();
        Ok(said)
    }

    fn processes(&mut self, scope: Scope) -> Sight {
        let sight = self.sight(scope);
        let truth = self.truth();
        let blind = matches!(sight, Sight::Blind(_));
        match scope {
            Scope::All => self.checks.looked(truth, blind),
            Scope::Panes => {
                self.searches += 1;
                self.checks.panes_blind = blind;
            }
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
        let (profile, id) = (permit.profile().clone(), permit.id().clone());
        checks_nudge::send_begins(self, &profile, &id);
        self.advance(1);
        if self.faults.no_start > self.truth() {
            return Err("no such file".to_owned());
        }
        self.call("send", id.as_str());
        self.checks.recount.begun(&id, &profile, self.clocks.truth);
        let pid = self.send(&id, true);
        self.waited_for = Some(pid);
        Ok(mark(pid))
    }

    fn begin_notice(&mut self, permit: NoticePermit, line: &str) -> Result<ProcessMark, String> {
        let id = permit.id().clone();
        self.advance(1);
        if self.faults.no_start > self.truth() {
            return Err("no such file".to_owned());
        }
        checks_nudge::notice_begins(self, permit.profile(), &id, line);
        self.call("notice", id.as_str());
        let pid = self.send(&id, true);
        self.waited_for = Some(pid);
        Ok(mark(pid))
    }

    fn finish_send(&mut self) -> Ran<Delivery> {
        let Some(pid) = self.waited_for.take() else {
            return Ran::Ended(Delivery::Unknown("nothing was begun".to_owned()));
        };
        let command = self.commands.iter().find(|command| command.pid == pid);
        let id = command.map(|command| command.id.clone());
        let end = self.truth() + SEND_DEADLINE;
        while self.truth() < end {
            self.advance(50);
            if let Some(answer) = self.deliveries.remove(&pid) {
                self.tell_history(format!("it answers {answer:?}"));
                if matches!(answer, Delivery::Refused(_)) {
                    self.checks.ladder.not_told();
                }
                if let Some(id) = id {
                    let now = self.clocks.truth;
                    self.checks.recount.answered(&id, &answer, now);
                }
                return Ran::Ended(answer);
            }
        }
        self.tell_history("it goes on".to_owned());
        Ran::StillRunning
    }

    fn pollers(&mut self) -> Result<Pollers, String> {
        self.call("ps", "");
        let truth = self.truth();
        let seen = match self.faults.ps.filter(|(_, until)| *until > truth) {
            Some((fault, _)) => {
                let (ms, _) = fault.answer(PS_DEADLINE);
                self.advance(ms);
                Err(format!("ps: {fault:?}"))
            }
            None => Ok(self.seen_pollers()),
        };
        checks_poller::looked(self, seen.is_ok());
        self.advance(PS_MS);
        seen
    }

    fn telegram(&mut self, row: &Session, agent: Option<&Process>) -> Telegram {
        self.call("config", row.id.as_str());
        self.telegram_of(row, agent)
    }

    fn poller_advice(&mut self, _row: &Session, _agent: Option<&Process>) -> String {
        "Check the plugin".to_owned()
    }

    fn agent_says(&mut self, agent: &Process) -> Option<AgentSays> {
        let truth = self.truth();
        let of = |row: &&Row| row.agent.is_some_and(|known| known.pid == agent.pid);
        let row = self.rows.iter().find(of)?;
        let says = row.says;
        self.checks.seen.says.insert(row.id.clone(), (says, truth));
        says
    }

    fn flags(&mut self) -> Flags {
        let truth = self.truth();
        let ahead = |until: &Option<u64>| until.is_none_or(|until| until > truth);
        let line = |at: u64| Time((self.clocks.now().0 + at).saturating_sub(truth));
        Flags {
            autorestart: self.files.autorestart.clone(),
            autostop: self.files.autostop.clone(),
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
        self.checks.cleared(id);
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
        let deaf = checks::is_for_poller(self);
        let pid = self.restart(&id, true);
        self.waited_for = Some(pid);
        self.checks.began(self.clocks.truth, &id, pid, deaf);
        Ok(mark(pid))
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

    fn begin_stop(&mut self, permit: StopPermit) -> Result<ProcessMark, String> {
        let id = permit.id().clone();
        checks_ladder::stop_begins(self, permit.profile(), &id);
        self.advance(1);
        if self.faults.no_start > self.truth() {
            return Err("no such file".to_owned());
        }
        self.call("stop", id.as_str());
        let pid = self.ends(&id, "stop", STOP_MS, true);
        self.waited_for = Some(pid);
        Ok(mark(pid))
    }

    fn finish_stop(&mut self) -> Ran<Stopped> {
        let Some(pid) = self.waited_for.take() else {
            return Ran::Ended(Stopped::Unknown("nothing was begun".to_owned()));
        };
        self.advance(2 * STOP_MS);
        debug_assert!(self.commands.iter().all(|command| command.pid != pid));
        Ran::Ended(Stopped::Accepted)
    }

    fn begin_triage(&mut self, case: &Case) -> Result<(), String> {
        self.triage_begins(case)
    }

    fn triaged(&mut self) -> Option<Heard> {
        self.triage_answers()
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
        let written = Written::state(state, self.clocks.now(), self.clocks.reading());
        if durable {
            self.durable_disk = Some(written.clone());
        }
        self.disk = Some(written);
        self.checks.saved();
        self.saved_step = self.clocks.step;
        self.touched = Some(self.clocks.wall());
        self.crash_if(true);
        Ok(())
    }

    fn note(&mut self, level: Level, subject: &str, sentence: &str) {
        self.tell_history(format!("  {}: {subject}: {sentence}", level.word()));
        self.notes.push((level, format!("{subject}: {sentence}")));
    }

    fn detail(&mut self, _subject: &str, _sentence: &str) {}

    fn record(&mut self, record: Record) {
        if !self.dry_run {
            self.keep(record);
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

    fn notices(&mut self, pids: &[u32]) -> bool {
        self.folder_watch && pids.iter().all(|pid| self.is_followed(*pid))
    }

    fn end_waits(&mut self) -> bool {
        let end = |hint: &_| matches!(hint, Hint::Ended(_) | Hint::ServerEnded);
        self.hints.iter().any(end)
    }

    fn leaving(&mut self) -> bool {
        self.leaving
    }
}
