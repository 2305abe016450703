//! Forecasts of a node and their errors.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::window::DataWindow;

/// Forecasts whose step has not ended.
const PENDING_MAX: usize = 64;
/// Outcomes in memory: a week of quarter hours.
const OUTCOMES_MAX: usize = 672;

/// One forecast, in the meter's unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// The end of the step it is for.
    pub for_ms: i64,
    /// The value.
    pub value: f64,
}

/// A forecast and the measured value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ForecastOutcome {
    /// The end of the step.
    pub for_ms: i64,
    /// The forecast value.
    pub forecast: f64,
    /// The measured value.
    pub measured: f64,
}

/// The newest forecasts and outcomes, bounded in number.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Forecasts {
    newest: Option<Forecast>,
    pending: VecDeque<Forecast>,
    outcomes: VecDeque<ForecastOutcome>,
}

impl Forecasts {
    /// The newest forecast.
    pub fn newest(&self) -> Option<Forecast> {
        self.newest
    }

    /// Forecasts with their measured values, oldest first.
    pub fn outcomes(&self) -> impl ExactSizeIterator<Item = &ForecastOutcome> {
        self.outcomes.iter()
    }

    /// The mean absolute error of the outcomes, in the meter's unit.
    pub fn mean_absolute_error(&self) -> Option<f64> {
        let sum: f64 = self.outcomes.iter().map(|outcome| (outcome.forecast - outcome.measured).abs()).sum();
        (!self.outcomes.is_empty()).then(|| sum / self.outcomes.len() as f64)
    }

    /// Adds a forecast. It replaces earlier forecasts for the same step, and for later ones: the clock was set back.
    pub(super) fn add(&mut self, forecast: Forecast) {
        self.newest = Some(forecast);
        self.pending.retain(|pending| pending.for_ms < forecast.for_ms);
        self.pending.push_back(forecast);
        let surplus = self.pending.len().saturating_sub(PENDING_MAX);
        self.pending.drain(..surplus);
    }

    /// Moves forecasts whose step has ended to the outcomes; those of a step without measurement are dropped.
    pub(super) fn evaluate(&mut self, window: &DataWindow) {
        let Some(complete_ms) = window.complete_ms() else { return };
        while let Some(due) = self.pending.pop_front_if(|pending| pending.for_ms <= complete_ms) {
            if let Some(measured) = window.measured(due.for_ms) {
                self.outcomes.push_back(ForecastOutcome {
                    for_ms: due.for_ms,
                    forecast: due.value,
                    measured,
                });
            }
        }
        let surplus = self.outcomes.len().saturating_sub(OUTCOMES_MAX);
        self.outcomes.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::{InputBatch, Reading};
    use crate::window::{SampleFormat, SeriesConfig, WindowSettings};

    /// A window of single steps.
    fn window(step_s: u32) -> DataWindow {
        let samples = SampleFormat::Lags;
        DataWindow::new(WindowSettings::Series(SeriesConfig {
            samples,
            step_s,
            lags: 1,
            ..Default::default()
        }))
    }

    fn add(window: &mut DataWindow, time_ms: i64, value: f64) {
        window.add(&InputBatch::Readings(vec![Reading { time_ms, value }]));
    }

    #[test]
    fn forecasts_are_compared_with_measurements() {
        let mut series = window(60);
        let mut forecasts = Forecasts::default();
        let minute = |minute: i64| minute * 60_000;
        for (at, value) in [(1, 9.0), (1, 2.0), (2, 5.0), (4, 4.0)] {
            forecasts.add(Forecast { for_ms: minute(at), value });
        }
        forecasts.evaluate(&series);
        assert_eq!(forecasts.mean_absolute_error(), None, "nothing was measured");
        for (at, value) in [(1, 1.0), (3, 3.0)] {
            add(&mut series, minute(at), value);
            forecasts.evaluate(&series);
        }
        let outcomes: Vec<ForecastOutcome> = forecasts.outcomes().copied().collect();
        assert_eq!(
            outcomes,
            [ForecastOutcome { for_ms: minute(1), forecast: 2.0, measured: 1.0 }],
            "minute 2 was interpolated"
        );
        assert_eq!(forecasts.mean_absolute_error(), Some(1.0));
        assert_eq!(forecasts.newest(), Some(Forecast { for_ms: minute(4), value: 4.0 }));
    }

    #[test]
    fn forecasts_by_a_wrong_clock_are_dropped() {
        let mut series = window(60);
        let mut forecasts = Forecasts::default();
        forecasts.add(Forecast { for_ms: 9_999 * 60_000, value: 9.0 });
        forecasts.add(Forecast { for_ms: 60_000, value: 2.0 });
        add(&mut series, 60_000, 3.0);
        forecasts.evaluate(&series);
        assert_eq!(forecasts.mean_absolute_error(), Some(1.0));
    }

    #[test]
    fn memory_is_bounded() {
        let mut series = window(1);
        let mut forecasts = Forecasts::default();
        for second in 1..5000 {
            for ahead in 0..3 {
                forecasts.add(Forecast { for_ms: (second + ahead) * 1000, value: 0.0 });
            }
            add(&mut series, second * 1000, 0.0);
            forecasts.evaluate(&series);
        }
        for far in 0..200 {
            forecasts.add(Forecast { for_ms: i64::MAX - 200 + far, value: 0.0 });
        }
        assert_eq!((forecasts.outcomes.len(), forecasts.pending.len()), (OUTCOMES_MAX, PENDING_MAX));
    }
}
