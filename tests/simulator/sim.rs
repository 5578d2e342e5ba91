//! The simulated machine: time, sessions, processes, commands, files, and what
//! the user and agent-deck do to them.
//!
//! This file does not know the watchdog's rules; `checks.rs` knows the promises.

use std::collections::{BTreeMap, BTreeSet};

use agent_deck_watchdog::json::Value;
use agent_deck_watchdog::model::{Delivery, Level, Profile, Restarted, SessionId};
use agent_deck_watchdog::world::{Channel, Record, Sent};

use crate::bots::PollerProcess;
use crate::checks::Checks;
use crate::clock::Clocks;
use crate::deck::{Agent, Row, Terminal};
use crate::disk::Written;
use crate::faults::Faults;
use crate::sending::Typed;
use crate::triages::Triage;

/// Number of the tmux server that is not ours.
pub const OTHER_SERVER: u32 = 7;

/// Something that will happen.
type Deed = Box<dyn FnOnce(&mut Sim)>;

/// What wakes the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The pane process of a session ended.
    Ended(SessionId),
    /// A hook record came.
    Hook(SessionId),
    /// A tmux server ended.
    ServerEnded,
    /// A flag file came or went.
    Flags,
}

/// One line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// True time.
    pub at: u64,
    /// `list`, `show`, `pane`, `restart`, `send`, `ps`, `config` or `triage`.
    pub verb: &'static str,
    /// Of what; the profile for a list.
    pub of: String,
}

/// A command of agent-deck that changes something and runs.
#[derive(Clone, Debug)]
pub struct Command {
    pub pid: u32,
    pub verb: &'static str,
    pub id: SessionId,
    pub profile: Profile,
    /// True time.
    pub began: u64,
    pub ours: bool,
}

/// The user's flag files; moments in true time.
#[derive(Clone, Debug, Default)]
pub struct FlagFiles {
    pub autorestart: Vec<SessionId>,
    pub autostop: Vec<SessionId>,
    pub hold: Vec<(SessionId, Option<u64>)>,
    pub pause: Option<(u64, Option<u64>)>,
    pub clear: Vec<SessionId>,
    /// When one of them last changed.
    pub changed: u64,
}

/// The machine.
pub struct Sim {
    pub clocks: Clocks,
    pub rows: Vec<Row>,
    pub profiles: Vec<Profile>,
    pub server: Option<u32>,
    /// An agent-deck terminal interface.
    pub ui: Option<u32>,
    pub commands: Vec<Command>,
    /// Answers of our own restarts that have ended.
    pub answers: BTreeMap<u32, Restarted>,
    /// The same of our own messages.
    pub deliveries: BTreeMap<u32, Delivery>,
    /// Our own command that is waited for.
    pub waited_for: Option<u32>,
    /// What our messages did.
    pub typed: Vec<Typed>,
    pub pollers: Vec<PollerProcess>,
    pub files: FlagFiles,
    pub faults: Faults,
    pub checks: Checks,
    /// Processes whose end is a hint.
    pub watched: Vec<(Option<SessionId>, u32)>,
    /// Those that were hinted at already.
    over: BTreeSet<u32>,
    pub hints: Vec<Hint>,
    /// The state file, and what of it would survive a loss of power.
    pub disk: Option<Written>,
    pub durable_disk: Option<Written>,
    pub saves: u64,
    /// How far the wall clock was off at the last save.
    pub saved_step: i64,
    /// Wall time at which the state file was last written or touched.
    pub touched: Option<u64>,
    /// The disk is never full.
    pub disk_is_good: bool,
    /// The run ends at this save: before it is written, or after.
    pub crash_at: Option<(u64, bool)>,
    pub channel: Channel,
    /// What `escalate.sh` will say.
    pub sends: Sent,
    pub sent: Option<Sent>,
    pub telling: bool,
    /// The triage program.
    pub triage: Triage,
    pub dry_run: bool,
    /// Deaths are hints.
    pub process_watch: bool,
    /// Hook records and flag files are.
    pub folder_watch: bool,
    /// Hints of deaths get lost, and nobody knows.
    pub mute: bool,
    /// How often all processes were searched through.
    pub searches: usize,
    /// A signal asked it to leave.
    pub leaving: bool,
    /// User, HOME and tmux folder of the watchdog.
    pub eyes: String,
    /// What every program that was called left.
    pub ledger: Vec<Call>,
    pub history: Vec<String>,
    /// Lines of the three logs.
    pub notes: Vec<(Level, String)>,
    pub restart_log: Vec<serde_json::Map<String, serde_json::Value>>,
    pub escalation_log: Vec<serde_json::Map<String, serde_json::Value>>,
    /// Messages that went out, with their true time.
    pub messages: Vec<(u64, Level, String)>,
    schedule: BTreeMap<(u64, u64), Deed>,
    scheduled: u64,
    pids: u32,
}

