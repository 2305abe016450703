//! The evidence about one node.

use super::noise_subspace::NoiseSubspace;
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
    /// The last answer, of length 1, before it was whitened.
    last: Vec<f32>,
    /// Signatures of its latest answers at the present reference.
    answers: VecDeque<Signature>,
    /// pᵢ at the present reference.
    precision: f64,
    /// What earlier references have shown.
    earlier: EarlierEvidence,
    /// φᵢ,ₜ without the mean of their round, for their scatter.
    deviations: BlockedMean,
    rounds: u32,
}

/// Precision and self-similarity at earlier references, with their weight in rounds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
struct EarlierEvidence {
    rounds: f64,
    precision: f64,
    similarity: f64,
}

/// ψᵢ and its parts.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ReferenceStanding {
    /// ψᵢ = pᵢ/sᵢ^¼.
    pub value: f64,
    /// Its standard error, from the scatter of the contributions.
    pub standard_error: f64,
    /// pᵢ: the mean agreement.
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

    /// Number of values that it is worth.
    fn values(&self) -> f64 {
        if self.weight == 0.0 { 0.0 } else { self.weight * self.weight / self.squared_weights }
    }

    /// Standard error of the mean; that of a single value cannot be told and is taken to be its size.
    fn error(&self) -> f64 {
        if self.weight == 0.0 {
            return 0.0;
        }
        let values = self.values();
        if values <= 1.5 {
            return self.mean.abs();
        }
        ((self.mean_square - self.mean * self.mean).max(0.0) / (values - 1.0)).sqrt()
    }
}

/// Rounds whose mean counts as one value.
const BLOCK_ROUNDS: u32 = 8;
/// Blocks from which the scatter of their means is known.
const BLOCKS_MIN: f64 = 4.0;

/// A decayed mean whose error is told by the scatter of the means of blocks: rounds that follow each other are not independent,
/// since samples come in their order (by day and by night).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
struct BlockedMean {
    single: DecayedMean,
    blocks: DecayedMean,
    block_sum: f64,
    block_rounds: u32,
}

impl BlockedMean {
    fn add(&mut self, value: f64, decay: f64) {
        self.single.add(value, decay);
        self.block_sum += value;
        self.block_rounds += 1;
        if self.block_rounds == BLOCK_ROUNDS {
            let mean = self.block_sum / f64::from(BLOCK_ROUNDS);
            self.blocks.add(mean, decay.powi(BLOCK_ROUNDS as i32));
            (self.block_sum, self.block_rounds) = (0.0, 0);
        }
    }

    /// Standard error of the mean.
    fn error(&self) -> f64 {
        if self.blocks.values() >= BLOCKS_MIN { self.blocks.error() } else { self.single.error() }
    }
}

/// An answer as a direction.
pub(super) struct DirectedAnswer {
    /// uᵢ,ₜ: whitened, of length 1; none if there is nothing that counts.
    pub(super) unit: Option<Vec<f32>>,
    /// The answer as it came, of length 1.
    whole: Vec<f32>,
    /// The answer is an earlier one again.
    pub(super) repeated: bool,
    /// Signature of the answer as it came.
    signature: Option<Signature>,
    /// What is new in the answer: without the mean of the node's own, of length 1.
    pub(super) innovation: Option<Vec<f32>>,
}

impl DirectedAnswer {
    fn nothing(repeated: bool) -> Self {
        Self { unit: None, whole: Vec::new(), repeated, signature: None, innovation: None }
    }
}

impl NodeEvidence {
    /// Aᵢ.
    pub(super) fn sum(&self) -> &[f32] {
        &self.sum
    }

    /// The part of E‖Aᵢ‖² that is noise.
    pub(super) fn noise(&self) -> f64 {
        self.sum_squares * (1.0 - self.similarity().clamp(0.0, 1.0))
    }

    /// Σ λ^(t−t′) over the rounds in Aᵢ.
    pub(super) fn sum_rounds(&self) -> f64 {
        self.sum_rounds
    }

    /// sᵢ at the present reference: the mean cosine of two different answers in Aᵢ.
    pub(super) fn similarity(&self) -> f64 {
        let pairs = self.sum_rounds * self.sum_rounds - self.sum_squares;
        if pairs <= 0.0 {
            return 0.0;
        }
        (Arch::new().dispatch(SquaredNorm(&self.sum)) - self.sum_squares) / pairs
    }

