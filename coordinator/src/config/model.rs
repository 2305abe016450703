//! `[model]`: the model that is trained.

use std::path::{Path, PathBuf};

use evenhand_models::{LoadOptions, Model, shipped};
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::LossKind;
use serde::{Deserialize, Serialize};

use super::CoordinatorConfigError;
use evenhand_federation::InitialModel;

/// The model that is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// An ONNX file, or the name of a model that comes with the program.
    pub onnx: String,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self { onnx: "load-quantiles".into() }
    }
}

impl ModelConfig {
    pub(super) const SOURCE: &str = include_str!("model.rs");

    /// Holds the loss against the one that the model's metadata name.
    pub(super) fn check_loss(
        &self,
        model: &InitialModel,
        loss: LossKind,
    ) -> Result<(), CoordinatorConfigError> {
        let loaded = Model::load(&model.onnx, &LoadOptions::default())?;
        let Some(named) = loaded.metadata().get(LOSS) else { return Ok(()) };
        let (configured, known) = (loss_name(loss), named.as_str());
        // Both are means of an error of the same outputs.
        let is_regression = |loss: &str| matches!(loss, "mse" | "huber");
        match configured == known || is_regression(configured) && is_regression(known) {
            true => Ok(()),
            false => Err(CoordinatorConfigError::LossMismatch {
                model: self.onnx.clone(),
                configured,
                known: known.to_owned(),
            }),
        }
    }

    /// The model with its initial weights.
    pub(super) fn initial_model(&self) -> Result<InitialModel, CoordinatorConfigError> {
        let name = &self.onnx;
        let onnx: Vec<u8> = match shipped::by_name(name) {
            Some(bytes) => bytes.to_vec(),
            None if Path::new(name).exists() => std::fs::read(name)
                .map_err(|source| CoordinatorConfigError::Read { path: PathBuf::from(name), source })?,
            None => {
                return Err(CoordinatorConfigError::UnknownModel {
                    name: name.clone(),
                    known: shipped::NAMES.join(", "),
                });
            }
        };
        let model = Model::load(&onnx, &LoadOptions::default())?;
        Ok(InitialModel {
            graph: Digest(model.digest()),
            weights: model.initial_weights().into(),
            onnx: onnx.into(),
        })
    }
}

/// The key of a model's metadata under which it names its loss.
const LOSS: &str = "evenhand.loss";

/// As configurations and metadata write it.
fn loss_name(loss: LossKind) -> &'static str {
    match loss {
        LossKind::Mse => "mse",
        LossKind::CrossEntropy => "cross-entropy",
        LossKind::Nll => "nll",
        LossKind::Huber => "huber",
        LossKind::Pinball => "pinball",
    }
}
