//! Where agent-deck keeps its files: its rule for half-moved installations
//! (contract 7.1, 8.1), resolved anew each time, since a folder can appear at
//! any time.
//!
//! This file reads no content and makes nothing. It does not know the environment.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::model::{Profile, SessionId};

/// From where agent-deck's rule starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// The home folder.
    pub home: PathBuf,
    /// `XDG_DATA_HOME`, as it is in the environment.
    pub xdg_data_home: Option<OsString>,
    /// `XDG_CONFIG_HOME`, as it is in the environment.
    pub xdg_config_home: Option<OsString>,
    /// `AGENT_DECK_ROOT`, when it is set.
    pub agent_deck_root: Option<PathBuf>,
}

impl Roots {
    /// The folder that holds one of `markers`: the XDG one, else the old one,
    /// else the XDG one, where it would be made.
    ///
    /// # Errors
    /// When a look fails with anything but "not there"; agent-deck gives up then too.
    pub fn data(&self, markers: &[&str]) -> io::Result<PathBuf> {
        let xdg = self.xdg_data();
        for folder in [&xdg, &self.home.join(".agent-deck")] {
            for marker in markers {
                if exists(&folder.join(marker))? {
                    return Ok(folder.clone());
                }
            }
        }
        Ok(xdg)
    }

    /// The hook records: `$AGENT_DECK_ROOT/hooks` when the variable is set and
    /// that exists (DESIGN 2.2), else by agent-deck's rule. May not exist yet.
    ///
    /// # Errors
    /// As [`Roots::data`].
    pub fn hooks(&self) -> io::Result<PathBuf> {
        if let Some(root) = &self.agent_deck_root {
            let hooks = root.join("hooks");
            if exists(&hooks)? {
                return Ok(hooks);
            }
        }
        Ok(self.data(&["hooks"])?.join("hooks"))
    }

    /// The spawn locks and stamps (contract 5.1). May not exist yet.
    ///
    /// # Errors
    /// As [`Roots::data`].
    pub fn locks(&self) -> io::Result<PathBuf> {
        Ok(self.data(&["locks"])?.join("locks"))
    }

    /// The folder of a profile (contract 1.3). May not exist.
    ///
    /// # Errors
    /// As [`Roots::data`].
    pub fn profile(&self, profile: &Profile) -> io::Result<PathBuf> {
        let data = self.data(&["profiles", "sessions.json"])?;
        Ok(data.join("profiles").join(profile.as_str()))
    }

    /// Whether a profile exists: to list one that does not would create it (contract 1.3).
    ///
    /// # Errors
    /// As [`Roots::data`].
    pub fn profile_exists(&self, profile: &Profile) -> io::Result<bool> {
        let folder = self.profile(profile)?;
        Ok(exists(&folder.join("state.db"))? || exists(&folder.join("sessions.json"))?)
    }

    /// agent-deck's settings (contract 8.1). May not exist.
    ///
    /// # Errors
    /// As [`Roots::data`].
    pub fn config_toml(&self) -> io::Result<PathBuf> {
        let xdg = self.xdg(self.xdg_config_home.as_ref(), ".config");
        let xdg = xdg.join("config.toml");
        let old = self.home.join(".agent-deck/config.toml");
        Ok(match !exists(&xdg)? && exists(&old)? {
            true => old,
            false => xdg,
        })
    }

    fn xdg_data(&self) -> PathBuf {
        self.xdg(self.xdg_data_home.as_ref(), ".local/share")
    }

    /// A variable of that kind counts when it is absolute (contract 7.1).
    fn xdg(&self, set: Option<&OsString>, standard: &str) -> PathBuf {
        let set = set.map(|value| match value.to_str() {
            Some(text) => PathBuf::from(text.trim()),
            None => PathBuf::from(value),
        });
        match set.filter(|path| path.is_absolute()) {
            Some(path) => path.join("agent-deck"),
            None => self.home.join(standard).join("agent-deck"),
        }
    }
}

/// The lock that guards a start or restart; the number of its holder is inside.
pub fn spawn_lock(locks: &Path, id: &SessionId) -> PathBuf {
    locks.join(format!("instance-spawn-{}.lock", plain(id)))
}

/// The file whose modification time is that of the last spawn; it stays.
pub fn spawn_stamp(locks: &Path, id: &SessionId) -> PathBuf {
    locks.join(format!("instance-spawn-{}.stamp", plain(id)))
}

/// An id as it stands in these names: letters, digits, `-` and `_` stay.
fn plain(id: &SessionId) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    id.as_str().chars().map(plain).collect()
}

