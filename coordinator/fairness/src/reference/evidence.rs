//! The evidence about one node.

use super::decayed_mean::BlockedMean;
use super::noise_subspace::NoiseSubspace;
use super::projection::AnswerProjection;
use super::signature::DIMENSION_MIN;
use crate::vector::{Dot, SquaredNorm};
use pulp::Arch;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Answers of its own that a new one is compared with.
const ANSWERS_REMEMBERED: usize = 64;
/// An answer that is no further from an earlier one, both of length 1, is that one again, rounded or scaled otherwise: rounding
/// to 16 bits leaves some 0.002. Fresh answers of a household came as near as 0.06.
const REPEATED_DISTANCE_MAX: f64 = 0.02;
/// ψᵢ = pᵢ/sᵢ^x: x = 0 would be the precision alone, x = ½ the bias alone.
const SIMILARITY_EXPONENT: f64 = 0.375;
/// Rounds of one reference after which a node's own mean is known well enough to be taken out of its answers.
const INNOVATION_ROUNDS_MIN: f64 = 3.0;

/// Sums over the answers of one node. Everything decays by λ in each round it is asked in.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NodeEvidence {
    /// Aᵢ = Σ λ^(t−t′)·uᵢ,ₜ′ at the present reference.
    sum: Vec<f32>,
    /// Σ λ^(t−t′) over the rounds in that sum, answered or not.
    sum_rounds: f64,
    /// The same over the answers in it.
    sum_answers: f64,
    /// Σ λ^2(t−t′) over the answers in it.
    sum_squares: f64,
    /// The last answer, of length 1, before it was whitened.
    last: Vec<f32>,
    /// Its latest answers at the present reference, projected.
    answers: VecDeque<AnswerProjection>,
    /// pᵢ at the present reference.
    precision: f64,
    /// What earlier references have shown.
    earlier: EarlierEvidence,
    /// What each round moved pᵢ/sᵢ^x by, without the mean of its round: for the error of the standing.
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
    /// ψᵢ = pᵢ/sᵢ^⅜.
    pub value: f64,
    /// Its standard error, from the scatter over rounds of what each moved it by.
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

/// An answer as a direction.
pub(super) struct DirectedAnswer {
    /// uᵢ,ₜ: whitened, of length 1; none if there is nothing that counts.
    pub(super) unit: Option<Vec<f32>>,
    /// The answer as it came, of length 1.
    whole: Vec<f32>,
    /// The answer is an earlier one again.
    pub(super) repeated: bool,
    /// The answer as it came, projected.
    projection: Option<AnswerProjection>,
    /// Mean of cos(uᵢ,ₜ, uᵢ,ₜ′) over the earlier answers.
    similarity: f64,
    /// What is new in the answer: without the mean of the node's own, of length 1.
    pub(super) innovation: Option<Vec<f32>>,
}

impl DirectedAnswer {
    fn nothing(repeated: bool) -> Self {
        Self { unit: None, whole: Vec::new(), repeated, projection: None, similarity: 0.0, innovation: None }
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

    /// sᵢ at the present reference: the mean cosine of two different answers in Aᵢ. A round without an answer is no part of it:
    /// it lowers the precision, and would take back most of that.
    pub(super) fn similarity(&self) -> f64 {
        let pairs = self.sum_answers * self.sum_answers - self.sum_squares;
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
        let own = AnswerProjection::of(&whole);
        let comparable = whole.len() >= DIMENSION_MIN;
        if comparable && self.answers.iter().any(|earlier| own.distance(earlier) <= REPEATED_DISTANCE_MAX) {
            return DirectedAnswer::nothing(true);
        }
        let mut unit = whole.clone();
        noise.whiten(&mut unit);
        let Some(unit) = normalised(unit) else { return DirectedAnswer::nothing(false) };
        let (mut similarity, mut innovation) = (0.0, None);
        if self.sum_rounds > 0.0 && self.sum.len() == unit.len() {
            let wide: Vec<f64> = self.sum.iter().map(|value| f64::from(*value)).collect();
            let along = Arch::new().dispatch(Dot(&wide, &unit));
            similarity = if self.sum_answers > 0.0 { along / self.sum_answers } else { 0.0 };
            let square: f64 = wide.iter().map(|value| value * value).sum();
            if comparable && self.sum_rounds >= INNOVATION_ROUNDS_MIN && square > 0.0 {
                let scale = (along / square) as f32;
                let own = self.sum.iter().map(|sum| scale * sum);
                innovation = normalised(unit.iter().zip(own).map(|(value, own)| value - own).collect());
            }
        }
        let projection = Some(own);
        DirectedAnswer { unit: Some(unit), whole, repeated: false, projection, similarity, innovation }
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
        self.sum_answers *= decay;
        if let Some(unit) = &answer.unit {
            self.sum.resize(unit.len(), 0.0);
            self.sum.iter_mut().zip(unit).for_each(|(sum, value)| *sum += value);
            self.sum_squares += 1.0;
            self.sum_answers += 1.0;
            self.last = std::mem::take(&mut answer.whole);
        }
        if let Some(projection) = answer.projection {
            self.answers.truncate(ANSWERS_REMEMBERED - 1);
            self.answers.push_front(projection);
        }
    }

    /// The part of ψᵢ/sᵢ^−x that rests on one answer with the contribution φ: ψ is linear in it, to first order.
    ///
    /// # Formula
    /// φ − 2x·(p/s)·ŝ with ŝ = φp + g·(s′ − φp), the answer's similarity with the node's mean: φp of it along D, the rest as
    /// far as it is known. s′ is its mean similarity with earlier answers; g = 1 − (noise in A⊥)/‖A⊥‖², at least 0, with A⊥
    /// the part of Aᵢ across D. s is a mean over answers, p one over rounds: where only a share a of the rounds was answered,
    /// an answer moves s by 1/a as much, and a round without one does not move it.
    pub(super) fn influence(&self, answer: &DirectedAnswer, contribution: f64, floor: f64) -> f64 {
        let known = self.standing(floor);
        if known.self_similarity <= 0.0 {
            return contribution;
        }
        let along = self.precision * self.sum_rounds;
        let across = Arch::new().dispatch(SquaredNorm(&self.sum)) - along * along;
        let gain = if across > 0.0 { (1.0 - self.noise() / across).max(0.0) } else { 0.0 };
        let common = contribution * known.precision;
        let answered = self.sum_answers / self.sum_rounds.max(1.0);
        let similarity = match answer.unit {
            Some(_) if answered > 0.0 => {
                let found = common + gain * (answer.similarity - common);
                known.self_similarity + (found - known.self_similarity) / answered
            }
            _ => known.self_similarity,
        };
        contribution - 2.0 * SIMILARITY_EXPONENT * known.precision / known.self_similarity * similarity
    }

    /// Adds a round, by the deviation of its influence from the mean of the round.
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
        let scale = if self_similarity > 0.0 { self_similarity.powf(-SIMILARITY_EXPONENT) } else { 0.0 };
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
        (self.sum_rounds, self.sum_answers) = (0.0, 0.0);
        (self.sum_squares, self.precision) = (0.0, 0.0);
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
