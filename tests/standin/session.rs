//! One row: its small files, and the status agent-deck would print for it
//! (contract 6). Does not know any command.
//!
//! Files in `profiles/<profile>/sessions/<id>/`, all optional, one value each:
//!
//! | file | meaning (what counts without it) |
//! | --- | --- |
//! | `order` | place in the list (after all that have one, by id) |
//! | `title`, `path`, `group` | (the id, `/home/u/proj`, `work`) |
//! | `tool`, `command` | (`claude`, `claude`; empty: not printed) |
//! | `status` | the stored status (`waiting`) |
//! | `printed` | printed status, whatever else is said here |
//! | `substate` | substate of the screen, printed while there is one |
//! | `pane` | text of the screen; present: the tmux session exists |
//! | `server` | the tmux session belongs to the fake tmux server and ends with it |
//! | `panes` | files (names in this folder, or whole paths; one a line) that successive readings of the screen show, each once, the last for good; a `send` finds the first that is left (the screen is `pane`) |
//! | `pane_fails` | the screen cannot be read although the session is there: `hung` (as under a stuck tmux server) or anything else |
//! | `pane_exit` | the pane stands although its process ended with this code |
//! | `pane.lost` | pane of an agent whose tmux name a lost save has hidden |
//! | `tmux` | stored tmux name (made from the title) |
//! | `created`, `started` | unix seconds (number behind the id's dash; never) |
//! | `agent_session_id` | the agent's own session id (never started) |
//! | `channels` | one a line |
//! | `link_disabled` | `session show` prints `plugin_channel_link_disabled` |
//! | `extra_args` | JSON array as `list` prints it |
//! | `parent` | id of the parent |
//! | `archived` | when, RFC 3339 |
//! | `auth_hold`, `spawn_failure` | JSON object as `session show` prints it |
//! | `notice` | text of `session output --pane` for a dead row with one of the two |
//! | `is_conductor`, `title_locked`, `no_transition_notify`, `can_fork` | `true` or `false` (not printed, true, false, when it has an agent session id) |
//! | `ssh_host` | runs elsewhere |
//! | `done` | completion record: status, summary, time on a line each |
//! | `missing_dir` | the project folder was deleted |
//! | `after_restart` | what `restart` does, one line for one restart, the last for all others: `dies`, `no-effect`, `unknown`, `exit N [error text]` (works) |
//! | `next_pane` | the screen after a restart (a free composer) |
//! | `send_result` | what a `send` does and answers, see `send.rs` (what the screen makes of it) |
//! | `at_send` | the screen that a `send` finds and nobody saw before, once |
//! | `after_send` | the screen after a `send` that typed something (the old one with the message above the input box) |
//! | `held_for_composer_ms`, `draft_restored` | as a `send` answers (2, with a draft 2161; `true`) |
//! | `typed` | made by `send`: all bytes that reached the agent |
//! | `answered`, `ran`, `killed_tool` | made by `send`: options it chose, shell commands it ran (one a line), that it ended a tool |
//! | `agent` | how the fake agent behaves, see `agent.rs`; `agent_once`: only the next one |
//! | `agent_program` | file name of the pane process (`claude`) |
//! | `agent_env` | `KEY=VALUE` lines for its environment |
//! | `anonymous` | the agent gets no instance id (contract 8.4) |
//! | `agent_pid` | made by the server: the running agent |
//! | `own_status` | what the agent says of itself, `idle`, `waiting permission prompt` and so on; empty: no file yet. Must be there when it starts, is followed then |
//! | `status_file`, `pollers` | made by the agent: where it says so; process numbers of all its pollers |

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::deck::{self, Deck, now_ms, rfc3339};
use crate::json::Json;
use crate::tmux;

/// Hook records older than this count for nothing (contract 6.3).
const HOOK_FRESH_S: u64 = 120;
/// A row younger than this without tmux has just been made (contract 6.1).
const JUST_MADE_MS: u64 = 1500;

/// One row as its folder says.
pub struct Session {
    /// Full id.
    pub id: String,
    /// Profile it belongs to.
    pub profile: String,
    dir: PathBuf,
    files: BTreeMap<String, Vec<u8>>,
}

impl Session {
    /// Reads a row.
    pub fn load(deck: &Deck, profile: &str, id: &str) -> io::Result<Session> {
        let dir = deck.profile(profile).join("sessions").join(id);
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(&dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // A file may go while others are read: then it is not there.
            if let (false, Ok(bytes)) = (name.starts_with('.'), std::fs::read(entry.path())) {
                files.insert(name, bytes);
            }
        }
        Ok(Session {
            id: id.to_owned(),
            profile: profile.to_owned(),
            dir,
            files,
        })
    }

    /// All rows of a profile in their stored order.
    pub fn all(deck: &Deck, profile: &str) -> io::Result<Vec<Session>> {
        let mut rows = Vec::new();
        let Ok(folder) = std::fs::read_dir(deck.profile(profile).join("sessions")) else {
            return Ok(rows);
        };
        for entry in folder {
            let id = entry?.file_name().to_string_lossy().into_owned();
            match Session::load(deck, profile, &id) {
                // Being made or removed at this moment.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                row => rows.push(row?),
            }
        }
        rows.sort_by_key(|row| (row.number("order").unwrap_or(u64::MAX), row.id.clone()));
        Ok(rows)
    }

    /// Whether that file is there.
    pub fn has(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// A file's bytes as they are.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(Vec::as_slice)
    }

