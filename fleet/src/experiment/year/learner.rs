//! One household of a year: its readings, its models, its mixture and its scores.

use std::collections::VecDeque;
use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::household_choice::YearHousehold;
use super::mixture::Aggregation;
use super::net::{self, LEVELS};
use super::rows::{HomeRows, INPUTS, OUTPUTS, RowBatch};
use super::score::{HouseholdScore, Quantiles, VARIANTS};
use super::settings::YearSettings;
use super::variant_name::YearVariant;

/// Experts of the mixture.
const EXPERTS: usize = 7;
/// Groups of leads with weights of their own.
const LEAD_GROUPS: usize = 4;
/// Days of readings before the first forecast.
const WARM_UP_DAYS: usize = 3;
/// Daily training of the personal part.
const PERSONAL_EPOCHS: u32 = 10;
const PERSONAL_RATE: f32 = 0.01;

/// Models that everybody shares at an origin.
pub(super) struct CommonModels<'a> {
    pub(super) fedavg: &'a [f32],
    pub(super) pooled: &'a [f32],
}

/// A forecast whose truth is awaited.
struct PendingForecast {
    origin: usize,
    scale: f32,
    has_model: bool,
    experts: Vec<[[f32; OUTPUTS]; EXPERTS]>,
    mixed: Quantiles,
}

/// One household.
pub(super) struct HouseholdLearner {
    pub(super) joins: usize,
    measured: Vec<f32>,
    rows: HomeRows,
    /// The shared model it was last drawn with.
    pub(super) held: Option<Arc<[f32]>>,
    /// The step of that draw.
    drawn: usize,
    alone: Vec<f32>,
    personal: Vec<f32>,
    mixture: Vec<Aggregation>,
    pending: VecDeque<PendingForecast>,
    rng: ChaCha8Rng,
    /// Steps up to here are measured.
    measured_until: usize,
    pub(super) score: HouseholdScore,
    /// Mean load over the judged time, and mean absolute difference to the day before until then.
    pub(super) mean_load: f64,
    pub(super) daily_difference: f64,
}

