#![allow(clippy::unwrap_used)]

use evenhand_models::{LoadOptions, Loss, Model, Predictor, Trainer, shipped};
use evenhand_protocol::codec::{CodecKind, EncodedUpdate};
use evenhand_protocol::identity::{Digest, FederationId};
use evenhand_protocol::message::{Answer, LossKind, Manifest, Order, Phase, Train, Update, UpdateKind};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::*;
use crate::config::PrivacyConfig;
use crate::core::OrderLimits;
use crate::privacy::NoiseSeed;
use crate::reading::Reading;
use crate::window::{DataWindow, ReadingsFloor, SampleFormat, SeriesConfig, TrainingBatch, WindowSettings};

const NOW: Tick = Tick(0);
const LAGS: usize = 8;
const PER_ROUND: usize = 12;

/// A meter with a daily rhythm.
struct Sine(i64);

impl Source for Sine {
    fn read(&mut self, count: usize) -> Result<InputBatch, SourceError> {
        let reading = |step: i64| Reading { time_ms: step * 900_000, value: (step as f64 / 7.0).sin() };
        let first = self.0;
        self.0 += count as i64;
        Ok(InputBatch::Readings((first..self.0).map(reading).collect()))
    }
}

fn window() -> WindowSettings {
    let samples = SampleFormat::Lags;
    WindowSettings::Series(SeriesConfig { samples, step_s: 900, lags: LAGS, ..Default::default() })
}

fn node(models: &Arc<ModelCache>) -> InlineNode<Sine> {
    let settings = NodeSettings {
        federation: FederationId::new("town").unwrap(),
        token: None,
        software: "test".into(),
        window: window(),
        side_series: Vec::new(),
        paced_by_rounds: true,
        forecasts: true,
        parameters_max: 1 << 20,
        order_limits: OrderLimits::default(),
        privacy: PrivacyConfig::none(),
        noise_seed: NoiseSeed::repeatable(7),
        seed: 7,
    };
    let mut node = InlineNode::new(settings, 1, Sine(1), PER_ROUND, Arc::clone(models));
    node.connect(NOW);
    node
}

fn announce(node: &mut InlineNode<Sine>, model: &Model, onnx: &[u8]) {
    let graph = Digest(model.digest());
    let published = node.receive(
        NOW,
        Message::Manifest(Manifest {
            federation: FederationId::new("town").unwrap(),
            graph,
            parameters: model.dim() as u32,
            phase: Phase::Exploring,
            round: 0,
        }),
    );
    if published.iter().any(|published| published.message == Message::Answer(Answer::NeedGraph(graph))) {
        node.receive(NOW, Message::Order(Order::Graph { graph, onnx: onnx.to_vec() }));
    }
}

fn train(node: &mut InlineNode<Sine>, round: u32, weights: &[f32]) -> Update {
    let published = node.receive(
        NOW,
        Message::Order(Order::Train(Train {
            round,
            weights_digest: Digest::of_weights(weights),
            weights: Some(weights.to_vec()),
            loss: LossKind::Mse,
            samples_max: PER_ROUND as u32,
            kind: UpdateKind::Gradient,
            codec: CodecKind::F32,
            deadline_ms: 1000,
        })),
    );
    let update = published.into_iter().find_map(|published| match published.message {
        Message::Answer(Answer::Update(update)) => Some(update),
        _ => None,
    });
    update.unwrap()
}

/// Gradient and forecast of a trainer and a predictor that are made for one round.
fn recomputed(model: &Model, weights: &[f32], window: &DataWindow, taken: &TrainingBatch) -> (Vec<f32>, f64) {
    let gradient = Trainer::new(model).gradient(weights, &taken.batch, Loss::Mse).unwrap().gradient;
    let query = window.query().unwrap();
    let outputs = Predictor::new(model, weights).unwrap().predict(&query.inputs, &query.shape).unwrap();
    let DataWindow::Series(series) = window else { panic!("rows") };
    (gradient, series.normaliser().restore(outputs[0]))
}

#[test]
fn a_graph_is_prepared_once_for_all_rounds_weights_and_nodes() {
    let models = Arc::new(ModelCache::default());
    let onnx = shipped::ELECTRICITY_RNN;
    let model = Model::load(onnx, &LoadOptions::default()).unwrap();
    for scale in [1.0, 0.5] {
        let mut node = node(&models);
        announce(&mut node, &model, onnx);
        let (mut source, mut window) = (Sine(1), DataWindow::new(window()));
        for round in 1..=5 {
            let weights: Vec<f32> =
                model.initial_weights().iter().map(|weight| weight * scale / round as f32).collect();
            let update = train(&mut node, round, &weights);

            window.add(&source.read(PER_ROUND).unwrap());
            let taken =
                window.batch(PER_ROUND, ReadingsFloor::NONE, &mut ChaCha8Rng::seed_from_u64(0)).unwrap();
            let (gradient, forecast) = recomputed(&model, &weights, &window, &taken);
            window.mark_used(taken.upto);
            assert_eq!(update.vector, EncodedUpdate::F32(gradient), "round {round}");
            assert_eq!(node.node().forecasts().newest().unwrap().value, forecast, "round {round}");
        }
    }
    let prepared = models.find(Digest(model.digest())).unwrap();
    assert_eq!(prepared.preparations(), 2, "one trainer and one predictor");
}
