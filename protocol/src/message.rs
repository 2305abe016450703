//! The messages, as values.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::chunk::TransferId;
use crate::codec::{Bf16, CodecKind, EncodedUpdate};
use crate::identity::{Digest, FederationId};

/// Everything that is ever sent. The topic says who speaks to whom; the variant says what is said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Message {
    /// To every node: in clear on `manifest`, sealed on `node/<id>/task`.
    Manifest(Manifest),
    /// On `node/<id>/status`.
    Status(Status),
    /// On `node/<id>/task`.
    Order(Order),
    /// On `node/<id>/update`.
    Answer(Answer),
    /// On `node/<id>/account`.
    Account(Account),
}

/// Public state of a federation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Whose manifest this is.
    pub federation: FederationId,
    /// Digest of the ONNX graph and its parameter order; a node must hold this graph to take part.
    pub graph: Digest,
    /// Number of trainable parameters.
    pub parameters: u32,
    /// Phase of the federation.
    pub phase: Phase,
    /// Number of the attempt at a round that is running, or the last one; 0 before the first. A round that nobody answers is
    /// asked again, under the next number.
    pub round: u32,
}

/// Phase of a federation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// Waiting for enough nodes.
    Enrolling,
    /// Everybody takes part; contributions are being measured (the paper's contribution evaluation).
    Exploring,
    /// Nodes are drawn by their standing (the paper's incentive realisation).
    Exploiting,
    /// Everybody is measured and some are drawn, in every round.
    Running,
    /// Halted by its operator.
    Paused,
    /// All rounds are done.
    Finished,
    /// It cannot go on; its operator knows the cause.
    Failed,
}

impl Phase {
    /// Its word in JSON, metrics and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enrolling => "enrolling",
            Self::Exploring => "exploring",
            Self::Exploiting => "exploiting",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Finished => "finished",
            Self::Failed => "failed",
        }
    }
}

/// A node's birth or death.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Grows with every start of the node, so that a late will cannot kill a newer session.
    pub session: u64,
    /// Beginning or end of the session.
    pub life: Life,
}

/// Beginning or end of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Life {
    /// The node is there.
    Born(Birth),
    /// The node left, or its broker lost it.
    Dead,
}

/// First message of a node's session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Birth {
    /// The graph it holds, if any.
    pub graph: Option<Digest>,
    /// The weights it holds, if any; they need not be sent again.
    pub weights: Option<Digest>,
    /// Proof that it may enrol, where the federation asks for one.
    pub token: Option<String>,
    /// Version of the node's program, for the operator.
    pub software: String,
}

/// The coordinator's message to one node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// Compute an update on the latest data.
    Train(Train),
    /// Compute a reference gradient on the latest data: no model is needed for it, and none is given.
    Measure(MeasureRequest),
    /// The ONNX file the manifest names: initial weights only, no secret.
    Graph {
        /// Digest of the graph and its parameter order, as in the manifest.
        graph: Digest,
        /// The file.
        #[serde(with = "crate::bytes")]
        onnx: Vec<u8>,
    },
    /// Send these chunks of a transfer again.
    Resend(MissingChunks),
    /// An update did not count.
    Refused {
        /// The round it was meant for.
        round: u32,
        /// Why.
        refusal: Refusal,
    },
}

/// One round's work for a node that was drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Train {
    /// The round this belongs to.
    pub round: u32,
    /// Digest of the latest weights.
    pub weights_digest: Digest,
    /// The latest weights: the reward. Absent when the node holds them already.
    #[serde(with = "crate::bytes::optional_f32")]
    pub weights: Option<Vec<f32>>,
    /// The loss that is minimised.
    pub loss: LossKind,
    /// At most so many samples enter the batch.
    pub samples_max: u32,
    /// Kind of update.
    pub kind: UpdateKind,
    /// Encoding of the update.
    pub codec: CodecKind,
    /// Milliseconds after which the round goes on without this node.
    pub deadline_ms: u32,
}

/// One round's measurement of a node's data, at weights that no training has touched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasureRequest {
    /// The round this belongs to.
    pub round: u32,
    /// Seed of the reference weights and of the sketch: see [`reference`](crate::reference).
    pub seed: u64,
    /// Values of the sketch; a gradient of no more values is sent whole.
    pub dimension: u32,
    /// The loss whose gradient is taken.
    pub loss: LossKind,
    /// At most so many samples enter the batch.
    pub samples_max: u32,
    /// Milliseconds after which the round goes on without this node.
    pub deadline_ms: u32,
}

/// The loss that is minimised; its serde names are those of configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossKind {
    /// Mean squared error.
    Mse,
    /// Cross-entropy on logits.
    CrossEntropy,
    /// Negative log-likelihood on log-probabilities.
    Nll,
    /// Huber with threshold 1.
    Huber,
    /// Pinball at the quantile levels that the model's metadata name.
    Pinball,
}

/// Kind of an update.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum UpdateKind {
    /// The gradient of the batch mean.
    Gradient,
    /// θ_old − θ_new after local epochs of stochastic gradient descent.
    Epochs {
        /// Passes over the batch.
        epochs: u32,
        /// Step size.
        learning_rate: f32,
        /// Momentum within the task; it is not kept across rounds.
        momentum: f32,
    },
    /// v ← momentum·v + gradient, with v kept on the node across rounds; the update is v.
    Momentum {
        /// Share of v that is kept.
        momentum: f32,
    },
    /// The direction of Adam (Kingma and Ba 2015) with its moments kept on the node across rounds.
    Adam,
}

