//! Notices the end of processes that are not our children, by pidfds.
//!
//! A pidfd stays with its process: when the number goes to another one, that
//! one is not taken for it. This file does not know why a process is watched.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Resource};

use super::hints::{Hints, Watched};

/// File handles that are kept free for everything else: programs that are run
/// need about ten at a time, logs and folders as many.
const KEPT_FREE: u64 = 64;

/// The watched processes.
#[derive(Debug)]
pub struct ProcessWatch {
    watched: Vec<(u32, Watched, OwnedFd)>,
    /// Already hinted at, and still wanted: not hinted at again.
    over: Vec<(u32, Watched)>,
    trouble: Option<String>,
}

impl ProcessWatch {
    pub fn new() -> ProcessWatch {
        ProcessWatch {
            watched: Vec::new(),
            over: Vec::new(),
            trouble: None,
        }
    }

    /// Makes the watched processes those that are wanted; returns those that
    /// cannot be watched.
    pub fn watch(&mut self, wanted: &[(Watched, u32)], hints: &mut Hints) -> Vec<(Watched, u32)> {
        let is_wanted = |pid: u32, who: &Watched| wanted.iter().any(|(w, p)| *p == pid && w == who);
        self.watched.retain(|(pid, who, _)| is_wanted(*pid, who));
        self.over.retain(|(pid, who)| is_wanted(*pid, who));
        self.trouble = None;
        let room = room();
        let mut left_out = Vec::new();
        for (who, pid) in wanted {
            if self.is_known(*pid, who) {
                continue;
            }
            let opened = if self.watched.len() < room {
                open(*pid)
            } else {
                Err(Errno::MFILE)
            };
            match opened {
                Ok(fd) => self.watched.push((*pid, who.clone(), fd)),
                Err(Errno::SRCH) => {
                    hints.note(who.ended());
                    self.over.push((*pid, who.clone()));
                }
                Err(why) => {
                    left_out.push((who.clone(), *pid));
                    self.trouble = Some(said(left_out.len(), why));
                }
            }
        }
        left_out
    }

    fn is_known(&self, pid: u32, who: &Watched) -> bool {
        self.watched.iter().any(|(p, w, _)| *p == pid && w == who)
            || self.over.iter().any(|(p, w)| *p == pid && w == who)
    }

    /// In the order in which [`ProcessWatch::ended`] wants the answers.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.watched.iter().map(|(_, _, fd)| fd.as_fd())
    }

    /// Takes the ended ones out, with a hint for each.
    pub fn ended(&mut self, ended: &[bool], hints: &mut Hints) {
        if !ended.contains(&true) {
            return;
        }
        let mut answers = ended.iter();
        self.watched.retain(|(pid, who, _)| {
            let gone = answers.next() == Some(&true);
            if gone {
                hints.note(who.ended());
                self.over.push((*pid, who.clone()));
            }
            !gone
        });
    }

    /// Whether the end of that process is noticed: it has not ended yet.
    pub fn watches(&self, pid: u32) -> bool {
        self.watched.iter().any(|(watched, ..)| *watched == pid)
    }

    /// Why some ends are left to polling.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.clone()
    }
}

fn open(pid: u32) -> Result<OwnedFd, Errno> {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(Errno::SRCH)?;
    rustix::process::pidfd_open(pid, PidfdFlags::empty())
}

/// How many processes may be watched within the limit on open files.
fn room() -> usize {
    match rustix::process::getrlimit(Resource::Nofile).current {
        Some(limit) => usize::try_from(limit.saturating_sub(KEPT_FREE)).unwrap_or(usize::MAX),
        None => usize::MAX,
    }
}

