//! Telegram pollers, and the folder that a session's poller should have.
//!
//! This file does not know how any of it is found out.

use std::path::PathBuf;

use super::Digest;

/// What the configuration says of a session's `TELEGRAM_STATE_DIR` (contract 8.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Declared {
    /// Nothing declares it.
    Nothing,
    /// This folder, normalised.
    Folder(PathBuf),
    /// It cannot be said with certainty; file, line and why, without a secret.
    Unknown(String),
}

/// What is known of the folder that a session's poller should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telegram {
    /// By the configuration.
    pub declared: Declared,
    /// By the living agent's environment, normalised. Outer `None`: not seen;
    /// inner `None`: seen, and not set there.
    pub environment: Option<Option<PathBuf>>,
    /// Where the plugin keeps its state when nothing is set.
    pub default: PathBuf,
    /// SHA-256 of the bot's token in that folder, where there is one.
    pub token: Option<Digest>,
}

/// A process that polls Telegram: the topmost one of its tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poller {
    /// Process number.
    pub pid: u32,
    /// The processes above it, nearest first.
    pub ancestors: Vec<u32>,
    /// `TELEGRAM_STATE_DIR` in its environment, normalised; `None`: not set.
    pub folder: Option<PathBuf>,
    /// It or a process below it has an established connection; `None`: that
    /// cannot be seen.
    pub connected: Option<bool>,
}

/// All pollers of this user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pollers {
    /// One a tree.
    pub all: Vec<Poller>,
    /// Some process of this machine has an established connection to elsewhere.
    pub network: bool,
}
