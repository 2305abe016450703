//! Limits on queued bytes, and backpressure on nodes.
//!
//! Messages to nodes are dropped when a queue is full. Messages to the coordinator are not: a node that publishes one
//! waits, and TCP slows it down.

use std::sync::Arc;

use tokio::sync::Notify;

use super::{BrokerState, ConnectionHandle};
use crate::message::ApplicationMessage;

impl BrokerState {
    /// Notified when a waiting node may try again.
    pub(crate) fn room(&self) -> Arc<Notify> {
        Arc::clone(&self.room)
    }

    /// True if a node that publishes this message must wait until the coordinator has received earlier ones. Only nodes
    /// wait, and never for each other, so that there is no circle.
    pub(crate) fn must_wait(&self, message: &ApplicationMessage) -> bool {
        let limit = self.session_limit();
        self.subscriptions.matching(&message.topic).keys().any(|name| {
            self.sessions.get(name).is_some_and(|session| {
                let full =
                    session.queue.bytes() > limit / 2 || !session.has_room(message.queued_bytes(), limit);
                full && session.connection.is_some() && !session.permissions.is_node()
            })
        })
    }

    /// Bytes that may be queued for one client. Beyond the total limit it is an equal share: a client that reads nothing
    /// must not take room from the others.
    pub(super) fn session_limit(&self) -> usize {
        match self.stats.waiting_bytes < self.waiting_bytes_max {
            true => self.session_bytes_max,
            false => self.session_bytes_max.min(self.waiting_bytes_max / self.sessions.len().max(1)),
        }
    }

    /// Subtracts bytes that are no longer queued, and wakes waiting nodes if there is room for them.
    pub(super) fn release(&mut self, handle: &ConnectionHandle, bytes: usize) {
        let limit_before = self.session_limit();
        let Some(session) = self.session_mut(handle) else { return };
        session.queue.release(bytes);
        let (left, awaited) = (session.queue.bytes(), !session.permissions.is_node());
        self.stats.waiting_bytes -= bytes;
        let limit = self.session_limit();
        let half = limit / 2;
        if limit > limit_before || awaited && (left == 0 || (left + bytes > half && left <= half)) {
            self.room.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Instant;

    use rumqttc::QoS;

    use super::*;
    use crate::access::Permissions;
    use crate::{Access, BrokerOptions};

    fn message(topic: &str, bytes: usize) -> ApplicationMessage {
        let payload = vec![0; bytes].into();
        ApplicationMessage { topic: topic.into(), payload, qos: QoS::AtLeastOnce, retain: false }
    }

    /// A coordinator whose share of the room is less than one message: acknowledged messages must not be lost.
    #[test]
    fn a_message_longer_than_a_share_is_queued_or_waits_but_is_not_dropped() {
        let mut options = BrokerOptions::local(Access::Open);
        (options.session_bytes_max, options.waiting_bytes_max) = (10_000, 1);
        let mut state = BrokerState::new(&options);
        let (offline, _) = state.connect("offline", false, None, Permissions::All, Instant::now()).unwrap();
        state.subscribe(&offline, "b", QoS::AtLeastOnce);
        state.publish(message("b", 1));
        state.disconnect(&offline, true, Instant::now());
        let (coordinator, _) =
            state.connect("coordinator", true, None, Permissions::All, Instant::now()).unwrap();
        state.subscribe(&coordinator, "a", QoS::AtLeastOnce);
        for _ in 0..3 {
            let update = message("a", 5000);
            assert!(!state.must_wait(&update));
            state.publish(update);
            assert!(state.must_wait(&message("a", 5000)));
            let deliveries = state.take(&coordinator, 10_000).unwrap();
            assert_eq!(deliveries.len(), 1);
            state.acknowledge(&coordinator, deliveries[0].packet_id);
        }
        assert_eq!(state.stats().dropped, 0);
    }

    #[tokio::test]
    async fn waiting_nodes_are_notified_when_a_session_is_removed() {
        let mut state = BrokerState::new(&BrokerOptions::local(Access::Open));
        let (offline, _) = state.connect("offline", false, None, Permissions::All, Instant::now()).unwrap();
        state.disconnect(&offline, true, Instant::now());
        let room = state.room();
        let notified = room.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        state.connect("offline", true, None, Permissions::All, Instant::now()).unwrap();
        notified.await;
    }
}
