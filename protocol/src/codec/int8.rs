//! One byte a parameter: blocks of small integers that share a scale.
//!
//! x is sent as q·s with s = max|x| / 127 of its block and q = ⌊x/s + u⌋, u uniform in [0, 1). Then
//! E[q·s] = x: rounding adds noise, never a direction, and it averages out over nodes and rounds.

use alloc::vec::Vec;

use rand_core::Rng;
use serde::{Deserialize, Serialize};

use super::{CodecError, same_dimension};

/// Parameters that share one scale: small enough that one large entry spoils few, large enough that
/// scales cost 3 %.
const BLOCK: usize = 128;

const STEPS: f32 = 127.0;

/// Small integers and the scale of each block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Int8 {
    #[serde(with = "crate::bytes::f32s")]
    scales: Vec<f32>,
    #[serde(with = "crate::bytes::i8s")]
    steps: Vec<i8>,
}

impl Int8 {
    pub(super) fn encode(vector: &[f32], rng: &mut (impl Rng + ?Sized)) -> Self {
        let scales: Vec<f32> = vector.chunks(BLOCK).map(scale).collect();
        let steps = vector
            .chunks(BLOCK)
            .zip(&scales)
            .flat_map(|(block, scale)| block.iter().map(move |value| (*value, *scale)))
            .map(|(value, scale)| round(value, scale, rng))
            .collect();
        Self { scales, steps }
    }

    pub(super) fn decode(&self, dim: usize) -> Result<Vec<f32>, CodecError> {
        same_dimension(dim, self.steps.len())?;
        if self.scales.len() != dim.div_ceil(BLOCK) {
            return Err(CodecError::Structure("scales"));
        }
        let blocks = self.steps.chunks(BLOCK).zip(&self.scales);
        Ok(blocks.flat_map(|(block, scale)| block.iter().map(move |step| f32::from(*step) * scale)).collect())
    }

    pub(super) fn entries(&self) -> usize {
        self.steps.len()
    }
}

/// max|x| / 127; NaN if the block holds something that is not finite, so that it cannot pass unseen.
fn scale(block: &[f32]) -> f32 {
    if block.iter().all(|value| value.is_finite()) {
        block.iter().fold(0.0, |max: f32, value| max.max(value.abs())) / STEPS
    } else {
        f32::NAN
    }
}

fn round(value: f32, scale: f32, rng: &mut (impl Rng + ?Sized)) -> i8 {
    // 24 random bits: as fine as the mantissa of what is rounded.
    let uniform = f64::from(rng.next_u32() >> 8) / f64::from(1u32 << 24);
    if scale == 0.0 || scale.is_nan() {
        return 0;
    }
    // The shift makes the operand positive, where the cast truncates downwards as ⌊·⌋ does.
    let shifted = f64::from(value) / f64::from(scale) + uniform + 128.0;
    (shifted as i32 - 128).clamp(-127, 127) as i8
}
