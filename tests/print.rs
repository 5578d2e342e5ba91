//! `print`: the files of `contrib/` come out of the binary as they are, whatever
//! the environment holds; and what they say is understood by those they are
//! made for, where these are installed (systemd, logrotate, mandoc).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod scene;

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use agent_deck_watchdog::commands::print::NAMES;
use common::{Deck, copy_program};
use scene::{impatient, watching};

const PROGRAM: &str = env!("CARGO_BIN_EXE_agent-deck-watchdog");

/// The program with nothing in its environment.
fn bare(program: &Path, what: &str) -> Command {
    let mut command = Command::new(program);
    command
        .args(["print", what])
        .env_clear()
        .stdin(Stdio::null());
    command
}

fn text(output: Output) -> String {
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), complaint.as_str()), (Some(0), ""));
    String::from_utf8(output.stdout).unwrap()
}

/// A tool of this machine, or a word to the reader that it is not there.
fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.push(PathBuf::from("/usr/sbin"));
    let found = folders
        .into_iter()
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    if found.is_none() {
        eprintln!("SKIPPED: {name} is not installed");
    }
    found
}

/// Runs a tool in a small environment and returns all that it says.
fn judged(deck: &Deck, tool: &Path, args: &[&str]) -> String {
    let run = deck.root().join("run");
    fs::create_dir_all(&run).unwrap();
    let output = Command::new(tool)
        .args(args)
        .env_clear()
        .env("HOME", deck.home())
        .env("XDG_RUNTIME_DIR", &run)
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    format!("{said}{:?}", output.status.code())
}

#[test]
fn files_come_out_byte_by_byte_without_any_environment() {
    let files = [
        "agent-deck-watchdog.service",
        "agent-deck-watchdog-failed.service",
        "com.agentdeck.watchdog.plist",
        "crontab.example",
        "logrotate.conf",
        "escalate.sh",
        "triage-claude",
        "agent-deck-watchdog.1",
    ];
    for (what, file) in NAMES.into_iter().zip(files) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib");
        let file = std::fs::read_to_string(path.join(file)).unwrap();
        let printed = text(bare(Path::new(PROGRAM), what).output().unwrap());
        if ["systemd", "launchd", "cron"].contains(&what) {
            // All but the lines that name the program.
            let same = |line: &&str| file.lines().any(|known| known == *line);
            let new: Vec<&str> = printed.lines().filter(|line| !same(line)).collect();
            assert!(new.iter().all(|line| line.contains(PROGRAM)), "{new:?}");
            assert_eq!(new.len(), if what == "cron" { 2 } else { 1 }, "{new:?}");
            assert_eq!(printed.lines().count(), file.lines().count());
        } else {
            assert_eq!(printed, file, "{what}");
        }
        assert!(
            printed.ends_with('\n') && !printed.ends_with("\n\n"),
            "{what}"
        );
    }
}

#[test]
fn the_environment_may_hold_anything() {
    let broken = [
        ("SAFETY_POLL_S", "many"),
        ("AGENT_DECK_ROOT", "relative"),
        ("AGENT_DECK_PROFILE", "a/b"),
        ("HOME", "nowhere"),
        ("TMUX_TMPDIR", "a\nb"),
        ("PATH", ":::relative:\n"),
    ];
    for what in NAMES {
        let output = bare(Path::new(PROGRAM), what)
            .envs(broken)
            .output()
            .unwrap();
        let printed = text(output);
        assert!(
            !printed.contains("relative:") && !printed.contains("a\nb"),
            "{what}"
        );
    }
    for flag in ["--help", "--version"] {
        let output = Command::new(PROGRAM)
            .arg(flag)
            .env_clear()
            .envs(broken)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{flag}");
    }
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    for what in ["unit", "../Cargo.toml", ""] {
        let output = bare(Path::new(PROGRAM), what).output().unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        for known in NAMES {
            assert!(complaint.contains(known), "{complaint}");
        }
        assert_eq!(complaint.lines().count(), 1);
    }
}

#[test]
fn half_a_file_is_not_called_a_file() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = bare(Path::new(PROGRAM), "man")
        .stdout(writer)
        .output()
        .unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    let Ok(full) = File::options().write(true).open("/dev/full") else {
        eprintln!("SKIPPED: no /dev/full");
        return;
    };
    let output = bare(Path::new(PROGRAM), "systemd")
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 1);
}

/// The program under a name that systemd, XML and cron need care for.
fn strange_place(deck: &Deck) -> PathBuf {
    let folder = deck.root().join("a b%h & $c");
    fs::create_dir(&folder).unwrap();
    let place = folder.join("agent-deck-watchdog");
    copy_program(&place);
    place
}

