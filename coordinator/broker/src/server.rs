//! The listener and its tasks.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use crate::state::BrokerState;
use crate::{BrokerOptions, BrokerStats, client};

/// The pause after a failed accept, such as for want of file descriptors: open connections go on, and some will close.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// A running broker; dropping it stops it soon after.
#[derive(Debug)]
pub struct EmbeddedBroker {
    address: SocketAddr,
    state: Arc<Mutex<BrokerState>>,
    acceptor: JoinHandle<()>,
}

impl EmbeddedBroker {
    /// Listens, on the current tokio runtime.
    pub async fn start(options: BrokerOptions) -> io::Result<Self> {
        let listener = TcpListener::bind(options.listen).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(BrokerState::new(&options)));
        let acceptor = tokio::spawn(accept(listener, Arc::clone(&state), Arc::new(options)));
        Ok(Self { address, state, acceptor })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL that clients connect to.
    pub fn url(&self) -> String {
        format!("mqtt://{}", self.address)
    }

    /// Stops it; on return all connections are closed and the port is free.
    pub async fn stop(mut self) {
        self.acceptor.abort();
        let _aborted = (&mut self.acceptor).await;
    }

    /// Its counters and gauges.
    pub fn stats(&self) -> BrokerStats {
        lock(&self.state).stats()
    }
}

impl Drop for EmbeddedBroker {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<Mutex<BrokerState>>, options: Arc<BrokerOptions>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    connections.spawn(client::serve(stream, peer, Arc::clone(&state), Arc::clone(&options)));
                }
                Err(error) => {
                    tracing::warn!(%error, "embedded broker: accept failed");
                    tokio::time::sleep(ACCEPT_BACKOFF).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// The lock of a mutex; a panic of another task leaves nothing half done that matters more than going on.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
