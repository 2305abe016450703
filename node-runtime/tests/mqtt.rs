//! A node over a real broker, with a scripted coordinator at the other end.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use evenhand_link::testing::Mosquitto;
use evenhand_link::{Events, Link, LinkEvent, LinkOptions, Outbox};
use evenhand_models::{LoadOptions, Loss, Model, Trainer, shipped};
use evenhand_node::config::Config;
use evenhand_node::library::Library;
use evenhand_node::shell::{self, NodeError, Workshop};
use evenhand_node::source::household::Household;
use evenhand_node::window::Series;
use evenhand_node::{config::SourceSection, reading::Intake, source::Source};
use evenhand_protocol::codec::{CodecKind, EncodedUpdate};
use evenhand_protocol::identity::{Digest, FederationId, NodeId};
use evenhand_protocol::message::{
    Answer, Birth, Life, LossKind, Manifest, Message, Order, Phase, Status, Train, Update, UpdateKind,
};
use evenhand_protocol::topic::{self, Channel};
use tokio::sync::watch;
use tokio::task::JoinHandle;

const PER_ROUND: usize = 40;
const SAMPLES: u32 = 16;

struct Coordinator {
    federation: FederationId,
    node: NodeId,
    model: Model,
    outbox: Outbox,
    events: Events,
}

impl Coordinator {
    fn connect(broker: &Mosquitto) -> Self {
        let federation = FederationId::new("town").unwrap();
        let mut options = LinkOptions::new(broker.broker(), "coordinator");
        options.subscriptions = vec![
            topic::every_node(&federation, Channel::Status),
            topic::every_node(&federation, Channel::Update),
        ];
        let (outbox, events) = Link::connect(options).unwrap();
        let model = Model::load(shipped::ELECTRICITY_RNN, &LoadOptions::default()).unwrap();
        Self { federation, node: NodeId::new("m1").unwrap(), model, outbox, events }
    }

    fn graph(&self) -> Digest {
        Digest(self.model.digest())
    }

    async fn order(&self, order: Order) {
        let topic = topic::node(&self.federation, &self.node, Channel::Task);
        self.outbox.publish(&topic, &Message::Order(order), false).await.unwrap();
    }

    async fn announce(&self, round: u32) {
        let manifest = Manifest {
            federation: self.federation.clone(),
            graph: self.graph(),
            parameters: self.model.dim() as u32,
            phase: Phase::Exploring,
            round,
        };
        let topic = topic::manifest(&self.federation);
        self.outbox.publish(&topic, &Message::Manifest(manifest), true).await.unwrap();
    }

    async fn send_graph(&self) {
        let onnx = shipped::ELECTRICITY_RNN.to_vec();
        self.order(Order::Graph { graph: self.graph(), onnx }).await;
    }

    async fn train(&self, round: u32, weights: &[f32], with_weights: bool) {
        self.order(Order::Train(Train {
            round,
            weights_digest: Digest::of_weights(weights),
            weights: with_weights.then(|| weights.to_vec()),
            loss: LossKind::Mse,
            samples_max: SAMPLES,
            kind: UpdateKind::Gradient,
            codec: CodecKind::F32,
            deadline_ms: 60_000,
        }))
        .await;
    }

    /// The next message from the node that `wanted` accepts.
    async fn hear<T>(&mut self, mut wanted: impl FnMut(Message) -> Option<T>) -> T {
        loop {
            match self.events.next().await.expect("the link is open") {
                LinkEvent::Message { topic, message } => {
                    assert_eq!(
                        topic::parse_node(&self.federation, &topic).map(|(node, _)| node),
                        Some(self.node.clone())
                    );
                    if let Some(found) = wanted(message) {
                        return found;
                    }
                }
                LinkEvent::Malformed { topic, error } => panic!("{topic}: {error}"),
                LinkEvent::Connected { .. } | LinkEvent::Lost { .. } => {}
            }
        }
    }

    async fn birth(&mut self) -> (u64, Birth) {
        self.hear(|message| match message {
            Message::Status(Status { session, life: Life::Born(birth) }) => Some((session, birth)),
            _ => None,
        })
        .await
    }

    async fn death(&mut self) -> u64 {
        self.hear(|message| match message {
            Message::Status(Status { session, life: Life::Dead }) => Some(session),
            _ => None,
        })
        .await
    }

    async fn answer(&mut self) -> Answer {
        self.hear(|message| match message {
            Message::Answer(answer) => Some(answer),
            _ => None,
        })
        .await
    }

    async fn update(&mut self) -> Update {
        match self.answer().await {
            Answer::Update(update) => update,
            other => panic!("{other:?}"),
        }
    }

    /// Waits for the node and hands it the graph.
    async fn welcome(&mut self) -> u64 {
        self.announce(0).await;
        let (session, birth) = self.birth().await;
        if birth.graph.is_none() {
            assert_eq!(self.answer().await, Answer::NeedGraph(self.graph()));
            self.send_graph().await;
        }
        session
    }
}

fn config(broker: &Mosquitto, more: &str) -> Config {
    let text = format!(
        "[node]\nid = \"m1\"\nfederation = \"town\"\n{more}\n[broker]\nurl = \"{}\"\n[window]\nlags = 8\n\
         [source]\nkind = \"household\"\nseed = 3\nnoise = 0.25\n[pace]\nby = \"rounds\"\nreadings_per_round = {PER_ROUND}\n",
        broker.url()
    );
    Config::parse(&text).unwrap()
}

