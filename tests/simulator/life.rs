//! What a seed makes happen: to sessions, to programs, to clocks, to the
//! watchdog itself; and how the world heals in the end.
//!
//! This file does not know what the watchdog should make of it.

use agent_deck_watchdog::model::{Restarted, SessionId, Status, Substate};
use agent_deck_watchdog::world::{Channel, Sent};

use crate::chance::Chance;
use crate::deck::{Answer, Lie, OnStart, Row, Stored, Terminal};
use crate::disk::Written;
use crate::faults::Fault;
use crate::run::Play;
use crate::sim::{Hint, OTHER_SERVER, Sim};
use crate::{life_bots, life_children};

const MINUTE: u64 = 60_000;

/// The sessions of a seed: critical ones, workers, an opted-in one.
pub fn deck(chance: &mut Chance, sim: &mut Sim) {
    let profiles = chance.within(1, 2);
    let sessions = chance.within(3, 9);
    if chance.percent(50) {
        // Much happens within the time of a seed.
        sim.checks.threshold = 180_000;
        sim.checks.nudge_dedup = 900_000;
        sim.checks.poller_dedup = 600_000;
    }
    for number in 0..sessions {
        let profile = if number % profiles == 0 {
            "default"
        } else {
            "night"
        };
        add(chance, sim, number, profile);
    }
    if chance.percent(30) {
        sim.ui = Some(50);
    }
    sim.process_watch = chance.percent(80);
    if chance.percent(20) {
        sim.channel = Channel::LocalOnly;
    }
}

fn add(chance: &mut Chance, sim: &mut Sim, number: u64, profile: &str) {
    let created = sim.clocks.wall() / 1000 - chance.within(0, 1) * 400_000 - number;
    let id = SessionId::parse(&format!("{number:08x}-{created}")).unwrap();
    let kind = chance.within(0, 5);
    let row = sim.add(&id, profile, &format!("worker-{number}"));
    match kind {
        0 => row.title = format!("conductor-{number}"),
        1 => row.group = "conductor".to_owned(),
        2 => row.group = "watchers/night".to_owned(),
        3 => row.is_conductor = true,
        4 => sim.files.autorestart.push(id.clone()),
        _ => {}
    }
    if kind >= 3 && chance.percent(70) {
        life_children::born(chance, sim.row(&id));
    }
    if kind == 0 && chance.percent(70) || chance.percent(15) {
        life_bots::born(chance, sim, &id, number);
    }
}

/// Somebody who is there.
fn anybody(chance: &mut Chance, sim: &Sim) -> Option<SessionId> {
    let there: Vec<&Row> = sim.rows.iter().filter(|row| !row.removed).collect();
    chance.pick(&there).map(|row| row.id.clone())
}

/// Something happens.
pub fn happens(chance: &mut Chance, play: &mut Play) {
    let Some(id) = anybody(chance, &play.sim) else {
        return;
    };
    let sim = &mut play.sim;
    match chance.within(0, 99) {
        0..=29 => return life_children::happens(chance, sim),
        30..=44 => return life_bots::happens(chance, sim),
        // Quiet, so that somebody waits long enough.
        45..=54 => return,
        _ => {}
    }
    match chance.within(0, 99) {
        0..=13 => sim.end_agent(&id),
        14..=19 => sim.kill_terminal(&id, chance.within(0, 8000)),
        20..=22 => {
            sim.row(&id).on_start = OnStart::Ends(chance.within(200, 9000));
            sim.end_agent(&id);
        }
        23..=24 => sim.kill_server(chance.within(0, 4000)),
        25..=33 => lies(chance, sim, &id),
        34..=47 => user(chance, sim, &id),
        48..=55 => screens(chance, sim, &id),
        56..=57 => {
            let number = sim.rows.len() as u64;
            add(chance, sim, number, "default");
        }
        58..=69 => programs(chance, sim, &id),
        70..=76 => flags(chance, sim, &id),
        77..=84 => machine(chance, play),
        _ => answers(chance, sim, &id),
    }
}

/// The printed status says what is not so.
fn lies(chance: &mut Chance, sim: &mut Sim, id: &SessionId) {
    let lasts = chance.within(1000, 120_000);
    let lies = [
        Lie::Leftover,
        Lie::Banner,
        Lie::LostName,
        Lie::Elsewhere,
        Lie::Unfamiliar,
    ];
    let lie = *chance.pick(&lies).unwrap_or(&Lie::Leftover);
    if chance.percent(30) {
        sim.clears(id);
        return;
    }
    if chance.percent(20) {
        sim.row(id).unlisted = sim.truth() + chance.within(1000, 700_000);
        sim.tell_history(format!("{id} is left out of lists"));
        // One that was gone for ten minutes is news when it is back.
        sim.checks.user_acts(id);
        return;
    }
    let truth = sim.truth();
    let row = sim.row(id);
    let Some(agent) = row.agent.as_mut().filter(|_| row.lie.is_none()) else {
        return;
    };
    if lie == Lie::Elsewhere {
        agent.server = OTHER_SERVER;
    }
    row.lie = Some(lie);
    row.changed = truth;
    sim.tell_history(format!("{id} lies: {lie:?}"));
    let id = id.clone();
    sim.after(lasts, move |sim| sim.speaks_true(&id, lie));
}

