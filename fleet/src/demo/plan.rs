//! Flags that have been checked against each other.

use evenhand_fairness::SamplerKind;
use evenhand_federation::strategy::StrategyKind;
use evenhand_link::{Broker, BrokerError};
use evenhand_protocol::codec::CodecKind;

use super::args::{DemoArgs, Transport};
use crate::outcome::{Member, Settings};

const NODES_MAX: usize = 100_000;
/// The noisiest meter's ζ.
const ZETA_MAX: f64 = 0.9;

/// Flags that make no sense together, with the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// A federation of one has nobody to be fair to.
    #[error("nodes = {0} is no fleet; choose --nodes from 2 to {NODES_MAX}")]
    Nodes(usize),
    /// Nothing would happen.
    #[error("rounds = 0 leaves nothing to do; choose --rounds 1 or more")]
    Rounds,
    /// More draws than nodes, or none.
    #[error("k = {k} does not fit {nodes} nodes; choose --k from 1 to {nodes}")]
    K {
        /// As asked.
        k: usize,
        /// As asked.
        nodes: usize,
    },
    /// The test has as many dimensions as watched nodes.
    #[error("watched = {watched} does not fit {nodes} nodes; choose --watched from 1 to {nodes}")]
    Watched {
        /// As asked.
        watched: usize,
        /// As asked.
        nodes: usize,
    },
    /// The test would never have enough rounds.
    #[error("window = {window} is not above watched = {watched}; raise --window or lower --watched")]
    Window {
        /// As asked.
        window: usize,
        /// As asked.
        watched: usize,
    },
    /// No p-value could reach it, or every one would.
    #[error("strictness = {0} is no probability; choose --strictness above 0 and below 1")]
    Strictness(f64),
    /// Softmax needs a positive scale.
    #[error("temperature = {0} is not positive; choose e.g. --temperature 0.02")]
    Temperature(f64),
    /// The broker's address is none.
    #[error("--broker: {0}")]
    Broker(#[from] BrokerError),
    /// Nobody would listen there.
    #[error("--broker is for MQTT; drop it or choose --transport mqtt")]
    BrokerUnused,
    /// Processes cannot share memory.
    #[error("--processes needs MQTT between them; drop it or choose --transport mqtt")]
    ProcessesUnused,
}

/// A demo that can be run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Who takes part.
    pub members: Vec<Member>,
    /// How messages travel.
    pub transport: Transport,
    /// Where, unless embedded.
    pub broker: Option<String>,
    /// Whether every node is a process of its own.
    pub processes: bool,
    /// How updates travel.
    pub codec: CodecKind,
    /// Who receives the latest model.
    pub strategy: StrategyKind,
    /// How nodes are drawn.
    pub sampler: SamplerKind,
    /// Everything else, as the outcome reports it.
    pub settings: Settings,
}

impl Plan {
    /// Fills in what was not asked for, and checks that all of it makes sense together.
    pub fn new(args: &DemoArgs) -> Result<Self, PlanError> {
        let nodes = args.nodes;
        if !(2..=NODES_MAX).contains(&nodes) {
            return Err(PlanError::Nodes(nodes));
        }
        if args.rounds == 0 {
            return Err(PlanError::Rounds);
        }
        let k = args.k.unwrap_or((2 * nodes).div_ceil(5));
        if k == 0 || k > nodes {
            return Err(PlanError::K { k, nodes });
        }
        let watched = args.watched.unwrap_or((nodes / 3).clamp(1, 10));
        if watched == 0 || watched > nodes {
            return Err(PlanError::Watched { watched, nodes });
        }
        let window = args.window.unwrap_or(watched + 5);
        if window <= watched {
            return Err(PlanError::Window { window, watched });
        }
        if !(args.strictness > 0.0 && args.strictness < 1.0) {
            return Err(PlanError::Strictness(args.strictness));
        }
        // With the cosine utility the contributions of a round sum to 1, so standings lie about 1/N. The paper's β is 0.2/N
        // (1/150 at N = 30); within the demo's few rounds that would leave the noisiest meters out altogether.
        let temperature = args.temperature.unwrap_or(0.7 / nodes as f64);
        if !(temperature > 0.0 && temperature.is_finite()) {
            return Err(PlanError::Temperature(temperature));
        }
        if args.transport == Transport::Memory && args.broker.is_some() {
            return Err(PlanError::BrokerUnused);
        }
        if let Some(url) = &args.broker {
            Broker::parse(url)?;
        }
        if args.transport == Transport::Memory && args.processes {
            return Err(PlanError::ProcessesUnused);
        }
        let settings = Settings {
            rounds: args.rounds,
            seed: args.seed,
            transport: name(args.transport),
            codec: args.codec.to_string(),
            strategy: args.strategy.name().into(),
            sampler: args.sampler.name().into(),
            temperature,
            window,
            strictness: args.strictness,
            watched,
            k,
            command: String::new(),
        };
        let mut plan = Self {
            members: members(nodes),
            transport: args.transport,
            broker: args.broker.clone(),
            processes: args.processes,
            codec: args.codec,
            strategy: args.strategy,
            sampler: args.sampler,
            settings,
        };
        plan.settings.command = plan.command();
        Ok(plan)
    }

    /// A command line that repeats this plan; without the broker's URL, which may carry a password.
    fn command(&self) -> String {
        let settings = &self.settings;
        format!(
            "evenhand-fleet demo --nodes {} --rounds {} --seed {} --transport {} --codec {} --strategy {} --sampler {} \
             --temperature {} --window {} --strictness {} --watched {} --k {}{}",
            self.members.len(),
            settings.rounds,
            settings.seed,
            settings.transport,
            settings.codec,
            settings.strategy,
            settings.sampler,
            settings.temperature,
            settings.window,
            settings.strictness,
            settings.watched,
            settings.k,
            if self.processes { " --processes" } else { "" }
        )
    }
}

/// Households whose data quality is spread evenly, the cleanest first.
fn members(nodes: usize) -> Vec<Member> {
    let width = nodes.to_string().len().max(2);
    (0..nodes)
        .map(|index| Member {
            id: format!("home-{:0width$}", index + 1),
            zeta: ZETA_MAX * index as f64 / (nodes - 1) as f64,
        })
        .collect()
}

fn name(value: impl clap::ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
