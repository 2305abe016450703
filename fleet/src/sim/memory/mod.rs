//! The whole federation in one process, in virtual time.
//!
//! A discrete-event simulation of the real state machines: the coordinator's [`Federation`] and the core of every node.
//! Messages are encoded, cut and decoded as on a broker, so that bytes are counted as there and what does not survive the
//! wire does not survive here either; or delivered as values, where only their content matters. Nodes that have messages
//! at the same moment work in parallel; their answers are delivered in their order, so the same seed gives the same run.

mod message;
mod node;
mod spec;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::Instant;

use evenhand_federation::{Effect, Federation, Input, RoundEvidence, Tick};
use evenhand_models::LoadOptions;
use evenhand_node::model_cache::ModelCache;
use evenhand_node::source::household::Household;
use evenhand_protocol::identity::NodeId;
use evenhand_protocol::message::{Message, Phase};
use rayon::prelude::*;

pub use self::spec::{NodeSpec, Simulation, WireMode};

use self::message::{MessageDecoder, QueuedMessage, Receiver, WireMessage};
use self::node::MemoryNode;
use super::fleet::{HouseholdFleet, HouseholdNode};
use super::{Interrupt, OnRound, RunCost, RunEnd, RunResult, SimulationError};
use crate::scenario::SeededBehaviour;

/// Delay of a message.
const LATENCY_MS: u32 = 5;
/// Delay from an order to its answer, for every model: virtual time only has to pass.
const TRAINING_MS: u32 = 50;

/// Runs `fleet` to its end, or until `interrupt` is raised; `on_round` is called for every round.
pub fn run(
    fleet: &HouseholdFleet,
    interrupt: &Interrupt,
    on_round: &mut OnRound<'_>,
) -> Result<RunResult, SimulationError> {
    let spec = |node: &HouseholdNode| {
        Ok(NodeSpec {
            attacker: None,
            id: node.id.clone(),
            settings: fleet.node_settings(node)?,
            source: Box::new(Household::new(node.household.clone())),
            readings_a_round: fleet.readings_a_round,
            behaviour: SeededBehaviour::STEADY,
        })
    };
    let simulation = Simulation {
        rules: fleet.rules.clone(),
        strategy: (fleet.strategy.create)(),
        initial_model: fleet.initial_model.clone(),
        nodes: fleet.nodes.iter().map(spec).collect::<Result<_, SimulationError>>()?,
        wire_mode: WireMode::Encoded,
    };
    simulate(simulation, interrupt, on_round)
}

/// Runs any simulation to its end, or until `interrupt` is raised; `on_round` is called for every round.
pub fn simulate(
    simulation: Simulation,
    interrupt: &Interrupt,
    on_round: &mut dyn FnMut(&RoundEvidence, f64) -> Result<(), SimulationError>,
) -> Result<RunResult, SimulationError> {
    let mut events = SimulationLoop::new(simulation);
    events.connect_all();
    while !events.is_over() && !interrupt.is_raised() {
        if !events.advance() {
            return Err(SimulationError::Stalled { round: events.federation().round() });
        }
        for (closed, seconds) in std::mem::take(&mut events.closed) {
            events.cost.seconds_fairness += seconds;
            on_round(&closed, seconds)?;
        }
    }
    match events.federation().failure() {
        Some(cause) => Err(SimulationError::Failed(cause.clone())),
        None => {
            let ended = if events.is_over() { RunEnd::Complete } else { RunEnd::Interrupted };
            let training = events.nodes.iter().map(|node| node.node.training().as_secs_f64()).sum();
            let skills = events.nodes.iter().map(MemoryNode::skill).collect();
            Ok(RunResult { ended, cost: RunCost { seconds_training: training, ..events.cost }, skills })
        }
    }
}

/// The coordinator, the nodes, and the messages between them.
struct SimulationLoop {
    /// Absent only within a step.
    federation: Federation,
    nodes: Vec<MemoryNode>,
    positions: BTreeMap<NodeId, usize>,
    wire_mode: WireMode,
    decoder: MessageDecoder,
    queue: BinaryHeap<Reverse<QueuedMessage>>,
    sequence: u64,
    now: Tick,
    closed: Vec<(Box<RoundEvidence>, f64)>,
    /// Rounds so far in which nodes were drawn.
    exploiting: u32,
    cost: RunCost,
}

impl SimulationLoop {
    fn new(simulation: Simulation) -> Self {
        let Simulation { rules, strategy, initial_model, nodes, wire_mode } = simulation;
        let models = Arc::new(ModelCache::new(None, LoadOptions::default()));
        Self {
            federation: Federation::with_strategy(rules, initial_model, strategy),
            positions: nodes.iter().enumerate().map(|(i, node)| (node.id.clone(), i)).collect(),
            nodes: nodes.into_iter().map(|node| MemoryNode::new(node, wire_mode, &models)).collect(),
            wire_mode,
            decoder: MessageDecoder::new(),
            queue: BinaryHeap::new(),
            sequence: 0,
            now: Tick::default(),
            closed: Vec::new(),
            exploiting: 0,
            cost: RunCost::default(),
        }
    }

    fn federation(&self) -> &Federation {
        &self.federation
    }

    fn is_over(&self) -> bool {
        matches!(self.federation().phase(), Phase::Finished | Phase::Failed)
    }

