//! Words of a shell, as bash would expand them, as far as that follows from
//! the text alone (contract 8.4; bash(1), "Expansion"). Nothing is ever run.
//!
//! What would need a shell is skipped and remembered in the word. This file
//! does not know what a command is, nor what a variable is for.

use super::cursor::Cursor;
use crate::json::{Map, Value};

/// Variables: a text, or null where one is set to something unknown.
pub type Variables = Map;

/// Longest word, in bytes; a path is 4096 at most. Against a file that doubles
/// a variable line by line.
const LONGEST: usize = 64 << 10;
/// Deepest nesting of what is skipped.
const DEEPEST: usize = 32;

const OPEN: &str = "a quote or bracket is not closed";
/// A command would be run for its output.
const OUTPUT: &str = "needs a shell: $( )";
const PARAMETER: &str = "needs a shell: ${ }";
const UNSET: &str = "refers to a variable that is not set there";

/// A word after expansion.
#[derive(Default)]
pub struct Word {
    /// Its text, as far as it is known.
    pub text: Vec<u8>,
    /// Where the `=` of an assignment stands, when its name stands plainly.
    pub equals: Option<usize>,
    /// Why it is not known, and from which byte of the text on.
    pub unknown: Option<(usize, &'static str)>,
    /// A command is run for its output.
    pub runs: bool,
    /// It has quotes or expansions.
    odd: bool,
    /// It could become several words.
    splits: bool,
}

impl Word {
    /// The text, if all of it is known for certain; else a NUL byte, which no
    /// word can hold.
    pub fn known(&self) -> &[u8] {
        match self.unknown.is_none() && !self.splits {
            true => &self.text,
            false => b"\0",
        }
    }

    /// Where the `=` of an argument such as `A=b` stands, quoted or not, when
    /// what comes before it is known.
    pub fn assigns(&self) -> Option<usize> {
        let at = self.text.iter().position(|&byte| byte == b'=')?;
        let known = self.unknown.is_none_or(|(from, _)| from > at);
        (known && !self.splits).then_some(at)
    }

    fn unsure(&mut self, why: &'static str) {
        let at = self.text.len();
        self.unknown.get_or_insert((at, why));
    }

    /// Adds a variable's value.
    fn variable(&mut self, variables: &Variables, name: &[u8]) {
        let name = std::str::from_utf8(name).unwrap_or_default();
        match variables.get(name).and_then(Value::as_str) {
            Some(value) => self.text.extend_from_slice(value.as_bytes()),
            None => self.unsure(UNSET),
        }
    }
}

fn letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a variable may have this name.
pub fn is_name(name: &[u8]) -> bool {
    name.iter().all(|&byte| letter(byte)) && name.first().is_some_and(|byte| !byte.is_ascii_digit())
}

/// The name before the `+` of `A+=b`, and whether there is one.
pub fn plain_name(name: &[u8]) -> (&[u8], bool) {
    match name {
        [name @ .., b'+'] => (name, true),
        _ => (name, false),
    }
}

/// A text of words, without NUL bytes.
pub struct Reader<'a, 'v> {
    /// Where it is read.
    pub at: Cursor<'a>,
    /// What is set there.
    pub variables: &'v Variables,
}

impl Reader<'_, '_> {
    /// Takes one word.
    ///
    /// # Errors
    /// Where it cannot be said how the text goes on.
    pub fn word(&mut self) -> Result<Word, &'static str> {
        let mut word = Word::default();
        // Here a ~ means a home folder.
        let mut home = true;
        let mut braces = false;
        while !b" \t\n;&|()<>\0".contains(&self.at.peek()) {
            let begins = home;
            home = false;
            let byte = self.at.next();
            if byte == b'\\' && self.at.take(b"\n") {
                home = begins;
                continue;
            }
            word.odd |= b"\\'\"`$".contains(&byte);
            match byte {
                b'\\' => match self.at.next() {
                    0 => word.text.push(byte),
                    byte => word.text.push(byte),
                },
                b'\'' => {
                    let inside = self.until(b'\'')?;
                    word.text.extend_from_slice(inside);
                }
                b'"' => self.double(&mut word)?,
                b'$' => self.dollar(&mut word, false)?,
                b'`' => self.backquotes(&mut word)?,
                b'~' if begins => self.tilde(&mut word),
                _ => {
                    if byte == b'=' && !word.odd && word.equals.is_none() {
                        let (name, _) = plain_name(&word.text);
                        word.equals = is_name(name).then_some(word.text.len());
                        home = true;
                    }
                    home |= byte == b':' && word.equals.is_some();
                    braces |= byte == b'{';
                    word.text.push(byte);
                }
            }
            if word.text.len() > LONGEST {
                return Err("too long");
            }
        }
        // An argument such as `A={1,2}` is two.
        if braces && word.unknown.is_none() && word.text.len() > 1 {
            word.unknown = Some((0, "needs a shell: { }"));
        }
        Ok(word)
    }

