//! Children counted again: how long each has waited, in which episode it is,
//! what was sent to it. Slower and simpler than the watchdog, and from nothing
//! but what the watchdog was answered.
//!
//! A run that ends without a word has forgotten what it saw since it last saved,
//! and so has this. This file does not know what is allowed.

use std::collections::BTreeMap;

use agent_deck_watchdog::model::{Delivery, Profile, Session, SessionId, Status};

const MINUTE: u64 = 60_000;
/// So long neither waiting nor in error, and the episode is over.
const RECOVERY: u64 = 5 * MINUTE;
/// So long without a look, and nobody looked.
pub const GAP: u64 = 3 * MINUTE;
/// A screen that is the same so long after a message: something else was done.
const ECHO: u64 = 7000;
/// Not listed so long, and it is gone.
const GONE: u64 = 10 * MINUTE;

/// One child.
#[derive(Clone, Debug)]
pub struct Child {
    pub id: SessionId,
    profile: Profile,
    /// Its screen, and since when that counts.
    pub content: Option<u64>,
    pub since: u64,
    pub unread: Option<u64>,
    recovering: Option<u64>,
    missing: Option<u64>,
    /// Messages in this episode, and of all the last one.
    pub nudges: u32,
    pub last: Option<u64>,
    before: Option<u64>,
    /// Triage has had it asked once more in this episode.
    pub retried: bool,
    /// Refused before anything was typed.
    pub refused: Option<u64>,
    /// Nothing more in this episode, and why.
    pub silent: Option<&'static str>,
    /// How many episodes have ended.
    pub episode: u32,
    /// It may be another episode already.
    pub unsure: bool,
    /// It worked at the last list, and was first seen to.
    runs: bool,
    ran: u64,
    /// When it last said that its work is over.
    over: u64,
    /// The screen before the last message.
    asked: Option<u64>,
}

/// All children.
#[derive(Clone, Debug, Default)]
pub struct Recount {
    children: Vec<Child>,
    kept: Vec<Child>,
    /// The last good list of a profile.
    lists: BTreeMap<Profile, u64>,
    /// The end of the last time in which nobody looked.
    pub gaps: BTreeMap<Profile, u64>,
    booked: Vec<Profile>,
    /// When the memory was last lost.
    pub lost: Option<u64>,
    /// Messages since the turn began.
    pub sends: u32,
    /// Triage programs started since then.
    pub triages: u32,
    /// Panes read since then.
    pub reads: u32,
}

impl Child {
    fn close(&mut self) {
        self.episode += 1;
        self.unsure = false;
        self.nudges = 0;
        self.retried = false;
        self.silent = None;
        self.recovering = None;
    }

    fn evict(&mut self) {
        self.content = None;
        self.asked = None;
        self.unread = None;
    }

    /// A good list has it so.
    fn listed(&mut self, row: &Session, now: u64) {
        self.missing = None;
        let runs = row.status == Status::Running;
        if runs && !std::mem::replace(&mut self.runs, runs) {
            self.ran = now;
        }
        self.runs = runs;
        let child = !row.parent.is_empty() && !row.archived && !row.is_conductor_like();
        if row.status == Status::Waiting && child {
            self.recovering = None;
            return;
        }
        self.evict();
        if row.archived || row.status == Status::Stopped || row.parent.is_empty() {
            return self.close();
        }
        if row.status == Status::Error {
            self.recovering = None;
            return;
        }
        let since = *self.recovering.get_or_insert(now);
        if now - since >= RECOVERY {
            self.close();
        }
    }

    fn missed(&mut self, now: u64) {
        let since = *self.missing.get_or_insert(now);
        if now - since >= GONE {
            self.evict();
            self.close();
        }
    }

    /// How long it has waited, as far as was seen.
    pub fn waited(&self, now: u64) -> u64 {
        self.content.map_or(0, |_| now.saturating_sub(self.since))
    }
}

impl Recount {
    /// The child of that id.
    pub fn child(&self, id: &SessionId) -> Option<&Child> {
        self.children.iter().find(|child| child.id == *id)
    }

