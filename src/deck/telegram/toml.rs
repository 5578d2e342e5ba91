//! TOML to JSON values, as far as agent-deck's `config.toml` needs it.
//!
//! Tables, arrays, texts and truth values are read as TOML 1.1 has them, with
//! its rules on what may be defined twice. Numbers, dates and times become 0:
//! nobody here asks for them, and a text they are not. It is written out since
//! the crate `toml` weighs 60 KB in a binary that may have 900; the tests hold
//! both against each other. It does not know what is configured.

use super::cursor::Cursor;
use crate::json::{Map, Value};

type Table = Map;

/// Deepest nesting of values and longest dotted name. Ours, so that no file
/// can exhaust the stack; agent-deck's own settings need five.
const DEEPEST: usize = 32;

/// A text that is not TOML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Line of the first fault, from 1.
    pub line: usize,
    /// What is wrong there, without any of the text.
    pub why: &'static str,
}

/// Reads a whole text.
///
/// # Errors
/// With the first fault.
pub fn table(text: &str) -> Result<Table, Broken> {
    let mut reader = Reader(Cursor {
        text: text.as_bytes(),
        at: 0,
    });
    let mut root = Map::new();
    match reader.document(&mut root) {
        Ok(()) => {
            unmark(&mut root);
            Ok(root)
        }
        Err(why) => {
            let line = reader.0.line();
            Err(Broken { line, why })
        }
    }
}

/// While a text is read, tables that may grow say under this name how they came
/// to be. No name in a file can hold a NUL byte: that is an error here.
const MARK: &str = "\0";
/// On the way to a header.
const PASSED: Value = Value::Null;
/// By a header of its own.
const HEADER: Value = Value::Bool(true);
/// On the way to a dotted key.
const DOTTED: Value = Value::Bool(false);

const TWICE: &str = "defined twice";
const DEEP: &str = "nested too deeply";
const NO_KEY: &str = "no key that TOML knows";
const NO_VALUE: &str = "no value that TOML knows";
const CONTROL: &str = "a control character";
const ESCAPE: &str = "an escape that TOML does not know";
const OPEN: &str = "a quote or bracket that is not closed";
const MORE: &str = "something follows on the same line";

fn marked(mark: Value) -> Value {
    let mut table = Map::new();
    table.insert(MARK.to_owned(), mark);
    Value::Object(table)
}

/// Takes the marks out of everything below.
fn unmark(table: &mut Table) {
    table.retain(&mut |name, _| name != MARK);
    for value in table.values_mut() {
        if let Value::Object(inner) = value {
            unmark(inner);
        } else if let Value::Array(list) = value {
            for inner in list {
                inner.as_object_mut().map(unmark);
            }
        }
    }
}

/// Goes down along `names`, making what is not there. `None` where something
/// else is in the way. Values have no mark and cannot be entered; a dotted key
/// enters only what dotted keys have made.
fn down<'t>(mut table: &'t mut Table, names: &[String], mark: &Value) -> Option<&'t mut Table> {
    for name in names {
        if table.get(name).is_none() {
            table.insert(name.clone(), marked(mark.clone()));
        }
        let mut next = table.get_mut(name)?;
        if let Value::Array(list) = next {
            next = list.last_mut()?;
        }
        table = next.as_object_mut()?;
        let known = table.get(MARK)?;
        if *mark == DOTTED && *known != DOTTED {
            return None;
        }
    }
    Some(table)
}

/// Opens the table that a header names, or a further one of an array.
fn open(root: &mut Table, names: &[String], array: bool) -> Option<()> {
    let (name, parents) = names.split_last()?;
    let parent = down(root, parents, &PASSED)?;
    match parent.get_mut(name) {
        None => {
            let table = marked(HEADER);
            let value = match array {
                true => Value::Array(vec![table]),
                false => table,
            };
            parent.insert(name.clone(), value);
        }
        Some(Value::Array(list)) if array => {
            list.last()?.get(MARK)?;
            list.push(marked(HEADER));
        }
        Some(Value::Object(table)) if !array && *table.get(MARK)? == PASSED => {
            table.insert(MARK.to_owned(), HEADER);
        }
        Some(_) => return None,
    }
    Some(())
}

/// Puts a value under a dotted name.
fn put(table: &mut Table, names: &[String], value: Value) -> Option<()> {
    let (name, parents) = names.split_last()?;
    let table = down(table, parents, &DOTTED)?;
    if table.get(name).is_some() {
        return None;
    }
    table.insert(name.clone(), value);
    Some(())
}

struct Reader<'a>(Cursor<'a>);

