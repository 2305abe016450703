//! From standings to who receives the latest model, Sec. 3.2.

mod sampler;
mod softmax;
mod staleness;
mod temperature;

pub use sampler::{Sampler, SamplerKind, inclusion_probabilities, wait_bound};
pub use softmax::sampling_probabilities;
pub use staleness::{expected_staleness, mean_staleness, selection_probability};
pub use temperature::{Temperatures, temperature_for_band, temperature_for_worst_staleness};
