//! What a node forecast, and what came true.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::window::Series;

/// Forecasts that wait for their step to end.
const PENDING_MAX: usize = 64;
/// Outcomes kept: a week of quarter hours.
const OUTCOMES_MAX: usize = 672;

/// One forecast, in the meter's unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// The end of the step it is for.
    pub for_ms: i64,
    /// The value.
    pub value: f64,
}

/// A forecast and what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The end of the step.
    pub for_ms: i64,
    /// What was forecast.
    pub forecast: f64,
    /// What was measured.
    pub measured: f64,
}

/// The newest forecasts and outcomes, bounded in number.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Forecasts {
    newest: Option<Forecast>,
    pending: VecDeque<Forecast>,
    outcomes: VecDeque<Outcome>,
}

impl Forecasts {
    /// The newest forecast.
    pub fn newest(&self) -> Option<Forecast> {
        self.newest
    }

    /// What came of the forecasts, oldest first.
    pub fn outcomes(&self) -> impl ExactSizeIterator<Item = &Outcome> {
        self.outcomes.iter()
    }

    /// The mean distance between forecast and truth, in the meter's unit.
    pub fn mean_absolute_error(&self) -> Option<f64> {
        let sum: f64 = self.outcomes.iter().map(|outcome| (outcome.forecast - outcome.measured).abs()).sum();
        (!self.outcomes.is_empty()).then(|| sum / self.outcomes.len() as f64)
    }

    /// Notes a forecast. It replaces what was forecast for the same step before, and for later ones: the clock was set back.
    pub(super) fn note(&mut self, forecast: Forecast) {
        self.newest = Some(forecast);
        self.pending.retain(|pending| pending.for_ms < forecast.for_ms);
        self.pending.push_back(forecast);
        let surplus = self.pending.len().saturating_sub(PENDING_MAX);
        self.pending.drain(..surplus);
    }

    /// Compares what is due with what was measured; a step without measurement is forgotten.
    pub(super) fn settle(&mut self, series: &Series) {
        let Some(complete_ms) = series.complete_ms() else { return };
        while let Some(due) = self.pending.pop_front_if(|pending| pending.for_ms <= complete_ms) {
            if let Some(measured) = series.measured(due.for_ms) {
                self.outcomes.push_back(Outcome { for_ms: due.for_ms, forecast: due.value, measured });
            }
        }
        let surplus = self.outcomes.len().saturating_sub(OUTCOMES_MAX);
        self.outcomes.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::Reading;
    use crate::window::SeriesSettings;

    #[test]
    fn forecasts_meet_what_came_true() {
        let mut series = Series::new(SeriesSettings { step_s: 60, lags: 1, ..Default::default() });
        let mut forecasts = Forecasts::default();
        let minute = |minute: i64| minute * 60_000;
        for (at, value) in [(1, 9.0), (1, 2.0), (2, 5.0), (4, 4.0)] {
            forecasts.note(Forecast { for_ms: minute(at), value });
        }
        forecasts.settle(&series);
        assert_eq!(forecasts.mean_absolute_error(), None, "nothing was measured");
        for (at, value) in [(1, 1.0), (3, 3.0)] {
            series.add(Reading { time_ms: minute(at), value });
            forecasts.settle(&series);
        }
        let outcomes: Vec<Outcome> = forecasts.outcomes().copied().collect();
        assert_eq!(
            outcomes,
            [Outcome { for_ms: minute(1), forecast: 2.0, measured: 1.0 }],
            "minute 2 was interpolated"
        );
        assert_eq!(forecasts.mean_absolute_error(), Some(1.0));
        assert_eq!(forecasts.newest(), Some(Forecast { for_ms: minute(4), value: 4.0 }));
    }

    #[test]
    fn forecasts_by_a_wrong_clock_are_forgotten() {
        let mut series = Series::new(SeriesSettings { step_s: 60, lags: 1, ..Default::default() });
        let mut forecasts = Forecasts::default();
        forecasts.note(Forecast { for_ms: 9_999 * 60_000, value: 9.0 });
        forecasts.note(Forecast { for_ms: 60_000, value: 2.0 });
        series.add(Reading { time_ms: 60_000, value: 3.0 });
        forecasts.settle(&series);
        assert_eq!(forecasts.mean_absolute_error(), Some(1.0));
    }

    #[test]
    fn memory_is_bounded() {
        let mut series = Series::new(SeriesSettings { step_s: 1, lags: 1, ..Default::default() });
        let mut forecasts = Forecasts::default();
        for second in 1..5000 {
            for ahead in 0..3 {
                forecasts.note(Forecast { for_ms: (second + ahead) * 1000, value: 0.0 });
            }
            series.add(Reading { time_ms: second * 1000, value: 0.0 });
            forecasts.settle(&series);
        }
        for far in 0..200 {
            forecasts.note(Forecast { for_ms: i64::MAX - 200 + far, value: 0.0 });
        }
        assert_eq!((forecasts.outcomes.len(), forecasts.pending.len()), (OUTCOMES_MAX, PENDING_MAX));
    }
}
