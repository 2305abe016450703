//! Evaluation of a collected round: the contributions of its updates.

use std::collections::BTreeMap;

use evenhand_fairness::{Contributions, Measurement};
use rand_chacha::ChaCha8Rng;

use crate::collected::CollectedRound;
use crate::index::NodeIndex;

/// The contributions of a round, or the reason why there are none.
#[derive(Default)]
pub(crate) struct Evaluation {
    /// φᵢ of each arrival, if they were wanted and could be measured.
    pub(crate) contributions: Option<Contributions>,
    /// The reason why they could not be measured, though they were wanted.
    pub(crate) unmeasured: Option<String>,
}

/// Measures the contributions of a round. A stateful utility takes every round into account, `wanted` or not.
pub(crate) fn evaluate(
    round: &CollectedRound,
    wanted: bool,
    measurement: &mut Measurement,
    rng: &mut ChaCha8Rng,
) -> Evaluation {
    if round.arrivals.is_empty() || !(wanted || measurement.is_stateful()) {
        return Evaluation::default();
    }
    // A federation does not end for want of figures.
    match measurement.measure(&round.updates(), &round.weights(), rng) {
        Ok(contributions) => Evaluation { contributions: wanted.then_some(contributions), unmeasured: None },
        Err(error) => Evaluation { contributions: None, unmeasured: wanted.then(|| error.to_string()) },
    }
}

/// The contributions that a phase credits to nodes, each with its standard error where that is known.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct CreditedContributions(BTreeMap<NodeIndex, CreditedContribution>);

/// φᵢ,ₜ as it enters a standing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CreditedContribution {
    pub(crate) value: f64,
    pub(crate) standard_error: Option<f64>,
}

impl CreditedContribution {
    /// The contribution of a node that was asked and sent nothing.
    pub(crate) const NOTHING: Self = Self { value: 0.0, standard_error: Some(0.0) };
}

impl CreditedContributions {
    /// φ = 0 for each of these nodes.
    pub(crate) fn zero(nodes: impl Iterator<Item = NodeIndex>) -> Self {
        Self(nodes.map(|node| (node, CreditedContribution::NOTHING)).collect())
    }

    /// These contributions, without error.
    pub(crate) fn exact(contributions: impl Iterator<Item = (NodeIndex, f64)>) -> Self {
        let credited = |value| CreditedContribution { value, standard_error: Some(0.0) };
        Self(contributions.map(|(node, value)| (node, credited(value))).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Credits each arrival its contribution.
    pub(crate) fn credit(&mut self, round: &CollectedRound, contributions: &Contributions) {
        for (node, credited) in scaled(round, contributions, 1.0) {
            self.0.insert(node, credited);
        }
    }

    /// Credits the arrivals that are listed already their contribution, `scale` times.
    pub(crate) fn credit_listed(
        &mut self,
        round: &CollectedRound,
        contributions: &Contributions,
        scale: f64,
    ) {
        for (node, credited) in scaled(round, contributions, scale) {
            if let Some(listed) = self.0.get_mut(&node) {
                *listed = credited;
            }
        }
    }

    pub(crate) fn get(&self, node: NodeIndex) -> Option<&CreditedContribution> {
        self.0.get(&node)
    }

    pub(crate) fn contains(&self, node: NodeIndex) -> bool {
        self.0.contains_key(&node)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (NodeIndex, f64)> {
        self.0.iter().map(|(node, credited)| (*node, credited.value))
    }

    /// The values as a row of a history over so many members: 0 where nothing was measured.
    pub(crate) fn row(&self, members: usize) -> Vec<f64> {
        NodeIndex::first(members).map(|node| self.get(node).map_or(0.0, |credited| credited.value)).collect()
    }
}

fn scaled(
    round: &CollectedRound,
    contributions: &Contributions,
    scale: f64,
) -> impl Iterator<Item = (NodeIndex, CreditedContribution)> {
    let values = contributions.values.iter().zip(&contributions.standard_errors);
    round.arrivals.iter().zip(values).map(move |(arrival, (value, error))| {
        let standard_error = error.is_finite().then_some(scale.abs() * error);
        (arrival.node, CreditedContribution { value: scale * value, standard_error })
    })
}
