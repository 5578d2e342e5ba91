//! Rules of the house, checked on the source text itself: who may use whom,
//! what pure rooms do not do, how long things are. Does not know what any of it
//! does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Rooms without windows: they decide, and reach nothing but what they are given.
const PURE: &[&str] = &[
    "act",
    "batches",
    "capabilities",
    "deck/answers",
    "deck/argv",
    "deck/processes/agents",
    "deck/processes/commands",
    "deck/screen",
    "deck/trouble",
    "guard",
    "json",
    "ladder",
    "lasting",
    "model",
    "outcome",
    "pace",
    "refusal",
    "remember",
    "report",
    "state",
    "stored",
    "telling",
    "together",
    "turn",
    "watch",
    "world",
];

/// Longest file and longest function, in lines (DESIGN 4.2).
const FILE: usize = 500;
const FUNCTION: usize = 70;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files below a folder of the repository, but for what is built there.
fn files(below: &str) -> Vec<PathBuf> {
    let mut folders = vec![root().join(below)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let built = ["target", "dist", ".git"]
                .iter()
                .any(|name| path.ends_with(name));
            match path.is_dir() {
                true if built => {}
                true => folders.push(path),
                false => files.push(path),
            }
        }
    }
    files.sort();
    files
}

/// A Rust file: its name without ending, and its lines.
struct Source {
    name: String,
    lines: Vec<String>,
}

/// The Rust files below a folder.
fn sources(below: &str) -> Vec<Source> {
    let is_rust = |path: &PathBuf| path.extension().is_some_and(|end| end == "rs");
    let source = |path: PathBuf| Source {
        name: path
            .strip_prefix(root().join(below))
            .unwrap()
            .with_extension("")
            .display()
            .to_string(),
        lines: fs::read_to_string(&path)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect(),
    };
    let files = files(below).into_iter().filter(is_rust).map(source);
    let files: Vec<Source> = files.collect();
    assert!(files.len() > 5, "{below}");
    files
}

/// The program's files without their tests.
fn program() -> Vec<Source> {
    let mut files = sources("src");
    let of_tests = ["_tests", "scratch", "fixtures"];
    files.retain(|file| !of_tests.iter().any(|end| file.name.ends_with(end)));
    for file in &mut files {
        let tests = file.lines.iter().position(|line| line == "#[cfg(test)]");
        file.lines.truncate(tests.unwrap_or(file.lines.len()));
    }
    files
}

impl Source {
    /// The room it is in.
    fn room(&self) -> &str {
        self.name.split('/').next().unwrap()
    }

    /// Its lines without comments, with their numbers.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self
            .lines
            .iter()
            .map(|line| line.split("//").next().unwrap());
        lines.enumerate().map(|(at, line)| (at + 1, line))
    }

    /// The rooms that it uses: `crate::room` and `crate::{room, room}`.
    fn uses(&self) -> BTreeSet<String> {
        let text: String = self.code().map(|(_, line)| line).collect();
        let mut rooms = BTreeSet::new();
        for part in text.split("crate::").skip(1) {
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if let Some(list) = part.strip_prefix('{') {
                // One level is enough: `{guard, report}`, `{act::act, report}`.
                let list = list.split('}').next().unwrap();
                let first = |item: &str| item.trim().split("::").next().unwrap().to_owned();
                rooms.extend(list.split(',').map(first).filter(|room| !room.is_empty()));
            } else {
                rooms.insert(part.split(|c| !word(c)).next().unwrap().to_owned());
            }
        }
        rooms
    }
}

/// The rooms in the order in which the library's own text names them.
fn rooms() -> Vec<String> {
    let text = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let house: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .collect();
    let begin = house
        .iter()
        .position(|line| line.starts_with(" - [`"))
        .expect("a list of rooms");
    let mut rooms = Vec::new();
    for part in house[begin..].concat().split("[`").skip(1) {
        rooms.push(part.split("`]").next().unwrap().to_owned());
    }
    rooms
}

#[test]
fn every_room_is_on_the_map() {
    let map: BTreeSet<String> = rooms().into_iter().collect();
    assert_eq!(map.len(), rooms().len(), "one is named twice");
    let files = program();
    let real = files.iter().map(|file| file.room().to_owned());
    let real: BTreeSet<String> = real
        .filter(|room| room != "lib" && room != "main")
        .collect();
    assert_eq!(map, real);
}

