//! From readings to batches: a bounded memory of what was measured, cut into samples.

mod calendar;
mod guard;
mod normalise;
mod replay;
mod rows;
mod series;

use evenhand_models::Batch;
use rand::Rng;
use serde::{Deserialize, Serialize};

pub use calendar::phases;
pub use normalise::{DEVIATIONS_MAX, Normaliser};
pub use rows::{RowSettings, Rows};
pub use series::{FEATURES, Quantity, Query, Series, SeriesSettings};

use crate::reading::{Intake, Position};

/// What became of everything a source handed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Entered the memory.
    pub accepted: u64,
    /// Not finite, of another shape, of no plausible time, or part of a step that is beyond all measure.
    pub refused: u64,
    /// Not newer than what was there.
    pub out_of_order: u64,
    /// Times the clock jumped so far that the series began anew.
    pub restarts: u32,
}

/// Samples for one training: sᵢ,ₜ.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    /// The samples, as the model wants them.
    pub batch: Batch,
    /// How many there are.
    pub samples: usize,
    /// How many of them, at the end, were never trained on.
    pub fresh: usize,
    /// What [`Window::mark_used`] wants once they have been trained on.
    pub upto: i64,
}

/// How a node's data become samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum WindowSettings {
    /// Forecasts of a series of readings.
    Series(SeriesSettings),
    /// Labelled rows.
    Rows(RowSettings),
}

/// A node's memory of its data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Window {
    /// Forecasts of a series of readings.
    Series(Series),
    /// Labelled rows.
    Rows(Rows),
}

impl Window {
    /// An empty memory.
    pub fn new(settings: WindowSettings) -> Self {
        match settings {
            WindowSettings::Series(settings) => Window::Series(Series::new(settings).guarded()),
            WindowSettings::Rows(settings) => Window::Rows(Rows::new(settings)),
        }
    }

    /// The memory as it was saved, at work again.
    pub fn restored(self) -> Self {
        match self {
            Window::Series(series) => Window::Series(series.guarded()),
            rows @ Window::Rows(_) => rows,
        }
    }

    /// Takes in what fits this memory; what does not is dropped.
    pub fn add(&mut self, intake: &Intake) {
        match (self, intake) {
            (Window::Series(series), Intake::Readings(readings)) => {
                readings.iter().for_each(|reading| series.add(*reading));
            }
            (Window::Rows(memory), Intake::Rows(rows)) => rows.iter().for_each(|row| memory.add(row.clone())),
            (Window::Series(_), Intake::Rows(_)) | (Window::Rows(_), Intake::Readings(_)) => {}
        }
    }

    /// The newest samples not used yet and the configured share of samples used before, at most `samples_max`; none when
    /// there is nothing new.
    pub fn batch(&self, samples_max: usize, generator: &mut impl Rng) -> Option<Taken> {
        match self {
            Window::Series(series) => series.batch_with_replay(samples_max, generator),
            Window::Rows(rows) => rows.batch(samples_max, generator),
        }
    }

    /// Counts the samples up to `upto` as used.
    pub fn mark_used(&mut self, upto: i64) {
        match self {
            Window::Series(series) => series.mark_used(upto),
            Window::Rows(rows) => rows.mark_used(upto),
        }
    }

    /// The input for a forecast, where there is something to forecast.
    pub fn query(&self) -> Option<Query> {
        match self {
            Window::Series(series) => series.query(),
            Window::Rows(_) => None,
        }
    }

    /// The shape of one sample.
    pub fn sample_shape(&self) -> Vec<usize> {
        match self {
            Window::Series(series) => vec![series.settings().lags, FEATURES],
            Window::Rows(rows) => rows.settings().shape.clone(),
        }
    }

    /// What became of everything that was handed over.
    pub fn counts(&self) -> Counts {
        match self {
            Window::Series(series) => series.counts(),
            Window::Rows(rows) => rows.counts(),
        }
    }

    /// The time of the newest reading.
    pub fn newest_ms(&self) -> Option<i64> {
        match self {
            Window::Series(series) => series.newest_ms(),
            Window::Rows(_) => None,
        }
    }

    /// Where a source goes on.
    pub fn position(&self) -> Position {
        let Counts { accepted, refused, .. } = self.counts();
        match self {
            Window::Series(series) => Position { newest_ms: series.newest_ms(), rows: 0 },
            Window::Rows(_) => Position { newest_ms: None, rows: accepted + refused },
        }
    }
}
