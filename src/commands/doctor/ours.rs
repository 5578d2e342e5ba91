//! Our own folder: is it there, ours, private, can it be written to; the memory
//! in it; and the clock, by the stamps of what lies in it.
//!
//! Nothing is written to find that out: a quota that is used up is not seen. This
//! file does not know what the files are for.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, statvfs};
use rustix::io::Errno;

use super::case::Case;
use super::settings::may;
use super::shell::{Ourselves, quoted};
use crate::clock::{Time, spoken};
use crate::commands::paper::{Light, add};
use crate::config::Wanted;
use crate::host::flags;
use crate::host::folder::{check_file, check_folder, read_small};
use crate::host::users::me;
use crate::host::whole;
use crate::machine::memory::{self, Found};
use crate::model::Profile;

/// Below this nothing can be relied on: a memory of a large deck has as much.
const ROOM_LEAST: u64 = 1 << 20;
/// Three logs of 8 MiB and as much that was rotated (DESIGN 2.3).
const ROOM_WISHED: u64 = 48 << 20;
/// A clock may be off by as much without being worth a word.
const CLOCK_OFF: Duration = Duration::from_secs(60);
/// Wall time before 2024 means that the clock was never set.
const YEAR_2024: Time = Time(1_704_067_200_000);
/// Longest log whose stamps are looked through; it bounds itself at 8 MiB.
const LOG_MOST: u64 = 16 << 20;

/// All of it.
pub fn checks(case: &mut Case) {
    let folder = case.folder();
    let names = names(&folder);
    if there(case, &folder) {
        files(case, &folder, &names);
        memory(case, &folder, &names);
    }
    clock(case, &folder, &names);
}

/// The names in the folder, in their order.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in flags::names(folder).unwrap_or_default() {
        names.insert(names.partition_point(|known| *known < name), name);
    }
    names
}

/// Whether the folder can be used.
fn there(case: &Case, folder: &Path) -> bool {
    const NAME: &str = "folder";
    let found = case.found;
    let (name, shown) = (quoted(folder), folder.display());
    let Ok(itself) = fs::symlink_metadata(folder) else {
        let above = nearest(folder);
        if let Err(why) = may(above, Access::WRITE_OK | Access::EXEC_OK) {
            found.problem(
                NAME,
                format_args!(
                    "{shown} is not there and cannot be made: {}: {}",
                    above.display(),
                    said(why)
                ),
                format_args!("{}", writable(above, why)),
            );
        } else if room(case, above) {
            found.ok(NAME, format_args!("{shown} is made at the first start"));
        }
        return false;
    };
    if let Err(sentence) = check_folder(folder) {
        let mend = match fs::metadata(folder) {
            Ok(there) if !there.is_dir() => format!("mv {name} {name}.old"),
            Ok(there) if there.uid() != me() => format!("sudo chown -R \"$(id -u)\" {name}"),
            Ok(_) if !itself.is_symlink() => format!("chmod 700 {name}"),
            Ok(_) | Err(_) => format!("rm {name}"),
        };
        found.problem(NAME, format_args!("{sentence}"), format_args!("{mend}"));
        return false;
    }
    let mode = itself.mode() & 0o7777;
    if let Err(why) = may(folder, Access::WRITE_OK | Access::READ_OK | Access::EXEC_OK) {
        found.problem(
            NAME,
            format_args!(
                "{shown} cannot be written to: {}; no limit can be remembered there, so nothing \
                 is done",
                said(why)
            ),
            format_args!("{}", writable(folder, why)),
        );
    } else if !room(case, folder) {
        // Said.
    } else if mode & 0o077 == 0 {
        found.ok(NAME, format_args!("{shown}, mode {mode:o}"));
    } else {
        found.warning(
            NAME,
            format_args!("others may look into {shown} (mode {mode:o})"),
            format_args!("chmod 700 {name}"),
        );
    }
    true
}

/// The nearest folder above that is there.
fn nearest(folder: &Path) -> &Path {
    let mut above = folder.ancestors().skip(1);
    above.find(|above| above.exists()).unwrap_or(Path::new("/"))
}

fn said(why: Errno) -> String {
    match why {
        Errno::ROFS => "its file system is mounted read-only".to_owned(),
        why => std::io::Error::from(why).to_string(),
    }
}

/// What makes a folder writable that refused because of `why`.
fn writable(folder: &Path, why: Errno) -> String {
    let name = quoted(folder);
    if why == Errno::ROFS {
        return format!("sudo mount -o remount,rw {}", quoted(&mount(folder)));
    }
    match fs::metadata(folder) {
        Ok(there) if there.uid() == me() => format!("chmod u+rwx {name}"),
        Ok(_) | Err(_) => format!("sudo chown \"$(id -u)\" {name}"),
    }
}

