//! Notices hook records and flags when they are put into place, by inotify.
//!
//! A watch belongs to a folder, not to its name. So at every call it is looked
//! up what the names lead to now. A folder that is missing is waited for at the
//! nearest one above it that is there. Only what replaces or makes something is
//! subscribed: every listing of the deck opens all records. This file does not
//! read any of these files.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::hints::{Hint, Hints};
use super::{flags, folder};
use crate::model::SessionId;

/// Room for the events of one read: several hundred.
const EVENTS_SIZE: usize = 16 * 1024;

/// Most sandbox folders that are watched; a deck has some dozens of sessions.
const SANDBOXES_MAX: usize = 1000;

/// Folder of agent-deck's sandboxed sessions below the hook folder (contract 7.2).
const SANDBOX: &str = "sandbox";

/// What an event in a folder can mean.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    /// Hook records, `<id>.json`.
    Hooks,
    /// One folder per sandboxed session.
    Sandboxes,
    /// `<id>.json` of that session.
    Sandbox(SessionId),
    /// Our own folder, for the pause and the flag folders.
    Ours,
    /// One file per session.
    Flags,
    /// Something wanted is missing here, and this is its name.
    Above(OsString),
}

impl Role {
    fn mask(&self) -> WatchFlags {
        let moved = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        let made = WatchFlags::CREATE | WatchFlags::MOVED_TO;
        match self {
            Role::Sandbox(_) => moved | WatchFlags::MOVED_TO,
            Role::Hooks | Role::Sandboxes | Role::Above(_) => moved | made,
            // CLOSE_WRITE: a time written into a flag after it was made.
            Role::Ours | Role::Flags => {
                let gone = WatchFlags::DELETE | WatchFlags::MOVED_FROM;
                moved | made | gone | WatchFlags::CLOSE_WRITE
            }
        }
    }
}

/// A folder that is wanted.
#[derive(Debug)]
struct Wish {
    path: PathBuf,
    /// Device and number of the folder.
    place: (u64, u64),
    mask: WatchFlags,
    roles: Vec<Role>,
}

/// The watched folders.
#[derive(Debug)]
pub struct FolderWatch {
    inotify: Option<OwnedFd>,
    watched: Vec<(i32, Wish)>,
    hooks: PathBuf,
    ours: PathBuf,
    trouble: Option<String>,
    /// Whatever is put into these folders is noticed; what is missing of them is
    /// noticed when it comes.
    notices: bool,
}

impl FolderWatch {
    pub fn new() -> FolderWatch {
        FolderWatch {
            inotify: None,
            watched: Vec::new(),
            hooks: PathBuf::new(),
            ours: PathBuf::new(),
            trouble: Some("hooks are left to polling: not asked for yet".to_owned()),
            notices: false,
        }
    }

