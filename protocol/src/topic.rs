//! The MQTT topics of a federation.
//!
//! The node id is one fixed topic level, so that a broker's access rules can confine a node to the topics under its own
//! name.

use alloc::{format, string::String};

use crate::identity::{FederationId, NodeId};

/// First levels of every topic; the version changes when old and new programs could misunderstand each other.
pub const PREFIX: &str = "evenhand/v1";

/// The purpose of a topic under a node's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channel {
    /// Births, deaths, and what begins a session. Node → coordinator.
    Status,
    /// Orders, among them the model for a node that was drawn. Coordinator → node.
    Task,
    /// Updates and other answers. Node → coordinator.
    Update,
    /// The node's standing, and the reason of the last draw. Coordinator → node.
    Account,
}

impl Channel {
    const ALL: [Channel; 4] = [Channel::Status, Channel::Task, Channel::Update, Channel::Account];

    /// The last level of the topic.
    pub fn as_str(self) -> &'static str {
        match self {
            Channel::Status => "status",
            Channel::Task => "task",
            Channel::Update => "update",
            Channel::Account => "account",
        }
    }
}

/// The topic of what is for all nodes: on the broker, the retained beacon of the coordinator.
pub fn manifest(federation: &FederationId) -> String {
    format!("{PREFIX}/{federation}/manifest")
}

/// One node's topic for `channel`.
pub fn node(federation: &FederationId, node: &NodeId, channel: Channel) -> String {
    format!("{PREFIX}/{federation}/node/{node}/{}", channel.as_str())
}

/// The filter for `channel` of all nodes, to which the coordinator subscribes.
pub fn every_node(federation: &FederationId, channel: Channel) -> String {
    format!("{PREFIX}/{federation}/node/+/{}", channel.as_str())
}

/// The node and channel that `topic` names, if it belongs to `federation`.
pub fn parse_node(federation: &FederationId, topic: &str) -> Option<(NodeId, Channel)> {
    let mut levels = topic.strip_prefix(PREFIX)?.strip_prefix('/')?.split('/');
    let (name, kind, node, last) = (levels.next()?, levels.next()?, levels.next()?, levels.next()?);
    if levels.next().is_some() || name != federation.as_str() || kind != "node" {
        return None;
    }
    let channel = Channel::ALL.into_iter().find(|channel| channel.as_str() == last)?;
    Some((NodeId::new(node).ok()?, channel))
}
