//! The sending side of a link.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use evenhand_protocol::chunk::Transfer;
use evenhand_protocol::envelope;
use evenhand_protocol::message::{Message, MissingChunks};
use evenhand_seal::SealedMessage;
use rumqttc::QoS;
use tokio::time::{self, Instant};

use crate::LinkError;
use crate::state::{LinkState, WINDOW, locked};

/// The sending side of a link; clones share it.
#[derive(Debug, Clone)]
pub struct Publisher {
    pub(crate) state: Arc<LinkState>,
}

/// Payload bytes so far, headers of chunks included, those of MQTT and TCP not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Sent to the broker.
    pub bytes_up: u64,
    /// Received from it.
    pub bytes_down: u64,
}

impl Publisher {
    /// Publishes `message` at least once, now or after the next connection.
    ///
    /// Returns when it is queued. Waits while the window of unacknowledged packets is full, so a broker
    /// that stays offline makes the caller wait once the window is used up. With sealing, a message to somebody without a
    /// session is dropped: who has none greets, and is told what is under way.
    pub async fn publish(&self, topic: &str, message: &Message, retain: bool) -> Result<(), LinkError> {
        if !rumqttc::valid_topic(topic) {
            return Err(LinkError::InvalidTopic(topic.to_owned()));
        }
        let bytes = envelope::encode(message);
        let Some(sealing) = &self.state.sealing else {
            return self.publish_bytes(topic, bytes, retain).await;
        };
        let sealed = sealing.seal(topic, &bytes, retain);
        if sealed.is_empty() {
            tracing::debug!(topic, "nobody to seal the message to");
        }
        for message in sealed {
            self.publish_sealed(message).await?;
        }
        Ok(())
    }

    /// Publishes bytes that are sealed.
    pub(crate) async fn publish_sealed(&self, sealed: SealedMessage) -> Result<(), LinkError> {
        self.publish_bytes(&sealed.topic, sealed.bytes, sealed.retain).await
    }

    async fn publish_bytes(&self, topic: &str, bytes: Vec<u8>, retain: bool) -> Result<(), LinkError> {
        let transfer = Arc::new(Transfer::new(bytes, self.state.payload_bytes_max)?);
        if retain && transfer.count() > 1 {
            return Err(LinkError::RetainedTooLong { topic: topic.to_owned(), chunks: transfer.count() });
        }
        let _publishing = self.state.publishing.lock().await;
        locked(&self.state.sent).insert(topic, &transfer);
        locked(&self.state.resend_budget).refill(topic, transfer.count());
        for packet in transfer.chunks() {
            self.send(topic, packet, retain).await?;
        }
        Ok(())
    }

    /// Publishes again what the sealing says first on a connection, such as a coordinator's new key.
    pub async fn greet(&self) -> Result<(), LinkError> {
        let Some(sealing) = &self.state.sealing else { return Ok(()) };
        for greeting in sealing.connected(self.state.now_ms()) {
            self.publish_sealed(greeting).await?;
        }
        Ok(())
    }

    /// Removes the retained message of `topic`, by an empty retained one, as MQTT prescribes.
    pub async fn clear_retained(&self, topic: &str) -> Result<(), LinkError> {
        if !rumqttc::valid_topic(topic) {
            return Err(LinkError::InvalidTopic(topic.to_owned()));
        }
        let _publishing = self.state.publishing.lock().await;
        self.send(topic, Vec::new(), true).await
    }

    /// As [`clear_retained`](Self::clear_retained), at most once: for topics of others, on which a broker may disconnect
    /// clients that its access rules forbid to publish. It must not happen again with the next connection.
    pub fn clear_retained_once(&self, topic: &str) {
        // An error means that the link is closed.
        let _closed = self.state.client.try_publish(topic, QoS::AtMostOnce, true, Vec::new());
    }

    /// Payload bytes up and down since the link was made.
    pub fn traffic(&self) -> Traffic {
        Traffic {
            bytes_up: self.state.bytes_up.load(Ordering::Relaxed),
            bytes_down: self.state.bytes_down.load(Ordering::Relaxed),
        }
    }

    /// True while the link is connected and its subscriptions are granted.
    pub fn connected(&self) -> bool {
        self.state.connected.load(Ordering::Relaxed)
    }

    /// Waits up to `timeout` for the broker to acknowledge everything, then disconnects.
    ///
    /// After an orderly disconnect the broker does not publish the will.
    pub async fn close(&self, timeout: Duration) -> Result<(), LinkError> {
        let deadline = Instant::now() + timeout;
        let flushed = match time::timeout_at(deadline, self.state.window.acquire_many(WINDOW)).await {
            Ok(Ok(all)) => {
                all.forget();
                Ok(())
            }
            Ok(Err(_)) => Err(LinkError::Closed),
            Err(_) => Err(LinkError::Unacknowledged(WINDOW as usize - self.state.window.available_permits())),
        };
        if flushed.is_ok() && self.connected() && self.state.client.try_disconnect().is_ok() {
            // The driver closes the window after the disconnect.
            let _ended = time::timeout_at(deadline, self.state.window.acquire()).await;
        }
        self.state.end();
        flushed
    }

    /// Sends chunks again that were lost on `topic`, if they were sent there.
    pub(crate) async fn resend(&self, topic: &str, missing: &MissingChunks) -> Result<(), LinkError> {
        let Some(transfer) = locked(&self.state.sent).find(topic, missing) else { return Ok(()) };
        // Each chunk once, however often it is requested; honest requests are sorted.
        let requested = (0..transfer.count()).filter(|index| missing.chunks.binary_search(index).is_ok());
        for packet in requested.filter_map(|index| transfer.chunk(index)) {
            if !locked(&self.state.resend_budget).take(topic) {
                break;
            }
            self.send(topic, packet, false).await?;
        }
        Ok(())
    }

    async fn send(&self, topic: &str, packet: Vec<u8>, retain: bool) -> Result<(), LinkError> {
        let permit = self.state.window.acquire().await.map_err(|_| LinkError::Closed)?;
        let bytes = packet.len() as u64;
        self.state
            .client
            .try_publish(topic, QoS::AtLeastOnce, retain, packet)
            .map_err(|_| LinkError::Closed)?;
        permit.forget();
        self.state.bytes_up.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}