impl Reader<'_> {
    fn blanks(&mut self) {
        self.0.take_while(|byte| byte == b' ' || byte == b'\t');
    }

    /// Blanks, and a comment; whether a line ends here, which is taken too.
    fn line_end(&mut self) -> Result<bool, &'static str> {
        self.blanks();
        if self.0.take(b"#") {
            self.0
                .take_while(|byte| byte == b'\t' || !byte.is_ascii_control());
        }
        let end = self.0.take(b"\n") || self.0.take(b"\r\n");
        if !end && self.0.peek().is_ascii_control() && !self.0.rest().is_empty() {
            return Err(CONTROL);
        }
        Ok(end)
    }

    fn document(&mut self, root: &mut Table) -> Result<(), &'static str> {
        self.0.take("\u{feff}".as_bytes());
        let mut section = Vec::new();
        loop {
            while self.line_end()? {}
            if self.0.rest().is_empty() {
                return Ok(());
            }
            if self.0.take(b"[") {
                let array = self.0.take(b"[");
                section = self.names()?;
                if !self.0.take(if array { b"]]" } else { b"]" }) {
                    return Err(OPEN);
                }
                open(root, &section, array).ok_or(TWICE)?;
            } else {
                let table = down(root, &section, &PASSED).ok_or(TWICE)?;
                self.entry(table, 0)?;
            }
            if !self.line_end()? && !self.0.rest().is_empty() {
                return Err(MORE);
            }
        }
    }

    /// A key and its value, put into `table`.
    fn entry(&mut self, table: &mut Table, depth: usize) -> Result<(), &'static str> {
        let names = self.names()?;
        if !self.0.take(b"=") {
            return Err("no = behind a key");
        }
        self.blanks();
        let begin = self.0.at;
        let value = self.value(depth + names.len())?;
        if put(table, &names, value).is_none() {
            self.0.at = begin;
            return Err(TWICE);
        }
        Ok(())
    }

    /// A dotted name, with the blanks around it.
    fn names(&mut self) -> Result<Vec<String>, &'static str> {
        let mut names = Vec::new();
        loop {
            self.blanks();
            let name = match self.0.peek() {
                b'"' | b'\'' => self.text(false)?,
                _ => {
                    let bare = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
                    let name = self.0.take_while(bare);
                    if name.is_empty() {
                        return Err(NO_KEY);
                    }
                    text(name.to_owned())
                }
            };
            if name.contains(MARK) {
                return Err(CONTROL);
            }
            names.push(name);
            self.blanks();
            if names.len() > DEEPEST {
                return Err(DEEP);
            }
            if !self.0.take(b".") {
                return Ok(names);
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, &'static str> {
        if depth > DEEPEST {
            return Err(DEEP);
        }
        match self.0.peek() {
            b'[' => self.inside(b']', depth),
            b'{' => self.inside(b'}', depth),
            b'"' | b'\'' => {
                let long =
                    self.0.rest().starts_with(b"\"\"\"") || self.0.rest().starts_with(b"'''");
                self.text(long).map(Value::String)
            }
            _ => self.bare(),
        }
    }

    /// An array or an inline table.
    fn inside(&mut self, close: u8, depth: usize) -> Result<Value, &'static str> {
        self.0.at += 1;
        let mut list = Vec::new();
        let mut table = Map::new();
        loop {
            while self.line_end()? {}
            if self.0.take(&[close]) {
                return Ok(match close {
                    b']' => Value::Array(list),
                    _ => Value::Object(table),
                });
            }
            match close {
                b']' => list.push(self.value(depth + 1)?),
                _ => self.entry(&mut table, depth + 1)?,
            }
            while self.line_end()? {}
            if !self.0.take(b",") && self.0.peek() != close {
                return Err(OPEN);
            }
        }
    }

    /// A value without quotes.
    fn bare(&mut self) -> Result<Value, &'static str> {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-.:".contains(&byte);
        let begin = self.0.at;
        let word = self.0.take_while(letter);
        if word == b"true" || word == b"false" {
            return Ok(Value::Bool(word == b"true"));
        }
        if !is_number(word) {
            self.0.at = begin;
            return Err(NO_VALUE);
        }
        // A date may be followed by a blank and a time.
        let time = |rest: &[u8]| {
            rest.first() == Some(&b' ') && rest.get(1).is_some_and(u8::is_ascii_digit)
        };
        if word.get(4) == Some(&b'-') && time(self.0.rest()) {
            self.0.at += 1;
            self.0.take_while(letter);
        }
        Ok(Value::Number("0".to_owned()))
    }

    /// A text in quotes: on one line, or `long`, in three of them; then up to
    /// two more may stand before those that close it.
    fn text(&mut self, long: bool) -> Result<String, &'static str> {
        let quote = self.0.peek();
        let marks: &[u8] = if long { &[quote; 3] } else { &[quote] };
        self.0.at += marks.len();
        let _ = long && (self.0.take(b"\n") || self.0.take(b"\r\n"));
        let mut out = Vec::new();
        loop {
            if self.0.take(marks) {
                for _ in 0..2 {
                    if long && self.0.take(&[quote]) {
                        out.push(quote);
                    }
                }
                return Ok(text(out));
            }
            if long && self.0.take(b"\r\n") {
                out.extend(b"\r\n");
                continue;
            }
            match self.0.peek() {
                b'\\' if quote == b'"' => self.escape(&mut out, long)?,
                b'\n' if !long => return Err(OPEN),
                byte if byte.is_ascii_control() && byte != b'\t' && !(long && byte == b'\n') => {
                    return Err(if self.0.rest().is_empty() {
                        OPEN
                    } else {
                        CONTROL
                    });
                }
                byte => {
                    out.push(byte);
                    self.0.at += 1;
                }
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>, long: bool) -> Result<(), &'static str> {
        self.0.at += 1;
        let begin = self.0.at;
        // At the end of a line: it goes on with the next that is not blank.
        self.blanks();
        if long && b"\r\n".contains(&self.0.peek()) {
            self.0.take_while(|byte| byte.is_ascii_whitespace());
            return Ok(());
        }
        self.0.at = begin;
        let byte = self.0.next();
        let simple = b"btnfre\"\\".iter().position(|&one| one == byte);
        if let Some(at) = simple {
            out.extend(b"\x08\t\n\x0c\r\x1b\"\\".get(at));
            return Ok(());
        }
        let digits = match byte {
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            _ => return Err(ESCAPE),
        };
        let mut code = 0;
        for _ in 0..digits {
            let digit = char::from(self.0.next()).to_digit(16).ok_or(ESCAPE)?;
            code = code << 4 | digit;
        }
        let letter = char::from_u32(code).ok_or(ESCAPE)?;
        out.extend(letter.encode_utf8(&mut [0; 4]).bytes());
        Ok(())
    }
}

