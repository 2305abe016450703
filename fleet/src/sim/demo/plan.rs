//! The plan of a demo: settings that have been checked against each other.

use evenhand_fairness::Estimator;
use evenhand_federation::{AdmissionConfig, FederationConfig, Policy, Rules, TrainingConfig};
use evenhand_link::{Broker, BrokerError};
use evenhand_protocol::identity::FederationId;

use super::config::{DemoConfig, Transport};
use crate::baseline::RegisteredStrategy;
use crate::names::value_name;
use crate::sim::{SimulatedNode, SimulationError, simulated_federation};

const NODES_MAX: usize = 100_000;
/// ζ of the noisiest meter.
const ZETA_MAX: f64 = 0.9;
/// Readings of a round: two days, as many as the first rows of a day-ahead forecast need.
pub(super) const READINGS_A_ROUND: usize = 96;
/// Up to so many nodes contributions are enumerated; beyond, they are estimated.
const EXACT_NODES_MAX: usize = 12;

/// FederationConfig that contradict each other, with the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DemoError {
    /// Fairness needs two nodes at least.
    #[error("nodes = {0} is no fleet; choose --nodes from 2 to {NODES_MAX}")]
    Nodes(usize),
    /// No rounds.
    #[error("rounds = 0 leaves nothing to do; choose --rounds 1 or more")]
    Rounds,
    /// More draws than nodes, or none.
    #[error("k = {k} does not fit {nodes} nodes; choose --k from 1 to {nodes}")]
    K {
        /// The given value.
        k: usize,
        /// The given value.
        nodes: usize,
    },
    /// The test has as many dimensions as tested nodes.
    #[error(
        "tested-nodes = {tested_nodes} does not fit {nodes} nodes; choose --tested-nodes from 1 to {nodes}"
    )]
    TestedNodes {
        /// The given value.
        tested_nodes: usize,
        /// The given value.
        nodes: usize,
    },
    /// The test would never have enough rounds.
    #[error(
        "window = {window} is not above tested-nodes = {tested_nodes}; raise --window or lower --tested-nodes"
    )]
    Window {
        /// The given value.
        window: usize,
        /// The given value.
        tested_nodes: usize,
    },
    /// No p-value could reach it, or every one would.
    #[error("alpha = {0} is no probability; choose --alpha above 0 and below 1")]
    Alpha(f64),
    /// Softmax needs a positive scale.
    #[error("temperature = {0} is not positive; choose e.g. --temperature 0.02")]
    Temperature(f64),
    /// The broker's address is none.
    #[error("--broker: {0}")]
    Broker(#[from] BrokerError),
    /// A broker without MQTT.
    #[error("--broker is for MQTT; drop it or choose --transport mqtt")]
    BrokerUnused,
    /// Processes without MQTT.
    #[error("--processes needs MQTT between them; drop it or choose --transport mqtt")]
    ProcessesUnused,
}

/// A demo that can be run.
#[derive(Debug, Clone)]
pub struct DemoPlan {
    /// The nodes and the quality of their data.
    pub members: Vec<SimulatedNode>,
    /// The transport of messages.
    pub transport: Transport,
    /// The URL of a broker, unless it is embedded.
    pub broker: Option<String>,
    /// True if every node is a process of its own.
    pub processes: bool,
    /// The strategy that decides which nodes receive the latest model.
    pub strategy: RegisteredStrategy,
    /// The configuration of the federation.
    federation: FederationConfig,
}