#[test]
fn systemd_is_content_with_the_units() {
    let Some(analyze) = tool("systemd-analyze") else {
        return;
    };
    let deck = impatient();
    deck.install_escalate();
    let strange = strange_place(&deck);
    for program in [Path::new(PROGRAM), &strange] {
        let unit = deck.home().join("agent-deck-watchdog.service");
        let failed = deck.home().join("agent-deck-watchdog-failed.service");
        let environment = [("PATH", "/a b/%h:/usr/bin"), ("TMUX_TMPDIR", "/run/%u")];
        let printed = |what| text(bare(program, what).envs(environment).output().unwrap());
        fs::write(&unit, printed("systemd")).unwrap();
        fs::write(&failed, printed("onfailure")).unwrap();
        for file in [&unit, &failed] {
            let args = ["--user", "--man=no", "verify", file.to_str().unwrap()];
            let said = judged(&deck, &analyze, &args);
            if said.contains("Failed to initialize manager") {
                eprintln!("SKIPPED: systemd-analyze does not work here: {said}");
                return;
            }
            // Of ours alone. %h is the home of the user database, where no
            // escalate.sh need be.
            let ours = |line: &&str| {
                line.contains("agent-deck-watchdog") && !line.contains("escalate.sh is not")
            };
            let said: Vec<&str> = said.lines().filter(ours).collect();
            assert_eq!(said, [""; 0], "{}", file.display());
        }
    }
}

#[test]
fn the_unit_keeps_its_promises() {
    let unit = text(bare(Path::new(PROGRAM), "systemd").output().unwrap());
    let lines: Vec<&str> = unit.lines().collect();
    for line in [
        "Type=notify",
        "WatchdogSec=120",
        "WatchdogSignal=SIGKILL",
        "Restart=always",
        "RestartPreventExitStatus=2 4",
        "StartLimitIntervalSec=0",
        "OOMPolicy=continue",
        "KillMode=process",
        "OnFailure=agent-deck-watchdog-failed.service",
    ] {
        assert!(lines.contains(&line), "{line}");
    }
    let allowed = [
        "Description",
        "StartLimitIntervalSec",
        "OnFailure",
        "ExecStart",
        "EnvironmentFile",
        "Environment",
        "Type",
        "NotifyAccess",
        "WatchdogSec",
        "WatchdogSignal",
        "TimeoutStartSec",
        "Restart",
        "RestartSec",
        "RestartPreventExitStatus",
        "KillMode",
        "TimeoutStopSec",
        "OOMPolicy",
        "TasksMax",
        "WantedBy",
    ];
    // Whatever is added is thought about: agents inherit most of it.
    for line in lines.iter().filter(|line| !line.starts_with(['#', '['])) {
        let key = line.split('=').next().unwrap();
        assert!(key.is_empty() || allowed.contains(&key), "{line}");
    }
}

/// Whether the tags of an XML text are closed as they are opened.
fn well_formed(page: &str) -> Result<(), String> {
    let mut open = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        let bare = |part: &str| {
            let entity = |part: &str| ["amp;", "lt;", "gt;"].iter().any(|e| part.starts_with(e));
            part.contains('>') || part.split('&').skip(1).any(|part| !entity(part))
        };
        if bare(before) {
            return Err(format!("bare mark in {before:?}"));
        }
        let end = if tag.starts_with("<!--") { "-->" } else { ">" };
        let (tag, after) = tag.split_once(end).ok_or(format!("open: {tag:?}"))?;
        rest = after;
        match tag.as_bytes().get(1) {
            Some(b'?' | b'!') => {
                if tag.starts_with("<!--") && tag[4..].contains("--") {
                    return Err(format!("two dashes in {tag:?}"));
                }
            }
            Some(b'/') if open.pop() == Some(&tag[2..]) => {}
            Some(b'/') => return Err(format!("{tag} closes nothing")),
            _ if tag.ends_with('/') => {}
            _ => open.push(tag[1..].split(' ').next().unwrap()),
        }
    }
    if open.is_empty() {
        Ok(())
    } else {
        Err(format!("not closed: {open:?}"))
    }
}

