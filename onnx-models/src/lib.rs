//! ONNX models, trained through burn and run through tract or burn.
//!
//! A file is loaded at run time: no code is generated, and nothing is recompiled when the model changes.
//!
//! | stage | modules | result |
//! |---|---|---|
//! | read | `pb`, `proto`, `seed`, `fixed_inputs` | the decoded file, within [`ModelLimits`] |
//! | graph | `graph`, `node_reader`, `operators` | names resolved, attributes parsed, unsupported parts refused |
//! | order | `order`, `personal` | the trainable [`Parameter`]s in canonical order, and the digest: a [`Model`] |
//! | lower | `lower`, `operators`, `plan` | a plan of kernels for one input shape, every size checked |
//! | train | `train`, `descent`, `batch`, `kernel`, `fused`, `loss`, `quantiles` | losses and gradients: [`Trainer`] |
//! | infer | `infer`, `export` | predictions with weights that can be swapped: [`Predictor`] |
//!
//! One gradient step and one prediction of a shipped model:
//!
//! ```
//! use evenhand_models::{Batch, LoadOptions, Loss, Model, Predictor, Targets, Trainer, shipped};
//!
//! let model = Model::load(shipped::ELECTRICITY_RNN, &LoadOptions::default())?;
//! let mut weights = model.initial_weights();
//! let batch = Batch {
//!     inputs: vec![0.5; 2 * 8 * 5], // two samples of eight time steps with five features
//!     shape: vec![2, 8, 5],
//!     targets: Targets::Values(vec![0.1, 0.2]),
//! };
//! let mut trainer = Trainer::new(&model);
//! let update = trainer.gradient(&weights, &batch, Loss::Mse)?;
//! assert_eq!(update.gradient.len(), model.dim());
//! weights.iter_mut().zip(&update.gradient).for_each(|(weight, slope)| *weight -= 0.01 * slope);
//! assert!(trainer.evaluate(&weights, &batch, Loss::Mse)?.loss < update.loss);
//!
//! let forecast = Predictor::new(&model, &weights)?.predict(&batch.inputs, &batch.shape)?;
//! assert_eq!(forecast.len(), 2);
//! # Ok::<(), evenhand_models::ModelError>(())
//! ```

mod batch;
mod descent;
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
mod pb;
mod personal;
mod plan;
mod proto;
mod quantiles;
mod seed;
#[cfg(feature = "shipped")]
pub mod shipped;
mod train;

/// The backends of this build, chosen by features: those that train and predict, and tract, which predicts.
pub mod backend {
    #[cfg(feature = "flex")]
    pub use burn_flex::Flex;
    /// Deprecated by its authors in favour of burn-flex; here it checks every gradient of the other backend.
    #[cfg(feature = "ndarray")]
    #[allow(deprecated)]
    pub type NdArray = burn_ndarray::NdArray;
    #[cfg(feature = "tract")]
    pub use crate::infer::Tract;
}

pub use batch::Batch;
pub use descent::Sgd;
pub use engine::Engine;
pub use error::{GraphError, GraphNodeError, ModelError, TensorError};
pub use infer::{DefaultInference, InferenceEngine, Predictor};
pub use limits::ModelLimits;
pub use loss::{Loss, Targets};
pub use model::{LoadOptions, Model};
pub use order::Parameter;
pub use personal::PERSONAL;
pub use quantiles::QUANTILES;
pub use seed::SEED;
pub use train::{BatchEvaluation, DefaultBackend, Gradient, Trainer};
