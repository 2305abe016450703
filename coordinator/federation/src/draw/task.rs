//! One node's work in one round, with the model that it is to start from.

use std::sync::Arc;

use evenhand_protocol::codec::CodecKind;
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{LossKind, Train, UpdateKind};

use crate::config::TrainingConfig;
use crate::weights::Weights;

/// One round's work for one node of its draw, with the latest model.
///
/// Tasks with the same weights share them, so that a thousand tasks cost one model; where every node has
/// a model of its own, as many as there are nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingTask {
    round: u32,
    digest: Digest,
    weights: Option<Arc<[f32]>>,
    loss: LossKind,
    samples_max: u32,
    kind: UpdateKind,
    codec: CodecKind,
    deadline_ms: u32,
}

impl TrainingTask {
    /// Visible to [`Draw`](super::Draw) only: nothing else may hand out a model.
    pub(super) fn new(
        round: u32,
        holds: Option<Digest>,
        model: &Weights,
        training: &TrainingConfig,
        deadline_ms: u32,
    ) -> Self {
        Self {
            round,
            digest: model.digest(),
            weights: (holds != Some(model.digest())).then(|| model.to_shared()),
            loss: training.loss,
            samples_max: training.samples_max,
            kind: training.update_kind(),
            codec: training.codec,
            deadline_ms,
        }
    }

    /// The round it belongs to, by the number on the wire.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Digest of the weights that the update is to start from.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Those weights, unless the node holds them already.
    pub fn weights(&self) -> Option<&Arc<[f32]>> {
        self.weights.as_ref()
    }

    /// The task as a message; copies the weights.
    pub fn to_train(&self) -> Train {
        Train {
            round: self.round,
            weights_digest: self.digest,
            weights: self.weights.as_deref().map(<[f32]>::to_vec),
            loss: self.loss,
            samples_max: self.samples_max,
            kind: self.kind,
            codec: self.codec,
            deadline_ms: self.deadline_ms,
        }
    }
}
