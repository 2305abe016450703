//! Real nodes in this process, each with its own link to a broker.

use std::sync::Arc;
use std::time::Duration;

use evenhand_coordinator::shell::{ConnectionOptions, Coordinator, StoppedCoordinator, TimedRound};
use evenhand_federation::{Policy, RoundEvidence};
use evenhand_fleet::sim::demo::{DemoConfig, DemoPlan};
use evenhand_fleet::sim::fleet::HouseholdFleet;
use evenhand_models::LoadOptions;
use evenhand_node::config::NodeConfig;
use evenhand_node::model_cache::ModelCache;
use evenhand_node::shell::{self, NodeError, StatusSnapshot, TrainingPool};
use evenhand_protocol::identity::FederationId;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

/// The demo's households and rules under the policy "paper", with so many nodes and rounds.
pub fn fleet(name: &str, nodes: usize, rounds: u32) -> HouseholdFleet {
    let args = DemoConfig { nodes, rounds, policy: Policy::Paper, window: Some(6), ..Default::default() };
    let federation = FederationId::new(name).unwrap();
    let (fleet, _) = DemoPlan::new(&args).unwrap().fleet(federation).unwrap();
    HouseholdFleet { forecasts: false, ..fleet }
}

/// The configuration of every node of a fleet.
pub fn configs(fleet: &HouseholdFleet, broker_url: &str) -> Vec<NodeConfig> {
    fleet.nodes.iter().map(|house| fleet.node_config(house, broker_url)).collect()
}

/// Nodes that run until they are stopped.
#[derive(Debug)]
pub struct Houses {
    stop: watch::Sender<bool>,
    nodes: JoinSet<Result<StatusSnapshot, NodeError>>,
}

impl Houses {
    /// Starts a node for every configuration.
    pub fn start(configs: Vec<NodeConfig>) -> Self {
        let models = Arc::new(ModelCache::new(None, LoadOptions::default()));
        let pool = Arc::new(TrainingPool::new(models, 2));
        let stop = watch::Sender::new(false);
        let mut nodes = JoinSet::new();
        for config in configs {
            let (pool, stop) = (Arc::clone(&pool), stop.subscribe());
            nodes.spawn(async move { shell::run(&config, pool, stop).await });
        }
        Self { stop, nodes }
    }

    /// Has all of them leave in order.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        while let Some(ended) = self.nodes.join_next().await {
            ended.unwrap().unwrap();
        }
    }
}

/// A coordinator at work.
#[derive(Debug)]
pub struct Running {
    /// Every round as it is closed.
    pub rounds: mpsc::UnboundedReceiver<Arc<RoundEvidence>>,
    /// How it ended.
    pub outcome: JoinHandle<StoppedCoordinator>,
}

/// Starts a coordinator for a fleet.
pub async fn coordinate(connection: ConnectionOptions, fleet: &HouseholdFleet) -> Running {
    let federation = fleet.federation();
    let connection = ConnectionOptions { connect_timeout: CONNECT_TIMEOUT, ..connection };
    let coordinator = Coordinator::connect(connection, federation).await.unwrap();
    let (reports, mut timed_rounds) = mpsc::unbounded_channel::<TimedRound>();
    let (sender, rounds) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(round) = timed_rounds.recv().await {
            let _unread = sender.send(round.evidence);
        }
    });
    Running { rounds, outcome: tokio::spawn(async { coordinator.run(reports).await.unwrap() }) }
}

/// Time for a first connection on a busy machine.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
