//! Tests of the unit's text, as tables; the unit of `contrib/` is one of them.

use super::*;
use crate::commands::doctor::Check;

const OURS: &str = include_str!("../../../../contrib/agent-deck-watchdog.service");

fn unit(files: &[&str]) -> Unit {
    let mut unit = Unit::default();
    for file in files {
        unit.read(file);
    }
    unit
}

fn judged(unit: &Unit, once: bool) -> Vec<Check> {
    let found = Found::default();
    judge(unit, once, &found);
    found.0.into_inner()
}

fn said_by(environ: &Environ, name: &str) -> String {
    environ.get(name).to_str().unwrap().to_owned()
}

/// What is said of ours with one more line.
fn said(line: &str) -> Vec<Check> {
    judged(&unit(&[OURS, "[Service]", line]), false)
}

#[test]
fn the_printed_unit_is_as_it_should_be() {
    let ours = unit(&[OURS]);
    assert_eq!(judged(&ours, false), []);
    let command = ours.command("/home/u");
    assert_eq!(
        command,
        ["/home/u/.agent-deck/watchdog/agent-deck-watchdog"]
    );
    assert_eq!(starts_what(&command), Starts::Ours);
    let files = [("/home/u/.config/agent-deck-watchdog.env".to_owned(), false)];
    assert_eq!(ours.env_files("/home/u"), files);
    let mut seen = Environ::default();
    ours.environment("/home/u", &mut seen);
    assert!(said_by(&seen, "PATH").starts_with("/home/u/.local/bin:/home/linuxbrew/"));
    assert_eq!(said_by(&seen, "TMUX_TMPDIR"), "");
}

#[test]
fn each_wrong_line_is_named_and_its_mend_mends_it() {
    for (line, light, word) in [
        (
            "KillMode=control-group",
            Light::Red,
            "KillMode=control-group",
        ),
        ("KillMode=mixed", Light::Red, "allowed: process"),
        ("PrivateTmp=yes", Light::Red, "socket of tmux"),
        ("ProtectHome=read-only", Light::Red, "agent-deck's files"),
        ("NoNewPrivileges=true", Light::Yellow, "sudo"),
        ("MemoryMax=500M", Light::Yellow, "counts the agents"),
        ("Restart=no", Light::Yellow, "allowed: always"),
        ("Restart=on-abnormal", Light::Yellow, "allowed: always"),
        (
            "RestartPreventExitStatus=\nRestartPreventExitStatus=2",
            Light::Yellow,
            "(4)",
        ),
        (
            "StartLimitIntervalSec=5min",
            Light::Yellow,
            "never gives up",
        ),
        (
            "StartLimitIntervalSec=infinity",
            Light::Yellow,
            "never gives up",
        ),
        (
            "RestartSec=5\nStartLimitIntervalSec=25",
            Light::Yellow,
            "never gives up",
        ),
        ("Type=simple", Light::Yellow, "allowed: notify"),
        ("WatchdogSec=0", Light::Yellow, "hangs"),
    ] {
        let found = said(line);
        assert_eq!(found.len(), 1, "{line}: {found:?}");
        assert_eq!(found[0].light, light, "{line}");
        assert!(found[0].sentence.contains(word), "{line}: {found:?}");
        let mend = &found[0].mend;
        let set = mend.split_once("]'; echo '").unwrap().1;
        let set = set.split_once('\'').unwrap().0;
        let mended = unit(&[OURS, "[Service]", line, set]);
        assert_eq!(judged(&mended, false), [], "{line}: {set}");
    }
}

#[test]
fn what_works_is_left_alone() {
    for line in [
        "Restart=on-failure",
        "PrivateTmp=no",
        "NoNewPrivileges=False",
        "MemoryMax=infinity",
        "RestartSec=5\nStartLimitIntervalSec=24",
        "StartLimitIntervalSec=20s",
        "StartLimitIntervalSec=1 fortnight",
        "StartLimitIntervalSec=10\nRestartSec=3",
        // systemd leaves out what is empty.
        "KillMode=\nType=\nRestart=",
        "StartLimitBurst=0\nStartLimitIntervalSec=1h",
        "WatchdogSec=2min",
        "Nice=5",
        "garbage",
        "=",
    ] {
        assert_eq!(said(line), [], "{line}");
    }
    // Quick failures within systemd's own ten seconds.
    assert_eq!(said("StartLimitIntervalSec=10\nRestartSec=1").len(), 1);
    assert!(gives_up(&unit(&["[Service]"])));
}

