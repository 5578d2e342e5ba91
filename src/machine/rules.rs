//! What a turn may know of the settings.
//!
//! This file does not know what is made of them.

use super::Machine;
use crate::clock::Reading;
use crate::config::Wanted;
use crate::guard::Limits;
use crate::model::Profile;
use crate::state::Life;
use crate::watch::Rules;

impl Machine {
    /// What a turn may know of the settings.
    pub fn rules(&self) -> Rules {
        let Reading { boot_id, .. } = self.clock.reading();
        let tmux = self.settings.tmux_tmpdir.clone().unwrap_or_default();
        let tmux = tmux.to_string_lossy();
        let user = rustix::process::geteuid().as_raw();
        let home = self.settings.home.display();
        let wanted = match &self.settings.profiles {
            Wanted::Named(named) => named.clone(),
            Wanted::All => Profile::parse("all profiles").into_iter().collect(),
        };
        Rules {
            wanted,
            limits: Limits {
                spacing: self.settings.spacing,
                poller_dedup: self.settings.poller_dedup,
                nudge_dedup: self.settings.nudge_dedup,
                max_nudges: self.settings.ladder.max_nudges,
                terminate: self.settings.ladder.terminate,
            },
            threshold: self.settings.threshold,
            scope: self.settings.ladder.scope,
            batch_min: self.settings.ladder.batch_min,
            triage: self.settings.ladder.triage_cmd.is_some(),
            poll: self.settings.poll,
            pace: (!self.mode.once).then_some(self.settings.calm_poll),
            dry_run: self.mode.dry_run,
            eyes: Life {
                boot_id,
                eyes: format!("user {user}, HOME {home}, TMUX_TMPDIR {tmux:?}"),
            },
        }
    }
}
