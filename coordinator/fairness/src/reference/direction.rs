//! The direction that nodes are compared with.

use super::evidence::NodeEvidence;
use crate::vector::{Dot, SquaredNorm, add};
use pulp::Arch;
use rayon::prelude::*;

/// Values worked on at a time: sums of so many fit the nearest cache.
const BLOCK: usize = 2048;
/// Times that the weights are adapted to the direction.
const ADAPTATIONS: usize = 3;

/// D = Σ wᵢAᵢ, robust against a minority.
///
/// # Formula
/// wᵢ = qᵢ·min(1, m/‖Aᵢ‖)·max(0, cos(Aᵢ, D₋ᵢ)), with m the median of ‖Aⱼ‖ and qᵢ the share of a twin in its group; found
/// from wᵢ = qᵢ·min(1, m/‖Aᵢ‖) in three steps.
///
/// A node that sends one vector for ever has the longest sum; the first factor leaves it no more weight than the median has.
/// Nodes that agree with each other and not with the majority lose their weight by the second.
#[derive(Debug)]
pub struct Direction {
    values: Vec<f64>,
    weights: Vec<f64>,
    /// ⟨D, Aᵢ⟩.
    along: Vec<f64>,
    /// ‖Aᵢ‖².
    squares: Vec<f64>,
    /// ‖D‖².
    square: f64,
}

impl Direction {
    /// The direction of all nodes; `shares[i]` = qᵢ.
    pub(super) fn of(nodes: &[NodeEvidence], shares: &[f64]) -> Self {
        let processor = Arch::new();
        let squares: Vec<f64> =
            nodes.par_iter().map(|node| processor.dispatch(SquaredNorm(node.sum()))).collect();
        let limits = limits(&squares, shares);
        let mut direction = Self::weighted(nodes, limits.clone(), squares);
        for _ in 0..ADAPTATIONS {
            let weights =
                (0..nodes.len()).map(|i| limits[i] * direction.cosine(i).clamp(0.0, 1.0)).collect::<Vec<_>>();
            if weights.iter().all(|weight| *weight == 0.0) {
                break;
            }
            let squares = std::mem::take(&mut direction.squares);
            direction = Self::weighted(nodes, weights, squares);
        }
        direction
    }

    fn weighted(nodes: &[NodeEvidence], weights: Vec<f64>, squares: Vec<f64>) -> Self {
        let dimension = nodes.iter().map(|node| node.sum().len()).max().unwrap_or(0);
        let mut values = vec![0.0; dimension];
        values.par_chunks_mut(BLOCK).enumerate().for_each(|(block, values)| {
            let span = block * BLOCK..block * BLOCK + values.len();
            for (node, weight) in nodes.iter().zip(&weights).filter(|(node, _)| !node.sum().is_empty()) {
                add(values, *weight, &node.sum()[span.clone()]);
            }
        });
        let processor = Arch::new();
        let along = nodes
            .par_iter()
            .map(
                |node| if node.sum().is_empty() { 0.0 } else { processor.dispatch(Dot(&values, node.sum())) },
            )
            .collect();
        let square = values.iter().map(|value| value * value).sum();
        Self { values, weights, along, squares, square }
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

    /// cos(u, D₋ᵢ) of an answer u of node i.
    pub(super) fn agreement(&self, i: usize, evidence: &NodeEvidence, unit: &[f32]) -> f64 {
        let processor = Arch::new();
        let own: f64 = evidence.sum().iter().zip(unit).map(|(a, u)| f64::from(*a) * f64::from(*u)).sum();
        let product = processor.dispatch(Dot(&self.values, unit)) - self.weights[i] * own;
        self.over_norms(i, product, processor.dispatch(SquaredNorm(unit)))
    }

    fn over_norms(&self, i: usize, product: f64, square: f64) -> f64 {
        let others = self.others(i);
        // What is left of D without node i may be rounding alone.
        if square == 0.0 || others <= 1e-9 * self.square {
            return 0.0;
        }
        (product / (square * others).sqrt()).clamp(-1.0, 1.0)
    }

    /// c = cos(D, E D), estimated: the noise of each Aᵢ is known from its self-similarity.
    pub(super) fn reliability(&self, nodes: &[NodeEvidence]) -> f64 {
        if self.square == 0.0 {
            return 0.0;
        }
        let noise: f64 =
            nodes.iter().zip(&self.weights).map(|(node, weight)| weight * weight * node.noise()).sum();
        (1.0 - noise / self.square).max(0.0).sqrt()
    }
}

/// qᵢ·min(1, m/‖Aᵢ‖), m the median over the nodes that have answered.
fn limits(squares: &[f64], shares: &[f64]) -> Vec<f64> {
    let mut norms: Vec<f64> =
        squares.iter().filter(|square| **square > 0.0).map(|square| square.sqrt()).collect();
    norms.sort_unstable_by(f64::total_cmp);
    let median = norms.get(norms.len().saturating_sub(1) / 2).copied().unwrap_or(0.0);
    let limit = |(square, share): (&f64, &f64)| {
        if *square > 0.0 { share * (median / square.sqrt()).min(1.0) } else { 0.0 }
    };
    squares.iter().zip(shares).map(limit).collect()
}
