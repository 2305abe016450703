//! The broker that comes with the coordinator: MQTT 3.1.1 on one listener, in this process.
//!
//! It serves demos, tests and single-machine deployments; a fleet that outgrows one machine uses an
//! external broker by URL and nothing else changes. Packets are parsed by rumqttc's own codec.
//!
//! # Why not rumqttd
//!
//! rumqttd 0.20 was tried first. What it does, and what is needed:
//!
//! | rumqttd 0.20 | here |
//! |---|---|
//! | keeps one log a *topic filter*, and what was delivered stays in it until the log wraps: with a filter a node, memory grows with nodes × segments × segment size | what was acknowledged is gone; waiting bytes are bounded for each session and in total |
//! | a subscriber that falls behind its log "jumps to head": QoS 1 messages are lost without a word | what does not fit is dropped at the end of the queue, counted and logged; nodes that flood the coordinator are held back by TCP instead |
//! | everybody may subscribe to everything, so any node can read every other node's reward | a node may use only what lies under its own name ([`Access`]), and proves that name by a password ([`Secret`]) unless only this machine can connect |
//! | binds by itself, logs a failure instead of returning it, cannot be stopped: threads and port live as long as the process | the listener is bound before anything starts (port 0 works), dropping the handle ends it |
//! | brings axum, a metrics exporter, and five configuration formats along | no further crates |
//!
//! # What it does not do
//!
//! TLS: whoever can listen to the network sees passwords and models. QoS 2, MQTT 5, shared subscriptions, sessions that outlive the process. Evenhand needs none of
//! them: every message is idempotent, and after a restart the coordinator asks again.

mod access;
mod connection;
mod hub;
mod retained;
mod secret;
mod topics;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

pub use self::access::{Access, COORDINATOR};
use self::hub::Hub;
pub use self::secret::{Secret, SecretError};

/// How the broker is run.
#[derive(Debug, Clone)]
pub struct BrokerOptions {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Who may do what.
    pub access: Access,
    /// The largest packet it accepts.
    pub packet_bytes_max: usize,
    /// Bytes that may wait for one client.
    pub session_bytes_max: usize,
    /// Bytes that may wait for all clients together; beyond them, only for those with less than an equal share.
    pub waiting_bytes_max: usize,
    /// Clients it remembers, connected or not.
    pub sessions_max: usize,
    /// Bytes of one message that is retained; a larger one is delivered only.
    pub retained_letter_bytes_max: usize,
    /// Bytes of all retained messages together.
    pub retained_bytes_max: usize,
}

impl BrokerOptions {
    /// On `listen`, with room for thousands of clients and models of several megabytes.
    pub fn new(listen: SocketAddr, access: Access) -> Self {
        Self {
            listen,
            access,
            packet_bytes_max: 16 << 20,
            session_bytes_max: 64 << 20,
            waiting_bytes_max: 1 << 30,
            sessions_max: 20_000,
            // Manifest, births and accounts are below a kilobyte each.
            retained_letter_bytes_max: 16 << 10,
            retained_bytes_max: 64 << 20,
        }
    }

    /// On a free port of this machine.
    pub fn local(access: Access) -> Self {
        Self::new(SocketAddr::from(([127, 0, 0, 1], 0)), access)
    }
}

/// What a broker has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BrokerFigures {
    /// Clients connected now.
    pub connections: usize,
    /// Clients remembered, connected or not.
    pub sessions: usize,
    /// Retained messages.
    pub retained: usize,
    /// Bytes they take.
    pub retained_bytes: usize,
    /// Bytes waiting to be delivered or acknowledged.
    pub waiting_bytes: usize,
    /// Messages accepted.
    pub received: u64,
    /// Messages handed to clients.
    pub delivered: u64,
    /// Messages dropped because a client's queue was full.
    pub dropped: u64,
}

/// A running broker; it ends, soon, when this is dropped.
#[derive(Debug)]
pub struct EmbeddedBroker {
    address: SocketAddr,
    hub: Arc<Mutex<Hub>>,
    acceptor: JoinHandle<()>,
}

impl EmbeddedBroker {
    /// Listens, on the current tokio runtime.
    pub async fn start(options: BrokerOptions) -> io::Result<Self> {
        let listener = TcpListener::bind(options.listen).await?;
        let address = listener.local_addr()?;
        let hub = Arc::new(Mutex::new(Hub::new(&options)));
        let acceptor = tokio::spawn(accept(listener, Arc::clone(&hub), Arc::new(options)));
        Ok(Self { address, hub, acceptor })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens, for a link.
    pub fn url(&self) -> String {
        format!("mqtt://{}", self.address)
    }

    /// Ends it now: on return nobody is connected any more, and the port is free.
    pub async fn stop(mut self) {
        self.acceptor.abort();
        // It was aborted, which is no news.
        let _aborted = (&mut self.acceptor).await;
    }

    /// What it has done so far.
    pub fn figures(&self) -> BrokerFigures {
        locked(&self.hub).figures()
    }
}

impl Drop for EmbeddedBroker {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

async fn accept(listener: TcpListener, hub: Arc<Mutex<Hub>>, options: Arc<BrokerOptions>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    connections.spawn(connection::serve(stream, peer, Arc::clone(&hub), Arc::clone(&options)));
                }
                // Out of file descriptors, for example: those that are open go on, and some will close.
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// The hub's lock; a panic elsewhere leaves nothing half done that matters more than going on.
fn locked(hub: &Mutex<Hub>) -> MutexGuard<'_, Hub> {
    hub.lock().unwrap_or_else(PoisonError::into_inner)
}
