//! The measurement of contributions from round to round.

use super::round::RoundUpdates;
use super::utility::UtilityState;
use super::{ContributionConfig, Contributions, FairnessError};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// A configured utility and the state that it carries from round to round.
///
/// Saved and restored by serde, it continues bit for bit.
///
/// # Example
/// ```
/// use evenhand_fairness::{ContributionConfig, Measurement, Utility};
/// use rand::SeedableRng;
///
/// let config = ContributionConfig { utility: Utility::Direction, ..Default::default() };
/// let mut measurement = Measurement::new(config);
/// let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
/// let (first, second) = ([1.0f32, 0.0], [1.0f32, 0.5]);
/// let found = measurement.measure(&[&first, &second], &[0.5, 0.5], &mut rng)?;
/// assert!(found.values.iter().all(|value| *value > 0.0), "both point in one direction");
/// assert!(measurement.is_stateful() && measurement.fits(2) && !measurement.fits(3));
/// # Ok::<(), evenhand_fairness::FairnessError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    config: ContributionConfig,
    state: UtilityState,
}

impl Measurement {
    /// A measurement before its first round.
    pub fn new(config: ContributionConfig) -> Self {
        Self { config, state: UtilityState::initial(config.utility) }
    }

    /// A measurement that continues from `state`.
    ///
    /// # Errors
    /// [`FairnessError::OtherUtility`] if the state is not one of `config.utility`.
    pub fn with_state(config: ContributionConfig, state: UtilityState) -> Result<Self, FairnessError> {
        if state.is_of(config.utility) {
            Ok(Self { config, state })
        } else {
            Err(FairnessError::OtherUtility)
        }
    }

    /// The configuration.
    pub fn config(&self) -> &ContributionConfig {
        &self.config
    }

    /// The state after the last round that was measured.
    pub fn state(&self) -> &UtilityState {
        &self.state
    }

    /// φᵢ of each update of a round, `weights[i]` = pᵢ. On an error neither the state nor the generator has changed.
    ///
    /// # Errors
    /// [`FairnessError`] names the input that is empty, of another length, out of range or not finite.
    pub fn measure(
        &mut self,
        updates: &[&[f32]],
        weights: &[f64],
        rng: &mut ChaCha8Rng,
    ) -> Result<Contributions, FairnessError> {
        let round = RoundUpdates::new(updates, weights, &self.config)?;
        let (mut state, mut generator) = (self.state.clone(), rng.clone());
        let contributions = state.measure(&round, &mut generator)?.finite()?;
        (self.state, *rng) = (state, generator);
        Ok(contributions)
    }

    /// True if every round has to be measured, also one whose contributions are not used, to keep the state current.
    pub fn is_stateful(&self) -> bool {
        self.state.is_stateful()
    }

    /// True if the state belongs to the configured utility and to a model of so many parameters.
    pub fn fits(&self, dimension: usize) -> bool {
        self.state.is_of(self.config.utility) && self.state.fits(dimension)
    }
}

/// φᵢ of each update of a single round; under a stateful utility, as in a first round.
///
/// # Errors
/// As [`Measurement::measure`].
///
/// # Example
/// ```
/// use evenhand_fairness::{ContributionConfig, Estimator, contributions};
/// use rand::SeedableRng;
///
/// let config = ContributionConfig { estimator: Estimator::Exact, ..Default::default() };
/// let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
/// let found = contributions(&[&[1.0, 0.0], &[0.0, 1.0]], &[0.5, 0.5], &config, &mut rng)?;
/// assert!(found.values.iter().all(|value| (value - 0.5).abs() < 1e-12), "at right angles, they share alike");
/// # Ok::<(), evenhand_fairness::FairnessError>(())
/// ```
pub fn contributions(
    updates: &[&[f32]],
    weights: &[f64],
    config: &ContributionConfig,
    rng: &mut ChaCha8Rng,
) -> Result<Contributions, FairnessError> {
    Measurement::new(*config).measure(updates, weights, rng)
}
