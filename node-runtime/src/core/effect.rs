//! Effects of the state machine.

use std::sync::Arc;

use evenhand_models::Batch;
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{LossKind, Message, UpdateKind};
use evenhand_protocol::tick::Tick;
use evenhand_protocol::topic::Channel;

use super::{Forecast, JournalEntry};
use crate::window::ForecastQuery;

/// An action for the driver; the effects of a step are carried out in order.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeEffect {
    /// Send `message` on one of the node's own topics.
    Publish {
        /// The topic's last level.
        channel: Channel,
        /// The message.
        message: Message,
        /// The broker retains it for later subscribers.
        retain: bool,
    },
    /// Look for this graph in the cache, and answer with [`NodeInput::Graph`](super::NodeInput::Graph).
    FindGraph(Digest),
    /// Check, save and load a received graph, and answer with [`NodeInput::Graph`](super::NodeInput::Graph).
    LoadGraph {
        /// The graph that was requested.
        digest: Digest,
        /// The ONNX file.
        onnx: Vec<u8>,
    },
    /// Read the data of some rounds from a source that is paced by rounds, and answer with
    /// [`NodeInput::Data`](super::NodeInput::Data).
    Read {
        /// Rounds that began since the last read.
        rounds: u32,
    },
    /// Run a training, elsewhere than on the thread that serves the link, and answer with
    /// [`NodeInput::Trained`](super::NodeInput::Trained).
    Train(Box<TrainingJob>),
    /// Train the personal part, as a training is run, and answer with
    /// [`NodeInput::PersonalTrained`](super::NodeInput::PersonalTrained).
    TrainPersonal(Box<PersonalJob>),
    /// End this training soon: its outcome, which must come, is of no use.
    CancelTraining(u64),
    /// Make a forecast, and answer with [`NodeInput::Predicted`](super::NodeInput::Predicted).
    Predict(Box<Prediction>),
    /// A forecast for the owner.
    Forecast(Forecast),
    /// Append data to the journal, so that a crash does not lose them; cheaper than saving the node.
    /// [`Node::replay`](super::Node::replay) reads it back.
    Journal(JournalEntry),
    /// Save the node: its persistent state has changed.
    Persist,
}

/// One training, as a value; the driver decides where and when it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingJob {
    /// Identifies the job in its outcome.
    pub id: u64,
    /// The round it is for.
    pub round: u32,
    /// The model's graph.
    pub graph: Digest,
    /// θ_{t−1}, received for this round.
    pub weights: Arc<[f32]>,
    /// The weights of the previous model, if there was one.
    pub previous: Option<Arc<[f32]>>,
    /// sᵢ,ₜ.
    pub batch: Batch,
    /// Number of samples at its end that were not trained on before; the online loss is measured on them.
    pub fresh: usize,
    /// The gradient of each row is clipped to this length.
    pub row_clip: Option<f32>,
    /// The loss to minimise.
    pub loss: LossKind,
    /// The kind of update.
    pub kind: UpdateKind,
    /// The moment from which the coordinator no longer accepts the update.
    pub deadline: Tick,
    /// Seed of the random numbers in training, e.g. dropout.
    pub seed: u64,
}

/// A day's training of the personal part of the model, as a value.
#[derive(Debug, Clone, PartialEq)]
pub struct PersonalJob {
    /// The model's graph.
    pub graph: Digest,
    /// The weights of the held model; they stay as they are.
    pub weights: Arc<[f32]>,
    /// The personal weights so far.
    pub personal: Vec<f32>,
    /// Rows of the node's last days.
    pub batch: Batch,
}

/// One forecast, as a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Identifies the forecast in its outcome.
    pub id: u64,
    /// The model's graph.
    pub graph: Digest,
    /// The weights of the held model.
    pub weights: Arc<[f32]>,
    /// The personal weights, once they were trained.
    pub personal: Option<Vec<f32>>,
    /// The latest steps as input.
    pub query: ForecastQuery,
}
