//! What the program leaves behind is for its user alone, whatever the umask; the
//! real binary on the stand-in deck.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/past.rs"]
mod past;
mod scene;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use common::Deck;
use past::through_shell;
use scene::with_agents;

/// The program, started by a shell with this umask.
fn under(deck: &Deck, umask: &str, args: &[&str]) -> Output {
    let script = format!("umask {umask} && exec \"$0\" \"$@\"");
    through_shell(deck, &script, args).output().unwrap()
}

/// All that lies below a folder, and the folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(below(&path)),
            false => found.push(path),
        }
    }
    found
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn all_is_for_its_user_alone_whatever_the_umask() {
    for umask in ["000", "002", "022", "027", "077", "177", "277", "777"] {
        let deck = with_agents();
        let id = deck.row("conductor-ops").dead().add();
        let hold = under(&deck, umask, &["hold", &id]);
        assert!(hold.status.success(), "{umask}: {hold:?}");
        let once = under(&deck, umask, &["--once"]);
        assert!(once.status.success(), "{umask}: {once:?}");
        let found = below(&deck.watchdog_dir());
        let has = |name: &str| found.iter().any(|path| path.ends_with(name));
        assert!(
            has("state.json") && has("watchdog.log") && has("lock") && has(&id),
            "{found:?}"
        );
        for path in found {
            let wanted = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode(&path), wanted, "umask {umask}: {}", path.display());
        }
        // It can read all of that again, and the limits hold.
        let again = under(&deck, umask, &["--once"]);
        assert!(again.status.success(), "{umask}: {again:?}");
        let all = deck.read("watchdog.log");
        assert!(!all.contains("ERROR") && !all.contains("CRITICAL"), "{all}");
    }
}
