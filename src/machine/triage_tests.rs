//! Tests of `triage.rs`, with real small programs.

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::host::exec::still_runs;
use crate::ladder::triage::Advice;
use crate::model::{ProcessMark, Profile};
use crate::scratch::{Scratch, until};

const LONG: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_millis(300);

fn case() -> Case {
    Case {
        profile: Profile::parse("default").unwrap(),
        id: SessionId::parse("1a2b3c4d-1755900001").unwrap(),
        title: "fix the tests".to_owned(),
        tool: "claude".to_owned(),
        group: "work/night".to_owned(),
        digest: "ab".to_owned(),
        waited: Duration::from_secs(11_400),
        nudges: 3,
    }
}

fn script(scratch: &Scratch, text: &str) -> PathBuf {
    let path = scratch.join("triage");
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
    path
}

/// What it makes of a screen. "Text file busy", as long as a child that another
/// test is just starting shares the handle that wrote it, is tried again.
fn asked(program: &std::path::Path, timeout: Duration, text: &str) -> Heard {
    let mut heard = None;
    let mut triage = Triage::new(Some(program.to_owned()), timeout);
    let busy = Some("it cannot be run");
    until("an answer", || {
        if triage.next_look().is_none() {
            triage.start(&case(), text);
        }
        heard = triage.heard();
        let busy = program.is_file() && heard.as_ref().is_some_and(|h| h.answer.fallback == busy);
        heard.is_some() && !busy
    });
    assert_eq!(triage.next_look(), None);
    assert_eq!(triage.heard(), None);
    let heard = heard.unwrap();
    assert_eq!(heard.id, case().id);
    heard
}

fn answer(text: &str) -> Answer {
    let scratch = Scratch::new();
    asked(&script(&scratch, text), LONG, "screen\n").answer
}

#[test]
fn a_word_is_an_answer_and_everything_else_is_more_time() {
    for (text, advice) in [
        ("echo retry", Advice::Retry),
        (
            "cat >/dev/null; echo; echo ' Terminate '",
            Advice::Terminate,
        ),
        ("echo extend; sleep 0.1; echo terminate", Advice::Extend),
        ("echo retry; echo 'what a mess' >&2", Advice::Retry),
    ] {
        let answer = answer(text);
        assert_eq!((answer.advice, answer.fallback), (advice, None), "{text}");
    }
    for (text, why) in [
        (
            "echo do not terminate",
            "its first line is none of the three words",
        ),
        (
            "echo retry extend",
            "its first line is none of the three words",
        ),
        ("true", "it said nothing"),
        ("echo terminate; exit 1", "it failed"),
        ("echo terminate; kill -TERM $$", "a signal ended it"),
        ("echo retry; head -c 100000 /dev/zero", "it said too much"),
        (
            "echo retry; while :; do echo retry; done",
            "it said too much",
        ),
    ] {
        let answer = answer(text);
        assert_eq!(answer, triage::fallback(why), "{text}");
        assert_eq!(answer.advice, Advice::Extend);
    }
}

#[test]
fn what_cannot_be_run_is_more_time() {
    let scratch = Scratch::new();
    let plain = scratch.join("plain");
    std::fs::write(&plain, "#!/bin/sh\necho retry\n").unwrap();
    std::fs::set_permissions(&plain, PermissionsExt::from_mode(0o600)).unwrap();
    let folder = scratch.path().to_owned();
    for program in [scratch.join("missing"), folder, plain.clone()] {
        let mut triage = Triage::new(Some(program), LONG);
        triage.start(&case(), "x");
        // Nobody has to wait for it.
        assert_eq!(triage.next_look(), Some(Duration::ZERO));
        let heard = triage.heard().unwrap();
        assert_eq!(heard.answer, triage::fallback("it cannot be run"));
        assert_eq!(triage.next_look(), None);
    }
}

#[test]
fn what_others_may_change_is_not_run() {
    let scratch = Scratch::new();
    let trace = scratch.join("trace");
    let program = script(
        &scratch,
        &format!("touch '{}'; echo retry", trace.display()),
    );
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o722)).unwrap();
    let heard = asked(&program, LONG, "x");
    let why = "others may change it: not run";
    assert_eq!(heard.answer, triage::fallback(why));
    assert!(!trace.exists());
}

