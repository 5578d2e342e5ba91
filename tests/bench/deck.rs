//! A deck of the bench: a home of its own below /tmp, with conductors that have
//! a living agent, children that wait, and a front before its `agent-deck`. Does
//! not know watchdogs.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::Out;
use crate::parts::{Ledger, Start, now_ns};
use crate::system::{lives, parent, send, wait, watch};

/// Which `agent-deck` a deck has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// That of the tests.
    StandIn,
    /// That of `AGENT_DECK_E2E_BIN`.
    Real,
}

/// Programs that decks are made of.
pub struct Tools {
    /// This one.
    pub own: PathBuf,
    /// The stand-in.
    pub standin: PathBuf,
    /// The real agent-deck.
    pub real: Option<PathBuf>,
}

/// A deck; taken away with all its processes when dropped.
pub struct Deck {
    /// `HOME` of all that runs on it.
    pub home: PathBuf,
    /// Whose it is.
    pub kind: Kind,
    number: u32,
    /// The conductors.
    pub conductors: Vec<String>,
    /// Children that have an agent; those of the stand-in are but a screen.
    children: Vec<String>,
}

/// How long an agent, a session or a server may take to come or go.
const COME: Duration = Duration::from_secs(30);

impl Deck {
    /// Makes one, with all its sessions started.
    pub fn new(tools: &Tools, kind: Kind, conductors: u32, children: u32) -> Out<Deck> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        // Short, since a socket's path below it may have only 104 bytes.
        let home = PathBuf::from(format!("/tmp/adwb-{}-{number}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&home)?;
        let mut deck = Deck {
            home,
            kind,
            number,
            conductors: Vec::new(),
            children: Vec::new(),
        };
        fs::create_dir(deck.home.join("bin"))?;
        let tmux = deck.home.join("tmux");
        fs::DirBuilder::new().mode(0o700).create(tmux)?;
        // No symlink: a watchdog may know agent-deck by the file's own name.
        fs::copy(&tools.own, deck.home.join("bin/agent-deck"))?;
        symlink(&tools.own, deck.home.join("bin/claude"))?;
        // Made by the first hook record in life.
        fs::create_dir_all(deck.data().join("hooks"))?;
        let cli = match (kind, &tools.real) {
            (Kind::Real, Some(real)) => real.clone(),
            _ => deck.stand_in(tools)?,
        };
        symlink(cli, deck.home.join("cli"))?;
        for n in 0..conductors {
            let id = deck.add(n, &format!("conductor-{n}"), "conductor", "")?;
            deck.restart(&id)?;
            deck.conductors.push(id);
        }
        let lead = deck.conductors.first().cloned().unwrap_or_default();
        for n in conductors..conductors + children {
            let id = deck.add(n, &format!("child-{n}"), "work", &lead)?;
            match kind {
                Kind::StandIn => fs::write(deck.row(&id).join("pane"), "a screen\n")?,
                Kind::Real => {
                    deck.restart(&id)?;
                    deck.children.push(id);
                }
            }
        }
        Ok(deck)
    }

    /// Lays out the folder of the stand-in; its agents are ours.
    fn stand_in(&self, tools: &Tools) -> Out<PathBuf> {
        let data = self.data();
        let bin = data.join("bin");
        fs::create_dir_all(data.join("profiles/default/sessions"))?;
        for folder in [&bin, &data.join("locks")] {
            fs::create_dir(folder)?;
        }
        for (file, text) in [
            ("owner", std::process::id().to_string().as_str()),
            ("tmux.on", ""),
        ] {
            fs::write(data.join(file), text)?;
        }
        fs::write(data.join("profiles/default/state.db"), "")?;
        for part in ["agent-deck", "ps", "tmux: server"] {
            symlink(&tools.standin, bin.join(part))?;
        }
        symlink(&tools.own, bin.join("claude"))?;
        Ok(bin.join("agent-deck"))
    }

    fn data(&self) -> PathBuf {
        self.home.join(".local/share/agent-deck")
    }

    /// The folder of a row of the stand-in.
    pub fn row(&self, id: &str) -> PathBuf {
        self.data().join("profiles/default/sessions").join(id)
    }

    /// Adds a session that does not run yet; returns its id.
    fn add(&self, number: u32, title: &str, group: &str, lead: &str) -> Out<String> {
        if self.kind == Kind::StandIn {
            // Ids differ over all decks, as they do in life.
            let id = format!("{:08x}-1700000000", (self.number << 16) + number);
            let row = self.row(&id);
            fs::create_dir(&row)?;
            let agent = format!("agent-of-{id}");
            let files = [("title", title), ("group", group), ("parent", lead)];
            for (file, text) in files.into_iter().chain([("agent_session_id", &*agent)]) {
                fs::write(row.join(file), text)?;
            }
            return Ok(id);
        }
        let folder = self.home.join(title);
        fs::create_dir(&folder)?;
        let folder = folder.display().to_string();
        let parent = match lead {
            "" => vec!["--no-parent"],
            lead => vec!["--parent", lead],
        };
        let args = [&["add", "-t", title, "-g", group, "-c", "claude"], &*parent];
        self.field(&[args.concat(), vec![&folder]].concat(), "id")
    }

    /// Adds a session to the stand-in that has no process, is at work and not
    /// looked at any closer; returns its id.
    pub fn add_working(&self, number: u32) -> Out<String> {
        let id = self.add(number, &format!("worker-{number}"), "work", "")?;
        fs::write(self.row(&id).join("status"), "running")?;
        fs::write(self.row(&id).join("pane"), "a screen\n")?;
        Ok(id)
    }

    /// Gives a program the deck's home and nothing else of our environment.
    pub fn command(&self, program: &str) -> Command {
        let bin = self.home.join("bin");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", &self.home)
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("TMUX_TMPDIR", self.home.join("tmux"))
            .env("AGENT_DECK_BIN", bin.join("agent-deck"))
            .env("LANG", "C.UTF-8")
            .current_dir(&self.home)
            .stdin(Stdio::null());
        command
    }

    /// Runs `agent-deck` by hand; returns its answer and how long it took, in
    /// nanoseconds.
    pub fn by_hand(&self, args: &[&str]) -> Out<(Value, u64)> {
        let front = self.home.join("bin/agent-deck");
        let begin = now_ns();
        let output = self
            .command(&front.display().to_string())
            .args(args)
            .arg("--json")
            .output()?;
        let took = now_ns() - begin;
        let answer = serde_json::from_slice(&output.stdout);
        let answer = answer.map_err(|_| format!("agent-deck {}: {output:?}", args.join(" ")))?;
        Ok((answer, took))
    }

    /// One text of an answer.
    fn field(&self, args: &[&str], name: &str) -> Out<String> {
        let (answer, _) = self.by_hand(args)?;
        let text = answer.get(name).and_then(Value::as_str);
        let text = text.ok_or_else(|| format!("agent-deck {}: {answer}", args.join(" ")))?;
        Ok(text.to_owned())
    }

    /// Restarts a session by hand and waits until its agent lives.
    pub fn restart(&self, id: &str) -> Out<()> {
        let begin = now_ns();
        let (answer, _) = self.by_hand(&["session", "restart", id])?;
        let begun = || self.agent(id).ok().filter(|start| start.at > begin);
        match wait(COME, begun)? {
            Some(_) => Ok(()),
            None => Err(format!("{id} does not live after its restart: {answer}").into()),
        }
    }

    /// What was noted on it so far.
    pub fn ledger(&self) -> Ledger {
        Ledger::read(&self.home)
    }

    /// The last agent of a session.
    pub fn agent(&self, id: &str) -> Out<Start> {
        let ledger = self.ledger();
        let last = ledger.starts.iter().rev().find(|start| start.id == id);
        Ok(last.ok_or("it never had an agent")?.clone())
    }

    /// Restarts by hand all whose agent does not live.
    pub fn revive(&self) -> Out<()> {
        for id in self.conductors.iter().chain(&self.children) {
            if !lives(self.agent(id)?.process) {
                self.restart(id)?;
            }
        }
        Ok(())
    }

    /// A question to its tmux.
    fn tmux(&self, args: &[&str]) -> Out<String> {
        let output = self.command("tmux").args(args).output()?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            false => Err(format!("tmux {}: {output:?}", args.join(" ")).into()),
        }
    }

