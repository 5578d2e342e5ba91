//! Telegram bots: who owns one, which processes poll for it, and what happens
//! to them.
//!
//! This file does not know the watchdog.

use std::path::PathBuf;

use agent_deck_watchdog::model::{
    Declared, Poller, Pollers, Process, Session, SessionId, Telegram,
};

use crate::deck::{Row, Terminal};
use crate::sim::Sim;

/// `ps` takes so long, and so long at most.
pub const PS_MS: u64 = 40;
pub const PS_DEADLINE: u64 = 10_000;

/// What the configuration, the living agent and the bot's folder say.
#[derive(Clone, Debug)]
pub struct Bot {
    /// Its channels have the plugin's entry.
    pub channel: bool,
    pub declared: Declared,
    /// What its living agent was started with.
    pub environment: Option<PathBuf>,
    /// Number of the token in its folder.
    pub token: Option<u8>,
    /// A new agent starts its poller after so many milliseconds; `None`: the
    /// plugin is broken.
    pub starts: Option<u64>,
    /// Its pollers outlive their agent.
    pub stubborn: bool,
    /// True time of the last change of what files say.
    pub changed: u64,
}

/// The folder of that name.
pub fn folder(name: &str) -> PathBuf {
    PathBuf::from(format!("/home/u/tg/{name}"))
}

/// Where the plugin keeps its state when nothing is set.
pub fn default_folder() -> PathBuf {
    PathBuf::from("/home/u/.claude/channels/telegram")
}

impl Bot {
    /// A channel, and this folder, said everywhere alike.
    pub fn at(name: &str) -> Bot {
        Bot {
            channel: true,
            declared: Declared::Folder(folder(name)),
            environment: Some(folder(name)),
            token: None,
            starts: Some(2000),
            stubborn: false,
            changed: 0,
        }
    }

    /// The folder that its poller should have, if that is certain. Whether its
    /// agent's environment is seen.
    pub fn folder(&self, agent_seen: bool) -> Option<PathBuf> {
        match (&self.declared, &self.environment) {
            (Declared::Unknown(_), _) => None,
            (Declared::Folder(says), set) if agent_seen && set.as_ref() != Some(says) => None,
            (Declared::Folder(says), _) => Some(says.clone()),
            (Declared::Nothing, Some(set)) if agent_seen => Some(set.clone()),
            (Declared::Nothing, _) => Some(default_folder()),
        }
    }

    /// Whether a session of this title owns a bot through it.
    pub fn is_owned(&self, title: &str, agent_seen: bool) -> bool {
        let declares = if agent_seen {
            self.environment.is_some()
        } else {
            matches!(self.declared, Declared::Folder(_))
        };
        self.channel || title.starts_with("conductor-") && declares
    }
}

/// A process that polls.
#[derive(Clone, Debug)]
pub struct PollerProcess {
    pub pid: u32,
    pub of: SessionId,
    /// Its living agent; `None`: that is gone.
    pub agent: Option<u32>,
    pub folder: Option<PathBuf>,
    pub connected: Option<bool>,
}

impl PollerProcess {
    pub fn polls(&self, folder: &PathBuf) -> bool {
        self.folder.clone().unwrap_or_else(default_folder) == *folder
    }
}

impl Sim {
    /// A new agent starts its poller, if it does. What it is started with is
    /// what the configuration says by now.
    pub fn bot_starts(&mut self, id: &SessionId) {
        let row = self.row(id);
        let (Some(agent), Some(bot)) = (row.agent, row.bot.as_mut()) else {
            return;
        };
        match &bot.declared {
            Declared::Folder(folder) => bot.environment = Some(folder.clone()),
            Declared::Nothing => bot.environment = None,
            Declared::Unknown(_) => {}
        }
        let Some(ms) = bot
            .starts
            .filter(|_| bot.channel || bot.environment.is_some())
        else {
            return;
        };
        let id = id.clone();
        self.after(ms, move |sim| {
            let same = sim.row(&id).agent.is_some_and(|now| now.pid == agent.pid);
            if same && matches!(sim.row(&id).terminal, Terminal::Stands(_)) {
                sim.poller_starts(&id);
            }
        });
    }

