//! The lines of the three logs, rotated files included: read one after another,
//! never a whole file at once, and taken apart.
//!
//! A line that is torn or somebody else's is counted. This file does not know
//! what the lines tell together.

use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use super::{Failed, parts};
use crate::cli::Exit;
use crate::clock::{Time, wall_of};
use crate::host::folder;
use crate::host::logs::LINE_MAX;

/// The logs; the last one has lines for people.
pub const LOGS: [&str; 3] = ["restart.log", "escalations.log", "watchdog.log"];

/// Entries of one log that are kept, the newest ones. A bad night has hundreds.
const MOST: usize = 50_000;

/// The Python watchdog writes local time: so far off it may be at most.
const ZONES: Duration = Duration::from_secs(14 * 3600);

/// The place in its row of a file that is named and not read.
const NOT_READ: u64 = 0;

/// What an entry is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// The watchdog starts.
    Start,
    /// A restart is about to begin.
    Attempt,
    /// What came of it.
    Outcome,
    /// A session that reads dead, or is deaf, is left alone.
    Refusal,
    /// Somebody was told, or was to be told.
    Told,
    /// A child was asked to report.
    Nudge,
    /// A child changed its rung on the ladder.
    Rung,
    /// A child died.
    Death,
    /// A child is stopped, by the two opt-ins of the ladder's last rung.
    Stop,
    /// A session lives again.
    Alive,
    /// Anything else.
    #[default]
    Note,
    /// The watchdog ends.
    End,
}

impl Kind {
    /// The word for programs.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Start => "start",
            Kind::Attempt => "attempt",
            Kind::Outcome => "outcome",
            Kind::Refusal => "refusal",
            Kind::Told => "told",
            Kind::Nudge => "nudge",
            Kind::Rung => "rung",
            Kind::Death => "death",
            Kind::Stop => "stop",
            Kind::Alive => "alive",
            Kind::Note => "note",
            Kind::End => "end",
        }
    }

    fn rank(self) -> u8 {
        match self {
            Kind::Start | Kind::End => 0,
            Kind::Attempt | Kind::Outcome | Kind::Refusal | Kind::Stop => 1,
            Kind::Nudge | Kind::Rung | Kind::Death | Kind::Alive | Kind::Note => 2,
            Kind::Told => 3,
        }
    }
}

/// One line of a log.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// Wall time, as written.
    pub at: Time,
    /// What it is about.
    pub kind: Kind,
    /// Which log it stands in.
    pub log: &'static str,
    /// `info`, `warning` or `critical`; empty where the log has no such word.
    pub level: String,
    /// Full id of the session; empty when it is about none.
    pub session: String,
    /// Title of the session, or what else it is about.
    pub title: String,
    /// Profile; empty where the log does not say it.
    pub profile: String,
    /// It is about a poller.
    pub deaf: bool,
    /// The outcome, the rule of a refusal, or the rung that was reached.
    pub word: String,
    /// Keys of the episodes that were told, with blanks between them.
    pub episodes: String,
    /// The evidence, or the sentence.
    pub text: String,
    /// Id of the parent that was told, or could not be told, of its child.
    pub parent: String,
    /// Why a message did not go out.
    pub why: String,
    /// Of a start: the last line before it.
    pub before: Option<Time>,
}

impl Entry {
    /// Whether it is about the session of that id.
    pub fn is_about(&self, id: &str) -> bool {
        let of = |key: &str| {
            key.split_once(':')
                .is_some_and(|(_, subject)| subject == id)
        };
        self.session == id || self.parent == id || self.episodes.split(' ').any(of)
    }
}

/// What was read.
#[derive(Debug, Default)]
pub struct Lines {
    /// In the order of time.
    pub entries: Vec<Entry>,
    /// Lines that cannot be read.
    pub torn: u64,
    /// Lines by agent-deck's Python watchdog.
    pub foreign: u64,
    /// Lines that are dated later than the present.
    pub ahead: u64,
    /// Lines beyond what is kept.
    pub left_out: u64,
    /// Files that were not read, and why.
    pub unread: Vec<(String, String)>,
    /// Whether the watchdog ran before the period, and since when.
    pub before: Option<(bool, Time)>,
    /// Any log was there.
    pub any: bool,
    /// The last line of ours.
    last: Option<Time>,
    /// The last time in the log that is being read.
    near: Option<Time>,
}

