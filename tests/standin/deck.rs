//! The folder everything lies in: finding it, reading and writing small files,
//! knowing when it is over. Does not know what the files mean.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// How often a sleeping part looks whether the deck is over.
const LOOK: Duration = Duration::from_millis(100);

/// The deck folder.
#[derive(Clone)]
pub struct Deck {
    /// Absolute, symlinks unresolved.
    pub dir: PathBuf,
}

impl Deck {
    /// Deck and part to play, from the path the program was called by.
    ///
    /// The environment may have been scrubbed, so the path is all there is.
    pub fn find(argv0: &OsStr) -> Result<(Deck, String), String> {
        let called = Path::new(argv0);
        let path = if called.components().count() > 1 {
            std::path::absolute(called).map_err(|e| e.to_string())?
        } else {
            on_path(called).ok_or_else(|| format!("{} is not on PATH", called.display()))?
        };
        let name = path.file_name().unwrap_or_default();
        let bin = path.parent().unwrap_or(Path::new("/"));
        let dir = bin.parent().unwrap_or(Path::new("/"));
        if bin.file_name() != Some(OsStr::new("bin")) || !dir.join("profiles").is_dir() {
            return Err(format!("{} does not lie in <deck>/bin", path.display()));
        }
        let deck = Deck {
            dir: dir.to_owned(),
        };
        Ok((deck, name.to_string_lossy().into_owned()))
    }

    /// A path below the deck.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Whether that file is there.
    pub fn has(&self, name: &str) -> bool {
        self.file(name).exists()
    }

    /// The bytes of a file.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.file(name)).ok()
    }

    /// The text of a file without surrounding white space.
    pub fn text(&self, name: &str) -> Option<String> {
        let bytes = self.read(name)?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The number in a file.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// Adds to a file in one write.
    pub fn append(&self, name: &str, line: &str) -> io::Result<()> {
        add(&self.file(name), line.as_bytes())
    }

    /// Adds a line to `agent.log`.
    pub fn log_agent(&self, what: &str, id: &str, pid: u32) -> io::Result<()> {
        let line = format!("{}\t{what}\t{id}\t{pid}\n", now_ms());
        self.append("agent.log", &line)
    }

    /// The file of a program.
    pub fn bin(&self, program: &str) -> PathBuf {
        self.file("bin").join(program)
    }

    /// The folder of a profile.
    pub fn profile(&self, name: &str) -> PathBuf {
        self.file("profiles").join(name)
    }

    /// Whether the test that owns the deck has ended or taken it away.
    pub fn is_over(&self) -> bool {
        if !self.has("bin") {
            return true;
        }
        match self.number("owner") {
            Some(pid) => !is_alive(pid),
            None => false,
        }
    }

    /// Sleeps; ends the whole process when the deck is over.
    pub fn sleep(&self, span: Duration) {
        let end = std::time::Instant::now() + span;
        loop {
            let left = end.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return;
            }
            if self.is_over() {
                std::process::exit(0);
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    /// Sits there until killed, or until the deck is over.
    pub fn sit(&self) {
        while !self.is_over() {
            std::thread::sleep(LOOK);
        }
    }
}

fn on_path(name: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Whether a process of that number exists.
pub fn is_alive(pid: u64) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

/// Adds to a file in one write.
pub fn add(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all(bytes)
}

/// Writes a file aside and renames it into place.
pub fn save(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let aside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let mut file = File::create(&aside)?;
    file.write_all(bytes)?;
    std::fs::rename(&aside, path)
}

/// Makes a folder unless it is there, but none above it: a deck that is being
/// taken away must not come back.
pub fn folder(path: &Path) -> io::Result<()> {
    match std::fs::create_dir(path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        _ => Ok(()),
    }
}

/// Removes a file that may not be there.
pub fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// RFC 3339 in UTC of seconds since 1970, counted year by year on purpose: it
/// shall not share a mistake with the program under test.
pub fn rfc3339(seconds: u64) -> String {
    let leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let mut days = seconds / 86_400;
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let second = seconds % 86_400;
    format!(
        "{year:04}-{month:02}-{:02}T{:02}:{:02}:{:02}Z",
        days + 1,
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// A number that no other call gets: time and process, well mixed.
pub fn unique() -> u64 {
    let mixed = now_ms() ^ (u64::from(std::process::id()) << 40);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
