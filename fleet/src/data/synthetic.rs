//! Synthetic data: three clusters of points, in as many dimensions as the model for order books has.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

use super::{DataRequest, SamplePool, SampleTargets};

const FEATURES: usize = 144;
const CLASSES: u32 = 3;
/// Deviation of a centre's coordinates, and of a point's around its centre.
///
/// Chosen so that the mechanism has something to find, by looking at its ρ: a test bed, no evidence. docs/data.md has what
/// else was tried.
const CENTRES: f32 = 0.7;
const WITHIN: f32 = 0.3;
/// More are never needed; they would be drawn from the same law.
const SAMPLES_MAX: usize = 100_000;

pub(super) fn make(request: &DataRequest) -> SamplePool {
    let mut generator = ChaCha8Rng::seed_from_u64(request.seed);
    let mut normal = move || generator.sample::<f32, _>(StandardNormal);
    let centres: Vec<f32> = (0..CLASSES as usize * FEATURES).map(|_| normal() * CENTRES).collect();
    let samples = request.samples_max.clamp(1, SAMPLES_MAX);
    // Every class equally often, in turn: the partition shuffles.
    let of: Vec<u32> = (0..CLASSES).cycle().take(samples).collect();
    let features = of
        .iter()
        .flat_map(|class| &centres[*class as usize * FEATURES..(*class as usize + 1) * FEATURES])
        .map(|centre| centre + normal() * WITHIN)
        .collect();
    SamplePool {
        shape: vec![FEATURES],
        features,
        targets: SampleTargets::Classes { of, count: CLASSES },
        owners: None,
        recorded: samples,
        note: None,
    }
}