/// What a line turned out to be.
pub enum Line {
    /// One of ours.
    Entry(Box<Entry>),
    /// One of ours that is only a sign of life.
    Quiet(Time),
    /// One by the Python watchdog, of about this time.
    Foreign(Time),
    /// Nothing that can be read.
    Torn,
}

/// Reads what the logs say since `from`. A folder that is not there says nothing.
///
/// # Errors
/// When the folder cannot be looked into.
pub fn read(path: &Path, from: Time, to: Time) -> Result<Lines, Failed> {
    let failed = |e: io::Error| Failed {
        exit: Exit::System,
        why: format!("{}: {e}", path.display()),
    };
    let mut lines = Lines::default();
    let files = match files(path, from) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(lines),
        files => files.map_err(failed)?,
    };
    // Opened before any is read, and none twice: they may be rotated meanwhile.
    let mut places = Vec::new();
    let mut open = Vec::new();
    for (log, order, name) in files {
        if order == NOT_READ {
            let why = why_not(&name).to_owned();
            lines.unread.push((name, why));
            continue;
        }
        lines.any = true;
        let opened = folder::open_read(&path.join(&name)).and_then(|file| {
            let place = folder::place(&file.metadata()?);
            Ok((file, place))
        });
        match opened {
            Ok((_, place)) if places.contains(&place) => {}
            Ok((file, place)) => {
                places.push(place);
                open.push((log, name, file));
            }
            Err(e) => lines.unread.push((name.clone(), reason(&e, path, &name))),
        }
    }
    for (at, log) in LOGS.into_iter().enumerate() {
        lines.near = None;
        let begin = lines.entries.len();
        for (_, name, file) in open.iter().filter(|(of, _, _)| *of == at) {
            if let Err(e) = each_line(file, &mut |line| lines.take(log, begin, line, from, to)) {
                lines.unread.push((name.clone(), e.to_string()));
            }
        }
        lines.bound(begin, MOST);
    }
    lines.order();
    Ok(lines)
}

/// The error without the path, which is said already.
fn reason(error: &io::Error, folder: &Path, name: &str) -> String {
    let text = error.to_string();
    let path = format!("{}: ", folder.join(name).display());
    text.strip_prefix(&path).unwrap_or(&text).to_owned()
}

/// The logs that are there, in the order of reading: which, how old in their row,
/// and the name.
fn files(path: &Path, from: Time) -> io::Result<Vec<(usize, u64, String)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let rest = |log: &str| Some(name.strip_prefix(log)?.to_owned());
        let Some((log, rest)) = LOGS
            .iter()
            .enumerate()
            .find_map(|(at, log)| Some((at, rest(log)?)))
        else {
            continue;
        };
        let number = rest.get(1..).and_then(|digits| digits.parse::<u64>().ok());
        let order = match (rest.as_bytes().first(), number) {
            (None, _) => u64::MAX,
            // The oldest has the highest number, or the earliest date.
            (Some(b'.'), Some(number)) => (u64::MAX - 1).saturating_sub(number),
            (Some(b'-'), Some(date)) => date.saturating_add(1),
            (Some(b'.' | b'-'), None) => {
                let changed = entry.metadata().and_then(|there| there.modified());
                // What was not touched since then cannot say anything of it.
                if !changed.is_ok_and(|at| wall_of(at) >= from) {
                    continue;
                }
                NOT_READ
            }
            (Some(_), _) => continue,
        };
        let file = (log, order, name);
        files.insert(files.partition_point(|known| *known < file), file);
    }
    Ok(files)
}

fn why_not(name: &str) -> &'static str {
    const COMPRESSED: [&str; 5] = [".gz", ".xz", ".zst", ".bz2", ".lz4"];
    match COMPRESSED.iter().any(|end| name.ends_with(end)) {
        true => "compressed",
        false => "not a name that rotated logs have",
    }
}

