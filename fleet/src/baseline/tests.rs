//! Known answers of the baselines.
#![allow(clippy::unwrap_used)]

use evenhand_federation::strategy::{AggregatedModel, AggregationInput};
use evenhand_federation::{NodeIndex, Weights};

use super::*;

const NODES: [NodeIndex; 3] = [NodeIndex(0), NodeIndex(1), NodeIndex(2)];

fn weights_of(values: &[f32]) -> Weights {
    Weights::new(values.into())
}

/// A round of two nodes of equal shares and losses, which both answered.
fn round<'a>(latest: &'a Weights, updates: &'a [&'a [f32]]) -> AggregationInput<'a> {
    AggregationInput {
        latest,
        node_models: &[],
        members: 2,
        removed: &[],
        asked: &NODES[..2],
        nodes: &NODES[..2],
        updates,
        weights: &[0.5, 0.5],
        losses: &[1.0, 1.0],
        contributions: None,
        learning_rate: 0.1,
        arrived_share: 1.0,
    }
}

/// θ = (1, 1) with the updates (2, 0) and (0, 4).
fn aggregated(mut strategy: Box<dyn Strategy>) -> AggregatedModel {
    let latest = weights_of(&[1.0, 1.0]);
    let updates: &[&[f32]] = &[&[2.0, 0.0], &[0.0, 4.0]];
    let contributions = Some([0.25, 0.75].as_slice());
    let round = AggregationInput { contributions, ..round(&latest, updates) };
    strategy.aggregate(&round)
}

fn assert_close(found: &Weights, wanted: &[f64]) {
    let close = found.values().iter().zip(wanted).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-6);
    assert!(close && found.values().len() == wanted.len(), "{:?} is not {wanted:?}", found.values());
}

#[test]
fn those_that_average_take_the_weighted_mean() {
    for name in ["evenhand", "fedavg", "gog"] {
        let merged = aggregated((strategy(name).unwrap().create)());
        assert_close(&merged.latest, &[1.0 - 0.1, 1.0 - 0.2]);
        assert!(merged.node_models.is_empty());
    }
}

/// By hand: F = (1, 16), q = 1/2 as F^q = (1, 4); h = (1/2·4 + 10, 1/2·1/4·16 + 40) = (12, 42).
#[test]
fn q_ffl_lets_a_high_loss_weigh_more() {
    let latest = weights_of(&[1.0, 1.0]);
    let mut round = AggregationInput { losses: &[1.0, 16.0], ..round(&latest, &[&[2.0, 0.0], &[0.0, 4.0]]) };
    let merged = QFfl::new(0.5).aggregate(&round);
    assert_close(&merged.latest, &[1.0 - 2.0 / 54.0, 1.0 - 16.0 / 54.0]);
    assert_close(&QFfl::new(0.0).aggregate(&round).latest, &[0.9, 0.8]);
    round.losses = &[0.0, 16.0];
    assert!(QFfl::new(0.5).aggregate(&round).latest.is_finite(), "a loss of 0 is no division by 0");
}

#[test]
fn alone_every_node_takes_its_own_step() {
    let merged = aggregated(Box::new(Standalone));
    assert_close(&merged.node_models[0], &[0.8, 1.0]);
    assert_close(&merged.node_models[1], &[1.0, 0.6]);
    assert_close(&merged.latest, &[1.0, 1.0]);
}

/// By hand: L = (1, 3), n = 2, λ = 0.3, so that w = (0.5 − 0.6, 0.5 + 0.6) = (−0.1, 1.1).
#[test]
fn cons_weighs_updates_by_how_far_their_losses_are_from_the_mean() {
    let latest = weights_of(&[1.0, 1.0]);
    let round = AggregationInput { losses: &[1.0, 3.0], ..round(&latest, &[&[2.0, 0.0], &[0.0, 4.0]]) };
    let merged = Cons::default().aggregate(&round);
    assert_close(&merged.latest, &[1.0 + 0.1 * 0.1 * 2.0, 1.0 - 0.1 * 1.1 * 4.0]);
    assert!(merged.node_models.is_empty(), "one common model");
    assert_close(&Cons::new(0.0).aggregate(&round).latest, &[0.9, 0.8]);
}

