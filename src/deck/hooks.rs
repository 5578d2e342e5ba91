//! The files that agent-deck keeps about one session beside its database: the
//! hook record (contract 7), the spawn stamp and the spawn lock (contract 5.1).
//!
//! Other programs, containers among them, write into these folders: links are
//! not followed, nothing is waited for, little is read. Times are wall times.
//! This file does not know where the folders are, nor what the time is.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;
use rustix::process::{Pid, test_kill_process};

use super::places::{spawn_lock, spawn_stamp};
use super::processes::is_agent_deck;
use crate::clock::{Time, millis};
use crate::host::whole;
use crate::json::Value;
use crate::model::{HookRecord, Process, SessionId, Traces};

/// A record is no longer than this (agent-deck's own bound, contract 7.2).
const RECORD_MOST: u64 = 64 << 10;
/// A spawn lock holds a number.
const LOCK_MOST: u64 = 64;
/// agent-deck takes over a spawn lock that is older, even of a living holder (contract 5.1).
const LOCK_STALE: Duration = Duration::from_secs(120);

/// A hook record with everything that we read of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookFile {
    /// Event and time.
    pub record: HookRecord,
    /// `running`, `waiting`, `dead` or `starting`.
    pub status: String,
    /// The session id of the agent that sent the event, which may be another
    /// one than this session's (contract 6.9); empty when not said.
    pub session_id: String,
}

/// The hook record of one session, as far as there is a valid one.
pub fn hook_file(hooks: &Path, id: &SessionId) -> Option<HookFile> {
    let flat = hooks.join(format!("{id}.json"));
    let own = sandbox(hooks, id).join(format!("{id}.json"));
    let is_file = std::fs::symlink_metadata(&own).is_ok_and(|meta| !meta.is_symlink());
    let (meta, bytes) = read_small(if is_file { &own } else { &flat }, RECORD_MOST)?;
    let record: Value = crate::json::read(&bytes).ok()?;
    let status = text(&record, "status");
    if status.trim().is_empty() || !generation_fits(hooks, id, &text(&record, "hook_generation")) {
        return None;
    }
    // A record without a time is as old as its file.
    let written = record
        .get("ts")
        .and_then(Value::as_u64)
        .filter(|&ts| ts > 0);
    let at = match written {
        Some(seconds) => Time(seconds.saturating_mul(1000)),
        None => modified(&meta)?,
    };
    Some(HookFile {
        record: HookRecord {
            event: text(&record, "event"),
            at,
        },
        status,
        session_id: text(&record, "session_id"),
    })
}

/// A field's text; empty when it is missing or something else.
fn text(record: &Value, name: &str) -> String {
    record
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// Everything agent-deck left lying about one session. `now` is wall time, as
/// all times in the answer.
pub fn traces(hooks: &Path, locks: &Path, id: &SessionId, now: Time) -> Traces {
    let stamp = std::fs::symlink_metadata(spawn_stamp(locks, id)).ok();
    Traces {
        hook: hook_file(hooks, id).map(|file| file.record),
        spawned: stamp.as_ref().and_then(modified),
        spawn_lock: lock_holder(&spawn_lock(locks, id), now),
        sandboxed: sandbox(hooks, id).is_dir(),
        database_busy: false,
        unreadable: None,
    }
}

fn sandbox(hooks: &Path, id: &SessionId) -> PathBuf {
    hooks.join("sandbox").join(id.as_str())
}

/// A record belongs to the generation that a control file names, or to none
/// when there is no control file (contract 7.3). One that cannot be read, or
/// two that differ, fit nothing.
fn generation_fits(hooks: &Path, id: &SessionId, generation: &str) -> bool {
    let name = format!("{id}.generation.json");
    let mut named = None;
    for path in [sandbox(hooks, id).join(&name), hooks.join(&name)] {
        if std::fs::symlink_metadata(&path).is_err() {
            continue;
        }
        let control = read_small(&path, RECORD_MOST)
            .and_then(|(_, bytes)| crate::json::read(&bytes).ok())
            .map(|control| text(&control, "generation"))
            .filter(|control| !control.is_empty());
        let Some(control) = control else { return false };
        if named.as_ref().is_some_and(|other| *other != control) {
            return false;
        }
        named = Some(control);
    }
    generation == named.unwrap_or_default()
}

/// Who holds a spawn lock. agent-deck makes the file first and writes the
/// number then: a young lock without a number is held too, by 0.
fn lock_holder(path: &Path, now: Time) -> Option<u32> {
    let (meta, bytes) = read_small(path, LOCK_MOST)?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let pid: u32 = text[..digits].parse().unwrap_or(0);
    let stale = modified(&meta).is_none_or(|at| now.since(at) > LOCK_STALE);
    let held = match (pid, stale) {
        (0, stale) => !stale,
        (pid, false) => lives(pid),
        // Old, and the number may be somebody else's by now.
        (pid, true) => lives(pid) && runs_agent_deck(pid),
    };
    held.then_some(pid)
}

/// Whether there is a process of that number, whoever's.
fn lives(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| {
        matches!(
            test_kill_process(pid),
            Ok(()) | Err(rustix::io::Errno::PERM)
        )
    })
}

