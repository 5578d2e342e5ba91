//! Fake agents as processes, under a fake tmux server.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::{Deck, wait_for, write};

impl Deck {
    /// Starts the fake tmux server. From now on agents are processes, and a
    /// restart without a server brings one up.
    pub fn start_tmux(&self) {
        write(&self.file("tmux.on"), "");
        let mut server = Command::new(self.file("bin/tmux: server"));
        let server = self.clean(&mut server).stdin(Stdio::null()).spawn();
        *self.server.lock().unwrap() = Some(server.unwrap());
        wait_for("the tmux server", || {
            UnixStream::connect(self.file("tmux.sock")).ok()
        });
    }

    /// Kills the server started by [`Deck::start_tmux`], and with it its agents.
    pub fn kill_tmux(&self) {
        if let Some(mut server) = self.server.lock().unwrap().take() {
            server.kill().unwrap();
            server.wait().unwrap();
        }
    }

    /// Starts the agent of a row behind the screen it has; returns its number.
    pub fn start_agent(&self, id: &str) -> u32 {
        self.start_agent_that_may_end(id);
        self.agent_pid(id).unwrap()
    }

    /// The same for one that may have ended already when this returns.
    pub fn start_agent_that_may_end(&self, id: &str) {
        let row = self.row_dir(id);
        let profile = row.ancestors().nth(2).and_then(Path::file_name).unwrap();
        let profile = profile.to_str().unwrap();
        let mut stream = UnixStream::connect(self.file("tmux.sock")).unwrap();
        writeln!(stream, "adopt\t{profile}\t{id}").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert_eq!(reply, "ok\n");
    }

    /// Process number of a row's agent, if one runs.
    pub fn agent_pid(&self, id: &str) -> Option<u32> {
        self.get(id, "agent_pid")?.parse().ok()
    }

    /// Kills the agent of a row with SIGKILL; its session ends a moment later.
    pub fn kill_agent(&self, id: &str) {
        let pid = i32::try_from(self.agent_pid(id).unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }

    /// What happened to agents so far: unix milliseconds, `start`, `end` or `wait`
    /// (for a spawn lock), id.
    pub fn agent_log(&self) -> Vec<(u64, String, String)> {
        let text = std::fs::read_to_string(self.file("agent.log")).unwrap_or_default();
        let line = |line: &str| {
            let words: Vec<&str> = line.split('\t').collect();
            (
                words[0].parse().unwrap(),
                words[1].to_owned(),
                words[2].to_owned(),
            )
        };
        text.lines().map(line).collect()
    }
}

/// Whether a process runs; one that has ended and waits to be reaped does not.
pub fn is_running(pid: u32) -> bool {
    if cfg!(target_os = "linux") {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.chars().next());
        return state.is_some_and(|state| !"ZX".contains(state));
    }
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid).is_ok())
}
