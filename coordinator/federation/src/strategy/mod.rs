//! Strategies: who takes part in a round, and how updates become the next model.
//!
//! [`Evenhand`] is the product. Any other type that implements [`Strategy`], in whatever crate, runs in the same federation:
//! [`Federation::with_strategy`](crate::Federation::with_strategy). A strategy's memory is part of the saved state: a
//! coordinator that is killed goes on with it.

mod aggregation;
mod evenhand;

use std::fmt::Debug;
use std::ops::{Deref, DerefMut};

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::aggregation::{AggregatedModel, AggregationInput};
pub use self::evenhand::Evenhand;
use crate::index::NodeIndex;

/// The nodes that take part in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Participation {
    /// Everybody until the standings are settled; from then on k nodes, drawn by standing.
    ExploreThenDraw,
    /// k nodes from the first round on, by the strategy's own probabilities.
    Draw,
    /// As `Draw`; contributions are measured in every round, for [`Strategy::aggregate`].
    DrawMeasured,
    /// Everybody in every round.
    Everybody,
}

impl Participation {
    /// True if contributions are measured in any round.
    pub fn measures(self) -> bool {
        matches!(self, Self::ExploreThenDraw | Self::DrawMeasured)
    }
}

/// The decisions in which strategies differ.
pub trait Strategy: Debug + Send + Sync {
    /// Its name in saved states.
    fn name(&self) -> &'static str;

    /// The nodes that take part in a round.
    fn participation(&self) -> Participation;

    /// ϱ of these nodes, from their standings ψ and the temperature β; uniform unless overridden.
    fn sampling_probabilities(&self, nodes: &[NodeIndex], _standings: &[f64], _temperature: f64) -> Vec<f64> {
        vec![1.0 / nodes.len() as f64; nodes.len()]
    }

    /// The strategy's own score of a node, where that is not the federation's ψ: the lower, the less the node receives.
    fn node_score(&self, _node: NodeIndex) -> Option<f64> {
        None
    }

    /// The models after a round, of which at least one update arrived.
    fn aggregate(&mut self, round: &AggregationInput<'_>) -> AggregatedModel;

    /// The memory between rounds, as bytes; see [`encode_memory`].
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Takes over a saved memory; see [`decode_memory`].
    fn restore(&mut self, memory: &[u8]) -> Result<(), MemoryError> {
        if memory.is_empty() { Ok(()) } else { Err(MemoryError { strategy: self.name() }) }
    }

    /// A copy behind a new box.
    fn clone_box(&self) -> Box<dyn Strategy>;
}

/// A saved memory that is not this strategy's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the saved memory is not that of the strategy {strategy}")]
pub struct MemoryError {
    /// The strategy that was to read it.
    pub strategy: &'static str,
}

/// A memory as bytes, for [`Strategy::save`].
pub fn encode_memory<T: Serialize>(memory: &T) -> Vec<u8> {
    postcard::to_allocvec(memory).expect("plain data always encodes")
}

/// A memory from bytes, for [`Strategy::restore`].
pub fn decode_memory<T: DeserializeOwned>(strategy: &'static str, memory: &[u8]) -> Result<T, MemoryError> {
    postcard::from_bytes(memory).map_err(|_| MemoryError { strategy })
}

/// A strategy of any type. Two are equal if they have the same name and the same memory.
#[derive(Debug)]
pub(crate) struct DynStrategy(Box<dyn Strategy>);

impl DynStrategy {
    pub(crate) fn new(strategy: Box<dyn Strategy>) -> Self {
        Self(strategy)
    }
}

impl Deref for DynStrategy {
    type Target = dyn Strategy;
    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl DerefMut for DynStrategy {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.0
    }
}

impl Clone for DynStrategy {
    fn clone(&self) -> Self {
        Self(self.0.clone_box())
    }
}

impl PartialEq for DynStrategy {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.save() == other.save()
    }
}
