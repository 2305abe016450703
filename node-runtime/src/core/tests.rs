#![allow(clippy::unwrap_used)]

use evenhand_protocol::codec::{CodecKind, EncodedUpdate};
use evenhand_protocol::identity::{Digest, FederationId};
use evenhand_protocol::message::{
    Account, Answer, Declined, Life, LossKind, Manifest, MeasureRequest, Message, Order, Phase, Refusal,
    Train, UpdateKind, Why,
};
use evenhand_protocol::tick::Tick;
use evenhand_protocol::topic::Channel;
use proptest::prelude::*;

use super::*;
use crate::config::PrivacyConfig;
use crate::privacy::NoiseSeed;
use crate::reading::{InputBatch, Reading};
use crate::window::{MeterQuantity, SampleFormat, SeriesConfig, SideRole, SideSeries, WindowSettings};

const GRAPH: Digest = Digest([1; 32]);
const PARAMETERS: usize = 4;
const NOW: Tick = Tick(70);

fn settings() -> NodeSettings {
    let samples = SampleFormat::Lags;
    let series = SeriesConfig { samples, step_s: 60, lags: 2, history_steps: 50, ..Default::default() };
    NodeSettings {
        federation: FederationId::new("town").unwrap(),
        token: None,
        software: "test".into(),
        window: WindowSettings::Series(series),
        side_series: Vec::new(),
        paced_by_rounds: false,
        forecasts: false,
        parameters_max: 100,
        order_limits: OrderLimits::default(),
        privacy: PrivacyConfig::none(),
        noise_seed: NoiseSeed::repeatable(7),
        seed: 7,
    }
}

fn info() -> ModelInfo {
    ModelInfo {
        digest: GRAPH,
        parameters: PARAMETERS,
        initial: weights(7).into(),
        personal: [].into(),
        input_shape: vec![None, None, Some(5)],
    }
}

fn manifest(round: u32) -> NodeInput {
    NodeInput::Manifest(Manifest {
        federation: FederationId::new("town").unwrap(),
        graph: GRAPH,
        parameters: PARAMETERS as u32,
        phase: Phase::Exploring,
        round,
    })
}

fn weights(version: u32) -> Vec<f32> {
    vec![version as f32; PARAMETERS]
}

fn train(round: u32, version: u32, with_weights: bool) -> Train {
    Train {
        round,
        weights_digest: Digest::of_weights(&weights(version)),
        weights: with_weights.then(|| weights(version)),
        loss: LossKind::Mse,
        samples_max: 8,
        kind: UpdateKind::Gradient,
        codec: CodecKind::F32,
        deadline_ms: 1000,
    }
}

fn order(round: u32) -> NodeInput {
    NodeInput::Order(Order::Train(train(round, round, true)))
}

fn batch(minutes: std::ops::Range<i64>) -> InputBatch {
    let reading = |minute: i64| Reading { time_ms: minute * 60_000, value: (minute % 7) as f64 };
    InputBatch::Readings(minutes.map(reading).collect())
}

fn readings(minutes: std::ops::Range<i64>) -> NodeInput {
    NodeInput::Data(batch(minutes))
}

fn trained(job_id: u64) -> NodeInput {
    let vector = (0..PARAMETERS).map(|i| i as f32).collect();
    NodeInput::Trained { job_id, outcome: Ok(Trained { loss: 0.5, online_loss: Some(0.7), vector }) }
}

fn predicted(id: u64, for_ms: i64, shared: Vec<f32>) -> NodeInput {
    NodeInput::Predicted { id, for_ms, outputs: Some(PredictedOutputs { shared, personal: None }) }
}

fn answers(effects: &[NodeEffect]) -> Vec<Answer> {
    let answer = |effect: &NodeEffect| match effect {
        NodeEffect::Publish { channel: Channel::Update, message: Message::Answer(answer), retain: false } => {
            Some(answer.clone())
        }
        _ => None,
    };
    effects.iter().filter_map(answer).collect()
}

fn jobs(effects: &[NodeEffect]) -> Vec<TrainingJob> {
    let job = |effect: &NodeEffect| match effect {
        NodeEffect::Train(job) => Some((**job).clone()),
        _ => None,
    };
    effects.iter().filter_map(job).collect()
}

/// A connected node with its graph and some data.
fn ready(settings: NodeSettings) -> Node {
    let mut node = Node::new(settings, 1);
    for input in [
        NodeInput::Started,
        NodeInput::Connected,
        manifest(0),
        NodeInput::Graph { digest: GRAPH, outcome: GraphOutcome::Ready(info()) },
        readings(1..20),
    ] {
        node.step(NOW, input);
    }
    node
}

fn request(round: u32) -> MeasureRequest {
    MeasureRequest { round, seed: 9, dimension: 64, loss: LossKind::Mse, samples_max: 8, deadline_ms: 1000 }
}

fn measure(round: u32) -> NodeInput {
    NodeInput::Order(Order::Measure(request(round)))
}

