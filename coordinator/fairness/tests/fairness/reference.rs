//! Reference contributions: what they tell apart, and what they do not reward.

use evenhand_fairness::reference::{ReferenceAnswer, ReferenceMeasurement};
use evenhand_fairness::{
    inclusion_probabilities, sampling_probabilities, shrunk_standings, temperature_for_worst_wait,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const DIM: usize = 600;
const NODES: usize = 12;
const ROUNDS: usize = 150;

/// A normal deviate, near enough.
fn normal(rng: &mut ChaCha8Rng) -> f32 {
    (0..12).map(|_| rng.random::<f32>()).sum::<f32>() - 6.0
}

fn vector(rng: &mut ChaCha8Rng) -> Vec<f32> {
    (0..DIM).map(|_| normal(rng)).collect()
}

/// Nodes whose gradients have one mean in common and noise of their own.
struct World {
    rng: ChaCha8Rng,
    mean: Vec<f32>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mean = vector(&mut rng);
        Self { rng, mean }
    }

    /// One gradient: the mean and `noise` times as much noise.
    fn gradient(&mut self, noise: f32) -> Vec<f32> {
        let mean = self.mean.clone();
        mean.into_iter().map(|value| value + noise * normal(&mut self.rng)).collect()
    }

    /// Standings after some rounds in which `answer` may replace what a node sends.
    fn run(
        &mut self,
        mut answer: impl FnMut(usize, usize, Vec<f32>, &mut ChaCha8Rng) -> Option<Vec<f32>>,
    ) -> ReferenceMeasurement {
        let mut measurement = ReferenceMeasurement::new(200.0);
        for round in 0..ROUNDS {
            let honest: Vec<Vec<f32>> =
                (0..NODES).map(|node| self.gradient(2.0 + 0.5 * node as f32)).collect();
            let sent: Vec<Option<Vec<f32>>> = honest
                .into_iter()
                .enumerate()
                .map(|(node, gradient)| answer(round, node, gradient, &mut self.rng))
                .collect();
            let answers: Vec<ReferenceAnswer<'_>> = sent
                .iter()
                .enumerate()
                .map(|(node, gradient)| ReferenceAnswer { node, gradient: gradient.as_deref() })
                .collect();
            measurement.measure(&answers).unwrap();
        }
        measurement
    }
}

fn standings(measurement: &ReferenceMeasurement) -> Vec<f64> {
    (0..NODES).map(|node| measurement.standing(node).value).collect()
}

/// π of every node, twins sharing the odds of one, as the federation draws among those who `belong` to it.
fn odds_among(measurement: &ReferenceMeasurement, k: usize, belong: fn(usize) -> bool) -> Vec<f64> {
    let mut groups = measurement.twins().groups(NODES);
    groups.retain(|group| group.iter().all(|node| belong(*node)));
    let (values, errors): (Vec<f64>, Vec<f64>) = groups
        .iter()
        .map(|group| {
            let best = group.iter().map(|node| measurement.standing(*node));
            let best = best.max_by(|a, b| a.value.total_cmp(&b.value)).unwrap();
            (best.value, best.standard_error)
        })
        .unzip();
    let shrunk = shrunk_standings(&values, &errors);
    let beta = temperature_for_worst_wait(&shrunk, k, 3.0 * groups.len() as f64 / k as f64).unwrap();
    let inclusion = inclusion_probabilities(&sampling_probabilities(&shrunk, beta), k);
    let mut odds = vec![0.0; NODES];
    for (group, inclusion) in groups.iter().zip(inclusion) {
        group.iter().for_each(|node| odds[*node] = inclusion / group.len() as f64);
    }
    odds
}

fn odds(measurement: &ReferenceMeasurement, k: usize) -> Vec<f64> {
    odds_among(measurement, k, |_| true)
}

#[test]
fn standings_follow_precision() {
    let measurement = World::new(1).run(|_, _, gradient, _| Some(gradient));
    let found = standings(&measurement);
    assert!(found.is_sorted_by(|a, b| a > b), "{found:?}");
    assert_eq!(measurement.twins().pairs().count(), 0);
    // cos of one gradient with the mean is 1/√(1 + noise²): the reliability takes out what the direction lacks.
    let first = measurement.standing(0);
    assert!((first.precision - 1.0 / 5f64.sqrt()).abs() < 0.02, "{first:?}");
    assert!((first.self_similarity - 0.2).abs() < 0.02, "{first:?}");
    assert!((first.bias() - 1.0).abs() < 0.05, "{first:?}");
}

