//! The world as it is: agent-deck, the machine and our own folder behind the
//! trait that turns use.
//!
//! This file does not know what a turn decides.

use std::path::PathBuf;
use std::time::Duration;

use crate::cli::Mode;
use crate::clock::{Clock, Time};
use crate::config::Settings;
use crate::deck::answers::{self, ProfileRow};
use crate::deck::argv::{
    self, LIST_DEADLINE, READ_DEADLINE, RESTART_DEADLINE, SEND_DEADLINE, STOP_DEADLINE,
};
use crate::deck::places::Roots;
use crate::deck::screen::Form;
use crate::deck::{agent_file, database, hooks, processes};
use crate::guard::{NoticePermit, NudgePermit, Permit, StopPermit};
use crate::host::exec::{self, Running};
use crate::host::logs::{Logs, escape};
use crate::host::{flags, folder};
use crate::ladder::triage::{Case, Heard};
use crate::model::{
    AgentSays, Completion, Delivery, Flags, Level, NoAnswer, Pane, Pollers, Process, ProcessMark,
    Profile, Restarted, Scope, Screen, Session, SessionId, Shown, Sight, Stopped, Telegram, Traces,
};
use crate::state::State;
use crate::world::{Channel, Ran, Record, Sent, World};

pub mod bin;
mod commands;
pub mod escalation;
mod lists;
pub mod memory;
pub mod profiles;
pub mod pulse;
mod reader;
mod rules;
mod telegram;
pub mod triage;

use bin::Program;
use commands::{delivered, restarted, stopped};
use escalation::Escalation;
use lists::Lists;
use profiles::Profiles;
use pulse::Pulse;
use triage::Triage;

/// Most bytes of a list: a row has about 500, so this is 60,000 rows.
const LIST_MOST: usize = 32 * 1024 * 1024;
/// Most bytes of any other answer; a pane has 2000 lines at most (contract 4.1).
const ANSWER_MOST: usize = 8 * 1024 * 1024;

/// The real world.
pub struct Machine {
    /// Settings.
    pub settings: Settings,
    /// How it was started.
    pub mode: Mode,
    /// Clock of this run.
    pub clock: Clock,
    /// Waiting, and the signs of life given meanwhile.
    pub pulse: Pulse,
    folder: PathBuf,
    /// From where agent-deck's files are found.
    pub roots: Roots,
    logs: Logs,
    /// Where agent-deck is.
    pub program: Program,
    profiles: Profiles,
    lists: Lists,
    /// The command that changes something and is waited for.
    running: Option<(Running, SessionId)>,
    left_running: Vec<Running>,
    escalation: Escalation,
    triage: Triage,
    /// A list was answered in this run.
    listed: bool,
    /// Lines that are kept for whoever asked, instead of being logged.
    kept: Option<Vec<Line>>,
}

/// A line of the log: how loud, subject, sentence.
pub type Line = (Level, String, String);

impl Machine {
    /// The world for one run.
    pub fn new(settings: Settings, mode: Mode, clock: Clock, pulse: Pulse) -> Machine {
        let folder = settings.folder();
        let ladder = &settings.ladder;
        let triage = Triage::new(ladder.triage_cmd.clone(), ladder.triage_timeout);
        let roots = Roots {
            home: settings.home.clone(),
            xdg_data_home: settings.xdg_data_home.clone(),
            xdg_config_home: settings.xdg_config_home.clone(),
            agent_deck_root: settings.root_is_set.then(|| settings.root.clone()),
        };
        Machine {
            logs: Logs::new(&folder),
            program: Program::new(settings.bin.clone()),
            profiles: Profiles::new(settings.profiles.clone()),
            lists: Lists::default(),
            escalation: Escalation::new(&folder, &settings.chat_id),
            triage,
            settings,
            mode,
            clock,
            pulse,
            folder,
            roots,
            running: None,
            left_running: Vec::new(),
            listed: false,
            kept: None,
        }
    }

    /// Opens the logs anew.
    pub fn reopen_logs(&mut self) {
        self.logs.reopen();
    }

