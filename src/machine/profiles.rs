//! Which profiles are watched: those that are wanted, that agent-deck lists,
//! that lie on the disk, that are ours, and that nobody else watches.
//!
//! A name that is not listed is never passed on: agent-deck would create it
//! (contract 1.3). This file does not know what is in a profile.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::clock::Time;
use crate::config::Wanted;
use crate::deck::answers::ProfileRow;
use crate::deck::places::Roots;
use crate::host::lock::{NotTaken, lock_folder};
use crate::model::{Level, Profile};

/// While a wanted name is not listed, or a question failed, agent-deck is asked
/// this often: it takes 26 ms (contract 14.1).
const ASK_AGAIN: Duration = Duration::from_secs(15);

/// Something to say about a profile: how loud, subject, sentence.
pub type News = (Level, String, String);

/// The wanted profiles, and what is known of them.
pub struct Profiles {
    wanted: Wanted,
    listed: Option<Vec<Profile>>,
    asked: Time,
    /// The folder's modification time at the last answer, and at the last
    /// question; the inner `None`: it could not be looked at.
    folder_changed: Option<Option<SystemTime>>,
    asking: Option<Option<SystemTime>>,
    locks: Vec<(Profile, File)>,
    /// At least one is watched.
    watching: bool,
    /// What was last said of each, so that it is said once.
    said: Vec<(Profile, String)>,
}

impl Profiles {
    /// Nothing is known yet.
    pub fn new(wanted: Wanted) -> Profiles {
        Profiles {
            wanted,
            listed: None,
            asked: Time::default(),
            folder_changed: None,
            asking: None,
            locks: Vec::new(),
            watching: false,
            said: Vec::new(),
        }
    }

    /// Whether agent-deck has to be asked for its profiles: at first, when the
    /// folder of profiles changed, and now and then while one is missing.
    pub fn must_ask(&mut self, roots: &Roots, now: Time) -> bool {
        let changed = roots
            .data(&["profiles", "sessions.json"])
            .and_then(|data| data.join("profiles").metadata()?.modified())
            .ok();
        let moved = self.folder_changed != Some(changed);
        let waited = now.since(self.asked) >= ASK_AGAIN;
        let ask = match (&self.listed, &self.wanted) {
            (None, _) => true,
            // A question that failed is asked again only after a while.
            (Some(_), _) if moved => waited || self.asking != Some(changed),
            (Some(listed), Wanted::Named(named)) => {
                waited && named.iter().any(|name| !listed.contains(name))
            }
            (Some(listed), Wanted::All) => waited && listed.is_empty(),
        };
        if ask {
            self.asking = Some(changed);
            self.asked = now;
        }
        ask
    }

    /// Whether an earlier answer can be used when there is none now.
    pub fn is_known(&self) -> bool {
        self.listed.is_some()
    }

    /// Takes agent-deck's answer.
    pub fn answered(&mut self, rows: Vec<ProfileRow>) {
        let all = matches!(self.wanted, Wanted::All);
        // Names that begin with `_` are scratch profiles: only by name.
        let wanted = |row: &ProfileRow| !(all && row.internal);
        self.listed = Some(
            rows.into_iter()
                .filter(wanted)
                .map(|row| row.name)
                .collect(),
        );
        self.folder_changed = self.asking;
    }

    /// The profiles to watch now, and what there is to say. With `keep_locks`
    /// each is locked, so that two folders cannot watch one deck.
    pub fn watched(&mut self, roots: &Roots, keep_locks: bool) -> (Vec<Profile>, Vec<News>) {
        let listed = self.listed.clone().unwrap_or_default();
        let wanted: Vec<Profile> = match &self.wanted {
            Wanted::Named(named) => named.clone(),
            Wanted::All => listed.clone(),
        };
        let mut news = Vec::new();
        let mut watched = Vec::new();
        for profile in wanted {
            let problem = self.problem(&profile, &listed, roots, keep_locks);
            self.say(&profile, &problem, &mut news);
            if problem.is_none() {
                watched.push(profile);
            }
        }
        self.watching = !watched.is_empty();
        (watched, news)
    }

    /// Whether every wanted profile is watched by somebody else.
    pub fn all_taken(&self) -> bool {
        !self.watching
            && !self.said.is_empty()
            && self.said.iter().all(|(_, said)| said.starts_with(TAKEN))
    }

    fn problem(
        &mut self,
        profile: &Profile,
        listed: &[Profile],
        roots: &Roots,
        keep_locks: bool,
    ) -> Option<String> {
        if !listed.contains(profile) {
            return Some("agent-deck has no such profile; waiting for it".to_owned());
        }
        let folder = match (roots.profile_exists(profile), roots.profile(profile)) {
            (Ok(true), Ok(folder)) => folder,
            (Ok(false), _) => {
                self.locks.retain(|(name, _)| name != profile);
                return Some("it is listed, but not where this HOME has it".to_owned());
            }
            (Err(e), _) | (_, Err(e)) => return Some(format!("it cannot be looked at: {e}")),
        };
        foreign(&folder).or_else(|| self.lock(profile, &folder, keep_locks))
    }

    fn lock(&mut self, profile: &Profile, folder: &Path, keep_locks: bool) -> Option<String> {
        if !keep_locks
            || self
                .locks
                .iter()
                .any(|(name, held)| name == profile && same(held, folder))
        {
            return None;
        }
        self.locks.retain(|(name, _)| name != profile);
        match lock_folder(folder) {
            Ok(lock) => {
                self.locks.push((profile.clone(), lock));
                None
            }
            Err(NotTaken::Held(_)) => Some(format!("{TAKEN}, with another folder or HOME")),
            Err(NotTaken::Failed(e)) => Some(format!("it cannot be locked: {e}")),
        }
    }

    fn say(&mut self, profile: &Profile, problem: &Option<String>, news: &mut Vec<News>) {
        let known = self.said.iter().position(|(name, _)| name == profile);
        let said = known.map(|at| self.said.remove(at).1);
        let subject = format!("profile {profile}");
        match (problem, &said) {
            (Some(problem), _) if said.as_ref() != Some(problem) => {
                news.push((Level::Warning, subject, format!("not watched: {problem}")));
            }
            (None, Some(_)) => news.push((Level::Info, subject, "is watched now".to_owned())),
            (Some(_), _) | (None, None) => {}
        }
        if let Some(problem) = problem {
            self.said.push((profile.clone(), problem.clone()));
        }
    }
}

const TAKEN: &str = "another watchdog watches it";

/// Running as another user than the owner is a set-up error (DESIGN 3.2).
pub fn foreign(folder: &Path) -> Option<String> {
    let owner = folder.metadata().ok()?.uid();
    let us = rustix::process::geteuid().as_raw();
    (owner != us).then(|| {
        format!("it belongs to user {owner}, and this runs as user {us}: run it as that user")
    })
}

fn same(held: &File, folder: &Path) -> bool {
    match (held.metadata(), folder.metadata()) {
        (Ok(held), Ok(there)) => (held.dev(), held.ino()) == (there.dev(), there.ino()),
        (Err(_), _) | (_, Err(_)) => false,
    }
}
