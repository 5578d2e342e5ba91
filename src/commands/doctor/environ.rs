//! The variables of a process, and the places to which they lead.
//!
//! They hold secrets: only what is asked for by name leaves this file, and it
//! prints nothing. It does not know whose they are.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::deck::telegram::normalised;

/// Longest environment that is read.
const MOST: u64 = 256 << 10;

/// Those of this command that are looked at.
const OURS: [&str; 6] = [
    "PATH",
    "HOME",
    "TMUX",
    "TMUX_TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// Variables that lead to agent-deck's files.
pub const DECK_PLACES: [&str; 2] = ["XDG_CONFIG_HOME", "XDG_DATA_HOME"];
/// The same, and the one that leads to tmux.
pub const PLACES: [&str; 3] = ["TMUX_TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"];

/// Variables as the system has them: `NAME=value`, each ended by a zero byte.
/// The first of a name counts.
#[derive(Clone, Default)]
pub struct Environ(Vec<u8>);

impl Environ {
    /// Of another process; empty where it cannot be read.
    pub fn of(pid: u32) -> Environ {
        let mut environ = Environ::default();
        if let Ok(file) = File::open(format!("/proc/{pid}/environ")) {
            let _ = file.take(MOST).read_to_end(&mut environ.0);
        }
        environ
    }

    /// Of this very process.
    pub fn ours() -> Environ {
        let mut environ = Environ::default();
        for name in OURS {
            environ.set(name, &std::env::var_os(name).unwrap_or_default());
        }
        environ
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets a variable, whatever it was before.
    pub fn set(&mut self, name: &str, value: &OsStr) {
        let before = std::mem::take(&mut self.0);
        for part in [name.as_bytes(), b"=", value.as_bytes(), b"\0", &before] {
            self.0.extend_from_slice(part);
        }
    }

    /// The value of a variable; empty: not set.
    pub fn get(&self, name: &str) -> &OsStr {
        for pair in self.0.split(|&byte| byte == 0) {
            let value = pair.strip_prefix(name.as_bytes());
            if let Some(value) = value.and_then(|value| value.strip_prefix(b"=")) {
                return OsStr::from_bytes(value);
            }
        }
        OsStr::new("")
    }

    /// The folder in which a place that such a variable names lies: what it says,
    /// or what counts without it.
    pub fn place(&self, name: &str) -> PathBuf {
        let home = Path::new(self.get("HOME"));
        let value = Path::new(self.get(name));
        let folder = match name {
            "TMUX_TMPDIR" => match self.socket_folder() {
                Some(folder) => folder.to_owned(),
                None if value.as_os_str().is_empty() => PathBuf::from("/tmp"),
                None => value.to_owned(),
            },
            _ if value.is_absolute() => value.to_owned(),
            "XDG_CONFIG_HOME" => home.join(".config"),
            _ => home.join(".local/share"),
        };
        normalised(&folder)
    }

    /// The folder of the sockets by what tmux itself tells those inside:
    /// `<folder>/tmux-<user>/<name>,<server>,<session>`; nothing for a socket that
    /// was named by its path.
    pub fn socket_folder(&self) -> Option<&Path> {
        let tmux = self.get("TMUX").to_str()?;
        let socket = tmux.rsplitn(3, ',').last()?;
        let folder = Path::new(socket).parent()?;
        let named = folder.file_name()?.to_str()?.starts_with("tmux-");
        folder.parent().filter(|_| named)
    }

    /// The first place to which this variable leads a session, when that is
    /// another one than it leads this watcher to.
    pub fn other_place(&self, sessions: &[Environ], name: &str) -> Option<PathBuf> {
        for session in sessions {
            // One with a home of its own has its files there as well.
            let alike = name == "TMUX_TMPDIR" || session.get("HOME") == self.get("HOME");
            let place = session.place(name);
            if alike && place != self.place(name) {
                return Some(place);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environ(pairs: &[(&str, &str)]) -> Environ {
        let mut environ = Environ::default();
        environ.set("HOME", OsStr::new("/home/u"));
        for (name, value) in pairs {
            environ.set(name, OsStr::new(value));
        }
        environ
    }

    #[test]
    fn an_environment_is_searched_for_whole_names() {
        let mut environ = Environ(b"XA=1\0A=2\0AB=3\0E=\0A=4\0".to_vec());
        assert_eq!(environ.get("A"), "2");
        assert_eq!(
            (environ.get("E"), environ.get("B")),
            ("".as_ref(), "".as_ref())
        );
        assert_eq!(Environ::default().get("A"), "");
        environ.set("A", OsStr::new("x"));
        assert_eq!(environ.get("A"), "x");
        environ.set("A", OsStr::new(""));
        assert_eq!(environ.get("A"), "");
        assert!(Environ::of(u32::MAX).is_empty());
    }

    #[test]
    fn a_socket_says_where_its_tmux_lives() {
        let of = |text: &str| {
            let environ = environ(&[("TMUX", text)]);
            environ.socket_folder().map(Path::to_owned)
        };
        assert_eq!(of("/tmp/tmux-0/default,123,4"), Some("/tmp".into()));
        assert_eq!(
            of("/no/where/tmux-1000/x,y,123,4"),
            Some("/no/where".into())
        );
        assert_eq!(of("/tmp/own.sock,123,4"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn places_are_compared_by_where_they_lead() {
        let differs = |watcher: &[(&str, &str)], session: &[(&str, &str)]| {
            let (watcher, session) = (environ(watcher), environ(session));
            let mut found = Vec::new();
            for name in PLACES {
                let place = watcher.other_place(std::slice::from_ref(&session), name);
                found.extend(place.map(|place| (name, place.display().to_string())));
            }
            found
        };
        for (watcher, session) in [
            (&[][..], &[][..]),
            (&[("TMUX_TMPDIR", "/tmp")], &[]),
            (&[("TMUX_TMPDIR", "/x/")], &[("TMUX_TMPDIR", "/x")]),
            (
                &[("TMUX_TMPDIR", "/x")],
                &[("TMUX", "/x/tmux-1000/default,4,0")],
            ),
            // A socket of its own name says nothing.
            (&[], &[("TMUX", "/x/socket,4,0")]),
            (&[("XDG_DATA_HOME", "/home/u/.local/share")], &[]),
            (&[("XDG_CONFIG_HOME", "relative")], &[]),
            // Another home, other files in it.
            (&[("XDG_DATA_HOME", "/x")], &[("HOME", "/y")]),
        ] {
            assert!(
                differs(watcher, session).is_empty(),
                "{watcher:?} {session:?}"
            );
        }
        for (watcher, session, name, value) in [
            (&[][..], &[("TMUX_TMPDIR", "/x")][..], "TMUX_TMPDIR", "/x"),
            (&[("TMUX_TMPDIR", "/x")], &[], "TMUX_TMPDIR", "/tmp"),
            (
                &[],
                &[("TMUX", "/x/tmux-0/default,4,0")],
                "TMUX_TMPDIR",
                "/x",
            ),
            (&[], &[("XDG_DATA_HOME", "/d")], "XDG_DATA_HOME", "/d"),
            (
                &[("XDG_CONFIG_HOME", "/c")],
                &[],
                "XDG_CONFIG_HOME",
                "/home/u/.config",
            ),
        ] {
            let found = differs(watcher, session);
            assert_eq!(found, [(name, value.to_owned())], "{watcher:?} {session:?}");
        }
    }
}
