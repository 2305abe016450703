//! Incentives, Sec. 3.2: from standings to the nodes that receive the latest model.

mod sampler;
mod shrinkage;
mod softmax;
mod staleness;
mod temperature;
mod wait;

pub use sampler::{Sampler, SamplerKind, inclusion_probabilities, wait_bound};
pub use shrinkage::shrunk_standings;
pub use softmax::sampling_probabilities;
pub use staleness::{expected_staleness, mean_staleness, selection_probability};
pub use temperature::{TemperatureRange, temperature_for_band, temperature_for_worst_staleness};
pub use wait::temperature_for_worst_wait;
