//! FGFL (Xu, Lyu, Ma, Miao, Foo and Low, *Gradient Driven Rewards to Guarantee Fairness in Collaborative Machine
//! Learning*, NeurIPS 2021).

use evenhand_federation::strategy::{
    AggregatedModel, AggregationInput, MemoryError, Participation, Strategy, decode_memory, encode_memory,
};
use evenhand_federation::{NodeIndex, Weights};

/// Γ: the norm of every update after normalisation, as published.
const UPDATE_NORM: f64 = 0.01;

/// b: the higher, the more equal the rewards.
const ALTRUISM: f64 = 2.0;

/// a: the share of a reputation that stays from round to round, as published.
const DECAY: f64 = 0.95;

/// Everybody takes part and has a model of its own; nodes that contribute less receive a sparser update.
#[derive(Debug, Clone, Default)]
pub struct Fgfl {
    /// rᵢ by index; they sum to 1.
    reputations: Vec<f64>,
}

impl Fgfl {
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
    fn name(&self) -> &'static str {
        "fgfl"
    }

    fn participation(&self) -> Participation {
        Participation::Everybody
    }

    fn node_score(&self, node: NodeIndex) -> Option<f64> {
        self.reputations.get(node.get()).copied()
    }

    /// # Formula
    /// uᵢ = ΓΔθᵢ/‖Δθᵢ‖ and u_N = Σ rᵢuᵢ. Then rᵢ ← a·rᵢ + (1 − a)·cos(uᵢ, u_N), with 0 for the cosine without an
    /// update, not below 0 and scaled to sum to 1; and where an update arrived θᵢ ← θᵢ − the qᵢ largest entries of u_N, with
    /// qᵢ = ⌊dim · tanh(b·rᵢ) / maxⱼ tanh(b·rⱼ)⌋ and altruism b.
    fn aggregate(&mut self, round: &AggregationInput<'_>) -> AggregatedModel {
        self.enrol(round.members);
        let norms: Vec<f64> = round.updates.iter().map(|update| dot(update, update).sqrt()).collect();
        let combined = self.combined(round, &norms);
        self.update_reputations(round, &norms, &combined);
        let full = round.latest.values().iter().zip(&combined).map(|(value, by)| f64::from(*value) - by);
        AggregatedModel { latest: full.collect(), node_models: self.reward(round, &combined) }
    }

    fn save(&self) -> Vec<u8> {
        encode_memory(&self.reputations)
    }

    fn restore(&mut self, memory: &[u8]) -> Result<(), MemoryError> {
        self.reputations = decode_memory(self.name(), memory)?;
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn Strategy> {
        Box::new(self.clone())
    }
}

impl Fgfl {
    /// u_N.
    fn combined(&self, round: &AggregationInput<'_>, norms: &[f64]) -> Vec<f64> {
        let mut combined = vec![0.0f64; round.latest.values().len()];
        for ((node, update), norm) in round.nodes.iter().zip(round.updates).zip(norms) {
            let scale = if *norm > 0.0 { self.reputations[node.get()] * UPDATE_NORM / norm } else { 0.0 };
            for (sum, value) in combined.iter_mut().zip(*update) {
                *sum += scale * f64::from(*value);
            }
        }
        combined
    }

    /// rᵢ.
    fn update_reputations(&mut self, round: &AggregationInput<'_>, norms: &[f64], combined: &[f64]) {
        let length = combined.iter().map(|value| value * value).sum::<f64>().sqrt();
        self.reputations.iter_mut().for_each(|reputation| *reputation *= DECAY);
        for ((node, update), norm) in round.nodes.iter().zip(round.updates).zip(norms) {
            let product: f64 = update.iter().zip(combined).map(|(a, b)| f64::from(*a) * b).sum();
            let cosine = if norm * length > 0.0 { product / (norm * length) } else { 0.0 };
            let reputation = &mut self.reputations[node.get()];
            *reputation = (*reputation + (1.0 - DECAY) * cosine).max(0.0);
        }
        self.normalise();
    }

    /// θᵢ.
    fn reward(&self, round: &AggregationInput<'_>, combined: &[f64]) -> Vec<Weights> {
        let mut order: Vec<usize> = (0..combined.len()).collect();
        order.sort_by(|&a, &b| combined[b].abs().total_cmp(&combined[a].abs()));
        let generosity: Vec<f64> = self.reputations.iter().map(|r| (ALTRUISM * r).tanh()).collect();
        let enrolled =
            NodeIndex::first(generosity.len()).zip(&generosity).filter(|(node, _)| round.is_enrolled(*node));
        let most = enrolled.map(|(_, most)| *most).fold(f64::MIN_POSITIVE, f64::max);
        let mut models: Vec<Weights> =
            NodeIndex::first(round.members).map(|node| round.model(node).clone()).collect();
        for node in round.nodes {
            let model = &mut models[node.get()];
            let entries = (combined.len() as f64 * generosity[node.get()] / most) as usize;
            let mut values = model.values().to_vec();
            for &entry in order.iter().take(entries) {
                values[entry] = (f64::from(values[entry]) - combined[entry]) as f32;
            }
            *model = Weights::new(values.into());
        }
        models
    }
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}
