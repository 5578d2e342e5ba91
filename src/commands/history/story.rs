//! From lines to a story: an attempt and what came of it are one item, what was
//! refused for a moment is no item, a message is one however often it was tried.
//!
//! This file does not know how items are folded and printed.

use std::fmt::Arguments;
use std::time::Duration;

use super::lines::{Entry, Kind, LOGS};
use super::names::Names;
use crate::clock::Time;
use crate::commands::paper::{Light, add};
use crate::ladder::notices;
use crate::telling::is_given_up;

/// A refusal that is over by then was no news (DESIGN 1.1: told after that).
const SHORT: Duration = Duration::from_secs(600);
/// A line of `watchdog.log` is told by then, when it is told.
const SOON: Duration = Duration::from_secs(120);
/// So far back, or ahead, something is looked for among many.
pub const REACH: usize = 200;

/// After these outcomes there was no restart: its slot was given back.
const NO_RESTART: [&str; 3] = ["skipped", "not started", "host trouble"];
/// After these the session was as dead as before.
const IN_VAIN: [&str; 2] = ["failed", "no effect"];
/// What becomes of a poller, found after the restart.
const POLLER: [&str; 3] = ["poller", "no poller", "duplicate poller"];

/// What begins with one sentence and ends with another, of the same subject.
const ENDINGS: [(&str, &str); 4] = [
    ("no list, nothing is done", "sessions are listed again"),
    ("cannot be written", "is written again"),
    ("paused: it watches", "is at work again"),
    ("no session is critical", "is at work again"),
];

/// The rows of the ladder that are news by themselves: the rung they lead to is
/// new then, not come back to.
const ROWS: [(&str, &str); 5] = [
    ("(T8)", "is beyond nudging"),
    ("(T11)", "is beyond nudging"),
    ("(T14)", "is beyond nudging"),
    ("(T15)", "is beyond nudging"),
    (STOPPED, "was stopped by the watchdog"),
];
/// It stopped since we asked for it.
const STOPPED: &str = "(T23)";
/// The first word about a stop, and those that end it.
const STOP_BEGINS: &str = "begun";
const STOP_ENDS: [&str; 2] = ["done", "failed"];
/// How a line about a parent begins that was told, or could not be told.
const PARENTS: [&str; 3] = ["told: ", "told, ", "undeliverable, "];
/// Of these no parent was to hear: the owner wants it so.
const NOT_MEANT: [&str; 2] = [notices::OFF, notices::NO_CONDUCTOR];

/// Something to tell.
#[derive(Clone, Debug)]
pub struct Item {
    /// When.
    pub at: Time,
    /// The last time, where it was more than once.
    pub until: Time,
    /// How often.
    pub times: u32,
    /// Whom it befell, as names fit to be shown.
    pub who: Vec<String>,
    /// What, behind the name.
    pub what: String,
    /// How much attention it deserves.
    pub light: Option<Light>,
    /// Of what kind; with `word` and `about` what makes two items alike.
    pub kind: Kind,
    /// The outcome, the rule, the sentence without its numbers.
    pub word: String,
    /// Session, episodes or subject.
    pub about: String,
    /// Not worth a line after all.
    quiet: bool,
}

impl Item {
    /// One that happened once.
    pub fn new(at: Time, kind: Kind, word: &str, what: Arguments) -> Item {
        Item {
            at,
            until: at,
            times: 1,
            who: Vec::new(),
            what: what.to_string(),
            light: None,
            kind,
            word: word.to_owned(),
            about: String::new(),
            quiet: false,
        }
    }
}

/// The story in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Restarts that began.
    pub restarts: u64,
    /// Of these, those that changed nothing.
    pub in_vain: u64,
    /// Sessions, or profiles, that were given up for a while or for good.
    pub given_up: u64,
    /// Children that were asked to report.
    pub nudges: u64,
    /// Children whose stop was begun.
    pub stops: u64,
    /// Messages that were sent.
    pub told: u64,
    /// Messages that were only written down.
    pub written: u64,
    /// Messages that could not be sent.
    pub not_told: u64,
}

/// Tells the story, line by line.
pub struct Teller {
    names: Names,
    /// What there is to tell so far.
    pub items: Vec<Item>,
    /// The numbers that are not counted from the items.
    pub summary: Summary,
    /// The last restart of each session: its item, and how its sentence begins.
    open: Vec<(String, usize, String)>,
    /// Refusals that are not over.
    refused: Vec<(String, usize)>,
    /// Messages that have not gone out.
    waiting: Vec<(String, usize)>,
    given_up: Vec<String>,
}

