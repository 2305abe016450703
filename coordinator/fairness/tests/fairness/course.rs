//! Contributions told by where all have been going.

use super::assert_close;
use evenhand_fairness::measures::pearson;
use evenhand_fairness::{
    Appraisal, Contributions, Course, FairnessError, Utility, contributions, contributions_on_course,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

fn appraisal() -> Appraisal {
    Appraisal { utility: Utility::Course, course_kept: 0.5, ..Appraisal::default() }
}

fn turn(course: &Course, updates: &[Vec<f32>]) -> Result<(Contributions, Course), FairnessError> {
    let slices: Vec<&[f32]> = updates.iter().map(Vec::as_slice).collect();
    let weights = vec![1.0 / updates.len() as f64; updates.len()];
    contributions_on_course(course, &slices, &weights, &appraisal())
}

#[test]
fn a_first_round_is_as_by_hand() {
    // d = (2, 1)/3. Without themselves, the first two see (1, 1)/3 and agree by 1/√2; the third sees (2, 0)/3.
    let updates = [vec![1.0, 0.0], vec![1.0, 0.0], vec![0.0, 1.0]];
    let (found, course) = turn(&Course::default(), &updates).unwrap();
    let share = (0.5f64).sqrt() / 3.0 / (1.0f64 / 3.0).sqrt();
    assert_close(&found.values, &[share, share, 0.0], 1e-7);
    assert_eq!(found.standard_errors, [0.0; 3]);
    assert_eq!(course.values(), [2.0 / 3.0, 1.0 / 3.0].map(|value: f64| value as f32));
}

#[test]
fn the_past_decides_where_the_round_is_divided() {
    let updates = [vec![3.0, 0.0], vec![0.0, 2.0]];
    let (found, _) = turn(&Course::default(), &updates).unwrap();
    assert_eq!(found.values, [0.0, 0.0], "each is at right angles to the other");
    let (found, course) = turn(&Course::new(vec![8.0, 0.0]), &updates).unwrap();
    // Half of the past: the first sees (4, 1) and agrees by 4/√17, the second sees (5.5, 0).
    assert_close(&found.values, &[(0.5f64).sqrt(), 0.0], 1e-7);
    assert_eq!(course.values(), [5.5, 1.0]);
}

#[test]
fn nobody_is_held_against_its_own_update_however_long() {
    let honest = || vec![1.0f32, 0.2];
    for length in [1.0, 2.0, 1e3] {
        let opposed: Vec<f32> = honest().iter().map(|value| -length * value).collect();
        let updates = [honest(), honest(), honest(), honest(), opposed];
        let (found, _) = turn(&Course::default(), &updates).unwrap();
        assert!(found.values[4] < 0.0, "{length}: {:?}", found.values);
        assert!(length > 3.0 || found.values[..4].iter().all(|value| *value > 0.0), "{:?}", found.values);
    }
    let (alone, _) = turn(&Course::default(), &[honest()]).unwrap();
    assert_eq!(alone.values, [0.0], "nobody vouches for itself");
    let (alone, _) = turn(&Course::new(honest()), &[honest()]).unwrap();
    assert_close(&alone.values, &[1.0], 1e-7);
}

#[test]
fn the_whole_is_worth_at_most_one() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut course = Course::default();
    for _ in 0..50 {
        let updates: Vec<Vec<f32>> =
            (0..7).map(|_| (0..9).map(|_| rng.sample::<f32, _>(StandardNormal) + 0.3).collect()).collect();
        let (found, turned) = turn(&course, &updates).unwrap();
        assert!(found.values.iter().sum::<f64>() <= 1.0 + 1e-12, "{:?}", found.values);
        course = turned;
    }
    let alike = vec![vec![0.5f32, 1.0]; 4];
    let (found, _) = turn(&Course::default(), &alike).unwrap();
    assert_close(&found.values, &[0.25; 4], 1e-7);
}

/// What it is for: noise lengthens an update, and by the sum of its own round a long update agrees with itself.
#[test]
fn noise_costs_standing_where_the_cosine_rewards_it() {
    const NODES: usize = 20;
    const DIM: usize = 400;
    const ROUNDS: usize = 60;
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let noise: Vec<f64> = (0..NODES).map(|node| node as f64 / (NODES - 1) as f64).collect();
    let (mut course, mut by_course, mut by_cosine) = (Course::default(), vec![0.0; NODES], vec![0.0; NODES]);
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
        let kept = Appraisal { utility: Utility::Course, ..Appraisal::default() };
        let (found, turned) = contributions_on_course(&course, &slices, &weights, &kept).unwrap();
        course = turned;
        by_course.iter_mut().zip(found.values).for_each(|(sum, value)| *sum += value);
        let found = contributions(&slices, &weights, &Appraisal::default(), &mut rng).unwrap();
        by_cosine.iter_mut().zip(found.values).for_each(|(sum, value)| *sum += value);
    }
    let (course, cosine) = (pearson(&noise, &by_course).unwrap(), pearson(&noise, &by_cosine).unwrap());
    println!("correlation of noise and standing: course {course:.3}, cosine {cosine:.3}");
    assert!(course < -0.9, "{course}");
    assert!(cosine > 0.5, "{cosine}");
}

#[test]
fn what_cannot_be_is_refused() {
    let updates = [vec![1.0f32, 0.0]];
    let refused = |course: Vec<f32>| turn(&Course::new(course), &updates).unwrap_err().to_string();
    assert_eq!(refused(vec![1.0]), "course has 1 values, expected 2");
    assert_eq!(refused(vec![f32::NAN, 0.0]), "course is not finite");
    let nowhere = Appraisal { course_kept: 1.0, ..appraisal() };
    let error = contributions_on_course(&Course::default(), &[&updates[0]], &[1.0], &nowhere).unwrap_err();
    assert_eq!(error.to_string(), "course_kept = 1 must be at least 0 and below 1");
}
