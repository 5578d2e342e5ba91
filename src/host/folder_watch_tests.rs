//! Tests of `folder_watch.rs`, through `Wait` and with real folders.

use std::os::unix::fs::symlink;
use std::time::Duration;

use super::*;
use crate::host::wait::Wait;
use crate::scratch::{PATIENCE, Scratch, until};

const ID: &str = "1a2b3c4d-1755900000";

struct Deck {
    scratch: Scratch,
    wait: Wait,
}

impl Deck {
    fn new(folders: &[&str]) -> Deck {
        let deck = Deck {
            scratch: Scratch::new(),
            wait: Wait::new().unwrap(),
        };
        for folder in folders {
            fs::create_dir_all(deck.path(folder)).unwrap();
        }
        deck
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    fn watch(&mut self) {
        let (hooks, ours) = (self.path("hooks"), self.path("watchdog"));
        self.wait.watch_folders(&hooks, &ours);
    }

    /// Watches, and takes what that itself brings about.
    fn settle(&mut self) {
        self.watch();
        self.now();
    }

    /// Replaces a file as agent-deck does.
    fn put(&self, folder: &str, name: &str) {
        let aside = self.path(folder).join(format!(".{name}.tmp-278219765"));
        fs::write(&aside, "{}").unwrap();
        fs::rename(aside, self.path(folder).join(name)).unwrap();
    }

    /// Waits for a hint; what came up to then, without what other tests cause.
    fn until(&mut self, wanted: &Hint) -> Vec<Hint> {
        let mut seen = Vec::new();
        until(&format!("{wanted:?} comes"), || {
            self.wait.wait(PATIENCE);
            seen.extend(self.wait.take_hints());
            seen.contains(wanted)
        });
        seen.retain(about_folders);
        seen
    }

    /// What has happened up to now. The system queues events at once.
    fn now(&mut self) -> Vec<Hint> {
        self.wait.wait(Duration::ZERO);
        let mut hints = self.wait.take_hints();
        hints.retain(about_folders);
        hints
    }
}

fn about_folders(hint: &Hint) -> bool {
    match hint {
        Hint::Hook(_) | Hint::Rescan | Hint::Flags => true,
        Hint::Ended(_) | Hint::ServerEnded | Hint::Terminate | Hint::Hangup => false,
    }
}

fn hook(id: &str) -> Hint {
    Hint::Hook(SessionId::parse(id).unwrap())
}

#[test]
fn only_records_put_into_place_count() {
    let mut deck = Deck::new(&["hooks", "watchdog"]);
    deck.settle();
    assert!(
        !deck
            .wait
            .fast_path()
            .is_err_and(|why| why.contains("hooks"))
    );
    for name in [
        "x.json.tmp",
        "x.sid",
        "x.lock",
        "x.generation.json",
        "-x.json",
        "x y.json",
        ".json",
    ] {
        deck.put("hooks", name);
    }
    fs::write(deck.path("hooks/y-1.json"), "in place").unwrap();
    fs::create_dir(deck.path("hooks/.codex-consumed")).unwrap();
    fs::rename(
        deck.path("hooks/.codex-consumed"),
        deck.path("hooks/z-1.json"),
    )
    .unwrap();
    assert!(deck.now().is_empty());
    deck.put("hooks", &format!("{ID}.json"));
    deck.put("hooks", &format!("{ID}.json"));
    assert_eq!(deck.now(), [hook(ID)]);
    fs::read(deck.path("hooks").join(format!("{ID}.json"))).unwrap();
    fs::remove_file(deck.path("hooks").join(format!("{ID}.json"))).unwrap();
    assert!(deck.now().is_empty());
}

/// A folder that is not there holds nothing that could be missed.
#[test]
fn all_is_noticed_once_folders_and_processes_are_watched() {
    let mut deck = Deck::new(&["watchdog"]);
    assert!(!deck.wait.notices(&[]), "before anything is watched");
    deck.settle();
    assert!(deck.wait.notices(&[]));
    assert!(deck.wait.fast_path().is_err(), "it is said all the same");
    let mut child = std::process::Command::new("/bin/sleep")
        .arg("3600")
        .spawn()
        .unwrap();
    let pids = [std::process::id(), child.id()];
    assert!(!deck.wait.notices(&pids));
    let wanted = pids.map(|pid| (crate::host::wait::Watched::Server, pid));
    deck.wait.watch_processes(&wanted);
    assert!(deck.wait.notices(&pids) && deck.wait.notices(&pids[1..]));
    child.kill().unwrap();
    child.wait().unwrap();
    until("the end is noticed", || {
        deck.wait.wait(PATIENCE);
        !deck.wait.notices(&pids)
    });
    assert!(deck.wait.notices(&pids[..1]));
}

#[test]
fn events_of_no_interest_do_not_end_the_wait() {
    let mut deck = Deck::new(&["hooks", "watchdog"]);
    deck.settle();
    fs::write(deck.path("hooks/x.sid.tmp"), "").unwrap();
    fs::write(deck.path("watchdog/state.json"), "").unwrap();
    assert!(!deck.wait.poll(PATIENCE), "it was noise");
}

#[test]
fn a_missing_folder_is_noticed_when_it_comes() {
    let mut deck = Deck::new(&["watchdog"]);
    deck.settle();
    let why = deck.wait.fast_path().unwrap_err();
    assert!(why.contains("hooks: is not there"), "{why}");
    fs::create_dir(deck.path("unrelated")).unwrap();
    assert!(deck.now().is_empty());
    fs::create_dir(deck.path("hooks")).unwrap();
    assert_eq!(deck.until(&Hint::Rescan), [Hint::Rescan]);
    assert!(
        !deck
            .wait
            .fast_path()
            .is_err_and(|why| why.contains("hooks"))
    );
    deck.put("hooks", "a-1.json");
    assert_eq!(deck.until(&hook("a-1")), [hook("a-1")]);
}

#[test]
fn a_folder_deep_below_a_missing_one_is_noticed() {
    let mut deck = Deck::new(&["watchdog"]);
    let hooks = deck.path("share/agent-deck/hooks");
    deck.wait
        .watch_folders(&hooks, &deck.scratch.join("watchdog"));
    deck.now();
    fs::create_dir_all(&hooks).unwrap();
    fs::write(hooks.join("early"), "").unwrap();
    assert!(deck.until(&Hint::Rescan).contains(&Hint::Rescan));
    // It came in three steps, and each of them may have been seen.
    deck.now();
    deck.put("share/agent-deck/hooks", "a-1.json");
    assert_eq!(deck.until(&hook("a-1")), [hook("a-1")]);
}

#[test]
fn a_folder_made_again_or_swapped_is_found_without_a_restart() {
    let mut deck = Deck::new(&["hooks", "watchdog"]);
    deck.settle();
    for round in 0..3 {
        let id = format!("a-{round}");
        fs::remove_dir_all(deck.path("hooks")).unwrap();
        fs::create_dir(deck.path("hooks")).unwrap();
        assert!(deck.until(&Hint::Rescan).contains(&Hint::Rescan));
        deck.put("hooks", &format!("{id}.json"));
        assert!(deck.until(&hook(&id)).contains(&hook(&id)));
        fs::rename(deck.path("hooks"), deck.path(&format!("old-{round}"))).unwrap();
        fs::create_dir(deck.path("hooks")).unwrap();
        assert!(deck.until(&Hint::Rescan).contains(&Hint::Rescan));
        deck.settle();
        deck.put(&format!("old-{round}"), "nobody-1.json");
        deck.put("hooks", &format!("{id}.json"));
        assert_eq!(deck.until(&hook(&id)), [hook(&id)]);
    }
}

#[test]
fn a_link_pointed_elsewhere_is_found_at_the_next_call() {
    let mut deck = Deck::new(&["one", "two", "watchdog"]);
    symlink("one", deck.path("hooks")).unwrap();
    deck.settle();
    deck.put("one", "a-1.json");
    assert_eq!(deck.now(), [hook("a-1")]);
    symlink("two", deck.path("new")).unwrap();
    fs::rename(deck.path("new"), deck.path("hooks")).unwrap();
    deck.watch();
    assert_eq!(deck.now(), [Hint::Rescan]);
    deck.put("one", "b-2.json");
    assert!(deck.now().is_empty());
    deck.put("two", "c-3.json");
    assert_eq!(deck.now(), [hook("c-3")]);
}

#[test]
fn calls_that_change_nothing_bring_nothing() {
    let mut deck = Deck::new(&["hooks/sandbox/a-1", "watchdog/hold"]);
    for _ in 0..5 {
        deck.watch();
        assert!(deck.now().is_empty());
    }
}

#[test]
fn sandboxed_sessions_have_their_own_folder() {
    let mut deck = Deck::new(&["hooks", "watchdog"]);
    deck.settle();
    fs::create_dir_all(deck.path("hooks/sandbox/a-1")).unwrap();
    assert_eq!(deck.until(&Hint::Rescan), [Hint::Rescan]);
    deck.now();
    deck.put("hooks/sandbox/a-1", "b-2.json");
    deck.put("hooks/sandbox/a-1", "a-1.json");
    assert_eq!(deck.until(&hook("a-1")), [hook("a-1")]);
    fs::create_dir(deck.path("hooks/sandbox/b-2")).unwrap();
    assert_eq!(deck.until(&Hint::Rescan), [Hint::Rescan]);
    deck.put("hooks/sandbox/b-2", "b-2.json");
    assert_eq!(deck.until(&hook("b-2")), [hook("b-2")]);
    fs::remove_dir_all(deck.path("hooks/sandbox")).unwrap();
    assert_eq!(deck.until(&Hint::Rescan), [Hint::Rescan]);
}

#[test]
fn flags_that_come_go_or_change_are_noticed() {
    let mut deck = Deck::new(&["hooks", "watchdog/hold"]);
    deck.settle();
    let hold = deck.path("watchdog/hold/a-1");
    let pause = deck.path("watchdog/pause");
    let away = deck.path("away");
    for act in [
        &(|| fs::write(&hold, "").unwrap()) as &dyn Fn(),
        &|| fs::write(&hold, "2030-01-01T00:00:00Z").unwrap(),
        &|| fs::remove_file(&hold).unwrap(),
        &|| fs::write(&pause, "").unwrap(),
        &|| fs::rename(&pause, &away).unwrap(),
        &|| fs::rename(&away, &pause).unwrap(),
        &|| fs::remove_file(&pause).unwrap(),
    ] {
        act();
        assert_eq!(deck.now(), [Hint::Flags]);
    }
    fs::create_dir(deck.path("watchdog/autorestart")).unwrap();
    let hints = deck.until(&Hint::Flags);
    assert!(hints.contains(&Hint::Rescan), "{hints:?}");
    fs::write(deck.path("watchdog/autorestart/b-2"), "").unwrap();
    assert_eq!(deck.until(&Hint::Flags), [Hint::Flags]);
}

#[test]
fn what_we_write_ourselves_is_not_noticed() {
    let mut deck = Deck::new(&["hooks", "watchdog/hold"]);
    deck.settle();
    folder::write_atomic(&deck.path("watchdog/state.json"), b"{}", false).unwrap();
    fs::write(deck.path("watchdog/lock"), "").unwrap();
    let mut logs = crate::host::logs::Logs::new(&deck.path("watchdog"));
    logs.detail(crate::clock::Time(0), "", "x");
    fs::rename(
        deck.path("watchdog/watchdog.log"),
        deck.path("watchdog/watchdog.log.1"),
    )
    .unwrap();
    drop(logs);
    assert!(deck.now().is_empty());
}

#[test]
fn an_overflow_means_look_at_everything() {
    let queue = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let queue: u32 = queue.trim().parse().unwrap();
    if queue > 100_000 {
        eprintln!("skipped: an event queue of {queue} is too long to fill");
        return;
    }
    let mut deck = Deck::new(&["hooks", "watchdog"]);
    deck.settle();
    let names = [deck.path("hooks/a-1.json"), deck.path("hooks/b-2.json")];
    fs::write(&names[0], "").unwrap();
    for n in 0..queue as usize + 10 {
        fs::rename(&names[n % 2], &names[(n + 1) % 2]).unwrap();
    }
    assert!(deck.now().contains(&Hint::Rescan));
    deck.put("hooks", "c-3.json");
    assert_eq!(deck.now(), [hook("c-3")]);
}

#[test]
fn more_hints_than_anybody_wants_become_one() {
    let mut deck = Deck::new(&["hooks", "watchdog"]);
    deck.settle();
    for n in 0..1000 {
        deck.put("hooks", &format!("a-{n}.json"));
    }
    fs::write(deck.path("watchdog/pause"), "").unwrap();
    let hints = deck.now();
    assert!(hints.contains(&Hint::Rescan) && hints.contains(&Hint::Flags));
    assert!(hints.len() < 300, "{}", hints.len());
}
