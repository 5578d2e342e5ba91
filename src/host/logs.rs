//! Three logs: lines for people, and two with one JSON object per line.
//!
//! One write per line, bounded, without a character that could be taken for
//! another line or for a command to a terminal. A failing log never stops
//! anything: what could not be written is kept for a while and written later, what
//! is lost is counted, and both are said once. This file does not know what is
//! worth a line.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::clock::Time;
use crate::json::{Map, Value};
use crate::model::Level;

use super::folder;

/// Longest line in bytes, its end included.
pub const LINE_MAX: usize = 16 * 1024;

/// Size in bytes at which a log that nobody rotates becomes `.1` (DESIGN 2.3).
const LOG_MAX: u64 = 8 * 1024 * 1024;

/// Bytes that are kept of each text in a JSON object that is too long.
const TEXT_MAX: usize = 512;

/// Entries that are kept of each list in a JSON object that is too long.
const LIST_MAX: usize = 16;

/// Bytes of lines that could not be written and are kept: some dozen.
const KEPT_MAX: usize = 16 * LINE_MAX;

/// Stands where something was left out.
const CUT: &str = "[cut]";

/// The three logs of the watchdog's folder.
#[derive(Debug)]
pub struct Logs {
    watchdog: Log,
    restart: Log,
    escalations: Log,
}

impl Logs {
    /// Opens nothing yet: a log that nobody writes to does not come into being.
    pub fn new(folder: &Path) -> Logs {
        let log = |name: &str| Log::new(folder.join(name));
        Logs {
            watchdog: log("watchdog.log"),
            restart: log("restart.log"),
            escalations: log("escalations.log"),
        }
    }

    /// A line for people in `watchdog.log`, such as
    /// `2026-11-30T22:00:05Z WARNING conductor-ops 1a2b3c4d-1755900000: died`.
    /// `at` is wall time.
    pub fn note(&mut self, at: Time, level: Level, subject: &str, sentence: &str) {
        let level = level.word().to_ascii_uppercase();
        self.watchdog
            .write(&plain_line(at, &level, subject, sentence));
    }

    /// As [`Logs::note`], for what only `--verbose` wants; its level is `DETAIL`.
    pub fn detail(&mut self, at: Time, subject: &str, sentence: &str) {
        self.watchdog
            .write(&plain_line(at, "DETAIL", subject, sentence));
    }

    /// An object in `restart.log`, with `time` in front. `at` is wall time.
    pub fn restart(&mut self, at: Time, object: Map) {
        self.restart.write(&json_line(at, object));
    }

    /// An object in `escalations.log`, with `time` in front. `at` is wall time.
    pub fn escalation(&mut self, at: Time, object: Map) {
        self.escalations.write(&json_line(at, object));
    }

    /// Opens the files anew with the next line, as somebody asks for who has
    /// rotated them.
    pub fn reopen(&mut self) {
        for log in self.all() {
            log.file = None;
        }
    }

    /// What began or ceased to go wrong since this was last asked.
    pub fn trouble(&mut self) -> Option<String> {
        let news: Vec<String> = self.all().into_iter().filter_map(Log::news).collect();
        (!news.is_empty()).then(|| news.join("; "))
    }

    fn all(&mut self) -> [&mut Log; 3] {
        [&mut self.watchdog, &mut self.restart, &mut self.escalations]
    }
}

/// One file.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    file: Option<File>,
    /// Lines that could not be written yet, oldest first, each with its end.
    kept: String,
    /// Why the last line was not written; `None` when it was.
    failure: Option<String>,
    /// Lines lost since this was last told.
    lost: u64,
    /// The failure that was last told.
    told: Option<String>,
}

impl Log {
    fn new(path: PathBuf) -> Log {
        Log {
            path,
            file: None,
            kept: String::new(),
            failure: None,
            lost: 0,
            told: None,
        }
    }

    /// Appends one line, after those that are still to be written.
    fn write(&mut self, line: &str) {
        if self.kept.len() + line.len() < KEPT_MAX {
            self.kept.push_str(line);
            self.kept.push('\n');
        } else {
            self.lost = self.lost.saturating_add(1);
        }
        self.catch_up();
    }

    /// Writes the lines that are still to be written.
    fn catch_up(&mut self) {
        while let Some(end) = self.kept.find('\n') {
            let line = self.kept[..=end].to_owned();
            if let Err(e) = self.try_write(&line) {
                self.failure = Some(e.to_string());
                return;
            }
            self.failure = None;
            self.kept.drain(..=end);
        }
    }

