//! The watchdog's folder and the files in it: made with narrow rights, replaced
//! whole, opened without trust in what lies there.
//!
//! This file does not know what the files say.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, mkdir};
use rustix::io::Errno;

/// Rights of the folder: its owner's only (DESIGN 2.3).
const FOLDER_MODE: u32 = 0o700;

/// Rights of the files in it (DESIGN 2.3).
const FILE_MODE: u32 = 0o600;

/// Makes the folder when it is missing, and checks it when it is there.
///
/// # Errors
/// A sentence that names the path when it cannot be made, is no folder, belongs
/// to somebody else, or can be written to by others.
pub fn prepare(path: &Path) -> Result<(), String> {
    let said = |what: &str, e: io::Error| format!("{}: {what}: {e}", path.display());
    match fs::symlink_metadata(path) {
        Ok(_) => check_folder(path),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            if let Some(parent) = path.parent() {
                make_all(parent).map_err(|e| said("its parents cannot be made", e))?;
            }
            match mkdir(path, Mode::RWXU) {
                // The umask may have taken rights away that we need.
                Ok(()) => fs::set_permissions(path, Permissions::from_mode(FOLDER_MODE))
                    .map_err(|e| said("its rights cannot be set", e))?,
                // Somebody was faster, perhaps our twin: judge what is there.
                Err(Errno::EXIST) => {}
                Err(e) => return Err(said("the folder cannot be made", e.into())),
            }
            check_folder(path)
        }
        Err(e) => Err(said("the folder cannot be looked at", e)),
    }
}

/// As `fs::create_dir_all`, which weighs 2.6 KB.
fn make_all(path: &Path) -> io::Result<()> {
    let make = || mkdir(path, Mode::from_raw_mode(0o777));
    let made = match (make(), path.parent()) {
        (Err(Errno::NOENT), Some(parent)) => {
            make_all(parent)?;
            make()
        }
        (made, _) => made,
    };
    match made {
        Err(e) if !path.is_dir() => Err(e.into()),
        _ => Ok(()),
    }
}

/// Checks a folder that is there.
///
/// # Errors
/// As [`prepare`].
pub fn check_folder(path: &Path) -> Result<(), String> {
    let us = rustix::process::geteuid().as_raw();
    let name = path.display();
    let itself = fs::symlink_metadata(path).map_err(|e| format!("{name}: {e}"))?;
    if itself.is_symlink() && itself.uid() != us && itself.uid() != 0 {
        return Err(format!(
            "{name}: is a link made by user {}, not by us (user {us})",
            itself.uid()
        ));
    }
    let folder = fs::metadata(path).map_err(|e| format!("{name}: leads nowhere: {e}"))?;
    if !folder.is_dir() {
        return Err(format!("{name}: is not a folder"));
    }
    if folder.uid() != us {
        return Err(format!(
            "{name}: belongs to user {}, not to us (user {us})",
            folder.uid()
        ));
    }
    if folder.mode() & 0o022 != 0 {
        let mode = folder.mode() & 0o7777;
        return Err(format!(
            "{name}: others may write to it (mode {mode:o}); run: chmod go-w {name}"
        ));
    }
    Ok(())
}

/// Replaces the file whole: whoever reads sees the old one or the new one, and
/// after any failure the old one. `durable` also waits until the disk has it.
///
/// # Errors
/// Names the path. What lies there and is no plain file of ours is not replaced.
pub fn write_atomic(path: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
    replace(path, &aside(path, "")?, bytes, durable)
}

/// The same where several processes may write at the same time.
///
/// # Errors
/// As [`write_atomic`].
pub fn write_shared(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let aside = aside(path, &format!("{}.", std::process::id()))?;
    replace(path, &aside, bytes, true)
}

fn replace(path: &Path, aside: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(there) => check_file(path, &there)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(named(path, &e)),
    }
    // What a crashed run left: nobody else that runs has this name.
    match fs::remove_file(aside) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(named(aside, &e)),
        Ok(()) | Err(_) => {}
    }
    let done = write_new(aside, bytes, durable).and_then(|()| fs::rename(aside, path));
    if let Err(e) = done {
        let _ = fs::remove_file(aside);
        return Err(named(path, &e));
    }
    if durable && let Some(folder) = path.parent() {
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|e| named(folder, &e))?;
    }
    Ok(())
}

/// Where the new content is written first: `.state.json.tmp` beside `state.json`.
fn aside(path: &Path, mark: &str) -> io::Result<PathBuf> {
    let name = path
        .file_name()
        .ok_or_else(|| refused(path, "has no file name"))?;
    let mut aside = std::ffi::OsString::from(".");
    aside.push(name);
    aside.push(format!(".{mark}tmp"));
    Ok(path.with_file_name(aside))
}