/// Cut at ASCII letters, a text stays UTF-8.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_default()
}

/// A number, a date or a time: `42`, `0xff`, `1_000.5e-3`, `1979-05-27T07:32:00Z`.
fn is_number(word: &[u8]) -> bool {
    let Ok(word) = std::str::from_utf8(word) else {
        return false;
    };
    if word.get(4..5) == Some("-") {
        return is_date(word);
    }
    if word.get(2..3) == Some(":") {
        return behind_time(word) == Some("");
    }
    for (begin, base) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(rest) = word.strip_prefix(begin) {
            return digits(rest, base);
        }
    }
    let word = unsigned(word);
    if word == "inf" || word == "nan" {
        return true;
    }
    let (number, power) = split(word, &['e', 'E']);
    let (whole, fraction) = split(number, &['.']);
    let leads = whole.len() > 1 && whole.starts_with('0');
    digits(whole, 10)
        && !leads
        && fraction.is_none_or(|part| digits(part, 10))
        && power.is_none_or(|part| digits(unsigned(part), 10))
}

/// A date, perhaps with a time and an offset; not whether there is such a day.
fn is_date(word: &str) -> bool {
    let Some(rest) = behind(word, "0000-00-00") else {
        return false;
    };
    let Some(time) = rest.strip_prefix(['T', 't']) else {
        return rest.is_empty();
    };
    match behind_time(time) {
        Some("" | "Z" | "z") => true,
        Some(offset) => ["+00:00", "-00:00"]
            .iter()
            .any(|form| behind(offset, form) == Some("")),
        None => false,
    }
}

/// What follows a time of day: hours and minutes, perhaps seconds and parts of one.
fn behind_time(word: &str) -> Option<&str> {
    let rest = behind(word, "00:00")?;
    let Some(rest) = behind(rest, ":00") else {
        return Some(rest);
    };
    match rest.strip_prefix('.') {
        Some(part) if part.starts_with(|c: char| c.is_ascii_digit()) => {
            Some(part.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        Some(_) => None,
        None => Some(rest),
    }
}

/// What follows a part of that form, in which `0` stands for any digit.
fn behind<'a>(word: &'a str, form: &str) -> Option<&'a str> {
    let (part, rest) = word.split_at_checked(form.len())?;
    let fits = |(c, form): (char, char)| {
        if form == '0' {
            c.is_ascii_digit()
        } else {
            c == form
        }
    };
    part.chars().zip(form.chars()).all(fits).then_some(rest)
}

fn unsigned(word: &str) -> &str {
    word.strip_prefix(['+', '-']).unwrap_or(word)
}

/// The text before the first of these marks, and what follows it.
fn split<'a>(text: &'a str, marks: &[char]) -> (&'a str, Option<&'a str>) {
    match text.split_once(marks) {
        Some((before, behind)) => (before, Some(behind)),
        None => (text, None),
    }
}

/// Digits, with single underscores between them.
fn digits(text: &str, base: u32) -> bool {
    let part = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_digit(base));
    text.split('_').all(part)
}

#[cfg(test)]
#[path = "toml_tests.rs"]
mod tests;
