//! Every parser of other programs' words is fed with recordings that were cut,
//! bent and mixed: it never panics, and what comes out keeps its promises.
//!
//! `RANDOM_ROUNDS=100000 RANDOM_FROM=1 cargo test --test random_parsers` goes on
//! for longer. This file does not know what the words mean.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::cast_possible_truncation)]

#[path = "simulator/chance.rs"]
#[allow(dead_code)]
mod chance;

use agent_deck_watchdog::clock::{Reading, Time};
use agent_deck_watchdog::deck::answers::{self, Raw};
use agent_deck_watchdog::deck::{screen, telegram};
use agent_deck_watchdog::json;
use agent_deck_watchdog::ladder::triage;
use agent_deck_watchdog::model::{Pane, Profile, SessionId};
use agent_deck_watchdog::state::State;
use chance::Chance;

const ID: &str = "1a2b3c4d-1755900001";

/// What is put between other people's words.
const POISON: [&[u8]; 16] = [
    b"\"",
    b"\\",
    b"{",
    b"[",
    b"]}",
    b"\\u0000",
    b"\\ud800",
    b"\xff\xfe",
    b"\x1b[2J",
    b"-rf",
    b"../../",
    b"1e999",
    b"99999999999999999999",
    b"\n\r\n",
    b"\xe2\x80\xae",
    b"null",
];

fn recordings() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.is_file()).collect();
    files.sort();
    let all: Vec<Vec<u8>> = files
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect();
    assert!(all.len() > 50);
    all
}

/// No id but a full one, and nothing in it that is not of an id.
fn is_id(id: &SessionId) {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
    let text = id.as_str();
    assert!(
        !text.is_empty() && !text.starts_with(['-', '.']) && text.chars().all(fits),
        "{text:?}"
    );
}

/// Feeds all parsers.
fn feed(bytes: &[u8], code: i32) {
    let id = SessionId::parse(ID).unwrap();
    let profile = Profile::parse("default").unwrap();
    let raw = Raw {
        code: Some(code),
        stdout: bytes,
        stderr: bytes,
    };
    if let Ok(listed) = answers::list(&raw, &profile) {
        listed
            .sessions
            .iter()
            .for_each(|session| is_id(&session.id));
    }
    if let Ok(said) = answers::children(&raw, &id) {
        said.iter().for_each(|one| is_id(&one.id));
    }
    if let Ok(shown) = answers::show(&raw, &id) {
        assert_eq!(shown.id, id, "another session answers");
    }
    if let Ok(Pane::Stands(screen)) = answers::pane(&raw, &id) {
        let _ = (screen.decision, screen.claude, screen.other);
    }
    let _ = (answers::form(&raw, &id), answers::plain(&raw, &id));
    let _ = (answers::profiles(&raw), answers::version(&raw));
    let _ = (
        answers::restart(&raw, &id),
        answers::send(&raw, &id),
        answers::stop(&raw, &id),
    );
    let text = String::from_utf8_lossy(bytes);
    let _ = (screen::read(&text), screen::form(&text));
    assert!(!screen::plain(&text).contains('\x1b'));
    let _ = (telegram::ps_rows(bytes, 1), telegram::environment_of(bytes));
    let _ = triage::read(Some(code), bytes);
    if let Ok(value) = json::read(bytes) {
        assert_eq!(json::read(value.to_string().as_bytes()).ok(), Some(value));
    }
    let clocks = Reading {
        wall: 2_000_000_000_000,
        boot: 1000,
        boot_id: "b".to_owned(),
    };
    if let Ok(state) = State::decode(bytes, Time(2_000_000_000_000), &clocks) {
        let again = state.encode(Time(2_000_000_000_000), &clocks);
        assert_eq!(
            State::decode(&again, Time(2_000_000_000_000), &clocks),
            Ok(state)
        );
    }
}

/// Cuts, bends or mixes one of them.
fn bent(chance: &mut Chance, all: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = chance.pick(all).unwrap().clone();
    for _ in 0..chance.within(1, 6) {
        let at = chance.within(0, bytes.len() as u64) as usize;
        match chance.within(0, 6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(..at)),
            2 if at < bytes.len() => bytes[at] ^= 1 << chance.within(0, 7),
            3 => {
                let poison = *chance.pick(&POISON).unwrap();
                bytes.splice(at..at, poison.iter().copied());
            }
            4 => {
                let poison = *chance.pick(&POISON).unwrap();
                let many = poison.repeat(chance.within(1, 300) as usize);
                bytes.splice(at..at, many);
            }
            5 => {
                let other = chance.pick(all).unwrap();
                let from = chance.within(0, other.len() as u64) as usize;
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            _ => {
                let end = (at + chance.within(0, 200) as usize).min(bytes.len());
                let part = bytes[at.min(end)..end].to_vec();
                bytes.splice(at..at, part);
            }
        }
        bytes.truncate(200_000);
    }
    bytes
}

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(usual)
}

#[test]
fn recordings_go_through_every_parser() {
    for recording in recordings() {
        feed(&recording, 0);
        feed(&recording, 1);
        if recording.len() < 3000 {
            (0..recording.len())
                .step_by(7)
                .for_each(|at| feed(&recording[..at], 0));
        }
    }
}

#[test]
fn bent_recordings_go_through_every_parser() {
    let all = recordings();
    let from = number("RANDOM_FROM", 1);
    for seed in from..from + number("RANDOM_ROUNDS", 1500) {
        let mut chance = Chance::new(seed);
        let bytes = bent(&mut chance, &all);
        let code = chance.within(0, 2) as i32;
        let fed = std::panic::catch_unwind(|| feed(&bytes, code));
        assert!(
            fed.is_ok(),
            "RANDOM_FROM={seed} RANDOM_ROUNDS=1: {}",
            bytes.escape_ascii()
        );
    }
}
