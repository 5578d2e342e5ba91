//! `make bench`: what the watchdog costs and how fast it is, as one table from
//! one run, on decks of its own: one played by the stand-in of the tests, and
//! one of the real agent-deck when `AGENT_DECK_E2E_BIN` names it. It runs
//! watchdogs and looks at them from outside; it does not know their rules.
//!
//! `bench <stand-in> <watchdog> [<build to count instructions of>]`, and:
//!
//! | variable | meaning (what counts without it) |
//! | --- | --- |
//! | `BENCH_SECONDS` | how long an idle watchdog is looked at (60) |
//! | `BENCH_DEATHS` | how often each death is died (3) |
//! | `BENCH_OTHER` | command of another watchdog, measured in turns with ours |
//! | `AGENT_DECK_E2E_BIN` | the real agent-deck |
//!
//! The same program plays two parts on those decks, see `parts.rs`.

mod deaths;
mod deck;
mod idle;
mod parts;
mod system;
mod table;
mod turns;
mod watchdog;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use deck::{Kind, Tools};
use watchdog::Watchdog;

/// A value, or a sentence on why there is none.
pub type Out<T> = Result<T, Box<dyn std::error::Error>>;

/// What is asked for.
pub struct Wish {
    tools: Tools,
    /// Ours, and perhaps another one.
    watchdogs: Vec<Watchdog>,
    /// A build that valgrind can count.
    counted: Option<PathBuf>,
    idle: Duration,
    deaths: usize,
}

fn main() -> ExitCode {
    let mut argv = std::env::args_os();
    let called = PathBuf::from(argv.next().unwrap_or_default());
    let done = match called.file_name().and_then(|name| name.to_str()) {
        Some("agent-deck") => parts::front(argv.collect()),
        Some("claude") => parts::agent(),
        _ => wish(argv.map(PathBuf::from).collect()).and_then(|wish| bench(&wish)),
    };
    match done {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(255)),
        Err(why) => {
            eprintln!("bench: {why}");
            ExitCode::FAILURE
        }
    }
}

fn wish(args: Vec<PathBuf>) -> Out<Wish> {
    let [standin, ours, rest @ ..] = args.as_slice() else {
        return Err("bench <stand-in> <watchdog> [<build to count instructions of>]".into());
    };
    let number = |name: &str, default: u64| match std::env::var(name) {
        Ok(text) if !text.is_empty() => text.parse().map_err(|_| format!("{name}: no number")),
        _ => Ok(default),
    };
    let real = std::env::var_os("AGENT_DECK_E2E_BIN").filter(|path| !path.is_empty());
    let real = real.map(PathBuf::from);
    for program in [standin, ours].into_iter().chain(&real) {
        if !program.is_file() {
            return Err(format!("no program {}", program.display()).into());
        }
    }
    let ours = std::path::absolute(ours)?;
    let mut watchdogs = vec![Watchdog::new("watchdog", vec![ours.display().to_string()])];
    let other = std::env::var("BENCH_OTHER").unwrap_or_default();
    let other: Vec<String> = other.split_whitespace().map(str::to_owned).collect();
    if !other.is_empty() {
        watchdogs.push(Watchdog::new("other", other));
    }
    Ok(Wish {
        tools: Tools {
            own: std::env::current_exe()?,
            standin: std::path::absolute(standin)?,
            real: real.map(std::path::absolute).transpose()?,
        },
        watchdogs,
        counted: rest.first().filter(|file| file.is_file()).cloned(),
        idle: Duration::from_secs(number("BENCH_SECONDS", 60)?.max(1)),
        deaths: usize::try_from(number("BENCH_DEATHS", 3)?)?,
    })
}

/// Measures one thing after the other; each part of the table is printed when
/// it is known.
fn bench(wish: &Wish) -> Out<i32> {
    system::obey_signals()?;
    table::head(wish);
    if !Path::new("/proc/self/smaps_rollup").exists() {
        println!("\nnot measured: this system has no /proc as Linux has it");
        return Ok(0);
    }
    let kinds = match wish.tools.real {
        Some(_) => &[Kind::StandIn, Kind::Real][..],
        None => &[Kind::StandIn],
    };
    say(wish, kinds.len());
    for kind in kinds {
        table::idle(wish, &idle::measure(wish, *kind)?);
    }
    if kinds.len() == 1 {
        println!("\nreal agent-deck: not measured: AGENT_DECK_E2E_BIN names none");
    }
    // Before there are agents by the dozen, which a watchdog finds in /proc.
    table::turns(&turns::measure(wish)?);
    if wish.deaths == 0 {
        println!("\ndeaths: not measured: BENCH_DEATHS=0");
        return Ok(0);
    }
    let mut cells = Vec::new();
    for kind in kinds {
        cells.extend(deaths::cells(wish, *kind)?);
    }
    deaths::happen(wish, &mut cells)?;
    for kind in kinds {
        table::deaths(wish, *kind, &cells);
    }
    Ok(0)
}

/// How long it will take, on stderr.
fn say(wish: &Wish, decks: usize) {
    let watchdogs = wish.watchdogs.len();
    let idle = watchdogs * (usize::try_from(wish.idle.as_secs()).unwrap_or(0) + 10) + 20;
    let counted = if wish.counted.is_some() { 120 } else { 0 };
    // A real deck of that size takes twenty seconds, the others none.
    let made = 20 * (decks - 1) * 2 * (1 + watchdogs);
    let deaths = made + (1 + wish.deaths) * deaths::round_s(decks, watchdogs);
    let seconds = decks * idle + counted + deaths * wish.deaths.min(1);
    let minutes = seconds.div_ceil(60);
    eprintln!("bench: about {minutes} minutes");
}
