//! What the broker knows: sessions, subscriptions, retained messages. No I/O.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use rumqttc::QoS;
use tokio::sync::Notify;

use super::access::Rights;
use super::retained::Retained;
use super::topics::Tree;
use super::{BrokerFigures, BrokerOptions};

/// Messages a client may have unacknowledged.
const IN_FLIGHT_MAX: usize = 64;

/// Filters one client may have.
const FILTERS_MAX: usize = 64;

/// What a message that is kept costs besides its payload.
pub(super) const OVERHEAD_BYTES: usize = 128;

/// A message, shared by everybody who gets it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Letter {
    pub(super) topic: String,
    pub(super) payload: Bytes,
    pub(super) qos: QoS,
    pub(super) retain: bool,
}

impl Letter {
    /// What it costs while it waits.
    fn bytes(&self) -> usize {
        self.payload.len() + OVERHEAD_BYTES
    }
}

/// A letter on its way to one client.
#[derive(Debug, Clone)]
pub(super) struct Delivery {
    pub(super) letter: Arc<Letter>,
    pub(super) qos: QoS,
    /// Whether it was kept from before the subscription.
    pub(super) kept: bool,
    /// Its packet id, once it has one.
    pub(super) id: u16,
    /// Whether it may have arrived before.
    pub(super) again: bool,
}

impl Delivery {
    fn bytes(&self) -> usize {
        self.letter.bytes()
    }
}

/// A connection's number, and how to wake its writer. The number is never used twice.
#[derive(Debug, Clone)]
pub(super) struct Ticket {
    pub(super) client: Arc<str>,
    pub(super) number: u64,
    pub(super) wake: Arc<Notify>,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    wake: Arc<Notify>,
    will: Option<Letter>,
}

#[derive(Debug)]
struct Session {
    /// Of whom it belongs to, which never changes.
    rights: Rights,
    connection: Option<Connection>,
    /// Whether it ends with its connection.
    clean: bool,
    subscriptions: BTreeMap<String, QoS>,
    waiting: VecDeque<Delivery>,
    in_flight: VecDeque<Delivery>,
    /// Of both queues.
    bytes: usize,
    last_id: u16,
    dropping: bool,
}

impl Session {
    fn new(rights: Rights) -> Self {
        Self {
            rights,
            connection: None,
            clean: true,
            subscriptions: BTreeMap::new(),
            waiting: VecDeque::new(),
            in_flight: VecDeque::new(),
            bytes: 0,
            last_id: 0,
            dropping: false,
        }
    }

    /// Whether there is room for so much. The coordinator has room for one letter in any case, however many share the rest:
    /// nodes are told that it was taken in.
    fn takes(&self, bytes: usize, limit: usize) -> bool {
        self.bytes + bytes <= limit || (self.bytes == 0 && !self.rights.is_node())
    }

