//! The personal part of the model: trained on the node's own readings once a day, never sent.

use std::sync::Arc;

use evenhand_protocol::identity::Digest;
use serde::{Deserialize, Serialize};

use super::effect::{NodeEffect, PersonalJob};
use super::graph::GraphState;
use super::node::Node;
use crate::window::DataWindow;

/// The personal part of one model. It stays when the shared weights change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PersonalPart {
    graph: Digest,
    /// The household's local day on which it was trained last, or is being trained.
    day: i64,
    /// None until the first training has ended.
    #[serde(with = "evenhand_protocol::bytes::optional_f32")]
    weights: Option<Vec<f32>>,
}

impl Node {
    /// The personal weights of the model with this graph, once they were trained.
    pub(super) fn personal_weights(&self, graph: Digest) -> Option<&[f32]> {
        self.personal.as_ref().filter(|personal| personal.graph == graph)?.weights.as_deref()
    }

    /// Requests a training of the personal part with the first data of a day, where the held model has one; false if it does
    /// not.
    pub(super) fn train_personal(&mut self, effects: &mut Vec<NodeEffect>) -> bool {
        let (GraphState::Ready { info, .. }, Some(held), DataWindow::DayAhead(window)) =
            (&self.graph, &self.held, &self.window)
        else {
            return false;
        };
        let Some(day) = window.local_day() else { return false };
        let known = self.personal.as_ref().filter(|personal| personal.graph == info.digest);
        if !self.settings.forecasts
            || self.training_personal
            || info.personal.is_empty()
            || known.is_some_and(|personal| personal.day == day)
        {
            return false;
        }
        let Some(batch) = window.personal_batch(&mut self.generator) else { return false };
        let weights = known.and_then(|personal| personal.weights.clone());
        effects.push(NodeEffect::TrainPersonal(Box::new(PersonalJob {
            graph: info.digest,
            weights: Arc::clone(&held.weights),
            personal: weights.clone().unwrap_or_else(|| info.personal.to_vec()),
            batch,
        })));
        self.personal = Some(PersonalPart { graph: info.digest, day, weights });
        self.training_personal = true;
        true
    }

    /// Adopts the personal weights of a training that succeeded, and forecasts.
    pub(super) fn personal_trained(
        &mut self,
        graph: Digest,
        trained: Option<Vec<f32>>,
        effects: &mut Vec<NodeEffect>,
    ) {
        self.training_personal = false;
        let usable = |weights: &Vec<f32>| weights.iter().all(|weight| weight.is_finite());
        if let Some(personal) = self.personal.as_mut().filter(|personal| personal.graph == graph)
            && let Some(weights) = trained.filter(usable)
        {
            personal.weights = Some(weights);
            self.predicted = None;
            effects.push(NodeEffect::Persist);
        }
        self.predict(effects);
    }
}
