//! The commands that change something: restart, start, stop, archive.
//! They do what the real ones were seen to do (contract 5), traps included.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::Answer;
use crate::agent;
use crate::cli::Call;
use crate::deck::{self, Deck, is_alive, now_ms, rfc3339, unique};
use crate::json::Json;
use crate::session::Session;
use crate::tmux;

/// `restart` spares rows started less than this ago (contract 5.2).
const FRESH_S: u64 = 60;
/// tmux goes so long before `stop` saves its status, unless told otherwise.
const STOP_GAP_MS: u64 = 60;
/// A spawn lock older than this is nobody's any more (contract 5.1).
const LOCK_STALE: Duration = Duration::from_secs(120);
/// How often, and how many times, a held spawn lock is looked at.
const LOCK_LOOK: Duration = Duration::from_millis(100);
const LOCK_LOOKS: u32 = 300;

const INVALID: &str = "INVALID_OPERATION";
const NOT_SAVED: &str = "failed to save session state: failed to save instances: \
                         database is locked (5) (SQLITE_BUSY)";

/// `session restart`.
pub fn restart(
    call: &Call,
    mut row: Session,
    force: bool,
    db_locked: Option<Duration>,
) -> io::Result<Answer> {
    if let (false, Some(reason)) = (force, skip_reason(call.deck, &row)?) {
        let mut pairs = subject(&row);
        pairs.push(("skipped", Json::Bool(true)));
        pairs.push(("reason", Json::text(reason)));
        return Ok(call.done(pairs, "skipped"));
    }
    let Some(lock) = SpawnLock::take(call.deck, &row.id)? else {
        return Ok(call.failed(INVALID, "failed to restart session: locked", 1, Vec::new()));
    };
    let had_pane = row.has("pane");
    if lock.waited {
        row = Session::load(call.deck, &row.profile, &row.id)?;
    }
    if lock.waited && !had_pane && row.has("pane") {
        // Somebody else has started it meanwhile. This one does nothing, says
        // success, and its save puts the old tmux name back: the agent lives
        // and the row reads `error`.
        hide_pane(&row)?;
        return Ok(call.done(subject(&row), "restarted"));
    }
    let wish = row.take_line("after_restart", "works")?;
    if row.has("missing_dir") {
        return Ok(call.failed(INVALID, &no_folder(&row), 1, Vec::new()));
    }
    let (word, rest) = wish.split_once(' ').unwrap_or((&wish, ""));
    match word {
        "no-effect" => return Ok(call.done(subject(&row), "restarted")),
        "exit" => {
            let (code, text) = rest.split_once(' ').unwrap_or((rest, "exit status 1"));
            let why = format!("failed to restart session: {text}");
            let code = code.parse().unwrap_or(1);
            return Ok(call.failed(INVALID, &why, code, Vec::new()));
        }
        _ => {}
    }
    // A live pane whose agent is known is respawned under its old name.
    let known = !row.text_or("agent_session_id", "").is_empty();
    if !(known && row.tmux_exists(call.deck)) {
        let old = row.tmux_name();
        let stem = old.rsplit_once('_').map_or(old.as_str(), |(stem, _)| stem);
        let suffix = unique() & 0xffff_ffff;
        row.save("tmux", format!("{stem}_{suffix:08x}"))?;
    }
    spawn(call.deck, &mut row, word)?;
    row.save("status", "waiting")?;
    row.save("substate", "idle-at-empty-prompt")?;
    row.remove("pane_exit")?;
    match word {
        "unknown" => row.save("printed", "unknown")?,
        _ => row.remove("printed")?,
    }
    if let Some(span) = db_locked {
        hide_pane(&row)?;
        call.deck.sleep(span);
        return Ok(not_saved(call));
    }
    Ok(call.done(subject(&row), "restarted"))
}

fn no_folder(row: &Session) -> String {
    format!(
        "failed to restart session: failed to restart tmux session: session working \
         directory is unavailable: {} does not exist. The session's project directory \
         (or worktree) was deleted or renamed. Starting anyway would not fail — tmux \
         silently starts the pane in $HOME instead, so the agent would run against the \
         wrong tree. Recreate the directory, or point the session at a new path, then \
         start again",
        row.text_or("path", "/home/u/proj")
    )
}

/// Why agent-deck's own guards would leave the row alone; they look at the
/// stored status only.
fn skip_reason(deck: &Deck, row: &Session) -> io::Result<Option<String>> {
    let stored = row.stored();
    let healthy = matches!(stored.as_str(), "running" | "waiting" | "idle" | "starting");
    if let (Some(bytes), false) = (row.bytes("auth_hold"), healthy) {
        let hold: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
        let remedy = hold.get("remedy").and_then(serde_json::Value::as_str);
        let remedy = remedy.unwrap_or("automatic restarts cannot fix a credential.");
        return Ok(Some(format!("{remedy} (use --force to restart anyway)")));
    }
    let Some(started) = row.number("started").filter(|_| deck.has("freshness")) else {
        return Ok(None);
    };
    let age = (now_ms() / 1000).saturating_sub(started);
    if !healthy || age >= FRESH_S {
        return Ok(None);
    }
    Ok(Some(format!(
        "session is {stored} and was started {age}s ago (within 1m0s freshness window); \
         use --force to restart anyway"
    )))
}

