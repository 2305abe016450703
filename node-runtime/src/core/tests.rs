#![allow(clippy::unwrap_used)]

use evenhand_protocol::codec::{CodecKind, EncodedUpdate};
use evenhand_protocol::identity::{Digest, FederationId};
use evenhand_protocol::message::{
    Account, Answer, Declined, Life, LossKind, Manifest, Message, Order, Phase, Refusal, Train, UpdateKind,
    Why,
};
use evenhand_protocol::topic::Channel;
use proptest::prelude::*;

use super::*;
use crate::reading::{Intake, Reading};
use crate::window::{SeriesSettings, WindowSettings};

const GRAPH: Digest = Digest([1; 32]);
const PARAMETERS: usize = 4;

fn settings() -> Settings {
    let series = SeriesSettings { step_s: 60, lags: 2, history_steps: 50, ..Default::default() };
    Settings {
        federation: FederationId::new("town").unwrap(),
        token: None,
        software: "test".into(),
        window: WindowSettings::Series(series),
        paced_by_rounds: false,
        forecasts: false,
        parameters_max: 100,
        seed: 7,
    }
}

fn card() -> Card {
    Card { digest: GRAPH, parameters: PARAMETERS, input_shape: vec![None, None, Some(5)] }
}

fn manifest(round: u32) -> Input {
    Input::Manifest(Manifest {
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

fn order(round: u32) -> Input {
    Input::Order(Order::Train(train(round, round, true)))
}

fn intake(minutes: std::ops::Range<i64>) -> Intake {
    let reading = |minute: i64| Reading { time_ms: minute * 60_000, value: (minute % 7) as f64 };
    Intake::Readings(minutes.map(reading).collect())
}

fn readings(minutes: std::ops::Range<i64>) -> Input {
    Input::Intake(intake(minutes))
}

fn trained(ticket: u64) -> Input {
    let vector = (0..PARAMETERS).map(|i| i as f32).collect();
    Input::Trained { ticket, outcome: Ok(Trained { loss: 0.5, online_loss: Some(0.7), vector }) }
}

fn answers(effects: &[Effect]) -> Vec<Answer> {
    let answer = |effect: &Effect| match effect {
        Effect::Publish { channel: Channel::Update, message: Message::Answer(answer), retain: false } => {
            Some(answer.clone())
        }
        _ => None,
    };
    effects.iter().filter_map(answer).collect()
}

fn jobs(effects: &[Effect]) -> Vec<Job> {
    let job = |effect: &Effect| match effect {
        Effect::Train(job) => Some((**job).clone()),
        _ => None,
    };
    effects.iter().filter_map(job).collect()
}

/// A connected node with its graph and some data.
fn ready(settings: Settings) -> Node {
    let mut node = Node::new(settings, 1);
    for input in [
        Input::Started,
        Input::Connected,
        manifest(0),
        Input::Graph { digest: GRAPH, outcome: GraphOutcome::Ready(card()) },
        readings(1..20),
    ] {
        node.step(input);
    }
    node
}

#[test]
fn is_born_with_its_session_and_dies_with_it() {
    let mut node = Node::new(settings(), 42);
    assert_eq!(node.step(Input::Started), []);
    let effects = node.step(Input::Connected);
    let [Effect::Publish { channel: Channel::Status, message: Message::Status(status), retain: true }] =
        &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert_eq!(status.session, 42);
    assert!(matches!(&status.life, Life::Born(birth) if birth.graph.is_none() && birth.weights.is_none()));
    assert_eq!((node.farewell().session, node.farewell().life), (42, Life::Dead));
    let farewell =
        Effect::Publish { channel: Channel::Status, message: Message::Status(node.farewell()), retain: true };
    assert_eq!(node.step(Input::Leave), [farewell]);
}

#[test]
fn an_unknown_graph_is_looked_for_asked_for_and_loaded() {
    let mut node = Node::new(settings(), 1);
    node.step(Input::Connected);
    assert_eq!(node.step(manifest(1)), [Effect::FindGraph(GRAPH)]);
    assert_eq!(node.step(manifest(1)), [], "it is being looked for");
    let effects = node.step(Input::Graph { digest: GRAPH, outcome: GraphOutcome::Absent });
    assert_eq!(answers(&effects), [Answer::NeedGraph(GRAPH)]);
    let foreign = Order::Graph { graph: Digest([9; 32]), onnx: vec![0] };
    assert_eq!(node.step(Input::Order(foreign)), [], "nobody asked for that");
    node.step(Input::Lost);
    assert_eq!(answers(&node.step(Input::Connected)), [Answer::NeedGraph(GRAPH)], "the question may be lost");
    let wanted = Order::Graph { graph: GRAPH, onnx: vec![1, 2] };
    assert_eq!(node.step(Input::Order(wanted)), [Effect::LoadGraph { digest: GRAPH, onnx: vec![1, 2] }]);
    node.step(readings(1..20));
    assert_eq!(node.step(order(1)), [], "it is being loaded");
    let effects = node.step(Input::Graph { digest: GRAPH, outcome: GraphOutcome::Ready(card()) });
    assert_eq!(jobs(&effects).len(), 1, "the order was kept");
}

#[test]
fn an_order_is_trained_and_answered_once_for_each_time_it_is_asked() {
    let mut node = ready(settings());
    let effects = node.step(order(1));
    let [job] = &jobs(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!((&*job.weights, job.batch.shape.as_slice()), (&weights(1)[..], &[8, 2, 5][..]));
    assert_eq!(job.own, None, "it held nothing before");
    assert!(node.is_training());
    assert_eq!(node.step(order(1)), [], "it is at work on that");
    let effects = node.step(trained(job.ticket));
    let [Answer::Update(update)] = &answers(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!((update.round, update.samples, update.loss), (1, 8, 0.5));
    assert_eq!(update.vector, EncodedUpdate::F32(vec![0.0, 1.0, 2.0, 3.0]));
    assert_eq!(effects[0], Effect::Persist, "saved before it is said");
    assert_eq!(answers(&node.step(order(1))), [Answer::Update(update.clone())]);
    node.step(Input::Lost);
    assert_eq!(answers(&node.step(Input::Connected)), [Answer::Update(update.clone())], "sent once more");
    node.step(manifest(2));
    node.step(Input::Lost);
    assert_eq!(answers(&node.step(Input::Connected)), [], "that round is over");
}

#[test]
fn each_sample_is_used_once_and_only_when_answered() {
    let mut node = ready(settings());
    let first = jobs(&node.step(order(1))).remove(0);
    let failed = node.step(Input::Trained { ticket: first.ticket, outcome: Err(Declined::TrainingFailed) });
    assert_eq!(answers(&failed), [Answer::Decline { round: 1, reason: Declined::TrainingFailed }]);
    let second = jobs(&node.step(order(2))).remove(0);
    assert_eq!(first.batch, second.batch);
    assert_eq!(second.own.as_deref(), Some(&weights(1)[..]), "what it held since round 1");
    node.step(trained(second.ticket));
    let none = node.step(order(3));
    assert_eq!(answers(&none), [Answer::Decline { round: 3, reason: Declined::NoData }]);
    node.step(readings(20..23));
    assert_eq!(jobs(&node.step(order(4))).remove(0).batch.samples(), 3);
}

#[test]
fn values_that_are_not_finite_are_never_sent() {
    for (loss, entry) in [(f32::NAN, 0.0), (0.0, f32::INFINITY)] {
        let mut node = ready(settings());
        let job = jobs(&node.step(order(1))).remove(0);
        let outcome = Ok(Trained { loss, online_loss: None, vector: vec![entry; PARAMETERS] });
        let effects = node.step(Input::Trained { ticket: job.ticket, outcome });
        assert_eq!(answers(&effects), [Answer::Decline { round: 1, reason: Declined::TrainingFailed }]);
    }
}

#[test]
fn weights_it_holds_are_not_needed_again_and_others_are_asked_for() {
    let mut node = ready(settings());
    let effects = node.step(Input::Order(Order::Train(train(1, 1, false))));
    assert_eq!(answers(&effects), [Answer::NeedWeights { round: 1 }]);
    let job = jobs(&node.step(order(1))).remove(0);
    node.step(trained(job.ticket));
    node.step(readings(20..23));
    let again = jobs(&node.step(Input::Order(Order::Train(train(2, 1, false))))).remove(0);
    assert_eq!(*again.weights, *weights(1));
    let forged = Train { weights: Some(weights(9)), ..train(3, 3, false) };
    node.step(trained(again.ticket));
    let effects = node.step(Input::Order(Order::Train(forged)));
    assert_eq!(answers(&effects), [Answer::NeedWeights { round: 3 }], "those bytes are not what was meant");
    assert_eq!(node.weights(), Some(&weights(1)[..]));
}

#[test]
fn the_federation_does_not_wait_for_stale_work() {
    let mut node = ready(settings());
    node.step(manifest(5));
    assert_eq!(node.step(order(4)), [], "round 4 is over");
    let fifth = jobs(&node.step(order(5))).remove(0);
    assert_eq!(node.step(order(6)), [], "one training at a time");
    let effects = node.step(trained(fifth.ticket));
    assert_eq!(answers(&effects), [], "round 5 is over");
    assert_eq!(jobs(&effects).remove(0).round, 6);
}

#[test]
fn a_federation_that_begins_anew_gets_new_answers() {
    let mut node = ready(settings());
    let job = jobs(&node.step(order(3))).remove(0);
    node.step(trained(job.ticket));
    node.step(manifest(0));
    node.step(readings(20..23));
    let other = Input::Order(Order::Train(train(3, 8, true)));
    assert_eq!(jobs(&node.step(other)).len(), 1, "round 3 of another beginning");
}

#[test]
fn a_paced_source_is_read_before_training_and_once_a_round() {
    let mut node = ready(Settings { paced_by_rounds: true, ..settings() });
    assert_eq!(node.step(order(2)), [Effect::Read { rounds: 2 }]);
    assert_eq!(node.step(manifest(2)), []);
    let effects = node.step(readings(20..23));
    assert_eq!(jobs(&effects).remove(0).batch.samples(), 8);
    let redelivered = node.step(manifest(1));
    assert_eq!(redelivered, []);
    assert_eq!(node.step(manifest(3)), [Effect::Read { rounds: 1 }]);
}

#[test]
fn a_model_that_does_not_fit_is_declined() {
    let cards = [
        Card { input_shape: vec![None, Some(3), Some(5)], ..card() },
        Card { input_shape: vec![None, Some(11)], ..card() },
        Card { input_shape: vec![], ..card() },
        Card { parameters: 101, ..card() },
    ];
    for unfit in cards {
        let mut node = Node::new(settings(), 1);
        node.step(Input::Connected);
        node.step(manifest(1));
        node.step(readings(1..20));
        node.step(Input::Graph { digest: GRAPH, outcome: GraphOutcome::Ready(unfit) });
        let effects = node.step(order(1));
        assert_eq!(answers(&effects), [Answer::Decline { round: 1, reason: Declined::ModelUnfit }]);
    }
    assert_eq!(Card { input_shape: vec![None, Some(10)], ..card() }.accepts(&[2, 5]), Some(vec![10]));
}

#[test]
fn an_order_too_long_to_be_read_is_declined_once_a_round() {
    let declined = |round| vec![Answer::Decline { round, reason: Declined::ModelUnfit }];
    let mut node = ready(settings());
    node.step(manifest(1));
    assert_eq!(answers(&node.step(Input::Unread)), declined(1));
    assert_eq!(answers(&node.step(Input::Unread)), [], "it came in many pieces");
    node.step(manifest(2));
    assert_eq!(answers(&node.step(Input::Unread)), declined(2));
    // An order that was understood counts, whatever else was said.
    let job = jobs(&node.step(order(3))).remove(0);
    assert_eq!(answers(&node.step(Input::Unread)), []);
    assert!(matches!(answers(&node.step(trained(job.ticket)))[..], [Answer::Update(_)]));

    // The file of the model is too long.
    let mut node = Node::new(settings(), 1);
    node.step(Input::Connected);
    node.step(manifest(1));
    node.step(Input::Graph { digest: GRAPH, outcome: GraphOutcome::Absent });
    node.step(Input::Unread);
    assert_eq!(node.unfit(), Some(GRAPH));
    assert_eq!(answers(&node.step(order(2))), declined(2));
}

#[test]
fn an_account_is_remembered_and_costs_no_write() {
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
    assert_eq!(node.step(Input::Account(account.clone())), []);
    assert_eq!(Node::restore(settings(), 2, node.save()).account(), Some(&account));
}

#[test]
fn a_saved_node_goes_on_where_it_was() {
    let codec = CodecKind::TopK { per_mille: 250 };
    let mut node = ready(settings());
    let job = jobs(&node.step(Input::Order(Order::Train(Train { codec, ..train(1, 1, true) })))).remove(0);
    let update = answers(&node.step(trained(job.ticket)));
    let saved = postcard::to_allocvec(&node.save()).unwrap();
    let saved: Saved = postcard::from_bytes(&saved).unwrap();
    assert_eq!(saved.session(), 1);

    let mut again = Node::restore(settings(), 2, saved.clone());
    assert_eq!(again.step(Input::Started), [Effect::FindGraph(GRAPH)]);
    again.step(Input::Graph { digest: GRAPH, outcome: GraphOutcome::Ready(card()) });
    let effects = again.step(Input::Connected);
    let Effect::Publish { message: Message::Status(status), .. } = &effects[0] else { panic!("{effects:?}") };
    let Life::Born(birth) = &status.life else { panic!("{status:?}") };
    assert_eq!((birth.graph, birth.weights), (Some(GRAPH), Some(Digest::of_weights(&weights(1)))));
    assert_eq!(answers(&effects), update, "sent once more after a restart too");

    let next = |node: &mut Node| {
        node.step(readings(20..23));
        let order = Order::Train(Train { codec, ..train(2, 2, true) });
        let job = jobs(&node.step(Input::Order(order))).remove(0);
        (job.batch.clone(), answers(&node.step(trained(job.ticket))))
    };
    assert_eq!(next(&mut again), next(&mut node), "what top-k left out was saved too");

    let mut journalled = Node::restore(settings(), 3, saved.clone());
    for (number, minutes) in [(1, 1..20), (2, 20..23), (2, 20..23)] {
        journalled.replay(&Entry { number, rounds_read: 0, intake: intake(minutes) });
    }
    assert_eq!(journalled.window(), &{
        let mut window = Node::restore(settings(), 3, saved.clone()).window().clone();
        window.add(&intake(20..23));
        window
    });

    let WindowSettings::Series(series) = settings().window else { panic!("rows") };
    let other_window = WindowSettings::Series(SeriesSettings { lags: 3, ..series });
    let other = Node::restore(Settings { window: other_window, ..settings() }, 3, saved);
    assert_eq!(other.window().counts().accepted, 0, "samples of another cut are of no use");
}

#[test]
fn forecasts_follow_readings_and_draws() {
    let mut node = ready(Settings { forecasts: true, ..settings() });
    let job = jobs(&node.step(order(1))).remove(0);
    let effects = node.step(trained(job.ticket));
    assert!(
        matches!(effects.last(), Some(Effect::Predict(prediction)) if *prediction.weights == *weights(1))
    );
    let effects = node.step(readings(20..21));
    let [Effect::Journal(Entry { number: 2, .. }), Effect::Predict(prediction)] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((prediction.query.for_ms, prediction.query.shape.as_slice()), (21 * 60_000, &[1, 2, 5][..]));
    assert_eq!(
        node.step(readings(20..21)),
        [Effect::Journal(Entry { number: 3, rounds_read: 0, intake: intake(20..21) })],
        "nothing new"
    );
    let crate::window::Window::Series(series) = node.window() else { panic!("rows") };
    let forecast = Forecast { for_ms: 21 * 60_000, value: series.normaliser().mean() };
    let said = node.step(Input::Predicted { for_ms: 21 * 60_000, value: 0.0 });
    assert_eq!(said, [Effect::Announce(forecast)]);
    assert_eq!(node.forecasts().newest(), Some(forecast));
    node.step(readings(21..22));
    assert_eq!(node.forecasts().mean_absolute_error(), Some(forecast.value), "0 was measured");
}

fn any_input() -> impl Strategy<Value = Input> {
    let codec =
        prop_oneof![Just(CodecKind::F32), Just(CodecKind::Int8), Just(CodecKind::TopK { per_mille: 300 })];
    let any_order = (0u32..6, 0u32..3, any::<bool>(), codec, 0u32..9).prop_map(
        |(round, version, with, codec, samples)| {
            Input::Order(Order::Train(Train { codec, samples_max: samples, ..train(round, version, with) }))
        },
    );
    let outcome = prop_oneof![
        3 => Just(GraphOutcome::Ready(card())),
        1 => Just(GraphOutcome::Absent),
        1 => Just(GraphOutcome::Unfit),
    ];
    let digest = prop_oneof![4 => Just(GRAPH), 1 => Just(Digest([2; 32]))];
    prop_oneof![
        2 => Just(Input::Connected),
        1 => Just(Input::Lost),
        1 => Just(Input::Started),
        1 => Just(Input::Leave),
        4 => (0u32..6, digest.clone()).prop_map(|(round, graph)| match manifest(round) {
            Input::Manifest(manifest) => Input::Manifest(Manifest { graph, ..manifest }),
            other => other,
        }),
        6 => any_order,
        1 => (0u32..6).prop_map(|round| Input::Order(Order::Refused { round, refusal: Refusal::Late })),
        1 => digest.clone().prop_map(|graph| Input::Order(Order::Graph { graph, onnx: vec![] })),
        4 => (digest, outcome).prop_map(|(digest, outcome)| Input::Graph { digest, outcome }),
        4 => (0i64..200, 0i64..9).prop_map(|(from, count)| readings(from..from + count)),
        5 => (0u64..12, any::<bool>(), -1f32..1.0).prop_map(|(ticket, failed, entry)| Input::Trained {
            ticket,
            outcome: if failed {
                Err(Declined::TrainingFailed)
            } else {
                Ok(Trained { loss: 0.1, online_loss: None, vector: vec![entry; PARAMETERS] })
            },
        }),
        1 => any::<f32>().prop_map(|value| Input::Predicted { for_ms: 0, value }),
    ]
}

proptest! {
    #[test]
    fn no_sequence_of_inputs_breaks_the_rules(inputs in prop::collection::vec(any_input(), 0..120), paced: bool) {
        let mut node = Node::new(Settings { paced_by_rounds: paced, forecasts: true, ..settings() }, 1);
        let (mut asked, mut running) = (Vec::new(), None);
        let mut connected = false;
        let mut said: Vec<(u32, Answer)> = Vec::new();
        for input in inputs {
            match &input {
                Input::Order(Order::Train(train)) => asked.push(train.round),
                Input::Connected => connected = true,
                Input::Lost => connected = false,
                Input::Trained { ticket, .. } if running == Some(*ticket) => running = None,
                _ => {}
            }
            let restarted = matches!(input, Input::Manifest(_));
            let effects = node.step(input);
            for job in jobs(&effects) {
                prop_assert_eq!(running, None, "at most one training at a time");
                prop_assert!(asked.contains(&job.round) && job.round >= node.round());
                prop_assert_eq!(job.weights.len(), PARAMETERS);
                running = Some(job.ticket);
            }
            let speaks = effects.iter().any(|effect| matches!(effect, Effect::Publish { .. }));
            prop_assert!(connected || !speaks);
            if restarted {
                said.clear();
            }
            for answer in answers(&effects) {
                let round = match &answer {
                    Answer::Update(update) => update.round,
                    Answer::Decline { round, .. } | Answer::NeedWeights { round } => *round,
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
