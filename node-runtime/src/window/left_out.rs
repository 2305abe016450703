//! Loads to leave out: series that are subtracted from the household's load, such as a car charger.

use serde::{Deserialize, Serialize};

use super::SeriesWindow;
use crate::config::{MeterQuantity, SeriesConfig};
use crate::reading::Reading;

/// Time without a value after which a load to leave out is taken for zero.
const SILENT_MS: i64 = 3_600_000;

/// The loads that are left out of a household's load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct LeftOutLoads {
    loads: Vec<LeftOutLoad>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct LeftOutLoad {
    name: String,
    series: SeriesWindow,
}

/// The household's load of a step without what is left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum NetLoad {
    /// The load.
    Known(f64),
    /// The readings of a load to leave out may still arrive.
    Awaited,
    /// A load to leave out fell silent while it drew power: what remains is anyone's guess.
    Missing,
}

impl LeftOutLoads {
    /// Leaves out these loads from now on; those that it had keep their values. Steps are those of `window`.
    pub(super) fn name<'a>(
        &mut self,
        loads: impl Iterator<Item = (&'a str, MeterQuantity)>,
        window: &SeriesConfig,
    ) {
        let mut before = std::mem::take(&mut self.loads);
        for (name, quantity) in loads {
            let settings = SeriesConfig { quantity, ..window.clone() };
            let same = |load: &LeftOutLoad| load.name == name && *load.series.settings() == settings;
            let load = match before.iter().position(same) {
                Some(at) => before.swap_remove(at),
                None => LeftOutLoad { name: name.to_owned(), series: SeriesWindow::new(settings) },
            };
            self.loads.push(load);
        }
    }

    /// Adds a reading of the load `name`.
    pub(super) fn add(&mut self, name: &str, reading: Reading) {
        if let Some(load) = self.loads.iter_mut().find(|load| load.name == name) {
            load.series.add(reading);
        }
    }

    /// The time of the newest reading of the load `name`.
    pub(super) fn newest_ms(&self, name: &str) -> Option<i64> {
        self.loads.iter().find(|load| load.name == name)?.series.newest_ms()
    }

    /// The load of the step that ended at `end_ms` without the loads to leave out; `is_newest` where no later step is
    /// complete.
    pub(super) fn net(&self, gross: f64, end_ms: i64, is_newest: bool) -> NetLoad {
        let mut net = gross;
        let mut missing = false;
        for LeftOutLoad { series, .. } in &self.loads {
            let complete_ms = series.complete_ms().unwrap_or(i64::MIN);
            if let Some(value) = series.value_at(end_ms) {
                net -= value;
            } else if let Some(last) = last_value(series, end_ms) {
                if complete_ms < end_ms && is_newest {
                    return NetLoad::Awaited;
                }
                missing |= last != 0.0;
            }
        }
        if missing { NetLoad::Missing } else { NetLoad::Known(net) }
    }
}

/// The newest value of the hour before `end_ms`.
fn last_value(series: &SeriesWindow, end_ms: i64) -> Option<f64> {
    let step_ms = i64::from(series.settings().step_s.max(1)) * 1000;
    (1..=SILENT_MS / step_ms).find_map(|back| series.value_at(end_ms - back * step_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP_MS: i64 = 900_000;

    fn car(quantity: MeterQuantity) -> LeftOutLoads {
        let mut left_out = LeftOutLoads::default();
        left_out.name([("car", quantity)].into_iter(), &SeriesConfig::default());
        left_out
    }

    fn net(left_out: &LeftOutLoads, step: i64, is_newest: bool) -> NetLoad {
        left_out.net(12.0, step * STEP_MS, is_newest)
    }

    #[test]
    fn a_load_is_subtracted_awaited_for_a_step_then_missing_and_after_an_hour_zero() {
        let mut left_out = car(MeterQuantity::Level);
        assert_eq!(net(&left_out, 100, true), NetLoad::Known(12.0), "it never spoke");
        left_out.add("car", Reading { time_ms: 100 * STEP_MS - 60_000, value: 10.0 });
        left_out.add("pump", Reading { time_ms: 100 * STEP_MS - 60_000, value: 1.0 });
        left_out.add("car", Reading { time_ms: 100 * STEP_MS, value: 12.0 });
        assert_eq!(net(&left_out, 100, true), NetLoad::Known(1.0));
        assert_eq!(net(&left_out, 101, true), NetLoad::Awaited);
        assert_eq!(net(&left_out, 101, false), NetLoad::Missing);
        assert_eq!(net(&left_out, 104, false), NetLoad::Missing);
        assert_eq!(net(&left_out, 105, true), NetLoad::Known(12.0), "silent for more than an hour");
        left_out.add("car", Reading { time_ms: 110 * STEP_MS, value: 0.0 });
        assert_eq!(net(&left_out, 103, false), NetLoad::Missing, "within a gap");
        assert_eq!(net(&left_out, 111, false), NetLoad::Known(12.0), "it drew nothing before");
        assert_eq!((left_out.newest_ms("car"), left_out.newest_ms("pump")), (Some(110 * STEP_MS), None));
    }

    #[test]
    fn a_counter_is_left_out_by_its_growth_and_a_load_is_kept_by_its_name() {
        let mut left_out = car(MeterQuantity::Counter);
        for (step, energy) in [(100, 50.0), (101, 51.0)] {
            left_out.add("car", Reading { time_ms: step * STEP_MS, value: energy });
        }
        assert_eq!(net(&left_out, 101, true), NetLoad::Known(8.0), "1 kWh in a quarter of an hour");
        let before = left_out.clone();
        left_out.name([("car", MeterQuantity::Counter)].into_iter(), &SeriesConfig::default());
        assert_eq!(left_out, before);
        left_out.name([("car", MeterQuantity::Level)].into_iter(), &SeriesConfig::default());
        assert_eq!(net(&left_out, 101, true), NetLoad::Known(12.0));
    }
}
