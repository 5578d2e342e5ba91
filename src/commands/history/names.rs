//! What a session is called where people read: its title, and its id where that
//! does not tell it from others.
//!
//! This file does not know what befell it.

use super::lines::Entry;
use super::parts::is_id;
use crate::cli::Exit;
use crate::commands::Failed;
use crate::commands::paper::add;
use crate::host::logs::escape;
use crate::telling::cut;

/// So many characters of an id are enough, when only one begins like that.
const PREFIX: usize = 4;
/// Sessions that are known by name; further ones are called by their id.
const MOST: usize = 2000;
/// Characters of a title that are shown.
const TITLE: usize = 40;

/// Ids and titles, as the logs name them.
pub struct Names(Vec<(String, String)>);

impl Names {
    /// Collects them.
    pub fn new(entries: &[Entry]) -> Names {
        let mut known: Vec<(String, String)> = Vec::new();
        for entry in entries {
            let (id, title) = (&entry.session, &entry.title);
            let titled =
                |(old, t): &(String, String)| old == id && (title.is_empty() || t == title);
            let known_so = id.is_empty() || known.iter().rev().any(titled);
            if !known_so && known.len() < MOST {
                known.push((id.clone(), title.clone()));
            }
        }
        Names(known)
    }

    /// The newest title of a session, escaped.
    fn title(&self, id: &str) -> &str {
        let titles = self.0.iter().rev().filter(|(known, _)| known == id);
        let mut titles = titles.map(|(_, title)| title.as_str());
        titles.find(|title| !title.is_empty()).unwrap_or_default()
    }

    fn is_shared(&self, id: &str, title: &str) -> bool {
        self.0.iter().any(|(other, of)| other != id && of == title)
    }

    /// The name of what a line is about.
    pub fn of(&self, entry: &Entry) -> String {
        match entry.session.as_str() {
            "" if entry.title == "watchdog" => "the watchdog".to_owned(),
            "" => escape(&cut(&entry.title, TITLE)),
            id => self.of_id(id),
        }
    }

    /// The name of a session.
    pub fn of_id(&self, id: &str) -> String {
        let title = match self.title(id) {
            "" => return id.to_owned(),
            title => title,
        };
        let shown = escape(&cut(title, TITLE));
        match self.is_shared(id, title) {
            true => {
                let begin = id.split('-').next().unwrap_or_default();
                format!("{shown} ({begin})")
            }
            false => shown,
        }
    }

    /// The text of a message without the ids behind titles that tell enough.
    pub fn without_ids(&self, told: &Entry) -> String {
        let mut text = told.text.clone();
        for key in told.episodes.split(' ') {
            let id = key.split_once(':').map_or("", |(_, id)| id);
            let title = self.title(id);
            if is_id(id) && !title.is_empty() && !self.is_shared(id, title) {
                let id = format!(" ({id})");
                text = text.replace(&*id, "");
            }
        }
        text
    }

    /// The id of the session that is meant by an id, a title or the begin of an
    /// id; `None` when the logs know none.
    ///
    /// # Errors
    /// When there are several; then they are listed.
    pub fn find(&self, wanted: &str, entries: &[Entry]) -> Result<Option<String>, Failed> {
        let shown = escape(wanted);
        type Fits<'a> = &'a dyn Fn(&str, &str) -> bool;
        // Of some only messages tell: `title (id) waits`.
        let in_text = |id: &str| {
            let name = format!("{wanted} ({id})");
            let mut texts = entries.iter().filter(|entry| entry.session == id);
            texts.any(|entry| entry.text.contains(&name))
        };
        let fits: [Fits; 4] = [
            &|id, _| id == wanted,
            &|_, title| title == wanted || title == shown,
            &|id, _| wanted.len() >= PREFIX && id.starts_with(wanted),
            &|id, title| title.is_empty() && in_text(id),
        ];
        for fit in fits {
            let mut found: Vec<&str> = Vec::new();
            for (id, title) in &self.0 {
                if fit(id, title) && !found.contains(&id.as_str()) {
                    found.push(id);
                }
            }
            match found[..] {
                [] => {}
                [one] => return Ok(Some(one.to_owned())),
                _ => return Err(ambiguous(wanted, &found, self)),
            }
        }
        Ok(None)
    }
}

fn ambiguous(wanted: &str, found: &[&str], names: &Names) -> Failed {
    let mut why = format!(
        "{} sessions in the logs are meant by {wanted:?}; name one by its id:",
        found.len()
    );
    for id in found {
        add(
            &mut why,
            format_args!("\n  {id}  {}", escape(names.title(id))),
        );
    }
    let exit = Exit::Usage;
    Failed { exit, why }
}
