//! One client's session.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use rumqttc::QoS;
use tokio::sync::Notify;

use crate::access::Permissions;
use crate::message::ApplicationMessage;
use crate::queue::DeliveryQueue;

#[derive(Debug)]
pub(super) struct ActiveConnection {
    pub(super) number: u64,
    pub(super) wake: Arc<Notify>,
    pub(super) will: Option<ApplicationMessage>,
}

#[derive(Debug)]
pub(super) struct ClientSession {
    /// Of the session's owner, which never changes.
    pub(super) permissions: Permissions,
    pub(super) connection: Option<ActiveConnection>,
    /// The time since which it has its connection, or none.
    pub(super) since: Instant,
    /// True if it ends with its connection.
    pub(super) clean: bool,
    pub(super) subscriptions: BTreeMap<String, QoS>,
    pub(super) queue: DeliveryQueue,
    /// True if the last message for it was dropped.
    pub(super) dropping: bool,
}

impl ClientSession {
    pub(super) fn new(permissions: Permissions, since: Instant) -> Self {
        Self {
            permissions,
            connection: None,
            since,
            clean: true,
            subscriptions: BTreeMap::new(),
            queue: DeliveryQueue::default(),
            dropping: false,
        }
    }

    /// True if the queue has room for so many bytes. The coordinator's has room for one message in any case, however
    /// many clients share the rest: nodes get an acknowledgement for it.
    pub(super) fn has_room(&self, bytes: usize, limit: usize) -> bool {
        let queued = self.queue.bytes();
        queued + bytes <= limit || (queued == 0 && !self.permissions.is_node())
    }
}
