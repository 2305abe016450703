//! Contributions by agreement with the direction of the rounds so far.

use super::assert_close;
use evenhand_fairness::measures::pearson;
use evenhand_fairness::utility::DirectionEma;
use evenhand_fairness::{
    ContributionConfig, Contributions, FairnessError, Measurement, Utility, UtilityState, contributions,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

fn config() -> ContributionConfig {
    ContributionConfig { utility: Utility::Direction, direction_decay: 0.5, ..ContributionConfig::default() }
}

/// The contributions of a round after the direction `before`, and the direction after it.
fn advance(
    before: &DirectionEma,
    updates: &[Vec<f32>],
) -> Result<(Contributions, DirectionEma), FairnessError> {
    let slices: Vec<&[f32]> = updates.iter().map(Vec::as_slice).collect();
    let weights = vec![1.0 / updates.len() as f64; updates.len()];
    let mut measurement = Measurement::with_state(config(), UtilityState::Direction(before.clone()))?;
    let found = measurement.measure(&slices, &weights, &mut ChaCha8Rng::seed_from_u64(0))?;
    let UtilityState::Direction(after) = measurement.state() else { panic!("{measurement:?}") };
    Ok((found, after.clone()))
}

#[test]
fn a_first_round_is_as_by_hand() {
    // d = (2, 1)/3. Without themselves, the first two see (1, 1)/3 and agree by 1/√2; the third sees (2, 0)/3.
    let updates = [vec![1.0, 0.0], vec![1.0, 0.0], vec![0.0, 1.0]];
    let (found, direction) = advance(&DirectionEma::default(), &updates).unwrap();
    let share = (0.5f64).sqrt() / 3.0 / (1.0f64 / 3.0).sqrt();
    assert_close(&found.values, &[share, share, 0.0], 1e-7);
    assert_eq!(found.standard_errors, [0.0; 3]);
    assert_eq!(direction.values(), [2.0 / 3.0, 1.0 / 3.0].map(|value: f64| value as f32));
}

#[test]
fn the_past_decides_where_the_round_is_divided() {
    let updates = [vec![3.0, 0.0], vec![0.0, 2.0]];
    let (found, _) = advance(&DirectionEma::default(), &updates).unwrap();
    assert_eq!(found.values, [0.0, 0.0], "each is at right angles to the other");
    let (found, direction) = advance(&DirectionEma::new(vec![8.0, 0.0]), &updates).unwrap();
    // Half of the past: the first sees (4, 1) and agrees by 4/√17, the second sees (5.5, 0).
    assert_close(&found.values, &[(0.5f64).sqrt(), 0.0], 1e-7);
    assert_eq!(direction.values(), [5.5, 1.0]);
}

#[test]
fn no_update_is_compared_with_itself_however_long() {
    let honest = || vec![1.0f32, 0.2];
    for length in [1.0, 2.0, 1e3] {
        let opposed: Vec<f32> = honest().iter().map(|value| -length * value).collect();
        let updates = [honest(), honest(), honest(), honest(), opposed];
        let (found, _) = advance(&DirectionEma::default(), &updates).unwrap();
        assert!(found.values[4] < 0.0, "{length}: {:?}", found.values);
        assert!(length > 3.0 || found.values[..4].iter().all(|value| *value > 0.0), "{:?}", found.values);
    }
    let (alone, _) = advance(&DirectionEma::default(), &[honest()]).unwrap();
    assert_eq!(alone.values, [0.0], "nobody vouches for itself");
    let (alone, _) = advance(&DirectionEma::new(honest()), &[honest()]).unwrap();
    assert_close(&alone.values, &[1.0], 1e-7);
}

#[test]
fn the_value_of_all_is_at_most_one() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut direction = DirectionEma::default();
    for _ in 0..50 {
        let updates: Vec<Vec<f32>> =
            (0..7).map(|_| (0..9).map(|_| rng.sample::<f32, _>(StandardNormal) + 0.3).collect()).collect();
        let (found, after) = advance(&direction, &updates).unwrap();
        assert!(found.values.iter().sum::<f64>() <= 1.0 + 1e-12, "{:?}", found.values);
        direction = after;
    }
    let alike = vec![vec![0.5f32, 1.0]; 4];
    let (found, _) = advance(&DirectionEma::default(), &alike).unwrap();
    assert_close(&found.values, &[0.25; 4], 1e-7);
}

/// The purpose of the utility: noise lengthens an update, and by the sum of its own round a long update agrees with itself.
#[test]
fn noise_costs_standing_where_the_cosine_rewards_it() {
    const NODES: usize = 20;
    const DIM: usize = 400;
    const ROUNDS: usize = 60;
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let noise: Vec<f64> = (0..NODES).map(|node| node as f64 / (NODES - 1) as f64).collect();
    let config = ContributionConfig { utility: Utility::Direction, ..ContributionConfig::default() };
    let (mut measurement, mut by_direction, mut by_cosine) =
        (Measurement::new(config), vec![0.0; NODES], vec![0.0; NODES]);
    for _ in 0..ROUNDS {
        let updates: Vec<Vec<f32>> = noise
            .iter()
            .map(|noise| {
                let scale = 1.0 + 2.0 * *noise as f32;
                (0..DIM).map(|_| 0.2 + scale * rng.sample::<f32, _>(StandardNormal)).collect()
            })
            .collect();
        let slices: Vec<&[f32]> = updates.iter().map(Vec::as_slice).collect();
        let weights = [1.0 / NODES as f64; NODES];
        let found = measurement.measure(&slices, &weights, &mut rng).unwrap();
        by_direction.iter_mut().zip(found.values).for_each(|(sum, value)| *sum += value);
        let found = contributions(&slices, &weights, &ContributionConfig::default(), &mut rng).unwrap();
        by_cosine.iter_mut().zip(found.values).for_each(|(sum, value)| *sum += value);
    }
    let (direction, cosine) = (pearson(&noise, &by_direction).unwrap(), pearson(&noise, &by_cosine).unwrap());
    println!("correlation of noise and standing: direction {direction:.3}, cosine {cosine:.3}");
    assert!(direction < -0.9, "{direction}");
    assert!(cosine > 0.5, "{cosine}");
}

#[test]
fn invalid_states_and_decays_are_refused() {
    let updates = [vec![1.0f32, 0.0]];
    let refused =
        |direction: Vec<f32>| advance(&DirectionEma::new(direction), &updates).unwrap_err().to_string();
    assert_eq!(refused(vec![1.0]), "direction has 1 values, expected 2");
    assert_eq!(refused(vec![f32::NAN, 0.0]), "direction is not finite");
    let endless = ContributionConfig { direction_decay: 1.0, ..config() };
    let error =
        contributions(&[&updates[0]], &[1.0], &endless, &mut ChaCha8Rng::seed_from_u64(0)).unwrap_err();
    assert_eq!(error.to_string(), "direction_decay = 1 must be at least 0 and below 1");
}