/// w is the gradient of the penalised objective, which has a double sum: losses a·θ with a = (2, 0), (0, 4), (1, 1).
#[test]
fn cons_follows_the_gradient_of_the_penalty() {
    let (slopes, losses, lambda) = ([[2.0f32, 0.0], [0.0, 4.0], [1.0, 1.0]], [2.0, 4.0, 3.5], 0.7);
    let mut wanted = [0.0f64; 2];
    for entry in 0..2 {
        for j in 0..3 {
            wanted[entry] += f64::from(slopes[j][entry]) / 3.0;
            for k in 0..3 {
                let difference = f64::from(slopes[j][entry] - slopes[k][entry]);
                wanted[entry] += 2.0 * lambda / 9.0 * (losses[j] - losses[k]) * difference;
            }
        }
    }
    let latest = weights_of(&[1.0, 1.0]);
    let updates: Vec<&[f32]> = slopes.iter().map(|slope| slope.as_slice()).collect();
    let merged = Cons::new(lambda).aggregate(&AggregationInput {
        members: 3,
        asked: &NODES,
        nodes: &NODES,
        weights: &[1.0 / 3.0; 3],
        losses: &losses,
        ..round(&latest, &updates)
    });
    assert_close(&merged.latest, &wanted.map(|step| 1.0 - 0.1 * step));
}

