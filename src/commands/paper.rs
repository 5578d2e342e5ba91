//! Text for a terminal: lines of at most 80 columns, columns side by side, a
//! little colour where a person looks.
//!
//! This file does not know what is said.

use std::fmt::{Arguments, Write};
use std::io::IsTerminal;

use crate::config::Environment;
use crate::host::logs::escape;

/// Columns of a line.
pub const WIDTH: usize = 80;

/// How much attention a text deserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Light {
    /// All is well.
    Green,
    /// Look at it some time.
    Yellow,
    /// Look at it now.
    Red,
    /// A heading.
    Strong,
}

/// What is written on.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    colour: bool,
}

impl Paper {
    /// Colour only on a terminal that has some, and not with `NO_COLOR`.
    pub fn of_stdout(environment: Environment) -> Paper {
        let set = |name| environment(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_none_or(|term| term == "dumb");
        Paper {
            colour: std::io::stdout().is_terminal() && !dumb && set("NO_COLOR").is_none(),
        }
    }

    /// Without colour.
    pub fn plain() -> Paper {
        Paper { colour: false }
    }

    /// Writes the text in a colour behind what stands on the page.
    #[inline(never)]
    pub fn lit(&self, page: &mut String, light: Light, text: Arguments) {
        let code = match light {
            Light::Green => "32",
            Light::Yellow => "33",
            Light::Red => "31",
            Light::Strong => "1",
        };
        match self.colour {
            true => add(page, format_args!("\u{1b}[{code}m{text}\u{1b}[0m")),
            false => add(page, text),
        }
    }
}

/// Sentences, one after the other.
#[derive(Default)]
pub struct Said(pub Vec<String>);

impl Said {
    /// One more.
    #[inline(never)]
    pub fn say(&mut self, sentence: Arguments) {
        self.0.push(sentence.to_string());
    }
}

/// Writes the text behind what stands on the page.
#[inline(never)]
pub fn add(page: &mut String, text: Arguments) {
    // A string takes everything.
    let _ = page.write_fmt(text);
}

/// Writes the text in lines of at most 80 columns. The first begins with `head`,
/// the others with as many blanks as `indent` says. Words that are longer than a
/// line stay whole. Ends with a line break.
pub fn wrap(page: &mut String, head: &str, text: &str, indent: usize) {
    page.push_str(head);
    let mut column = columns(head);
    let mut empty = true;
    for word in text.split_whitespace() {
        let length = columns(word);
        if !empty && column + 1 + length > WIDTH {
            page.push('\n');
            page.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if !empty {
            page.push(' ');
            column += 1;
        }
        page.push_str(word);
        column += length;
        empty = false;
    }
    page.push('\n');
}

/// The text, fit to be shown, in exactly `width` columns and a blank behind it:
/// filled up, or cut with `…`.
pub fn cell(text: &str, width: usize) -> String {
    let mut cell = short(text, width);
    let filled = width.saturating_sub(columns(&cell)) + 1;
    cell.extend(std::iter::repeat_n(' ', filled));
    cell
}

/// The text, fit to be shown, in at most `width` columns: cut with `…`.
pub fn short(text: &str, width: usize) -> String {
    let text = escape(text);
    if columns(&text) <= width {
        return text;
    }
    let mut column = 1;
    let fits = |c: &char| {
        column += columns_of(*c);
        column <= width
    };
    let mut shown: String = text.chars().take_while(fits).collect();
    shown.push('…');
    shown
}

/// Columns that a terminal gives to a text.
fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Two for the wide scripts and pictures, none for marks that join what stands
/// before them (the blocks of Unicode's table of widths, roughly).
fn columns_of(c: char) -> usize {
    match u32::from(c) {
        0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff => 2,
        0xfe30..=0xfe6f | 0xff00..=0xff60 | 0xffe0..=0xffe6 => 2,
        0x1f300..=0x1faff | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_go_on_below_their_begin() {
        let mut page = String::new();
        wrap(&mut page, "  ok  ", &"word ".repeat(40), 6);
        let lines: Vec<&str> = page.lines().collect();
        assert!(lines.len() > 2 && lines.iter().all(|line| line.chars().count() <= WIDTH));
        assert!(lines[0].starts_with("  ok  word") && lines[1].starts_with("      word"));
        assert_eq!(page.matches("word").count(), 40);
        page.clear();
        wrap(&mut page, "a ", "", 2);
        assert_eq!(page, "a \n");
    }

    #[test]
    fn a_cell_has_its_width_whatever_stands_in_it() {
        assert_eq!(cell("ab", 4), "ab   ");
        assert_eq!(cell("abcdef", 4), "abc… ");
        assert_eq!(cell("\u{1b}[31m", 12), "\\x1b[31m     ");
        assert_eq!(cell("漢字かな", 6), "漢字…  ");
        assert_eq!(cell("e\u{301}e", 4), "e\u{301}e   ");
        assert_eq!(short("漢字", 4), "漢字");
    }

    #[test]
    fn colour_needs_a_terminal() {
        let mut page = String::new();
        Paper::plain().lit(&mut page, Light::Red, format_args!("x"));
        Paper { colour: true }.lit(&mut page, Light::Red, format_args!("y"));
        assert_eq!(page, "x\u{1b}[31my\u{1b}[0m");
    }
}
