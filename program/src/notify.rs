//! Readiness and watchdog messages to systemd (`Type=notify`).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The service manager that started this process, if there is one.
#[derive(Debug, Default)]
pub struct ServiceNotifier {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl ServiceNotifier {
    /// The service manager named by `NOTIFY_SOCKET`, with the watchdog of `WATCHDOG_USEC`.
    pub fn from_environment() -> Self {
        let path = std::env::var("NOTIFY_SOCKET").ok();
        let watchdog = std::env::var("WATCHDOG_USEC").ok().and_then(|micros| micros.parse().ok());
        let for_this_process =
            std::env::var("WATCHDOG_PID").map_or(true, |pid| pid == std::process::id().to_string());
        Self::new(path.as_deref(), watchdog.filter(|_| for_this_process))
    }

    fn new(path: Option<&str>, watchdog_us: Option<u64>) -> Self {
        let address = path.and_then(|path| match path.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name).ok(),
            None => SocketAddr::from_pathname(path).ok(),
        });
        let socket = address.and_then(|address| Some((UnixDatagram::unbound().ok()?, address)));
        Self { socket, watchdog: watchdog_us.map(Duration::from_micros) }
    }

    /// The interval at which to call [`watchdog`](Self::watchdog): half of what the service manager asks for.
    pub fn watchdog_interval(&self) -> Option<Duration> {
        let interval = self.watchdog? / 2;
        (self.socket.is_some() && !interval.is_zero()).then_some(interval)
    }

    /// Reports that the service is running.
    pub fn ready(&self) {
        self.send("READY=1\nSTATUS=running");
    }

    /// Reports that the service is alive.
    pub fn watchdog(&self) {
        self.send("WATCHDOG=1");
    }

    /// Reports that the service is stopping.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    fn send(&self, text: &str) {
        if let Some((socket, address)) = &self.socket {
            // A service manager that does not listen is no reason to fail.
            let _unsent = socket.send_to_addr(text.as_bytes(), address);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn messages_are_sent_to_the_given_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let notifier = ServiceNotifier::new(path.to_str(), Some(3_000_000));
        assert_eq!(notifier.watchdog_interval(), Some(Duration::from_millis(1500)));
        let mut buffer = [0; 64];
        let mut received = || {
            let count = manager.recv(&mut buffer).unwrap();
            String::from_utf8(buffer[..count].to_vec()).unwrap()
        };
        notifier.ready();
        assert_eq!(received(), "READY=1\nSTATUS=running");
        notifier.watchdog();
        assert_eq!(received(), "WATCHDOG=1");
        notifier.stopping();
        assert_eq!(received(), "STOPPING=1");
    }

    #[test]
    fn nothing_is_sent_without_a_service_manager() {
        let notifier = ServiceNotifier::new(None, Some(1));
        notifier.ready();
        assert_eq!(notifier.watchdog_interval(), None);
    }
}
