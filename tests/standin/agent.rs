//! The fake agent and what it starts: sits there, or ends as its row says. Does
//! not draw anything; the screen is the row's file `pane`.
//!
//! The file `agent` (for one life `agent_once`) holds words, obeyed in order:
//!
//! | word | effect |
//! | --- | --- |
//! | `exit:MS` or `exit:MS:CODE` | end after so many milliseconds (code 1) |
//! | `tool` | start a `bash` with `CLAUDECODE=1` that outlives the agent |
//! | `poller` | start a poller of Telegram, which ends with the agent |
//! | `poller-after:MS` | the same after so many milliseconds |
//! | `stubborn-poller` | start one that outlives the agent and does not mind SIGTERM |
//! | `zombie-poller` | start one that has ended and is not reaped |
//! | `no-poller` | nothing, said aloud |
//!
//! All of them end with the deck, and all but the stubborn poller with the tmux
//! server, whose end of the pipe they read. A row with a file `own_status` has
//! an agent that tells its status (see `status.rs`).

use std::io::{self, Read};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::deck::{self, Deck, now_ms};
use crate::session::Session;
use crate::status;

/// In the environment of a process that shall not mind SIGTERM.
const STUBBORN: &str = "STAND_IN_STUBBORN";

/// Plays `claude`, `bash`, `bun` or `node`.
pub fn run(deck: &Deck, program: &str) -> io::Result<i32> {
    if std::env::var_os(STUBBORN).is_some() {
        let ignored = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGTERM, ignored)?;
        deck.sit();
        return Ok(0);
    }
    let row = match program {
        "claude" => own_row(deck),
        _ => None,
    };
    // Others have no row of their own: an agent has started them.
    let Some(row) = row else { return sit() };
    let words = row.text("agent_once").or_else(|| row.text("agent"));
    let telling = status::tell(deck, &row)?;
    let ended = live(deck, &row, &words.unwrap_or_default());
    telling.end();
    ended
}

/// Obeys the words, then sits.
fn live(deck: &Deck, row: &Session, words: &str) -> io::Result<i32> {
    // Dropped at the end, and with them the pipes that its pollers read.
    let mut pipes: Vec<ChildStdin> = Vec::new();
    for word in words.split_whitespace() {
        let (name, value) = word.split_once(':').unwrap_or((word, ""));
        match name {
            "no-poller" => {}
            "tool" => {
                Command::new(deck.bin("bash"))
                    .args(["-c", "background work"])
                    .env("CLAUDECODE", "1")
                    .stdin(Stdio::inherit())
                    .spawn()?;
            }
            "poller" | "poller-after" | "stubborn-poller" => {
                if name == "poller-after" {
                    deck.sleep(Duration::from_millis(number(value)?));
                }
                let mut poller = start_poller(deck, row, name == "stubborn-poller")?;
                pipes.extend(poller.stdin.take());
                // Nobody has to wait for it: it is reaped when it ends.
                std::thread::spawn(move || poller.wait());
            }
            "zombie-poller" => start_poller(deck, row, false)?.kill()?,
            "exit" => {
                let (ms, code) = value.split_once(':').unwrap_or((value, "1"));
                deck.sleep(Duration::from_millis(number(ms)?));
                return Ok(i32::try_from(number(code)?).unwrap_or(1));
            }
            _ => return Err(io::Error::other(format!("unknown word {word}"))),
        }
    }
    sit()
}

/// A server of the Telegram plugin as the agent starts it: same process group,
/// with what all its children have in their environment.
fn start_poller(deck: &Deck, row: &Session, stubborn: bool) -> io::Result<Child> {
    let config = status::config_folder();
    let plugin = "plugins/cache/claude-plugins-official/telegram/0.0.6";
    let mut command = Command::new(deck.bin("bun"));
    command
        .args(["run", "--cwd"])
        .arg(config.join(plugin))
        .args(["--shell=bun", "--silent", "start"])
        .env("CLAUDECODE", "1")
        .env(
            "CLAUDE_CODE_SESSION_ID",
            row.text_or("agent_session_id", ""),
        )
        .env("CLAUDE_PROJECT_DIR", row.text_or("path", "/home/u/proj"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    if stubborn {
        command.env(STUBBORN, "1");
    }
    let child = command.spawn()?;
    let line = format!("{}\n", child.id());
    deck::add(&row.path("pollers"), line.as_bytes())?;
    Ok(child)
}

/// The row this agent belongs to; `agent_once` is used up when it starts.
fn own_row(deck: &Deck) -> Option<Session> {
    let id = std::env::var("AGENTDECK_INSTANCE_ID").ok()?;
    let profile = std::env::var("AGENTDECK_PROFILE").ok()?;
    let row = Session::load(deck, &profile, &id).ok()?;
    let _ = deck::remove(&row.path("agent_once"));
    Some(row)
}

/// Sits until the tmux server closes the pipe.
fn sit() -> io::Result<i32> {
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(0)
}

fn number(text: &str) -> io::Result<u64> {
    text.parse()
        .map_err(|_| io::Error::other(format!("no number: {text}")))
}

/// The screen of a session that has just come up: its file `next_pane`, else a
/// free composer (a `❯` and a no-break space between two rules, as the real
/// agent draws it).
pub fn first_screen(row: &Session) -> Vec<u8> {
    if let Some(screen) = row.bytes("next_pane") {
        return screen.to_vec();
    }
    let rule = "─".repeat(80);
    format!(
        "✻ Welcome back!\n\n  {}, up since {}\n\n{rule}\n❯\u{a0}\n{rule}\n  ? for shortcuts\n",
        row.tmux_name(),
        now_ms()
    )
    .into_bytes()
}
