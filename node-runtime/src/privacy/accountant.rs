//! The privacy that a node has spent over the life of its federation.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::epsilon::{cost_of, epsilon};
use crate::config::{PrivacyConfig, PrivacyUnit};

/// Days after which a reading is in no message any more: the memory of a day-ahead window, and the day itself.
const DAYS_OF_INFLUENCE: i64 = 59;

/// Kind of a message that carries noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReleaseKind {
    /// An update.
    Update,
    /// A reference gradient.
    Measurement,
}

/// The sum of 1/z² over the messages that a unit of the data has an influence on.
///
/// A message that is sent once more is the same message. One that was computed and not delivered counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Accountant {
    /// Messages so far.
    messages: u64,
    /// Of everything that the node has ever measured.
    household: f64,
    /// Of each of the last days, by the day of the message: a day's readings are in the messages of the days after it.
    days: VecDeque<(i64, f64)>,
    /// The most that any day's readings have cost.
    day: f64,
    /// Of a row, which is in one update and one measurement at most.
    row_update: f64,
    row_measurement: f64,
}

/// The privacy that a node has spent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PrivacySpent {
    /// What ε is about.
    pub unit: PrivacyUnit,
    /// ε.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
    /// The budget, if there is one.
    pub epsilon_max: Option<f64>,
    /// Messages with noise so far.
    pub messages: u64,
}

impl Accountant {
    /// True if one more message of this kind stays within the owner's budget.
    pub fn permits(&self, kind: ReleaseKind, day: i64, privacy: &PrivacyConfig) -> bool {
        if privacy.noise == 0.0 || privacy.epsilon_max == 0.0 {
            return true;
        }
        let mut next = self.clone();
        next.add(kind, day, privacy.noise);
        let most = cost_of(privacy.epsilon_max, privacy.delta);
        match privacy.unit {
            // What earlier days have cost cannot be undone, and does not forbid later ones.
            PrivacyUnit::Day => next.days.iter().map(|(_, cost)| cost).sum::<f64>() <= most,
            unit => next.cost(unit) <= most,
        }
    }

    /// Adds a message whose noise is `noise` times its sensitivity, sent on this day.
    pub fn add(&mut self, kind: ReleaseKind, day: i64, noise: f64) {
        let cost = 1.0 / (noise * noise);
        self.messages += 1;
        self.household += cost;
        self.days.retain(|(earlier, _)| (day - DAYS_OF_INFLUENCE + 1..=day).contains(earlier));
        match self.days.back_mut().filter(|(last, _)| *last == day) {
            Some((_, of_day)) => *of_day += cost,
            None => self.days.push_back((day, cost)),
        }
        self.day = self.day.max(self.days.iter().map(|(_, cost)| cost).sum());
        let of_row = match kind {
            ReleaseKind::Update => &mut self.row_update,
            ReleaseKind::Measurement => &mut self.row_measurement,
        };
        *of_row = of_row.max(cost);
    }

    /// The privacy spent so far; none without noise.
    pub fn spent(&self, privacy: &PrivacyConfig) -> Option<PrivacySpent> {
        (privacy.noise > 0.0).then(|| PrivacySpent {
            unit: privacy.unit,
            epsilon: epsilon(self.cost(privacy.unit), privacy.delta),
            delta: privacy.delta,
            epsilon_max: Some(privacy.epsilon_max).filter(|most| *most > 0.0),
            messages: self.messages,
        })
    }

    fn cost(&self, unit: PrivacyUnit) -> f64 {
        match unit {
            PrivacyUnit::Household => self.household,
            PrivacyUnit::Day => self.day,
            PrivacyUnit::Row => self.row_update + self.row_measurement,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn privacy(unit: PrivacyUnit, epsilon_max: f64) -> PrivacyConfig {
        PrivacyConfig { noise: 4.0, unit, epsilon_max, ..PrivacyConfig::none() }
    }

    fn after(days: i64, unit: PrivacyUnit) -> f64 {
        let mut accountant = Accountant::default();
        for day in 0..days {
            accountant.add(ReleaseKind::Measurement, day, 4.0);
            accountant.add(ReleaseKind::Update, day, 4.0);
        }
        accountant.spent(&privacy(unit, 0.0)).map_or(0.0, |spent| spent.epsilon)
    }

    #[test]
    fn a_household_pays_for_ever_a_day_for_its_memory_and_a_row_twice() {
        let of = |messages: f64| epsilon(messages / 16.0, 1e-5);
        assert_eq!(after(300, PrivacyUnit::Household), of(600.0));
        assert_eq!(after(300, PrivacyUnit::Day), of(118.0));
        assert_eq!(after(20, PrivacyUnit::Day), of(40.0));
        assert_eq!(after(300, PrivacyUnit::Row), of(2.0));
    }

    #[test]
    fn a_budget_ends_and_that_of_days_begins_again() {
        let mut accountant = Accountant::default();
        let (whole, by_day) = (privacy(PrivacyUnit::Household, 4.0), privacy(PrivacyUnit::Day, 4.0));
        let mut sent = 0;
        while accountant.permits(ReleaseKind::Update, 7, &whole) {
            accountant.add(ReleaseKind::Update, 7, 4.0);
            sent += 1;
        }
        assert!(sent > 3 && accountant.spent(&whole).is_some_and(|spent| spent.epsilon <= 4.0));
        let mut more = accountant.clone();
        more.add(ReleaseKind::Update, 7, 4.0);
        assert!(more.spent(&whole).is_some_and(|spent| spent.epsilon > 4.0));
        assert!(!accountant.permits(ReleaseKind::Update, 7 + 58, &by_day));
        assert!(accountant.permits(ReleaseKind::Update, 7 + 59, &by_day));
        assert!(!accountant.permits(ReleaseKind::Update, 7 + 59, &whole));
        assert!(accountant.permits(ReleaseKind::Update, 7, &privacy(PrivacyUnit::Household, 0.0)));
    }

    #[test]
    fn without_noise_nothing_is_claimed() {
        let mut accountant = Accountant::default();
        accountant.add(ReleaseKind::Update, 1, 4.0);
        assert_eq!(accountant.spent(&PrivacyConfig::none()), None);
    }
}
