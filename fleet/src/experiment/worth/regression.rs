//! Shapley values by regression on sampled coalitions.
//!
//! The Shapley value is φᵢ = (U(N) − U(∅))/N + N⁻¹ Σₛ Dᵢ(s), where Dᵢ(s) is the mean of U over the coalitions of size s
//! with i minus that without i. Weighted least squares of U(S) on zᵢ − s/N, with weights 1/(s(N−s)) for a size, has
//! just that solution when every coalition is there (KernelSHAP, Lundberg and Lee 2017), and every training then
//! tells about every node; a random order of arrival tells about one node at a time. Functions of the size are
//! orthogonal to zᵢ − s/N, so that fitting them too changes nothing but the error: it takes away what a larger coalition
//! gains by its size alone.

use super::node_set::NodeSet;

/// A valued coalition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValuedCoalition {
    /// Its members.
    pub members: NodeSet,
    /// Its weight.
    pub weight: f64,
    /// The number of its pair.
    pub pair: usize,
    /// U(S).
    pub value: f64,
}

/// Estimated Shapley values.
#[derive(Debug, Clone, PartialEq)]
pub struct WorthEstimate {
    /// By node.
    pub values: Vec<f64>,
    /// Their standard errors by the jackknife over pairs; 0 where all coalitions are there, none where there are too
    /// few pairs to tell.
    pub standard_errors: Option<Vec<f64>>,
}

/// Groups of pairs that the jackknife leaves out in turn, at most.
const GROUPS_MAX: usize = 100;
/// Functions of the size that are fitted.
const SIZE_TERMS: usize = 6;
/// The share of the largest diagonal element that is added to all: it decides only what the data leave open.
const RIDGE: f64 = 1e-11;

/// Shapley values of `nodes` nodes from U(∅), U(N) and sampled coalitions between them.
pub fn shapley_regression(nodes: usize, ends: (f64, f64), sampled: &[ValuedCoalition]) -> WorthEstimate {
    let (empty, full) = ends;
    let mean = (full - empty) / nodes as f64;
    if nodes < 2 {
        return WorthEstimate { values: vec![mean; nodes], standard_errors: Some(vec![0.0; nodes]) };
    }
    let scale = sampled.iter().map(|one| one.weight).sum::<f64>().max(f64::MIN_POSITIVE);
    let all = NormalEquations::of(nodes, sampled.iter(), scale);
    let values = all.solution(nodes, mean);
    if sampled.len() as u128 == (1u128 << nodes.min(127)) - 2 {
        return WorthEstimate { values, standard_errors: Some(vec![0.0; nodes]) };
    }
    let pairs = sampled.iter().map(|one| one.pair + 1).max().unwrap_or(0);
    let groups = pairs.min(GROUPS_MAX);
    // Pairs outnumber what is fitted, or leaving some out says nothing.
    if pairs < nodes + SIZE_TERMS {
        return WorthEstimate { values, standard_errors: None };
    }
    let left_out = |group: usize| {
        let out = sampled.iter().filter(|one| one.pair % groups == group);
        all.without(&NormalEquations::of(nodes, out, scale)).solution(nodes, mean)
    };
    let replicates: Vec<Vec<f64>> = (0..groups).map(left_out).collect();
    let error = |node: usize| {
        let centre = replicates.iter().map(|one| one[node]).sum::<f64>() / groups as f64;
        let squares: f64 = replicates.iter().map(|one| (one[node] - centre).powi(2)).sum();
        (squares * (groups as f64 - 1.0) / groups as f64).sqrt()
    };
    WorthEstimate { values, standard_errors: Some((0..nodes).map(error).collect()) }
}

/// XᵀWX and XᵀWy.
#[derive(Debug, Clone)]
struct NormalEquations {
    matrix: Vec<Vec<f64>>,
    right: Vec<f64>,
}

impl NormalEquations {
    fn of<'a>(nodes: usize, rows: impl Iterator<Item = &'a ValuedCoalition>, scale: f64) -> Self {
        let columns = nodes + SIZE_TERMS;
        let mut found = Self { matrix: vec![vec![0.0; columns]; columns], right: vec![0.0; columns] };
        for row in rows {
            let (x, weight) = (terms(nodes, row.members), row.weight / scale);
            for (line, one) in found.matrix.iter_mut().zip(&x) {
                for (cell, other) in line.iter_mut().zip(&x) {
                    *cell += weight * one * other;
                }
            }
            for (cell, one) in found.right.iter_mut().zip(&x) {
                *cell += weight * one * row.value;
            }
        }
        found
    }

    fn without(&self, part: &Self) -> Self {
        let less = |all: &[f64], part: &[f64]| all.iter().zip(part).map(|(all, part)| all - part).collect();
        Self {
            matrix: self.matrix.iter().zip(&part.matrix).map(|(all, part)| less(all, part)).collect(),
            right: less(&self.right, &part.right),
        }
    }

    /// The values of nodes: slopes with sum 0, and the mean.
    fn solution(&self, nodes: usize, mean: f64) -> Vec<f64> {
        let mut matrix = self.matrix.clone();
        let most = (0..matrix.len()).map(|at| matrix[at][at]).fold(0.0, f64::max);
        for (at, line) in matrix.iter_mut().enumerate() {
            line[at] += RIDGE * most;
        }
        // The columns of nodes add up to 0: what is fitted along their sum is 0.
        for line in matrix.iter_mut().take(nodes) {
            line.iter_mut().take(nodes).for_each(|cell| *cell += most);
        }
        let slopes = solved(matrix, self.right.clone());
        let centre = slopes[..nodes].iter().sum::<f64>() / nodes as f64;
        slopes[..nodes].iter().map(|slope| slope - centre + mean).collect()
    }
}

/// The terms of a coalition: membership less its mean for the size, and functions of the size.
fn terms(nodes: usize, members: NodeSet) -> Vec<f64> {
    let (size, all) = (members.len() as f64, nodes as f64);
    let share = size / all;
    let own = (0..nodes).map(|node| f64::from(u8::from(members.contains(node))) - share);
    let of_size = [1.0, share, share * share, share.powi(3), 1.0 / size, 1.0 / (all - size)];
    own.chain(of_size).collect()
}

/// The solution of a symmetric positive definite system, by elimination with pivots.
fn solved(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let size = right.len();
    for column in 0..size {
        let largest = |a: &usize, b: &usize| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs());
        let pivot = (column..size).max_by(largest).unwrap_or(column);
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        let (line, side) = (matrix[column].clone(), right[column]);
        if line[column] == 0.0 {
            continue;
        }
        for (below, right) in matrix.iter_mut().zip(&mut right).skip(column + 1) {
            let factor = below[column] / line[column];
            for (cell, above) in below.iter_mut().zip(&line).skip(column) {
                *cell -= factor * above;
            }
            *right -= factor * side;
        }
    }
    let mut solution = vec![0.0; size];
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|at| matrix[row][at] * solution[at]).sum();
        let pivot = matrix[row][row];
        solution[row] = if pivot == 0.0 { 0.0 } else { (right[row] - known) / pivot };
    }
    solution
}
