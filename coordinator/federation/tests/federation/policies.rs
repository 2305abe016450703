//! Protection of a federation from standings that no longer hold, and from nodes that do too much.

use evenhand_fairness::Utility;
use evenhand_federation::{AdmissionConfig, FederationConfig, Input, NodeResponse, NormPolicy};
use evenhand_protocol::codec::EncodedUpdate;
use evenhand_protocol::identity::Digest;
use evenhand_protocol::message::{Answer, Phase, Refusal, Why};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use evenhand_testkit::federation::scripted::{
    ScriptedFederation, birth_with_token, node, small_config, update,
};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn audited() -> FederationConfig {
    let mut rules = small_config(4);
    rules.exploring.tested_nodes = 4;
    rules.exploring.window = 5;
    rules.exploring.rounds_max = 20;
    rules.exploring.alpha = 0.999_999;
    rules.exploiting.k = 1;
    rules.exploiting.drift_test_every = 2;
    rules.exploiting.drift_test_window = 5;
    rules.exploiting.drift_test_level = 0.01;
    rules
}

/// Plays `rounds` rounds in which everybody who is asked answers; node `a` gives as much as `worth` says of a round.
fn play(
    rules: FederationConfig,
    seed: u64,
    rounds: usize,
    worth: impl Fn(usize) -> f32,
) -> ScriptedFederation {
    let mut world = ScriptedFederation::with(rules, 2, &NAMES);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    while world.closed.len() < rounds {
        let round = world.closed.len();
        let asked: Vec<String> = world.asked(round as u32 + 1).into_iter().map(str::to_owned).collect();
        for name in asked {
            let mean = if name == "a" { worth(round) } else { 1.0 };
            let vector: [f32; 2] = std::array::from_fn(|_| mean + rng.random_range(-0.5..0.5));
            world.updates(&name, 10, &vector);
        }
    }
    world
}

fn explored_again(world: &ScriptedFederation) -> bool {
    let phases: Vec<Phase> = world.closed.iter().map(|closed| closed.round.phase).collect();
    phases.windows(2).any(|pair| pair == [Phase::Exploiting, Phase::Exploring])
}

#[test]
fn standings_that_no_longer_hold_are_measured_anew() {
    for seed in 0..20 {
        let world = play(audited(), seed, 60, |round| if round < 30 { 1.0 } else { -1.0 });
        assert!(explored_again(&world), "seed {seed}");
        let mut test = world.closed.iter().filter_map(|closed| {
            let record = &closed.round;
            record.verdict.as_ref().filter(|_| record.phase == Phase::Exploiting)
        });
        let called = test.next_back().unwrap();
        assert!(
            called.p_value.unwrap() < 0.01
                && called.reason.to_string().starts_with("contributions have moved")
        );
        assert!(world.standing("a") < 0.0, "what was measured again is what holds now");
    }
}

#[test]
fn standings_that_hold_are_left_alone() {
    let mut alarms = 0;
    for seed in 0..50 {
        // Four tests in each run: ten audit rounds after each five.
        let world = play(audited(), seed, 60, |_| 1.0);
        alarms += u32::from(explored_again(&world));
    }
    // 200 tests at level 0.01.
    assert!(alarms <= 6, "{alarms} false alarms");
}

#[test]
fn audit_rounds_ask_everybody_and_change_no_standing() {
    let world = play(audited(), 1, 30, |_| 1.0);
    let settled: Vec<f64> = world.closed[19].round.nodes.iter().map(|node| node.standing).collect();
    for closed in &world.closed[20..] {
        let record = &closed.round;
        let standings: Vec<f64> = record.nodes.iter().map(|node| node.standing).collect();
        assert_eq!(standings, settled);
        let audit = record.round % 2 == 0;
        assert_eq!(record.nodes.iter().all(|node| node.why == Why::Exploring), audit);
        assert_eq!(record.nodes.iter().all(|node| node.contribution.is_some()), audit);
    }
}

#[test]
fn a_watched_node_that_is_away_is_no_drift() {
    let mut world = play(audited(), 3, 21, |_| 1.0);
    world.goes_offline("b", 1);
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    while world.closed.len() < 60 {
        let round = world.closed.len() as u32 + 1;
        let asked: Vec<String> = world.asked(round).into_iter().map(str::to_owned).collect();
        for name in asked.iter().filter(|name| name.as_str() != "b") {
            let vector: [f32; 2] = std::array::from_fn(|_| 1.0 + rng.random_range(-0.5..0.5));
            world.updates(name, 10, &vector);
        }
    }
    assert!(!explored_again(&world));
}

