//! Errors of the forecasts against those of the best naive one.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::mixture::LeadGroup;
use super::naive::{Expert, NAIVE_EXPERTS};
use super::vector::{QUANTILES, pinball};

/// Days of the recent skill: four weeks.
const RECENT_DAYS: usize = 28;

/// Sums of errors over some forecasts of single steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SkillSums {
    /// Forecasts.
    pub count: u64,
    /// Absolute errors of the median.
    pub absolute: f64,
    /// Absolute errors of the naive experts, in the order of [`Expert::ALL`].
    pub naive: [f64; NAIVE_EXPERTS],
    /// Pinball losses, mean over the quantiles.
    pub pinball: f64,
    /// Loads between the lowest and the highest quantile.
    pub covered: u64,
}

impl SkillSums {
    fn add(&mut self, measured: f32, forecast: &[f32; QUANTILES.len()], naive: &[f32; NAIVE_EXPERTS]) {
        let [low, median, high] = *forecast;
        let error = |forecast: f32| (f64::from(forecast) - f64::from(measured)).abs();
        self.count += 1;
        self.absolute += error(median);
        for (sum, value) in self.naive.iter_mut().zip(naive) {
            *sum += error(*value);
        }
        let loss = |(level, forecast): (f64, &f32)| pinball(level, measured.into(), f64::from(*forecast));
        self.pinball += QUANTILES.into_iter().zip(forecast).map(loss).sum::<f64>() / QUANTILES.len() as f64;
        self.covered += u64::from((low..=high).contains(&measured));
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.absolute += other.absolute;
        self.naive.iter_mut().zip(other.naive).for_each(|(sum, more)| *sum += more);
        self.pinball += other.pinball;
        self.covered += other.covered;
    }

    /// The naive expert with the smallest error, in hindsight.
    pub fn best_naive(&self) -> Expert {
        let best = (0..NAIVE_EXPERTS).min_by(|a, b| self.naive[*a].total_cmp(&self.naive[*b]));
        Expert::ALL[best.unwrap_or(Expert::SlotMedian as usize)]
    }

    /// The skill; none without forecasts. It is 0 where the best naive one makes no error and neither does this.
    ///
    /// # Formula
    ///
    /// 1 − MAE / MAE of the best naive expert, which is chosen in hindsight.
    pub fn skill(&self) -> Option<f64> {
        let best = self.naive[self.best_naive() as usize];
        match (self.count, self.absolute) {
            (0, _) => None,
            (_, absolute) if absolute == best => Some(0.0),
            (_, absolute) => (best > 0.0).then(|| 1.0 - absolute / best),
        }
    }

    /// The mean absolute error, in the meter's unit.
    pub fn mean_absolute_error(&self) -> Option<f64> {
        (self.count > 0).then(|| self.absolute / self.count as f64)
    }

    /// The mean pinball loss, in the meter's unit.
    pub fn mean_pinball(&self) -> Option<f64> {
        (self.count > 0).then(|| self.pinball / self.count as f64)
    }

    /// Share of the loads between the lowest and the highest quantile.
    pub fn coverage(&self) -> Option<f64> {
        (self.count > 0).then(|| self.covered as f64 / self.count as f64)
    }
}

/// Age of the model that a forecast was made with, in rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(usize)]
pub enum StalenessClass {
    /// There was no model: the forecast is naive.
    Never,
    /// Of the last round or the one before.
    Fresh,
    /// Two to four rounds.
    Recent,
    /// Five to sixteen rounds.
    Old,
    /// More than sixteen rounds.
    Ancient,
}

impl StalenessClass {
    /// Every class.
    pub const ALL: [StalenessClass; 5] = [
        StalenessClass::Never,
        StalenessClass::Fresh,
        StalenessClass::Recent,
        StalenessClass::Old,
        StalenessClass::Ancient,
    ];

    /// The class of a model of this age; none for no model.
    pub fn of(rounds: Option<u32>) -> Self {
        match rounds {
            None => StalenessClass::Never,
            Some(0..=1) => StalenessClass::Fresh,
            Some(2..=4) => StalenessClass::Recent,
            Some(5..=16) => StalenessClass::Old,
            Some(_) => StalenessClass::Ancient,
        }
    }

    /// The rounds as words.
    pub fn name(self) -> &'static str {
        match self {
            StalenessClass::Never => "no model",
            StalenessClass::Fresh => "0-1 rounds",
            StalenessClass::Recent => "2-4 rounds",
            StalenessClass::Old => "5-16 rounds",
            StalenessClass::Ancient => "17 rounds or more",
        }
    }
}

/// Sums of one day by lead group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct DaySums {
    day: i64,
    groups: [SkillSums; LeadGroup::ALL.len()],
}

/// Errors of the forecasts by lead group, over the last four weeks and since the beginning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SkillRecord {
    days: VecDeque<DaySums>,
    all: [SkillSums; LeadGroup::ALL.len()],
    staleness: [SkillSums; StalenessClass::ALL.len()],
}

/// The skill of one lead group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeadSkill {
    /// The leads.
    pub group: LeadGroup,
    /// Of the last four weeks.
    pub recent: SkillSums,
    /// Since the beginning.
    pub all: SkillSums,
}

impl SkillRecord {
    pub(super) fn add(
        &mut self,
        day: i64,
        group: LeadGroup,
        staleness: StalenessClass,
        measured: f32,
        forecast: &[f32; QUANTILES.len()],
        naive: &[f32; NAIVE_EXPERTS],
    ) {
        if self.days.back().is_none_or(|newest| newest.day != day) {
            self.days.push_back(DaySums { day, groups: Default::default() });
            // A clock that was set back leaves days of the future: the order is that of arrival.
            let surplus = self.days.len().saturating_sub(RECENT_DAYS);
            self.days.drain(..surplus);
        }
        if let Some(newest) = self.days.back_mut() {
            newest.groups[group as usize].add(measured, forecast, naive);
        }
        self.all[group as usize].add(measured, forecast, naive);
        self.staleness[staleness as usize].add(measured, forecast, naive);
    }

    /// The skill of each lead group for which a forecast has come due.
    pub fn by_lead(&self) -> Vec<LeadSkill> {
        let of = |group: LeadGroup| {
            let mut recent = SkillSums::default();
            self.days.iter().for_each(|day| recent.merge(&day.groups[group as usize]));
            LeadSkill { group, recent, all: self.all[group as usize] }
        };
        LeadGroup::ALL.into_iter().map(of).filter(|skill| skill.all.count > 0).collect()
    }

    /// All leads together: the last four weeks, and since the beginning.
    pub fn overall(&self) -> [SkillSums; 2] {
        let mut sums = [SkillSums::default(); 2];
        for lead in self.by_lead() {
            sums[0].merge(&lead.recent);
            sums[1].merge(&lead.all);
        }
        sums
    }

    /// All leads together by the age of the model, for each age at which a forecast was made.
    pub fn by_staleness(&self) -> impl Iterator<Item = (StalenessClass, &SkillSums)> {
        StalenessClass::ALL.into_iter().zip(&self.staleness).filter(|(_, sums)| sums.count > 0)
    }
}
