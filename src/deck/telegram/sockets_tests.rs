//! Connections in a made-up `/proc`.

use super::*;
use crate::scratch::Scratch;
use std::os::unix::fs::symlink;

const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
const FAR: &str = "149A6797"; // 151.103.154.20
const NEAR: &str = "0100007F";

fn line(remote: &str, state: &str, inode: u32) -> String {
    format!(
        "   0: 0B00A8C0:A1B2 {remote}:01BB {state} 00000000:00000000 02:00000A31 00000000  1000        0 {inode} 2 0000000000000000 20 4 30 10 -1\n"
    )
}

/// A process with these open sockets, in a network with these lines.
fn process(proc: &Scratch, pid: u32, sockets: &[u32], lines: &str) {
    proc.write(&format!("{pid}/net/tcp"), format!("{HEAD}{lines}"));
    let fd = proc.folder(&format!("{pid}/fd"));
    symlink("/dev/null", fd.join("0")).unwrap();
    for (at, inode) in sockets.iter().enumerate() {
        symlink(format!("socket:[{inode}]"), fd.join((at + 3).to_string())).unwrap();
    }
}

fn row(pid: u32, parent: u32) -> PsRow {
    PsRow {
        pid,
        parent,
        own: true,
        zombie: false,
        args: Vec::new(),
    }
}

fn poller(pid: u32) -> Poller {
    Poller {
        pid,
        ancestors: Vec::new(),
        folder: None,
        connected: None,
    }
}

#[test]
fn a_connection_of_the_poller_or_below_it_counts() {
    let proc = Scratch::new();
    let lines = [
        line(FAR, "01", 71),
        line(FAR, "06", 72),
        line(FAR, "02", 73),
        line(NEAR, "01", 74),
    ];
    let lines = lines.concat();
    proc.write("net/tcp", HEAD);
    process(&proc, 10, &[5, 71], &lines);
    process(&proc, 20, &[5], &lines);
    process(&proc, 21, &[], &lines);
    process(&proc, 22, &[71], &lines);
    process(&proc, 30, &[72, 73, 711, 7], &lines);
    // A proxy on this machine.
    process(&proc, 40, &[74], &lines);
    // Not to be looked into; gone.
    proc.write("50/net/tcp", HEAD);
    let rows = [
        row(10, 1),
        row(20, 1),
        row(21, 20),
        row(22, 21),
        row(30, 1),
        row(31, 31),
    ];
    let pids = [10, 20, 21, 30, 40, 50, 60];
    let found = look(proc.path(), pids.map(poller).to_vec(), &rows);
    let connected: Vec<Option<bool>> = found.all.iter().map(|p| p.connected).collect();
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(connected, [yes, yes, yes, no, yes, None, None]);
    assert!(!found.network);
    // A child that cannot be looked into.
    let rows = [row(30, 1), row(99, 30)];
    assert_eq!(
        look(proc.path(), vec![poller(30)], &rows).all[0].connected,
        None
    );
}

#[test]
fn a_network_is_a_connection_to_another_machine() {
    let v6 = |address: &str| line(address, "01", 1);
    for (tcp, tcp6, network) in [
        (line(FAR, "01", 1), String::new(), true),
        (line(FAR, "02", 1), String::new(), false),
        (line(NEAR, "01", 1), String::new(), false),
        (line("0A01017F", "01", 1), String::new(), false),
        (String::new(), v6("B80D0120000000000000000001000000"), true),
        (String::new(), v6("00000000000000000000000001000000"), false),
        (String::new(), v6("0000000000000000FFFF00000100007F"), false),
        (String::new(), v6("0000000000000000FFFF0000149A6797"), true),
        ("garbage\n 1 2\n\n".to_owned(), "\n".to_owned(), false),
    ] {
        let proc = Scratch::new();
        proc.write("net/tcp", format!("{HEAD}{tcp}"));
        proc.write("net/tcp6", format!("{HEAD}{tcp6}"));
        assert_eq!(
            look(proc.path(), Vec::new(), &[]).network,
            network,
            "{tcp}{tcp6}"
        );
    }
    // Nothing to be seen at all.
    let proc = Scratch::new();
    let found = look(proc.path(), vec![poller(1)], &[]);
    assert!(!found.network && found.all[0].connected.is_none());
}

#[cfg(target_os = "linux")]
#[test]
fn a_real_connection_is_seen() {
    use std::net::{TcpListener, TcpStream};
    let me = std::process::id();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let rows = [row(me, 1)];
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let found = connections(vec![poller(me)], &rows);
    assert_eq!(found.all[0].connected, Some(true));
    drop(stream);
}