    /// Finds the folders to watch anew, since they may come, go and move.
    pub fn watch_folders(&mut self) {
        if let Ok(hooks) = self.roots.hooks() {
            self.pulse.wait.watch_folders(&hooks, &self.folder);
        }
    }

    /// Whether `escalate.sh` is under way.
    pub fn is_telling(&self) -> bool {
        self.escalation.is_open()
    }

    /// While a triage program runs: how long to wait before looking after it.
    pub fn is_triaging(&self) -> Option<Duration> {
        self.triage.next_look()
    }

    /// Whether agent-deck has listed a profile in this run.
    pub fn usable(&self) -> bool {
        self.listed
    }

    /// Whether every wanted profile is watched by another watchdog.
    pub fn all_taken(&self) -> bool {
        self.profiles.all_taken()
    }

    /// Version of agent-deck and where it is, for the first line of the log.
    pub fn agent_deck(&mut self) -> String {
        let program = match self.program.find() {
            Ok(program) => program,
            Err(why) => return why,
        };
        match self.version() {
            Ok(Some((a, b, c))) => format!("agent-deck {a}.{b}.{c} at {}", program.display()),
            Ok(None) | Err(_) => format!("agent-deck of unknown version at {}", program.display()),
        }
    }

    /// Version of agent-deck; nothing where its answer names none.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub fn version(&mut self) -> Result<Option<(u32, u32, u32)>, NoAnswer> {
        let output = self.ask(&argv::version(), READ_DEADLINE, ANSWER_MOST)?;
        Ok(answers::version(&output.raw()))
    }

    /// Says what began or ceased to go wrong with the logs, where it can be said.
    pub fn check_logs(&mut self) {
        if let Some(trouble) = self.logs.trouble() {
            eprintln_quietly(&format!("agent-deck-watchdog: {trouble}"));
        }
    }

    /// Shows that a turn is complete: the state file's modification time.
    pub fn turn_complete(&self) {
        if !self.mode.dry_run {
            let _ = folder::touch(&self.folder.join(memory::STATE));
        }
    }

    /// The agent's own configuration folder.
    fn config_dir(&self, agent: Option<&Process>) -> PathBuf {
        let set = agent.and_then(|agent| agent.config_dir.clone());
        set.unwrap_or_else(|| self.settings.home.join(".claude"))
    }

    /// The screen of a session, and how it is drawn. `None`: no terminal stands.
    ///
    /// # Errors
    /// As [`World::pane`].
    pub fn form(
        &mut self,
        profile: &Profile,
        id: &SessionId,
    ) -> Result<Option<(Screen, Form)>, NoAnswer> {
        let output = self.ask(&argv::pane(profile, id), READ_DEADLINE, ANSWER_MOST)?;
        answers::form(&output.raw(), id)
    }

    fn wall(&self) -> Time {
        Time(self.clock.reading().wall)
    }

    /// The profiles that agent-deck lists now.
    ///
    /// # Errors
    /// When there is no such list.
    pub fn list_profiles(&mut self) -> Result<Vec<ProfileRow>, NoAnswer> {
        let output = self.ask(&argv::profiles(), READ_DEADLINE, ANSWER_MOST)?;
        answers::profiles(&output.raw())
    }

    /// On standard error too, when somebody watches.
    fn say(&self, line: &str) {
        use std::io::IsTerminal;
        if self.mode.dry_run {
            println_quietly(line);
        } else if self.mode.verbose && std::io::stderr().is_terminal() {
            eprintln_quietly(line);
        }
    }
}

impl World for Machine {
    fn now(&mut self) -> Time {
        self.clock.now()
    }

    fn profiles(&mut self) -> Result<Vec<Profile>, NoAnswer> {
        let now = self.clock.now();
        if self.profiles.must_ask(&self.roots, now) {
            match self.list_profiles() {
                Ok(rows) => self.profiles.answered(rows),
                Err(why) if self.profiles.is_known() => {
                    self.detail("profiles", &format!("asked again later: {why}"));
                }
                Err(why) => return Err(why),
            }
        }
        let keep_locks = !self.mode.dry_run;
        let (watched, news) = self.profiles.watched(&self.roots, keep_locks);
        for (level, subject, sentence) in news {
            self.note(level, &subject, &sentence);
        }
        Ok(watched)
    }

