//! The naive profile: quantiles of the same time of day over the last two weeks.

use super::vector::QUANTILES;
use super::{LoadHistory, LocalTime};

/// Days that the profile looks back.
pub(super) const PROFILE_DAYS: usize = 14;
/// Weeks of which the same weekday is compared.
const WEEKDAY_WEEKS: usize = 4;

/// Statistics of one slot of the day before a forecast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlotProfile {
    /// naive_q for each of [`QUANTILES`].
    pub quantiles: [f32; QUANTILES.len()],
    /// The mean.
    pub mean: f32,
    /// The median of the same weekday in the last four weeks.
    pub weekday: f32,
}

impl SlotProfile {
    /// The profile of step `target` by the loads up to step `origin`; none if the slot was not measured in the last two weeks.
    ///
    /// # Formula
    ///
    /// naive_q(τ) = quantile q of x(τ − d days), d = 1 … 14, over the days that are known at the origin.
    pub fn at(history: &LoadHistory, local: &LocalTime, target: i64, origin: i64) -> Option<Self> {
        let known = |days: i64| {
            let step = history.same_time(local, target, days);
            if step <= origin { history.load(step) } else { None }
        };
        // A longer lead than a day begins with the day that is known.
        let first = (target - origin - 1).div_euclid(history.day_steps()).max(0) + 1;
        let (mut slot, mut days) = ([0.0f32; PROFILE_DAYS], 0);
        for load in (first..first + PROFILE_DAYS as i64).filter_map(known) {
            slot[days] = load;
            days += 1;
        }
        let slot = &mut slot[..days];
        if slot.is_empty() {
            return None;
        }
        let mean = slot.iter().sum::<f32>() / days as f32;
        slot.sort_unstable_by(f32::total_cmp);
        let (mut same_weekday, mut weeks) = ([0.0f32; WEEKDAY_WEEKS], 0);
        for load in (1..=WEEKDAY_WEEKS as i64).filter_map(|week| known(7 * week)) {
            same_weekday[weeks] = load;
            weeks += 1;
        }
        let same_weekday = &mut same_weekday[..weeks];
        same_weekday.sort_unstable_by(f32::total_cmp);
        let quantiles = QUANTILES.map(|level| quantile(slot, level));
        let weekday = if weeks == 0 { quantile(slot, 0.5) } else { quantile(same_weekday, 0.5) };
        Some(Self { quantiles, mean, weekday })
    }

    /// naive_50.
    pub fn median(&self) -> f32 {
        self.quantiles[QUANTILES.len() / 2]
    }

    /// The profile of a load that was always `load`.
    pub(super) fn constant(load: f32) -> Self {
        Self { quantiles: [load; QUANTILES.len()], mean: load, weekday: load }
    }
}

/// The quantile of sorted values, linear between them (type 7 of Hyndman and Fan); there is at least one value.
fn quantile(sorted: &[f32], level: f64) -> f32 {
    let at = level * (sorted.len() - 1) as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let share = (at - below as f64) as f32;
    sorted[below] + (sorted[above] - sorted[below]) * share
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn quantiles_agree_with_numpy() {
        // numpy.quantile([1, 2, 4, 8, 16], [.1, .5, .9]) = [1.4, 4, 12.8]
        let sorted = [1.0, 2.0, 4.0, 8.0, 16.0];
        assert_eq!([0.1, 0.5, 0.9].map(|level| quantile(&sorted, level)), [1.4, 4.0, 12.8]);
        assert_eq!(quantile(&[3.0], 0.9), 3.0);
    }

    #[test]
    fn the_profile_is_that_of_the_same_hour_on_the_days_that_are_known() {
        let (mut history, local) = (LoadHistory::new(3600, 24 * 40), LocalTime::default());
        for hour in 0..24 * 20i64 {
            history.push(hour, (hour / 24) as f32 + if hour % 24 == 7 { 100.0 } else { 0.0 }, &local);
        }
        let origin = history.newest().unwrap();
        // Days 6 … 19 at seven.
        let seven = SlotProfile::at(&history, &local, origin + 8, origin).unwrap();
        assert_eq!((seven.median(), seven.mean), (112.5, 112.5));
        assert_eq!(seven.weekday, 109.5, "days 13 and 6");
        // Two days ahead, yesterday is day 19 still.
        let later = SlotProfile::at(&history, &local, origin + 8 + 24, origin).unwrap();
        assert_eq!(later.median(), 112.5);
        assert_eq!(SlotProfile::at(&history, &local, origin - 24 * 20, origin), None, "before the first day");
    }

    #[test]
    fn a_slot_follows_the_clocks_when_they_change() {
        // Summer time begins at hour 24·10: local = UTC, then UTC + 1 h.
        let local = LocalTime::fixed(0).changed_at(24 * 10 * 3_600_000, 3600);
        let mut history = LoadHistory::new(3600, 24 * 40);
        for hour in 1..=24 * 12i64 {
            let began_ms = history.end_ms(hour - 1);
            let at_seven = local.local_ms(began_ms).rem_euclid(86_400_000) == 7 * 3_600_000;
            history.push(hour, if at_seven { 5.0 } else { 1.0 }, &local);
        }
        let origin = 24 * 12;
        let loads: Vec<f32> = (1..=24)
            .map(|lead| SlotProfile::at(&history, &local, origin + lead, origin).unwrap().median())
            .collect();
        let at_seven_local = (1..=24).position(|lead| lead == 7).unwrap();
        let expected: Vec<f32> = (0..24).map(|at| if at == at_seven_local { 5.0 } else { 1.0 }).collect();
        assert_eq!(loads, expected, "seven o'clock is six in UTC by now, the step that ends at seven");
    }
}
