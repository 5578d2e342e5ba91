//! Whether two folders lead to the same bot: a digest of its token, which is
//! compared and never written anywhere.
//!
//! This file does not know whose folders they are.

use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::read;
use crate::model::Digest;

/// Where the plugin keeps its token: `NAME=value` in the folder's `.env`.
const NAME: &str = "TELEGRAM_BOT_TOKEN=";

/// SHA-256 of the token in a state folder; `None` where there is none to be read.
pub fn token(folder: &Path) -> Option<Digest> {
    let text = read(&folder.join(".env")).ok()??;
    let line = text.lines().rev().find_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("export ")
            .unwrap_or(line)
            .strip_prefix(NAME)
    })?;
    let value = line.trim().trim_matches(['"', '\'']);
    (!value.is_empty()).then(|| Sha256::digest(value.as_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn tokens_are_compared_whatever_stands_around_them() {
        let folder = |text: &str| {
            let folder = Scratch::new();
            folder.write(".env", text);
            token(folder.path())
        };
        let bot = folder("TELEGRAM_BOT_TOKEN=1:abc\n");
        assert!(bot.is_some());
        for same in [
            "TELEGRAM_BOT_TOKEN=\"1:abc\"",
            "A=b\nexport TELEGRAM_BOT_TOKEN='1:abc'\r\n",
            "TELEGRAM_BOT_TOKEN=old\nTELEGRAM_BOT_TOKEN=1:abc",
        ] {
            assert_eq!(folder(same), bot, "{same}");
        }
        assert_ne!(folder("TELEGRAM_BOT_TOKEN=2:abc"), bot);
        for none in ["", "TELEGRAM_BOT_TOKEN=\n", "# TELEGRAM_BOT_TOKEN=1:abc"] {
            assert_eq!(folder(none), None, "{none}");
        }
        assert_eq!(token(Path::new("/nowhere")), None);
    }
}
