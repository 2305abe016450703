//! The evidence about one node.

use super::signature::{DIMENSION_MIN, Signature, signature};
use crate::vector::{Dot, SquaredNorm};
use pulp::Arch;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Answers of its own that a new one is compared with.
const ANSWERS_REMEMBERED: usize = 64;
/// An answer whose signature differs from an earlier one in no more bits is that one again: an angle below 0.05.
const REPEATED_BITS_MAX: u32 = 8;
/// Rounds of one reference after which a node's own mean is known well enough to be taken out of its answers.
const INNOVATION_ROUNDS_MIN: f64 = 3.0;

/// Sums over the answers of one node. Everything decays by λ in each round it is asked in.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NodeEvidence {
    /// Aᵢ = Σ λ^(t−t′)·uᵢ,ₜ′ at the present reference.
    sum: Vec<f32>,
    /// Σ λ^(t−t′) over the rounds in that sum, answered or not.
    sum_rounds: f64,
    /// Σ λ^2(t−t′) over the answers in it.
    sum_squares: f64,
    /// Signatures of its latest answers at the present reference.
    answers: VecDeque<Signature>,
    precision: DecayedMean,
    similarity: DecayedMean,
    rounds: u32,
}

/// ψᵢ and its parts.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ReferenceStanding {
    /// ψᵢ = pᵢ/sᵢ^¼.
    pub value: f64,
    /// Its standard error, from the scatter of the contributions.
    pub standard_error: f64,
    /// pᵢ: the mean contribution.
    pub precision: f64,
    /// sᵢ: how much the node's answers have in common with each other.
    pub self_similarity: f64,
    /// Rounds that were measured.
    pub rounds: u32,
}

impl ReferenceStanding {
    /// bᵢ = pᵢ/√sᵢ.
    pub fn bias(&self) -> f64 {
        if self.self_similarity > 0.0 { self.precision / self.self_similarity.sqrt() } else { 0.0 }
    }
}

/// A mean whose memory decays, with the mean of squares.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
struct DecayedMean {
    weight: f64,
    squared_weights: f64,
    mean: f64,
    mean_square: f64,
}

impl DecayedMean {
    fn add(&mut self, value: f64, decay: f64) {
        self.weight = decay * self.weight + 1.0;
        self.squared_weights = decay * decay * self.squared_weights + 1.0;
        self.mean += (value - self.mean) / self.weight;
        self.mean_square += (value * value - self.mean_square) / self.weight;
    }

    /// Standard error of the mean; that of a single value cannot be told and is taken to be its size.
    fn error(&self) -> f64 {
        if self.weight == 0.0 {
            return 0.0;
        }
        let values = self.weight * self.weight / self.squared_weights;
        if values <= 1.5 {
            return self.mean.abs();
        }
        ((self.mean_square - self.mean * self.mean).max(0.0) / (values - 1.0)).sqrt()
    }
}

/// An answer as a direction.
pub(super) struct DirectedAnswer {
    /// uᵢ,ₜ; none if there is nothing that counts.
    pub(super) unit: Option<Vec<f32>>,
    /// The answer is an earlier one again.
    pub(super) repeated: bool,
    /// Signature of the answer itself.
    signature: Option<Signature>,
    /// What is new in the answer: without the mean of the node's own, of length 1.
    pub(super) innovation: Option<Vec<f32>>,
    /// Mean cosine with the node's earlier answers, if there are any.
    similarity: Option<f64>,
}

impl NodeEvidence {
    /// Aᵢ.
    pub(super) fn sum(&self) -> &[f32] {
        &self.sum
    }

    /// The part of E‖Aᵢ‖² that is noise.
    pub(super) fn noise(&self) -> f64 {
        self.sum_squares * (1.0 - self.similarity.mean.clamp(0.0, 1.0))
    }

