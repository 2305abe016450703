//! The view over HTTP: a page for people, JSON and metrics for programs.
//!
//! Everything can be read by anybody who reaches the address, which is that of the own machine unless configured
//! otherwise; nothing can be changed without the operator's token. Answers come from the
//! [`FederationView`](crate::view::FederationView), which holds no weights: the latest model is the reward, and leaves the coordinator
//! only in the tasks of drawn nodes.

mod assets;
mod auth;
mod error;
mod events;
mod listener;
mod live_view;
mod metrics;
mod routes;
mod seats;

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub use self::auth::OperatorToken;
pub use self::error::DashboardError;
pub use self::live_view::{LiveView, LiveViewUpdater};
pub use self::routes::paths;

use self::listener::LimitedListener;
use self::routes::App;
use crate::shell::CommandError;
use evenhand_federation::Command;

/// The longest that the last event may take to reach the browsers.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Address, access and limits of a dashboard.
#[derive(Debug, Clone)]
pub struct DashboardOptions {
    /// The address it listens on.
    pub listen: SocketAddr,
    /// The token that commands need; without it none is accepted.
    pub token: Option<OperatorToken>,
    /// Names under which it is reached, besides addresses and `localhost`.
    pub hosts: Vec<String>,
    /// Connections at a time; beyond them, the one that has waited longest is closed.
    pub connections_max: usize,
    /// Event streams at a time; further ones are refused.
    pub events_max: usize,
    /// The least time between two events to one subscriber.
    pub pace: Duration,
    /// A connection without a request, or whose answer is not read, is closed after this time.
    pub idle_timeout: Duration,
    /// The time after which a wrong token is refused, a few at a time: guessing is slow.
    pub refusal_delay: Duration,
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
            idle_timeout: Duration::from_secs(60),
            refusal_delay: Duration::from_secs(1),
        }
    }
}

/// The receiver of the operator's commands.
pub type CommandSink = Box<dyn Fn(Command) -> CommandResult + Send + Sync>;

/// The pending result of a command.
pub type CommandResult = Pin<Box<dyn Future<Output = Result<(), CommandError>> + Send>>;

/// A dashboard that is being served; dropping it ends it at once.
#[derive(Debug)]
pub struct Dashboard {
    address: SocketAddr,
    live_view: LiveView,
    stop: watch::Sender<bool>,
    server: JoinHandle<()>,
}

impl Dashboard {
    /// Serves `live_view`, and passes commands to `command_sink`.
    pub async fn start(
        options: DashboardOptions,
        live_view: LiveView,
        command_sink: CommandSink,
    ) -> Result<Self, DashboardError> {
        let listen = |source| DashboardError::Listen { address: options.listen, source };
        let listener = tokio::net::TcpListener::bind(options.listen).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let limited = LimitedListener::new(listener, options.connections_max, options.idle_timeout);
        let (stop, stopped) = watch::channel(false);
        let router = routes::router(App::new(options, live_view.clone(), command_sink, stopped.clone()));
        let server = tokio::spawn(async move {
            let mut stopped = stopped;
            let asked = async move {
                // An error means that the dashboard was dropped.
                let _dropped = stopped.wait_for(|stop| *stop).await;
            };
            if let Err(error) = axum::serve(limited, router).with_graceful_shutdown(asked).await {
                tracing::error!(%error, "dashboard: server failed");
            }
        });
        Ok(Self { address, live_view, stop, server })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The view it serves.
    pub fn live_view(&self) -> &LiveView {
        &self.live_view
    }

    /// Sends a last event to all subscribers, then closes all connections.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        let _late = timeout(SHUTDOWN_TIMEOUT, &mut self.server).await;
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.server.abort();
    }
}
