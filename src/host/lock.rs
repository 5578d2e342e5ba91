//! Who runs: the lock file of our folder, and locks on other folders.
//!
//! What counts is the lock that the system holds for us, never the number in
//! the file: that may by now be anybody's. This file does not know what its
//! holder does, nor how long a newcomer tries.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;

use super::folder::{self, named};
use crate::clock::millis;
use crate::json::{Json as _, Value};
use crate::stored::{Restored, Stored, stored};

/// Longest content of a lock file that is read; ours has about 1000 bytes, and
/// more where settings are long.
const HOLDER_MAX: u64 = 65_536;

/// The line is filled up to this many columns: it has about 180, and more where
/// a reason is long.
const LINE: usize = 1000;
/// Characters of that reason.
const REASON: usize = 500;

/// How the holder works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Stays.
    Daemon,
    /// One pass.
    Once,
}

impl Stored for Mode {
    fn blank() -> Mode {
        Mode::Daemon
    }

    fn store(&mut self) -> Value {
        match self {
            Mode::Daemon => "daemon",
            Mode::Once => "once",
        }
        .json()
    }

    fn restore(&mut self, value: &Value) -> Restored {
        *self = match value.as_str() {
            Some("daemon") => Mode::Daemon,
            Some("once") => Mode::Once,
            _ => return Err(""),
        };
        Ok(())
    }
}

stored! {
    /// What the lock file says about its holder, one line of JSON.
    pub struct Holder {
        /// Its process number, for people.
        pub pid: u32,
        /// How it works.
        pub mode: Mode,
        /// Seconds between two looks at the deck.
        pub poll_s: u64,
        /// When it began, RFC 3339.
        pub since: String,
        /// Version of the program.
        pub version: String,
        /// `on`, or what is left to polling and why; empty: not known (yet).
        pub fast_path: String,
        /// The settings that it was given, as `NAME=value`; older versions did not
        /// write them down.
        pub given: Option<Vec<String>>,
        /// Milliseconds that a turn takes, roughly; nothing: not known (yet).
        pub turn_ms: u64,
    }
}

/// Why a lock was not taken.
#[derive(Debug)]
pub enum NotTaken {
    /// Another process holds it; what it wrote down, if that can be read.
    Held(Option<Holder>),
    /// The system failed us; the text names the path.
    Failed(io::Error),
}

impl fmt::Display for NotTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotTaken::Held(Some(holder)) => {
                let mode = match holder.mode {
                    Mode::Daemon => "the daemon",
                    Mode::Once => "a --once run",
                };
                let since = super::logs::escape(&holder.since);
                write!(
                    f,
                    "held by {mode} with process number {}, since {since}",
                    holder.pid
                )
            }
            NotTaken::Held(None) => f.write_str("held by another process"),
            NotTaken::Failed(error) => write!(f, "{error}"),
        }
    }
}

/// The lock file, held until this value is dropped.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    file: File,
    holder: Holder,
}

