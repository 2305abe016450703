//! The fairness core: who contributed how much, when that is known well enough, and how often each
//! node then receives the latest model.
//!
//! Pure functions over `f32` updates with `f64` statistics, named and numbered as in Lin, Xu, Ng, Foo
//! and Low, *Fair yet Asymptotically Equal Collaborative Learning*, ICML 2023 ("the paper"). Where the
//! code departs from the paper, the place says so and why.
//!
//! | question | paper | here |
//! |---|---|---|
//! | what did node i contribute this round? | φᵢ,ₜ | [`Measurement::measure`], [`contributions`] |
//! | are the standings settled? | Hotelling's T² | [`StopRule::judge`] |
//! | how likely is node i to be drawn? | ϱᵢ, qᵢ | [`sampling_probabilities`], [`selection_probability`] |
//! | how stale will its model be? | Γᵢ | [`expected_staleness`], [`mean_staleness`] |
//! | who is drawn now? | k draws from ϱ | [`Sampler::draw`] |
//! | did it work out fairly? | ρ, online performance | [`measures`] |

mod config;
mod contribution;
mod error;
pub mod game;
mod gram;
pub mod hotelling;
mod incentive;
mod measurement;
pub mod measures;
mod round;
pub mod shapley;
mod stop;
pub mod utility;
mod vector;

pub use config::{ContributionConfig, Weighting};
pub use contribution::Contributions;
pub use error::FairnessError;
pub use gram::{Device, Gram};
pub use incentive::{
    Sampler, SamplerKind, Temperatures, expected_staleness, inclusion_probabilities, mean_staleness,
    sampling_probabilities, selection_probability, temperature_for_band, temperature_for_worst_staleness,
    wait_bound,
};
pub use measurement::{Measurement, contributions};
pub use shapley::Estimator;
pub use stop::{Reason, StopRule, Verdict};
pub use utility::{Utility, UtilityState};