    fn next_id(&mut self) -> u16 {
        loop {
            self.last_id = self.last_id.checked_add(1).unwrap_or(1);
            if self.in_flight.iter().all(|delivery| delivery.id != self.last_id) {
                return self.last_id;
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Hub {
    sessions: HashMap<Arc<str>, Session>,
    tree: Tree,
    retained: Retained,
    session_bytes_max: usize,
    waiting_bytes_max: usize,
    sessions_max: usize,
    connections: u64,
    figures: BrokerFigures,
    /// Rung when a queue that holds nodes back has room again.
    pub(super) room: Arc<Notify>,
}

impl Hub {
    pub(super) fn new(options: &BrokerOptions) -> Self {
        Self {
            sessions: HashMap::new(),
            tree: Tree::default(),
            retained: Retained::new(options.retained_letter_bytes_max, options.retained_bytes_max),
            session_bytes_max: options.session_bytes_max,
            waiting_bytes_max: options.waiting_bytes_max,
            sessions_max: options.sessions_max,
            connections: 0,
            figures: BrokerFigures::default(),
            room: Arc::default(),
        }
    }

    pub(super) fn figures(&self) -> BrokerFigures {
        BrokerFigures {
            connections: self.sessions.values().filter(|session| session.connection.is_some()).count(),
            sessions: self.sessions.len(),
            retained: self.retained.len(),
            retained_bytes: self.retained.bytes(),
            ..self.figures
        }
    }

    /// A name for a client that gives none.
    pub(super) fn nameless(&self) -> String {
        format!("nameless-{}", self.connections + 1)
    }

    /// Lets a client in, and says whether it was known. An older connection to the same session is over,
    /// and its will is published before anything the new one says. None if there is no room.
    pub(super) fn connect(
        &mut self,
        client: &str,
        clean: bool,
        will: Option<Letter>,
        rights: Rights,
    ) -> Option<(Ticket, bool)> {
        let client = rights.session(client);
        let client = client.as_str();
        self.end(client, None, false);
        if clean {
            self.forget(client);
        }
        if !self.sessions.contains_key(client) && self.sessions.len() >= self.sessions_max {
            return None;
        }
        self.connections += 1;
        let known = self.sessions.contains_key(client);
        let client: Arc<str> = client.into();
        let ticket = Ticket { client: Arc::clone(&client), number: self.connections, wake: Arc::default() };
        let session = self.sessions.entry(client).or_insert_with(|| Session::new(rights));
        session.clean = clean;
        // What was not acknowledged goes out again first, under its old ids.
        for mut delivery in session.in_flight.drain(..).rev() {
            delivery.again = true;
            session.waiting.push_front(delivery);
        }
        session.connection = Some(Connection { number: ticket.number, wake: Arc::clone(&ticket.wake), will });
        ticket.wake.notify_one();
        Some((ticket, known))
    }

    /// A connection is over: in peace, or not, and then its will speaks.
    pub(super) fn disconnect(&mut self, ticket: &Ticket, in_peace: bool) {
        self.end(&ticket.client, Some(ticket.number), in_peace);
    }

    fn end(&mut self, client: &str, number: Option<u64>, in_peace: bool) {
        let Some(session) = self.sessions.get_mut(client) else { return };
        let current = |connection: &mut Connection| number.is_none_or(|number| connection.number == number);
        let Some(connection) = session.connection.take_if(current) else { return };
        let clean = session.clean;
        connection.wake.notify_one();
        // Nodes held back by it must not wait for it.
        self.room.notify_waiters();
        if clean {
            self.forget(client);
        }
        if let Some(will) = connection.will.filter(|_| !in_peace) {
            self.publish(will);
        }
    }

    fn forget(&mut self, client: &str) {
        if let Some(session) = self.sessions.remove(client) {
            self.figures.waiting_bytes -= session.bytes;
            // The others have a larger share now.
            self.room.notify_waiters();
            for filter in session.subscriptions.keys() {
                self.tree.remove(filter, client);
            }
        }
    }

    /// The session, while the ticket's connection is still the client's.
    fn session_mut(&mut self, ticket: &Ticket) -> Option<&mut Session> {
        let session = self.sessions.get_mut(&ticket.client)?;
        let current = session.connection.as_ref().is_some_and(|c| c.number == ticket.number);
        current.then_some(session)
    }

    /// Subscribes, and delivers what was retained; says whether there was room for the filter.
    pub(super) fn subscribe(&mut self, ticket: &Ticket, filter: &str, qos: QoS) -> bool {
        let Some(session) = self.session_mut(ticket) else { return false };
        if session.subscriptions.len() >= FILTERS_MAX && !session.subscriptions.contains_key(filter) {
            return false;
        }
        session.subscriptions.insert(filter.to_owned(), qos);
        self.tree.insert(filter, &ticket.client, qos);
        for letter in self.retained.wanted_by(filter) {
            self.enqueue(&ticket.client, letter, qos, true);
        }
        true
    }

    pub(super) fn unsubscribe(&mut self, ticket: &Ticket, filter: &str) {
        if let Some(session) = self.session_mut(ticket)
            && session.subscriptions.remove(filter).is_some()
        {
            self.tree.remove(filter, &ticket.client);
        }
    }

    /// Keeps the letter if it is to be kept, and puts it into the queue of everybody who wants it.
    pub(super) fn publish(&mut self, letter: Letter) {
        self.figures.received += 1;
        let letter = Arc::new(letter);
        if letter.retain {
            self.retained.keep(&letter);
        }
        for (client, qos) in self.tree.matching(&letter.topic) {
            self.enqueue(&client, Arc::clone(&letter), qos, false);
        }
    }

    /// Whether a node that would publish there must wait: the coordinator has not taken in what it was
    /// sent. Only nodes are held back, and never by each other, so that nobody waits in a circle.
    pub(super) fn holds_back(&self, letter: &Letter) -> bool {
        let limit = self.session_limit();
        self.tree.matching(&letter.topic).keys().any(|client| {
            self.sessions.get(client).is_some_and(|session| {
                let full = session.bytes > limit / 2 || !session.takes(letter.bytes(), limit);
                full && session.connection.is_some() && !session.rights.is_node()
            })
        })
    }

    /// What may wait for one client. Where too much waits for all together, it is an equal share: whoever takes nothing in
    /// must not be a burden to the others.
    fn session_limit(&self) -> usize {
        match self.figures.waiting_bytes < self.waiting_bytes_max {
            true => self.session_bytes_max,
            false => self.session_bytes_max.min(self.waiting_bytes_max / self.sessions.len().max(1)),
        }
    }

    fn enqueue(&mut self, client: &Arc<str>, letter: Arc<Letter>, subscribed: QoS, kept: bool) {
        let limit = self.session_limit();
        let Some(session) = self.sessions.get_mut(client) else { return };
        // It was asked when it subscribed; but what a node must not see shall not hang on one question.
        if !session.rights.may_hear(&letter.topic) {
            return;
        }
        let qos = if letter.qos < subscribed { letter.qos } else { subscribed };
        if session.connection.is_none() && qos == QoS::AtMostOnce {
            return;
        }
        let delivery = Delivery { letter, qos, kept, id: 0, again: false };
        let bytes = delivery.bytes();
        if !session.takes(bytes, limit) {
            self.figures.dropped += 1;
            if !std::mem::replace(&mut session.dropping, true) {
                tracing::warn!(%client, waiting_bytes = session.bytes, "queue full; messages are dropped");
            }
            return;
        }
        session.dropping = false;
        session.bytes += bytes;
        self.figures.waiting_bytes += bytes;
        session.waiting.push_back(delivery);
        if let Some(connection) = &session.connection {
            connection.wake.notify_one();
        }
    }

    /// The next deliveries for a connection: about `bytes` of them, none while too many are
    /// unacknowledged. None if the connection is over.
    pub(super) fn take(&mut self, ticket: &Ticket, bytes: usize) -> Option<Vec<Delivery>> {
        let session = self.session_mut(ticket)?;
        let (mut taken, mut taken_bytes, mut freed) = (Vec::new(), 0, 0);
        while taken_bytes < bytes && session.in_flight.len() < IN_FLIGHT_MAX {
            let Some(mut delivery) = session.waiting.pop_front() else { break };
            taken_bytes += delivery.bytes();
            if delivery.qos == QoS::AtMostOnce {
                freed += delivery.bytes();
            } else {
                if delivery.id == 0 {
                    delivery.id = session.next_id();
                }
                session.in_flight.push_back(delivery.clone());
            }
            taken.push(delivery);
        }
        self.figures.delivered += taken.len() as u64;
        self.free(ticket, freed);
        Some(taken)
    }

    /// The client has taken in a delivery.
    pub(super) fn acknowledge(&mut self, ticket: &Ticket, id: u16) {
        let Some(session) = self.session_mut(ticket) else { return };
        let Some(place) = session.in_flight.iter().position(|delivery| delivery.id == id) else { return };
        let full = session.in_flight.len() >= IN_FLIGHT_MAX;
        let freed = session.in_flight.remove(place).map_or(0, |delivery| delivery.bytes());
        if full {
            ticket.wake.notify_one();
        }
        self.free(ticket, freed);
    }

    fn free(&mut self, ticket: &Ticket, bytes: usize) {
        let before = self.session_limit();
        let Some(session) = self.session_mut(ticket) else { return };
        session.bytes -= bytes;
        let (left, holds) = (session.bytes, !session.rights.is_node());
        self.figures.waiting_bytes -= bytes;
        let limit = self.session_limit();
        if limit > before || holds && (left == 0 || (left + bytes > limit / 2 && left <= limit / 2)) {
            self.room.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::SocketAddr;

    use evenhand_protocol::identity::{FederationId, NodeId};

    use super::super::Access;
    use super::*;

    #[test]
    fn what_a_node_must_not_see_is_not_delivered_even_if_it_was_subscribed_to() {
        let options = BrokerOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)), Access::Open);
        let mut hub = Hub::new(&options);
        let rights =
            Rights::Node { federation: FederationId::new("home").unwrap(), node: NodeId::new("a").unwrap() };
        let (ticket, _) = hub.connect("x", true, None, rights).unwrap();
        hub.subscribe(&ticket, "#", QoS::AtLeastOnce);
        for node in ["b", "a"] {
            let topic = format!("evenhand/v1/home/node/{node}/task");
            let payload = Bytes::from(node.to_owned());
            hub.publish(Letter { topic, payload, qos: QoS::AtLeastOnce, retain: false });
        }
        let taken = hub.take(&ticket, 1000).unwrap();
        let seen: Vec<&[u8]> = taken.iter().map(|delivery| &delivery.letter.payload[..]).collect();
        assert_eq!(seen, [b"a"]);
    }

    fn letter(topic: &str, bytes: usize) -> Letter {
        Letter { topic: topic.into(), payload: vec![0; bytes].into(), qos: QoS::AtLeastOnce, retain: false }
    }

    /// A coordinator whose share of the room is less than one letter: what nodes are told was taken in must not be lost.
    #[test]
    fn a_letter_that_is_longer_than_a_share_is_taken_or_held_back_but_not_dropped() {
        let mut options = BrokerOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)), Access::Open);
        (options.session_bytes_max, options.waiting_bytes_max) = (10_000, 1);
        let mut hub = Hub::new(&options);
        let (sleeper, _) = hub.connect("sleeper", false, None, Rights::All).unwrap();
        hub.subscribe(&sleeper, "b", QoS::AtLeastOnce);
        hub.publish(letter("b", 1));
        hub.disconnect(&sleeper, true);
        let (coordinator, _) = hub.connect("coordinator", true, None, Rights::All).unwrap();
        hub.subscribe(&coordinator, "a", QoS::AtLeastOnce);
        for _ in 0..3 {
            let update = letter("a", 5000);
            assert!(!hub.holds_back(&update));
            hub.publish(update);
            assert!(hub.holds_back(&letter("a", 5000)));
            let taken = hub.take(&coordinator, 10_000).unwrap();
            assert_eq!(taken.len(), 1);
            hub.acknowledge(&coordinator, taken[0].id);
        }
        assert_eq!(hub.figures().dropped, 0);
    }

    #[tokio::test]
    async fn who_was_held_back_is_told_when_a_forgotten_session_leaves_room() {
        let options = BrokerOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)), Access::Open);
        let mut hub = Hub::new(&options);
        let (sleeper, _) = hub.connect("sleeper", false, None, Rights::All).unwrap();
        hub.disconnect(&sleeper, true);
        let room = Arc::clone(&hub.room);
        let told = room.notified();
        tokio::pin!(told);
        told.as_mut().enable();
        hub.connect("sleeper", true, None, Rights::All).unwrap();
        told.await;
    }
}
