//! Formats of times.

use serde::{Deserialize, Serialize};

/// Format of a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeFormat {
    /// `2024-05-01T12:30:00Z`, `2024-05-01 12:30+02:00`, `2024-05-01 12:30:15.250`; without an offset it is local time.
    #[default]
    Iso,
    /// Seconds since 1970, also with a fraction.
    UnixS,
    /// Milliseconds since 1970.
    UnixMs,
}

impl TimeFormat {
    /// The time that `text` names, in milliseconds since 1970 in UTC.
    pub fn parse(self, text: &str, utc_offset_s: i32) -> Option<i64> {
        match self {
            TimeFormat::Iso => iso(text, utc_offset_s),
            TimeFormat::UnixS => {
                let seconds: f64 = text.parse().ok()?;
                (seconds.abs() < 1e12).then_some((seconds * 1000.0).round() as i64)
            }
            TimeFormat::UnixMs => text.parse().ok(),
        }
    }
}

/// Milliseconds since 1970 of an ISO 8601 date and time.
fn iso(text: &str, utc_offset_s: i32) -> Option<i64> {
    let text = text.trim();
    let (date, rest) = text.split_at_checked(10)?;
    let mut date = date.split('-');
    let numbers = [digits(date.next()?, 4)?, digits(date.next()?, 2)?, digits(date.next()?, 2)?];
    let (clock, offset_s) = match rest.strip_prefix(['T', ' ']) {
        None if rest.is_empty() => ("00:00", i64::from(utc_offset_s)),
        None => return None,
        Some(rest) => split_offset(rest, utc_offset_s)?,
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut clock = clock.split(':');
    let (hour, minute) = (digits(clock.next()?, 2)?, digits(clock.next()?, 2)?);
    let second = clock.next().map_or(Some(0), |second| digits(second, 2))?;
    if date.next().is_some() || clock.next().is_some() {
        return None;
    }
    Some(civil_ms(numbers, [hour, minute, second], offset_s)? + thousandths(fraction)?)
}

/// Milliseconds since 1970 of a date (year, month, day) and time (hour, minute, second), `offset_s` ahead of UTC.
pub(super) fn civil_ms(date: [i64; 3], clock: [i64; 3], offset_s: i64) -> Option<i64> {
    let ([year, month, day], [hour, minute, second]) = (date, clock);
    let plausible = (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && (0..=24).contains(&hour)
        && (0..=59).contains(&minute)
        && (0..=60).contains(&second);
    plausible.then(|| {
        (days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset_s) * 1000
    })
}

/// `2024-05-01T12:30:00Z`, to the second.
pub fn iso_text(time_ms: i64) -> String {
    let seconds = time_ms.div_euclid(1000);
    let [year, month, day] = civil_from_days(seconds.div_euclid(86_400));
    let clock = seconds.rem_euclid(86_400);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", clock / 3600, clock / 60 % 60, clock % 60)
}

fn split_offset(text: &str, utc_offset_s: i32) -> Option<(&str, i64)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let Some(sign_at) = text.rfind(['+', '-']) else { return Some((text, i64::from(utc_offset_s))) };
    let (clock, offset) = text.split_at(sign_at);
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let offset = &offset[1..];
    let (hours, minutes) = match offset.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None if offset.len() == 4 => offset.split_at_checked(2)?,
        None => (offset, "00"),
    };
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    (hours <= 24 && minutes <= 59).then_some((clock, sign * (hours * 3600 + minutes * 60)))
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let all_digits = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| text.parse().ok())?
}

/// The first three digits of a fraction.
fn thousandths(fraction: &str) -> Option<i64> {
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    fraction.bytes().chain(*b"00").take(3).try_fold(0, |sum, digit| Some(sum * 10 + i64::from(digit - b'0')))
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a date of the Gregorian calendar, counting years from March.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The date so many days after 1970-01-01: the inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> [i64; 3] {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    [year, month, day]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_times() {
        let iso = |text| TimeFormat::Iso.parse(text, 3600);
        assert_eq!(iso("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(iso("2024-01-01T00:00:00Z"), Some(1_704_067_200_000));
        assert_eq!(iso("2024-01-01 00:00"), Some(1_704_067_200_000 - 3_600_000));
        assert_eq!(iso("2024-01-01"), Some(1_704_067_200_000 - 3_600_000));
        assert_eq!(iso("2024-02-29T12:34:56.789+02:00"), Some(1_709_202_896_789));
        assert_eq!(iso("2024-02-29T12:34:56.7+0200"), Some(1_709_202_896_700));
        assert_eq!(iso("2000-12-31T23:59:59-05"), Some(978_325_199_000));
        assert_eq!(TimeFormat::UnixS.parse("1704067200.25", 0), Some(1_704_067_200_250));
        assert_eq!(TimeFormat::UnixMs.parse("1704067200250", 0), Some(1_704_067_200_250));
    }

    #[test]
    fn no_times() {
        for text in [
            "",
            "2024",
            "2023-02-29",
            "2024-13-01",
            "2024-01-01X",
            "2024-01-01 1:00",
            "2024-01-01 12",
            "2024-01-01T12:00:00.",
            "2024-01-01T12:00+1",
        ] {
            assert_eq!(TimeFormat::Iso.parse(text, 0), None, "{text}");
        }
        assert_eq!(TimeFormat::UnixS.parse("nan", 0), None);
        assert_eq!(TimeFormat::UnixS.parse("1e300", 0), None);
    }

    proptest! {
        #[test]
        fn any_text_is_a_time_or_none(text in "\\PC{0,40}", digits in "[0-9TZ:.+ -]{0,32}") {
            for format in [TimeFormat::Iso, TimeFormat::UnixS, TimeFormat::UnixMs] {
                let _ = (format.parse(&text, 7200), format.parse(&digits, 7200));
            }
        }

        #[test]
        fn what_is_written_is_read(seconds in 0i64..253_402_300_800) {
            prop_assert_eq!(TimeFormat::Iso.parse(&iso_text(seconds * 1000), 7200), Some(seconds * 1000));
        }

        #[test]
        fn days_follow_days(days in -700_000i64..2_900_000) {
            let (mut year, mut month, mut day) = (1970 + days / 366, 1, 1);
            while days_from_civil(year + 1, 1, 1) <= days { year += 1 }
            while days_from_civil(year, 1, 1) > days { year -= 1 }
            while month < 12 && days_from_civil(year, month + 1, 1) <= days { month += 1 }
            day += days - days_from_civil(year, month, 1);
            prop_assert!((1..=days_in_month(year, month)).contains(&day));
            prop_assert_eq!(days_from_civil(year, month, day), days);
        }
    }
}
