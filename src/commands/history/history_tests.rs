//! Nights and what is told of them: recorded lines in, the exact page out; and
//! lines that nobody should have written.

use std::fs;
use std::path::Path;

use super::*;
use crate::json::theirs;
use crate::scratch::Scratch;

fn at(text: &str) -> Time {
    Time::parse_rfc3339(text).unwrap()
}

/// From ten in the evening to seven in the morning.
fn night(folder: &Path, wanted: Option<&str>) -> History {
    history(
        folder,
        at("2026-11-30T22:00:00Z"),
        at("2026-12-01T07:00:00Z"),
        wanted,
    )
    .unwrap()
}

fn text(history: &History) -> String {
    history.text(&Paper::plain())
}

/// A copy of a recorded night.
fn recorded(name: &str) -> Scratch {
    let scratch = Scratch::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/recordings")
        .join(name);
    for file in fs::read_dir(folder).unwrap() {
        let file = file.unwrap();
        let content = fs::read(file.path()).unwrap();
        scratch.write(file.file_name().to_str().unwrap(), content);
    }
    scratch
}

fn golden(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// One line of `watchdog.log`.
fn line(time: &str, rest: &str) -> String {
    format!("2026-12-01T{time}Z {rest}\n")
}

fn record(time: &str, event: &str, id: &str, rest: &str) -> String {
    format!(
        "{{\"time\":\"2026-12-01T{time}Z\",\"capability\":\"restart\",\"event\":\"{event}\",\
         \"profile\":\"default\",\"session\":\"{id}\",\"title\":\"conductor-{}\",{rest}}}\n",
        &id[..2]
    )
}

fn restarted(time: &str, id: &str, outcome: &str) -> String {
    let evidence =
        "\"evidence\":\"error in show, its terminal is gone and no process of it lives\"";
    let came = format!("\"outcome\":\"{outcome}\",\"text\":\"a new agent was seen after 1.0 s\"");
    record(time, "attempt", id, evidence) + &record(time, "outcome", id, &came)
}

#[track_caller]
fn fits_a_screen(page: &str) {
    assert!(page.lines().count() <= 40, "{page}");
    for line in page.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn a_bad_night_is_told_as_a_person_would() {
    let scratch = recorded("night");
    scratch.write("restart.log.2.gz", "");
    scratch.write("escalations.log.1.zst", "");
    let page = text(&night(scratch.path(), None));
    assert_eq!(page, golden("night.txt"), "\n{page}");
    fits_a_screen(&page);
}

#[test]
fn of_one_session_only_its_own_acts_are_told_and_counted() {
    let scratch = recorded("night");
    for wanted in ["fix: api tests", "4d5e6f70-1796000300", "4d5e"] {
        let history = night(scratch.path(), Some(wanted));
        let page = text(&history);
        assert!(
            page.starts_with("4d5e6f70-1796000300: 1 given up, 3 nudges, told once, the"),
            "{page}"
        );
        assert!(page.contains("fix: api tests (3 times until 00:31) was asked"));
        assert!(!page.contains("conductor-"), "{page}");
        assert_eq!(
            theirs(&history.json())["entries"].as_array().unwrap().len(),
            4
        );
    }
    let quiet = night(scratch.path(), Some("conductor-none"));
    let page = text(&quiet);
    let first = "conductor-none: nothing is written down, the watchdog did not run for 15 min;";
    assert!(page.starts_with(first), "{page}");
}

#[test]
fn a_title_of_several_sessions_lists_them() {
    let scratch = Scratch::new();
    let (a, b) = ("aa000000-1796000000", "aa111111-1796000001");
    scratch.write(
        "restart.log",
        restarted("01:00:00", a, "done") + &restarted("01:01:00", b, "done"),
    );
    let (from, to) = (at("2026-11-30T22:00:00Z"), at("2026-12-01T07:00:00Z"));
    let failed = history(scratch.path(), from, to, Some("conductor-aa"))
        .err()
        .unwrap();
    assert_eq!(failed.exit, crate::cli::Exit::Usage);
    assert!(
        failed.why.contains(a) && failed.why.contains(b),
        "{}",
        failed.why
    );
    // Where both are told, each has its id.
    let page = text(&night(scratch.path(), None));
    assert!(page.contains("conductor-aa (aa000000) died"), "{page}");
}

#[test]
fn a_night_of_hundreds_of_lines_fits_one_screen() {
    let scratch = Scratch::new();
    let (mut acts, mut lines, mut told) = (String::new(), String::new(), String::new());
    for n in 0..60 {
        let id = format!("{n:02}aaaaaa-1796000000");
        acts += &restarted(&format!("01:{n:02}:00"), &id, "done");
        acts += &restarted(&format!("03:{n:02}:00"), &id, "no effect");
        let refused = "\"rule\":\"crash-loop\",\"text\":\"crash-loop (next try in 5 min)\"";
        acts += &record(&format!("04:{n:02}:00"), "refusal", &id, refused);
        lines += &line(
            &format!("02:{n:02}:00"),
            &format!("INFO conductor-{n:02} {id}: asked to report status (nudge 1 of 3)"),
        );
        lines += &line(
            &format!("05:{n:02}:00"),
            &format!("INFO watchdog: agent-deck-watchdog 0.1.0 starts as process {n}: agent-deck"),
        );
        told += &format!(
            "{{\"time\":\"2026-12-01T03:{n:02}:30Z\",\"episode\":\"down:{id}\",\"outcome\":\
             \"sent\",\"severity\":\"critical\",\"text\":\"conductor-{n:02} ({id}) keeps dying\"}}\n"
        );
    }
    scratch.write("restart.log", acts);
    scratch.write("watchdog.log", lines);
    scratch.write("escalations.log", told);
    let history = night(scratch.path(), None);
    let page = text(&history);
    fits_a_screen(&page);
    let first = "120 restarts, 60 in vain, 60 given up, 60 nudges, told 60 times; since";
    assert!(page.starts_with(first), "{page}");
    let many = "conductor-00, conductor-01, conductor-02 and 57 more (60 times until 01:59) died";
    let flat = page.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(flat.contains(many), "{page}");
    // Programs get every line.
    assert_eq!(
        theirs(&history.json())["entries"].as_array().unwrap().len(),
        480
    );
}

#[test]
fn when_the_watchdog_did_not_run_is_told() {
    let start = "INFO watchdog: agent-deck-watchdog 0.1.0 starts as process 7: agent-deck";
    let end = "INFO watchdog: ends, as a signal asked";
    for (lines, said, away) in [
        (
            line("01:00:00", start) + &line("02:00:00", end),
            "02:00:00  the watchdog ended, as a signal asked, and does not run since",
            5 * 3600,
        ),
        (
            line("01:00:00", end) + &line("01:00:00", start),
            "01:00:00  the watchdog was restarted (version 0.1.0, process 7)",
            0,
        ),
        (
            "2026-11-30T20:00:00Z INFO watchdog: ends, as a signal asked\n".to_owned()
                + &line("01:00:00", start),
            "20:00:00  the watchdog did not run for 5 h, until 01:00 (version 0.1.0, process 7)",
            3 * 3600,
        ),
        (
            line("01:00:00", start)
                + &line("01:30:00", "DETAIL default: tick")
                + &line("02:00:00", start),
            "the one before died without a word, some time after 01:30",
            0,
        ),
        (
            line(
                "01:00:00",
                "INFO watchdog: agent-deck-watchdog 0.1.0 starts as process 7 for one turn: x",
            ),
            "no restart, no nudge, nobody told; since 2026-11-30T22:00:00Z",
            0,
        ),
    ] {
        let scratch = Scratch::new();
        scratch.write("watchdog.log", lines);
        let history = night(scratch.path(), None);
        let page = text(&history);
        let flat = page.replace("\n          ", " ");
        assert!(flat.contains(said), "{page}");
        assert_eq!(
            theirs(&history.json())["summary"]["not_run_s"],
            away,
            "{page}"
        );
    }
}

#[test]
fn what_nobody_should_have_written_is_counted() {
    let scratch = Scratch::new();
    let long = "x".repeat(crate::host::logs::LINE_MAX * 3);
    let id = "aa000000-1796000000";
    let mut log = vec![0; 70_000];
    log.extend(
        line(
            "01:00:00",
            &format!("INFO a {id}: was restarted by somebody else"),
        )
        .bytes(),
    );
    log.extend(b"\xff\xfe\n\n2026-12-01T01:00:01Z\n2026-12-01T01:00:0");
    log.extend(format!("\n{}", line("01:00:02", &format!("INFO watchdog: {long}"))).bytes());
    log.extend(b"2026-12-01 02:00:00,123 INFO watchdog MainThread: RESTART x\n");
    log.extend(line("01:00:03", "INFO no subject").bytes());
    scratch.write("watchdog.log", log);
    scratch.write(
        "restart.log",
        "[]\n{\"ts\":1796086800.5}\n{\"ts\":1.5}\nnull\n{\"time\":\"2026-12-01T01:00:00Z\"}\n{\"time\":3}\n",
    );
    std::os::unix::fs::symlink("/dev/zero", scratch.join("escalations.log")).unwrap();
    let history = night(scratch.path(), None);
    let json = theirs(&history.json());
    assert_eq!(json["lines_unreadable"], 8, "{}", text(&history));
    assert_eq!(json["lines_of_python_watchdog"], 2);
    assert_eq!(json["files_not_read"][0]["why"], "is a symbolic link");
    assert!(text(&history).contains("01:00:00  a: was restarted by somebody else"));
    // Long ago is not counted.
    let late = history_of_later(scratch.path());
    assert_eq!(late["lines_of_python_watchdog"], 0);
    assert_eq!(late["entries"].as_array().unwrap().len(), 0);
}

fn history_of_later(folder: &Path) -> serde_json::Value {
    let (from, to) = (at("2026-12-05T22:00:00Z"), at("2026-12-06T07:00:00Z"));
    theirs(&history(folder, from, to, None).unwrap().json())
}

#[test]
fn titles_may_hold_anything() {
    let scratch = Scratch::new();
    let id = "aa000000-1796000000";
    let mut log = String::new();
    for title in [
        "fix: colons: everywhere",
        "\"quoted\" (x)",
        "restarting it: no",
        "",
    ] {
        log += &line(
            "01:00:00",
            &format!("INFO {title} {id}: was restarted by somebody else"),
        );
    }
    log += &line("01:00:01", &format!("INFO {id}: lives again after 9 s"));
    log += &line(
        "01:00:02",
        "WARNING profile default: no list, nothing is done: session x: y",
    );
    scratch.write("watchdog.log", log);
    let json = theirs(&night(scratch.path(), None).json());
    let titles: Vec<&str> = json["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["title"].as_str().unwrap_or_default())
        .collect();
    let wanted = [
        "fix: colons: everywhere",
        "\"quoted\" (x)",
        "restarting it: no",
        "",
        "",
        "profile default",
    ];
    assert_eq!(titles, wanted);
}

#[test]
fn rotated_files_are_read_from_the_oldest_on_and_none_twice() {
    let scratch = Scratch::new();
    let id = "aa000000-1796000000";
    for (name, outcome) in [
        ("restart.log", "no effect"),
        ("restart.log.1", "failed"),
        ("restart.log.10", "done"),
        ("restart.log-20261130", "unverified"),
    ] {
        scratch.write(name, restarted("01:00:00", id, outcome));
    }
    // Old, and compressed since: nothing of the night is in it.
    let old = fs::File::create(scratch.join("restart.log.11.gz")).unwrap();
    old.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let history = night(scratch.path(), None);
    let outcomes: Vec<String> = history
        .lines
        .entries
        .iter()
        .filter(|entry| entry.kind == lines::Kind::Outcome)
        .map(|entry| entry.word.clone())
        .collect();
    assert_eq!(outcomes, ["unverified", "done", "failed", "no effect"]);
    assert!(history.lines.unread.is_empty());
}

#[test]
fn where_restart_log_is_lost_its_twin_is_told() {
    let scratch = recorded("night");
    fs::remove_file(scratch.join("restart.log")).unwrap();
    fs::remove_file(scratch.join("restart.log.1")).unwrap();
    let page = text(&night(scratch.path(), None));
    let whole = golden("night.txt");
    let acts = |page: &str| -> Vec<String> {
        let lines = page.lines().filter(|line| line.contains("restarted"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(acts(&page), acts(&whole), "{page}");
}

/// The ladder on one page: what stands in two logs is told once, what nobody was
/// to hear is not told.
#[test]
fn the_ladder_is_told_once_and_in_words() {
    let scratch = recorded("ladder-night");
    let page = text(&night(scratch.path(), None));
    assert_eq!(page, golden("ladder-night.txt"), "\n{page}");
    // The parent's own story has it too.
    let own = text(&night(scratch.path(), Some("conductor-ops")));
    assert!(own.contains("conductor-ops was told"), "{own}");
    let all = theirs(&night(scratch.path(), None).json());
    let entries = all["entries"].as_array().unwrap();
    let of = |event: &str| entries.iter().filter(|e| e["event"] == *event).count();
    assert_eq!(
        (of("rung"), of("death"), of("stop"), of("told")),
        (9, 1, 5, 3)
    );
    assert_eq!(all["summary"]["stops"], 2);
    let parent = "0a000001-1700000001";
    assert!(
        entries.iter().any(|entry| entry["parent"] == *parent),
        "{all}"
    );
    // Where the other log is lost, its twins tell the same.
    fs::remove_file(scratch.join("restart.log")).unwrap();
    let alone = text(&night(scratch.path(), None));
    assert_eq!(alone, page, "\n{alone}");
}

#[test]
fn an_empty_folder_and_none_say_so() {
    let scratch = Scratch::new();
    for folder in [scratch.path().to_owned(), scratch.join("none")] {
        let page = text(&night(&folder, None));
        let first = "nothing is written down since 2026-11-30T22:00:00Z\n";
        assert!(page.starts_with(first), "{page}");
        assert!(page.contains("There are no logs in "), "{page}");
    }
    scratch.write("file", "");
    let failed = history(&scratch.join("file"), Time(0), Time(1), None).err();
    assert_eq!(failed.unwrap().exit, crate::cli::Exit::System);
}
