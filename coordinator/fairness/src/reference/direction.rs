//! The direction that nodes are compared with.

use super::evidence::NodeEvidence;
use crate::vector::{Dot, SquaredNorm, add};
use pulp::Arch;
use rayon::prelude::*;
use std::borrow::Cow;

/// Values worked on at a time: sums of so many fit the nearest cache.
const BLOCK: usize = 2048;
/// Times that the weights are adapted to the direction.
const ADAPTATIONS: usize = 3;

/// One part of the direction: a node, or a group of twins as one.
pub(super) struct DirectionPart<'a> {
    /// Aᵢ; the mean of a group.
    sum: Cow<'a, [f32]>,
    /// The part of E‖Aᵢ‖² that is noise.
    noise: f64,
}

impl<'a> DirectionPart<'a> {
    /// The part of these nodes, which are one player.
    pub(super) fn of(group: &[usize], nodes: &'a [NodeEvidence]) -> Self {
        let share = 1.0 / group.len() as f64;
        let noise = share * group.iter().map(|node| nodes[*node].noise()).sum::<f64>();
        if let [node] = group {
            return Self { sum: Cow::Borrowed(nodes[*node].sum()), noise };
        }
        let dimension = group.iter().map(|node| nodes[*node].sum().len()).max().unwrap_or(0);
        let mut mean = vec![0.0f64; dimension];
        for node in group {
            add(&mut mean, share, nodes[*node].sum());
        }
        Self { sum: mean.into_iter().map(|value| value as f32).collect(), noise }
    }
}

/// D = Σ wᵢAᵢ, robust against a minority.
///
/// # Formula
/// wᵢ = min(1, m/‖Aᵢ‖)·max(0, cos(Aᵢ, D₋ᵢ)), with m the median of ‖Aⱼ‖; found from wᵢ = min(1, m/‖Aᵢ‖) in three steps.
///
/// A node that sends one vector without end has the longest sum; the first factor leaves it no more weight than the median has.
/// Nodes that agree with each other and not with the majority lose their weight by the second. Twins are one part: none of
/// them is compared with another.
pub struct Direction<'a> {
    parts: Vec<DirectionPart<'a>>,
    values: Vec<f64>,
    weights: Vec<f64>,
    /// ⟨D, Aᵢ⟩.
    along: Vec<f64>,
    /// ‖Aᵢ‖².
    squares: Vec<f64>,
    /// ‖D‖².
    square: f64,
}

impl<'a> Direction<'a> {
    /// The direction of all parts.
    pub(super) fn of(parts: Vec<DirectionPart<'a>>) -> Self {
        let processor = Arch::new();
        let squares: Vec<f64> =
            parts.par_iter().map(|part| processor.dispatch(SquaredNorm(&part.sum))).collect();
        let limits = limits(&squares);
        let mut direction = Self {
            parts,
            values: Vec::new(),
            weights: limits.clone(),
            along: Vec::new(),
            squares,
            square: 0.0,
        };
        direction.turn();
        for _ in 0..ADAPTATIONS {
            let weights: Vec<f64> = limits
                .iter()
                .enumerate()
                .map(|(i, limit)| limit * direction.cosine(i).clamp(0.0, 1.0))
                .collect();
            if weights.iter().all(|weight| *weight == 0.0) {
                break;
            }
            direction.weights = weights;
            direction.turn();
        }
        direction
    }

    /// Computes D by the present weights.
    fn turn(&mut self) {
        let Self { parts, weights, .. } = &*self;
        let dimension = parts.iter().map(|part| part.sum.len()).max().unwrap_or(0);
        let mut values = vec![0.0; dimension];
        values.par_chunks_mut(BLOCK).enumerate().for_each(|(block, values)| {
            let span = block * BLOCK..block * BLOCK + values.len();
            for (part, weight) in parts.iter().zip(weights).filter(|(part, _)| !part.sum.is_empty()) {
                add(values, *weight, &part.sum[span.clone()]);
            }
        });
        let processor = Arch::new();
        let along = |part: &DirectionPart<'_>| {
            if part.sum.is_empty() { 0.0 } else { processor.dispatch(Dot(&values, &part.sum)) }
        };
        let along = parts.par_iter().map(along).collect();
        self.square = values.iter().map(|value| value * value).sum();
        (self.values, self.along) = (values, along);
    }

    /// ‖D₋ᵢ‖².
    fn others(&self, i: usize) -> f64 {
        let weight = self.weights[i];
        (self.square - 2.0 * weight * self.along[i] + weight * weight * self.squares[i]).max(0.0)
    }

    /// cos(Aᵢ, D₋ᵢ); 0 where one of them vanishes.
    fn cosine(&self, i: usize) -> f64 {
        let product = self.along[i] - self.weights[i] * self.squares[i];
        self.over_norms(i, product, self.squares[i])
    }

    /// cos(u, D₋ᵢ) of an answer u of a node of part i.
    pub(super) fn agreement(&self, i: usize, unit: &[f32]) -> f64 {
        let processor = Arch::new();
        let own: f64 = self.parts[i].sum.iter().zip(unit).map(|(a, u)| f64::from(*a) * f64::from(*u)).sum();
        let product = processor.dispatch(Dot(&self.values, unit)) - self.weights[i] * own;
        self.over_norms(i, product, processor.dispatch(SquaredNorm(unit)))
    }

    /// Mean of cos(u, D₋ᵢ) over the answers u in Aᵢ of a node of part i.
    pub(super) fn mean_agreement(&self, i: usize, evidence: &NodeEvidence) -> f64 {
        let others = self.others(i);
        if evidence.sum().is_empty() || others <= 1e-9 * self.square {
            return 0.0;
        }
        let own: f64 =
            self.parts[i].sum.iter().zip(evidence.sum()).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        let product = Arch::new().dispatch(Dot(&self.values, evidence.sum())) - self.weights[i] * own;
        product / (others.sqrt() * evidence.sum_rounds())
    }

    fn over_norms(&self, i: usize, product: f64, square: f64) -> f64 {
        let others = self.others(i);
        // What is left of D without part i may be rounding alone.
        if square == 0.0 || others <= 1e-9 * self.square {
            return 0.0;
        }
        (product / (square * others).sqrt()).clamp(-1.0, 1.0)
    }

    /// c = cos(D, E D), estimated: the noise of each Aᵢ is known from its self-similarity.
    pub(super) fn reliability(&self) -> f64 {
        if self.square == 0.0 {
            return 0.0;
        }
        let noise: f64 =
            self.parts.iter().zip(&self.weights).map(|(part, weight)| weight * weight * part.noise).sum();
        (1.0 - noise / self.square).max(0.0).sqrt()
    }
}

/// min(1, m/‖Aᵢ‖), m the median over the parts that have answered.
fn limits(squares: &[f64]) -> Vec<f64> {
    let mut norms: Vec<f64> =
        squares.iter().filter(|square| **square > 0.0).map(|square| square.sqrt()).collect();
    norms.sort_unstable_by(f64::total_cmp);
    let median = norms.get(norms.len().saturating_sub(1) / 2).copied().unwrap_or(0.0);
    let limit = |square: &f64| if *square > 0.0 { (median / square.sqrt()).min(1.0) } else { 0.0 };
    squares.iter().map(limit).collect()
}
