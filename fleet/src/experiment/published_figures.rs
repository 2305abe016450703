//! The paper's numbers beside ours, in any table: wherever the paper ran the setup.

use super::measure::Measure;
use super::paper::{PaperScope, PublishedCell, plan, published};
use super::setup::Setup;

/// The published number for a measure of a setup, whether ours follows the text or the code.
fn cell(setup: &Setup, measure: Measure) -> Option<&'static PublishedCell> {
    // Losses are published in another unit.
    if !setup.is_published() || measure == Measure::LossStd {
        return None;
    }
    let Setup { as_published, evaluation_samples, seed, .. } = *setup;
    let scope = PaperScope { as_published, evaluation_samples, seed };
    let dataset = setup.dataset.name();
    published().cells.iter().filter(|cell| cell.dataset == dataset).find(|cell| {
        plan(cell, &scope).is_ok_and(|planned| planned.measure == measure && planned.setup == *setup)
    })
}

/// The number with its error, as printed.
pub fn figure(setup: &Setup, measure: Measure) -> Option<&'static str> {
    cell(setup, measure).map(|cell| cell.text.as_str())
}

/// The number.
pub fn value(setup: &Setup, measure: Measure) -> Option<f64> {
    cell(setup, measure).map(|cell| cell.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{AsPublished, Dataset};
    use crate::experiment::variant::Variant;
    use crate::scenario::Corruption;

    #[test]
    fn brackets_show_the_numbers_of_the_paper() {
        let of = |variant, corruption| {
            Setup::published(Dataset::Mnist, corruption, variant, AsPublished::Paper, 1)
        };
        let ours = of(Variant::Paper, Corruption::LabelNoise);
        assert_eq!(value(&ours, Measure::RhoLoss), Some(0.678));
        assert_eq!(
            figure(&of(Variant::Gog, Corruption::FeatureNoise), Measure::RhoLoss),
            Some("0.551(0.023)")
        );
        assert_eq!(value(&Setup { k: 3, ..ours }, Measure::RhoLoss), None, "another setup");
        assert_eq!(value(&of(Variant::Evenhand, Corruption::LabelNoise), Measure::RhoLoss), None);
    }
}
