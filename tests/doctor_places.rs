//! `doctor` and the places around the watchdog: who starts it, where the agents
//! live, whether their screens can be read. The real binary on the stand-in
//! deck; `systemctl`, `loginctl` and `crontab` are scripts of these tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use common::{Deck, screens, wait_for, write};
use serde_json::Value;

const UNIT: &str = include_str!("../contrib/agent-deck-watchdog.service");
/// Where the unit is, below home.
const PLACE: &str = ".config/systemd/user/agent-deck-watchdog.service";

/// What the checks of one name said.
struct Said(Vec<(String, String, String)>);

impl Said {
    /// How bad the worst is, and all sentences.
    fn worst(&self) -> (&str, String) {
        let rank = |result: &str| {
            ["ok", "warning", "problem"]
                .iter()
                .position(|r| *r == result)
        };
        let worst = self
            .0
            .iter()
            .max_by_key(|(result, ..)| rank(result).unwrap());
        let worst = worst.unwrap_or_else(|| panic!("no such check"));
        let texts: Vec<&str> = self.0.iter().map(|(_, text, _)| text.as_str()).collect();
        (&worst.0, texts.join("\n"))
    }

    /// That the worst is of this kind, and that one of them says this.
    fn is(&self, result: &str, word: &str) {
        let (worst, text) = self.worst();
        assert_eq!(worst, result, "{text}");
        assert!(text.contains(word), "{word:?} is not in {text}");
    }

    fn mends(&self) -> impl Iterator<Item = &str> {
        let mends = self.0.iter().map(|(.., mend)| mend.as_str());
        mends.filter(|mend| !mend.is_empty())
    }
}

/// A deck on which nothing starts a watchdog, whatever this machine has.
fn deck() -> Deck {
    let deck = Deck::new();
    std::fs::create_dir_all(deck.home()).unwrap();
    script(&deck, "systemctl", "exit 1");
    script(&deck, "crontab", "exit 1");
    deck
}

/// A program of this deck.
fn script(deck: &Deck, name: &str, body: &str) {
    let file = deck.file("bin").join(name);
    write(
        &file,
        format!("#!/bin/sh\n[ \"$1\" = probe ] && exit 0\n{body}\n"),
    );
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    // A child that another test forks at the wrong moment may have it open.
    wait_for("the script", || {
        Command::new(&file).arg("probe").status().ok()
    });
}

/// A crontab in a file, as `crontab -l` and `crontab -` have it.
fn crontab(deck: &Deck, text: &str) -> PathBuf {
    let file = deck.root().join("crontab");
    write(&file, text);
    let shown = file.display();
    // What was before is read to its end before it is replaced.
    let body = format!(
        "if [ \"$1\" = -l ]; then cat {shown}; else cat >{shown}.new; mv {shown}.new {shown}; fi"
    );
    script(deck, "crontab", &body);
    file
}

fn doctor(deck: &Deck) -> Value {
    let run = deck.run(&["doctor", "--json"]);
    let text = String::from_utf8(run.stdout).unwrap();
    let said: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
    let checks = said["checks"].as_array().unwrap();
    let red = checks.iter().any(|check| check["result"] == "problem");
    assert_eq!(run.status.code(), Some(i32::from(red)), "{text}");
    said
}

fn of(said: &Value, name: &str) -> Said {
    let field = |check: &Value, key: &str| check[key].as_str().unwrap().to_owned();
    let checks = said["checks"].as_array().unwrap().iter();
    let named = checks.filter(|check| check["name"] == name);
    let parts = |c: &Value| (field(c, "result"), field(c, "text"), field(c, "mend"));
    Said(named.map(parts).collect())
}

/// Does what a mend says, as a person in a shell would.
fn paste(deck: &Deck, mend: &str) {
    let mut shell = Command::new("/bin/sh");
    let path = format!("{}:/usr/bin:/bin", deck.file("bin").display());
    shell.env_clear().env("HOME", deck.home()).env("PATH", path);
    let run = shell.args(["-ec", mend]).output().unwrap();
    assert!(run.status.success(), "{mend}: {run:?}");
}