impl Teller {
    /// Nothing is told yet.
    pub fn new(names: Names) -> Teller {
        Teller {
            names,
            items: Vec::new(),
            summary: Summary::default(),
            open: Vec::new(),
            refused: Vec::new(),
            waiting: Vec::new(),
            given_up: Vec::new(),
        }
    }

    /// One line; `rest` are those after it.
    pub fn tell(&mut self, entry: &Entry, rest: &[Entry]) {
        match entry.kind {
            Kind::Attempt => {
                self.no_longer_refused(entry, false);
                let head = format!("{}, restarted", cause(entry));
                let what = format_args!("{head}: what came of it is not written down");
                let item = self.item(entry, what);
                let (id, open) = (&entry.session, &mut self.open);
                if let Some(at) = open.iter().position(|(known, _, _)| known == id) {
                    open.swap_remove(at);
                }
                open.push((id.clone(), item, head));
            }
            Kind::Outcome => self.outcome(entry),
            Kind::Refusal => {
                let (between, word) = match entry.text.starts_with(&*entry.word) {
                    true => ("", ""),
                    false => (", ", &*entry.word),
                };
                let what = format_args!(" was left alone{between}{word}: {}", entry.text);
                let item = self.item(entry, what);
                if self.refused.len() < REACH {
                    self.refused.push((entry.session.clone(), item));
                }
            }
            Kind::Alive => {
                let was_refused = self.no_longer_refused(entry, true);
                let restarted = self.open.iter().any(|(id, _, _)| *id == entry.session);
                if !was_refused && !restarted {
                    self.item(entry, format_args!(" {}", entry.text));
                }
            }
            Kind::Nudge => {
                self.summary.nudges += 1;
                self.item(entry, format_args!(" was {}", entry.text));
            }
            Kind::Rung => self.rung(entry, rest),
            Kind::Death if heard_soon(entry, rest) => {}
            Kind::Death => {
                let at = self.item(entry, format_args!(" is dead: {}", entry.text));
                self.items[at].light = Some(Light::Yellow);
            }
            Kind::Stop => self.stop(entry),
            Kind::Told if entry.parent.is_empty() => self.told(entry),
            Kind::Told => self.parent_told(entry),
            Kind::Note => self.note(entry, rest),
            // The watchdog's own life is told elsewhere.
            Kind::Start | Kind::End => {}
        }
    }

    /// An item about the session or subject of a line. Returns its place.
    #[inline(never)]
    fn item(&mut self, entry: &Entry, what: Arguments) -> usize {
        let mut item = Item::new(entry.at, entry.kind, &entry.word, what);
        item.about.clone_from(&entry.session);
        if entry.deaf {
            item.about.push_str(" poller");
        }
        if entry.kind != Kind::Told {
            item.who.push(self.names.of(entry));
        }
        self.items.push(item);
        self.items.len() - 1
    }

    /// A session is at last restarted, or lives. Whether it was refused before.
    fn no_longer_refused(&mut self, entry: &Entry, lives: bool) -> bool {
        let items = &mut self.items;
        let before = self.refused.len();
        self.refused.retain(|(id, at)| {
            if *id != entry.session {
                return true;
            }
            let item = &mut items[*at];
            if entry.at.since(item.at) <= SHORT {
                item.quiet = true;
            } else if lives {
                add(
                    &mut item.what,
                    format_args!("; lives again {}", clock(entry.at)),
                );
            }
            false
        });
        self.refused.len() < before
    }

    fn outcome(&mut self, entry: &Entry) {
        let word = entry.word.as_str();
        let result = match word {
            "accepted" => "accepted, what came of it is not written down".to_owned(),
            "done" => match entry.text.split("after ").skip(1).last() {
                Some(span) => format!("done after {span}"),
                None => word.to_owned(),
            },
            _ if entry.text.starts_with(word) => entry.text.clone(),
            _ => format!("{word}: {}", entry.text),
        };
        let known = self.open.iter().find(|(id, _, _)| *id == entry.session);
        let Some((_, at, head)) = known else {
            self.item(entry, format_args!(" was restarted before: {result}"));
            return;
        };
        let item = &mut self.items[*at];
        if POLLER.contains(&word) {
            add(&mut item.what, format_args!("; {}", entry.text));
            item.word.push_str(word);
        } else {
            item.what = format!("{head}: {result}");
            word.clone_into(&mut item.word);
        }
        let vain = IN_VAIN.contains(&word) || word == "no poller";
        item.light = vain.then_some(Light::Yellow);
    }