    /// What comes before the next `end`, which is taken too.
    fn until(&mut self, end: u8) -> Result<&[u8], &'static str> {
        let rest = self.at.rest();
        let length = rest.iter().position(|&byte| byte == end).ok_or(OPEN)?;
        self.at.at += length + 1;
        Ok(rest.get(..length).unwrap_or_default())
    }

    /// Behind a double quote.
    fn double(&mut self, word: &mut Word) -> Result<(), &'static str> {
        loop {
            match self.at.next() {
                0 => return Err(OPEN),
                b'"' => return Ok(()),
                b'$' => self.dollar(word, true)?,
                b'`' => self.backquotes(word)?,
                b'\\' if self.at.take(b"\n") => {}
                b'\\' if b"$`\"\\".contains(&self.at.peek()) => word.text.push(self.at.next()),
                byte => word.text.push(byte),
            }
        }
    }

    /// Behind a dollar sign.
    fn dollar(&mut self, word: &mut Word, quoted: bool) -> Result<(), &'static str> {
        word.splits |= !quoted && word.equals.is_none();
        match self.at.peek() {
            b'(' => {
                self.at.at += 1;
                word.runs = true;
                word.unsure(OUTPUT);
                self.skip(b')', 0)?;
            }
            b'{' => {
                self.at.at += 1;
                let variables = self.variables;
                let inside = self.until(b'}')?;
                if is_name(inside) {
                    word.variable(variables, inside);
                } else if inside.iter().any(|byte| b"'\"`\\${=\n(".contains(byte)) {
                    // It may end elsewhere, or set a variable.
                    return Err(PARAMETER);
                } else {
                    word.unsure(PARAMETER);
                }
            }
            b'[' => return Err("needs a shell: $[ ]"),
            b'\'' if !quoted => return Err("needs a shell: $' '"),
            // $"text" is a text to be translated.
            b'"' if !quoted => {}
            byte if letter(byte) && !byte.is_ascii_digit() => {
                let name = self.at.take_while(letter);
                word.variable(self.variables, name);
            }
            byte if letter(byte) || b"@*#?$!-".contains(&byte) => {
                self.at.at += 1;
                word.unsure(UNSET);
            }
            _ => word.text.push(b'$'),
        }
        Ok(())
    }

    /// Behind the first of two backquotes.
    fn backquotes(&mut self, word: &mut Word) -> Result<(), &'static str> {
        word.splits |= word.equals.is_none();
        word.runs = true;
        word.unsure(OUTPUT);
        loop {
            match self.at.next() {
                0 => return Err(OPEN),
                b'`' => return Ok(()),
                b'\\' => self.at.at += 1,
                _ => {}
            }
        }
    }

    /// Behind a tilde that could mean a home folder.
    fn tilde(&mut self, word: &mut Word) {
        let next = self.at.peek();
        if b"/: \t\n;&|()<>\0".contains(&next) {
            return word.variable(self.variables, b"HOME");
        }
        // With a quote before the first slash it stays what it is.
        if !b"'\"\\$`".contains(&next) {
            word.unsure("needs a shell: ~ with a name");
        }
        word.text.push(b'~');
    }

    /// Skips to the bracket or double quote that closes the one before.
    fn skip(&mut self, close: u8, depth: usize) -> Result<(), &'static str> {
        let mut blank = true;
        loop {
            // These have rules of their own on where they end.
            let rest = self.at.rest();
            let comment = blank && close == b')' && rest.starts_with(b"#");
            if depth > DEEPEST
                || comment
                || rest.starts_with(b"<<")
                || rest.starts_with(b"case")
                || rest.starts_with(b"`")
                || rest.starts_with(b"${")
            {
                return Err(OUTPUT);
            }
            let byte = self.at.next();
            blank = byte.is_ascii_whitespace();
            match byte {
                0 => return Err(OPEN),
                b'\\' => self.at.at += 1,
                byte if byte == close => return Ok(()),
                b'$' if self.at.take(b"(") => self.skip(b')', depth + 1)?,
                b'(' if close == b')' => self.skip(b')', depth + 1)?,
                b'"' => self.skip(b'"', depth + 1)?,
                b'\'' if close == b')' => {
                    self.until(b'\'')?;
                }
                _ => {}
            }
        }
    }
}