#[test]
fn nothing_starts_it() {
    let deck = deck();
    let said = doctor(&deck);
    of(&said, "started by").is("warning", "nothing starts it");
    let mends = of(&said, "started by");
    assert!(
        mends
            .mends()
            .all(|mend| mend.contains("agent-deck-watchdog"))
    );
    of(&said, "agents").is("ok", "");
    of(&said, "screens").is("ok", "statusLine is not set");
    // The daemon itself is not asked for more.
    let daemon = deck.daemon();
    daemon.wait_for_line("watchdog.log", "starts");
    let state = || (!deck.read("state.json").is_empty()).then_some(());
    deck.wait("a turn", state);
    let said = doctor(&deck);
    let (_, text) = of(&said, "started by").worst();
    assert!(
        text.contains(&format!("process {}", daemon.pid())),
        "{text}"
    );
}

#[test]
fn a_wrong_unit_is_named_and_the_mends_mend_it() {
    let deck = deck();
    script(&deck, "systemctl", "echo ActiveState=active");
    let exe = env!("CARGO_BIN_EXE_agent-deck-watchdog");
    let unit = UNIT.replace("%h/.agent-deck/watchdog/agent-deck-watchdog", exe);
    deck.home_file(PLACE, &unit);
    deck.row("conductor-ops").tool("claude").add();
    let said = doctor(&deck);
    // The agents' program is where only this deck has it.
    of(&said, "unit").is("warning", "does not find claude");
    of(&said, "unit enabled").is("warning", "not enabled");
    of(&said, "unit state").is("ok", "active");
    assert!(of(&said, "started by").0.is_empty());

    let wrong = unit
        .replace("KillMode=process", "KillMode=mixed\nPrivateTmp=yes")
        .replace("Restart=always", "Restart=no")
        .replace("StartLimitIntervalSec=0", "StartLimitIntervalSec=1h")
        .replace("Type=notify", "Type=simple");
    deck.home_file(PLACE, &wrong);
    let env = deck.home_file(".config/agent-deck-watchdog.env", "PATH=/nowhere\n");
    std::fs::set_permissions(&env, PermissionsExt::from_mode(0o644)).unwrap();
    let said = of(&doctor(&deck), "unit");
    for word in [
        "KillMode=mixed",
        "PrivateTmp=yes",
        "Restart=no",
        "start limit",
        "Type=simple",
        "mode 644",
        "does not find claude",
    ] {
        said.is("problem", word);
    }
    assert_eq!(said.0.len(), 7);
    for mend in said.mends() {
        paste(&deck, mend);
    }
    let said = doctor(&deck);
    of(&said, "unit").is("ok", "as it should be");
    assert_eq!(of(&said, "unit").0.len(), 1);
    deck.home_file(
        ".config/systemd/user/default.target.wants/agent-deck-watchdog.service",
        "",
    );
    assert!(of(&doctor(&deck), "unit enabled").0.is_empty());
}

#[test]
fn a_unit_that_starts_something_else() {
    let deck = deck();
    let command = |line: &str| {
        let from = "ExecStart=%h/.agent-deck/watchdog/agent-deck-watchdog";
        deck.home_file(PLACE, &UNIT.replace(from, &format!("ExecStart={line}")));
        of(&doctor(&deck), "unit")
    };
    command("/usr/bin/python3 %h/agent-deck/scripts/watchdog.py").is("problem", "Python");
    command("%h/agent-deck-watchdog").is("problem", "not there or not executable");
    command("/usr/bin/true").is("problem", "starts no watchdog");
    let other = deck.file("bin/agent-deck-watchdog");
    script(
        &deck,
        "agent-deck-watchdog",
        "echo agent-deck-watchdog 0.0.1",
    );
    let (other, version) = (other.display().to_string(), "(agent-deck-watchdog 0.0.1)");
    command(&other).is("warning", version);
    // It is enough that it says the same, wherever it is.
    script(
        &deck,
        "agent-deck-watchdog",
        "echo agent-deck-watchdog 0.1.0",
    );
    let (_, text) = command(&other).worst();
    assert!(!text.contains("version"), "{text}");
    let file = deck.home().join(PLACE);
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/null", &file).unwrap();
    of(&doctor(&deck), "unit").is("problem", "masked");
}

