//! How a fleet's messages travel. Both transports run the same federation and the same nodes.

pub mod memory;
pub mod mqtt;
pub mod process;

use evenhand_federation::{InitialModel, RoundEvidence, Rules};
use evenhand_node::config::{
    BrokerSection, Config, LogLevel, LogSection, NodeSection, Pace, PaceSection, SourceSection,
};
use evenhand_node::core::Settings;
use evenhand_node::source::household::HouseholdSettings;
use evenhand_node::window::SeriesSettings;
use evenhand_protocol::identity::NodeId;

use tokio::sync::watch;

use crate::FleetError;
use crate::outcome::{Cost, Ended};

/// A fleet before it runs.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// What the federation is run by.
    pub rules: Rules,
    /// What it learns.
    pub blueprint: InitialModel,
    /// Who takes part, in the order of their names.
    pub houses: Vec<House>,
    /// How readings become samples.
    pub series: SeriesSettings,
    /// New readings of every house in every round.
    pub readings_a_round: usize,
}

/// One house: its name and what its meter says.
#[derive(Debug, Clone)]
pub struct House {
    /// The node's name.
    pub id: NodeId,
    /// The household and how well it is measured.
    pub household: HouseholdSettings,
}

/// How a fleet ran.
#[derive(Debug, Clone, Copy)]
pub struct Ran {
    /// Whether it reached its end.
    pub ended: Ended,
    /// What it cost.
    pub cost: Cost,
}

/// A round that is over, and the seconds the coordinator spent on it.
pub type OnRound<'a> = dyn FnMut(&RoundEvidence, f64) -> Result<(), FleetError> + Send + 'a;

/// The user's wish to end; clones share it.
#[derive(Debug, Clone)]
pub struct Interrupt(watch::Sender<bool>);

impl Default for Interrupt {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Interrupt {
    /// Asks whoever listens to end.
    pub fn raise(&self) {
        self.0.send_replace(true);
    }

    /// Whether the end was asked for.
    pub fn is_raised(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the end is asked for.
    pub async fn raised(&self) {
        let mut listener = self.0.subscribe();
        let _never_gone = listener.wait_for(|raised| *raised).await;
    }
}

impl Fleet {
    /// What the core of a node is told.
    fn node_settings(&self, house: &House) -> Result<Settings, FleetError> {
        Ok(self.node_config(house, "mqtt://127.0.0.1", false).settings()?)
    }

    /// The configuration file of one node, as a value.
    pub fn node_config(&self, house: &House, broker_url: &str, forecasts: bool) -> Config {
        let (id, federation) = (house.id.clone(), self.rules.federation.name.clone());
        let source = SourceSection::Household(house.household.clone());
        Config {
            node: NodeSection {
                forecasts,
                parameters_max: self.blueprint.weights.len(),
                seed: house.household.seed,
                ..NodeSection::new(id.clone(), federation.clone())
            },
            broker: BrokerSection { url: broker_url.to_owned(), ..Default::default() },
            window: self.series.clone(),
            pace: PaceSection { by: Pace::Rounds, readings_per_round: self.readings_a_round, speed: 1.0 },
            log: LogSection { level: LogLevel::Warn, ..Default::default() },
            ..Config::new(id, federation, source)
        }
    }
}
