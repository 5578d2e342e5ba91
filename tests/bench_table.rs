//! The table of `make bench`, on the stand-in: it is complete, and its figures
//! are numbers. Deaths are left out, since a session must be a minute old to be
//! restarted, and instructions, since they need valgrind and another build: both
//! are said in words then. Does not know what is a good figure.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;
use std::process::Command;

#[test]
fn the_table_of_the_bench_is_complete_and_its_figures_are_numbers() {
    let output = Command::new(example("bench"))
        .arg(example("standin"))
        .arg(env!("CARGO_BIN_EXE_agent-deck-watchdog"))
        .env_remove("AGENT_DECK_E2E_BIN")
        // The same again, as another one.
        .env("BENCH_OTHER", env!("CARGO_BIN_EXE_agent-deck-watchdog"))
        .env("BENCH_SECONDS", "1")
        .env("BENCH_DEATHS", "0")
        .output()
        .unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let line = |begin: &str| {
        let found = table
            .lines()
            .find(|line| line.trim_start().starts_with(begin));
        found.unwrap_or_else(|| panic!("no {begin:?} in\n{table}"))
    };
    // What is never nothing, and what may be.
    for (figure, least) in [
        ("binary size, bytes", 100_000),
        ("resident memory, kB", 100),
        ("of it private, kB", 10),
        ("of that written to, kB", 10),
        ("peak memory, kB", 100),
        ("descriptors", 3),
        ("threads", 1),
        ("wake-ups a minute", 0),
        ("agent-deck commands a minute", 0),
        ("own CPU, ms a minute", 0),
        ("bytes logged meanwhile", 0),
    ] {
        let columns = line(figure).trim_start().strip_prefix(figure).unwrap();
        let columns: Vec<u64> = columns
            .split_whitespace()
            .map(|column| {
                column
                    .parse()
                    .unwrap_or_else(|_| panic!("{figure}: {column}"))
            })
            .collect();
        assert_eq!(columns.len(), 2, "{figure}");
        assert!(
            columns.iter().all(|column| *column >= least),
            "{figure}: {columns:?}"
        );
    }
    line("by hand there: one `session show` ");
    assert!(line("deaths: ").contains("not measured: BENCH_DEATHS=0"));
    assert!(line("real agent-deck: ").contains("not measured: AGENT_DECK_E2E_BIN"));
    line("own instructions a turn");
    line("not counted: ");
    // But for the two commands, which stand at the top.
    for line in table.lines().skip(2) {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(said.contains(" minutes"), "{said}");
}

#[test]
fn a_bench_that_cannot_begin_says_why() {
    let said = |watchdog: &str, seconds: &str| {
        let output = Command::new(example("bench"))
            .arg(example("standin"))
            .arg(watchdog)
            .env_remove("AGENT_DECK_E2E_BIN")
            .env("BENCH_SECONDS", seconds)
            .output()
            .unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let ours = env!("CARGO_BIN_EXE_agent-deck-watchdog");
    assert!(said(ours, "long").contains("BENCH_SECONDS"));
    assert!(said("no-watchdog", "1").contains("no-watchdog"));
}

/// `cargo test` without a choice of tests builds them, as `make test` does.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(
        program.is_file(),
        "{} is missing: `cargo build --example {name}`",
        program.display()
    );
    program
}
