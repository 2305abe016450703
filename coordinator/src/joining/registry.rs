//! Names, keys, meters and invitations.

use std::collections::BTreeMap;

use evenhand_protocol::identity::NodeId;
use evenhand_seal::{Introduction, PublicKey, Rejection};
use serde::{Deserialize, Serialize};

/// Names that an open federation gives away; invitations are not bounded.
const OPEN_NAMES_MAX: usize = 20_000;

/// Who may join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinPolicy {
    /// Nodes with an invitation.
    Invited,
    /// Any node under a name that nobody has.
    Open,
}

/// One change of the registry. The list of all is stored, and is the audit trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RegistryChange {
    /// An invitation was made; it replaces an earlier one of the name.
    Invited {
        /// The name.
        node: NodeId,
        /// SHA-256 of the code.
        code: [u8; 32],
        /// The meter it is for.
        serial: Option<String>,
    },
    /// A device joined; the invitation, if there was one, is used up.
    Joined {
        /// The name.
        node: NodeId,
        /// Its key.
        key: PublicKey,
        /// Its meter.
        serial: Option<String>,
    },
    /// The operator revoked a node.
    Revoked {
        /// The name.
        node: NodeId,
    },
}

impl RegistryChange {
    /// The name it is about.
    pub fn node(&self) -> &NodeId {
        match self {
            Self::Invited { node, .. } | Self::Joined { node, .. } | Self::Revoked { node } => node,
        }
    }
}

/// What is known of a name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RegistryEntry {
    /// Its key, once it joined.
    pub key: Option<PublicKey>,
    /// The digest of its open invitation.
    pub invitation: Option<[u8; 32]>,
    /// Its meter.
    pub serial: Option<String>,
    /// The operator revoked it.
    pub revoked: bool,
}

/// The reason why an invitation cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InviteError {
    /// The name is taken.
    #[error("{0} is invited or has joined; evenhand-coordinator invite --again {0} replaces its device")]
    Known(NodeId),
    /// The name is free.
    #[error("there is no {0} to be invited again; leave out --again")]
    Unknown(NodeId),
    /// The meter is taken.
    #[error("the meter {serial} belongs to {node}; one meter has one name")]
    Serial {
        /// The serial number.
        serial: String,
        /// Whose it is.
        node: NodeId,
    },
}

/// Names, keys, meters and invitations.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeRegistry {
    entries: BTreeMap<NodeId, RegistryEntry>,
    serials: BTreeMap<String, NodeId>,
}

impl NodeRegistry {
    /// The registry after these changes.
    pub fn replay(changes: impl IntoIterator<Item = RegistryChange>) -> Self {
        let mut registry = Self::default();
        changes.into_iter().for_each(|change| registry.apply(change));
        registry
    }

    /// All names.
    pub fn entries(&self) -> impl Iterator<Item = (&NodeId, &RegistryEntry)> {
        self.entries.iter()
    }

    /// What is known of a name.
    pub fn entry(&self, node: &NodeId) -> Option<&RegistryEntry> {
        self.entries.get(node)
    }

    /// Applies a change that was decided.
    pub fn apply(&mut self, change: RegistryChange) {
        let node = change.node().clone();
        let entry = self.entries.entry(node.clone()).or_default();
        let serial = match change {
            RegistryChange::Invited { code, serial, .. } => {
                (entry.invitation, entry.revoked) = (Some(code), false);
                serial
            }
            RegistryChange::Joined { key, serial, .. } => {
                (entry.key, entry.invitation, entry.revoked) = (Some(key), None, false);
                serial
            }
            RegistryChange::Revoked { .. } => {
                (entry.key, entry.invitation, entry.revoked) = (None, None, true);
                None
            }
        };
        if let Some(serial) = serial {
            let before = entry.serial.replace(serial.clone());
            // A meter that was exchanged may get another name.
            if let Some(before) = before.filter(|before| *before != serial) {
                self.serials.remove(&before);
            }
            self.serials.insert(serial, node);
        }
    }

