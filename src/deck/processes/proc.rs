//! One pass over `/proc` into a table of processes.
//!
//! Processes come and go meanwhile and some do not let themselves be looked
//! into: what cannot be read is left out. The watchdog itself is not in the
//! table. This file does not know what is looked for in it.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, statat};
use rustix::io::{Errno, read, retry_on_intr};

use super::{is_agent_deck, is_python_watchdog, is_tmux_server};
use crate::clock::Time;
use crate::model::{Process, Scope, Sight};

/// Longest command line that is read. agent-deck puts an agent's flags first.
const CMDLINE_MOST: usize = 64 << 10;
/// Longest environment that is read; the kernel allows some MiB.
const ENVIRON_MOST: usize = 256 << 10;
/// Most arguments that are kept of one process; an agent has a dozen.
const ARGS_MOST: usize = 1000;
/// `PF_KTHREAD` in the flags of `stat` (proc(5), sched.h): a kernel thread.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A tick of `stat`: the kernel counts in hundredths of a second wherever Rust
/// runs on Linux (`USER_HZ`, time(7)).
const TICK_MS: u64 = 10;

/// The present, to turn ticks since boot into times.
struct Moment {
    now: Time,
    boot_ms: u64,
}

/// Looks at the machine's processes. `boot_ms` are the milliseconds since boot,
/// asleep or not, at the moment `now`.
pub fn look(scope: Scope, now: Time, boot_ms: u64) -> Sight {
    let moment = Moment { now, boot_ms };
    match table(Path::new("/proc"), scope, &moment, std::process::id()) {
        Ok(table) => Sight::Seen(table),
        Err(why) => Sight::Blind(why),
    }
}

fn table(root: &Path, scope: Scope, moment: &Moment, me: u32) -> Result<Vec<Process>, String> {
    let failed =
        |error: &dyn std::fmt::Display| format!("{} cannot be read: {error}", root.display());
    let entries = std::fs::read_dir(root).map_err(|e| failed(&e))?;
    let mut reader = Reader::open(root).map_err(|e| failed(&e))?;
    let mut table = Vec::new();
    for entry in entries {
        let name = entry.map_err(|e| failed(&e))?.file_name();
        if let Some(pid) = number(&name).filter(|&pid| pid != me) {
            table.extend(reader.process(pid, moment));
        }
    }
    if table.iter().all(|found: &Found| found.process.parent == me) {
        return Err(format!("{} shows no other processes", root.display()));
    }
    match scope {
        Scope::Panes => reader.panes(&mut table),
        Scope::All => reader.all(&mut table)?,
    }
    Ok(table.into_iter().map(|found| found.process).collect())
}

fn number(name: &OsStr) -> Option<u32> {
    name.to_str()?.parse().ok()
}

/// A process and what is only of interest here.
struct Found {
    process: Process,
    kernel: bool,
}

/// Reads files of processes, all into one buffer.
struct Reader {
    root: OwnedFd,
    me: u32,
    name: String,
    buffer: Vec<u8>,
}

