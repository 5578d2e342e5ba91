//! Words and commands as a shell takes them.
//!
//! This file does not know what they are for.

use std::ffi::OsStr;
use std::fmt::{Display, Formatter, Result};
use std::path::Path;

use crate::commands::paper::add;

/// A path or another text as a shell takes it for one word.
pub struct Quoted<'a>(&'a OsStr);

/// The same.
pub fn quoted<T: AsRef<OsStr> + ?Sized>(text: &T) -> Quoted<'_> {
    Quoted(text.as_ref())
}

impl Display for Quoted<'_> {
    fn fmt(&self, out: &mut Formatter) -> Result {
        let text = self.0.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
        if !text.is_empty() && text.chars().all(plain) {
            return out.write_str(&text);
        }
        write!(out, "'{}'", text.replace('\'', "'\\''"))
    }
}

/// A path below home as people type it.
pub struct Typed<'a> {
    pub path: &'a Path,
    pub home: &'a Path,
}

impl Display for Typed<'_> {
    fn fmt(&self, out: &mut Formatter) -> Result {
        match self.path.strip_prefix(self.home) {
            Ok(rest) => write!(out, "~/{}", quoted(rest)),
            Err(_) => quoted(self.path).fmt(out),
        }
    }
}

/// This program as it is called in a shell.
pub struct Ourselves;

impl Display for Ourselves {
    fn fmt(&self, out: &mut Formatter) -> Result {
        match std::env::current_exe() {
            Ok(path) => quoted(&path).fmt(out),
            Err(_) => out.write_str("agent-deck-watchdog"),
        }
    }
}

/// A command that opens a file for the user.
pub struct Edit<'a>(pub &'a Path);

impl Display for Edit<'_> {
    fn fmt(&self, out: &mut Formatter) -> Result {
        write!(out, "\"${{EDITOR:-vi}}\" {}", quoted(self.0))
    }
}

/// Numbers with something between them.
pub fn numbers(numbers: &[u32], between: &str) -> String {
    let mut text = String::new();
    for number in numbers {
        if !text.is_empty() {
            text.push_str(between);
        }
        add(&mut text, format_args!("{number}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_every_path_for_one_word() {
        for (path, word) in [
            ("/a/b-1.c", "/a/b-1.c"),
            ("", "''"),
            ("/my files/x", "'/my files/x'"),
            ("/a'b c", "'/a'\\''b c'"),
            ("/$(x)", "'/$(x)'"),
            ("~", "'~'"),
        ] {
            assert_eq!(quoted(path).to_string(), word);
        }
    }

    #[test]
    fn a_path_below_home_is_short() {
        let home = Path::new("/home/u");
        for (path, typed) in [
            ("/home/u/.x/y", "~/.x/y"),
            ("/home/u/my bin/y", "~/'my bin/y'"),
            ("/opt/y", "/opt/y"),
        ] {
            let path = Path::new(path);
            assert_eq!(Typed { path, home }.to_string(), typed);
        }
    }
}
