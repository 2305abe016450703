//! Rejection of outliers that are faults of the meter.

use super::normalise::{DEVIATIONS_MAX, Normaliser};

/// A step this many times as large as any in memory is a fault of the meter.
const FACTOR: f64 = 100.0;
/// Steps before which nothing is rejected.
const WARM_UP_STEPS: u32 = 100;
/// Suspicion added by an outlier; any other step takes one off.
const WEIGHT: u32 = 16;
/// Ten outliers in a short time are accepted: the meter was exchanged, or the heating season began.
const ACCEPTED_FROM: u32 = 10 * WEIGHT;

/// Rejects steps that would distort the normalisation of a series for its whole memory.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct OutlierGuard {
    suspicion: u32,
    rejected: u64,
}

impl OutlierGuard {
    /// True if a step of this value is rejected.
    pub(super) fn rejects(
        &mut self,
        value: f64,
        normaliser: &Normaliser,
        memory: impl Iterator<Item = f32>,
    ) -> bool {
        if !is_outlier(value, normaliser, memory) {
            self.suspicion = self.suspicion.saturating_sub(1);
            return false;
        }
        self.suspicion += WEIGHT;
        if self.suspicion >= ACCEPTED_FROM {
            self.suspicion = 0;
            return false;
        }
        self.rejected += 1;
        true
    }

    /// Steps rejected since the program started.
    pub(super) fn rejected(&self) -> u64 {
        self.rejected
    }
}

fn is_outlier(value: f64, normaliser: &Normaliser, memory: impl Iterator<Item = f32>) -> bool {
    // The deviation settles most values without a pass over the whole memory.
    let near = (value - normaliser.mean()).abs() <= DEVIATIONS_MAX * normaliser.deviation();
    if near || normaliser.count() < WARM_UP_STEPS {
        return false;
    }
    let largest = memory.fold(0.0, |largest: f32, value| largest.max(value.abs()));
    largest > 0.0 && value.abs() > FACTOR * f64::from(largest)
}