#[test]
fn the_standing_is_precision_by_self_similarity() {
    let measurement = World::new(10).run(|_, _, gradient, _| Some(gradient));
    for node in 0..NODES {
        let found = measurement.standing(node);
        let expected = found.precision.powf(0.25) * found.bias().powf(0.75);
        assert!((found.value - expected).abs() < 1e-12, "{found:?}");
    }
}

/// Standings of equal nodes, with their errors: so many worlds of twelve nodes each.
fn equal_nodes(worlds: u64, gradient: impl Fn(&mut World, usize) -> Vec<f32>) -> (f64, f64) {
    let (mut squares, mut errors, mut count) = (0.0, 0.0, 0.0);
    for seed in 0..worlds {
        let mut world = World::new(100 + seed);
        let mut measurement = ReferenceMeasurement::new(200.0);
        for _ in 0..ROUNDS {
            let gradients: Vec<Vec<f32>> = (0..NODES).map(|node| gradient(&mut world, node)).collect();
            let answers: Vec<ReferenceAnswer<'_>> = gradients
                .iter()
                .enumerate()
                .map(|(node, gradient)| ReferenceAnswer { node, gradient: Some(gradient) })
                .collect();
            measurement.measure(&answers).unwrap();
        }
        let found: Vec<_> = (0..NODES).map(|node| measurement.standing(node)).collect();
        let mean = found.iter().map(|standing| standing.value).sum::<f64>() / NODES as f64;
        squares += found.iter().map(|standing| (standing.value - mean).powi(2)).sum::<f64>();
        errors += found.iter().map(|standing| standing.standard_error.powi(2)).sum::<f64>();
        count += (NODES - 1) as f64;
    }
    ((squares / count).sqrt(), (errors / (worlds as f64 * NODES as f64)).sqrt())
}

#[test]
fn errors_of_standings_are_those_made() {
    for noise in [1.0f32, 3.0] {
        let (made, told) = equal_nodes(6, |world, _| world.gradient(noise));
        println!("noise {noise}: standings of equal nodes deviate by {made:.5}, their errors say {told:.5}");
        assert!(told > 0.75 * made && told < 1.6 * made, "noise {noise}: {told} for {made}");
    }
}

#[test]
fn opposite_samples_cost_standing_though_they_scatter_along_the_mean() {
    // A share of the samples has the opposite gradient: their scatter is along the mean, where whitening must not hide it.
    let mut world = World::new(11);
    let mut measurement = ReferenceMeasurement::new(200.0);
    for _ in 0..ROUNDS {
        let gradients: Vec<Vec<f32>> = (0..NODES)
            .map(|node| {
                let mut sum = vec![0.0; DIM];
                for _ in 0..4 {
                    let wrong = world.rng.random::<f64>() < 0.3 * node as f64 / (NODES - 1) as f64;
                    let sample = world.gradient(1.0);
                    let sign = if wrong { -1.0 } else { 1.0 };
                    sum.iter_mut().zip(sample).for_each(|(sum, value)| *sum += sign * value);
                }
                sum
            })
            .collect();
        let answers: Vec<ReferenceAnswer<'_>> = gradients
            .iter()
            .enumerate()
            .map(|(node, gradient)| ReferenceAnswer { node, gradient: Some(gradient) })
            .collect();
        measurement.measure(&answers).unwrap();
    }
    let found = standings(&measurement);
    let wrong: Vec<f64> = (0..NODES).map(|node| -(node as f64)).collect();
    let rho = evenhand_fairness::measures::pearson(&wrong, &found).unwrap();
    assert!(rho > 0.9, "{rho}: {found:?}");
}

#[test]
fn half_of_the_answers_have_half_of_the_standing() {
    let whole = World::new(12).run(|_, _, gradient, _| Some(gradient)).standing(4);
    for missing in [None, Some(vec![0.0; DIM])] {
        let half = World::new(12).run(|round, node, gradient, _| match node {
            4 if round % 2 == 0 => missing.clone(),
            _ => Some(gradient),
        });
        let half = half.standing(4);
        assert!((half.value / whole.value - 0.5).abs() < 0.03, "{half:?} {whole:?}");
        assert!((half.self_similarity / whole.self_similarity - 1.0).abs() < 0.1, "{half:?} {whole:?}");
    }
}

#[test]
fn lengths_earn_nothing() {
    let honest = World::new(2).run(|_, _, gradient, _| Some(gradient));
    let long = World::new(2).run(|_, node, gradient, _| {
        let factor = if node == 6 { 1000.0 } else { 1.0 };
        Some(gradient.into_iter().map(|value| factor * value).collect())
    });
    for (a, b) in standings(&honest).into_iter().zip(standings(&long)) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
}

