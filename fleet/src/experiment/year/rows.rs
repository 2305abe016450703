//! Rows of the forecast: one for each origin and lead.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Inputs of a row.
pub(super) const INPUTS: usize = 37;
/// Outputs: corrections of three quantiles.
pub(super) const OUTPUTS: usize = 3;

/// Days of the profile.
const DAYS: usize = 14;
const TARGET_MAX: f32 = 8.0;
const INPUT_MAX: f32 = 6.0;

/// Rows with their targets, in units of the household's scale.
#[derive(Debug, Clone, Default)]
pub(super) struct RowBatch {
    pub(super) inputs: Vec<f32>,
    pub(super) targets: Vec<f32>,
}

/// A household's readings with everything its rows are made from. What is stored at a step is known at that step, except
/// the profile of a step, which is known a day before.
#[derive(Debug, Clone)]
pub(super) struct HomeRows {
    pub(super) day: usize,
    half_hour: usize,
    first_ms: i64,
    pub(super) values: Vec<f32>,
    naive: Vec<[f32; OUTPUTS]>,
    mean: Vec<f32>,
    weekday: Vec<f32>,
    scale: Vec<f32>,
    /// Sums of the residuals before each step.
    residuals: Vec<f64>,
}

impl HomeRows {
    /// `first_ms` is the end of the first step; a missing value is NaN, and is taken to be that of the day before.
    pub(super) fn new(first_ms: i64, step_s: u32, measured: &[f32]) -> Self {
        let day = 86_400 / step_s as usize;
        let mut values = measured.to_vec();
        for at in 0..values.len() {
            if values[at].is_nan() {
                values[at] = if at >= day { values[at - day] } else { 0.0 };
            }
        }
        let steps = values.len() + 2 * day;
        let (mut naive, mut mean, mut weekday) = (vec![[0.0; 3]; steps], vec![0.0; steps], vec![0.0; steps]);
        for at in day..steps {
            let lag = |days: usize| at.checked_sub(days * day).and_then(|at| values.get(at)).copied();
            let mut known: Vec<f32> = (1..=DAYS).filter_map(lag).collect();
            if known.is_empty() {
                continue;
            }
            mean[at] = known.iter().sum::<f32>() / known.len() as f32;
            naive[at] = quantiles(&mut known);
            let mut weeks: Vec<f32> = [7, 14, 21, 28].into_iter().filter_map(lag).collect();
            weekday[at] = if weeks.is_empty() { naive[at][1] } else { quantiles(&mut weeks)[1] };
        }
        let mut sums = vec![0.0f64; values.len() + 1];
        let mut residuals = sums.clone();
        for (at, value) in values.iter().enumerate() {
            sums[at + 1] = sums[at] + f64::from(*value);
            let residual = if at < day { 0.0 } else { value - naive[at][1] };
            residuals[at + 1] = residuals[at] + f64::from(residual);
        }
        let scale = |at: usize| {
            let from = (at + 1).saturating_sub(DAYS * day);
            ((sums[at + 1] - sums[from]) / (at + 1 - from) as f64) as f32 + 1e-3
        };
        let scale = (0..values.len()).map(scale).collect();
        let half_hour = (1800 / step_s as usize).max(1);
        Self { day, half_hour, first_ms, values, naive, mean, weekday, scale, residuals }
    }

    /// s at a step.
    pub(super) fn scale(&self, origin: usize) -> f32 {
        self.scale[origin]
    }

    /// The naive quantiles of a step, in the unit of the readings.
    pub(super) fn naive(&self, target: usize) -> [f32; OUTPUTS] {
        self.naive[target]
    }

    /// Mean residual of `steps` steps up to `end`, in the unit of the readings.
    fn residual(&self, end: usize, steps: usize) -> f32 {
        let from = (end + 1).saturating_sub(steps);
        ((self.residuals[end + 1] - self.residuals[from]) / steps as f64) as f32
    }