#[test]
fn who_says_too_much_is_not_heard_until_the_next_round() {
    let mut rules = small_config(2);
    rules.admission.messages_max = 3;
    let mut world = ScriptedFederation::with(rules, 1, &["a", "b"]);
    for _ in 0..3 {
        world.answers("a", Answer::NeedGraph(Digest::of(b"graph")));
    }
    assert_eq!(world.graphs.len(), 3);
    world.answers("a", Answer::NeedGraph(Digest::of(b"graph")));
    world.updates("a", 10, &[1.0]);
    assert_eq!(world.graphs.len(), 3, "not even read");
    let sent: Vec<Refusal> = world.refusals.iter().map(|(_, refusal)| *refusal).collect();
    assert_eq!(sent, [Refusal::Rate], "sent once");
    world.updates("b", 10, &[1.0]);
    world.wait();
    let record = &world.last().round;
    assert_eq!(record.nodes[0].refusals[&Refusal::Rate], 2, "counted every time");
    assert_eq!(record.arrived(), 1);
    world.updates("a", 10, &[1.0]);
    world.updates("b", 10, &[1.0]);
    assert_eq!(world.last().round.arrived(), 2, "a new round, a new start");
}

#[test]
fn requests_from_the_lobby_and_births_are_counted_like_everything_else() {
    let mut rules = small_config(3);
    rules.admission.messages_max = 5;
    let mut world = ScriptedFederation::with(rules, 1, &["a", "b"]);
    for _ in 0..100 {
        world.answers("a", Answer::NeedGraph(Digest::of(b"graph")));
        world.comes_online("b", 1);
        world.step(Input::Malformed { node: node("b") });
    }
    assert_eq!(world.graphs.len(), 4, "and one birth");
    let manifests = |world: &ScriptedFederation, name: &str| {
        world.manifests.iter().filter(|(to, _)| to.as_ref().is_some_and(|to| to.as_str() == name)).count()
    };
    assert_eq!(manifests(&world, "b"), 3, "and two that were no message");
    // Both are there all the same, and the round that follows is theirs.
    world.comes_online("c", 1);
    assert_eq!(world.asked(1), ["a", "b", "c"]);
    for session in 1..100 {
        world.comes_online("c", session);
    }
    assert_eq!(world.asked(1).len(), 3 + 5, "the model went out with each birth that was read");
    assert_eq!(world.federation().open_round(), Some((3, 3)));
    for name in ["a", "b", "c"] {
        world.updates(name, 10, &[1.0]);
    }
    // Its update was one message too many, so the round waited for it in vain.
    world.wait();
    assert_eq!(world.last().round.arrived(), 2);
    assert_eq!(world.last().round.nodes[2].refusals[&Refusal::Rate], 95);
    for name in ["a", "b", "c"] {
        world.updates(name, 10, &[1.0]);
    }
    assert_eq!(world.last().round.arrived(), 3, "a new round, a new start");
}