#[test]
fn odd_files_and_programs_leave_every_line_in_place() {
    let deck = deck();
    script(&deck, "systemctl", "exec sleep 600");
    script(
        &deck,
        "crontab",
        "yes '\u{1b}[31m= agent-deck-watchdog' | head -n 100000",
    );
    std::fs::create_dir_all(deck.home().join(PLACE)).unwrap();
    deck.home_file(&format!("{PLACE}.d/a.conf"), "\u{0}[Service\nKillMode");
    std::fs::create_dir_all(deck.home().join(".claude/settings.json")).unwrap();
    deck.home_file(
        "Library/LaunchAgents/com.agentdeck.watchdog.plist",
        "<plist>",
    );
    let said = doctor(&deck);
    of(&said, "unit").is("problem", "not a plain file");
    of(&said, "unit").is("problem", "KillMode=control-group");
    of(&said, "unit state").is("warning", "cannot be asked");
    let launchd = of(&said, "launchd");
    match cfg!(target_os = "macos") {
        true => launchd.is("problem", "starts no watchdog"),
        false => assert!(launchd.0.is_empty()),
    }
    of(&said, "screens").is("ok", "");
    // An agent-deck that never answers.
    script(&deck, "systemctl", "exit 1");
    deck.trap("list").stdout("{").set();
    of(&doctor(&deck), "screens").is("ok", "no screen");
}

#[test]
fn a_bare_line_of_cron_and_its_mends() {
    let deck = deck();
    deck.row("conductor-ops").tool("claude").add();
    let exe = env!("CARGO_BIN_EXE_agent-deck-watchdog");
    let file = crontab(&deck, &format!("0 3 * * * backup\n* * * * * {exe}\n"));
    deck.setting("TMUX_TMPDIR", deck.root().to_str().unwrap());
    let said = of(&doctor(&deck), "cron");
    for word in [
        "without --once",
        "cron gives HOME=",
        "TMUX_TMPDIR",
        "does not find claude",
    ] {
        said.is("problem", word);
    }
    for mend in said.mends() {
        paste(&deck, mend);
    }
    let said = doctor(&deck);
    of(&said, "cron").is("ok", "starts it by the clock");
    assert!(of(&said, "started by").0.is_empty());
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("0 3 * * * backup\n"), "{text}");
    assert!(text.contains(&format!("{exe} --once\n")), "{text}");
    crontab(&deck, "* * * * * python3 ~/agent-deck/watchdog.py\n");
    of(&doctor(&deck), "cron").is("problem", "Python");
}

#[test]
fn the_line_for_cron_that_is_proposed_works() {
    let deck = deck();
    let said = of(&doctor(&deck), "started by");
    let mend: Vec<&str> = said.mends().collect();
    if !mend[0].contains("crontab") {
        // Where systemd runs the machine it proposes a unit.
        assert!(mend[0].contains("systemctl --user enable --now"));
        return;
    }
    crontab(&deck, "");
    paste(&deck, mend[0]);
    let said = doctor(&deck);
    of(&said, "cron").is("ok", "starts it by the clock");
}

