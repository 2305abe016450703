//! Samples of a data set in memory.

use std::ops::Range;

/// Clean samples of a data set, in the order in which they were recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplePool {
    /// The shape of one sample.
    pub shape: Vec<usize>,
    /// The features of all samples, one after the other.
    pub features: Vec<f32>,
    /// The target of each sample.
    pub targets: SampleTargets,
    /// The range of each node's own samples, if the data have owners; otherwise they are partitioned.
    pub owners: Option<Vec<Range<usize>>>,
    /// Samples in the files; the pool has those that were asked for. Where there are owners, it has all of them.
    pub recorded: usize,
    /// A remark that belongs beside every figure that comes from here, e.g. that the data are a substitute.
    pub note: Option<String>,
}

impl SamplePool {
    /// The number of samples.
    pub fn len(&self) -> usize {
        match &self.targets {
            SampleTargets::Classes { of, .. } => of.len(),
            SampleTargets::Values { of, .. } => of.len(),
        }
    }

    /// True if there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The features of one sample.
    pub fn sample(&self, at: usize) -> &[f32] {
        let width: usize = self.shape.iter().product();
        &self.features[at * width..(at + 1) * width]
    }
}

/// The targets of a pool's samples.
#[derive(Debug, Clone, PartialEq)]
pub enum SampleTargets {
    /// One of `count` classes.
    Classes {
        /// By sample.
        of: Vec<u32>,
        /// The number of classes.
        count: u32,
    },
    /// A number, normalised.
    Values {
        /// By sample.
        of: Vec<f32>,
        /// By sample: mean and deviation that bring the number back to the measured one.
        scales: Vec<(f32, f32)>,
    },
}
