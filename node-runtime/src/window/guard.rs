//! What is beyond all measure.

use super::normalise::{DEVIATIONS_MAX, Normaliser};

/// A step so many times as large as any in memory is no load but a fault of the meter.
const FACTOR: f64 = 100.0;
/// Before so many steps were seen, nobody knows what is large.
const WARM_UP_STEPS: u32 = 100;
/// Each wild step counts so much, and each other takes one off.
const WEIGHT: u32 = 16;
/// Ten wild steps in a short time are believed: the meter was exchanged, or the heating season began.
const BELIEVED: u32 = 10 * WEIGHT;

/// Keeps steps out of a series that would spoil its normalisation for as long as that remembers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Guard {
    suspicion: u32,
    kept_out: u64,
}

impl Guard {
    /// Whether a step of this value is to be kept out of what is known so far.
    pub(super) fn keeps_out(
        &mut self,
        value: f64,
        normaliser: &Normaliser,
        memory: impl Iterator<Item = f32>,
    ) -> bool {
        if !is_wild(value, normaliser, memory) {
            self.suspicion = self.suspicion.saturating_sub(1);
            return false;
        }
        self.suspicion += WEIGHT;
        if self.suspicion >= BELIEVED {
            self.suspicion = 0;
            return false;
        }
        self.kept_out += 1;
        true
    }

    /// Steps kept out since the program started.
    pub(super) fn kept_out(&self) -> u64 {
        self.kept_out
    }
}

fn is_wild(value: f64, normaliser: &Normaliser, memory: impl Iterator<Item = f32>) -> bool {
    // A look at the deviation spares most values the look at the whole memory.
    let near = (value - normaliser.mean()).abs() <= DEVIATIONS_MAX * normaliser.deviation();
    if near || normaliser.count() < WARM_UP_STEPS {
        return false;
    }
    let largest = memory.fold(0.0, |largest: f32, value| largest.max(value.abs()));
    largest > 0.0 && value.abs() > FACTOR * f64::from(largest)
}