fn write_new(path: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)?;
    keep_our_rights(&file)?;
    file.write_all(bytes)?;
    if durable {
        file.sync_all()?;
    }
    Ok(())
}

/// Whatever the umask took away: what is ours is read and written again.
fn keep_our_rights(file: &File) -> io::Result<()> {
    let mode = file.metadata()?.mode();
    if mode & FILE_MODE == FILE_MODE {
        return Ok(());
    }
    file.set_permissions(Permissions::from_mode(mode & 0o777 | FILE_MODE))
}

/// Reads a plain file of ours with at most `max` bytes.
///
/// # Errors
/// Names the path. `NotFound` when there is none; anything else for links,
/// FIFOs, folders, other people's files and files that are too big.
pub fn read_small(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let file = open_read(path)?;
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|e| named(path, &e))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > max) {
        return Err(refused(path, &format!("has more than {max} bytes")));
    }
    Ok(bytes)
}

/// Opens a plain file of ours for reading.
///
/// # Errors
/// As [`read_small`], but for the size.
pub fn open_read(path: &Path) -> io::Result<File> {
    open_checked(path, OpenOptions::new().read(true))
}

/// Opens for adding at the end, made with 0600 when missing. Its last byte can
/// be read.
///
/// # Errors
/// Names the path; for whatever is not a plain file of ours with one name.
pub fn open_append(path: &Path) -> io::Result<File> {
    let mut how = OpenOptions::new();
    how.append(true);
    open_or_make(path, &mut how)
}

fn open_or_make(path: &Path, how: &mut OpenOptions) -> io::Result<File> {
    let file = open_checked(path, how.read(true).create(true).mode(FILE_MODE))?;
    keep_our_rights(&file).map_err(|e| named(path, &e))?;
    Ok(file)
}

/// Opens for reading and writing in place, made with 0600 when missing.
///
/// # Errors
/// As [`open_append`].
pub fn open_in_place(path: &Path) -> io::Result<File> {
    let mut how = OpenOptions::new();
    how.write(true).truncate(false);
    open_or_make(path, &mut how)
}

/// Sets the modification time to the present. Follows no link.
///
/// # Errors
/// When the file is not there or not ours.
pub fn touch(path: &Path) -> io::Result<()> {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|e| named(path, &e.into()))
}

/// Device and number of what a path leads to, which tell one file from another
/// of the same name.
pub fn place(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn open_checked(path: &Path, how: &mut OpenOptions) -> io::Result<File> {
    // NONBLOCK: opening a FIFO would wait for its other end.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = how
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|e| not_opened(path, &e))?;
    check_file(path, &file.metadata().map_err(|e| named(path, &e))?)?;
    Ok(file)
}

/// Whether what lies at a path is a plain file of ours with one name, that
/// others cannot write to.
///
/// # Errors
/// Names the path and says what is wrong.
pub fn check_file(path: &Path, file: &Metadata) -> io::Result<()> {
    let us = rustix::process::geteuid().as_raw();
    if let Some(what) = unwanted(file) {
        return Err(refused(path, what));
    }
    if file.uid() != us {
        return Err(refused(
            path,
            &format!("belongs to user {}, not to us (user {us})", file.uid()),
        ));
    }
    if file.nlink() > 1 {
        return Err(refused(path, "has a second name (hard link)"));
    }
    if file.mode() & 0o002 != 0 {
        return Err(refused(
            path,
            "anybody may write to it; run chmod o-w on it",
        ));
    }
    Ok(())
}

/// What it is, when it is no plain file.
fn unwanted(file: &Metadata) -> Option<&'static str> {
    let kind = file.file_type();
    match () {
        () if kind.is_file() => None,
        () if kind.is_symlink() => Some("is a symbolic link"),
        () if kind.is_dir() => Some("is a folder"),
        () if kind.is_fifo() => Some("is a FIFO"),
        () => Some("is not a plain file"),
    }
}

/// The system's error for links and FIFOs says little; look what is there.
fn not_opened(path: &Path, error: &io::Error) -> io::Error {
    match fs::symlink_metadata(path).ok().as_ref().and_then(unwanted) {
        Some(what) => refused(path, what),
        None => named(path, error),
    }
}

fn refused(path: &Path, why: &str) -> io::Error {
    io::Error::other(format!("{}: {why}", path.display()))
}

/// The same error with the path in its text.
pub(super) fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