    /// All nodes connect at the same moment, but those that join later.
    fn connect_all(&mut self) {
        let joining = |node: &usize| !self.nodes[*node].behaviour.behaviour.joins_later();
        (0..self.nodes.len())
            .filter(joining)
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|node| self.connect(node));
    }

    fn connect(&mut self, node: usize) {
        for message in self.nodes[node].connect(self.now) {
            let message = self.wire_mode.encode(message);
            self.send(Receiver::Coordinator { from: node }, LATENCY_MS, message);
        }
    }

    /// Before a round: nodes that are away in it disconnect, those that are back connect.
    fn update_presence(&mut self, round: u32) {
        for index in 0..self.nodes.len() {
            let node = &mut self.nodes[index];
            match (node.behaviour.is_away(round), node.is_away) {
                (true, false) => {
                    let will = self.wire_mode.encode(node.leave(self.now));
                    self.send(Receiver::Coordinator { from: index }, LATENCY_MS, will);
                }
                (false, true) => self.connect(index),
                _ => {}
            }
        }
    }

    /// Moves on to the next event; false if there is none.
    fn advance(&mut self) -> bool {
        let next_message = self.queue.peek().map(|Reverse(queued)| queued.at);
        let alarm = self.federation().alarm();
        let Some(next) = [next_message, alarm].into_iter().flatten().min() else { return false };
        self.now = self.now.max(next);
        let mut for_nodes: BTreeMap<usize, Vec<WireMessage>> = BTreeMap::new();
        while self.queue.peek().is_some_and(|Reverse(queued)| queued.at <= self.now) {
            let Some(Reverse(queued)) = self.queue.pop() else { break };
            match queued.to {
                Receiver::Coordinator { from } => self.receive(from, queued.message),
                Receiver::Node(node) => for_nodes.entry(node).or_default().push(queued.message),
            }
        }
        self.deliver(for_nodes.into_iter().collect());
        if self.federation().alarm().is_some_and(|alarm| alarm <= self.now) {
            self.step(Input::Tick);
        }
        true
    }

    /// The coordinator receives one message.
    fn receive(&mut self, from: usize, message: WireMessage) {
        let node = self.nodes[from].id.clone();
        self.cost.bytes_up += message.bytes();
        let input = match self.decoder.decode(node.as_str(), message) {
            Some(Message::Status(status)) => Input::Status { node, status },
            Some(Message::Answer(answer)) => Input::Answer { node, answer },
            Some(Message::Manifest(_) | Message::Order(_) | Message::Account(_)) | None => {
                Input::Malformed { node }
            }
        };
        self.step(input);
    }

    /// One step of the federation, and its effects.
    fn step(&mut self, input: Input) {
        let began = Instant::now();
        let effects = self.federation.step(self.now, input);
        let took = began.elapsed();
        for effect in effects {
            match effect {
                Effect::Record(closed) => {
                    let record = &closed.round;
                    self.exploiting += u32::from(record.phase == Phase::Exploiting);
                    let next = record.round + 1;
                    self.closed.push((closed, took.as_secs_f64()));
                    self.update_presence(next);
                }
                // No state outlives the process.
                Effect::Persist(_) => {}
                Effect::Manifest { to: None, manifest } => {
                    let message = self.wire_mode.encode(Message::Manifest(manifest));
                    self.cost.bytes_down += message.bytes();
                    for node in 0..self.nodes.len() {
                        self.send(Receiver::Node(node), LATENCY_MS, message.clone());
                    }
                }
                Effect::Manifest { to: Some(node), manifest } => {
                    self.send_to_node(&node, Message::Manifest(manifest))
                }
                Effect::Account { node, account } => self.send_to_node(&node, Message::Account(account)),
                Effect::Publish { node, payload } => {
                    self.send_to_node(&node, Message::Order(payload.order()))
                }
            }
        }
    }

    fn send_to_node(&mut self, node: &NodeId, message: Message) {
        let message = self.wire_mode.encode(message);
        self.cost.bytes_down += message.bytes();
        if let Some(&position) = self.positions.get(node) {
            self.send(Receiver::Node(position), LATENCY_MS, message);
        }
    }

    fn send(&mut self, to: Receiver, delay_ms: u32, message: WireMessage) {
        self.sequence += 1;
        let at = self.now.plus_ms(delay_ms);
        self.queue.push(Reverse(QueuedMessage { at, sequence: self.sequence, to, message }));
    }

    /// Delivers messages to nodes, in parallel; `work` is in the order of the nodes.
    fn deliver(&mut self, work: Vec<(usize, Vec<WireMessage>)>) {
        let (now, exploiting) = (self.now, self.exploiting);
        let mut waiting = work.into_iter().peekable();
        let busy: Vec<(usize, &mut MemoryNode, Vec<WireMessage>)> = (self.nodes.iter_mut().enumerate())
            .filter_map(|(index, node)| {
                Some((index, node, waiting.next_if(|(wanted, _)| *wanted == index)?.1))
            })
            .collect();
        let sent: Vec<(usize, Vec<(u32, WireMessage)>)> = (busy.into_par_iter())
            .map(|(index, node, messages)| (index, node.receive(now, messages, exploiting)))
            .collect();
        for (from, messages) in sent {
            for (delay_ms, message) in messages {
                self.send(Receiver::Coordinator { from }, delay_ms, message);
            }
        }
    }
}
