//! Waiting, signals, and what `/proc` says of a process. Does not know decks.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::Out;

static OVER: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on SIGHUP, SIGINT and SIGTERM end the next wait with an error, so
/// that all decks are taken away on the way out.
pub fn obey_signals() -> Out<()> {
    let over = OVER.get_or_init(Arc::default);
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(over))?;
    }
    Ok(())
}

/// Looks again and again until there is something, or for so long; seldom enough
/// not to be seen in the figures.
pub fn wait<T>(limit: Duration, look: impl FnMut() -> Option<T>) -> Out<Option<T>> {
    every(Duration::from_millis(20), limit, look)
}

/// The same every millisecond, where the moment counts.
pub fn watch<T>(limit: Duration, look: impl FnMut() -> Option<T>) -> Out<Option<T>> {
    every(Duration::from_millis(1), limit, look)
}

/// Waits that long.
pub fn pause(span: Duration) -> Out<()> {
    every(Duration::from_millis(200), span, || None::<()>).map(drop)
}

fn every<T>(
    step: Duration,
    limit: Duration,
    mut look: impl FnMut() -> Option<T>,
) -> Out<Option<T>> {
    let end = Instant::now() + limit;
    loop {
        if OVER.get().is_some_and(|over| over.load(Ordering::Relaxed)) {
            return Err("interrupted".into());
        }
        if let Some(found) = look() {
            return Ok(Some(found));
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        std::thread::sleep(left.min(step));
    }
}

/// Sends a signal.
pub fn send(process: u32, signal: Signal) -> Out<()> {
    let pid = Pid::from_raw(i32::try_from(process)?).ok_or("process 0")?;
    Ok(kill_process(pid, signal)?)
}

fn read(process: u32, file: &str) -> Out<String> {
    Ok(fs::read_to_string(format!("/proc/{process}/{file}"))?)
}

/// The number behind such a word at the begin of a line.
fn number(text: &str, word: &str) -> Out<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(word));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| format!("/proc has no {word}").into())
}

/// Whether a process runs; one that has ended and was not reaped does not.
pub fn lives(process: u32) -> bool {
    let status = read(process, "status").unwrap_or_default();
    let state = status.lines().find(|line| line.starts_with("State:"));
    state.is_some_and(|state| !state.contains("Z ") && !state.contains("X "))
}

/// The parent of a process.
pub fn parent(process: u32) -> Out<u32> {
    Ok(u32::try_from(number(&read(process, "status")?, "PPid:")?)?)
}

/// Memory of a process in kB.
pub struct Memory {
    /// Resident, and of it private.
    pub resident: u64,
    /// In no other process, pages of its file that nobody else runs included.
    pub private: u64,
    /// In no other process, and written to: what goes when it goes.
    pub dirty: u64,
    /// The most that was ever resident.
    pub peak: u64,
}

/// Looks at the memory.
pub fn memory(process: u32) -> Out<Memory> {
    let rollup = read(process, "smaps_rollup")?;
    Ok(Memory {
        resident: number(&rollup, "Rss:")?,
        private: number(&rollup, "Private_Clean:")? + number(&rollup, "Private_Dirty:")?,
        dirty: number(&rollup, "Private_Dirty:")?,
        peak: number(&read(process, "status")?, "VmHWM:")?,
    })
}

/// Open descriptors.
pub fn descriptors(process: u32) -> Out<usize> {
    Ok(fs::read_dir(format!("/proc/{process}/fd"))?.count())
}

/// What its threads have used so far, without its children.
#[derive(Default)]
pub struct Used {
    /// How many threads there are.
    pub threads: u64,
    /// Time on a processor in nanoseconds, if the scheduler counts it.
    pub cpu: Option<u64>,
    /// How often it went to sleep, and so was woken.
    pub wakes: u64,
}

/// Looks at all threads.
pub fn used(process: u32) -> Out<Used> {
    let mut used = Used {
        cpu: Some(0),
        ..Used::default()
    };
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let thread = thread?.path();
        used.threads += 1;
        let counted = fs::read_to_string(thread.join("schedstat"))?;
        used.cpu = used.cpu.zip(number(&counted, "").ok()).map(|(a, b)| a + b);
        let status = fs::read_to_string(thread.join("status"))?;
        used.wakes += number(&status, "voluntary_ctxt_switches:")?;
    }
    Ok(used)
}

/// Bytes in the logs of a folder.
pub fn logged(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let logs = files.filter(|file| file.path().extension().is_some_and(|end| end == "log"));
    logs.filter_map(|file| Some(file.metadata().ok()?.len()))
        .sum()
}
