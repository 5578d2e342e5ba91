//! The only place where the daemon stands still: one poll over signals, hook
//! and flag folders, watched processes and a timeout.
//!
//! What comes out are hints: "look there". A lost or doubled one costs time,
//! never a mistake. This file does not know what is looked at, nor why a process
//! is watched. Where folders or processes cannot be watched it still waits, and
//! says why.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use signal_hook::SigId;
use signal_hook::consts::signal::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level;

#[cfg(target_os = "linux")]
use super::folder_watch::FolderWatch;
use super::hints::Hints;
pub use super::hints::{Hint, Watched};
#[cfg(not(target_os = "linux"))]
use super::no_watch::{FolderWatch, ProcessWatch};
#[cfg(target_os = "linux")]
use super::process_watch::ProcessWatch;

/// Pause after a poll that the system refuses, so that it never spins.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);

/// Everything that can wake the daemon.
#[derive(Debug)]
pub struct Wait {
    signals: Signals,
    folders: FolderWatch,
    pub(super) processes: ProcessWatch,
    hints: Hints,
}

impl Wait {
    /// Installs the signal handlers. Watches no folder and no process yet.
    ///
    /// # Errors
    /// When the signals cannot be had; nothing else is an error here.
    pub fn new() -> io::Result<Wait> {
        Ok(Wait {
            signals: Signals::install()?,
            folders: FolderWatch::new(),
            processes: ProcessWatch::new(),
            hints: Hints::default(),
        })
    }

    /// Says which folders to watch: agent-deck's hooks, and our own with its
    /// flags. Cheap, and meant to be called at every poll, with the hook folder
    /// as it is found then: folders that came, went, were replaced or are now
    /// elsewhere are found. In between that also happens by itself as far as it
    /// can be seen.
    pub fn watch_folders(&mut self, hooks: &Path, watchdog: &Path) {
        self.folders.watch(hooks, watchdog, &mut self.hints);
    }

    /// Says which processes to watch. Those that are already watched stay so,
    /// the others are let go. One that has ended meanwhile is hinted at once,
    /// but only once, however long it stays wanted. Returns those that could
    /// not be watched.
    pub fn watch_processes(&mut self, wanted: &[(Watched, u32)]) -> Vec<(Watched, u32)> {
        self.processes.watch(wanted, &mut self.hints)
    }

    /// Whether hooks and ends are noticed at once.
    ///
    /// # Errors
    /// Says what is left to polling, and why.
    pub fn fast_path(&self) -> Result<(), String> {
        let troubles: Vec<String> = [self.folders.trouble(), self.processes.trouble()]
            .into_iter()
            .flatten()
            .collect();
        if troubles.is_empty() {
            Ok(())
        } else {
            Err(troubles.join("; "))
        }
    }

    /// Whether hooks, flags and the ends of all these processes are noticed at
    /// once.
    pub fn notices(&self, pids: &[u32]) -> bool {
        self.folders.notices() && pids.iter().all(|pid| self.processes.watches(*pid))
    }

    /// Waits until something new has happened (a hint, or just a child that
    /// ended) or the time is over. Does not care for hints that are already
    /// there: take those before.
    pub fn wait(&mut self, timeout: Duration) {
        let start = Instant::now();
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            if self.poll(left) || left.is_zero() {
                return;
            }
        }
    }

    /// What was noticed since the last call, in the order of its coming.
    pub fn take_hints(&mut self) -> Vec<Hint> {
        self.hints.take()
    }

    /// Whether the end of an agent or tmux server was noticed and not taken yet.
    pub fn end_waits(&self) -> bool {
        self.hints.has_end()
    }

    /// Whether TERM or INT has ever come.
    pub fn terminating(&self) -> bool {
        self.signals.terminate.load(Ordering::SeqCst)
    }

    /// One poll. Whether it brought anything but noise.
    pub(super) fn poll(&mut self, timeout: Duration) -> bool {
        let folders = self.folders.fd();
        let mut fds = vec![readable(self.signals.pipe.as_fd())];
        fds.extend(folders.map(readable));
        fds.extend(self.processes.fds().map(readable));
        // A time that cannot be said in a timespec is as good as for ever.
        let limit = Timespec::try_from(timeout).ok();
        match rustix::event::poll(&mut fds, limit.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return false,
            Ok(_) => {}
            Err(_) => {
                std::thread::sleep(timeout.min(REFUSED_PAUSE));
                return true;
            }
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let signalled = ready.next() == Some(true);
        let folders = folders.is_some() && ready.next() == Some(true);
        let ended: Vec<bool> = ready.collect();
        drop(fds);
        let before = self.hints.noted;
        if signalled {
            self.signals.read(&mut self.hints);
        }
        if folders {
            self.folders.read(&mut self.hints);
        }
        self.processes.ended(&ended, &mut self.hints);
        signalled || self.hints.noted != before
    }
}