    /// An answer as a direction, whitened by what is known of `noise`, compared with the earlier ones.
    pub(super) fn receive(&self, gradient: Option<&[f32]>, noise: &NoiseSubspace) -> DirectedAnswer {
        let Some(whole) = gradient.and_then(|gradient| normalised(gradient.to_vec())) else {
            return DirectedAnswer::nothing(false);
        };
        let own = signature(whole.iter().copied());
        let comparable = whole.len() >= DIMENSION_MIN;
        if comparable && self.answers.iter().any(|earlier| own.distance(earlier) <= REPEATED_BITS_MAX) {
            return DirectedAnswer::nothing(true);
        }
        let mut unit = whole.clone();
        noise.whiten(&mut unit);
        let Some(unit) = normalised(unit) else { return DirectedAnswer::nothing(false) };
        let mut innovation = None;
        if comparable && self.sum_rounds >= INNOVATION_ROUNDS_MIN && self.sum.len() == unit.len() {
            let wide: Vec<f64> = self.sum.iter().map(|value| f64::from(*value)).collect();
            let square: f64 = wide.iter().map(|value| value * value).sum();
            if square > 0.0 {
                let scale = (Arch::new().dispatch(Dot(&wide, &unit)) / square) as f32;
                let own = self.sum.iter().map(|sum| scale * sum);
                innovation = normalised(unit.iter().zip(own).map(|(value, own)| value - own).collect());
            }
        }
        DirectedAnswer { unit: Some(unit), whole, repeated: false, signature: Some(own), innovation }
    }

    /// The difference of an answer from the last one, in which the node's mean is not contained.
    pub(super) fn difference(&self, answer: &DirectedAnswer) -> Option<Vec<f32>> {
        let both = !self.last.is_empty() && self.last.len() == answer.whole.len();
        both.then(|| answer.whole.iter().zip(&self.last).map(|(a, b)| (a - b) * 0.5f32.sqrt()).collect())
    }

    /// Adds an answer to the sums.
    pub(super) fn accumulate(&mut self, answer: &mut DirectedAnswer, decay: f64) {
        self.sum.iter_mut().for_each(|sum| *sum = (f64::from(*sum) * decay) as f32);
        self.sum_rounds = decay * self.sum_rounds + 1.0;
        self.sum_squares *= decay * decay;
        if let Some(unit) = &answer.unit {
            self.sum.resize(unit.len(), 0.0);
            self.sum.iter_mut().zip(unit).for_each(|(sum, value)| *sum += value);
            self.sum_squares += 1.0;
            self.last = std::mem::take(&mut answer.whole);
        }
        if let Some(signature) = answer.signature {
            self.answers.truncate(ANSWERS_REMEMBERED - 1);
            self.answers.push_front(signature);
        }
    }

    /// Adds a contribution, by its deviation from the mean of the round.
    pub(super) fn credit(&mut self, deviation: f64, decay: f64) {
        self.rounds = self.rounds.saturating_add(1);
        self.earlier.rounds *= decay;
        self.deviations.add(deviation, decay);
    }

    pub(super) fn set_precision(&mut self, precision: f64) {
        self.precision = precision;
    }

    /// ψᵢ; self-similarities below `floor` cannot be told from it.
    pub(super) fn standing(&self, floor: f64) -> ReferenceStanding {
        let EarlierEvidence { rounds, precision, similarity } = self.earlier;
        let (now, all) = (self.sum_rounds, self.sum_rounds + rounds);
        let mean = |now_value: f64, earlier: f64| {
            if all > 0.0 { (now * now_value + rounds * earlier) / all } else { 0.0 }
        };
        let precision = mean(self.precision, precision);
        // s ≥ p², since |b| ≤ 1.
        let least = floor.max(precision * precision);
        let self_similarity = mean(self.similarity(), similarity).max(least).min(1.0);
        let scale = if self_similarity > 0.0 { self_similarity.powf(-0.25) } else { 0.0 };
        ReferenceStanding {
            value: precision * scale,
            standard_error: self.deviations.error() * scale,
            precision,
            self_similarity,
            rounds: self.rounds,
        }
    }

    pub(super) fn forget_gradients(&mut self) {
        let known = self.standing(0.0);
        if self.sum_rounds > 0.0 {
            self.earlier = EarlierEvidence {
                rounds: self.sum_rounds + self.earlier.rounds,
                precision: known.precision,
                similarity: known.self_similarity,
            };
        }
        (self.sum, self.last) = (Vec::new(), Vec::new());
        (self.sum_rounds, self.sum_squares, self.precision) = (0.0, 0.0, 0.0);
        self.answers.clear();
    }

    pub(super) fn fits(&self, dimension: usize) -> bool {
        let fits = |values: &[f32]| values.is_empty() || values.len() == dimension;
        fits(&self.sum) && fits(&self.last)
    }
}

/// A vector at length 1; none if it vanishes.
pub(super) fn normalised(mut values: Vec<f32>) -> Option<Vec<f32>> {
    let norm = Arch::new().dispatch(SquaredNorm(&values)).sqrt();
    values.iter_mut().for_each(|value| *value = (f64::from(*value) / norm) as f32);
    (norm > 0.0).then_some(values)
}