    /// An answer as a direction, compared with the earlier ones.
    pub(super) fn receive(&self, gradient: Option<&[f32]>) -> DirectedAnswer {
        let nothing = |repeated| DirectedAnswer {
            unit: None,
            repeated,
            signature: None,
            innovation: None,
            similarity: None,
        };
        let processor = Arch::new();
        let Some(gradient) = gradient else { return nothing(false) };
        let Some(unit) = normalised(gradient.to_vec()) else { return nothing(false) };
        let own = signature(unit.iter().copied());
        let comparable = unit.len() >= DIMENSION_MIN;
        if comparable && self.answers.iter().any(|earlier| own.distance(earlier) <= REPEATED_BITS_MAX) {
            return nothing(true);
        }
        let (mut similarity, mut innovation) = (None, None);
        if self.sum_rounds > 0.0 && !self.sum.is_empty() {
            let wide: Vec<f64> = self.sum.iter().map(|value| f64::from(*value)).collect();
            let along = processor.dispatch(Dot(&wide, &unit));
            similarity = Some(along / self.sum_rounds);
            let square: f64 = wide.iter().map(|value| value * value).sum();
            if comparable && self.sum_rounds >= INNOVATION_ROUNDS_MIN && square > 0.0 {
                let scale = (along / square) as f32;
                let own = self.sum.iter().map(|sum| scale * sum);
                innovation = normalised(unit.iter().zip(own).map(|(value, own)| value - own).collect());
            }
        }
        DirectedAnswer { unit: Some(unit), repeated: false, signature: Some(own), innovation, similarity }
    }

    /// Adds an answer to the sums.
    pub(super) fn accumulate(&mut self, answer: &DirectedAnswer, decay: f64) {
        self.sum.iter_mut().for_each(|sum| *sum = (f64::from(*sum) * decay) as f32);
        self.sum_rounds = decay * self.sum_rounds + 1.0;
        self.sum_squares *= decay * decay;
        if let Some(unit) = &answer.unit {
            self.sum.resize(unit.len(), 0.0);
            self.sum.iter_mut().zip(unit).for_each(|(sum, value)| *sum += value);
            self.sum_squares += 1.0;
        }
        if let Some(signature) = answer.signature {
            self.answers.truncate(ANSWERS_REMEMBERED - 1);
            self.answers.push_front(signature);
        }
    }

    /// Adds a contribution.
    pub(super) fn credit(&mut self, contribution: f64, answer: &DirectedAnswer, decay: f64) {
        self.rounds = self.rounds.saturating_add(1);
        self.precision.add(contribution, decay);
        if let Some(similarity) = answer.similarity {
            self.similarity.add(similarity, decay);
        }
    }

    pub(super) fn standing(&self) -> ReferenceStanding {
        let precision = self.precision.mean;
        // s ≥ p², since |b| ≤ 1.
        let self_similarity = self.similarity.mean.max(precision * precision).min(1.0);
        let scale = if self_similarity > 0.0 { self_similarity.powf(-0.25) } else { 0.0 };
        ReferenceStanding {
            value: precision * scale,
            standard_error: self.precision.error() * scale,
            precision,
            self_similarity,
            rounds: self.rounds,
        }
    }

    /// Drops the contributions so far; gradients are kept.
    pub(super) fn forget_credit(&mut self) {
        self.precision = DecayedMean::default();
    }

    pub(super) fn forget_gradients(&mut self) {
        self.sum = Vec::new();
        (self.sum_rounds, self.sum_squares) = (0.0, 0.0);
        self.answers.clear();
    }

    pub(super) fn fits(&self, dimension: usize) -> bool {
        self.sum.is_empty() || self.sum.len() == dimension
    }
}

/// A vector at length 1; none if it vanishes.
pub(super) fn normalised(mut values: Vec<f32>) -> Option<Vec<f32>> {
    let norm = Arch::new().dispatch(SquaredNorm(&values)).sqrt();
    values.iter_mut().for_each(|value| *value = (f64::from(*value) / norm) as f32);
    (norm > 0.0).then_some(values)
}