/// Where there is no `/proc` nothing is known, and agent-deck's rule stands.
fn runs_agent_deck(pid: u32) -> bool {
    let Ok(bytes) = whole::bytes(format!("/proc/{pid}/cmdline").as_ref()) else {
        return false;
    };
    let args = bytes
        .split(|&b| b == 0)
        .map(|arg| String::from_utf8_lossy(arg).into_owned());
    is_agent_deck(&Process {
        pid,
        args: args.collect(),
        ..Process::default()
    })
}

/// A regular file's content up to `most` bytes.
pub(super) fn read_small(path: &Path, most: u64) -> Option<(Metadata, Vec<u8>)> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).ok()?;
    let file: File = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some((meta, bytes))
}

fn modified(meta: &Metadata) -> Option<Time> {
    let at: SystemTime = meta.modified().ok()?;
    Some(Time(millis(
        at.duration_since(UNIX_EPOCH).unwrap_or_default(),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::os::unix::fs::symlink;

    const ID: &str = "1a2b3c4d-1755900000";

    fn id() -> SessionId {
        SessionId::parse(ID).unwrap()
    }

    fn record(ts: u64, extra: &str) -> String {
        format!("{{\"status\":\"waiting\",\"event\":\"Stop\",\"ts\":{ts}{extra}}}")
    }

    fn at(hooks: &Scratch) -> Option<u64> {
        hook_file(hooks.path(), &id()).map(|file| file.record.at.0 / 1000)
    }

    #[test]
    fn recorded_records_are_read() {
        for (bytes, event, status, seconds) in [
            (
                &include_bytes!("../../tests/recordings/hook-session-start.json")[..],
                "SessionStart",
                "waiting",
                1_796_058_020,
            ),
            (
                include_bytes!("../../tests/recordings/hook-user-prompt-submit.json"),
                "UserPromptSubmit",
                "running",
                1_796_058_021,
            ),
            (
                include_bytes!("../../tests/recordings/hook-session-end.json"),
                "SessionEnd",
                "dead",
                1_796_058_024,
            ),
        ] {
            let hooks = Scratch::new();
            hooks.write(&format!("{ID}.json"), bytes);
            let file = hook_file(hooks.path(), &id()).unwrap();
            assert_eq!(
                (file.record.event.as_str(), file.status.as_str()),
                (event, status)
            );
            assert_eq!(file.record.at, Time(seconds * 1000));
            assert_eq!(file.session_id, "46e83327-1325-44fc-9f41-03025de4a154");
        }
    }

    #[test]
    fn what_is_no_record_is_none() {
        let hooks = Scratch::new();
        assert_eq!(at(&hooks), None);
        let big = format!("{}{}", record(5, ""), " ".repeat(70_000));
        let nested = "[".repeat(60_000);
        for bytes in [
            "",
            "{}",
            "null",
            "\0",
            "{\"status\":\" \"}",
            "{\"status\":7}",
            &nested,
        ] {
            hooks.write(&format!("{ID}.json"), bytes);
            assert_eq!(at(&hooks), None, "{bytes:?}");
        }
        hooks.write(
            &format!("{ID}.json"),
            record(5, &format!(",\"cwd\":\"{}\"", "x".repeat(70_000))),
        );
        assert_eq!(at(&hooks), None);
        hooks.write(&format!("{ID}.json"), big);
        assert_eq!(at(&hooks), Some(5));
    }

    #[test]
    fn a_record_without_a_time_is_as_old_as_its_file() {
        let hooks = Scratch::new();
        let path = hooks.write(&format!("{ID}.json"), "{\"status\":\"waiting\",\"ts\":-3}");
        let when = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        File::open(&path).unwrap().set_modified(when).unwrap();
        assert_eq!(at(&hooks), Some(1_700_000_000));
    }

    #[test]
    fn the_sandboxed_record_is_preferred_unless_it_is_a_link() {
        let hooks = Scratch::new();
        hooks.write(&format!("{ID}.json"), record(1, ""));
        let own = hooks.write(&format!("sandbox/{ID}/{ID}.json"), record(2, ""));
        assert_eq!(at(&hooks), Some(2));
        assert!(traces(hooks.path(), hooks.path(), &id(), Time(0)).sandboxed);
        std::fs::remove_file(&own).unwrap();
        symlink(hooks.write("elsewhere", record(3, "")), &own).unwrap();
        assert_eq!(at(&hooks), Some(1));
    }

    #[test]
    fn links_pipes_and_folders_are_not_read() {
        let hooks = Scratch::new();
        let path = hooks.path().join(format!("{ID}.json"));
        symlink(hooks.write("elsewhere", record(3, "")), &path).unwrap();
        assert_eq!(at(&hooks), None);
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_eq!(at(&hooks), None);
        #[cfg(target_os = "linux")]
        {
            std::fs::remove_dir(&path).unwrap();
            rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
            assert_eq!(at(&hooks), None);
        }
    }

    #[test]
    fn a_record_of_another_generation_is_none() {
        let control = format!("{ID}.generation.json");
        let scoped = format!("sandbox/{ID}/{ID}.generation.json");
        for (files, of_record, valid) in [
            (&[][..], "", true),
            (&[], "g1", false),
            (&[(&control, "g1")], "g1", true),
            (&[(&control, "g1")], "g2", false),
            (&[(&control, "g1")], "", false),
            (&[(&scoped, "g1")], "g1", true),
            (&[(&scoped, "g1"), (&control, "g1")], "g1", true),
            (&[(&scoped, "g1"), (&control, "g2")], "g1", false),
            (&[(&control, "")], "", false),
        ] {
            let hooks = Scratch::new();
            for (name, generation) in files {
                hooks.write(name, format!("{{\"generation\":\"{generation}\"}}"));
            }
            let extra = format!(",\"hook_generation\":\"{of_record}\"");
            hooks.write(&format!("{ID}.json"), record(1, &extra));
            assert_eq!(at(&hooks).is_some(), valid, "{files:?} {of_record}");
        }
        let hooks = Scratch::new();
        hooks.write(&format!("{ID}.json"), record(1, ""));
        hooks.write(&control, "garbage");
        assert_eq!(at(&hooks), None);
    }

    #[test]
    fn the_stamp_tells_the_last_spawn() {
        let folder = Scratch::new();
        let spawned = || traces(folder.path(), folder.path(), &id(), Time(0)).spawned;
        assert_eq!(spawned(), None);
        let path = folder.write(&format!("instance-spawn-{ID}.stamp"), "");
        let when = UNIX_EPOCH + Duration::from_millis(1_700_000_000_250);
        File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(when)
            .unwrap();
        assert_eq!(spawned(), Some(Time(1_700_000_000_250)));
    }

    #[test]
    fn a_spawn_lock_is_held_by_a_living_process() {
        let folder = Scratch::new();
        let path = folder.write(&format!("instance-spawn-{ID}.lock"), "");
        let made = modified(&std::fs::metadata(&path).unwrap()).unwrap();
        let holder = |content: &str, age: u64| {
            std::fs::write(&path, content).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(UNIX_EPOCH + Duration::from_millis(made.0))
                .unwrap();
            let now = made.plus(Duration::from_secs(age));
            traces(folder.path(), folder.path(), &id(), now).spawn_lock
        };
        let me = std::process::id();
        assert_eq!(holder(&me.to_string(), 0), Some(me));
        assert_eq!(holder(&format!(" {me}\n"), 120), Some(me));
        // Alive, but no agent-deck: the number has been given anew.
        assert_eq!(holder(&me.to_string(), 121), None);
        // Made, and the number not yet written.
        assert_eq!((holder("", 1), holder("", 121)), (Some(0), None));
        assert_eq!((holder("x", 1), holder("-1", 1)), (Some(0), Some(0)));
        // Numbers that no process has.
        assert_eq!(
            (holder("4294967295", 1), holder("2147483647", 1)),
            (None, None)
        );
        std::fs::remove_file(&path).unwrap();
        assert_eq!(
            traces(folder.path(), folder.path(), &id(), made).spawn_lock,
            None
        );
    }
}
