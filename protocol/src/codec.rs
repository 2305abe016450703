//! How an update travels: four codecs, one enum.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// Which codec a node shall use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum CodecKind {
    /// Four bytes a parameter, exact.
    F32,
    /// Two bytes a parameter, rounded to nearest.
    Bf16,
    /// One byte a parameter, block scales, stochastic rounding.
    Int8,
    /// Only the largest entries; what is left out is kept by the sender and added next time.
    TopK {
        /// Entries kept, in thousandths of the dimension, at least one entry.
        per_mille: u16,
    },
}

/// An update as it travels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum EncodedUpdate {
    /// As it is.
    F32(#[serde(with = "crate::bytes::f32s")] Vec<f32>),
}