fn readable(fd: BorrowedFd<'_>) -> PollFd<'_> {
    PollFd::from_borrowed_fd(fd, PollFlags::IN)
}

/// TERM, INT, HUP and CHLD. The pipe only wakes; flags say what it was.
#[derive(Debug)]
struct Signals {
    pipe: UnixStream,
    terminate: Arc<AtomicBool>,
    hangup: Arc<AtomicBool>,
    told: bool,
    handlers: Vec<SigId>,
}

impl Signals {
    fn install() -> io::Result<Signals> {
        let (pipe, end) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        end.set_nonblocking(true)?;
        let mut signals = Signals {
            pipe,
            terminate: Arc::default(),
            hangup: Arc::default(),
            told: false,
            handlers: Vec::new(),
        };
        // Handlers run in this order: the flag is up before the pipe wakes us.
        for (signal, flag) in [
            (SIGTERM, Some(&signals.terminate)),
            (SIGINT, Some(&signals.terminate)),
            (SIGHUP, Some(&signals.hangup)),
            (SIGCHLD, None),
        ] {
            if let Some(flag) = flag {
                signals
                    .handlers
                    .push(signal_hook::flag::register(signal, Arc::clone(flag))?);
            }
            signals
                .handlers
                .push(low_level::pipe::register(signal, end.try_clone()?)?);
        }
        Ok(signals)
    }

    /// Empties the pipe first: what comes after that wakes us again.
    fn read(&mut self, hints: &mut Hints) {
        let mut bytes = [0; 64];
        while matches!((&self.pipe).read(&mut bytes), Ok(1..)) {}
        if self.terminate.load(Ordering::SeqCst) && !self.told {
            self.told = true;
            hints.note(Hint::Terminate);
        }
        if self.hangup.swap(false, Ordering::SeqCst) {
            hints.note(Hint::Hangup);
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            low_level::unregister(handler);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::{PATIENCE, elsewhere, until};
    use rustix::process::{Signal, getpid, kill_process};

    fn hints_until(wait: &mut Wait, wanted: &Hint) -> Vec<Hint> {
        let mut seen = Vec::new();
        until("the hint comes", || {
            wait.wait(PATIENCE);
            seen.extend(wait.take_hints());
            seen.contains(wanted)
        });
        seen
    }

    #[test]
    fn signals_are_told_apart_and_the_end_is_told_once() {
        if elsewhere("host::wait::tests::signals_are_told_apart_and_the_end_is_told_once") {
            return;
        }
        let mut wait = Wait::new().unwrap();
        let send = |signal| kill_process(getpid(), signal).unwrap();
        for _ in 0..2 {
            send(Signal::HUP);
            assert_eq!(hints_until(&mut wait, &Hint::Hangup), [Hint::Hangup]);
        }
        assert!(!wait.terminating());
        send(Signal::INT);
        assert_eq!(hints_until(&mut wait, &Hint::Terminate), [Hint::Terminate]);
        assert!(wait.terminating());
        send(Signal::TERM);
        send(Signal::HUP);
        assert_eq!(hints_until(&mut wait, &Hint::Hangup), [Hint::Hangup]);
        assert!(wait.terminating());
    }

    #[test]
    fn an_ended_child_wakes_without_a_hint() {
        if elsewhere("host::wait::tests::an_ended_child_wakes_without_a_hint") {
            return;
        }
        let mut wait = Wait::new().unwrap();
        let start = Instant::now();
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", ":"])
            .spawn()
            .unwrap();
        wait.wait(PATIENCE * 10);
        assert!(start.elapsed() < PATIENCE * 10);
        assert!(child.wait().unwrap().success());
        assert!(wait.take_hints().is_empty());
    }

    #[test]
    fn nothing_wakes_before_the_time_is_over() {
        if elsewhere("host::wait::tests::nothing_wakes_before_the_time_is_over") {
            return;
        }
        let scratch = crate::scratch::Scratch::new();
        let mut wait = Wait::new().unwrap();
        wait.watch_folders(&scratch.join("hooks"), &scratch.join("watchdog"));
        wait.watch_processes(&[(Watched::Server, std::process::id())]);
        let start = Instant::now();
        // Two hundred milliseconds in one single poll.
        assert!(!wait.poll(Duration::from_millis(200)));
        assert!(start.elapsed() >= Duration::from_millis(200));
        wait.wait(Duration::ZERO);
        wait.wait(Duration::from_millis(1));
    }
}