    fn try_write(&mut self, line: &str) -> io::Result<()> {
        let name = self.path.display().to_string();
        let named = |e: io::Error| io::Error::new(e.kind(), format!("{name}: {e}"));
        let mut file = self.opened()?;
        let mut bytes = Vec::with_capacity(line.len() + 1);
        if lacks_end(file).map_err(named)? {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(line.as_bytes());
        let written = file.write(&bytes).map_err(named)?;
        if written < bytes.len() {
            return Err(io::Error::other(format!(
                "{name}: no room for a whole line"
            )));
        }
        Ok(())
    }

    /// The file that the path leads to now, with room for a line.
    fn opened(&mut self) -> io::Result<&File> {
        let held = match self.file.take() {
            Some(file) if is_at(&file, &self.path) => file,
            Some(_) | None => folder::open_append(&self.path)?,
        };
        let file = if held.metadata()?.len() < LOG_MAX {
            held
        } else {
            let mut full = self.path.clone().into_os_string();
            full.push(".1");
            fs::rename(&self.path, &full).map_err(|e| {
                let name = self.path.display();
                io::Error::new(
                    e.kind(),
                    format!("{name}: full, and cannot be renamed: {e}"),
                )
            })?;
            folder::open_append(&self.path)?
        };
        Ok(self.file.insert(file))
    }

    /// What is to be told, once.
    fn news(&mut self) -> Option<String> {
        self.catch_up();
        let name = self
            .path
            .file_name()
            .unwrap_or_default()
            .display()
            .to_string();
        if let Some(failure) = &self.failure {
            let news = self.told != self.failure;
            self.told = Some(failure.clone());
            return news.then(|| format!("{name} cannot be written: {failure}"));
        }
        let lost = std::mem::take(&mut self.lost);
        match self.told.take() {
            Some(_) => Some(format!("{name} can be written again, lines lost: {lost}")),
            None if lost > 0 => Some(format!("{name} could not be written, lines lost: {lost}")),
            None => None,
        }
    }
}

/// Whether the path still leads to the open file: it does not after a rotation.
fn is_at(file: &File, path: &Path) -> bool {
    match (fs::symlink_metadata(path), file.metadata()) {
        (Ok(there), Ok(held)) => folder::place(&there) == folder::place(&held),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

/// Whether the last line was cut off, by a full disk or a crash.
fn lacks_end(file: &File) -> io::Result<bool> {
    let size = file.metadata()?.size();
    let mut last = [b'\n'];
    if size > 0 {
        // Nothing read: shortened underneath us just now.
        file.read_at(&mut last, size - 1)?;
    }
    Ok(last != [b'\n'])
}

fn plain_line(at: Time, level: &str, subject: &str, sentence: &str) -> String {
    let subject = if subject.is_empty() {
        "watchdog"
    } else {
        subject
    };
    let line = format!(
        "{} {level} {}: {}",
        at.rfc3339(),
        escape(subject),
        escape(sentence)
    );
    cut(line, LINE_MAX - 1)
}

fn json_line(at: Time, mut object: Map) -> String {
    // What stands around the object: the time, braces, the line's end.
    const FRAME: usize = 64;
    object.retain(&mut |key, _| key != "time");
    let mut text = json_object(&object);
    if text.len() > LINE_MAX - FRAME {
        object.values_mut().for_each(shorten);
        text = json_object(&object);
    }
    if text.len() > LINE_MAX - FRAME {
        // Too many parts: keep the short ones, as long as they fit.
        let mut room = LINE_MAX / 2;
        object.retain(&mut |key, value| {
            let length = key.len() + json(value).len() + 4;
            let fits = length < TEXT_MAX && length < room;
            room -= if fits { length } else { 0 };
            fits
        });
        object.insert("cut".to_owned(), Value::Bool(true));
        text = json_object(&object);
    }
    let comma = if object.is_empty() { "" } else { "," };
    let rest = text.strip_prefix('{').unwrap_or("}");
    format!("{{\"time\":\"{}\"{comma}{rest}", at.rfc3339())
}

fn json_object(object: &Map) -> String {
    json(&Value::Object(object.clone()))
}

fn json(value: &Value) -> String {
    plain_json(&value.to_string())
}

/// JSON in which invisible characters are written as `\u....`. They can only
/// stand inside texts, where that means the same.
pub fn plain_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match is_hidden(c) || c == '\u{7f}' {
            true => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => text.push(c),
        }
    }
    text
}

/// Cuts every text and list in a value.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => *text = cut(std::mem::take(text), TEXT_MAX),
        Value::Array(items) => {
            if items.len() > LIST_MAX {
                items.truncate(LIST_MAX);
                items.push(Value::String(CUT.to_owned()));
            }
            items.iter_mut().for_each(shorten);
        }
        Value::Object(object) => object.values_mut().for_each(shorten),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// At most `max` bytes, never ending inside a character, with a mark at the cut.
fn cut(mut text: String, max: usize) -> String {
    if text.len() > max {
        let mut end = max.saturating_sub(CUT.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(CUT);
    }
    text
}

/// The text on one line, with nothing in it that a terminal would obey or that
/// a reader cannot see.
pub fn escape(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if c.is_ascii_control() => shown.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if is_hidden(c) => shown.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => shown.push(c),
        }
    }
    shown
}

/// C1 controls, direction marks and line separators beyond ASCII.
fn is_hidden(c: char) -> bool {
    matches!(c, '\u{80}'..='\u{9f}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
#[path = "logs_tests.rs"]
mod tests;