/// A node's message on its update topic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// The update it was asked for.
    Update(Update),
    /// It cannot take part in this round.
    Decline {
        /// The round it was asked for.
        round: u32,
        /// Why it cannot.
        reason: Declined,
    },
    /// The reference gradient it was asked for.
    Measured(Measured),
    /// It cannot be measured in this round.
    Unmeasured {
        /// The round it was asked for.
        round: u32,
        /// Why it cannot.
        reason: Declined,
    },
    /// It needs the ONNX file with this digest.
    NeedGraph(Digest),
    /// It does not hold the weights a task referred to.
    NeedWeights {
        /// The round of that task.
        round: u32,
    },
    /// Send these chunks of a transfer again.
    Resend(MissingChunks),
}

/// A node's contribution to one round: Δθᵢ,ₜ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Update {
    /// The round it answers.
    pub round: u32,
    /// Samples in the batch; the node's weight pᵢ is its share of them.
    pub samples: u32,
    /// Loss of the received weights on the batch.
    pub loss: f32,
    /// Mean loss of the node's own forecasts since its last update, before it was trained on them.
    pub online_loss: f32,
    /// Number of samples behind `online_loss`.
    pub online_samples: u32,
    /// The vector itself.
    pub vector: EncodedUpdate,
}

/// A node's reference gradient in one round: measured, never applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The round it answers.
    pub round: u32,
    /// Samples in the batch.
    pub samples: u32,
    /// Skill of its forecasts for the owner over four weeks; none before they can be judged.
    pub skill: Option<SkillPermille>,
    /// The gradient, or its sketch.
    pub vector: Bf16,
}

/// The skill of forecasts, 1 − MAE / MAE of the best naive one, in thousandths: no more than is shown leaves a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillPermille(pub i16);

impl SkillPermille {
    /// A skill rounded; one below −1 counts as −1.
    pub fn of(skill: f64) -> Self {
        Self((skill.clamp(-1.0, 1.0) * 1000.0).round() as i16)
    }

    /// The skill, between −1 and 1 whatever was sent.
    pub fn skill(self) -> f64 {
        f64::from(self.0.clamp(-1000, 1000)) / 1000.0
    }
}

/// Why a node does not take part in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Declined {
    /// Not enough new readings.
    NoData,
    /// The model does not fit the node's memory or data.
    ModelUnfit,
    /// Training did not end in time or gave values that are not finite.
    TrainingFailed,
    /// More epochs than its owner permits.
    TooMuchWork,
    /// Fewer samples than its owner permits an update to be made of.
    TooFewSamples,
    /// Its owner's privacy budget is spent.
    PrivacySpent,
}

impl Declined {
    /// Its word in JSON, metrics and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoData => "no-data",
            Self::ModelUnfit => "model-unfit",
            Self::TrainingFailed => "training-failed",
            Self::TooMuchWork => "too-much-work",
            Self::TooFewSamples => "too-few-samples",
            Self::PrivacySpent => "privacy-spent",
        }
    }
}

/// Why an update did not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Refusal {
    /// The sender is not enrolled.
    Unknown,
    /// The sender was not asked in this round.
    NotDrawn,
    /// The round is over.
    Late,
    /// This round's update was counted before.
    Repeated,
    /// The vector has another length than the model.
    Dimension,
    /// It contains NaN or infinity.
    NotFinite,
    /// Its norm exceeds the limit.
    Norm,
    /// It claims no samples, or more than were allowed.
    Samples,
    /// The bytes do not decode.
    Malformed,
    /// The sender says more than it may.
    Rate,
}

impl Refusal {
    /// Its word in JSON, metrics and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::NotDrawn => "not-drawn",
            Self::Late => "late",
            Self::Repeated => "repeated",
            Self::Dimension => "dimension",
            Self::NotFinite => "not-finite",
            Self::Norm => "norm",
            Self::Samples => "samples",
            Self::Malformed => "malformed",
            Self::Rate => "rate",
        }
    }
}

/// Chunks that did not arrive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingChunks {
    /// The transfer they belong to.
    pub transfer: TransferId,
    /// Their positions.
    #[serde(with = "crate::bytes::u16s")]
    pub chunks: Vec<u16>,
}

/// Standing of a node, for its owner. Standing and probability are those of the last statement: where everybody is measured
/// in every round, nodes are told only once in many rounds, so that none can try out what pays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// The round after which this holds.
    pub round: u32,
    /// ψᵢ.
    pub standing: f64,
    /// Standard error of ψᵢ.
    pub standing_error: f64,
    /// ϱᵢ; uniform while exploring.
    pub sampling_probability: f64,
    /// Rounds since the node last received the model.
    pub staleness: u32,
    /// Round in which it was last drawn.
    pub last_drawn: Option<u32>,
    /// Number of rounds in which it was drawn.
    pub drawn: u32,
    /// Why it was or was not drawn in this round.
    pub why: Why,
}

/// Why a node was or was not drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// Everybody takes part while contributions are measured.
    Exploring,
    /// The draw fell on it.
    Drawn,
    /// The draw fell on others.
    NotDrawn,
    /// It was away when the draw was made.
    Absent,
    /// It joined and is being measured.
    Newcomer,
}

impl Why {
    /// Its word in JSON, metrics and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exploring => "exploring",
            Self::Drawn => "drawn",
            Self::NotDrawn => "not-drawn",
            Self::Absent => "absent",
            Self::Newcomer => "newcomer",
        }
    }
}
