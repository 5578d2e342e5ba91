//! Whether a program of the user's that we run could be changed by somebody else.
//!
//! This file does not know which programs these are, nor what they are for.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Write rights of group and others; as for our folder.
const OTHERS: u32 = 0o022;
/// The same of everybody, and the bit that keeps them from the files of others.
const EVERYBODY: u32 = 0o002;
const STICKY: u32 = 0o1000;
/// Who is shown as owner where a user namespace does not know the real one, root as a
/// rule (Linux: /proc/sys/kernel/overflowuid). Nobody logs in as that user.
const UNKNOWN: u32 = 65_534;

/// Who decides what a program does, beside us and root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hands {
    /// The user of that number, to whom it belongs.
    Owner(u32),
    /// Others, who may write to it.
    Others,
    /// Everybody, who may put another one in its place: this folder is open.
    Folder(PathBuf),
}

impl fmt::Display for Hands {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Hands::Owner(user) => write!(out, "it belongs to user {user}"),
            Hands::Others => out.write_str("others may change it"),
            Hands::Folder(folder) => {
                write!(out, "others may write to {}", folder.display())
            }
        }
    }
}

/// In whose hands a program is; `None`: in ours or root's alone, or not there.
/// Links are followed, and the folders above what they lead to count.
pub fn other_hands(program: &Path) -> Option<Hands> {
    let real = fs::canonicalize(program).ok()?;
    let file = fs::metadata(&real).ok()?;
    if !ours(file.uid()) {
        return Some(Hands::Owner(file.uid()));
    }
    if file.mode() & OTHERS != 0 {
        return Some(Hands::Others);
    }
    let open = real.ancestors().skip(1).find(|folder| is_open(folder))?;
    Some(Hands::Folder(open.to_owned()))
}

fn ours(user: u32) -> bool {
    user == 0 || user == UNKNOWN || user == rustix::process::geteuid().as_raw()
}

/// Whether somebody else may put another file in the place of one in this folder.
fn is_open(folder: &Path) -> bool {
    let Ok(folder) = fs::metadata(folder) else {
        return false;
    };
    let everybody = folder.mode() & EVERYBODY != 0 && folder.mode() & STICKY == 0;
    everybody || !ours(folder.uid())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::scratch::Scratch;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn whoever_may_write_decides() {
        let scratch = Scratch::new();
        let folder = scratch.join("bin");
        fs::create_dir(&folder).unwrap();
        let program = folder.join("program");
        fs::write(&program, "").unwrap();
        let link = scratch.join("link");
        std::os::unix::fs::symlink(&program, &link).unwrap();
        let open = Some(Hands::Folder(fs::canonicalize(&folder).unwrap()));
        for (of_folder, of_file, hands) in [
            (0o700, 0o700, None),
            (0o755, 0o755, None),
            (0o775, 0o755, None),
            (0o700, 0o720, Some(Hands::Others)),
            (0o700, 0o702, Some(Hands::Others)),
            (0o757, 0o700, open.clone()),
            (0o777, 0o755, open),
            (0o1777, 0o755, None),
        ] {
            set(&folder, of_folder);
            set(&program, of_file);
            for path in [&program, &link] {
                assert_eq!(other_hands(path), hands, "{of_folder:o} {of_file:o}");
            }
        }
        assert_eq!(other_hands(&scratch.join("missing")), None);
    }

    #[test]
    fn what_belongs_to_others_is_theirs() {
        assert_eq!(other_hands(Path::new("/bin/sh")), None);
        assert!(ours(0) && ours(rustix::process::geteuid().as_raw()));
        assert!(!ours(u32::MAX - 2));
    }
}
