//! The gate: admits by the registry, and makes what it decides durable first.

use std::fmt::Debug;

use evenhand_protocol::identity::NodeId;
use evenhand_seal::{Admission, Introduction, Rejection};
use serde::{Deserialize, Serialize};

use super::registry::{InviteError, JoinPolicy, NodeRegistry, RegistryChange};

/// Stores the changes of a registry.
pub trait RegistryJournal: Debug + Send + Sync {
    /// Appends changes, all or none; they are durable when this returns.
    fn append(&self, changes: &[RegistryChange]) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
}

/// The reason why the registry was not changed.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// A name or meter is taken.
    #[error(transparent)]
    Invite(#[from] InviteError),
    /// Nobody has this name.
    #[error("there is no {0} to be revoked; see evenhand-coordinator nodes")]
    Unknown(NodeId),
    /// The change cannot be stored.
    #[error("cannot store the change: {0}")]
    Storage(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A name to be invited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitee {
    /// The name.
    pub node: NodeId,
    /// SHA-256 of the code.
    pub code: [u8; 32],
    /// The meter.
    pub serial: Option<String>,
}

/// The owner of names and keys while a coordinator runs.
#[derive(Debug)]
pub struct JoinGate {
    policy: JoinPolicy,
    registry: NodeRegistry,
    journal: Option<Box<dyn RegistryJournal>>,
}

impl JoinGate {
    /// A gate whose registry is forgotten with the program.
    pub fn in_memory(policy: JoinPolicy) -> Self {
        Self { policy, registry: NodeRegistry::default(), journal: None }
    }

    /// A gate that goes on with a stored registry.
    pub fn stored(
        policy: JoinPolicy,
        registry: NodeRegistry,
        journal: impl RegistryJournal + 'static,
    ) -> Self {
        Self { policy, registry, journal: Some(Box::new(journal)) }
    }

    /// The registry.
    pub fn registry(&self) -> &NodeRegistry {
        &self.registry
    }

    /// Invites these, or none of them.
    pub fn invite(&mut self, invitees: &[Invitee], again: bool) -> Result<(), GateError> {
        let mut after = self.registry.clone();
        let mut changes = Vec::new();
        for Invitee { node, code, serial } in invitees {
            after.invitable(node, serial.as_deref(), again)?;
            let change = RegistryChange::Invited { node: node.clone(), code: *code, serial: serial.clone() };
            after.apply(change.clone());
            changes.push(change);
        }
        self.change(&changes)
    }

    /// Revokes a node, until it is invited again.
    pub fn revoke(&mut self, node: &NodeId) -> Result<(), GateError> {
        if self.registry.entry(node).is_none() {
            return Err(GateError::Unknown(node.clone()));
        }
        self.change(&[RegistryChange::Revoked { node: node.clone() }])
    }

    fn change(&mut self, changes: &[RegistryChange]) -> Result<(), GateError> {
        if let Some(journal) = &self.journal {
            journal.append(changes).map_err(GateError::Storage)?;
        }
        changes.iter().for_each(|change| self.registry.apply(change.clone()));
        Ok(())
    }
}

impl Admission for JoinGate {
    fn admit(&mut self, introduction: &Introduction<'_>) -> Result<(), Rejection> {
        let Some(change) = self.registry.admission(introduction, self.policy)? else { return Ok(()) };
        self.change(&[change]).map_err(|error| {
            tracing::error!(%error, "node {}: cannot be admitted", introduction.node);
            Rejection::Storage
        })?;
        let (key, serial) = (introduction.key, introduction.serial);
        tracing::info!(%key, serial, "node {}: admitted", introduction.node);
        Ok(())
    }
}
