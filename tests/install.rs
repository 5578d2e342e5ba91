//! From the binary alone to a unit that runs, by the commands of the README; and
//! what `make install` puts where. No service manager is asked.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod scene;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{Deck, copy_program};
use scene::impatient;

const PROGRAM: &str = env!("CARGO_BIN_EXE_agent-deck-watchdog");
const NAME: &str = "agent-deck-watchdog";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The first commands below this heading of the README.
fn readme(heading: &str) -> String {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let part = readme.split(&format!("\n## {heading}\n")).nth(1).unwrap();
    let commands = part.split("```sh\n").nth(1).unwrap();
    commands.split("```").next().unwrap().to_owned()
}

/// Where a `systemctl` lies that only writes down what it is asked.
fn tools(deck: &Deck) -> PathBuf {
    let tools = deck.root().join("a tools%h");
    fs::create_dir(&tools).unwrap();
    let systemctl = tools.join("systemctl");
    fs::write(&systemctl, "#!/bin/sh\necho \"$@\" >>\"$HOME/asked\"\n").unwrap();
    fs::set_permissions(systemctl, PermissionsExt::from_mode(0o700)).unwrap();
    tools
}

/// Follows the README in a folder where the program lies.
fn installed(deck: &Deck, path: &str) {
    let here = deck.root().join("here");
    fs::create_dir_all(deck.home()).unwrap();
    fs::create_dir(&here).unwrap();
    copy_program(&here.join(NAME));
    let commands = readme("Install");
    assert!(commands.lines().count() <= 5, "{commands}");
    let output = Command::new("/bin/sh")
        .args(["-c", &commands])
        .current_dir(&here)
        .env_clear()
        .env("HOME", deck.home())
        .env("PATH", path)
        .env("AGENT_DECK_BIN", deck.file("bin/agent-deck"))
        .env("TMUX_TMPDIR", "/run/50%")
        .output()
        .unwrap();
    // What the last one, doctor, finds in this place is its own matter.
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.is_empty(), "{complaint}");
}

/// The values of a setting in a unit, as systemd reads them.
fn values(unit: &str, key: &str) -> Vec<String> {
    let lines = unit.lines().filter_map(|line| line.strip_prefix(key));
    lines
        .map(|value| value.trim_matches('"').replace("%%", "%"))
        .collect()
}

/// The program as systemd runs it, but for one turn.
fn as_systemd(deck: &Deck, unit: &str) -> Output {
    let mut program = Command::new(&values(unit, "ExecStart=")[0]);
    program.args(["--once", "--verbose"]).env_clear();
    let variables = values(unit, "Environment=");
    let pairs = variables.iter().map(|text| text.split_once('=').unwrap());
    program
        .envs(pairs)
        .env("HOME", deck.home())
        .env("AGENT_DECK_BIN", deck.file("bin/agent-deck"))
        .output()
        .unwrap()
}

#[test]
fn the_commands_of_the_readme_lead_to_a_unit_that_runs() {
    let deck = impatient();
    deck.row("conductor-ops").add();
    let bin = deck.file("bin").display().to_string();
    let path = format!("{}:{bin}:/usr/bin:/bin", tools(&deck).display());
    installed(&deck, &path);
    let asked = fs::read_to_string(deck.home().join("asked")).unwrap();
    let enabled = format!("--user enable --now {NAME}");
    assert!(asked.contains(&enabled), "{asked}");
    let mode = fs::metadata(deck.watchdog_dir()).unwrap().mode();
    assert_eq!(mode & 0o777, 0o700);

    let unit = format!(".config/systemd/user/{NAME}.service");
    let unit = fs::read_to_string(deck.home().join(unit)).unwrap();
    let program = deck.watchdog_dir().join(NAME);
    assert_eq!(values(&unit, "ExecStart="), [program.to_str().unwrap()]);
    deck.dump_environ();
    let output = as_systemd(&deck, &unit);
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), complaint.as_str()), (Some(0), ""));
    let environs = deck.environs();
    assert!(!environs.is_empty());
    for (program, variables) in environs {
        for wanted in [
            format!("PATH={path}:/usr/local/bin"),
            "TMUX_TMPDIR=/run/50%".to_owned(),
        ] {
            assert!(variables.contains(&wanted), "{program}: {variables:?}");
        }
    }
}

/// All files below a folder, with their modes.
fn tree(folder: &Path) -> BTreeMap<String, u32> {
    let mut tree = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            let mode = fs::metadata(&path).unwrap().mode() & 0o777;
            if path.is_dir() {
                assert_eq!(mode, 0o755, "{name}");
                folders.push(path);
            } else {
                tree.insert(name, mode);
            }
        }
    }
    tree
}

#[test]
fn make_install_puts_everything_in_its_place() {
    let version = Command::new("make").arg("--version").output();
    if !version.is_ok_and(|output| output.stdout.starts_with(b"GNU Make")) {
        eprintln!("SKIPPED: GNU make is not installed");
        return;
    }
    let deck = Deck::new();
    let stage = deck.root().join("stage");
    let make = |target: &str| {
        let script = format!(
            "umask 077; exec make -s -C '{}' {target} PREFIX=/usr DESTDIR='{}' BIN='{PROGRAM}'",
            root().display(),
            stage.display()
        );
        let output = Command::new("/bin/sh").args(["-c", &script]).output();
        let output = output.unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{complaint}");
    };
    make("install");
    fs::set_permissions(&stage, PermissionsExt::from_mode(0o755)).unwrap();
    let share = format!("usr/share/{NAME}");
    let wanted = [
        (format!("usr/bin/{NAME}"), 0o755),
        (format!("usr/share/man/man1/{NAME}.1"), 0o644),
        (format!("{share}/{NAME}.service"), 0o644),
        (format!("{share}/{NAME}-failed.service"), 0o644),
        (format!("{share}/com.agentdeck.watchdog.plist"), 0o644),
        (format!("{share}/crontab.example"), 0o644),
        (format!("{share}/escalate.sh"), 0o755),
        (format!("{share}/triage-claude"), 0o755),
        (format!("{share}/logrotate.conf"), 0o644),
    ];
    assert_eq!(tree(&stage), BTreeMap::from(wanted));
    for (file, line) in [
        (
            format!("{NAME}.service"),
            format!("\nExecStart=/usr/bin/{NAME}\n"),
        ),
        (
            "crontab.example".to_owned(),
            format!("* \"/usr/bin/{NAME}\" --once"),
        ),
        (
            "com.agentdeck.watchdog.plist".to_owned(),
            format!("exec \"/usr/bin/{NAME}\""),
        ),
    ] {
        let text = fs::read_to_string(stage.join(&share).join(&file)).unwrap();
        assert!(text.contains(&line), "{file}: {text}");
        let old = format!("/.agent-deck/watchdog/{NAME}");
        assert!(!text.contains(&old), "{file}: {text}");
    }
    // The same again, and it is gone again.
    make("install");
    make("uninstall");
    assert_eq!(tree(&stage), BTreeMap::new());
}
