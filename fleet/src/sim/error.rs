//! Simulations that cannot go on.

use std::io;

use evenhand_agents::AgentError;
use evenhand_coordinator::shell::ShellError;
use evenhand_federation::{FailureCause, RuleError};
use evenhand_link::{BrokerError, LinkError};
use evenhand_models::ModelError;
use evenhand_node::config::NodeConfigError;
use evenhand_node::shell::NodeError;
use evenhand_program::exit::Exit;
use evenhand_protocol::identity::NameError;

/// A simulation that cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The system gives no threads.
    #[error("cannot start: {0}")]
    Runtime(#[source] io::Error),
    /// The broker's address is none.
    #[error("--broker: {0}")]
    Broker(#[from] BrokerError),
    /// The embedded broker cannot listen.
    #[error("cannot listen on this machine: {0}; name a broker with --broker URL")]
    Listen(#[source] io::Error),
    /// There are no random bytes for keys.
    #[error("the system gives no random bytes: {0}")]
    Entropy(#[source] io::Error),
    /// A link fails.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The coordinator cannot go on.
    #[error(transparent)]
    Coordinator(#[from] ShellError),
    /// A node cannot go on.
    #[error(transparent)]
    NodeShell(#[from] NodeError),
    /// A node's process does not start, or ended.
    #[error("the process of node {node} is not running ({cause}); try again without --processes")]
    Process {
        /// The node.
        node: String,
        /// The process's exit status, or the system's error.
        cause: String,
    },
    /// A node's process cannot print its training time.
    #[error("cannot write to stdout: {0}")]
    Output(#[source] io::Error),
    /// A violated invariant.
    #[error("a defect: {0}")]
    Defect(String),
    /// The federation failed.
    #[error(transparent)]
    Failed(#[from] FailureCause),
    /// No event is left before the last round.
    #[error("the fleet stands still in round {round}; this is a defect")]
    Stalled {
        /// The round that did not end.
        round: u32,
    },
    /// The model cannot be used.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// An agent cannot go on.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The rules are not those of a federation.
    #[error(transparent)]
    Rules(#[from] RuleError),
    /// The configuration is not that of a node.
    #[error(transparent)]
    Node(#[from] NodeConfigError),
    /// A name is not allowed in topics.
    #[error(transparent)]
    Name(#[from] NameError),
}

impl SimulationError {
    /// The exit code of a program that ends by this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Broker(_) | Self::Agent(_) => Exit::Usage,
            Self::Listen(_) => Exit::Broker,
            Self::Entropy(_) => Exit::Software,
            Self::Link(error) => error.exit(),
            Self::Coordinator(error) => error.exit(),
            Self::NodeShell(error) => error.exit(),
            Self::Runtime(_)
            | Self::Output(_)
            | Self::Process { .. }
            | Self::Defect(_)
            | Self::Failed(_)
            | Self::Stalled { .. }
            | Self::Model(_)
            | Self::Rules(_)
            | Self::Node(_)
            | Self::Name(_) => Exit::Software,
        }
    }
}
