//! FGFL (Xu, Lyu, Ma, Miao, Foo and Low, *Gradient Driven Rewards to Guarantee Fairness in Collaborative Machine
//! Learning*, NeurIPS 2021).

use serde::{Deserialize, Serialize};

use super::{Baseline, Harvested, Merged, Strategy, weights};
use crate::Weights;

/// Everybody takes part and keeps a model of its own; who contributes less receives a sparser update.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fgfl {
    update_norm: f64,
    altruism: f64,
    kept: f64,
    /// rᵢ by column; they sum to 1.
    reputations: Vec<f64>,
}

impl Fgfl {
    pub(super) fn new(baseline: &Baseline) -> Self {
        Self {
            update_norm: baseline.update_norm,
            altruism: baseline.altruism,
            kept: baseline.reputation_kept,
            reputations: Vec::new(),
        }
    }

    /// A newcomer begins with the mean reputation.
    fn enrol(&mut self, members: usize) {
        let known = self.reputations.len();
        if known < members {
            let mean = if known == 0 { 1.0 } else { 1.0 / known as f64 };
            self.reputations.resize(members, mean);
            self.normalise();
        }
    }

    fn normalise(&mut self) {
        let sum: f64 = self.reputations.iter().sum();
        let count = self.reputations.len() as f64;
        for reputation in &mut self.reputations {
            *reputation = if sum > 0.0 { *reputation / sum } else { 1.0 / count };
        }
    }
}

impl Strategy for Fgfl {
    fn asks_everybody(&self) -> bool {
        true
    }

    fn opinion(&self, column: usize) -> Option<f64> {
        self.reputations.get(column).copied()
    }

    /// # Formula
    /// uᵢ = ΓΔθᵢ/‖Δθᵢ‖ and u_N = Σ rᵢuᵢ. Then rᵢ ← a·rᵢ + (1 − a)·cos(uᵢ, u_N), with 0 for the cosine of whoever sent
    /// nothing, not below 0 and scaled to sum to 1; and for those who sent something θᵢ ← θᵢ − the qᵢ largest entries of u_N, with
    /// qᵢ = ⌊dim · tanh(b·rᵢ) / maxⱼ tanh(b·rⱼ)⌋ and altruism b.
    fn merge(&mut self, round: &Harvested<'_>) -> Merged {
        self.enrol(round.members);
        let norms: Vec<f64> = round.updates.iter().map(|update| dot(update, update).sqrt()).collect();
        let whole = self.whole(round, &norms);
        self.judge(round, &norms, &whole);
        let full = round.latest.values().iter().zip(&whole).map(|(value, by)| f64::from(*value) - by);
        Merged { latest: weights(full), own: self.reward(round, &whole) }
    }
}

impl Fgfl {
    /// u_N.
    fn whole(&self, round: &Harvested<'_>, norms: &[f64]) -> Vec<f64> {
        let mut whole = vec![0.0f64; round.latest.values().len()];
        for ((column, update), norm) in round.columns.iter().zip(round.updates).zip(norms) {
            let scale = if *norm > 0.0 { self.reputations[*column] * self.update_norm / norm } else { 0.0 };
            for (sum, value) in whole.iter_mut().zip(*update) {
                *sum += scale * f64::from(*value);
            }
        }
        whole
    }

    /// rᵢ.
    fn judge(&mut self, round: &Harvested<'_>, norms: &[f64], whole: &[f64]) {
        let length = whole.iter().map(|value| value * value).sum::<f64>().sqrt();
        self.reputations.iter_mut().for_each(|reputation| *reputation *= self.kept);
        for ((column, update), norm) in round.columns.iter().zip(round.updates).zip(norms) {
            let product: f64 = update.iter().zip(whole).map(|(a, b)| f64::from(*a) * b).sum();
            let cosine = if norm * length > 0.0 { product / (norm * length) } else { 0.0 };
            let reputation = &mut self.reputations[*column];
            *reputation = (*reputation + (1.0 - self.kept) * cosine).max(0.0);
        }
        self.normalise();
    }

    /// θᵢ.
    fn reward(&self, round: &Harvested<'_>, whole: &[f64]) -> Vec<Weights> {
        let mut order: Vec<usize> = (0..whole.len()).collect();
        order.sort_by(|&a, &b| whole[b].abs().total_cmp(&whole[a].abs()));
        let generosity: Vec<f64> = self.reputations.iter().map(|r| (self.altruism * r).tanh()).collect();
        let staying = generosity.iter().enumerate().filter(|(column, _)| round.stays(*column));
        let most = staying.map(|(_, most)| *most).fold(f64::MIN_POSITIVE, f64::max);
        let mut own: Vec<Weights> = (0..round.members).map(|column| round.model(column).clone()).collect();
        for &column in round.columns {
            let entries = (whole.len() as f64 * generosity[column] / most) as usize;
            let mut values = own[column].values().to_vec();
            for &entry in order.iter().take(entries) {
                values[entry] = (f64::from(values[entry]) - whole[entry]) as f32;
            }
            own[column] = Weights::new(values.into());
        }
        own
    }
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}