#[test]
fn a_systematic_fault_costs_bias_and_not_precision_alone() {
    // Node 3 shows another mean, at 60 degrees, with less noise than anybody's.
    let mut other = None;
    let measurement = World::new(3).run(|_, node, gradient, rng| {
        let other = other.get_or_insert_with(|| vector(rng));
        Some(match node {
            3 => gradient.iter().zip(other.iter()).map(|(a, b)| 0.5 * a + 3.0 * b).collect(),
            _ => gradient,
        })
    });
    let found = measurement.standing(3);
    assert!(found.bias() < 0.4, "{found:?}");
    assert!(standings(&measurement)[11] > 0.0);
}

#[test]
fn nothing_beats_honest_work_with_the_same_data() {
    const CHEAT: usize = 5;
    let honest = odds(&World::new(4).run(|_, _, gradient, _| Some(gradient)), 4)[CHEAT];
    type Attack = fn(usize, &[f32], &mut Vec<Vec<f32>>, &mut ChaCha8Rng) -> Option<Vec<f32>>;
    let attacks: [(&str, Attack); 8] = [
        ("nothing", |_, _, _, _| None),
        ("zeros", |_, gradient, _, _| Some(vec![0.0; gradient.len()])),
        ("noise", |_, _, _, rng| Some(vector(rng))),
        ("noise, loud", |_, _, _, rng| Some(vector(rng).into_iter().map(|value| 1e4 * value).collect())),
        ("the opposite, loud", |_, gradient, _, _| Some(gradient.iter().map(|value| -3.0 * value).collect())),
        ("the first answer again", |_, gradient, kept, _| {
            kept.push(gradient.to_vec());
            kept.first().cloned()
        }),
        ("the first answer and a little noise", |_, gradient, kept, rng| {
            kept.push(gradient.to_vec());
            Some(kept[0].iter().map(|value| value + 0.5 * normal(rng)).collect())
        }),
        ("ten answers in turn", |round, gradient, kept, _| {
            if kept.len() < 10 {
                kept.push(gradient.to_vec());
            }
            Some(kept[round % kept.len()].clone())
        }),
    ];
    for (name, attack) in attacks {
        let mut kept = Vec::new();
        let measurement = World::new(4).run(|round, node, gradient, rng| {
            if node == CHEAT { attack(round, &gradient, &mut kept, rng) } else { Some(gradient) }
        });
        let gained = odds(&measurement, 4)[CHEAT] / honest;
        assert!(gained < 1.05, "{name}: {gained}");
    }
}

/// Odds of the owner of node 6 under two names, the second with so much noise, divided by those under one.
fn gain_of_two_names(seed: u64, noise: f32) -> f64 {
    // Under one name: node 7 is not there.
    let alone = World::new(seed).run(|_, node, gradient, _| (node != 7).then_some(gradient));
    let mut twin: Vec<f32> = Vec::new();
    let mut own = ChaCha8Rng::seed_from_u64(seed);
    let both = World::new(seed).run(|_, node, gradient, _| {
        if node == 6 {
            twin = gradient.clone();
        }
        Some(match node {
            7 => twin.iter().map(|value| value + noise * 5.0 * normal(&mut own)).collect(),
            _ => gradient,
        })
    });
    assert_eq!(both.twins().pairs().collect::<Vec<_>>(), [(6, 7)], "noise {noise}");
    let found = odds(&both, 4);
    (found[6] + found[7]) / odds_among(&alone, 4, |node| node != 7)[6]
}

#[test]
fn two_names_have_the_odds_of_one() {
    for noise in [0.0, 0.2, 0.5] {
        let gains: Vec<f64> = (5..8).map(|seed| gain_of_two_names(seed, noise)).collect();
        let mean = gains.iter().sum::<f64>() / gains.len() as f64;
        assert!(mean < 1.1, "noise {noise}: {gains:?}");
    }
}

#[test]
fn a_quarter_that_colludes_does_not_change_the_order_of_the_others() {
    for (name, fresh) in [("one fixed vector", false), ("a shared fresh vector", true)] {
        let mut shared: (usize, Vec<f32>) = (usize::MAX, Vec::new());
        let measurement = World::new(6).run(|round, node, gradient, rng| {
            if shared.1.is_empty() || fresh && shared.0 != round {
                shared = (round, vector(rng));
            }
            // A little noise each, so that they are neither repeats nor copies.
            let collude = |value: &f32| value + 0.3 * normal(rng);
            Some(if node >= 9 { shared.1.iter().map(collude).collect() } else { gradient })
        });
        let found = standings(&measurement);
        assert!(found[..9].is_sorted_by(|a, b| a > b), "{name}: {found:?}");
        assert!(found[9..].iter().all(|colluder| *colluder < found[8]), "{name}: {found:?}");
    }
}

