//! Games with known answers, enumeration as the oracle of every estimator, and what makes a value fair.

use super::{assert_close, close};
use evenhand_fairness::{
    Contributions, Gram,
    game::{CosineGame, FunctionGame, Game},
    shapley::{Effort, exact, leave_one_out, permutation, stratified, stratified_independent},
};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

type BoxedGame = FunctionGame<Box<dyn FnMut(&[bool]) -> f64>>;

fn game(players: usize, value: impl FnMut(&[bool]) -> f64 + 'static) -> BoxedGame {
    FunctionGame::new(players, Box::new(value))
}

fn members(coalition: &[bool]) -> impl Iterator<Item = usize> {
    (0..coalition.len()).filter(|i| coalition[*i])
}

/// A runway is as long as the largest aeroplane needs it (Littlechild and Owen 1973): everybody shares
/// the stretches that they need with all others who need them.
fn airport() -> (BoxedGame, Vec<f64>) {
    let costs = [1.0, 1.0, 2.0, 4.0, 4.5, 7.0];
    let mut values = Vec::new();
    let (mut share, mut before) = (0.0, 0.0);
    for (i, cost) in costs.iter().enumerate() {
        share += (cost - before) / (costs.len() - i) as f64;
        before = *cost;
        values.push(share);
    }
    (game(6, move |s| members(s).map(|i| costs[i]).fold(0.0, f64::max)), values)
}

/// One left glove, two right ones; pairs have a price.
fn gloves() -> (BoxedGame, Vec<f64>) {
    let pairs = |s: &[bool]| f64::from(u8::from(s[0] && (s[1] || s[2])));
    (game(3, pairs), vec![2.0 / 3.0, 1.0 / 6.0, 1.0 / 6.0])
}

/// Four parties with 3, 2, 1 and 1 votes; four carry a motion (Shapley and Shubik 1954).
fn voting() -> (BoxedGame, Vec<f64>) {
    let votes = [3, 2, 1, 1];
    let carried = move |s: &[bool]| f64::from(u8::from(members(s).map(|i| votes[i]).sum::<i32>() >= 4));
    (game(4, carried), vec![0.5, 1.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0])
}

/// It takes two miners to carry a bar of gold.
fn miners() -> (BoxedGame, Vec<f64>) {
    (game(5, |s| (members(s).count() / 2) as f64), vec![0.4; 5])
}

/// The cosine game of updates that share a direction, as those of a fleet do, each noisier than the last.
fn fleet(players: usize) -> CosineGame {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let mut update = |i: usize| -> Vec<f32> {
        let noise = 0.5 + 2.0 * i as f32 / players as f32;
        (0..64).map(|d| (d as f32 * 0.1).sin() + noise * rng.random_range(-2.0..2.0)).collect()
    };
    let updates: Vec<Vec<f32>> = (0..players).map(&mut update).collect();
    let slices: Vec<&[f32]> = updates.iter().map(Vec::as_slice).collect();
    let weights: Vec<f64> =
        (0..players).map(|i| (1.0 + i as f64) / (players * (players + 1) / 2) as f64).collect();
    CosineGame::new(&Gram::of(&slices), &weights, &weights)
}

#[derive(Debug, Clone, Copy)]
enum Sampled {
    Stratified,
    Independent,
    Permutation,
}

const SAMPLED: [Sampled; 3] = [Sampled::Stratified, Sampled::Independent, Sampled::Permutation];

impl Sampled {
    fn estimate(self, game: &mut impl Game, samples: usize, seed: u64) -> Contributions {
        self.estimate_to(game, Effort { samples, standard_error: None }, seed)
    }

    fn estimate_to(self, game: &mut impl Game, effort: Effort, seed: u64) -> Contributions {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        match self {
            Self::Stratified => stratified(game, effort, &mut rng),
            Self::Independent => stratified_independent(game, effort, &mut rng),
            Self::Permutation => permutation(game, effort, &mut rng),
        }
        .unwrap()
    }
}