/// Two agree, one is opposed: its reputation falls round by round, and with it how much of the update it receives.
#[test]
fn fgfl_gives_sparser_updates_to_nodes_that_contribute_less() {
    let mut fgfl = Fgfl::default();
    let latest = weights_of(&[0.0; 8]);
    let good: [f32; 8] = [8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0];
    let poor: [f32; 8] = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0];
    let (mut own, mut received) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let merged = fgfl.aggregate(&AggregationInput {
            node_models: &own,
            members: 3,
            asked: &NODES,
            nodes: &NODES,
            weights: &[1.0 / 3.0; 3],
            losses: &[1.0; 3],
            ..round(&latest, &[&good, &good, &poor])
        });
        let changed = |column: usize| {
            let before = own.get(column).unwrap_or(&latest).values().to_vec();
            merged.node_models[column].values().iter().zip(before).filter(|(a, b)| *a != b).count()
        };
        received = (0..3).map(changed).collect();
        own = merged.node_models;
    }
    let reputations: Vec<f64> = (0..3).map(|column| fgfl.node_score(NodeIndex(column)).unwrap()).collect();
    assert!((reputations.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!(reputations[2] < 0.5 * reputations[0], "{reputations:?}");
    assert_eq!(received[..2], [8, 8], "who contributes most receives everything");
    assert!((1..6).contains(&received[2]), "{received:?}");
    let entries = own[2].values();
    assert!(
        entries[0] != 0.0 && entries[7].abs() < entries[0].abs(),
        "the largest entries come first: {entries:?}"
    );
}

/// One round by hand, Γ = 0.01: u = (0.006, 0.008, 0, 0) and (0, 0.01, 0, 0), u_N = (0.003, 0.009, 0, 0); cosines
/// (0.006·0.003 + 0.008·0.009)/(0.01·√0.00009) = 0.948683 for both; reputations stay halves, so both receive all.
#[test]
fn fgfl_has_known_answers() {
    let latest = weights_of(&[0.0; 4]);
    let mut fgfl = Fgfl::default();
    let round = round(&latest, &[&[3.0, 4.0, 0.0, 0.0], &[0.0, 5.0, 0.0, 0.0]]);
    let merged = fgfl.aggregate(&round);
    assert_close(&merged.node_models[0], &[-0.003, -0.009, 0.0, 0.0]);
    let reputation = |fgfl: &Fgfl, column| fgfl.node_score(NodeIndex(column)).unwrap();
    assert!((reputation(&fgfl, 0) - 0.5).abs() < 1e-12, "{fgfl:?}");
    // A node without an update keeps 0.95 of what it had, before all is scaled to sum to 1, and its model as it was.
    let updates: &[&[f32]] = &[&[3.0, 4.0, 0.0, 0.0]];
    let again = fgfl.aggregate(&AggregationInput {
        node_models: &merged.node_models,
        nodes: &NODES[..1],
        updates,
        ..round
    });
    let kept = 0.95 * 0.5;
    let judged = kept + 0.05;
    assert!((reputation(&fgfl, 1) - kept / (kept + judged)).abs() < 1e-12, "{fgfl:?}");
    assert_eq!(again.node_models[1], merged.node_models[1]);
    assert_close(&again.node_models[0], &[-0.003 - 0.003, -0.009 - 0.004, 0.0, 0.0]);
}

/// The norm of each normalised update is Γ: with one node that is the norm of the step.
#[test]
fn fgfl_normalises_updates() {
    let latest = weights_of(&[0.0, 0.0]);
    let merged = Fgfl::default().aggregate(&AggregationInput {
        members: 1,
        asked: &NODES[..1],
        nodes: &NODES[..1],
        weights: &[1.0],
        losses: &[1.0],
        ..round(&latest, &[&[300.0, 400.0]])
    });
    assert_close(&merged.node_models[0], &[-0.006, -0.008]);
}

#[test]
fn gog_draws_by_the_recent_value_of_updates() {
    let mut gog = Gog::with_temperature(0.1);
    assert_eq!(gog.sampling_probabilities(&NODES[..2], &[5.0, 0.0], 1.0), [0.5, 0.5], "nobody is known yet");
    let latest = weights_of(&[0.0]);
    let round = AggregationInput {
        members: 3,
        asked: &NODES,
        nodes: &[NodeIndex(0), NodeIndex(2)],
        contributions: Some(&[0.4, 0.8]),
        ..round(&latest, &[&[1.0], &[1.0]])
    };
    gog.aggregate(&round);
    let relevances: Vec<f64> = (0..3).map(|column| gog.node_score(NodeIndex(column)).unwrap()).collect();
    assert!(relevances.iter().zip([0.1, 0.0, 0.2]).all(|(a, b)| (a - b).abs() < 1e-12), "{relevances:?}");
    let drawn = gog.sampling_probabilities(&[NodeIndex(0), NodeIndex(2)], &[0.0, 0.0], 1.0);
    assert!((drawn[1] / drawn[0] - (0.1f64 / 0.1).exp()).abs() < 1e-9, "by index: {drawn:?}");
    gog.aggregate(&AggregationInput {
        nodes: &NODES[..1],
        updates: &[&[1.0]],
        contributions: Some(&[0.4]),
        ..round
    });
    let relevance = gog.node_score(NodeIndex(2)).unwrap();
    assert!((relevance - 0.75 * 0.2).abs() < 1e-12, "an asked node without an update contributed nothing");
}

#[test]
fn concurrent_draws_in_proportion_to_what_was_measured_so_far() {
    let mut concurrent = Concurrent::default();
    assert_eq!(concurrent.sampling_probabilities(&NODES[..2], &[], 1.0), [0.5, 0.5], "nobody is known yet");
    let latest = weights_of(&[0.0]);
    let measured = |values: &'static [f64]| AggregationInput {
        contributions: Some(values),
        ..round(&latest, &[&[1.0], &[1.0]])
    };
    concurrent.aggregate(&measured(&[0.6, 0.2]));
    concurrent.aggregate(&measured(&[0.2, 0.2]));
    let drawn = concurrent.sampling_probabilities(&NODES, &[0.0; 3], 1.0);
    let close = drawn.iter().zip([0.4, 0.2, 0.3]).all(|(a, b)| (a - b / 0.9).abs() < 1e-12);
    assert!(close, "ψ = 0.4 and 0.2, and their mean for the third: {drawn:?}");
}

/// By hand: of four nodes with shares 0.1, 0.2, 0.3 and 0.4 the first and the third answer, with p = (1/4, 3/4) among
/// themselves; the step is 0.1·2 and 0.3·4, times η = 0.1.
#[test]
fn the_published_step_has_shares_of_all_nodes() {
    let latest = weights_of(&[1.0, 1.0]);
    let round = AggregationInput {
        members: 4,
        nodes: &[NodeIndex(0), NodeIndex(2)],
        weights: &[0.25, 0.75],
        ..round(&latest, &[&[2.0, 0.0], &[0.0, 4.0]])
    };
    let mut step = PublishedStep::new(Box::new(FedAvg), vec![0.1, 0.2, 0.3, 0.4]);
    assert_close(&step.aggregate(&round).latest, &[1.0 - 0.02, 1.0 - 0.12]);
    assert_close(&FedAvg.aggregate(&round).latest, &[1.0 - 0.05, 1.0 - 0.3]);
}

