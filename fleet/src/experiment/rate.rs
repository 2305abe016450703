//! The useful learning rate: the multiple of the published one at which FedAvg scores best when every node takes part.

use serde::Serialize;

use super::estimate::Estimate;
use super::labels::{corruption_label, dataset_label};
use super::measure::{Measure, score_name};
use super::runner::TrialRecords;
use super::setup::Setup;
use super::table::seeds;
use super::variant::Variant;
use crate::data::Dataset;
use evenhand_report::plot::put;

/// The multiples of the published rate that are tried.
pub const FACTORS: [f64; 5] = [1.0, 3.0, 10.0, 30.0, 100.0];

/// `factor` times a rate, to 12 digits: the name of a stored trial has 0.0006 in it, not 0.0006000000000000001.
pub fn scaled(rate: f64, factor: f64) -> f64 {
    let product = rate * factor;
    format!("{product:.11e}").parse().unwrap_or(product)
}

/// The setups that are compared: FedAvg with every node in every round, one a factor.
pub fn setups(base: &Setup) -> Vec<Setup> {
    let of = |factor| Setup {
        variant: Variant::Fedavg,
        k: base.nodes,
        learning_rate: scaled(base.learning_rate, factor),
        ..base.clone()
    };
    FACTORS.map(of).to_vec()
}

/// The rates and their scores, named as in the JSON object.
#[derive(Debug, Serialize)]
pub struct RateFigures {
    /// The setup of the first rate and the first trial.
    pub settings: Setup,
    /// One a factor.
    pub rates: Vec<RateScore>,
    /// The factor of the rate that scores best; none where no rate has all its trials.
    pub best_factor: Option<f64>,
    /// That rate.
    pub best_learning_rate: Option<f64>,
}

/// A rate and its score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RateScore {
    /// The multiple of the published rate.
    pub factor: f64,
    /// η.
    pub learning_rate: f64,
    /// Online accuracy or MAPE of the mean node; none where no trial has one.
    pub online: Option<Estimate>,
}

impl RateFigures {
    /// The scores of the rates around `base`, over `trials` seeds.
    pub fn of(base: &Setup, trials: u64, records: &TrialRecords) -> Self {
        let score = |(setup, factor): (&Setup, f64)| {
            let found = seeds(setup, trials).filter_map(|setup| records.get(&setup));
            RateScore {
                factor,
                learning_rate: setup.learning_rate,
                online: Estimate::of(found.map(|record| Measure::OnlineMean.of(record))),
            }
        };
        let rates: Vec<RateScore> = setups(base).iter().zip(FACTORS).map(score).collect();
        let best = best(&rates, base.dataset, trials as usize);
        Self {
            settings: base.clone(),
            best_factor: best.map(|rate| rate.factor),
            best_learning_rate: best.map(|rate| rate.learning_rate),
            rates,
        }
    }

    /// A table for terminals, and the sentence that names the best.
    pub fn text(&self) -> String {
        let Setup { dataset, corruption, nodes, .. } = self.settings;
        let score = score_name(dataset);
        let mut text = format!(
            "{}, {}: FedAvg with all {nodes} nodes in every round\n{:>8}{:>16}  online {score}\n",
            dataset_label(dataset),
            corruption_label(corruption),
            "factor",
            "learning rate"
        );
        for rate in &self.rates {
            let online = rate.online.as_ref().map_or("failed".into(), |online| online.text(4, 0));
            put(&mut text, format_args!("{:>8}{:>16}  {online}\n", rate.factor, rate.learning_rate));
        }
        match (self.best_factor, self.best_learning_rate) {
            (Some(factor), Some(rate)) => {
                put(&mut text, format_args!("best: --rate-factor {factor}, a learning rate of {rate}\n"));
            }
            _ => text.push_str("no rate has all its trials\n"),
        }
        text
    }
}

/// The rate that scores best among those with all their trials: the highest accuracy, or the lowest MAPE.
fn best(rates: &[RateScore], dataset: Dataset, trials: usize) -> Option<&RateScore> {
    let sign = if dataset.has_classes() { 1.0 } else { -1.0 };
    let complete = rates.iter().filter_map(|rate| {
        let online = rate.online.as_ref().filter(|online| online.values.len() == trials)?;
        Some((rate, sign * online.mean))
    });
    complete.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(rate, _)| rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(scores: [&[f64]; 3]) -> Vec<RateScore> {
        let rate = |(factor, values): (f64, &[f64])| RateScore {
            factor,
            learning_rate: factor,
            online: Estimate::of(values.iter().map(|value| Some(*value))),
        };
        FACTORS.into_iter().zip(scores).map(rate).collect()
    }

    #[test]
    fn the_best_rate_has_the_highest_accuracy_or_the_lowest_error() {
        let rates = rates([&[0.2, 0.4], &[0.6, 0.6], &[0.5, 0.5]]);
        let factor = |dataset| best(&rates, dataset, 2).map(|rate| rate.factor);
        assert_eq!(factor(Dataset::Mnist), Some(3.0));
        assert_eq!(factor(Dataset::Electricity), Some(1.0));
    }

    #[test]
    fn a_rate_at_which_a_trial_failed_is_not_the_best() {
        let found = rates([&[0.2, 0.4], &[0.9], &[]]);
        assert_eq!(best(&found, Dataset::Mnist, 2).map(|rate| rate.factor), Some(1.0));
        assert_eq!(best(&rates([&[], &[], &[]]), Dataset::Mnist, 2), None);
    }

    #[test]
    fn scaled_rates_have_short_names() {
        let found = FACTORS.map(|factor| scaled(2e-4, factor).to_string());
        assert_eq!(found, ["0.0002", "0.0006", "0.002", "0.006", "0.02"]);
    }
}
