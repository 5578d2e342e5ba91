//! Files without a name: what a program reads and writes, and nobody else finds.
//!
//! This file does not know what is in them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Its length in bytes; 0 where that cannot be said.
pub fn size(file: &File) -> u64 {
    file.metadata().map_or(0, |file| file.len())
}

/// The first bytes of a file, wherever others stand in it.
pub fn contents(file: &File, most: usize) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(size(file)).unwrap_or(most).min(most)];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, u64::try_from(filled).unwrap_or(u64::MAX)) {
            Ok(0) | Err(_) => break,
            Ok(more) => filled += more,
        }
    }
    bytes.truncate(filled);
    bytes
}

/// A file in memory, or one without a name where the system has no such thing.
///
/// # Errors
/// When the machine has no room for one more file.
pub fn nameless_file() -> io::Result<File> {
    #[cfg(target_os = "linux")]
    if let Ok(file) = rustix::fs::memfd_create("text", rustix::fs::MemfdFlags::CLOEXEC) {
        return Ok(file.into());
    }
    unlinked_file()
}

fn unlinked_file() -> io::Result<File> {
    let folder = std::env::temp_dir();
    for number in 0..100 {
        let name = format!(".agent-deck-watchdog-{}-{number}", std::process::id());
        let path = folder.join(name);
        let mut how = File::options();
        std::os::unix::fs::OpenOptionsExt::mode(&mut how, 0o600);
        match how.read(true).write(true).create_new(true).open(&path) {
            Ok(file) => return std::fs::remove_file(&path).map(|()| file),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_no_name_and_are_empty() {
        for file in [nameless_file().unwrap(), unlinked_file().unwrap()] {
            assert!(contents(&file, 10).is_empty());
            file.write_all_at(b"0123456789abc", 0).unwrap();
            assert_eq!(contents(&file, 10), b"0123456789");
        }
    }
}