    /// A poller of its living agent starts.
    pub fn poller_starts(&mut self, id: &SessionId) -> u32 {
        let pid = self.pid();
        let row = self.row(id);
        let agent = row.agent.map(|agent| agent.pid);
        let folder = row.bot.as_ref().and_then(|bot| bot.environment.clone());
        self.tell_history(format!("poller {pid} of {id} starts"));
        self.pollers.push(PollerProcess {
            pid,
            of: id.clone(),
            agent,
            folder,
            connected: Some(true),
        });
        pid
    }

    /// All pollers of a session end.
    pub fn pollers_end(&mut self, id: &SessionId) {
        let before = self.pollers.len();
        self.pollers.retain(|poller| poller.of != *id);
        if self.pollers.len() < before {
            self.tell_history(format!("the pollers of {id} end"));
        }
    }

    /// An agent is over: its pollers end with it, or become orphans.
    pub fn agent_over(&mut self, id: &SessionId, agent: u32) {
        let stubborn = self.row(id).bot.as_ref().is_some_and(|bot| bot.stubborn);
        if !stubborn {
            self.pollers.retain(|poller| poller.agent != Some(agent));
        }
        for poller in self.pollers.iter_mut().filter(|p| p.agent == Some(agent)) {
            poller.agent = None;
        }
    }

    /// The pollers that fit a row, as they are.
    pub fn fitting(&self, row: &Row, agent_seen: bool) -> Vec<u32> {
        let Some(folder) = row.bot.as_ref().and_then(|bot| bot.folder(agent_seen)) else {
            return Vec::new();
        };
        let agent = row.agent.map(|agent| agent.pid);
        let fits = |p: &&PollerProcess| {
            p.polls(&folder) && (!agent_seen || p.agent.is_some() && p.agent == agent)
        };
        self.pollers.iter().filter(fits).map(|p| p.pid).collect()
    }

    /// What `ps` and the environments show.
    pub fn seen_pollers(&self) -> Pollers {
        let network = self.faults.offline <= self.truth();
        let all = self.pollers.iter().map(|poller| Poller {
            pid: poller.pid,
            ancestors: match poller.agent {
                Some(agent) => vec![agent, self.server.unwrap_or(1), 1],
                None => vec![1],
            },
            folder: poller.folder.clone(),
            connected: poller.connected.map(|connected| connected && network),
        });
        let all = all.collect();
        Pollers { all, network }
    }

    /// What the files and the agent's environment say.
    pub fn telegram_of(&self, row: &Session, agent: Option<&Process>) -> Telegram {
        let bot = self
            .rows
            .iter()
            .find(|r| r.id == row.id)
            .and_then(|row| row.bot.as_ref());
        let seen = agent.filter(|agent| !agent.opaque);
        Telegram {
            declared: bot.map_or(Declared::Nothing, |bot| bot.declared.clone()),
            environment: seen.map(|agent| agent.telegram.clone()),
            default: default_folder(),
            token: bot.and_then(|bot| bot.token).map(|token| [token; 32]),
        }
    }
}

/// The pollers as processes of the machine.
pub fn processes(sim: &Sim) -> Vec<Process> {
    let process = |poller: &PollerProcess| Process {
        pid: poller.pid,
        parent: poller.agent.unwrap_or(1),
        own: true,
        name: "bun".to_owned(),
        args: ["bun", "run", "telegram"].map(str::to_owned).to_vec(),
        instance: Some(poller.of.to_string()),
        inside_agent: true,
        telegram: poller.folder.clone(),
        ..Process::default()
    };
    sim.pollers.iter().map(process).collect()
}
