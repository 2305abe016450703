//! Data of a source: readings and labelled rows.

use serde::{Deserialize, Serialize};

/// One measured value, e.g. the load of a house.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// End of the measured interval: milliseconds since 1970 in UTC.
    pub time_ms: i64,
    /// The value, in the meter's unit: windows normalise it.
    pub value: f64,
}

/// One labelled example of a classification or regression that is not a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabelledRow {
    /// The model's input for one sample, flat.
    pub features: Vec<f32>,
    /// The wanted output of the model.
    pub target: RowTarget,
}

/// The wanted output of a model for one row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum RowTarget {
    /// A class, counted from 0.
    Class(u32),
    /// A number.
    Value(f32),
    /// A number for one output only, counted from 0; the others are free, as in Q-learning.
    Chosen {
        /// The output.
        column: u32,
        /// Its wanted value.
        value: f32,
    },
}

/// Data that a source delivered at once, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum InputBatch {
    /// Measurements of a series.
    Readings(Vec<Reading>),
    /// Labelled rows.
    Rows(Vec<LabelledRow>),
}

/// The end of the data that a node has received; a source continues after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourcePosition {
    /// The time of the newest reading, if there is one.
    pub newest_ms: Option<i64>,
    /// Number of labelled rows.
    pub rows: u64,
}

impl SourcePosition {
    /// Moves to the end of `batch`.
    pub fn advance(&mut self, batch: &InputBatch) {
        match batch {
            InputBatch::Readings(readings) => {
                self.newest_ms = readings.last().map(|newest| newest.time_ms).or(self.newest_ms);
            }
            InputBatch::Rows(rows) => self.rows += rows.len() as u64,
        }
    }
}

impl InputBatch {
    /// Number of readings or rows.
    pub fn len(&self) -> usize {
        match self {
            InputBatch::Readings(readings) => readings.len(),
            InputBatch::Rows(rows) => rows.len(),
        }
    }

    /// No reading and no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
