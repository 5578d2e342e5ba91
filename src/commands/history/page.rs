//! The story on one screen: what goes on is folded, what is long is cut, until
//! it fits.
//!
//! This file does not know what any of it means.

use std::time::Duration;

use super::lines::Kind;
use super::runs::day_and_time;
use super::story::{Item, REACH};
use crate::commands::paper::{Light, Paper, WIDTH, add, wrap};
use crate::host::logs::escape;
use crate::telling::cut;

/// Lines for what happened; a screen has a few more.
const LINES: usize = 34;
/// Columns of the time and the blanks behind it.
const INDENT: usize = 10;
/// Names that stand before "and 3 more".
const NAMES: usize = 3;

const HOUR: Duration = Duration::from_secs(3600);

/// Lines of one item at most, when there is room.
const MOST: usize = 3;

/// Ways to fold, the gentlest first: whether different sessions are folded into
/// one, and what within so many hours goes on.
const WAYS: [(bool, u32); 3] = [(false, 2), (true, 2), (true, 24)];
/// Reminders come every six hours (DESIGN 2.4).
const REMINDED: Duration = Duration::from_secs(7 * 3600);

/// The items as lines, by days.
pub fn lay_out(items: &[Item], paper: &Paper) -> String {
    let mut folded = Vec::new();
    let mut used = 0;
    for (across, hours) in WAYS {
        folded = fold(items, across, HOUR * hours);
        used = folded.len() + days(&folded);
        if used <= LINES {
            break;
        }
    }
    // What room is left goes to what deserves most attention.
    let mut room = LINES.saturating_sub(used);
    let mut lines = vec![1; folded.len()];
    for light in [Some(Light::Red), Some(Light::Yellow), None] {
        for (at, item) in folded.iter().enumerate() {
            if item.light == light {
                let more = sentence(item).lines().count().min(MOST) - 1;
                lines[at] += more.min(room);
                room -= more.min(room);
            }
        }
    }
    print(&folded, &lines, paper)
}

fn days(items: &[Item]) -> usize {
    let (mut days, mut last) = (0, None);
    for item in items {
        let day = Some(item.at.0 / 86_400_000);
        days += usize::from(day != last);
        last = day;
    }
    days
}

/// Items that are alike and go on become one.
fn fold(items: &[Item], across: bool, within: Duration) -> Vec<Item> {
    let mut folded: Vec<Item> = Vec::new();
    for item in items {
        let within = match item.kind {
            Kind::Told => within.max(REMINDED),
            _ => within,
        };
        let alike = |known: &&mut Item| {
            (known.kind, &known.word) == (item.kind, &item.word)
                && (across || known.about == item.about)
                && item.at.since(known.until) <= within
        };
        // The newest are the likeliest.
        let Some(known) = folded.iter_mut().rev().take(REACH).find(alike) else {
            folded.push(item.clone());
            continue;
        };
        known.until = known.until.max(item.until);
        known.times += item.times;
        known.what.clone_from(&item.what);
        for name in &item.who {
            if !known.who.contains(name) && known.who.len() < REACH {
                known.who.push(name.clone());
            }
        }
    }
    folded
}

fn print(items: &[Item], lines: &[usize], paper: &Paper) -> String {
    let mut page = String::new();
    let mut day = String::new();
    for (item, lines) in items.iter().zip(lines) {
        let stamp = item.at.rfc3339();
        let (date, time) = stamp.split_once('T').unwrap_or_default();
        if date != day {
            let zone = if day.is_empty() { ", times in UTC" } else { "" };
            paper.lit(&mut page, Light::Strong, format_args!("{date}{zone}"));
            page.push('\n');
            date.clone_into(&mut day);
        }
        let time = time.trim_end_matches('Z');
        match item.light {
            Some(light) => paper.lit(&mut page, light, format_args!("{time}")),
            None => page.push_str(time),
        }
        let sentence = sentence(item);
        let count = sentence.lines().count();
        for (at, line) in sentence.lines().take(*lines).enumerate() {
            let cut_off = at + 1 == *lines && count > *lines;
            let room = WIDTH - usize::from(cut_off);
            // Before the first one stands the time instead of blanks.
            let from = if at == 0 { 8 } else { 0 };
            let line = line.get(from..).unwrap_or_default();
            page.extend(line.chars().take(room - from));
            if cut_off {
                page.push('…');
            }
            page.push('\n');
        }
    }
    page
}

/// One item, in as many lines as it takes.
fn sentence(item: &Item) -> String {
    let names = item.who.len().min(NAMES);
    let mut text = item.who[..names].join(", ");
    if item.who.len() > names {
        add(
            &mut text,
            format_args!(" and {} more", item.who.len() - names),
        );
    }
    if item.times > 1 {
        let until = day_and_time(item.until, item.at);
        add(
            &mut text,
            format_args!(" ({} times until {until})", item.times),
        );
    }
    text.push_str(&item.what);
    let text = text.trim_start();
    // No word is longer than a line.
    let text = escape(text);
    let mut words = String::new();
    for word in text.split(' ') {
        let word = cut(word, WIDTH - INDENT - 1);
        add(&mut words, format_args!("{word} "));
    }
    let mut lines = String::new();
    wrap(&mut lines, &" ".repeat(INDENT), &words, INDENT);
    lines
}
