//! What a node wants done.

use std::sync::Arc;

use evenhand_models::Batch;
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{LossKind, Message, UpdateKind};
use evenhand_protocol::topic::Channel;

use super::{Entry, Forecast};
use crate::window::Query;

/// Something to be done by the driver, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Send `message` on one of the node's own topics.
    Publish {
        /// The topic's last level.
        channel: Channel,
        /// What is said.
        message: Message,
        /// Whether the broker keeps it for those who come later.
        retain: bool,
    },
    /// Look whether this graph is at hand, and answer with [`Input::Graph`](super::Input::Graph).
    FindGraph(Digest),
    /// Check, keep and load a graph that arrived, and answer with [`Input::Graph`](super::Input::Graph).
    LoadGraph {
        /// The graph it shall be.
        digest: Digest,
        /// The ONNX file.
        onnx: Vec<u8>,
    },
    /// Take the readings of so many rounds from a source that is paced by rounds, and answer with
    /// [`Input::Intake`](super::Input::Intake).
    Read {
        /// Rounds that began since the last time.
        rounds: u32,
    },
    /// Run a training, elsewhere than on the thread that serves the link, and answer with
    /// [`Input::Trained`](super::Input::Trained).
    Train(Box<Job>),
    /// Make a forecast; answer with [`Input::Predicted`](super::Input::Predicted) if it succeeds.
    Predict(Box<Prediction>),
    /// Tell the owner what is to be expected.
    Announce(Forecast),
    /// Write down what came in, so that a crash does not lose it; cheaper than saving the node.
    /// [`Node::replay`](super::Node::replay) wants it back.
    Journal(Entry),
    /// Save the node: what it would be bad to forget has changed.
    Persist,
}

/// One training, as a value: where and when it runs is the driver's business.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Names the job in its outcome.
    pub ticket: u64,
    /// The round it is for.
    pub round: u32,
    /// The model's graph.
    pub graph: Digest,
    /// θ_{t−1}, received for this round.
    pub weights: Arc<[f32]>,
    /// The weights the node forecast with until it was drawn, if it had any.
    pub own: Option<Arc<[f32]>>,
    /// sᵢ,ₜ.
    pub batch: Batch,
    /// How many samples at its end were never trained on: what the online loss is measured on.
    pub fresh: usize,
    /// What is minimised.
    pub loss: LossKind,
    /// What the update is.
    pub kind: UpdateKind,
    /// When the coordinator goes on without this node.
    pub deadline_ms: u32,
    /// Seed of whatever the model draws while it trains, e.g. dropout.
    pub seed: u64,
}

/// One forecast, as a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The model's graph.
    pub graph: Digest,
    /// The weights this node holds.
    pub weights: Arc<[f32]>,
    /// The latest steps.
    pub query: Query,
}