    /// A file's text without the newline at its end.
    pub fn text(&self, name: &str) -> Option<String> {
        let text = String::from_utf8_lossy(self.bytes(name)?).into_owned();
        Some(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }

    /// The same, or a default.
    pub fn text_or(&self, name: &str, default: &str) -> String {
        self.text(name).unwrap_or_else(|| default.to_owned())
    }

    /// A file's number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.trim().parse().ok()
    }

    /// A file's `true` or `false`.
    pub fn flag(&self, name: &str, default: bool) -> bool {
        self.text(name)
            .map_or(default, |text| text.trim() != "false")
    }

    /// Where a file lies.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Writes a file.
    pub fn save(&mut self, name: &str, bytes: impl Into<Vec<u8>>) -> io::Result<()> {
        let bytes = bytes.into();
        deck::save(&self.path(name), &bytes)?;
        self.files.insert(name.to_owned(), bytes);
        Ok(())
    }

    /// Removes a file.
    pub fn remove(&mut self, name: &str) -> io::Result<()> {
        deck::remove(&self.path(name))?;
        self.files.remove(name);
        Ok(())
    }

    /// Takes the first line of a file; the last one stays for all later calls.
    pub fn take_line(&mut self, name: &str, default: &str) -> io::Result<String> {
        let all = self.text_or(name, default);
        let Some((first, rest)) = all.split_once('\n') else {
            return Ok(all);
        };
        self.save(name, rest)?;
        Ok(first.to_owned())
    }

    /// The screen as keys would find it.
    pub fn screen(&self) -> Vec<u8> {
        let script = self.text_or("panes", "");
        match script.lines().next() {
            Some(name) => std::fs::read(self.path(name)).unwrap_or_default(),
            None => self.bytes("pane").unwrap_or_default().to_vec(),
        }
    }

    /// The screen as one reading shows it.
    pub fn next_screen(&mut self) -> io::Result<Vec<u8>> {
        let screen = self.screen();
        self.take_line("panes", "")?;
        Ok(screen)
    }

    /// Puts up another screen. Of a script that goes on the rest is kept.
    pub fn show(&mut self, screen: Vec<u8>) -> io::Result<()> {
        if self.text_or("panes", "").lines().count() < 2 {
            self.remove("panes")?;
        }
        self.save("pane", screen)
    }

    /// Title, or the id.
    pub fn title(&self) -> String {
        self.text_or("title", &self.id)
    }

    /// The stored status.
    pub fn stored(&self) -> String {
        self.text_or("status", "waiting")
    }

    /// Unix seconds of its making.
    pub fn created(&self) -> u64 {
        let of_id = || self.id.rsplit_once('-')?.1.parse().ok();
        self.number("created").or_else(of_id).unwrap_or(0)
    }

    /// The same as printed.
    pub fn created_at(&self) -> String {
        rfc3339(self.created())
    }

    /// Stored tmux name: `agentdeck_<title>_<8 hex>` (contract 7.6).
    pub fn tmux_name(&self) -> String {
        self.text("tmux").unwrap_or_else(|| {
            let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
            let title: String = self.title().chars().map(plain).collect();
            format!("agentdeck_{title}_0a1b2c3d")
        })
    }

    /// Telegram and other channels.
    pub fn channels(&self) -> Vec<Json> {
        let text = self.text("channels").unwrap_or_default();
        text.lines().map(Json::text).collect()
    }

    /// Whether tmux has its session.
    pub fn tmux_exists(&self, deck: &Deck) -> bool {
        self.has("pane") && !deck.has("no-tmux") && (!self.has("server") || tmux::is_running(deck))
    }

    /// The status agent-deck prints.
    pub fn printed(&self, deck: &Deck) -> String {
        if let Some(forced) = self.text("printed") {
            return forced;
        }
        let stored = self.stored();
        if !self.tmux_exists(deck) {
            let just_made = now_ms()
                .checked_sub(self.created().saturating_mul(1000))
                .is_some_and(|age| age < JUST_MADE_MS);
            let word = match stored.as_str() {
                "stopped" => "stopped",
                "idle" if just_made => "idle",
                _ if just_made => "unknown",
                _ => "error",
            };
            return word.to_owned();
        }
        if let Some(word) = self.hook_status(&deck.file("hooks"), &stored) {
            return word.to_owned();
        }
        if let Some(code) = self.number("pane_exit") {
            return if code == 0 { "stopped" } else { "error" }.to_owned();
        }
        let substate = self.text_or("substate", "");
        match stored.as_str() {
            "running" => "running",
            _ if substate == "auth-401" || substate == "model-unavailable" => "error",
            "idle" => "idle",
            "error" => "error",
            // A row that stands on `stopped`, `starting` or `queued` although
            // its pane is there shows what its screen shows: nothing special.
            _ => "waiting",
        }
        .to_owned()
    }

    /// What a fresh hook record makes of it.
    fn hook_status(&self, hooks: &Path, stored: &str) -> Option<&'static str> {
        let bytes = std::fs::read(hooks.join(format!("{}.json", self.id))).ok()?;
        let record: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
        let written = record.get("ts")?.as_u64()?;
        if (now_ms() / 1000).saturating_sub(written) >= HOOK_FRESH_S {
            return None;
        }
        match record.get("status")?.as_str()? {
            "running" => Some("running"),
            "waiting" if stored == "idle" => Some("idle"),
            "waiting" => Some("waiting"),
            "dead" => Some("error"),
            "starting" => Some("unknown"),
            _ => None,
        }
    }

    /// The substate agent-deck prints, empty for none.
    pub fn substate(&self, deck: &Deck) -> String {
        if self.tmux_exists(deck) {
            return self.text_or("substate", "");
        }
        let held = self.has("auth_hold") && self.printed(deck) == "error";
        if held { "auth-401" } else { "" }.to_owned()
    }
}