#[test]
fn a_room_uses_only_the_rooms_below_it() {
    let rooms = rooms();
    let floor = |room: &str| rooms.iter().position(|other| other == room);
    let mut wrong = Vec::new();
    for file in program() {
        for used in file.uses() {
            let upwards = match (floor(file.room()), floor(&used)) {
                (Some(here), Some(there)) => there < here,
                // The door uses everything; macros are no rooms.
                (None, _) | (_, None) => false,
            };
            if upwards {
                wrong.push(format!("src/{}.rs uses {used}", file.name));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn pure_rooms_have_no_windows() {
    let banned = [
        "std::fs",
        "std::env",
        "std::process",
        "std::net",
        "std::thread",
        "std::io",
        "SystemTime",
        "Instant",
        "rustix",
        "inotify",
        "signal_hook",
    ];
    let mut seen = 0;
    for file in program() {
        let inside =
            |room: &&str| file.name == **room || file.name.starts_with(&format!("{room}/"));
        if !PURE.iter().any(inside) {
            continue;
        }
        seen += 1;
        for (at, line) in file.code() {
            let found = banned.iter().find(|word| line.contains(**word));
            assert_eq!(found, None, "src/{}.rs:{at}: {line}", file.name);
        }
    }
    assert!(seen >= PURE.len(), "{seen} files");
}

#[test]
fn every_file_says_what_it_is() {
    for (folder, files) in [("src", sources("src")), ("tests", sources("tests"))] {
        for file in files {
            let first = file.lines.first().map_or("", String::as_str);
            let says = first
                .strip_prefix("//! ")
                .is_some_and(|text| text.len() > 10);
            assert!(says, "{folder}/{}.rs begins with {first:?}", file.name);
        }
    }
}

#[test]
fn files_and_functions_stay_short() {
    let mut long = Vec::new();
    for (folder, files) in [("src", sources("src")), ("tests", sources("tests"))] {
        for file in files {
            let lines = file.lines.len();
            if lines > FILE {
                long.push(format!("{folder}/{}.rs has {lines} lines", file.name));
            }
            for (at, line) in file
                .lines
                .iter()
                .enumerate()
                .filter(|(_, line)| is_function(line))
            {
                let lines = length(&file.lines[at..]);
                if lines > FUNCTION {
                    long.push(format!(
                        "{folder}/{}.rs:{}: {lines} lines: {}",
                        file.name,
                        at + 1,
                        line.trim()
                    ));
                }
            }
        }
    }
    assert_eq!(long, [""; 0]);
}

fn is_function(line: &str) -> bool {
    let words = [
        "pub ",
        "pub(crate) ",
        "pub(super) ",
        "const ",
        "async ",
        "unsafe ",
    ];
    let mut line = line.trim_start();
    while let Some(rest) = words.iter().find_map(|word| line.strip_prefix(word)) {
        line = rest;
    }
    line.starts_with("fn ")
}

/// Lines of the function that begins here, formatted as rustfmt does.
fn length(lines: &[String]) -> usize {
    let indent = lines[0].len() - lines[0].trim_start().len();
    let end = format!("{}}}", &lines[0][..indent]);
    for (at, line) in lines.iter().enumerate() {
        let declared = line.ends_with(';') && !lines[..=at].iter().any(|line| line.contains('{'));
        if *line == end || declared || (at == 0 && line.ends_with('}')) {
            return at + 1;
        }
    }
    lines.len()
}

#[test]
fn nothing_panics_on_purpose() {
    let words = [
        ".unwrap()",
        ".expect(",
        "panic!(",
        "todo!(",
        "unimplemented!(",
        "unreachable!(",
        "unsafe ",
    ];
    for file in program() {
        for (at, line) in file.code() {
            let found = words.iter().find(|word| line.contains(**word));
            assert_eq!(found, None, "src/{}.rs:{at}: {line}", file.name);
        }
    }
}

#[test]
fn no_file_names_a_place_on_somebodys_machine() {
    // Nobody's, and where Homebrew is on Linux.
    let allowed = ["u", "you", "linuxbrew"];
    for path in files("") {
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        let name = path.strip_prefix(root()).unwrap().display();
        assert!(
            !text.contains(env!("CARGO_MANIFEST_DIR")),
            "{name} names this folder"
        );
        for home in ["/home/", "/Users/", "/var/root/"] {
            for rest in text.split(home).skip(1) {
                let word = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
                let user = rest.split(|c| !word(c)).next().unwrap();
                assert!(
                    user.is_empty() || allowed.contains(&user),
                    "{name}: {home}{user}"
                );
            }
        }
    }
}
