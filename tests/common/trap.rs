//! Forced behaviours of the stand-in. Does not know what they mean.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use super::Deck;

impl Deck {
    /// Begins a forced behaviour of a command (`tests/standin/traps.rs`).
    pub fn trap(&self, command: &str) -> Trap<'_> {
        Trap {
            deck: self,
            dir: self.file("traps").join(command),
            files: Vec::new(),
        }
    }

    /// Begins one for a single id, or a single profile of `list`.
    pub fn trap_for(&self, command: &str, key: &str) -> Trap<'_> {
        self.trap(&format!("{command}/{key}"))
    }

    /// Removes all traps of a command.
    pub fn no_trap(&self, command: &str) {
        let _lock = self.lock_traps();
        let _ = std::fs::remove_dir_all(self.file("traps").join(command));
    }

    fn lock_traps(&self) -> File {
        let lock = File::create(self.file("traps.lock")).unwrap();
        lock.lock().unwrap();
        lock
    }
}

/// A forced behaviour in the making; the files are in `tests/standin/traps.rs`.
#[must_use = "nothing is set before `set`"]
pub struct Trap<'a> {
    deck: &'a Deck,
    dir: PathBuf,
    files: Vec<(&'static str, Vec<u8>)>,
}

impl Trap<'_> {
    /// One of its files.
    pub fn with(mut self, file: &'static str, content: impl AsRef<[u8]>) -> Self {
        self.files.push((file, content.as_ref().to_vec()));
        self
    }

    /// Prints these bytes.
    pub fn stdout(self, bytes: impl AsRef<[u8]>) -> Self {
        self.with("stdout", bytes)
    }

    /// Ends with this code.
    pub fn exit(self, code: u8) -> Self {
        self.with("exit", code.to_string())
    }

    /// Waits before it works.
    pub fn delay(self, span: Duration) -> Self {
        self.with("delay_ms", span.as_millis().to_string())
    }

    /// Never answers.
    pub fn hang(self) -> Self {
        self.with("hang", "")
    }

    /// Is gone after so many uses.
    pub fn times(self, times: u32) -> Self {
        self.with("times", times.to_string())
    }

    /// Sets it, at once for all that look.
    pub fn set(self) {
        let _lock = self.deck.lock_traps();
        std::fs::create_dir_all(&self.dir).unwrap();
        for (name, content) in &self.files {
            std::fs::write(self.dir.join(name), content).unwrap();
        }
    }
}
