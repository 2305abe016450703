//! A node over MQTT: the core, a link, a source and a place to keep things.

mod error;
mod feed;
mod forecaster;
mod state;
mod workshop;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use evenhand_link::{Events, Link, LinkError, LinkEvent, LinkOptions, Outbox, Outgoing};
use evenhand_protocol::identity::{FederationId, NodeId};
use evenhand_protocol::message::Message;
use evenhand_protocol::topic::{self, Channel};
use tokio::sync::watch;
use tokio::task::{self, JoinError, JoinSet};
use tokio::time;

pub use error::NodeError;
pub use workshop::Workshop;

use self::feed::Feed;
use self::forecaster::Forecaster;
use self::state::State;
use crate::config::Config;
use crate::core::{Effect, Input, Node, Prediction};

/// How long a node that ends waits for the broker to acknowledge its last words.
const FAREWELL: Duration = Duration::from_secs(5);

/// Tells nodes to end: they do when it becomes true, or when its sender is gone.
pub type Stop = watch::Receiver<bool>;

/// Runs one node until `stop`; a broker that is away is waited for.
///
/// Many nodes can run on one runtime: they share models and training threads through the `workshop`.
pub async fn run(config: &Config, workshop: Arc<Workshop>, stop: Stop) -> Result<(), NodeError> {
    let mut runner = Runner::start(config, workshop).await?;
    let served = runner.serve(stop).await;
    runner.leave().await;
    served
}

/// Everything one running node holds.
struct Runner {
    id: NodeId,
    federation: FederationId,
    node: Node,
    workshop: Arc<Workshop>,
    state: State,
    feed: Feed,
    outbox: Outbox,
    events: Events,
    jobs: JoinSet<Done>,
    forecaster: Option<Forecaster>,
    /// The newest forecast that is wanted while another is being made.
    wanted: Option<Box<Prediction>>,
}

/// What a job outside the event loop gave.
enum Done {
    Input(Input),
    Forecast(Forecaster, Option<Input>),
}

impl Runner {
    async fn start(config: &Config, workshop: Arc<Workshop>) -> Result<Self, NodeError> {
        let settings = config.settings()?;
        let state = State::open(config.node.state_folder.clone());
        let (session, saved) = state.begin_session().await?;
        let mut node = match saved {
            Some(saved) => Node::restore(settings, session, saved),
            None => Node::new(settings, session),
        };
        find_graph(&mut node, &workshop).await;
        let feed = Feed::start(config, node.window().newest_ms())?;
        let (outbox, events) = Link::connect(link_options(config, &node)?)?;
        let (id, federation) = (config.node.id.clone(), config.node.federation.clone());
        tracing::info!(node = %id, %federation, session, "started");
        Ok(Self {
            id,
            federation,
            node,
            workshop,
            state,
            feed,
            outbox,
            events,
            jobs: JoinSet::new(),
            forecaster: Some(Forecaster::default()),
            wanted: None,
        })
    }

    async fn serve(&mut self, mut stop: Stop) -> Result<(), NodeError> {
        let mut input = None;
        loop {
            if let Some(input) = input.take() {
                let mut stop = stop.clone();
                // What was begun is finished, but not for ever.
                let impatience = async {
                    stopped(&mut stop).await;
                    time::sleep(FAREWELL).await;
                };
                tokio::select! {
                    () = self.take(input) => {}
                    () = impatience => return Ok(()),
                }
            }
            tokio::select! {
                () = stopped(&mut stop) => return Ok(()),
                event = self.events.next() => match event {
                    Some(event) => input = self.hear(event),
                    None => return Err(LinkError::Closed.into()),
                },
                Some(done) = self.jobs.join_next() => input = self.finish(done),
                intake = self.feed.next() => input = Some(Input::Intake(intake)),
            }
        }
    }

    /// Feeds the core and carries out what it wants.
    async fn take(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for effect in self.node.step(input) {
                inputs.extend(self.carry_out(effect).await);
            }
        }
    }

    async fn carry_out(&mut self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::Publish { channel, message, retain } => {
                let topic = topic::node(&self.federation, &self.id, channel);
                if let Err(error) = self.outbox.publish(&topic, &message, retain).await {
                    tracing::warn!(node = %self.id, %error, topic, "cannot publish");
                }
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
                let workshop = Arc::clone(&self.workshop);
                self.jobs.spawn(async move { Done::Input(workshop.train(job).await) });
            }
            Effect::Predict(prediction) => {
                self.wanted = Some(prediction);
                self.forecast();
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
            let forecast = model.and_then(|model| forecaster.forecast(&prediction, &model));
            Done::Forecast(forecaster, forecast)
        });
    }

    fn finish(&mut self, done: Result<Done, JoinError>) -> Option<Input> {
        match done {
            Ok(Done::Input(input)) => Some(input),
            Ok(Done::Forecast(forecaster, input)) => {
                self.forecaster = Some(forecaster);
                self.forecast();
                input
            }
            Err(error) => {
                tracing::error!(node = %self.id, %error, "a job failed");
                self.forecaster.get_or_insert_default();
                None
            }
        }
    }

    fn hear(&self, event: LinkEvent) -> Option<Input> {
        match event {
            LinkEvent::Connected { session_present } => {
                tracing::info!(node = %self.id, session_present, "connected");
                Some(Input::Connected)
            }
            LinkEvent::Lost { cause } => {
                tracing::warn!(node = %self.id, cause, "the broker is away; trying again");
                Some(Input::Lost)
            }
            LinkEvent::Malformed { topic, error } => {
                tracing::warn!(node = %self.id, %error, topic, "not a message for this version");
                None
            }
            LinkEvent::Message { message, .. } => match message {
                Message::Manifest(manifest) => Some(Input::Manifest(manifest)),
                Message::Order(order) => Some(Input::Order(order)),
                Message::Account(account) => Some(Input::Account(account)),
                Message::Status(_) | Message::Answer(_) => None,
            },
        }
    }

    /// Says goodbye, so that the coordinator need not wait for the broker to miss us.
    async fn leave(mut self) {
        if time::timeout(FAREWELL, self.take(Input::Leave)).await.is_err() {
            tracing::warn!(node = %self.id, "left without a goodbye");
        }
        if let Err(error) = self.outbox.close(FAREWELL).await {
            tracing::warn!(node = %self.id, %error, "left in a hurry");
        }
        self.state.save(&self.node).await;
        tracing::info!(node = %self.id, "stopped");
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

async fn stopped(stop: &mut Stop) {
    // An error means that the sender is gone: nobody is left to run for.
    let _ = stop.wait_for(|stop| *stop).await;
}

fn link_options(config: &Config, node: &Node) -> Result<LinkOptions, NodeError> {
    let (federation, id) = (&config.node.federation, &config.node.id);
    let of_node = |channel| topic::node(federation, id, channel);
    let mut options = config.link_options()?;
    options.subscriptions =
        vec![topic::manifest(federation), of_node(Channel::Task), of_node(Channel::Account)];
    let message = Message::Status(node.farewell());
    options.will = Some(Outgoing { topic: of_node(Channel::Status), message, retain: true });
    Ok(options)
}
