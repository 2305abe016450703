//! The whole federation in one process, in virtual time.
//!
//! A discrete-event simulation of the real state machines: the coordinator's [`Federation`] and the core of every node.
//! Messages are encoded, cut and decoded as on a broker, so that bytes are counted truly and what does not survive the
//! wire does not survive here either; or handed over whole, where only what is said matters. Nodes that have mail at the
//! same moment work in parallel; what they say is delivered in their order, so the same seed gives the same run.

mod company;
mod mail;
mod node;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::Instant;

use evenhand_federation::{Effect, Federation, Input, RoundEvidence, Tick};
use evenhand_models::LoadOptions;
use evenhand_node::library::Library;
use evenhand_node::source::household::Household;
use evenhand_protocol::identity::NodeId;
use evenhand_protocol::message::{Message, Phase};
use rayon::prelude::*;

pub use self::company::{Carriage, Company, Conduct, Seat, Steady};

use self::mail::{Address, Inbox, Mail, Parcel};
use self::node::SimulatedNode;
use super::{Fleet, Interrupt, OnRound, Ran};
use crate::FleetError;
use crate::outcome::{Cost, Ended};

/// From a sender to its receiver.
const LATENCY_MS: u32 = 5;
/// From an order to its answer, whatever the model: virtual time only has to pass.
const TRAINING_MS: u32 = 50;

/// Runs `fleet` to its end, or until `interrupt` is raised; `on_round` sees every round.
pub fn run(fleet: &Fleet, interrupt: &Interrupt, on_round: &mut OnRound<'_>) -> Result<Ran, FleetError> {
    let seat = |house: &super::House| {
        Ok(Seat {
            id: house.id.clone(),
            settings: fleet.node_settings(house)?,
            source: Box::new(Household::new(house.household.clone())),
            readings_a_round: fleet.readings_a_round,
            conduct: Box::new(Steady),
        })
    };
    let company = Company {
        rules: fleet.rules.clone(),
        blueprint: fleet.blueprint.clone(),
        seats: fleet.houses.iter().map(seat).collect::<Result<_, FleetError>>()?,
        carriage: Carriage::Packed,
    };
    play(company, interrupt, on_round)
}

