//! Fake pollers of Telegram, and what fake agents say of themselves.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{Deck, is_running, wait_for};

/// The plugin's arguments, as the agent starts it.
const PLUGIN: &str = ".claude/plugins/cache/claude-plugins-official/telegram/0.0.6";

/// A poller that no agent has started; ends with this value.
pub struct Poller(Child);

impl Poller {
    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Ends it now.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Deck {
    /// A poller on this folder (none: the variable is not set) that is below no
    /// agent of the deck.
    pub fn orphan_poller(&self, folder: impl Into<Option<String>>) -> Poller {
        let variables: Vec<_> = folder
            .into()
            .map(|folder| ("TELEGRAM_STATE_DIR", folder))
            .into_iter()
            .collect();
        self.stray_process("bun", &variables)
    }

    /// The same with the environment that a dead agent of this row has left it.
    pub fn left_poller(&self, id: &str, folder: &str) -> Poller {
        let variables = [
            ("TELEGRAM_STATE_DIR", folder.to_owned()),
            ("AGENTDECK_INSTANCE_ID", id.to_owned()),
            ("CLAUDECODE", "1".to_owned()),
        ];
        self.stray_process("bun", &variables)
    }

    /// A process with a poller's arguments that is played by this part of the
    /// stand-in (`bun`, `node`, `bash`), with just these variables.
    pub fn stray_process(&self, part: &str, variables: &[(&str, String)]) -> Poller {
        let mut command = Command::new(self.file("bin").join(part));
        let child = self
            .clean(&mut command)
            .args(["run", "--cwd"])
            .arg(self.home().join(PLUGIN))
            .args(["--shell=bun", "--silent", "start"])
            .envs(variables.iter().map(|(key, value)| (*key, value)))
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn();
        let poller = Poller(child.unwrap());
        wait_for("its environment", || has_begun(poller.pid()).then_some(()));
        poller
    }

    /// Process numbers of the running pollers that agents of a row have started,
    /// oldest first.
    pub fn pollers(&self, id: &str) -> Vec<u32> {
        let all = self.get(id, "pollers").unwrap_or_default();
        let numbers = all.lines().map(|line| line.parse().unwrap());
        numbers.filter(|pid| is_running(*pid)).collect()
    }

    /// Waits until so many of them run.
    pub fn wait_for_pollers(&self, id: &str, number: usize) -> Vec<u32> {
        self.wait(&format!("{number} pollers"), || {
            let pollers = self.pollers(id);
            let begun = pollers.iter().all(|pid| has_begun(*pid));
            (pollers.len() == number && begun).then_some(pollers)
        })
    }

    /// Ends all running pollers of a row with SIGKILL, and waits for their end.
    pub fn kill_pollers(&self, id: &str) {
        for pid in self.pollers(id) {
            let raw = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
            // It may be ending by itself.
            let _ = kill_process(raw, Signal::KILL);
            wait_for("a poller's end", || (!is_running(pid)).then_some(()));
        }
    }

    /// Lets the agent of a row say this of itself from now on, and waits until it
    /// has; the row must have had a file `own_status` when the agent started.
    pub fn says(&self, id: &str, status: &str) {
        self.set(id, "own_status", status);
        let word = status.split(' ').next().unwrap();
        let wanted = format!("\"status\":\"{word}\"");
        self.wait("the agent's own status", || {
            let text = std::fs::read_to_string(self.status_file(id)).unwrap_or_default();
            (text.contains(&wanted) || status.is_empty() && text.is_empty()).then_some(())
        });
    }

    /// Where the running agent of a row says it.
    pub fn status_file(&self, id: &str) -> PathBuf {
        let pid = self.agent_pid(id).unwrap();
        self.home().join(format!(".claude/sessions/{pid}.json"))
    }
}

/// Whether a new process shows its environment: for a moment after its start the
/// kernel has none to show.
fn has_begun(pid: u32) -> bool {
    let environ = std::fs::read(format!("/proc/{pid}/environ"));
    !cfg!(target_os = "linux") || environ.is_ok_and(|bytes| !bytes.is_empty())
}
