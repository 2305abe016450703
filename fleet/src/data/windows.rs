//! Samples of a recorded series, cut by the node's own window.

use evenhand_models::Targets;
use evenhand_node::reading::Reading;
use evenhand_node::time_zone::LocalTimeZone;
use evenhand_node::window::{FEATURES, SampleFormat, SeriesConfig, SeriesWindow};

/// Steps that a model looks back.
pub(super) const LAGS: usize = 24;

/// Samples so far.
#[derive(Debug, Default)]
pub(super) struct Samples {
    pub(super) features: Vec<f32>,
    pub(super) values: Vec<f32>,
    pub(super) scales: Vec<(f32, f32)>,
}

impl Samples {
    pub(super) fn shape() -> Vec<usize> {
        vec![LAGS, FEATURES]
    }
}

/// The cut of a series into samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowCut {
    pub(super) step_s: u32,
    pub(super) time_zone: &'static str,
    /// Readings before the first sample: until the running normalisation is settled.
    pub(super) warm_up: usize,
    /// A sample is taken after every so many readings.
    pub(super) stride: usize,
}

impl WindowCut {
    /// Reads the series as a node would, up to sample `samples_max`, and stores the samples whose numbers `keep` accepts;
    /// returns how many there were.
    pub(super) fn take(
        &self,
        readings: &[Reading],
        samples_max: usize,
        mut keep: impl FnMut(usize) -> bool,
        into: &mut Samples,
    ) -> usize {
        let mut series = SeriesWindow::new(SeriesConfig {
            step_s: self.step_s,
            samples: SampleFormat::Lags,
            lags: LAGS,
            horizon: 1,
            history_steps: 4 * LAGS,
            time_zone: LocalTimeZone::named(self.time_zone).expect("a zone of the database"),
            ..SeriesConfig::default()
        });
        let mut count = 0;
        for (number, reading) in readings.iter().enumerate() {
            if count == samples_max {
                break;
            }
            series.add(*reading);
            if number < self.warm_up || !number.is_multiple_of(self.stride) {
                continue;
            }
            let Some(taken) = series.batch(1) else { continue };
            series.mark_used(taken.upto);
            if let Targets::Values(values) = taken.batch.targets
                && keep(count)
            {
                let normaliser = series.normaliser();
                into.features.extend(taken.batch.inputs);
                into.scales
                    .extend(values.iter().map(|_| (normaliser.mean() as f32, normaliser.deviation() as f32)));
                into.values.extend(values);
            }
            count += 1;
        }
        count
    }
}
