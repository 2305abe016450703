//! Loads of the last weeks and their residuals.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::slot_profile::SlotProfile;
use super::{DAY_S, LocalTime};

/// Measured loads in fixed steps, bounded in number, each with its difference from the naive profile.
///
/// A step is named by its end, in steps since 1970. A step without measurement is missing: nothing is interpolated.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadHistory {
    step_s: u32,
    steps_max: usize,
    /// Name of the newest step; meaningless while there is none.
    newest: i64,
    /// Not a number where a step is missing.
    loads: VecDeque<f32>,
    residuals: VecDeque<f32>,
    measured: usize,
    negative: bool,
}

impl LoadHistory {
    /// No loads; a memory of `steps_max` steps of `step_s` seconds.
    pub fn new(step_s: u32, steps_max: usize) -> Self {
        Self {
            step_s: step_s.max(1),
            steps_max: steps_max.max(1),
            newest: 0,
            loads: VecDeque::new(),
            residuals: VecDeque::new(),
            measured: 0,
            negative: false,
        }
    }

    /// Adds the load of a step. Steps that are not newer than the newest one, and loads that are not finite, change nothing.
    pub fn push(&mut self, step: i64, load: f32, local: &LocalTime) {
        if !load.is_finite() || (!self.loads.is_empty() && step <= self.newest) {
            return;
        }
        let missing = if self.loads.is_empty() { 0 } else { (step - self.newest - 1) as usize };
        if missing >= self.steps_max {
            self.clear();
        } else {
            for _ in 0..missing {
                self.append(f32::NAN, f32::NAN);
            }
        }
        let profile = SlotProfile::at(self, local, step, step - 1);
        self.append(load, profile.map_or(f32::NAN, |profile| load - profile.median()));
        self.newest = step;
        self.negative |= load < 0.0;
    }

    fn append(&mut self, load: f32, residual: f32) {
        self.loads.push_back(load);
        self.residuals.push_back(residual);
        self.measured += usize::from(!load.is_nan());
        self.newest += 1;
        if self.loads.len() > self.steps_max {
            self.residuals.pop_front();
            self.measured -= usize::from(self.loads.pop_front().is_some_and(|load| !load.is_nan()));
        }
    }

    /// Forgets every load.
    pub fn clear(&mut self) {
        self.loads.clear();
        self.residuals.clear();
        self.measured = 0;
    }

    /// The measured load of a step.
    pub fn load(&self, step: i64) -> Option<f32> {
        Self::get(&self.loads, self.newest, step)
    }

    /// The measured loads by step, oldest first.
    pub fn measured_loads(&self) -> impl Iterator<Item = (i64, f32)> {
        let steps = self.oldest().unwrap_or(0)..;
        steps.zip(self.loads.iter().copied()).filter(|(_, load)| !load.is_nan())
    }

    /// The load of a step minus the naive profile, as it was known the step before.
    pub fn residual(&self, step: i64) -> Option<f32> {
        Self::get(&self.residuals, self.newest, step)
    }

    /// The mean of `value` over the loads of the `steps` steps up to `last`, without missing ones.
    pub fn mean_load(&self, last: i64, steps: i64, value: impl Fn(f32) -> f32) -> Option<f32> {
        self.mean(&self.loads, last, steps, value)
    }

    /// The mean residual of the `steps` steps up to `last`, without missing ones.
    pub fn mean_residual(&self, last: i64, steps: i64) -> Option<f32> {
        self.mean(&self.residuals, last, steps, |residual| residual)
    }

    fn mean(&self, ring: &VecDeque<f32>, last: i64, steps: i64, value: impl Fn(f32) -> f32) -> Option<f32> {
        let oldest = self.oldest()?;
        let (first, last) = ((last - steps + 1).max(oldest), last.min(self.newest));
        if first > last {
            return None;
        }
        let (mut sum, mut count) = (0.0f64, 0u32);
        for entry in ring.range((first - oldest) as usize..=(last - oldest) as usize) {
            if !entry.is_nan() {
                sum += f64::from(value(*entry));
                count += 1;
            }
        }
        (count > 0).then(|| (sum / f64::from(count)) as f32)
    }

    fn get(ring: &VecDeque<f32>, newest: i64, step: i64) -> Option<f32> {
        let back = usize::try_from(newest.checked_sub(step)?).ok()?;
        let value = ring.get(ring.len().checked_sub(back + 1)?)?;
        (!value.is_nan()).then_some(*value)
    }

    /// Name of the newest step.
    pub fn newest(&self) -> Option<i64> {
        (!self.loads.is_empty()).then_some(self.newest)
    }

    /// Name of the oldest step in memory.
    pub fn oldest(&self) -> Option<i64> {
        (!self.loads.is_empty()).then(|| self.newest + 1 - self.loads.len() as i64)
    }

    /// Steps in memory, missing ones included.
    pub fn len(&self) -> usize {
        self.loads.len()
    }

    /// There is no step in memory.
    pub fn is_empty(&self) -> bool {
        self.loads.is_empty()
    }

    /// Measured steps in memory.
    pub fn measured(&self) -> usize {
        self.measured
    }

    /// A load was below zero at some time: the house feeds in.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Loads in memory, oldest first, without missing ones.
    pub fn loads(&self) -> impl Iterator<Item = f32> {
        self.loads.iter().copied().filter(|load| !load.is_nan())
    }

    /// Length of a step in seconds.
    pub fn step_s(&self) -> i64 {
        self.step_s.into()
    }

    /// Steps of a day.
    pub fn day_steps(&self) -> i64 {
        (DAY_S / self.step_s()).max(1)
    }

    /// Steps of a time, at least one.
    pub fn steps_of(&self, seconds: i64) -> i64 {
        (seconds / self.step_s()).max(1)
    }

    /// The end of a step, in milliseconds since 1970.
    pub fn end_ms(&self, step: i64) -> i64 {
        step.saturating_mul(self.step_s() * 1000)
    }

    /// The step at the same time of day by the household's clocks, some days before `step`.
    pub fn same_time(&self, local: &LocalTime, step: i64, days: i64) -> i64 {
        let earlier = step - days * self.day_steps();
        // A step belongs to the time at which it began.
        let shift = local.offset_s(self.end_ms(step - 1)) - local.offset_s(self.end_ms(earlier - 1));
        earlier + shift / self.step_s()
    }
}

/// Missing steps are equal to each other.
impl PartialEq for LoadHistory {
    fn eq(&self, other: &Self) -> bool {
        let same = |a: &VecDeque<f32>, b: &VecDeque<f32>| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()))
        };
        (self.step_s, self.steps_max, self.newest, self.negative)
            == (other.step_s, other.steps_max, other.newest, other.negative)
            && same(&self.loads, &other.loads)
            && same(&self.residuals, &other.residuals)
    }
}
