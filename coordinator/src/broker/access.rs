//! Who may do what.

use evenhand_protocol::identity::NodeId;
use evenhand_protocol::topic::{Channel, PREFIX};

/// The user name under which a coordinator logs in.
pub const COORDINATOR: &str = "evenhand-coordinator";

/// The broker's policy.
#[derive(Clone)]
pub enum Access {
    /// Everybody may do everything: for demos on one machine, and for tests that listen in.
    Open,
    /// A node may use only what lies under its own name; the coordinator, which knows the password,
    /// everything. A node's name is its user name, or its client id if it gives none.
    PerNode {
        /// What the coordinator shows, under the user name [`COORDINATOR`].
        password: String,
    },
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Open => "Open",
            Self::PerNode { .. } => "PerNode",
        })
    }
}

/// What one client may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rights {
    All,
    Node(NodeId),
}

impl Access {
    /// Per node, with a password nobody knows: for a coordinator and its broker in one process.
    pub fn per_node() -> Self {
        let mut secret = [0; 16];
        rustls::crypto::ring::default_provider()
            .secure_random
            .fill(&mut secret)
            .expect("the operating system gives random numbers");
        Self::PerNode { password: secret.iter().map(|byte| format!("{byte:02x}")).collect() }
    }

    /// What the coordinator must show, if anything.
    pub fn password(&self) -> Option<&str> {
        match self {
            Self::Open => None,
            Self::PerNode { password } => Some(password),
        }
    }

    /// The rights of a client, or nothing if it may not come in.
    pub(super) fn rights(&self, client: &str, login: Option<(&str, &str)>) -> Option<Rights> {
        let Self::PerNode { password } = self else { return Some(Rights::All) };
        match login {
            Some((COORDINATOR, given)) => (given == password).then_some(Rights::All),
            Some((user, _)) => NodeId::new(user).ok().map(Rights::Node),
            None => NodeId::new(client).ok().map(Rights::Node),
        }
    }
}

impl Rights {
    pub(super) fn is_node(&self) -> bool {
        matches!(self, Self::Node(_))
    }

    pub(super) fn may_publish(&self, topic: &str) -> bool {
        match self {
            Self::All => true,
            Self::Node(node) => own(topic, node, &[Channel::Status, Channel::Update]),
        }
    }

    pub(super) fn may_subscribe(&self, filter: &str) -> bool {
        match self {
            Self::All => true,
            Self::Node(node) => is_manifest(filter) || own(filter, node, &[Channel::Task, Channel::Account]),
        }
    }
}

/// The levels after the prefix that all topics of Evenhand begin with.
fn levels(text: &str) -> Vec<&str> {
    match text.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('/')) {
        Some(rest) => rest.split('/').collect(),
        None => Vec::new(),
    }
}

fn is_manifest(filter: &str) -> bool {
    matches!(levels(filter)[..], [_, "manifest"])
}

/// Whether the topic, or filter, is one of the node's channels. A node's name holds no wildcard.
fn own(text: &str, node: &NodeId, channels: &[Channel]) -> bool {
    match levels(text)[..] {
        [_, "node", name, channel] => {
            name == node.as_str() && channels.iter().any(|allowed| allowed.as_str() == channel)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_node_sees_and_says_only_what_is_its_own() {
        let access = Access::PerNode { password: "secret".into() };
        let meter = access.rights("meter-1", None).unwrap();
        assert_eq!(meter, access.rights("whatever", Some(("meter-1", ""))).unwrap());
        let topic = |rest: &str| format!("evenhand/v1/home/{rest}");
        for allowed in ["manifest", "node/meter-1/task", "node/meter-1/account"] {
            assert!(meter.may_subscribe(&topic(allowed)), "{allowed}");
        }
        for denied in ["#", "node/+/task", "node/meter-2/task", "node/#", "node/meter-1/#", "+/meter-1/task"]
        {
            assert!(!meter.may_subscribe(&topic(denied)), "{denied}");
        }
        assert!(!meter.may_subscribe("#"));
        assert!(
            meter.may_publish(&topic("node/meter-1/update"))
                && meter.may_publish(&topic("node/meter-1/status"))
        );
        for denied in ["manifest", "node/meter-1/task", "node/meter-2/update"] {
            assert!(!meter.may_publish(&topic(denied)), "{denied}");
        }
    }

    #[test]
    fn only_the_password_makes_a_coordinator_and_no_wildcard_makes_a_node() {
        let access = Access::PerNode { password: "secret".into() };
        assert_eq!(access.rights("x", Some((COORDINATOR, "secret"))), Some(Rights::All));
        assert_eq!(access.rights("x", Some((COORDINATOR, "guess"))), None);
        assert_eq!(access.rights("+", None), None);
        assert_eq!(access.rights("x", Some(("#", ""))), None);
    }
}