impl Sim {
    /// Keeps a line of a log.
    pub fn keep(&mut self, record: Record) {
        let (line, log) = match record {
            Record::Restart(line) => (line, &mut self.restart_log),
            Record::Escalation(line) => (line, &mut self.escalation_log),
        };
        let line = Value::Object(line).to_string();
        log.push(serde_json::from_str(&line).expect("an object"));
    }

    /// A machine with nothing on it but a tmux server.
    pub fn new() -> Sim {
        Sim {
            clocks: Clocks::new(),
            rows: Vec::new(),
            profiles: Vec::new(),
            server: Some(100),
            ui: None,
            commands: Vec::new(),
            answers: BTreeMap::new(),
            deliveries: BTreeMap::new(),
            waited_for: None,
            typed: Vec::new(),
            pollers: Vec::new(),
            files: FlagFiles::default(),
            faults: Faults::default(),
            checks: Checks::default(),
            watched: Vec::new(),
            over: BTreeSet::new(),
            hints: Vec::new(),
            disk: None,
            durable_disk: None,
            saves: 0,
            saved_step: 0,
            touched: None,
            disk_is_good: false,
            crash_at: None,
            channel: Channel::Script,
            sends: Sent::Delivered,
            sent: None,
            telling: false,
            triage: Triage::default(),
            dry_run: false,
            process_watch: true,
            folder_watch: true,
            mute: false,
            searches: 0,
            leaving: false,
            eyes: "here".to_owned(),
            ledger: Vec::new(),
            history: Vec::new(),
            notes: Vec::new(),
            restart_log: Vec::new(),
            escalation_log: Vec::new(),
            messages: Vec::new(),
            schedule: BTreeMap::new(),
            scheduled: 0,
            pids: 1000,
        }
    }

    /// A session that lives, on a machine that knows its profile.
    pub fn add(&mut self, id: &SessionId, profile: &str, title: &str) -> &mut Row {
        let profile = Profile::parse(profile).unwrap();
        if !self.profiles.contains(&profile) {
            self.profiles.push(profile.clone());
        }
        let server = match self.server {
            Some(server) => server,
            None => self.pid(),
        };
        self.server = Some(server);
        let started = self.clocks.truth - 86_400_000;
        let agent = Agent {
            pid: self.pid(),
            server,
            started,
        };
        let row = Row::living(id.clone(), profile, title, agent, self.clocks.wall());
        self.rows.push(row);
        self.rows.last_mut().unwrap()
    }

    /// The session of that id.
    pub fn row(&mut self, id: &SessionId) -> &mut Row {
        self.rows.iter_mut().find(|row| row.id == *id).unwrap()
    }

    pub fn truth(&self) -> u64 {
        self.clocks.truth
    }

    /// Writes a line of history.
    pub fn tell_history(&mut self, text: String) {
        let ms = self.truth() - crate::clock::START;
        self.history
            .push(format!("{:>9}.{:03} {text}", ms / 1000, ms % 1000));
    }

    /// Something that happens by itself after so many milliseconds.
    pub fn after(&mut self, ms: u64, deed: impl FnOnce(&mut Sim) + 'static) {
        self.scheduled += 1;
        let key = (self.truth() + ms, self.scheduled);
        self.schedule.insert(key, Box::new(deed));
    }

    /// Lets time pass.
    pub fn advance(&mut self, ms: u64) {
        let end = self.truth() + ms;
        while self.next_deed(end) {}
        self.clocks.truth = end;
    }

    /// Lets time pass until something wakes the daemon.
    pub fn rest(&mut self, ms: u64) {
        let end = self.truth() + ms;
        let waits = self.telling;
        let asks = self.triage.is_open();
        while self.hints.is_empty()
            && !(waits && self.sent.is_some())
            && !(asks && self.triage.has_answered())
        {
            if !self.next_deed(end) {
                self.clocks.truth = end;
                return;
            }
        }
    }

    /// Watches the ends of these processes. One that has ended already is a
    /// hint at once, as with a real pidfd that could not be opened.
    pub fn follow(&mut self, wanted: Vec<(Option<SessionId>, u32)>) {
        let living = |pid: u32| {
            Some(pid) == self.server
                || pid == OTHER_SERVER
                || self.rows.iter().any(|row| {
                    row.agent
                        .iter()
                        .chain(&row.lingering)
                        .any(|agent| agent.pid == pid)
                })
        };
        let gone: Vec<u32> = wanted
            .iter()
            .map(|w| w.1)
            .filter(|pid| !living(*pid))
            .collect();
        self.over.retain(|pid| wanted.iter().any(|w| w.1 == *pid));
        self.watched = wanted;
        for pid in gone {
            self.process_ended(pid);
        }
    }

    /// Whether the end of that process will be a hint.
    pub fn is_followed(&self, pid: u32) -> bool {
        !self.over.contains(&pid) && self.watched.iter().any(|(_, of)| *of == pid)
    }

