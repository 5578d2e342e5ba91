//! The fake tmux server: parent of the fake agents, and the way to ask it.
//!
//! It answers one line per connection on `<deck>/tmux.sock`: a verb, profile and
//! id, with tabs between. `start` gives the row a new screen and agent, `adopt`
//! an agent behind the screen it has, `stop` ends it. An agent that ends takes its tmux session
//! along, as in reality. Each agent has the reading end of a pipe as stdin; when
//! the server ends, however it ends, they read the end of it and go too.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

use crate::agent;
use crate::deck::{self, Deck};
use crate::session::Session;

/// How long a server may take to come up.
const COME_UP: Duration = Duration::from_secs(30);

/// Whether a server answers; looked up once in a call.
pub fn is_running(deck: &Deck) -> bool {
    static RUNNING: OnceLock<bool> = OnceLock::new();
    *RUNNING.get_or_init(|| UnixStream::connect(deck.file("tmux.sock")).is_ok())
}

/// Asks the server to `start` or `stop` an agent, and waits until that is done.
pub fn ask(deck: &Deck, verb: &str, row: &Session) -> io::Result<()> {
    let mut stream = UnixStream::connect(deck.file("tmux.sock"))?;
    writeln!(stream, "{verb}\t{}\t{}", row.profile, row.id)?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    match reply.trim() {
        "ok" => Ok(()),
        other => Err(io::Error::other(format!("tmux: {other}"))),
    }
}