/// The user, at the command line or in the terminal interface.
fn user(chance: &mut Chance, sim: &mut Sim, id: &SessionId) {
    let save = if chance.percent(80) {
        chance.within(60, 800)
    } else {
        chance.within(800, 20_000)
    };
    match chance.within(0, 9) {
        0..=2 => sim.user_ends(id, "stop", save),
        3 => sim.user_ends(id, "archive", save),
        4 => sim.user_ends(id, "remove", save),
        5..=6 => {
            sim.ui.get_or_insert(50);
            sim.stopped_in_the_interface(id, chance.within(60, 900));
        }
        7 => {
            sim.restart(id, false);
        }
        _ => sim.user_starts(id),
    }
}

/// What stands on a screen.
fn screens(chance: &mut Chance, sim: &mut Sim, id: &SessionId) {
    let truth = sim.truth();
    let what = chance.within(0, 4);
    let row = sim.row(id);
    if row.terminal == Terminal::Gone || row.lie.is_some() || row.agent.is_none() {
        return;
    }
    row.changed = truth;
    match what {
        // What a sandbox shows is not judged.
        0 if !row.sandboxed => {
            row.terminal = Terminal::Shell;
            row.agent_changed = truth;
            let pid = row.agent.map_or(0, |agent| agent.pid);
            sim.agent_over(id, pid);
        }
        1 => {
            row.sandboxed = true;
            sim.end_agent(id);
        }
        2 => row.auth_hold = true,
        3 => row.substate = Some(Substate::UsageLimit),
        _ => row.word = Status::Idle,
    }
    sim.tell_history(format!("on the screen of {id}: {what}"));
}

/// Programs that do not answer, eyes and disks that fail.
fn programs(chance: &mut Chance, sim: &mut Sim, id: &SessionId) {
    let until = sim.truth() + chance.within(5000, 2 * MINUTE);
    let faults = [
        Fault::Hangs,
        Fault::Garbage,
        Fault::Fails,
        Fault::NoProgram,
        Fault::Empty,
    ];
    let fault = *chance.pick(&faults).unwrap_or(&Fault::Hangs);
    let kind = chance.within(0, 7);
    sim.tell_history(format!("programs fail: {kind} {fault:?} until {until}"));
    match kind {
        0..=2 => {
            let profile = sim.row(id).profile.clone();
            sim.faults.list.insert(profile, (fault, until));
        }
        3..=4 => {
            sim.faults.show.insert(id.clone(), (fault, until));
        }
        5 => sim.faults.profiles = Some((fault, until)),
        6 => sim.faults.blind = until,
        _ if sim.disk_is_good => {}
        _ => sim.faults.unsaved = until,
    }
}

/// The user's flag files.
fn flags(chance: &mut Chance, sim: &mut Sim, id: &SessionId) {
    let truth = sim.truth();
    let until = chance
        .percent(50)
        .then(|| truth + chance.within(MINUTE, 10 * MINUTE));
    let files = &mut sim.files;
    files.changed = truth;
    match chance.within(0, 9) {
        0..=1 => files.pause = Some((truth, until)),
        2..=3 => files.pause = None,
        4 => files.hold.push((id.clone(), until)),
        5..=6 => files.hold.clear(),
        7 => files.autorestart.push(id.clone()),
        8 => files.autorestart.retain(|other| other != id),
        _ => files.clear.push(id.clone()),
    }
    let text = format!("flags: pause {:?}, hold {:?}", files.pause, files.hold);
    sim.tell_history(text);
    sim.hints.push(Hint::Flags);
}