#[test]
fn the_plist_is_well_formed_and_its_shell_runs_this_program() {
    let deck = impatient();
    let strange = strange_place(&deck);
    let path = "/a <b>/\"&:/usr/bin";
    let page = text(
        bare(&strange, "launchd")
            .env("PATH", path)
            .output()
            .unwrap(),
    );
    well_formed(&page).unwrap();
    assert!(well_formed("<a><b></a></b>").is_err() && well_formed("<a>&</a>").is_err());
    let line = page.lines().map(str::trim);
    let line = line
        .into_iter()
        .find(|line| line.starts_with("<string>export"))
        .unwrap();
    let line = line.strip_prefix("<string>").unwrap();
    let line = line.strip_suffix("</string>").unwrap();
    let shell = line
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
        .replace(" 2>>", " --version 2>>");
    fs::create_dir_all(deck.home().join("Library/Logs")).unwrap();
    let output = Command::new("/bin/sh")
        .args(["-c", &shell])
        .env_clear()
        .env("HOME", deck.home())
        .output()
        .unwrap();
    assert!(text(output).starts_with("agent-deck-watchdog "), "{shell}");
    if let Some(xmllint) = tool("xmllint") {
        let file = deck.root().join("plist");
        fs::write(&file, &page).unwrap();
        let args = ["--nonet", "--noout", file.to_str().unwrap()];
        assert_eq!(judged(&deck, &xmllint, &args), "Some(0)");
    }
}

#[test]
fn the_line_for_cron_runs_a_turn() {
    let deck = impatient();
    deck.row("conductor-ops").add();
    let strange = strange_place(&deck);
    let mut command = bare(&strange, "cron");
    let page = text(
        command
            .env("HOME", deck.home())
            .env("PATH", deck.file("bin"))
            .output()
            .unwrap(),
    );
    let mut cron = Command::new("/bin/sh");
    cron.env_clear();
    let mut runs = 0;
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        // As cron reads it: variables are literal, and \% is %.
        if let Some(command) = line.strip_prefix("* * * * * ") {
            cron.args(["-c", &command.replace("\\%", "%")]);
            runs += 1;
        } else if let Some((name, value)) = line.split_once('=') {
            cron.env(name, value.trim_matches('"'));
        }
        assert!(line.len() < 1000);
    }
    assert_eq!(runs, 1);
    text(cron.output().unwrap());
    assert!(deck.watchdog_dir().join("state.json").is_file(), "{page}");
}

#[test]
fn logs_that_logrotate_takes_away_go_on() {
    let Some(logrotate) = tool("logrotate") else {
        return;
    };
    let deck = impatient();
    let id = deck.row("conductor-ops").add();
    let mut daemon = watching(&deck);
    let conf = deck.root().join("logrotate.conf");
    fs::write(
        &conf,
        text(bare(Path::new(PROGRAM), "logrotate").output().unwrap()),
    )
    .unwrap();
    fs::set_permissions(&conf, PermissionsExt::from_mode(0o600)).unwrap();
    let state = deck.root().join("logrotate.state");
    let rotate = || {
        let args = [
            "-f",
            "--state",
            state.to_str().unwrap(),
            conf.to_str().unwrap(),
        ];
        assert_eq!(judged(&deck, &logrotate, &args), "Some(0)");
    };
    rotate();
    assert!(deck.read("watchdog.log.1").contains("starts as process"));
    deck.unset(&id, "pane");
    daemon.wait_for_line("watchdog.log", "agent-deck accepted it");
    let log = deck.watchdog_dir().join("watchdog.log");
    assert_eq!(fs::metadata(&log).unwrap().mode() & 0o777, 0o600);
    rotate();
    assert!(deck.watchdog_dir().join("watchdog.log.2.gz").is_file());
    assert!(deck.read("restart.log.1").contains("accepted"));
    assert!(daemon.stop().success());
    assert!(
        deck.read("watchdog.log")
            .contains("ends, as a signal asked")
    );
}

#[test]
fn the_man_page_has_no_mistakes() {
    let Some(mandoc) = tool("mandoc") else {
        return;
    };
    let deck = impatient();
    fs::create_dir_all(deck.home()).unwrap();
    let page = deck.root().join("page.1");
    fs::write(
        &page,
        text(bare(Path::new(PROGRAM), "man").output().unwrap()),
    )
    .unwrap();
    let args = ["-T", "lint", "-W", "style", page.to_str().unwrap()];
    let said = judged(&deck, &mandoc, &args);
    // Which other pages are installed is not ours.
    let said: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("mandoc:") && line.contains("page.1"))
        .filter(|line| !line.contains("referenced manual not found"))
        .collect();
    assert_eq!(said, [""; 0]);
}

#[test]
fn a_link_to_the_program_is_followed() {
    let deck = Deck::new();
    let link = deck.root().join("link");
    symlink(PROGRAM, &link).unwrap();
    let unit = text(bare(&link, "systemd").output().unwrap());
    if cfg!(target_os = "linux") {
        assert!(unit.contains(&format!("\nExecStart={PROGRAM}\n")), "{unit}");
    }
}