impl DemoPlan {
    /// Fills in what was not asked for, and checks that all of it makes sense together.
    pub fn new(config: &DemoConfig) -> Result<Self, DemoError> {
        let nodes = config.nodes;
        if !(2..=NODES_MAX).contains(&nodes) {
            return Err(DemoError::Nodes(nodes));
        }
        if config.rounds == 0 {
            return Err(DemoError::Rounds);
        }
        let k = config.k.unwrap_or((2 * nodes).div_ceil(5));
        if k == 0 || k > nodes {
            return Err(DemoError::K { k, nodes });
        }
        let tested_nodes = config.tested_nodes.unwrap_or((nodes / 3).clamp(1, 10));
        if tested_nodes == 0 || tested_nodes > nodes {
            return Err(DemoError::TestedNodes { tested_nodes, nodes });
        }
        let window = config.window.unwrap_or(tested_nodes + 5);
        if window <= tested_nodes {
            return Err(DemoError::Window { window, tested_nodes });
        }
        if !(config.alpha > 0.0 && config.alpha < 1.0) {
            return Err(DemoError::Alpha(config.alpha));
        }
        // With the cosine utility the contributions of a round sum to 1, so standings lie about 1/N. The paper's β is 0.2/N
        // (1/150 at N = 30); within the demo's few rounds that would leave the noisiest meters out altogether.
        let temperature = config.temperature.unwrap_or(0.7 / nodes as f64);
        if !(temperature > 0.0 && temperature.is_finite()) {
            return Err(DemoError::Temperature(temperature));
        }
        if config.transport == Transport::Memory && config.broker.is_some() {
            return Err(DemoError::BrokerUnused);
        }
        if let Some(url) = &config.broker {
            Broker::parse(url)?;
        }
        if config.transport == Transport::Memory && config.processes {
            return Err(DemoError::ProcessesUnused);
        }
        let mut federation = simulated_federation(nodes);
        federation.federation.seed = config.seed;
        federation.federation.rounds = config.rounds;
        federation.federation.policy = config.policy;
        federation.continuous.worst_wait = config.worst_wait;
        if config.policy == Policy::Continuous {
            federation.admission = AdmissionConfig::default();
        }
        federation.training = TrainingConfig { codec: config.codec, ..Default::default() };
        federation.contribution.estimator =
            if nodes <= EXACT_NODES_MAX { Estimator::Exact } else { Estimator::Permutation };
        federation.exploring.window = window as u32;
        federation.exploring.tested_nodes = tested_nodes as u32;
        federation.exploring.alpha = config.alpha;
        federation.exploiting.k = k as u32;
        federation.exploiting.temperature = temperature;
        federation.exploiting.sampler = config.sampler;
        Ok(Self {
            members: members(nodes),
            transport: config.transport,
            broker: config.broker.clone(),
            processes: config.processes,
            strategy: config.strategy,
            federation,
        })
    }

    /// The rules of the federation `name`.
    pub(super) fn rules(&self, name: FederationId) -> Result<Rules, SimulationError> {
        let mut federation = self.federation.clone();
        federation.federation.name = name;
        Ok(Rules::new(federation)?)
    }

    /// Seed of everything random.
    pub(super) fn seed(&self) -> u64 {
        self.federation.federation.seed
    }

    /// A command line that repeats this plan; without the broker's URL, which may carry a password.
    pub fn command(&self) -> String {
        let FederationConfig { federation, training, continuous, exploring, exploiting, .. } =
            &self.federation;
        format!(
            "evenhand-fleet demo --nodes {} --rounds {} --policy {} --worst-wait {} --seed {} --transport {} --codec {} --strategy {} --sampler {} \
             --temperature {} --window {} --alpha {} --tested-nodes {} --k {}{}",
            self.members.len(),
            federation.rounds,
            federation.policy,
            continuous.worst_wait,
            federation.seed,
            value_name(&self.transport),
            training.codec,
            self.strategy.name,
            exploiting.sampler,
            exploiting.temperature,
            exploring.window,
            exploring.alpha,
            exploring.tested_nodes,
            exploiting.k,
            if self.processes { " --processes" } else { "" }
        )
    }
}

/// Households whose data quality is spread evenly, the cleanest first.
fn members(nodes: usize) -> Vec<SimulatedNode> {
    let width = nodes.to_string().len().max(2);
    (0..nodes)
        .map(|index| SimulatedNode {
            id: format!("home-{:0width$}", index + 1),
            zeta: ZETA_MAX * index as f64 / (nodes - 1) as f64,
        })
        .collect()
}
