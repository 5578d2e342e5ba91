//! Passes that are killed with -9 at a certain point. Does not know what they do.
#![allow(clippy::unwrap_used)]

use std::mem::MaybeUninit;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

use super::common::{Deck, is_running};

/// Kills a pass after the `n`th change in the watchdog's folder or in the
/// ledger; says whether it got that far.
pub fn killed_at(deck: &Deck, n: usize) -> bool {
    let changes = init(CreateFlags::NONBLOCK).unwrap();
    let made = WatchFlags::CREATE | WatchFlags::MOVED_TO;
    let mask = made | WatchFlags::MODIFY | WatchFlags::ATTRIB;
    add_watch(&changes, deck.watchdog_dir(), mask).unwrap();
    add_watch(&changes, deck.file("ledger"), WatchFlags::MODIFY).unwrap();
    let mut run = deck.daemon_with(&["--once"]);
    let mut seen = 0;
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let glance = Timespec {
        tv_sec: 0,
        tv_nsec: 1_000_000,
    };
    while is_running(run.pid()) {
        let _ = poll(&mut [PollFd::new(&changes, PollFlags::IN)], Some(&glance));
        let mut events = Reader::new(&changes, &mut buffer);
        while events.next().is_ok() {
            seen += 1;
        }
        if seen >= n {
            run.crash();
            return true;
        }
    }
    false
}
