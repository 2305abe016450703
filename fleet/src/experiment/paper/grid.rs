//! The trials and the measure behind every published number.

use clap::ValueEnum;
use evenhand_fairness::Utility;

use super::items::Unavailable;
use super::published_cells::PublishedCell;
use super::units;
use crate::data::{AsPublished, Dataset};
use crate::experiment::measure::Measure;
use crate::experiment::setup::Setup;
use crate::experiment::stop_prediction::StopPrediction;
use crate::experiment::variant::Variant;
use crate::scenario::{Corruption, QualitySpread};

/// What all trials of the paper have in common.
#[derive(Debug, Clone, Copy)]
pub struct PaperScope {
    /// The authority where the published code differs from the text.
    pub as_published: AsPublished,
    /// Samples on which models are scored in a round, at most; 0 for all.
    pub evaluation_samples: usize,
    /// Seed of the first trial.
    pub seed: u64,
}

/// The trials and the measure of one number, in its unit.
#[derive(Debug, Clone)]
pub struct CellPlan {
    /// The setup of the first trial.
    pub setup: Setup,
    /// The measure.
    pub measure: Measure,
    /// Our measure times this is the published unit.
    pub unit: f64,
    /// The measure of the number in brackets, where it is no standard error.
    pub second: Option<SecondMeasure>,
}

/// The measure of a number in brackets.
#[derive(Debug, Clone)]
pub enum SecondMeasure {
    /// Another measure of the same trials.
    Same(Measure),
    /// The difference to the same measure of other trials.
    Against(Box<Setup>),
}

/// T of the trials in which exploring takes longest.
const LONG_ROUNDS: u32 = 250;
/// α of trials that only explore.
pub(super) const NEVER: f64 = 0.999_999;
/// Samples of a batch in the running example, where the text gives one.
pub(super) const EXAMPLE_BATCH: usize = 32;
/// ζ of designated nodes.
const DESIGNATED_LEVEL: f64 = 0.2;

impl PaperScope {
    /// The paper's settings for a data set, a kind of bad data and a strategy.
    pub(super) fn setup(&self, dataset: Dataset, corruption: Corruption, variant: Variant) -> Setup {
        let published = Setup::published(dataset, corruption, variant, self.as_published, self.seed);
        Setup { evaluation_samples: self.evaluation_samples, ..published }
    }

    /// The running example, which only explores: three tenths of the nodes have bad data.
    pub(super) fn running_example(&self, dataset: Dataset, corruption: Corruption) -> Setup {
        let level = if corruption == Corruption::Quantity { 1.0 } else { DESIGNATED_LEVEL };
        Setup {
            spread: QualitySpread::Designated,
            level,
            batch: EXAMPLE_BATCH,
            rounds: 150,
            alpha: NEVER,
            ..self.setup(dataset, corruption, Variant::Paper)
        }
    }
}