    /// A message, or what is to become one.
    fn told(&mut self, entry: &Entry) {
        let bad = entry.level != "info";
        for key in entry.episodes.split(' ') {
            let Some((_, subject)) = key.split_once(':').filter(|_| bad && is_given_up(key)) else {
                continue;
            };
            if !self.given_up.iter().any(|known| known == subject) && self.given_up.len() < REACH {
                self.given_up.push(subject.to_owned());
                self.summary.given_up += 1;
            }
        }
        let again = entry.word == "failed" && entry.why.starts_with("try ");
        let (summary, why) = (&mut self.summary, entry.why.as_str());
        let not_told = format!("not told, {} ", entry.word);
        let (words, why, count) = match entry.word.as_str() {
            // The same news again.
            "deduplicated" => return,
            "sent" => ("told", "", &mut summary.told),
            "local only" => ("only written down", "", &mut summary.written),
            "rate-limited" => ("waits to be told", "", &mut 0),
            "failed" if again => ("not told yet, ", why, &mut 0),
            "unknown" => ("perhaps told, ", why, &mut summary.not_told),
            _ => (&*not_told, why, &mut summary.not_told),
        };
        *count += 1;
        let (level, text) = (&entry.level, self.names.without_ids(entry));
        let text = text.replace('\n', "; ");
        let items = &mut self.items;
        self.waiting.retain(|(key, at)| {
            let same = entry.episodes.split(' ').any(|told| told == key);
            if same {
                items[*at].quiet = true;
            }
            !same
        });
        // The end of an episode is said where it begins.
        let same = |item: &&mut Item| {
            item.kind == Kind::Told
                && item.about == entry.episodes
                && item.word.starts_with(&entry.word)
        };
        let mut newest = items.iter_mut().rev().take(REACH);
        if !bad && let Some(item) = newest.find(same) {
            if let Some((head, rest)) = item.what.split_once("): ") {
                item.what = format!("{head}, over {}): {rest}", clock(entry.at));
            }
            return;
        }
        let at = self.item(entry, format_args!(" {words}{why} ({level}): {text}"));
        let item = &mut self.items[at];
        item.about.clone_from(&entry.episodes);
        item.word.push_str(&entry.level);
        item.light = (entry.level == "critical").then_some(Light::Red);
        if (again || entry.word == "rate-limited") && self.waiting.len() < REACH {
            for key in entry.episodes.split(' ') {
                self.waiting.push((key.to_owned(), at));
            }
        }
    }

    /// A child climbs. What follows from most rungs is told by itself.
    fn rung(&mut self, entry: &Entry, rest: &[Entry]) {
        for (row, what) in ROWS {
            let known = row == STOPPED && self.knows_stop(&entry.session);
            if entry.text.ends_with(row) && !known && !heard_soon(entry, rest) {
                self.item(entry, format_args!(" {what}"));
            }
        }
    }

    /// A child is stopped, as its owner has opted in. What came of it is said where
    /// it begins.
    fn stop(&mut self, entry: &Entry) {
        let words = match entry.word.as_str() {
            "done" => " was stopped by the watchdog",
            "failed" => " could not be stopped",
            _ => " is to be stopped",
        };
        let text = match entry.text.as_str() {
            "" => String::new(),
            text => format!(": {text}"),
        };
        let open = |item: &&mut Item| item.kind == Kind::Stop && item.about == entry.session;
        let mut newest = self.items.iter_mut().rev().take(REACH);
        if entry.word != STOP_BEGINS
            && let Some(item) = newest.find(open).filter(|item| !ends_stop(&item.word))
        {
            // That it was asked for is known by then.
            if ends_stop(&entry.word) {
                item.what = format!("{words}{text}");
                item.word.clone_from(&entry.word);
            }
            return;
        }
        self.summary.stops += 1;
        let at = self.item(entry, format_args!("{words}{text}"));
        self.items[at].light = Some(Light::Yellow);
    }

    /// Whether a stop of that session was told of.
    fn knows_stop(&self, session: &str) -> bool {
        let mut newest = self.items.iter().rev().take(REACH);
        newest.any(|item| item.kind == Kind::Stop && item.about == session)
    }

