//! The world of a command that only reads: it logs and prints nothing by itself,
//! changes nothing, and goes by the settings that it is given.
//!
//! This file does not know what is asked.

use std::ffi::OsString;

use super::{Line, Machine};
use crate::cli::Mode;
use crate::clock::Clock;
use crate::config::Settings;
use crate::host::notify::Notify;
use crate::host::wait::Wait;
use crate::machine::pulse::Pulse;

impl Machine {
    /// The world for a command that only reads: it logs and prints nothing by
    /// itself, and changes nothing.
    ///
    /// # Errors
    /// When signals cannot be had.
    pub fn reader(settings: Settings, clock: Clock) -> Result<Machine, String> {
        let wait = Wait::new().map_err(|e| format!("signals cannot be had: {e}"))?;
        let pulse = Pulse::new(
            wait,
            Notify::default(),
            None,
            clock.clone(),
            settings.calm_poll,
        );
        let mode = Mode {
            once: true,
            dry_run: true,
            verbose: false,
        };
        let mut machine = Machine::new(settings, mode, clock, pulse);
        machine.kept = Some(Vec::new());
        Ok(machine)
    }

    /// Where agent-deck and tmux look for things, as a reading world tells them:
    /// it may go by the settings of a watchdog that has others than this shell.
    pub(super) fn places(&self) -> Vec<(&'static str, String)> {
        let settings = &self.settings;
        let places = [
            ("TMUX_TMPDIR", &settings.tmux_tmpdir),
            ("XDG_DATA_HOME", &settings.xdg_data_home),
            ("XDG_CONFIG_HOME", &settings.xdg_config_home),
        ];
        let text = |value: &Option<OsString>| {
            let value = value.clone().unwrap_or_default();
            value.to_string_lossy().into_owned()
        };
        let reads = self.kept.is_some();
        let told = places.into_iter().filter(|_| reads);
        // Empty means the same as not set.
        told.map(|(name, value)| (name, text(value))).collect()
    }

    /// What a reading world would have logged since this was last asked.
    pub fn take_kept(&mut self) -> Vec<Line> {
        self.kept.as_mut().map(std::mem::take).unwrap_or_default()
    }
}