    /// Appends the inputs of a row.
    pub(super) fn push_inputs(&self, t: usize, lead: usize, inputs: &mut Vec<f32>) {
        let (day, hh, tau) = (self.day, self.half_hour, t + lead);
        let s = self.scale[t];
        let median = |at: usize| self.naive[at][1] / s;
        let value = |at: usize| self.values[at.min(t)] / s;
        let back = |steps: usize| tau.checked_sub(steps).map_or(median(tau), value);
        let p = median(tau);
        let r = |k: usize| t.checked_sub(k * hh).map_or(0.0, |end| self.residual(end, hh)) / s;
        let (r0, r1) = (r(0), r(1));
        let (r3h, r24h, r7d) =
            (self.residual(t, 6 * hh) / s, self.residual(t, day) / s, self.residual(t, 7 * day) / s);
        let x0 = value(t) - p;
        let hours = lead as f32 * 24.0 / day as f32;
        let decay = |over: f32| (-hours / over).exp();
        let (e1, e2, e3) = (decay(0.75), decay(3.0), decay(12.0));
        let ms = self.first_ms + tau as i64 * (86_400_000 / day as i64);
        let turn = std::f32::consts::TAU;
        let of_day = turn * (ms.rem_euclid(86_400_000) as f32 / 86_400_000.0);
        // 1970-01-01 was a Thursday.
        let weekend = (ms.div_euclid(86_400_000) + 3).rem_euclid(7) >= 5;
        let of_year = turn * ((ms as f64 / 86_400_000.0 / 365.2425).fract() as f32);
        let [low, _, high] = self.naive[tau].map(|quantile| quantile / s - p);
        let row: [f32; INPUTS] = [
            p,
            median(tau + hh) - p,
            median(tau - hh) - p,
            self.mean[tau] / s - p,
            low,
            high,
            self.weekday[tau] / s - p,
            r0,
            r1,
            r(2),
            r(3),
            r3h,
            r24h,
            r7d,
            back(day) - p,
            back(7 * day) - p,
            back(day + hh) - p,
            back(day - hh) - p,
            x0,
            r0 * e1,
            r0 * e2,
            r3h * e2,
            r3h * e3,
            x0 * e1,
            (r0 - r1) * e1,
            e1,
            e2,
            e3,
            hours / 24.0,
            of_day.sin(),
            of_day.cos(),
            (2.0 * of_day).sin(),
            (2.0 * of_day).cos(),
            f32::from(weekend),
            of_year.sin(),
            of_year.cos(),
            s.ln(),
        ];
        inputs.extend(row.map(|input| input.clamp(-INPUT_MAX, INPUT_MAX)));
    }

    /// A row with its targets; the target's step must be known.
    pub(super) fn push(&self, t: usize, lead: usize, batch: &mut RowBatch) {
        self.push_inputs(t, lead, &mut batch.inputs);
        let (x, s) = (self.values[t + lead], self.scale[t]);
        let naive = self.naive[t + lead];
        batch.targets.extend(naive.map(|naive| ((x - naive) / s).clamp(-TARGET_MAX, TARGET_MAX)));
    }

    /// Rows of the steps in `targets`, all known; short leads more often than long ones.
    pub(super) fn sample(
        &self,
        targets: std::ops::Range<usize>,
        rows: usize,
        rng: &mut ChaCha8Rng,
        batch: &mut RowBatch,
    ) {
        for _ in 0..rows {
            let target = rng.random_range(targets.clone());
            let lead = rng.random_range(1..=self.day);
            let lead = if rng.random_bool(0.5) { lead.min(rng.random_range(1..=self.day)) } else { lead };
            self.push(target - lead, lead, batch);
        }
    }
}

/// The quantiles 10, 50 and 90 % with linear interpolation.
fn quantiles(known: &mut [f32]) -> [f32; OUTPUTS] {
    known.sort_by(f32::total_cmp);
    [0.1, 0.5, 0.9].map(|level: f32| {
        let place = level * (known.len() - 1) as f32;
        let below = place as usize;
        let above = (below + 1).min(known.len() - 1);
        known[below] + (known[above] - known[below]) * (place - below as f32)
    })
}
