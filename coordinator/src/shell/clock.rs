//! The coordinator's clock.

use std::time::{Duration, Instant, SystemTime};

use evenhand_federation::Tick;

/// Milliseconds since 1970 at the start of the program, advanced by a monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct MonotonicClock {
    started: Instant,
    epoch_ms: u64,
}

impl MonotonicClock {
    pub(super) fn start() -> Self {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { started: Instant::now(), epoch_ms: since_1970.as_millis() as u64 }
    }

    pub(super) fn now(&self) -> Tick {
        Tick(self.epoch_ms + self.started.elapsed().as_millis() as u64)
    }

    /// Waits until an alarm is due; without one, it never returns.
    pub(super) async fn sleep_until(&self, alarm: Option<Tick>) {
        match alarm {
            Some(at) => {
                let since_start = Duration::from_millis(at.0.saturating_sub(self.epoch_ms));
                tokio::time::sleep_until((self.started + since_start).into()).await;
            }
            None => std::future::pending().await,
        }
    }
}
