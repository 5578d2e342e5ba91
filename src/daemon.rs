//! The main job: take the lock, load the memory, then wait, turn, wait.
//!
//! This file does not know what a turn does.

use std::path::Path;
use std::time::Duration;

use crate::capabilities::restart::{UI_CONFIRM, is_critical};
use crate::cli::{Exit, Mode};
use crate::clock::{Clock, Time, spoken};
use crate::config::{Settings, Wanted};
use crate::host::folder;
use crate::host::lock::{self, Holder, Lock, NotTaken};
use crate::host::logs::Logs;
use crate::host::notify::Notify;
use crate::host::wait::{Hint, Wait, Watched};
use crate::machine::memory::{self, Found};
use crate::machine::pulse::Pulse;
use crate::machine::{Machine, eprintln_quietly};
use crate::model::{Level, Sight};
use crate::remember;
use crate::state::State;
use crate::telling::{self, Kind};
use crate::watch::Watch;
use crate::world::World;
use crate::{pace, parents, saving, stop, triage, turn};

/// So long the daemon waits for another instance to leave (DESIGN 2.1).
const LOCK_PATIENCE: Duration = Duration::from_secs(120);
/// Between two tries to take the lock.
const LOCK_AGAIN: Duration = Duration::from_secs(1);
/// While `escalate.sh` runs, its deadline of 60 s is looked after this often.
const TELLING_LOOK: Duration = Duration::from_secs(5);
/// `--once` stays this long for a second look that has to agree with the
/// first, and for what that one takes.
const ONCE_STAYS: Duration = UI_CONFIRM.saturating_add(Duration::from_secs(4));

/// Watches, until a signal or for one turn.
pub fn run(settings: Settings, mode: Mode) -> Exit {
    let clock = Clock::start();
    let folder = settings.folder();
    let mut pulse = match prepare(&settings, mode, &clock) {
        Ok(pulse) => pulse,
        Err(why) => return system(&why),
    };
    if !mode.dry_run {
        match take_lock(&folder, &settings, mode, &clock, &mut pulse) {
            Ok(lock) => pulse.lock = Some(lock),
            Err(exit) => return exit,
        }
    }
    let found = memory::load(&folder, &clock, !mode.dry_run);
    let mut machine = Machine::new(settings, mode, clock, pulse);
    let (state, lost) = match found {
        Found::State(state) => (state, None),
        Found::Lost(state, level, why) => (state, Some((level, why))),
        Found::Refused(why) => return system(&why),
    };
    let mut watch = Watch::new(state, machine.rules());
    watch.last_turn = memory::last_turn(&folder, &machine.clock);
    if let Some((level, why)) = lost {
        memory_lost(&mut watch, &mut machine, level, &why);
    }
    if mode.dry_run {
        // Whoever reads it has not read what was said once.
        let sessions = watch.state.sessions.values_mut();
        sessions.for_each(|memory| memory.said.clear());
    } else {
        telling::forget_handed_over(&mut watch.state, &mut machine);
        parents::recover(&mut watch, &mut machine);
        triage::recover(&mut watch, &mut machine);
        stop::recover(&mut watch, &mut machine);
    }
    greet(&mut machine);
    if mode.once {
        once(&mut watch, &mut machine)
    } else {
        forever(&mut watch, &mut machine)
    }
}

fn prepare(settings: &Settings, mode: Mode, clock: &Clock) -> Result<Pulse, String> {
    if !mode.dry_run {
        folder::prepare(&settings.folder())?;
    }
    let wait = Wait::new().map_err(|e| format!("signals cannot be had: {e}"))?;
    let notify = Notify::from_env();
    Ok(Pulse::new(
        wait,
        notify,
        None,
        clock.clone(),
        settings.calm_poll,
    ))
}

fn system(why: &str) -> Exit {
    eprintln_quietly(&format!("agent-deck-watchdog: {why}"));
    Exit::System
}

/// Takes the lock: `--once` tries once, the daemon for two minutes.
fn take_lock(
    folder: &Path,
    settings: &Settings,
    mode: Mode,
    clock: &Clock,
    pulse: &mut Pulse,
) -> Result<Lock, Exit> {
    let begin = clock.now();
    loop {
        let taken = match Lock::take(&folder.join("lock"), &holder(settings, mode, clock)) {
            Ok(lock) => return Ok(lock),
            Err(NotTaken::Failed(why)) => return Err(system(&why.to_string())),
            Err(taken @ NotTaken::Held(_)) => taken,
        };
        let patient = !mode.once && clock.now().since(begin) < LOCK_PATIENCE;
        if !patient || pulse.wait.terminating() {
            let at = Time(clock.reading().wall);
            let what = if mode.once {
                "this --once run"
            } else {
                "this daemon"
            };
            let sentence = format!("{what} leaves: the lock is {taken}");
            Logs::new(folder).note(at, Level::Info, "watchdog", &sentence);
            return Err(Exit::Taken);
        }
        pulse.rest(LOCK_AGAIN);
    }
}

