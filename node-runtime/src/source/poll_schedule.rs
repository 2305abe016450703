//! Times at which a source asks its meter.
#![allow(dead_code, reason = "a program may be built without the sources that need it")]

use std::thread;
use std::time::{Duration, Instant};

use super::READ_TIMEOUT;

/// Requests at an interval, the first at once.
#[derive(Debug)]
pub(super) struct PollSchedule {
    interval: Duration,
    due: Instant,
}

impl PollSchedule {
    /// Requests every `interval_s` seconds, as [`check_interval`] accepts them.
    pub(super) fn every(interval_s: f64) -> Self {
        let interval = Duration::try_from_secs_f64(interval_s).unwrap_or(READ_TIMEOUT);
        Self { interval, due: Instant::now() }
    }

    /// Sleeps until the next request is due, a second at most; true if it is due.
    pub(super) fn wait(&self) -> bool {
        let wait = self.due.saturating_duration_since(Instant::now());
        thread::sleep(wait.min(READ_TIMEOUT));
        wait <= READ_TIMEOUT
    }

    /// The answer is there. A slow answer does not shorten the next interval.
    pub(super) fn done(&mut self) {
        self.due = (self.due + self.interval).max(Instant::now());
    }
}

/// The mistake of an interval, with the remedy.
pub(super) fn check_interval(interval_s: f64) -> Result<(), String> {
    if interval_s > 0.0 && interval_s <= 86_400.0 {
        return Ok(());
    }
    Err(format!("source.interval_s = {interval_s}; choose up to a day"))
}
