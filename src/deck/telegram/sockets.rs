//! Whether pollers have a connection (Linux): the sockets among a process' open
//! files, looked up in the table of its network.
//!
//! A poller's connection may lead to a proxy on this machine; whether there is
//! a network at all is told by connections to other machines. This file does
//! not know what follows from it.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::PsRow;
use super::cursor::Cursor;
use crate::model::{Poller, Pollers};

/// Longest table that is read: some 100,000 connections.
const TABLE_MOST: u64 = 16 << 20;
/// State "established" in these tables (proc_net_tcp, tcp_states.h).
const ESTABLISHED: &[u8] = b"01";

/// Fills in which pollers are connected, and whether anybody is. `rows` are the
/// processes among which they were found. Costs reads of `/proc`: only worth it
/// when there are pollers.
pub fn connections(pollers: Vec<Poller>, rows: &[PsRow]) -> Pollers {
    look(Path::new("/proc"), pollers, rows)
}

fn look(proc: &Path, mut all: Vec<Poller>, rows: &[PsRow]) -> Pollers {
    let network = table(&proc.join("net")).is_some_and(|table| established(&table, None));
    for poller in &mut all {
        poller.connected = connected(proc, poller.pid, rows);
    }
    Pollers { all, network }
}

/// Whether a process or one below it has an established connection.
fn connected(proc: &Path, pid: u32, rows: &[PsRow]) -> Option<bool> {
    let mut folder = proc.join(pid.to_string());
    let table = table(&folder.join("net"))?;
    let mut tree = vec![pid];
    let mut at = 0;
    while let Some(&pid) = tree.get(at) {
        folder.set_file_name(pid.to_string());
        for entry in std::fs::read_dir(folder.join("fd")).ok()? {
            // A file that was closed meanwhile was none of these.
            let Ok(target) = std::fs::read_link(entry.ok()?.path()) else {
                continue;
            };
            let name = target.as_os_str().as_bytes().strip_prefix(b"socket:[");
            let inode = name.and_then(|name| name.strip_suffix(b"]"));
            if inode.is_some_and(|inode| established(&table, Some(inode))) {
                return Some(true);
            }
        }
        for row in rows {
            if row.parent == pid && !row.zombie && !tree.contains(&row.pid) {
                tree.push(row.pid);
            }
        }
        at += 1;
    }
    Some(false)
}

/// The TCP connections of a network; `None` where they cannot be seen.
fn table(net: &Path) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    for (name, needed) in [("tcp", true), ("tcp6", false)] {
        match File::open(net.join(name)) {
            Ok(file) => {
                file.take(TABLE_MOST).read_to_end(&mut text).ok()?;
            }
            Err(_) if needed => return None,
            // A kernel without IPv6.
            Err(_) => {}
        }
    }
    Some(text)
}

/// Whether a table has an established connection: one with that inode, or else
/// one to another machine. Columns: number, own address, the other's, state,
/// five more, inode.
fn established(table: &[u8], inode: Option<&[u8]>) -> bool {
    table.split(|&byte| byte == b'\n').any(|line| {
        let mut cursor = Cursor { text: line, at: 0 };
        let mut columns: [&[u8]; 10] = [b""; 10];
        for column in &mut columns {
            *column = cursor.column();
        }
        let [_, _, remote, state, .., own] = columns;
        state == ESTABLISHED
            && match inode {
                Some(inode) => own == inode,
                None => !loopback(remote),
            }
    })
}

/// Whether `0100007F:0050` and the like is this machine: 127.0.0.0/8, ::1, or
/// the first inside the second. Each four bytes stand in the order of the
/// processor, low byte first.
fn loopback(remote: &[u8]) -> bool {
    let address = remote
        .split(|&byte| byte == b':')
        .next()
        .unwrap_or_default();
    let mapped = address.strip_prefix(b"0000000000000000FFFF0000");
    address == b"00000000000000000000000001000000"
        || mapped.unwrap_or(address).ends_with(b"7F") && (mapped.is_some() || address.len() == 8)
}

#[cfg(test)]
#[path = "sockets_tests.rs"]
mod tests;
