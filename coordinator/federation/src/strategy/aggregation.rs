//! The input and the result of an aggregation.

use std::sync::Arc;

use crate::index::NodeIndex;
use crate::weights::Weights;

/// A round's updates, one entry for each that arrived unless said otherwise.
#[derive(Debug, Clone, Copy)]
pub struct AggregationInput<'a> {
    /// θ_{t−1}.
    pub latest: &'a Weights,
    /// By index: the model of each node that has one of its own.
    pub node_models: &'a [Weights],
    /// Number of nodes that are enrolled, or were.
    pub members: usize,
    /// The nodes that the operator removed, ascending.
    pub removed: &'a [NodeIndex],
    /// The nodes that were asked, ascending.
    pub asked: &'a [NodeIndex],
    /// The nodes whose updates arrived, ascending.
    pub nodes: &'a [NodeIndex],
    /// Δθᵢ.
    pub updates: &'a [&'a [f32]],
    /// pᵢ.
    pub weights: &'a [f64],
    /// Fᵢ: the loss of the model that the node was given, on its batch.
    pub losses: &'a [f64],
    /// φᵢ, if the strategy has them measured.
    pub contributions: Option<&'a [f64]>,
    /// η.
    pub learning_rate: f64,
    /// The share of all nodes whose updates arrived, where a missing update counts as zero; otherwise 1.
    pub arrived_share: f64,
}

impl<'a> AggregationInput<'a> {
    /// The model that a node was given for this round.
    pub fn model(&self, node: NodeIndex) -> &'a Weights {
        self.node_models.get(node.get()).unwrap_or(self.latest)
    }

    /// True if a node still belongs to the federation.
    pub fn is_enrolled(&self, node: NodeIndex) -> bool {
        self.removed.binary_search(&node).is_err()
    }

    /// θ_{t−1} − η Σ pᵢΔθᵢ.
    pub fn averaged(&self) -> Weights {
        self.latest.stepped(self.updates, self.weights, self.learning_rate * self.arrived_share)
    }

    /// Every node's model after its own step: θᵢ − ηΔθᵢ where an update arrived, θᵢ elsewhere. Absent nodes shorten
    /// nobody else's step.
    pub fn local_steps(&self) -> Vec<Weights> {
        let mut models: Vec<Weights> =
            NodeIndex::first(self.members).map(|node| self.model(node).clone()).collect();
        for (node, update) in self.nodes.iter().zip(self.updates) {
            let model = &mut models[node.get()];
            *model = model.stepped(&[update], &[1.0], self.learning_rate);
        }
        models
    }
}

/// The models after a round.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregatedModel {
    /// θ_t.
    pub latest: Weights,
    /// By index: every node's own model; empty where all are given θ.
    pub node_models: Vec<Weights>,
}

impl AggregatedModel {
    /// One model for all.
    pub fn common(latest: Weights) -> Self {
        Self { latest, node_models: Vec::new() }
    }
}

impl FromIterator<f64> for Weights {
    /// Weights from values in f64, rounded.
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self::new(values.into_iter().map(|value| value as f32).collect::<Arc<[f32]>>())
    }
}
