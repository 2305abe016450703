//! The event loop of one node.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use evenhand_link::{
    BackgroundPublisher, CertificateFacts, Events, Link, LinkError, LinkEvent, LinkOptions, OutboundMessage,
    Publisher,
};
use evenhand_program::atomic;
use evenhand_program::notify::ServiceNotifier;
use evenhand_program::private;
use evenhand_protocol::identity::{Digest, FederationId, NodeId};
use evenhand_protocol::message::Message;
use evenhand_protocol::tick::Tick;
use evenhand_protocol::topic::{self, Channel};
use evenhand_seal::PublicKey;
use tokio::task::{self, JoinError, JoinSet};
use tokio::time;

use super::answer_watch::AnswerWatch;
use super::disk::{Disk, Folder};
use super::history_file::{self, HistoryReadings};
use super::identity;
use super::log_dedup::LogDedup;
use super::outbound_queue::NodeOutboundQueue;
use super::side_sources::SideSources;
use super::source_driver::SourceDriver;
use super::state_store::{self, StateStore};
use super::status::{StatusContext, StatusSnapshot};
use super::status_sinks::StatusSinks;
use super::{NodeError, Stop, TrainingPool};
use crate::config::NodeConfig;
use crate::core::{Node, NodeEffect, NodeInput, Prediction};
use crate::privacy::NoiseSeed;
use crate::reading::InputBatch;
use crate::source::now_ms;

/// Time for the last messages to be acknowledged.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Interval of the status file: memory cards wear out.
const STATUS_INTERVAL: Duration = Duration::from_secs(30);

/// One running node.
pub(super) struct Runner {
    id: NodeId,
    federation: FederationId,
    began: Instant,
    node: Node,
    pool: Arc<TrainingPool>,
    state: StateStore,
    disk: Option<Arc<dyn Disk>>,
    /// The coordinator's key in the configuration.
    coordinator_key: Option<PublicKey>,
    parameters_max: usize,
    /// Parameters of the model that the coordinator announced.
    announced_parameters: usize,
    source: SourceDriver,
    side: SideSources,
    publisher: Publisher,
    events: Events,
    outbound: BackgroundPublisher<NodeOutboundQueue>,
    jobs: JoinSet<JobResult>,
    graphs: GraphJobs,
    /// The trainings that run, and their signals to end.
    cancels: BTreeMap<u64, Arc<AtomicBool>>,
    /// A forecast is being made.
    forecasting: bool,
    /// The newest forecast requested while another is being made.
    next_forecast: Option<Box<Prediction>>,
    trainings: u64,
    sinks: StatusSinks,
    log: LogDedup,
    answers: AnswerWatch,
    /// Of the node's own certificate.
    certificate: Option<CertificateFacts>,
}

/// Searches for graphs and their loading, one at a time: only the newest is still of use.
#[derive(Default)]
struct GraphJobs {
    running: bool,
    /// The graph, and its file where it has arrived.
    next: Option<(Digest, Option<Vec<u8>>)>,
}

/// The result of a job outside the event loop.
enum JobResult {
    Graph(NodeInput),
    Trained(NodeInput, Option<String>),
    Forecast(NodeInput, Option<String>),
}

impl Runner {
    /// Runs a node until `stop`; its last status.
    pub(super) async fn run(
        config: &NodeConfig,
        pool: Arc<TrainingPool>,
        stop: Stop,
        notify: ServiceNotifier,
    ) -> Result<StatusSnapshot, NodeError> {
        let mut runner = Self::start(config, pool, notify).await?;
        let served = runner.serve(stop).await;
        let status = runner.shut_down().await;
        served.map(|()| status)
    }

