//! Who may do what.

use evenhand_protocol::identity::{Digest, FederationId, NodeId};
use evenhand_protocol::topic::{self, Channel, PREFIX};

use super::secret::Secret;

/// The user name under which a coordinator logs in.
pub const COORDINATOR: &str = "evenhand-coordinator";

/// The broker's policy.
#[derive(Clone)]
pub enum Access {
    /// Everybody may do everything: for demos on one machine, and for tests that listen in.
    Open,
    /// A node may use only what lies under its own name in this federation; the coordinator, which knows the
    /// password, everything. A node's name is its user name, or its client id if it gives none.
    PerNode {
        /// Whose topics these are; there are no others.
        federation: FederationId,
        /// What the coordinator shows, under the user name [`COORDINATOR`].
        password: String,
        /// What the nodes' passwords follow from. Without it names are believed: then whoever can connect can be
        /// any node.
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

/// What one client may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rights {
    All,
    Node { federation: FederationId, node: NodeId },
}

impl Access {
    /// Per node, with a coordinator's password nobody knows: for a coordinator and its broker in one process.
    pub fn per_node(federation: FederationId, secret: Option<Secret>) -> Self {
        let mut random = [0; 16];
        rustls::crypto::ring::default_provider()
            .secure_random
            .fill(&mut random)
            .expect("the operating system gives random numbers");
        let password = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Self::PerNode { federation, password, secret }
    }

    /// What the coordinator must show, if anything.
    pub fn password(&self) -> Option<&str> {
        match self {
            Self::Open => None,
            Self::PerNode { password, .. } => Some(password),
        }
    }

    /// The rights of a client, or nothing if it may not come in.
    pub(super) fn rights(&self, client: &str, login: Option<(&str, &str)>) -> Option<Rights> {
        let Self::PerNode { federation, password, secret } = self else { return Some(Rights::All) };
        let (user, given) = login.unwrap_or((client, ""));
        if user == COORDINATOR {
            return same(given, password).then_some(Rights::All);
        }
        let node = NodeId::new(user).ok()?;
        let proven = match secret {
            Some(secret) => same(given, &secret.password(federation, &node)),
            None => true,
        };
        proven.then(|| Rights::Node { federation: federation.clone(), node })
    }
}

/// Digests are compared, so that the time it takes tells nothing about the password.
fn same(given: &str, password: &str) -> bool {
    Digest::of(given.as_bytes()) == Digest::of(password.as_bytes())
}

impl Rights {
    pub(super) fn is_node(&self) -> bool {
        matches!(self, Self::Node { .. })
    }

    /// The name of a client's session. A node has one, and it goes by the node's name: a client id is whatever a
    /// client says, and must not open another's queue or end another's connection.
    pub(super) fn session(&self, client: &str) -> String {
        match self {
            Self::All => format!("client/{client}"),
            Self::Node { node, .. } => format!("node/{node}"),
        }
    }

    pub(super) fn may_publish(&self, topic: &str) -> bool {
        match self {
            Self::All => true,
            Self::Node { federation, node } => {
                own(topic, federation, node, &[Channel::Status, Channel::Update])
            }
        }
    }

    /// Whether it may subscribe to this filter, or be sent what is published on this topic.
    pub(super) fn may_hear(&self, filter: &str) -> bool {
        match self {
            Self::All => true,
            Self::Node { federation, node } => {
                own(filter, federation, node, &[Channel::Task, Channel::Account])
                    || filter == topic::manifest(federation)
            }
        }
    }
}

/// Whether the topic, or filter, is one of the node's channels. Names hold neither slashes nor wildcards.
fn own(text: &str, federation: &FederationId, node: &NodeId, channels: &[Channel]) -> bool {
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
    fn a_node_sees_and_says_only_what_is_its_own() {
        let meter = access().rights("meter-1", None).unwrap();
        assert_eq!(meter, access().rights("whatever", Some(("meter-1", ""))).unwrap());
        let topic = |rest: &str| format!("evenhand/v1/home/{rest}");
        for allowed in ["manifest", "node/meter-1/task", "node/meter-1/account"] {
            assert!(meter.may_hear(&topic(allowed)), "{allowed}");
            for other in ["town", "home2", "hom", "+", ""] {
                assert!(!meter.may_hear(&format!("evenhand/v1/{other}/{allowed}")), "{other}: {allowed}");
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
            assert!(!meter.may_hear(&topic(denied)), "{denied}");
        }
        assert!(!meter.may_hear("#"));
        for allowed in ["node/meter-1/update", "node/meter-1/status"] {
            assert!(meter.may_publish(&topic(allowed)));
            assert!(!meter.may_publish(&format!("evenhand/v1/town/{allowed}")), "another federation");
        }
        for denied in ["manifest", "node/meter-1/task", "node/meter-2/update", "node/meter-1/update/x"] {
            assert!(!meter.may_publish(&topic(denied)), "{denied}");
        }
    }

    #[test]
    fn only_the_password_makes_a_coordinator_and_no_wildcard_makes_a_node() {
        let access = access();
        assert_eq!(access.rights("x", Some((COORDINATOR, "secret"))), Some(Rights::All));
        assert_eq!(access.rights("x", Some((COORDINATOR, "guess"))), None);
        assert_eq!(access.rights(COORDINATOR, None), None);
        assert_eq!(access.rights("+", None), None);
        assert_eq!(access.rights("x", Some(("#", ""))), None);
    }

    #[test]
    fn a_client_id_leads_to_nobody_elses_session() {
        let access = access();
        let coordinator = access.rights("x", Some((COORDINATOR, "secret"))).unwrap();
        let (a, b) = (access.rights("a", None).unwrap(), access.rights("b", None).unwrap());
        let sessions = [coordinator.session("a"), a.session("a"), b.session("a")];
        assert!(sessions.iter().collect::<std::collections::BTreeSet<_>>().len() == 3, "{sessions:?}");
        assert_eq!(a.session("one"), a.session("two"));
    }
}