    fn list(&mut self, profile: &Profile) -> Result<Vec<Session>, NoAnswer> {
        let output = self.ask(&argv::list(profile), LIST_DEADLINE, LIST_MOST)?;
        let listed = self.lists.read(&output.raw(), profile)?;
        if listed.unreadable > 0 {
            let sentence = format!(
                "{} rows without a usable id are left out",
                listed.unreadable
            );
            self.detail(&format!("profile {profile}"), &sentence);
        }
        self.listed = true;
        let mut rows = listed.sessions;
        for row in &mut rows {
            let created = row.created.or_else(|| row.id.created());
            row.created = created.map(|at| self.clock.from_wall(at));
        }
        Ok(rows)
    }

    fn show(&mut self, profile: &Profile, id: &SessionId) -> Result<Shown, NoAnswer> {
        let output = self.ask(&argv::show(profile, id), READ_DEADLINE, ANSWER_MOST)?;
        let mut shown = answers::show(&output.raw(), id)?;
        if let Some(failure) = &mut shown.spawn_failure {
            failure.at = self.clock.from_wall(failure.at);
        }
        Ok(shown)
    }

    fn pane(&mut self, profile: &Profile, id: &SessionId) -> Result<Pane, NoAnswer> {
        let output = self.ask(&argv::pane(profile, id), READ_DEADLINE, ANSWER_MOST)?;
        answers::pane(&output.raw(), id)
    }

    fn children(
        &mut self,
        profile: &Profile,
        parent: &SessionId,
    ) -> Result<Vec<Completion>, NoAnswer> {
        let output = self.ask(&argv::children(profile, parent), READ_DEADLINE, ANSWER_MOST)?;
        let mut said = answers::children(&output.raw(), parent)?;
        for one in &mut said {
            one.at = self.clock.from_wall(one.at);
        }
        Ok(said)
    }

    fn processes(&mut self, scope: Scope) -> Sight {
        let mut sight = processes::look(scope, self.clock.now(), self.clock.reading().boot);
        if let (Scope::All, Sight::Seen(table), Ok(program)) =
            (scope, &mut sight, self.program.find())
        {
            processes::mark_known_as(table, &program);
        }
        sight
    }

    fn traces(&mut self, profile: &Profile, id: &SessionId) -> Traces {
        let (hooks, locks) = match (self.roots.hooks(), self.roots.locks()) {
            (Ok(hooks), Ok(locks)) => (hooks, locks),
            (Err(e), _) | (_, Err(e)) => {
                return Traces {
                    unreadable: Some(e.to_string()),
                    ..Traces::default()
                };
            }
        };
        let mut traces = hooks::traces(&hooks, &locks, id, self.wall());
        if let Some(hook) = &mut traces.hook {
            hook.at = self.clock.from_wall(hook.at);
        }
        traces.database_busy = self
            .roots
            .profile(profile)
            .is_ok_and(|p| database::is_busy(&p));
        traces.spawned = traces.spawned.map(|at| self.clock.from_wall(at));
        traces
    }

    fn pollers(&mut self) -> Result<Pollers, String> {
        self.look_for_pollers()
    }

    fn telegram(&mut self, row: &Session, agent: Option<&Process>) -> Telegram {
        self.telegram_of(row, agent)
    }

    fn poller_advice(&mut self, row: &Session, agent: Option<&Process>) -> String {
        self.advice(row, agent)
    }

    fn agent_says(&mut self, agent: &Process) -> Option<AgentSays> {
        agent_file::agent_says(&self.config_dir(Some(agent)), agent.pid)
    }

    fn flags(&mut self) -> Flags {
        flags::read(&self.folder, &self.clock)
    }

    fn take_clear(&mut self, id: &SessionId) -> Result<(), String> {
        let flag = format!("{}/{id}", flags::CLEAR);
        flags::take(&self.folder, &flag)
            .map(|_| ())
            .map_err(|e| e.to_string())
    }