    /// A notice to a parent has come to its end.
    fn parent_told(&mut self, entry: &Entry) {
        if NOT_MEANT.contains(&entry.why.as_str()) {
            return;
        }
        let (parent, text) = (
            self.names.of_id(&entry.parent),
            self.names.without_ids(entry),
        );
        let why = match entry.why.as_str() {
            "" => String::new(),
            why => format!(", {why}"),
        };
        let (word, count) = match entry.word.as_str() {
            "told" => ("told", &mut self.summary.told),
            _ => ("could not be told", &mut self.summary.not_told),
        };
        *count += 1;
        let verb = if word == "told" { " was" } else { "" };
        let at = self.item(entry, format_args!("{parent}{verb} {word}{why}: {text}"));
        let item = &mut self.items[at];
        item.about.clone_from(&entry.episodes);
        item.light = (word != "told").then_some(Light::Yellow);
    }

    /// Anything else that stands in `watchdog.log`.
    fn note(&mut self, entry: &Entry, rest: &[Entry]) {
        let text = entry.text.as_str();
        let begins = |begin: &str| text.starts_with(begin);
        // What `status` and `doctor` say is no news of the night.
        let standing = entry.title == "settings" && entry.session.is_empty();
        if standing
            || begins("no fast path")
            || begins("the fast path is back")
            || text.contains(super::parts::ONE_TURN)
            // That stands in `escalations.log` too.
            || (!entry.session.is_empty() && PARENTS.iter().any(|begin| begins(begin)))
            // Why that matters follows.
            || (begins("waits on an unchanged screen") && heard_soon(entry, rest))
        {
            return;
        }
        let ending = ENDINGS.iter().find(|(_, end)| begins(end));
        if ending.is_some() {
            let same = |item: &&mut Item| {
                let begin = |(begin, end): &(&str, &str)| {
                    begins(end) && item.what.starts_with(&format!(": {begin}"))
                };
                item.kind == Kind::Note && item.about == entry.title && ENDINGS.iter().any(begin)
            };
            if let Some(item) = self.items.iter_mut().rev().take(REACH).find(same) {
                add(&mut item.what, format_args!("; {} {text}", clock(entry.at)));
                return;
            }
        }
        let soon = rest
            .iter()
            .take(REACH)
            .take_while(|next| next.at.since(entry.at) <= SOON);
        let mut told = soon.filter(|next| next.log == LOGS[1]);
        if told.any(|told| told.text.contains(text)) {
            return;
        }
        let at = self.item(entry, format_args!(": {text}"));
        let item = &mut self.items[at];
        item.word = text.chars().filter(|c| !c.is_ascii_digit()).collect();
        item.light = (entry.level == "critical").then_some(Light::Red);
        if entry.session.is_empty() {
            item.about.clone_from(&entry.title);
        }
    }

    /// The items that are worth a line, and the story in numbers.
    pub fn end(mut self) -> (Vec<Item>, Summary) {
        for item in self.items.iter().filter(|item| item.kind == Kind::Attempt) {
            if NO_RESTART.contains(&item.word.as_str()) {
                continue;
            }
            self.summary.restarts += 1;
            let vain = IN_VAIN.contains(&item.word.as_str());
            self.summary.in_vain += u64::from(vain);
        }
        self.items.retain(|item| !item.quiet);
        (self.items, self.summary)
    }
}

fn ends_stop(word: &str) -> bool {
    STOP_ENDS.contains(&word)
}

/// Whether something about the same session follows soon that says more: it was
/// asked, or somebody was told.
fn heard_soon(entry: &Entry, rest: &[Entry]) -> bool {
    let soon = rest
        .iter()
        .take(REACH)
        .take_while(|next| next.at.since(entry.at) <= SOON);
    let mut own = soon.filter(|next| next.session == entry.session);
    own.any(|next| {
        let heard = next.kind == Kind::Told && next.word != "deduplicated";
        next.kind == Kind::Nudge || (heard && !NOT_MEANT.contains(&next.why.as_str()))
    })
}

/// Why a session was restarted, as a person says it.
fn cause(attempt: &Entry) -> String {
    let evidence = attempt.text.as_str();
    if attempt.deaf {
        return match evidence.split(", for ").skip(1).last() {
            Some(span) => format!(" went deaf (no Telegram poller for {span})"),
            None => " went deaf".to_owned(),
        };
    }
    let evidence = evidence.strip_prefix("error in show, ").unwrap_or(evidence);
    let evidence = evidence
        .strip_suffix(" and no process of it lives")
        .unwrap_or(evidence);
    let evidence = evidence.replace("the end of its process was seen", "its process ended");
    format!(" died ({evidence})")
}

/// The time of day, to the minute.
pub fn clock(at: Time) -> String {
    at.rfc3339().get(11..16).unwrap_or_default().to_owned()
}