    /// Power off: commands and everything else end.
    pub fn end_of_all_processes(&mut self) {
        self.schedule.clear();
        self.commands.clear();
        self.answers.clear();
        self.deliveries.clear();
        self.pollers.clear();
        self.ui = None;
        self.telling = false;
        let truth = self.truth();
        for row in &mut self.rows {
            row.agent = None;
            row.lingering.clear();
            row.terminal = Terminal::Gone;
            row.lie = None;
            row.spawn_lock = None;
            row.leaving = None;
            row.changed = truth;
            row.agent_changed = truth;
        }
    }

    /// Lets the next thing happen, if one does by then.
    fn next_deed(&mut self, end: u64) -> bool {
        let Some(entry) = self.schedule.first_entry().filter(|e| e.key().0 <= end) else {
            return false;
        };
        let ((at, _), deed) = entry.remove_entry();
        self.clocks.truth = self.truth().max(at);
        deed(self);
        true
    }

    /// The machine sleeps: time passes and nothing happens.
    pub fn sleep(&mut self, ms: u64) {
        self.tell_history(format!("the machine sleeps for {} s", ms / 1000));
        self.checks.live.disturbed(self.clocks.truth + ms);
        self.clocks.truth += ms;
        let later = std::mem::take(&mut self.schedule);
        self.schedule = later
            .into_iter()
            .map(|((at, n), deed)| ((at + ms, n), deed))
            .collect();
    }

    /// The wall clock steps. What lies ahead of it says nothing until it has
    /// come up, and is news then.
    pub fn steps(&mut self, ms: i64) {
        self.clocks.step += ms;
        self.tell_history(format!("the wall clock steps by {} s", ms / 1000));
        let ahead = if ms < 0 { ms.unsigned_abs() } else { 0 };
        let until = self.clocks.truth + ahead;
        self.checks.live.disturbed(until);
        self.all_may_be_done();
    }

    /// Nobody can tell whether what they said was said before they began: they may be
    /// taken for done, and for new ones later.
    pub fn all_may_be_done(&mut self) {
        for row in &mut self.rows {
            if let Some(done) = row.done.as_mut() {
                done.fresh = true;
                self.checks.recount.unsure(&row.id);
            }
        }
    }

    /// A number for a new process.
    pub fn pid(&mut self) -> u32 {
        self.pids += 1;
        self.pids
    }

    /// A process ended.
    pub fn process_ended(&mut self, pid: u32) {
        let watched = self.watched.iter().filter(|(_, of)| *of == pid);
        let ended: Vec<Hint> = watched
            .map(|(id, _)| id.clone().map_or(Hint::ServerEnded, Hint::Ended))
            .collect();
        if !self.mute && self.over.insert(pid) {
            self.hints.extend(ended);
        }
    }

    /// The agent of a session ends by itself, or is killed.
    pub fn end_agent(&mut self, id: &SessionId) {
        let truth = self.truth();
        let row = self.row(id);
        let Some(agent) = row.agent.take() else {
            return;
        };
        row.agent_changed = truth;
        row.changed = truth;
        row.lie = None;
        row.terminal = if row.sandboxed {
            Terminal::Ended
        } else {
            Terminal::Gone
        };
        self.tell_history(format!("agent {} of {id} ends", agent.pid));
        self.agent_over(id, agent.pid);
        self.process_ended(agent.pid);
    }

    /// tmux kill-session: the terminal goes at once, the agent after a while.
    pub fn kill_terminal(&mut self, id: &SessionId, lingers: u64) {
        let truth = self.truth();
        let row = self.row(id);
        row.terminal = Terminal::Gone;
        row.changed = truth;
        row.lie = None;
        let Some(agent) = row.agent.take() else {
            return;
        };
        row.lingering.push(agent);
        self.tell_history(format!(
            "terminal of {id} goes, its agent lingers {lingers} ms"
        ));
        let id = id.clone();
        self.after(lingers, move |sim| sim.linger_ends(&id, agent.pid));
    }

    fn linger_ends(&mut self, id: &SessionId, pid: u32) {
        let truth = self.truth();
        let row = self.row(id);
        row.lingering.retain(|agent| agent.pid != pid);
        row.agent_changed = truth;
        self.agent_over(id, pid);
        self.process_ended(pid);
    }

    /// The tmux server ends, and everything in it.
    pub fn kill_server(&mut self, lingers: u64) {
        let Some(server) = self.server.take() else {
            return;
        };
        self.tell_history("the tmux server ends".to_owned());
        let ids: Vec<SessionId> = self
            .rows
            .iter()
            .filter(|row| row.agent.is_none_or(|a| a.server == server))
            .map(|row| row.id.clone())
            .collect();
        for id in ids {
            self.kill_terminal(&id, lingers);
        }
        self.process_ended(server);
    }
}
