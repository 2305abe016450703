//! Sparse updates: only the largest entries are sent. The sender adds the rest to its next update (error feedback), so
//! that small but steady directions are delayed, never lost.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::CodecError;

/// The largest entries and their positions.
///
/// Positions are encoded as gaps: the number of entries skipped since the last one sent, seven bits a byte,
/// the lowest first. Gaps cannot decrease, so positions are strictly increasing by construction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TopK {
    #[serde(with = "crate::bytes")]
    gaps: Vec<u8>,
    #[serde(with = "crate::bytes::f32s")]
    values: Vec<f32>,
}

/// The sum of entries that earlier updates did not send; part of the sender's saved state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorFeedback {
    #[serde(with = "crate::bytes::f32s")]
    residual: Vec<f32>,
}

impl ErrorFeedback {
    /// The vector that is added to the next update; empty if everything was sent.
    pub fn residual(&self) -> &[f32] {
        &self.residual
    }

    /// Clears it, as for another model.
    pub fn clear(&mut self) {
        self.residual.clear();
    }
}

impl TopK {
    pub(super) fn encode(vector: &[f32], per_mille: u16, feedback: &mut ErrorFeedback) -> Self {
        let dim = vector.len();
        // A residual of another length belongs to another model.
        if feedback.residual.len() != dim {
            feedback.residual = alloc::vec![0.0; dim];
        }
        let pending = &mut feedback.residual;
        for (sum, value) in pending.iter_mut().zip(vector) {
            *sum += value;
        }

        let positions = largest(pending, sent_count(dim, per_mille));
        let mut gaps = Vec::with_capacity(positions.len() * 2);
        let mut next = 0;
        for position in &positions {
            write_varint(position - next, &mut gaps);
            next = position + 1;
        }
        let values =
            positions.iter().map(|position| core::mem::take(&mut pending[*position as usize])).collect();
        // Values that are not finite are sent and refused, or cleared: otherwise they would spoil every later update.
        for sum in pending.iter_mut().filter(|sum| !sum.is_finite()) {
            *sum = 0.0;
        }
        Self { gaps, values }
    }

    pub(super) fn decode(&self, dim: usize) -> Result<Vec<f32>, CodecError> {
        if self.values.len() > dim {
            return Err(CodecError::Dimension { expected: dim, actual: self.values.len() });
        }
        let mut vector = alloc::vec![0.0; dim];
        let mut gaps = self.gaps.as_slice();
        let mut next = 0usize;
        for value in &self.values {
            let gap = read_varint(&mut gaps).ok_or(CodecError::Structure("positions"))?;
            let position = next.saturating_add(gap as usize);
            let actual = position.saturating_add(1);
            *vector.get_mut(position).ok_or(CodecError::Dimension { expected: dim, actual })? = *value;
            next = actual;
        }
        if gaps.is_empty() { Ok(vector) } else { Err(CodecError::Structure("positions")) }
    }

    pub(super) fn entries(&self) -> usize {
        self.values.len()
    }
}

fn sent_count(dim: usize, per_mille: u16) -> usize {
    let count = (dim as u64 * u64::from(per_mille)).div_ceil(1000) as usize;
    count.clamp(1.min(dim), dim)
}

/// Positions of the `count` entries of largest magnitude, increasing; of equals the first.
fn largest(values: &[f32], count: usize) -> Vec<u32> {
    let mut positions: Vec<u32> = (0..values.len() as u32).collect();
    if count < positions.len() {
        positions.select_nth_unstable_by(count, |a, b| {
            let (x, y) = (values[*a as usize].abs(), values[*b as usize].abs());
            y.total_cmp(&x).then(a.cmp(b))
        });
        positions.truncate(count);
    }
    positions.sort_unstable();
    positions
}

fn write_varint(mut value: u32, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn read_varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0u64;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(value).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn decoded(gaps: &[u8], values: &[f32], dim: usize) -> Result<Vec<f32>, CodecError> {
        TopK { gaps: gaps.to_vec(), values: values.to_vec() }.decode(dim)
    }

    #[test]
    fn gaps_place_the_values() {
        assert_eq!(decoded(&[1, 0, 1], &[1.0, 2.0, 3.0], 6), Ok(vec![0.0, 1.0, 2.0, 0.0, 3.0, 0.0]));
        assert_eq!(decoded(&[0x80, 1], &[1.0], 129).map(|vector| vector[128]), Ok(1.0));
    }

    #[test]
    fn positions_beyond_the_dimension_are_refused() {
        assert_eq!(decoded(&[6], &[1.0], 6), Err(CodecError::Dimension { expected: 6, actual: 7 }));
        assert_eq!(decoded(&[5, 0], &[1.0, 2.0], 6), Err(CodecError::Dimension { expected: 6, actual: 7 }));
        assert_eq!(decoded(&[0, 0], &[1.0, 2.0], 1), Err(CodecError::Dimension { expected: 1, actual: 2 }));
        assert!(
            decoded(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff, 0xff, 0x0f], &[1.0, 2.0], 6).is_err()
        );
    }

    #[test]
    fn gaps_that_do_not_match_the_values_are_refused() {
        let malformed = Err(CodecError::Structure("positions"));
        assert_eq!(decoded(&[0], &[1.0, 2.0], 6), malformed, "too few");
        assert_eq!(decoded(&[0, 0], &[1.0], 6), malformed, "too many");
        assert_eq!(decoded(&[0x80], &[1.0], 6), malformed, "cut off");
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xff, 0x1f], &[1.0], 6), malformed, "beyond 32 bits");
        assert_eq!(decoded(&[0x80, 0x80, 0x80, 0x80, 0x80, 0], &[1.0], 6), malformed, "endless");
    }
}
