//! Forecasts whose steps have not ended.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::origin::OriginState;
use super::skill::StalenessClass;
use super::vector::QUANTILES;

/// Forecasts of the whole horizon that wait at a time: one an hour, if the horizon is a day.
const WHOLE_MAX: usize = 24;
/// Leads of a forecast that are scored: every quarter of an hour, if the horizon is a day.
const LEADS_MAX: usize = 96;

/// The part of a forecast that is compared with the loads to come. Naive forecasts are not kept: they follow from the loads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PendingForecast {
    pub(super) state: OriginState,
    pub(super) staleness: StalenessClass,
    /// Leads 1, 1 + stride, 1 + 2·stride, …
    pub(super) mixture: Vec<[f32; QUANTILES.len()]>,
    /// Of the same leads; empty if there was none.
    pub(super) shared: Vec<[f32; QUANTILES.len()]>,
    /// Of the same leads; empty if there was none.
    pub(super) personal: Vec<[f32; QUANTILES.len()]>,
}

/// Forecasts that wait for their loads, bounded in number: whole ones at a fixed cadence, of the others the next hour.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PendingForecasts {
    stride: usize,
    cadence: i64,
    hour_steps: usize,
    /// Origin of the newest whole one.
    newest_whole: Option<i64>,
    queue: VecDeque<PendingForecast>,
}

impl PendingForecasts {
    pub(super) fn new(step_s: u32, horizon_steps: usize) -> Self {
        Self {
            stride: horizon_steps.div_ceil(LEADS_MAX).max(1),
            cadence: horizon_steps.div_ceil(WHOLE_MAX).max(1) as i64,
            hour_steps: (3600 / step_s.max(1)).max(1) as usize,
            newest_whole: None,
            queue: VecDeque::new(),
        }
    }

    /// Indices of the leads that are scored for a forecast of `leads` leads from `origin`: all of them if the last whole one is
    /// a horizon's 24th old or more, whichever steps the forecasts are made at.
    pub(super) fn scored(
        &mut self,
        origin: i64,
        leads: usize,
    ) -> impl Iterator<Item = usize> + Clone + use<> {
        let too_early = |newest: i64| newest < origin && origin < newest.saturating_add(self.cadence);
        let whole = !self.newest_whole.is_some_and(too_early);
        if whole {
            self.newest_whole = Some(origin);
        }
        (0..if whole { leads } else { leads.min(self.hour_steps) }).step_by(self.stride)
    }

    /// Adds a forecast; it replaces one of the same origin, and those of later origins: the clock was set back.
    pub(super) fn add(&mut self, forecast: PendingForecast) {
        self.queue.retain(|pending| pending.state.origin < forecast.state.origin);
        self.queue.push_back(forecast);
        let surplus = self.queue.len().saturating_sub(WHOLE_MAX + self.hour_steps);
        self.queue.drain(..surplus);
    }

    /// The forecasts of a step, each with the place of its lead.
    pub(super) fn of_step(&self, step: i64) -> impl Iterator<Item = (&PendingForecast, usize)> {
        self.queue.iter().filter_map(move |pending| {
            let index = usize::try_from(step.checked_sub(pending.state.origin)?.checked_sub(1)?).ok()?;
            let place = index / self.stride;
            (index % self.stride == 0 && place < pending.mixture.len()).then_some((pending, place))
        })
    }

    /// Drops the forecasts of which no lead is after `step`.
    pub(super) fn drop_until(&mut self, step: i64) {
        let stride = self.stride as i64;
        self.queue.retain(|pending| {
            let last_lead = (pending.mixture.len() as i64 - 1) * stride + 1;
            pending.state.origin <= step && pending.state.origin + last_lead > step
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_forecasts_are_scored_whichever_steps_they_are_made_at() {
        let scored = |origins: &[i64]| -> Vec<usize> {
            let mut pending = PendingForecasts::new(1800, 48);
            origins.iter().map(|origin| pending.scored(*origin, 48).count()).collect()
        };
        assert_eq!(scored(&[1, 7, 13, 19]), [48; 4], "every 3 h, at odd steps");
        assert_eq!(scored(&[1, 2, 3, 4, 5]), [48, 2, 48, 2, 48], "at every step: one whole an hour");
        assert_eq!(scored(&[10, 11, 3, 4]), [48, 2, 48, 2], "the clock was set back");
    }
}
