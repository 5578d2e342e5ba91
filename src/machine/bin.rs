//! Where agent-deck is: named by the user, or searched for until it is found.
//!
//! This file does not know what it is run for.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::config::Bin;

/// The program, once it is found.
pub struct Program {
    bin: Bin,
    found: Option<PathBuf>,
}

impl Program {
    /// Not looked for yet.
    pub fn new(bin: Bin) -> Program {
        Program { bin, found: None }
    }

    /// Its absolute path.
    ///
    /// # Errors
    /// A sentence that names the places that were searched.
    pub fn find(&mut self) -> Result<PathBuf, String> {
        if let Some(found) = &self.found {
            return Ok(found.clone());
        }
        match &self.bin {
            Bin::Named(path) if is_program(path) => {
                self.found = Some(path.clone());
                Ok(path.clone())
            }
            Bin::Named(path) => Err(format!(
                "AGENT_DECK_BIN={} is not an executable file",
                path.display()
            )),
            Bin::Search(places) => match places.iter().find(|place| is_program(place)) {
                Some(place) => {
                    self.found = Some(place.clone());
                    Ok(place.clone())
                }
                None => {
                    let places: Vec<String> = places
                        .iter()
                        .map(|place| place.display().to_string())
                        .collect();
                    Err(format!(
                        "no agent-deck at {}; set AGENT_DECK_BIN",
                        places.join(", ")
                    ))
                }
            },
        }
    }

    /// It is not there any more: look again.
    pub fn forget(&mut self) {
        self.found = None;
    }
}

/// The program of that name in a `PATH`, or in one of some further folders.
pub fn on_path(name: &str, path: &OsStr, further: &[&str]) -> Option<PathBuf> {
    std::env::split_paths(path)
        .chain(further.iter().map(PathBuf::from))
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|place| is_program(place))
}

/// Whether it is a file that somebody may run.
pub fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_program_is_found_where_it_can_be_run() {
        let home = Scratch::new();
        let path = format!("relative::{0}/a:{0}/b", home.path().display());
        let found = || on_path("bun", OsStr::new(&path), &[]).is_some();
        assert!(!found() && on_path("bun", OsStr::new(""), &[]).is_none());
        let bun = home.write("b/bun", "");
        let mode = |mode| std::fs::set_permissions(&bun, PermissionsExt::from_mode(mode)).unwrap();
        mode(0o644);
        assert!(!found());
        mode(0o755);
        assert!(found());
        home.folder("a/bun");
        assert!(found());
    }
}
