//! What the simulated machine shows when it is asked, with its faults.
//!
//! This file does not know who asks, nor why.

use std::panic::resume_unwind;

use agent_deck_watchdog::model::{NoAnswer, Pane, Profile, Screen, Session, SessionId};

use crate::deck::{Row, Terminal};
use crate::sim::{Call, Sim};
use crate::{checks, checks_nudge};

/// Milliseconds that a pane takes (contract 14.1).
const PANE_MS: u64 = 60;
/// DESIGN 3.1.
pub const READ_DEADLINE: u64 = 15_000;

/// Thrown where the run is to end at once.
pub struct Crash;

impl Sim {
    pub fn call(&mut self, verb: &'static str, of: &str) {
        let at = self.truth();
        self.ledger.push(Call {
            at,
            verb,
            of: of.to_owned(),
        });
        checks::calls_are_bounded(self);
    }

    pub fn fault_of_show(&mut self, id: &SessionId, usual: u64) -> Result<(), NoAnswer> {
        let Some(fault) = self.faults.of_show(id, self.truth()) else {
            self.advance(usual);
            return Ok(());
        };
        let (ms, answer) = fault.answer(READ_DEADLINE);
        self.advance(ms);
        answer.map_or(Ok(()), Err)
    }

    pub fn printed(&self, row: &Row) -> Session {
        Session {
            title: row.title.clone(),
            group: row.group.clone(),
            tool: row.tool().to_owned(),
            command: row.command.to_owned(),
            parent: row.parent.clone(),
            telegram: row
                .bot
                .as_ref()
                .filter(|bot| bot.channel)
                .map(|_| "plugin:telegram@claude-plugins-official".to_owned()),
            status: row.status(),
            substate: row.printed_substate(),
            tmux_session: row.tmux_name.clone(),
            created: Some(self.clocks.line_of_wall(row.created)),
            archived: row.archived,
            is_conductor: row.is_conductor,
            ..Session::new(row.profile.clone(), row.id.clone())
        }
    }

    pub fn known(&mut self, profile: &Profile, id: &SessionId) -> Result<&mut Row, NoAnswer> {
        let here = |row: &&mut Row| row.id == *id && row.profile == *profile && !row.removed;
        self.rows.iter_mut().find(here).ok_or(NoAnswer::NotFound)
    }

    /// What a pane shows at the moment it is asked for.
    pub fn look_at(&mut self, profile: &Profile, id: &SessionId) -> Result<Pane, NoAnswer> {
        let asked = self.truth();
        let fault = self.faults.of_pane(id, asked);
        if let Some((ms, answer)) = fault.map(|fault| fault.answer(READ_DEADLINE)) {
            self.advance(ms);
            if let Some(why) = answer {
                return Err(why);
            }
        }
        let row = self.known(profile, id)?;
        let lives = matches!(row.terminal, Terminal::Stands(_));
        let front = row.front.clone();
        let seen = row.screen().map(|changes| {
            let content = if lives { front.content } else { 0 };
            (changes, content)
        });
        let takes = self.faults.pane_takes(PANE_MS, asked);
        self.advance(takes);
        let Some((changes, content)) = seen else {
            return Ok(Pane::Gone);
        };
        let look = checks_nudge::Look {
            asked,
            answered: self.clocks.truth,
            stand: front.stand,
            background: front.background,
            content,
        };
        self.checks.seen.panes.insert(id.clone(), look);
        let digest = |of: [u64; 2]| {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&of[0].to_le_bytes());
            digest[8..16].copy_from_slice(&of[1].to_le_bytes());
            digest
        };
        Ok(Pane::Stands(Screen {
            raw: digest([changes, content]),
            content: digest([0, content]),
            claude: front.stand,
            other: front.of_other_tool(),
            decision: front.decides(),
            asks: if front.decides() { "a permission" } else { "" },
            background: front.background,
        }))
    }

    pub fn crash_if(&mut self, after: bool) {
        if self.crash_at == Some((self.saves, after)) {
            self.crash_at = None;
            let when = if after { "after" } else { "before" };
            self.tell_history(format!("CRASH {when} save {}", self.saves));
            resume_unwind(Box::new(Crash));
        }
    }
}
