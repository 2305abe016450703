//! From readings to batches: a bounded memory of data, cut into samples.

mod calendar;
mod day_ahead;
mod floor;
mod left_out;
mod normalise;
mod outlier_guard;
mod replay;
mod rows;
mod series;
mod side;

use evenhand_models::Batch;
use evenhand_protocol::message::LossKind;
use rand::Rng;
use serde::{Deserialize, Serialize};

pub use calendar::phases;
pub use day_ahead::DayAheadWindow;
pub use floor::ReadingsFloor;
pub use normalise::{DEVIATIONS_MAX, Normaliser};
pub use rows::RowsWindow;
pub use series::{FEATURES, ForecastQuery, SeriesWindow};
pub use side::{SideRole, SideSeries};

pub use crate::config::{MeterQuantity, RowsConfig, SampleFormat, SeriesConfig};
use crate::forecast::INPUTS;
use crate::reading::{InputBatch, Reading, SourcePosition};

/// The floor on labelled rows where none is set: more than the units of a first layer of any shipped model for loads, which
/// the rows behind an update could otherwise be told apart by.
pub const ROWS_LEAST: usize = 256;

/// Counts of the readings or rows of a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadingCounts {
    /// Stored.
    pub accepted: u64,
    /// Not finite, of another shape, of no plausible time, or part of an outlier.
    pub refused: u64,
    /// Not newer than the newest.
    pub out_of_order: u64,
    /// Clock jumps so large that the series was restarted.
    pub restarts: u32,
}

/// Samples for one training: sᵢ,ₜ.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingBatch {
    /// The samples, as the model wants them.
    pub batch: Batch,
    /// Number of samples.
    pub samples: usize,
    /// Number of samples at the end that were not trained on before.
    pub fresh: usize,
    /// The argument of [`DataWindow::mark_used`] once they have been trained on, or of
    /// [`DataWindow::mark_measured`] once they have been measured.
    pub upto: i64,
}

/// Rules by which data become samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum WindowSettings {
    /// Forecasts of a series of readings.
    Series(SeriesConfig),
    /// Labelled rows.
    Rows(RowsConfig),
}

/// A node's memory of its data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum DataWindow {
    /// A series of readings as lags and the value after them.
    Series(Box<SeriesWindow>),
    /// A series of readings as rows of a day-ahead forecast.
    DayAhead(Box<DayAheadWindow>),
    /// Labelled rows.
    Rows(RowsWindow),
}

impl DataWindow {
    /// Skill of its day-ahead forecasts over the last four weeks.
    pub fn skill(&self) -> Option<f64> {
        match self {
            DataWindow::DayAhead(window) => window.forecaster().skill().overall()[0].skill(),
            DataWindow::Series(_) | DataWindow::Rows(_) => None,
        }
    }

    /// Adds steps from before those in memory; the number of measured ones, 0 but for a day-ahead window.
    pub fn prepend(&mut self, readings: &[Reading], quantity: MeterQuantity) -> usize {
        match self {
            DataWindow::DayAhead(window) => window.prepend(readings, quantity),
            DataWindow::Series(_) | DataWindow::Rows(_) => 0,
        }
    }

    /// An empty memory.
    pub fn new(settings: WindowSettings) -> Self {
        match settings {
            WindowSettings::Series(settings) => match settings.samples {
                SampleFormat::Lags => DataWindow::Series(Box::new(SeriesWindow::new(settings).guarded())),
                SampleFormat::DayAhead => DataWindow::DayAhead(Box::new(DayAheadWindow::new(settings))),
            },
            WindowSettings::Rows(settings) => DataWindow::Rows(RowsWindow::new(settings)),
        }
    }

    /// The window after a restart.
    pub fn restored(self) -> Self {
        match self {
            DataWindow::Series(series) => DataWindow::Series(Box::new(series.guarded())),
            DataWindow::DayAhead(window) => DataWindow::DayAhead(Box::new(window.restored())),
            rows @ DataWindow::Rows(_) => rows,
        }
    }

    /// Adds data of the right kind; others are dropped.
    pub fn add(&mut self, batch: &InputBatch) {
        match (self, batch) {
            (DataWindow::Series(series), InputBatch::Readings(readings)) => {
                readings.iter().for_each(|reading| series.add(*reading));
            }
            (DataWindow::DayAhead(window), InputBatch::Readings(readings)) => {
                readings.iter().for_each(|reading| window.add(*reading));
            }
            (DataWindow::Rows(memory), InputBatch::Rows(rows)) => {
                rows.iter().for_each(|row| memory.add(row.clone()))
            }
            (DataWindow::Series(_) | DataWindow::DayAhead(_), InputBatch::Rows(_))
            | (DataWindow::Rows(_), InputBatch::Readings(_)) => {}
        }
    }

    /// Has these side series from now on, where there are day-ahead forecasts; those that it had keep their values.
    pub fn set_side_series(&mut self, side: &[SideSeries]) {
        if let DataWindow::DayAhead(window) = self {
            window.set_side_series(side);
        }
    }

    /// Adds readings of a side series; those of an unknown one are dropped.
    pub fn add_side(&mut self, name: &str, batch: &InputBatch) {
        if let (DataWindow::DayAhead(window), InputBatch::Readings(readings)) = (self, batch) {
            readings.iter().for_each(|reading| window.add_side(name, *reading));
        }
    }

    /// The position from which the source of a side series continues. That of a covariate begins at zero: what it says of the
    /// future may have been revised.
    pub fn side_position(&self, name: &str) -> SourcePosition {
        let newest_ms = self.day_ahead().and_then(|window| window.left_out_newest_ms(name));
        SourcePosition { newest_ms, rows: 0 }
    }