/// The trials behind a number, or why there are none.
pub fn plan(cell: &PublishedCell, scope: &PaperScope) -> Result<CellPlan, Unavailable> {
    let dataset = Dataset::from_str(&cell.dataset, false).map_err(|_| Unavailable::Games)?;
    let corruption = match cell.corruption.as_deref() {
        Some("heterogeneity") => Corruption::FewClasses,
        Some(name) => Corruption::from_str(name, false).map_err(|_| Unavailable::Games)?,
        None => Corruption::None,
    };
    let variant = variant(&cell.method).ok_or(Unavailable::Games)?;
    let base = scope.setup(dataset, corruption, variant);
    let of = |setup: Setup, measure| CellPlan { setup, measure, unit: 1.0, second: None };
    let beta = |second| {
        let temperature = cell.beta.unwrap_or(base.temperature);
        let setup = Setup { temperature, ..base.clone() };
        CellPlan { second: Some(SecondMeasure::Same(second)), ..of(setup, Measure::RhoLoss) }
    };
    let classes = |count: u32| Setup { level: f64::from(count) / 10.0, ..base.clone() };
    Ok(match cell.table.as_str() {
        "tab:by-class-vs-not-by-class-pearson"
        | "table:pearson-online-loss"
        | "tab:fairness-online-constraint" => of(base, Measure::RhoLoss),
        "table:average-online-acc-feature-noise"
        | "table:average-online-acc"
        | "tab:online-acc-constraint" => of(base, Measure::OnlineMean),
        "table:minimum-online-acc-feature-noise" | "table:minimum-online-acc" => of(base, Measure::OnlineMin),
        "table:maximum-online-acc" => of(base, Measure::OnlineMax),
        "table:pearson-staleness" => of(base, Measure::RhoStaleness),
        "table:pearson-online-accuracy" => of(base, Measure::RhoScore),
        "table:standard-dev-online-loss" | "tab:std-online-loss-constraint" => {
            CellPlan { unit: units::published_loss(dataset), ..of(base, Measure::LossStd) }
        }
        "table:standard-dev-online-accu" => of(base, Measure::OnlineStd),
        "table:fairness-varying-beta-feature-noise" | "table:fairness-varying-beta" => {
            beta(Measure::OnlineStd)
        }
        "table:fairness-varying-beta-final-acc" => beta(Measure::FinalStd),
        "table:subsample-nodes-stopping-iteration" => {
            let attendance = cell.r_sub.unwrap_or(1.0);
            let setup = Setup { nodes: 10, k: 4, rounds: LONG_ROUNDS, alpha: 0.95, attendance, ..base };
            of(setup, Measure::TAlpha)
        }
        "table:table:running-time-label-noise" | "table:running-time-quantity" => {
            let setup = Setup { nodes: 10, k: 4, rounds: LONG_ROUNDS, ..base };
            let second = Some(SecondMeasure::Same(Measure::FairnessShare));
            CellPlan { second, ..of(setup, Measure::SecondsFairness) }
        }
        "table:heterogeneity-final-acc" => of(classes(cell.classes.unwrap_or(10)), Measure::FinalMax),
        "table:heterogeneity-online-acc" => of(classes(cell.classes.unwrap_or(10)), Measure::OnlineMax),
        "table:heterogeneity-baselines" => {
            let second = Some(SecondMeasure::Against(Box::new(classes(10))));
            CellPlan { second, ..of(classes(2), Measure::OnlineMax) }
        }
        "table:normality_test_appendix" => {
            let second = Some(SecondMeasure::Same(Measure::NormalityP));
            CellPlan { second, ..of(scope.running_example(dataset, corruption), Measure::Normality) }
        }
        "table:pred-stopping-iteration-inner-prod" => {
            let prediction = match cell.behaviour.as_deref() {
                Some("RANDOM") => StopPrediction::Random,
                Some("POISSON") => StopPrediction::Poisson,
                _ => StopPrediction::NonStop,
            };
            let setup = Setup { utility: Utility::InnerProduct, prediction, ..base };
            CellPlan { unit: units::published_loss(dataset), ..of(setup, Measure::WatchedLoss) }
        }
        "table:pred-stopping-iteration-neg-loss" => return Err(Unavailable::NegativeLoss),
        _ => return Err(Unavailable::Games),
    })
}

/// A strategy by its name in the paper.
fn variant(method: &str) -> Option<Variant> {
    Some(match method {
        "fedavg" => Variant::Fedavg,
        "qffl" => Variant::QFfl,
        "fgfl" => Variant::Fgfl,
        "gog" => Variant::Gog,
        "standalone" => Variant::Standalone,
        "cons" => Variant::Cons,
        "ours" => Variant::Paper,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::published;
    use super::*;

    const SCOPE: PaperScope = PaperScope { as_published: AsPublished::Paper, evaluation_samples: 0, seed: 1 };

    #[test]
    fn every_published_number_has_trials_but_those_of_games_and_of_the_negative_loss() {
        let plans: Vec<_> = published().cells.iter().map(|cell| plan(cell, &SCOPE)).collect();
        let missing =
            |why: Unavailable| plans.iter().filter(|plan| plan.as_ref().err() == Some(&why)).count();
        assert_eq!(plans.len(), 1269);
        assert_eq!((missing(Unavailable::Games), missing(Unavailable::NegativeLoss)), (30, 12));
        for planned in plans.into_iter().flatten() {
            planned.setup.check().unwrap();
        }
    }

    #[test]
    fn rows_of_a_table_are_settings() {
        let cells: Vec<_> = published().of("table:heterogeneity-online-acc").collect();
        let two = cells.iter().find(|cell| cell.classes == Some(2)).unwrap();
        let planned = plan(two, &SCOPE).unwrap();
        assert_eq!((planned.setup.corruption, planned.setup.level), (Corruption::FewClasses, 0.2));
        let beta = published().of("table:fairness-varying-beta").next().unwrap();
        assert_eq!(plan(beta, &SCOPE).unwrap().setup.temperature, 1.0 / 350.0);
        let unstable = published().of("table:subsample-nodes-stopping-iteration").next().unwrap();
        let Setup { nodes, alpha, attendance, .. } = plan(unstable, &SCOPE).unwrap().setup;
        assert_eq!((nodes, alpha, attendance), (10, 0.95, 0.2));
    }
}
