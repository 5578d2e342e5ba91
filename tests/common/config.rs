//! Files that agent-deck builds a session's environment from, in the home of a
//! deck. Does not know which of them counts.

use std::path::{Path, PathBuf};

use super::{Deck, write};

impl Deck {
    /// `config.toml` in its XDG place.
    pub fn config(&self, toml: &str) -> PathBuf {
        self.home_file(".config/agent-deck/config.toml", toml)
    }

    /// `config.toml` in its legacy place.
    pub fn legacy_config(&self, toml: &str) -> PathBuf {
        self.home_file(".agent-deck/config.toml", toml)
    }

    /// The `meta.json` of a conductor in the data folder.
    pub fn meta(&self, name: &str, json: &str) -> PathBuf {
        let file = self.file(format!("conductor/{name}/meta.json"));
        put(&file, json);
        file
    }

    /// The same in the legacy place.
    pub fn legacy_meta(&self, name: &str, json: &str) -> PathBuf {
        self.home_file(&format!(".agent-deck/conductor/{name}/meta.json"), json)
    }

    /// A `meta.json` with one variable.
    pub fn meta_env(&self, name: &str, key: &str, value: &str) -> PathBuf {
        let record = serde_json::json!({ "name": name, "agent": "claude", "env": { key: value } });
        self.meta(name, &record.to_string())
    }

    /// A file below HOME, such as an env file or a `settings.json`.
    pub fn home_file(&self, path: &str, content: &str) -> PathBuf {
        let file = self.home().join(path);
        put(&file, content);
        file
    }

    /// A folder below HOME, made, as text: a `TELEGRAM_STATE_DIR`.
    pub fn home_folder(&self, path: &str) -> String {
        let folder = self.home().join(path);
        std::fs::create_dir_all(&folder).unwrap();
        folder.to_str().unwrap().to_owned()
    }

    /// `ps` prints the real processes of this deck.
    pub fn live_ps(&self) {
        write(&self.file("ps.live"), "");
    }

    /// Distance of poller restarts in seconds, for all further runs.
    pub fn poller_dedup(&self, seconds: u32) {
        self.setting("POLLER_RESTART_DEDUP_S", &seconds.to_string());
    }
}

fn put(file: &Path, content: &str) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    write(file, content);
}
