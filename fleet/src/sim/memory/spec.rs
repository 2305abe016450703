//! The specification of a simulation.

use evenhand_federation::strategy::Strategy;
use evenhand_federation::{InitialModel, Rules};
use evenhand_node::core::NodeSettings;
use evenhand_node::source::Source;
use evenhand_protocol::identity::NodeId;

use crate::scenario::{Attacker, SeededBehaviour};

/// A federation and its nodes before they run.
pub struct Simulation {
    /// The federation's rules.
    pub rules: Rules,
    /// The strategy before its first round.
    pub strategy: Box<dyn Strategy>,
    /// The initial model.
    pub initial_model: InitialModel,
    /// The nodes, in the order of their names.
    pub nodes: Vec<NodeSpec>,
    /// The form in which messages are delivered.
    pub wire_mode: WireMode,
}

/// One node before it runs.
pub struct NodeSpec {
    /// Its name.
    pub id: NodeId,
    /// The settings of its core.
    pub settings: NodeSettings,
    /// The source of its data.
    pub source: Box<dyn Source>,
    /// Readings that it takes from the source in a round.
    pub readings_a_round: usize,
    /// Its behaviour.
    pub behaviour: SeededBehaviour,
    /// Its attack, if it is no honest node.
    pub attacker: Option<Attacker>,
}

/// The form in which messages are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireMode {
    /// Encoded and in packets, as on a broker.
    Encoded,
    /// As values; no bytes are counted.
    Direct,
}
