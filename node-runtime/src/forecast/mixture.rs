//! Weights of the experts by lead group and quantile.

use serde::{Deserialize, Serialize};

use super::naive::Expert;
use super::vector::{QUANTILES, ordered};
use super::{Bernstein, DAY_S};

/// Experts of the mixture.
pub(super) const EXPERTS: usize = Expert::ALL.len();
/// Regrets of this age count half.
const HALF_LIFE_DAYS: f64 = 28.0;
/// Forecasts and loads lie within ± this many scales when they are compared.
const SCALES_MAX: f64 = 64.0;

/// Quantiles by each expert, in the meter's unit; none by one that made no forecast.
pub(super) type ExpertForecasts = [Option<[f32; QUANTILES.len()]>; EXPERTS];

/// Leads that share weights and scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(usize)]
pub enum LeadGroup {
    /// The next step.
    Next,
    /// Up to an hour.
    Hour,
    /// Up to four hours.
    FourHours,
    /// Further ahead.
    Day,
}

impl LeadGroup {
    /// Every group, short leads first.
    pub const ALL: [LeadGroup; 4] = [LeadGroup::Next, LeadGroup::Hour, LeadGroup::FourHours, LeadGroup::Day];

    /// The group of a lead, in steps of `step_s` seconds.
    pub fn of(lead: i64, step_s: i64) -> Self {
        match lead * step_s {
            _ if lead <= 1 => LeadGroup::Next,
            ..=3600 => LeadGroup::Hour,
            ..=14_400 => LeadGroup::FourHours,
            _ => LeadGroup::Day,
        }
    }

    /// The name in status, metrics and reports.
    pub fn name(self) -> &'static str {
        match self {
            LeadGroup::Next => "next",
            LeadGroup::Hour => "hour",
            LeadGroup::FourHours => "four-hours",
            LeadGroup::Day => "day",
        }
    }
}

/// The mixture of one load: weights for each lead group and quantile, learned from the pinball losses of the experts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForecastMixture {
    groups: Vec<[Bernstein; QUANTILES.len()]>,
    /// The weights of the groups, which cost more than what they are used for.
    weights: MixtureWeights,
}

/// The weights at one moment, by lead group, quantile and expert.
type MixtureWeights = Vec<[Vec<f64>; QUANTILES.len()]>;

/// One experts' forecast of a step and its measured load.
pub(super) struct ScoredLead {
    pub(super) group: LeadGroup,
    pub(super) scale: f32,
    pub(super) forecasts: ExpertForecasts,
}

impl ForecastMixture {
    /// The prior weights, for steps of `step_s` seconds.
    pub fn new(step_s: u32) -> Self {
        let priors: Vec<f64> = Expert::ALL.iter().map(|expert| expert.prior()).collect();
        let memory = (-f64::from(step_s) / (DAY_S as f64 * HALF_LIFE_DAYS)).exp2();
        let group = || std::array::from_fn(|_| Bernstein::new(priors.clone(), memory));
        let groups: Vec<[Bernstein; QUANTILES.len()]> = LeadGroup::ALL.iter().map(|_| group()).collect();
        let weights = groups.iter().map(|group| group.each_ref().map(Bernstein::weights)).collect();
        Self { groups, weights }
    }

    /// The present weight of each expert in the median of a lead group, were all of them to make a forecast.
    pub fn median_weights(&self, group: LeadGroup) -> &[f64] {
        &self.weights[group as usize][QUANTILES.len() / 2]
    }

    /// The weights of a lead group by quantile.
    pub(super) fn weights(&self, group: LeadGroup) -> &[Vec<f64>; QUANTILES.len()] {
        &self.weights[group as usize]
    }

    /// Learns from the forecasts of one step, all of which have the same measured load. Forecasts of one lead group count as
    /// one round, with the mean of their regrets.
    ///
    /// # Formula
    ///
    /// r_j = ℓ'(ŷ)·(ŷ − y_j): the pinball loss linearised at the mixture ŷ, in units of the household's scale. By convexity
    /// the regret in losses is at most this, also against every fixed mixture of the experts.
    pub(super) fn learn(&mut self, measured: f32, leads: &[ScoredLead]) {
        for ((group, mixtures), weights) in
            LeadGroup::ALL.into_iter().zip(&mut self.groups).zip(&mut self.weights)
        {
            let of_group = || leads.iter().filter(|lead| lead.group == group);
            let count = of_group().count();
            if count == 0 {
                continue;
            }
            for (at, (level, mixture)) in QUANTILES.into_iter().zip(mixtures).enumerate() {
                let mut regrets = [0.0; EXPERTS];
                for lead in of_group() {
                    let scaled =
                        |load: f32| (f64::from(load) / f64::from(lead.scale)).clamp(-SCALES_MAX, SCALES_MAX);
                    let values = lead.forecasts.map(|forecast| forecast.map(|forecast| scaled(forecast[at])));
                    let Some(mixed) = mean(&weights[at], &values) else { continue };
                    let slope = match scaled(measured) - mixed {
                        error if error > 0.0 => -level,
                        error if error < 0.0 => 1.0 - level,
                        _ => 0.0,
                    };
                    for (regret, value) in regrets.iter_mut().zip(values) {
                        *regret += value.map_or(0.0, |value| slope * (mixed - value)) / count as f64;
                    }
                }
                mixture.update(&regrets);
                weights[at] = mixture.weights();
            }
        }
    }
}

/// The quantiles of the mixture; none if no expert made a forecast.
pub(super) fn mix(
    weights: &[Vec<f64>; QUANTILES.len()],
    forecasts: &ExpertForecasts,
    negative: bool,
) -> Option<[f32; QUANTILES.len()]> {
    let mut mixed = [0.0; QUANTILES.len()];
    for (at, (mixed, weights)) in mixed.iter_mut().zip(weights).enumerate() {
        *mixed = mean(weights, &forecasts.map(|forecast| forecast.map(|each| f64::from(each[at]))))? as f32;
    }
    Some(ordered(mixed, negative))
}

/// The weighted mean of the values that are there.
fn mean(weights: &[f64], values: &[Option<f64>; EXPERTS]) -> Option<f64> {
    let (mut sum, mut total) = (0.0, 0.0);
    for (weight, value) in weights.iter().zip(values) {
        if let Some(value) = value {
            sum += weight * value;
            total += weight;
        }
    }
    (total > 0.0).then(|| sum / total)
}
