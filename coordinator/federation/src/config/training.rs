//! `[training]`: the nodes' work and the step that follows from it.

use evenhand_protocol::codec::CodecKind;
use evenhand_protocol::message::{LossKind, UpdateKind};
use serde::{Deserialize, Serialize};

use super::check::{RuleError, at_least_one, positive, within};

/// The nodes' work and the step that follows from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainingConfig {
    /// The loss that is minimised.
    pub loss: LossKind,
    /// η: step size of the aggregated update, θ_{t−1} − η Σ pᵢΔθᵢ.
    pub learning_rate: f64,
    /// A missing update counts as an update of zero, so that few updates make a short step, as in the published
    /// code and the text of the paper; otherwise the step is the mean of those that arrived.
    pub count_missing_as_zero: bool,
    /// At most so many samples enter a node's batch.
    pub samples_max: u32,
    /// Passes over the batch in local training; 0 asks for the plain gradient.
    pub local_epochs: u32,
    /// Step size of local training.
    pub local_learning_rate: f32,
    /// Momentum of local training, which starts from zero in every round.
    pub local_momentum: f32,
    /// The optimiser that nodes apply to the plain gradient; its memory stays on the node.
    pub optimiser: OptimiserKind,
    /// Momentum of the optimiser of that name.
    pub momentum: f32,
    /// The codec of updates.
    #[serde(with = "codec_name")]
    pub codec: CodecKind,
}

/// The training of the default model, load-quantiles.
impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            loss: LossKind::Pinball,
            learning_rate: 1.0,
            count_missing_as_zero: false,
            samples_max: 512,
            local_epochs: 10,
            local_learning_rate: 0.1,
            local_momentum: 0.9,
            optimiser: OptimiserKind::None,
            momentum: 0.9,
            codec: CodecKind::F32,
        }
    }
}

impl TrainingConfig {
    /// This file, whose doc comments explain the keys in `print-config`.
    pub const SOURCE: &str = include_str!("training.rs");

    /// The plain gradient of the mean squared error, as in the paper.
    pub fn plain_gradient() -> Self {
        Self {
            loss: LossKind::Mse,
            learning_rate: 0.1,
            samples_max: 4096,
            local_epochs: 0,
            ..Self::default()
        }
    }

    /// The kind of update that nodes are asked for.
    pub fn update_kind(&self) -> UpdateKind {
        match self.local_epochs {
            0 => match self.optimiser {
                OptimiserKind::None => UpdateKind::Gradient,
                OptimiserKind::Momentum => UpdateKind::Momentum { momentum: self.momentum },
                OptimiserKind::Adam => UpdateKind::Adam,
            },
            epochs => UpdateKind::Epochs {
                epochs,
                learning_rate: self.local_learning_rate,
                momentum: self.local_momentum,
            },
        }
    }

    pub(super) fn check(&self) -> Result<(), RuleError> {
        positive("training.learning_rate", self.learning_rate)?;
        at_least_one("training.samples_max", self.samples_max)?;
        momentum("training.momentum", self.momentum)?;
        if self.local_epochs > 0 {
            if self.optimiser != OptimiserKind::None {
                return Err(RuleError::OptimiserOfEpochs { optimiser: self.optimiser.name() });
            }
            positive("training.local_learning_rate", self.local_learning_rate.into())?;
            momentum("training.local_momentum", self.local_momentum)?;
        }
        Ok(())
    }
}

fn momentum(field: &'static str, found: f32) -> Result<(), RuleError> {
    within(field, found.into(), (0.0..1.0).contains(&found), "at least 0 and below 1")
}

/// A node's optimiser, with a memory from round to round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimiserKind {
    /// None: the update is the gradient, as in the paper.
    #[default]
    None,
    /// v ← momentum·v + gradient, across rounds; the update is v.
    Momentum,
    /// The direction of Adam, with its usual parameters.
    Adam,
}

impl OptimiserKind {
    /// The name in configurations and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Momentum => "momentum",
            Self::Adam => "adam",
        }
    }
}

/// A codec by its name.
mod codec_name {
    use evenhand_protocol::codec::CodecKind;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(codec: &CodecKind, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(codec)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CodecKind, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
