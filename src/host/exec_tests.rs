//! Tests of `exec.rs`, with real small programs.

use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use super::*;
use crate::scratch::{PATIENCE, Scratch, until};

const LONG: Duration = Duration::from_secs(600);

fn call<'a>(args: &'a [&'a str]) -> Call<'a> {
    Call {
        program: Path::new("/bin/sh"),
        args,
        deadline: LONG,
        most: 1024 * 1024,
        extra_env: &[],
        keep_token: false,
    }
}

fn nap(most: Duration) {
    std::thread::sleep(most.min(Duration::from_millis(5)));
}

fn run_script(script: &str) -> End {
    run(&call(&["-c", script]), &mut nap)
}

/// What it said, when it ended well.
fn said(end: End) -> String {
    match end {
        End::Exited {
            code: Some(0),
            stdout,
            overflow: false,
            ..
        } => String::from_utf8(stdout).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// The process that a script has written down.
fn written_down(path: &Path) -> ProcessMark {
    let mut pid = 0;
    until("a number is written down", || {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        pid = text
            .strip_suffix('\n')
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        pid != 0
    });
    ProcessMark {
        pid,
        ticks: stat(pid).map_or(0, |stat| stat.ticks),
    }
}

#[test]
fn both_outputs_and_the_code_come_back() {
    let end = run_script("echo out; echo err >&2; exit 127");
    assert_eq!(
        end,
        End::Exited {
            code: Some(127),
            signal: None,
            stdout: b"out\n".to_vec(),
            stderr: b"err\n".to_vec(),
            overflow: false,
        }
    );
    let End::Exited {
        code: None, signal, ..
    } = run_script("kill -TERM $$")
    else {
        panic!()
    };
    assert_eq!(signal, Some(15));
}

#[test]
fn it_reads_nothing_stands_in_the_root_and_leads_a_group() {
    assert_eq!(said(run_script("cat; pwd")), "/\n");
    let group = said(run_script(
        "echo $$; ps -o pgid= -p $$ 2>/dev/null || echo $$",
    ));
    let numbers: Vec<u32> = group
        .split_whitespace()
        .map(|n| n.parse().unwrap())
        .collect();
    assert_eq!(numbers[0], numbers[1]);
    assert_ne!(numbers[0], std::process::id());
}

#[test]
fn output_survives_being_opened_anew_by_its_name() {
    assert_eq!(said(run_script("echo one > /dev/stdout")), "one\n");
}

#[test]
fn complaints_are_cut() {
    let End::Exited { stderr, .. } = run_script("head -c 100000 /dev/zero >&2") else {
        panic!()
    };
    assert_eq!(stderr.len(), COMPLAINT_MAX);
}

#[test]
fn our_affairs_are_not_handed_on() {
    let pairs = [
        ("TMUX", "x"),
        ("TMUX_PANE", "x"),
        ("TMUX_TMPDIR", "kept"),
        ("AGENTDECK_PROFILE", "x"),
        ("AGENTDECK_INSTANCE_ID", "x"),
        ("AGENT_DECK_ROOT", "kept"),
        ("CLAUDE_CONFIG_DIR", "x"),
        ("CLAUDECODE", "x"),
        ("TELEGRAM_STATE_DIR", "x"),
        ("TELEGRAM_BOT_TOKEN", "secret"),
        ("NOTIFY_SOCKET", "x"),
        ("WATCHDOG_USEC", "x"),
        ("WATCHDOG_PID", "x"),
        ("INVOCATION_ID", "x"),
        ("JOURNAL_STREAM", "x"),
        ("HOME", "kept"),
        ("PATH", "/opt/tools:/bin"),
    ];
    let ours = || {
        pairs
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
    };
    let names = |env: &[(OsString, OsString)]| {
        env.iter()
            .map(|(name, _)| name.to_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let env = environment(ours(), false);
    assert_eq!(
        names(&env),
        ["TMUX_TMPDIR", "AGENT_DECK_ROOT", "HOME", "PATH"]
    );
    let env = environment(ours(), true);
    assert!(
        TOKEN
            .iter()
            .all(|token| names(&env).contains(&(*token).to_owned()))
    );
}

#[cfg(not(target_os = "macos"))]
#[test]
fn a_bare_path_is_filled_up() {
    for (given, wanted) in [
        (None, "/usr/local/bin:/usr/bin:/bin"),
        (Some(""), "/usr/local/bin:/usr/bin:/bin"),
        (Some("/usr/bin:/bin"), "/usr/bin:/bin:/usr/local/bin"),
        (
            Some("/a:/usr/local/bin:/bin:/usr/bin"),
            "/a:/usr/local/bin:/bin:/usr/bin",
        ),
    ] {
        let ours = given.map(|path| ("PATH".into(), path.into()));
        assert_eq!(
            environment(ours.into_iter(), false),
            [("PATH".into(), wanted.into())]
        );
    }
}

#[test]
fn what_is_added_for_one_call_arrives() {
    let extra = [("TELEGRAM_ESCALATION_CHAT_ID", "-1001")];
    let call = Call {
        extra_env: &extra,
        ..call(&["-c", "echo $TELEGRAM_ESCALATION_CHAT_ID"])
    };
    assert_eq!(said(run(&call, &mut nap)), "-1001\n");
}

#[test]
fn a_late_one_is_ended_with_its_group() {
    let scratch = Scratch::new();
    let file = scratch.join("pid");
    let script = format!("sleep 3600 & echo $! > {}; wait", file.display());
    let mut grandchild = None;
    let deadline = Duration::from_millis(300);
    let args = ["-c", &script];
    let call = Call {
        deadline,
        ..call(&args)
    };
    let end = run(&call, &mut |most| {
        grandchild.get_or_insert_with(|| written_down(&file));
        nap(most);
    });
    assert_eq!(end, End::Late);
    let grandchild = grandchild.unwrap();
    until("the grandchild is gone", || !still_runs(grandchild));
}

#[test]
fn an_answer_after_the_deadline_is_late_also_when_nobody_looked() {
    let call = Call {
        deadline: Duration::from_millis(1),
        ..call(&["-c", "sleep 0.1; echo hi"])
    };
    let mut running = start(&call).unwrap();
    until("it has ended", || running.has_ended());
    assert_eq!(running.poll_or_kill(), Some(End::Late));
    assert_eq!(running.poll_or_kill(), None);
}

#[test]
fn a_grandchild_that_keeps_the_output_holds_nobody_up() {
    let start = Instant::now();
    let end = run_script("sleep 3600 & echo $!");
    assert!(start.elapsed() < PATIENCE);
    let pid: u32 = said(end).trim().parse().unwrap();
    until("the grandchild is gone", || {
        !still_runs(ProcessMark { pid, ticks: 0 })
    });
}

#[test]
fn one_that_says_too_much_is_ended() {
    for script in ["while :; do echo flood; done", "head -c 100000 /dev/zero"] {
        let args = ["-c", script];
        let call = Call {
            most: 10_000,
            ..call(&args)
        };
        let End::Exited {
            stdout, overflow, ..
        } = run(&call, &mut nap)
        else {
            panic!()
        };
        assert!(overflow);
        assert_eq!(stdout.len(), 10_000);
    }
}

#[test]
fn one_that_is_never_ended_runs_past_its_deadline() {
    let scratch = Scratch::new();
    let go = scratch.join("go");
    let script = format!(
        "sleep 3600 & echo $!; while ! [ -e {} ]; do sleep 0.01; done; echo done",
        go.display()
    );
    let args = ["-c", &script];
    let call = Call {
        deadline: Duration::from_millis(1),
        most: 5,
        ..call(&args)
    };
    let mut running = start(&call).unwrap();
    until("it is late", || running.is_late());
    assert_eq!(running.poll_end(), None);
    assert!(still_runs(running.mark()));
    let pid = loop {
        let said = String::from_utf8(contents(&running.stdout, 100)).unwrap();
        if let Some(pid) = said.strip_suffix('\n') {
            break pid.parse().unwrap();
        }
    };
    let grandchild = ProcessMark {
        pid,
        ticks: stat(pid).map_or(0, |stat| stat.ticks),
    };
    std::fs::write(&go, "").unwrap();
    let mut end = None;
    until("it ends by itself", || {
        end = running.poll_end();
        end.is_some()
    });
    let Some(End::Exited {
        code: Some(0),
        stdout,
        overflow: true,
        ..
    }) = end
    else {
        panic!()
    };
    assert_eq!(stdout.len(), 5);
    assert!(
        still_runs(grandchild),
        "what a restart leaves behind is its business"
    );
    rustix::process::kill_process(as_pid(grandchild.pid).unwrap(), Signal::KILL).unwrap();
    assert!(!still_runs(running.mark()));
}

#[test]
fn what_cannot_be_run_is_named() {
    let scratch = Scratch::new();
    let script = |name: &str, text: &str, mode| {
        let path = scratch.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    for (path, why) in [
        (scratch.join("missing"), "does not exist"),
        (script("plain", "#!/bin/sh\n", 0o600), "is not executable"),
        (
            script("orphan", "#!/no/such/interpreter\n", 0o700),
            "its interpreter is missing",
        ),
        (scratch.path().to_owned(), "is a folder"),
    ] {
        let call = Call {
            program: &path,
            ..call(&[])
        };
        // "Text file busy" as long as a child that another test is just
        // starting shares the handle that wrote it.
        let wanted = End::NoProgram(format!("{}: {why}", path.display()));
        until(why, || run(&call, &mut nap) == wanted);
    }
}

#[test]
fn a_full_machine_is_told_from_a_bad_program() {
    for errno in [Errno::AGAIN, Errno::NOMEM, Errno::MFILE] {
        let why = not_started(Path::new("/bin/sh"), &errno.into());
        assert!(
            matches!(&why, NotStarted::NoProcess(text) if text.contains("/bin/sh")),
            "{why}"
        );
    }
    assert!(matches!(
        not_started(Path::new("/bin/sh"), &Errno::TXTBSY.into()),
        NotStarted::NoProgram(_)
    ));
}

#[cfg(target_os = "linux")]
#[test]
fn processes_are_known_by_number_and_start() {
    let mut running = start(&call(&["-c", "sleep 3600"])).unwrap();
    let mark = running.mark();
    assert!(mark.ticks > 0 && still_runs(mark));
    assert!(!still_runs(ProcessMark {
        ticks: mark.ticks + 1,
        ..mark
    }));
    running.kill_group();
    // It is a zombie until it is reaped.
    until("it has ended", || running.has_ended());
    assert!(!still_runs(mark));
    assert!(running.poll_end().is_some());
    assert!(!still_runs(mark));
}
