//! The event loop of one node.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use evenhand_link::{
    BackgroundPublisher, Events, Link, LinkError, LinkEvent, LinkOptions, OutboundMessage, Publisher,
};
use evenhand_program::atomic;
use evenhand_program::notify::ServiceNotifier;
use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_protocol::message::Message;
use evenhand_protocol::topic::{self, Channel};
use tokio::sync::watch;
use tokio::task::{self, JoinError, JoinHandle, JoinSet};
use tokio::time;

use super::complaints::Complaints;
use super::disk::{Disk, Folder};
use super::feed::Feed;
use super::forecaster::Forecaster;
use super::letters::Letters;
use super::metrics;
use super::owner::Owner;
use super::report::{Circumstances, Report};
use super::state::State;
use super::{NodeError, Stop, Workshop};
use crate::config::Config;
use crate::core::{Effect, Input, Node, Prediction};
use crate::source::now_ms;

/// How long a node that ends waits for brokers to acknowledge its last words.
const FAREWELL: Duration = Duration::from_secs(5);

/// How often those who watch are told even if nothing happens: memory cards do not live for ever.
const REPORT_EVERY: Duration = Duration::from_secs(30);

/// Everything one running node holds.
pub(super) struct Runner {
    id: NodeId,
    federation: FederationId,
    node: Node,
    workshop: Arc<Workshop>,
    state: State,
    feed: Feed,
    publisher: Publisher,
    events: Events,
    post: BackgroundPublisher<Letters>,
    jobs: JoinSet<Done>,
    forecaster: Option<Forecaster>,
    /// The newest forecast that is wanted while another is being made.
    wanted: Option<Box<Prediction>>,
    trainings: u64,
    watchers: Watchers,
    complaints: Complaints,
}

/// Those who want to know how the node is doing.
struct Watchers {
    notify: ServiceNotifier,
    /// Where `evenhand-node status` looks.
    folder: Option<Folder>,
    owner: Option<Owner>,
    report: watch::Sender<Option<Report>>,
    metrics: Option<JoinHandle<()>>,
}

/// What a job outside the event loop gave.
enum Done {
    Input(Input),
    Trained(Input, Option<String>),
    Forecast(Forecaster, Result<Input, String>),
}

impl Runner {
    /// Runs a node until `stop`.
    pub(super) async fn run(
        config: &Config,
        workshop: Arc<Workshop>,
        stop: Stop,
        notify: ServiceNotifier,
    ) -> Result<(), NodeError> {
        let mut runner = Self::start(config, workshop, notify).await?;
        let served = runner.serve(stop).await;
        runner.leave().await;
        served
    }

    async fn start(
        config: &Config,
        workshop: Arc<Workshop>,
        notify: ServiceNotifier,
    ) -> Result<Self, NodeError> {
        let folder = config.node.state_folder.as_ref();
        for folder in folder.iter().flat_map(|folder| [folder.to_path_buf(), folder.join("models")]) {
            if let Err(error) = atomic::remove_leftovers(&folder) {
                tracing::warn!(%error, folder = %folder.display(), "cannot remove temporary files of an earlier run");
            }
        }
        let disk = folder.map(|folder| Arc::new(Folder(folder.clone())) as Arc<dyn Disk>);
        let (state, mut node) = State::open(disk, config.settings()?, now_ms()).await?;
        find_graph(&mut node, &workshop).await;
        let report = watch::Sender::new(None);
        let metrics = match &config.metrics {
            Some(section) => Some(metrics::serve(section.listen, report.subscribe()).await?),
            None => None,
        };
        let owner = config.owner.as_ref().map(|section| Owner::start(config, section)).transpose()?;
        let folder = folder.cloned().map(Folder);
        let watchers = Watchers { notify, folder, owner, report, metrics };
        let feed = Feed::start(config, node.window().position())?;
        let (publisher, events) = Link::connect(link_options(config, &node)?)?;
        let (id, federation) = (config.node.id.clone(), config.node.federation.clone());
        tracing::info!(node = %id, %federation, session = node.session(), "started");
        watchers.notify.ready();
        Ok(Self {
            post: BackgroundPublisher::start(publisher.clone(), Letters::default()),
            complaints: Complaints::new(id.clone(), &node),
            id,
            federation,
            node,
            workshop,
            state,
            feed,
            publisher,
            events,
            jobs: JoinSet::new(),
            forecaster: Some(Forecaster::default()),
            wanted: None,
            trainings: 0,
            watchers,
        })
    }

