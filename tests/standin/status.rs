//! What an agent says of itself: `sessions/<pid>.json` in its config folder. It
//! follows the row's file `own_status` and goes with an orderly end (SIGTERM,
//! the end of the tmux server, its own end), not with SIGKILL. Without that file
//! in the row nothing is said, and nothing is looked at.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::deck::{self, Deck, now_ms};
use crate::session::Session;

/// How often the row is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// The version whose file this is.
const VERSION: &str = "2.1.197";

/// The agent's config folder.
pub fn config_folder() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".claude");
    std::env::var_os("CLAUDE_CONFIG_DIR").map_or_else(home, PathBuf::from)
}

/// An agent that tells; ended with [`Telling::end`].
pub struct Telling {
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Telling {
    /// Takes the file away.
    pub fn end(self) {
        self.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread {
            let _ = thread.join();
        }
    }
}

/// Begins to tell, if the row wants it.
pub fn tell(deck: &Deck, row: &Session) -> io::Result<Telling> {
    let ending = Arc::new(AtomicBool::new(false));
    if !row.has("own_status") {
        return Ok(Telling {
            ending,
            thread: None,
        });
    }
    let terminated = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&terminated))?;
    let config = config_folder();
    deck::folder(&config)?;
    deck::folder(&config.join("sessions"))?;
    let file = config.join(format!("sessions/{}.json", std::process::id()));
    let place = file.to_string_lossy().into_owned();
    deck::save(&row.path("status_file"), place.as_bytes())?;
    let (wish, own_id) = (row.path("own_status"), row.text_or("agent_session_id", ""));
    let folder = row.text_or("path", "/home/u/proj");
    let (deck, stop) = (deck.clone(), Arc::clone(&ending));
    let thread = std::thread::spawn(move || {
        let mut said = String::new();
        while !stop.load(Ordering::Relaxed) {
            let wanted = std::fs::read_to_string(&wish).unwrap_or_default();
            if wanted != said {
                // The test may just be taking everything away.
                let _ = say(&file, wanted.trim(), &own_id, &folder);
                said = wanted;
            }
            if terminated.load(Ordering::Relaxed) {
                let _ = deck::remove(&file);
                std::process::exit(143);
            }
            deck.sleep(LOOK);
        }
        let _ = deck::remove(&file);
    });
    Ok(Telling {
        ending,
        thread: Some(thread),
    })
}

/// Writes the file, or removes it while there is nothing to say.
fn say(file: &Path, status: &str, own_id: &str, folder: &str) -> io::Result<()> {
    if status.is_empty() {
        return deck::remove(file);
    }
    let (status, waiting_for) = status.split_once(' ').unwrap_or((status, ""));
    let mut record = serde_json::json!({
        "pid": std::process::id(),
        "sessionId": own_id,
        "cwd": folder,
        "procStart": started(),
        "version": VERSION,
        "kind": "interactive",
        "status": status,
        "updatedAt": now_ms(),
    });
    if !waiting_for.is_empty() {
        record["waitingFor"] = waiting_for.into();
    }
    deck::save(file, record.to_string().as_bytes())
}

/// Its own start as `/proc` has it.
fn started() -> String {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let words = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    words.split(' ').nth(19).unwrap_or("0").to_owned()
}
