//! Every acceptance scenario, and where its test is, or the issue it waits for.
//! Does not know what any of them says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;

use Place::{Partly, Tested};

/// Where the test of a scenario is.
enum Place {
    /// In these files of `tests/`, under the scenario's name.
    Tested(&'static str),
    /// There as well, but for the part that waits for this issue.
    Partly(&'static str, u32),
}

impl Place {
    /// The files that hold a test.
    fn files(&self) -> Vec<&'static str> {
        match self {
            Tested(files) | Partly(files, _) => files.split(' ').collect(),
        }
    }

    /// The issue that something of it waits for.
    fn waits_for(&self) -> Option<u32> {
        match self {
            Tested(_) => None,
            Partly(_, issue) => Some(*issue),
        }
    }
}

/// How many there are in each section below.
const SECTIONS: [usize; 10] = [22, 23, 14, 21, 13, 12, 8, 8, 16, 12];

const SCENARIOS: &[(&str, Place)] = &[
    // 1. Detection: what counts as critical, what counts as dead
    (
        "critical-by-title-prefix",
        Tested("restart simulator/scenarios/dead"),
    ),
    (
        "critical-by-group",
        Tested("restart simulator/scenarios/dead"),
    ),
    (
        "critical-by-conductor-flag",
        Tested("restart simulator/scenarios/dead"),
    ),
    (
        "critical-by-opt-in-file",
        Tested("restart simulator/scenarios/dead"),
    ),
    (
        "ordinary-worker-left-alone",
        Tested("left_alone simulator/scenarios/dead"),
    ),
    (
        "stopped-stays-stopped",
        Tested("left_alone pollers simulator/scenarios/dead"),
    ),
    (
        "archived-stays-archived",
        Tested("left_alone simulator/scenarios/dead"),
    ),
    (
        "never-started-is-no-crash",
        Tested("left_alone simulator/scenarios/dead"),
    ),
    (
        "unfamiliar-status-is-no-error",
        Tested("left_alone simulator/scenarios/dead"),
    ),
    (
        "error-with-a-live-screen",
        Tested("patience simulator/scenarios/alive"),
    ),
    (
        "young-session-grace",
        Tested("left_alone simulator/scenarios/dead"),
    ),
    ("quiet-is-not-dead", Tested("simulator/scenarios/alive")),
    (
        "looking-from-the-wrong-place",
        Tested("patience doctor/main simulator/scenarios/alive"),
    ),
    (
        "no-program-no-verdict",
        Tested("programs simulator/scenarios/alive"),
    ),
    (
        "everything-dies-at-once",
        Tested("simulator/scenarios/dead"),
    ),
    (
        "socket-lost-agents-alive",
        Tested("simulator/scenarios/alive"),
    ),
    (
        "fast-path-beats-the-poll",
        Tested("simulator/scenarios/dead"),
    ),
    ("hook-rewritten-in-the-same-second", Tested("fast_path")),
    ("event-queue-overflow", Tested("fast_path")),
    ("hooks-directory-comes-and-goes", Tested("fast_path")),
    (
        "late-answer-is-no-answer",
        Tested("simulator/scenarios/alive"),
    ),
    (
        "one-bad-answer-does-not-spread",
        Tested("restart simulator/scenarios/dead"),
    ),
    // 2. Restart guardrails
    (
        "three-restarts-per-300s",
        Tested("simulator/scenarios/guard"),
    ),
    (
        "one-restart-per-60s-overall",
        Tested("simulator/scenarios/guard"),
    ),
    ("cool-down-60s", Tested("simulator/scenarios/guard")),
    (
        "rate-limit-in-restart-output",
        Tested("simulator/scenarios/guard"),
    ),
    (
        "confusion-escalates",
        Tested("restart simulator/scenarios/guard"),
    ),
    (
        "recovered-before-its-turn",
        Tested("simulator/scenarios/guard"),
    ),
    (
        "stop-wins-the-race",
        Tested("pollers simulator/scenarios/alive"),
    ),
    (
        "failing-restart-is-not-hammered",
        Tested("simulator/scenarios/guard"),
    ),
    ("fourteen-at-once", Tested("simulator/scenarios/guard")),
    (
        "restart-without-effect",
        Tested("simulator/scenarios/outcomes"),
    ),
    (
        "same-screen-after-restart",
        Tested("simulator/scenarios/outcomes"),
    ),
    ("half-started", Tested("simulator/scenarios/outcomes")),
    (
        "skipped-is-not-done",
        Tested("restart simulator/scenarios/outcomes"),
    ),
    (
        "restart-is-never-cut-short",
        Tested("patience simulator/scenarios/guard"),
    ),
    (
        "somebody-else-is-restarting",
        Tested("restart simulator/scenarios/alive"),
    ),
    (
        "usage-limit-is-not-a-crash",
        Tested("simulator/scenarios/limits"),
    ),
    ("limit-wordings", Tested("../src/deck/trouble")),
    (
        "staggered-resume-after-a-limit",
        Tested("simulator/scenarios/limits"),
    ),
    (
        "auth-hold-means-hands-off",
        Tested("simulator/scenarios/alive"),
    ),
    ("alive-but-logged-out", Tested("simulator/scenarios/alive")),
    (
        "host-out-of-processes",
        Tested("simulator/scenarios/limits"),
    ),
    (
        "same-error-three-times",
        Tested("simulator/scenarios/limits"),
    ),
    ("budget-forgets", Tested("simulator/scenarios/guard")),
    // 3. Poller
    ("poller-gone-one-restart", Tested("pollers")),
    ("poller-dedup-3600s", Tested("pollers")),
    ("poller-match-is-exact", Tested("poller_doubts")),
    ("no-channel-no-check", Tested("poller_doubts")),
    ("state-dir-from-env-file", Tested("poller_doubts")),
    ("poller-restart-obeys-the-guards", Tested("pollers")),
    ("poller-never-starts", Tested("pollers doctor/main")),
    (
        "process-without-reception",
        Tested("simulator/scenarios/poller_results"),
    ),
    ("two-conductors-one-token", Tested("poller_doubts")),
    ("old-poller-survives", Tested("poller_doubts")),
    ("restart-did-not-help", Tested("pollers")),
    ("healthy-again-but-deaf", Tested("pollers")),
    ("flapping-poller", Tested("poller_doubts")),
    ("no-process-list-no-verdict", Tested("poller_doubts")),
    // 4. Waiting patrol and prompts
    ("nudge-after-600s", Tested("patrol")),
    ("nudge-dedup-3600s", Tested("patrol")),
    ("pane-change-restarts-the-clock", Tested("patrol")),
    ("status-change-evicts", Tested("patrol")),
    ("no-parent-no-nudge", Tested("patrol")),
    ("conductor-like-sessions-exempt", Tested("patrol")),
    ("unreadable-pane-does-not-age", Tested("never_answers")),
    ("pane-gone-is-unreachable", Tested("never_answers")),
    ("never-answer-a-prompt", Tested("never_answers")),
    ("first-run-dialog-is-no-crash", Tested("never_answers")),
    ("unknown-screen-means-silence", Tested("never_answers")),
    ("draft-is-not-touched", Tested("never_answers")),
    ("answered-nudges-stay-bounded", Tested("patrol")),
    ("refused-send-stays-due", Tested("never_answers")),
    ("text-left-in-the-composer", Tested("never_answers")),
    ("same-screen-after-nudge", Tested("never_answers")),
    ("own-echo-does-not-count", Tested("patrol")),
    ("running-outranks-the-screen", Tested("patrol")),
    ("eight-at-once", Partly("patrol", 7)),
    ("long-run-is-left-alone", Tested("patrol")),
    ("somebody-else-just-typed", Tested("patrol")),
    // 5. Processes and environment
    ("grandchild-keeps-the-pipe-open", Tested("programs")),
    ("no-zombies", Partly("telling", 8)),
    ("no-helper-tools-needed", Tested("operations")),
    (
        "names-that-share-a-prefix",
        Tested("restart simulator/scenarios/dead"),
    ),
    (
        "title-equal-to-an-id",
        Tested("restart simulator/scenarios/dead"),
    ),
    (
        "logout-and-login",
        Tested("simulator/scenarios/memory doctor/scenarios"),
    ),
    ("suspend-is-not-waiting", Tested("nudge_memory")),
    ("death-before-suspend", Tested("simulator/scenarios/guard")),
    ("any-bytes", Tested("programs")),
    ("strange-home", Tested("service")),
    ("bare-path", Tested("programs")),
    ("slow-name-lookup", Tested("doctor/scenarios")),
    ("clean-environment-for-the-cli", Tested("programs")),
    // 6. State and logs
    (
        "silent-when-healthy",
        Tested("logs simulator/scenarios/memory"),
    ),
    ("three-log-files", Tested("capabilities logs")),
    (
        "restart-log-tells-why",
        Tested("logs simulator/scenarios/outcomes"),
    ),
    (
        "escalation-log-tells-the-outcome",
        Tested("logs simulator/scenarios/telling"),
    ),
    ("verbose-shows-ticks", Tested("logs")),
    ("digests-not-pane-text", Tested("capabilities logs")),
    (
        "damaged-state-file",
        Tested("memory simulator/scenarios/memory"),
    ),
    ("disk-full", Tested("memory simulator/scenarios/memory")),
    ("log-truncated-underneath", Tested("logs")),
    ("planted-links", Tested("memory")),
    (
        "removed-sessions-leave",
        Tested("status simulator/scenarios/memory"),
    ),
    (
        "killed-between-intent-and-result",
        Tested("crash nudge_memory"),
    ),
    // 7. Cron, once, dry run
    (
        "once-runs-one-pass",
        Tested("capabilities cron simulator/scenarios/memory"),
    ),
    (
        "once-keeps-the-guardrails",
        Tested("capabilities cron simulator/scenarios/memory"),
    ),
    ("once-remembers-timers", Tested("capabilities")),
    (
        "once-without-memory",
        Tested("memory simulator/scenarios/memory"),
    ),
    (
        "dry-run-changes-nothing",
        Tested("capabilities cron simulator/scenarios/memory"),
    ),
    ("dry-run-explains", Tested("cron")),
    ("one-arbiter", Tested("arbiter")),
    ("overlapping-cron-runs", Tested("arbiter")),
    // 8. Escalation
    (
        "no-chat-id-local-only",
        Tested("telling simulator/scenarios/telling"),
    ),
    ("chat-id-set", Tested("telling simulator/scenarios/telling")),
    (
        "no-invented-reset-time",
        Tested("simulator/scenarios/limits"),
    ),
    ("token-never-shown", Tested("logs")),
    ("long-alert", Tested("simulator/scenarios/telling")),
    (
        "poison-message",
        Tested("telling simulator/scenarios/telling"),
    ),
    (
        "one-incident-few-alerts",
        Tested("telling simulator/scenarios/telling"),
    ),
    (
        "reminders-carry-news",
        Tested("simulator/scenarios/telling"),
    ),
    // 9. Ladder and notices
    ("notice-waits-for-the-parent", Tested("parents")),
    ("notice-to-a-dead-parent", Tested("parents")),
    (
        "death-told-once",
        Tested("ladder simulator/scenarios/deaths"),
    ),
    (
        "death-needs-confirmation",
        Tested("ladder simulator/scenarios/deaths"),
    ),
    ("no-parent-no-notice", Tested("ladder")),
    (
        "restart-comes-before-the-notice",
        Tested("simulator/scenarios/deaths"),
    ),
    ("notices-are-merged", Tested("parents")),
    ("parent-outside-scope", Tested("parents")),
    ("parent-with-a-prompt", Tested("parents")),
    ("batch-told-once", Tested("batches")),
    ("batch-not-over", Tested("batches")),
    ("batch-wording", Tested("batches")),
    ("restarts-come-first", Tested("simulator/scenarios/deaths")),
    ("triage-off-by-default", Tested("triage")),
    ("triage-strict-verdict", Tested("triage")),
    ("triage-budget-rotates", Tested("triage")),
    // 10. Operations
    ("every-capability-wired", Tested("capabilities")),
    ("settings-from-the-environment", Tested("service")),
    ("only-these-commands", Tested("restart")),
    ("recycled-pid", Tested("arbiter")),
    ("reader-leaves", Tested("service status history")),
    ("status-knows-the-last-tick", Tested("status")),
    ("every-exit-has-a-reason", Tested("operations")),
    ("installed-is-not-enabled", Tested("doctor/scenarios")),
    ("boot-before-the-cli", Tested("programs")),
    ("terminate-signal", Tested("service")),
    (
        "python-watchdog-still-there",
        Tested("operations doctor/others"),
    ),
    ("healthy-tick-is-cheap", Tested("programs")),
];

/// The function's name.
fn function(scenario: &str) -> String {
    scenario.replace('-', "_")
}

/// Whether a text has that test.
fn has_test(text: &str, function: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let begin = format!("fn {function}() {{");
    let at = lines.iter().position(|line| *line == begin);
    at.is_some_and(|at| lines[at.saturating_sub(3)..at].contains(&"#[test]"))
}

/// The text of a file of `tests/`.
fn read(file: &str) -> String {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let path = tests.join(format!("{file}.rs"));
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn every_scenario_is_tested_where_the_table_says() {
    let mut missing = Vec::new();
    for (scenario, place) in SCENARIOS {
        for file in place.files() {
            if !has_test(&read(file), &function(scenario)) {
                missing.push(format!("{scenario} in {file}"));
            }
        }
    }
    assert_eq!(missing, [""; 0]);
}

#[test]
fn none_is_missing_or_named_twice() {
    assert_eq!(SCENARIOS.len(), SECTIONS.iter().sum::<usize>());
    let mut names: Vec<&str> = SCENARIOS.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    for pair in names.windows(2) {
        assert_ne!(pair[0], pair[1]);
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    assert!(names.iter().all(|name| name.chars().all(plain)));
}

#[test]
fn what_waits_has_no_test_yet_and_waits_for_an_issue_to_come() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")];
    let mut tests = String::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                None => folders.push(path),
                Some(end) if end == "rs" => tests += &fs::read_to_string(path).unwrap(),
                Some(_) => {}
            }
        }
    }
    for (scenario, place) in SCENARIOS {
        if place.files().is_empty() {
            assert!(
                !has_test(&tests, &function(scenario)),
                "{scenario} has a test: name its file"
            );
        }
        assert!(
            place
                .waits_for()
                .is_none_or(|issue| (7..=8).contains(&issue)),
            "{scenario}"
        );
    }
}
