//! `doctor` on the stand-in deck: a healthy one has no problem, and each thing
//! that is broken is named in one line, with a command that mends it. It changes
//! nothing. Does not know how anything is found out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;
mod ladder;
mod others;
mod ours;
#[path = "../common/past.rs"]
mod past;
mod scenarios;
#[path = "../scene/mod.rs"]
mod scene;
mod telling;

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use common::{Deck, write};
use past::run;
use scene::{watching, with_agents};
use serde_json::Value;

/// What depends on the machine that runs the test, too: who starts the watchdog,
/// where its other agents live.
const AROUND: [&str; 12] = [
    "agents",
    "launchd",
    "linger",
    "started by",
    "unit",
    "unit enabled",
    "unit state",
    "cron",
    "agents' places",
    "agents' PATH",
    "tmux's group",
    "screens",
];

/// What `doctor` found: name, result, text, mend.
struct Found(Vec<[String; 4]>);

fn doctor(deck: &Deck) -> Found {
    examined(deck, &["doctor", "--json"])
}

fn examined(deck: &Deck, args: &[&str]) -> Found {
    let run = run(deck, args);
    assert_eq!(run.err, "");
    let found: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(found["format"], 1);
    let check = |check: &Value| {
        ["name", "result", "text", "mend"].map(|key| check[key].as_str().unwrap().to_owned())
    };
    let checks = found["checks"].as_array().unwrap().iter().map(check);
    let found = Found(checks.collect());
    let problem = found.0.iter().any(|check| check[1] == "problem");
    assert_eq!(run.code(), Some(i32::from(problem)), "{}", found.said());
    found
}

impl Found {
    fn said(&self) -> String {
        self.0
            .iter()
            .map(|check| check.join(" | ") + "\n")
            .collect()
    }

    /// The one check of that name with this result; text and mend.
    #[track_caller]
    fn one(&self, name: &str, result: &str) -> (&str, &str) {
        let fits = |check: &&[String; 4]| check[0] == name && check[1] == result;
        let found: Vec<_> = self.0.iter().filter(fits).collect();
        assert_eq!(found.len(), 1, "{result} {name}:\n{}", self.said());
        (&found[0][2], &found[0][3])
    }

    /// The problems, but for what follows from them, and for what belongs to the
    /// machine that runs the test.
    fn trouble(&self) -> Vec<&str> {
        let follows = |check: &[String; 4]| check[2].starts_with("impossible as long as");
        let red = self.0.iter().filter(|check| !AROUND.contains(&&*check[0]));
        let red = red.filter(|check| check[1] == "problem" && !follows(check));
        red.map(|check| check[0].as_str()).collect()
    }

    /// There is one problem, of that name; its text and mend.
    #[track_caller]
    fn only(&self, name: &str) -> (&str, &str) {
        assert_eq!(self.trouble(), [name], "{}", self.said());
        self.one(name, "problem")
    }
}

/// Everything is set up: a conductor and a child with agents, hooks, a way to
/// tell, tmux in PATH.
fn healthy() -> (Deck, String) {
    let deck = with_agents();
    deck.setting("MIN_GLOBAL_RESTART_INTERVAL_S", "60");
    deck.setting("TELEGRAM_ESCALATION_CHAT_ID", "42");
    deck.install_escalate();
    let tmux = deck.file("bin/tmux");
    write(&tmux, "#!/bin/sh\n");
    fs::set_permissions(tmux, PermissionsExt::from_mode(0o700)).unwrap();
    let hook = r#"[{"hooks":[{"type":"command","command":"agent-deck hook-handler"}]}]"#;
    let events = [
        "SessionStart",
        "UserPromptSubmit",
        "PermissionRequest",
        "Stop",
        "SessionEnd",
    ];
    let events = events.map(|event| format!("\"{event}\":{hook}")).join(",");
    deck.home_file(
        ".claude/settings.json",
        &format!("{{\"hooks\":{{{events}}}}}"),
    );
    let id = deck.conductor("ops").add();
    deck.start_agent(&id);
    let child = deck.row("child").child_of(&id).add();
    deck.start_agent(&child);
    (deck, id)
}

