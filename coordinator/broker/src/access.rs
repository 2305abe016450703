//! Access policy and permissions of clients.

use evenhand_protocol::identity::{Digest, FederationId, NodeId};
use evenhand_protocol::topic::{self, Channel, PREFIX};
use subtle::ConstantTimeEq;

use crate::Secret;
use crate::secret::random_text;

/// The user name under which a coordinator logs in.
pub const COORDINATOR: &str = "evenhand-coordinator";

/// The access policy of a broker.
#[derive(Clone)]
pub enum Access {
    /// Every client may publish and subscribe everywhere: for demos on one machine, and for tests that read all topics.
    Open,
    /// A node may use only the topics under its own name in this federation; the coordinator, which knows the password,
    /// all topics. A node's name is its user name, or its client id if it gives none.
    PerNode {
        /// The federation whose topics these are; there are no others.
        federation: FederationId,
        /// The coordinator's password; its user name is [`COORDINATOR`].
        password: String,
        /// The secret that nodes' passwords are derived from. Without it names are not verified: any client that can
        /// connect can be any node.
        secret: Option<Secret>,
    },
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Open => "Open",
            Self::PerNode { secret: None, .. } => "PerNode",
            Self::PerNode { secret: Some(_), .. } => "PerNode, with passwords",
        })
    }
}

/// The permissions of one client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Permissions {
    All,
    Node { federation: FederationId, node: NodeId },
}

impl Access {
    /// Per node, with a random password for the coordinator: for a coordinator and its broker in one process.
    pub fn per_node(federation: FederationId, secret: Option<Secret>) -> Self {
        let password = random_text(16);
        Self::PerNode { federation, password, secret }
    }

    /// The coordinator's password, if it needs one.
    pub fn password(&self) -> Option<&str> {
        match self {
            Self::Open => None,
            Self::PerNode { password, .. } => Some(password),
        }
    }

    /// The permissions of a client; `None` if it is not authenticated.
    pub(crate) fn permissions(&self, client_id: &str, login: Option<(&str, &str)>) -> Option<Permissions> {
        let Self::PerNode { federation, password, secret } = self else { return Some(Permissions::All) };
        let (user, given) = login.unwrap_or((client_id, ""));
        if user == COORDINATOR {
            return same(given, password).then_some(Permissions::All);
        }
        let node = NodeId::new(user).ok()?;
        let proven = match secret {
            Some(secret) => same(given, &secret.password(federation, &node)),
            None => true,
        };
        proven.then(|| Permissions::Node { federation: federation.clone(), node })
    }
}

/// Compares digests in constant time, so that the time reveals nothing about the password or its length.
fn same(given: &str, password: &str) -> bool {
    Digest::of(given.as_bytes()).0.ct_eq(&Digest::of(password.as_bytes()).0).into()
}

impl Permissions {
    pub(crate) fn is_node(&self) -> bool {
        matches!(self, Self::Node { .. })
    }

    /// The name of a client's session. A node has one, under the node's name: a client id is not authenticated, and must
    /// not open another client's queue or end another client's connection.
    pub(crate) fn session_name(&self, client_id: &str) -> String {
        match self {
            Self::All => format!("client/{client_id}"),
            Self::Node { node, .. } => format!("node/{node}"),
        }
    }

    pub(crate) fn may_publish(&self, topic: &str) -> bool {
        match self {
            Self::All => true,
            Self::Node { federation, node } => {
                is_channel_of(topic, federation, node, &[Channel::Status, Channel::Update])
            }
        }
    }

    /// True if it may subscribe to this filter, or receive messages of this topic.
    pub(crate) fn may_subscribe(&self, filter: &str) -> bool {
        match self {
            Self::All => true,
            Self::Node { federation, node } => {
                is_channel_of(filter, federation, node, &[Channel::Task, Channel::Account])
                    || filter == topic::manifest(federation)
            }
        }
    }
}

/// True if the topic, or filter, is one of the node's channels. Names hold neither slashes nor wildcards.
fn is_channel_of(text: &str, federation: &FederationId, node: &NodeId, channels: &[Channel]) -> bool {
    let channel = || {
        let rest = text.strip_prefix(PREFIX)?.strip_prefix('/')?.strip_prefix(federation.as_str())?;
        rest.strip_prefix("/node/")?.strip_prefix(node.as_str())?.strip_prefix('/')
    };
    channel().is_some_and(|last| channels.iter().any(|allowed| allowed.as_str() == last))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn access() -> Access {
        let federation = FederationId::new("home").unwrap();
        Access::PerNode { federation, password: "secret".into(), secret: None }
    }

    #[test]
    fn a_node_reads_and_writes_only_its_own_topics() {
        let meter = access().permissions("meter-1", None).unwrap();
        assert_eq!(meter, access().permissions("whatever", Some(("meter-1", ""))).unwrap());
        let topic = |rest: &str| format!("evenhand/v1/home/{rest}");
        for allowed in ["manifest", "node/meter-1/task", "node/meter-1/account"] {
            assert!(meter.may_subscribe(&topic(allowed)), "{allowed}");
            for other in ["town", "home2", "hom", "+", ""] {
                assert!(
                    !meter.may_subscribe(&format!("evenhand/v1/{other}/{allowed}")),
                    "{other}: {allowed}"
                );
            }
        }
        for denied in [
            "#",
            "node/+/task",
            "node/meter-2/task",
            "node/meter-12/task",
            "node/#",
            "node/meter-1/#",
            "node/meter-1/update",
            "+/meter-1/task",
        ] {
            assert!(!meter.may_subscribe(&topic(denied)), "{denied}");
        }
        assert!(!meter.may_subscribe("#"));
        for allowed in ["node/meter-1/update", "node/meter-1/status"] {
            assert!(meter.may_publish(&topic(allowed)));
            assert!(!meter.may_publish(&format!("evenhand/v1/town/{allowed}")), "another federation");
        }
        for denied in ["manifest", "node/meter-1/task", "node/meter-2/update", "node/meter-1/update/x"] {
            assert!(!meter.may_publish(&topic(denied)), "{denied}");
        }
    }

    #[test]
    fn the_coordinator_needs_the_password_and_wildcards_are_no_node_names() {
        let access = access();
        assert_eq!(access.permissions("x", Some((COORDINATOR, "secret"))), Some(Permissions::All));
        assert_eq!(access.permissions("x", Some((COORDINATOR, "guess"))), None);
        assert_eq!(access.permissions(COORDINATOR, None), None);
        assert_eq!(access.permissions("+", None), None);
        assert_eq!(access.permissions("x", Some(("#", ""))), None);
    }

    #[test]
    fn a_client_id_does_not_open_the_session_of_another_client() {
        let access = access();
        let coordinator = access.permissions("x", Some((COORDINATOR, "secret"))).unwrap();
        let (a, b) = (access.permissions("a", None).unwrap(), access.permissions("b", None).unwrap());
        let sessions = [coordinator.session_name("a"), a.session_name("a"), b.session_name("a")];
        assert!(sessions.iter().collect::<std::collections::BTreeSet<_>>().len() == 3, "{sessions:?}");
        assert_eq!(a.session_name("one"), a.session_name("two"));
    }
}
