//! One household of a year: the production forecaster on its readings, its models and its scores.

use std::sync::Arc;

use evenhand_models::{ModelError, Sgd};
use evenhand_node::forecast::{ForecastSettings, Forecaster, LeadRows, ModelOutputs, PERSONAL_TRAINING};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::household_choice::YearHousehold;
use super::network::Network;
use super::score::{HouseholdScore, Quantiles, VARIANTS};
use super::settings::YearSettings;
use super::variant_name::YearVariant;

/// Days of readings before the first forecast and the first update.
const WARM_UP_DAYS: usize = 2;
/// Rows of a measurement for each new reading, at most.
const ROWS_A_STEP: usize = 8;
/// Attempts at a row for each that is wanted: some origins or targets were not measured.
const ATTEMPTS: usize = 4;

/// Models that everybody shares at an origin.
pub(super) struct CommonModels<'a> {
    pub(super) fedavg: &'a [f32],
    pub(super) pooled: &'a [f32],
}

/// One household.
pub(super) struct HouseholdLearner {
    pub(super) joins: usize,
    measured: Vec<f32>,
    /// Name of the step at position 0: steps since 1970.
    first_step: i64,
    day: usize,
    forecaster: Forecaster,
    /// The shared model it was last drawn with.
    pub(super) held: Option<Arc<[f32]>>,
    /// The position of that draw.
    drawn: usize,
    alone: Vec<f32>,
    personal: Vec<f32>,
    rng: ChaCha8Rng,
    /// Positions up to here are measured.
    measured_until: usize,
    pub(super) score: HouseholdScore,
    /// Mean load over the judged time, and mean absolute difference to the day before until then.
    pub(super) mean_load: f64,
    pub(super) daily_difference: f64,
}