/// All files of the home, but for what the stand-in writes down.
fn files(deck: &Deck) -> Vec<(PathBuf, Vec<u8>)> {
    let mut folders = vec![deck.home()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let named = |name: &str| path.file_name().unwrap() == name;
            match path.is_dir() {
                true => folders.push(path),
                false if named("ledger") || named("ended") => {}
                false => files.push((path.clone(), fs::read(&path).unwrap_or_default())),
            }
        }
    }
    files.sort();
    files
}

/// The file was written so many seconds ahead of now.
fn written_ahead(path: &Path, seconds: u64) {
    let file = File::options().write(true).open(path).unwrap();
    let ahead = Duration::from_secs(seconds);
    file.set_modified(SystemTime::now() + ahead).unwrap();
}

#[test]
fn a_healthy_deck_has_no_problem_and_stays_as_it_is() {
    let (deck, _) = healthy();
    let before = files(&deck);
    let found = doctor(&deck);
    assert_eq!(found.trouble(), [""; 0], "{}", found.said());
    assert!(files(&deck) == before);
    // Nobody watches yet; all else is well.
    let ours = |found: &Found| -> Vec<[String; 4]> {
        let ours = found.0.iter().filter(|check| !AROUND.contains(&&*check[0]));
        ours.cloned().collect()
    };
    for check in ours(&found) {
        let well = check[1] == "ok" || check[0] == "watchdog";
        assert!(well, "{}", found.said());
        assert_eq!(check[1] == "ok", check[3].is_empty(), "{check:?}");
    }
    for (name, said) in [
        ("version", "1.14.0"),
        ("sessions", "profile default lists 2, 2 of them alive"),
        ("restart", "on; 1 of 2 sessions are critical"),
        ("patrol", "on; of 2 sessions, children that may wait: 1"),
        ("pollers", "on; no living session owns a Telegram bot"),
        ("fast path", "on"),
    ] {
        assert_eq!(found.one(name, "ok").0, said);
    }
    let calls: Vec<String> = deck.ledger().into_iter().map(|call| call.args).collect();
    let asked = [
        "version",
        "profile list --json",
        "profile list --json",
        "-p default list --json",
    ];
    assert_eq!(calls[..4], asked);
    // One screen is looked at.
    let pane = |call: &String| call.starts_with("-p default session output ");
    assert!(calls[4..].iter().all(pane), "{calls:?}");
    // With a watchdog beside it nothing is amiss at all.
    let mut daemon = watching(&deck);
    let found = doctor(&deck);
    let well = ours(&found).iter().all(|check| check[1] == "ok");
    assert!(well, "{}", found.said());
    assert!(daemon.stop().success());
    let text = run(&deck, &["doctor"]).out;
    assert!(text.contains("ok      version          1.14.0\n"), "{text}");
    // Only what can be pasted, and paths, may be longer.
    let short = |line: &&str| !line.contains('/');
    for line in text.lines().filter(short) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn a_profile_that_is_not_there_is_named_with_those_that_are() {
    let (deck, _) = healthy();
    deck.profile("night");
    deck.setting("AGENT_DECK_PROFILE", "nihgt");
    let found = doctor(&deck);
    let (text, mend) = found.only("profile");
    assert!(
        text.contains("nihgt") && text.contains("default, night"),
        "{text}"
    );
    assert_eq!(mend, "export AGENT_DECK_PROFILE=default");
    found.one("restart", "problem");
    assert!(!deck.file("profiles/nihgt").exists());
}

#[test]
fn tmux_that_is_not_in_path_is_missed() {
    let (deck, _) = healthy();
    deck.uninstall("tmux");
    let found = doctor(&deck);
    // Where the machine has one agent-deck finds it.
    let usual = ["/usr/local/bin/tmux", "/usr/bin/tmux", "/bin/tmux"];
    let (text, mend) = match usual.iter().any(|tmux| Path::new(tmux).exists()) {
        true => found.one("tmux", "warning"),
        false => found.one("tmux", "problem"),
    };
    assert!(text.contains("in PATH"), "{text}");
    assert!(
        mend.starts_with("export PATH=") || mend.ends_with(" tmux"),
        "{mend}"
    );
}

#[test]
fn hook_records_that_go_elsewhere_are_found() {
    let (deck, id) = healthy();
    let hooks = deck.file("hooks");
    let away = deck.home().join("hooks away");
    fs::rename(&hooks, &away).unwrap();
    let found = doctor(&deck);
    let (_, mend) = found.only("hook folder");
    assert_eq!(mend, format!("mkdir -p -m 700 {}", hooks.display()));
    fs::rename(&away, &hooks).unwrap();
    deck.hook(&id, "Stop", "waiting", common::now());
    doctor(&deck).one("hook folder", "ok");
    // An old folder is in the way.
    let old = deck.home().join(".agent-deck/hooks");
    fs::create_dir_all(&old).unwrap();
    let root = deck.home().join(".agent-deck");
    deck.setting("AGENT_DECK_ROOT", root.to_str().unwrap());
    let found = doctor(&deck);
    let (text, mend) = found.only("hook folder");
    assert!(text.contains(hooks.to_str().unwrap()), "{text}");
    assert_eq!(mend, format!("mv {0} {0}.old", old.display()));
}

#[test]
fn hooks_that_are_not_installed_are_a_warning() {
    let (deck, _) = healthy();
    fs::remove_file(deck.home().join(".claude/settings.json")).unwrap();
    let found = doctor(&deck);
    assert_eq!(found.trouble(), [""; 0]);
    let mend = found.one("hooks", "warning").1;
    let program = deck.file("bin/agent-deck");
    assert_eq!(mend, format!("{} hooks install", program.display()));
}

#[test]
fn a_wrong_tmux_folder_is_named_with_the_right_one() {
    let (deck, _) = healthy();
    let other = deck.home_folder("other tmux");
    deck.setting("TMUX_TMPDIR", &other);
    write(&deck.file("no-tmux"), "");
    let found = doctor(&deck);
    let (text, mend) = found.only("tmux server");
    assert!(text.contains(&other), "{text}");
    assert_eq!(mend, "unset TMUX_TMPDIR");
    // The running watchdog has another one than this shell.
    fs::remove_file(deck.file("no-tmux")).unwrap();
    deck.setting("TMUX_TMPDIR", &other);
    let mut daemon = watching(&deck);
    deck.setting("TMUX_TMPDIR", "");
    let found = doctor(&deck);
    let (text, mend) = found.one("its variables", "warning");
    assert!(text.contains("TMUX_TMPDIR="), "{text}");
    assert_eq!(mend, format!("export TMUX_TMPDIR='{other}'"));
    let wrong = found.0.iter().any(|check| {
        check[0] == "tmux server"
            && check[1] == "problem"
            && check[2].contains("the running watchdog")
    });
    assert!(wrong, "{}", found.said());
    assert!(daemon.stop().success());
}

#[test]
fn an_agent_says_itself_where_its_tmux_is() {
    let deck = with_agents();
    let theirs = deck.home_folder("their tmux");
    let socket = format!("{theirs}/tmux-0/default,1,0");
    let id = deck.conductor("ops").agent_env(&[("TMUX", &socket)]).add();
    deck.start_agent(&id);
    let found = doctor(&deck);
    let (_, mend) = found.one("tmux server", "problem");
    assert_eq!(mend, format!("export TMUX_TMPDIR='{theirs}'"));
    deck.setting("TMUX_TMPDIR", &theirs);
    doctor(&deck).one("tmux server", "ok");
}

#[test]
fn looking_from_the_wrong_place() {
    let (deck, _) = healthy();
    write(&deck.file("no-tmux"), "");
    let found = doctor(&deck);
    let (text, mend) = found.only("sessions");
    assert!(text.contains("read dead while their agents live"), "{text}");
    assert!(mend.starts_with("kill -USR1 "), "{mend}");
    deck.kill_tmux();
    fs::remove_file(deck.file("no-tmux")).unwrap();
    deck.row("seen by nobody").add();
    let found = doctor(&deck);
    assert!(
        found.only("sessions").0.contains("container"),
        "{}",
        found.said()
    );
}

#[test]
fn an_agent_deck_that_cannot_be_used_is_not_asked_further() {
    let (deck, _) = healthy();
    deck.trap("version").exit(1).set();
    let found = doctor(&deck);
    found.one("version", "warning");
    deck.no_trap("version");
    write(&deck.file("version"), "v1.9.23");
    let found = doctor(&deck);
    let (text, mend) = found.only("version");
    assert!(text.contains("1.9.24"), "{text}");
    assert!(mend.ends_with("agent-deck update"), "{mend}");
    write(&deck.file("version"), "v1.13.0");
    let found = doctor(&deck);
    assert_eq!(found.trouble(), [""; 0]);
    found.one("patrol", "warning");
    let nowhere = deck.home().join("nowhere");
    deck.setting("AGENT_DECK_BIN", nowhere.to_str().unwrap());
    let calls = deck.ledger().len();
    let found = doctor(&deck);
    let (_, mend) = found.only("agent-deck");
    // In PATH, or where it usually is.
    let found_there = mend.starts_with("export AGENT_DECK_BIN=/") && mend.ends_with("/agent-deck");
    assert!(found_there, "{mend}");
    assert_eq!(deck.ledger().len(), calls);
}

#[test]
fn a_configuration_that_does_not_count_is_a_problem() {
    let (deck, _) = healthy();
    let file = deck.config("[claude\n");
    let found = doctor(&deck);
    let (text, mend) = found.only("config.toml");
    assert!(text.contains("line 1"), "{text}");
    assert_eq!(mend, format!("\"${{EDITOR:-vi}}\" {}", file.display()));
    deck.config("[claude]\nenv_file = 3\n");
    assert!(doctor(&deck).only("config.toml").0.contains("wrong type"));
    deck.config("[claude]\nenv_file = \"/nowhere/x\"\n");
    doctor(&deck).one("config.toml", "warning");
}

#[test]
fn poller_never_starts() {
    let (deck, _) = healthy();
    deck.live_ps();
    let folder = deck.home_folder("tg/bot");
    deck.meta_env("bot", "TELEGRAM_STATE_DIR", &folder);
    let env = [("TELEGRAM_STATE_DIR", folder.as_str())];
    let id = deck.conductor("bot").telegram().agent_env(&env).add();
    deck.start_agent(&id);
    // It may be starting.
    doctor(&deck).one("poller", "ok");
    let other = deck.home_folder("tg/hears");
    let env = [("TELEGRAM_STATE_DIR", other.as_str())];
    let hears = deck.row("hears").telegram().agent("poller");
    let hears = hears.agent_env(&env).add();
    deck.start_agent(&hears);
    let pid = deck.wait_for_pollers(&hears, 1)[0];
    let found = doctor(&deck);
    let polls = format!("hears: process {pid} polls, folder {other}");
    assert!(
        found.said().contains(&format!("poller | ok | {polls}")),
        "{}",
        found.said()
    );
    deck.remove_row(&hears);
    let orphan = deck.orphan_poller(folder.clone());
    let found = doctor(&deck);
    let (text, mend) = found.only("poller");
    assert!(text.contains("steals"), "{text}");
    assert_eq!(mend, format!("kill {}", orphan.pid()));
    drop(orphan);
    deck.uninstall("ps");
    let found = doctor(&deck);
    assert!(
        found.only("pollers").0.contains("no ps"),
        "{}",
        found.said()
    );
    // Without agents it is not known when it began.
    let deck = Deck::new();
    deck.live_ps();
    deck.conductor("bot").telegram().add();
    let found = doctor(&deck);
    let (text, mend) = found.one("poller", "problem");
    assert!(text.contains("enabledPlugins"), "{text}");
    let plugin = "claude plugin enable telegram@claude-plugins-official && ";
    assert!(
        mend.starts_with(plugin) && mend.contains("session restart"),
        "{mend}"
    );
}