    async fn start(
        config: &NodeConfig,
        pool: Arc<TrainingPool>,
        notify: ServiceNotifier,
    ) -> Result<Self, NodeError> {
        let folder = config.node.state_folder.as_ref();
        for folder in folder.iter().flat_map(|folder| [folder.to_path_buf(), folder.join("models")]) {
            if let Err(error) = atomic::remove_leftovers(&folder) {
                tracing::warn!(%error, folder = %folder.display(), "cannot remove temporary files of an earlier run");
            }
        }
        if let Some(said) = folder.and_then(|folder| private::restrict_and_say(folder, &state_store::PRIVATE))
        {
            tracing::warn!("{said}");
        }
        let disk = folder.map(|folder| Arc::new(Folder(folder.clone())) as Arc<dyn Disk>);
        let mut settings = config.settings()?;
        settings.noise_seed = NoiseSeed::from_system().map_err(|cause| NodeError::Random { cause })?;
        let (state, mut node) = StateStore::open(disk.clone(), settings, now_ms()).await?;
        import_history(config, &mut node);
        find_graph(&mut node, &pool).await;
        let sinks = StatusSinks::start(config, notify).await?;
        let source = SourceDriver::start(config, "source", node.window().position())?;
        let side = SideSources::start(config, &node)?;
        let (publisher, events) = Link::connect(link_options(config, disk.as_deref(), &node)?)?;
        let (id, federation) = (config.node.id.clone(), config.node.federation.clone());
        tracing::info!(node = %id, %federation, session = node.session(), "started");
        sinks.notify.ready();
        Ok(Self {
            disk,
            coordinator_key: config.node.coordinator_key,
            parameters_max: config.node.parameters_max,
            announced_parameters: 0,
            outbound: BackgroundPublisher::start(publisher.clone(), NodeOutboundQueue::default()),
            log: LogDedup::new(id.clone(), &node),
            id,
            federation,
            began: Instant::now(),
            node,
            pool,
            state,
            source,
            side,
            publisher,
            events,
            jobs: JoinSet::new(),
            graphs: GraphJobs::default(),
            cancels: BTreeMap::new(),
            forecasting: false,
            next_forecast: None,
            trainings: 0,
            sinks,
            answers: AnswerWatch::default(),
            certificate: config.broker.certificate_facts(),
        })
    }

    async fn serve(&mut self, mut stop: Stop) -> Result<(), NodeError> {
        let mut heartbeat = self.sinks.notify.watchdog_interval().map(time::interval);
        let mut status_interval = self.sinks.any().then(|| time::interval(STATUS_INTERVAL));
        loop {
            let input = tokio::select! {
                () = stopped(&mut stop) => return Ok(()),
                event = self.events.next() => match event {
                    Some(event) => self.link_event(event),
                    None => return Err(LinkError::Closed.into()),
                },
                Some(done) = self.jobs.join_next() => self.finish(done),
                batch = self.source.next() => Some(NodeInput::Data(batch)),
                input = self.side.next() => Some(input),
                () = tick(&mut heartbeat) => {
                    self.sinks.notify.watchdog();
                    None
                }
                () = tick(&mut status_interval) => {
                    self.write_status().await;
                    self.check_certificate();
                    None
                }
                () = due(self.answers.due()) => {
                    if let Some(unanswered) = self.answers.overdue(Instant::now()) {
                        self.log.unanswered(unanswered, &self.federation);
                    }
                    None
                }
            };
            if let Some(input) = input {
                self.handle(input).await;
                self.source.acknowledge();
                self.side.acknowledge();
            }
        }
    }

