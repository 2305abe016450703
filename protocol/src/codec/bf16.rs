//! Two bytes a parameter: f32 without its lower 16 bits of mantissa, rounded to nearest even.

use alloc::vec::Vec;

use half::bf16;
use serde::{Deserialize, Serialize};

use super::{CodecError, same_dimension};

/// The upper halves of the floats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bf16 {
    #[serde(with = "crate::bytes::u16s")]
    bits: Vec<u16>,
}

impl Bf16 {
    /// `vector`, each value rounded.
    pub fn encode(vector: &[f32]) -> Self {
        Self { bits: vector.iter().map(|value| bf16::from_f32(*value).to_bits()).collect() }
    }

    /// The values, if they are `dim`.
    pub fn decode(&self, dim: usize) -> Result<Vec<f32>, CodecError> {
        same_dimension(dim, self.bits.len())?;
        Ok(self.bits.iter().map(|bits| bf16::from_bits(*bits).to_f32()).collect())
    }

    /// Number of values.
    pub fn entries(&self) -> usize {
        self.bits.len()
    }
}