/// Brings up pane and agent. With the word `dies` the agent goes at once, with
/// `unknown` there is a pane and never an agent.
fn spawn(deck: &Deck, row: &mut Session, word: &str) -> io::Result<()> {
    if row.text_or("agent_session_id", "").is_empty() {
        let n = unique();
        let id = format!("{:08x}-0000-4000-8000-{:012x}", n >> 32, n & 0xffff_ffff);
        row.save("agent_session_id", id)?;
    }
    row.remove("pane.lost")?;
    row.save("started", (now_ms() / 1000).to_string())?;
    let stamp = deck.file(&format!("locks/instance-spawn-{}.stamp", row.id));
    let stamp = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(stamp)?;
    stamp.set_modified(SystemTime::now())?;
    if deck.has("tmux.on") && word != "unknown" {
        if word == "dies" {
            row.save("agent_once", "exit:0")?;
        }
        tmux::bring_up(deck)?;
        return tmux::ask(deck, "start", row);
    }
    if word == "dies" {
        return row.remove("pane");
    }
    let screen = agent::first_screen(row);
    row.save("pane", screen)
}

/// The row now names a tmux session that is not there; the agent goes on.
fn hide_pane(row: &Session) -> io::Result<()> {
    match std::fs::rename(row.path("pane"), row.path("pane.lost")) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// `session start`: an old tmux name is kept, no guard is asked.
pub fn start(call: &Call, mut row: Session) -> io::Result<Answer> {
    if row.tmux_exists(call.deck) {
        let why = format!("session '{}' is already running", row.title());
        return Ok(call.failed(INVALID, &why, 1, Vec::new()));
    }
    let Some(_lock) = SpawnLock::take(call.deck, &row.id)? else {
        return Ok(call.failed(INVALID, "failed to start session: locked", 1, Vec::new()));
    };
    spawn(call.deck, &mut row, "works")?;
    row.save("status", "starting")?;
    row.save("substate", "idle-at-empty-prompt")?;
    for gone in ["spawn_failure", "printed", "pane_exit"] {
        row.remove(gone)?;
    }
    let mut pairs = subject(&row);
    pairs.push(("tmux", Json::text(row.tmux_name())));
    let agent = row.text_or("agent_session_id", "");
    pairs.push(("claude_session_id", Json::text(agent)));
    Ok(call.done(pairs, "started"))
}

/// `session stop`.
pub fn stop(call: &Call, mut row: Session, db_locked: Option<Duration>) -> io::Result<Answer> {
    if !row.tmux_exists(call.deck) {
        let why = format!("session '{}' is not running", row.title());
        return Ok(call.failed(INVALID, &why, 1, Vec::new()));
    }
    end(call.deck, &mut row)?;
    if let Some(span) = db_locked {
        call.deck.sleep(span);
        return Ok(not_saved(call));
    }
    row.save("status", "stopped")?;
    Ok(call.done(subject(&row), "stopped"))
}

/// `session archive`: stops it and hides it.
pub fn archive(call: &Call, mut row: Session) -> io::Result<Answer> {
    if row.tmux_exists(call.deck) {
        end(call.deck, &mut row)?;
    }
    row.save("status", "stopped")?;
    row.save("archived", rfc3339(now_ms() / 1000))?;
    let mut pairs = subject(&row);
    pairs.push(("archived", Json::Bool(true)));
    Ok(call.done(pairs, "archived"))
}

/// Ends tmux session and agent. The status is saved a moment later.
fn end(deck: &Deck, row: &mut Session) -> io::Result<()> {
    if row.has("server") {
        tmux::ask(deck, "stop", row)?;
    }
    row.remove("pane")?;
    row.remove("auth_hold")?;
    let gap = deck.number("stop_gap_ms").unwrap_or(STOP_GAP_MS);
    deck.sleep(Duration::from_millis(gap));
    Ok(())
}

fn subject(row: &Session) -> Vec<(&'static str, Json)> {
    vec![
        ("id", Json::text(row.id.as_str())),
        ("title", Json::text(row.title())),
    ]
}

/// What a changing command says when another process holds the database.
fn not_saved(call: &Call) -> Answer {
    let mut answer = call.failed(INVALID, NOT_SAVED, 1, Vec::new());
    answer.stderr.extend_from_slice(
        b"ERROR statedb: SQLITE_BUSY exhausted retries attempts=5 \
          err=\"database is locked (5) (SQLITE_BUSY)\"\n",
    );
    answer
}

/// `locks/instance-spawn-<id>.lock`: one start or restart of a row at a time.
struct SpawnLock {
    file: PathBuf,
    waited: bool,
}

impl SpawnLock {
    /// Takes the lock; `None` when it stayed held for half a minute.
    fn take(deck: &Deck, id: &str) -> io::Result<Option<SpawnLock>> {
        deck::folder(&deck.file("locks"))?;
        let file = deck.file(&format!("locks/instance-spawn-{id}.lock"));
        let mut waited = false;
        for _ in 0..LOCK_LOOKS {
            match OpenOptions::new().write(true).create_new(true).open(&file) {
                Ok(mut made) => {
                    write!(made, "{}", std::process::id())?;
                    return Ok(Some(SpawnLock { file, waited }));
                }
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
                Err(_) if is_stale(&file) => deck::remove(&file)?,
                Err(_) => {
                    if !waited {
                        deck.log_agent("wait", id, std::process::id())?;
                    }
                    waited = true;
                    deck.sleep(LOCK_LOOK);
                }
            }
        }
        Ok(None)
    }
}

impl Drop for SpawnLock {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

fn is_stale(file: &PathBuf) -> bool {
    let age = |m: std::fs::Metadata| m.modified().ok()?.elapsed().ok();
    match std::fs::metadata(file).ok().and_then(age) {
        Some(age) if age > LOCK_STALE => true,
        // Just made and not yet written counts as held.
        Some(_) => {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            text.trim().parse().is_ok_and(|pid| !is_alive(pid))
        }
        None => false,
    }
}