/// Enumeration must find the known answer, and the mean of many estimates must be it, within four of
/// their standard errors.
fn is_valued(mut game: impl Game, known: &[f64]) {
    let found = exact(&mut game).unwrap();
    assert_close(&found.values, known, 1e-12);
    assert!(found.standard_errors.iter().all(|error| *error == 0.0));
    for method in SAMPLED {
        let found = method.estimate(&mut game, 4000, 5);
        for (i, known) in known.iter().enumerate() {
            let (value, error) = (found.values[i], found.standard_errors[i]);
            assert!(
                (value - known).abs() <= 4.0 * error + 1e-12,
                "{method:?} [{i}]: {value} ± {error}, not {known}"
            );
            assert!(error < 0.02, "{method:?} [{i}]: ± {error}");
        }
    }
}

#[test]
fn the_airport_game_is_valued() {
    let (game, known) = airport();
    is_valued(game, &known);
}

#[test]
fn the_glove_game_is_valued() {
    let (game, known) = gloves();
    is_valued(game, &known);
}

#[test]
fn the_voting_game_is_valued() {
    let (game, known) = voting();
    is_valued(game, &known);
}

#[test]
fn the_miners_game_is_valued() {
    let (game, known) = miners();
    is_valued(game, &known);
}

#[test]
fn the_cosine_game_is_valued() {
    let mut game = fleet(9);
    let known = exact(&mut game).unwrap().values;
    is_valued(game, &known);
}

#[test]
fn leave_one_out_takes_what_is_lost() {
    let (mut game, _) = gloves();
    assert_eq!(leave_one_out(&mut game).values, [1.0, 0.0, 0.0]);
}

/// With interactions of order two at most, an antithetic pair of orders is exact.
#[test]
fn antithetic_pairs_are_exact_for_pairwise_games() {
    let pairwise =
        |s: &[bool]| members(s).map(|i| members(s).map(|j| ((i * 7 + j * 3) % 5) as f64).sum::<f64>()).sum();
    let mut game = game(7, pairwise);
    let known = exact(&mut game).unwrap().values;
    for method in [Sampled::Stratified, Sampled::Permutation] {
        assert_close(&method.estimate(&mut game, 2, 1).values, &known, 1e-12);
    }
}

/// Mean error and root mean square error of many estimates, and the standard error they claimed.
fn errors(method: Sampled, samples: usize) -> (f64, f64, f64) {
    let mut game = fleet(9);
    let known = exact(&mut game).unwrap().values;
    let (trials, player) = (400, 2);
    let (mut sum, mut squares, mut claimed) = (0.0, 0.0, 0.0);
    for seed in 0..trials {
        let found = method.estimate(&mut game, samples, seed);
        let error = found.values[player] - known[player];
        sum += error;
        squares += error * error;
        claimed += found.standard_errors[player].powi(2);
    }
    let n = trials as f64;
    (sum / n, (squares / n).sqrt(), (claimed / n).sqrt())
}

#[test]
fn estimates_are_unbiased_and_know_their_error() {
    for method in SAMPLED {
        let (bias, rms, claimed) = errors(method, 16);
        assert!(bias.abs() < 4.0 * rms / 20.0, "{method:?}: bias {bias}, error of one {rms}");
        assert!((0.85..1.15).contains(&(claimed / rms)), "{method:?}: claims {claimed}, is {rms}");
    }
}

/// Four times the samples, half the error.
#[test]
fn errors_decay_with_the_root_of_the_samples() {
    for method in SAMPLED {
        let decay = errors(method, 16).1 / errors(method, 256).1;
        assert!((3.4..4.6).contains(&decay), "{method:?}: 16 times the samples, error / {decay}");
    }
}

