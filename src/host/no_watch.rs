//! Stands in for inotify and pidfds on systems that have neither: watches
//! nothing and says so. Polling finds everything, later.

use std::os::fd::BorrowedFd;
use std::path::Path;

use super::hints::{Hints, Watched};

/// Watches no folder.
#[derive(Debug)]
pub struct FolderWatch;

impl FolderWatch {
    pub fn new() -> FolderWatch {
        FolderWatch
    }

    pub fn watch(&mut self, _hooks: &Path, _watchdog: &Path, _hints: &mut Hints) {}

    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    pub fn read(&mut self, _hints: &mut Hints) {}

    pub fn notices(&self) -> bool {
        false
    }

    pub fn trouble(&self) -> Option<String> {
        Some("hooks are left to polling: no inotify on this system".to_owned())
    }
}

/// Watches no process.
#[derive(Debug)]
pub struct ProcessWatch;

impl ProcessWatch {
    pub fn new() -> ProcessWatch {
        ProcessWatch
    }

    pub fn watch(&mut self, wanted: &[(Watched, u32)], _hints: &mut Hints) -> Vec<(Watched, u32)> {
        wanted.to_vec()
    }

    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::empty()
    }

    pub fn ended(&mut self, _ended: &[bool], _hints: &mut Hints) {}

    pub fn watches(&self, _pid: u32) -> bool {
        false
    }

    pub fn trouble(&self) -> Option<String> {
        Some("ends of processes are left to polling: no pidfds on this system".to_owned())
    }
}
