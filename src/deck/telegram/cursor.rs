//! A place in a text of bytes. It does not know what the text means.
//!
//! Everything of meaning in TOML, in a shell and in `/proc` is ASCII, and bytes
//! are looked at in a tenth of the code that characters need.

/// A place in a text. Behind the end there are NUL bytes.
pub struct Cursor<'a> {
    /// The whole text.
    pub text: &'a [u8],
    /// The place, in bytes.
    pub at: usize,
}

impl<'a> Cursor<'a> {
    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next byte.
    pub fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or_default()
    }

    /// Takes the next byte.
    pub fn next(&mut self) -> u8 {
        let byte = self.peek();
        self.at += 1;
        byte
    }

    /// Takes `what`, if it comes next.
    pub fn take(&mut self, what: &[u8]) -> bool {
        let found = self.rest().starts_with(what);
        if found {
            self.at += what.len();
        }
        found
    }

    /// Takes all that comes next and fits.
    pub fn take_while(&mut self, fits: fn(u8) -> bool) -> &'a [u8] {
        let rest = self.rest();
        let end = rest.iter().position(|&byte| !fits(byte));
        let end = end.unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// Takes blanks and the word behind them; an empty one at the end.
    pub fn column(&mut self) -> &'a [u8] {
        self.take_while(|byte| byte == b' ');
        self.take_while(|byte| byte != b' ')
    }

    /// The line of this place, from 1.
    pub fn line(&self) -> usize {
        let read = self.text.iter().take(self.at);
        1 + read.filter(|&&byte| byte == b'\n').count()
    }
}

/// A number without sign.
pub fn number(digits: &[u8]) -> Option<u32> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Whether a word is in a list of words.
pub fn among(list: &[u8], word: &[u8]) -> bool {
    list.split(|&byte| byte == b' ').any(|one| one == word)
}
