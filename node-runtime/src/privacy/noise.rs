//! Clipping, and Gaussian noise that nobody else can compute.

use std::fmt;
use std::io;

use evenhand_program::entropy;
use rand::RngExt;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

/// Seed of the noise: of the system's random numbers, never saved and never derived from a configuration, or noise could be
/// computed and subtracted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NoiseSeed([u8; 32]);

impl NoiseSeed {
    /// A seed that repeats, for simulations.
    pub fn repeatable(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self(bytes)
    }

    /// A seed from the system.
    pub fn from_system() -> io::Result<Self> {
        entropy::seed().map(Self)
    }

    /// The generator of the noise.
    pub fn generator(self) -> ChaCha20Rng {
        ChaCha20Rng::from_seed(self.0)
    }
}

impl fmt::Debug for NoiseSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoiseSeed(…)")
    }
}

/// Shortens a vector to at most this length.
pub(crate) fn clip(vector: &mut [f32], length: f64) {
    let norm = norm(vector);
    if norm > length {
        scale(vector, length / norm);
    }
}

/// Brings a vector to length 1, unless it is zero.
pub(super) fn normalise(vector: &mut [f32]) {
    let norm = norm(vector);
    if norm > 0.0 {
        scale(vector, 1.0 / norm);
    }
}

/// Adds independent normal noise of this standard deviation to each value.
pub(super) fn add_noise(vector: &mut [f32], deviation: f64, generator: &mut ChaCha20Rng) {
    for pair in vector.chunks_mut(2) {
        // Box and Muller; 1 − u lies above 0.
        let radius = deviation * (-2.0 * (1.0 - generator.random::<f64>()).ln()).sqrt();
        let angle = std::f64::consts::TAU * generator.random::<f64>();
        for (value, part) in pair.iter_mut().zip([angle.cos(), angle.sin()]) {
            *value = (f64::from(*value) + radius * part) as f32;
        }
    }
}

pub(super) fn norm(vector: &[f32]) -> f64 {
    vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt()
}

fn scale(vector: &mut [f32], factor: f64) {
    vector.iter_mut().for_each(|value| *value = (f64::from(*value) * factor) as f32);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn noise_has_its_deviation_and_no_other_seed_gives_it() {
        let noise = |seed| {
            let mut values = vec![1.0; 100_001];
            add_noise(&mut values, 3.0, &mut NoiseSeed::repeatable(seed).generator());
            values
        };
        let values = noise(3);
        let count = values.len() as f64;
        let mean = values.iter().map(|value| f64::from(*value)).sum::<f64>() / count;
        let moment = |power| {
            values.iter().map(|value| ((f64::from(*value) - mean) / 3.0).powi(power)).sum::<f64>() / count
        };
        assert!((mean - 1.0).abs() < 0.05, "{mean}");
        assert!((moment(2) - 1.0).abs() < 0.02, "{}", moment(2));
        assert!(moment(3).abs() < 0.05 && (moment(4) - 3.0).abs() < 0.1, "{} {}", moment(3), moment(4));
        assert!(values == noise(3) && values != noise(2));
        assert_ne!(NoiseSeed::from_system().unwrap(), NoiseSeed::from_system().unwrap());
    }

    #[test]
    fn what_is_longer_is_clipped_and_the_rest_left() {
        let mut vector = [3.0, 4.0];
        clip(&mut vector, 10.0);
        assert_eq!(vector, [3.0, 4.0]);
        clip(&mut vector, 1.0);
        assert!((vector[0] - 0.6).abs() < 1e-6 && (vector[1] - 0.8).abs() < 1e-6);
        let mut zero = [0.0, 0.0];
        normalise(&mut zero);
        assert_eq!(zero, [0.0, 0.0]);
        normalise(&mut vector);
        assert!((norm(&vector) - 1.0).abs() < 1e-6);
    }
}