    async fn serve(&mut self, mut stop: Stop) -> Result<(), NodeError> {
        let mut heartbeat = self.watchers.notify.watchdog_interval().map(time::interval);
        let mut reporting = self.watchers.any().then(|| time::interval(REPORT_EVERY));
        loop {
            let input = tokio::select! {
                () = stopped(&mut stop) => return Ok(()),
                event = self.events.next() => match event {
                    Some(event) => self.hear(event),
                    None => return Err(LinkError::Closed.into()),
                },
                Some(done) = self.jobs.join_next() => self.finish(done),
                intake = self.feed.next() => Some(Input::Intake(intake)),
                () = tick(&mut heartbeat) => {
                    self.watchers.notify.watchdog();
                    None
                }
                () = tick(&mut reporting) => {
                    self.write_report().await;
                    None
                }
            };
            if let Some(input) = input {
                self.take(input).await;
                self.feed.kept();
            }
        }
    }

    /// Feeds the core and carries out what it wants. Waits for the disk, never for the broker.
    async fn take(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for effect in self.node.step(input) {
                inputs.extend(self.carry_out(effect).await);
            }
        }
        self.complaints.look_at(&self.node);
        if self.watchers.owner.is_some() || self.watchers.metrics.is_some() {
            self.tell();
        }
    }

    async fn carry_out(&mut self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::Publish { channel, message, retain } => {
                let topic = topic::node(&self.federation, &self.id, channel);
                self.post.update(|letters| letters.push(OutboundMessage { topic, message, retain }));
            }
            Effect::FindGraph(digest) => {
                let workshop = Arc::clone(&self.workshop);
                self.jobs.spawn_blocking(move || Done::Input(workshop.find(digest)));
            }
            Effect::LoadGraph { digest, onnx } => {
                let workshop = Arc::clone(&self.workshop);
                self.jobs.spawn_blocking(move || Done::Input(workshop.load(digest, &onnx)));
            }
            Effect::Read { rounds } => return Some(Input::Intake(self.feed.read_rounds(rounds))),
            Effect::Train(job) => {
                tracing::debug!(node = %self.id, round = job.round, samples = job.batch.samples(), "training");
                self.trainings += 1;
                let workshop = Arc::clone(&self.workshop);
                self.jobs.spawn(async move {
                    let (input, cause) = workshop.train(job).await;
                    Done::Trained(input, cause)
                });
            }
            Effect::Predict(prediction) => {
                self.wanted = Some(prediction);
                self.forecast();
            }
            Effect::Announce(forecast) => {
                tracing::debug!(node = %self.id, value = forecast.value, for_ms = forecast.for_ms, "forecast");
            }
            Effect::Journal(entry) => {
                if self.state.note(&entry).await {
                    self.state.save(&self.node).await;
                }
            }
            Effect::Persist => self.state.save(&self.node).await,
        }
        None
    }

    /// Makes the newest forecast that is wanted, one at a time.
    fn forecast(&mut self) {
        let Some(mut forecaster) = self.forecaster.take_if(|_| self.wanted.is_some()) else { return };
        let Some(prediction) = self.wanted.take() else { return };
        let workshop = Arc::clone(&self.workshop);
        self.jobs.spawn_blocking(move || {
            let model = workshop.model(prediction.graph);
            let forecast = match model {
                Some(model) => forecaster.forecast(&prediction, &model),
                None => Err("the model is gone".into()),
            };
            Done::Forecast(forecaster, forecast)
        });
    }

    fn finish(&mut self, done: Result<Done, JoinError>) -> Option<Input> {
        match done {
            Ok(Done::Input(input)) => Some(input),
            Ok(Done::Trained(input, cause)) => {
                self.complaints.trained(cause);
                Some(input)
            }
            Ok(Done::Forecast(forecaster, outcome)) => {
                self.forecaster = Some(forecaster);
                self.forecast();
                self.complaints.forecast(outcome.as_ref().err().cloned());
                outcome.ok()
            }
            Err(error) => {
                tracing::error!(node = %self.id, %error, "a job failed");
                self.forecaster.get_or_insert_default();
                None
            }
        }
    }

    fn hear(&mut self, event: LinkEvent) -> Option<Input> {
        match event {
            LinkEvent::Connected { session_present } => {
                self.complaints.connected(session_present);
                self.post.update(Letters::begin_anew);
                Some(Input::Connected)
            }
            LinkEvent::Disconnected { cause } => {
                self.complaints.lost(&cause);
                Some(Input::Lost)
            }
            LinkEvent::Malformed { topic, error, .. } => {
                self.complaints.malformed(&topic, &error);
                let order = topic == topic::node(&self.federation, &self.id, Channel::Task);
                (order && error.is_too_long()).then_some(Input::Unread)
            }
            LinkEvent::Message { message, .. } => match message {
                Message::Manifest(manifest) => Some(Input::Manifest(manifest)),
                Message::Order(order) => Some(Input::Order(order)),
                Message::Account(account) => Some(Input::Account(account)),
                Message::Status(_) | Message::Answer(_) => None,
            },
        }
    }

    /// Tells those who watch how the node is doing.
    fn tell(&self) -> Report {
        let circumstances = Circumstances {
            now_ms: now_ms(),
            node: &self.id,
            federation: &self.federation,
            connected: self.publisher.connected(),
            trainings: self.trainings,
            source: self.feed.health(),
            traffic: self.publisher.traffic(),
        };
        let report = Report::of(&self.node, circumstances);
        if let Some(owner) = &self.watchers.owner {
            owner.tell(&report);
        }
        self.watchers.report.send_replace(Some(report.clone()));
        report
    }

    async fn write_report(&mut self) {
        let report = self.tell();
        let Some(Folder(folder)) = &self.watchers.folder else { return };
        let folder = folder.clone();
        let written = task::spawn_blocking(move || report.write(&folder)).await;
        if let Ok(Err(error)) = written {
            tracing::debug!(node = %self.id, %error, "cannot write the report");
        }
    }

    /// Says goodbye, so that the coordinator need not wait for the broker to miss us.
    async fn leave(mut self) {
        self.watchers.notify.stopping();
        self.state.save(&self.node).await;
        self.take(Input::Leave).await;
        self.post.close(FAREWELL).await;
        if let Err(error) = self.publisher.close(FAREWELL).await {
            tracing::warn!(node = %self.id, %error, "left in a hurry");
        }
        self.write_report().await;
        if let Some(owner) = self.watchers.owner.take() {
            owner.leave(FAREWELL).await;
        }
        tracing::info!(node = %self.id, "stopped");
    }
}

