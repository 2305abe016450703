//! The handle of a running coordinator.

use evenhand_link::{Publisher, Traffic};
use tokio::sync::{mpsc, oneshot};

use super::CommandError;
use evenhand_federation::{Command, Federation};

/// A request to the run loop.
pub(super) enum RunRequest {
    Command(Command, oneshot::Sender<Result<(), CommandError>>),
    Inspect(Box<dyn FnOnce(&Federation) + Send>),
    Stop,
}

/// Controls a running coordinator; clones control the same one.
#[derive(Debug, Clone)]
pub struct CoordinatorHandle {
    requests: mpsc::UnboundedSender<RunRequest>,
    publisher: Publisher,
}

impl CoordinatorHandle {
    pub(super) fn new(requests: mpsc::UnboundedSender<RunRequest>, publisher: Publisher) -> Self {
        Self { requests, publisher }
    }

    /// Passes an operator's command to the federation.
    pub async fn command(&self, command: Command) -> Result<(), CommandError> {
        let (reply, result) = oneshot::channel();
        self.requests.send(RunRequest::Command(command, reply)).map_err(|_| CommandError::ShuttingDown)?;
        result.await.unwrap_or(Err(CommandError::ShuttingDown))
    }

    /// The value of `inspect` between two steps of the federation, after earlier commands; `None` if it has ended.
    pub async fn inspect<T: Send + 'static>(
        &self,
        inspect: impl FnOnce(&Federation) -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, value) = oneshot::channel();
        let inspect = move |federation: &Federation| {
            // The caller may have given up.
            let _unreceived = reply.send(inspect(federation));
        };
        self.requests.send(RunRequest::Inspect(Box::new(inspect))).ok()?;
        value.await.ok()
    }

    /// Stops the coordinator without ending the federation: it can be restored.
    pub fn stop(&self) {
        let _stopped = self.requests.send(RunRequest::Stop);
    }

    /// Payload bytes so far.
    pub fn traffic(&self) -> Traffic {
        self.publisher.traffic()
    }

    /// True while the broker is connected.
    pub fn is_connected(&self) -> bool {
        self.publisher.connected()
    }
}
