//! The production federation in virtual time: one round at a time, answered by the caller.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenhand_federation::strategy::Strategy;
use evenhand_federation::{
    ClosedRound, Effect, Federation, FederationConfig, InitialModel, Input, OrderPayload, Rules, Tick,
};
use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::message::{Answer, Birth, Life, Status};

use super::YearError;

/// Orders by the number of their node.
type NodeOrders = Vec<(usize, OrderPayload)>;
/// Answers by the number of their node.
type NodeAnswers = Vec<(usize, Answer)>;

/// A federation with its nodes by number.
pub(super) struct VirtualFederation {
    federation: Federation,
    graph: Digest,
    names: Vec<NodeId>,
    positions: BTreeMap<NodeId, usize>,
    /// Effects of nodes that came online since the last round.
    waiting: Vec<Effect>,
    /// Rounds that closed since the caller began the last one.
    closed: Vec<ClosedRound>,
}

impl VirtualFederation {
    pub(super) fn new(
        config: FederationConfig,
        strategy: Box<dyn Strategy>,
        model: InitialModel,
        nodes: usize,
    ) -> Result<Self, YearError> {
        let name = |node: usize| NodeId::new(&format!("home-{:04}", node + 1));
        let names: Result<Vec<NodeId>, _> = (0..nodes).map(name).collect();
        let names = names.map_err(|error| YearError::Defect(error.to_string()))?;
        Ok(Self {
            graph: model.graph,
            federation: Federation::with_strategy(Rules::new(config)?, model, strategy),
            positions: names.iter().cloned().enumerate().map(|(at, name)| (name, at)).collect(),
            names,
            waiting: Vec::new(),
            closed: Vec::new(),
        })
    }

    /// The latest weights.
    pub(super) fn weights(&self) -> Arc<[f32]> {
        self.federation.weights().to_shared()
    }

    /// The rounds that closed in the last call of [`round`](Self::round).
    pub(super) fn closed(&self) -> &[ClosedRound] {
        &self.closed
    }

    /// The number of a node.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known.as_str() == name)
    }

    /// A node comes online.
    pub(super) fn join(&mut self, now: Tick, node: usize) {
        let birth = Birth { graph: Some(self.graph), weights: None, token: None, software: "year".into() };
        let status = Status { session: 1, life: Life::Born(birth) };
        let effects = self.federation.step(now, Input::Status { node: self.names[node].clone(), status });
        self.waiting.extend(effects);
    }

    /// Opens the round that is due, and closes it with the answers of `work`, which are given the orders by node.
    pub(super) fn round(
        &mut self,
        now: Tick,
        work: &mut dyn FnMut(NodeOrders) -> Result<NodeAnswers, YearError>,
    ) -> Result<(), YearError> {
        let mut effects = std::mem::take(&mut self.waiting);
        self.closed.clear();
        if self.federation.alarm().is_some_and(|alarm| alarm <= now) {
            effects.extend(self.federation.step(now, Input::Tick));
        }
        loop {
            let orders: NodeOrders = effects.drain(..).filter_map(|effect| self.order(effect)).collect();
            if orders.is_empty() {
                break;
            }
            for (node, answer) in work(orders)? {
                let node = self.names[node].clone();
                effects.extend(self.federation.step(now, Input::Answer { node, answer }));
            }
        }
        match self.federation.failure() {
            Some(cause) => Err(YearError::Failed(cause.clone())),
            None => Ok(()),
        }
    }

    fn order(&mut self, effect: Effect) -> Option<(usize, OrderPayload)> {
        let (node, payload) = match effect {
            Effect::Publish { node, payload } => (node, payload),
            Effect::Record(evidence) => {
                self.closed.push(evidence.round);
                return None;
            }
            _ => return None,
        };
        let is_work = matches!(payload, OrderPayload::Train(_) | OrderPayload::Measure(_));
        is_work.then(|| Some((*self.positions.get(&node)?, payload)))?
    }
}
