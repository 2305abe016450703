//! A simulated or recorded source in real time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::{PATIENCE, Source, SourceError};
use crate::reading::{Intake, Reading};

/// Readings looked ahead at once.
const AHEAD: usize = 64;

/// Hands the readings of another source over when their time has come.
#[derive(Debug)]
pub struct Clocked<S> {
    source: S,
    speed: f64,
    ahead: VecDeque<Reading>,
    begin: Instant,
    begin_ms: i64,
}

impl<S: Source> Clocked<S> {
    /// Paces `source`: what it says up to `now_ms` comes at once, the rest in time, `speed` times as fast as the series.
    ///
    /// `speed` must be positive.
    pub fn new(source: S, speed: f64, now_ms: i64) -> Self {
        Self { source, speed, ahead: VecDeque::new(), begin: Instant::now(), begin_ms: now_ms }
    }

    /// How long to wait until `time_ms` has come.
    fn wait(&self, time_ms: i64) -> Duration {
        let seconds = time_ms.saturating_sub(self.begin_ms).max(0) as f64 / 1000.0 / self.speed;
        let due = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        due.saturating_sub(self.begin.elapsed())
    }
}

impl<S: Source> Source for Clocked<S> {
    fn read(&mut self, count: usize) -> Result<Intake, SourceError> {
        if self.ahead.is_empty() {
            match self.source.read(AHEAD)? {
                Intake::Readings(readings) => self.ahead.extend(readings),
                rows @ Intake::Rows(_) => return Ok(rows),
            }
        }
        let Some(first) = self.ahead.front().copied() else { return Ok(Intake::Readings(Vec::new())) };
        std::thread::sleep(self.wait(first.time_ms).min(PATIENCE));
        let mut due = Vec::new();
        while due.len() < count
            && let Some(next) = self.ahead.front().copied()
            && self.wait(next.time_ms).is_zero()
        {
            due.push(next);
            self.ahead.pop_front();
        }
        Ok(Intake::Readings(due))
    }

    fn malformed(&self) -> u64 {
        self.source.malformed()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::source::household::{Household, HouseholdSettings};

    #[test]
    fn hands_over_in_order_and_no_sooner_than_due() {
        let household = || Household::new(HouseholdSettings::default());
        let Intake::Readings(expected) = household().read(12).unwrap() else { panic!("rows") };
        let begin = Instant::now();
        let mut clocked = Clocked::new(household(), 900_000.0, expected[0].time_ms);
        let mut seen = Vec::new();
        while seen.len() < expected.len() {
            let Intake::Readings(readings) = clocked.read(5).unwrap() else { panic!("rows") };
            assert!(readings.len() <= 5);
            seen.extend(readings);
            let earliest = Duration::from_millis(seen.len() as u64 - 1);
            assert!(begin.elapsed() >= earliest, "reading {} after {:?}", seen.len(), begin.elapsed());
        }
        assert_eq!(seen[..12], expected);
    }
}
