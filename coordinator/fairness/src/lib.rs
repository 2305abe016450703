//! Fairness statistics of collaborative learning: contributions, the end of their exploration, and the probabilities with
//! which each node then receives the latest model.
//!
//! Pure functions over `f32` updates with `f64` statistics, named and numbered as in Lin, Xu, Ng, Foo
//! and Low, *Fair yet Asymptotically Equal Collaborative Learning*, ICML 2023 ("the paper"). Each departure
//! from the paper is stated, with its reason, where it is made.
//!
//! | question | paper | here |
//! |---|---|---|
//! | what did node i contribute this round? | φᵢ,ₜ | [`Measurement::measure`], [`contributions`] |
//! | are the standings settled? | Hotelling's T² | [`StopRule::judge`] |
//! | how likely is node i to be drawn? | ϱᵢ, qᵢ | [`sampling_probabilities`], [`selection_probability`] |
//! | how stale will its model be? | Γᵢ | [`expected_staleness`], [`mean_staleness`] |
//! | who is drawn now? | k draws from ϱ | [`Sampler::draw`] |
//! | do the contributions still hold? | | [`judge_drift`] |
//! | did it work out fairly? | ρ | [`measures`] |
//!
//! # A round by hand
//!
//! Three nodes explore until their standings are settled; then two of them are drawn.
//!
//! ```
//! use evenhand_fairness::{
//!     ContributionConfig, Measurement, Sampler, SamplerKind, StopRule, Utility, sampling_probabilities,
//! };
//! use rand::{RngExt, SeedableRng};
//! use rand_chacha::ChaCha8Rng;
//!
//! let mut rng = ChaCha8Rng::seed_from_u64(7);
//! let config = ContributionConfig { utility: Utility::Direction, ..Default::default() };
//! let mut measurement = Measurement::new(config);
//! let rule = StopRule::Paper { window: 10, alpha: 0.7 };
//! let (weights, temperature, mut history) = ([1.0 / 3.0; 3], 0.05, Vec::new());
//! loop {
//!     // Updates of one direction, each node's noisier than the last's.
//!     let noise = [0.5f32, 2.0, 8.0];
//!     let updates = noise.map(|noise| [0; 50].map(|_| 1.0 + noise * rng.random_range(-1.0..1.0)));
//!     let slices = updates.each_ref().map(|update| update.as_slice());
//!     // Their contributions φ, one row a round.
//!     history.push(measurement.measure(&slices, &weights, &mut rng)?.values);
//!     // The stop rule, on all three nodes.
//!     if rule.judge(&history, &[0, 1, 2], temperature).stop {
//!         break;
//!     }
//! }
//! // Standings ψ: the mean contributions.
//! let mean = |node: usize| history.iter().map(|row| row[node]).sum::<f64>() / history.len() as f64;
//! let standings = [0, 1, 2].map(mean);
//! assert!(standings[0] > standings[1] && standings[1] > standings[2], "noise costs standing");
//! // The draw.
//! let probabilities = sampling_probabilities(&standings, temperature);
//! let drawn = Sampler::new(SamplerKind::Credit).draw(&probabilities, 2, &mut rng);
//! assert_eq!(drawn.len(), 2);
//! # Ok::<(), evenhand_fairness::FairnessError>(())
//! ```

mod config;
mod contribution;
mod error;
pub mod game;
mod gram;
pub mod hotelling;
mod incentive;
mod measurement;
pub mod measures;
pub mod reference;
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
    Sampler, SamplerKind, TemperatureRange, expected_staleness, inclusion_probabilities, mean_staleness,
    sampling_probabilities, selection_probability, shrunk_standings, temperature_for_band,
    temperature_for_worst_staleness, temperature_for_worst_wait, wait_bound,
};
pub use measurement::{Measurement, contributions};
pub use shapley::Estimator;
pub use stop::{StopReason, StopRule, StopVerdict, judge_drift};
pub use utility::{Utility, UtilityState};
