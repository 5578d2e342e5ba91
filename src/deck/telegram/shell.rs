//! What the files and settings that a shell would read one after another leave
//! in `TELEGRAM_STATE_DIR` (contract 8.3, 8.4). They are read, never run.
//!
//! Assignments, `export`, `unset` and `set -a` are understood. Whatever else
//! could set the variable makes it unknown until it is exported anew.
//! agent-deck chains all pieces with `&&`: once one may have ended in failure,
//! what later pieces change is unknown. This file does not know where the
//! pieces come from.

use std::path::Path;

use super::cursor::{Cursor, among};
use super::normalised;
use super::words::{Reader, Variables, Word, is_name, plain_name};
use crate::json::Value;
use crate::model::Declared;

/// The variable that all this is about.
pub const VARIABLE: &str = "TELEGRAM_STATE_DIR";

/// Words that make what follows run or not, end a file, or make a variable
/// refuse what follows. What comes behind them is not followed here.
const STOPS: &[u8] = b"if then elif else fi for while until do done case esac select function \
    { } [[ ! time coproc return exit exec readonly declare typeset local";
/// Commands of the shell that can set a variable or change what words mean.
const SETS: &[u8] = b"eval source . alias builtin command shopt enable read mapfile readarray \
    printf getopts let wait cd trap";
/// Those of them that can set a variable whose name they do not say.
const READS: &[u8] = b"eval source . \\. alias";
/// Commands that take assignments.
const EXPORTS: &[u8] = b"export readonly declare typeset local";

const SPELLED: &str = "needs a shell: a name that is not spelled out";

/// A shell that runs nothing.
pub struct Shell {
    variables: Variables,
    /// The variable. `None`: not set. `Err`: why it is not known.
    value: Option<Result<String, &'static str>>,
    /// Whether the agent gets it; `None`: not known.
    exported: Option<bool>,
    /// File and line that decided this.
    place: String,
    /// `set -a`: every assignment is exported. `None`: not known.
    all: Option<bool>,
    /// The first piece that may have ended in failure.
    doubt: Option<String>,
    /// The variable was changed after that.
    doubted: bool,
    /// Why there is no answer at all.
    failed: Option<String>,
    /// What is being read, and the line; 0: no line.
    name: String,
    line: usize,
}

/// How a command ends: without failure, or perhaps with one.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    Well,
    Perhaps,
}

impl Shell {
    /// Before anything was read. Of the variables that are there from the
    /// start only the home folder is taken for granted.
    pub fn new(home: &Path) -> Shell {
        let mut variables = Variables::new();
        let home = home.to_string_lossy().into_owned();
        variables.insert("HOME".to_owned(), Value::String(home));
        Shell {
            variables,
            value: None,
            exported: Some(false),
            place: String::new(),
            all: Some(false),
            doubt: None,
            doubted: false,
            failed: None,
            name: String::new(),
            line: 0,
        }
    }

    /// What is read next; the name is for people.
    pub fn begin(&mut self, name: String) {
        self.name = name;
        self.line = 0;
    }

    /// A value that is exported as it stands.
    pub fn export(&mut self, name: &str, value: &str) {
        self.assign(name.as_bytes(), Ok(value.as_bytes()));
        if name == VARIABLE {
            self.exported = Some(true);
        }
    }

    /// There is no answer, whatever else is read.
    pub fn fail(&mut self, why: String) {
        self.failed.get_or_insert(why);
    }

    /// The variable may have been set to anything.
    pub fn lose(&mut self, why: &'static str) {
        self.change(Some(Err(why)));
        self.exported = None;
        self.forget();
    }

    /// Whether the agent gets exactly this value, so far.
    pub fn holds(&self, value: &str) -> bool {
        self.exported == Some(true)
            && self
                .value
                .as_ref()
                .is_some_and(|own| own.as_deref() == Ok(value))
    }

    /// What has been found.
    pub fn declared(self) -> Declared {
        if let Some(why) = self.failed {
            return Declared::Unknown(why);
        }
        let (place, why) = match (self.doubt, self.value, self.exported) {
            (Some(piece), _, _) if self.doubted => (
                piece,
                "may end in failure, and then what follows is skipped",
            ),
            (_, None, _) | (_, Some(_), Some(false)) => return Declared::Nothing,
            (_, Some(Err(why)), _) => (self.place, why),
            (_, Some(Ok(_)), None) => (self.place, "TELEGRAM_STATE_DIR may not be exported"),
            (_, Some(Ok(value)), Some(true)) => {
                // Of a file with CRLF, bash leaves the CR in the value.
                let value = value.trim_end_matches('\r');
                let odd = value.bytes().any(|byte| byte.is_ascii_control());
                match value.starts_with('/') {
                    true if odd || value.contains('\u{fffd}') => {
                        (self.place, "TELEGRAM_STATE_DIR holds odd characters")
                    }
                    true => return Declared::Folder(normalised(Path::new(value))),
                    false => (self.place, "TELEGRAM_STATE_DIR is not an absolute path"),
                }
            }
        };
        Declared::Unknown([&place, ": ", why].concat())
    }

