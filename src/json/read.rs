//! JSON read from text.
//!
//! This file does not know what is read.

use std::fmt;

use super::{Map, Value};

/// The most lists and objects inside each other, as many as serde_json takes:
/// a text may not use up the stack.
const DEPTH: usize = 127;

/// What is wrong with a text that is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotJson {
    /// The line it is in, the first is 1.
    pub line: usize,
    /// What it is.
    pub why: &'static str,
}

impl fmt::Display for NotJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in line {}", self.why, self.line)
    }
}

/// The one value of a text.
///
/// # Errors
/// When it holds none, more than one, or is not UTF-8.
pub fn read(text: &[u8]) -> Result<Value, NotJson> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(DEPTH).and_then(|value| {
        reader.blanks();
        match reader.at == text.len() {
            true => Ok(value),
            false => Err("something behind the value"),
        }
    });
    value.map_err(|why| reader.wrong(why))
}

/// The first value of a text, whatever follows it.
///
/// # Errors
/// When it begins with none.
pub fn read_first(text: &[u8]) -> Result<Value, NotJson> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(DEPTH);
    value.map_err(|why| reader.wrong(why))
}

type Read<T> = Result<T, &'static str>;

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn wrong(&self, why: &'static str) -> NotJson {
        let before = self.text.iter().take(self.at);
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        NotJson { line, why }
    }

    /// The next byte; 0 at the end, where nothing of JSON stands either.
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == byte;
        self.at += usize::from(found);
        found
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    fn since(&self, start: usize) -> Read<&str> {
        std::str::from_utf8(&self.text[start..self.at]).map_err(|_| "not UTF-8")
    }

    fn value(&mut self, depth: usize) -> Read<Value> {
        self.blanks();
        match self.peek() {
            b'"' => self.string().map(Value::String),
            b'[' | b'{' if depth == 0 => Err("too many brackets"),
            b'[' => self.array(depth - 1),
            b'{' => self.object(depth - 1),
            b'-' | b'0'..=b'9' => self.number(),
            b'n' => self.word("null", Value::Null),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            _ => Err("no value"),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Read<Value> {
        match word.bytes().all(|byte| self.eat(byte)) {
            true => Ok(value),
            false => Err("no value"),
        }
    }

    fn array(&mut self, depth: usize) -> Read<Value> {
        self.at += 1;
        let mut items = Vec::new();
        while self.more(b']', items.is_empty())? {
            items.push(self.value(depth)?);
        }
        Ok(Value::Array(items))
    }

    fn object(&mut self, depth: usize) -> Read<Value> {
        self.at += 1;
        let mut map = Map::new();
        while self.more(b'}', map.is_empty())? {
            self.blanks();
            if self.peek() != b'"' {
                return Err("no name");
            }
            let name = self.string()?;
            self.blanks();
            if !self.eat(b':') {
                return Err("no colon");
            }
            map.insert(name, self.value(depth)?);
        }
        Ok(Value::Object(map))
    }

    /// Whether there is another item before the bracket that closes.
    fn more(&mut self, close: u8, first: bool) -> Read<bool> {
        self.blanks();
        if self.eat(close) {
            Ok(false)
        } else if first || self.eat(b',') {
            Ok(true)
        } else {
            Err("no comma")
        }
    }

    fn number(&mut self) -> Read<Value> {
        let start = self.at;
        self.eat(b'-');
        if !self.eat(b'0') {
            self.digits()?;
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _sign = self.eat(b'+') || self.eat(b'-');
            self.digits()?;
        }
        Ok(Value::Number(self.since(start)?.to_owned()))
    }

    fn digits(&mut self) -> Read<()> {
        let start = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        match self.at > start {
            true => Ok(()),
            false => Err("no digit"),
        }
    }

    fn string(&mut self) -> Read<String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let start = self.at;
            while !matches!(self.peek(), b'"' | b'\\' | 0..0x20) {
                self.at += 1;
            }
            text.push_str(self.since(start)?);
            if self.eat(b'"') {
                return Ok(text);
            } else if !self.eat(b'\\') {
                return Err("a text without end");
            }
            text.push(self.escaped()?);
        }
    }

    fn escaped(&mut self) -> Read<char> {
        let byte = self.peek();
        self.at += 1;
        Ok(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(),
            _ => return Err("no such escape"),
        })
    }

    /// `\u` is read. Beyond `\uffff` a character is written as two halves.
    fn unicode(&mut self) -> Read<char> {
        let mut code = self.hex()?;
        if matches!(code, 0xd800..0xdc00) && self.eat(b'\\') && self.eat(b'u') {
            let half = self.hex()?.checked_sub(0xdc00).filter(|half| *half < 0x400);
            code = half.map_or(code, |half| 0x1_0000 + ((code - 0xd800) << 10) + half);
        }
        char::from_u32(code).ok_or("half a character")
    }

    fn hex(&mut self) -> Read<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = char::from(self.peek()).to_digit(16);
            code = code * 16 + digit.ok_or("no such escape")?;
            self.at += 1;
        }
        Ok(code)
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
