//! What goes out.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use evenhand_protocol::chunk::Transfer;
use evenhand_protocol::envelope;
use evenhand_protocol::message::{Message, Missing};
use rumqttc::QoS;
use tokio::time::{self, Instant};

use crate::LinkError;
use crate::shared::{Shared, WINDOW, locked};

/// The sending side of a link; clones share it.
#[derive(Debug, Clone)]
pub struct Outbox {
    pub(crate) shared: Arc<Shared>,
}

/// Payload bytes so far, headers of chunks included, those of MQTT and TCP not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Handed to the broker.
    pub bytes_up: u64,
    /// Received from it.
    pub bytes_down: u64,
}

impl Outbox {
    /// Sends `message` at least once, now or when the broker is back.
    ///
    /// Returns when it is queued. Waits while the window of unacknowledged packets is full, so a broker
    /// that stays away makes the caller wait once the window is used up.
    pub async fn publish(&self, topic: &str, message: &Message, retain: bool) -> Result<(), LinkError> {
        if !rumqttc::valid_topic(topic) {
            return Err(LinkError::Topic(topic.to_owned()));
        }
        let transfer = Arc::new(Transfer::new(envelope::encode(message), self.shared.payload_bytes_max)?);
        if retain && transfer.count() > 1 {
            return Err(LinkError::NotKeepable { topic: topic.to_owned(), chunks: transfer.count() });
        }
        let _turn = self.shared.turn.lock().await;
        locked(&self.shared.sent).note(topic, &transfer);
        locked(&self.shared.allowance).renew(topic, transfer.count());
        for packet in transfer.chunks() {
            self.send(topic, packet, retain).await?;
        }
        Ok(())
    }

    /// Has the broker forget what it keeps under `topic`: an empty retained message, as MQTT wants it.
    pub async fn clear(&self, topic: &str) -> Result<(), LinkError> {
        if !rumqttc::valid_topic(topic) {
            return Err(LinkError::Topic(topic.to_owned()));
        }
        let _turn = self.shared.turn.lock().await;
        self.send(topic, Vec::new(), true).await
    }

    /// As [`clear`](Self::clear), for what others left there: said once, for a broker may drop those who say what its
    /// rules forbid, and must not be told again with the next connection.
    pub fn sweep(&self, topic: &str) {
        // An error means that the link is closed.
        let _closed = self.shared.client.try_publish(topic, QoS::AtMostOnce, true, Vec::new());
    }

    /// Payload bytes up and down since the link was made.
    pub fn traffic(&self) -> Traffic {
        Traffic {
            bytes_up: self.shared.bytes_up.load(Ordering::Relaxed),
            bytes_down: self.shared.bytes_down.load(Ordering::Relaxed),
        }
    }

    /// Whether the broker is there and has granted our subscriptions.
    pub fn connected(&self) -> bool {
        self.shared.connected.load(Ordering::Relaxed)
    }

    /// Says goodbye: waits up to `within` for the broker to acknowledge everything, then disconnects.
    ///
    /// A goodbye in peace releases no last will.
    pub async fn close(&self, within: Duration) -> Result<(), LinkError> {
        let deadline = Instant::now() + within;
        let flushed = match time::timeout_at(deadline, self.shared.window.acquire_many(WINDOW)).await {
            Ok(Ok(all)) => {
                all.forget();
                Ok(())
            }
            Ok(Err(_)) => Err(LinkError::Closed),
            Err(_) => Err(LinkError::Unflushed(WINDOW as usize - self.shared.window.available_permits())),
        };
        if flushed.is_ok() && self.connected() && self.shared.client.try_disconnect().is_ok() {
            // The driver closes the window when it has said goodbye.
            let _ended = time::timeout_at(deadline, self.shared.window.acquire()).await;
        }
        self.shared.end();
        flushed
    }

    /// Sends chunks again that the other side of `topic` lost, if it was they who got them.
    pub(crate) async fn resend(&self, topic: &str, missing: &Missing) -> Result<(), LinkError> {
        let Some(transfer) = locked(&self.shared.sent).find(topic, missing) else { return Ok(()) };
        // Each chunk once, however often it is asked for; honest requests are sorted.
        let wanted = (0..transfer.count()).filter(|index| missing.chunks.binary_search(index).is_ok());
        for packet in wanted.filter_map(|index| transfer.chunk(index)) {
            if !locked(&self.shared.allowance).take(topic) {
                break;
            }
            self.send(topic, packet, false).await?;
        }
        Ok(())
    }

    async fn send(&self, topic: &str, packet: Vec<u8>, retain: bool) -> Result<(), LinkError> {
        let permit = self.shared.window.acquire().await.map_err(|_| LinkError::Closed)?;
        let bytes = packet.len() as u64;
        self.shared
            .client
            .try_publish(topic, QoS::AtLeastOnce, retain, packet)
            .map_err(|_| LinkError::Closed)?;
        permit.forget();
        self.shared.bytes_up.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}