    /// Reads one file or script.
    pub fn run(&mut self, text: &str) {
        let text = text.as_bytes();
        let (mut at, mut counted, mut list) = (0, 0, 0);
        self.line = 1;
        let mut ends = Ends::Well;
        let mut joined = false;
        loop {
            let mut cursor = Cursor { text, at };
            loop {
                if cursor.take(b"\n") {
                    // A list of commands that it cannot read bash does not run at all.
                    list = if joined { list } else { cursor.at };
                } else if !blank(&mut cursor) && !cursor.take(b";") {
                    break;
                }
            }
            if cursor.rest().is_empty() {
                break;
            }
            let passed = text.get(counted..cursor.at).unwrap_or_default();
            self.line += passed.iter().filter(|&&byte| byte == b'\n').count();
            counted = cursor.at;
            let end = self.command(&mut cursor);
            // What stands behind && runs only if this went well.
            joined = cursor.take(b"&&");
            let stop = match end {
                Ok(Ends::Perhaps) if joined => Some("needs a shell: &&"),
                Ok(end) => {
                    ends = end;
                    None
                }
                Err(why) => Some(why),
            };
            if let Some(why) = stop {
                ends = Ends::Perhaps;
                match could_set(text.get(list..).unwrap_or_default()) {
                    true => self.lose(why),
                    false => self.forget(),
                }
                break;
            }
            at = cursor.at;
        }
        if ends == Ends::Perhaps && self.doubt.is_none() {
            self.doubt = Some(self.name.clone());
        }
    }

    /// The variable has changed, here.
    fn change(&mut self, value: Option<Result<String, &'static str>>) {
        self.value = value;
        self.doubted = self.doubt.is_some();
        self.place = match self.line {
            0 => self.name.clone(),
            line => [&self.name, " line ", &line.to_string()].concat(),
        };
    }

    /// All variables but the home folder may have changed, and `set -a`.
    fn forget(&mut self) {
        let home = self.variables.get("HOME").cloned().unwrap_or_default();
        self.variables = Variables::new();
        self.variables.insert("HOME".to_owned(), home);
        self.all = None;
    }

