//! Text for a terminal: lines of at most 80 columns, columns side by side, a
//! little colour where a person looks.
//!
//! This file does not know what is said.

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

    /// The text in a colour.
    pub fn lit(&self, light: Light, text: &str) -> String {
        let code = match light {
            Light::Green => "32",
            Light::Yellow => "33",
            Light::Red => "31",
            Light::Strong => "1",
        };
        if self.colour {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// The text in lines of at most 80 columns. The first begins with `head`, the
/// others with as many blanks as `indent` says. Words that are longer than a
/// line stay whole. Ends with a line break.
pub fn wrapped(head: &str, text: &str, indent: usize) -> String {
    let mut page = head.to_owned();
    let mut column = head.chars().count();
    let mut empty = true;
    for word in text.split_whitespace() {
        let length = word.chars().count();
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
    page
}

/// The text, fit to be shown, in exactly `width` columns and a blank behind it:
/// filled up, or cut with `…`.
pub fn cell(text: &str, width: usize) -> String {
    let text = escape(text);
    let length = text.chars().count();
    let mut cell: String = text.chars().take(width).collect();
    if length > width {
        cell.pop();
        cell.push('…');
    }
    cell.extend(std::iter::repeat_n(' ', width.saturating_sub(length) + 1));
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_go_on_below_their_begin() {
        let page = wrapped("  ok  ", &"word ".repeat(40), 6);
        let lines: Vec<&str> = page.lines().collect();
        assert!(lines.len() > 2 && lines.iter().all(|line| line.chars().count() <= WIDTH));
        assert!(lines[0].starts_with("  ok  word") && lines[1].starts_with("      word"));
        assert_eq!(page.matches("word").count(), 40);
        assert_eq!(wrapped("a ", "", 2), "a \n");
    }

    #[test]
    fn a_cell_has_its_width_whatever_stands_in_it() {
        assert_eq!(cell("ab", 4), "ab   ");
        assert_eq!(cell("abcdef", 4), "abc… ");
        assert_eq!(cell("\u{1b}[31m", 12), "\\x1b[31m     ");
    }

    #[test]
    fn colour_needs_a_terminal() {
        assert_eq!(Paper::plain().lit(Light::Red, "x"), "x");
        assert_eq!(
            Paper { colour: true }.lit(Light::Red, "x"),
            "\u{1b}[31mx\u{1b}[0m"
        );
    }
}