    /// The end of the newest step that a forecast can be compared with.
    pub fn complete_ms(&self) -> Option<i64> {
        match self {
            DataWindow::DayAhead(window) => {
                let history = window.forecaster().history();
                history.newest().map(|newest| history.end_ms(newest))
            }
            DataWindow::Series(_) | DataWindow::Rows(_) => self.series()?.complete_ms(),
        }
    }

    /// The measured value of the step that ended at `end_ms`, without the loads to leave out.
    pub fn measured(&self, end_ms: i64) -> Option<f64> {
        match self {
            DataWindow::DayAhead(window) => {
                let history = window.forecaster().history();
                history.load(end_ms / (history.step_s() * 1000)).map(f64::from)
            }
            DataWindow::Series(_) | DataWindow::Rows(_) => self.series()?.measured(end_ms),
        }
    }

    /// The newest samples not used yet and the configured share of samples used before, at most `samples_max`; none while
    /// there are not enough new ones for the floor.
    pub fn batch(
        &self,
        samples_max: usize,
        floor: ReadingsFloor,
        generator: &mut impl Rng,
    ) -> Option<TrainingBatch> {
        match self {
            DataWindow::Series(series) => series.batch_with_replay(samples_max, floor, generator),
            DataWindow::DayAhead(window) => window.batch(samples_max, floor, generator),
            DataWindow::Rows(rows) => rows.batch(samples_max, floor, generator),
        }
    }

    /// The floor on readings where `least` are set: 0 stands for a day's worth of steps, or [`ROWS_LEAST`] labelled rows.
    pub fn floor(&self, least: usize) -> ReadingsFloor {
        let by_default = self.series().map_or(ROWS_LEAST, |series| series.settings().day_steps());
        ReadingsFloor::new(if least == 0 { by_default } else { least })
    }

    /// Counts the samples up to `upto` as used.
    pub fn mark_used(&mut self, upto: i64) {
        match self {
            DataWindow::Series(series) => series.mark_used(upto),
            DataWindow::DayAhead(window) => window.mark_used(upto),
            DataWindow::Rows(rows) => rows.mark_used(upto),
        }
    }

    /// The newest samples not measured yet, at most `samples_max`; none while there are not enough for the floor.
    pub fn unmeasured(&self, samples_max: usize, floor: ReadingsFloor) -> Option<TrainingBatch> {
        match self {
            DataWindow::Series(series) => series.unmeasured(samples_max, floor),
            DataWindow::DayAhead(window) => window.unmeasured(samples_max, floor),
            DataWindow::Rows(rows) => rows.unmeasured(samples_max, floor),
        }
    }

    /// The loss of a reference gradient on what [`unmeasured`](Self::unmeasured) returns, where the federation trains by `loss`.
    pub fn reference_loss(&self, loss: LossKind) -> LossKind {
        match self {
            DataWindow::DayAhead(_) => LossKind::Mse,
            DataWindow::Series(_) | DataWindow::Rows(_) => loss,
        }
    }

    /// Counts the samples up to `upto` as measured.
    pub fn mark_measured(&mut self, upto: i64) {
        match self {
            DataWindow::Series(series) => series.mark_measured(upto),
            DataWindow::DayAhead(window) => window.mark_measured(upto),
            DataWindow::Rows(rows) => rows.mark_measured(upto),
        }
    }

    /// The input for a forecast of one value, where there is one to forecast.
    pub fn query(&self) -> Option<ForecastQuery> {
        match self {
            DataWindow::Series(series) => series.query(),
            DataWindow::DayAhead(_) | DataWindow::Rows(_) => None,
        }
    }

    /// The shape of one sample.
    pub fn sample_shape(&self) -> Vec<usize> {
        match self {
            DataWindow::Series(series) => vec![series.settings().lags, FEATURES],
            DataWindow::DayAhead(_) => vec![INPUTS],
            DataWindow::Rows(rows) => rows.settings().shape.clone(),
        }
    }

    /// Counts of the readings or rows so far.
    pub fn counts(&self) -> ReadingCounts {
        match self {
            DataWindow::Series(series) => series.counts(),
            DataWindow::DayAhead(window) => window.counts(),
            DataWindow::Rows(rows) => rows.counts(),
        }
    }

    /// The time of the newest reading.
    pub fn newest_ms(&self) -> Option<i64> {
        self.series().and_then(SeriesWindow::newest_ms)
    }

    /// The readings as steps, unless there are rows instead.
    pub fn series(&self) -> Option<&SeriesWindow> {
        match self {
            DataWindow::Series(series) => Some(&**series),
            DataWindow::DayAhead(window) => Some(window.series()),
            DataWindow::Rows(_) => None,
        }
    }

    /// The day-ahead forecasts, where there are any.
    pub fn day_ahead(&self) -> Option<&DayAheadWindow> {
        if let DataWindow::DayAhead(window) = self { Some(window) } else { None }
    }

    /// True if the data were cut into samples by these settings.
    pub fn is_cut_by(&self, settings: &WindowSettings) -> bool {
        match (self, settings) {
            (DataWindow::Rows(rows), WindowSettings::Rows(settings)) => rows.settings() == settings,
            (window, WindowSettings::Series(settings)) => {
                window.series().is_some_and(|series| series.settings() == settings)
            }
            _ => false,
        }
    }

    /// The position from which a source continues.
    pub fn position(&self) -> SourcePosition {
        let ReadingCounts { accepted, refused, .. } = self.counts();
        match self {
            DataWindow::Series(_) | DataWindow::DayAhead(_) => {
                SourcePosition { newest_ms: self.newest_ms(), rows: 0 }
            }
            DataWindow::Rows(_) => SourcePosition { newest_ms: None, rows: accepted + refused },
        }
    }
}
