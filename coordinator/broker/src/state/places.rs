//! Places for sessions: expiry, and who gives way to whom.

use std::sync::Arc;
use std::time::{Duration, Instant};

use evenhand_protocol::identity::NodeId;

use super::{BrokerState, ClientSession};
use crate::access::Permissions;

/// The interval at which expired sessions are looked for.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(60);

impl BrokerState {
    /// Reserves places for these nodes.
    pub(crate) fn reserve<'a>(&mut self, nodes: impl IntoIterator<Item = &'a NodeId>) {
        for node in nodes {
            if !self.reserved.contains(node) {
                self.reserved.insert(node.clone());
            }
        }
    }

    /// Removes sessions that were disconnected for too long.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.next_expiry.is_some_and(|next| now < next) {
            return;
        }
        self.next_expiry = Some(now + EXPIRY_INTERVAL);
        let expired = |session: &ClientSession| {
            session.connection.is_none()
                && now.saturating_duration_since(session.since) >= self.session_expiry
        };
        let expired = self.sessions.iter().filter(|(_, session)| expired(session));
        let expired: Vec<Arc<str>> = expired.map(|(name, _)| Arc::clone(name)).collect();
        expired.iter().for_each(|name| self.remove_session(name));
    }

    /// Removes the session that gives way to a client with these permissions; false if none does. Disconnected ones give way,
    /// those without messages first, then the oldest; to a client whose place is reserved, also those that are connected.
    pub(super) fn make_place(&mut self, permissions: &Permissions, now: Instant) -> bool {
        let privileged = self.has_reserved_place(permissions);
        let candidates = self.sessions.iter().filter(|(_, session)| {
            (privileged || session.connection.is_none()) && !self.has_reserved_place(&session.permissions)
        });
        let first = candidates.min_by_key(|(_, session)| {
            (session.connection.is_some(), session.queue.bytes() > 0, session.since)
        });
        let Some(name) = first.map(|(name, _)| Arc::clone(name)) else { return false };
        self.close_connection(&name, None, false, now);
        self.remove_session(&name);
        true
    }

    fn has_reserved_place(&self, permissions: &Permissions) -> bool {
        match permissions {
            Permissions::All => self.distinguishes_clients,
            Permissions::Node { node, .. } => self.reserved.contains(node),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use evenhand_protocol::identity::FederationId;
    use rumqttc::QoS;

    use super::*;
    use crate::message::ApplicationMessage;
    use crate::{Access, BrokerOptions};

    fn node(name: &str) -> Permissions {
        Permissions::Node { federation: FederationId::new("home").unwrap(), node: NodeId::new(name).unwrap() }
    }

    fn full(sessions_max: usize) -> (BrokerState, Instant) {
        let access = Access::per_node(FederationId::new("home").unwrap(), None);
        let options = BrokerOptions { sessions_max, ..BrokerOptions::local(access) };
        let (mut state, begin) = (BrokerState::new(&options), Instant::now());
        for number in 0..sessions_max {
            let at = begin + Duration::from_millis(number as u64);
            let (connection, _) =
                state.connect("x", false, None, node(&format!("ghost{number}")), at).unwrap();
            state.disconnect(&connection, true, at);
        }
        (state, begin + Duration::from_secs(1))
    }

    #[test]
    fn sessions_left_behind_give_way_the_oldest_first_and_those_with_messages_last() {
        let (mut state, now) = full(3);
        let topic = "evenhand/v1/home/node/ghost0/task";
        let (connection, _) = state.connect("x", false, None, node("ghost0"), now).unwrap();
        state.subscribe(&connection, topic, QoS::AtLeastOnce);
        state.disconnect(&connection, true, now);
        let payload = vec![0; 10].into();
        state.publish(ApplicationMessage {
            topic: topic.into(),
            payload,
            qos: QoS::AtLeastOnce,
            retain: false,
        });
        for (newcomer, gone) in [("a", "ghost1"), ("b", "ghost2"), ("c", "ghost0")] {
            state.connect("x", true, None, node(newcomer), now).unwrap();
            assert!(!state.sessions.contains_key(format!("node/{gone}").as_str()), "{gone}");
            assert_eq!(state.sessions.len(), 3);
        }
        assert!(
            state.connect("x", true, None, node("d"), now).is_none(),
            "nobody who is connected gives way"
        );
        assert_eq!(state.stats().waiting_bytes, 0);
    }

    #[test]
    fn enrolled_nodes_and_the_coordinator_always_have_a_place() {
        let (mut state, now) = full(3);
        state.reserve([&NodeId::new("ghost0").unwrap(), &NodeId::new("late").unwrap()]);
        for stranger in ["s1", "s2"] {
            state.connect("x", true, None, node(stranger), now).unwrap();
        }
        assert!(state.sessions.contains_key("node/ghost0"), "reserved, also while it is away");
        assert!(state.connect("x", true, None, node("s3"), now).is_none());
        // They take the places of strangers, even of those that are connected; the last one is for an enrolled node.
        state.connect("x", true, None, node("late"), now).unwrap();
        state.connect("coordinator", true, None, Permissions::All, now).unwrap();
        assert!(!state.sessions.contains_key("node/s1") && !state.sessions.contains_key("node/s2"));
        assert!(state.connect("other", true, None, Permissions::All, now).is_none());
    }

    #[test]
    fn sessions_expire_when_they_were_disconnected_for_long_enough() {
        let (mut state, now) = full(3);
        let (connected, _) = state.connect("x", false, None, node("ghost1"), now).unwrap();
        state.connect("x", true, None, node("ghost2"), now + Duration::from_secs(3600)).unwrap();
        assert_eq!(state.sessions.len(), 3);
        let (_, present) =
            state.connect("x", false, None, node("ghost2"), now + Duration::from_secs(24 * 3600)).unwrap();
        assert!(!present && !state.sessions.contains_key("node/ghost0"));
        assert!(state.sessions.contains_key(&connected.session), "it is connected");
    }
}