/// The same with any company.
pub fn play(
    company: Company,
    interrupt: &Interrupt,
    on_round: &mut dyn FnMut(&RoundEvidence, f64) -> Result<(), FleetError>,
) -> Result<Ran, FleetError> {
    let mut simulation = Simulation::new(company);
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

/// The coordinator, the nodes, and what is on its way between them.
struct Simulation {
    /// Absent only within a step.
    federation: Option<Federation>,
    nodes: Vec<SimulatedNode>,
    positions: BTreeMap<NodeId, usize>,
    carriage: Carriage,
    inbox: Inbox,
    mail: BinaryHeap<Reverse<Mail>>,
    sequence: u64,
    now: Tick,
    closed: Vec<(Box<RoundEvidence>, f64)>,
    /// Rounds so far in which nodes were drawn.
    exploiting: u32,
    cost: Cost,
}

impl Simulation {
    fn new(company: Company) -> Self {
        let Company { rules, blueprint, seats, carriage } = company;
        let library = Arc::new(Library::new(None, LoadOptions::default()));
        Self {
            federation: Some(Federation::new(rules, blueprint)),
            positions: seats.iter().enumerate().map(|(i, seat)| (seat.id.clone(), i)).collect(),
            nodes: seats.into_iter().map(|seat| SimulatedNode::new(seat, carriage, &library)).collect(),
            carriage,
            inbox: Inbox::new(),
            mail: BinaryHeap::new(),
            sequence: 0,
            now: Tick::default(),
            closed: Vec::new(),
            exploiting: 0,
            cost: Cost::default(),
        }
    }

    fn federation(&self) -> &Federation {
        self.federation.as_ref().expect("every step puts it back")
    }

    fn is_over(&self) -> bool {
        matches!(self.federation().phase(), Phase::Finished | Phase::Failed)
    }

    /// Everybody comes up and connects at the same moment.
    fn switch_on(&mut self) {
        (0..self.nodes.len()).for_each(|node| self.connect(node));
    }

    fn connect(&mut self, node: usize) {
        for said in self.nodes[node].connect() {
            let parcel = self.carriage.parcel(said);
            self.post(Address::Coordinator { from: node }, LATENCY_MS, parcel);
        }
    }

    /// Before a round: who is away leaves, who is back returns.
    fn come_and_go(&mut self, round: u32) {
        for index in 0..self.nodes.len() {
            let node = &mut self.nodes[index];
            match (node.conduct.is_away(round), node.is_away) {
                (true, false) => {
                    let parcel = self.carriage.parcel(node.leave());
                    self.post(Address::Coordinator { from: index }, LATENCY_MS, parcel);
                }
                (false, true) => self.connect(index),
                _ => {}
            }
        }
    }

    /// Moves on to the next moment at which something happens; false if nothing ever will.
    fn advance(&mut self) -> bool {
        let next_mail = self.mail.peek().map(|Reverse(mail)| mail.at);
        let alarm = self.federation().alarm();
        let Some(next) = [next_mail, alarm].into_iter().flatten().min() else { return false };
        self.now = self.now.max(next);
        let mut for_nodes: BTreeMap<usize, Vec<Parcel>> = BTreeMap::new();
        while self.mail.peek().is_some_and(|Reverse(mail)| mail.at <= self.now) {
            let Some(Reverse(mail)) = self.mail.pop() else { break };
            match mail.to {
                Address::Coordinator { from } => self.hear(from, mail.parcel),
                Address::Node(node) => for_nodes.entry(node).or_default().push(mail.parcel),
            }
        }
        self.wake(for_nodes.into_iter().collect());
        if self.federation().alarm().is_some_and(|alarm| alarm <= self.now) {
            self.feed(Input::Tick);
        }
        true
    }

    /// The coordinator takes one message in.
    fn hear(&mut self, from: usize, parcel: Parcel) {
        let node = self.nodes[from].id.clone();
        self.cost.bytes_up += parcel.bytes();
        let input = match self.inbox.take_in(node.as_str(), parcel) {
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
                    let RoundEvidence { record, .. } = &*closed;
                    self.exploiting += u32::from(record.phase == Phase::Exploiting);
                    let next = record.round + 1;
                    self.closed.push((closed, took.as_secs_f64()));
                    self.come_and_go(next);
                }
                // Nothing here outlives the process.
                Effect::Persist(_) => {}
                Effect::Manifest { to: None, manifest } => {
                    let parcel = self.carriage.parcel(Message::Manifest(manifest));
                    self.cost.bytes_down += parcel.bytes();
                    for node in 0..self.nodes.len() {
                        self.post(Address::Node(node), LATENCY_MS, parcel.clone());
                    }
                }
                Effect::Manifest { to: Some(node), manifest } => {
                    self.tell(&node, Message::Manifest(manifest))
                }
                Effect::Account { node, account } => self.tell(&node, Message::Account(account)),
                Effect::Publish { node, dispatch } => self.tell(&node, Message::Order(dispatch.order())),
            }
        }
    }

    fn tell(&mut self, node: &NodeId, message: Message) {
        let parcel = self.carriage.parcel(message);
        self.cost.bytes_down += parcel.bytes();
        if let Some(&position) = self.positions.get(node) {
            self.post(Address::Node(position), LATENCY_MS, parcel);
        }
    }

    fn post(&mut self, to: Address, delay_ms: u32, parcel: Parcel) {
        self.sequence += 1;
        self.mail.push(Reverse(Mail { at: self.now.plus_ms(delay_ms), sequence: self.sequence, to, parcel }));
    }

    /// Lets nodes read their mail, all of them at once; `work` is in their order.
    fn wake(&mut self, work: Vec<(usize, Vec<Parcel>)>) {
        let exploiting = self.exploiting;
        let mut waiting = work.into_iter().peekable();
        let busy: Vec<(usize, &mut SimulatedNode, Vec<Parcel>)> = (self.nodes.iter_mut().enumerate())
            .filter_map(|(index, node)| {
                Some((index, node, waiting.next_if(|(wanted, _)| *wanted == index)?.1))
            })
            .collect();
        let said: Vec<(usize, Vec<(u32, Parcel)>)> =
            busy.into_par_iter().map(|(index, node, mail)| (index, node.read(mail, exploiting))).collect();
        for (from, said) in said {
            for (delay_ms, parcel) in said {
                self.post(Address::Coordinator { from }, delay_ms, parcel);
            }
        }
    }
}