#[test]
fn a_reference_gradient_needs_no_model_and_leaves_the_samples_to_training() {
    let mut node = ready(settings());
    let job = jobs(&node.step(NOW, measure(1))).remove(0);
    assert!(job.weights.iter().all(|weight| weight.abs() == 7.0), "initial weights up to signs: {job:?}");
    let effects = node.step(NOW, trained(job.id));
    let [Answer::Measured(measured)] = &answers(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!((measured.round, measured.samples), (1, 8));
    assert_eq!(measured.vector.decode(PARAMETERS).unwrap(), [0.0, 1.0, 2.0, 3.0]);
    // The same samples are trained on when the node is drawn.
    let training = jobs(&node.step(NOW, order(1))).remove(0);
    assert_eq!(training.batch, job.batch);
}

#[test]
fn a_sample_is_measured_once() {
    let mut node = ready(settings());
    let job = jobs(&node.step(NOW, measure(1))).remove(0);
    let first = answers(&node.step(NOW, trained(job.id)));
    // Asked again, it repeats its answer, also after a restart.
    assert_eq!(answers(&node.step(NOW, measure(1))), first);
    let mut restarted = Node::restore(node.settings.clone(), 2, node.save());
    let repeated = restarted.step(NOW, NodeInput::Connected);
    assert_eq!(answers(&repeated), first);
    // In the next round there is nothing new.
    let effects = node.step(NOW, measure(2));
    assert_eq!(answers(&effects), [Answer::Unmeasured { round: 2, reason: Declined::NoData }]);
    node.step(NOW, readings(20..23));
    let job = jobs(&node.step(NOW, measure(3))).remove(0);
    assert_eq!(job.batch.samples(), 3);
}

#[test]
fn measuring_and_training_go_on_side_by_side() {
    let mut node = ready(settings());
    let measuring = jobs(&node.step(NOW, measure(1))).remove(0);
    let training = jobs(&node.step(NOW, order(1))).remove(0);
    assert_ne!(measuring.id, training.id);
    let update = answers(&node.step(NOW, trained(training.id)));
    assert!(matches!(&update[..], [Answer::Update(_)]), "{update:?}");
    let measured = answers(&node.step(NOW, trained(measuring.id)));
    assert!(matches!(&measured[..], [Answer::Measured(_)]), "{measured:?}");
}

#[test]
fn comes_online_and_goes_offline_with_its_session() {
    let mut node = Node::new(settings(), 42);
    assert_eq!(node.step(NOW, NodeInput::Started), []);
    let effects = node.step(NOW, NodeInput::Connected);
    let [NodeEffect::Publish { channel: Channel::Status, message: Message::Status(status), retain: true }] =
        &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert_eq!(status.session, 42);
    assert!(matches!(&status.life, Life::Born(birth) if birth.graph.is_none() && birth.weights.is_none()));
    assert_eq!((node.offline_status().session, node.offline_status().life), (42, Life::Dead));
    let offline = NodeEffect::Publish {
        channel: Channel::Status,
        message: Message::Status(node.offline_status()),
        retain: true,
    };
    assert_eq!(node.step(NOW, NodeInput::Shutdown), [offline]);
}

#[test]
fn an_unknown_graph_is_looked_for_requested_and_loaded() {
    let mut node = Node::new(settings(), 1);
    node.step(NOW, NodeInput::Connected);
    assert_eq!(node.step(NOW, manifest(1)), [NodeEffect::FindGraph(GRAPH)]);
    assert_eq!(node.step(NOW, manifest(1)), [], "it is being looked for");
    let effects = node.step(NOW, NodeInput::Graph { digest: GRAPH, outcome: GraphOutcome::Absent });
    assert_eq!(answers(&effects), [Answer::NeedGraph(GRAPH)]);
    let foreign = Order::Graph { graph: Digest([9; 32]), onnx: vec![0] };
    assert_eq!(node.step(NOW, NodeInput::Order(foreign)), [], "it was not requested");
    node.step(NOW, NodeInput::Disconnected);
    assert_eq!(
        answers(&node.step(NOW, NodeInput::Connected)),
        [Answer::NeedGraph(GRAPH)],
        "the question may be lost"
    );
    let wanted = Order::Graph { graph: GRAPH, onnx: vec![1, 2] };
    assert_eq!(
        node.step(NOW, NodeInput::Order(wanted)),
        [NodeEffect::LoadGraph { digest: GRAPH, onnx: vec![1, 2] }]
    );
    node.step(NOW, readings(1..20));
    assert_eq!(node.step(NOW, order(1)), [], "it is being loaded");
    let effects = node.step(NOW, NodeInput::Graph { digest: GRAPH, outcome: GraphOutcome::Ready(info()) });
    assert_eq!(jobs(&effects).len(), 1, "the order was queued");
}

#[test]
fn an_order_is_trained_once_and_answered_as_often_as_it_arrives() {
    let mut node = ready(settings());
    let effects = node.step(NOW, order(1));
    let [job] = &jobs(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!((&*job.weights, job.batch.shape.as_slice()), (&weights(1)[..], &[8, 2, 5][..]));
    assert_eq!(job.previous, None, "it held nothing before");
    assert!(node.is_training());
    assert_eq!(node.step(NOW, order(1)), [], "it is training for that");
    let effects = node.step(NOW, trained(job.id));
    let [Answer::Update(update)] = &answers(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!((update.round, update.samples, update.loss), (1, 8, 0.5));
    assert_eq!(update.vector, EncodedUpdate::F32(vec![0.0, 1.0, 2.0, 3.0]));
    assert_eq!(effects[0], NodeEffect::Persist, "saved before it is sent");
    assert_eq!(answers(&node.step(NOW, order(1))), [Answer::Update(update.clone())]);
    node.step(NOW, NodeInput::Disconnected);
    assert_eq!(
        answers(&node.step(NOW, NodeInput::Connected)),
        [Answer::Update(update.clone())],
        "sent once more"
    );
    node.step(NOW, manifest(2));
    node.step(NOW, NodeInput::Disconnected);
    assert_eq!(answers(&node.step(NOW, NodeInput::Connected)), [], "that round is over");
}

#[test]
fn the_deadline_counts_from_the_arrival_of_the_order() {
    let mut node = Node::new(settings(), 1);
    for input in [NodeInput::Connected, manifest(0), readings(1..20)] {
        node.step(NOW, input);
    }
    assert_eq!(node.step(Tick(100), order(1)), [], "its graph is being looked for");
    let graph = NodeInput::Graph { digest: GRAPH, outcome: GraphOutcome::Ready(info()) };
    assert_eq!(jobs(&node.step(Tick(400), graph)).remove(0).deadline, Tick(1100));
}

#[test]
fn an_order_asks_for_no_more_than_the_owner_permits() {
    let order_limits = OrderLimits { epochs_max: 20, training_ms_max: 700 };
    let mut node = ready(NodeSettings { order_limits, ..settings() });
    let epochs = |round, epochs| {
        let kind = UpdateKind::Epochs { epochs, learning_rate: 0.1, momentum: 0.0 };
        NodeInput::Order(Order::Train(Train { kind, deadline_ms: u32::MAX, ..train(round, round, true) }))
    };
    let job = jobs(&node.step(NOW, epochs(1, 20))).remove(0);
    assert_eq!(job.deadline, NOW.plus_ms(700), "however long the coordinator would wait");
    node.step(NOW, trained(job.id));
    let declined = Answer::Decline { round: 2, reason: Declined::TooMuchWork };
    for _ in 0..2 {
        assert_eq!(answers(&node.step(NOW, epochs(2, 21))), std::slice::from_ref(&declined));
        assert_eq!(node.excessive_epochs(), Some(21));
    }
    node.step(NOW, readings(20..23));
    let next = jobs(&node.step(NOW, epochs(3, 1)));
    assert_eq!((next.len(), node.excessive_epochs()), (1, None));
    assert_eq!(next[0].previous.as_deref(), Some(&weights(2)[..]), "it keeps the model it was sent");
    let mut measured = ready(NodeSettings { order_limits, ..settings() });
    assert_eq!(jobs(&measured.step(NOW, measure(1)))[0].deadline, NOW.plus_ms(700));
}

#[test]
fn no_answer_is_made_of_fewer_readings_than_the_floor() {
    let privacy = PrivacyConfig { readings_min: 6, ..Default::default() };
    let mut node = ready(NodeSettings { privacy, ..settings() });
    node.step(NOW, readings(20..30));
    let few = |round| Train { samples_max: 5, ..train(round, round, true) };
    let declined = Answer::Decline { round: 1, reason: Declined::TooFewSamples };
    assert_eq!(answers(&node.step(NOW, NodeInput::Order(Order::Train(few(1))))), [declined]);
    assert_eq!(node.too_few_samples(), Some(5));
    let request = MeasureRequest { samples_max: 5, ..request(1) };
    let unmeasured = Answer::Unmeasured { round: 1, reason: Declined::TooFewSamples };
    assert_eq!(answers(&node.step(NOW, NodeInput::Order(Order::Measure(request)))), [unmeasured]);

    let job = jobs(&node.step(NOW, order(2))).remove(0);
    assert_eq!((job.batch.samples(), node.too_few_samples()), (8, None));
    node.step(NOW, trained(job.id));
    node.step(NOW, readings(30..32));
    let early = Answer::Decline { round: 3, reason: Declined::NoData };
    assert_eq!(answers(&node.step(NOW, order(3))), [early], "two new ones are too few");
    node.step(NOW, readings(32..37));
    let job = jobs(&node.step(NOW, order(4))).remove(0);
    assert_eq!((job.batch.samples(), job.fresh), (7, 7));
}

#[test]
fn noise_hides_what_is_sent_until_the_budget_is_spent() {
    let budget = crate::privacy::epsilon(2.0 / 9.0, 1e-5);
    let privacy =
        PrivacyConfig { noise: 3.0, clip: 2.0, epsilon_max: budget * 1.0001, ..PrivacyConfig::none() };
    let mut node = ready(NodeSettings { privacy, ..settings() });
    let job = jobs(&node.step(NOW, measure(1))).remove(0);
    let [Answer::Measured(measured)] = &answers(&node.step(NOW, trained(job.id)))[..] else { panic!() };
    assert_eq!(measured.skill, None);
    assert!(measured.vector.decode(PARAMETERS).unwrap().iter().any(|value| value.abs() > 1.0));
    let job = jobs(&node.step(NOW, order(1))).remove(0);
    let [Answer::Update(update)] = &answers(&node.step(NOW, trained(job.id)))[..] else { panic!() };
    assert_eq!(
        (update.loss, update.online_loss, update.online_samples),
        (0.0, 0.0, 0),
        "losses are readings too"
    );
    assert_ne!(update.vector, EncodedUpdate::F32(vec![0.0, 1.0, 2.0, 3.0]));
    let spent = node.privacy_spent().unwrap();
    assert!((spent.epsilon / budget - 1.0).abs() < 1e-9 && spent.messages == 2);

    let mut restarted = Node::restore(node.settings.clone(), 2, node.save());
    assert_eq!(restarted.privacy_spent(), node.privacy_spent(), "a restart forgets nothing");
    assert_ne!(restarted.accountant, Default::default());
    restarted.step(NOW, NodeInput::Started);
    node.step(NOW, readings(20..23));
    let declined = Answer::Decline { round: 2, reason: Declined::PrivacySpent };
    assert_eq!(answers(&node.step(NOW, order(2))), [declined]);
    let unmeasured = Answer::Unmeasured { round: 2, reason: Declined::PrivacySpent };
    assert_eq!(answers(&node.step(NOW, measure(2))), [unmeasured]);
}

#[test]
fn a_training_ends_when_its_round_is_over() {
    let cancelled = |effects: &[NodeEffect]| {
        let job = |effect: &NodeEffect| match effect {
            NodeEffect::CancelTraining(job) => Some(*job),
            _ => None,
        };
        effects.iter().filter_map(job).collect::<Vec<_>>()
    };
    for newer in [order(2), manifest(2)] {
        let mut node = ready(settings());
        let job = jobs(&node.step(NOW, order(1))).remove(0);
        assert!(cancelled(&node.step(NOW, order(1))).is_empty(), "the same order");
        assert!(cancelled(&node.step(NOW, readings(20..23))).is_empty());
        assert_eq!(cancelled(&node.step(NOW, newer.clone())), [job.id]);
        assert!(cancelled(&node.step(NOW, newer)).is_empty(), "once");
        node.step(NOW, order(2));
        let ended = NodeInput::Trained { job_id: job.id, outcome: Err(Declined::TrainingFailed) };
        let effects = node.step(NOW, ended);
        assert_eq!(answers(&effects), [], "nobody waits for an answer");
        assert_eq!(jobs(&effects).remove(0).round, 2);
    }
}

#[test]
fn each_sample_is_used_once_and_only_when_answered() {
    let mut node = ready(settings());
    let first = jobs(&node.step(NOW, order(1))).remove(0);
    let failed =
        node.step(NOW, NodeInput::Trained { job_id: first.id, outcome: Err(Declined::TrainingFailed) });
    assert_eq!(answers(&failed), [Answer::Decline { round: 1, reason: Declined::TrainingFailed }]);
    let second = jobs(&node.step(NOW, order(2))).remove(0);
    assert_eq!(first.batch, second.batch);
    assert_eq!(second.previous.as_deref(), Some(&weights(1)[..]), "what it held since round 1");
    node.step(NOW, trained(second.id));
    let none = node.step(NOW, order(3));
    assert_eq!(answers(&none), [Answer::Decline { round: 3, reason: Declined::NoData }]);
    node.step(NOW, readings(20..23));
    assert_eq!(jobs(&node.step(NOW, order(4))).remove(0).batch.samples(), 3);
}

#[test]
fn values_that_are_not_finite_are_never_sent() {
    for (loss, entry) in [(f32::NAN, 0.0), (0.0, f32::INFINITY)] {
        let mut node = ready(settings());
        let job = jobs(&node.step(NOW, order(1))).remove(0);
        let outcome = Ok(Trained { loss, online_loss: None, vector: vec![entry; PARAMETERS] });
        let effects = node.step(NOW, NodeInput::Trained { job_id: job.id, outcome });
        assert_eq!(answers(&effects), [Answer::Decline { round: 1, reason: Declined::TrainingFailed }]);
    }
}

#[test]
fn weights_it_holds_are_not_needed_again_and_others_are_requested() {
    let mut node = ready(settings());
    let effects = node.step(NOW, NodeInput::Order(Order::Train(train(1, 1, false))));
    assert_eq!(answers(&effects), [Answer::NeedWeights { round: 1 }]);
    let job = jobs(&node.step(NOW, order(1))).remove(0);
    node.step(NOW, trained(job.id));
    node.step(NOW, readings(20..23));
    let again = jobs(&node.step(NOW, NodeInput::Order(Order::Train(train(2, 1, false))))).remove(0);
    assert_eq!(*again.weights, *weights(1));
    let forged = Train { weights: Some(weights(9)), ..train(3, 3, false) };
    node.step(NOW, trained(again.id));
    let effects = node.step(NOW, NodeInput::Order(Order::Train(forged)));
    assert_eq!(answers(&effects), [Answer::NeedWeights { round: 3 }], "those weights have another digest");
    assert_eq!(node.weights(), Some(&weights(1)[..]));
}

#[test]
fn work_for_an_earlier_round_is_dropped() {
    let mut node = ready(settings());
    node.step(NOW, manifest(5));
    assert_eq!(node.step(NOW, order(4)), [], "round 4 is over");
    let fifth = jobs(&node.step(NOW, order(5))).remove(0);
    let ended = [NodeEffect::CancelTraining(fifth.id)];
    assert_eq!(node.step(NOW, order(6)), ended, "one training at a time: that of the newer round");
    let effects = node.step(NOW, trained(fifth.id));
    assert_eq!(answers(&effects), [], "round 5 is over");
    assert_eq!(jobs(&effects).remove(0).round, 6);
}

#[test]
fn a_federation_that_starts_over_gets_new_answers() {
    let mut node = ready(settings());
    let job = jobs(&node.step(NOW, order(3))).remove(0);
    node.step(NOW, trained(job.id));
    node.step(NOW, manifest(0));
    node.step(NOW, readings(20..23));
    let other = NodeInput::Order(Order::Train(train(3, 8, true)));
    assert_eq!(jobs(&node.step(NOW, other)).len(), 1, "round 3 of another run");
}

#[test]
fn a_paced_source_is_read_before_training_and_once_a_round() {
    let mut node = ready(NodeSettings { paced_by_rounds: true, ..settings() });
    assert_eq!(node.step(NOW, order(2)), [NodeEffect::Read { rounds: 2 }]);
    assert_eq!(node.step(NOW, manifest(2)), []);
    let effects = node.step(NOW, readings(20..23));
    let job = jobs(&effects).remove(0);
    assert_eq!(job.batch.samples(), 8);
    let redelivered = node.step(NOW, manifest(1));
    assert_eq!(redelivered, []);
    let newer = [NodeEffect::Read { rounds: 1 }, NodeEffect::CancelTraining(job.id)];
    assert_eq!(node.step(NOW, manifest(3)), newer);
}

#[test]
fn a_model_that_does_not_fit_is_declined() {
    let cards = [
        ModelInfo { input_shape: vec![None, Some(3), Some(5)], ..info() },
        ModelInfo { input_shape: vec![None, Some(11)], ..info() },
        ModelInfo { input_shape: vec![], ..info() },
        ModelInfo { parameters: 101, ..info() },
    ];
    for unfit in cards {
        let mut node = Node::new(settings(), 1);
        node.step(NOW, NodeInput::Connected);
        node.step(NOW, manifest(1));
        node.step(NOW, readings(1..20));
        node.step(NOW, NodeInput::Graph { digest: GRAPH, outcome: GraphOutcome::Ready(unfit) });
        let effects = node.step(NOW, order(1));
        assert_eq!(answers(&effects), [Answer::Decline { round: 1, reason: Declined::ModelUnfit }]);
    }
    assert_eq!(ModelInfo { input_shape: vec![None, Some(10)], ..info() }.accepts(&[2, 5]), Some(vec![10]));
}

#[test]
fn an_order_beyond_the_limits_is_declined_once_a_round() {
    let declined = |round| vec![Answer::Decline { round, reason: Declined::ModelUnfit }];
    let mut node = ready(settings());
    node.step(NOW, manifest(1));
    assert_eq!(answers(&node.step(NOW, NodeInput::Unreadable)), declined(1));
    assert_eq!(answers(&node.step(NOW, NodeInput::Unreadable)), [], "it came in many pieces");
    node.step(NOW, manifest(2));
    assert_eq!(answers(&node.step(NOW, NodeInput::Unreadable)), declined(2));
    // An order that was decoded counts, whatever else arrived.
    let job = jobs(&node.step(NOW, order(3))).remove(0);
    assert_eq!(answers(&node.step(NOW, NodeInput::Unreadable)), []);
    assert!(matches!(answers(&node.step(NOW, trained(job.id)))[..], [Answer::Update(_)]));

    // The file of the model is too long.
    let mut node = Node::new(settings(), 1);
    node.step(NOW, NodeInput::Connected);
    node.step(NOW, manifest(1));
    node.step(NOW, NodeInput::Graph { digest: GRAPH, outcome: GraphOutcome::Absent });
    node.step(NOW, NodeInput::Unreadable);
    assert_eq!(node.unfit(), Some(GRAPH));
    assert_eq!(answers(&node.step(NOW, order(2))), declined(2));
}

#[test]
fn an_account_is_stored_without_a_write() {
    let mut node = ready(settings());
    let account = Account {
        round: 7,
        standing: 0.5,
        standing_error: 0.1,
        sampling_probability: 0.1,
        staleness: 3,
        last_drawn: Some(4),
        drawn: 2,
        why: Why::NotDrawn,
    };
    assert_eq!(node.step(NOW, NodeInput::Account(account.clone())), []);
    assert_eq!(Node::restore(settings(), 2, node.save()).account(), Some(&account));
}

#[test]
fn a_saved_node_continues_where_it_was() {
    let codec = CodecKind::TopK { per_mille: 250 };
    let mut node = ready(settings());
    let job =
        jobs(&node.step(NOW, NodeInput::Order(Order::Train(Train { codec, ..train(1, 1, true) })))).remove(0);
    let update = answers(&node.step(NOW, trained(job.id)));
    let saved = postcard::to_allocvec(&node.save()).unwrap();
    let saved: SavedNode = postcard::from_bytes(&saved).unwrap();
    assert_eq!(saved.session(), 1);

    let mut again = Node::restore(settings(), 2, saved.clone());
    assert_eq!(again.step(NOW, NodeInput::Started), [NodeEffect::FindGraph(GRAPH)]);
    again.step(NOW, NodeInput::Graph { digest: GRAPH, outcome: GraphOutcome::Ready(info()) });
    let effects = again.step(NOW, NodeInput::Connected);
    let NodeEffect::Publish { message: Message::Status(status), .. } = &effects[0] else {
        panic!("{effects:?}")
    };
    let Life::Born(birth) = &status.life else { panic!("{status:?}") };
    assert_eq!((birth.graph, birth.weights), (Some(GRAPH), Some(Digest::of_weights(&weights(1)))));
    assert_eq!(answers(&effects), update, "sent once more after a restart too");

    let next = |node: &mut Node| {
        node.step(NOW, readings(20..23));
        let order = Order::Train(Train { codec, ..train(2, 2, true) });
        let job = jobs(&node.step(NOW, NodeInput::Order(order))).remove(0);
        (job.batch.clone(), answers(&node.step(NOW, trained(job.id))))
    };
    assert_eq!(next(&mut again), next(&mut node), "what top-k left out was saved too");

    let mut journalled = Node::restore(settings(), 3, saved.clone());
    for (number, minutes) in [(1, 1..20), (2, 20..23), (2, 20..23)] {
        journalled.replay(&JournalEntry { number, rounds_read: 0, side: None, batch: batch(minutes) });
    }
    assert_eq!(journalled.window(), &{
        let mut window = Node::restore(settings(), 3, saved.clone()).window().clone();
        window.add(&batch(20..23));
        window
    });

    let WindowSettings::Series(series) = settings().window else { panic!("rows") };
    let other_window = WindowSettings::Series(SeriesConfig { lags: 3, ..series });
    let other = Node::restore(NodeSettings { window: other_window, ..settings() }, 3, saved);
    assert_eq!(other.window().counts().accepted, 0, "samples of another cut are of no use");
}

#[test]
fn forecasts_follow_readings_and_draws() {
    let mut node = ready(NodeSettings { forecasts: true, ..settings() });
    let job = jobs(&node.step(NOW, order(1))).remove(0);
    let effects = node.step(NOW, trained(job.id));
    assert!(
        matches!(effects.last(), Some(NodeEffect::Predict(prediction)) if *prediction.weights == *weights(1))
    );
    let effects = node.step(NOW, readings(20..21));
    let [NodeEffect::Journal(JournalEntry { number: 2, .. }), NodeEffect::Predict(prediction)] = &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert_eq!((prediction.query.for_ms, prediction.query.shape.as_slice()), (21 * 60_000, &[1, 2, 5][..]));
    assert_eq!(
        node.step(NOW, readings(20..21)),
        [NodeEffect::Journal(JournalEntry { number: 3, rounds_read: 0, side: None, batch: batch(20..21) })],
        "nothing new"
    );
    let crate::window::DataWindow::Series(series) = node.window() else { panic!("rows") };
    let forecast = Forecast { for_ms: 21 * 60_000, value: series.normaliser().mean() };
    let said = node.step(NOW, predicted(1, 21 * 60_000, vec![0.0]));
    assert_eq!(said, [NodeEffect::Forecast(forecast)]);
    assert_eq!(node.forecasts().newest(), Some(forecast));
    node.step(NOW, readings(21..22));
    assert_eq!(node.forecasts().mean_absolute_error(), Some(forecast.value), "0 was measured");
}

fn any_input() -> impl Strategy<Value = NodeInput> {
    let codec =
        prop_oneof![Just(CodecKind::F32), Just(CodecKind::Int8), Just(CodecKind::TopK { per_mille: 300 })];
    let any_order = (0u32..6, 0u32..3, any::<bool>(), codec, 0u32..9).prop_map(
        |(round, version, with, codec, samples)| {
            NodeInput::Order(Order::Train(Train {
                codec,
                samples_max: samples,
                ..train(round, version, with)
            }))
        },
    );
    let outcome = prop_oneof![
        3 => Just(GraphOutcome::Ready(info())),
        1 => Just(GraphOutcome::Absent),
        1 => Just(GraphOutcome::Unfit),
    ];
    let digest = prop_oneof![4 => Just(GRAPH), 1 => Just(Digest([2; 32]))];
    prop_oneof![
        2 => Just(NodeInput::Connected),
        1 => Just(NodeInput::Disconnected),
        1 => Just(NodeInput::Started),
        1 => Just(NodeInput::Shutdown),
        4 => (0u32..6, digest.clone()).prop_map(|(round, graph)| match manifest(round) {
            NodeInput::Manifest(manifest) => NodeInput::Manifest(Manifest { graph, ..manifest }),
            other => other,
        }),
        6 => any_order,
        1 => (0u32..6).prop_map(|round| NodeInput::Order(Order::Refused { round, refusal: Refusal::Late })),
        1 => digest.clone().prop_map(|graph| NodeInput::Order(Order::Graph { graph, onnx: vec![] })),
        4 => (digest, outcome).prop_map(|(digest, outcome)| NodeInput::Graph { digest, outcome }),
        4 => (0i64..200, 0i64..9).prop_map(|(from, count)| readings(from..from + count)),
        5 => (0u64..12, any::<bool>(), -1f32..1.0).prop_map(|(job_id, failed, entry)| NodeInput::Trained {
            job_id,
            outcome: if failed {
                Err(Declined::TrainingFailed)
            } else {
                Ok(Trained { loss: 0.1, online_loss: None, vector: vec![entry; PARAMETERS] })
            },
        }),
        1 => (0u64..9, any::<f32>()).prop_map(|(id, value)| predicted(id, 0, vec![value])),
        1 => (0u64..9).prop_map(|id| NodeInput::Predicted { id, for_ms: 0, outputs: None }),
        1 => any::<bool>().prop_map(|ok| NodeInput::PersonalTrained { graph: GRAPH, weights: ok.then(|| vec![1.0]) }),
    ]
}

proptest! {
    #[test]
    fn no_sequence_of_inputs_breaks_the_rules(inputs in prop::collection::vec(any_input(), 0..120), paced: bool) {
        let mut node = Node::new(NodeSettings { paced_by_rounds: paced, forecasts: true, ..settings() }, 1);
        let (mut asked, mut running) = (Vec::new(), None);
        let mut connected = false;
        let mut said: Vec<(u32, Answer)> = Vec::new();
        for input in inputs {
            match &input {
                NodeInput::Order(Order::Train(train)) => asked.push(train.round),
                NodeInput::Connected => connected = true,
                NodeInput::Disconnected => connected = false,
                NodeInput::Trained { job_id, .. } if running == Some(*job_id) => running = None,
                _ => {}
            }
            let restarted = matches!(input, NodeInput::Manifest(_));
            let effects = node.step(NOW, input);
            for job in jobs(&effects) {
                prop_assert_eq!(running, None, "at most one training at a time");
                prop_assert!(asked.contains(&job.round) && job.round >= node.round());
                prop_assert_eq!(job.weights.len(), PARAMETERS);
                running = Some(job.id);
            }
            let publishes = effects.iter().any(|effect| matches!(effect, NodeEffect::Publish { .. }));
            prop_assert!(connected || !publishes);
            if restarted {
                said.clear();
            }
            for answer in answers(&effects) {
                let round = match &answer {
                    Answer::Update(update) => update.round,
                    Answer::Decline { round, .. } | Answer::NeedWeights { round } => *round,
                    Answer::Measured(_) | Answer::Unmeasured { .. } => unreachable!("nobody asked for it"),
                    Answer::NeedGraph(_) | Answer::Resend(_) => continue,
                };
                prop_assert!(asked.contains(&round), "an answer only for a round that was asked for");
                prop_assert!(round >= node.round(), "and only while it lasts");
                if let (Answer::Update(update), Some((_, Answer::Update(before)))) =
                    (&answer, said.iter().find(|(earlier, answer)| *earlier == round && matches!(answer, Answer::Update(_))))
                {
                    let same_task = update.samples == before.samples && update.vector == before.vector;
                    prop_assert!(same_task || asked.iter().filter(|asked| **asked == round).count() > 1);
                }
                said.push((round, answer));
            }
        }
        let saved = node.save();
        prop_assert_eq!(Node::restore(node.settings.clone(), 2, saved.clone()).save().session(), 2);
    }
}

fn hours(hours: std::ops::Range<i64>) -> NodeInput {
    let reading = |hour: i64| Reading { time_ms: hour * 3_600_000, value: (hour % 24) as f64 };
    NodeInput::Data(InputBatch::Readings(hours.map(reading).collect()))
}

fn predictions(effects: &[NodeEffect]) -> Vec<Prediction> {
    let prediction = |effect: &NodeEffect| match effect {
        NodeEffect::Predict(prediction) => Some((**prediction).clone()),
        _ => None,
    };
    effects.iter().filter_map(prediction).collect()
}

fn personal_jobs(effects: &[NodeEffect]) -> Vec<PersonalJob> {
    let job = |effect: &NodeEffect| match effect {
        NodeEffect::TrainPersonal(job) => Some((**job).clone()),
        _ => None,
    };
    effects.iter().filter_map(job).collect()
}

/// A node of hourly day-ahead forecasts with three days of readings, which holds the model of round 1.
fn with_personal_part(paced_by_rounds: bool) -> Node {
    let series = SeriesConfig { samples: SampleFormat::DayAhead, step_s: 3600, ..Default::default() };
    let window = WindowSettings::Series(series);
    let mut node = Node::new(NodeSettings { window, forecasts: true, paced_by_rounds, ..settings() }, 1);
    node.step(NOW, NodeInput::Connected);
    node.step(NOW, manifest(0));
    let input_shape = vec![None, Some(crate::forecast::INPUTS)];
    let info = ModelInfo { input_shape, personal: [0.0, 0.0].into(), ..info() };
    node.step(NOW, NodeInput::Graph { digest: GRAPH, outcome: GraphOutcome::Ready(info) });
    node.step(NOW, hours(1..72));
    node.step(NOW, order(1));
    node
}

#[test]
fn the_personal_part_is_trained_once_a_day_and_stays_when_the_shared_model_changes() {
    let mut node = with_personal_part(false);
    let effects = node.step(NOW, hours(72..74));
    let job = personal_jobs(&effects).remove(0);
    assert_eq!((job.personal, job.weights.to_vec()), (vec![0.0, 0.0], weights(1)));
    assert!(job.batch.samples() > 100);
    assert!(predictions(&effects).is_empty(), "it waits for the personal part");
    let trained = |entry: f32| NodeInput::PersonalTrained { graph: GRAPH, weights: Some(vec![entry; 2]) };
    let effects = node.step(NOW, trained(1.0));
    assert!(effects.contains(&NodeEffect::Persist));
    assert_eq!(predictions(&effects)[0].personal, Some(vec![1.0, 1.0]));

    assert!(personal_jobs(&node.step(NOW, hours(74..97))).is_empty(), "not twice a day");
    node.step(NOW, order(2));
    let restored = Node::restore(node.settings.clone(), 2, node.save());
    assert_eq!(restored.personal_weights(GRAPH), Some(&[1.0, 1.0][..]));
    assert_eq!(restored.personal_weights(Digest([2; 32])), None, "of another model");
    let job = personal_jobs(&node.step(NOW, hours(97..98))).remove(0);
    assert_eq!((job.personal, job.weights.to_vec()), (vec![1.0, 1.0], weights(2)));

    for failed in [None, Some(vec![f32::NAN; 2])] {
        node.step(NOW, NodeInput::PersonalTrained { graph: GRAPH, weights: failed });
        assert_eq!(node.personal_weights(GRAPH), Some(&[1.0, 1.0][..]), "a failure changes nothing");
    }
    let asked = predictions(&node.step(NOW, hours(98..99))).remove(0);
    let before = node.forecast_vector().cloned();
    let outputs = PredictedOutputs { shared: vec![0.0; 72], personal: Some(vec![2.0; 72]) };
    let Prediction { id, query, .. } = asked;
    node.step(NOW, NodeInput::Predicted { id, for_ms: query.for_ms, outputs: Some(outputs) });
    assert_ne!(node.forecast_vector(), before.as_ref());
}

#[test]
fn a_paced_source_is_read_when_the_forecast_of_the_data_before_was_made() {
    let mut node = with_personal_part(true);
    let reads =
        |effects: &[NodeEffect]| effects.iter().any(|effect| matches!(effect, NodeEffect::Read { .. }));
    node.step(NOW, hours(72..73));
    assert!(!reads(&node.step(NOW, manifest(2))), "the personal part is being trained");
    let effects = node.step(NOW, NodeInput::PersonalTrained { graph: GRAPH, weights: None });
    assert!(!reads(&effects), "the forecast is being made");
    let Prediction { id, query, .. } = predictions(&effects).remove(0);
    assert!(reads(&node.step(NOW, NodeInput::Predicted { id, for_ms: query.for_ms, outputs: None })));
    assert!(!reads(&node.step(NOW, manifest(2))), "once a round");
}

#[test]
fn a_node_without_a_model_forecasts_the_day_naively_and_with_one_by_its_corrections() {
    let series = SeriesConfig { samples: SampleFormat::DayAhead, step_s: 3600, ..Default::default() };
    let settings = NodeSettings { window: WindowSettings::Series(series), forecasts: true, ..settings() };
    let mut node = Node::new(settings.clone(), 1);
    let forecasts = |effects: Vec<NodeEffect>| -> Vec<Forecast> {
        let forecast =
            |effect| if let NodeEffect::Forecast(forecast) = effect { Some(forecast) } else { None };
        effects.into_iter().filter_map(forecast).collect()
    };
    assert_eq!(forecasts(node.step(NOW, hours(1..24))), [], "23 hours are no day");
    node.step(NOW, hours(24..25));
    assert_eq!(node.forecast_vector().unwrap().values.len(), 24);
    let made = forecasts(node.step(NOW, hours(25..200)));
    assert_eq!(made, [Forecast { for_ms: 200 * 3_600_000, value: made[0].value }]);

    let mut restored = Node::restore(settings, 2, node.save());
    restored.step(NOW, hours(200..201));
    node.step(NOW, hours(200..201));
    assert_eq!(restored.forecast_vector(), node.forecast_vector(), "nothing was lost");

    node.step(NOW, NodeInput::Connected);
    node.step(NOW, manifest(1));
    let info = ModelInfo { input_shape: vec![None, Some(crate::forecast::INPUTS)], ..info() };
    node.step(NOW, NodeInput::Graph { digest: GRAPH, outcome: GraphOutcome::Ready(info) });
    let effects = node.step(NOW, order(1));
    let job =
        effects.iter().find_map(|effect| if let NodeEffect::Train(job) = effect { Some(job) } else { None });
    assert_eq!(job.unwrap().batch.shape, [8, crate::forecast::INPUTS]);
    let first = predictions(&node.step(NOW, hours(201..202))).remove(0);
    let asked = predictions(&node.step(NOW, hours(202..203))).remove(0);
    let before = node.forecast_vector().cloned();
    let early = node.step(NOW, predicted(first.id, first.query.for_ms, vec![1.0; 72]));
    assert_eq!(
        (forecasts(early), node.forecast_vector()),
        (vec![], before.as_ref()),
        "of an hour that is over"
    );
    let made = forecasts(node.step(NOW, predicted(asked.id, asked.query.for_ms, vec![1.0; 72])));
    assert_eq!(made, [Forecast { for_ms: 203 * 3_600_000, value: made[0].value }]);
    assert_ne!(node.forecast_vector(), before.as_ref());

    let asked = predictions(&node.step(NOW, hours(203..204))).remove(0);
    let failed = NodeInput::Predicted { id: asked.id, for_ms: asked.query.for_ms, outputs: None };
    assert_eq!(forecasts(node.step(NOW, failed)).len(), 1, "naive, since the model failed");
}

#[test]
fn readings_of_a_side_series_are_journalled_and_complete_the_steps_that_wait_for_them() {
    let series = SeriesConfig { samples: SampleFormat::DayAhead, step_s: 3600, ..Default::default() };
    let car = SideSeries { name: "car".into(), role: SideRole::LeaveOut(MeterQuantity::Level) };
    let window = WindowSettings::Series(series);
    let settings = NodeSettings { window, forecasts: true, side_series: vec![car], ..settings() };
    let (mut node, mut journalled) = (Node::new(settings.clone(), 1), Node::new(settings.clone(), 1));
    let drawn = |name: &str, hours: std::ops::Range<i64>| {
        let reading = |hour: i64| Reading { time_ms: hour * 3_600_000, value: (hour % 2) as f64 };
        NodeInput::SideData { name: name.into(), batch: InputBatch::Readings(hours.map(reading).collect()) }
    };
    let mut entries = Vec::new();
    for input in [drawn("car", 1..48), hours(1..48), hours(48..49), drawn("boat", 48..49)] {
        let journal = |effect| if let NodeEffect::Journal(entry) = effect { Some(entry) } else { None };
        entries.extend(node.step(NOW, input).into_iter().filter_map(journal));
    }
    let newest = |node: &Node| node.window().complete_ms().unwrap() / 3_600_000;
    assert_eq!((newest(&node), node.window().measured(47 * 3_600_000)), (47, Some(22.0)));
    let effects = node.step(NOW, drawn("car", 48..49));
    assert!(matches!(&effects[..], [NodeEffect::Journal(entry), NodeEffect::Forecast(forecast)]
        if entry.side.as_deref() == Some("car") && forecast.for_ms == 49 * 3_600_000));
    entries.extend(effects.into_iter().find_map(|effect| match effect {
        NodeEffect::Journal(entry) => Some(entry),
        _ => None,
    }));
    assert_eq!(newest(&node), 48);
    entries.iter().for_each(|entry| journalled.replay(entry));
    assert_eq!((entries.len(), newest(&journalled)), (5, 48));
    assert_eq!(journalled.window().position(), node.window().position());
    let restored = Node::restore(settings.clone(), 2, node.save());
    assert_eq!(restored.window(), node.window());
    let without = Node::restore(NodeSettings { side_series: Vec::new(), ..settings }, 2, node.save());
    assert_eq!(newest(&without), 48, "the load stays");
    assert_eq!(without.window().side_position("car").newest_ms, None);
}
