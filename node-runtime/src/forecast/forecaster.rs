//! Forecasts of one load: history, mixture, and scores.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::covariates::Covariates;
use super::lead_row::{KnownSeries, LeadRows, write_row};
use super::mixture::{ExpertForecasts, ForecastMixture, LeadGroup, ScoredLead};
use super::naive::{Expert, NAIVE_EXPERTS, naive_forecasts};
use super::origin::{OriginState, neighbour_steps};
use super::pending::{PendingForecast, PendingForecasts};
use super::skill::{SkillRecord, StalenessClass};
use super::slot_profile::SlotProfile;
use super::vector::{ForecastVector, QUANTILES, ordered};
use super::{DAY_S, LoadHistory, LocalTime};
use crate::reading::Reading;

/// Loads beyond ± this are no loads, whatever the unit.
const LOAD_MAX: f32 = 1e30;

/// Rules of a forecaster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForecastSettings {
    /// Length of a step in seconds; a divisor of a day.
    pub step_s: u32,
    /// Steps of a forecast.
    pub horizon_steps: usize,
    /// Steps in memory.
    pub history_steps: usize,
}

impl ForecastSettings {
    /// A day ahead, by a memory of 58 days: rows of the last 30 days look 28 days back.
    pub fn day_ahead(step_s: u32) -> Self {
        let day_steps = (DAY_S / i64::from(step_s.max(1))).max(1) as usize;
        Self { step_s, horizon_steps: day_steps, history_steps: 58 * day_steps }
    }
}

/// Forecasts of one load.
///
/// Each measured step is [pushed](Self::push); then a [prepared forecast](Self::prepare) has the inputs of the model, and
/// [`issue`](Self::issue) makes the forecast of its outputs. The next pushes score it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forecaster {
    settings: ForecastSettings,
    history: LoadHistory,
    local: LocalTime,
    covariates: Covariates,
    mixture: ForecastMixture,
    pending: PendingForecasts,
    skill: SkillRecord,
}

/// What is known of the next steps before a model is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedForecast {
    /// The newest step, from which the leads count.
    pub origin: i64,
    /// Rows of model inputs, one for each lead, each of [`INPUTS`](super::INPUTS) values.
    pub inputs: Vec<f32>,
    state: OriginState,
    profiles: Vec<SlotProfile>,
}

impl PreparedForecast {
    /// Number of leads.
    pub fn leads(&self) -> usize {
        self.profiles.len()
    }
}

/// Outputs of the model for a prepared forecast: for each lead the corrections of the quantiles, in units of the scale.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ModelOutputs<'a> {
    /// By the shared model.
    pub shared: Option<&'a [f32]>,
    /// By the shared model with its personal part.
    pub personal: Option<&'a [f32]>,
    /// Rounds since the shared model was received.
    pub staleness: Option<u32>,
}

impl Forecaster {
    /// A forecaster without history.
    pub fn new(settings: ForecastSettings, local: LocalTime) -> Self {
        let ForecastSettings { step_s, horizon_steps, history_steps } = settings;
        Self {
            history: LoadHistory::new(step_s, history_steps),
            local,
            covariates: Covariates::default(),
            mixture: ForecastMixture::new(step_s),
            pending: PendingForecasts::new(step_s, horizon_steps),
            skill: SkillRecord::default(),
            settings,
        }
    }

    /// The clocks of the household from now on.
    pub fn set_local_time(&mut self, local: LocalTime) {
        self.local = local;
    }

