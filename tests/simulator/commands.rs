//! What agent-deck's commands do to the machine, step by step, by whomever they
//! are run (contract 5).
//!
//! This file does not know the watchdog.

use agent_deck_watchdog::model::{AgentSays, Restarted, SessionId, Silence, Status, Substate};

use crate::deck::{Agent, Answer, Lie, OnStart, Stored, Terminal};
use crate::front::Front;
use crate::sim::{Command, Hint, Sim};

impl Sim {
    /// agent-deck starts a new agent, whatever there was before.
    pub fn spawn(&mut self, id: &SessionId) {
        let (truth, wall) = (self.truth(), self.clocks.wall());
        if self.server.is_none() {
            self.server = Some(self.pid());
        }
        let agent = Agent {
            pid: self.pid(),
            server: self.server.unwrap_or(1),
            started: truth,
        };
        let row = self.row(id);
        let old: Vec<Agent> = row
            .agent
            .take()
            .into_iter()
            .chain(row.lingering.drain(..))
            .collect();
        row.spawned = Some(wall);
        row.changed = truth;
        row.agent_changed = truth;
        row.lie = None;
        row.stored = Stored::Alive;
        row.auth_hold = false;
        row.substate = None;
        let starts = row.on_start;
        if starts == OnStart::Nothing && !old.is_empty() {
            row.terminal = Terminal::Gone;
        }
        if starts != OnStart::Nothing {
            row.terminal = Terminal::Stands(0);
            row.agent = Some(agent);
            row.tmux_name = format!("agentdeck_{}", agent.pid);
            row.agent_session = format!("agent-of-{id}");
            let content = row.front.content + 1;
            row.front = Front {
                content,
                since: truth,
                ..Front::free()
            };
            row.word = Status::Waiting;
            row.says = Some(AgentSays::Idle);
            row.suspended = false;
        }
        self.tell_history(format!(
            "agent {} of {id} is started: {starts:?}",
            agent.pid
        ));
        for agent in old {
            self.agent_over(id, agent.pid);
            self.process_ended(agent.pid);
        }
        if starts != OnStart::Nothing {
            self.bot_starts(id);
        }
        self.started(id, agent.pid, starts);
    }

    /// What becomes of a new agent.
    fn started(&mut self, id: &SessionId, pid: u32, starts: OnStart) {
        let same = move |sim: &mut Sim, id: &SessionId| {
            sim.row(id).agent.is_some_and(|agent| agent.pid == pid)
        };
        let of = id.clone();
        match starts {
            OnStart::Lives => self.after(800, move |sim| {
                if same(sim, &of) {
                    sim.hook(&of, "SessionStart");
                }
            }),
            OnStart::Limited => {
                self.row(id).substate = Some(Substate::UsageLimit);
            }
            OnStart::Asks => self.stands(id, Some(Silence::Dialog)),
            OnStart::Ends(ms) => self.after(ms, move |sim| {
                if same(sim, &of) {
                    sim.end_agent(&of);
                }
            }),
            OnStart::Starts => self.row(id).lie = Some(Lie::Starting),
            OnStart::Nothing => {}
        }
    }

    /// The agent's hook handler writes a record.
    pub fn hook(&mut self, id: &SessionId, event: &str) {
        // Whole seconds are written (contract 7.3).
        let wall = self.clocks.wall() / 1000 * 1000;
        self.row(id).hook = Some((event.to_owned(), wall));
        if self.folder_watch {
            self.hints.push(Hint::Hook(id.clone()));
        }
    }

    /// A command of agent-deck begins, by whomever.
    pub fn begin(&mut self, verb: &'static str, id: &SessionId, ours: bool) -> u32 {
        let pid = self.pid();
        let profile = self.row(id).profile.clone();
        let began = self.truth();
        let who = if ours { "the watchdog" } else { "somebody" };
        self.tell_history(format!("{who}: agent-deck {verb} {id} (process {pid})"));
        self.commands.push(Command {
            pid,
            verb,
            id: id.clone(),
            profile,
            began,
            ours,
        });
        pid
    }

    /// It ends.
    pub fn end(&mut self, pid: u32) {
        self.commands.retain(|command| command.pid != pid);
        for row in &mut self.rows {
            if row.spawn_lock == Some(pid) {
                row.spawn_lock = None;
            }
        }
    }

    /// `session restart`, by whomever: what it does, and how it ends.
    pub fn restart(&mut self, id: &SessionId, ours: bool) -> u32 {
        let pid = self.begin("restart", id, ours);
        let row = self.row(id);
        row.spawn_lock = Some(pid);
        let answer = if ours {
            row.answer.clone()
        } else {
            Answer::Usual
        };
        let (spawns, ends, text) = match answer {
            Answer::Usual => (Some(250), 350, Restarted::Accepted(String::new())),
            Answer::Says(text) => (None, 150, text),
            Answer::DoneBut(text) => (Some(250), 900, text),
            Answer::Takes(ms) => (Some(ms), ms + 100, Restarted::Accepted(String::new())),
        };
        if let Some(ms) = spawns {
            let id = id.clone();
            self.after(ms, move |sim| sim.spawn(&id));
        }
        self.after(ends, move |sim| {
            sim.answers.insert(pid, text);
            sim.end(pid);
        });
        pid
    }
}
