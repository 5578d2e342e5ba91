//! The fake agent and what it starts: sits there, or ends as its row says. Does
//! not draw anything; the screen is the row's file `pane`.
//!
//! The file `agent` (for one life `agent_once`) holds words:
//!
//! | word | effect |
//! | --- | --- |
//! | `exit:MS` or `exit:MS:CODE` | end after so many milliseconds (code 1) |
//! | `tool` | start a `bash` with `CLAUDECODE=1` that outlives the agent |
//! | `poller` | start a `bun run telegram` that outlives it too |
//!
//! All of them end with the tmux server, whose end of the pipe they read.

use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::deck::{Deck, now_ms};
use crate::session::Session;

/// Plays `claude`, `bash`, `bun` or `node`.
pub fn run(deck: &Deck, program: &str) -> io::Result<i32> {
    let row = match (program, own_row(deck)) {
        ("claude", Some(row)) => row,
        // No row of its own, or something an agent has started.
        _ => return sit(),
    };
    let words = row.text("agent_once").or_else(|| row.text("agent"));
    for word in words.unwrap_or_default().split_whitespace() {
        match word.split_once(':') {
            None if word == "tool" => {
                Command::new(deck.bin("bash"))
                    .args(["-c", "background work"])
                    .env("CLAUDECODE", "1")
                    .stdin(Stdio::inherit())
                    .spawn()?;
            }
            None if word == "poller" => {
                Command::new(deck.bin("bun"))
                    .args(["run", "telegram/server.ts"])
                    .stdin(Stdio::inherit())
                    .spawn()?;
            }
            Some(("exit", rest)) => {
                let (ms, code) = rest.split_once(':').unwrap_or((rest, "1"));
                deck.sleep(Duration::from_millis(number(ms)?));
                return Ok(i32::try_from(number(code)?).unwrap_or(1));
            }
            _ => return Err(io::Error::other(format!("unknown word {word}"))),
        }
    }
    sit()
}

/// The row this agent belongs to; `agent_once` is used up when it starts.
fn own_row(deck: &Deck) -> Option<Session> {
    let id = std::env::var("AGENTDECK_INSTANCE_ID").ok()?;
    let profile = std::env::var("AGENTDECK_PROFILE").ok()?;
    let row = Session::load(deck, &profile, &id).ok()?;
    let _ = crate::deck::remove(&row.path("agent_once"));
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
