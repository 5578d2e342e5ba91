//! The pieces from which agent-deck builds a session's environment, in its
//! order (contract 8.3), as far as they concern `TELEGRAM_STATE_DIR`.
//!
//! Read each time anew. What cannot be read, or has the wrong shape, makes the
//! answer unknown: agent-deck itself then goes on without it, but what the
//! living agent was started with is not to be seen here. This file does not
//! know how a shell reads.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use super::shell::{Shell, VARIABLE};
use super::{about, read, toml};
use crate::deck::places::Roots;
use crate::json::{Map, Value};
use crate::model::Declared;

type Table = Map;

/// What the configuration says of the folder of a session with this title,
/// group and project path. For sessions of the tool `claude`, and only for
/// those that own a channel or are conductors: agent-deck takes the variable
/// away from all others.
pub fn declared(roots: &Roots, title: &str, group: &str, path: &str) -> Declared {
    let file = match roots.config_toml() {
        Ok(file) => file,
        Err(error) => return Declared::Unknown(error.to_string()),
    };
    let mut layers = Layers {
        roots,
        path: Path::new(path),
        shell: Shell::new(&roots.home),
    };
    match config(&file) {
        Ok(root) => layers.config(&file, &root, title, group),
        Err(why) => layers.shell.fail(why),
    }
    layers.shell.declared()
}

/// Whether `config.toml` can be read at all: one that is broken counts as empty
/// (contract 8.1).
///
/// # Errors
/// File, line and why.
pub fn readable(file: &Path) -> Result<(), String> {
    config(file).map(|_| ())
}

/// `config.toml`; nothing where there is none.
fn config(file: &Path) -> Result<Table, String> {
    let text = read(file)?.unwrap_or_default();
    if text.contains('\u{fffd}') {
        return Err(about(file, 0, "not UTF-8"));
    }
    toml::table(&text).map_err(|broken| about(file, broken.line, broken.why))
}

/// `meta.json`; nothing where there is none.
fn meta(file: &Path) -> Result<Value, String> {
    match read(file)? {
        Some(text) => {
            crate::json::read(text.as_bytes()).map_err(|error| about(file, error.line, "not JSON"))
        }
        None => Ok(Value::Null),
    }
}

struct Layers<'a> {
    roots: &'a Roots,
    /// The session's project.
    path: &'a Path,
    shell: Shell,
}

