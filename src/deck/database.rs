//! Whether somebody is in the middle of writing a profile's database.
//!
//! SQLite's locks are ordinary record locks, and Linux lists those of everybody
//! in `/proc/locks`: nothing is opened, nothing is asked of the database. Where
//! there is no such list, nobody is seen. This file does not know what is in a
//! database.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::host::whole;

/// The lock byte of the one writer in the `-shm` file of a database in WAL mode
/// (SQLite's file format, section "WAL locks": lock area from 120, writer first).
const WRITER: u64 = 120;

/// Whether a write transaction is open on the database of a profile.
pub fn is_busy(profile: &Path) -> bool {
    let locks = whole::text("/proc/locks");
    let inode = |name: &str| fs::metadata(profile.join(name)).ok().map(|m| m.ino());
    is_locked(&locks, inode("state.db-shm"), inode("state.db"))
}

/// Looks for a write lock of the writer, or, outside of WAL mode, on the
/// database itself. Inodes alone are compared: some file systems give files
/// other device numbers than their locks.
fn is_locked(locks: &str, shm: Option<u64>, database: Option<u64>) -> bool {
    locks
        .lines()
        .filter_map(write_lock)
        .any(|(inode, first, last)| {
            let writer = Some(inode) == shm && first <= WRITER && WRITER <= last;
            writer || Some(inode) == database
        })
}

/// Inode and range of a write lock in a line of `/proc/locks`, such as
/// `1: POSIX  ADVISORY  WRITE 709 08:01:131 120 120`. Waiting ones have an
/// arrow behind the number and do not count.
fn write_lock(line: &str) -> Option<(u64, u64, u64)> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (kind, _, access) = (words.next()?, words.next()?, words.next()?);
    if !matches!(kind, "POSIX" | "OFDLCK") || access != "WRITE" {
        return None;
    }
    let inode = words.nth(1)?.rsplit(':').next()?.parse().ok()?;
    let first = words.next()?.parse().ok()?;
    let last = match words.next()? {
        "EOF" => u64::MAX,
        last => last.parse().ok()?,
    };
    Some((inode, first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKS: &str = "\
1: FLOCK  ADVISORY  WRITE 709 08:01:7 0 EOF
2: POSIX  ADVISORY  WRITE 709 08:01:131 120 120
2: -> POSIX  ADVISORY  WRITE 710 08:01:132 120 120
3: POSIX  ADVISORY  READ  709 08:01:133 120 120
4: POSIX  ADVISORY  WRITE 709 08:01:134 124 124
5: OFDLCK ADVISORY  WRITE -1 00:2d:135 1073741825 EOF
garbage
6: POSIX
";

    #[test]
    fn only_the_writers_lock_counts() {
        for (inode, locked) in [
            (131, true),
            (132, false),
            (133, false),
            (134, false),
            (7, false),
            (1, false),
        ] {
            assert_eq!(is_locked(LOCKS, Some(inode), None), locked, "{inode}");
        }
        assert!(is_locked(LOCKS, None, Some(135)));
        assert!(!is_locked(LOCKS, Some(135), None));
        assert!(!is_locked("", Some(131), Some(131)));
    }
}
