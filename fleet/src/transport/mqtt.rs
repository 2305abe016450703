//! A fleet over real MQTT: the production coordinator, and every node with its own connection.

use std::num::NonZero;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use evenhand_broker::{Access, BrokerOptions, COORDINATOR, EmbeddedBroker};
use evenhand_coordinator::shell::{Connection, Coordinator};
use evenhand_federation::{Command, Federation};
use evenhand_link::{Broker, Link, LinkOptions};
use evenhand_models::LoadOptions;
use evenhand_node::library::Library;
use evenhand_node::shell::{self, Workshop};
use evenhand_protocol::message::Phase;
use evenhand_protocol::topic::{self, Channel};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time;

use super::{Fleet, Interrupt, OnRound, Ran, process};
use crate::FleetError;
use crate::outcome::{Cost, Ended};

/// How long nodes may take to say goodbye.
const FAREWELL: Duration = Duration::from_secs(10);

/// Where and how nodes and coordinator meet.
#[derive(Debug, Clone, Default)]
pub struct Meeting {
    /// An external broker; an embedded one if absent.
    pub broker: Option<String>,
    /// Whether every node is a process of its own.
    pub processes: bool,
}

/// Runs `fleet` to its end, or until `interrupt` is raised; `on_round` sees every round.
pub async fn run(
    fleet: &Fleet,
    meeting: &Meeting,
    interrupt: &Interrupt,
    on_round: &mut OnRound<'_>,
) -> Result<Ran, FleetError> {
    let (url, broker, _embedded) = match &meeting.broker {
        Some(url) => (url.clone(), Broker::parse(url)?, None),
        None => {
            let access = Access::per_node(fleet.rules.federation.name.clone(), None);
            let password = access.password().unwrap_or_default().to_owned();
            let embedded =
                EmbeddedBroker::start(BrokerOptions::local(access)).await.map_err(FleetError::Listen)?;
            let broker = Broker::parse(&embedded.url())?.with_credentials(COORDINATOR, password);
            (embedded.url(), broker, Some(embedded))
        }
    };
    let federation = Federation::new(fleet.rules.clone(), fleet.blueprint.clone());
    let coordinator = Coordinator::connect(Connection::new(broker), federation).await?;
    let handle = coordinator.handle();
    let (reports_in, mut reports) = mpsc::unbounded_channel();
    let mut running = tokio::spawn(coordinator.run(reports_in));
    let mut nodes = Nodes::start(fleet, &url, meeting);

    let mut cost = Cost::default();
    let mut interrupted = false;
    let outcome = loop {
        tokio::select! {
            biased;
            Some(report) = reports.recv() => {
                cost.seconds_fairness += report.seconds;
                on_round(&report.closed, report.seconds)?;
            }
            () = interrupt.raised(), if !interrupted => {
                interrupted = true;
                // It may be over already.
                let _over = handle.command(Command::Finish).await;
            }
            failure = nodes.failure() => return Err(failure),
            ended = &mut running => break ended.map_err(|panic| FleetError::Defect(panic.to_string()))??,
        }
    };
    // Whatever was told before the end is heard.
    while let Ok(report) = reports.try_recv() {
        cost.seconds_fairness += report.seconds;
        on_round(&report.closed, report.seconds)?;
    }
    cost.seconds_training = nodes.stop().await.as_secs_f64();
    if meeting.broker.is_some() {
        tidy(fleet, &url).await;
    }
    // Seen from the nodes: what the coordinator received went up.
    cost.bytes_up = outcome.traffic.bytes_down;
    cost.bytes_down = outcome.traffic.bytes_up;
    if let Some(cause) = outcome.federation.failure() {
        return Err(FleetError::Failed(cause.clone()));
    }
    debug_assert_eq!(outcome.federation.phase(), Phase::Finished);
    let complete = outcome.federation.round() >= fleet.rules.federation.rounds && !interrupted;
    Ok(Ran { ended: if complete { Ended::Complete } else { Ended::Interrupted }, cost })
}

/// Leaves nothing behind on a broker that is not ours: no retained messages, no sessions.
async fn tidy(fleet: &Fleet, url: &str) {
    let name = &fleet.rules.federation.name;
    let mut goodbyes = JoinSet::new();
    for house in &fleet.houses {
        let config = fleet.node_config(house, url, false);
        let kept = [Channel::Status, Channel::Account].map(|channel| topic::node(name, &house.id, channel));
        let kept: Vec<String> = kept.into_iter().chain([topic::manifest(name)]).collect();
        goodbyes.spawn(async move {
            let options = LinkOptions { persistent: false, ..config.link_options()? };
            let (outbox, mut events) = Link::connect(options)?;
            events.first_connection(FAREWELL).await?;
            for topic in kept {
                outbox.clear(&topic).await?;
            }
            outbox.close(FAREWELL).await?;
            Ok::<_, FleetError>(())
        });
    }
    while let Some(said) = goodbyes.join_next().await {
        if let Ok(Err(error)) = said {
            tracing::warn!(%error, "something of this run stays on the broker");
        }
    }
}

/// All nodes: tasks of this process, or tasks that each look after a process.
struct Nodes {
    /// What nodes of this process share.
    workshop: Arc<Workshop>,
    stop: watch::Sender<bool>,
    /// Each ends with the time it trained outside the workshop.
    tasks: JoinSet<Result<Duration, FleetError>>,
}

impl Nodes {
    fn start(fleet: &Fleet, url: &str, meeting: &Meeting) -> Self {
        let seats = thread::available_parallelism().map_or(1, NonZero::get);
        let workshop = Arc::new(Workshop::new(Arc::new(Library::new(None, LoadOptions::default())), seats));
        let mut nodes = Self { workshop, stop: watch::Sender::new(false), tasks: JoinSet::new() };
        for house in &fleet.houses {
            let config = fleet.node_config(house, url, true);
            let stop = nodes.stop.subscribe();
            if meeting.processes {
                nodes.tasks.spawn(process::run(config, stop));
            } else {
                let workshop = Arc::clone(&nodes.workshop);
                nodes.tasks.spawn(async move {
                    shell::run(&config, workshop, stop).await?;
                    Ok(Duration::ZERO)
                });
            }
        }
        nodes
    }

    /// Waits until a node ends, which none does by itself unless something is wrong.
    async fn failure(&mut self) -> FleetError {
        match self.tasks.join_next().await {
            Some(Ok(Err(error))) => error,
            Some(Ok(Ok(_))) => FleetError::Defect("a node left before the end".into()),
            Some(Err(panic)) => FleetError::Defect(panic.to_string()),
            None => std::future::pending().await,
        }
    }

    /// Tells everybody to leave and waits for it; the time all of them spent in training.
    async fn stop(mut self) -> Duration {
        self.stop.send_replace(true);
        let mut training = self.workshop.training();
        let gone = async {
            while let Some(ended) = self.tasks.join_next().await {
                training += ended.ok().and_then(Result::ok).unwrap_or_default();
            }
        };
        let _late = time::timeout(FAREWELL, gone).await;
        training
    }
}
