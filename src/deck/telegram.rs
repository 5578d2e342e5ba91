//! Where a session is to listen to Telegram, and who listens there: agent-deck's
//! configuration and env files, and the processes of the plugin.
//!
//! Files are read, never run, links followed as agent-deck follows them; nothing
//! is waited for and little is read. This file does not know which session owns
//! a channel, nor what is done about one that hears nothing.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::json::Value;

mod cursor;
mod layers;
mod pollers;
mod shell;
mod sockets;
mod token;
mod toml;
mod words;

pub use layers::{declared, readable};
pub use pollers::{
    PS_ARGS, PS_ENV, PsRow, StateDir, environment, environment_args, environment_of, pollers,
    ps_rows,
};
pub use sockets::connections;
pub use token::token;

/// Longest file that is read.
const FILE_MOST: u64 = 1 << 20;
/// Longest path (Linux, limits.h).
const PATH_MOST: usize = 4096;

/// A folder as it is compared with others: without a trailing slash, `.` or a
/// CR that an env file left at its end, and with links followed as far as it exists.
pub fn normalised(path: &Path) -> PathBuf {
    let mut bytes = path.as_os_str().as_bytes();
    while let [rest @ .., b'\r'] = bytes {
        bytes = rest;
    }
    let path = Path::new(OsStr::from_bytes(bytes));
    // A relative one is not ours to follow; neither is what no system opens.
    match path.is_absolute() && bytes.len() <= PATH_MOST {
        true => followed(path),
        false => path.to_owned(),
    }
}

fn followed(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), _, _) => real,
        (Err(_), Some(parent), Some(name)) => followed(parent).join(name),
        // It ends in `..`.
        (Err(_), Some(parent), None) => {
            let mut folder = followed(parent);
            folder.pop();
            folder
        }
        (Err(_), None, _) => path.to_owned(),
    }
}

/// The plugin's default, below the agent's own configuration folder.
pub fn default_folder(config_dir: &Path) -> PathBuf {
    config_dir.join("channels/telegram")
}

/// Whether the agent's settings in `config_dir` have a plugin switched on.
/// `plugin` is a channel entry with or without its `plugin:`.
///
/// # Errors
/// When the settings are there and cannot be read.
pub fn plugin_enabled(config_dir: &Path, plugin: &str) -> Result<bool, String> {
    let file = config_dir.join("settings.json");
    let Some(text) = read(&file)? else {
        return Ok(false);
    };
    let settings: Value =
        crate::json::read(text.as_bytes()).map_err(|error| about(&file, error.line, "not JSON"))?;
    let plugin = plugin.strip_prefix("plugin:").unwrap_or(plugin);
    let enabled = settings
        .get("enabledPlugins")
        .and_then(|all| all.get(plugin));
    Ok(enabled.and_then(Value::as_bool) == Some(true))
}

/// What is wrong with a file, and in which line; 0: no line.
fn about(file: &Path, line: usize, why: &str) -> String {
    let file = file.to_string_lossy();
    match line {
        0 => [&*file, ": ", why].concat(),
        _ => [&*file, " line ", &line.to_string(), ": ", why].concat(),
    }
}

/// A plain file's text; bytes that are no UTF-8 become U+FFFD. `None` when
/// nothing is there.
///
/// # Errors
/// Names the file: not a plain file, too long, or not readable.
pub fn read(file: &Path) -> Result<Option<String>, String> {
    // NONBLOCK: opening a FIFO would wait for its other end.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(file);
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(_) => return Err(about(file, 0, "cannot be opened")),
    };
    if !opened.metadata().is_ok_and(|meta| meta.is_file()) {
        return Err(about(file, 0, "not a plain file"));
    }
    let mut bytes = Vec::new();
    match opened.take(FILE_MOST + 1).read_to_end(&mut bytes) {
        Ok(length) if length as u64 <= FILE_MOST => {}
        Ok(_) => return Err(about(file, 0, "more than 1 MiB")),
        Err(_) => return Err(about(file, 0, "cannot be read")),
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
#[path = "telegram/folder_tests.rs"]
mod tests;
