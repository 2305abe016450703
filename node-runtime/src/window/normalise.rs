//! Running normalisation of a meter's readings.

use serde::{Deserialize, Serialize};

/// Normalised values lie within ± this many standard deviations, so that one spike cannot dominate the input.
pub const DEVIATIONS_MAX: f64 = 8.0;

/// Mean and variance of everything seen, by Welford's update.
///
/// From `memory` values on, the weight of old values decays, so that a change of the load is followed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Normaliser {
    count: u32,
    memory: u32,
    mean: f64,
    variance: f64,
}

impl Normaliser {
    /// An empty normalisation with a memory of about `memory` values.
    pub fn new(memory: u32) -> Self {
        Self { count: 0, memory: memory.max(2), mean: 0.0, variance: 0.0 }
    }

    /// Adds one finite value.
    pub fn add(&mut self, value: f64) {
        self.count = (self.count + 1).min(self.memory);
        let share = 1.0 / f64::from(self.count);
        let before = value - self.mean;
        self.mean += before * share;
        self.variance += (before * (value - self.mean) - self.variance) * share;
    }

    /// Number of values in mean and deviation, at most the memory.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The running mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The running standard deviation; 1 while the values do not differ.
    pub fn deviation(&self) -> f64 {
        let deviation = self.variance.sqrt();
        if deviation > f64::EPSILON * self.mean.abs() && deviation.is_normal() { deviation } else { 1.0 }
    }

    /// `value` in standard deviations from the mean, bounded.
    pub fn normalise(&self, value: f64) -> f32 {
        ((value - self.mean) / self.deviation()).clamp(-DEVIATIONS_MAX, DEVIATIONS_MAX) as f32
    }

    /// The value that [`normalise`](Self::normalise) maps to `normalised`.
    pub fn restore(&self, normalised: f32) -> f64 {
        self.mean + f64::from(normalised) * self.deviation()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn agrees_with_the_textbook_formula() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        let mut normaliser = Normaliser::new(1000);
        values.iter().for_each(|value| normaliser.add(*value));
        assert!((normaliser.mean() - 5.0).abs() < 1e-12);
        assert!((normaliser.deviation() - 2.0).abs() < 1e-12);
        assert!((normaliser.normalise(9.0) - 2.0).abs() < 1e-6);
    }

    #[test]
    fn follows_a_change_of_the_load() {
        let mut normaliser = Normaliser::new(50);
        (0..500).for_each(|i| normaliser.add(100.0 + f64::from(i % 2)));
        (0..500).for_each(|i| normaliser.add(1.0 + f64::from(i % 2)));
        assert!((normaliser.mean() - 1.5).abs() < 0.1, "{}", normaliser.mean());
    }

    #[test]
    fn a_constant_meter_reads_zero() {
        let mut normaliser = Normaliser::new(1000);
        (0..100).for_each(|_| normaliser.add(0.1));
        assert_eq!(normaliser.normalise(0.1), 0.0);
    }

    proptest! {
        #[test]
        fn is_always_finite_and_restores(values in prop::collection::vec(-1e12f64..1e12, 1..200)) {
            let mut normaliser = Normaliser::new(100);
            values.iter().for_each(|value| normaliser.add(*value));
            for value in &values {
                let normalised = normaliser.normalise(*value);
                prop_assert!(normalised.is_finite());
                if f64::from(normalised.abs()) < DEVIATIONS_MAX {
                    let slack = 1e-6 * (normaliser.deviation() + value.abs());
                    prop_assert!((normaliser.restore(normalised) - value).abs() <= slack.max(1e-6) * 10.0);
                }
            }
        }
    }
}
