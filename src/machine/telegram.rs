//! Who polls Telegram, and who should: one `ps`, the environments of what it
//! shows, agent-deck's configuration.
//!
//! This file does not know what follows from it.

use std::path::PathBuf;
use std::time::Duration;

use super::bin::on_path;
use super::{ANSWER_MOST, Machine};
use crate::deck::telegram::{self, PS_ARGS, PS_ENV, StateDir};
use crate::host::exec::{self, Call, End};
use crate::model::{Declared, Pollers, Process, Session, Telegram};

/// `ps`: 10 s (DESIGN 3.1). It takes 0.02 s.
const PS_DEADLINE: Duration = Duration::from_secs(10);

impl Machine {
    /// All pollers of this user.
    pub(super) fn look_for_pollers(&mut self) -> Result<Pollers, String> {
        let stdout = self.ps(&PS_ARGS)?;
        let rows = telegram::ps_rows(&stdout, std::process::id())?;
        let found = telegram::pollers(&rows, &mut |pid| self.state_dir(pid))?;
        if found.is_empty() {
            return Ok(Pollers::default());
        }
        Ok(telegram::connections(found, &rows))
    }

    /// `TELEGRAM_STATE_DIR` of a process.
    #[cfg(target_os = "linux")]
    fn state_dir(&mut self, pid: u32) -> Result<StateDir, String> {
        telegram::environment(pid)
    }

    /// `TELEGRAM_STATE_DIR` of a process, as another `ps` shows it.
    #[cfg(not(target_os = "linux"))]
    fn state_dir(&mut self, pid: u32) -> Result<StateDir, String> {
        let pid = pid.to_string();
        telegram::environment_of(&self.ps(&telegram::environment_args(&pid))?)
    }

    /// Runs `ps` to its end.
    fn ps(&mut self, args: &[&str]) -> Result<Vec<u8>, String> {
        let program = find_ps().ok_or("there is no ps in PATH")?;
        let call = Call {
            program: &program,
            args,
            deadline: PS_DEADLINE,
            most: ANSWER_MOST,
            extra_env: &PS_ENV,
            keep_token: false,
        };
        let pulse = &mut self.pulse;
        match exec::run(&call, &mut |longest| pulse.rest(longest)) {
            End::Exited { overflow: true, .. } => Err("ps printed too much".to_owned()),
            End::Exited {
                code: Some(0),
                stdout,
                ..
            } => Ok(stdout),
            End::Exited {
                code: Some(code), ..
            } => Err(format!("ps failed with exit {code}")),
            End::Exited { code: None, .. } => Err("ps was ended by a signal".to_owned()),
            End::Late => Err("ps did not answer in time".to_owned()),
            End::NoProgram(why) | End::NoProcess(why) => Err(why),
        }
    }

    /// The folder that the poller of a session should have.
    pub(super) fn telegram_of(&self, row: &Session, agent: Option<&Process>) -> Telegram {
        let declared = telegram::declared(&self.roots, &row.title, &row.group, &row.path);
        // What could not be looked into says nothing.
        let seen = agent.filter(|agent| !agent.opaque);
        let environment = seen.map(|agent| {
            let folder = agent.telegram.as_deref();
            folder.map(telegram::normalised)
        });
        let default = telegram::default_folder(&self.config_dir(agent));
        let default = telegram::normalised(&default);
        let token = match (&declared, &environment) {
            (_, Some(Some(folder))) | (Declared::Folder(folder), _) => telegram::token(folder),
            (Declared::Nothing, _) => telegram::token(&default),
            (Declared::Unknown(_), _) => None,
        };
        Telegram {
            declared,
            environment,
            default,
            token,
        }
    }

    /// What is wrong around a poller, as far as files say.
    pub(super) fn advice(&self, row: &Session, agent: Option<&Process>) -> String {
        let mut advice = Vec::new();
        let config = self.config_dir(agent);
        let settings = config.join("settings.json");
        let channel = row.telegram.as_deref().unwrap_or(OFFICIAL);
        let plugin = channel.strip_prefix("plugin:").unwrap_or(channel);
        match telegram::plugin_enabled(&config, plugin) {
            Ok(true) => {}
            Ok(false) => advice.push(format!(
                "The likely cause: enabledPlugins in {} does not have {plugin} set to true.",
                settings.display()
            )),
            Err(why) => advice.push(format!("Its settings cannot be read: {why}.")),
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        if on_path("bun", &path, &[]).is_none() {
            advice.push("There is no bun in the watchdog's PATH.".to_owned());
        }
        if advice.is_empty() {
            advice.push(format!(
                "Check that {plugin} is enabled in {}, that bun can be run, and that nobody else \
                 polls this bot.",
                settings.display()
            ));
        }
        advice.join(" ")
    }
}

/// The channel of a conductor that has none in its row (contract 8.7).
const OFFICIAL: &str = "plugin:telegram@claude-plugins-official";

fn find_ps() -> Option<PathBuf> {
    on_path("ps", &std::env::var_os("PATH")?, &[])
}
