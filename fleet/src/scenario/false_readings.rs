//! Readings that a node pretends to have measured.

use evenhand_node::reading::Reading;
use rand_chacha::ChaCha8Rng;

use super::day_ahead::LoadScale;
use crate::data::day_ahead::{DAY_STEPS, FIRST_MS, STEP_S};

/// What a node reads instead of a meter. What it sends is honest work with that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FalseReadings {
    /// Zero, always
    ZeroMeter,
    /// One reading, always
    StuckMeter,
    /// Readings made up at random
    MadeUpReadings,
    /// One day again and again
    RepeatedDay,
    /// One day again and again, each reading changed a little at random
    RepeatedDayNoisy,
}

/// The deviation of what is added to a repeated day, as a share of its own.
const REPEATED_NOISE: f32 = 0.1;

impl FalseReadings {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::ZeroMeter, Self::StuckMeter, Self::MadeUpReadings, Self::RepeatedDay, Self::RepeatedDayNoisy];

    /// Replaces the values of readings.
    pub(super) fn replace(self, readings: &mut [Reading], scale: LoadScale, generator: &mut ChaCha8Rng) {
        let step_ms = i64::from(STEP_S) * 1000;
        for reading in readings {
            let slot = (reading.time_ms - FIRST_MS).div_euclid(step_ms).rem_euclid(DAY_STEPS as i64);
            reading.value = match self {
                Self::ZeroMeter => 0.0,
                Self::StuckMeter => scale.usual().into(),
                Self::MadeUpReadings => scale.made_up(generator).into(),
                Self::RepeatedDay => scale.of_slot(slot).into(),
                Self::RepeatedDayNoisy => {
                    let other = scale.made_up(generator) - scale.usual();
                    (scale.of_slot(slot) + REPEATED_NOISE * other).max(0.0).into()
                }
            };
        }
    }
}
