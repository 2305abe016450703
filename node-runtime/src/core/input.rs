//! Inputs of the state machine.

use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{Account, Declined, Manifest, Order};

use super::ModelInfo;
use crate::reading::InputBatch;

/// An event that the driver reports.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeInput {
    /// The program runs; nothing is connected yet.
    Started,
    /// The link to the broker is established and subscribed.
    Connected,
    /// The link to the broker is lost.
    Disconnected,
    /// The federation's manifest was received.
    Manifest(Manifest),
    /// An order of the coordinator was received.
    Order(Order),
    /// A message of the coordinator exceeds this node's limits and was not decoded.
    Unreadable,
    /// The node's account was received.
    Account(Account),
    /// The result of [`NodeEffect::FindGraph`](super::NodeEffect::FindGraph) or
    /// [`NodeEffect::LoadGraph`](super::NodeEffect::LoadGraph).
    Graph {
        /// The graph.
        digest: Digest,
        /// The result.
        outcome: GraphOutcome,
    },
    /// Data of a source, perhaps none: the result of [`NodeEffect::Read`](super::NodeEffect::Read), or unsolicited.
    Data(InputBatch),
    /// Data of the source of a side series.
    SideData {
        /// The series.
        name: String,
        /// Its readings.
        batch: InputBatch,
    },
    /// A training ended.
    Trained {
        /// The job.
        job_id: u64,
        /// The update, or the reason to decline the round.
        outcome: Result<Trained, Declined>,
    },
    /// The result of [`NodeEffect::Predict`](super::NodeEffect::Predict).
    Predicted {
        /// The forecast.
        id: u64,
        /// The end of the forecast step, or of the first one.
        for_ms: i64,
        /// The model's outputs; none if they could not be computed.
        outputs: Option<PredictedOutputs>,
    },
    /// The result of [`NodeEffect::TrainPersonal`](super::NodeEffect::TrainPersonal).
    PersonalTrained {
        /// The model's graph.
        graph: Digest,
        /// The personal weights; none if the training failed.
        weights: Option<Vec<f32>>,
    },
    /// The program is about to end.
    Shutdown,
}

/// The result of looking for a graph.
#[derive(Debug, Clone, PartialEq)]
pub enum GraphOutcome {
    /// It is loaded.
    Ready(ModelInfo),
    /// It is not in the cache.
    Absent,
    /// The bytes are another graph, or a model that this node cannot run.
    Unfit,
}

/// Outputs of the model for a prediction: one normalised value, or the corrections of every lead.
#[derive(Debug, Clone, PartialEq)]
pub struct PredictedOutputs {
    /// By the shared weights, the personal ones being those of the file.
    pub shared: Vec<f32>,
    /// By shared and personal weights, where these were trained.
    pub personal: Option<Vec<f32>>,
}

/// The result of a training.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    /// Loss of the received weights on the batch.
    pub loss: f32,
    /// Loss of the previous model on the samples that were not trained on before.
    pub online_loss: Option<f32>,
    /// Δθᵢ,ₜ.
    pub vector: Vec<f32>,
}
