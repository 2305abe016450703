//! Watch over the times of a source's readings: which cannot be right, and whether they come often enough.

use std::collections::VecDeque;

use crate::reading::{InputBatch, Reading};
use crate::source::time::implausible;

/// Intervals that are remembered.
const INTERVALS_MAX: usize = 16;
/// Intervals before which nothing is said.
const INTERVALS_MIN: usize = 8;
/// The longest step of a day-ahead forecast.
const STEP_S_MAX: i64 = 3600;
const DAY_S: i64 = 86_400;

/// The times of one source.
#[derive(Debug)]
pub(crate) struct ReadingWatch {
    step_ms: i64,
    /// A covariate: its readings may lie ahead, and are interpolated.
    is_covariate: bool,
    newest_ms: Option<i64>,
    intervals_ms: VecDeque<i64>,
}

impl ReadingWatch {
    /// For readings that are averaged to steps of `step_s`.
    pub(crate) fn new(step_s: u32, is_covariate: bool) -> Self {
        Self {
            step_ms: i64::from(step_s) * 1000,
            is_covariate,
            newest_ms: None,
            intervals_ms: VecDeque::new(),
        }
    }

    /// The reason why a reading is refused at `now_ms`.
    pub(crate) fn refusal(&self, reading: Reading, now_ms: i64) -> Option<String> {
        let now_ms = if self.is_covariate { i64::MAX } else { now_ms };
        implausible(reading.time_ms, now_ms)
    }

    /// Notes the intervals of `batch`.
    pub(crate) fn note(&mut self, batch: &InputBatch) {
        let InputBatch::Readings(readings) = batch else { return };
        for reading in readings {
            let interval_ms = self.newest_ms.map(|newest_ms| reading.time_ms.saturating_sub(newest_ms));
            self.intervals_ms.extend(interval_ms.filter(|interval_ms| *interval_ms > 0));
            self.newest_ms = Some(reading.time_ms);
        }
        let surplus = self.intervals_ms.len().saturating_sub(INTERVALS_MAX);
        self.intervals_ms.drain(..surplus);
    }

    /// The usual interval of the readings so far, in milliseconds.
    pub(crate) fn interval_ms(&self) -> Option<i64> {
        let mut sorted: Vec<i64> = self.intervals_ms.iter().copied().collect();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied()
    }

    /// The sentence that proposes another step, if readings have come too rarely for a while.
    pub(crate) fn misfit(&self) -> Option<String> {
        let enough = self.intervals_ms.len() >= INTERVALS_MIN && !self.is_covariate;
        self.interval_ms().filter(|_| enough).and_then(|interval_ms| self.proposal(interval_ms))
    }

    /// The sentence that proposes another step for readings at this interval, if half of the steps or more would be empty.
    pub(crate) fn proposal(&self, interval_ms: i64) -> Option<String> {
        // Of readings every step and a half, two of three steps are measured.
        if 2 * interval_ms <= 3 * self.step_ms {
            return None;
        }
        let (interval_s, step_s) = ((interval_ms + 500) / 1000, self.step_ms / 1000);
        let whole = |step_s: &i64| DAY_S % step_s == 0 && (*step_s < 60 || step_s % 60 == 0);
        let fits = (interval_s..=STEP_S_MAX).find(whole);
        let remedy = match fits {
            Some(step_s) => format!("set window.step_s = {step_s}, or let the source send more often"),
            None => "let the source send at least once an hour".to_owned(),
        };
        Some(format!("readings come every {interval_s} s, which leaves steps of {step_s} s empty; {remedy}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(times_s: impl Iterator<Item = i64>) -> InputBatch {
        InputBatch::Readings(times_s.map(|time_s| Reading { time_ms: time_s * 1000, value: 1.0 }).collect())
    }

    #[test]
    fn a_step_that_is_too_short_is_noticed_and_another_proposed() {
        let said = |step_s: u32, interval_s: i64| {
            let mut watch = ReadingWatch::new(step_s, false);
            watch.note(&batch((0..20).map(|number| number * interval_s)));
            watch.misfit()
        };
        let half_hours = said(900, 1800);
        assert!(
            half_hours.as_ref().is_some_and(
                |text| text.contains("every 1800 s") && text.contains("set window.step_s = 1800")
            ),
            "{half_hours:?}"
        );
        assert!(said(5, 10).is_some_and(|text| text.contains("window.step_s = 10,")));
        assert!(said(900, 7200).is_some_and(|text| text.contains("once an hour")));
        assert!(
            said(900, 1700).is_some_and(|text| text.contains("window.step_s = 1800")),
            "a step is whole minutes and divides a day"
        );
        for interval_s in [1, 60, 900, 1200] {
            assert_eq!(said(900, interval_s), None, "{interval_s}");
        }
    }

    #[test]
    fn gaps_and_repeated_times_are_no_interval() {
        let mut watch = ReadingWatch::new(900, false);
        watch.note(&batch(
            [0, 900, 900, 1800, 90_000, 90_900, 91_800, 92_700, 93_600, 94_500, 95_400].into_iter(),
        ));
        assert_eq!((watch.interval_ms(), watch.misfit()), (Some(900_000), None));
        let mut covariate = ReadingWatch::new(900, true);
        covariate.note(&batch((0..20).map(|hour| hour * 3600)));
        assert_eq!(covariate.misfit(), None, "they are interpolated");
    }

    #[test]
    fn times_that_cannot_be_right_are_refused_but_a_covariates_may_lie_ahead() {
        let now_ms = 1_714_566_600_000;
        let at = |time_ms| Reading { time_ms, value: 1.0 };
        let (load, covariate) = (ReadingWatch::new(900, false), ReadingWatch::new(900, true));
        assert!(load.refusal(at(now_ms + 2 * 86_400_000), now_ms).is_some());
        assert_eq!(covariate.refusal(at(now_ms + 2 * 86_400_000), now_ms), None);
        assert!(load.refusal(at(0), now_ms).is_some() && covariate.refusal(at(0), now_ms).is_some());
        assert_eq!(load.refusal(at(now_ms), now_ms), None);
    }
}
