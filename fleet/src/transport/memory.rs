//! The whole federation in one process, in virtual time.
//!
//! A discrete-event simulation of the real state machines: the coordinator's [`Federation`] and the core of every node.
//! Messages are encoded, cut and decoded as on a broker, so that bytes are counted truly and what does not survive the
//! wire does not survive here either. Nodes that have mail at the same moment work in parallel; what they say is
//! delivered in their order, so the same seed gives the same run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::Instant;

use evenhand_coordinator::federation::{Closed, Effect, Federation, Input, Tick};
use evenhand_models::LoadOptions;
use evenhand_node::inline::Inline;
use evenhand_node::library::Library;
use evenhand_node::source::household::Household;
use evenhand_protocol::chunk::{self, Assembler, Transfer};
use evenhand_protocol::envelope;
use evenhand_protocol::identity::NodeId;
use evenhand_protocol::limits::Limits;
use evenhand_protocol::message::{Message, Phase};
use rayon::prelude::*;

use super::{Fleet, House, Interrupt, OnRound, Ran};
use crate::FleetError;
use crate::outcome::{Cost, Ended};

/// From a sender to its receiver.
const LATENCY_MS: u32 = 5;
/// From an order to its answer, whatever the model: virtual time only has to pass.
const TRAINING_MS: u32 = 50;

/// Runs `fleet` to its end, or until `interrupt` is raised; `on_round` sees every round.
pub fn run(fleet: &Fleet, interrupt: &Interrupt, on_round: &mut OnRound<'_>) -> Result<Ran, FleetError> {
    let mut simulation = Simulation::new(fleet)?;
    simulation.switch_on();
    while !simulation.is_over() && !interrupt.is_raised() {
        if !simulation.advance() {
            return Err(FleetError::Stalled { round: simulation.federation().round() });
        }
        for (closed, seconds) in std::mem::take(&mut simulation.closed) {
            simulation.cost.seconds_fairness += seconds;
            on_round(&closed, seconds)?;
        }
    }
    match simulation.federation().failure() {
        Some(cause) => Err(FleetError::Failed(cause.clone())),
        None => {
            let ended = if simulation.is_over() { Ended::Complete } else { Ended::Interrupted };
            let training = simulation.nodes.iter().map(|node| node.node.training().as_secs_f64()).sum();
            Ok(Ran { ended, cost: Cost { seconds_training: training, ..simulation.cost } })
        }
    }
}

/// A message in the packets that a broker would carry.
type Packets = Arc<[Vec<u8>]>;

/// A message on its way.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Mail {
    at: Tick,
    /// Breaks ties, so that equal runs stay equal.
    sequence: u64,
    to: Address,
    packets: Packets,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Address {
    Coordinator { from: usize },
    Node(usize),
}

/// The coordinator, the nodes, and what is on its way between them.
struct Simulation {
    /// Absent only within a step.
    federation: Option<Federation>,
    nodes: Vec<SimulatedNode>,
    positions: BTreeMap<NodeId, usize>,
    inbox: Inbox,
    mail: BinaryHeap<Reverse<Mail>>,
    sequence: u64,
    now: Tick,
    closed: Vec<(Box<Closed>, f64)>,
    cost: Cost,
}

impl Simulation {
    fn new(fleet: &Fleet) -> Result<Self, FleetError> {
        let library = Arc::new(Library::new(None, LoadOptions::default()));
        Ok(Self {
            federation: Some(Federation::new(fleet.rules.clone(), fleet.blueprint.clone())),
            nodes: (fleet.houses.iter())
                .map(|house| SimulatedNode::new(fleet, house, &library))
                .collect::<Result<_, _>>()?,
            positions: fleet.houses.iter().enumerate().map(|(i, house)| (house.id.clone(), i)).collect(),
            inbox: Inbox::new(),
            mail: BinaryHeap::new(),
            sequence: 0,
            now: Tick::default(),
            closed: Vec::new(),
            cost: Cost::default(),
        })
    }

    fn federation(&self) -> &Federation {
        self.federation.as_ref().expect("every step puts it back")
    }

    fn is_over(&self) -> bool {
        matches!(self.federation().phase(), Phase::Finished | Phase::Failed)
    }

    /// Everybody comes up and connects at the same moment.
    fn switch_on(&mut self) {
        let births: Vec<_> = self.nodes.iter_mut().map(|node| node.node.connect()).collect();
        for (from, said) in births.into_iter().enumerate() {
            for birth in said {
                self.post(Address::Coordinator { from }, LATENCY_MS, packed(&birth.message));
            }
        }
    }

    /// Moves on to the next moment at which something happens; false if nothing ever will.
    fn advance(&mut self) -> bool {
        let next_mail = self.mail.peek().map(|Reverse(mail)| mail.at);
        let alarm = self.federation().alarm();
        let Some(next) = [next_mail, alarm].into_iter().flatten().min() else { return false };
        self.now = self.now.max(next);
        let mut for_nodes: BTreeMap<usize, Vec<Packets>> = BTreeMap::new();
        while self.mail.peek().is_some_and(|Reverse(mail)| mail.at <= self.now) {
            let Some(Reverse(mail)) = self.mail.pop() else { break };
            match mail.to {
                Address::Coordinator { from } => self.hear(from, &mail.packets),
                Address::Node(node) => for_nodes.entry(node).or_default().push(mail.packets),
            }
        }
        self.wake(for_nodes.into_iter().collect());
        if self.federation().alarm().is_some_and(|alarm| alarm <= self.now) {
            self.feed(Input::Tick);
        }
        true
    }