#[test]
fn agents_that_live_elsewhere() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let deck = deck();
    deck.start_tmux();
    let there = deck.root().join("there");
    let tools = there.join("tools");
    std::fs::create_dir_all(&tools).unwrap();
    let tool = tools.join("codex");
    write(&tool, "");
    std::fs::set_permissions(&tool, PermissionsExt::from_mode(0o755)).unwrap();
    let (there, path) = (there.to_str().unwrap(), tools.to_str().unwrap());
    let row = deck.row("conductor-ops").tool("codex");
    let agent = [("XDG_CONFIG_HOME", there), ("PATH", path)];
    let id = row.agent_env(&agent).add();
    deck.start_agent(&id);
    let said = doctor(&deck);
    of(&said, "agents' places").is("problem", "another deck");
    of(&said, "agents' PATH").is("warning", "does not find codex");
    assert_eq!(of(&said, "tmux's group").0.len(), 1);
    let mends = of(&said, "agents' places");
    let wanted = format!("export XDG_CONFIG_HOME={there}");
    assert!(mends.mends().any(|mend| mend == wanted), "{wanted}");

    // What counts is where a running one looks.
    let mut daemon = deck.daemon();
    let turn = || (!deck.read("state.json").is_empty()).then_some(());
    deck.wait("a turn", turn);
    deck.setting("XDG_CONFIG_HOME", there);
    deck.setting("PATH", &format!("{path}:{}", deck.file("bin").display()));
    let said = doctor(&deck);
    let running = format!("the running watchdog (process {})", daemon.pid());
    of(&said, "agents' places").is("problem", &running);
    of(&said, "agents' PATH").is("warning", &running);
    assert!(daemon.stop().success());
    let said = doctor(&deck);
    let (_, text) = of(&said, "agents' places").worst();
    assert!(text.contains("look at the same deck"), "{text}");
    of(&said, "agents' PATH").is("ok", "codex");
}

#[test]
fn agents_whose_sessions_are_not_listed() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let deck = deck();
    deck.start_tmux();
    let id = deck.row("conductor-ops").add();
    deck.start_agent(&id);
    deck.setting("XDG_DATA_HOME", deck.root().to_str().unwrap());
    let said = doctor(&deck);
    of(&said, "agents' places").is("warning", "not listed here");
    of(&said, "agents").is("ok", "no agent of a listed session lives");
    assert!(
        of(&said, "agents' places")
            .mends()
            .all(|mend| mend.starts_with("env "))
    );
}

#[test]
fn screens_that_cannot_be_read() {
    let deck = deck();
    let parent = deck.conductor("ops").add();
    let free = screens::free_composer("✻ Welcome back!");
    let long = format!("{free}  SECRET one\n  SECRET two\n");
    let child = |title: &str, pane: &str| deck.row(title).child_of(&parent).waiting_on(pane).add();
    let id = child("tall", &long);
    // Without a status line it may be a menu.
    of(&doctor(&deck), "screens").is("ok", "1 of 1 waiting sessions looked at");
    let settings = r#"{"statusLine":{"type":"command","command":"~/line.sh"}}"#;
    deck.home_file(".claude/settings.json", settings);
    let said = doctor(&deck);
    of(&said, "screens").is("warning", "3 lines stand below its composer");
    of(&said, "screens").is("warning", "~/.claude/settings.json must print one line");
    assert!(!said.to_string().contains("SECRET"));
    // What hides several is said once.
    let other = child("big", &long);
    let said = of(&doctor(&deck), "screens");
    said.is("warning", "not asked: tall, big: 3 lines");
    assert_eq!(said.0.len(), 1);
    deck.remove_row(&other);
    deck.set(&id, "pane", &free);
    of(&doctor(&deck), "screens").is("ok", "statusLine is set");
    deck.set(&id, "pane", screens::draft("SECRET draft"));
    of(&doctor(&deck), "screens").is("warning", "no colours");
    deck.set(&id, "pane", screens::recorded("draft-80x24"));
    of(&doctor(&deck), "screens").is("ok", "");
    deck.set(&id, "pane", screens::plain());
    of(&doctor(&deck), "screens").is("warning", "not where it should be");
    deck.set(&id, "pane", screens::dialog());
    of(&doctor(&deck), "screens").is("ok", "");
    for n in 0..6 {
        child(&format!("child-{n}"), &free);
    }
    let reads = || {
        let calls = deck.ledger().into_iter();
        calls
            .filter(|call| call.args.contains("session output"))
            .count()
    };
    let before = reads();
    of(&doctor(&deck), "screens").is("ok", "5 of 7 waiting sessions looked at");
    assert_eq!(reads() - before, 5);
    deck.trap("output").stdout("{").set();
    of(&doctor(&deck), "screens").is("ok", "5 could not be read");
    assert!(!deck.watchdog_dir().exists());
}
