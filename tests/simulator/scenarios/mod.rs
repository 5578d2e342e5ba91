//! The acceptance scenarios that are best shown with a movable clock, each a
//! test under its name.
//!
//! This file does not know the scenarios; it sets the stage for them.

mod alive;
mod all_three;
mod dead;
mod deaths;
mod fast_paths;
mod guard;
mod limits;
mod manual;
mod memory;
mod nudges;
mod outcomes;
mod patrol;
mod poller;
mod poller_results;
mod prompts;
mod telling;
mod triage;

use agent_deck_watchdog::model::{Restarted, SessionId, Silence};

use crate::bots::Bot;
use crate::clock::START;
use crate::deck::{Answer, Row};
use crate::run::{Mode, Play};
use crate::sim::Sim;

pub const HOUR: u64 = 3600;
pub const DAY: u64 = 24 * HOUR;

/// That id.
pub fn id_of(text: &str) -> SessionId {
    SessionId::parse(text).unwrap()
}

/// A stage: polls each 5 s, 60 s between restarts, a chat to tell.
pub struct Stage {
    pub play: Play,
}

impl Stage {
    /// Watched by a daemon.
    pub fn new() -> Stage {
        Stage {
            play: Play::new(Sim::new(), Mode::Daemon),
        }
    }

    /// Watched by cron each minute.
    pub fn cron() -> Stage {
        let mut play = Play::new(Sim::new(), Mode::Cron);
        play.poll = 60_000;
        Stage { play }
    }

    pub fn sim(&mut self) -> &mut Sim {
        &mut self.play.sim
    }

    /// A session that lives and has for days, older than an hour.
    pub fn session(&mut self, title: &str) -> SessionId {
        let number = self.play.sim.rows.len();
        let id = SessionId::parse(&format!("1a2b3c{number:02x}-17559000{number:02}")).unwrap();
        self.play.sim.add(&id, "default", title);
        id
    }

    /// The same, and it is dead.
    pub fn dead(&mut self, title: &str) -> SessionId {
        let id = self.session(title);
        self.play.sim.end_agent(&id);
        id
    }

    /// A child of some parent that waits at a free composer, as of now.
    pub fn child(&mut self, title: &str) -> SessionId {
        let id = self.session(title);
        self.row(&id).parent = "0a0a0a0a-1755900000".to_owned();
        id
    }

    /// The same, and something else stands on its screen.
    pub fn child_at(&mut self, title: &str, stand: Silence) -> SessionId {
        let id = self.child(title);
        self.row(&id).front.stand = Some(stand);
        id
    }

    /// An owner of a bot with a folder of its own, and its poller.
    pub fn owner(&mut self, title: &str, folder: &str) -> SessionId {
        let id = self.session(title);
        self.row(&id).bot = Some(Bot::at(folder));
        self.sim().poller_starts(&id);
        id
    }

    pub fn bot(&mut self, id: &SessionId) -> &mut Bot {
        self.row(id).bot.as_mut().unwrap()
    }

    /// The same, its poller gone since now, and the plugin broken.
    pub fn deaf(&mut self, title: &str, folder: &str) -> SessionId {
        let id = self.owner(title, folder);
        self.bot(&id).starts = None;
        self.sim().pollers_end(&id);
        id
    }

    pub fn row(&mut self, id: &SessionId) -> &mut Row {
        self.play.sim.row(id)
    }

    /// Its next restarts answer this and do nothing.
    pub fn answers(&mut self, id: &SessionId, answer: Restarted) {
        self.row(id).answer = Answer::Says(answer);
    }

    pub fn fails(&mut self, id: &SessionId, text: &str) {
        self.answers(id, Restarted::Failed(text.to_owned()));
    }

    /// Lets it watch for so many seconds.
    pub fn seconds(&mut self, seconds: u64) -> &mut Stage {
        self.play.seconds(seconds);
        self
    }

    /// Every restart of the ledger: whole seconds since the start, and the id.
    pub fn restarts(&self) -> Vec<(u64, String)> {
        self.calls("restart")
    }

    /// Every call of that kind.
    pub fn calls(&self, verb: &str) -> Vec<(u64, String)> {
        let ledger = self.play.sim.ledger.iter();
        ledger
            .filter(|call| call.verb == verb)
            .map(|call| ((call.at - START) / 1000, call.of.clone()))
            .collect()
    }

