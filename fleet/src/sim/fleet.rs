//! A fleet of simulated households before it runs; both transports run the same federation and the same nodes.

use evenhand_federation::{Federation, InitialModel, Rules};
use evenhand_node::config::{BrokerLinkConfig, MemberConfig, NodeConfig, Pace, PaceConfig, SourceConfig};
use evenhand_node::core::NodeSettings;
use evenhand_node::source::household::HouseholdConfig;
use evenhand_node::window::SeriesConfig;
use evenhand_program::log::{LogConfig, LogLevel};
use evenhand_protocol::identity::NodeId;

use super::SimulationError;
use crate::baseline::RegisteredStrategy;

/// A fleet of households before it runs.
#[derive(Debug, Clone)]
pub struct HouseholdFleet {
    /// The federation's rules.
    pub rules: Rules,
    /// The strategy.
    pub strategy: RegisteredStrategy,
    /// The initial model.
    pub initial_model: InitialModel,
    /// The nodes, in the order of their names.
    pub nodes: Vec<HouseholdNode>,
    /// The window that makes samples of readings.
    pub series: SeriesConfig,
    /// New readings of every node in every round.
    pub readings_a_round: usize,
    /// Nodes forecast for their owners.
    pub forecasts: bool,
}

/// One household with a meter.
#[derive(Debug, Clone)]
pub struct HouseholdNode {
    /// The node's name.
    pub id: NodeId,
    /// The household and the noise of its meter.
    pub household: HouseholdConfig,
}

impl HouseholdFleet {
    /// The federation before its first node.
    pub fn federation(&self) -> Federation {
        Federation::with_strategy(self.rules.clone(), self.initial_model.clone(), (self.strategy.create)())
    }

    /// The settings of a node's core.
    pub(super) fn node_settings(&self, node: &HouseholdNode) -> Result<NodeSettings, SimulationError> {
        Ok(self.node_config(node, "mqtt://127.0.0.1").settings()?)
    }

    /// The configuration file of one node, as a value.
    pub fn node_config(&self, node: &HouseholdNode, broker_url: &str) -> NodeConfig {
        let (id, federation) = (node.id.clone(), self.rules.federation.name.clone());
        let source = SourceConfig::Household(node.household.clone());
        NodeConfig {
            node: MemberConfig {
                forecasts: self.forecasts,
                parameters_max: self.initial_model.weights.len(),
                seed: node.household.seed,
                ..MemberConfig::new(id.clone(), federation.clone())
            },
            broker: BrokerLinkConfig { url: broker_url.to_owned(), ..Default::default() },
            window: self.series.clone(),
            pace: PaceConfig { by: Pace::Rounds, readings_per_round: self.readings_a_round, speed: 1.0 },
            log: LogConfig { level: LogLevel::Warn, ..Default::default() },
            ..NodeConfig::new(id, federation, source)
        }
    }
}
