//! Weights of experts by Bernstein online aggregation.

use serde::{Deserialize, Serialize};

/// Learning rates: 8, 4, … 2⁻¹².
pub const LEARNING_RATES: usize = 16;
const RATE_MAX_LOG2: i32 = 3;

/// Bernstein online aggregation (Wintenberger, *Optimal learning with Bernstein online aggregation*, 2017) over a grid of
/// learning rates (Koolen and van Erven, *Second-order quantile methods for experts and combinatorial games*, 2015), for
/// regrets of an unknown range (Mhammedi, Koolen and van Erven, *Lipschitz adaptivity with multiple learning rates*, 2019).
///
/// # Formula
///
/// With r_j the regret of a round against expert j (Σⱼ pⱼ·r_j = 0 for the weights p of that round), and after each round
/// R_j ← λ·R_j + r_j, V_j ← λ·V_j + r_j²:
///
/// pⱼ ∝ πⱼ · Σ_η η · exp(η·Rⱼ − η²·Vⱼ), over the learning rates η ≤ 1/(2Bⱼ).
///
/// Bⱼ is a power of two that no |r_j| exceeds. A round in which one does raises that range and counts nothing else.
///
/// # Bound
///
/// After any rounds, for every expert j and every η ≤ 1/(2Bⱼ) of the grid of K learning rates,
/// Rⱼ ≤ η·Vⱼ + ln(K/πⱼ)/η + D·Bⱼ, where D is the number of rounds that raised a range.
///
/// Proof: exp(x − x²) ≤ 1 + x for x ≥ −½, so Φ = Σⱼ Σ_η πⱼ/K·exp(η·Rⱼ − η²·Vⱼ) never grows by a round; dropping a learning
/// rate lowers it; and forgetting replaces each exponential by its power λ ≤ 1, where Jensen's inequality gives Φ ≤ Φ^λ ≤ 1.
/// So each term is at most 1. A round that is left out changes the regret against j by at most Bⱼ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bernstein {
    priors: Vec<f64>,
    /// R.
    regrets: Vec<f64>,
    /// V.
    squares: Vec<f64>,
    /// B.
    ranges: Vec<f64>,
    /// D.
    raised: u64,
    /// λ: the share of R and V that remains after a round.
    memory: f64,
}

impl Bernstein {
    /// No round yet. The priors are positive and sum to at most 1; `memory` is λ.
    pub fn new(priors: Vec<f64>, memory: f64) -> Self {
        let count = priors.len();
        Self {
            priors,
            regrets: vec![0.0; count],
            squares: vec![0.0; count],
            ranges: vec![0.0; count],
            raised: 0,
            memory,
        }
    }

    /// p: the weights of the experts, which sum to 1.
    pub fn weights(&self) -> Vec<f64> {
        let logarithms: Vec<f64> = (0..self.priors.len()).map(|expert| self.logarithm(expert)).collect();
        let largest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut weights: Vec<f64> = logarithms.iter().map(|logarithm| (logarithm - largest).exp()).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= sum);
        weights
    }

    /// ln(πⱼ · Σ_η η · exp(η·Rⱼ − η²·Vⱼ)).
    fn logarithm(&self, expert: usize) -> f64 {
        let (regret, square) = (self.regrets[expert], self.squares[expert]);
        let exponents: Vec<f64> =
            self.rates(expert).map(|rate| rate.ln() + rate * regret - rate * rate * square).collect();
        let largest = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = exponents.iter().map(|exponent| (exponent - largest).exp()).sum();
        self.priors[expert].ln() + largest + sum.ln()
    }

    /// The learning rates of the grid that are at most 1/(2Bⱼ); the smallest one always.
    fn rates(&self, expert: usize) -> impl Iterator<Item = f64> {
        let limit = 0.5 / self.ranges[expert];
        (0..LEARNING_RATES as i32)
            .map(|number| f64::from(RATE_MAX_LOG2 - number).exp2())
            .filter(move |rate| *rate <= limit || *rate == SMALLEST_RATE)
    }

    /// Counts a round: the regret against each expert, 0 for one that made no forecast. Rounds that are not finite are left
    /// out.
    pub fn update(&mut self, regrets: &[f64]) {
        if regrets.len() != self.regrets.len() || regrets.iter().any(|regret| !regret.is_finite()) {
            return;
        }
        let mut raises = false;
        for (range, regret) in self.ranges.iter_mut().zip(regrets) {
            if regret.abs() > *range {
                *range = regret.abs().max(RANGE_MIN).log2().ceil().exp2();
                raises = true;
            }
        }
        self.raised += u64::from(raises);
        for ((regret, square), new) in self.regrets.iter_mut().zip(&mut self.squares).zip(regrets) {
            let new = if raises { 0.0 } else { *new };
            *regret = *regret * self.memory + new;
            *square = *square * self.memory + new * new;
        }
    }

    /// The bound on the regret against an expert, by the best learning rate of the grid.
    pub fn bound(&self, expert: usize) -> f64 {
        let logarithm = (LEARNING_RATES as f64 / self.priors[expert]).ln();
        let bounds = self.rates(expert).map(|rate| rate * self.squares[expert] + logarithm / rate);
        bounds.fold(f64::INFINITY, f64::min) + self.raised as f64 * self.ranges[expert]
    }
}

