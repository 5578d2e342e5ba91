//! Files of the system read whole, such as those below `/proc`.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The most that is read of one.
const MOST: u64 = 16 << 20;

/// A file's bytes.
///
/// # Errors
/// When it cannot be read.
pub fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file's text; empty where it cannot be read.
pub fn text(path: &str) -> String {
    let bytes = bytes(Path::new(path)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
