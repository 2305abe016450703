//! A node over a real broker, with a scripted coordinator at the other end.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use evenhand_link::testing::Mosquitto;
use evenhand_models::{Batch, LoadOptions, Loss, Model, Targets, Trainer, shipped};
use evenhand_node::config::NodeConfig;
use evenhand_node::model_cache::ModelCache;
use evenhand_node::shell::{self, NodeError, StatusSnapshot, TrainingPool};
use evenhand_node::source::household::Household;
use evenhand_node::window::SeriesWindow;
use evenhand_node::{config::SourceConfig, reading::InputBatch, source::Source};
use evenhand_protocol::codec::{CodecKind, EncodedUpdate};
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{Answer, Declined, LossKind, Order, Train, Update};
use tokio::sync::watch;
use tokio::task::JoinHandle;

// Each test binary uses its own part of it.
#[allow(dead_code)]
mod support;
use support::coordinator::{SAMPLES_MAX as SAMPLES, ScriptedCoordinator, train};
use support::process::{NodeProcess, configure};

const PER_ROUND: usize = 40;

fn config(broker: &Mosquitto, more: &str) -> NodeConfig {
    let text = format!(
        "[node]\nid = \"m1\"\nfederation = \"town\"\n{more}\n[broker]\nurl = \"{}\"\n[privacy]\nreadings_min = 1\n[window]\nsamples = \"lags\"\nlags = 8\n\
         [source]\nkind = \"household\"\nseed = 3\nnoise = 0.25\n[pace]\nby = \"rounds\"\nreadings_per_round = {PER_ROUND}\n",
        broker.url()
    );
    NodeConfig::parse(&text).unwrap()
}

fn start(config: &NodeConfig) -> (watch::Sender<bool>, JoinHandle<Result<StatusSnapshot, NodeError>>) {
    let (sender, stop) = watch::channel(false);
    let models = config.node.state_folder.as_ref().map(|folder| folder.join("models"));
    let pool = Arc::new(TrainingPool::new(Arc::new(ModelCache::new(models, LoadOptions::default())), 1));
    let config = config.clone();
    (sender, tokio::spawn(async move { shell::run(&config, pool, stop).await }))
}

/// The answer of a node with these readings, computed directly.
fn expected(config: &NodeConfig, model: &Model, weights: &[f32], rounds: usize) -> (f32, Vec<f32>) {
    let SourceConfig::Household(settings) = &config.source else { panic!("another source") };
    let mut household = Household::new(settings.clone());
    let mut series = SeriesWindow::new(config.window.clone());
    let mut taken = None;
    for _ in 0..rounds {
        let InputBatch::Readings(readings) = household.read(PER_ROUND).unwrap() else { panic!("rows") };
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
    let mut coordinator = ScriptedCoordinator::connect(&broker);
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
async fn labelled_rows_of_a_file_become_the_gradient_of_a_classifier() {
    let (broker, folder) = (Mosquitto::start(), tempfile::tempdir().unwrap());
    let mut coordinator = ScriptedCoordinator::connect(&broker).with_model(shipped::HFT_MLP);
    let features = coordinator.model.input_shape()[1].unwrap();
    let row =
        |number: usize| (0..features).map(|at| ((number * 7 + at) % 11) as f32 / 11.0).collect::<Vec<_>>();
    let classes = ["up", "same", "down"];
    let line = |number: usize| {
        let numbers = row(number).iter().map(f32::to_string).collect::<Vec<_>>().join(",");
        format!("{},{numbers}\n", classes[number % 3])
    };
    let path = folder.path().join("rows.csv");
    std::fs::write(&path, (0..20).map(line).collect::<String>()).unwrap();
    let text = format!(
        "[node]\nid = \"m1\"\nfederation = \"town\"\n[broker]\nurl = \"{}\"\n[privacy]\nreadings_min = 1\n[rows]\nshape = [{features}]\n\
         [source]\nkind = \"csv\"\npath = {path:?}\nheader = false\nlabel_column = \"1\"\nclasses = {classes:?}\n\
         follow = false\n[pace]\nby = \"rounds\"\nreadings_per_round = 10\n",
        broker.url()
    );
    let (stop, node) = start(&NodeConfig::parse(&text).unwrap());
    coordinator.welcome().await;
    let weights = coordinator.model.initial_weights();
    for round in 1..=2 {
        let order = Train { loss: LossKind::CrossEntropy, samples_max: 4, ..train(round, &weights, true) };
        coordinator.order(Order::Train(order)).await;
        let update = coordinator.update().await;
        let newest = 10 * round as usize - 4..10 * round as usize;
        let batch = Batch {
            inputs: newest.clone().flat_map(row).collect(),
            shape: vec![4, features],
            targets: Targets::Classes(newest.map(|number| number as u32 % 3).collect()),
        };
        let expected =
            Trainer::new(&coordinator.model).gradient(&weights, &batch, Loss::CrossEntropy).unwrap();
        assert_eq!((update.loss, update.vector), (expected.loss, EncodedUpdate::F32(expected.gradient)));
    }
    coordinator.train(3, &weights, false).await;
    assert_eq!(coordinator.answer().await, Answer::Decline { round: 3, reason: Declined::NoData });
    stop.send(true).unwrap();
    node.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_program_rounds_by_random_numbers_of_its_own() {
    let broker = Mosquitto::start();
    let folder = tempfile::tempdir().unwrap();
    let mut coordinator = ScriptedCoordinator::connect(&broker);
    let config = config(&broker, "");
    let weights = coordinator.model.initial_weights();
    let order = Order::Train(Train { codec: CodecKind::Int8, ..train(1, &weights, true) });

    // With the streams of the seed, as simulated fleets have them.
    let (stop, node) = start(&config);
    coordinator.welcome().await;
    coordinator.order(order.clone()).await;
    let plain = coordinator.update().await;
    stop.send(true).unwrap();
    coordinator.death().await;
    node.await.unwrap().unwrap();

    let file = configure(folder.path(), &toml::to_string(&config).unwrap());
    let _program = NodeProcess::start(env!("CARGO_BIN_EXE_evenhand-node"), &file, &[]);
    coordinator.welcome().await;
    coordinator.order(order).await;
    let own = coordinator.update().await;
    assert_eq!(own.loss, plain.loss, "the same readings");
    assert_ne!(own.vector, plain.vector);
}

#[tokio::test]
async fn survives_the_broker_and_sends_its_update_once_more() {
    let mut broker = Mosquitto::start();
    let mut coordinator = ScriptedCoordinator::connect(&broker);
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
    let mut coordinator = ScriptedCoordinator::connect(&broker);
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
