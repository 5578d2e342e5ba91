//! What people and agents do to sessions, step by step as agent-deck does it.
//!
//! This file does not know the watchdog.

use agent_deck_watchdog::model::SessionId;

use crate::deck::{Lie, Stored, Terminal};
use crate::sim::Sim;

impl Sim {
    /// `session stop`, `archive` or `remove`: the terminal goes, then it is saved.
    pub fn user_ends(&mut self, id: &SessionId, verb: &'static str, saved: u64) {
        self.ends(id, verb, saved, false);
    }

    /// The same, by whomever.
    pub fn ends(&mut self, id: &SessionId, verb: &'static str, saved: u64, ours: bool) -> u32 {
        let pid = self.begin(verb, id, ours);
        self.row(id).leaving = Some(self.truth());
        let of = id.clone();
        self.after(saved / 2, move |sim| sim.kill_terminal(&of, 40));
        let of = id.clone();
        self.after(saved, move |sim| sim.saved(&of, verb, pid));
        pid
    }

    fn saved(&mut self, id: &SessionId, verb: &str, pid: u32) {
        let truth = self.truth();
        let row = self.row(id);
        row.leaving = None;
        row.changed = truth;
        row.stored = Stored::Stopped;
        row.archived |= verb == "archive";
        row.removed |= verb == "remove";
        self.checks.user_acts(id);
        self.tell_history(format!("{verb} of {id} is saved"));
        self.end(pid);
    }

    /// Stopped in the terminal interface: no command is to be seen.
    pub fn stopped_in_the_interface(&mut self, id: &SessionId, saved: u64) {
        // Of one that is dead already nothing is to be seen before it is saved.
        let truth = self.truth();
        let row = self.row(id);
        row.leaving = row.agent.map(|_| truth);
        self.tell_history(format!("{id} is stopped in the terminal interface"));
        self.kill_terminal(id, 0);
        let id = id.clone();
        self.after(saved, move |sim| sim.saved(&id, "stop", 0));
    }

    /// `session start`, of whatever there is.
    pub fn user_starts(&mut self, id: &SessionId) {
        let row = self.row(id);
        if row.terminal != Terminal::Gone || row.removed {
            return;
        }
        row.archived = false;
        let pid = self.begin("start", id, false);
        self.row(id).spawn_lock = Some(pid);
        let of = id.clone();
        self.after(200, move |sim| sim.spawn(&of));
        self.after(3200, move |sim| sim.end(pid));
    }

    /// `/clear`: a SessionEnd record, and a SessionStart 50 ms later.
    pub fn clears(&mut self, id: &SessionId) {
        let truth = self.truth();
        let row = self.row(id);
        if row.agent.is_none() || row.lie.is_some() || row.terminal == Terminal::Shell {
            return;
        }
        row.lie = Some(Lie::Leftover);
        row.changed = truth;
        self.tell_history(format!("/clear in {id}"));
        self.hook(id, "SessionEnd");
        let of = id.clone();
        self.after(50, move |sim| {
            if sim.row(&of).agent.is_some() {
                sim.hook(&of, "SessionStart");
                sim.speaks_true(&of, Lie::Leftover);
            }
        });
    }

    /// That lie is over.
    pub fn speaks_true(&mut self, id: &SessionId, lie: Lie) {
        let truth = self.truth();
        let server = self.server;
        let row = self.row(id);
        if row.lie != Some(lie) {
            return;
        }
        row.lie = None;
        row.changed = truth;
        match (lie, server, row.agent.as_mut()) {
            (Lie::Elsewhere, Some(server), Some(agent)) => agent.server = server,
            // There is no tmux server of ours that it could be in.
            (Lie::Elsewhere, None, Some(_)) => self.end_agent(id),
            _ => {}
        }
    }
}