/// Calls `each` with every line, of which at most a byte more than [`LINE_MAX`]
/// is held.
fn each_line(file: &File, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    let mut input = BufReader::with_capacity(64 * 1024, file);
    let mut line = Vec::new();
    loop {
        let chunk = input.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        // A log that was cut off underneath its writer may begin with a hole.
        let hole = match line.is_empty() {
            true => part.iter().take_while(|byte| **byte == 0).count(),
            false => 0,
        };
        let room = LINE_MAX + 1 - line.len();
        line.extend_from_slice(&part[hole..part.len().min(hole + room)]);
        let used = end.map_or(chunk.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            each(&line);
            line.clear();
        }
    }
    if !line.is_empty() {
        each(&line);
    }
    Ok(())
}

impl Lines {
    /// One line of a log.
    fn take(&mut self, log: &'static str, begin: usize, line: &[u8], from: Time, to: Time) {
        let people = log == LOGS[2];
        let stamp = match people {
            true => line.get(..20),
            false => line
                .strip_prefix(b"{\"time\":\"")
                .and_then(|rest| rest.get(..20)),
        };
        let stamp = stamp.and_then(|text| Time::parse_rfc3339(std::str::from_utf8(text).ok()?));
        if let Some(at) = stamp.filter(|at| *at < from) {
            // Long past: only whether the watchdog ran is of interest.
            (self.near, self.last) = (Some(at), Some(at));
            if people && let Some(runs) = parts::runs(line) {
                self.before = Some((runs, at));
            }
            return;
        }
        if line.is_empty() {
            return;
        }
        let text = String::from_utf8_lossy(line);
        let read = match (line.len() > LINE_MAX, people) {
            (true, _) => Line::Torn,
            (false, true) => parts::people(&text, stamp, ZONES),
            (false, false) => parts::object(&text, log),
        };
        match read {
            Line::Torn if self.near.is_none_or(|near| near >= from) => self.torn += 1,
            Line::Foreign(at) if at >= from => self.foreign += 1,
            Line::Torn | Line::Foreign(_) => {}
            Line::Quiet(at) => (self.near, self.last) = (Some(at), Some(at)),
            Line::Entry(mut entry) => {
                self.ahead += u64::from(entry.at > to.plus(Duration::from_secs(60)));
                entry.before = self.last;
                (self.near, self.last) = (Some(entry.at), Some(entry.at));
                if entry.at >= from {
                    self.entries.push(*entry);
                    self.bound(begin, 2 * MOST);
                }
            }
        }
    }

    /// By time; within a second, acts come before words. Without twins.
    fn order(&mut self) {
        // A heap weighs a tenth of what `sort` does.
        let mut order = BinaryHeap::new();
        for (at, entry) in self.entries.iter().enumerate() {
            order.push((entry.at.0 / 1000, entry.kind.rank(), at));
        }
        let mut entries = std::mem::take(&mut self.entries);
        for (_, _, at) in order.into_sorted_vec() {
            let entry = std::mem::take(&mut entries[at]);
            if !is_twin(&self.entries, &entry) {
                self.entries.push(entry);
            }
        }
    }

    /// Keeps the newest entries behind `begin`, when there are more than `most`.
    fn bound(&mut self, begin: usize, most: usize) {
        let count = self.entries.len() - begin;
        if count > most {
            self.entries.drain(begin..begin + count - MOST);
            self.left_out += u64::try_from(count - MOST).unwrap_or(u64::MAX);
        }
    }
}

/// What stands in `restart.log` stands in `watchdog.log` too, a moment later.
/// It is needed only where the former lacks it.
fn is_twin(before: &[Entry], twin: &Entry) -> bool {
    const NEAR: Duration = Duration::from_secs(2);
    let acts = matches!(twin.kind, Kind::Attempt | Kind::Outcome | Kind::Refusal);
    if !acts || twin.log != LOGS[2] {
        return false;
    }
    for record in before.iter().rev().take(512) {
        if twin.at.since(record.at) > NEAR {
            break;
        }
        if record.log == LOGS[0]
            && (record.kind, &record.word) == (twin.kind, &twin.word)
            && (record.session == twin.session || twin.title.ends_with(&*record.session))
        {
            return true;
        }
    }
    false
}