    /// The change by which a node is admitted, none if it is one that has joined; or the reason why it is not.
    pub fn admission(
        &self,
        introduction: &Introduction<'_>,
        policy: JoinPolicy,
    ) -> Result<Option<RegistryChange>, Rejection> {
        let Introduction { node, key, keeps_key, code, serial } = *introduction;
        let unknown = RegistryEntry::default();
        let (entry, known) = self.entries.get(node).map_or((&unknown, false), |entry| (entry, true));
        if entry.revoked {
            return Err(Rejection::Revoked);
        }
        let foreign = serial.and_then(|serial| self.serials.get(serial)).is_some_and(|owner| owner != node);
        let invited = code.is_some_and(|code| entry.invitation == Some(code.digest()));
        let other = entry.serial.is_some() && entry.serial.as_deref() != serial;
        let joined = RegistryChange::Joined { node: node.clone(), key, serial: serial.map(str::to_owned) };
        if foreign || other {
            return Err(Rejection::Serial);
        }
        match entry.key {
            _ if invited => Ok(Some(joined)),
            Some(bound) if bound == key => Ok(None),
            _ if code.is_some() && (known || policy == JoinPolicy::Invited) => Err(Rejection::Code),
            Some(_) => Err(Rejection::OtherKey),
            None if known || policy == JoinPolicy::Invited => Err(Rejection::Uninvited),
            // For as long as its session lasts.
            None if !keeps_key => Ok(None),
            None if self.entries.len() >= OPEN_NAMES_MAX => Err(Rejection::Full),
            None => Ok(Some(joined)),
        }
    }