    /// The coordinator takes one message in.
    fn hear(&mut self, from: usize, packets: &[Vec<u8>]) {
        let node = self.nodes[from].id.clone();
        self.cost.bytes_up += bytes_of(packets);
        let input = match self.inbox.take_in(node.as_str(), packets) {
            Some(Message::Status(status)) => Input::Status { node, status },
            Some(Message::Answer(answer)) => Input::Answer { node, answer },
            Some(Message::Manifest(_) | Message::Order(_) | Message::Account(_)) | None => {
                Input::Malformed { node }
            }
        };
        self.feed(input);
    }

    /// One step of the federation, and what it wants done.
    fn feed(&mut self, input: Input) {
        let federation = self.federation.take().expect("every step puts it back");
        let began = Instant::now();
        let (federation, effects) = federation.step(self.now, input);
        let took = began.elapsed();
        self.federation = Some(federation);
        for effect in effects {
            match effect {
                Effect::Record(closed) => {
                    self.closed.push((closed, took.as_secs_f64()));
                }
                // Nothing here outlives the process.
                Effect::Persist(_) => {}
                Effect::Manifest { to: None, manifest } => {
                    let packets = packed(&Message::Manifest(manifest));
                    self.cost.bytes_down += bytes_of(&packets);
                    for node in 0..self.nodes.len() {
                        self.post(Address::Node(node), LATENCY_MS, Arc::clone(&packets));
                    }
                }
                Effect::Manifest { to: Some(node), manifest } => {
                    self.tell(&node, &Message::Manifest(manifest))
                }
                Effect::Account { node, account } => self.tell(&node, &Message::Account(account)),
                Effect::Publish { node, dispatch } => self.tell(&node, &Message::Order(dispatch.order())),
            }
        }
    }

    fn tell(&mut self, node: &NodeId, message: &Message) {
        let packets = packed(message);
        self.cost.bytes_down += bytes_of(&packets);
        if let Some(&position) = self.positions.get(node) {
            self.post(Address::Node(position), LATENCY_MS, packets);
        }
    }

    fn post(&mut self, to: Address, delay_ms: u32, packets: Packets) {
        self.sequence += 1;
        self.mail.push(Reverse(Mail {
            at: self.now.plus_ms(delay_ms),
            sequence: self.sequence,
            to,
            packets,
        }));
    }

    /// Lets nodes read their mail, all of them at once; `work` is in their order.
    fn wake(&mut self, work: Vec<(usize, Vec<Packets>)>) {
        let mut waiting = work.into_iter().peekable();
        let busy: Vec<(usize, &mut SimulatedNode, Vec<Packets>)> = (self.nodes.iter_mut().enumerate())
            .filter_map(|(index, node)| {
                Some((index, node, waiting.next_if(|(wanted, _)| *wanted == index)?.1))
            })
            .collect();
        let said: Vec<(usize, Vec<(u32, Packets)>)> =
            busy.into_par_iter().map(|(index, node, mail)| (index, node.read(&mail))).collect();
        for (from, said) in said {
            for (delay_ms, packets) in said {
                self.post(Address::Coordinator { from }, delay_ms, packets);
            }
        }
    }
}

/// A node and its mailbox.
struct SimulatedNode {
    id: NodeId,
    node: Inline<Household>,
    inbox: Inbox,
}

impl SimulatedNode {
    fn new(fleet: &Fleet, house: &House, library: &Arc<Library>) -> Result<Self, FleetError> {
        let household = Household::new(house.household.clone());
        let settings = fleet.node_settings(house)?;
        Ok(Self {
            id: house.id.clone(),
            node: Inline::new(settings, 1, household, fleet.readings_a_round, Arc::clone(library)),
            inbox: Inbox::new(),
        })
    }

    /// What it says to its mail, and after how long.
    fn read(&mut self, mail: &[Packets]) -> Vec<(u32, Packets)> {
        let mut said = Vec::new();
        for message in mail.iter().filter_map(|packets| self.inbox.take_in("coordinator", packets)) {
            let before = self.node.training();
            let answers = self.node.hear(message);
            let delay_ms = if self.node.training() > before { LATENCY_MS + TRAINING_MS } else { LATENCY_MS };
            said.extend(answers.iter().map(|answer| (delay_ms, packed(&answer.message))));
        }
        said
    }
}

/// Puts packets together again.
struct Inbox {
    assembler: Assembler,
    limits: Limits,
}

impl Inbox {
    fn new() -> Self {
        let limits = Limits::default();
        Self { assembler: Assembler::new(limits, chunk::PATIENCE_MS), limits }
    }

    /// The message in `packets`, which arrive together.
    fn take_in(&mut self, sender: &str, packets: &[Vec<u8>]) -> Option<Message> {
        packets.iter().find_map(|packet| {
            let bytes = self.assembler.accept(sender, packet, 0).ok()??;
            envelope::decode(&bytes, &self.limits).ok()
        })
    }
}

fn packed(message: &Message) -> Packets {
    let transfer = Transfer::new(envelope::encode(message), chunk::PAYLOAD_BYTES_MAX);
    transfer.expect("a model that fits memory fits a transfer").chunks().collect()
}

fn bytes_of(packets: &[Vec<u8>]) -> u64 {
    packets.iter().map(|packet| packet.len() as u64).sum()
}
