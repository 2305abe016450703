//! Whom a coordinator agrees to talk to.

use evenhand_protocol::identity::NodeId;
use serde::{Deserialize, Serialize};

use crate::invitation::OneTimeCode;
use crate::keys::PublicKey;

/// What a node says of itself; that it holds the key is proven.
#[derive(Debug, Clone, Copy)]
pub struct Introduction<'a> {
    /// Its name.
    pub node: &'a NodeId,
    /// Its key.
    pub key: PublicKey,
    /// True if it has the same key after its next start; a name can be bound to no other.
    pub keeps_key: bool,
    /// The code of its invitation, if it has one that it did not use.
    pub code: Option<&'a OneTimeCode>,
    /// The serial number of its meter.
    pub serial: Option<&'a str>,
}

/// The owner of names and keys.
pub trait Admission {
    /// Admits a node, now and durably, or says why not.
    fn admit(&mut self, introduction: &Introduction<'_>) -> Result<(), Rejection>;
}

/// Admits everybody: for tests and for coordinators that only listen.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenDoor;

impl Admission for OpenDoor {
    fn admit(&mut self, _introduction: &Introduction<'_>) -> Result<(), Rejection> {
        Ok(())
    }
}

/// The reason why a node is not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Rejection {
    /// The name is unknown, and there is no invitation.
    #[error("it was not invited; ask the operator for an invitation")]
    Uninvited,
    /// The code was used, replaced, or is of another name.
    #[error("its invitation is used up or was replaced; ask the operator for another")]
    Code,
    /// The name belongs to another key.
    #[error("its name belongs to another key; after a lost device, ask the operator to invite it again")]
    OtherKey,
    /// The meter belongs to another name, or the name to another meter.
    #[error("its meter's serial number belongs to another name; ask the operator")]
    Serial,
    /// The operator has revoked it; it is told nothing.
    #[error("it was revoked")]
    Revoked,
    /// No more names are accepted.
    #[error("no more nodes are accepted")]
    Full,
    /// The admission could not be made durable.
    #[error("the coordinator cannot save it now")]
    Storage,
}

impl Rejection {
    /// True if the node is told; a revoked one receives nothing.
    pub(crate) fn is_told(self) -> bool {
        self != Self::Revoked
    }
}
