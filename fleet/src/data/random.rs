//! Independent random numbers for each purpose, node and round.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The purpose of random numbers: each purpose, node and round has a stream of its own, in whichever order they are
/// asked for. The discriminants are part of what a seed means.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RandomPurpose {
    Order = 1,
    Classes = 2,
    Corrupted = 3,
    Noise = 4,
    Away = 5,
    Silent = 6,
    Stop = 7,
    Retraining = 8,
    Attending = 9,
    Prediction = 10,
}

/// The generator of one purpose, node and round.
pub(crate) fn generator(seed: u64, purpose: RandomPurpose, node: usize, round: u32) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(((purpose as u64) << 56) | ((node as u64) << 32) | u64::from(round));
    generator
}
