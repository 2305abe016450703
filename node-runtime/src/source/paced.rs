//! A simulated or recorded source, paced by the clock.
#![allow(dead_code, reason = "a program may be built without the sources that need it")]

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::{Intake, READ_TIMEOUT, Source, SourceError};
use crate::reading::{InputBatch, Reading};

/// Readings looked ahead at once.
const AHEAD: usize = 64;

/// Delivers the readings of another source when they are due.
#[derive(Debug)]
pub struct Paced<S> {
    source: S,
    speed: f64,
    ahead: VecDeque<Reading>,
    begin: Instant,
    begin_ms: i64,
}

impl<S: Source> Paced<S> {
    /// Paces `source`: readings up to `now_ms` are due at once, the others in time, `speed` times as fast as the series.
    ///
    /// `speed` must be positive.
    pub fn new(source: S, speed: f64, now_ms: i64) -> Self {
        Self { source, speed, ahead: VecDeque::new(), begin: Instant::now(), begin_ms: now_ms }
    }

    /// Time until `time_ms` is due.
    fn wait(&self, time_ms: i64) -> Duration {
        let seconds = time_ms.saturating_sub(self.begin_ms).max(0) as f64 / 1000.0 / self.speed;
        let due = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        due.saturating_sub(self.begin.elapsed())
    }
}

impl<S: Source> Source for Paced<S> {
    fn read(&mut self, count: usize) -> Result<InputBatch, SourceError> {
        if self.ahead.is_empty() {
            match self.source.read(AHEAD)? {
                InputBatch::Readings(readings) => self.ahead.extend(readings),
                rows @ InputBatch::Rows(_) => return Ok(rows),
            }
        }
        let Some(first) = self.ahead.front().copied() else { return Ok(InputBatch::Readings(Vec::new())) };
        std::thread::sleep(self.wait(first.time_ms).min(READ_TIMEOUT));
        let mut due = Vec::new();
        while due.len() < count
            && let Some(next) = self.ahead.front().copied()
            && self.wait(next.time_ms).is_zero()
        {
            due.push(next);
            self.ahead.pop_front();
        }
        Ok(InputBatch::Readings(due))
    }

    fn intake(&self) -> Option<&Intake> {
        self.source.intake()
    }
}

#[cfg(all(test, feature = "household"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::source::household::{Household, HouseholdConfig};

    #[test]
    fn delivers_in_order_and_no_sooner_than_due() {
        let household = || Household::new(HouseholdConfig::default());
        let InputBatch::Readings(expected) = household().read(12).unwrap() else { panic!("rows") };
        let begin = Instant::now();
        let mut paced = Paced::new(household(), 900_000.0, expected[0].time_ms);
        let mut seen = Vec::new();
        while seen.len() < expected.len() {
            let InputBatch::Readings(readings) = paced.read(5).unwrap() else { panic!("rows") };
            assert!(readings.len() <= 5);
            seen.extend(readings);
            let earliest = Duration::from_millis(seen.len() as u64 - 1);
            assert!(begin.elapsed() >= earliest, "reading {} after {:?}", seen.len(), begin.elapsed());
        }
        assert_eq!(seen[..12], expected);
    }
}