    /// Takes one command, up to what ends it.
    ///
    /// # Errors
    /// Where it cannot be followed, with the reason.
    fn command(&mut self, cursor: &mut Cursor) -> Result<Ends, &'static str> {
        let mut words: Vec<Word> = Vec::new();
        let mut assigned = false;
        let mut ends = Ends::Well;
        loop {
            while blank(cursor) {}
            match cursor.peek() {
                0 | b'\n' | b';' => break,
                b'&' if cursor.rest().starts_with(b"&&") => break,
                b'&' | b'|' | b'(' | b')' | b'<' | b'>' => {
                    return Err("needs a shell: one of & | ( ) < >");
                }
                _ => {}
            }
            let mut reader = Reader {
                at: Cursor { ..*cursor },
                variables: &self.variables,
            };
            let word = reader.word();
            *cursor = reader.at;
            let word = word?;
            match word.equals {
                // `a=(` begins a list.
                Some(_) if cursor.peek() == b'(' => return Err("needs a shell: ( )"),
                Some(at) if words.is_empty() => {
                    assigned = true;
                    if word.runs {
                        ends = Ends::Perhaps;
                    }
                    self.assign_at(&word, at);
                }
                Some(_) | None => words.push(word),
            }
        }
        match words.split_first() {
            None => Ok(ends),
            Some(_) if assigned => {
                self.lose("needs a shell: a command with variables of its own");
                Ok(Ends::Perhaps)
            }
            Some((first, args)) => self.builtin(first, args),
        }
    }

    /// Sets the variable of a word such as `A=b`, whose `=` stands `at` there.
    fn assign_at(&mut self, word: &Word, at: usize) {
        let (name, value) = word.text.split_at(at.min(word.text.len()));
        match word.unknown {
            Some((from, why)) if from > at => self.assign(name, Err(why)),
            Some(_) | None => self.assign(name, Ok(value.get(1..).unwrap_or_default())),
        }
    }

    /// Sets a variable; a name that ends in `+` adds to it.
    fn assign(&mut self, name: &[u8], value: Result<&[u8], &'static str>) {
        let (name, append) = plain_name(name);
        let name = String::from_utf8_lossy(name);
        let value = value.map(String::from_utf8_lossy);
        if name != VARIABLE {
            let before = match self.variables.get(&name) {
                _ if !append => Some(""),
                before => before.and_then(Value::as_str),
            };
            let value = match (value, before) {
                (Ok(value), Some(before)) => Value::String([before, &value].concat()),
                (Ok(_), None) | (Err(_), _) => Value::Null,
            };
            self.variables.insert(name.into_owned(), value);
            return;
        }
        let value = match (value, self.value.take()) {
            (Ok(value), Some(Ok(before))) if append => Ok([&*before, &value].concat()),
            (Ok(_), Some(Err(why))) if append => Err(why),
            (Ok(value), _) => Ok(value.into_owned()),
            (Err(why), _) => Err(why),
        };
        self.change(Some(value));
        self.exported = match (self.all, self.exported) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), exported) => exported,
            (None, _) => None,
        };
    }

    fn builtin(&mut self, first: &Word, args: &[Word]) -> Result<Ends, &'static str> {
        let exports = match args {
            [option, name, ..] => option.known() == b"-x" && !name.known().starts_with(b"-"),
            _ => false,
        };
        match first.known() {
            b":" | b"true" | b"echo" => Ok(Ends::Well),
            b"export" => Ok(self.exports(args)),
            b"declare" | b"typeset" if exports => Ok(self.exports(args)),
            b"unset" => Ok(self.unset(args)),
            b"set" => Ok(self.set(args)),
            name if among(STOPS, name) => Err("needs a shell: what is not a plain assignment"),
            name => {
                if name == b"\0" || among(SETS, name) {
                    self.lose("needs a shell: a command that can set variables");
                }
                // A program, or none at all, cannot reach our variables.
                Ok(Ends::Perhaps)
            }
        }
    }

    fn exports(&mut self, args: &[Word]) -> Ends {
        let mut ends = Ends::Well;
        let mut exported = true;
        let mut options = true;
        for word in args {
            let mut name = word.known();
            options &= name.starts_with(b"-");
            if let Some(at) = word.assigns() {
                (name, _) = plain_name(word.text.get(..at).unwrap_or_default());
                if is_name(name) {
                    self.assign_at(word, at);
                }
            }
            if options && name == b"-n" {
                exported = false;
            } else if name == VARIABLE.as_bytes() {
                self.doubted |= self.doubt.is_some();
                self.exported = Some(exported);
            } else if name == b"\0" {
                self.lose(SPELLED);
                ends = Ends::Perhaps;
            } else if !is_name(name) {
                let option = options && among(b"-- -p -x", name);
                ends = if option { ends } else { Ends::Perhaps };
            }
        }
        ends
    }

    fn unset(&mut self, args: &[Word]) -> Ends {
        for word in args {
            let name = word.known();
            if name == VARIABLE.as_bytes() {
                self.change(None);
                self.exported = Some(false);
            } else if is_name(name) {
                let name = String::from_utf8_lossy(name);
                self.variables.retain(&mut |known, _| known != name);
            } else if name != b"-v" {
                if name == b"\0" {
                    self.lose(SPELLED);
                }
                // Functions, or no name at all.
                return Ends::Perhaps;
            }
        }
        Ends::Well
    }

    /// `set`: whether assignments are exported, and what does not matter here.
    fn set(&mut self, args: &[Word]) -> Ends {
        let mut on = false;
        let mut named = false;
        for word in args {
            let word = word.known();
            let (sign, letters) = word.split_at(word.len().min(1));
            let fits = match named {
                true => among(b"allexport errexit nounset pipefail xtrace", word),
                false => {
                    let known = |letter: &u8| b"aeuxo".contains(letter);
                    among(b"- +", sign) && !letters.is_empty() && letters.iter().all(known)
                }
            };
            if !fits {
                // Refused as a whole, or something else altogether.
                self.all = None;
                return Ends::Perhaps;
            }
            if !named {
                on = sign == b"-";
            }
            if (named && word == b"allexport") || (!named && letters.contains(&b'a')) {
                self.all = Some(on);
            }
            named = !named && letters.contains(&b'o');
        }
        Ends::Well
    }
}

/// Takes a blank, a joined line or a comment.
fn blank(cursor: &mut Cursor) -> bool {
    if cursor.peek() == b'#' {
        cursor.take_while(|byte| byte != b'\n');
        return true;
    }
    cursor.take(b" ") || cursor.take(b"\t") || cursor.take(b"\\\n")
}

/// Whether a text that is not followed could set the variable.
fn could_set(text: &[u8]) -> bool {
    let variable = VARIABLE.as_bytes();
    let mut exports = false;
    let mut cursor = Cursor { text, at: 0 };
    while !cursor.rest().is_empty() {
        let word = cursor.take_while(|byte| !b" \t\r\n;&|(){}".contains(&byte));
        cursor.at += 1;
        let name = word.split(|&byte| byte == b'=').next().unwrap_or_default();
        let hidden = exports && name.iter().any(|byte| b"$`".contains(byte));
        let named = word.windows(variable.len()).any(|part| part == variable);
        if hidden || named || among(READS, word) {
            return true;
        }
        if !word.is_empty() {
            exports = among(EXPORTS, word) || (exports && word.starts_with(b"-"));
        }
    }
    false
}

#[cfg(test)]
#[path = "shell_tests.rs"]
mod tests;
