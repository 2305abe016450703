//! What a link needs to know.

use std::time::Duration;

use evenhand_protocol::chunk;
use evenhand_protocol::limits::Limits;
use evenhand_protocol::message::Message;

use crate::{Broker, Tls};

/// A message and where it goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing {
    /// The topic.
    pub topic: String,
    /// What is said there.
    pub message: Message,
    /// Whether the broker keeps it for those who come later.
    pub retain: bool,
}

/// How to link up. [`LinkOptions::new`] fills in what rarely changes.
#[derive(Debug, Clone)]
pub struct LinkOptions {
    /// Whom to connect to.
    pub broker: Broker,
    /// How to trust an `mqtts` broker; the system's roots if absent.
    pub tls: Option<Tls>,
    /// Our name towards the broker; stable, so that it knows us again.
    pub client_id: String,
    /// What we want to hear: topic filters, subscribed anew at every connection.
    pub subscriptions: Vec<String>,
    /// What the broker says for us if it loses us.
    pub will: Option<Outgoing>,
    /// Whether the broker keeps our session, and what is said meanwhile, while we are away.
    pub persistent: bool,
    /// The largest MQTT payload we send.
    pub payload_bytes_max: usize,
    /// How much others may send us.
    pub limits: Limits,
    /// Bytes of messages that may wait to be read before the broker is asked to hold back.
    pub inbox_bytes_max: usize,
    /// Bytes of long messages that are kept for those who lost chunks.
    pub sent_bytes_max: usize,
    /// How long a message may stay incomplete before its missing chunks are asked for.
    pub resend_after: Duration,
    /// How often to show the broker that we live; it misses us after one and a half times that. At least a second.
    pub keep_alive: Duration,
}

impl LinkOptions {
    /// A persistent link without subscriptions or will.
    pub fn new(broker: Broker, client_id: impl Into<String>) -> Self {
        Self {
            broker,
            tls: None,
            client_id: client_id.into(),
            subscriptions: Vec::new(),
            will: None,
            persistent: true,
            payload_bytes_max: chunk::PAYLOAD_BYTES_MAX,
            limits: Limits::default(),
            inbox_bytes_max: 64 << 20,
            sent_bytes_max: 64 << 20,
            resend_after: Duration::from_millis(chunk::PATIENCE_MS),
            keep_alive: Duration::from_secs(30),
        }
    }
}
