//! What systemd wants to know of a service (`Type=notify`).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Speaks to the service manager that started this process, if there is one.
#[derive(Debug, Default)]
pub(super) struct Notify {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Notify {
    /// Finds the service manager by the variables it sets.
    pub(super) fn from_environment() -> Self {
        let path = std::env::var("NOTIFY_SOCKET").ok();
        let watchdog = std::env::var("WATCHDOG_USEC").ok().and_then(|micros| micros.parse().ok());
        let meant = std::env::var("WATCHDOG_PID").map_or(true, |pid| pid == std::process::id().to_string());
        Self::new(path.as_deref(), watchdog.filter(|_| meant))
    }

    fn new(path: Option<&str>, watchdog_us: Option<u64>) -> Self {
        let address = path.and_then(|path| match path.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name).ok(),
            None => SocketAddr::from_pathname(path).ok(),
        });
        let socket = address.and_then(|address| Some((UnixDatagram::unbound().ok()?, address)));
        Self { socket, watchdog: watchdog_us.map(Duration::from_micros) }
    }

    /// How often [`alive`](Self::alive) shall be said: twice as often as the watchdog wants it.
    pub(super) fn interval(&self) -> Option<Duration> {
        let interval = self.watchdog? / 2;
        (self.socket.is_some() && !interval.is_zero()).then_some(interval)
    }

    pub(super) fn ready(&self) {
        self.say("READY=1\nSTATUS=running");
    }

    pub(super) fn alive(&self) {
        self.say("WATCHDOG=1");
    }

    pub(super) fn stopping(&self) {
        self.say("STOPPING=1");
    }

    fn say(&self, text: &str) {
        if let Some((socket, address)) = &self.socket {
            // A manager that does not listen is no reason to fail.
            let _ = socket.send_to_addr(text.as_bytes(), address);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn speaks_on_the_socket_it_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let notify = Notify::new(path.to_str(), Some(3_000_000));
        assert_eq!(notify.interval(), Some(Duration::from_millis(1500)));
        let mut buffer = [0; 64];
        let mut hear = || {
            let count = manager.recv(&mut buffer).unwrap();
            String::from_utf8(buffer[..count].to_vec()).unwrap()
        };
        notify.ready();
        assert_eq!(hear(), "READY=1\nSTATUS=running");
        notify.alive();
        assert_eq!(hear(), "WATCHDOG=1");
        notify.stopping();
        assert_eq!(hear(), "STOPPING=1");
    }

    #[test]
    fn is_silent_without_a_manager() {
        let notify = Notify::new(None, Some(1));
        notify.ready();
        assert_eq!(notify.interval(), None);
    }
}
