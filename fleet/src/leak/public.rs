//! What is known of a household without any message of its own: other households.

use super::problem::PublicGuess;

/// Values of the public by kind, such as the slot of the day.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PublicValues(Vec<Vec<f64>>);

impl PublicValues {
    pub(super) fn new(kinds: usize) -> Self {
        Self(vec![Vec::new(); kinds])
    }

    pub(super) fn add(&mut self, kind: usize, value: f64) {
        self.0[kind].push(value);
    }

    /// Mean and deviation of a kind; of all where it has none.
    pub(super) fn guess(&self, kind: usize) -> PublicGuess {
        let values = &self.0[kind];
        let count = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        PublicGuess { mean, deviation: variance.sqrt().max(0.05) }
    }

    /// The value that most values of a kind are within `tolerance` of: the best that can be said without a message.
    pub(super) fn likeliest(&self, kind: usize, tolerance: f64) -> f64 {
        let mut values = self.0[kind].clone();
        values.sort_by(f64::total_cmp);
        let (mut most, mut best, mut first) = (0, 0.0, 0);
        for (last, value) in values.iter().enumerate() {
            while value - values[first] > 2.0 * tolerance {
                first += 1;
            }
            if last + 1 - first > most {
                (most, best) = (last + 1 - first, 0.5 * (value + values[first]));
            }
        }
        best
    }
}