fn said(count: usize, why: Errno) -> String {
    let why = match why {
        Errno::MFILE => "the limit on open files is reached (ulimit -n)".to_owned(),
        Errno::NOSYS => "this kernel has no pidfds".to_owned(),
        other => std::io::Error::from(other).to_string(),
    };
    format!("ends of {count} processes are left to polling: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::wait::{Hint, Wait};
    use crate::model::SessionId;
    use crate::scratch::{PATIENCE, elsewhere, until};
    use std::process::{Child, Command};

    fn agent(name: &str) -> Watched {
        Watched::Agent(SessionId::parse(name).unwrap())
    }

    fn ended(name: &str) -> Hint {
        Hint::Ended(SessionId::parse(name).unwrap())
    }

    fn sleeper() -> Child {
        Command::new("/bin/sleep").arg("3600").spawn().unwrap()
    }

    /// Hints about processes up to the wanted one.
    fn hints_until(wait: &mut Wait, wanted: &Hint) -> Vec<Hint> {
        let mut seen = Vec::new();
        until("the hint comes", || {
            wait.wait(PATIENCE);
            seen.extend(wait.take_hints());
            seen.contains(wanted)
        });
        seen.retain(|hint| matches!(hint, Hint::Ended(_) | Hint::ServerEnded));
        seen
    }

    #[test]
    fn an_end_is_noticed_once() {
        let mut wait = Wait::new().unwrap();
        let (mut first, mut second, mut server) = (sleeper(), sleeper(), sleeper());
        let wanted = [
            (agent("a-1"), first.id()),
            (agent("b-2"), second.id()),
            (Watched::Server, server.id()),
        ];
        assert!(wait.watch_processes(&wanted).is_empty());
        assert_eq!(wait.processes.fds().count(), 3);
        second.kill().unwrap();
        assert_eq!(hints_until(&mut wait, &ended("b-2")), [ended("b-2")]);
        assert_eq!(wait.processes.fds().count(), 2);
        // Still a zombie: its number can still be opened, and is ready at once.
        assert!(wait.watch_processes(&wanted).is_empty());
        server.kill().unwrap();
        assert_eq!(
            hints_until(&mut wait, &Hint::ServerEnded),
            [Hint::ServerEnded]
        );
        second.wait().unwrap();
        assert!(wait.watch_processes(&wanted).is_empty());
        first.kill().unwrap();
        assert_eq!(hints_until(&mut wait, &ended("a-1")), [ended("a-1")]);
        first.wait().unwrap();
        server.wait().unwrap();
    }

    #[test]
    fn one_that_has_ended_before_is_hinted_at_once_and_only_once() {
        let mut wait = Wait::new().unwrap();
        let mut child = sleeper();
        child.kill().unwrap();
        child.wait().unwrap();
        let wanted = [(agent("a-1"), child.id())];
        for _ in 0..2 {
            assert!(wait.watch_processes(&wanted).is_empty());
        }
        let hints = wait.take_hints();
        assert_eq!(
            hints.iter().filter(|hint| **hint == ended("a-1")).count(),
            1
        );
        assert!(wait.watch_processes(&wanted).is_empty());
        assert!(!wait.take_hints().contains(&ended("a-1")));
        wait.watch_processes(&[]);
        wait.watch_processes(&wanted);
        assert!(wait.take_hints().contains(&ended("a-1")));
        for no_process in [0, u32::MAX] {
            assert!(
                wait.watch_processes(&[(agent("c-3"), no_process)])
                    .is_empty()
            );
        }
    }

    #[test]
    fn those_no_longer_wanted_are_let_go() {
        let mut wait = Wait::new().unwrap();
        let mut child = sleeper();
        wait.watch_processes(&[(agent("a-1"), child.id())]);
        wait.watch_processes(&[(agent("b-2"), child.id())]);
        assert_eq!(wait.processes.fds().count(), 1);
        child.kill().unwrap();
        assert_eq!(hints_until(&mut wait, &ended("b-2")), [ended("b-2")]);
        child.wait().unwrap();
    }

    #[test]
    fn more_than_the_open_files_allow_are_left_to_polling() {
        if elsewhere(
            "host::process_watch::tests::more_than_the_open_files_allow_are_left_to_polling",
        ) {
            return;
        }
        let mut limit = rustix::process::getrlimit(Resource::Nofile);
        limit.current = Some(KEPT_FREE + 2);
        rustix::process::setrlimit(Resource::Nofile, limit).unwrap();
        let mut wait = Wait::new().unwrap();
        let mut child = sleeper();
        let wanted: Vec<_> = (0..5)
            .map(|n| (agent(&format!("a-{n}")), child.id()))
            .collect();
        assert_eq!(wait.watch_processes(&wanted), wanted[2..]);
        let why = wait.fast_path().unwrap_err();
        assert!(
            why.contains("ends of 3 processes") && why.contains("ulimit"),
            "{why}"
        );
        child.kill().unwrap();
        assert_eq!(
            hints_until(&mut wait, &ended("a-1")),
            [ended("a-0"), ended("a-1")]
        );
        child.wait().unwrap();
        assert!(wait.watch_processes(&[]).is_empty());
        assert!(!wait.fast_path().is_err_and(|why| why.contains("processes")));
    }
}
