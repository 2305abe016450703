//! Samples with their targets.

use crate::error::{ModelError, Result};
use crate::loss::Targets;

/// Samples with their targets.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// All inputs, in row-major order.
    pub inputs: Vec<f32>,
    /// Their shape; the first dimension counts the samples.
    pub shape: Vec<usize>,
    /// The targets the output is compared with.
    pub targets: Targets,
}

impl Batch {
    /// Number of samples.
    pub fn samples(&self) -> usize {
        self.shape.first().copied().unwrap_or(0)
    }

    /// Pieces of at most `size` samples, in order.
    pub fn split(&self, size: usize) -> Result<Vec<Batch>> {
        let samples = self.samples();
        let fail = |why: &str| {
            Err(ModelError::Targets {
                output: self.shape.clone(),
                why: format!("{why} cannot be split by sample"),
            })
        };
        if samples == 0 || !self.inputs.len().is_multiple_of(samples) {
            return fail("inputs");
        }
        if !self.targets.len().is_multiple_of(samples) {
            return fail("targets");
        }
        if size >= samples {
            return Ok(vec![self.clone()]);
        }
        let width = self.inputs.len() / samples;
        let each = self.targets.len() / samples;
        let piece = |start: usize| {
            let end = (start + size).min(samples);
            let mut shape = self.shape.clone();
            shape[0] = end - start;
            let range = start * each..end * each;
            Batch {
                inputs: self.inputs[start * width..end * width].to_vec(),
                shape,
                targets: match &self.targets {
                    Targets::Values(values) => Targets::Values(values[range].to_vec()),
                    Targets::Classes(classes) => Targets::Classes(classes[range].to_vec()),
                    Targets::Chosen { columns, values } => Targets::Chosen {
                        columns: columns[range.clone()].to_vec(),
                        values: values.get(range).unwrap_or_default().to_vec(),
                    },
                },
            }
        };
        Ok((0..samples).step_by(size).map(piece).collect())
    }
}