#[test]
fn who_is_no_longer_welcome_gets_no_further_model() {
    let mut rules = small_config(3);
    rules.exploring.window = 50;
    let mut world = ScriptedFederation::with(rules.clone(), 1, &["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        world.updates(name, 10, &[1.0]);
    }
    rules.admission.nodes = vec![node("a"), node("b")];
    rules.admission.token_sha256 = Digest::of(b"open sesame").to_string();
    world.tasks.clear();
    // The next start: c is off the list, a knows the token, b does not.
    world.restart(rules);
    assert!(world.asked(2).is_empty(), "nobody has shown the token");
    world.updates("c", 10, &[1.0]);
    for (name, token) in [("a", Some("open sesame")), ("b", None), ("c", Some("open sesame"))] {
        world.step(Input::Status { node: node(name), status: birth_with_token(token) });
    }
    assert_eq!(world.asked(2), ["a"]);
    world.updates("b", 10, &[1.0]);
    world.updates("a", 10, &[1.0]);
    let unknown = ["b", "c"].map(|name| (node(name), Refusal::Unknown));
    assert!(world.refusals.iter().all(|refusal| unknown.contains(refusal)), "{:?}", world.refusals);
    let record = &world.last().round;
    assert_eq!((record.round, record.arrived()), (2, 1));
    assert_eq!(record.nodes[1].response, NodeResponse::Refused(Refusal::Unknown));
    assert_eq!(world.asked(3), ["a"]);
    // It is welcome again as soon as it shows the token.
    world.step(Input::Status { node: node("b"), status: birth_with_token(Some("open sesame")) });
    world.updates("a", 10, &[1.0]);
    assert_eq!(world.asked(4), ["a", "b"]);
}

/// θ after one round in which `b` sends this.
fn moved_by(vector: &[f32], samples: u32) -> (Vec<f32>, usize) {
    let mut rules = small_config(3);
    rules.admission.norm_max = 2.0;
    rules.admission.on_norm_exceeded = NormPolicy::Clip;
    let mut world = ScriptedFederation::with(rules, 3, &["a", "b", "c"]);
    world.updates("a", 40, &[1.0, 0.5, 0.0]);
    world.answers("b", Answer::Update(update(1, samples, vector)));
    world.updates("c", 60, &[0.5, 1.0, -0.5]);
    (world.last().weights.values().to_vec(), world.last().round.arrived())
}

proptest! {
    #[test]
    fn a_hostile_node_moves_the_model_by_its_clipped_share_at_most(
        vector in prop::array::uniform3(any::<f32>()),
        samples in 0..200u32,
    ) {
        let (moved, arrived) = moved_by(&vector, samples);
        prop_assert!(moved.iter().all(|value| value.is_finite()));
        if arrived == 3 {
            let (still, _) = moved_by(&[0.0; 3], samples);
            let distance: f64 =
                moved.iter().zip(&still).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt();
            // η · p · the limit.
            let share = f64::from(samples) / f64::from(100 + samples);
            prop_assert!(distance <= 0.5 * share * 2.0 + 1e-6, "{distance} with a share of {share}");
        } else {
            // Refused: as if it had said nothing.
            let (without, _) = moved_by(&[f32::NAN; 3], samples);
            prop_assert_eq!(moved, without);
        }
    }
}

/// Four nodes that agree, and a fifth that sends the opposite with this norm and this many samples, judged by the limits that
/// hold by default; what each is then worth.
fn beside_a_loud_one(limited: bool, norm: f32, samples: u32) -> ScriptedFederation {
    let mut rules = small_config(5);
    let usual = AdmissionConfig::default();
    if limited {
        rules.admission.norm_ratio_max = usual.norm_ratio_max;
        rules.admission.samples_ratio_max = usual.samples_ratio_max;
    }
    rules.admission.norm_max = usual.norm_max;
    rules.training.samples_max = 4096;
    rules.contribution.utility = Utility::Projection;
    let mut world = ScriptedFederation::with(rules, 2, &["a", "b", "c", "d", "e"]);
    for name in ["a", "b", "c", "d"] {
        world.updates(name, 8, &[0.6, 0.8]);
    }
    world.updates("e", samples, &[-0.6 * norm, -0.8 * norm]);
    world
}

#[test]
fn the_loudest_does_not_earn_the_best_standing() {
    for (norm, samples) in [(1000.0, 8), (1.0, 4096)] {
        let trusted = beside_a_loud_one(false, norm, samples);
        assert!(trusted.standing("e") > 1.0 && trusted.standing("a") < 0.0, "taken at its word");
        let world = beside_a_loud_one(true, norm, samples);
        // As if it had sent three times the median: g = (4 − 3)/… along the others, φ = 1 each and −3.
        let standings = ["a", "e"].map(|name| world.standing(name));
        assert!((standings[0] - 1.0).abs() < 1e-6 && (standings[1] + 3.0).abs() < 1e-6, "{standings:?}");
        let theta = world.last().weights.values();
        assert!(theta[0] < 0.0 && theta[1] < 1.0, "and the model goes with the others: {theta:?}");
        // What it sent is on record as it was sent.
        let NodeResponse::Arrived { norm: reported, samples: claimed, weight, .. } =
            world.last().round.nodes[4].response
        else {
            panic!("{:?}", world.last().round.nodes[4]);
        };
        assert!((reported - f64::from(norm)).abs() < 1e-3 * f64::from(norm) && claimed == samples);
        assert!((weight - if samples > 8 { 3.0 / 7.0 } else { 0.2 }).abs() < 1e-12, "{weight}");
        let sent = EncodedUpdate::F32(vec![-0.6 * norm, -0.8 * norm]);
        assert_eq!(world.last().received().updates[4].1.vector, sent);
    }
}

#[test]
fn limits_beside_the_others_need_others_and_spare_who_keeps_to_them() {
    let mut rules = small_config(2);
    rules.admission.norm_ratio_max = 3.0;
    rules.admission.samples_ratio_max = 3.0;
    let mut world = ScriptedFederation::with(rules, 1, &["a", "b"]);
    // Of two the louder one is limited, to three times the other: shares 1/4 and 3/4; and so is the product of samples and
    // length, to three times the other's, which leaves it a length of 1: θ = −½(¼ + ¾).
    world.updates("a", 10, &[1.0]);
    world.updates("b", 100, &[50.0]);
    assert_eq!(world.last().weights.values(), [-0.5]);
    // Updates of zero say nothing about the length of others, and within the limits nothing changes.
    world.updates("a", 10, &[0.0]);
    world.updates("b", 30, &[2.0]);
    assert_eq!(world.last().weights.values(), [-0.5 - 0.5 * 0.75 * 2.0]);
}

/// One is drawn and one is new: new names could otherwise keep the model from moving, or move it alone.
#[test]
fn a_newcomer_is_held_against_who_was_drawn_and_not_the_other_way_round() {
    for (sent, counts) in [(1e-6, 1e-6), (50.0, 3.0)] {
        let mut rules = small_config(2);
        rules.exploring.rounds_max = 1;
        rules.admission.norm_ratio_max = 3.0;
        rules.admission.samples_ratio_max = 3.0;
        let mut world = ScriptedFederation::with(rules, 1, &["a", "b"]);
        world.comes_online("c", 1);
        world.updates("a", 10, &[1.0]);
        world.updates("b", 10, &[1.0]);
        let before = world.last().weights.values()[0];
        let drawn = world.asked(2).into_iter().find(|name| *name != "c").unwrap().to_owned();
        world.updates(&drawn, 10, &[1.0]);
        world.updates("c", 10, &[sent]);
        assert_eq!(world.last().round.nodes[2].why, Why::Newcomer);
        let moved = before - world.last().weights.values()[0];
        assert!((moved - 0.5 * (1.0 + counts) / 2.0).abs() < 1e-6, "{moved}");
    }
}
