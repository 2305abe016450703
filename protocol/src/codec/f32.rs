//! Four bytes a parameter, exact.

use alloc::vec::Vec;

use super::{CodecError, same_dimension};

pub(super) fn encode(vector: &[f32]) -> Vec<f32> {
    vector.to_vec()
}

pub(super) fn decode(values: &[f32], dim: usize) -> Result<Vec<f32>, CodecError> {
    same_dimension(dim, values.len())?;
    Ok(values.to_vec())
}