fn start(config: &Config) -> (watch::Sender<bool>, JoinHandle<Result<(), NodeError>>) {
    let (sender, stop) = watch::channel(false);
    let models = config.node.state_folder.as_ref().map(|folder| folder.join("models"));
    let workshop = Arc::new(Workshop::new(Arc::new(Library::new(models, LoadOptions::default())), 1));
    let config = config.clone();
    (sender, tokio::spawn(async move { shell::run(&config, workshop, stop).await }))
}

/// What a node with these readings must answer: computed without any of the machinery between.
fn expected(config: &Config, model: &Model, weights: &[f32], rounds: usize) -> (f32, Vec<f32>) {
    let SourceSection::Household(settings) = &config.source else { panic!("another source") };
    let mut household = Household::new(settings.clone());
    let mut series = Series::new(config.window.clone());
    let mut taken = None;
    for _ in 0..rounds {
        let Intake::Readings(readings) = household.read(PER_ROUND).unwrap() else { panic!("rows") };
        readings.into_iter().for_each(|reading| series.add(reading));
        taken = series.batch(SAMPLES as usize);
        series.mark_used(taken.as_ref().unwrap().upto);
    }
    let gradient = Trainer::new(model).gradient(weights, &taken.unwrap().batch, Loss::Mse).unwrap();
    (gradient.loss, gradient.gradient)
}

fn is_expected(update: &Update, expected: &(f32, Vec<f32>)) {
    assert_eq!((update.loss, &update.vector), (expected.0, &EncodedUpdate::F32(expected.1.clone())));
    assert_eq!(update.samples, SAMPLES);
}

#[tokio::test]
async fn joins_gets_the_graph_and_answers_with_the_true_gradient() {
    let broker = Mosquitto::start();
    let mut coordinator = Coordinator::connect(&broker);
    let config = config(&broker, "");
    let (stop, node) = start(&config);
    let session = coordinator.welcome().await;

    let first = coordinator.model.initial_weights();
    coordinator.announce(1).await;
    coordinator.train(1, &first, true).await;
    let update = coordinator.update().await;
    is_expected(&update, &expected(&config, &coordinator.model, &first, 1));
    assert_eq!((update.round, update.online_samples), (1, 0));

    coordinator.train(1, &first, true).await;
    assert_eq!(coordinator.update().await, update, "the same task again gets the same answer");

    let second: Vec<f32> = first.iter().map(|weight| weight * 0.9).collect();
    coordinator.train(2, &second, false).await;
    assert_eq!(coordinator.answer().await, Answer::NeedWeights { round: 2 });
    coordinator.train(2, &second, true).await;
    let update = coordinator.update().await;
    is_expected(&update, &expected(&config, &coordinator.model, &second, 2));
    assert_eq!(update.online_samples, SAMPLES);
    let before = expected(&config, &coordinator.model, &first, 2);
    assert!((update.online_loss - before.0).abs() <= 1e-6 * before.0, "{} {}", update.online_loss, before.0);

    stop.send(true).unwrap();
    assert_eq!(coordinator.death().await, session);
    node.await.unwrap().unwrap();
}

#[tokio::test]
async fn survives_the_broker_and_sends_its_update_once_more() {
    let mut broker = Mosquitto::start();
    let mut coordinator = Coordinator::connect(&broker);
    let config = config(&broker, "");
    let (stop, node) = start(&config);
    let session = coordinator.welcome().await;
    let weights = coordinator.model.initial_weights();
    coordinator.train(1, &weights, true).await;
    let update = coordinator.update().await;

    broker.kill();
    broker.restart();
    let (again, birth) = coordinator.birth().await;
    assert_eq!((again, birth.graph), (session, Some(coordinator.graph())));
    assert_eq!(birth.weights, Some(Digest::of_weights(&weights)));
    assert_eq!(coordinator.update().await, update, "sent once more after the reconnect");

    coordinator.train(2, &weights, false).await;
    let update = coordinator.update().await;
    is_expected(&update, &expected(&config, &coordinator.model, &weights, 2));
    stop.send(true).unwrap();
    node.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_crash_releases_the_will_and_a_restart_goes_on_with_what_was_saved() {
    let broker = Mosquitto::start();
    let folder = tempfile::tempdir().unwrap();
    let mut coordinator = Coordinator::connect(&broker);
    let config = config(&broker, &format!("state_folder = {:?}", folder.path()));
    let (_stop, node) = start(&config);
    let session = coordinator.welcome().await;
    let weights = coordinator.model.initial_weights();
    coordinator.train(1, &weights, true).await;
    let update = coordinator.update().await;
    node.abort();
    assert_eq!(coordinator.death().await, session, "the broker says it for the node");

    let (stop, node) = start(&config);
    let (next, birth) = coordinator.birth().await;
    assert!(next > session);
    assert_eq!((birth.graph, birth.weights), (Some(coordinator.graph()), Some(Digest::of_weights(&weights))));
    assert_eq!(coordinator.update().await, update, "and its update once more");
    coordinator.train(2, &weights, false).await;
    is_expected(&coordinator.update().await, &expected(&config, &coordinator.model, &weights, 2));
    stop.send(true).unwrap();
    node.await.unwrap().unwrap();
}
