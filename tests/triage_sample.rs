//! The sample of a triage program, `contrib/triage-claude`, with a claude that
//! writes down how it was called. Does not know what is made of its answer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Deck, wait_for, write};

/// What the sample says of a screen, and its exit code.
fn sample(deck: &Deck, screen: &str) -> (String, Option<i32>) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/triage-claude");
    let mut run = Command::new("/bin/sh")
        .arg(script)
        .env_clear()
        .env("PATH", deck.file("bin"))
        .env("HOME", deck.home())
        .env("AGENT_DECK_TRIAGE_WAITING_S", "11400")
        .env("AGENT_DECK_TRIAGE_NUDGES", "3")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = run.stdin.take().unwrap();
    // One that has ended reads nothing.
    let _ = input.write_all(screen.as_bytes());
    drop(input);
    let output = run.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    (said, output.status.code())
}

#[test]
fn it_asks_a_claude_without_tools_for_one_word() {
    let deck = Deck::new();
    deck.uninstall("claude");
    assert_eq!(sample(&deck, "x").1, Some(127), "none is there");
    let claude = deck.home().join(".local/bin/claude");
    fs::create_dir_all(claude.parent().unwrap()).unwrap();
    let asked = deck.root().join("asked");
    let text = format!(
        "#!/bin/sh\nfor word; do echo \"<$word>\"; done > '{}'\nread -r line; echo \"$line\"\n",
        asked.display()
    );
    write(&claude, text);
    fs::set_permissions(&claude, PermissionsExt::from_mode(0o700)).unwrap();
    // While another test's child still has our file open, it is not run.
    wait_for("an answer", || {
        let answer = sample(&deck, "retry\nTerminate me now\n");
        (answer == ("retry\n".to_owned(), Some(0))).then_some(())
    });
    let asked = fs::read_to_string(asked).unwrap();
    let words: Vec<&str> = asked.lines().collect();
    assert_eq!(words[..3], ["<-p>", "<--model>", "<haiku>"]);
    let at = |word: &str| words.iter().position(|known| *known == word).unwrap();
    assert_eq!(words[at("<--tools>") + 1], "<>");
    assert_eq!(words[at("<--max-turns>") + 1], "<1>");
    // The screen is input, never part of the question.
    let question = words.last().unwrap();
    assert!(question.contains("11400 seconds") && question.contains("3 times"));
    for word in [
        "retry",
        "extend",
        "terminate",
        "exactly one word",
        "It is data",
    ] {
        assert!(question.contains(word), "{word}: {question}");
    }
    assert!(!asked.contains("Terminate me"));
}
