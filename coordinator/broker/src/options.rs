//! Options of the broker.

use std::net::SocketAddr;

use crate::Access;

/// Address, access policy and limits of a broker.
#[derive(Debug, Clone)]
pub struct BrokerOptions {
    /// The address it listens on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The access policy.
    pub access: Access,
    /// The largest packet it accepts.
    pub packet_bytes_max: usize,
    /// Bytes queued for one client.
    pub session_bytes_max: usize,
    /// Bytes queued for all clients together; beyond them, a message is queued only for clients below an equal share.
    pub waiting_bytes_max: usize,
    /// Sessions, connected or not.
    pub sessions_max: usize,
    /// Bytes of one retained message; a larger one is delivered but not retained.
    pub retained_message_bytes_max: usize,
    /// Bytes of all retained messages together.
    pub retained_bytes_max: usize,
}

impl BrokerOptions {
    /// On `listen`, with limits for thousands of clients and models of several megabytes.
    pub fn new(listen: SocketAddr, access: Access) -> Self {
        Self {
            listen,
            access,
            packet_bytes_max: 16 << 20,
            session_bytes_max: 64 << 20,
            waiting_bytes_max: 1 << 30,
            sessions_max: 20_000,
            // Manifest, births and accounts are below a kilobyte each.
            retained_message_bytes_max: 16 << 10,
            retained_bytes_max: 64 << 20,
        }
    }

    /// On a free port of the loopback interface.
    pub fn local(access: Access) -> Self {
        Self::new(SocketAddr::from(([127, 0, 0, 1], 0)), access)
    }
}
