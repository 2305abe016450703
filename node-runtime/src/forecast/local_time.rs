//! The time that a household's clocks show.

use serde::{Deserialize, Serialize};

/// 1970-01-01 was a Thursday: three days after a Monday.
const MONDAY_TO_EPOCH_DAYS: i64 = 3;

/// Local time as spans of constant offset from UTC: a time zone between two dates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalTime {
    first_offset_s: i32,
    /// Moments at which the clocks change, in milliseconds since 1970, and the offset from then on; oldest first.
    changes: Vec<(i64, i32)>,
    /// Days since 1970 by the household's clocks.
    holidays: Vec<i64>,
}

impl LocalTime {
    /// Clocks that never change.
    pub fn fixed(offset_s: i32) -> Self {
        Self { first_offset_s: offset_s, changes: Vec::new(), holidays: Vec::new() }
    }

    /// The same clocks, changed to another offset at `time_ms`, which is later than every earlier change.
    #[must_use]
    pub fn changed_at(mut self, time_ms: i64, offset_s: i32) -> Self {
        self.changes.push((time_ms, offset_s));
        self
    }

    /// The same clocks, with these days as holidays, in days since 1970.
    #[must_use]
    pub fn with_holidays(self, holidays: Vec<i64>) -> Self {
        Self { holidays, ..self }
    }

    /// True at the weekend and on a holiday.
    pub fn is_day_off(&self, local_day: i64) -> bool {
        (local_day + MONDAY_TO_EPOCH_DAYS).rem_euclid(7) >= 5 || self.holidays.contains(&local_day)
    }

    /// The clocks of a zone between two times, by its offset in seconds at any time. They change at most once a day.
    pub fn between(from_ms: i64, to_ms: i64, offset_s: impl Fn(i64) -> i32) -> Self {
        const DAY_MS: i64 = 86_400_000;
        let mut local = Self::fixed(offset_s(from_ms));
        let mut day = from_ms;
        while day < to_ms {
            let next = (day + DAY_MS).min(to_ms);
            if offset_s(next) != offset_s(day) {
                let (mut before, mut after) = (day, next);
                while after - before > 1 {
                    let middle = before + (after - before) / 2;
                    if offset_s(middle) == offset_s(day) { before = middle } else { after = middle }
                }
                local = local.changed_at(after, offset_s(next));
            }
            day = next;
        }
        local
    }

    /// Local time minus UTC at a moment, in seconds.
    pub fn offset_s(&self, time_ms: i64) -> i64 {
        let later = self.changes.iter().rev().find(|(at_ms, _)| *at_ms <= time_ms);
        later.map_or(self.first_offset_s, |(_, offset_s)| *offset_s).into()
    }

    /// The local time at a moment, in milliseconds since 1970 by the household's clocks.
    pub fn local_ms(&self, time_ms: i64) -> i64 {
        time_ms.saturating_add(self.offset_s(time_ms) * 1000)
    }
}

impl Default for LocalTime {
    fn default() -> Self {
        Self::fixed(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weekends_and_holidays_are_days_off() {
        let local = LocalTime::default().with_holidays(vec![5]);
        let off: Vec<i64> = (0..11).filter(|day| local.is_day_off(*day)).collect();
        assert_eq!(off, [2, 3, 5, 9, 10], "Saturday, Sunday, Tuesday, Saturday, Sunday");
    }

    #[test]
    fn a_zone_becomes_its_changes() {
        let day = |days: i64| days * 86_400_000;
        // Summer time from day 10, one o'clock, to day 200.
        let (begin, end) = (day(10) + 3_600_000, day(200));
        let zone = |time_ms: i64| if (begin..end).contains(&time_ms) { 7200 } else { 3600 };
        let local = LocalTime::between(day(3) + 5, day(300), zone);
        assert_eq!(local, LocalTime::fixed(3600).changed_at(begin, 7200).changed_at(end, 3600));
        for time_ms in [day(5), begin - 1, begin, end - 1, end, day(299)] {
            assert_eq!(local.offset_s(time_ms), i64::from(zone(time_ms)));
        }
    }
}
