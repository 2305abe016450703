//! Scores that need no learning: what any model must beat.

use evenhand_models::Targets;
use evenhand_node::window::FEATURES;
use serde::{Deserialize, Serialize};

use super::{CleanRound, SampleStream};

/// Inputs of the published code's network for the load: so many earlier loads, the last of which is the latest, each with
/// so many columns.
const CODE_LAGS: usize = 13;
const CODE_COLUMNS: usize = 40;

/// Scores of predictions without a model, on the clean samples that models are scored on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct NaiveScores {
    /// Accuracy of always naming the most frequent class.
    pub majority: Option<f64>,
    /// MAPE of repeating the last value.
    pub persistence: Option<f64>,
    /// MAPE of always naming the mean.
    pub mean: Option<f64>,
}

impl SampleStream {
    /// The scores over all rounds that models are scored on.
    pub fn naive_scores(&self) -> NaiveScores {
        if self.is_read() {
            return NaiveScores::default();
        }
        let mut classes: Vec<u32> = Vec::new();
        let (mut persistence, mut mean) = (Vec::new(), Vec::new());
        for round in 2..=self.rounds() {
            let CleanRound { batch, scales } = self.clean(round);
            match &batch.targets {
                Targets::Classes(of) => classes.extend(of),
                Targets::Values(values) => {
                    let width = batch.inputs.len() / values.len().max(1);
                    let latest = latest_load(self.shape(), width);
                    for (at, (value, (centre, deviation))) in values.iter().zip(&scales).enumerate() {
                        let measured = f64::from(centre + deviation * value);
                        let off = |guess: f32| (f64::from(deviation * (guess - value)) / measured).abs();
                        if let Some(latest) = latest {
                            persistence.push(off(batch.inputs[at * width + latest]));
                        }
                        mean.push(off(0.0));
                    }
                }
                Targets::Chosen { .. } => {}
            }
        }
        NaiveScores { majority: majority(&classes), persistence: average(&persistence), mean: average(&mean) }
    }
}

/// The place of the latest load among the inputs of a sample of a series.
fn latest_load(shape: &[usize], width: usize) -> Option<usize> {
    if shape.last() == Some(&FEATURES) {
        width.checked_sub(FEATURES)
    } else {
        (width == CODE_LAGS * CODE_COLUMNS).then_some((CODE_LAGS - 1) * CODE_COLUMNS)
    }
}

fn majority(classes: &[u32]) -> Option<f64> {
    let count = |class: u32| classes.iter().filter(|one| **one == class).count();
    let most = (0..=*classes.iter().max()?).map(count).max()?;
    Some(most as f64 / classes.len() as f64)
}

fn average(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_class_counts() {
        assert_eq!(majority(&[0, 2, 2, 1]), Some(0.5));
        assert_eq!(majority(&[]), None);
    }

    #[test]
    fn the_latest_load_is_the_first_feature_of_the_last_step() {
        assert_eq!(latest_load(&[24, FEATURES], 24 * FEATURES), Some(23 * FEATURES));
        assert_eq!(latest_load(&[520], 520), Some(480));
        assert_eq!(latest_load(&[144], 144), None);
    }
}
