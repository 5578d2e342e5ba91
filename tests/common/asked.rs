//! Commands that are asked: what they print, and by which exit code. Does not
//! know what is right.
#![allow(dead_code, clippy::unwrap_used, clippy::panic)]

use serde_json::Value;

use super::common::Deck;
use super::past::run;

/// What a command printed, with its exit code.
pub fn said(deck: &Deck, args: &[&str]) -> (i32, String) {
    let run = run(deck, args);
    assert_eq!(run.err, "", "{args:?}");
    (run.code().unwrap(), run.out)
}

pub fn json(deck: &Deck, args: &[&str]) -> Value {
    let run = run(deck, args);
    assert_eq!(run.err, "");
    let value: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(value["format"], 1);
    value
}

#[track_caller]
pub fn contains(text: &str, parts: &[&str]) {
    // Lines may be broken anywhere.
    let flat = text.split_whitespace().collect::<Vec<&str>>().join(" ");
    for part in parts {
        assert!(flat.contains(part), "{part:?} is not in:\n{text}");
    }
}

#[track_caller]
pub fn fits_80_columns(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}
