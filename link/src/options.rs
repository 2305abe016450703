//! Options of a link.

use std::sync::Arc;
use std::time::Duration;

use evenhand_protocol::chunk;
use evenhand_protocol::limits::MessageLimits;
use evenhand_protocol::message::Message;

use crate::{Broker, Sealing, Tls};

/// A message to be published.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboundMessage {
    /// The topic.
    pub topic: String,
    /// The content.
    pub message: Message,
    /// True if the broker retains it for later subscribers.
    pub retain: bool,
}

/// Options of a link; [`LinkOptions::new`] fills in what rarely changes.
///
/// ```
/// use evenhand_link::{Broker, LinkOptions};
///
/// let broker = Broker::parse("mqtt://meter-7:secret@broker.example")?;
/// let options = LinkOptions {
///     subscriptions: vec!["evenhand/v1/town/node/meter-7/task".into()],
///     ..LinkOptions::new(broker, "evenhand-town-meter-7")
/// };
/// assert_eq!(options.broker.to_string(), "broker.example:1883");
/// assert!(options.persistent);
/// # Ok::<(), evenhand_link::BrokerError>(())
/// ```
#[derive(Debug, Clone)]
pub struct LinkOptions {
    /// The broker to connect to.
    pub broker: Broker,
    /// TLS for an `mqtts` broker; the system's root certificates if absent.
    pub tls: Option<Tls>,
    /// The MQTT client id; stable, so that the broker finds the session again.
    pub client_id: String,
    /// Topic filters, subscribed to on every connection.
    pub subscriptions: Vec<String>,
    /// Protection of the messages; without it they travel in clear.
    pub sealing: Option<Arc<dyn Sealing>>,
    /// The MQTT will, published by the broker if it loses the client; with sealing, that of the sealing.
    pub will: Option<OutboundMessage>,
    /// True if the broker stores the session, and messages for it, while the client is offline.
    pub persistent: bool,
    /// The largest MQTT payload to send.
    pub payload_bytes_max: usize,
    /// MessageLimits of what others may send.
    pub limits: MessageLimits,
    /// Bytes of received messages that may wait to be read; beyond them packets are not acknowledged, so that the broker
    /// stops sending.
    pub inbound_bytes_max: usize,
    /// Bytes of sent messages that are stored for receivers that lost chunks.
    pub resend_bytes_max: usize,
    /// Time after which the missing chunks of an incomplete message are requested.
    pub resend_after: Duration,
    /// The MQTT keep-alive interval; the broker gives the client up after one and a half times that. At least a second.
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
            sealing: None,
            will: None,
            persistent: true,
            payload_bytes_max: chunk::PAYLOAD_BYTES_MAX,
            limits: MessageLimits::default(),
            inbound_bytes_max: 64 << 20,
            resend_bytes_max: 64 << 20,
            resend_after: Duration::from_millis(chunk::RESEND_AFTER_MS),
            keep_alive: Duration::from_secs(30),
        }
    }
}
