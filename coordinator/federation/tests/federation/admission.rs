//! Which updates count, and how often.

use evenhand_federation::{Input, NodeResponse, NormPolicy};
use evenhand_protocol::codec::{CodecKind, ErrorFeedback, encode};
use evenhand_protocol::message::{Answer, Refusal, Update};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use evenhand_testkit::federation::scripted::{ScriptedFederation, close_to, node, small_config, update};

#[test]
fn an_update_counts_once_however_often_it_arrives() {
    let mut world = ScriptedFederation::with(small_config(2), 1, &["a", "b"]);
    world.updates("a", 10, &[1.0]);
    world.updates("a", 10, &[5.0]);
    world.updates("b", 10, &[1.0]);
    assert_eq!(world.last().weights.values(), [-0.5]);
    // After the round as well.
    world.answers("a", Answer::Update(update(1, 10, &[1.0])));
    assert_eq!(world.refusals, [(node("a"), Refusal::Repeated), (node("a"), Refusal::Repeated)]);
    world.updates("a", 10, &[0.0]);
    world.updates("b", 10, &[0.0]);
    assert_eq!(world.last().weights.values(), [-0.5]);
    assert_eq!(world.last().round.nodes[0].refusals[&Refusal::Repeated], 1);
}

#[test]
fn each_reason_of_refusal_is_told_counted_and_does_not_hold_up_the_round() {
    let mut rules = small_config(2);
    rules.training.samples_max = 50;
    let mut world = ScriptedFederation::with(rules.clone(), 2, &["a", "b"]);
    world.updates("stranger", 10, &[1.0, 1.0]);
    world.step(Input::Malformed { node: node("b") });
    let bad: [(u32, Vec<f32>, Refusal); 6] = [
        (10, vec![1.0], Refusal::Dimension),
        (10, vec![f32::NAN, 0.0], Refusal::NotFinite),
        (10, vec![f32::INFINITY, 0.0], Refusal::NotFinite),
        (10, vec![100.0, 1.0], Refusal::Norm),
        (0, vec![1.0, 1.0], Refusal::Samples),
        (51, vec![1.0, 1.0], Refusal::Samples),
    ];
    for (samples, vector, _) in &bad {
        world.updates("a", *samples, vector);
    }
    assert!(world.closed.is_empty(), "b may still come");
    let sent: Vec<Refusal> = world.refusals.iter().map(|(_, refusal)| *refusal).collect();
    use Refusal::*;
    assert_eq!(sent, [Unknown, Malformed, Dimension, NotFinite, Norm, Samples], "each sent once a round");
    world.updates("b", 10, &[1.0, 1.0]);
    let record = &world.last().round;
    assert_eq!(record.nodes[0].response, NodeResponse::Refused(Samples));
    assert_eq!(record.nodes[0].contribution, Some(0.0));
    let counts: Vec<u32> = [Dimension, NotFinite, Norm, Samples].map(|r| record.nodes[0].refusals[&r]).into();
    assert_eq!(counts, [1, 2, 1, 2]);
    assert_eq!(record.nodes[1].refusals[&Malformed], 1);
    assert_eq!(record.unknown_refusals[&Unknown], 1);
    // Late for round 1, too early for round 3.
    world.answers("a", Answer::Update(update(1, 10, &[1.0, 1.0])));
    world.answers("a", Answer::Update(update(3, 10, &[1.0, 1.0])));
    assert_eq!(world.refusals[6..], [(node("a"), Late), (node("a"), NotDrawn)]);
    // A loss that is not a number would spoil the record.
    let mut unreal = update(2, 10, &[1.0, 1.0]);
    unreal.loss = f32::NAN;
    world.answers("a", Answer::Update(unreal));
    assert_eq!(world.refusals.last().unwrap().1, NotFinite);
    // A node whose update was refused may mend it in time.
    world.updates("a", 10, &[1.0, 1.0]);
    world.updates("b", 10, &[1.0, 1.0]);
    assert_eq!(world.last().round.arrived(), 2);
}

#[test]
fn a_norm_can_be_clipped_instead() {
    let mut rules = small_config(1);
    rules.admission.norm_max = 5.0;
    rules.admission.on_norm_exceeded = NormPolicy::Clip;
    let mut world = ScriptedFederation::with(rules, 2, &["a"]);
    world.updates("a", 10, &[30.0, 40.0]);
    assert_eq!(world.last().weights.values(), [-1.5, 1.0 - 2.0]);
    assert!(
        matches!(world.last().round.nodes[0].response, NodeResponse::Arrived { norm, .. } if close_to(norm, 50.0))
    );
}

#[test]
fn a_compressed_update_counts_like_its_vector_and_its_wrong_length_is_refused() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut encoded =
        |vector: &[f32]| encode(CodecKind::Bf16, vector, &mut ErrorFeedback::default(), &mut rng);
    let mut world = ScriptedFederation::with(small_config(2), 2, &["a", "b"]);
    for vector in [encoded(&[2.0]), encoded(&[2.0, 4.0])] {
        let update = Update { vector, ..update(1, 10, &[]) };
        world.answers("a", Answer::Update(update));
    }
    assert_eq!(world.refusals, [(node("a"), Refusal::Dimension)]);
    world.updates("b", 10, &[2.0, 4.0]);
    assert_eq!(world.last().weights.values(), [-1.0, -1.0]);
}
