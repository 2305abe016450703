//! One row of model inputs for each lead of a forecast, and its target.

use std::f64::consts::TAU;

use super::covariates::{CovariateView, Covariates};
use super::origin::{OriginState, neighbour_steps};
use super::slot_profile::SlotProfile;
use super::vector::QUANTILES;
use super::{DAY_S, LoadHistory, LocalTime};

/// Inputs of one row.
pub const INPUTS: usize = INPUT_NAMES.len();

/// The inputs in their order. Loads are divided by the household's scale s; P is the slot median of the target.
pub const INPUT_NAMES: [&str; 41] = [
    "slot median",
    "slot median half an hour later, minus P",
    "slot median half an hour earlier, minus P",
    "slot mean, minus P",
    "slot 10 % quantile, minus P",
    "slot 90 % quantile, minus P",
    "median of the weekday's slot in 4 weeks, minus P",
    "residual of the last half hour",
    "residual of the half hour before",
    "residual of the second half hour before",
    "residual of the third half hour before",
    "mean residual of 3 h",
    "mean residual of 24 h",
    "mean residual of 7 days",
    "yesterday, minus P",
    "last week, minus P",
    "yesterday half an hour earlier, minus P",
    "yesterday half an hour later, minus P",
    "load of the last half hour, minus P",
    "residual, decay 45 min",
    "residual, decay 3 h",
    "mean residual of 3 h, decay 3 h",
    "mean residual of 3 h, decay 12 h",
    "load of the last half hour minus P, decay 45 min",
    "growth of the residual, decay 45 min",
    "decay 45 min",
    "decay 3 h",
    "decay 12 h",
    "lead in days",
    "sine of the day",
    "cosine of the day",
    "sine of half the day",
    "cosine of half the day",
    "weekend or holiday",
    "sine of the year",
    "cosine of the year",
    "logarithm of s",
    "covariate at the target",
    "covariate, mean of the last day",
    "second covariate at the target",
    "covariates are known",
];

/// Inputs lie within ± this.
const INPUT_MAX: f32 = 6.0;
/// Targets lie within ± this, in units of s.
pub const TARGET_MAX: f32 = 8.0;
/// Loads in units of s lie within ± this before they are combined.
const SCALED_MAX: f32 = 1e6;
const YEAR_S: f64 = 365.2425 * DAY_S as f64;

/// Rows of inputs and targets for a training.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LeadRows {
    /// `rows` × [`INPUTS`].
    pub inputs: Vec<f32>,
    /// `rows` × 3: the corrections of the quantiles that the model should learn.
    pub targets: Vec<f32>,
}

impl LeadRows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.targets.len() / QUANTILES.len()
    }

    /// There is no row.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Adds the row of one origin and lead; false if one of its parts was not measured.
    pub(super) fn add(
        &mut self,
        history: &LoadHistory,
        local: &LocalTime,
        covariates: &Covariates,
        origin: i64,
        lead: i64,
    ) -> bool {
        let target = origin + lead;
        let at = |step| SlotProfile::at(history, local, step, origin);
        let (Some(measured), Some(state), Some(profile)) =
            (history.load(target), OriginState::at(history, origin), at(target))
        else {
            return false;
        };
        let beside = neighbour_steps(history);
        let around = [target - beside, target + beside].map(|step| at(step).unwrap_or(profile).median());
        let known = KnownSeries { history, local, covariates: covariates.from(origin) };
        write_row(&known, &state, lead, &profile, around, &mut self.inputs);
        let correction = |naive: f32| ((measured - naive) / state.scale).clamp(-TARGET_MAX, TARGET_MAX);
        self.targets.extend(profile.quantiles.map(correction));
        true
    }
}

/// What is known at the origin of a forecast.
pub(super) struct KnownSeries<'a> {
    pub(super) history: &'a LoadHistory,
    pub(super) local: &'a LocalTime,
    pub(super) covariates: CovariateView<'a>,
}

/// Appends the inputs of one lead; `around` are the slot medians half an hour before and after the target.
pub(super) fn write_row(
    known: &KnownSeries<'_>,
    state: &OriginState,
    lead: i64,
    profile: &SlotProfile,
    around: [f32; 2],
    inputs: &mut Vec<f32>,
) {
    let KnownSeries { history, local, covariates } = known;
    let target = state.origin + lead;
    let median = profile.median();
    let beside = neighbour_steps(history);
    let (yesterday, last_week) = (history.same_time(local, target, 1), history.same_time(local, target, 7));
    let earlier = |step: i64| history.load(step.min(state.origin)).unwrap_or(median);
    // Bounded, so that differences of absurd loads stay numbers.
    let scaled = |load: f32| (load / state.scale).clamp(-SCALED_MAX, SCALED_MAX);
    let beyond = |load: f32| scaled(load - median);

    let lead_s = (lead * history.step_s()) as f64;
    let [fast, medium, slow] = [45.0 * 60.0, 3.0 * 3600.0, 12.0 * 3600.0].map(|s| (-lead_s / s).exp() as f32);
    let [residual, before, second, third] = state.residuals.map(scaled);
    let [of_3h, of_24h, of_7d] = state.mean_residuals.map(scaled);
    let recent = beyond(state.recent_load);

    let began_ms = history.end_ms(target - 1);
    let local_s = local.local_ms(began_ms).div_euclid(1000);
    let day = local_s.rem_euclid(DAY_S) as f64 / DAY_S as f64 * TAU;
    let year = local_s as f64 / YEAR_S * TAU;
    let day_off = if local.is_day_off(local_s.div_euclid(DAY_S)) { 1.0 } else { 0.0 };

    let [covariate, of_day, second_covariate, are_known] = covariates.inputs(target);

    let row: [f32; INPUTS] = [
        scaled(median),
        beyond(around[1]),
        beyond(around[0]),
        beyond(profile.mean),
        beyond(profile.quantiles[0]),
        beyond(profile.quantiles[2]),
        beyond(profile.weekday),
        residual,
        before,
        second,
        third,
        of_3h,
        of_24h,
        of_7d,
        beyond(earlier(yesterday)),
        beyond(earlier(last_week)),
        beyond(earlier(yesterday - beside)),
        beyond(earlier(yesterday + beside)),
        recent,
        residual * fast,
        residual * medium,
        of_3h * medium,
        of_3h * slow,
        recent * fast,
        (residual - before) * fast,
        fast,
        medium,
        slow,
        (lead_s / DAY_S as f64) as f32,
        day.sin() as f32,
        day.cos() as f32,
        (2.0 * day).sin() as f32,
        (2.0 * day).cos() as f32,
        day_off,
        year.sin() as f32,
        year.cos() as f32,
        state.scale.ln(),
        covariate,
        of_day,
        second_covariate,
        are_known,
    ];
    inputs.extend(row.map(|input| input.clamp(-INPUT_MAX, INPUT_MAX)));
}