impl HouseholdLearner {
    pub(super) fn new(home: YearHousehold, number: u64, settings: &YearSettings, network: &Network) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(settings.seed);
        rng.set_stream(number + 1);
        let step_s = home.step_s;
        let day = 86_400 / step_s as usize;
        let end = (home.values.len() * 2 / 3).max(home.joins);
        let differences: Vec<f32> = (home.joins + day..end.max(home.joins + day))
            .map(|at| (home.values[at] - home.values[at - day]).abs())
            .collect();
        Self {
            joins: home.joins,
            first_step: home.first_ms.div_euclid(i64::from(step_s) * 1000),
            mean_load: mean(&home.values[end..]),
            daily_difference: mean(&differences),
            measured: home.values,
            day,
            forecaster: Forecaster::new(ForecastSettings::day_ahead(step_s), home.clocks),
            held: None,
            drawn: 0,
            alone: network.initial.to_vec(),
            personal: network.initial_personal.clone(),
            rng,
            measured_until: 0,
            score: HouseholdScore::default(),
        }
    }

    /// Takes the reading of a step, if it has joined and there is one.
    pub(super) fn read(&mut self, now: usize) {
        if now >= self.joins {
            self.forecaster.push(self.first_step + now as i64, self.measured[now]);
        }
    }

    /// True if it has joined and has enough readings to learn from.
    pub(super) fn has_rows(&self, now: usize) -> bool {
        now >= self.joins + WARM_UP_DAYS * self.day
    }

    /// Rows of its last days.
    pub(super) fn rows(&mut self, now: usize, rows: usize, days: usize) -> LeadRows {
        let from = (now + 1).saturating_sub(days * self.day).max(self.joins + self.day);
        self.sample(from, now, rows)
    }

    /// Rows of the steps since the last measurement.
    pub(super) fn unmeasured(&mut self, now: usize, rows: usize) -> LeadRows {
        let from = self.measured_until.max(self.joins + self.day);
        self.measured_until = now + 1;
        self.sample(from, now, rows.min(ROWS_A_STEP * (now + 1).saturating_sub(from)))
    }

    /// Rows whose targets lie between two positions; short leads more often than long ones.
    fn sample(&mut self, from: usize, now: usize, wanted: usize) -> LeadRows {
        let mut rows = LeadRows::default();
        for _ in 0..ATTEMPTS * wanted {
            if rows.len() == wanted || from > now {
                break;
            }
            let target = self.rng.random_range(from..=now);
            let any = self.rng.random_range(1..=self.day);
            let lead =
                if self.rng.random_bool(0.5) { any.min(self.rng.random_range(1..=self.day)) } else { any };
            let origin = self.first_step + target as i64 - lead as i64;
            self.forecaster.add_row(&mut rows, origin, lead as i64);
        }
        rows
    }

    /// Receives the shared model.
    pub(super) fn receive(&mut self, now: usize, weights: Option<&Arc<[f32]>>) {
        if let Some(weights) = weights {
            self.held = Some(Arc::clone(weights));
        }
        self.drawn = now;
    }

    /// A day of learning from its own readings: alone as many steps as the shared model had, and the personal part.
    pub(super) fn learn(
        &mut self,
        now: usize,
        settings: &YearSettings,
        network: &Network,
    ) -> Result<(), ModelError> {
        let rows = self.rows(now, settings.samples_max as usize, settings.history_days as usize);
        if rows.is_empty() {
            return Ok(());
        }
        if let Some(held) = &self.held {
            let step = network.personal_epochs(held, &self.personal, rows.clone(), &PERSONAL_TRAINING)?;
            self.personal.iter_mut().zip(step.gradient).for_each(|(weight, step)| *weight -= step);
        }
        for _ in 0..settings.rounds_a_day {
            let step = network.epochs(&self.alone, rows.clone(), &settings.sgd())?;
            self.alone.iter_mut().zip(step.gradient).for_each(|(weight, step)| *weight -= step);
        }
        Ok(())
    }

    /// Forecasts at step `now`, judged at once.
    pub(super) fn forecast(
        &mut self,
        now: usize,
        common: &CommonModels<'_>,
        at_end: bool,
        network: &Network,
    ) -> Result<(), ModelError> {
        let day = self.day;
        let Some(prepared) = self.forecaster.prepare() else { return Ok(()) };
        if now + day >= self.measured.len() || prepared.origin != self.first_step + now as i64 {
            return Ok(());
        }
        let none = &network.initial_personal;
        let outputs = |weights: &[f32]| network.outputs(weights, none, &prepared.inputs);
        let with_personal = |held: &Arc<[f32]>| network.outputs(held, &self.personal, &prepared.inputs);
        let shared = self.held.as_ref().map(|held| outputs(held)).transpose()?;
        let personal = self.held.as_ref().map(with_personal).transpose()?;
        let corrected = |outputs: &[f32]| self.forecaster.corrected(&prepared, outputs);
        let naive = corrected(&vec![0.0; 3 * day]);
        let value = |at: usize| Some(self.measured[at]).filter(|value| at >= self.joins && !value.is_nan());
        let point = |of: &dyn Fn(usize) -> Option<f32>| -> Quantiles {
            let quantiles = |(lead, naive): (usize, &[f32; 3])| {
                let value = of(now + 1 + lead).unwrap_or(naive[1]);
                naive.map(|quantile| (quantile - naive[1] + value).max(0.0))
            };
            naive.iter().enumerate().map(quantiles).collect()
        };
        let mut forecasts: [Quantiles; VARIANTS] = Default::default();
        let mut put = |variant: YearVariant, forecast: Quantiles| forecasts[variant.place()] = forecast;
        put(YearVariant::RepeatLast, point(&|_| value(now)));
        put(YearVariant::Yesterday, point(&|target| value(target - day)));
        put(YearVariant::LastWeek, point(&|target| target.checked_sub(7 * day).and_then(value)));
        put(YearVariant::Alone, corrected(&outputs(&self.alone)?));
        put(YearVariant::FedAvg, corrected(&outputs(common.fedavg)?));
        put(YearVariant::Pooled, corrected(&outputs(common.pooled)?));
        put(YearVariant::Evenhand, shared.as_ref().map_or_else(|| naive.clone(), |shared| corrected(shared)));
        put(YearVariant::SlotMedian, naive.clone());
        let given =
            ModelOutputs { shared: shared.as_deref(), personal: personal.as_deref(), staleness: None };
        forecasts[YearVariant::EvenhandPersonal.place()] = self.forecaster.issue(&prepared, given).values;
        let week = (now - self.joins) / (7 * day);
        let stale = shared.is_some().then(|| (now - self.drawn) as f64 / day as f64);
        self.score.add(&forecasts, &self.measured[now + 1..=now + day], week, at_end, stale);
        Ok(())
    }
}

fn mean(values: &[f32]) -> f64 {
    let known = values.iter().filter(|value| !value.is_nan());
    let (sum, count) = known.fold((0.0, 0.0), |(sum, count), value| (sum + f64::from(*value), count + 1.0));
    sum / f64::max(count, 1.0)
}

impl YearSettings {
    /// Local training of an update.
    pub(super) fn sgd(&self) -> Sgd {
        let Self { epochs, learning_rate, momentum, .. } = *self;
        Sgd { epochs, learning_rate, momentum, batch_size: None }
    }
}