impl HouseholdLearner {
    pub(super) fn new(
        home: YearHousehold,
        step_s: u32,
        number: u64,
        settings: &YearSettings,
        initial: &[f32],
    ) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(settings.seed);
        rng.set_stream(number + 1);
        let measured = home.values[home.joins..].to_vec();
        let first_ms = home.first_ms + home.joins as i64 * i64::from(step_s) * 1000;
        let rows = HomeRows::new(first_ms, step_s, &measured);
        let end = (home.values.len() * 2 / 3).saturating_sub(home.joins).min(measured.len());
        let known = |values: &[f32]| {
            let (sum, count) = values
                .iter()
                .filter(|value| !value.is_nan())
                .fold((0.0, 0.0), |(sum, count), value| (sum + f64::from(*value), count + 1.0));
            sum / f64::max(count, 1.0)
        };
        let day = rows.day;
        let differences: Vec<f32> =
            (day..end.max(day + 1)).map(|at| (rows.values[at] - rows.values[at - day]).abs()).collect();
        Self {
            joins: home.joins,
            mean_load: known(&measured[end..]),
            daily_difference: known(&differences),
            measured,
            rows,
            held: None,
            drawn: 0,
            alone: initial.to_vec(),
            personal: vec![0.0; INPUTS * OUTPUTS],
            mixture: vec![Aggregation::new(EXPERTS); LEAD_GROUPS * OUTPUTS],
            pending: VecDeque::new(),
            rng,
            measured_until: 0,
            score: HouseholdScore::default(),
        }
    }

    /// True if it has joined at step `now` and has enough readings to learn from.
    pub(super) fn has_rows(&self, now: usize) -> bool {
        now >= self.joins + WARM_UP_DAYS * self.rows.day
    }

    /// Rows of its last days.
    pub(super) fn batch(&mut self, now: usize, rows: usize, days: usize) -> RowBatch {
        let (last, day) = (now - self.joins, self.rows.day);
        let from = (last + 1).saturating_sub(days * day).max(2 * day);
        let mut batch = RowBatch::default();
        self.rows.sample(from..last + 1, rows, &mut self.rng, &mut batch);
        batch
    }

    /// Rows of the steps since the last measurement.
    pub(super) fn unmeasured(&mut self, now: usize, rows: usize) -> RowBatch {
        let last = now - self.joins;
        let from = self.measured_until.max(2 * self.rows.day).min(last);
        self.measured_until = last + 1;
        let mut batch = RowBatch::default();
        let rows = rows.min(8 * (last + 1 - from));
        self.rows.sample(from..last + 1, rows, &mut self.rng, &mut batch);
        batch
    }

    /// Receives the shared model.
    pub(super) fn receive(&mut self, now: usize, weights: Option<&Arc<[f32]>>) {
        if let Some(weights) = weights {
            self.held = Some(Arc::clone(weights));
        }
        self.drawn = now;
    }

    /// A round of learning alone.
    pub(super) fn learn_alone(&mut self, now: usize, settings: &YearSettings) {
        let batch = self.batch(now, settings.samples_max as usize, settings.history_days as usize);
        let YearSettings { epochs, learning_rate, momentum, .. } = *settings;
        self.alone = net::epochs(&self.alone, &batch, epochs, learning_rate, momentum).1;
    }

    /// A day's training of the personal part, on top of the held model.
    pub(super) fn learn_personal(&mut self, now: usize, settings: &YearSettings) {
        let Some(held) = self.held.clone() else { return };
        let mut batch = self.batch(now, settings.samples_max as usize, settings.history_days as usize);
        let shared = net::output(&held, &batch.inputs);
        batch.targets.iter_mut().zip(&shared).for_each(|(target, shared)| *target -= shared);
        let mut velocity = vec![0.0; self.personal.len()];
        for _ in 0..PERSONAL_EPOCHS {
            let (_, slopes) = net::pinball(&self.correction(&batch.inputs), &batch.targets);
            let mut gradient = vec![0.0; self.personal.len()];
            for (x, slope) in batch.inputs.chunks_exact(INPUTS).zip(slopes.chunks_exact(OUTPUTS)) {
                for (value, line) in x.iter().zip(gradient.chunks_exact_mut(OUTPUTS)) {
                    line.iter_mut().zip(slope).for_each(|(sum, slope)| *sum += value * slope);
                }
            }
            for ((weight, v), slope) in self.personal.iter_mut().zip(&mut velocity).zip(&gradient) {
                *v = settings.momentum * *v + slope;
                *weight -= PERSONAL_RATE * *v;
            }
        }
    }

    fn correction(&self, inputs: &[f32]) -> Vec<f32> {
        let row = |x: &[f32]| {
            let mut sum = [0.0; OUTPUTS];
            for (value, line) in x.iter().zip(self.personal.chunks_exact(OUTPUTS)) {
                sum.iter_mut().zip(line).for_each(|(sum, weight)| *sum += value * weight);
            }
            sum
        };
        inputs.chunks_exact(INPUTS).flat_map(row).collect()
    }

    /// Forecasts at step `now`, judged at once; the mixture learns from those of a day ago.
    pub(super) fn forecast(&mut self, now: usize, common: &CommonModels<'_>, at_end: bool) {
        let (t, day) = (now - self.joins, self.rows.day);
        if t + day >= self.measured.len() {
            return;
        }
        while self.pending.front().is_some_and(|pending| pending.origin + day <= t) {
            if let Some(pending) = self.pending.pop_front() {
                self.settle(&pending);
            }
        }
        let s = self.rows.scale(t);
        let mut inputs = Vec::with_capacity(day * INPUTS);
        (1..=day).for_each(|lead| self.rows.push_inputs(t, lead, &mut inputs));
        let value = |at: usize| self.rows.values[at];
        let naive: Quantiles = (1..=day).map(|lead| self.rows.naive(t + lead)).collect();
        let corrected = |outputs: &[f32]| -> Quantiles {
            let row = |(naive, out): (&[f32; 3], &[f32])| {
                let mut quantiles = [0, 1, 2].map(|at| (naive[at] + s * out[at]).max(0.0));
                quantiles.sort_by(f32::total_cmp);
                quantiles
            };
            naive.iter().zip(outputs.chunks_exact(OUTPUTS)).map(row).collect()
        };
        let point =
            |of: &dyn Fn(usize) -> f32| -> Quantiles { (1..=day).map(|lead| [of(t + lead); 3]).collect() };
        let last = point(&|_| value(t));
        let yesterday = point(&|target| value(target - day));
        let week = point(&|target| target.checked_sub(7 * day).map_or(value(target - day), value));
        let (shared, personal) = match &self.held {
            Some(held) => {
                let shared = net::output(held, &inputs);
                let own: Vec<f32> =
                    shared.iter().zip(self.correction(&inputs)).map(|(shared, own)| shared + own).collect();
                (corrected(&shared), corrected(&own))
            }
            None => (naive.clone(), naive.clone()),
        };
        let hours = |lead: usize| (lead + 1) as f32 * 24.0 / day as f32;
        let blend: Quantiles = naive
            .iter()
            .enumerate()
            .map(|(lead, naive)| {
                let share = (-hours(lead)).exp();
                naive.map(|quantile| quantile + share * (value(t) - naive[1]))
            })
            .collect();
        let experts: Vec<[[f32; OUTPUTS]; EXPERTS]> = (0..day)
            .map(|lead| {
                [
                    last[lead],
                    yesterday[lead],
                    week[lead],
                    naive[lead],
                    blend[lead],
                    shared[lead],
                    personal[lead],
                ]
            })
            .collect();
        let has_model = self.held.is_some();
        let mixed = self.mix(&experts, has_model);
        let alone = corrected(&net::output(&self.alone, &inputs));
        let fedavg = corrected(&net::output(common.fedavg, &inputs));
        let pooled = corrected(&net::output(common.pooled, &inputs));
        let mut forecasts: [Quantiles; VARIANTS] = Default::default();
        let all = [
            (YearVariant::RepeatLast, last),
            (YearVariant::Yesterday, yesterday),
            (YearVariant::LastWeek, week),
            (YearVariant::SlotMedian, naive),
            (YearVariant::Alone, alone),
            (YearVariant::FedAvg, fedavg),
            (YearVariant::Evenhand, shared),
            (YearVariant::EvenhandPersonal, mixed.clone()),
            (YearVariant::Pooled, pooled),
        ];
        all.into_iter().for_each(|(variant, forecast)| forecasts[variant.place()] = forecast);
        let truths = &self.measured[t + 1..=t + day];
        let stale = has_model.then(|| (now - self.drawn) as f64 / day as f64);
        self.score.add(&forecasts, truths, t / (7 * day), at_end, stale);
        self.pending.push_back(PendingForecast { origin: t, scale: s, has_model, experts, mixed });
    }

    fn lead_group(&self, lead: usize) -> usize {
        let minutes = (lead + 1) * 1440 / self.rows.day;
        if lead == 0 {
            0
        } else if minutes <= 60 {
            1
        } else if minutes <= 240 {
            2
        } else {
            3
        }
    }

    fn mix(&self, experts: &[[[f32; OUTPUTS]; EXPERTS]], has_model: bool) -> Quantiles {
        let awake: [bool; EXPERTS] = std::array::from_fn(|expert| expert < 5 || has_model);
        let weights: Vec<Vec<f32>> = self.mixture.iter().map(|mixture| mixture.weights(&awake)).collect();
        let row = |(lead, experts): (usize, &[[f32; OUTPUTS]; EXPERTS])| {
            let group = self.lead_group(lead);
            let mut quantiles = [0, 1, 2].map(|at| {
                let weights = &weights[group * OUTPUTS + at];
                experts.iter().zip(weights).map(|(expert, weight)| expert[at] * weight).sum::<f32>()
            });
            quantiles.sort_by(f32::total_cmp);
            quantiles
        };
        experts.iter().enumerate().map(row).collect()
    }

    /// The mixture learns from a forecast all of whose leads are known.
    fn settle(&mut self, pending: &PendingForecast) {
        let awake: [bool; EXPERTS] = std::array::from_fn(|expert| expert < 5 || pending.has_model);
        let mut regrets = vec![([0.0f32; EXPERTS], 0.0f32); LEAD_GROUPS * OUTPUTS];
        for (lead, (experts, mixed)) in pending.experts.iter().zip(&pending.mixed).enumerate() {
            let truth = self.rows.values[pending.origin + 1 + lead];
            for (at, level) in LEVELS.into_iter().enumerate() {
                let slope = if truth > mixed[at] { -level } else { 1.0 - level };
                let (sums, count) = &mut regrets[self.lead_group(lead) * OUTPUTS + at];
                for (sum, expert) in sums.iter_mut().zip(experts) {
                    *sum += slope * (mixed[at] - expert[at]) / pending.scale;
                }
                *count += 1.0;
            }
        }
        for (mixture, (sums, count)) in self.mixture.iter_mut().zip(regrets) {
            if count > 0.0 {
                mixture.learn(&awake, &sums.map(|sum| sum / count));
            }
        }
    }
}
