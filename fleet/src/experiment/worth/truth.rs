//! The worth of the nodes of one seed, on disk.

use std::path::{Path, PathBuf};

use evenhand_fairness::measures;
use serde::{Deserialize, Serialize};

use super::WorthError;
use super::settings::WorthSettings;
use super::training::CoalitionScore;
use crate::experiment::setup::Setup;
use crate::experiment::stored_file::{self, StoredKind};
use crate::names::value_name;
use crate::scenario::ScenarioConfig;

/// Its format changes when the same settings would yield other worths, or are written in other words.
pub static WORTH: StoredKind =
    StoredKind { name: "stored worth", format: 3, flags: "folder, --out DIR or --worth DIR" };

/// The worth of the nodes of one seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorthTruth {
    /// Always that of [`WORTH`].
    pub format: u16,
    /// The settings.
    pub settings: WorthSettings,
    /// η of the trainings.
    pub learning_rate: f64,
    /// Trainings, those with no node and with all nodes included.
    pub trainings: usize,
    /// The initial model.
    pub initial: CoalitionScore,
    /// The model of all nodes.
    pub all: CoalitionScore,
    /// Pearson of data quality, −ζ, with worth; none where either is equal for all.
    pub rho_zeta: Option<f64>,
    /// The same with worth by accuracy or MAPE.
    pub rho_zeta_by_score: Option<f64>,
    /// The same with worth to the others; none where samples are anybody's.
    pub rho_zeta_to_others: Option<f64>,
    /// Share of the variance of worths that is not their error: what another measure can at best explain.
    pub reliability: Option<f64>,
    /// The same of worths to the others.
    pub reliability_to_others: Option<f64>,
    /// By node.
    pub nodes: Vec<NodeWorth>,
}

/// The worth of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeWorth {
    /// Its name, as in trials.
    pub id: String,
    /// ζ.
    pub zeta: f64,
    /// Its Shapley value, in units of the loss: what its data take off.
    pub worth: f64,
    /// The standard error of `worth`.
    pub se: Option<f64>,
    /// Its Shapley value by accuracy, or by MAPE with the sign turned: more is better.
    pub worth_by_score: f64,
    /// The standard error of `worth_by_score`.
    pub se_by_score: Option<f64>,
    /// Its Shapley value by the loss on the samples of all other nodes: what it gives. None where samples are anybody's.
    pub worth_to_others: Option<f64>,
    /// The standard error of `worth_to_others`.
    pub se_to_others: Option<f64>,
}

impl WorthTruth {
    /// Correlations and reliability of these nodes, which the caller fills in.
    pub fn summarised(mut self) -> Self {
        let column = |of: fn(&NodeWorth) -> f64| self.nodes.iter().map(of).collect::<Vec<f64>>();
        let (qualities, worths) = (column(|node| -node.zeta), column(|node| node.worth));
        let rho_zeta = measures::pearson(&qualities, &worths);
        let rho_zeta_by_score = measures::pearson(&qualities, &column(|node| node.worth_by_score));
        let known =
            |of: fn(&NodeWorth) -> Option<f64>| self.nodes.iter().map(of).collect::<Option<Vec<f64>>>();
        let of_errors = |worths: &[f64], errors: Option<Vec<f64>>| reliability(worths, &errors?);
        let of_worths = of_errors(&worths, known(|node| node.se));
        let to_others = known(|node| node.worth_to_others);
        let rho_zeta_to_others = to_others.as_ref().and_then(|worths| measures::pearson(&qualities, worths));
        let of_others = to_others.and_then(|worths| of_errors(&worths, known(|node| node.se_to_others)));
        (self.rho_zeta, self.rho_zeta_by_score, self.rho_zeta_to_others) =
            (rho_zeta, rho_zeta_by_score, rho_zeta_to_others);
        (self.reliability, self.reliability_to_others) = (of_worths, of_others);
        self
    }

    /// The stored worth of `settings`, if there is one of just these.
    pub fn load(out: &Path, settings: &WorthSettings) -> Result<Option<Self>, WorthError> {
        let found = WORTH.load::<Self>(&out.join(path_of(&settings.scenario)))?;
        // Numbers come back from JSON with an error in their last bit: compare as text.
        let text = |settings: &WorthSettings| serde_json::to_string(settings).ok();
        Ok(found.filter(|found| text(&found.settings) == text(settings)))
    }

    /// Stores it in the folder `out`, whole or not at all.
    pub fn save(&self, out: &Path) -> Result<(), WorthError> {
        Ok(stored_file::save(&out.join(path_of(&self.settings.scenario)), self)?)
    }
}

/// The worths of a trial's nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownWorths {
    /// By everybody's samples.
    pub to_all: Vec<f64>,
    /// By those of the others; none where samples are anybody's.
    pub to_others: Option<Vec<f64>>,
}

/// The stored worths of a trial's nodes: of the same data set, corruption, level, number of nodes and seed.
pub fn worths(out: &Path, setup: &Setup) -> Result<Option<KnownWorths>, WorthError> {
    let found = WORTH.load::<WorthTruth>(&out.join(path_of(&setup.scenario())))?;
    Ok(found.map(|found| KnownWorths {
        to_all: found.nodes.iter().map(|node| node.worth).collect(),
        to_others: found.nodes.iter().map(|node| node.worth_to_others).collect(),
    }))
}

/// The path of a worth within its folder: what a trial must have in common with it.
fn path_of(scenario: &ScenarioConfig) -> PathBuf {
    let mut path = PathBuf::from(value_name(&scenario.dataset));
    path.push(value_name(&scenario.corruption));
    path.push(value_name(&scenario.as_published));
    path.push(format!("nodes-{},level-{}", scenario.nodes, scenario.level));
    path.push(format!("seed-{}.json", scenario.seed));
    path
}

/// 1 − mean squared error / variance, at least 0; none without variance.
fn reliability(worths: &[f64], errors: &[f64]) -> Option<f64> {
    let n = worths.len() as f64;
    let mean = worths.iter().sum::<f64>() / n;
    let variance = worths.iter().map(|worth| (worth - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let error = errors.iter().map(|error| error * error).sum::<f64>() / n;
    (variance > 0.0).then(|| (1.0 - error / variance).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reliability_is_the_share_of_the_variance_that_is_no_error() {
        // Deviations −1, 0, 1: variance 1.
        let found = reliability(&[2.0, 3.0, 4.0], &[0.5; 3]);
        assert!(found.is_some_and(|found| (found - 0.75).abs() < 1e-12));
        assert_eq!(reliability(&[2.0, 3.0, 4.0], &[2.0; 3]), Some(0.0));
        assert_eq!(reliability(&[1.0; 3], &[0.0; 3]), None);
    }
}
