//! Means whose memory decays, with their errors.

use serde::{Deserialize, Serialize};

/// A mean whose memory decays, with the mean of squares.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
struct DecayedMean {
    weight: f64,
    squared_weights: f64,
    mean: f64,
    mean_square: f64,
}

impl DecayedMean {
    fn add(&mut self, value: f64, decay: f64) {
        self.weight = decay * self.weight + 1.0;
        self.squared_weights = decay * decay * self.squared_weights + 1.0;
        self.mean += (value - self.mean) / self.weight;
        self.mean_square += (value * value - self.mean_square) / self.weight;
    }

    /// Number of values that it is worth.
    fn values(&self) -> f64 {
        if self.weight == 0.0 { 0.0 } else { self.weight * self.weight / self.squared_weights }
    }

    /// Standard error of the mean; that of a single value cannot be told and is taken to be its size.
    fn error(&self) -> f64 {
        if self.weight == 0.0 {
            return 0.0;
        }
        let values = self.values();
        if values <= 1.5 {
            return self.mean.abs();
        }
        ((self.mean_square - self.mean * self.mean).max(0.0) / (values - 1.0)).sqrt()
    }
}

/// Rounds whose mean counts as one value.
const BLOCK_ROUNDS: u32 = 8;
/// Blocks from which the scatter of their means is known.
const BLOCKS_MIN: f64 = 4.0;

/// A decayed mean whose error is told by the scatter of the means of blocks: rounds that follow each other are not independent,
/// since samples come in their order (by day and by night).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct BlockedMean {
    single: DecayedMean,
    blocks: DecayedMean,
    block_sum: f64,
    block_rounds: u32,
}

impl BlockedMean {
    pub(super) fn add(&mut self, value: f64, decay: f64) {
        self.single.add(value, decay);
        self.block_sum += value;
        self.block_rounds += 1;
        if self.block_rounds == BLOCK_ROUNDS {
            let mean = self.block_sum / f64::from(BLOCK_ROUNDS);
            self.blocks.add(mean, decay.powi(BLOCK_ROUNDS as i32));
            (self.block_sum, self.block_rounds) = (0.0, 0);
        }
    }

    /// Standard error of the mean.
    pub(super) fn error(&self) -> f64 {
        if self.blocks.values() >= BLOCKS_MIN { self.blocks.error() } else { self.single.error() }
    }
}