/// Where the file system of a folder is mounted, where the system lists mounts.
fn mount(folder: &Path) -> PathBuf {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mounts = whole::text("/proc/self/mounts");
    let mut points = Vec::new();
    for line in mounts.lines() {
        let point = line.split(' ').nth(1).unwrap_or_default();
        points.push(OsString::from(point.replace("\\040", " ")));
    }
    for above in folder.ancestors() {
        if points.iter().any(|point| point == above.as_os_str()) {
            return above.to_owned();
        }
    }
    PathBuf::from("/")
}

/// Whether the disk has room; says so when not.
fn room(case: &Case, folder: &Path) -> bool {
    let Ok(disk) = statvfs(folder) else {
        return true;
    };
    // What is kept for root is no room for others.
    let blocks = match me() {
        0 => disk.f_bfree,
        _ => disk.f_bavail,
    };
    let free = blocks.saturating_mul(disk.f_frsize);
    let files = (disk.f_files > 0).then_some(disk.f_favail);
    let Some((light, what)) = lacks(free, files) else {
        return true;
    };
    let mount = mount(folder);
    case.found.say(
        "disk",
        light,
        format_args!(
            "the disk of {} ({}) {what}; without room no limit can be remembered, and a fresh \
             start does nothing",
            folder.display(),
            mount.display()
        ),
        format_args!(
            "du -xh {} 2>/dev/null | sort -h | tail -n 20",
            quoted(&mount)
        ),
    );
    false
}

/// What a disk lacks, and how bad that is.
fn lacks(free: u64, files: Option<u64>) -> Option<(Light, String)> {
    match (free, files) {
        (_, Some(0)) => Some((Light::Red, "has no room for one more file".to_owned())),
        (0..ROOM_LEAST, _) => Some((Light::Red, format!("is full ({} KiB free)", free >> 10))),
        (ROOM_LEAST..ROOM_WISHED, _) => {
            Some((Light::Yellow, format!("has only {} MiB free", free >> 20)))
        }
        (_, _) => None,
    }
}

/// What is written to has to be ours and open to us, and closed to others.
fn files(case: &Case, folder: &Path, names: &[String]) {
    const NAME: &str = "files";
    let found = case.found;
    let before = found.count();
    let mut open = Vec::new();
    let mut logs = 0;
    for name in names {
        let path = folder.join(name);
        let Ok(there) = fs::symlink_metadata(&path) else {
            continue;
        };
        let word = quoted(&path);
        let log = name.ends_with(".log");
        logs += usize::from(log);
        let written = log || name == memory::STATE || name == "lock";
        if there.is_dir() {
            // The flags lie in folders.
        } else if written && let Err(error) = check_file(&path, &there) {
            let ours = there.is_file() && there.mode() & 0o002 != 0 && there.nlink() == 1;
            let mend = match ours {
                true => format!("chmod 600 {word}"),
                false => format!("mv {word} {word}.old"),
            };
            found.problem(NAME, format_args!("{error}"), format_args!("{mend}"));
        } else if written && may(&path, Access::WRITE_OK) == Err(Errno::ACCESS) {
            found.problem(
                NAME,
                format_args!("{} cannot be written to", path.display()),
                format_args!("chmod 600 {word}"),
            );
        } else if there.is_file() && there.mode() & 0o077 != 0 && name != "agent-deck-watchdog" {
            open.push(word.to_string());
        }
    }
    let settings = &case.file.path;
    if fs::metadata(settings).is_ok_and(|there| there.mode() & 0o077 != 0) {
        open.push(quoted(settings).to_string());
    }
    if !open.is_empty() {
        found.warning(
            NAME,
            format_args!("others may read {}", open.join(", ")),
            format_args!("chmod 600 {}", open.join(" ")),
        );
    } else if found.count() == before {
        found.ok(
            NAME,
            format_args!("{logs} logs, which nobody else may read"),
        );
    }
}

/// Whether what earlier runs did is remembered.
fn memory(case: &Case, folder: &Path, names: &[String]) {
    const NAME: &str = "memory";
    let found = case.found;
    let state = folder.join(memory::STATE);
    let name = quoted(&state);
    match memory::load(folder, &case.desk.machine.clock, false) {
        Found::State(_) if !state.exists() => {
            found.ok(
                NAME,
                format_args!("none yet, the folder has never been used"),
            );
        }
        Found::State(_) => found.ok(NAME, format_args!("{} can be read", state.display())),
        // The next turn sets it aside by itself.
        Found::Lost(_, _, why) => found.warning(
            NAME,
            format_args!(
                "{why}: the next start keeps it under another name, and every limit counts as \
                 used up then"
            ),
            format_args!("{Ourselves} --once"),
        ),
        Found::Refused(why) => found.problem(
            NAME,
            format_args!("{why}"),
            format_args!("mv {name} {name}.old"),
        ),
    }
    let (mut count, mut aside) = (0, String::new());
    for name in names {
        if name.starts_with("state.json.broken-") {
            count += 1;
            add(&mut aside, format_args!(" {}", quoted(&folder.join(name))));
        }
    }
    if count > 0 {
        found.warning(
            NAME,
            format_args!("{count} earlier memories could not be read and were set aside"),
            format_args!("rm{aside}"),
        );
    }
}

