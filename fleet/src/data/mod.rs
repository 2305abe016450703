//! Data sets, in the formats in which they are published.

use std::ops::Range;

/// A data set of the paper, another one for meters, or a made-up one that needs no files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dataset {
    /// Handwritten digits
    Mnist,
    /// Small colour photographs of ten kinds
    Cifar10,
    /// Nine kinds of tissue
    Pathmnist,
    /// Whether the price in an order book will rise
    Hft,
    /// The load of Germany, every 15 minutes
    Electricity,
    /// Smart meters of households: each node is one of them
    Meters,
    /// Made-up clusters of points: needs no files
    Synthetic,
}

/// All samples of a data set, clean, in the order in which they were recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// The shape of one sample.
    pub shape: Vec<usize>,
    /// The features of all samples, one after the other.
    pub features: Vec<f32>,
    /// What a model shall say about each.
    pub answers: Answers,
    /// Where each node's own samples are, if the data belong to somebody; otherwise they are dealt out.
    pub owners: Option<Vec<Range<usize>>>,
}

/// What a model shall say about each sample.
#[derive(Debug, Clone, PartialEq)]
pub enum Answers {
    /// One of `count` classes.
    Classes {
        /// By sample.
        of: Vec<u32>,
        /// How many there are.
        count: u32,
    },
    /// A number, normalised.
    Values {
        /// By sample.
        of: Vec<f32>,
        /// By sample: mean and deviation that bring the number back to what was measured.
        scales: Vec<(f32, f32)>,
    },
}
