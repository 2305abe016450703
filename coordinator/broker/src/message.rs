//! Application messages, and their deliveries to clients.

use std::sync::Arc;

use bytes::Bytes;
use rumqttc::{LastWill, Publish, QoS};

/// Bytes counted for a stored message besides its payload.
pub(crate) const OVERHEAD_BYTES: usize = 128;

/// An application message, in the words of the MQTT standard; all its recipients share it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ApplicationMessage {
    pub(crate) topic: String,
    pub(crate) payload: Bytes,
    pub(crate) qos: QoS,
    pub(crate) retain: bool,
}

impl ApplicationMessage {
    /// The bytes it counts for in a queue.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.payload.len() + OVERHEAD_BYTES
    }

    /// The bytes it counts for as a retained message: the topic is stored in it and beside it.
    pub(crate) fn retained_bytes(&self) -> usize {
        self.payload.len() + 2 * self.topic.len() + OVERHEAD_BYTES
    }
}

impl From<LastWill> for ApplicationMessage {
    fn from(LastWill { topic, message, qos, retain }: LastWill) -> Self {
        Self { topic, payload: Bytes::copy_from_slice(&message), qos: supported_qos(qos), retain }
    }
}

/// A message queued for one client.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(crate) message: Arc<ApplicationMessage>,
    pub(crate) qos: QoS,
    /// True if it was published before the subscription.
    pub(crate) retained: bool,
    /// 0 until it is first sent with QoS 1.
    pub(crate) packet_id: u16,
    /// True if it may have arrived before.
    pub(crate) duplicate: bool,
}

impl Delivery {
    /// A delivery that was not sent yet.
    pub(crate) fn new(message: Arc<ApplicationMessage>, qos: QoS, retained: bool) -> Self {
        Self { message, qos, retained, packet_id: 0, duplicate: false }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.message.queued_bytes()
    }
}

impl From<Delivery> for Publish {
    fn from(Delivery { message, qos, retained, packet_id, duplicate }: Delivery) -> Publish {
        Publish {
            dup: duplicate,
            qos,
            retain: retained,
            topic: message.topic.clone(),
            pkid: packet_id,
            payload: message.payload.clone(),
        }
    }
}

/// The requested quality of service, lowered to the highest that is supported.
pub(crate) fn supported_qos(requested: QoS) -> QoS {
    if requested == QoS::AtMostOnce { requested } else { QoS::AtLeastOnce }
}
