//! Time of day and of week as model inputs.

use std::f64::consts::TAU;

use crate::time_zone::LocalTimeZone;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
const WEEK_MS: i64 = 7 * DAY_MS;
/// 1970-01-01 was a Thursday: three days after a Monday.
const MONDAY_TO_EPOCH_MS: i64 = 3 * DAY_MS;

/// Sine and cosine of the time of day and of the time of week, as clocks of `zone` show them.
///
/// Days begin at midnight, weeks on Monday; the week turns steadily, not in seven jumps. Habits follow the clock: in the
/// hour that autumn repeats, so do the phases.
pub fn phases(time_ms: i64, zone: &LocalTimeZone) -> [f32; 4] {
    let local_ms = time_ms.wrapping_add(zone.offset_ms(time_ms));
    let turn = |time_ms: i64, period_ms: i64| time_ms.rem_euclid(period_ms) as f64 / period_ms as f64 * TAU;
    let day = turn(local_ms, DAY_MS);
    let week = turn(local_ms.wrapping_add(MONDAY_TO_EPOCH_MS), WEEK_MS);
    [day.sin(), day.cos(), week.sin(), week.cos()].map(|phase| phase as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(phases: [f32; 4], expected: [f64; 4]) {
        for (phase, expected) in phases.iter().zip(expected) {
            assert!((f64::from(*phase) - expected).abs() < 1e-6, "{phases:?} {expected:?}");
        }
    }

    #[test]
    fn a_week_begins_on_monday_at_midnight() {
        let monday_2024_01_01 = 1_704_067_200_000;
        let phases = |time_ms| phases(time_ms, &LocalTimeZone::default());
        close(phases(monday_2024_01_01), [0.0, 1.0, 0.0, 1.0]);
        close(phases(monday_2024_01_01 + DAY_MS / 4), [1.0, 0.0, (TAU / 28.0).sin(), (TAU / 28.0).cos()]);
        close(phases(monday_2024_01_01 - WEEK_MS * 3000), [0.0, 1.0, 0.0, 1.0]);
    }

    #[test]
    fn breakfast_is_at_the_same_phase_before_and_after_both_switches() {
        let london = LocalTimeZone::named("Europe/London").expect("in the database");
        // 07:00 on the Saturday before and the Sunday of the switch, 23 hours apart in spring and 25 in autumn.
        for (saturday, hours) in [(1_711_782_000_000, 23), (1_729_922_400_000, 25)] {
            let (before, after) = (phases(saturday, &london), phases(saturday + hours * 3_600_000, &london));
            assert_eq!(before[..2], after[..2], "{hours}");
            let (day, week) = (7.0 / 24.0 * TAU, (5.0 + 7.0 / 24.0) / 7.0 * TAU);
            close(before, [day.sin(), day.cos(), week.sin(), week.cos()]);
        }
    }

    #[test]
    fn any_time_has_phases() {
        for time in [i64::MIN, -1, 0, i64::MAX] {
            assert!(phases(time, &LocalTimeZone::default()).iter().all(|phase| phase.is_finite()));
        }
    }
}
