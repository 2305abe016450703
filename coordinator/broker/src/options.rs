//! Options of the broker.

use std::net::SocketAddr;
use std::time::Duration;

use crate::{Access, ListenerTls};

/// Address, access policy and limits of a broker.
#[derive(Debug, Clone)]
pub struct BrokerOptions {
    /// The address it listens on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The access policy.
    pub access: Access,
    /// TLS on that address; the broker's own process then connects to [`EmbeddedBroker::url`](crate::EmbeddedBroker::url),
    /// an address of this machine where only the coordinator may log in.
    pub tls: Option<ListenerTls>,
    /// The largest packet it accepts.
    pub packet_bytes_max: usize,
    /// The largest packet it accepts from a client with a node's permissions.
    pub node_packet_bytes_max: usize,
    /// Bytes of unfinished packets of all nodes together; a node whose packet exceeds them is disconnected.
    pub unfinished_bytes_max: usize,
    /// The time for a packet, and one second more for every kibibyte of it.
    pub packet_timeout: Duration,
    /// The time after which a wrong password is refused: guessing is slow.
    pub refusal_delay: Duration,
    /// Bytes queued for one client.
    pub session_bytes_max: usize,
    /// Bytes queued for all clients together; beyond them, a message is queued only for clients below an equal share.
    pub waiting_bytes_max: usize,
    /// Sessions, connected or not. Beyond them, those of unknown nodes give way, disconnected ones first.
    pub sessions_max: usize,
    /// The time after which the session of a disconnected client is removed.
    pub session_expiry: Duration,
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
            tls: None,
            packet_bytes_max: 16 << 20,
            // Programs cut their messages to less.
            node_packet_bytes_max: 128 << 10,
            unfinished_bytes_max: 64 << 20,
            packet_timeout: Duration::from_secs(10),
            refusal_delay: Duration::from_secs(1),
            session_bytes_max: 64 << 20,
            waiting_bytes_max: 1 << 30,
            sessions_max: 20_000,
            session_expiry: Duration::from_secs(24 * 3600),
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