#[test]
fn it_reads_the_screen_to_its_end_or_not_at_all() {
    let scratch = Scratch::new();
    let copy = scratch.join("copy");
    let text = format!("{}the end\n", "x".repeat(32 * 1024 - 8));
    let program = script(&scratch, &format!("cat > '{}'; echo retry", copy.display()));
    assert_eq!(asked(&program, LONG, &text).answer.advice, Advice::Retry);
    assert_eq!(std::fs::read_to_string(&copy).unwrap(), text);
    for unread in [
        "exec <&-; echo retry",
        "head -c 1 >/dev/null; echo retry",
        "echo retry",
    ] {
        let scratch = Scratch::new();
        let program = script(&scratch, unread);
        let heard = asked(&program, LONG, &text);
        assert_eq!(heard.answer.fallback, None, "{unread}");
    }
}

#[test]
fn it_knows_about_whom_it_is_asked_and_nothing_of_our_affairs() {
    let scratch = Scratch::new();
    let copy = scratch.join("environment");
    let program = script(
        &scratch,
        &format!(
            "echo \"$# $*\" > '{0}'; env >> '{0}'; echo extend",
            copy.display()
        ),
    );
    asked(&program, LONG, "");
    let said = std::fs::read_to_string(&copy).unwrap();
    assert!(said.starts_with("0 \n"), "no arguments: {said}");
    for line in [
        "AGENT_DECK_TRIAGE_ID=1a2b3c4d-1755900001",
        "AGENT_DECK_TRIAGE_TITLE=fix the tests",
        "AGENT_DECK_TRIAGE_TOOL=claude",
        "AGENT_DECK_TRIAGE_GROUP=work/night",
        "AGENT_DECK_TRIAGE_WAITING_S=11400",
        "AGENT_DECK_TRIAGE_NUDGES=3",
    ] {
        assert!(said.lines().any(|known| known == line), "{line}: {said}");
    }
    for name in [
        "TELEGRAM_BOT_TOKEN",
        "TELEGRAM_STATE_DIR",
        "NOTIFY_SOCKET",
        "TMUX=",
    ] {
        assert!(!said.contains(name), "{name}");
    }
}

/// The process that a script has written down.
fn written_down(path: &std::path::Path) -> ProcessMark {
    let mut pid = None;
    until("a number is written down", || {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        pid = text.strip_suffix('\n').and_then(|text| text.parse().ok());
        pid.is_some()
    });
    ProcessMark {
        pid: pid.unwrap(),
        ticks: 0,
    }
}

#[test]
fn a_late_one_is_ended_with_its_group() {
    let scratch = Scratch::new();
    let file = scratch.join("pid");
    let text = format!(
        "echo retry; sleep 3600 & echo $! > '{}'; wait",
        file.display()
    );
    let heard = asked(&script(&scratch, &text), SHORT, "x");
    assert_eq!(heard.answer, triage::fallback("it did not answer in time"));
    assert!(heard.took >= SHORT);
    let grandchild = written_down(&file);
    until("the grandchild is gone", || !still_runs(grandchild));
    // A word that comes too late is none.
    let scratch = Scratch::new();
    let heard = asked(&script(&scratch, "sleep 0.5; echo retry"), SHORT, "x");
    assert_eq!(heard.answer, triage::fallback("it did not answer in time"));
}

#[test]
fn a_watchdog_that_ends_leaves_none_behind() {
    let scratch = Scratch::new();
    let file = scratch.join("pid");
    let text = format!("sleep 3600 & echo $! > '{}'; wait", file.display());
    let mut triage = Triage::new(Some(script(&scratch, &text)), LONG);
    until("it runs", || {
        triage.heard();
        if triage.next_look().is_none() {
            triage.start(&case(), "x");
        }
        file.exists()
    });
    let grandchild = written_down(&file);
    drop(triage);
    until("the grandchild is gone", || !still_runs(grandchild));
}
