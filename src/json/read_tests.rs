//! What is JSON, and what is not: ours held against serde_json.

use super::*;

const TEXTS: &[&str] = &[
    "",
    " ",
    "null",
    " true ",
    "false",
    "nul",
    "truer",
    "0",
    "-0",
    "01",
    "-",
    "1.",
    ".5",
    "1.5",
    "1e5",
    "1E+5",
    "1e-5",
    "1e",
    "+1",
    "18446744073709551615",
    "[]",
    "[ ]",
    "[1]",
    "[1,]",
    "[,1]",
    "[1 2]",
    "[1",
    "[",
    "{}",
    "{ }",
    "{\"a\":1}",
    "{\"b\": 1 , \"a\" : [ {} ]}",
    "{\"a\":1,\"a\":2}",
    "{\"a\":1,}",
    "{a:1}",
    "{\"a\" 1}",
    "{\"a\":}",
    "{\"a\"",
    "1 2",
    "{}x",
    "\"\"",
    "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
    "\"\\x\"",
    "\"\\u00e9\\u20AC\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud83d\"",
    "\"\\ude00\"",
    "\"\\ud83d\\u0041\"",
    "\"\\ud83dx\"",
    "\"\\u12\"",
    "\"\\u+123\"",
    "\"a\tb\"",
    "\"a",
    "\"a\\",
    "\"é😀\u{7f}\u{80}\"",
    "\u{feff}1",
    "\0",
    "[\n1,\n\n x]",
    "{\n\"a\"\n:\n}",
];

/// What serde_json makes of it, and whether ours agrees: the value as text,
/// or the line in which it is wrong.
fn both(text: &[u8]) -> (Result<String, usize>, Result<String, usize>) {
    let theirs = serde_json::from_slice::<serde_json::Value>(text);
    let ours = read(text).map(|value| value.to_string());
    (
        ours.map_err(|wrong| wrong.line),
        theirs
            .map(|value| value.to_string())
            .map_err(|wrong| wrong.line()),
    )
}

fn recordings() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings");
    let files = std::fs::read_dir(folder).unwrap();
    // Folders are no files.
    files
        .filter_map(|file| std::fs::read(file.unwrap().path()).ok())
        .collect()
}

#[test]
fn it_reads_what_serde_json_reads() {
    let deep = |n: usize| ["[".repeat(n), "]".repeat(n)].concat().into_bytes();
    let mut texts = recordings();
    assert!(texts.len() > 50);
    texts.extend([deep(127), deep(128), b"\"\xff\"".to_vec(), b"\xff".to_vec()]);
    for text in TEXTS {
        texts.push(text.as_bytes().to_vec());
    }
    for text in texts {
        let shown = String::from_utf8_lossy(&text).into_owned();
        let (ours, theirs) = both(&text);
        // A number is kept as it is written.
        let same_number = |ours: &str, theirs: &str| {
            let number = |text: &str| text.parse::<f64>().ok();
            number(ours).is_some() && number(ours) == number(theirs)
        };
        match (&ours, &theirs) {
            (Ok(ours), Ok(theirs)) if same_number(ours, theirs) => {}
            _ => assert_eq!(ours, theirs, "{shown:?}"),
        }
    }
}

#[test]
fn whatever_is_broken_is_broken_for_both() {
    let mut seed = 1u32;
    let mut next = move |below: usize| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed as usize / 7 % below
    };
    let texts = recordings();
    for _ in 0..20_000 {
        let mut text = texts[next(texts.len())].clone();
        text.truncate(400);
        if text.is_empty() {
            continue;
        }
        let at = next(text.len());
        match next(3) {
            0 => text.truncate(at),
            1 => text[at] = b"\"\\{}[],:0-+.eE/u \n\x01\xffdn"[next(22)],
            _ => text.insert(at, b"\"\\{}[],:0-+.eE/u \n\x01\xffdn"[next(22)]),
        }
        let theirs = serde_json::from_slice::<serde_json::Value>(&text).map_err(|e| e.to_string());
        // That concerns who wants to reckon with it.
        if theirs
            .as_ref()
            .is_err_and(|why| why.contains("number out of range"))
        {
            continue;
        }
        let shown = String::from_utf8_lossy(&text);
        assert_eq!(read(&text).is_ok(), theirs.is_ok(), "{shown:?} {theirs:?}");
    }
}

#[test]
fn a_text_that_does_not_end_is_named_where_its_line_does() {
    let wrong = NotJson {
        line: 2,
        why: "a text without end",
    };
    assert_eq!(read(b"\n\"a\nb\""), Err(wrong));
    assert_eq!(wrong.to_string(), "a text without end in line 2");
}

#[test]
fn the_first_value_stands_alone() {
    let value = read_first(b" {\"a\": 1}Usage: {").unwrap();
    assert_eq!(value.to_string(), "{\"a\":1}");
    assert_eq!(
        read_first(b"Usage"),
        Err(NotJson {
            line: 1,
            why: "no value"
        })
    );
}
