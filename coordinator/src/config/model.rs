//! `[model]`: the model that is trained.

use std::path::{Path, PathBuf};

use evenhand_models::{LoadOptions, Model, shipped};
use evenhand_protocol::identity::Digest;
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