#[test]
fn nothing_and_garbage_are_judged_by_what_counts_without_them() {
    for text in ["", "\u{0}\u{fffd}[[", "ExecStart"] {
        let found = judged(&unit(&[text]), false);
        let words = [
            "KillMode=control-group",
            "Restart=no",
            "start limit",
            "Type=simple",
        ];
        for word in words {
            assert!(
                found.iter().any(|c| c.sentence.contains(word)),
                "{word}: {found:?}"
            );
        }
        assert_eq!(starts_what(&unit(&[text]).command("/h")), Starts::Unknown);
    }
    // Single runs of a timer need none of it but the first.
    assert_eq!(judged(&unit(&[""]), true).len(), 1);
}

#[test]
fn lines_are_read_as_systemd_reads_them() {
    let text = "[Service]\n Environment = A=1 \"PATH=/a b:/c\" \\\n# no\n; no\n  'HOME=/x'\n\
                Environment=TMUX_TMPDIR=/t\n";
    let mut seen = Environ::default();
    unit(&[text]).environment("/h", &mut seen);
    assert_eq!(said_by(&seen, "PATH"), "/a b:/c");
    assert_eq!(
        said_by(&seen, "HOME") + &said_by(&seen, "TMUX_TMPDIR"),
        "/x/t"
    );
    let mut seen = Environ::default();
    unit(&[text, "Environment=\nEnvironment=PATH=%h/b"]).environment("/h", &mut seen);
    assert_eq!(said_by(&seen, "PATH") + &said_by(&seen, "HOME"), "/h/b");
    let mut seen = Environ::default();
    env_file(
        "# PATH=/no\nPATH=/a:/b\n HOME = \"/x y\"\nexport XDG_DATA_HOME=/z\n",
        &mut seen,
    );
    assert_eq!(
        said_by(&seen, "PATH") + &said_by(&seen, "HOME"),
        "/a:/b/x y"
    );
    assert_eq!(said_by(&seen, "XDG_DATA_HOME"), "");
}

#[test]
fn what_is_started_is_known_by_its_words() {
    for (line, what) in [
        ("/opt/agent-deck-watchdog --verbose", Starts::Ours),
        ("-/opt/agent-deck-watchdog", Starts::Ours),
        ("\"/opt/my bin/agent-deck-watchdog\"", Starts::Ours),
        (
            "/bin/sh -c 'exec ~/bin/agent-deck-watchdog'",
            Starts::ByShell,
        ),
        (
            "/usr/bin/python3 /opt/agent-deck/scripts/watchdog/watchdog.py",
            Starts::Python,
        ),
        ("/opt/agent-deck/watchdog.py", Starts::Python),
        ("/usr/bin/sleep 5", Starts::Unknown),
    ] {
        let text = format!("ExecStart={line}");
        assert_eq!(starts_what(&unit(&[&text]).command("/h")), what, "{line}");
    }
}

#[test]
fn what_systemd_says_of_it_is_judged() {
    let state = |text: &str, runs| {
        let found = Found::default();
        judge_state(text, runs, &found);
        let found = found.0.into_inner();
        let last = found.last().unwrap();
        (found.len(), last.light, last.sentence.clone())
    };
    for (text, runs, count, light, word) in [
        (
            "ActiveState=active\nSubState=running",
            None,
            1,
            Light::Green,
            "active",
        ),
        (
            "NeedDaemonReload=yes\nActiveState=active",
            None,
            2,
            Light::Green,
            "active",
        ),
        (
            "ActiveState=failed\nResult=exit-code",
            None,
            1,
            Light::Red,
            "exit-code",
        ),
        (
            "ActiveState=activating\nSubState=auto-restart",
            None,
            1,
            Light::Red,
            "again and again",
        ),
        (
            "ActiveState=activating\nSubState=start",
            None,
            1,
            Light::Green,
            "being started",
        ),
        (
            "ActiveState=inactive",
            None,
            1,
            Light::Yellow,
            "no watchdog runs",
        ),
        (
            "ActiveState=inactive",
            Some(7),
            1,
            Light::Yellow,
            "not the unit's",
        ),
        ("\u{fffd}", None, 1, Light::Yellow, "no watchdog runs"),
    ] {
        let (found, seen, sentence) = state(text, runs);
        assert_eq!((found, seen), (count, light), "{text}: {sentence}");
        assert!(sentence.contains(word), "{text}: {sentence}");
    }
}
