//! Subscriptions, publication and delivery.

use std::sync::Arc;

use rumqttc::QoS;

use super::{BrokerState, ConnectionHandle};
use crate::message::{ApplicationMessage, Delivery};

/// Filters a client may subscribe to.
const FILTERS_MAX: usize = 64;

impl BrokerState {
    /// Subscribes and delivers matching retained messages; false if the client has too many filters.
    pub(crate) fn subscribe(&mut self, handle: &ConnectionHandle, filter: &str, qos: QoS) -> bool {
        let Some(session) = self.session_mut(handle) else { return false };
        if session.subscriptions.len() >= FILTERS_MAX && !session.subscriptions.contains_key(filter) {
            return false;
        }
        session.subscriptions.insert(filter.to_owned(), qos);
        self.subscriptions.insert(filter, &handle.session, qos);
        for message in self.retained.matching(filter) {
            self.enqueue(&handle.session, message, qos, true);
        }
        true
    }

    pub(crate) fn unsubscribe(&mut self, handle: &ConnectionHandle, filter: &str) {
        if let Some(session) = self.session_mut(handle)
            && session.subscriptions.remove(filter).is_some()
        {
            self.subscriptions.remove(filter, &handle.session);
        }
    }

    /// Retains the message if it asks for that, and queues it for every subscriber.
    pub(crate) fn publish(&mut self, message: ApplicationMessage) {
        self.stats.received += 1;
        let message = Arc::new(message);
        if message.retain {
            self.retained.set(&message);
        }
        for (session, qos) in self.subscriptions.matching(&message.topic) {
            self.enqueue(&session, Arc::clone(&message), qos, false);
        }
    }

    fn enqueue(
        &mut self,
        name: &Arc<str>,
        message: Arc<ApplicationMessage>,
        subscribed: QoS,
        retained: bool,
    ) {
        let limit = self.session_limit();
        let Some(session) = self.sessions.get_mut(name) else { return };
        // Checked at the subscription, too; but privacy shall not depend on one check.
        if !session.permissions.may_subscribe(&message.topic) {
            return;
        }
        let qos = if message.qos < subscribed { message.qos } else { subscribed };
        if session.connection.is_none() && qos == QoS::AtMostOnce {
            return;
        }
        let delivery = Delivery::new(message, qos, retained);
        let bytes = delivery.bytes();
        if !session.has_room(bytes, limit) {
            self.stats.dropped += 1;
            if !std::mem::replace(&mut session.dropping, true) {
                let queued_bytes = session.queue.bytes();
                tracing::warn!(session = %name, queued_bytes, "embedded broker: queue full, dropping messages");
            }
            return;
        }
        session.dropping = false;
        self.stats.waiting_bytes += bytes;
        session.queue.push(delivery);
        if let Some(connection) = &session.connection {
            connection.wake.notify_one();
        }
    }

    /// The next deliveries for a connection, of about `bytes` bytes; `None` if the connection is over.
    pub(crate) fn take(&mut self, handle: &ConnectionHandle, bytes: usize) -> Option<Vec<Delivery>> {
        let deliveries = self.session_mut(handle)?.queue.take(bytes);
        self.stats.delivered += deliveries.len() as u64;
        // Nobody acknowledges these.
        let done = deliveries.iter().filter(|delivery| delivery.qos == QoS::AtMostOnce);
        let done_bytes = done.map(Delivery::bytes).sum();
        self.release(handle, done_bytes);
        Some(deliveries)
    }

    /// Removes a delivery that the client has acknowledged.
    pub(crate) fn acknowledge(&mut self, handle: &ConnectionHandle, packet_id: u16) {
        let Some(session) = self.session_mut(handle) else { return };
        let Some(acknowledged) = session.queue.acknowledge(packet_id) else { return };
        if acknowledged.unblocked {
            handle.wake.notify_one();
        }
        self.release(handle, acknowledged.bytes);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Instant;

    use bytes::Bytes;
    use evenhand_protocol::identity::{FederationId, NodeId};

    use super::*;
    use crate::access::Permissions;
    use crate::{Access, BrokerOptions};

    #[test]
    fn messages_a_node_must_not_read_are_not_delivered_even_with_a_subscription() {
        let mut state = BrokerState::new(&BrokerOptions::local(Access::Open));
        let permissions = Permissions::Node {
            federation: FederationId::new("home").unwrap(),
            node: NodeId::new("a").unwrap(),
        };
        let (connection, _) = state.connect("x", true, None, permissions, Instant::now()).unwrap();
        state.subscribe(&connection, "#", QoS::AtLeastOnce);
        for node in ["b", "a"] {
            let topic = format!("evenhand/v1/home/node/{node}/task");
            let payload = Bytes::from(node.to_owned());
            state.publish(ApplicationMessage { topic, payload, qos: QoS::AtLeastOnce, retain: false });
        }
        let deliveries = state.take(&connection, 1000).unwrap();
        let payloads: Vec<&[u8]> = deliveries.iter().map(|delivery| &delivery.message.payload[..]).collect();
        assert_eq!(payloads, [b"a"]);
    }
}
