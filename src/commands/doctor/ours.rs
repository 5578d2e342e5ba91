//! Our own folder: is it there, ours, private, can it be written to; the memory
//! in it; and the clock, by the stamps of what lies in it.
//!
//! Nothing is written to find that out: a quota that is used up is not seen. This
//! file does not know what the files are for.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, access, statvfs};
use rustix::io::Errno;

use super::{Case, quoted};
use crate::clock::{Time, spoken};
use crate::host::folder::{check_file, check_folder, read_small};
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
/// Entries of our folder that are looked at.
const ENTRIES: usize = 1000;
/// Longest log whose stamps are looked through; it bounds itself at 8 MiB.
const LOG_MOST: u64 = 16 << 20;

/// All of it.
pub fn checks(case: &mut Case) {
    let folder = case.folder();
    if there(case, &folder) {
        files(case, &folder);
        memory(case, &folder);
    }
    clock(case, &folder);
}

/// Whether the folder can be used.
fn there(case: &mut Case, folder: &Path) -> bool {
    let name = quoted(folder);
    let shown = folder.display();
    let Ok(itself) = fs::symlink_metadata(folder) else {
        let above = nearest(folder);
        if let Err(why) = access(&above, Access::WRITE_OK | Access::EXEC_OK) {
            let sentence = format!(
                "{shown} is not there and cannot be made: {}: {}",
                above.display(),
                said(why)
            );
            let mend = writable(&above, why);
            case.problem("folder", sentence, mend);
        } else if room(case, &above) {
            case.ok("folder", format!("{shown} is made at the first start"));
        }
        return false;
    };
    if let Err(sentence) = check_folder(folder) {
        let mend = match fs::metadata(folder) {
            Ok(there) if !there.is_dir() => format!("mv {name} {name}.old"),
            Ok(there) if there.uid() != rustix::process::geteuid().as_raw() => {
                format!("sudo chown -R \"$(id -u)\" {name}")
            }
            Ok(_) if !itself.is_symlink() => format!("chmod 700 {name}"),
            Ok(_) | Err(_) => format!("rm {name}"),
        };
        case.problem("folder", sentence, mend);
        return false;
    }
    if let Err(why) = access(folder, Access::WRITE_OK | Access::READ_OK | Access::EXEC_OK) {
        let sentence = format!(
            "{shown} cannot be written to: {}; no limit can be remembered there, so nothing is done",
            said(why)
        );
        case.problem("folder", sentence, writable(folder, why));
        return true;
    }
    let mode = itself.mode() & 0o7777;
    if room(case, folder) {
        match mode & 0o077 {
            0 => case.ok("folder", format!("{shown}, mode {mode:o}")),
            _ => case.warning(
                "folder",
                format!("others may look into {shown} (mode {mode:o})"),
                format!("chmod 700 {name}"),
            ),
        }
    }
    true
}

/// The nearest folder above that is there.
fn nearest(folder: &Path) -> PathBuf {
    let mut above = folder.ancestors().skip(1);
    let found = above.find(|above| above.exists());
    found.unwrap_or(Path::new("/")).to_owned()
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
        return format!("sudo mount -o remount,rw {}", quoted(mount(folder)));
    }
    match fs::metadata(folder) {
        Ok(there) if there.uid() == rustix::process::geteuid().as_raw() => {
            format!("chmod u+rwx {name}")
        }
        Ok(_) | Err(_) => format!("sudo chown \"$(id -u)\" {name}"),
    }
}

/// Where the file system of a folder is mounted, where the system lists mounts.
fn mount(folder: &Path) -> PathBuf {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let points = mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .map(|point| PathBuf::from(point.replace("\\040", " ")));
    let above = points.filter(|point| folder.starts_with(point));
    let nearest = above.max_by_key(|point| point.components().count());
    nearest.unwrap_or_else(|| PathBuf::from("/"))
}