    /// Has covariates of these names from now on, [at most two](super::COVARIATES_MAX); those that it had keep their values.
    pub fn name_covariates<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        self.covariates.name(names, &self.settings);
    }

    /// Adds a reading of a covariate, past or future; that of an unknown name changes nothing.
    pub fn add_covariate(&mut self, name: &str, reading: Reading) {
        self.covariates.add(name, reading, self.history.newest());
    }

    /// The covariates.
    pub fn covariates(&self) -> &Covariates {
        &self.covariates
    }

    /// Adds the measured load of a step, and scores the forecasts of that step. Steps that are left out are missing.
    pub fn push(&mut self, step: i64, load: f32) {
        if !load.is_finite()
            || load.abs() > LOAD_MAX
            || self.history.newest().is_some_and(|newest| step <= newest)
        {
            return;
        }
        self.history.push(step, load, &self.local);
        self.score(step, load);
        self.pending.drop_until(step);
    }

    /// Adds the loads of steps before those in memory; the number of them. A memory that is full forgets the oldest.
    pub fn prepend(&mut self, earlier: &LoadHistory) -> usize {
        let before = self.history.measured();
        let own = self.history.oldest().unwrap_or(i64::MAX);
        let mut merged = LoadHistory::new(self.settings.step_s, self.settings.history_steps);
        for (step, load) in
            earlier.measured_loads().filter(|(step, _)| *step < own).chain(self.history.measured_loads())
        {
            merged.push(step, load, &self.local);
        }
        self.history = merged;
        self.history.measured() - before
    }

    /// Forgets the loads, not what was learned from them: the clock was set back.
    pub fn restart(&mut self) {
        self.history.clear();
        self.pending = PendingForecasts::new(self.settings.step_s, self.settings.horizon_steps);
    }

    /// Steps until the first forecast: a day must be in memory, at least half of it measured.
    pub fn steps_missing(&self) -> usize {
        let day_steps = self.history.day_steps() as usize;
        let of_day = day_steps.saturating_sub(self.history.len());
        of_day.max((day_steps / 2).saturating_sub(self.history.measured()))
    }

    /// The inputs of a forecast from the newest step; none while [steps are missing](Self::steps_missing).
    pub fn prepare(&self) -> Option<PreparedForecast> {
        if self.steps_missing() > 0 {
            return None;
        }
        let origin = self.history.newest()?;
        let state = OriginState::at(&self.history, origin)?;
        let horizon = self.settings.horizon_steps as i64;
        let beside = neighbour_steps(&self.history);
        let profile = |step| {
            let measured = SlotProfile::at(&self.history, &self.local, step, origin);
            measured.unwrap_or(SlotProfile::constant(state.mean))
        };
        let all: Vec<SlotProfile> =
            (1 - beside..=horizon + beside).map(|lead| profile(origin + lead)).collect();
        let mut inputs = Vec::with_capacity(self.settings.horizon_steps * super::INPUTS);
        let beside = beside as usize;
        let covariates = self.covariates.from(origin);
        let known = KnownSeries { history: &self.history, local: &self.local, covariates };
        for (at, lead) in (1..=horizon).enumerate() {
            let around = [all[at].median(), all[at + 2 * beside].median()];
            write_row(&known, &state, lead, &all[at + beside], around, &mut inputs);
        }
        let profiles = all[beside..all.len() - beside].to_vec();
        Some(PreparedForecast { origin, inputs, state, profiles })
    }

    /// The forecast that was prepared, by the outputs of the model as far as there are any. It waits to be scored.
    pub fn issue(&mut self, prepared: &PreparedForecast, outputs: ModelOutputs<'_>) -> ForecastVector {
        let negative = self.history.is_negative();
        let corrected = |outputs: Option<&[f32]>| corrected(prepared, outputs, negative);
        let (shared, personal) = (corrected(outputs.shared), corrected(outputs.personal));
        let values: Vec<[f32; QUANTILES.len()]> = (0..prepared.leads())
            .map(|index| {
                let lead = index as i64 + 1;
                let profile = &prepared.profiles[index];
                let naive = naive_forecasts(&self.history, &self.local, &prepared.state, profile, lead);
                let experts = experts(naive, shared.get(index).copied(), personal.get(index).copied());
                let group = LeadGroup::of(lead, self.history.step_s());
                self.mixture.mix(group, &experts, negative).unwrap_or(profile.quantiles)
            })
            .collect();
        let scored = self.pending.scored(prepared.origin, values.len());
        let pick = |all: &[[f32; QUANTILES.len()]]| {
            scored.clone().filter_map(|index| all.get(index).copied()).collect()
        };
        self.pending.add(PendingForecast {
            state: prepared.state,
            staleness: StalenessClass::of(outputs.staleness.filter(|_| !shared.is_empty())),
            mixture: pick(&values),
            shared: pick(&shared),
            personal: pick(&personal),
        });
        ForecastVector {
            issued_ms: self.history.end_ms(prepared.origin),
            step_s: self.settings.step_s,
            levels: QUANTILES,
            values,
        }
    }

    /// The prepared profile with the corrections of a model alone, without the mixture; empty if they cannot be used.
    pub fn corrected(&self, prepared: &PreparedForecast, outputs: &[f32]) -> Vec<[f32; QUANTILES.len()]> {
        corrected(prepared, Some(outputs), self.history.is_negative())
    }

    fn score(&mut self, step: i64, load: f32) {
        let step_s = self.history.step_s();
        let day = self.local.local_ms(self.history.end_ms(step - 1)).div_euclid(DAY_S * 1000);
        let mut leads = Vec::new();
        for (pending, place) in self.pending.of_step(step) {
            let state = &pending.state;
            let lead = step - state.origin;
            let profile = SlotProfile::at(&self.history, &self.local, step, state.origin)
                .unwrap_or(SlotProfile::constant(state.mean));
            let naive = naive_forecasts(&self.history, &self.local, state, &profile, lead);
            let group = LeadGroup::of(lead, step_s);
            // One that made no forecast is as good as the slot median.
            let medians =
                naive.map(|forecast| forecast.map_or(profile.median(), |each| each[QUANTILES.len() / 2]));
            self.skill.add(day, group, pending.staleness, load, &pending.mixture[place], &medians);
            let forecasts =
                experts(naive, pending.shared.get(place).copied(), pending.personal.get(place).copied());
            leads.push(ScoredLead { group, scale: state.scale, forecasts });
        }
        self.mixture.learn(load, &leads);
    }

    /// Adds the row of one origin and lead to a training batch; false if one of its parts was not measured, or if the origin
    /// has less than a day before it.
    pub fn add_row(&self, rows: &mut LeadRows, origin: i64, lead: i64) -> bool {
        self.origins().is_some_and(|origins| origins.contains(&origin))
            && (1..=self.settings.horizon_steps as i64).contains(&lead)
            && rows.add(&self.history, &self.local, &self.covariates, origin, lead)
    }

    /// Origins from which rows can be made: a day is in memory before them.
    pub fn origins(&self) -> Option<RangeInclusive<i64>> {
        let first = self.history.oldest()? + self.history.day_steps() - 1;
        Some(first..=self.history.newest()?)
    }

    /// The loads in memory.
    pub fn history(&self) -> &LoadHistory {
        &self.history
    }

    /// The weights of the experts.
    pub fn mixture(&self) -> &ForecastMixture {
        &self.mixture
    }

    /// The errors so far.
    pub fn skill(&self) -> &SkillRecord {
        &self.skill
    }

    /// The rules.
    pub fn settings(&self) -> &ForecastSettings {
        &self.settings
    }
}