/// Follows links, as agent-deck does.
fn exists(path: &Path) -> io::Result<bool> {
    match std::fs::metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(io::Error::new(
            error.kind(),
            format!("{}: {error}", path.display()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn roots(home: &Scratch, xdg: Option<&str>) -> Roots {
        Roots {
            home: home.path().to_owned(),
            xdg_data_home: xdg.map(OsString::from),
            xdg_config_home: None,
            agent_deck_root: None,
        }
    }

    #[test]
    fn each_marker_is_looked_for_on_its_own() {
        let home = Scratch::new();
        let xdg = home.path().join(".local/share/agent-deck");
        let old = home.path().join(".agent-deck");
        let roots = roots(&home, None);
        // Nowhere: where it would be made.
        assert_eq!(roots.hooks().unwrap(), xdg.join("hooks"));
        // A bare old folder does not count.
        home.folder(".agent-deck");
        assert_eq!(roots.hooks().unwrap(), xdg.join("hooks"));
        home.folder(".agent-deck/hooks");
        home.folder(".agent-deck/locks");
        assert_eq!(roots.hooks().unwrap(), old.join("hooks"));
        // Moved half way.
        home.folder(".local/share/agent-deck/hooks");
        assert_eq!(roots.hooks().unwrap(), xdg.join("hooks"));
        assert_eq!(roots.locks().unwrap(), old.join("locks"));
    }

    #[test]
    fn only_an_absolute_xdg_folder_counts() {
        let home = Scratch::new();
        let standard = home.path().join(".local/share/agent-deck/hooks");
        let other = home.path().join("data");
        for value in ["", "data", "./data", "  "] {
            assert_eq!(
                roots(&home, Some(value)).hooks().unwrap(),
                standard,
                "{value:?}"
            );
        }
        let padded = format!(" {} ", other.display());
        for value in [other.to_str().unwrap(), &padded] {
            let hooks = roots(&home, Some(value)).hooks().unwrap();
            assert_eq!(hooks, other.join("agent-deck/hooks"));
        }
        // The old folder wins as long as the XDG one has no such marker.
        let old = home.folder(".agent-deck/hooks");
        assert_eq!(roots(&home, other.to_str()).hooks().unwrap(), old);
    }

    #[test]
    fn the_watchdogs_own_root_wins_where_it_has_hooks() {
        let home = Scratch::new();
        let own = home.folder("root");
        let roots = Roots {
            agent_deck_root: Some(own.clone()),
            ..roots(&home, None)
        };
        let standard = home.path().join(".local/share/agent-deck/hooks");
        assert_eq!(roots.hooks().unwrap(), standard);
        home.folder("root/hooks");
        assert_eq!(roots.hooks().unwrap(), own.join("hooks"));
        // It says nothing about other folders.
        assert_eq!(
            roots.locks().unwrap(),
            home.path().join(".local/share/agent-deck/locks")
        );
    }

    #[test]
    fn a_profile_exists_by_its_database() {
        let home = Scratch::new();
        let roots = roots(&home, None);
        let night = Profile::parse("night").unwrap();
        assert!(!roots.profile_exists(&night).unwrap());
        home.folder(".local/share/agent-deck/profiles/night");
        assert!(!roots.profile_exists(&night).unwrap());
        home.write(".local/share/agent-deck/profiles/night/state.db", "");
        assert!(roots.profile_exists(&night).unwrap());
        assert!(
            !roots
                .profile_exists(&Profile::parse("nigh").unwrap())
                .unwrap()
        );

        let old = Scratch::new();
        old.write(".agent-deck/sessions.json", "");
        old.write(".agent-deck/profiles/old/sessions.json", "");
        let roots = Roots {
            home: old.path().to_owned(),
            ..roots
        };
        let profile = Profile::parse("old").unwrap();
        assert_eq!(
            roots.profile(&profile).unwrap(),
            old.path().join(".agent-deck/profiles/old")
        );
        assert!(roots.profile_exists(&profile).unwrap());
    }

    #[test]
    fn settings_are_found_by_the_same_rule() {
        let home = Scratch::new();
        let mut roots = roots(&home, Some("/elsewhere"));
        let xdg = home.join(".config/agent-deck/config.toml");
        assert_eq!(roots.config_toml().unwrap(), xdg);
        let old = home.write(".agent-deck/config.toml", "");
        assert_eq!(roots.config_toml().unwrap(), old);
        home.write(".config/agent-deck/config.toml", "");
        assert_eq!(roots.config_toml().unwrap(), xdg);
        // Another folder that has none.
        roots.xdg_config_home = Some(home.join("c").into_os_string());
        assert_eq!(roots.config_toml().unwrap(), old);
        let other = home.write("c/agent-deck/config.toml", "");
        assert_eq!(roots.config_toml().unwrap(), other);
        roots.xdg_config_home = Some("c".into());
        assert_eq!(roots.config_toml().unwrap(), xdg);
    }

    #[test]
    fn a_look_that_fails_is_an_error() {
        let home = Scratch::new();
        home.write(".local/share/agent-deck", "a file in place of the folder");
        let error = roots(&home, None).hooks().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotADirectory);
        assert!(error.to_string().contains("agent-deck"), "{error}");
        let root = home.write("root", "");
        let roots = Roots {
            agent_deck_root: Some(root),
            ..roots(&Scratch::new(), None)
        };
        assert!(roots.hooks().is_err());
    }

    #[test]
    fn spawn_files_are_named_as_agent_deck_names_them() {
        let id = SessionId::parse("1a2b_c.d-17").unwrap();
        let locks = Path::new("/l");
        assert_eq!(
            spawn_lock(locks, &id),
            Path::new("/l/instance-spawn-1a2b_c_d-17.lock")
        );
        assert_eq!(
            spawn_stamp(locks, &id),
            Path::new("/l/instance-spawn-1a2b_c_d-17.stamp")
        );
    }
}
