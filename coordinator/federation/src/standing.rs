//! ψᵢ: the running mean of a node's contributions.

use serde::{Deserialize, Serialize};

/// ψᵢ,ₜ = t⁻¹ Σ φᵢ,ₜ with its standard error, updated in place by Welford's recurrence.
///
/// It starts at `entry`. Until `entry_rounds` contributions were measured, the missing ones count as
/// `entry`: a newcomer thus begins at the mean of the others and ends, without a jump, at its own mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    entry: f64,
    entry_rounds: u32,
    rounds: u32,
    passed: u32,
    mean: f64,
    squares: f64,
}

impl Standing {
    /// The standing of a node that takes part from the beginning.
    pub fn founder() -> Self {
        Self::entering(0.0, 0)
    }

    /// The standing of a node that joins later, at the `mean` standing, and is to be measured for `rounds` rounds.
    pub fn entering(mean: f64, rounds: u32) -> Self {
        Self { entry: mean, entry_rounds: rounds, rounds: 0, passed: 0, mean: 0.0, squares: 0.0 }
    }

    /// The standing when contributions are measured again: its old value until the first new one.
    pub fn renewed(&self) -> Self {
        Self::entering(self.value(), 0)
    }

    /// Adds φᵢ of one more round.
    pub fn add(&mut self, contribution: f64) {
        self.rounds += 1;
        let from_old = contribution - self.mean;
        self.mean += from_old / f64::from(self.rounds);
        self.squares += from_old * (contribution - self.mean);
    }

    /// Takes over a standing that was measured elsewhere, over so many rounds.
    pub(crate) fn set(&mut self, value: f64, error: f64, rounds: u32) {
        let n = f64::from(rounds);
        self.rounds = rounds;
        self.mean = value;
        self.squares = error * error * n * (n - 1.0);
    }

    /// Counts a round in which the node was asked and nothing could be measured.
    pub fn pass(&mut self) {
        self.passed += 1;
    }

    /// ψᵢ.
    pub fn value(&self) -> f64 {
        let missing = self.entry_rounds.saturating_sub(self.rounds);
        match (self.rounds, missing) {
            (0, _) => self.entry,
            (_, 0) => self.mean,
            (rounds, missing) => {
                let (rounds, missing) = (f64::from(rounds), f64::from(missing));
                (missing * self.entry + rounds * self.mean) / (missing + rounds)
            }
        }
    }

    /// Standard error of ψᵢ; 0 before the second round.
    pub fn error(&self) -> f64 {
        if self.rounds < 2 {
            return 0.0;
        }
        let n = f64::from(self.rounds);
        (self.squares.max(0.0) / (n - 1.0) / n).sqrt()
    }

    /// Rounds that were measured.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Rounds in which nothing could be measured.
    pub fn passed(&self) -> u32 {
        self.passed
    }

    /// True if the node is new and still to be measured: for so many rounds it is asked, whatever they show. Without that
    /// limit a node that cannot be measured would be given the model without end.
    pub fn is_entering(&self) -> bool {
        self.rounds.saturating_add(self.passed) < self.entry_rounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_mean_and_its_error_are_those_of_the_sample() {
        let mut standing = Standing::founder();
        for contribution in [0.5, 0.1, 0.3, 0.7] {
            standing.add(contribution);
        }
        // mean 0.4; sample variance 0.2/3; error √(0.2/3/4)
        assert!((standing.value() - 0.4).abs() < 1e-15);
        assert!((standing.error() - (0.2f64 / 12.0).sqrt()).abs() < 1e-15);
    }

    #[test]
    fn a_newcomer_slides_from_the_mean_of_the_others_to_its_own() {
        let mut standing = Standing::entering(1.0, 4);
        let values: Vec<f64> = (0..5)
            .map(|_| {
                let value = standing.value();
                standing.add(0.0);
                value
            })
            .collect();
        assert_eq!(values, [1.0, 0.75, 0.5, 0.25, 0.0]);
    }

    #[test]
    fn a_newcomer_that_cannot_be_measured_keeps_the_mean_and_stops_being_new() {
        let mut standing = Standing::entering(1.0, 2);
        standing.pass();
        standing.add(0.0);
        assert!(!standing.is_entering());
        assert_eq!((standing.value(), standing.rounds()), (0.5, 1));
    }

    #[test]
    fn a_renewed_standing_holds_until_the_first_new_measurement() {
        let mut standing = Standing::founder();
        standing.add(0.25);
        let mut renewed = standing.renewed();
        assert_eq!(renewed.value(), 0.25);
        renewed.add(0.5);
        assert_eq!(renewed.value(), 0.5);
    }
}
