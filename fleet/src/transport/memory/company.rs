//! Who takes part in a simulation.

use evenhand_federation::{InitialModel, Rules};
use evenhand_node::core::Settings;
use evenhand_node::source::Source;
use evenhand_protocol::identity::NodeId;

/// Everybody who takes part, and how messages go between them.
pub struct Company {
    /// What the federation is run by.
    pub rules: Rules,
    /// What it learns.
    pub blueprint: InitialModel,
    /// The nodes, in the order of their names.
    pub seats: Vec<Seat>,
    /// How messages are handed over.
    pub carriage: Carriage,
}

/// One node before it runs.
pub struct Seat {
    /// Its name.
    pub id: NodeId,
    /// What its core is told.
    pub settings: Settings,
    /// Where its data come from.
    pub source: Box<dyn Source>,
    /// What it takes from there in a round.
    pub readings_a_round: usize,
    /// What it does besides.
    pub conduct: Box<dyn Conduct>,
}

/// How messages are handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carriage {
    /// In packets, as on a broker.
    Packed,
    /// As they are; no bytes are counted.
    Whole,
}

/// Whether a node is there, and whether it gives what it was asked for. Rounds are numbered from 1.
pub trait Conduct: Send {
    /// Whether it is away during a whole round.
    fn is_away(&self, _round: u32) -> bool {
        false
    }

    /// Whether it takes the model of a round and keeps its update to itself; `exploiting` counts the rounds in which
    /// nodes were drawn, 0 while exploring.
    fn is_silent(&self, _round: u32, _exploiting: u32) -> bool {
        false
    }
}

/// Always there, always gives.
pub struct Steady;

impl Conduct for Steady {}
