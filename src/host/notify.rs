//! Tells the service manager how it goes: readiness, a line of status, signs of
//! life (the datagram protocol of `sd_notify(3)`).
//!
//! Nothing here waits, and nothing that fails is an error: without a service
//! manager every call does nothing. This file does not know when to call.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use super::logs::escape;

/// Longest status text that is sent, in characters.
const STATUS_MAX: usize = 500;

/// The way to the service manager, if there is one.
#[derive(Debug, Default)]
pub struct Notify {
    to: Option<(UnixDatagram, SocketAddr)>,
    interval: Option<Duration>,
}

impl Notify {
    /// Reads `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`. Children do
    /// not get these (see `exec.rs`).
    pub fn from_env() -> Notify {
        let number = |name: &str| std::env::var(name).ok()?.parse().ok();
        let socket = std::env::var_os("NOTIFY_SOCKET");
        Notify::new(
            socket.as_deref(),
            number("WATCHDOG_USEC"),
            number("WATCHDOG_PID"),
        )
    }

    fn new(
        socket: Option<&OsStr>,
        watchdog_usec: Option<u64>,
        watchdog_pid: Option<u64>,
    ) -> Notify {
        let to = socket.and_then(address).and_then(|address| {
            let socket = UnixDatagram::unbound().ok()?;
            socket.set_nonblocking(true).ok()?;
            Some((socket, address))
        });
        let meant_for_us = watchdog_pid.is_none_or(|pid| pid == u64::from(std::process::id()));
        let interval = watchdog_usec
            .filter(|&usec| usec > 0 && meant_for_us && to.is_some())
            .map(|usec| Duration::from_micros(usec) / 2);
        Notify { to, interval }
    }

    /// The start is over.
    pub fn ready(&self) {
        self.send("READY=1");
    }

    /// A line for `systemctl status`.
    pub fn status(&self, text: &str) {
        let text: String = escape(text).chars().take(STATUS_MAX).collect();
        self.send(&format!("STATUS={text}"));
    }

    /// A sign of life.
    pub fn watchdog(&self) {
        self.send("WATCHDOG=1");
    }

    /// The end has begun.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// How often a sign of life is to be given: half of what the service
    /// manager allows, as its manual says. `None`: it wants none from us.
    pub fn interval(&self) -> Option<Duration> {
        self.interval
    }

    fn send(&self, message: &str) {
        if let Some((socket, address)) = &self.to {
            let _ = socket.send_to_addr(message.as_bytes(), address);
        }
    }
}

/// A path, or on Linux a name behind `@`. Other kinds are not spoken here.
fn address(text: &OsStr) -> Option<SocketAddr> {
    match text.as_bytes() {
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => {
            use std::os::linux::net::SocketAddrExt;
            SocketAddr::from_abstract_name(name).ok()
        }
        [b'/', ..] => SocketAddr::from_pathname(text).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::{PATIENCE, Scratch};

    fn receive(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 1024];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    fn speaks_to(manager: &UnixDatagram, address: &OsStr) {
        manager.set_read_timeout(Some(PATIENCE)).unwrap();
        let notify = Notify::new(Some(address), Some(30_000_000), None);
        assert_eq!(notify.interval(), Some(Duration::from_secs(15)));
        notify.ready();
        notify.status("12 watched\nREADY=0");
        notify.watchdog();
        notify.stopping();
        for message in [
            "READY=1",
            "STATUS=12 watched\\nREADY=0",
            "WATCHDOG=1",
            "STOPPING=1",
        ] {
            assert_eq!(receive(manager), message);
        }
    }

    #[test]
    fn messages_arrive_at_a_path() {
        let scratch = Scratch::new();
        let path = scratch.join("notify");
        speaks_to(&UnixDatagram::bind(&path).unwrap(), path.as_os_str());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn messages_arrive_at_an_abstract_name() {
        use std::os::linux::net::SocketAddrExt;
        let name = format!("watchdog-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let manager = UnixDatagram::bind_addr(&address).unwrap();
        speaks_to(&manager, OsStr::new(&format!("@{name}")));
    }

    #[test]
    fn without_a_listener_nothing_happens_and_nothing_waits() {
        let scratch = Scratch::new();
        let nobody = scratch.join("nobody");
        for socket in [
            None,
            Some(OsStr::new("")),
            Some(OsStr::new("vsock:2:1")),
            Some(nobody.as_os_str()),
        ] {
            let notify = Notify::new(socket, None, None);
            notify.ready();
            assert_eq!(notify.interval(), None);
        }
        let path = scratch.join("deaf");
        let _deaf = UnixDatagram::bind(&path).unwrap();
        let notify = Notify::new(Some(path.as_os_str()), None, None);
        // Far more than any socket holds.
        for _ in 0..10_000 {
            notify.watchdog();
        }
    }

    #[test]
    fn signs_of_life_are_only_given_by_who_is_asked() {
        let scratch = Scratch::new();
        let path = scratch.join("notify");
        let us = u64::from(std::process::id());
        let interval = |usec, pid| Notify::new(Some(path.as_os_str()), usec, pid).interval();
        assert_eq!(
            interval(Some(10_000_000), Some(us)),
            Some(Duration::from_secs(5))
        );
        assert_eq!(interval(Some(10_000_000), Some(us + 1)), None);
        assert_eq!(interval(Some(0), None), None);
        assert_eq!(interval(None, None), None);
        assert_eq!(Notify::new(None, Some(10_000_000), None).interval(), None);
    }
}
