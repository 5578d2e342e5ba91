//! A session by its id or its title.
//!
//! This file does not know what is wanted of it.

use super::Failed;
use super::desk::{Desk, subject};
use super::paper::{add, short};
use crate::cli::Exit;
use crate::host::logs::escape;
use crate::model::{Profile, Session, SessionId};

/// So many characters of an id are enough, when only one begins like that.
const PREFIX: usize = 4;
/// Columns of a title in a sentence.
const TITLE: usize = 40;

/// A session that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Full id.
    pub id: SessionId,
    /// Title, as listed or as remembered.
    pub title: String,
    /// Profile, where it is known.
    pub profile: Option<Profile>,
    /// Its row, where it is listed.
    pub row: Option<Session>,
}

impl Known {
    /// Title and id, fit to be shown.
    pub fn name(&self) -> String {
        let title = short(&self.title, TITLE);
        format!("{title} {}", self.id).trim_start().to_owned()
    }
}

/// The session of that id, that title, or with an id that begins like that.
///
/// # Errors
/// When there is none, or more than one; then they are listed.
pub fn find(desk: &Desk, wanted: &str) -> Result<Known, Failed> {
    let all = known(desk);
    let fits: [&dyn Fn(&Known) -> bool; 3] = [
        &|known| known.id.as_str() == wanted,
        &|known| known.title == wanted,
        &|known| wanted.len() >= PREFIX && known.id.as_str().starts_with(wanted),
    ];
    for fit in fits {
        let mut found = Vec::new();
        for known in &all {
            if fit(known) {
                found.push(known);
            }
        }
        match found[..] {
            [] => {}
            [one] => return Ok(one.clone()),
            _ => return Err(usage(ambiguous(wanted, &found))),
        }
    }
    Err(usage(nobody(desk, wanted)))
}

fn usage(why: String) -> Failed {
    Failed::new(Exit::Usage, why)
}

/// All sessions that are listed, and those that are only remembered.
fn known(desk: &Desk) -> Vec<Known> {
    let mut all: Vec<Known> = Vec::new();
    let mut add = |id: &SessionId, title: &str, profile: &Profile, row: Option<&Session>| {
        if row.is_some() || !all.iter().any(|known| known.id == *id) {
            all.push(Known {
                id: id.clone(),
                title: title.to_owned(),
                profile: Some(profile.clone()),
                row: row.cloned(),
            });
        }
    };
    for row in desk.rows() {
        add(&row.id, &row.title, &row.profile, Some(row));
    }
    let state = &desk.watch.state;
    for (id, memory) in state.sessions.iter() {
        add(id, &memory.title, &memory.profile, None);
    }
    for child in &state.children {
        add(&child.id, &child.title, &child.profile, None);
    }
    for owner in &state.owners {
        add(&owner.id, &owner.title, &owner.profile, None);
    }
    all
}

fn ambiguous(wanted: &str, found: &[&Known]) -> String {
    let mut text = format!(
        "{} sessions are meant by {wanted:?}; name one by its id:",
        found.len()
    );
    for known in found {
        let status = known
            .row
            .as_ref()
            .map_or("not listed", |row| row.status.word());
        let title = escape(&known.title);
        let profile = known.profile.as_ref().map_or("?", Profile::as_str);
        add(
            &mut text,
            format_args!(
                "\n  {}  {title} (profile {profile}, {})",
                known.id,
                escape(status)
            ),
        );
    }
    text
}

fn nobody(desk: &Desk, wanted: &str) -> String {
    let mut text = format!("no session has the id or title {wanted:?}");
    for (profile, why) in &desk.unlisted {
        let of = subject(profile, "the profiles");
        add(&mut text, format_args!("; {of} cannot be listed: {why}"));
    }
    for remark in &desk.remarks {
        add(&mut text, format_args!("\n{}", escape(remark)));
    }
    text
}