/// Starts a server as tmux does, in its own process group and with the caller's
/// environment, unless one answers.
pub fn bring_up(deck: &Deck) -> io::Result<()> {
    let socket = deck.file("tmux.sock");
    if UnixStream::connect(&socket).is_ok() {
        return Ok(());
    }
    Command::new(deck.bin("tmux: server"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .process_group(0)
        .spawn()?;
    let end = Instant::now() + COME_UP;
    while UnixStream::connect(&socket).is_err() {
        if Instant::now() > end {
            return Err(io::Error::other("no tmux server came up"));
        }
        deck.sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// A running agent.
struct Running {
    pid: Pid,
    child: Child,
}

/// What the server has.
#[derive(Default)]
struct Agents {
    by_id: BTreeMap<String, Running>,
    /// Never dropped before the server ends, so that an agent's tools live on.
    pipes: Vec<ChildStdin>,
}

type Shared = Arc<Mutex<Agents>>;

/// Serves until killed or until the deck is over.
pub fn serve(deck: &Deck) -> io::Result<()> {
    let lock = File::create(deck.file("tmux.lock"))?;
    if lock.try_lock().is_err() {
        return Ok(());
    }
    forget_old_sessions(deck)?;
    let socket = deck.file("tmux.sock");
    deck::remove(&socket)?;
    let listener = UnixListener::bind(&socket)?;
    let agents = Shared::default();
    let watched = deck.clone();
    std::thread::spawn(move || {
        watched.sit();
        std::process::exit(0);
    });
    for stream in listener.incoming() {
        let stream = stream?;
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line)?;
        if line.is_empty() {
            continue; // only wanted to know whether we live
        }
        let reply = match obey(deck, &agents, line.trim_end_matches('\n')) {
            Ok(()) => "ok".to_owned(),
            Err(why) => why.to_string(),
        };
        // The caller may have been killed.
        let _ = writeln!(&stream, "{reply}");
    }
    Ok(())
}

/// Sessions of an earlier server ended with it.
fn forget_old_sessions(deck: &Deck) -> io::Result<()> {
    for entry in std::fs::read_dir(deck.file("profiles"))? {
        let profile = entry?.file_name().to_string_lossy().into_owned();
        for mut row in Session::all(deck, &profile)? {
            if row.has("server") {
                end_session(&mut row)?;
            }
        }
    }
    Ok(())
}

fn end_session(row: &mut Session) -> io::Result<()> {
    row.remove("pane")?;
    row.remove("server")?;
    row.remove("agent_pid")
}

fn obey(deck: &Deck, agents: &Shared, line: &str) -> io::Result<()> {
    let words: Vec<&str> = line.split('\t').collect();
    let [verb, profile, id] = words[..] else {
        return Err(io::Error::other(format!("cannot read {line:?}")));
    };
    // All under the lock: an agent that ends just now must not take the
    // session of its successor along.
    let mut locked = locked(agents);
    end_agent(&mut locked, id, verb == "stop")?;
    let mut row = Session::load(deck, profile, id)?;
    // An agent that is ended in order takes along what it says of itself.
    if let Some(told) = row.text("status_file") {
        deck::remove(std::path::Path::new(&told))?;
        row.remove("status_file")?;
    }
    match verb {
        "start" => row.save("pane", agent::first_screen(&row))?,
        "adopt" if row.has("pane") => {}
        "adopt" => row.save("pane", agent::first_screen(&row))?,
        "stop" => return end_session(&mut row),
        other => return Err(io::Error::other(format!("cannot {other}"))),
    }
    let child = spawn(deck, &mut row)?;
    let pid = note_start(deck, &mut locked, &mut row, child)?;
    let (deck, agents) = (deck.clone(), Arc::clone(agents));
    std::thread::spawn(move || wait_for_end(&deck, &agents, row, pid));
    Ok(())
}

/// Ends an agent and reaps it. A `stop` ends what it started as well.
fn end_agent(agents: &mut Agents, id: &str, with_tools: bool) -> io::Result<()> {
    let Some(mut running) = agents.by_id.remove(id) else {
        return Ok(());
    };
    // It is not reaped before we wait for it, so the number is still its own;
    // whatever goes wrong, it has ended already.
    let _ = if with_tools {
        kill_process_group(running.pid, Signal::KILL)
    } else {
        kill_process(running.pid, Signal::KILL)
    };
    running.child.wait()?;
    Ok(())
}

fn spawn(deck: &Deck, row: &mut Session) -> io::Result<Child> {
    row.save("server", "")?;
    let program = row.text_or("agent_program", "claude");
    let mut command = Command::new(deck.bin(&program));
    if program == "claude" {
        let own_id = row.text_or("agent_session_id", "");
        command.args(["--session-id", &own_id, "--dangerously-skip-permissions"]);
    }
    command.env("AGENTDECK_PROFILE", &row.profile);
    if !row.has("anonymous") {
        command.env("AGENTDECK_INSTANCE_ID", &row.id);
    }
    for line in row.text_or("agent_env", "").lines() {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        command.env(key, value);
    }
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .process_group(0)
        .spawn()
}

fn note_start(
    deck: &Deck,
    agents: &mut Agents,
    row: &mut Session,
    mut child: Child,
) -> io::Result<Pid> {
    let pid = Pid::from_child(&child);
    agents.pipes.extend(child.stdin.take());
    row.save("agent_pid", child.id().to_string())?;
    deck.log_agent("start", &row.id, child.id())?;
    agents.by_id.insert(row.id.clone(), Running { pid, child });
    Ok(pid)
}

/// Waits for one agent's end; its tmux session ends with it.
fn wait_for_end(deck: &Deck, agents: &Shared, mut row: Session, pid: Pid) {
    // Looks without reaping: until it is taken from the map under the lock,
    // nobody may signal a number that could have become somebody else's.
    while let Err(rustix::io::Errno::INTR) = waitid(
        WaitId::Pid(pid),
        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
    ) {}
    let _ = deck.log_agent("end", &row.id, pid.as_raw_nonzero().get().unsigned_abs());
    let mut locked = locked(agents);
    let ours = locked.by_id.get(&row.id).is_some_and(|r| r.pid == pid);
    if !ours {
        return; // it has been replaced, and its successor lives
    }
    if let Some(mut running) = locked.by_id.remove(&row.id) {
        let ended = end_session(&mut row).and_then(|()| running.child.wait());
        if let (Err(why), false) = (ended, deck.is_over()) {
            let _ = deck.append("broken", &format!("tmux server: {why}\n"));
        }
    }
}

fn locked(agents: &Shared) -> MutexGuard<'_, Agents> {
    agents.lock().unwrap_or_else(PoisonError::into_inner)
}