    /// Passes an input to the core and carries out the effects. Waits for the disk, never for the broker.
    async fn handle(&mut self, input: NodeInput) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for effect in self.node.step(self.now(), input) {
                inputs.extend(self.carry_out(effect).await);
            }
        }
        self.log.check_node(&self.node);
        if self.sinks.is_live() {
            self.publish_status();
        }
    }

    async fn carry_out(&mut self, effect: NodeEffect) -> Vec<NodeInput> {
        match effect {
            NodeEffect::Publish { channel, message, retain } => {
                let topic = topic::node(&self.federation, &self.id, channel);
                self.outbound.update(|queue| queue.push(OutboundMessage { topic, message, retain }));
            }
            NodeEffect::FindGraph(digest) => {
                self.graphs.next = Some((digest, None));
                self.start_graph_job();
            }
            NodeEffect::LoadGraph { digest, onnx } => {
                self.graphs.next = Some((digest, Some(onnx)));
                self.start_graph_job();
            }
            NodeEffect::Read { rounds } => return self.read_rounds(rounds),
            NodeEffect::Train(job) => {
                tracing::debug!(node = %self.id, round = job.round, samples = job.batch.samples(), "training");
                self.trainings += 1;
                let (pool, now) = (Arc::clone(&self.pool), self.now());
                let cancelled = Arc::<AtomicBool>::default();
                self.cancels.insert(job.id, Arc::clone(&cancelled));
                self.jobs.spawn(async move {
                    let (input, cause) = pool.train(now, job, cancelled).await;
                    JobResult::Trained(input, cause)
                });
            }
            NodeEffect::CancelTraining(job_id) => {
                if let Some(cancelled) = self.cancels.get(&job_id) {
                    cancelled.store(true, Ordering::Relaxed);
                }
            }
            NodeEffect::TrainPersonal(job) => {
                let pool = Arc::clone(&self.pool);
                self.jobs.spawn(async move {
                    let (input, cause) = pool.train_personal(job).await;
                    JobResult::Trained(input, cause)
                });
            }
            NodeEffect::Predict(prediction) => {
                self.next_forecast = Some(prediction);
                self.forecast();
            }
            NodeEffect::Forecast(forecast) => {
                tracing::debug!(node = %self.id, value = forecast.value, for_ms = forecast.for_ms, "forecast");
            }
            NodeEffect::Journal(entry) => {
                if self.state.append(&entry).await {
                    self.state.save(&self.node).await;
                }
            }
            NodeEffect::Persist => self.state.save(&self.node).await,
        }
        Vec::new()
    }

    /// The data of some rounds, those of side series first: the household's are completed by them.
    fn read_rounds(&mut self, rounds: u32) -> Vec<NodeInput> {
        let batch = self.source.read_rounds(rounds);
        let newest_ms = match &batch {
            InputBatch::Readings(readings) => readings.last().map(|newest| newest.time_ms),
            InputBatch::Rows(_) => None,
        };
        let mut inputs = newest_ms.map_or_else(Vec::new, |newest_ms| self.side.read_until(newest_ms));
        inputs.push(NodeInput::Data(batch));
        inputs
    }

    fn now(&self) -> Tick {
        Tick(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// Finds or loads the newest graph, if no other one is being looked for.
    fn start_graph_job(&mut self) {
        if self.graphs.running {
            return;
        }
        let Some((digest, onnx)) = self.graphs.next.take() else { return };
        self.graphs.running = true;
        let pool = Arc::clone(&self.pool);
        self.jobs.spawn_blocking(move || {
            JobResult::Graph(match onnx {
                None => pool.find(digest),
                Some(onnx) => pool.load(digest, &onnx),
            })
        });
    }

    /// Makes the newest forecast requested, one at a time.
    fn forecast(&mut self) {
        if self.forecasting {
            return;
        }
        let Some(prediction) = self.next_forecast.take() else { return };
        self.forecasting = true;
        let pool = Arc::clone(&self.pool);
        self.jobs.spawn(async move {
            let (input, cause) = pool.forecast(prediction).await;
            JobResult::Forecast(input, cause)
        });
    }

    fn finish(&mut self, done: Result<JobResult, JoinError>) -> Option<NodeInput> {
        match done {
            Ok(JobResult::Graph(input)) => {
                self.graphs.running = false;
                self.start_graph_job();
                Some(input)
            }
            Ok(JobResult::Trained(input, cause)) => {
                if let NodeInput::Trained { job_id, .. } = &input {
                    self.cancels.remove(job_id);
                }
                self.log.trained(cause);
                Some(input)
            }
            Ok(JobResult::Forecast(input, cause)) => {
                self.forecasting = false;
                self.forecast();
                self.log.forecast(cause);
                Some(input)
            }
            Err(error) => {
                tracing::error!(node = %self.id, %error, "a job failed");
                None
            }
        }
    }

    fn link_event(&mut self, event: LinkEvent) -> Option<NodeInput> {
        match event {
            LinkEvent::Connected { session_present } => {
                self.log.connected(session_present);
                self.answers.connected(Instant::now());
                None
            }
            LinkEvent::Secured { learnt } => {
                self.outbound.update(NodeOutboundQueue::clear);
                self.secured(learnt);
                Some(NodeInput::Connected)
            }
            LinkEvent::Rejected(rejection) => {
                self.log.rejected(rejection);
                None
            }
            LinkEvent::Refused { topic, error, .. } => {
                // Anybody can send what is too long: it is believed where the coordinator announced such a model.
                let order = topic == topic::node(&self.federation, &self.id, Channel::Task);
                let too_large = self.announced_parameters > self.parameters_max;
                let unreadable = order && error.is_too_long() && too_large;
                self.log.refused(&topic, &error);
                unreadable.then_some(NodeInput::Unreadable)
            }
            LinkEvent::Disconnected { cause } => {
                self.log.disconnected(&cause);
                self.answers.disconnected();
                Some(NodeInput::Disconnected)
            }
            LinkEvent::Malformed { topic, error, .. } => {
                self.log.malformed(&topic, &error);
                let order = topic == topic::node(&self.federation, &self.id, Channel::Task);
                (order && error.is_too_long()).then_some(NodeInput::Unreadable)
            }
            LinkEvent::Message { topic, message, retained } => match message {
                Message::Manifest(manifest) => {
                    self.answers.manifest(topic == topic::node(&self.federation, &self.id, Channel::Task));
                    self.announced_parameters = manifest.parameters as usize;
                    Some(NodeInput::Manifest(manifest))
                }
                Message::Order(order) => {
                    self.answers.answered();
                    Some(NodeInput::Order(order))
                }
                Message::Account(account) => {
                    // One that the broker retained is from before.
                    if !retained {
                        self.answers.answered();
                    }
                    Some(NodeInput::Account(account))
                }
                Message::Status(_) | Message::Answer(_) => None,
            },
        }
    }

    /// Saves what a new session with the coordinator has taught. A node runs without.
    fn secured(&mut self, learnt: Option<PublicKey>) {
        self.log.secured(learnt);
        let Some(disk) = &self.disk else { return };
        let saved = learnt
            .map_or(Ok(()), |learnt| identity::save_learnt(&**disk, self.coordinator_key, learnt))
            .and_then(|()| identity::forget_invitation(&**disk));
        if let Err(error) = saved {
            tracing::error!(node = %self.id, %error, "cannot save the coordinator's key");
        }
    }

    /// Publishes the present status.
    fn publish_status(&self) -> StatusSnapshot {
        let circumstances = StatusContext {
            now_ms: now_ms(),
            node: &self.id,
            federation: &self.federation,
            connected: self.publisher.connected(),
            certificate: self.certificate.as_ref(),
            trainings: self.trainings,
            source: self.source.status(),
            traffic: self.publisher.traffic(),
        };
        let status = StatusSnapshot::of(&self.node, circumstances);
        self.sinks.publish(&self.node, &status);
        status
    }

    /// The end of the certificate is logged anew every day.
    fn check_certificate(&mut self) {
        let expiry = |facts: &CertificateFacts| facts.expiry("broker.certificate_file", now_ms());
        self.log.certificate(self.certificate.as_ref().and_then(expiry));
    }

    async fn write_status(&mut self) -> StatusSnapshot {
        let status = self.publish_status();
        if let Some(Folder(folder)) = &self.sinks.folder {
            let (folder, status) = (folder.clone(), status.clone());
            let written = task::spawn_blocking(move || status.write(&folder)).await;
            if let Ok(Err(error)) = written {
                tracing::debug!(node = %self.id, %error, "cannot write the status");
            }
        }
        status
    }

    /// Publishes the offline status and disconnects, so that the coordinator need not wait for the broker's timeout.
    async fn shut_down(mut self) -> StatusSnapshot {
        self.sinks.notify.stopping();
        self.state.save(&self.node).await;
        self.handle(NodeInput::Shutdown).await;
        self.outbound.close(SHUTDOWN_TIMEOUT).await;
        if let Err(error) = self.publisher.close(SHUTDOWN_TIMEOUT).await {
            tracing::warn!(node = %self.id, %error, "shut down before all messages were acknowledged");
        }
        let status = self.write_status().await;
        if let Some(owner) = self.sinks.owner.take() {
            owner.close(SHUTDOWN_TIMEOUT).await;
        }
        tracing::info!(node = %self.id, "stopped");
        status
    }
}

async fn stopped(stop: &mut Stop) {
    // An error means that the sender was dropped.
    let _dropped = stop.wait_for(|stop| *stop).await;
}

/// Waits until that time; for ever without one.
async fn due(at: Option<Instant>) {
    match at {
        Some(at) => time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

/// The next tick; never, without an interval.
async fn tick(interval: &mut Option<time::Interval>) {
    match interval {
        Some(interval) => {
            interval.tick().await;
        }
        None => std::future::pending().await,
    }
}

/// Adds the readings of `[history]` that are older than the node's own. A node runs without them.
fn import_history(config: &NodeConfig, node: &mut Node) {
    let Some(section) = &config.history else { return };
    match history_file::read(section, &config.window) {
        Ok(HistoryReadings { quantity, readings, malformed }) => {
            let file = section.path.display();
            let steps = node.prepend_history(&readings, quantity);
            tracing::info!(%file, steps, malformed, "history read: steps from before the node's own readings");
        }
        Err(error) => tracing::error!(%error, "no history was read; the node collects its own"),
    }
}

/// Looks for the graph of earlier sessions before the link is established, so that the first status can name it.
async fn find_graph(node: &mut Node, pool: &Arc<TrainingPool>) {
    for effect in node.step(Tick::default(), NodeInput::Started) {
        if let NodeEffect::FindGraph(digest) = effect {
            let pool = Arc::clone(pool);
            if let Ok(found) = task::spawn_blocking(move || pool.find(digest)).await {
                node.step(Tick::default(), found);
            }
        }
    }
}

fn link_options(config: &NodeConfig, disk: Option<&dyn Disk>, node: &Node) -> Result<LinkOptions, NodeError> {
    let (federation, id) = (&config.node.federation, &config.node.id);
    let of_node = |channel| topic::node(federation, id, channel);
    let mut options = config.link_options()?;
    options.subscriptions =
        vec![topic::manifest(federation), of_node(Channel::Task), of_node(Channel::Account)];
    options.sealing = Some(identity::sealing(config, disk, &options.broker, node.session())?);
    Ok(options)
}