impl Lock {
    /// Takes the lock and writes down who holds it. Does not wait.
    ///
    /// A line that cannot be written (disk full) is not an error: the lock
    /// holds all the same.
    ///
    /// # Errors
    /// When another process holds it, or the file cannot be had.
    pub fn take(path: &Path, holder: &Holder) -> Result<Lock, NotTaken> {
        // A few times, since whoever held it may remove or replace the file
        // between our opening and our locking it.
        for _ in 0..10 {
            let file = folder::open_in_place(path).map_err(NotTaken::Failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(NotTaken::Held(read_holder(path).ok()));
                }
                Err(TryLockError::Error(e)) => return Err(NotTaken::Failed(named(path, &e))),
            }
            let mut lock = Lock {
                path: path.to_owned(),
                file,
                holder: holder.clone(),
            };
            if lock.still_ours() {
                let _ = lock.write_down();
                return Ok(lock);
            }
        }
        Err(NotTaken::Failed(io::Error::other(format!(
            "{}: is replaced all the time",
            path.display()
        ))))
    }

    /// Shows a sign of life: the file's modification time is the present.
    ///
    /// # Errors
    /// When the system refuses, such as on a disk that became read-only.
    pub fn touch(&self) -> io::Result<()> {
        self.file.set_modified(SystemTime::now())
    }

    /// Whether the file at the path is still the one that is locked. If not,
    /// another process may hold the new one.
    pub fn still_ours(&self) -> bool {
        match (fs::symlink_metadata(&self.path), self.file.metadata()) {
            (Ok(there), Ok(held)) => folder::place(&there) == folder::place(&held),
            (Err(_), _) | (_, Err(_)) => false,
        }
    }

    /// Writes down how it goes, where that is news: another fast path, or a turn
    /// that took less than half or more than twice of what is written there, so
    /// that idle turns write nothing. What cannot be written is left.
    pub fn progress(&mut self, fast_path: &str, turn: Duration) {
        let turn = millis(turn).max(1);
        let known = self.holder.turn_ms;
        let alike = turn <= known.saturating_mul(2) && known <= turn.saturating_mul(2);
        let fast_path: String = fast_path.chars().take(REASON).collect();
        if alike && self.holder.fast_path == fast_path {
            return;
        }
        self.holder.fast_path = fast_path;
        self.holder.turn_ms = turn;
        let _ = self.write_down();
    }

    /// One write over the whole line, so that who reads meanwhile finds the old
    /// one or the new one.
    fn write_down(&mut self) -> io::Result<()> {
        let line = format!("{:<LINE$}\n", self.holder.store().to_string());
        self.file.write_all_at(line.as_bytes(), 0)?;
        self.file
            .set_len(u64::try_from(line.len()).unwrap_or(u64::MAX))
    }
}

/// What the lock file says, whether it is held or was left behind.
///
/// # Errors
/// When there is none, or it cannot be read or understood.
pub fn read_holder(path: &Path) -> io::Result<Holder> {
    let line = folder::read_small(path, HOLDER_MAX)?;
    let json = crate::json::read(&line).map_err(|e| io::Error::other(e.to_string()))?;
    let mut holder = Holder::blank();
    match holder.restore(&json) {
        Ok(()) => Ok(holder),
        Err(field) => Err(io::Error::other(format!(
            "{}: no {field:?}",
            path.display()
        ))),
    }
}

