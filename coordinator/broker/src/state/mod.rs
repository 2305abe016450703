//! Sessions, subscriptions and retained messages. No I/O.

mod backpressure;
mod places;
mod routing;
mod session;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use evenhand_protocol::identity::NodeId;
use tokio::sync::Notify;

use self::session::{ActiveConnection, ClientSession};
use crate::access::{Access, Permissions};
use crate::message::ApplicationMessage;
use crate::retained::RetainedMessages;
use crate::subscriptions::SubscriptionTree;
use crate::{BrokerOptions, BrokerStats};

/// A connection's number, and the signal for its writer. Numbers are never used twice.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionHandle {
    /// The name of the client's session.
    pub(crate) session: Arc<str>,
    number: u64,
    pub(crate) wake: Arc<Notify>,
}

/// The state that all connections share.
#[derive(Debug)]
pub(crate) struct BrokerState {
    sessions: HashMap<Arc<str>, ClientSession>,
    subscriptions: SubscriptionTree,
    retained: RetainedMessages,
    session_bytes_max: usize,
    waiting_bytes_max: usize,
    sessions_max: usize,
    session_expiry: Duration,
    /// When expired sessions are looked for again.
    next_expiry: Option<Instant>,
    /// Nodes whose places are reserved.
    reserved: HashSet<NodeId>,
    /// False if every client has all permissions, so that they tell nothing about it.
    distinguishes_clients: bool,
    connections: u64,
    stats: BrokerStats,
    /// Notified when a queue that makes nodes wait has room again.
    room: Arc<Notify>,
}

impl BrokerState {
    pub(crate) fn new(options: &BrokerOptions) -> Self {
        Self {
            sessions: HashMap::new(),
            subscriptions: SubscriptionTree::default(),
            retained: RetainedMessages::new(options.retained_message_bytes_max, options.retained_bytes_max),
            session_bytes_max: options.session_bytes_max,
            waiting_bytes_max: options.waiting_bytes_max,
            sessions_max: options.sessions_max,
            session_expiry: options.session_expiry,
            next_expiry: None,
            reserved: HashSet::new(),
            distinguishes_clients: !matches!(options.access, Access::Open),
            connections: 0,
            stats: BrokerStats::default(),
            room: Arc::default(),
        }
    }

    pub(crate) fn stats(&self) -> BrokerStats {
        BrokerStats {
            connections: self.sessions.values().filter(|session| session.connection.is_some()).count(),
            sessions: self.sessions.len(),
            retained: self.retained.len(),
            retained_bytes: self.retained.bytes(),
            ..self.stats
        }
    }

    /// A client id for a client that gives none.
    pub(crate) fn generated_client_id(&self) -> String {
        format!("generated-{}", self.connections + 1)
    }

    /// Connects a client to its session; also returns whether that was present. An older connection of the same session
    /// is closed, and its will is published before anything the new one publishes. None if there are too many sessions.
    pub(crate) fn connect(
        &mut self,
        client_id: &str,
        clean: bool,
        will: Option<ApplicationMessage>,
        permissions: Permissions,
        now: Instant,
    ) -> Option<(ConnectionHandle, bool)> {
        let name = permissions.session_name(client_id);
        let name = name.as_str();
        self.close_connection(name, None, false, now);
        self.expire(now);
        if clean {
            self.remove_session(name);
        }
        let present = self.sessions.contains_key(name);
        if !present && self.sessions.len() >= self.sessions_max && !self.make_place(&permissions, now) {
            return None;
        }
        self.connections += 1;
        let name: Arc<str> = name.into();
        let handle =
            ConnectionHandle { session: Arc::clone(&name), number: self.connections, wake: Arc::default() };
        let session = self.sessions.entry(name).or_insert_with(|| ClientSession::new(permissions, now));
        session.clean = clean;
        session.since = now;
        session.queue.resend();
        session.connection =
            Some(ActiveConnection { number: handle.number, wake: Arc::clone(&handle.wake), will });
        handle.wake.notify_one();
        Some((handle, present))
    }

    /// Ends a connection; its will is published unless the end was graceful.
    pub(crate) fn disconnect(&mut self, handle: &ConnectionHandle, graceful: bool, now: Instant) {
        self.close_connection(&handle.session, Some(handle.number), graceful, now);
    }

    /// Counts a login that was refused.
    pub(crate) fn count_refused_login(&mut self) {
        self.stats.refused_logins += 1;
    }

    fn close_connection(&mut self, name: &str, number: Option<u64>, graceful: bool, now: Instant) {
        let Some(session) = self.sessions.get_mut(name) else { return };
        let current =
            |connection: &mut ActiveConnection| number.is_none_or(|number| connection.number == number);
        let Some(connection) = session.connection.take_if(current) else { return };
        let clean = session.clean;
        session.since = now;
        connection.wake.notify_one();
        // Nodes must not wait for a client that is gone.
        self.room.notify_waiters();
        if clean {
            self.remove_session(name);
        }
        if let Some(will) = connection.will.filter(|_| !graceful) {
            self.publish(will);
        }
    }

    fn remove_session(&mut self, name: &str) {
        if let Some(session) = self.sessions.remove(name) {
            self.stats.waiting_bytes -= session.queue.bytes();
            // The others have a larger share now.
            self.room.notify_waiters();
            for filter in session.subscriptions.keys() {
                self.subscriptions.remove(filter, name);
            }
        }
    }

    /// The session, while the handle's connection is its current one.
    fn session_mut(&mut self, handle: &ConnectionHandle) -> Option<&mut ClientSession> {
        let session = self.sessions.get_mut(&handle.session)?;
        let current = session.connection.as_ref().is_some_and(|c| c.number == handle.number);
        current.then_some(session)
    }
}
