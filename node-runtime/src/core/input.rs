//! What a node can learn of.

use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{Account, Declined, Manifest, Order};

use super::Card;
use crate::reading::Intake;

/// Something happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// The program runs; nothing is connected yet.
    Started,
    /// The link to the broker stands and is subscribed.
    Connected,
    /// The link to the broker is gone.
    Lost,
    /// The federation described itself.
    Manifest(Manifest),
    /// The coordinator asks something of this node.
    Order(Order),
    /// The coordinator sent something that is too long for this node to be read.
    Unread,
    /// The coordinator says how this node stands.
    Account(Account),
    /// What came of looking for, or loading, a graph.
    Graph {
        /// The graph meant.
        digest: Digest,
        /// What came of it.
        outcome: GraphOutcome,
    },
    /// A source handed something over, perhaps nothing: the answer to [`Effect::Read`](super::Effect::Read), or by itself.
    Intake(Intake),
    /// A training ended.
    Trained {
        /// The job's ticket.
        ticket: u64,
        /// What it gave, or why there is nothing.
        outcome: Result<Trained, Declined>,
    },
    /// A forecast was made.
    Predicted {
        /// The end of the step it is for.
        for_ms: i64,
        /// The model's output, normalised.
        value: f32,
    },
    /// The program was asked to end.
    Leave,
}

/// What came of looking for a graph.
#[derive(Debug, Clone, PartialEq)]
pub enum GraphOutcome {
    /// It is there.
    Ready(Card),
    /// It is not known here.
    Absent,
    /// These bytes are not that graph, or no model this node can run.
    Unfit,
}

/// What a training gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    /// Loss of the received weights on the batch.
    pub loss: f32,
    /// Loss of the weights the node forecast with until then, on the samples nobody trained on before.
    pub online_loss: Option<f32>,
    /// Δθᵢ,ₜ.
    pub vector: Vec<f32>,
}