/// The machine's clocks, its sleep, its end; the watchdog's end.
fn machine(chance: &mut Chance, play: &mut Play) {
    // While nothing can be written a crash forgets what nobody could keep.
    let kept = play.sim.faults.unsaved < play.sim.truth()
        && play
            .watch
            .as_ref()
            .is_none_or(|watch| watch.saved == watch.state);
    let sim = &mut play.sim;
    // Across a boot only the wall clock tells how long it was.
    let honest = sim.clocks.step <= sim.saved_step;
    match chance.within(0, 11) {
        0..=1 => sim.steps(chance.within(1000, 7_200_000) as i64),
        2..=3 => sim.steps(-(chance.within(1000, 7_200_000) as i64)),
        4 => sim.sleep(chance.within(MINUTE, 60 * MINUTE)),
        5 if kept && honest => play.reboot(chance.within(10_000, 2 * MINUTE)),
        6..=7 if kept => play.crashed(chance.within(100, 40_000)),
        8 if kept => sim.after(chance.within(0, 5000), |sim| sim.leaving = true),
        11 if kept => {
            // Half a file, or none at all where something was done.
            let half = sim
                .disk
                .as_ref()
                .map(Written::bytes)
                .map(|bytes| Written::Bytes(bytes[..bytes.len() / 2].to_vec()));
            sim.disk = half.filter(|_| chance.percent(50));
            sim.durable_disk.clone_from(&sim.disk);
            // What was told is news again.
            sim.checks.message_lost();
            play.crashed(chance.within(100, 4000));
        }
        9 if kept => sim.crash_at = Some((sim.saves + chance.within(1, 5), true)),
        _ => {
            sim.sends = match chance.within(0, 2) {
                0 => Sent::Delivered,
                1 => Sent::TryAgain(std::time::Duration::from_secs(40)),
                _ => Sent::Refused("exit 1".to_owned()),
            }
        }
    }
}

/// What restart commands will answer from now on, and what they will do.
fn answers(chance: &mut Chance, sim: &mut Sim, id: &SessionId) {
    let truth = sim.truth();
    let text = |text: &str| text.to_owned();
    let answers = [
        Answer::Says(Restarted::Failed(text("exit 1"))),
        Answer::Says(Restarted::Failed(text("HTTP 429"))),
        Answer::Says(Restarted::Failed(text("fork failed"))),
        Answer::Says(Restarted::Skipped(text(
            "started 3s ago (freshness window)",
        ))),
        Answer::Says(Restarted::Skipped(text("it is busy"))),
        Answer::Says(Restarted::Unknown(text("{\"a"))),
        Answer::DoneBut(Restarted::Unknown(text("database is locked"))),
        Answer::DoneBut(Restarted::Accepted(text("rate limit near"))),
        Answer::Takes(100_000),
        Answer::Takes(20 * MINUTE),
        Answer::Usual,
        Answer::Usual,
        Answer::Usual,
    ];
    let starts = [
        OnStart::Lives,
        OnStart::Nothing,
        OnStart::Starts,
        OnStart::Limited,
        OnStart::Asks,
    ];
    if chance.percent(15) {
        sim.faults.no_start = truth + chance.within(5000, MINUTE);
        return;
    }
    let answer = chance.pick(&answers).cloned().unwrap_or(Answer::Usual);
    let start = *chance.pick(&starts).unwrap_or(&OnStart::Lives);
    sim.tell_history(format!("{id} will answer {answer:?} and then {start:?}"));
    let row = sim.row(id);
    row.answer = answer;
    row.on_start = start;
}

/// Nothing is wrong any more but what is dead.
pub fn heal(play: &mut Play) {
    let sim = &mut play.sim;
    sim.tell_history("the world heals".to_owned());
    sim.faults = crate::faults::Faults::default();
    sim.files.pause = None;
    sim.files.hold.clear();
    sim.files.changed = sim.clocks.truth;
    sim.sends = Sent::Delivered;
    let truth = sim.truth();
    let mut limited = Vec::new();
    for row in &mut sim.rows {
        row.unlisted = 0;
        row.lie = None;
        row.auth_hold = false;
        row.substate = None;
        row.on_start = OnStart::Lives;
        row.answer = Answer::Usual;
        row.changed = truth;
        limited.push(row.id.clone());
    }
    life_children::heal(sim);
    life_bots::heal(sim);
    // A usage limit is remembered for five hours: a person knows better.
    sim.files.clear = limited;
    sim.hints.push(Hint::Flags);
}

/// The critical sessions that ought to live and do not.
pub fn unserved(sim: &Sim) -> Vec<SessionId> {
    let critical = |row: &&Row| {
        row.is_conductor
            || row.title.starts_with("conductor-")
            || row.group != "work"
            || sim.files.autorestart.contains(&row.id)
    };
    let wanted = |row: &&Row| {
        !row.removed && !row.archived && row.stored == Stored::Alive && row.ran() && critical(row)
    };
    let lives = |row: &&Row| row.agent.is_some() && matches!(row.terminal, Terminal::Stands(_));
    let rows = sim.rows.iter().filter(wanted).filter(|row| !lives(row));
    rows.map(|row| row.id.clone()).collect()
}
