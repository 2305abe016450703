//! Weights of the experts by lead group and quantile.

use serde::{Deserialize, Serialize};

use super::naive::Expert;
use super::vector::{QUANTILES, ordered, pinball};
use super::{Bernstein, DAY_S};

/// Experts of the mixture.
pub(super) const EXPERTS: usize = Expert::ALL.len();
/// Weight of the leader before anything was learned; the other experts share the rest.
const LEADER_PRIOR: f64 = 0.6;
/// Regrets of this age count half.
const HALF_LIFE_DAYS: f64 = 12.0;
/// What an expert saved this long ago counts half in the choice of the leader.
const LEADER_HALF_LIFE_DAYS: f64 = 5.0;
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
            3601..=14_400 => LeadGroup::FourHours,
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

/// The weights of one lead group and quantile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ExpertWeights {
    /// Over the experts and, last, the leader.
    bernstein: Bernstein,
    /// What each expert would have saved so far, in pinball loss; old gains fade.
    gains: [f64; EXPERTS],
    gain_memory: f64,
}

impl ExpertWeights {
    fn new(step_s: u32) -> Self {
        let memory = |half_life_days: f64| (-f64::from(step_s) / (DAY_S as f64 * half_life_days)).exp2();
        let experts = Expert::ALL.iter().map(|expert| expert.prior() * (1.0 - LEADER_PRIOR));
        let priors = experts.chain([LEADER_PRIOR]).collect();
        Self {
            bernstein: Bernstein::new(priors, memory(HALF_LIFE_DAYS)),
            gains: [0.0; EXPERTS],
            gain_memory: memory(LEADER_HALF_LIFE_DAYS),
        }
    }

    /// The value of the expert that would have saved most so far, of those that made a forecast.
    fn leader(&self, values: &[Option<f64>; EXPERTS]) -> Option<f64> {
        let known = |at: &usize| values[*at].is_some();
        let better = |a: &usize, b: &usize| {
            let prior = |at: usize| Expert::ALL[at].prior();
            self.gains[*a].total_cmp(&self.gains[*b]).then(prior(*a).total_cmp(&prior(*b)))
        };
        (0..EXPERTS).filter(known).max_by(better).and_then(|at| values[at])
    }
}

/// The mixture of one load: weights for each lead group and quantile, learned from the pinball losses of the experts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForecastMixture {
    groups: Vec<[ExpertWeights; QUANTILES.len()]>,
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
        let group = |_| std::array::from_fn(|_| ExpertWeights::new(step_s));
        let groups: Vec<[ExpertWeights; QUANTILES.len()]> = LeadGroup::ALL.iter().map(group).collect();
        let weights =
            groups.iter().map(|group| group.each_ref().map(|each| each.bernstein.weights())).collect();
        Self { groups, weights }
    }

    /// The present weight of each expert in the median of a lead group, were all of them to make a forecast.
    pub fn median_weights(&self, group: LeadGroup) -> [f64; EXPERTS] {
        let median = QUANTILES.len() / 2;
        let weights = &self.weights[group as usize][median];
        let leads = |at: usize| {
            let only = std::array::from_fn(|other| Some(f64::from(u8::from(other == at))));
            self.groups[group as usize][median].leader(&only) == Some(1.0)
        };
        std::array::from_fn(|at| weights[at] + if leads(at) { weights[EXPERTS] } else { 0.0 })
    }

    /// The quantiles of the mixture for a lead of a group; none if no expert made a forecast.
    pub(super) fn mix(
        &self,
        group: LeadGroup,
        forecasts: &ExpertForecasts,
        negative: bool,
    ) -> Option<[f32; QUANTILES.len()]> {
        let mut mixed = [0.0; QUANTILES.len()];
        let (experts, weights) = (&self.groups[group as usize], &self.weights[group as usize]);
        for (at, mixed) in mixed.iter_mut().enumerate() {
            let values = forecasts.map(|forecast| forecast.map(|each| f64::from(each[at])));
            *mixed = mean(&weights[at], &values, experts[at].leader(&values))? as f32;
        }
        // Not sorted: the weights of the median are learned for the median.
        let [low, median, high] = mixed;
        Some(ordered([low.min(median), median, high.max(median)], negative))
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
            for (at, (level, experts)) in QUANTILES.into_iter().zip(mixtures).enumerate() {
                let (mut regrets, mut gains) = ([0.0; EXPERTS + 1], [0.0; EXPERTS]);
                for lead in of_group() {
                    let scaled =
                        |load: f32| (f64::from(load) / f64::from(lead.scale)).clamp(-SCALES_MAX, SCALES_MAX);
                    let values = lead.forecasts.map(|forecast| forecast.map(|forecast| scaled(forecast[at])));
                    let leader = experts.leader(&values);
                    let Some(mixed) = mean(&weights[at], &values, leader) else { continue };
                    let slope = match scaled(measured) - mixed {
                        error if error > 0.0 => -level,
                        error if error < 0.0 => 1.0 - level,
                        _ => 0.0,
                    };
                    for (regret, value) in regrets.iter_mut().zip(values.iter().chain([&leader])) {
                        *regret += value.map_or(0.0, |value| slope * (mixed - value)) / count as f64;
                    }
                    let loss = |value: f64| pinball(level, scaled(measured), value);
                    for (gain, value) in gains.iter_mut().zip(values) {
                        *gain += value.map_or(0.0, |value| loss(mixed) - loss(value)) / count as f64;
                    }
                }
                experts.bernstein.update(&regrets);
                for (sum, gain) in experts.gains.iter_mut().zip(gains) {
                    *sum = *sum * experts.gain_memory + gain;
                }
                weights[at] = experts.bernstein.weights();
            }
        }
    }
}

/// The weighted mean of the values that are there; the last weight is the leader's.
fn mean(weights: &[f64], values: &[Option<f64>; EXPERTS], leader: Option<f64>) -> Option<f64> {
    let (mut sum, mut total) = (0.0, 0.0);
    for (weight, value) in weights.iter().zip(values.iter().chain([&leader])) {
        if let Some(value) = value {
            sum += weight * value;
            total += weight;
        }
    }
    (total > 0.0).then(|| sum / total)
}