impl Layers<'_> {
    fn config(&mut self, file: &Path, root: &Table, title: &str, group: &str) {
        let wrong = Cell::new("");
        let root = At {
            table: Some(root),
            wrong: &wrong,
        };
        self.common(file, root.inside("shell"));
        let conductor = title.strip_prefix("conductor-").unwrap_or_default();
        // From the nearest outwards: the conductor, its group, and those above.
        let mut chain = vec![root.inside("conductors").named(conductor)];
        let mut name = group;
        while !name.is_empty() {
            chain.push(root.inside("groups").named(name));
            name = name.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
        chain.push(root);
        // One file: that of the nearest that has one.
        let mut env_file = "";
        for level in &chain {
            if env_file.is_empty() {
                env_file = level.inside("claude").text("env_file");
            }
        }
        self.source(file, env_file);
        chain.pop();
        for level in chain.iter().rev() {
            self.export(file, level.inside("claude"));
        }
        // Applied by versions before 1.9, ignored with a warning by later ones.
        let old = root
            .inside("tools")
            .inside("claude")
            .inside("env")
            .text(VARIABLE);
        if !old.is_empty() && !self.shell.holds(old) {
            self.shell
                .lose("[tools.claude].env counts in old versions of agent-deck only");
        }
        if !conductor.is_empty() {
            match self.conductors(file, root.inside("conductor").text("dir").trim()) {
                Ok(folder) => self.record(&folder.join(conductor).join("meta.json")),
                Err(why) => self.shell.fail(why),
            }
        }
        self.check(file, &wrong);
    }

    /// What all sessions read first.
    fn common(&mut self, file: &Path, settings: At) {
        for name in settings.list("env_files") {
            match name.as_str() {
                Some("") | None => settings.wrong.set("env_files"),
                Some(name) => self.source(file, name),
            }
        }
        let script = settings.text("init_script");
        let first = script.split('/').next().unwrap_or_default();
        // A path by its beginning.
        if first.starts_with('~') || (script.contains('/') && ["", ".", ".."].contains(&first)) {
            self.source(file, script);
        } else {
            self.shell.begin(about(file, 0, "init_script"));
            self.shell.run(script);
        }
    }

    /// The conductor's own record.
    fn record(&mut self, file: &Path) {
        let wrong = Cell::new("");
        match meta(file) {
            Ok(Value::Null) => {}
            Ok(root) => {
                if root.as_object().is_none() {
                    wrong.set("its content");
                }
                let root = At {
                    table: root.as_object(),
                    wrong: &wrong,
                };
                self.source(file, root.text("env_file"));
                self.export(file, root);
            }
            Err(why) => self.shell.fail(why),
        }
        self.check(file, &wrong);
    }

    fn check(&mut self, file: &Path, wrong: &Cell<&'static str>) {
        if !wrong.get().is_empty() {
            let why = [wrong.get(), " has the wrong type"].concat();
            self.shell.fail(about(file, 0, &why));
        }
    }

    /// The folder with the conductors' folders (contract 8.5).
    fn conductors(&self, file: &Path, dir: &str) -> Result<PathBuf, String> {
        if dir.is_empty() {
            let data = self.roots.data(&["conductor"]);
            return data
                .map(|data| data.join("conductor"))
                .map_err(|error| error.to_string());
        }
        match self.expand(dir) {
            Some(dir) if dir.is_absolute() => Ok(dir),
            Some(_) | None => Err(about(file, 0, "conductor.dir is not an absolute path")),
        }
    }

    /// Reads an env file, which `file` names, into the shell. One that is
    /// missing breaks the chain of commands, so that all further ones are
    /// skipped (contract 8.4); it may have been there when the agent was started.
    fn source(&mut self, file: &Path, name: &str) {
        if name.is_empty() {
            return;
        }
        let Some(path) = self.expand(name) else {
            return self
                .shell
                .fail(about(file, 0, "a path in it needs a shell"));
        };
        let path = self.path.join(path);
        match read(&path) {
            Ok(_) if !path.is_absolute() => {
                self.shell.fail(about(&path, 0, "not an absolute path"));
            }
            Ok(Some(text)) => {
                self.shell.begin(path.to_string_lossy().into_owned());
                self.shell.run(&text);
            }
            Ok(None) => {
                let why = "missing; agent-deck then skips all that comes after it";
                self.shell.fail(about(&path, 0, why));
            }
            Err(why) => self.shell.fail(why),
        }
    }

    /// A path as agent-deck expands it: variables, then `~/` or `~` (contract
    /// 8.4). Only the home folder is certain, and only that can be meant at the
    /// beginning. The path ends up between the double quotes of a shell.
    fn expand(&self, name: &str) -> Option<PathBuf> {
        for home in ["~", "$HOME", "${HOME}"] {
            match name.strip_prefix(home) {
                Some("") => return Some(self.roots.home.clone()),
                Some(rest) if rest.starts_with('/') && plain(rest) => {
                    return Some(self.roots.home.join(rest.trim_start_matches('/')));
                }
                Some(_) | None => {}
            }
        }
        plain(name).then(|| PathBuf::from(name))
    }

    /// Exports what an `env` says, as it stands.
    fn export(&mut self, file: &Path, level: At) {
        self.shell.begin(file.to_string_lossy().into_owned());
        for (name, value) in level.inside("env").table.into_iter().flat_map(Map::iter) {
            match value.as_str() {
                Some(value) => self.shell.export(name, value),
                None => level.wrong.set("env"),
            }
        }
    }
}

/// Whether a path means the same between double quotes.
fn plain(path: &str) -> bool {
    !path.bytes().any(|byte| b"$`\"\\".contains(&byte))
}

/// A table of a file; one that is not there holds nothing.
#[derive(Clone, Copy)]
struct At<'a> {
    table: Option<&'a Table>,
    /// Where the name of a setting of the wrong type is noted.
    wrong: &'a Cell<&'static str>,
}

impl<'a> At<'a> {
    /// A setting: agent-deck reads its name in any case, if it does not stand
    /// there as it should. JSON may say null for nothing.
    fn get(self, name: &str) -> Option<&'a Value> {
        let table = self.table?;
        let mut value = table.get(name);
        for (key, like) in table.iter() {
            if value.is_none() && key.eq_ignore_ascii_case(name) {
                value = Some(like);
            }
        }
        value.filter(|value| !value.is_null())
    }

    /// Notes a value of the wrong type.
    fn right<T>(self, name: &'static str, value: Option<&Value>, found: Option<T>) -> Option<T> {
        if value.is_some() && found.is_none() {
            self.wrong.set(name);
        }
        found
    }

    /// A table among the settings.
    fn inside(self, name: &'static str) -> At<'a> {
        let value = self.get(name);
        let table = self.right(name, value, value.and_then(Value::as_object));
        At { table, ..self }
    }

    /// A table that the user has named.
    fn named(self, name: &str) -> At<'a> {
        let value = self.table.and_then(|table| table.get(name));
        let table = self.right(
            "a conductor or group",
            value,
            value.and_then(Value::as_object),
        );
        At { table, ..self }
    }

    /// A text among the settings; empty when there is none.
    fn text(self, name: &'static str) -> &'a str {
        let value = self.get(name);
        let text = self.right(name, value, value.and_then(Value::as_str));
        text.unwrap_or_default()
    }

    fn list(self, name: &'static str) -> &'a [Value] {
        let value = self.get(name);
        let list = self.right(name, value, value.and_then(Value::as_array));
        list.map(Vec::as_slice).unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