    fn of<'a>(children: &'a mut Vec<Child>, id: &SessionId, profile: &Profile) -> &'a mut Child {
        let at = children.iter().position(|child| child.id == *id);
        let at = at.unwrap_or_else(|| {
            children.push(Child {
                id: id.clone(),
                profile: profile.clone(),
                content: None,
                since: 0,
                unread: None,
                recovering: None,
                missing: None,
                nudges: 0,
                last: None,
                before: None,
                retried: false,
                refused: None,
                silent: None,
                episode: 0,
                unsure: false,
                runs: false,
                ran: 0,
                over: 0,
                asked: None,
            });
            children.len() - 1
        });
        &mut children[at]
    }

    /// When the list that a turn goes by was there.
    pub fn listed_at(&self, profile: &Profile) -> u64 {
        self.lists.get(profile).copied().unwrap_or(0)
    }

    pub fn turn_begins(&mut self) {
        self.booked.clear();
        self.sends = 0;
        self.reads = 0;
        self.triages = 0;
    }

    /// A list that is not empty. Only the first one of a turn is booked; what
    /// is asked to be sure about one session is not.
    pub fn listed(&mut self, profile: &Profile, rows: &[Session], poll: u64, now: u64) {
        if self.booked.contains(profile) {
            return;
        }
        self.booked.push(profile.clone());
        let before = self.lists.insert(profile.clone(), now);
        let gap = before.map_or(0, |before| now - before);
        // Where lists failed the time counts from the first one that did.
        let slack = 2 * poll + 5000;
        if gap > GAP.max(3 * poll) + slack {
            self.gaps.insert(profile.clone(), now);
            for child in self.children.iter_mut().filter(|c| c.profile == *profile) {
                child.since += gap;
                child.unread = child.unread.map(|at| at + gap);
                child.recovering = child.recovering.map(|at| at + gap);
            }
        }
        for row in rows.iter().filter(|row| !row.parent.is_empty()) {
            Recount::of(&mut self.children, &row.id, profile).profile = profile.clone();
        }
        for child in self.children.iter_mut().filter(|c| c.profile == *profile) {
            match rows.iter().find(|row| row.id == child.id) {
                Some(row) => child.listed(row, now),
                None => child.missed(now),
            }
        }
    }

    /// A pane was asked for; `None`: it could not be read. `on_its_way`: a message
    /// to it is still being sent.
    pub fn read(&mut self, id: &SessionId, content: Option<u64>, on_its_way: bool, now: u64) {
        let Some(child) = self.children.iter_mut().find(|child| child.id == *id) else {
            return;
        };
        self.reads += 1;
        let Some(content) = content else {
            child.unread.get_or_insert(now);
            return;
        };
        let lost = child.unread.take().map_or(0, |since| now - since);
        if child.content == Some(content) {
            child.since += lost;
        } else {
            child.content = Some(content);
            child.since = now;
        }
        match child.asked {
            Some(asked) if asked != content => child.asked = None,
            Some(_) if !on_its_way && child.last.is_some_and(|at| now - at >= ECHO) => {
                child.asked = None;
                child.silent = Some("its screen stayed as it was");
            }
            Some(_) | None => {}
        }
    }

    /// A message is on its way.
    pub fn begun(&mut self, id: &SessionId, profile: &Profile, now: u64) {
        self.sends += 1;
        for children in [&mut self.children, &mut self.kept] {
            let child = Recount::of(children, id, profile);
            child.nudges += 1;
            child.before = child.last.replace(now);
            child.asked = child.content;
        }
    }

    /// A message that was written down and never begun counts.
    pub fn counts(&mut self, id: &SessionId) {
        if let Some(child) = self.children.iter_mut().find(|child| child.id == *id) {
            child.nudges += 1;
        }
    }

    /// What became of it.
    pub fn answered(&mut self, id: &SessionId, delivery: &Delivery, now: u64) {
        let refused = matches!(delivery, Delivery::Refused(_) | Delivery::NotStarted(_));
        if refused {
            for children in [&mut self.children, &mut self.kept] {
                if let Some(child) = children.iter_mut().find(|child| child.id == *id) {
                    child.nudges = child.nudges.saturating_sub(1);
                    child.last = child.before;
                    child.asked = None;
                    child.refused = Some(now);
                }
            }
        }
        let silent = match delivery {
            Delivery::Answered => "it answered a dialog",
            Delivery::LeftBehind(_) => "text was left behind",
            Delivery::Delivered
            | Delivery::NoEvidence(_)
            | Delivery::Refused(_)
            | Delivery::Unknown(_)
            | Delivery::NotStarted(_) => return,
        };
        if let Some(child) = self.children.iter_mut().find(|child| child.id == *id) {
            child.silent = Some(silent);
        }
    }

    /// It says that its work is over, which is news once.
    pub fn completed(&mut self, id: &SessionId, at: u64) {
        let child = self.children.iter_mut().find(|child| child.id == *id);
        if let Some(child) = child.filter(|child| child.over < at && child.ran <= at) {
            child.over = at;
            child.close();
        }
    }

    /// Whether it is done cannot be told any more, nor whether its episode is over.
    pub fn unsure(&mut self, id: &SessionId) {
        for children in [&mut self.children, &mut self.kept] {
            if let Some(child) = children.iter_mut().find(|child| child.id == *id) {
                child.unsure = true;
                child.episode += 1;
            }
        }
    }

    /// Triage wants it asked once more.
    pub fn retried(&mut self, id: &SessionId) {
        if let Some(child) = self.children.iter_mut().find(|child| child.id == *id) {
            child.retried = true;
        }
    }

    /// The user ends its episode; when it was asked stays.
    pub fn cleared(&mut self, id: &SessionId) {
        if let Some(child) = self.children.iter_mut().find(|child| child.id == *id) {
            child.close();
            child.asked = None;
        }
    }

    /// The state was written.
    pub fn saved(&mut self) {
        self.kept.clone_from(&self.children);
    }

    /// The memory is lost: everybody has just been asked, in an episode that
    /// nobody remembers.
    pub fn lost(&mut self, now: u64) {
        for child in self.children.iter_mut().chain(&mut self.kept) {
            child.close();
            child.evict();
            child.last = Some(now);
        }
        self.lost = Some(now);
    }

    /// A run ended without a word.
    pub fn crashed(&mut self) {
        self.children.clone_from(&self.kept);
    }
}
