//! Running the watchdog on a deck, once or as a daemon, in a clean environment.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Deck, LOOK};

/// How long a daemon that was asked to leave may take in a test's clean-up.
const LEAVE: Duration = Duration::from_secs(30);

impl Deck {
    /// Sets a variable for all further runs of the watchdog.
    pub fn setting(&self, key: &str, value: &str) {
        let mut settings = self.settings.lock().unwrap();
        settings.retain(|(other, _)| other != key);
        settings.push((key.to_owned(), value.to_owned()));
    }

    /// Gives a command the deck's home and nothing else of our environment.
    pub(super) fn clean<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", self.file("bin"))
    }

    /// The watchdog, with home, PATH, agent-deck and the deck's settings.
    pub fn watchdog(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent-deck-watchdog"));
        self.clean(&mut command)
            .env("AGENT_DECK_BIN", self.file("bin/agent-deck"))
            .envs(self.settings.lock().unwrap().iter().cloned())
            .args(args)
            .current_dir(self.home())
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, args: &[&str]) -> Output {
        self.watchdog(args).output().unwrap()
    }

    /// Runs one pass.
    pub fn once(&self) -> Output {
        self.run(&["--once"])
    }

    /// Starts the daemon; it ends with the guard.
    pub fn daemon(&self) -> Daemon<'_> {
        self.daemon_with(&[])
    }

    /// The same with arguments.
    pub fn daemon_with(&self, args: &[&str]) -> Daemon<'_> {
        let (out, err) = (self.root.join("daemon.out"), self.root.join("daemon.err"));
        let child = self
            .watchdog(args)
            .stdout(File::create(&out).unwrap())
            .stderr(File::create(&err).unwrap())
            .spawn()
            .unwrap();
        Daemon {
            deck: self,
            child,
            out,
            err,
        }
    }

    /// One of the watchdog's own files, empty while it is not there.
    pub fn read(&self, name: &str) -> String {
        let bytes = std::fs::read(self.watchdog_dir().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits for a line with this text in one of the watchdog's files, such as
    /// `watchdog.log`; returns it.
    pub fn wait_for_line(&self, file: &str, text: &str) -> String {
        self.wait(&format!("{text:?} in {file}"), || {
            let log = self.read(file);
            log.lines()
                .find(|line| line.contains(text))
                .map(str::to_owned)
        })
    }
}

/// A running daemon; asked to leave when dropped.
pub struct Daemon<'a> {
    deck: &'a Deck,
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Daemon<'_> {
    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// As [`Deck::wait_for_line`].
    pub fn wait_for_line(&self, file: &str, text: &str) -> String {
        self.deck.wait_for_line(file, text)
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end without asking for it.
    pub fn wait(&mut self) -> ExitStatus {
        let child = &mut self.child;
        self.deck
            .wait("the daemon's end", || child.try_wait().unwrap())
    }

    /// Asks it to leave and waits for that.
    pub fn stop(&mut self) -> ExitStatus {
        if let Some(ended) = self.child.try_wait().unwrap() {
            return ended;
        }
        self.signal(Signal::TERM);
        self.wait()
    }

    /// Ends it as a crash would.
    pub fn crash(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// What it has written to stdout and stderr.
    pub fn said(&self) -> (String, String) {
        let read = |path| std::fs::read_to_string(path).unwrap();
        (read(&self.out), read(&self.err))
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        let _ = kill_process_if_running(&mut self.child);
    }
}

/// Must not panic: a failing test is already on its way out.
fn kill_process_if_running(child: &mut Child) -> std::io::Result<()> {
    if child.try_wait()?.is_some() {
        return Ok(());
    }
    kill_process(Pid::from_child(child), Signal::TERM)?;
    let end = Instant::now() + LEAVE;
    while child.try_wait()?.is_none() {
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}
