//! What a source hands over.

use serde::{Deserialize, Serialize};

/// One measured value, e.g. the load of a house.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// When the measured interval ended: milliseconds since 1970 in UTC.
    pub time_ms: i64,
    /// The value, in whatever unit the owner's meter has: windows normalise it.
    pub value: f64,
}

/// One labelled example of a classification or regression that is not a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The model's input for one sample, flat.
    pub features: Vec<f32>,
    /// What the model shall say about it.
    pub target: Target,
}

/// What a model shall say about one row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Target {
    /// A class, counted from 0.
    Class(u32),
    /// A number.
    Value(f32),
    /// A number for one output only, counted from 0; the others are free, as in Q-learning.
    Chosen {
        /// Which output.
        column: u32,
        /// What it shall be.
        value: f32,
    },
}

/// What arrived from a source at once, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Intake {
    /// Measurements of a series.
    Readings(Vec<Reading>),
    /// Labelled rows.
    Rows(Vec<Row>),
}

/// What a node took in already: a source goes on behind it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// The time of the newest reading, if there is one.
    pub newest_ms: Option<i64>,
    /// How many labelled rows.
    pub rows: u64,
}

impl Position {
    /// Moves behind `intake`.
    pub fn advance(&mut self, intake: &Intake) {
        match intake {
            Intake::Readings(readings) => {
                self.newest_ms = readings.last().map(|newest| newest.time_ms).or(self.newest_ms);
            }
            Intake::Rows(rows) => self.rows += rows.len() as u64,
        }
    }
}

impl Intake {
    /// How many readings or rows there are.
    pub fn len(&self) -> usize {
        match self {
            Intake::Readings(readings) => readings.len(),
            Intake::Rows(rows) => rows.len(),
        }
    }

    /// Whether nothing arrived.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
