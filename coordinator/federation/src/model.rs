//! The models of a federation: the latest one, and those of single nodes where a strategy has them.

use std::sync::Arc;

use evenhand_protocol::identity::Digest;
use serde::{Deserialize, Serialize};

use crate::index::NodeIndex;
use crate::strategy::{AggregatedModel, Strategy};
use crate::weights::Weights;

/// The model that a federation begins with.
#[derive(Debug, Clone, PartialEq)]
pub struct InitialModel {
    /// Digest of the ONNX graph and its parameter order.
    pub graph: Digest,
    /// The ONNX file.
    pub onnx: Arc<[u8]>,
    /// θ₀.
    pub weights: Arc<[f32]>,
}

/// The ONNX file that all nodes hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ModelFile {
    /// Digest of the graph and its parameter order.
    pub(crate) graph: Digest,
    /// Digest of the file's bytes.
    pub(crate) file: Digest,
    /// The file itself, which is stored apart from the state: it never changes.
    #[serde(skip)]
    pub(crate) onnx: Arc<[u8]>,
}

impl ModelFile {
    pub(crate) fn new(graph: Digest, onnx: Arc<[u8]>) -> Self {
        Self { graph, file: Digest::of(&onnx), onnx }
    }
}

/// The weights at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ModelState {
    /// θ.
    pub(crate) latest: Weights,
    /// By index: every node's model, where the strategy gives each its own; otherwise empty.
    pub(crate) node_models: Vec<Weights>,
}

impl ModelState {
    pub(crate) fn new(weights: Arc<[f32]>) -> Self {
        Self { latest: Weights::new(weights), node_models: Vec::new() }
    }

    /// Number of parameters.
    pub(crate) fn dimension(&self) -> usize {
        self.latest.values().len()
    }

    /// The model that a node is given when it is asked.
    pub(crate) fn of(&self, node: NodeIndex) -> &Weights {
        self.node_models.get(node.get()).unwrap_or(&self.latest)
    }

    /// Gives newcomers a model where nodes have models of their own: that of the node with the lowest score, because the
    /// latest would be a reward for joining again under another name. A strategy without scores rewards nobody: there a
    /// newcomer begins with θ.
    pub(crate) fn equip_newcomers(&mut self, strategy: &dyn Strategy, members: usize) {
        if self.node_models.is_empty() {
            return;
        }
        let nodes = NodeIndex::first(self.node_models.len());
        let scores = nodes.filter_map(|node| Some((strategy.node_score(node)?, node)));
        let lowest = scores.min_by(|a, b| a.0.total_cmp(&b.0));
        let model = lowest.map_or(&self.latest, |(_, node)| self.of(node)).clone();
        self.node_models.resize(members, model);
    }

    /// Moves on to θ_t.
    pub(crate) fn advance(&mut self, next: AggregatedModel) {
        let AggregatedModel { latest, node_models } = next;
        *self = Self { latest, node_models };
    }

    /// One digest of all models of single nodes; none where there are none.
    pub(crate) fn node_models_digest(&self) -> Option<Digest> {
        let digests: Vec<u8> = self.node_models.iter().flat_map(|model| model.digest().0).collect();
        (!self.node_models.is_empty()).then(|| Digest::of(&digests))
    }

    /// True if it can belong to so many members.
    pub(crate) fn is_sound(&self, members: usize) -> bool {
        let fits = self.node_models.iter().all(|model| model.values().len() == self.dimension());
        fits && self.node_models.len() <= members
    }
}
