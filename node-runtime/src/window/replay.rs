//! Selection of samples for a training batch.

use rand::Rng;
use rand::seq::SliceRandom;

/// Positions of the samples of one batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SampleChoice {
    /// Those used before, then the fresh ones, each oldest first.
    pub(super) all: Vec<usize>,
    /// Number of fresh ones.
    pub(super) fresh: usize,
}

/// The newest of the `fresh` samples, and as many drawn from the `old` ones as make up `share` of at most `samples_max`.
///
/// Both come oldest first. Without fresh samples there is nothing to train on.
pub(super) fn choose(
    fresh: &[usize],
    mut old: Vec<usize>,
    samples_max: usize,
    share: f64,
    generator: &mut impl Rng,
) -> Option<SampleChoice> {
    let fresh_max = samples_max - (samples_max as f64 * share) as usize;
    let fresh = &fresh[fresh.len().saturating_sub(fresh_max)..];
    if fresh.is_empty() {
        return None;
    }
    let wanted = (fresh.len() as f64 * share / (1.0 - share)) as usize;
    let wanted = wanted.min(samples_max - fresh.len()).min(old.len());
    let mut all = old.partial_shuffle(generator, wanted).0.to_vec();
    all.sort_unstable();
    all.extend(fresh);
    Some(SampleChoice { all, fresh: fresh.len() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    #[test]
    fn a_share_of_a_half_is_one_old_sample_for_each_fresh_one() {
        let mut generator = ChaCha8Rng::seed_from_u64(1);
        let choice = choose(&[50, 51, 52], (0..50).collect(), 8, 0.5, &mut generator).unwrap();
        assert_eq!((choice.all.len(), choice.fresh), (6, 3));
        assert_eq!(choice.all[3..], [50, 51, 52]);
        assert_eq!(choose(&[], (0..50).collect(), 8, 0.5, &mut generator), None, "nothing is new");
    }

    proptest! {
        #[test]
        fn a_choice_is_bounded_sorted_and_ends_with_the_newest(old in 0usize..40, fresh in 0usize..40, samples_max in 0usize..30, share in 0.0f64..1.0, seed: u64) {
            let fresh: Vec<usize> = (old..old + fresh).collect();
            let mut generator = ChaCha8Rng::seed_from_u64(seed);
            let Some(choice) = choose(&fresh, (0..old).collect(), samples_max, share, &mut generator) else {
                prop_assert!(fresh.is_empty() || samples_max == 0);
                return Ok(());
            };
            prop_assert!(choice.all.len() <= samples_max && choice.fresh > 0);
            prop_assert!(choice.all.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(choice.all.last(), fresh.last());
            let replayed = choice.all.len() - choice.fresh;
            prop_assert!(replayed as f64 <= share * choice.all.len() as f64 + 1e-9);
        }
    }
}
