//! Packs the files of `contrib/` that `print` prints: the program would hold 39 KB
//! of them, and holds 23. A byte that no text holds stands for the two bytes that
//! follow each other most often, and so on, as long as there are such bytes.
//! `src/commands/packed.rs` takes them apart.

use std::io::{Error, Result};
use std::{env, fs};

/// Those of `src/commands/print.rs`, in the same order; its tests compare them.
const FILES: [&str; 8] = [
    "agent-deck-watchdog.service",
    "agent-deck-watchdog-failed.service",
    "com.agentdeck.watchdog.plist",
    "crontab.example",
    "logrotate.conf",
    "escalate.sh",
    "triage-claude",
    "agent-deck-watchdog.1",
];

/// Ends a text.
const END: u8 = 0;

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut text = Vec::new();
    for file in FILES {
        let path = format!("contrib/{file}");
        println!("cargo::rerun-if-changed={path}");
        let file = fs::read(&path)?;
        if !file.is_ascii() || file.contains(&END) {
            return Err(Error::other(format!("{path} is not plain ASCII")));
        }
        text.extend(file);
        text.push(END);
    }
    let mut pairs = Vec::new();
    for byte in 128..=255 {
        let pair = most_frequent(&text);
        pairs.extend(pair);
        text = replaced(&text, pair, byte);
    }
    let out = env::var("OUT_DIR").map_err(Error::other)?;
    fs::write(format!("{out}/contrib.packed"), [pairs, text].concat())
}

/// The two bytes that follow each other most often within a text.
fn most_frequent(text: &[u8]) -> [u8; 2] {
    let mut counts = vec![0_u32; 1 << 16];
    let (mut most, mut found) = (0, [END, END]);
    for pair in text.windows(2) {
        let count = &mut counts[usize::from(pair[0]) << 8 | usize::from(pair[1])];
        *count += 1;
        if *count > most && !pair.contains(&END) {
            (most, found) = (*count, [pair[0], pair[1]]);
        }
    }
    found
}

/// The text with a byte for each such pair.
fn replaced(text: &[u8], pair: [u8; 2], byte: u8) -> Vec<u8> {
    let mut new = Vec::new();
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let found = rest.starts_with(&pair);
        new.push(if found { byte } else { *first });
        rest = if found { &rest[2..] } else { behind };
    }
    new
}
