//! Transport over real MQTT: the production coordinator, and every node with its own connection.

use std::num::NonZero;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use evenhand_broker::{Access, BrokerOptions, COORDINATOR, EmbeddedBroker};
use evenhand_coordinator::shell::{ConnectionOptions, Coordinator};
use evenhand_federation::Command;
use evenhand_link::{Broker, Link, LinkOptions};
use evenhand_models::LoadOptions;
use evenhand_node::model_cache::ModelCache;
use evenhand_node::shell::{self, TrainingPool};
use evenhand_protocol::message::Phase;
use evenhand_protocol::topic;
use evenhand_seal::PublicKey;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time;

use super::fleet::HouseholdFleet;
use super::process::{self, NodeEnd};
use super::{Interrupt, OnRound, RunCost, RunEnd, RunResult, SimulationError};

/// Limit on the time in which nodes leave.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// The broker, and the form in which nodes run.
#[derive(Debug, Clone, Default)]
pub struct MqttRunOptions {
    /// An external broker; an embedded one if absent.
    pub broker: Option<String>,
    /// True if every node is a process of its own.
    pub processes: bool,
}

/// Runs `fleet` to its end, or until `interrupt` is raised; `on_round` is called for every round.
pub async fn run(
    fleet: &HouseholdFleet,
    options: &MqttRunOptions,
    interrupt: &Interrupt,
    on_round: &mut OnRound<'_>,
) -> Result<RunResult, SimulationError> {
    let (url, broker, _embedded) = match &options.broker {
        Some(url) => (url.clone(), Broker::parse(url)?, None),
        None => {
            let access = Access::per_node(fleet.rules.federation.name.clone(), None);
            let password = access.password().unwrap_or_default().to_owned();
            let embedded =
                EmbeddedBroker::start(BrokerOptions::local(access)).await.map_err(SimulationError::Listen)?;
            let broker = Broker::parse(&embedded.url())?.with_credentials(COORDINATOR, password);
            (embedded.url(), broker, Some(embedded))
        }
    };
    let federation = fleet.federation();
    let coordinator = Coordinator::connect(ConnectionOptions::new(broker), federation).await?;
    let handle = coordinator.handle();
    let (reports_in, mut reports) = mpsc::unbounded_channel();
    let mut running = tokio::spawn(coordinator.run(reports_in));
    let mut nodes = Nodes::start(fleet, &url, handle.public_key(), options);

    let mut cost = RunCost::default();
    let mut interrupted = false;
    let outcome = loop {
        tokio::select! {
            biased;
            Some(round) = reports.recv() => {
                cost.seconds_fairness += round.seconds;
                on_round(&round.evidence, round.seconds)?;
            }
            () = interrupt.raised(), if !interrupted => {
                interrupted = true;
                // It may be over already.
                let _over = handle.command(Command::Finish).await;
            }
            failure = nodes.failure() => return Err(failure),
            ended = &mut running => break ended.map_err(|panic| SimulationError::Defect(panic.to_string()))??,
        }
    };
    // Rounds that were reported before the end count too.
    while let Ok(round) = reports.try_recv() {
        cost.seconds_fairness += round.seconds;
        on_round(&round.evidence, round.seconds)?;
    }
    let (seconds_training, skills) = nodes.stop(fleet.nodes.len()).await;
    cost.seconds_training = seconds_training;
    if options.broker.is_some() {
        clear_broker(fleet, &url).await;
    }
    // Seen from the nodes: what the coordinator received went up.
    cost.bytes_up = outcome.traffic.bytes_down;
    cost.bytes_down = outcome.traffic.bytes_up;
    if let Some(cause) = outcome.federation.failure() {
        return Err(SimulationError::Failed(cause.clone()));
    }
    debug_assert_eq!(outcome.federation.phase(), Phase::Finished);
    let complete = outcome.federation.round() >= fleet.rules.federation.rounds && !interrupted;
    Ok(RunResult { ended: if complete { RunEnd::Complete } else { RunEnd::Interrupted }, cost, skills })
}

/// Clears retained messages and sessions from a broker that is not ours.
async fn clear_broker(fleet: &HouseholdFleet, url: &str) {
    let name = &fleet.rules.federation.name;
    let mut clearing = JoinSet::new();
    for node in &fleet.nodes {
        let config = fleet.node_config(node, url);
        let retained = [topic::manifest(name)];
        clearing.spawn(async move {
            let link = LinkOptions { persistent: false, ..config.link_options()? };
            let (publisher, mut events) = Link::connect(link)?;
            events.first_connection(SHUTDOWN_TIMEOUT).await?;
            for topic in retained {
                publisher.clear_retained(&topic).await?;
            }
            publisher.close(SHUTDOWN_TIMEOUT).await?;
            Ok::<_, SimulationError>(())
        });
    }
    while let Some(cleared) = clearing.join_next().await {
        if let Ok(Err(error)) = cleared {
            tracing::warn!(%error, "retained messages of this run stay on the broker");
        }
    }
}

/// All nodes: tasks of this process, or tasks that each supervise a process.
struct Nodes {
    /// The training pool that nodes of this process share.
    pool: Arc<TrainingPool>,
    stop: watch::Sender<bool>,
    /// Each ends with its position and its figures.
    tasks: JoinSet<Result<(usize, NodeEnd), SimulationError>>,
}

impl Nodes {
    fn start(fleet: &HouseholdFleet, url: &str, coordinator: PublicKey, options: &MqttRunOptions) -> Self {
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let pool =
            Arc::new(TrainingPool::new(Arc::new(ModelCache::new(None, LoadOptions::default())), threads));
        let mut nodes = Self { pool, stop: watch::Sender::new(false), tasks: JoinSet::new() };
        for (position, node) in fleet.nodes.iter().enumerate() {
            let mut config = fleet.node_config(node, url);
            config.node.coordinator_key = Some(coordinator);
            let stop = nodes.stop.subscribe();
            if options.processes {
                nodes.tasks.spawn(async move { Ok((position, process::run(config, stop).await?)) });
            } else {
                let pool = Arc::clone(&nodes.pool);
                nodes.tasks.spawn(async move {
                    let status = shell::run(&config, pool, stop).await?;
                    Ok((position, NodeEnd::new(Duration::ZERO, &status)))
                });
            }
        }
        nodes
    }

    /// The error of the first node that ends by itself, which is always a failure.
    async fn failure(&mut self) -> SimulationError {
        match self.tasks.join_next().await {
            Some(Ok(Err(error))) => error,
            Some(Ok(Ok(_))) => SimulationError::Defect("a node left before the end".into()),
            Some(Err(panic)) => SimulationError::Defect(panic.to_string()),
            None => std::future::pending().await,
        }
    }

    /// Has all `count` nodes leave and waits for them; returns the seconds all of them spent in training, and their skills.
    async fn stop(mut self, count: usize) -> (f64, Vec<Option<f64>>) {
        self.stop.send_replace(true);
        let mut training = self.pool.training().as_secs_f64();
        let mut skills = vec![None; count];
        let gone = async {
            while let Some(ended) = self.tasks.join_next().await {
                if let Ok(Ok((position, end))) = ended {
                    training += end.seconds_training;
                    skills[position] = end.skill;
                }
            }
        };
        let _late = time::timeout(SHUTDOWN_TIMEOUT, gone).await;
        (training, skills)
    }
}