fn holder(settings: &Settings, mode: Mode, clock: &Clock) -> Holder {
    Holder {
        pid: std::process::id(),
        mode: if mode.once {
            lock::Mode::Once
        } else {
            lock::Mode::Daemon
        },
        poll_s: settings.calm_poll.as_secs(),
        since: Time(clock.reading().wall).rfc3339(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        fast_path: String::new(),
        given: Some(settings.given.clone()),
        turn_ms: 0,
    }
}

fn memory_lost(watch: &mut Watch, machine: &mut Machine, level: Level, why: &str) {
    let sentence = format!("{why}; every budget begins as spent");
    machine.note(level, memory::STATE, &sentence);
    let now = machine.now();
    let state: &mut State = &mut watch.state;
    telling::raise(state, Kind::Lost, "state", level, &sentence, now);
    // Told once; nothing has to happen for it to be over.
    telling::close(state, Kind::Lost, "state");
}

/// The first line. A `--once` run each minute has none.
fn greet(machine: &mut Machine) {
    for warning in machine.settings.warnings() {
        if machine.mode.once {
            machine.detail("settings", &warning);
        } else {
            machine.note(Level::Warning, "settings", &warning);
        }
    }
    if machine.mode.once && !machine.mode.verbose {
        return;
    }
    let deck = machine.agent_deck();
    let settings = &machine.settings;
    let profiles = match &settings.profiles {
        Wanted::All => "all profiles".to_owned(),
        Wanted::Named(named) => {
            let names: Vec<&str> = named.iter().map(|p| p.as_str()).collect();
            format!("profile {}", names.join(", "))
        }
    };
    // Its end is no news, and its absence afterwards none either.
    let stays = if machine.mode.once {
        " for one turn"
    } else {
        ""
    };
    let mut poll = spoken(settings.poll);
    if settings.calm_poll > settings.poll && !machine.mode.once {
        poll.push_str(" to ");
        poll.push_str(&spoken(settings.calm_poll));
    }
    let sentence = format!(
        "{} starts as process {}{stays}: {deck}, {profiles}, poll {poll}, {} between restarts",
        crate::cli::VERSION,
        std::process::id(),
        spoken(settings.spacing)
    );
    machine.note(Level::Info, "watchdog", &sentence);
}

/// One turn with all guardrails and memory, for cron.
fn once(watch: &mut Watch, machine: &mut Machine) -> Exit {
    turn::turn(watch, machine);
    let end = machine.now().plus(ONCE_STAYS);
    // A second look that has to agree, a message or triage that is under way.
    loop {
        let now = machine.now();
        let confirms = |p: &crate::watch::Planned| p.first.is_some() && p.due <= end;
        let look = watch
            .looks
            .iter()
            .filter(|p| confirms(p))
            .map(|p| p.due)
            .min();
        let triaging = machine.is_triaging();
        let telling = machine.is_telling() || triaging.is_some();
        // Pieces that are due by now: their number in a turn is bounded.
        let piece = turn::next_piece(watch).filter(|due| *due <= now);
        if machine.leaving() || (look.is_none() && piece.is_none() && !telling) {
            break;
        }
        let due = look.into_iter().chain(piece).min();
        let rest = due.map_or(LOCK_AGAIN, |due| due.since(now));
        machine.pulse.rest(rest.min(triaging.unwrap_or(rest)));
        turn::between(watch, machine);
    }
    machine.turn_complete();
    machine.check_logs();
    if machine.all_taken() {
        Exit::Taken
    } else {
        once_exit(watch, machine)
    }
}

/// Without a usable agent-deck or profile a `--once` run has failed, and so has
/// one that did nothing since it could not write its memory down (DESIGN 2.1).
fn once_exit(watch: &Watch, machine: &Machine) -> Exit {
    if machine.usable() && watch.remembered {
        Exit::Done
    } else {
        Exit::System
    }
}

/// Waits and turns until a signal, or until another one has taken our place.
fn forever(watch: &mut Watch, machine: &mut Machine) -> Exit {
    let mut fast = None;
    let mut idle = None;
    // Lists and a restart may take minutes; the service manager need not wait.
    machine.pulse.notify.ready();
    loop {
        let begin = machine.now();
        if let Some(exit) = keep_lock(watch, machine) {
            return exit;
        }
        machine.watch_folders();
        turn::turn(watch, machine);
        follow_processes(watch, machine);
        say_fast_path(watch, machine, &mut fast);
        say_idle(watch, machine, &mut idle);
        machine.turn_complete();
        let took = machine.now().since(begin);
        machine.check_logs();
        machine.pulse.beat();
        machine.pulse.progress(fast.as_ref(), took);
        machine.pulse.notify.status(&status(watch));
        wait_for_next(watch, machine, begin);
        if machine.leaving() {
            return leave(watch, machine);
        }
    }
}

/// Serves hints and due looks until the next turn is due.
fn wait_for_next(watch: &mut Watch, machine: &mut Machine, begin: Time) {
    let mut at_once = false;
    loop {
        let mut look = false;
        for hint in machine.pulse.wait.take_hints() {
            let now = machine.now();
            match hint {
                Hint::Ended(id) => turn::ended(watch, &id, now),
                Hint::Hook(id) => at_once |= turn::hook(watch, machine, &id),
                // The rows that died with it are hinted at one by one; the list
                // that follows sees them together.
                Hint::ServerEnded | Hint::Flags => at_once = true,
                Hint::Rescan => {
                    watch.read_panes_again(now);
                    at_once = true;
                }
                Hint::Hangup => {
                    machine.reopen_logs();
                    at_once = true;
                }
                Hint::Terminate => {}
            }
            look = true;
        }
        let now = machine.now();
        if machine.leaving() {
            return;
        }
        let due = turn::next_due(watch).filter(|due| *due <= now).is_some();
        if look || due || machine.is_telling() || machine.is_triaging().is_some() {
            turn::between(watch, machine);
            follow_processes(watch, machine);
        }
        if machine.end_waits() {
            // A death is served before the next list.
            continue;
        }
        let now = machine.now();
        let next = pace::next_turn(watch, machine, begin);
        if at_once || now >= next || machine.leaving() {
            return;
        }
        let due = turn::next_due(watch).unwrap_or(next).min(next);
        let mut rest = due.since(now).max(Duration::from_millis(1));
        if machine.is_telling() {
            // Its deadline is looked after in between.
            rest = rest.min(TELLING_LOOK);
        }
        if let Some(look) = machine.is_triaging() {
            rest = rest.min(look);
        }
        machine.pulse.rest(rest);
    }
}

/// Watches the processes whose end is a hint.
fn follow_processes(watch: &Watch, machine: &mut Machine) {
    if !machine.settings.process_watch {
        return;
    }
    let wanted: Vec<(Watched, u32)> = remember::watched(&watch.decks, &watch.flags, &watch.sight)
        .into_iter()
        .map(|(id, pid)| (id.map_or(Watched::Server, Watched::Agent), pid))
        .collect();
    machine.pulse.wait.watch_processes(&wanted);
}

/// Says once, and at each change, what is left to polling.
fn say_fast_path(watch: &Watch, machine: &mut Machine, said: &mut Option<Result<(), String>>) {
    let fast = match &watch.sight {
        Sight::Blind(why) => Err(format!("processes cannot be seen: {why}")),
        Sight::Seen(_) => machine.pulse.wait.fast_path(),
    };
    if said.as_ref() == Some(&fast) {
        return;
    }
    match (&fast, &said) {
        (Err(why), _) => machine.note(Level::Info, "watchdog", &format!("no fast path: {why}")),
        (Ok(()), Some(Err(_))) => machine.note(Level::Info, "watchdog", "the fast path is back"),
        (Ok(()), Some(Ok(())) | None) => {}
    }
    *said = Some(fast);
}

/// Says once, and at each change, that nothing will be restarted, and why.
fn say_idle(watch: &Watch, machine: &mut Machine, said: &mut Option<&'static str>) {
    let critical = |row| is_critical(row, &watch.flags);
    let idle = if watch.flags.pause.is_some() {
        Some("paused: it watches and tells, and acts on nothing")
    } else if watch.decks.is_empty() || watch.all_rows().any(critical) {
        None
    } else {
        Some("no session is critical, so nothing is restarted")
    };
    if idle != *said {
        machine.note(Level::Info, "watchdog", idle.unwrap_or("is at work again"));
        *said = idle;
    }
}

/// Our lock file was deleted or replaced: take the new one, or leave.
fn keep_lock(watch: &mut Watch, machine: &mut Machine) -> Option<Exit> {
    if machine.mode.dry_run || machine.pulse.lock.as_ref().is_some_and(Lock::still_ours) {
        return None;
    }
    let path = machine.settings.folder();
    let holder = holder(&machine.settings, machine.mode, &machine.clock);
    let again = folder::prepare(&path)
        .map_err(|why| NotTaken::Failed(std::io::Error::other(why)))
        .and_then(|()| Lock::take(&path.join("lock"), &holder));
    match again {
        Ok(lock) => {
            machine.pulse.lock = Some(lock);
            // Whoever removed it may have removed the memory too.
            watch.remembered = false;
            machine.note(
                Level::Warning,
                "lock",
                "was deleted or replaced, and is taken anew",
            );
            None
        }
        Err(NotTaken::Held(_)) => {
            machine.note(
                Level::Critical,
                "lock",
                "another instance has it now; leaving",
            );
            Some(Exit::Taken)
        }
        Err(NotTaken::Failed(why)) => {
            machine.note(
                Level::Critical,
                "lock",
                &format!("cannot be taken anew, leaving: {why}"),
            );
            Some(Exit::System)
        }
    }
}

fn status(watch: &Watch) -> String {
    let rows = watch.all_rows().count();
    let dead = watch
        .state
        .sessions
        .values()
        .filter(|m| m.dead_since.is_some())
        .count();
    format!("{rows} sessions, {dead} critical ones read dead")
}

fn leave(watch: &mut Watch, machine: &mut Machine) -> Exit {
    machine.pulse.notify.stopping();
    saving::save(watch, machine, true);
    machine.note(Level::Info, "watchdog", "ends, as a signal asked");
    Exit::Done
}
