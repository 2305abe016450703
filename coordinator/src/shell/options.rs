//! Options of the coordinator's connection.

use std::sync::Arc;
use std::time::Duration;

use evenhand_link::{Broker, Tls};

use crate::joining::CoordinatorGate;

/// The broker of a coordinator, and the limits towards it.
#[derive(Debug, Clone)]
pub struct ConnectionOptions {
    /// The broker.
    pub broker: Broker,
    /// Its certificates, with TLS.
    pub tls: Option<Tls>,
    /// Keys and names; without them, new ones that are forgotten with the coordinator, and every name is admitted once.
    pub sealing: Option<Arc<CoordinatorGate>>,
    /// The largest MQTT payload the broker accepts.
    pub payload_bytes_max: usize,
    /// The limit for the first connection.
    pub connect_timeout: Duration,
}

impl ConnectionOptions {
    /// To `broker`, with limits that every broker accepts.
    pub fn new(broker: Broker) -> Self {
        let payload_bytes_max = evenhand_protocol::chunk::PAYLOAD_BYTES_MAX;
        Self { broker, tls: None, sealing: None, payload_bytes_max, connect_timeout: Duration::from_secs(10) }
    }
}
