//! The view over HTTP: a page for people, JSON and metrics for programs.
//!
//! Everything can be read by whoever reaches the address, which is the own machine unless configured
//! otherwise; nothing can be changed without the operator's token. What is served comes from the
//! [`View`](crate::view::View), which holds no weights: the latest model is the reward, and leaves the coordinator
//! only in the tasks of drawn nodes.

mod assets;
mod board;
mod error;
mod events;
mod gate;
mod listener;
mod metrics;
mod routes;

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub use self::board::{Board, Watcher};
pub use self::error::DashboardError;
pub use self::gate::Token;
pub use self::routes::paths;

use self::listener::Patient;
use self::routes::App;
use crate::shell::CommandError;
use evenhand_federation::Command;

/// How long the last words may take to reach the browsers.
const FAREWELL: Duration = Duration::from_secs(2);

/// What a dashboard lets others do, and how much of it.
#[derive(Debug, Clone)]
pub struct DashboardOptions {
    /// Where it listens.
    pub listen: SocketAddr,
    /// What the operator must show; without it nobody can command.
    pub token: Option<Token>,
    /// Names under which it is reached, besides addresses and `localhost`.
    pub hosts: Vec<String>,
    /// Connections at a time; further ones wait.
    pub connections_max: usize,
    /// Listeners to events at a time; further ones are refused.
    pub events_max: usize,
    /// The least time between two events to one listener.
    pub pace: Duration,
    /// A connection whose peer asked nothing, or did not take in the answer, for so long is dropped.
    pub patience: Duration,
}

impl DashboardOptions {
    /// Read-only, with limits that suit a few browsers and a Prometheus.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            token: None,
            hosts: Vec::new(),
            connections_max: 256,
            events_max: 64,
            pace: Duration::from_millis(250),
            patience: Duration::from_secs(60),
        }
    }
}

/// Hands the operator's commands on.
pub type Commander = Box<dyn Fn(Command) -> Heeded + Send + Sync>;

/// What becomes of a command.
pub type Heeded = Pin<Box<dyn Future<Output = Result<(), CommandError>> + Send>>;

/// A dashboard that is being served; dropping it ends it at once.
#[derive(Debug)]
pub struct Dashboard {
    address: SocketAddr,
    board: Board,
    stop: watch::Sender<bool>,
    server: JoinHandle<()>,
}

impl Dashboard {
    /// Serves what `board` shows, and hands commands to `commander`.
    pub async fn start(
        options: DashboardOptions,
        board: Board,
        commander: Commander,
    ) -> Result<Self, DashboardError> {
        let listen = |source| DashboardError::Listen { address: options.listen, source };
        let listener = tokio::net::TcpListener::bind(options.listen).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let patient = Patient::new(listener, options.connections_max, options.patience);
        let (stop, stopped) = watch::channel(false);
        let router = routes::router(App::new(options, board.clone(), commander, stopped.clone()));
        let server = tokio::spawn(async move {
            let mut stopped = stopped;
            let asked = async move {
                // An error means that the dashboard was dropped.
                let _dropped = stopped.wait_for(|stop| *stop).await;
            };
            if let Err(error) = axum::serve(patient, router).with_graceful_shutdown(asked).await {
                tracing::error!(%error, "the dashboard ends");
            }
        });
        Ok(Self { address, board, stop, server })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it shows.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Lets everybody see how it ended, then closes all connections.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        let _late = timeout(FAREWELL, &mut self.server).await;
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.server.abort();
    }
}
