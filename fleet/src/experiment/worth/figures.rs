//! Worths of several seeds, as a table and as one JSON object.

use evenhand_report::plot::put;
use serde::Serialize;

use super::truth::{NodeWorth, WorthTruth};
use crate::experiment::estimate::Estimate;
use crate::experiment::labels::{corruption_label, dataset_label};
use crate::experiment::measure::score_name;

/// Worths of several seeds, named as in the JSON object.
#[derive(Debug, Serialize)]
pub struct WorthFigures {
    /// Pearson of data quality, −ζ, with worth, over seeds.
    pub rho_zeta: Option<Estimate>,
    /// The same with worth by accuracy or MAPE.
    pub rho_zeta_by_score: Option<Estimate>,
    /// The same with worth to the others; none where samples are anybody's.
    pub rho_zeta_to_others: Option<Estimate>,
    /// Share of the variance of worths that is not their error, over seeds.
    pub reliability: Option<Estimate>,
    /// The same of worths to the others.
    pub reliability_to_others: Option<Estimate>,
    /// The control, in which all data are equally good; none where it was not run.
    pub level_0: Option<WorthControl>,
    /// One a seed.
    pub trials: Vec<WorthTruth>,
}

/// The control at level 0: correlations with the ζ that nodes would have had.
#[derive(Debug, Serialize)]
pub struct WorthControl {
    /// Pearson of −ζ with worth, over seeds.
    pub rho_zeta: Option<Estimate>,
    /// One a seed.
    pub trials: Vec<WorthTruth>,
}

impl WorthFigures {
    /// The figures of the worths of several seeds and of their controls.
    pub fn of(trials: Vec<WorthTruth>, control: Vec<WorthTruth>) -> Self {
        Self {
            rho_zeta: Estimate::of(trials.iter().map(|truth| truth.rho_zeta)),
            rho_zeta_by_score: Estimate::of(trials.iter().map(|truth| truth.rho_zeta_by_score)),
            rho_zeta_to_others: Estimate::of(trials.iter().map(|truth| truth.rho_zeta_to_others)),
            reliability: Estimate::of(trials.iter().map(|truth| truth.reliability)),
            reliability_to_others: Estimate::of(trials.iter().map(|truth| truth.reliability_to_others)),
            level_0: (!control.is_empty()).then(|| WorthControl {
                rho_zeta: Estimate::of(control.iter().map(|truth| truth.rho_zeta)),
                trials: control,
            }),
            trials,
        }
    }

    /// Tables for terminals: one a seed, then the correlations.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for truth in &self.trials {
            trial(&mut text, truth);
        }
        let shown = |of: &Option<Estimate>| of.as_ref().map_or("–".into(), |of| of.text(3, 0));
        put(&mut text, format_args!("ρ(−ζ, worth)   {}", shown(&self.rho_zeta)));
        if let Some(control) = &self.level_0 {
            put(&mut text, format_args!("; level 0: {}", shown(&control.rho_zeta)));
        }
        put(&mut text, format_args!("\nreliability    {}\n", shown(&self.reliability)));
        if self.rho_zeta_to_others.is_some() {
            let (rho, reliability) = (shown(&self.rho_zeta_to_others), shown(&self.reliability_to_others));
            put(&mut text, format_args!("ρ(−ζ, worth to the others) {rho}, its reliability {reliability}\n"));
        }
        text
    }
}

fn trial(text: &mut String, truth: &WorthTruth) {
    let settings = &truth.settings;
    let score = score_name(settings.scenario.dataset);
    let shown = |score: Option<f64>| score.map_or("–".into(), |score| format!("{score:.3}"));
    put(
        text,
        format_args!(
            "{}, {}, {} nodes, seed {}: {} trainings of {} steps with {} samples, η = {}\n",
            dataset_label(settings.scenario.dataset),
            corruption_label(settings.scenario.corruption),
            settings.scenario.nodes,
            settings.scenario.seed,
            truth.trainings,
            settings.steps,
            settings.step_samples,
            truth.learning_rate
        ),
    );
    put(
        text,
        format_args!(
            "loss and {score}: {:.3}, {} at first; {:.3}, {} with all nodes\n",
            truth.initial.loss,
            shown(truth.initial.score),
            truth.all.loss,
            shown(truth.all.score)
        ),
    );
    put(
        text,
        format_args!(
            "node     {:>7}{:>10}{:>9}{:>14}{:>9}{:>12}{:>9}\n",
            "ζ",
            "worth",
            "±",
            format!("by {score}"),
            "±",
            "to others",
            "±"
        ),
    );
    for node in &truth.nodes {
        let NodeWorth { id, zeta, worth, se, worth_by_score, se_by_score, worth_to_others, se_to_others } =
            node;
        let error = |error: &Option<f64>| error.map_or("–".into(), |error| format!("{error:.4}"));
        put(
            text,
            format_args!(
                "{id:9}{zeta:>7.3}{worth:>10.4}{:>9}{worth_by_score:>14.4}{:>9}{:>12}{:>9}\n",
                error(se),
                error(se_by_score),
                error(worth_to_others),
                error(se_to_others)
            ),
        );
    }
    put(text, format_args!("ρ(−ζ, worth) {}\n\n", shown(truth.rho_zeta)));
}
