//! The figures of an experiment, as one JSON object.

use evenhand_fairness::Utility;
use evenhand_fairness::measures::Summary;
use serde::Serialize;

use super::estimate::Estimate;
use super::measure::Measure;
use super::record::{TrialRecord, notes};
use super::runner::TrialRecords;
use super::setup::Setup;
use super::table::seeds;
use crate::sim::RunFigures;

/// An experiment in numbers, named as in the JSON object.
#[derive(Debug, Serialize)]
pub struct ExperimentFigures {
    /// The setup; of the first variant and the first trial.
    pub settings: Setup,
    /// Remarks beside the figures.
    pub notes: Vec<String>,
    /// One a strategy, in the order of tables.
    pub strategies: Vec<StrategyFigures>,
}

/// One strategy, over its trials.
#[derive(Debug, Serialize)]
pub struct StrategyFigures {
    /// Its name on the command line.
    pub name: String,
    /// The utility that its standings come from, where there is one.
    pub utility: Option<Utility>,
    /// Trials that were run.
    pub trials: usize,
    /// Pearson of ζ with the online loss.
    pub rho_loss: Option<Estimate>,
    /// The same without the first fifth of the rounds.
    pub rho_loss_late: Option<Estimate>,
    /// Pearson of ζ with the mean staleness.
    pub rho_staleness: Option<Estimate>,
    /// Pearson of ζ with the online accuracy.
    pub rho_accuracy: Option<Estimate>,
    /// Over nodes, where the data have classes.
    pub online_accuracy: Option<SpreadFigures>,
    /// Over nodes, where they have not.
    pub online_mape: Option<SpreadFigures>,
    /// The deviation of the online loss over nodes.
    pub online_loss_std: Option<Estimate>,
    /// The round after which exploring ended.
    pub t_alpha: Option<Estimate>,
    /// Share of the noisier half that is found in the lower half of the standings.
    pub recall: Option<Estimate>,
    /// Pearson of data quality, −ζ, with the standings.
    pub rho_standing: Option<Estimate>,
    /// Pearson of the standings with worth, in the trials whose worth is known.
    pub rho_worth: Option<Estimate>,
    /// The same with worth to the others, where samples have owners.
    pub rho_worth_to_others: Option<Estimate>,
    /// The control, in which all data are equally good; none where it was not run.
    pub level_0: Option<ControlFigures>,
    /// Share of reference gradients that were taken for an earlier one of the same node.
    pub repeated_answers: Option<Estimate>,
    /// Share of reference gradients whose node was taken for a twin of another.
    pub twin_answers: Option<Estimate>,
    /// Share of nodes that were taken for a copy in any round.
    pub flagged_nodes: Option<Estimate>,
    /// Time of all nodes in training.
    pub seconds_training: Option<Estimate>,
    /// Time of the coordinator in contributions, stop rule and draws.
    pub seconds_fairness: Option<Estimate>,
    /// Time of a whole trial.
    pub seconds: Option<Estimate>,
}

/// The control of a strategy at level 0: correlations with the ζ that nodes would have had.
#[derive(Debug, Serialize)]
pub struct ControlFigures {
    /// Trials that were run.
    pub trials: usize,
    /// Pearson of ζ with the online loss.
    pub rho_loss: Option<Estimate>,
    /// Pearson of ζ with the mean staleness.
    pub rho_staleness: Option<Estimate>,
    /// Pearson of −ζ with the standings.
    pub rho_standing: Option<Estimate>,
    /// Share of the half with the higher ζ that is found in the lower half of the standings; ½ by chance.
    pub recall: Option<Estimate>,
}

/// A score over nodes, over trials.
#[derive(Debug, Serialize)]
pub struct SpreadFigures {
    /// Of the mean node.
    pub mean: Option<Estimate>,
    /// The lowest of a node.
    pub min: Option<Estimate>,
    /// The highest of a node.
    pub max: Option<Estimate>,
    /// The deviation over nodes.
    pub std: Option<Estimate>,
}

impl ExperimentFigures {
    /// The figures of one experiment, whose setups have one variant each; none without setups.
    pub fn of(setups: &[Setup], trials: u64, records: &TrialRecords) -> Option<Self> {
        let settings = setups.first()?.clone();
        let notes = notes(records.iter());
        let strategies = setups.iter().map(|setup| {
            let seen: Vec<&TrialRecord> =
                seeds(setup, trials).filter_map(|setup| records.get(&setup)).collect();
            let control: Vec<&TrialRecord> = (seeds(setup, trials).filter_map(|setup| setup.control()))
                .filter_map(|control| records.get(&control))
                .collect();
            StrategyFigures::of(setup, &seen, &control)
        });
        Some(Self { settings, notes, strategies: strategies.collect() })
    }
}

impl StrategyFigures {
    fn of(setup: &Setup, seen: &[&TrialRecord], control: &[&TrialRecord]) -> Self {
        let over = |value: fn(&TrialRecord) -> Option<f64>| over(seen, value);
        Self {
            name: setup.variant.name(),
            utility: setup.variant.has_utility().then_some(setup.utility),
            trials: seen.len(),
            rho_loss: over(|record| record.figures.rho_loss),
            rho_loss_late: over(|record| record.figures.rho_loss_late),
            rho_staleness: over(|record| record.figures.rho_staleness),
            rho_accuracy: over(|record| record.figures.rho_accuracy),
            online_accuracy: spread(seen, |figures| figures.online_accuracy),
            online_mape: spread(seen, |figures| match figures.online_accuracy {
                Some(_) => None,
                None => figures.online_mape,
            }),
            online_loss_std: over(|record| record.figures.online_loss_std),
            t_alpha: over(|record| Measure::TAlpha.of(record)),
            recall: over(|record| record.figures.recall),
            rho_standing: over(|record| Measure::RhoStanding.of(record)),
            rho_worth: over(TrialRecord::rho_worth),
            rho_worth_to_others: over(TrialRecord::rho_worth_to_others),
            level_0: ControlFigures::of(control),
            repeated_answers: over(|record| record.detections.repeated_share()),
            twin_answers: over(|record| record.detections.twin_share()),
            flagged_nodes: over(|record| record.detections.flagged_nodes()),
            seconds_training: over(|record| Some(record.figures.seconds_training)),
            seconds_fairness: over(|record| Some(record.figures.seconds_fairness)),
            seconds: over(|record| Some(record.seconds)),
        }
    }
}

impl ControlFigures {
    fn of(seen: &[&TrialRecord]) -> Option<Self> {
        (!seen.is_empty()).then(|| Self {
            trials: seen.len(),
            rho_loss: over(seen, |record| record.figures.rho_loss),
            rho_staleness: over(seen, |record| record.figures.rho_staleness),
            rho_standing: over(seen, |record| Measure::RhoStanding.of(record)),
            recall: over(seen, |record| record.figures.recall),
        })
    }
}

fn over(seen: &[&TrialRecord], value: fn(&TrialRecord) -> Option<f64>) -> Option<Estimate> {
    Estimate::of(seen.iter().map(|record| value(record)))
}

fn spread(seen: &[&TrialRecord], score: fn(&RunFigures) -> Option<Summary>) -> Option<SpreadFigures> {
    let over =
        |part: fn(Summary) -> f64| Estimate::of(seen.iter().map(|record| score(&record.figures).map(part)));
    let mean = over(|score| score.mean)?;
    Some(SpreadFigures {
        mean: Some(mean),
        min: over(|score| score.min),
        max: over(|score| score.max),
        std: over(|score| score.std),
    })
}