    /// The reason why a name cannot be invited, if there is one; `again` replaces the device of a name that is known.
    pub fn invitable(&self, node: &NodeId, serial: Option<&str>, again: bool) -> Result<(), InviteError> {
        match self.entries.contains_key(node) {
            true if !again => return Err(InviteError::Known(node.clone())),
            false if again => return Err(InviteError::Unknown(node.clone())),
            _ => {}
        }
        match serial.and_then(|serial| Some((serial, self.serials.get(serial)?))) {
            Some((serial, owner)) if owner != node => {
                Err(InviteError::Serial { serial: serial.to_owned(), node: owner.clone() })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use evenhand_seal::{Entropy, KeyPair, OneTimeCode};

    fn id(name: &str) -> NodeId {
        NodeId::new(name).unwrap()
    }

    fn key(seed: u8) -> PublicKey {
        KeyPair::generate(&mut Entropy::from_seed([seed; 32])).public()
    }

    fn code(seed: u8) -> OneTimeCode {
        OneTimeCode::generate(&mut Entropy::from_seed([seed; 32]))
    }

    /// A device that asks to be admitted.
    fn asks(
        registry: &mut NodeRegistry,
        (name, seed): (&str, u8),
        code: Option<&OneTimeCode>,
        serial: Option<&str>,
        policy: JoinPolicy,
    ) -> Result<(), Rejection> {
        let node = id(name);
        let introduction = Introduction { node: &node, key: key(seed), keeps_key: seed < 100, code, serial };
        let change = registry.admission(&introduction, policy)?;
        change.into_iter().for_each(|change| registry.apply(change));
        Ok(())
    }

    fn invite(registry: &mut NodeRegistry, name: &str, seed: u8, serial: Option<&str>) {
        let serial = serial.map(str::to_owned);
        registry.apply(RegistryChange::Invited { node: id(name), code: code(seed).digest(), serial });
    }

    #[test]
    fn an_invitation_admits_one_device_once() {
        use JoinPolicy::Invited;
        let mut registry = NodeRegistry::default();
        assert_eq!(asks(&mut registry, ("a", 1), None, None, Invited), Err(Rejection::Uninvited));
        invite(&mut registry, "a", 7, None);
        assert_eq!(asks(&mut registry, ("a", 1), None, None, Invited), Err(Rejection::Uninvited));
        assert_eq!(asks(&mut registry, ("a", 1), Some(&code(8)), None, Invited), Err(Rejection::Code));
        assert_eq!(asks(&mut registry, ("b", 1), Some(&code(7)), None, Invited), Err(Rejection::Code));
        assert_eq!(asks(&mut registry, ("a", 1), Some(&code(7)), None, Invited), Ok(()));
        assert_eq!(asks(&mut registry, ("a", 2), Some(&code(7)), None, Invited), Err(Rejection::Code));
        assert_eq!(asks(&mut registry, ("a", 2), None, None, Invited), Err(Rejection::OtherKey));
        for repeated in [None, Some(&code(7))] {
            assert_eq!(
                asks(&mut registry, ("a", 1), repeated, None, Invited),
                Ok(()),
                "it says it until it is heard"
            );
        }
    }

    #[test]
    fn a_key_that_is_lost_binds_no_name_and_takes_none_that_is_bound() {
        let mut registry = NodeRegistry::default();
        for seed in [101, 102] {
            assert_eq!(asks(&mut registry, ("a", seed), None, None, JoinPolicy::Open), Ok(()));
        }
        assert_eq!(registry.entries().count(), 0);
        let invited = asks(&mut registry, ("a", 101), None, None, JoinPolicy::Invited);
        assert_eq!(invited, Err(Rejection::Uninvited));
        assert_eq!(asks(&mut registry, ("a", 1), None, None, JoinPolicy::Open), Ok(()));
        assert_eq!(asks(&mut registry, ("a", 101), None, None, JoinPolicy::Open), Err(Rejection::OtherKey));
    }

    #[test]
    fn one_meter_has_one_name() {
        use JoinPolicy::Invited;
        let mut registry = NodeRegistry::default();
        invite(&mut registry, "a", 1, Some("S1"));
        assert!(matches!(registry.invitable(&id("b"), Some("S1"), false), Err(InviteError::Serial { .. })));
        assert_eq!(asks(&mut registry, ("a", 1), Some(&code(1)), None, Invited), Err(Rejection::Serial));
        assert_eq!(
            asks(&mut registry, ("a", 1), Some(&code(1)), Some("S2"), Invited),
            Err(Rejection::Serial)
        );
        assert_eq!(asks(&mut registry, ("a", 1), Some(&code(1)), Some("S1"), Invited), Ok(()));
        invite(&mut registry, "b", 2, None);
        assert_eq!(
            asks(&mut registry, ("b", 2), Some(&code(2)), Some("S1"), Invited),
            Err(Rejection::Serial)
        );
        assert_eq!(asks(&mut registry, ("b", 2), Some(&code(2)), Some("S3"), Invited), Ok(()));
    }

    #[test]
    fn a_lost_device_is_replaced_and_a_revoked_one_is_not_heard() {
        use JoinPolicy::Open;
        let mut registry = NodeRegistry::default();
        assert_eq!(asks(&mut registry, ("a", 1), None, None, Open), Ok(()));
        assert_eq!(asks(&mut registry, ("a", 2), None, None, Open), Err(Rejection::OtherKey));
        registry.apply(RegistryChange::Revoked { node: id("a") });
        for seed in [1, 2] {
            assert_eq!(asks(&mut registry, ("a", seed), None, None, Open), Err(Rejection::Revoked));
        }
        assert_eq!(registry.invitable(&id("a"), None, false), Err(InviteError::Known(id("a"))));
        assert_eq!(registry.invitable(&id("a"), None, true), Ok(()));
        assert_eq!(registry.invitable(&id("z"), None, true), Err(InviteError::Unknown(id("z"))));
        invite(&mut registry, "a", 5, None);
        assert_eq!(asks(&mut registry, ("a", 1), None, None, Open), Err(Rejection::Uninvited));
        assert_eq!(asks(&mut registry, ("a", 2), Some(&code(5)), None, Open), Ok(()));
        assert_eq!(asks(&mut registry, ("a", 1), None, None, Open), Err(Rejection::OtherKey));
    }
}
