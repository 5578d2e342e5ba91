//! Making a row of the deck. Does not know how it is played.

use std::path::PathBuf;

use super::{Deck, free_composer, now, write};

/// Age of a row unless told otherwise: no grace period applies any more.
const AGE_S: u64 = 7200;

/// A row in the making. By default it is a claude session in group `work` of
/// profile `default`, made two hours ago, that has run before and stands in
/// `waiting` on a free composer, without an agent process behind it.
#[must_use = "nothing is made before `add`"]
pub struct Row<'a> {
    deck: &'a Deck,
    profile: String,
    id: String,
    number: u32,
    files: Vec<(String, Vec<u8>)>,
}

impl<'a> Row<'a> {
    pub(super) fn new(deck: &'a Deck, title: &str, number: u32) -> Row<'a> {
        // Ids of tests that run at the same time differ: the watchdog sees the
        // processes of all of them. Test process, deck and row are in it.
        let seed = u64::from(std::process::id()) << 32 | u64::from(deck.number) << 16;
        let mixed = (seed | u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let row = Row {
            deck,
            profile: "default".to_owned(),
            id: format!("{mixed:08x}-{}", now() - AGE_S),
            number,
            files: Vec::new(),
        };
        row.file("title", title)
            .file("group", "work")
            .file("path", "/home/u/proj")
            .file("status", "waiting")
            .file("substate", "idle-at-empty-prompt")
            .file("pane", free_composer("✻ Welcome back!"))
            .file("order", format!("{number}"))
            .file(
                "agent_session_id",
                format!("{mixed:08x}-1111-4222-8333-{number:012x}"),
            )
    }

    /// One of its files (the list is in `tests/standin/session.rs`).
    pub fn file(mut self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.files.retain(|(other, _)| other != name);
        self.files
            .push((name.to_owned(), content.as_ref().to_vec()));
        self
    }

    /// Without one of its files.
    pub fn without(mut self, name: &str) -> Self {
        self.files.retain(|(other, _)| other != name);
        self
    }

    /// Another profile, made if need be.
    pub fn profile(mut self, name: &str) -> Self {
        name.clone_into(&mut self.profile);
        self
    }

    /// A certain id instead of a fresh one.
    pub fn id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.id);
        self
    }

    /// Another group.
    pub fn group(self, group: &str) -> Self {
        self.file("group", group)
    }

    /// A child of that row.
    pub fn child_of(self, parent: &str) -> Self {
        self.file("parent", parent)
    }

    /// Another stored status; `running` has the substate of its own.
    pub fn status(self, status: &str) -> Self {
        let row = self.file("status", status);
        match status {
            "running" => row.file("substate", "running"),
            _ => row,
        }
    }

    /// What is printed as status, come what may.
    pub fn prints(self, status: &str) -> Self {
        self.file("printed", status)
    }

    /// Another screen.
    pub fn pane(self, text: impl AsRef<[u8]>) -> Self {
        self.file("pane", text)
    }

    /// Waits, on this screen.
    pub fn waiting_on(self, screen: impl AsRef<[u8]>) -> Self {
        self.status("waiting").pane(screen)
    }

    /// Screens that successive readings show, each once, the last for good. A
    /// send finds the one that would be read next.
    pub fn panes<S: AsRef<[u8]>>(mut self, screens: &[S]) -> Self {
        let mut script = String::new();
        for (n, screen) in screens.iter().enumerate() {
            self = self.file(&format!("screen-{n}"), screen);
            script += &format!("screen-{n}\n");
        }
        self.file("panes", script)
    }

    /// A dialog or whatever that opens right before a send types.
    pub fn at_send(self, screen: impl AsRef<[u8]>) -> Self {
        self.file("at_send", screen)
    }

    /// What sends do, one word each, the last for all others
    /// (`tests/standin/send.rs`).
    pub fn sends(self, results: &[&str]) -> Self {
        self.file("send_result", results.join("\n"))
    }

    /// Another tool.
    pub fn tool(self, tool: &str) -> Self {
        self.file("tool", tool).file("command", tool)
    }

    /// The channels, such as `plugin:telegram@claude-plugins-official`.
    pub fn channels(self, channels: &[&str]) -> Self {
        self.file("channels", channels.join("\n"))
    }

    /// Linked to Telegram by the official plugin.
    pub fn telegram(self) -> Self {
        self.channels(&["plugin:telegram@claude-plugins-official"])
    }

    /// `plugin_channel_link_disabled` is set.
    pub fn link_disabled(self) -> Self {
        self.file("link_disabled", "")
    }

    /// How its agents behave (`tests/standin/agent.rs`).
    pub fn agent(self, words: &str) -> Self {
        self.file("agent", words)
    }

    /// How its next agent behaves; those after it as [`Row::agent`] says.
    pub fn next_agent(self, words: &str) -> Self {
        self.file("agent_once", words)
    }

    /// Variables of its agents, besides those of agent-deck.
    pub fn agent_env(self, variables: &[(&str, &str)]) -> Self {
        let lines = variables
            .iter()
            .map(|(key, value)| format!("{key}={value}\n"));
        self.file("agent_env", lines.collect::<String>())
    }

    /// What its agents say of themselves; empty: nothing yet.
    pub fn own_status(self, status: &str) -> Self {
        self.file("own_status", status)
    }

    /// Its agent and tmux session have ended: prints `error`.
    pub fn dead(self) -> Self {
        self.without("pane")
    }

    /// Stopped on purpose.
    pub fn stopped(self) -> Self {
        self.dead().status("stopped")
    }

    /// Archived, and stored as if it had died.
    pub fn archived(self) -> Self {
        self.dead().file("archived", "2026-11-30T16:53:20Z")
    }

    /// Added and never started: prints `error` too.
    pub fn never_started(self) -> Self {
        self.dead().status("idle").without("agent_session_id")
    }

    /// Made so many seconds ago.
    pub fn age(mut self, seconds: u64) -> Self {
        let hex = self.id.split('-').next().unwrap_or_default();
        self.id = format!("{hex}-{}", now() - seconds);
        self
    }

    /// Makes it appear in the deck; returns its id.
    pub fn add(self) -> String {
        let profile = self.deck.file("profiles").join(&self.profile);
        self.deck.profile(&self.profile);
        let aside: PathBuf = profile.join(format!(".new-{}", self.number));
        std::fs::create_dir_all(&aside).unwrap();
        for (name, content) in &self.files {
            write(&aside.join(name), content);
        }
        std::fs::rename(aside, profile.join("sessions").join(&self.id)).unwrap();
        self.id
    }
}