    fn begin_restart(&mut self, permit: Permit) -> Result<ProcessMark, String> {
        let args = argv::restart(permit.profile(), permit.id());
        self.begin(&args, RESTART_DEADLINE, permit.id())
    }

    fn finish_restart(&mut self) -> Ran<Restarted> {
        match self.finish() {
            Some((end, id)) => Ran::Ended(restarted(&end, &id)),
            None => Ran::StillRunning,
        }
    }

    fn begin_send(&mut self, permit: NudgePermit) -> Result<ProcessMark, String> {
        let args = argv::send(permit.profile(), permit.id());
        self.begin(&args, SEND_DEADLINE, permit.id())
    }

    fn begin_notice(&mut self, permit: NoticePermit, line: &str) -> Result<ProcessMark, String> {
        let args = argv::notice(permit.profile(), permit.id(), line);
        self.begin(&args, SEND_DEADLINE, permit.id())
    }

    fn finish_send(&mut self) -> Ran<Delivery> {
        match self.finish() {
            Some((end, id)) => Ran::Ended(delivered(&end, &id)),
            None => Ran::StillRunning,
        }
    }

    fn begin_stop(&mut self, permit: StopPermit) -> Result<ProcessMark, String> {
        let args = argv::stop(permit.profile(), permit.id());
        self.begin(&args, STOP_DEADLINE, permit.id())
    }

    fn finish_stop(&mut self) -> Ran<Stopped> {
        match self.finish() {
            Some((end, id)) => Ran::Ended(stopped(&end, &id)),
            None => Ran::StillRunning,
        }
    }

    fn begin_triage(&mut self, case: &Case) -> Result<(), String> {
        self.ask_about(case)
    }

    fn triaged(&mut self) -> Option<Heard> {
        self.triage.heard()
    }

    fn still_runs(&mut self, mark: ProcessMark) -> bool {
        // Our own ones have to be reaped to be gone.
        self.left_running
            .retain_mut(|running| running.poll_end().is_none());
        exec::still_runs(mark)
    }

    fn save(&mut self, state: &State, durable: bool) -> Result<(), String> {
        let text = state.encode(self.clock.now(), &self.clock.reading());
        folder::write_atomic(&self.folder.join(memory::STATE), &text, durable)
            .map_err(|e| e.to_string())
    }

    fn note(&mut self, level: Level, subject: &str, sentence: &str) {
        if let Some(kept) = &mut self.kept {
            kept.push((level, subject.to_owned(), sentence.to_owned()));
            return;
        }
        let at = self.wall();
        if !self.mode.dry_run {
            self.logs.note(at, level, subject, sentence);
        }
        self.say(&format!(
            "{} {}: {}",
            level.word(),
            escape(subject),
            escape(sentence)
        ));
    }

    fn detail(&mut self, subject: &str, sentence: &str) {
        if !self.mode.verbose {
            return;
        }
        let at = self.wall();
        if !self.mode.dry_run {
            self.logs.detail(at, subject, sentence);
        }
        self.say(&format!("detail {}: {}", escape(subject), escape(sentence)));
    }

    fn record(&mut self, record: Record) {
        if self.mode.dry_run {
            return;
        }
        let at = self.wall();
        match record {
            Record::Restart(line) => self.logs.restart(at, line),
            Record::Escalation(line) => self.logs.escalation(at, line),
        }
    }

    fn channel(&mut self) -> Channel {
        self.escalation.channel()
    }

    fn tell(&mut self, level: Level, message: &str) {
        self.escalation.start(level, message);
    }

    fn told(&mut self) -> Option<Sent> {
        self.escalation.outcome()
    }

    fn notices(&mut self, pids: &[u32]) -> bool {
        self.pulse.wait.notices(pids)
    }

    fn end_waits(&mut self) -> bool {
        self.pulse.wait.end_waits()
    }

    fn leaving(&mut self) -> bool {
        self.pulse.wait.terminating()
    }
}

/// Prints a line; a reader that left is no reason to end.
pub fn println_quietly(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Prints a line on standard error; nobody has to read it.
pub fn eprintln_quietly(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{line}");
}