/// By hand: F = (1, 16), q = 0.1; nodes were drawn by their shares, and so weigh alike.
#[test]
fn published_q_ffl_draws_by_shares_of_the_samples() {
    let mut qffl = QFfl::with_shares(vec![0.25, 0.75, 1.0]);
    assert_eq!(qffl.sampling_probabilities(&NODES[..2], &[9.0, 0.0], 1.0), [0.25, 0.75]);
    assert_eq!(QFfl::default().sampling_probabilities(&NODES[..2], &[9.0, 0.0], 1.0), [0.5, 0.5]);
    let latest = weights_of(&[1.0, 1.0]);
    let updates: &[&[f32]] = &[&[2.0, 0.0], &[0.0, 4.0]];
    let unequal =
        AggregationInput { weights: &[0.25, 0.75], losses: &[1.0, 16.0], ..round(&latest, updates) };
    let high = 16f64.powf(0.1);
    let bounds = (0.1 * 4.0 + 10.0) + (0.1 * high / 16.0 * 16.0 + 10.0 * high);
    assert_close(&qffl.aggregate(&unequal).latest, &[1.0 - 2.0 / bounds, 1.0 - 4.0 * high / bounds]);
}

/// A validation loss that is the square of the distance to (0, 0).
#[derive(Debug)]
struct SquaredDistance;

impl Validation for SquaredDistance {
    fn losses(&self, models: &[Weights]) -> Option<Vec<f64>> {
        let square = |model: &Weights| model.values().iter().map(|value| f64::from(*value).powi(2)).sum();
        Some(models.iter().map(square).collect())
    }
}

/// By hand, θ = (1, 1), η = 0.1: U(1) = 2 − (0.8² + 1) = 0.36, U(2) = 2 − (1 + 1.4²) = −0.96 and U(1, 2) = 2 −
/// (0.9² + 1.2²) = −0.25. So φ = ((0.36 + 0.71)/2, (−0.96 − 0.61)/2) = (0.535, −0.785), of which a quarter is kept.
#[test]
fn gog_judges_updates_on_validation_data() {
    let mut gog = Gog::with_validation(std::sync::Arc::new(SquaredDistance), 1);
    let latest = weights_of(&[1.0, 1.0]);
    gog.aggregate(&round(&latest, &[&[2.0, 0.0], &[0.0, -4.0]]));
    let relevances = [0, 1].map(|node| gog.node_score(NodeIndex(node)).unwrap());
    let close = relevances.iter().zip([0.25 * 0.535, 0.25 * -0.785]).all(|(a, b)| (a - b).abs() < 1e-6);
    assert!(close, "{relevances:?}");
    let drawn = gog.sampling_probabilities(&NODES[..2], &[0.0, 0.0], 1.0);
    // Two relevances are two deviations apart.
    assert!((drawn[0] - 1.0 / (1.0 + (-2.0f64).exp())).abs() < 1e-9, "{drawn:?}");
}

/// The worst of three waits nine rounds on average, three times as long as under equal odds.
#[test]
fn the_oracle_draws_by_quality_within_the_promised_wait() {
    let oracle = Oracle::new(vec![0.0, -0.5, -0.9], 1);
    let drawn = oracle.sampling_probabilities(&NODES, &[0.0; 3], 1.0);
    assert!((drawn[2] - 1.0 / 9.0).abs() < 1e-6 && drawn[0] > drawn[1] && drawn[1] > drawn[2], "{drawn:?}");
    let equal = Oracle::new(vec![0.3; 3], 1).sampling_probabilities(&NODES, &[0.0; 3], 1.0);
    assert!(equal.iter().all(|odds| (odds - 1.0 / 3.0).abs() < 1e-12));
}

#[test]
fn absence_shortens_the_common_step_and_no_local_step() {
    let latest = weights_of(&[1.0, 1.0]);
    let round = AggregationInput {
        asked: &NODES[..1],
        nodes: &NODES[..1],
        weights: &[1.0],
        losses: &[1.0],
        arrived_share: 0.5,
        ..round(&latest, &[&[2.0, 0.0]])
    };
    let common: [Box<dyn Strategy>; 2] = [Box::new(FedAvg), Box::new(QFfl::new(0.0))];
    for mut strategy in common {
        assert_close(&strategy.aggregate(&round).latest, &[0.9, 1.0]);
    }
    assert_close(&Standalone.aggregate(&round).node_models[0], &[0.8, 1.0]);
}