/// Root mean square errors of a round's estimate over 60 seeds, and beside them what they have to tell
/// apart: the spread of the true values. The table of docs/fairness.md.
#[test]
fn the_default_effort_beats_the_published_estimate() {
    println!(
        "| nodes | spread of φ | published (1 each) | stratified, a pair | stratified, 16 | permutation, 16 |"
    );
    for players in [10, 30] {
        let mut game = fleet(players);
        let truth = Sampled::Stratified.estimate(&mut game, 20_000, 99).values;
        let mean = truth.iter().sum::<f64>() / players as f64;
        let spread = (truth.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / players as f64).sqrt();
        let mut rms = |method: Sampled, samples| {
            let squares = |seed| {
                let found = method.estimate(&mut game, samples, seed).values;
                found.iter().zip(&truth).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / players as f64
            };
            ((0..60).map(squares).sum::<f64>() / 60.0).sqrt()
        };
        let published = rms(Sampled::Independent, 1);
        let pair = rms(Sampled::Stratified, 2);
        let default = rms(Sampled::Stratified, 16);
        let permuted = rms(Sampled::Permutation, 16);
        println!(
            "| {players} | {spread:.1e} | {published:.1e} | {pair:.1e} | {default:.1e} | {permuted:.1e} |"
        );
        assert!(pair < 1.5 * published, "a pair is about as good as the published estimate");
        assert!(default < 0.7 * published, "and the default clearly better");
        assert!(permuted > 3.0 * default, "orders alone are far noisier for the cosine");
    }
}

#[test]
fn sampling_goes_on_until_the_wanted_standard_error() {
    let mut game = fleet(9);
    for method in SAMPLED {
        let wanted = 2.0 * errors(method, 256).1;
        let effort = Effort { samples: 100_000, standard_error: Some(wanted) };
        let found = method.estimate_to(&mut game, effort, 3);
        let worst = found.standard_errors.iter().copied().fold(0.0, f64::max);
        assert!(worst <= wanted && worst > 0.5 * wanted, "{method:?}: {worst} for {wanted}");
        let few = Effort { samples: 4, ..effort };
        assert_eq!(method.estimate_to(&mut game, few, 3), method.estimate(&mut game, 4, 3));
    }
}

#[test]
fn a_single_replicate_claims_no_error() {
    let mut game = fleet(5);
    assert!(
        Sampled::Independent.estimate(&mut game, 1, 0).standard_errors.iter().all(|error| error.is_nan())
    );
    assert!(Sampled::Stratified.estimate(&mut game, 2, 0).standard_errors.iter().all(|error| error.is_nan()));
}

/// Values of all coalitions of up to six players.
fn any_values() -> impl Strategy<Value = (usize, Vec<f64>)> {
    (1usize..=6).prop_flat_map(|players| (Just(players), prop::collection::vec(-10.0..10.0f64, 1 << players)))
}

fn index(coalition: impl IntoIterator<Item = usize>) -> usize {
    coalition.into_iter().map(|i| 1 << i).sum()
}

proptest! {
    #[test]
    fn values_share_out_the_whole((players, values) in any_values(), seed: u64) {
        let whole = values[(1 << players) - 1] - values[0];
        let mut game = game(players, move |s| values[index(members(s))]);
        prop_assert!(close(exact(&mut game).unwrap().values.iter().sum(), whole, 1e-9) || whole.abs() < 1e-9);
        let sum: f64 = Sampled::Permutation.estimate(&mut game, 4, seed).values.iter().sum();
        prop_assert!((sum - whole).abs() < 1e-9);
    }

    #[test]
    fn players_who_add_the_same_get_the_same((players, values) in any_values()) {
        prop_assume!(players >= 2);
        // Whether 0 or 1 is in does not matter, only how many of the two.
        let mut game = game(players, move |s| {
            let both = usize::from(s[0]) + usize::from(s[1]);
            values[index(members(s).filter(|i| *i > 1)) | [0, 1, 3][both]]
        });
        let values = exact(&mut game).unwrap().values;
        prop_assert!((values[0] - values[1]).abs() < 1e-9);
    }

    #[test]
    fn who_adds_nothing_gets_nothing((players, values) in any_values(), seed: u64) {
        let mut game = game(players, move |s| values[index(members(s).filter(|i| *i > 0))]);
        prop_assert_eq!(exact(&mut game).unwrap().values[0], 0.0);
        for method in SAMPLED {
            prop_assert_eq!(method.estimate(&mut game, 3, seed).values[0], 0.0);
        }
    }
}