    /// Ends a session by its name in tmux, as a user of tmux would; returns when.
    pub fn kill_session(&self, id: &str, name: &str) -> Out<u64> {
        let now = now_ns();
        if self.kind == Kind::StandIn {
            let mut server = UnixStream::connect(self.data().join("tmux.sock"))?;
            writeln!(server, "stop\tdefault\t{id}")?;
            server.read_to_string(&mut String::new())?;
            return Ok(now);
        }
        self.tmux(&["kill-session", "-t", &format!("={name}")])?;
        Ok(now)
    }

    /// Kills the tmux server that a session lives under; returns when.
    pub fn kill_server(&self, id: &str) -> Out<u64> {
        let server = match self.kind {
            Kind::StandIn => parent(self.agent(id)?.process)?,
            Kind::Real => self.tmux(&["display-message", "-p", "#{pid}"])?.parse()?,
        };
        let now = now_ns();
        send(server, Signal::KILL)?;
        Ok(now)
    }

    /// Begins to wait for the end of a session.
    pub fn before_end(&self, id: &str) -> Out<End> {
        if self.kind == Kind::StandIn {
            let socket = self.data().join("tmux.sock");
            return Ok(End::StandIn(self.row(id).join("pane"), socket));
        }
        let word = format!("gone-{}", now_ns());
        let hook = format!("wait-for -S {word}");
        self.tmux(&["set-hook", "-g", "session-closed", &hook])?;
        let mut waiting = self.command("tmux");
        let waiting = waiting.args(["wait-for", &word]).stderr(Stdio::null());
        Ok(End::Real(waiting.spawn()?))
    }
}

/// The end of a session, to be waited for.
pub enum End {
    /// Its screen disappears, or the server's socket answers no more.
    StandIn(PathBuf, PathBuf),
    /// tmux tells this client, or its server ends.
    Real(Child),
}

impl End {
    /// When the session was gone.
    pub fn wait(mut self) -> Out<u64> {
        let gone = watch(COME, || match &mut self {
            End::StandIn(pane, socket) => {
                (!pane.exists() || UnixStream::connect(socket).is_err()).then(now_ns)
            }
            End::Real(waiting) => waiting.try_wait().ok()?.map(|_| now_ns()),
        });
        if let End::Real(mut waiting) = self {
            let _ = waiting.kill();
            waiting.wait()?;
        }
        Ok(gone?.ok_or("the session does not end")?)
    }
}

impl Drop for Deck {
    fn drop(&mut self) {
        // Agents end with their server; that of the stand-in ends with its folder.
        if self.kind == Kind::Real {
            let server = self.tmux(&["display-message", "-p", "#{pid}"]);
            if let Some(server) = server.ok().and_then(|pid| pid.parse().ok()) {
                let _ = send(server, Signal::KILL);
            }
        }
        // Somebody may still be writing.
        for _ in 0..50 {
            if fs::remove_dir_all(&self.home).is_ok() || !self.home.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        eprintln!("bench: {} is left", self.home.display());
    }
}