    /// Watches what these names lead to now. What came before a new watch is
    /// not told by it, so everything has to be looked at then; but not after
    /// the first call, since nobody has looked before.
    pub fn watch(&mut self, hooks: &Path, ours: &Path, hints: &mut Hints) {
        let first = self.hooks.as_os_str().is_empty();
        hooks.clone_into(&mut self.hooks);
        ours.clone_into(&mut self.ours);
        if self.renew() && !first {
            hints.note(Hint::Rescan);
        }
    }

    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().map(AsFd::as_fd)
    }

    /// Why hooks are left to polling.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.clone()
    }

    /// Whether every record and flag is noticed at once, also the first one in a
    /// folder that is not there yet.
    pub fn notices(&self) -> bool {
        self.notices
    }

    /// Turns what has happened into hints.
    pub fn read(&mut self, hints: &mut Hints) {
        let mut renew = false;
        let Some(inotify) = &self.inotify else {
            return;
        };
        let mut buffer = [MaybeUninit::uninit(); EVENTS_SIZE];
        let mut reader = Reader::new(inotify, &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(e) => {
                    self.give_up(e);
                    hints.note(Hint::Rescan);
                    return;
                }
            };
            let what = event.events();
            if what.contains(ReadFlags::QUEUE_OVERFLOW) {
                hints.note(Hint::Rescan);
                continue;
            }
            let Some(at) = self.watched.iter().position(|(wd, _)| *wd == event.wd()) else {
                continue;
            };
            if what.contains(ReadFlags::IGNORED) {
                self.watched.swap_remove(at);
            }
            let of_itself = ReadFlags::IGNORED | ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF;
            let name = match event.file_name() {
                Some(name) if !what.intersects(of_itself) => name,
                Some(_) | None => {
                    renew = true;
                    continue;
                }
            };
            for role in &self.watched[at].1.roles {
                renew |= judge(role, what, OsStr::from_bytes(name.to_bytes()), hints);
            }
        }
        if renew {
            self.renew();
            hints.note(Hint::Rescan);
        }
    }

    /// Brings the watches in line with what is there now. Whether there is one
    /// that was not there before.
    fn renew(&mut self) -> bool {
        if self.inotify.is_none() {
            match inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC) {
                Ok(inotify) => self.inotify = Some(inotify),
                Err(e) => {
                    self.give_up(e);
                    return false;
                }
            }
        }
        // Again, since a folder may come or go between the look and the watch.
        (0..4).take_while(|_| self.renew_once()).count() > 0
    }

    /// Whether there is a watch that was not there before.
    fn renew_once(&mut self) -> bool {
        let Some(inotify) = &self.inotify else {
            return false;
        };
        let mut wishes = self.wishes();
        // The old ones first: where a folder was replaced at the wrong moment,
        // its watch stands under the place of the one before.
        self.watched.retain_mut(|(descriptor, old)| {
            let same = |wish: &Wish| wish.place == old.place && wish.mask == old.mask;
            match wishes.iter().position(same) {
                Some(at) => *old = wishes.swap_remove(at),
                None => {
                    let _ = inotify::remove_watch(inotify, *descriptor);
                    return false;
                }
            }
            true
        });
        let (mut added, mut failure) = (false, None);
        for wish in wishes {
            match inotify::add_watch(inotify, &wish.path, wish.mask | WatchFlags::ONLYDIR) {
                Ok(descriptor) => {
                    self.watched.push((descriptor, wish));
                    added = true;
                }
                Err(e) => failure = Some(said(&wish.path, e)),
            }
        }
        let hooks = self
            .watched
            .iter()
            .any(|(_, wish)| wish.roles.contains(&Role::Hooks));
        self.notices = failure.is_none();
        self.trouble = match (hooks, failure) {
            (true, None) => None,
            (true, Some(why)) => Some(format!("some folders are left to polling: {why}")),
            (false, Some(why)) => Some(format!("hooks are left to polling: {why}")),
            (false, None) => Some(format!(
                "hooks are left to polling: {}: is not there",
                self.hooks.display()
            )),
        };
        added
    }

    /// The folders to watch as they are now, each once, whatever it is for.
    fn wishes(&self) -> Vec<Wish> {
        let mut wishes = Vec::new();
        wish(&mut wishes, &self.hooks, Role::Hooks);
        let sandboxes = self.hooks.join(SANDBOX);
        if sandboxes.is_dir() {
            wish(&mut wishes, &sandboxes, Role::Sandboxes);
            for entry in fs::read_dir(&sandboxes)
                .into_iter()
                .flatten()
                .flatten()
                .take(SANDBOXES_MAX)
            {
                let id = entry.file_name().to_str().and_then(SessionId::parse);
                // A link is not followed here, as agent-deck does not.
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if let (Some(id), true) = (id, is_folder) {
                    wish(&mut wishes, &entry.path(), Role::Sandbox(id));
                }
            }
        }
        wish(&mut wishes, &self.ours, Role::Ours);
        for flag in flags::FOLDERS {
            wish(&mut wishes, &self.ours.join(flag), Role::Flags);
        }
        wishes
    }

    fn give_up(&mut self, error: Errno) {
        self.inotify = None;
        self.watched.clear();
        let why = match error {
            Errno::MFILE => "no inotify instance left (fs.inotify.max_user_instances)".to_owned(),
            _ => io::Error::from(error).to_string(),
        };
        self.notices = false;
        self.trouble = Some(format!("hooks are left to polling: {why}"));
    }
}

/// Adds a folder to the wishes, or what is nearest above it while it is missing.
fn wish(wishes: &mut Vec<Wish>, path: &Path, role: Role) {
    let mut role = role;
    for above in path.ancestors() {
        let metadata = fs::metadata(above).ok().filter(fs::Metadata::is_dir);
        let Some(metadata) = metadata else {
            role = Role::Above(above.file_name().unwrap_or_default().to_owned());
            continue;
        };
        let place = folder::place(&metadata);
        match wishes.iter_mut().find(|wish| wish.place == place) {
            Some(wish) => {
                wish.mask |= role.mask();
                wish.roles.push(role);
            }
            None => {
                let (path, mask) = (above.to_owned(), role.mask());
                wishes.push(Wish {
                    path,
                    place,
                    mask,
                    roles: vec![role],
                });
            }
        }
        return;
    }
}

/// What an event in a folder of that role says. Whether watches must be renewed.
fn judge(role: &Role, event: ReadFlags, name: &OsStr, hints: &mut Hints) -> bool {
    let is_folder = event.contains(ReadFlags::ISDIR);
    let in_place = event.contains(ReadFlags::MOVED_TO) && !is_folder;
    match role {
        Role::Hooks => {
            if in_place && let Some(id) = hook_of(name) {
                hints.note(Hint::Hook(id));
            }
            is_folder && name == SANDBOX
        }
        Role::Sandboxes => is_folder,
        Role::Sandbox(id) => {
            if in_place && hook_of(name).as_ref() == Some(id) {
                hints.note(Hint::Hook(id.clone()));
            }
            false
        }
        Role::Ours => {
            let flag = flags::FOLDERS.iter().any(|flag| name == *flag);
            // Everything else here is written by ourselves.
            if flag || name == flags::PAUSE {
                hints.note(Hint::Flags);
            }
            flag
        }
        Role::Flags => {
            hints.note(Hint::Flags);
            false
        }
        Role::Above(missing) => name == missing,
    }
}

/// The session whose record has this name (contract 7.2). Control files look
/// like records of a session `<id>.generation`.
fn hook_of(name: &OsStr) -> Option<SessionId> {
    let id = name.to_str()?.strip_suffix(".json")?;
    if id.ends_with(".generation") {
        return None;
    }
    SessionId::parse(id)
}

fn said(path: &Path, error: Errno) -> String {
    match error {
        Errno::NOSPC => "no inotify watch left (fs.inotify.max_user_watches)".to_owned(),
        _ => format!("{}: {}", path.display(), io::Error::from(error)),
    }
}

#[cfg(test)]
#[path = "folder_watch_tests.rs"]
mod tests;