/// Whether the disk has room; says so when not.
fn room(case: &mut Case, folder: &Path) -> bool {
    let Ok(disk) = statvfs(folder) else {
        return true;
    };
    // What is kept for root is no room for others.
    let blocks = match rustix::process::geteuid().is_root() {
        true => disk.f_bfree,
        false => disk.f_bavail,
    };
    let free = blocks.saturating_mul(disk.f_frsize);
    let files = (disk.f_files > 0).then_some(disk.f_favail);
    let Some((is_problem, what)) = lacks(free, files) else {
        return true;
    };
    let mount = mount(folder);
    let sentence = format!(
        "the disk of {} ({}) {what}; without room no limit can be remembered, and a fresh start \
         does nothing",
        folder.display(),
        mount.display()
    );
    let mend = format!(
        "du -xh {} 2>/dev/null | sort -h | tail -n 20",
        quoted(mount)
    );
    match is_problem {
        true => case.problem("disk", sentence, mend),
        false => case.warning("disk", sentence, mend),
    }
    false
}

/// What a disk lacks, and whether that is a problem.
fn lacks(free: u64, files: Option<u64>) -> Option<(bool, String)> {
    match (free, files) {
        (_, Some(0)) => Some((true, "has no room for one more file".to_owned())),
        (0..ROOM_LEAST, _) => Some((true, format!("is full ({} KiB free)", free >> 10))),
        (ROOM_LEAST..ROOM_WISHED, _) => Some((false, format!("has only {} MiB free", free >> 20))),
        (_, _) => None,
    }
}

/// Plain files of the folder.
fn entries(folder: &Path) -> Vec<(PathBuf, Metadata)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let look = |path: PathBuf| fs::symlink_metadata(&path).ok().map(|there| (path, there));
    let mut entries: Vec<_> = entries
        .take(ENTRIES)
        .filter_map(|entry| look(entry.path()))
        .filter(|(_, there)| !there.is_dir())
        .collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    entries
}

/// What is written to has to be ours and open to us, and closed to others.
fn files(case: &mut Case, folder: &Path) {
    let entries = entries(folder);
    let mut open = Vec::new();
    let mut bad = false;
    for (path, there) in &entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let written = name.ends_with(".log") || name == memory::STATE || name == "lock";
        if written && let Err(error) = check_file(path, there) {
            bad = true;
            let name = quoted(path);
            let mend = match there.is_file() && there.mode() & 0o002 != 0 && there.nlink() == 1 {
                true => format!("chmod 600 {name}"),
                false => format!("mv {name} {name}.old"),
            };
            case.problem("files", error.to_string(), mend);
        } else if written && access(path, Access::WRITE_OK) == Err(Errno::ACCESS) {
            bad = true;
            let sentence = format!("{} cannot be written to", path.display());
            case.problem("files", sentence, format!("chmod 600 {}", quoted(path)));
        } else if there.is_file() && there.mode() & 0o077 != 0 && *name != *"agent-deck-watchdog" {
            open.push(path.clone());
        }
    }
    let settings = case.file.path.clone();
    if fs::metadata(&settings).is_ok_and(|there| there.mode() & 0o077 != 0) {
        open.push(settings);
    }
    if !open.is_empty() {
        let names: Vec<String> = open.iter().map(quoted).collect();
        let shown: Vec<String> = open.iter().map(|path| path.display().to_string()).collect();
        let sentence = format!("others may read {}", shown.join(", "));
        case.warning("files", sentence, format!("chmod 600 {}", names.join(" ")));
    } else if !bad {
        let logs = entries
            .iter()
            .filter(|(path, _)| path.extension().is_some_and(|e| e == "log"));
        let logs = logs.count();
        case.ok("files", format!("{logs} logs, which nobody else may read"));
    }
}

/// Whether what earlier runs did is remembered.
fn memory(case: &mut Case, folder: &Path) {
    let state = folder.join(memory::STATE);
    let name = quoted(&state);
    let us = super::ourselves();
    match memory::load(folder, &case.desk.machine.clock, false) {
        Found::State(_) if !state.exists() => {
            case.ok("memory", "none yet, the folder has never been used");
        }
        Found::State(_) => case.ok("memory", format!("{} can be read", state.display())),
        // The next turn sets it aside by itself.
        Found::Lost(_, _, why) => case.warning(
            "memory",
            format!("{why}: the next start keeps it under another name, and every limit counts as used up then"),
            format!("{us} --once"),
        ),
        Found::Refused(why) => case.problem("memory", why, format!("mv {name} {name}.old")),
    }
    let aside = |(path, _): &(PathBuf, Metadata)| {
        let name = path.file_name()?.to_str()?;
        name.starts_with("state.json.broken-").then(|| path.clone())
    };
    let aside: Vec<PathBuf> = entries(folder).iter().filter_map(aside).collect();
    if let Some(one) = aside.last() {
        let sentence = format!(
            "{} earlier memories could not be read and were set aside, such as {}",
            aside.len(),
            one.display()
        );
        let names: Vec<String> = aside.iter().map(quoted).collect();
        case.warning("memory", sentence, format!("rm {}", names.join(" ")));
    }
}