/// The smallest range: no learning rate of the grid is too large for it.
const RANGE_MIN: f64 = 1.0 / 16.0;
const SMALLEST_RATE: f64 = 1.0 / 4096.0;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::RngExt;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    /// Plays losses of the experts; the largest regret beyond its bound, with regrets that fade like the mixture's own.
    fn excess(memory: f64, rounds: usize, mut losses: impl FnMut(usize, &[f64]) -> Vec<f64>) -> f64 {
        let experts = losses(0, &[]).len();
        let mut mixture = Bernstein::new(vec![1.0 / experts as f64; experts], memory);
        let mut true_regrets = vec![0.0; experts];
        let mut excess = f64::NEG_INFINITY;
        for round in 0..rounds {
            let weights = mixture.weights();
            assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            let losses = losses(round, &weights);
            let own: f64 = losses.iter().zip(&weights).map(|(loss, weight)| loss * weight).sum();
            let regrets: Vec<f64> = losses.iter().map(|loss| own - loss).collect();
            for (sum, regret) in true_regrets.iter_mut().zip(&regrets) {
                *sum = *sum * memory + regret;
            }
            mixture.update(&regrets);
            for (expert, regret) in true_regrets.iter().enumerate() {
                excess = excess.max(regret - mixture.bound(expert));
            }
        }
        excess
    }

    #[test]
    fn the_bound_holds_against_an_adversary_who_sees_the_weights() {
        for memory in [1.0, 0.99] {
            // Always a loss for the expert that is trusted most.
            let spiteful = |_: usize, weights: &[f64]| {
                let mut losses = vec![0.0; 5];
                let trusted = (0..weights.len()).max_by(|a, b| weights[*a].total_cmp(&weights[*b]));
                losses[trusted.unwrap_or(0)] = 1.0;
                losses
            };
            assert!(excess(memory, 5000, spiteful) <= 1e-9);
            // Losses that grow a thousandfold.
            let growing = |round: usize, weights: &[f64]| {
                let size = if round % 500 == 499 { 10f64.powi((round / 1000) as i32) } else { 0.1 };
                let trusted = weights.first().is_some_and(|weight| *weight > 0.5);
                if trusted { vec![size, 0.0] } else { vec![0.0, size] }
            };
            assert!(excess(memory, 4000, growing) <= 1e-9);
        }
    }

    #[test]
    fn the_best_expert_is_found() {
        let mut mixture = Bernstein::new(vec![0.25; 4], 1.0);
        let mut generator = ChaCha8Rng::seed_from_u64(3);
        for _ in 0..500 {
            let weights = mixture.weights();
            let losses: Vec<f64> =
                (0..4).map(|j| if j == 2 { 0.2 } else { 0.3 } + 0.2 * generator.random::<f64>()).collect();
            let own: f64 = losses.iter().zip(&weights).map(|(loss, weight)| loss * weight).sum();
            mixture.update(&losses.iter().map(|loss| own - loss).collect::<Vec<f64>>());
        }
        assert!(mixture.weights()[2] > 0.95, "{:?}", mixture.weights());
    }

    #[test]
    fn an_expert_that_sleeps_keeps_its_chance() {
        let mut mixture = Bernstein::new(vec![0.5, 0.25, 0.25], 1.0);
        for _ in 0..200 {
            let weights = mixture.weights();
            // The third makes no forecast; the second is worse than the first by 0.1.
            let own = weights[1] / (weights[0] + weights[1]) * 0.1;
            mixture.update(&[own, own - 0.1, 0.0]);
        }
        let weights = mixture.weights();
        assert!(weights[2] > weights[1] * 10.0, "{weights:?}");
    }

    proptest! {
        #[test]
        fn the_bound_holds_for_random_losses(seed: u64, experts in 2usize..8, memory in 0.9f64..=1.0, spread in -3i32..4) {
            let mut generator = ChaCha8Rng::seed_from_u64(seed);
            let losses = |_: usize, _: &[f64]| {
                (0..experts).map(|_| generator.random::<f64>().powi(3) * 10f64.powi(spread)).collect()
            };
            prop_assert!(excess(memory, 300, losses) <= 1e-9);
        }
    }
}
