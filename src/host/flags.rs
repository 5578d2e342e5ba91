//! What the user put down as files: opt-ins, holds, a pause, requests.
//!
//! A flag's name is an exact full id, and its being there is what counts. A
//! hold or pause may name a time until which it counts. What cannot be read
//! holds back: nothing is done that the user may have forbidden. This file does
//! not know what the flags lead to.

use std::fs;
use std::io;
use std::path::Path;

use crate::clock::{Clock, Time};
use crate::model::{Flags, Pause, SessionId};

use super::folder;
use super::logs::escape;

/// Folders with one file per session.
pub const FOLDERS: [&str; 4] = [AUTORESTART, AUTOSTOP, HOLD, CLEAR];

/// Name of the file that holds everything back.
pub const PAUSE: &str = "pause";

/// Folder of the files that make a session critical.
pub const AUTORESTART: &str = "autorestart";
/// Folder of the files that let a session be stopped by the ladder's last rung.
pub const AUTOSTOP: &str = "autostop";
/// Folder of the files that hold a session.
pub const HOLD: &str = "hold";
/// Folder of the requests to forget failures.
pub const CLEAR: &str = "clear";

/// Longest content that is looked at for a time; a stamp has 20 to 35 bytes.
const CONTENT_MAX: u64 = 4096;

/// Most entries of one folder that are looked at. A deck has hundreds.
const ENTRIES_MAX: usize = 10_000;

/// Reads the flags in the watchdog's folder that are in force.
///
/// Their ends come back on the line of `clock`. A hold folder that is there and
/// cannot be read counts as a pause: anybody may be held.
pub fn read(folder: &Path, clock: &Clock) -> Flags {
    let now = clock.now();
    let wall = Time(clock.reading().wall);
    // The clocks are read to the millisecond, an end names whole seconds.
    let here = |end| Time((clock.from_wall(end).0 + 500) / 1000 * 1000);
    // Outer `None`: expired. Inner `None`: without an end.
    let in_force = |path: &Path| match until(path) {
        Some(end) if end <= wall => None,
        Some(end) => Some(Some(here(end))),
        None => Some(None),
    };
    let mut flags = Flags {
        autorestart: ids(&folder.join(AUTORESTART)).unwrap_or_default(),
        autostop: ids(&folder.join(AUTOSTOP)).unwrap_or_default(),
        clear: ids(&folder.join(CLEAR)).unwrap_or_default(),
        hold: Vec::new(),
        trouble: None,
        pause: pause(&folder.join(PAUSE), clock, &in_force),
    };
    let hold = folder.join(HOLD);
    match ids(&hold) {
        Ok(ids) => {
            let held = |id: SessionId| Some((id.clone(), in_force(&hold.join(id.as_str()))?));
            flags.hold = ids.into_iter().filter_map(held).collect();
        }
        Err(why) => {
            flags.trouble = Some(format!("{}: {why}", hold.display()));
            flags.pause.get_or_insert(Pause {
                since: now,
                until: None,
            });
        }
    }
    flags
}

fn pause(
    path: &Path,
    clock: &Clock,
    in_force: &dyn Fn(&Path) -> Option<Option<Time>>,
) -> Option<Pause> {
    let since = match fs::symlink_metadata(path) {
        Ok(file) => file.modified().map(|at| clock.from_system(at)),
        Err(e) if is_missing(&e) => return None,
        Err(e) => Err(e),
    };
    let since = since.unwrap_or_else(|_| clock.now());
    in_force(path).map(|until| Pause { since, until })
}

/// The wall time in the file's first line, if it names one.
fn until(path: &Path) -> Option<Time> {
    let bytes = folder::read_small(path, CONTENT_MAX).ok()?;
    let text = std::str::from_utf8(&bytes).ok()?;
    Time::parse_rfc3339(text.lines().next()?.trim())
}

/// The ids in a flag folder. A missing folder holds none.
fn ids(folder: &Path) -> io::Result<Vec<SessionId>> {
    let names = names(folder)?;
    Ok(names
        .iter()
        .filter_map(|name| SessionId::parse(name))
        .collect())
}

/// The names in a folder; those that are no text come out with marks in them,
/// so that they are no ids.
///
/// # Errors
/// When the folder is there and cannot be read.
pub fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if is_missing(&e) => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    entries
        .take(ENTRIES_MAX)
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// Puts a flag down: [`PAUSE`], or a folder's name and an id, such as
/// `hold/<id>`. One that is there is replaced. Folders are made as needed.
///
/// # Errors
/// Names the path.
pub fn put(folder: &Path, flag: &str, content: &str) -> Result<(), String> {
    folder::prepare(folder)?;
    let path = folder.join(flag);
    if let Some(parent) = path.parent() {
        folder::prepare(parent)?;
    }
    folder::write_shared(&path, content.as_bytes()).map_err(|e| e.to_string())
}

/// Takes a flag away; false when there is none.
///
/// # Errors
/// When it is still there.
pub fn take(folder: &Path, flag: &str) -> io::Result<bool> {
    match fs::remove_file(folder.join(flag)) {
        Err(e) if is_missing(&e) => Ok(false),
        done => done.map(|()| true),
    }
}

/// Whether a flag is there, in force or not.
pub fn is_there(folder: &Path, flag: &str) -> bool {
    fs::symlink_metadata(folder.join(flag)).is_ok()
}

