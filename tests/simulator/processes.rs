//! The table of processes, as a pass over `/proc` would show it.
//!
//! This file does not know who looks.

use agent_deck_watchdog::model::{Process, Scope, Sight};

use crate::deck::{Agent, Row, Terminal};
use crate::sim::{Command, OTHER_SERVER, Sim};

impl Sim {
    /// All processes, as far as this scope shows them.
    pub fn sight(&mut self, scope: Scope) -> Sight {
        if self.faults.blind > self.truth() {
            return Sight::Blind("the processes cannot be read".to_owned());
        }
        let mut table = vec![tmux(OTHER_SERVER)];
        table.extend(self.server.map(tmux));
        for row in &self.rows {
            for agent in row.agent.iter().chain(&row.lingering) {
                table.push(self.agent(row, agent, scope));
            }
        }
        if scope == Scope::All {
            table.extend(crate::bots::processes(self));
            table.extend(self.commands.iter().map(command));
            table.extend(self.ui.map(|pid| deck_process(pid, &[])));
        }
        Sight::Seen(table)
    }

    fn agent(&self, row: &Row, agent: &Agent, scope: Scope) -> Process {
        let server = |pid| Some(pid) == self.server || pid == OTHER_SERVER;
        let name = if row.terminal == Terminal::Shell {
            "bash"
        } else {
            "claude"
        };
        let mut args = vec![name.to_owned()];
        if name == "claude" {
            args.extend(["--session-id".to_owned(), row.agent_session.clone()]);
        }
        Process {
            pid: agent.pid,
            parent: if server(agent.server) {
                agent.server
            } else {
                1
            },
            own: true,
            zombie: false,
            started: self.clocks.line_of_truth(agent.started),
            name: name.to_owned(),
            args: if scope == Scope::All {
                args
            } else {
                Vec::new()
            },
            instance: (scope == Scope::All || server(agent.server)).then(|| row.id.to_string()),
            suspended: row.suspended,
            telegram: row.bot.as_ref().and_then(|bot| bot.environment.clone()),
            ..Process::default()
        }
    }
}

fn tmux(pid: u32) -> Process {
    Process {
        pid,
        parent: 1,
        own: true,
        name: "tmux: server".to_owned(),
        ..Process::default()
    }
}

fn command(command: &Command) -> Process {
    let profile = command.profile.as_str();
    deck_process(
        command.pid,
        &[
            "-p",
            profile,
            "session",
            command.verb,
            command.id.as_str(),
            "--json",
        ],
    )
}

fn deck_process(pid: u32, words: &[&str]) -> Process {
    let args = std::iter::once("agent-deck")
        .chain(words.iter().copied())
        .map(str::to_owned);
    Process {
        pid,
        parent: 1,
        own: true,
        name: "agent-deck".to_owned(),
        args: args.collect(),
        ..Process::default()
    }
}