/// Whether the clock is sane: nothing was written in the future.
fn clock(case: &Case, folder: &Path, names: &[String]) {
    const NAME: &str = "clock";
    let wall = Time(case.desk.machine.clock.reading().wall);
    let set = match cfg!(target_os = "macos") {
        true => format_args!("sudo sntp -sS time.apple.com"),
        false => format_args!("sudo timedatectl set-ntp true"),
    };
    let shown = wall.rfc3339();
    if wall < YEAR_2024 {
        return case
            .found
            .problem(NAME, format_args!("it is set to {shown}"), set);
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for name in names {
        files.push(folder.join(name));
    }
    let machine = &case.desk.machine;
    let profiles = match &machine.settings.profiles {
        Wanted::Named(named) => named.clone(),
        Wanted::All => Vec::from_iter(Profile::parse("default")),
    };
    for profile in &profiles {
        let database = machine.roots.profile(profile).unwrap_or_default();
        files.push(database.join("state.db"));
    }
    let (mut latest, mut written) = (wall, Path::new(""));
    for file in &files {
        let Ok(there) = fs::metadata(file) else {
            continue;
        };
        let mut at = modified(&there);
        if file.as_os_str().as_encoded_bytes().ends_with(b".log") {
            let log = read_small(file, LOG_MOST).unwrap_or_default();
            at = at.max(last_stamp(&log));
        }
        if there.is_file() && at > latest {
            (latest, written) = (at, file);
        }
    }
    let back = latest.since(wall);
    if back < CLOCK_OFF {
        let sentence = format_args!("{shown}, nothing lies ahead of it");
        return case.found.ok(NAME, sentence);
    }
    case.found.problem(
        NAME,
        format_args!(
            "it was set back by {} or more: it says {shown}, and {} was written at {}",
            spoken(back),
            written.display(),
            latest.rfc3339()
        ),
        set,
    );
}

fn modified(there: &fs::Metadata) -> Time {
    let seconds = u64::try_from(there.mtime()).unwrap_or(0);
    Time(seconds.saturating_mul(1000))
}

/// The latest stamp of a log's lines: in front, or behind `"time":`.
fn last_stamp(log: &[u8]) -> Time {
    let mut latest = Time(0);
    for line in log.split(|&byte| byte == b'\n') {
        let line = line.strip_prefix(b"{\"time\":\"").unwrap_or(line);
        let stamp = std::str::from_utf8(line.get(..20).unwrap_or_default());
        let stamp = stamp.ok().and_then(Time::parse_rfc3339);
        latest = latest.max(stamp.unwrap_or(Time(0)));
    }
    latest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_full_before_it_is_empty() {
        let big = 1 << 40;
        for (free, files, light) in [
            (big, None, None),
            (big, Some(5), None),
            (big, Some(0), Some(Light::Red)),
            (0, Some(5), Some(Light::Red)),
            (ROOM_LEAST - 1, None, Some(Light::Red)),
            (ROOM_LEAST, None, Some(Light::Yellow)),
            (ROOM_WISHED - 1, None, Some(Light::Yellow)),
            (ROOM_WISHED, None, None),
        ] {
            let lacks = lacks(free, files).map(|(light, _)| light);
            assert_eq!(lacks, light, "{free} {files:?}");
        }
        assert_eq!(lacks(5 << 10, None).unwrap().1, "is full (5 KiB free)");
    }

    #[test]
    fn the_latest_stamp_of_a_log_is_found_wherever_it_stands() {
        let log = b"2026-11-30T22:00:05Z INFO a: b\n2026-11-30T23:00:00Z INFO a: b\n\
            torn\n{\"time\":\"2026-11-30T22:30:00Z\",\"x\":1}\n\xff\xff\n2026-11-30T22:00";
        let at = |text| Time::parse_rfc3339(text).unwrap();
        assert_eq!(last_stamp(log), at("2026-11-30T23:00:00Z"));
        let json = b"{\"time\":\"2026-11-30T22:30:00Z\"}";
        assert_eq!(last_stamp(json), at("2026-11-30T22:30:00Z"));
        assert_eq!(last_stamp(b""), Time(0));
    }

    #[test]
    fn the_mount_of_a_folder_is_above_it() {
        let root = mount(Path::new("/"));
        assert_eq!(root, Path::new("/"));
        let here = std::env::temp_dir();
        assert!(here.canonicalize().unwrap().starts_with(mount(&here)));
        assert_eq!(nearest(&here.join("no/such/folder")), here);
    }
}