    /// Seconds since the start at which this one was written to.
    pub fn sends(&self, id: &SessionId) -> Vec<u64> {
        let all = self.calls("send").into_iter();
        all.filter(|(_, of)| of == id.as_str())
            .map(|(at, _)| at)
            .collect()
    }

    /// What is remembered of a child.
    pub fn remembered_child(&self, id: &SessionId) -> serde_json::Value {
        let on_disk = self.play.on_disk();
        let children = on_disk["children"].as_array().cloned().unwrap_or_default();
        let mut children = children.into_iter();
        children
            .find(|child| child["id"] == id.as_str())
            .unwrap_or_default()
    }

    /// Lines of `restart.log` that have this event.
    pub fn restart_lines(&self, event: &str) -> Vec<serde_json::Map<String, serde_json::Value>> {
        let log = self.play.sim.restart_log.iter();
        log.filter(|line| line["event"] == event).cloned().collect()
    }

    /// Messages at about these seconds: not before, and at most a poll later.
    pub fn asked_at(&self, id: &SessionId, seconds: &[u64]) {
        let times = self.sends(id);
        let fits = |(at, wanted): (&u64, &u64)| (*wanted..=wanted + 6).contains(at);
        let all = times.len() == seconds.len() && times.iter().zip(seconds).all(fits);
        let log = self.log();
        assert!(all, "asked at {times:?}, expected about {seconds:?}\n{log}");
    }

    /// Seconds since the start at which this one was restarted.
    pub fn times(&self, id: &SessionId) -> Vec<u64> {
        let all = self.restarts();
        all.into_iter()
            .filter(|(_, of)| of == id.as_str())
            .map(|(at, _)| at)
            .collect()
    }

    /// In which order sessions were restarted.
    pub fn order(&self) -> Vec<String> {
        self.restarts().into_iter().map(|(_, id)| id).collect()
    }

    /// How many calls name this id.
    pub fn calls_of(&self, id: &SessionId) -> usize {
        self.play
            .sim
            .ledger
            .iter()
            .filter(|call| call.of == id.as_str())
            .count()
    }

    /// All lines of all messages that went out.
    pub fn told(&self) -> Vec<String> {
        let messages = self.play.sim.messages.iter();
        messages
            .flat_map(|(_, _, text)| text.lines().map(str::to_owned))
            .collect()
    }

    /// `watchdog.log`.
    pub fn log(&self) -> String {
        let lines: Vec<&str> = self
            .play
            .sim
            .notes
            .iter()
            .map(|(_, line)| line.as_str())
            .collect();
        lines.join("\n")
    }

    /// How often `watchdog.log` says this.
    pub fn says(&self, text: &str) -> usize {
        self.log().matches(text).count()
    }

    /// The outcomes in `restart.log`, in order.
    pub fn outcomes(&self) -> Vec<String> {
        let log = self.play.sim.restart_log.iter();
        log.filter_map(|line| Some(line.get("outcome")?.as_str()?.to_owned()))
            .collect()
    }

    /// What was remembered of a session when it was last saved.
    pub fn remembered(&self, id: &SessionId) -> serde_json::Value {
        self.play.on_disk()["sessions"][id.as_str()].take()
    }

    /// Restarts that count, as they are remembered.
    pub fn budget_used(&self, id: &SessionId) -> usize {
        self.remembered(id)["restarts"]
            .as_array()
            .map_or(0, Vec::len)
    }

    /// Nothing was restarted, and nobody was told.
    pub fn nothing_happened(&self) {
        assert_eq!(self.restarts(), []);
        assert_eq!(self.told(), [""; 0]);
        assert!(self.play.sim.escalation_log.is_empty());
    }

    /// Restarts at about these seconds: not before, and at most 6 s later.
    pub fn at_about(&self, id: &SessionId, seconds: &[u64]) {
        let times = self.times(id);
        let fits = |(at, wanted): (&u64, &u64)| (*wanted..=wanted + 6).contains(at);
        let all = times.len() == seconds.len() && times.iter().zip(seconds).all(fits);
        assert!(
            all,
            "restarted at {times:?}, expected about {seconds:?}\n{}",
            self.log()
        );
    }
}

/// Every scenario ends with the promises.
impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.play.print_history();
        } else {
            self.play.promises_were_kept("this scenario");
        }
    }
}
