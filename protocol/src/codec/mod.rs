//! Codecs of updates: four kinds, one enum.
//!
//! A codec refuses bytes whose structure does not fit the model: a wrong dimension, an index beyond it,
//! bytes left over. It does not check values: NaN and infinity pass through every codec as something
//! that is not finite (in `int8` by way of the block's scale), and the coordinator refuses them as
//! [`Refusal::NotFinite`](crate::message::Refusal::NotFinite), in one place.

mod bf16;
mod f32;
mod int8;
mod top_k;

use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use rand_core::Rng;
use serde::{Deserialize, Serialize};

pub use self::bf16::Bf16;
pub use self::int8::Int8;
pub use self::top_k::{ErrorFeedback, TopK};

/// The codec of a node's updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CodecKind {
    /// Four bytes a parameter, exact.
    F32,
    /// Two bytes a parameter, rounded to nearest.
    Bf16,
    /// One byte a parameter, block scales, stochastic rounding.
    Int8,
    /// Only the largest entries; the sender adds the rest to its next update.
    TopK {
        /// Entries sent, in thousandths of the dimension, at least one entry.
        per_mille: u16,
    },
}

/// The share of `top-k` without a number: one entry in a hundred.
const TOP_K_PER_MILLE: u16 = 10;

/// A text that names no codec.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown codec; use f32, bf16, int8, top-k, or top-k:N to keep N entries in a thousand (1 to 1000)")]
pub struct UnknownCodec;

impl FromStr for CodecKind {
    type Err = UnknownCodec;

    fn from_str(text: &str) -> Result<Self, UnknownCodec> {
        match text {
            "f32" => Ok(Self::F32),
            "bf16" => Ok(Self::Bf16),
            "int8" => Ok(Self::Int8),
            "top-k" => Ok(Self::TopK { per_mille: TOP_K_PER_MILLE }),
            _ => match text.strip_prefix("top-k:").map(u16::from_str) {
                Some(Ok(per_mille @ 1..=1000)) => Ok(Self::TopK { per_mille }),
                _ => Err(UnknownCodec),
            },
        }
    }
}

impl fmt::Display for CodecKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::F32 => f.write_str("f32"),
            Self::Bf16 => f.write_str("bf16"),
            Self::Int8 => f.write_str("int8"),
            Self::TopK { per_mille: TOP_K_PER_MILLE } => f.write_str("top-k"),
            Self::TopK { per_mille } => write!(f, "top-k:{per_mille}"),
        }
    }
}

/// An encoded update.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum EncodedUpdate {
    /// Unchanged.
    F32(#[serde(with = "crate::bytes::f32s")] Vec<f32>),
    /// The upper halves of the floats.
    Bf16(Bf16),
    /// Small integers and the scale of each block.
    Int8(Int8),
    /// The largest entries and their positions.
    TopK(TopK),
}

/// The reason why an update cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The vector has another length than the model.
    #[error("the update has {actual} entries, the model {expected}")]
    Dimension {
        /// Entries of the model.
        expected: usize,
        /// Entries of the update.
        actual: usize,
    },
    /// The parts of the encoding contradict each other.
    #[error("the update's {0} are malformed")]
    Structure(&'static str),
}

fn same_dimension(expected: usize, actual: usize) -> Result<(), CodecError> {
    if expected == actual { Ok(()) } else { Err(CodecError::Dimension { expected, actual }) }
}

/// `vector` encoded by the codec `kind`.
///
/// `feedback` holds what `top-k` did not send in earlier rounds; the other codecs send everything and
/// clear it. `rng` drives the stochastic rounding of `int8`.
pub fn encode(
    kind: CodecKind,
    vector: &[f32],
    feedback: &mut ErrorFeedback,
    rng: &mut (impl Rng + ?Sized),
) -> EncodedUpdate {
    if !matches!(kind, CodecKind::TopK { .. }) {
        feedback.clear();
    }
    match kind {
        CodecKind::F32 => EncodedUpdate::F32(f32::encode(vector)),
        CodecKind::Bf16 => EncodedUpdate::Bf16(Bf16::encode(vector)),
        CodecKind::Int8 => EncodedUpdate::Int8(Int8::encode(vector, rng)),
        CodecKind::TopK { per_mille } => EncodedUpdate::TopK(TopK::encode(vector, per_mille, feedback)),
    }
}

impl EncodedUpdate {
    /// The vector of a model with `dim` parameters; allocates `dim` floats and nothing else.
    pub fn decode(&self, dim: usize) -> Result<Vec<f32>, CodecError> {
        match self {
            Self::F32(values) => f32::decode(values, dim),
            Self::Bf16(update) => update.decode(dim),
            Self::Int8(update) => update.decode(dim),
            Self::TopK(update) => update.decode(dim),
        }
    }

    /// Entries sent; for the dense codecs that is the dimension.
    pub fn entries(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::Bf16(update) => update.entries(),
            Self::Int8(update) => update.entries(),
            Self::TopK(update) => update.entries(),
        }
    }
}
