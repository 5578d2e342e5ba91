//! Waiting, with the signs of life that go on underneath it: a ping for the
//! service manager, a touch of the lock file.
//!
//! This file does not know what is waited for.

use std::time::Duration;

use crate::clock::{Clock, Time};
use crate::host::lock::Lock;
use crate::host::notify::Notify;
use crate::host::wait::Wait;

/// The wait and the signs of life.
pub struct Pulse {
    /// The one wait.
    pub wait: Wait,
    /// The way to the service manager.
    pub notify: Notify,
    /// The lock, where one is held.
    pub lock: Option<Lock>,
    clock: Clock,
    /// The longest distance of two turns: the lock is touched at least this often.
    poll: Duration,
    pinged: Time,
    touched: Time,
}

impl Pulse {
    /// A pulse that has not beaten yet.
    pub fn new(
        wait: Wait,
        notify: Notify,
        lock: Option<Lock>,
        clock: Clock,
        poll: Duration,
    ) -> Pulse {
        Pulse {
            wait,
            notify,
            lock,
            clock,
            poll,
            pinged: Time::default(),
            touched: Time::default(),
        }
    }

    /// Waits until something happens, at most `longest`, and gives signs of life.
    pub fn rest(&mut self, longest: Duration) {
        self.beat();
        let mut left = longest;
        if let Some(interval) = self.notify.interval() {
            left = left.min(self.pinged.plus(interval).since(self.clock.now()));
        }
        if self.lock.is_some() {
            left = left.min(self.touched.plus(self.poll).since(self.clock.now()));
        }
        self.wait.wait(left);
    }

    /// Writes down how it goes: the fast path, and how long a turn took.
    pub fn progress(&mut self, fast_path: Option<&Result<(), String>>, turn: Duration) {
        let fast_path = match fast_path {
            None => "",
            Some(Ok(())) => "on",
            Some(Err(why)) => why,
        };
        if let Some(lock) = &mut self.lock {
            lock.progress(fast_path, turn);
        }
    }

    /// Gives the signs of life that are due.
    pub fn beat(&mut self) {
        let now = self.clock.now();
        if self
            .notify
            .interval()
            .is_some_and(|i| now.since(self.pinged) >= i)
        {
            self.notify.watchdog();
            self.pinged = now;
        }
        if let Some(lock) = self
            .lock
            .as_ref()
            .filter(|_| now.since(self.touched) >= self.poll)
        {
            // On a disk that became read-only there is nothing to show it with.
            let _ = lock.touch();
            self.touched = now;
        }
    }
}