/// 400 rounds of honest answers raise no alarm.
fn raise_no_alarm(mut answers_of_a_round: impl FnMut() -> Vec<Vec<f32>>) {
    let mut measurement = ReferenceMeasurement::new(200.0);
    for round in 0..400 {
        let gradients = answers_of_a_round();
        let answers: Vec<ReferenceAnswer<'_>> = gradients
            .iter()
            .enumerate()
            .map(|(node, gradient)| ReferenceAnswer { node, gradient: Some(gradient) })
            .collect();
        assert_eq!(measurement.measure(&answers).unwrap().repeated, [0usize; 0], "round {round}");
        assert_eq!(measurement.twins().pairs().next(), None, "round {round}");
    }
}

#[test]
fn honest_nodes_are_not_taken_for_twins_or_repeats() {
    // Precise nodes, whose answers are much alike, and a disturbance that all have in common in a round.
    let mut world = World::new(7);
    raise_no_alarm(|| {
        let common = vector(&mut world.rng);
        let disturbed = |node: usize| {
            let own = world.gradient(0.3 + 0.1 * node as f32);
            own.iter().zip(&common).map(|(a, b)| a + 0.3 * b).collect()
        };
        (0..NODES).map(disturbed).collect()
    });
}

#[test]
fn households_whose_gradients_lie_in_few_directions_are_not_taken_for_twins_or_repeats() {
    // What is new in an answer is where the node is in three directions, among which it wanders over hours, and little else.
    let mut world = World::new(8);
    let directions: [Vec<f32>; 3] = std::array::from_fn(|_| vector(&mut world.rng));
    let mut places = [[0.0f32; 3]; NODES];
    raise_no_alarm(|| {
        let mut answers = Vec::new();
        for place in &mut places {
            for at in place.iter_mut() {
                *at = 0.8 * *at + 0.6 * normal(&mut world.rng);
            }
            let mut answer = world.gradient(0.3);
            for (direction, at) in directions.iter().zip(place) {
                answer.iter_mut().zip(direction).for_each(|(value, along)| *value += *at * along);
            }
            answers.push(answer);
        }
        answers
    });
}

#[test]
fn a_node_alone_earns_nothing() {
    let mut world = World::new(8);
    let mut measurement = ReferenceMeasurement::new(200.0);
    for _ in 0..20 {
        let gradient = world.gradient(0.1);
        let found = measurement.measure(&[ReferenceAnswer { node: 0, gradient: Some(&gradient) }]).unwrap();
        assert!(found.contributions.iter().all(|value| *value == 0.0), "{found:?}");
    }
    assert_eq!(measurement.standing(0).value, 0.0);
}

#[test]
fn other_reference_weights_change_no_standing() {
    let mut world = World::new(9);
    let mut measurement = world.run(|_, _, gradient, _| Some(gradient));
    let before = standings(&measurement);
    measurement.change_reference();
    assert_eq!(standings(&measurement), before);
    // At the new weights gradients have another mean.
    world.mean = vector(&mut world.rng);
    for _ in 0..100 {
        let gradients: Vec<Vec<f32>> =
            (0..NODES).map(|node| world.gradient(2.0 + 0.5 * node as f32)).collect();
        let answers: Vec<ReferenceAnswer<'_>> = gradients
            .iter()
            .enumerate()
            .map(|(node, gradient)| ReferenceAnswer { node, gradient: Some(gradient) })
            .collect();
        measurement.measure(&answers).unwrap();
    }
    for (before, after) in before.into_iter().zip(standings(&measurement)) {
        assert!((before / after - 1.0).abs() < 0.1, "{before} {after}");
    }
}

#[test]
fn answers_of_another_length_or_not_finite_are_named_and_change_nothing() {
    let mut measurement = ReferenceMeasurement::new(200.0);
    let (a, b) = ([1.0f32, 2.0], [1.0f32]);
    let answers = |second| {
        [
            ReferenceAnswer { node: 0, gradient: Some(&a[..]) },
            ReferenceAnswer { node: 1, gradient: Some(second) },
        ]
    };
    let error = measurement.measure(&answers(&b[..])).unwrap_err();
    assert_eq!(error.to_string(), "answers[1] has 1 values, expected 2");
    let error = measurement.measure(&answers(&[f32::NAN, 1.0][..])).unwrap_err();
    assert_eq!(error.to_string(), "answers[1] is not finite");
    assert_eq!(measurement, ReferenceMeasurement::new(200.0));
}