/// Locks a folder itself, until the returned file is dropped. Writes nothing.
///
/// # Errors
/// When another process holds it, or it is no folder that can be opened.
pub fn lock_folder(path: &Path) -> Result<File, NotTaken> {
    let failed = |e: io::Error| NotTaken::Failed(named(path, &e));
    let flags = OFlags::DIRECTORY | OFlags::NONBLOCK;
    let folder = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(failed)?;
    match folder.try_lock() {
        Ok(()) => Ok(folder),
        Err(TryLockError::WouldBlock) => Err(NotTaken::Held(None)),
        Err(TryLockError::Error(e)) => Err(failed(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::{Scratch, until};

    /// Takes it once it is free: a child that another test is just starting may
    /// share a dropped lock for a moment.
    fn take(path: &Path, pid: u32) -> Lock {
        let mut lock = None;
        until("the lock is free", || {
            lock = Lock::take(path, &holder(pid)).ok();
            lock.is_some()
        });
        lock.unwrap()
    }

    fn holder(pid: u32) -> Holder {
        Holder {
            pid,
            mode: Mode::Daemon,
            poll_s: 5,
            since: "2026-11-30T22:00:05Z".to_owned(),
            version: "0.1.0".to_owned(),
            fast_path: String::new(),
            given: None,
            turn_ms: 0,
        }
    }

    #[test]
    fn only_one_holds_it_and_the_other_learns_who() {
        let scratch = Scratch::new();
        let path = scratch.join("lock");
        let lock = Lock::take(&path, &holder(4711)).unwrap();
        let refusal = Lock::take(&path, &holder(1)).unwrap_err();
        assert!(
            refusal
                .to_string()
                .contains("the daemon with process number 4711"),
            "{refusal}"
        );
        assert!(matches!(refusal, NotTaken::Held(Some(other)) if other == holder(4711)));
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.trim_end().ends_with('}')
                && text.ends_with('\n')
                && text.contains(r#""mode":"daemon""#),
            "{text}"
        );
        drop(lock);
        let _lock = take(&path, 2);
        assert_eq!(read_holder(&path).unwrap(), holder(2));
    }

    #[test]
    fn how_it_goes_is_written_down_when_it_is_news() {
        let scratch = Scratch::new();
        let path = scratch.join("lock");
        let mut lock = Lock::take(&path, &holder(1)).unwrap();
        let ms = Duration::from_millis;
        for (took, fast_path, written) in [
            (50, "on", 50),
            (99, "on", 50),
            (26, "on", 50),
            (101, "on", 101),
            (40, "on", 40),
            (41, "no inotify", 41),
            (0, "on", 1),
        ] {
            lock.progress(fast_path, ms(took));
            let found = read_holder(&path).unwrap();
            assert_eq!(
                (found.turn_ms, found.fast_path.as_str()),
                (written, fast_path)
            );
        }
        lock.progress(&"x".repeat(5000), ms(1));
        assert_eq!(read_holder(&path).unwrap().fast_path.len(), REASON);
        lock.progress("on", ms(1));
        assert_eq!(read_holder(&path).unwrap().fast_path, "on");
    }

    #[test]
    fn a_line_of_an_older_version_says_less() {
        let scratch = Scratch::new();
        let path = scratch.join("lock");
        let line = r#"{"mode":"daemon","pid":7,"poll_s":5,"since":"x","version":"0.1.0"}"#;
        fs::write(&path, line).unwrap();
        assert_eq!(read_holder(&path).unwrap().fast_path, "");
    }

    #[test]
    fn a_left_behind_file_of_any_content_is_no_obstacle() {
        let scratch = Scratch::new();
        let path = scratch.join("lock");
        for content in ["", "4711\n", "{\"pid\":1", &"x".repeat(100_000)] {
            fs::write(&path, content).unwrap();
            assert!(read_holder(&path).is_err());
            let _lock = take(&path, 3);
            assert_eq!(read_holder(&path).unwrap(), holder(3));
        }
    }

    #[test]
    fn an_unreadable_line_of_the_holder_does_not_hide_that_it_is_held() {
        let scratch = Scratch::new();
        let path = scratch.join("lock");
        let _lock = Lock::take(&path, &holder(1)).unwrap();
        fs::write(&path, "garbage").unwrap();
        assert!(matches!(
            Lock::take(&path, &holder(2)),
            Err(NotTaken::Held(None))
        ));
    }

    #[test]
    fn a_removed_or_replaced_file_is_noticed() {
        let scratch = Scratch::new();
        let path = scratch.join("lock");
        let lock = Lock::take(&path, &holder(1)).unwrap();
        assert!(lock.still_ours());
        lock.touch().unwrap();
        fs::remove_file(&path).unwrap();
        assert!(!lock.still_ours());
        let second = Lock::take(&path, &holder(2)).unwrap();
        assert!(!lock.still_ours() && second.still_ours());
    }

    #[test]
    fn a_touch_is_a_sign_of_life() {
        let scratch = Scratch::new();
        let path = scratch.join("lock");
        let lock = Lock::take(&path, &holder(1)).unwrap();
        lock.file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        lock.touch().unwrap();
        let age = fs::metadata(&path)
            .unwrap()
            .modified()
            .unwrap()
            .elapsed()
            .unwrap_or_default();
        assert!(age.as_secs() < 3600, "{age:?}");
    }

    #[test]
    fn folders_are_locked_by_what_they_are_not_by_their_spelling() {
        let scratch = Scratch::new();
        let folder = scratch.join("profile");
        fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink(&folder, scratch.join("other-spelling")).unwrap();
        let held = lock_folder(&folder).unwrap();
        for spelling in ["profile", "profile/", "other-spelling"] {
            let second = lock_folder(&scratch.join(spelling));
            assert!(matches!(second, Err(NotTaken::Held(None))), "{spelling}");
        }
        drop(held);
        until("the folder is free", || lock_folder(&folder).is_ok());
        fs::write(scratch.join("file"), "").unwrap();
        for no_folder in ["file", "missing"] {
            let refusal = lock_folder(&scratch.join(no_folder)).unwrap_err();
            assert!(refusal.to_string().contains(no_folder), "{refusal}");
        }
    }
}
