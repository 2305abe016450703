//! What a node must not forget when its program ends.

use std::sync::Arc;

use evenhand_protocol::codec::ErrorFeedback;
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::Account;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::forecasts::Forecasts;
use super::graph::Graph;
use super::node::{Held, Node, Settings};
use super::optimiser::Optimiser;
use super::work::Answered;
use crate::window::{Window, WindowSettings};

/// A node at rest: values only, no handles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    session: u64,
    round: u32,
    rounds_read: u32,
    graph: Option<Digest>,
    #[serde(with = "evenhand_protocol::bytes::optional_f32")]
    weights: Option<Vec<f32>>,
    window: Window,
    answered: Option<Answered>,
    optimiser: Optimiser,
    feedback: ErrorFeedback,
    generator: ChaCha8Rng,
    account: Option<Account>,
    intakes: u64,
    forecasts: Forecasts,
}

impl Saved {
    /// The session during which the node was saved; the next one must be greater.
    pub fn session(&self) -> u64 {
        self.session
    }
}

impl Node {
    /// What a later start needs to go on from here.
    pub fn save(&self) -> Saved {
        Saved {
            session: self.session,
            round: self.round,
            rounds_read: self.rounds_read,
            graph: match &self.graph {
                Graph::Held { card, .. } => Some(card.digest),
                _ => None,
            },
            weights: self.held.as_ref().map(|held| held.weights.to_vec()),
            window: self.window.clone(),
            answered: self.answered.clone(),
            optimiser: self.optimiser.clone(),
            feedback: self.feedback.clone(),
            generator: self.generator.clone(),
            account: self.account.clone(),
            intakes: self.intakes,
            forecasts: self.forecasts.clone(),
        }
    }

    /// The node that was saved, in a new session.
    ///
    /// Data that were cut by other settings than today's are left behind.
    pub fn restore(settings: Settings, session: u64, saved: Saved) -> Self {
        let mut node = Node::new(settings, session);
        let cut_alike = match (&saved.window, &node.settings.window) {
            (Window::Series(series), WindowSettings::Series(settings)) => series.settings() == settings,
            (Window::Rows(rows), WindowSettings::Rows(settings)) => rows.settings() == settings,
            _ => false,
        };
        if cut_alike {
            node.window = saved.window.restored();
        }
        node.round = saved.round;
        node.rounds_read = saved.rounds_read;
        node.graph = saved.graph.map_or(Graph::Unknown, Graph::Sought);
        node.held = saved
            .weights
            .map(|weights| Held { digest: Digest::of_weights(&weights), weights: weights.into() });
        node.own = node.held.as_ref().map(|held| Arc::clone(&held.weights));
        node.answered = saved.answered;
        node.optimiser = saved.optimiser;
        node.feedback = saved.feedback;
        node.generator = saved.generator;
        node.account = saved.account;
        node.intakes = saved.intakes;
        node.forecasts = saved.forecasts;
        node
    }
}