/// The profile with the corrections of a model, for each lead; empty if there are none that can be used.
fn corrected(
    prepared: &PreparedForecast,
    outputs: Option<&[f32]>,
    negative: bool,
) -> Vec<[f32; QUANTILES.len()]> {
    let usable = |outputs: &&[f32]| {
        outputs.len() == prepared.leads() * QUANTILES.len() && outputs.iter().all(|output| output.is_finite())
    };
    let Some(outputs) = outputs.filter(usable) else { return Vec::new() };
    let correct = |(profile, corrections): (&SlotProfile, &[f32])| {
        let limit = super::TARGET_MAX;
        let add =
            |at: usize| profile.quantiles[at] + corrections[at].clamp(-limit, limit) * prepared.state.scale;
        ordered(std::array::from_fn(add), negative)
    };
    prepared.profiles.iter().zip(outputs.chunks_exact(QUANTILES.len())).map(correct).collect()
}

fn experts(
    naive: [Option<[f32; QUANTILES.len()]>; NAIVE_EXPERTS],
    shared: Option<[f32; QUANTILES.len()]>,
    personal: Option<[f32; QUANTILES.len()]>,
) -> ExpertForecasts {
    let mut experts = [None; Expert::ALL.len()];
    experts[..NAIVE_EXPERTS].copy_from_slice(&naive);
    experts[Expert::Shared as usize] = shared;
    experts[Expert::Personal as usize] = personal;
    experts
}