/// Entries of the flag folders that are no ids, such as `hold/my session`, and
/// flag folders that cannot be read; fit to be printed.
pub fn oddities(folder: &Path) -> Vec<String> {
    let mut odd = Vec::new();
    for flag in FOLDERS {
        match names(&folder.join(flag)) {
            Ok(names) => {
                let first = odd.len();
                for name in names {
                    if SessionId::parse(&name).is_none() {
                        let name = escape(&format!("{flag}/{name}"));
                        let behind = odd[first..].partition_point(|known| *known < name);
                        odd.insert(first + behind, name);
                    }
                }
            }
            Err(e) => odd.push(escape(&format!("{flag}: {e}"))),
        }
    }
    odd
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::time::Duration;

    const HOUR: Duration = Duration::from_secs(3600);

    fn id(text: &str) -> SessionId {
        SessionId::parse(text).unwrap()
    }

    fn put(scratch: &Scratch, name: &str, content: &str) {
        let path = scratch.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn wall(clock: &Clock) -> Time {
        Time(clock.reading().wall)
    }

    #[test]
    fn an_untouched_folder_has_no_flags() {
        let scratch = Scratch::new();
        let clock = Clock::start();
        assert_eq!(read(scratch.path(), &clock), Flags::default());
        assert_eq!(read(&scratch.join("missing"), &clock), Flags::default());
        assert!(oddities(scratch.path()).is_empty());
    }

    #[test]
    fn exact_ids_count_and_the_rest_is_odd() {
        let scratch = Scratch::new();
        for name in [
            "autorestart/b-2",
            "autorestart/a-1",
            "clear/c-3",
            "autorestart/no id",
        ] {
            put(&scratch, name, "");
        }
        put(&scratch, "hold/.swp", "");
        put(&scratch, "hold/\u{1b}[31m", "");
        let mut flags = read(scratch.path(), &Clock::start());
        flags.autorestart.sort();
        assert_eq!(flags.autorestart, [id("a-1"), id("b-2")]);
        assert_eq!(flags.clear, [id("c-3")]);
        assert!(flags.hold.is_empty() && flags.pause.is_none());
        let odd = ["autorestart/no id", "hold/.swp", "hold/\\x1b[31m"];
        assert_eq!(oddities(scratch.path()), odd);
        assert!(take(scratch.path(), "clear/c-3").unwrap());
        assert!(!take(scratch.path(), "clear/c-3").unwrap());
        assert!(read(scratch.path(), &Clock::start()).clear.is_empty());
    }

    #[test]
    fn flags_are_put_down_replaced_and_taken_away() {
        let scratch = Scratch::new();
        let (folder, clock) = (scratch.join("watchdog"), Clock::start());
        let stamp = |at: Time| format!("{}\nby ana\n", at.rfc3339());
        super::put(&folder, "hold/a-1", &stamp(wall(&clock).plus(HOUR))).unwrap();
        assert!(read(&folder, &clock).hold[0].1.is_some());
        super::put(&folder, "hold/a-1", "by ana\n").unwrap();
        assert_eq!(read(&folder, &clock).hold, [(id("a-1"), None)]);
        super::put(&folder, PAUSE, "").unwrap();
        assert!(read(&folder, &clock).pause.is_some() && is_there(&folder, PAUSE));
        assert!(take(&folder, PAUSE).unwrap() && take(&folder, "hold/a-1").unwrap());
        assert_eq!(read(&folder, &clock), Flags::default());
        fs::write(folder.join("autorestart"), "a file").unwrap();
        assert!(
            super::put(&folder, "autorestart/a-1", "")
                .unwrap_err()
                .contains("autorestart")
        );
    }

    #[test]
    fn a_hold_counts_until_the_time_it_names() {
        let scratch = Scratch::new();
        let clock = Clock::start();
        put(&scratch, "hold/a-1", "");
        put(
            &scratch,
            "hold/b-2",
            &format!("{}\nsecond line", wall(&clock).plus(HOUR).rfc3339()),
        );
        put(&scratch, "hold/c-3", &wall(&clock).minus(HOUR).rfc3339());
        put(&scratch, "hold/d-4", "until tomorrow");
        put(&scratch, "hold/e-5", &"2020-01-01T00:00:00Z\n".repeat(1000));
        fs::write(scratch.join("hold/f-6"), b"\xff\xfe").unwrap();
        fs::create_dir(scratch.join("hold/g-7")).unwrap();
        let mut held = read(scratch.path(), &clock).hold;
        held.sort();
        let names: Vec<&str> = held.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(names, ["a-1", "b-2", "d-4", "e-5", "f-6", "g-7"]);
        let endless = held.iter().filter(|(_, until)| until.is_none()).count();
        assert_eq!(endless, 5);
        let left = held[1].1.unwrap().since(clock.now());
        assert!(
            left <= HOUR && left > HOUR - Duration::from_secs(600),
            "{left:?}"
        );
    }

    #[test]
    fn a_pause_says_since_when_and_until_when() {
        let scratch = Scratch::new();
        let clock = Clock::start();
        let path = scratch.join(PAUSE);
        let made = std::time::SystemTime::now() - HOUR;
        fs::write(&path, "").unwrap();
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(made)
            .unwrap();
        let pause = read(scratch.path(), &clock).pause.unwrap();
        assert!(clock.now().since(pause.since) >= HOUR);
        assert_eq!(pause.until, None);
        fs::write(&path, wall(&clock).plus(HOUR).rfc3339()).unwrap();
        assert!(read(scratch.path(), &clock).pause.unwrap().until.unwrap() > clock.now());
        fs::write(&path, wall(&clock).minus(HOUR).rfc3339()).unwrap();
        assert_eq!(read(scratch.path(), &clock).pause, None);
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        assert_eq!(read(scratch.path(), &clock).pause.unwrap().until, None);
    }

    #[test]
    fn holds_that_cannot_be_read_hold_everybody() {
        let scratch = Scratch::new();
        let clock = Clock::start();
        put(&scratch, HOLD, "a file where the folder belongs");
        assert!(read(scratch.path(), &clock).pause.is_some());
        assert_eq!(oddities(scratch.path()).len(), 1);
    }
}
