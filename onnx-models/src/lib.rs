//! Any ONNX file trainable through burn and runnable through tract.
//!
//! A file is loaded at run time: no code is generated, nothing is recompiled when the model changes.
//!
//! ```
//! use evenhand_models::{Batch, LoadOptions, Loss, Model, Predictor, Targets, Trainer, shipped};
//!
//! let model = Model::load(shipped::ELECTRICITY_RNN, &LoadOptions::default())?;
//! let weights = model.initial_weights();
//! let batch = Batch { inputs: vec![0.5; 2 * 8 * 5], shape: vec![2, 8, 5], targets: Targets::Values(vec![0.1, 0.2]) };
//! let update = Trainer::new(&model).gradient(&weights, &batch, Loss::Mse)?;
//! assert_eq!(update.gradient.len(), model.dim());
//! let forecast = Predictor::new(&model, &weights)?.predict(&batch.inputs, &batch.shape)?;
//! assert_eq!(forecast.len(), 2);
//! # Ok::<(), evenhand_models::ModelError>(())
//! ```

mod engine;
mod error;
mod export;
mod fixed_inputs;
#[cfg(feature = "flex")]
mod fused;
mod graph;
mod infer;
mod kernel;
mod limits;
mod loss;
mod lower;
mod lowered_value;
mod model;
mod node_reader;
mod operators;
mod order;
mod plan;
mod proto;
mod seed;
#[cfg(feature = "shipped")]
pub mod shipped;
mod train;

/// What this build can train on, chosen by features.
pub mod backend {
    #[cfg(feature = "flex")]
    pub use burn_flex::Flex;
    /// Deprecated by its authors in favour of burn-flex; here it is the second opinion on every gradient.
    #[cfg(feature = "ndarray")]
    #[allow(deprecated)]
    pub type NdArray = burn_ndarray::NdArray;
}

pub use engine::Engine;
pub use error::{GraphError, GraphNodeError, ModelError, TensorError};
pub use infer::Predictor;
pub use limits::ModelLimits;
pub use loss::{Loss, Targets};
pub use model::{LoadOptions, Model};
pub use order::Parameter;
pub use seed::SEED;
pub use train::{Batch, BatchEvaluation, DefaultBackend, Gradient, Sgd, Trainer};