impl Reader {
    fn open(root: &Path) -> Result<Reader, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Reader {
            root: openat(CWD, root, flags, Mode::empty())?,
            me: rustix::process::geteuid().as_raw(),
            name: String::new(),
            buffer: vec![0; ENVIRON_MOST],
        })
    }

    /// Content of a process' file, up to `most` bytes.
    fn file(&mut self, pid: u32, file: &str, most: usize) -> Result<&[u8], Errno> {
        self.name.clear();
        // Writing to a String cannot fail.
        let _ = write!(self.name, "{pid}/{file}");
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = openat(&self.root, self.name.as_str(), flags, Mode::empty())?;
        let room = &mut self.buffer[..most.min(ENVIRON_MOST)];
        let mut filled = 0;
        // These files give all they have: less than asked for is the end.
        while filled < room.len() {
            let asked = room.len() - filled;
            let more = retry_on_intr(|| read(&fd, &mut room[filled..]))?;
            filled += more;
            if more < asked {
                break;
            }
        }
        Ok(&self.buffer[..filled])
    }

    fn process(&mut self, pid: u32, moment: &Moment) -> Option<Found> {
        let mut found = from_stat(pid, self.file(pid, "stat", 4096).ok()?, moment)?;
        self.name.clear();
        let _ = write!(self.name, "{pid}");
        // The folder's owner is the user the process acts as, always (proc(5)).
        let stat = statat(&self.root, self.name.as_str(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        found.process.own = stat.st_uid == self.me;
        Some(found)
    }

    /// Looks into the environment of what tmux servers have started.
    fn panes(&mut self, table: &mut [Found]) {
        let servers: Vec<u32> = table
            .iter()
            .filter(|found| is_tmux_server(&found.process))
            .map(|found| found.process.pid)
            .collect();
        for found in table
            .iter_mut()
            .filter(|f| servers.contains(&f.process.parent))
        {
            found.process.opaque = self.environment(&mut found.process).is_err();
        }
    }

    /// Looks into everything that lets itself be looked into.
    fn all(&mut self, table: &mut [Found]) -> Result<(), String> {
        let (mut asked, mut refused) = (0, 0);
        for found in table.iter_mut().filter(|f| !f.kernel && !f.process.zombie) {
            let process = &mut found.process;
            if let Ok(bytes) = self.file(process.pid, "cmdline", CMDLINE_MOST) {
                process.args = args(bytes);
            }
            let result = self.environment(process);
            if result == Ok(false) {
                // It may have ended since: what it was told to do counts only
                // while it does it.
                let still = self.file(process.pid, "cmdline", CMDLINE_MOST);
                process.args = still.map(args).unwrap_or_default();
            }
            process.opaque = result.is_err();
            asked += u32::from(process.own);
            refused += u32::from(process.own && process.opaque);
        }
        if asked > 0 && refused == asked {
            return Err("the environments of this user's processes cannot be read".to_owned());
        }
        Ok(())
    }

    /// Takes the marks from a process' environment, and says whether there was
    /// one; a process that is gone has none.
    fn environment(&mut self, process: &mut Process) -> Result<bool, Errno> {
        let bytes = match self.file(process.pid, "environ", ENVIRON_MOST) {
            Ok(bytes) => bytes,
            Err(Errno::NOENT | Errno::SRCH) => return Ok(false),
            Err(error) => return Err(error),
        };
        let value = |name: &[u8]| {
            let mut variables = bytes.split(|&b| b == 0);
            variables
                .find_map(|v| v.strip_prefix(name))
                .filter(|value| !value.is_empty())
        };
        process.instance =
            value(b"AGENTDECK_INSTANCE_ID=").map(|id| String::from_utf8_lossy(id).into_owned());
        process.inside_agent = value(b"CLAUDECODE=").is_some();
        let path = |name| value(name).map(|path| PathBuf::from(OsStr::from_bytes(path)));
        process.telegram = path(b"TELEGRAM_STATE_DIR=");
        process.config_dir = path(b"CLAUDE_CONFIG_DIR=");
        let home = path(b"HOME=");
        let ours = is_agent_deck(process) || is_python_watchdog(process);
        process.elsewhere = ours && home.is_some_and(|home| !same(&home));
        Ok(!bytes.is_empty())
    }
}

/// Whether a process' `HOME` is ours, by whatever path.
fn same(home: &Path) -> bool {
    let Some(ours) = std::env::var_os("HOME").map(PathBuf::from) else {
        return true;
    };
    ours == home || ours.canonicalize().ok() == home.canonicalize().ok()
}

/// Reads `stat` (proc(5)): number, name in parentheses, state, parent, ...,
/// flags as ninth and start in ticks since boot as twenty-second. The name may
/// hold anything, parentheses included.
fn from_stat(pid: u32, bytes: &[u8], moment: &Moment) -> Option<Found> {
    let open = bytes.iter().position(|&b| b == b'(')?;
    let close = bytes.iter().rposition(|&b| b == b')')?;
    let name = String::from_utf8_lossy(bytes.get(open + 1..close)?).into_owned();
    let mut fields = std::str::from_utf8(&bytes[close + 1..])
        .ok()?
        .split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let flags: u64 = fields.nth(4)?.parse().ok()?;
    let ticks: u64 = fields.nth(12)?.parse().ok()?;
    let born_ms = ticks.saturating_mul(TICK_MS);
    let age = Duration::from_millis(moment.boot_ms.saturating_sub(born_ms));
    let process = Process {
        pid,
        parent,
        zombie: matches!(state, "Z" | "X" | "x"),
        suspended: matches!(state, "T" | "t"),
        started: moment.now.minus(age),
        name,
        ..Process::default()
    };
    Some(Found {
        process,
        kernel: flags & KERNEL_THREAD != 0,
    })
}

/// Arguments end with a NUL byte each; a process may have written over them.
fn args(bytes: &[u8]) -> Vec<String> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    let args = bytes.split(|&b| b == 0).take(ARGS_MOST);
    args.map(|arg| String::from_utf8_lossy(arg).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::scratch::Scratch;
    use std::process::{Child, Command};

    const MOMENT: Moment = Moment {
        now: Time(1_000_000_000),
        boot_ms: 500_000,
    };
    /// A number that no process of the made-up folders has.
    const ME: u32 = 9999;

    /// A process in a made-up `/proc`; `tail` replaces flags and start.
    fn add(proc: &Scratch, pid: u32, name: &str, state: &str, parent: u32, flags: u64) {
        let stat = format!(
            "{pid} ({name}) {state} {parent} 7 7 0 -1 {flags} 1 2 3 4 5 6 7 8 20 0 1 0 49000 1 2\n"
        );
        proc.write(&format!("{pid}/stat"), stat);
    }

    fn seen(proc: &Scratch, scope: Scope) -> Vec<Process> {
        table(proc.path(), scope, &MOMENT, ME).unwrap()
    }

    fn find(table: &[Process], pid: u32) -> &Process {
        table.iter().find(|p| p.pid == pid).unwrap()
    }

    fn deck() -> Scratch {
        let proc = Scratch::new();
        add(&proc, 10, "tmux: server", "S", 1, 0);
        proc.write("10/cmdline", "tmux\0new\0");
        proc.write("10/environ", "AGENTDECK_INSTANCE_ID=never\0");
        add(&proc, 20, "claude", "S", 10, 0);
        proc.write("20/cmdline", "claude\0--resume\0x\0");
        proc.write(
            "20/environ",
            "A=1\0XAGENTDECK_INSTANCE_ID=no\0AGENTDECK_INSTANCE_ID=a-1\0",
        );
        add(&proc, 30, "bash", "S", 20, 0);
        proc.write("30/cmdline", "bash\0-c\0sleep 5\0");
        proc.write("30/environ", "AGENTDECK_INSTANCE_ID=a-1\0CLAUDECODE=1\0");
        proc
    }

    #[test]
    fn a_cheap_look_reads_environments_of_panes_only() {
        let table = seen(&deck(), Scope::Panes);
        assert_eq!(find(&table, 20).instance.as_deref(), Some("a-1"));
        assert!(find(&table, 10).instance.is_none() && find(&table, 30).instance.is_none());
        assert!(
            table
                .iter()
                .all(|p| p.args.is_empty() && p.own && !p.zombie)
        );
        assert_eq!(find(&table, 20).parent, 10);
    }

    #[test]
    fn a_full_look_reads_all() {
        let table = seen(&deck(), Scope::All);
        assert_eq!(find(&table, 10).instance.as_deref(), Some("never"));
        assert_eq!(find(&table, 20).args, ["claude", "--resume", "x"]);
        assert!(!find(&table, 20).inside_agent && find(&table, 30).inside_agent);
    }

    #[test]
    fn starts_are_counted_back_from_the_present() {
        // 490 s after boot, 10 s ago.
        assert_eq!(
            find(&seen(&deck(), Scope::Panes), 20).started,
            Time(999_990_000)
        );
        let early = Moment {
            boot_ms: 0,
            ..MOMENT
        };
        let table = table(deck().path(), Scope::Panes, &early, ME).unwrap();
        assert_eq!(find(&table, 20).started, MOMENT.now);
    }

    #[test]
    fn names_may_hold_anything() {
        let proc = deck();
        for (pid, name) in [(40, "a b) S 1 ("), (41, ""), (42, "((")] {
            add(&proc, pid, name, "S", 10, 0);
            let table = seen(&proc, Scope::Panes);
            assert_eq!(
                (find(&table, pid).name.as_str(), find(&table, pid).parent),
                (name, 10)
            );
        }
    }

    #[test]
    fn what_has_ended_or_vanished_does_no_harm() {
        let proc = deck();
        add(&proc, 40, "claude", "Z", 10, 0);
        proc.folder("50");
        for (pid, stat) in [
            (60, ""),
            (61, "61 (x"),
            (62, ") 62 ("),
            (63, "63 (x) S"),
            (64, "\u{e9}"),
        ] {
            proc.write(&format!("{pid}/stat"), stat);
        }
        proc.write(
            "70/stat",
            [b"70 (\xff) S 10 7 7 0 -1 0 ".as_slice(), &[b'\xff'; 9]].concat(),
        );
        proc.write("uptime", "1 2");
        for scope in [Scope::Panes, Scope::All] {
            let mut pids: Vec<u32> = seen(&proc, scope).iter().map(|p| p.pid).collect();
            pids.sort_unstable();
            assert_eq!(pids, [10, 20, 30, 40]);
        }
        assert!(find(&seen(&proc, Scope::All), 40).zombie);
    }

    #[test]
    fn large_and_odd_contents_are_bounded() {
        let proc = deck();
        add(&proc, 40, "x", "S", 10, 0);
        proc.write("40/cmdline", "a\0".repeat(100_000));
        proc.write(
            "40/environ",
            format!("{}\0AGENTDECK_INSTANCE_ID=late\0", "x".repeat(300_000)),
        );
        add(&proc, 41, "x", "S", 10, 0);
        proc.write("41/cmdline", b"\xff\0\0a");
        proc.write("41/environ", b"AGENTDECK_INSTANCE_ID=\xff\0CLAUDECODE=\0");
        add(&proc, 42, "x", "S", 10, 0);
        proc.write("42/cmdline", "\0");
        proc.write("42/environ", "AGENTDECK_INSTANCE_ID=\0");
        let table = seen(&proc, Scope::All);
        assert_eq!(find(&table, 40).args.len(), ARGS_MOST);
        assert_eq!(find(&table, 40).instance, None);
        assert_eq!(find(&table, 41).args, ["\u{fffd}", "", "a"]);
        assert_eq!(find(&table, 41).instance.as_deref(), Some("\u{fffd}"));
        assert!(!find(&table, 41).inside_agent);
        assert_eq!(
            (find(&table, 42).args.len(), &find(&table, 42).instance),
            (0, &None)
        );
    }

    #[test]
    fn kernel_threads_are_not_asked() {
        let proc = deck();
        add(&proc, 2, "kthreadd", "S", 0, KERNEL_THREAD);
        proc.write("2/cmdline", "not asked\0");
        // In a container, number 2 is a process like any other.
        let inner = deck();
        add(&inner, 2, "claude", "S", 10, 0);
        inner.write("2/cmdline", "claude\0");
        assert!(find(&seen(&proc, Scope::All), 2).args.is_empty());
        assert_eq!(find(&seen(&inner, Scope::All), 2).args, ["claude"]);
    }

    #[test]
    fn a_folder_that_shows_nothing_is_blindness() {
        let proc = Scratch::new();
        let blind = |scope| table(proc.path(), scope, &MOMENT, ME).unwrap_err();
        assert!(blind(Scope::All).contains("no other processes"));
        add(&proc, ME, "watchdog", "S", 1, 0);
        add(&proc, 20, "agent-deck", "S", ME, 0);
        assert!(blind(Scope::Panes).contains("no other processes"));
        let nowhere = table(&proc.path().join("none"), Scope::Panes, &MOMENT, ME);
        assert!(nowhere.unwrap_err().contains("cannot be read"));
        // Links cannot be opened: the same as a refusal.
        add(&proc, 30, "x", "S", 1, 0);
        std::fs::create_dir_all(proc.path().join("20")).unwrap();
        for pid in [20, 30] {
            let environ = proc.path().join(format!("{pid}/environ"));
            std::os::unix::fs::symlink("/dev/null", environ).unwrap();
        }
        assert!(blind(Scope::All).contains("environments"));
        assert!(table(proc.path(), Scope::Panes, &MOMENT, ME).is_ok());
        add(&proc, 31, "x", "S", 1, 0);
        proc.write("31/environ", "");
        assert!(table(proc.path(), Scope::All, &MOMENT, ME).is_ok());
    }

    fn real(clock: &Clock) -> Vec<Process> {
        match look(Scope::All, clock.now(), clock.reading().boot) {
            Sight::Seen(table) => table,
            Sight::Blind(why) => panic!("{why}"),
        }
    }

    fn end(mut child: Child) {
        let _ = child.kill();
        let _ = child.wait();
    }

    #[test]
    fn a_real_process_is_seen() {
        let clock = Clock::start();
        let before = clock.now();
        let child = Command::new("sleep")
            .arg("600")
            .env("AGENTDECK_INSTANCE_ID", "a-1")
            .env_remove("CLAUDECODE")
            .spawn()
            .unwrap();
        // A spawn returns a moment before the kernel has put the environment in place.
        let mut tables = std::iter::repeat_with(|| real(&clock)).take(1000);
        let seen = tables.find_map(|table| {
            let process = table.iter().find(|p| p.pid == child.id())?.clone();
            process.instance.is_some().then_some((table, process))
        });
        end(child);
        let (table, process) = seen.unwrap();
        assert_eq!(process.instance.as_deref(), Some("a-1"));
        assert_eq!(process.args.last().map(String::as_str), Some("600"));
        assert_eq!(process.parent, std::process::id());
        assert!(process.own && !process.zombie && !process.inside_agent);
        // Ticks are a hundredth of a second.
        assert!(process.started >= before.minus(Duration::from_millis(50)));
        assert!(process.started <= clock.now());
        assert!(table.iter().all(|p| p.pid != std::process::id()));
    }

    #[test]
    fn a_real_process_that_has_ended_is_a_zombie() {
        let clock = Clock::start();
        let child = Command::new("sleep").arg("0").spawn().unwrap();
        while !real(&clock).iter().any(|p| p.pid == child.id() && p.zombie) {
            std::thread::sleep(Duration::from_millis(10));
        }
        end(child);
    }
}