impl Watchers {
    fn any(&self) -> bool {
        self.folder.is_some() || self.owner.is_some() || self.metrics.is_some()
    }
}

impl Drop for Watchers {
    fn drop(&mut self) {
        if let Some(metrics) = &self.metrics {
            metrics.abort();
        }
    }
}

async fn stopped(stop: &mut Stop) {
    // An error means that the sender is gone: nobody is left to run for.
    let _ = stop.wait_for(|stop| *stop).await;
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

/// Looks for the graph of earlier sessions before the link stands, so that the birth can say whether it is there.
async fn find_graph(node: &mut Node, workshop: &Arc<Workshop>) {
    for effect in node.step(Input::Started) {
        if let Effect::FindGraph(digest) = effect {
            let workshop = Arc::clone(workshop);
            if let Ok(found) = task::spawn_blocking(move || workshop.find(digest)).await {
                node.step(found);
            }
        }
    }
}

fn link_options(config: &Config, node: &Node) -> Result<LinkOptions, NodeError> {
    let (federation, id) = (&config.node.federation, &config.node.id);
    let of_node = |channel| topic::node(federation, id, channel);
    let mut options = config.link_options()?;
    options.subscriptions =
        vec![topic::manifest(federation), of_node(Channel::Task), of_node(Channel::Account)];
    let message = Message::Status(node.farewell());
    options.will = Some(OutboundMessage { topic: of_node(Channel::Status), message, retain: true });
    Ok(options)
}
