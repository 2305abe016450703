//! Signatures: 512 signs of random sums of a vector, by which many vectors are compared at little cost.

use serde::{Deserialize, Serialize};

const WORDS: usize = 8;

/// Values that a vector must have at least for signatures to tell chance from intent: shorter ones are often alike.
pub(super) const DIMENSION_MIN: usize = 64;

/// Bits of a signature.
pub(super) const BITS: u32 = 64 * WORDS as u32;

/// The signs of 512 sums, each over its own share of the values with random signs. Two vectors at an angle α differ in about
/// 512·α/π bits (Charikar 2002).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature([u64; WORDS]);

impl Signature {
    /// The number of bits in which two signatures differ.
    pub fn distance(&self, other: &Self) -> u32 {
        self.0.iter().zip(&other.0).map(|(a, b)| (a ^ b).count_ones()).sum()
    }
}

/// The signature of a vector. A short vector enters every sum several times, with signs of its own.
pub(super) fn signature(values: impl ExactSizeIterator<Item = f32>) -> Signature {
    let mut sums = [0.0f64; BITS as usize];
    // Each value enters so many sums that every sum has some values.
    let entries = (8 * BITS as usize).div_ceil(values.len().max(1)).max(1);
    for (position, value) in values.enumerate() {
        for entry in 0..entries {
            let bits = mixed((position * entries + entry) as u64);
            let sum = &mut sums[(bits >> 32) as usize % BITS as usize];
            *sum += if bits & 1 == 1 { -f64::from(value) } else { f64::from(value) };
        }
    }
    let mut words = [0; WORDS];
    for (bit, sum) in sums.iter().enumerate() {
        words[bit / 64] |= u64::from(*sum > 0.0) << (bit % 64);
    }
    Signature(words)
}

/// A hash of a position: the finaliser of SplitMix64 (Steele, Lea and Flood 2014).
pub(super) fn mixed(position: u64) -> u64 {
    let mut z = position.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn distances_follow_angles() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        for dimension in [60usize, 4096] {
            let a: Vec<f32> = (0..dimension).map(|_| rng.random_range(-1.0..1.0)).collect();
            let noise: Vec<f32> = (0..dimension).map(|_| rng.random_range(-1.0..1.0)).collect();
            let of = |share: f32| signature(a.iter().zip(&noise).map(|(a, b)| (1.0 - share) * a + share * b));
            let distances: Vec<u32> =
                [0.0, 0.01, 0.5, 1.0].iter().map(|share| of(0.0).distance(&of(*share))).collect();
            assert_eq!(distances[0], 0);
            assert!(distances[1] <= 8, "{distances:?}");
            // 45 degrees, then a right angle, give or take five standard deviations.
            assert!((78..=178).contains(&distances[2]), "{dimension}: {distances:?}");
            assert!((186..=326).contains(&distances[3]), "{dimension}: {distances:?}");
        }
    }
}
