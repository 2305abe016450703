//! The persistent state of a node.

use std::sync::Arc;

use evenhand_protocol::codec::ErrorFeedback;
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::Account;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::forecasts::Forecasts;
use super::graph::GraphState;
use super::measure::SentMeasurement;
use super::node::{HeldModel, Node, NodeSettings};
use super::optimiser::OptimiserState;
use super::orders::SentAnswer;
use super::personal::PersonalPart;
use crate::privacy::Accountant;
use crate::window::DataWindow;

/// The persistent state of a node: values only, no handles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedNode {
    session: u64,
    round: u32,
    rounds_read: u32,
    graph: Option<Digest>,
    #[serde(with = "evenhand_protocol::bytes::optional_f32")]
    weights: Option<Vec<f32>>,
    window: DataWindow,
    answered: Option<SentAnswer>,
    measured: Option<SentMeasurement>,
    optimiser: OptimiserState,
    feedback: ErrorFeedback,
    generator: ChaCha8Rng,
    account: Option<Account>,
    batches_received: u64,
    forecasts: Forecasts,
    personal: Option<PersonalPart>,
    accountant: Accountant,
}

impl SavedNode {
    /// The session during which the node was saved; the next one must be greater.
    pub fn session(&self) -> u64 {
        self.session
    }
}

impl Node {
    /// The state from which a later start continues.
    pub fn save(&self) -> SavedNode {
        SavedNode {
            session: self.session,
            round: self.round,
            rounds_read: self.rounds_read,
            graph: match &self.graph {
                GraphState::Ready { info, .. } => Some(info.digest),
                _ => None,
            },
            weights: self.held.as_ref().map(|held| held.weights.to_vec()),
            window: self.window.clone(),
            answered: self.answered.clone(),
            measured: self.measured.clone(),
            optimiser: self.optimiser.clone(),
            feedback: self.feedback.clone(),
            generator: self.generator.clone(),
            account: self.account.clone(),
            batches_received: self.batches_received,
            forecasts: self.forecasts.clone(),
            personal: self.personal.clone(),
            accountant: self.accountant.clone(),
        }
    }

    /// The saved node in a new session.
    ///
    /// Data that were cut into samples by other settings are dropped.
    pub fn restore(settings: NodeSettings, session: u64, saved: SavedNode) -> Self {
        let mut node = Node::new(settings, session);
        if saved.window.is_cut_by(&node.settings.window) {
            node.window = saved.window.restored();
            node.window.set_side_series(&node.settings.side_series);
        }
        node.round = saved.round;
        node.rounds_read = saved.rounds_read;
        node.graph = saved.graph.map_or(GraphState::Unknown, GraphState::Loading);
        node.held = saved
            .weights
            .map(|weights| HeldModel { digest: Digest::of_weights(&weights), weights: weights.into() });
        node.previous = node.held.as_ref().map(|held| Arc::clone(&held.weights));
        node.answered = saved.answered;
        node.measured = saved.measured;
        node.optimiser = saved.optimiser;
        node.feedback = saved.feedback;
        node.generator = saved.generator;
        node.account = saved.account;
        node.batches_received = saved.batches_received;
        node.forecasts = saved.forecasts;
        node.personal = saved.personal;
        node.accountant = saved.accountant;
        node
    }
}
