//! The table, in at most 100 columns: what was measured as figures, what was not
//! in words. Measures nothing itself.

use crate::Wish;
use crate::deaths::{CAUSES, Cell};
use crate::deck::Kind;
use crate::idle::{CHILDREN, CONDUCTORS, Idle, Run, median};
use crate::turns::{Counted, SESSIONS, Turn};

/// What is measured, and how to read it.
pub fn head(wish: &Wish) {
    for watchdog in &wish.watchdogs {
        println!("{}: {}", watchdog.name, watchdog.command.join(" "));
    }
    println!("figures are those of the watchdog's own process; agent-deck's commands are counted,");
    println!("and timed by what one of them takes on the same deck");
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::StandIn => "stand-in",
        Kind::Real => "real agent-deck",
    }
}

/// What an idle watchdog costs.
pub fn idle(wish: &Wish, idle: &Idle) {
    let names: String = wish
        .watchdogs
        .iter()
        .map(|watchdog| format!("{:>16}", watchdog.name))
        .collect();
    let title = format!(
        "{}, idle for {} s: {CONDUCTORS} conductors, {CHILDREN} waiting children",
        name(idle.kind),
        wish.idle.as_secs()
    );
    println!("\n{title:<66}{names}");
    let minute = |count: u64| count as f64 * 60.0 / wish.idle.as_secs_f64();
    let row = |what: &str, figure: &dyn Fn(&Run) -> Option<f64>| {
        let columns = idle.runs.iter().map(|run| match figure(run) {
            Some(figure) => format!("{figure:>16.0}"),
            None => format!("{:>16}", "not known"),
        });
        println!("  {what:<64}{}", columns.collect::<String>());
    };
    row("binary size, bytes", &|run| Some(run.size? as f64));
    row("resident memory, kB", &|run| {
        Some(run.memory.resident as f64)
    });
    row("of it private, kB", &|run| Some(run.memory.private as f64));
    row("of that written to, kB", &|run| {
        Some(run.memory.dirty as f64)
    });
    row("peak memory, kB", &|run| Some(run.memory.peak as f64));
    row("descriptors", &|run| Some(run.descriptors as f64));
    row("threads", &|run| Some(run.used.threads as f64));
    row("wake-ups a minute", &|run| Some(minute(run.used.wakes)));
    row("agent-deck commands a minute", &|run| {
        Some(minute(run.calls as u64))
    });
    row("own CPU, ms a minute", &|run| {
        Some(minute(run.used.cpu?) / 1e6)
    });
    row("bytes logged meanwhile", &|run| Some(run.logged as f64));
    println!(
        "  by hand there: one `session show` {:.1} ms, one `list` {:.1} ms",
        idle.show / 1e6,
        idle.list / 1e6
    );
}

/// How long the deaths on one deck lasted.
pub fn deaths(wish: &Wish, kind: Kind, cells: &[Cell]) {
    let cells: Vec<&Cell> = cells.iter().filter(|cell| cell.kind() == kind).collect();
    let show = median(cells.iter().flat_map(|cell| cell.shows.iter().copied())).unwrap_or(f64::NAN);
    println!(
        "\n{}, deaths: ms, medians of {}; one `session show` there by hand: {:.1} ms",
        name(kind),
        wish.deaths,
        show / 1e6
    );
    println!(
        "  {:<22}{:<10}{:>10}{:>10}{:>10}{:>8}{:>13}{:>13}",
        "", "", "session", "restart", "agent", "", "restart", "agent after"
    );
    println!(
        "  {:<22}{:<10}{:>10}{:>10}{:>10}{:>8}{:>13}{:>13}",
        "death", "back by", "gone", "begins", "lives", "back", "after gone", "by hand"
    );
    println!("  {:>83}{:>13}", "in shows", "in shows");
    let agent = |cell: &Cell| cell.median(|trial| Some(trial.back?.1));
    for (cause, words) in CAUSES {
        let of_cause = || cells.iter().filter(|cell| cell.cause == cause);
        let floor = of_cause().find(|cell| cell.by.is_none());
        let floor = floor.and_then(|cell| agent(cell));
        for cell in of_cause() {
            let by = cell.by.map_or("hand", |n| wish.watchdogs[n].name);
            let back = cell.trials.iter().filter(|trial| trial.back.is_some());
            let after = cell.median(|trial| Some(trial.back?.0 - trial.gone));
            let over = agent(cell).zip(floor.filter(|_| cell.by.is_some()));
            println!(
                "  {words:<22}{by:<10}{:>10}{:>10}{:>10}{:>8}{:>13}{:>13}",
                figure(cell.median(|trial| Some(trial.gone / 1e6)), 1),
                figure(cell.median(|trial| Some(trial.back?.0 / 1e6)), 1),
                figure(agent(cell).map(|agent| agent / 1e6), 1),
                format!("{}/{}", back.count(), cell.trials.len()),
                figure(after.map(|after| after / show), 2),
                figure(over.map(|(agent, floor)| (agent - floor) / show), 2),
            );
        }
    }
}

/// A figure, or a dash where there is none to be had.
fn figure(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
}

/// Own instructions.
pub fn turns(counted: &Counted) {
    let title = "\nown instructions a turn, of sessions at work, none of them critical";
    let each = match counted {
        Ok(each) => each,
        Err(why) => return println!("{title}\n  not counted: {why}"),
    };
    println!("{title}");
    let words = [
        "the list as before",
        "each more",
        "one row changed",
        "each more",
    ];
    let words = words.map(|word| format!("{word:>20}"));
    println!("  {:>8}{}", "sessions", words.concat());
    for (n, (sessions, turn)) in SESSIONS.iter().zip(each).enumerate() {
        // What each session more has added since the smaller deck.
        let more = |of: fn(&Turn) -> f64| {
            let before = n.checked_sub(1)?;
            Some((of(turn) - of(&each[before])) / f64::from(sessions - SESSIONS[before]))
        };
        println!(
            "  {sessions:>8}{:>20.0}{:>20}{:>20.0}{:>20}",
            turn.same,
            figure(more(|turn| turn.same), 0),
            turn.changed,
            figure(more(|turn| turn.changed), 0)
        );
    }
}
