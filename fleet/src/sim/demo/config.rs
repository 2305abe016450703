//! Settings of the demo.

use clap::ValueEnum;
use evenhand_fairness::SamplerKind;
use evenhand_federation::Policy;
use evenhand_protocol::codec::CodecKind;

use crate::baseline::{RegisteredStrategy, STRATEGIES};

/// The demo as it is asked for; what is `None` follows from the number of nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct DemoConfig {
    /// Nodes; their data quality ζ is spread from 0 (clean) to 0.9.
    pub nodes: usize,
    /// Rounds.
    pub rounds: u32,
    /// Policy by which contributions are measured and rewarded.
    pub policy: Policy,
    /// The longest mean wait that is promised, in rounds; 0 for three times that of equal odds.
    pub worst_wait: f64,
    /// Seed of everything random.
    pub seed: u64,
    /// The transport of messages.
    pub transport: Transport,
    /// The URL of an MQTT broker instead of the embedded one.
    pub broker: Option<String>,
    /// The codec of updates.
    pub codec: CodecKind,
    /// The strategy that decides which nodes receive the latest model.
    pub strategy: RegisteredStrategy,
    /// The sampler that draws nodes by their probabilities.
    pub sampler: SamplerKind,
    /// β of the paper's policy; 0.7 / nodes if absent.
    pub temperature: Option<f64>,
    /// τ; tested nodes + 5 if absent.
    pub window: Option<usize>,
    /// α.
    pub alpha: f64,
    /// M; a third of the nodes, at most 10, if absent.
    pub tested_nodes: Option<usize>,
    /// Draws a round; 40 % of the nodes if absent.
    pub k: Option<usize>,
    /// True if every node is a process of its own.
    pub processes: bool,
}

impl Default for DemoConfig {
    fn default() -> Self {
        Self {
            nodes: 12,
            rounds: 60,
            policy: Policy::Continuous,
            worst_wait: 0.0,
            seed: 1,
            transport: Transport::Mqtt,
            broker: None,
            codec: CodecKind::F32,
            strategy: STRATEGIES[0],
            sampler: SamplerKind::Credit,
            temperature: None,
            window: None,
            alpha: 0.7,
            tested_nodes: None,
            k: None,
            processes: false,
        }
    }
}

/// The transport of a run's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// Real MQTT: an embedded broker, or the one that --broker names
    Mqtt,
    /// In this process, in virtual time; the same seed gives the same JSON
    Memory,
}