/// Whether the clock is sane: nothing was written in the future.
fn clock(case: &mut Case, folder: &Path) {
    let wall = Time(case.desk.machine.clock.reading().wall);
    let set = match cfg!(target_os = "macos") {
        true => "sudo sntp -sS time.apple.com",
        false => "sudo timedatectl set-ntp true",
    };
    if wall < YEAR_2024 {
        let sentence = format!("it is set to {}", wall.rfc3339());
        return case.problem("clock", sentence, set);
    }
    let mut stamps: Vec<(Time, PathBuf)> = Vec::new();
    for (path, there) in entries(folder) {
        stamps.extend(modified(&there).map(|at| (at, path.clone())));
        if path.extension().is_some_and(|end| end == "log") {
            let log = read_small(&path, LOG_MOST).unwrap_or_default();
            stamps.extend(last_stamp(&log).map(|at| (at, path)));
        }
    }
    let default = Profile::parse("default");
    let names = match &case.desk.machine.settings.profiles {
        crate::config::Wanted::Named(named) => named.clone(),
        crate::config::Wanted::All => default.into_iter().collect(),
    };
    for profile in names {
        let Ok(database) = case.desk.machine.roots.profile(&profile) else {
            continue;
        };
        let database = database.join("state.db");
        if let Some(at) = fs::metadata(&database).ok().as_ref().and_then(modified) {
            stamps.push((at, database));
        }
    }
    let latest = stamps.into_iter().max();
    match latest.filter(|(at, _)| at.since(wall) >= CLOCK_OFF) {
        Some((at, path)) => {
            let sentence = format!(
                "it was set back by {} or more: it says {}, and {} was written at {}",
                spoken(at.since(wall)),
                wall.rfc3339(),
                path.display(),
                at.rfc3339()
            );
            case.problem("clock", sentence, set);
        }
        None => case.ok(
            "clock",
            format!("{}, nothing lies ahead of it", wall.rfc3339()),
        ),
    }
}

fn modified(there: &Metadata) -> Option<Time> {
    let seconds = u64::try_from(there.mtime()).ok()?;
    Some(Time(seconds.saturating_mul(1000)))
}

/// The latest stamp of a log's lines: in front, or behind `"time":`.
fn last_stamp(log: &[u8]) -> Option<Time> {
    let stamp = |line: &[u8]| {
        let line = line.strip_prefix(b"{\"time\":\"").unwrap_or(line);
        Time::parse_rfc3339(std::str::from_utf8(line.get(..20)?).ok()?)
    };
    log.split(|&byte| byte == b'\n').filter_map(stamp).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_full_before_it_is_empty() {
        let big = 1 << 40;
        for (free, files, problem) in [
            (big, None, None),
            (big, Some(5), None),
            (big, Some(0), Some(true)),
            (0, Some(5), Some(true)),
            (ROOM_LEAST - 1, None, Some(true)),
            (ROOM_LEAST, None, Some(false)),
            (ROOM_WISHED - 1, None, Some(false)),
            (ROOM_WISHED, None, None),
        ] {
            let lacks = lacks(free, files).map(|(is_problem, _)| is_problem);
            assert_eq!(lacks, problem, "{free} {files:?}");
        }
        assert_eq!(lacks(5 << 10, None).unwrap().1, "is full (5 KiB free)");
    }

    #[test]
    fn the_latest_stamp_of_a_log_is_found_wherever_it_stands() {
        let log = b"2026-11-30T22:00:05Z INFO a: b\n2026-11-30T23:00:00Z INFO a: b\n\
            torn\n{\"time\":\"2026-11-30T22:30:00Z\",\"x\":1}\n\xff\xff\n2026-11-30T22:00";
        let at = Time::parse_rfc3339("2026-11-30T23:00:00Z");
        assert_eq!(last_stamp(log), at);
        let json = b"{\"time\":\"2026-11-30T22:30:00Z\"}";
        assert_eq!(
            last_stamp(json),
            Time::parse_rfc3339("2026-11-30T22:30:00Z")
        );
        assert_eq!(last_stamp(b""), None);
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
