//! The part of a data set that an experiment needs.

use rand::SeedableRng;
use rand::seq::index;
use rand_chacha::ChaCha8Rng;

use super::AsPublished;

/// The part of a data set that an experiment needs, so that no more is unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataRequest {
    /// The authority on the choice of samples and their normalisation.
    pub as_published: AsPublished,
    /// Seed of the choice.
    pub seed: u64,
    /// Samples, at most.
    pub samples_max: usize,
    /// Owners, at most, where the data have owners.
    pub owners_max: usize,
}

impl DataRequest {
    /// The chosen ones of `recorded` samples: random for the paper, the first ones for the published code; in order.
    pub(super) fn choose(&self, recorded: usize) -> Vec<usize> {
        let count = self.samples_max.min(recorded);
        match self.as_published {
            AsPublished::Code => (0..count).collect(),
            AsPublished::Paper => {
                let mut generator = ChaCha8Rng::seed_from_u64(self.seed);
                let mut chosen = index::sample(&mut generator, recorded, count).into_vec();
                chosen.sort_unstable();
                chosen
            }
        }
    }
}
