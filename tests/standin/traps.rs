//! Forced behaviours: what a command does instead of, or besides, answering as
//! it should. Does not know the commands.
//!
//! A trap is the folder `traps/<command>/<key>/`, else `traps/<command>/`, of
//! these files. Commands: `list` (key: profile), `show`, `output`, `restart`,
//! `send`, `children`, `start`, `stop`, `archive` (key: id), `version`,
//! `profile-list`, `ps`, `escalate.sh`, `curl`.
//!
//! | file | effect |
//! | --- | --- |
//! | `stdout` | these bytes instead of the answer, with exit 0 unless `exit` says more |
//! | `exit` | this code, and no answer but `stdout` |
//! | `stderr` | these bytes on stderr, besides whatever else happens |
//! | `act` | the command does its work first, only its answer is replaced |
//! | `delay_ms` | wait so long: before the work, or with `act` after it |
//! | `hang` | never answer (with `act`: work first); ends when killed or when the deck is gone |
//! | `grandchild` | leave a process behind that keeps stdout open |
//! | `db_locked` | `restart`, `stop`: work, wait so many ms, fail to save it |
//! | `times` | the trap is used so often and then disappears |

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::Answer;
use crate::deck::{self, Deck};

/// First argument of the process that a trap leaves behind.
pub const GRANDCHILD: &str = "--stand-in-grandchild";

const FILES: &[&str] = &[
    "stdout",
    "exit",
    "stderr",
    "act",
    "delay_ms",
    "hang",
    "grandchild",
    "db_locked",
    "times",
];

/// What was found in a trap's folder.
#[derive(Default)]
pub struct Trap {
    stdout: Option<Vec<u8>>,
    exit: Option<i32>,
    stderr: Vec<u8>,
    act: bool,
    delay: Duration,
    hang: bool,
    grandchild: bool,
    /// The save of a changing command fails after this long.
    pub db_locked: Option<Duration>,
}

/// Answers a command, by the trap set for it or as it should.
pub fn answer(
    deck: &Deck,
    command: &str,
    key: Option<&str>,
    work: impl FnOnce(&Trap) -> io::Result<Answer>,
) -> io::Result<Answer> {
    let trap = take(deck, command, key)?;
    if trap.grandchild {
        leave_grandchild(deck)?;
    }
    if trap.hang {
        if trap.act {
            work(&trap)?;
        }
        deck.sit();
        std::process::exit(0);
    }
    let forced = trap.stdout.is_some() || trap.exit.is_some();
    let mut answer = if !forced {
        deck.sleep(trap.delay);
        work(&trap)?
    } else {
        if trap.act {
            work(&trap)?;
        }
        deck.sleep(trap.delay);
        Answer {
            stdout: trap.stdout.unwrap_or_default(),
            stderr: Vec::new(),
            code: trap.exit.unwrap_or(0),
        }
    };
    answer.stderr.extend(trap.stderr);
    Ok(answer)
}

/// Finds the trap for a call and counts its use.
fn take(deck: &Deck, command: &str, key: Option<&str>) -> io::Result<Trap> {
    let general = deck.file("traps").join(command);
    if !general.is_dir() {
        return Ok(Trap::default());
    }
    // Two calls at once must not both take the last use of a trap.
    let lock = File::create(deck.file("traps.lock"))?;
    lock.lock()?;
    let special = key.map(|key| general.join(key)).filter(|dir| dir.is_dir());
    let dir = special.unwrap_or(general);
    let read = |name: &str| std::fs::read(dir.join(name)).ok();
    let number = |name: &str| {
        let text = String::from_utf8(read(name)?).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let trap = Trap {
        stdout: read("stdout"),
        exit: number("exit").and_then(|code| i32::try_from(code).ok()),
        stderr: read("stderr").unwrap_or_default(),
        act: dir.join("act").exists(),
        delay: Duration::from_millis(number("delay_ms").unwrap_or(0)),
        hang: dir.join("hang").exists(),
        grandchild: dir.join("grandchild").exists(),
        db_locked: number("db_locked").map(Duration::from_millis),
    };
    if let Some(times) = number("times") {
        count_down(&dir, times)?;
    }
    Ok(trap)
}

fn count_down(dir: &Path, times: u64) -> io::Result<()> {
    if times > 1 {
        return deck::save(&dir.join("times"), (times - 1).to_string().as_bytes());
    }
    for name in FILES {
        deck::remove(&dir.join(name))?;
    }
    // Stays when there are traps for single keys in it.
    let _ = std::fs::remove_dir(dir);
    Ok(())
}

/// Under another name, so that nobody takes it for agent-deck at work.
fn leave_grandchild(deck: &Deck) -> io::Result<()> {
    let program: PathBuf = deck.bin("ps");
    Command::new(program)
        .arg(GRANDCHILD)
        .stdin(Stdio::null())
        .spawn()?;
    Ok(())
}
