//! The handle of a running coordinator.

use std::sync::Arc;

use evenhand_link::{Publisher, Traffic};
use evenhand_protocol::identity::NodeId;
use evenhand_seal::PublicKey;
use tokio::sync::{mpsc, oneshot};
use tokio::task;

use super::CommandError;
use crate::joining::{CoordinatorGate, CoordinatorKeys, GateError, Invitee};
use evenhand_federation::{Command, Federation};

/// A request to the run loop.
pub(super) enum RunRequest {
    Command(Command, oneshot::Sender<Result<(), CommandError>>),
    /// A node was revoked: it is there no longer.
    Gone(NodeId),
    Inspect(Box<dyn FnOnce(&Federation) + Send>),
    Stop,
}

/// Controls a running coordinator; clones control the same one.
#[derive(Debug, Clone)]
pub struct CoordinatorHandle {
    requests: mpsc::UnboundedSender<RunRequest>,
    publisher: Publisher,
    gate: Arc<CoordinatorGate>,
}

impl CoordinatorHandle {
    pub(super) fn new(
        requests: mpsc::UnboundedSender<RunRequest>,
        publisher: Publisher,
        gate: Arc<CoordinatorGate>,
    ) -> Self {
        Self { requests, publisher, gate }
    }

    /// The key that nodes are to know.
    pub fn public_key(&self) -> PublicKey {
        self.gate.with(|seal, _| seal.public())
    }

    /// Invites these names, or none of them.
    pub async fn invite(&self, invitees: Vec<Invitee>, again: bool) -> Result<(), CommandError> {
        self.at_gate(move |gate| gate.with(|_, joining| joining.invite(&invitees, again))).await
    }

    /// Revokes a node: it is sent nothing and not heard until it is invited again.
    pub async fn revoke(&self, node: NodeId) -> Result<(), CommandError> {
        let revoked = node.clone();
        let revoke = move |gate: &CoordinatorGate| {
            gate.with(|seal, joining| {
                joining.revoke(&revoked)?;
                seal.forget(&revoked);
                Ok(())
            })
        };
        self.at_gate(revoke).await?;
        self.requests.send(RunRequest::Gone(node)).map_err(|_| CommandError::ShuttingDown)
    }

    /// Goes on under other keys, which nodes learn from the present ones.
    pub async fn set_keys(&self, keys: CoordinatorKeys) -> Result<(), CommandError> {
        let CoordinatorKeys { current, previous } = keys;
        self.gate.with(|seal, _| seal.set_keys(current, previous.map(|(keys, _)| keys)));
        self.publisher.greet().await.map_err(|_| CommandError::ShuttingDown)
    }

    /// Accepts the key before `current` no longer, if that is still the present one.
    pub fn end_overlap(&self, current: PublicKey) {
        self.gate.with(|seal, _| {
            if seal.public() == current {
                seal.end_overlap();
            }
        });
    }

    /// Makes a change at the gate, which waits for the disk.
    async fn at_gate(
        &self,
        change: impl FnOnce(&CoordinatorGate) -> Result<(), GateError> + Send + 'static,
    ) -> Result<(), CommandError> {
        let gate = Arc::clone(&self.gate);
        match task::spawn_blocking(move || change(&gate)).await {
            Ok(changed) => changed.map_err(|error| CommandError::Gate(error.to_string())),
            Err(panic) => Err(CommandError::Gate(panic.to_string())),
        }
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
