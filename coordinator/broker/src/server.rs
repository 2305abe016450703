//! The listeners and their tasks.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use evenhand_program::log_rate::LogRate;
use evenhand_protocol::identity::NodeId;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::client::{self, ClientContext};
use crate::packet::UnfinishedBytes;
use crate::state::BrokerState;
use crate::{BrokerOptions, BrokerStats};

/// The pause after a failed accept, such as for want of file descriptors: open connections go on, and some will close.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// The time for a TLS handshake.
const TLS_TIMEOUT: Duration = Duration::from_secs(10);

/// A running broker; dropping it stops it soon after.
#[derive(Debug)]
pub struct EmbeddedBroker {
    address: SocketAddr,
    /// Where the coordinator connects.
    inner: SocketAddr,
    state: Arc<Mutex<BrokerState>>,
    acceptors: Vec<JoinHandle<()>>,
}

impl EmbeddedBroker {
    /// Listens, on the current tokio runtime.
    pub async fn start(options: BrokerOptions) -> io::Result<Self> {
        let listener = TcpListener::bind(options.listen).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(BrokerState::new(&options)));
        let context = ClientContext {
            state: Arc::clone(&state),
            unfinished: Arc::new(UnfinishedBytes::new(options.unfinished_bytes_max)),
            refused: Arc::default(),
            coordinator_only: false,
            options: Arc::new(options),
        };
        let tls = context.options.tls.clone().map(|tls| TlsAcceptor::from(tls.0));
        let mut acceptors = Vec::new();
        let mut inner = address;
        if tls.is_some() {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
            inner = listener.local_addr()?;
            let context = ClientContext { coordinator_only: true, ..context.clone() };
            acceptors.push(tokio::spawn(accept(listener, None, context)));
        }
        acceptors.push(tokio::spawn(accept(listener, tls, context)));
        Ok(Self { address, inner, state, acceptors })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL that the coordinator connects to, in the same process; nodes too, unless the broker has TLS.
    pub fn url(&self) -> String {
        format!("mqtt://{}", self.inner)
    }

    /// Reserves places for the sessions of these nodes: they do not give way to others.
    pub fn reserve<'a>(&self, nodes: impl IntoIterator<Item = &'a NodeId>) {
        lock(&self.state).reserve(nodes);
    }

    /// Stops it; on return all connections are closed and the port is free.
    pub async fn stop(mut self) {
        for mut acceptor in self.acceptors.drain(..) {
            acceptor.abort();
            let _aborted = (&mut acceptor).await;
        }
    }

    /// Its counters and gauges.
    pub fn stats(&self) -> BrokerStats {
        lock(&self.state).stats()
    }
}

impl Drop for EmbeddedBroker {
    fn drop(&mut self) {
        self.acceptors.iter().for_each(JoinHandle::abort);
    }
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, context: ClientContext) {
    let mut connections = JoinSet::new();
    let mut failures = LogRate::default();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    connections.spawn(serve(stream, peer, tls.clone(), context.clone()));
                }
                Err(error) => {
                    if let Some(left_out) = failures.permit(Instant::now()) {
                        tracing::warn!(%error, left_out, "embedded broker: accept failed");
                    }
                    tokio::time::sleep(ACCEPT_BACKOFF).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, peer: SocketAddr, tls: Option<TlsAcceptor>, context: ClientContext) {
    // Small packets must not wait for each other.
    let _best_effort = stream.set_nodelay(true);
    let Some(tls) = tls else {
        let (input, output) = stream.into_split();
        return client::serve(input, output, peer, context).await;
    };
    match tokio::time::timeout(TLS_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => {
            let (input, output) = tokio::io::split(stream);
            client::serve(input, output, peer, context).await;
        }
        Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
        Err(_) => tracing::debug!(%peer, "no TLS handshake in time"),
    }
}

/// The lock of a mutex; a panic of another task leaves nothing half done that matters more than going on.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
