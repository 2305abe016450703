//! Reference weights and sketches of gradients: what both sides of a measurement must compute alike.
//!
//! Contributions are measured by gradients at weights that no training has touched: there the law of a gradient depends on
//! the node's data alone, not on the learning rate and not on how good the model is by now. The weights follow from the
//! initial ones, which every node holds, and a seed, so that no message carries them; a new seed now and then means that
//! nobody can know a gradient there without data, whatever models it was given.

use alloc::vec::Vec;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Streams of the generator, so that weights and sketch of one seed are independent.
const WEIGHTS: u64 = 0;
const SKETCH: u64 = 1;

/// θ_ref: the initial weights, the sign of each flipped by chance.
///
/// An initialisation that is symmetric about zero, as all common ones are, remains one of the same law.
pub fn reference_weights(initial: &[f32], seed: u64) -> Vec<f32> {
    let mut generator = generator(seed, WEIGHTS);
    let mut weights = Vec::with_capacity(initial.len());
    for chunk in initial.chunks(64) {
        let signs = generator.next_u64();
        weights.extend(chunk.iter().enumerate().map(|(bit, w)| if signs >> bit & 1 == 1 { -w } else { *w }));
    }
    weights
}

/// The count sketch of a gradient: each value is added, with a random sign, to one of `dimension` sums. A gradient of no
/// more values is returned as it is.
///
/// Sketches by the same seed keep inner products: E⟨sketch(a), sketch(b)⟩ = ⟨a, b⟩, with a variance of at most
/// (‖a‖²‖b‖² + ⟨a, b⟩²)/dimension (Charikar, Chen and Farach-Colton 2002).
pub fn sketch(gradient: &[f32], seed: u64, dimension: usize) -> Vec<f32> {
    if gradient.len() <= dimension || dimension == 0 {
        return gradient.to_vec();
    }
    let mut generator = generator(seed, SKETCH);
    let mut sums = alloc::vec![0.0; dimension];
    for value in gradient {
        let bits = generator.next_u64();
        let at = ((u128::from(bits) * dimension as u128) >> 64) as usize;
        // The lowest bit decides nothing about `at`, unless the dimension is beyond all memory.
        sums[at] += if bits & 1 == 1 { -value } else { *value };
    }
    sums
}

/// Number of values that [`sketch`] returns for a gradient of `parameters` values.
pub fn sketch_dimension(parameters: usize, dimension: usize) -> usize {
    if dimension == 0 { parameters } else { parameters.min(dimension) }
}

fn generator(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(stream);
    generator
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(a: &[f32], b: &[f32]) -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    }

    #[test]
    fn reference_weights_differ_in_signs_alone_and_by_the_seed() {
        let initial: Vec<f32> = (0u8..200).map(|i| f32::from(i) - 50.0).collect();
        let (one, other) = (reference_weights(&initial, 1), reference_weights(&initial, 2));
        assert_eq!(one, reference_weights(&initial, 1));
        for weights in [&one, &other] {
            assert!(weights.iter().zip(&initial).all(|(a, b)| a.abs() == b.abs()));
            let flipped = weights.iter().zip(&initial).filter(|(a, b)| a != b).count();
            assert!((70..130).contains(&flipped), "{flipped} of 200");
        }
        assert_ne!(one, other);
    }

    #[test]
    fn a_sketch_keeps_inner_products_on_average() {
        let mut generator = ChaCha8Rng::seed_from_u64(5);
        let mut vector = || -> Vec<f32> {
            (0..2000).map(|_| (f64::from(generator.next_u32()) / f64::from(u32::MAX)) as f32).collect()
        };
        let (a, b) = (vector(), vector());
        let exact = dot(&a, &b);
        let sketched =
            (0..400).map(|seed| dot(&sketch(&a, seed, 64), &sketch(&b, seed, 64))).sum::<f64>() / 400.0;
        // One sketch errs by about √(2/64) of the product, the mean of 400 by a twentieth of that.
        assert!((sketched / exact - 1.0).abs() < 0.04, "{sketched} {exact}");
    }

    #[test]
    fn a_short_gradient_is_sent_whole() {
        let gradient = [1.0, -2.0, 3.0];
        assert_eq!(sketch(&gradient, 7, 3), gradient);
        assert_eq!(sketch(&gradient, 7, 0), gradient);
        assert_eq!((sketch_dimension(3, 4), sketch_dimension(9, 4), sketch_dimension(9, 0)), (3, 4, 9));
    }
}
