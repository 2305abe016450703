//! Times of readings.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::fmt::temporal::Pieces;
use serde::{Deserialize, Serialize};

use crate::reading::SourcePosition;
use crate::time_zone::LocalTimeZone;

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
    /// `01.05.2024 12:30`, `1/5/2024 12:30:15`: the day first; it is local time.
    DayFirst,
}

/// 2000-01-01: no reading is older.
const PLAUSIBLE_FROM_MS: i64 = 946_684_800_000;
/// 2100-01-01.
const PLAUSIBLE_TO_MS: i64 = 4_102_444_800_000;

impl TimeFormat {
    /// The time that `text` names, in milliseconds since 1970 in UTC; the first if clocks of `zone` show it twice.
    pub fn parse(self, text: &str, zone: &LocalTimeZone) -> Option<i64> {
        self.occurrences_ms(text, zone).map(|[first, _]| first)
    }

    /// The first and the last time that `text` names.
    fn occurrences_ms(self, text: &str, zone: &LocalTimeZone) -> Option<[i64; 2]> {
        match self {
            TimeFormat::Iso => iso(text.trim(), zone),
            TimeFormat::UnixS => {
                let seconds: f64 = text.parse().ok()?;
                (seconds.abs() < 1e12).then_some([(seconds * 1000.0).round() as i64; 2])
            }
            TimeFormat::UnixMs => text.parse().ok().map(|time_ms| [time_ms; 2]),
            TimeFormat::DayFirst => zone.occurrences_ms(day_first(text.trim())?),
        }
    }

    /// The name in a configuration.
    fn name(self) -> &'static str {
        match self {
            TimeFormat::Iso => "iso",
            TimeFormat::UnixS => "unix-s",
            TimeFormat::UnixMs => "unix-ms",
            TimeFormat::DayFirst => "day-first",
        }
    }

    /// The format in which `text` is a time of this century, if it is not this one.
    fn other(self, text: &str) -> Option<Self> {
        let plausible = |format: &Self| {
            let time_ms = format.parse(text, &LocalTimeZone::default());
            *format != self
                && time_ms.is_some_and(|time_ms| (PLAUSIBLE_FROM_MS..PLAUSIBLE_TO_MS).contains(&time_ms))
        };
        [TimeFormat::Iso, TimeFormat::UnixS, TimeFormat::UnixMs, TimeFormat::DayFirst]
            .into_iter()
            .find(plausible)
    }
}

/// `D.M.YYYY hh:mm[:ss]`, also with slashes; at the end of a day 24:00.
fn day_first(text: &str) -> Option<DateTime> {
    let (date, time) = text.split_once([' ', 'T']).unwrap_or((text, "00:00"));
    let mut date = date.split(['.', '/']).map(str::parse::<i16>);
    let (day, month, year) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let mut time = time.trim().split(':').map(str::parse::<i8>);
    let (hour, minute) = (time.next()?.ok()?, time.next()?.ok()?);
    let second = time.next().unwrap_or(Ok(0)).ok()?;
    if date.next().is_some() || time.next().is_some() || !(1000..=9999).contains(&year) {
        return None;
    }
    let date = Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    if (hour, minute, second) == (24, 0, 0) {
        return Some(date.tomorrow().ok()?.at(0, 0, 0, 0));
    }
    Some(DateTime::from_parts(date, Time::new(hour, minute, second, 0).ok()?))
}

/// The reason why a reading of `time_ms` cannot be right at `now_ms`, with the setting to change.
pub fn implausible(time_ms: i64, now_ms: i64) -> Option<String> {
    /// A clock that differs by more than a day is wrong.
    const AHEAD_MAX_MS: i64 = 86_400_000;
    /// 2020-01-01: a device whose clock is before was not told the time yet.
    const SET_FROM_MS: i64 = 1_577_836_800_000;
    if time_ms < PLAUSIBLE_FROM_MS {
        let as_seconds = time_ms
            .checked_mul(1000)
            .filter(|time_ms| (PLAUSIBLE_FROM_MS..PLAUSIBLE_TO_MS).contains(time_ms));
        return Some(match as_seconds {
            Some(meant) => format!(
                "its time is {}; read as seconds it is {}: set source.time_format = \"unix-s\"",
                iso_text(time_ms),
                iso_text(meant)
            ),
            None => format!(
                "its time is {}; set the clock of the meter, or check source.time_format",
                iso_text(time_ms)
            ),
        });
    }
    (now_ms >= SET_FROM_MS && time_ms > now_ms.saturating_add(AHEAD_MAX_MS)).then(|| {
        format!(
            "its time is {}, more than a day after this device's clock ({}); set the wrong one of the two clocks, or check \
             source.time_format",
            iso_text(time_ms),
            iso_text(now_ms)
        )
    })
}

fn iso(text: &str, zone: &LocalTimeZone) -> Option<[i64; 2]> {
    // Some meters write the end of a day as 24:00.
    let end_of_day = text.get(10..).filter(|rest| rest.get(1..6) == Some("24:00"));
    let midnight = end_of_day.map(|rest| format!("{}T00:00{}", &text[..10], &rest[6..]));
    let pieces = Pieces::parse(midnight.as_deref().unwrap_or(text)).ok()?;
    let date = if midnight.is_some() { pieces.date().tomorrow().ok()? } else { pieces.date() };
    let local = DateTime::from_parts(date, pieces.time().unwrap_or(Time::midnight()));
    match pieces.to_numeric_offset() {
        Some(offset) => Some([offset.to_timestamp(local).ok()?.as_millisecond(); 2]),
        None => zone.occurrences_ms(local),
    }
}

/// `2024-05-01T12:30:00Z`, to the second.
pub fn iso_text(time_ms: i64) -> String {
    match Timestamp::from_second(time_ms.div_euclid(1000)) {
        Ok(time) => time.to_string(),
        Err(_) => format!("{time_ms} ms after 1970"),
    }
}

/// The times of one stream of readings, oldest first.
///
/// A time that local clocks show twice is the first occurrence unless the stream has passed it: the readings of an
/// autumn night follow one another.
#[derive(Debug, Clone)]
pub struct TimeReader {
    format: TimeFormat,
    zone: LocalTimeZone,
    previous_ms: Option<i64>,
    may_repeat: bool,
}

impl TimeReader {
    /// For a stream that is read from its beginning.
    pub fn new(format: TimeFormat, zone: LocalTimeZone) -> Self {
        Self { format, zone, previous_ms: None, may_repeat: false }
    }

    /// For a stream that continues after `position` and may deliver its last reading again.
    pub fn resumed(self, position: SourcePosition) -> Self {
        Self { previous_ms: position.newest_ms, may_repeat: true, ..self }
    }

    /// The time that `text` names, in milliseconds since 1970 in UTC.
    pub fn read(&mut self, text: &str) -> Option<i64> {
        let [first, last] = self.format.occurrences_ms(text, &self.zone)?;
        let passed = self.previous_ms.is_some_and(|previous_ms| match self.may_repeat {
            true => first < previous_ms,
            false => first <= previous_ms,
        });
        let time_ms = if passed { last } else { first };
        self.previous_ms = Some(time_ms);
        Some(time_ms)
    }

    /// The reason why `text` is no time, with the setting to change.
    pub(super) fn no_time(&self, text: &str) -> String {
        let name = self.format.name();
        match self.format.other(text.trim()) {
            Some(other) => format!(
                "{text:?} is no time of the format {name:?}; set source.time_format = {:?}",
                other.name()
            ),
            None => {
                let example = match self.format {
                    TimeFormat::Iso => "\"2024-05-01T12:30:00Z\" or \"2024-05-01 12:30\"",
                    TimeFormat::UnixS => "1714566600",
                    TimeFormat::UnixMs => "1714566600000",
                    TimeFormat::DayFirst => "\"01.05.2024 12:30\"",
                };
                format!("{text:?} is no time such as {example}; check source.time_format")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn zone(name: &str) -> LocalTimeZone {
        LocalTimeZone::named(name).unwrap()
    }

    #[test]
    fn known_times() {
        let iso = |text| TimeFormat::Iso.parse(text, &zone("+01:00"));
        assert_eq!(iso("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(iso("2024-01-01T00:00:00Z"), Some(1_704_067_200_000));
        assert_eq!(iso("2024-01-01 00:00"), Some(1_704_067_200_000 - 3_600_000));
        assert_eq!(iso("2024-01-01"), Some(1_704_067_200_000 - 3_600_000));
        assert_eq!(iso("2023-12-31 24:00"), Some(1_704_067_200_000 - 3_600_000));
        assert_eq!(iso("2023-12-31T24:00:00Z"), Some(1_704_067_200_000));
        assert_eq!(iso("2024-02-29T12:34:56.789+02:00"), Some(1_709_202_896_789));
        assert_eq!(iso("2024-02-29T12:34:56.7+0200"), Some(1_709_202_896_700));
        assert_eq!(iso("2000-12-31T23:59:59-05"), Some(978_325_199_000));
        let utc = LocalTimeZone::default();
        assert_eq!(TimeFormat::UnixS.parse("1704067200.25", &utc), Some(1_704_067_200_250));
        assert_eq!(TimeFormat::UnixMs.parse("1704067200250", &utc), Some(1_704_067_200_250));
    }

    #[test]
    fn no_times() {
        let utc = LocalTimeZone::default();
        for text in [
            "",
            "2024",
            "2023-02-29",
            "2024-13-01",
            "2024-01-01X",
            "2024-01-01 1:00",
            "2024-01-01 24:01",
            "2024-01-01T12:00:00.",
            "2024-01-01T12:00+1",
        ] {
            assert_eq!(TimeFormat::Iso.parse(text, &utc), None, "{text}");
        }
        assert_eq!(TimeFormat::UnixS.parse("nan", &utc), None);
        assert_eq!(TimeFormat::UnixS.parse("1e300", &utc), None);
    }

    #[test]
    fn the_day_first() {
        let berlin = zone("Europe/Berlin");
        let read = |text| TimeFormat::DayFirst.parse(text, &berlin);
        assert_eq!(read("01.05.2024 12:30"), Some(1_714_559_400_000));
        assert_eq!(read("1/5/2024 12:30:15"), Some(1_714_559_415_000));
        assert_eq!(read("30.04.2024 24:00"), read("01.05.2024"));
        for text in [
            "",
            "2024-05-01 12:30",
            "31.02.2024 12:30",
            "01.05.24 12:30",
            "01.05.2024 25:00",
            "1.5.2024 12",
            "1.5.2024.1 12:30",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn the_format_to_set_is_named() {
        let reason = |format, text| TimeReader::new(format, zone("UTC")).no_time(text);
        for (format, text, expected) in [
            (TimeFormat::Iso, "01.05.2024 12:30", "set source.time_format = \"day-first\""),
            (TimeFormat::Iso, "1714566600", "set source.time_format = \"unix-s\""),
            (TimeFormat::Iso, "1714566600000", "set source.time_format = \"unix-ms\""),
            (TimeFormat::UnixS, "1714566600000", "set source.time_format = \"unix-ms\""),
            (TimeFormat::UnixS, "2024-05-01 12:30", "set source.time_format = \"iso\""),
            (TimeFormat::Iso, "yesterday", "such as \"2024-05-01T12:30:00Z\""),
        ] {
            assert!(reason(format, text).contains(expected), "{}", reason(format, text));
        }
    }

    #[test]
    fn times_that_cannot_be_right() {
        let now_ms = 1_714_566_600_000;
        assert_eq!(implausible(now_ms + 3_600_000, now_ms), None, "a clock of another zone");
        assert_eq!(implausible(1_000_000_000_000, now_ms), None, "an old record");
        assert!(
            implausible(1_714_566_600, now_ms).unwrap().contains("\"unix-s\""),
            "seconds as milliseconds"
        );
        assert!(implausible(-5, now_ms).unwrap().contains("set the clock of the meter"));
        assert!(
            implausible(2_090_000_000_000, now_ms)
                .unwrap()
                .contains("after this device's clock (2024-05-01T12:30:00Z)")
        );
        assert_eq!(implausible(now_ms, 86_400_000), None, "the device does not know the time yet");
    }

    /// The times of `texts`, in minutes after 2024-10-27 00:00 UTC.
    fn minutes(times: &mut TimeReader, texts: &[&str]) -> Vec<i64> {
        let since = |text: &&str| times.read(&format!("2024-10-27 {text}")).unwrap() - 1_729_987_200_000;
        texts.iter().map(since).map(|time_ms| time_ms / 60_000).collect()
    }

    #[test]
    fn the_repeated_hour_of_autumn_is_read_in_order() {
        let london = TimeReader::new(TimeFormat::Iso, zone("Europe/London"));
        let half_hours = ["00:30", "01:00", "01:30", "01:00", "01:30", "02:00", "02:30"];
        assert_eq!(minutes(&mut london.clone(), &half_hours), [-30, 0, 30, 60, 90, 120, 150]);
        assert_eq!(minutes(&mut london.clone(), &["00:00", "01:00", "01:00", "02:00"]), [-60, 0, 60, 120]);
        assert_eq!(minutes(&mut london.clone(), &["01:30", "01:30Z", "01:40"]), [30, 90, 100]);
    }

    #[test]
    fn a_stream_resumes_in_the_repeated_hour() {
        let london = TimeReader::new(TimeFormat::Iso, zone("Europe/London"));
        let at =
            |minutes: i64| SourcePosition { newest_ms: Some(1_729_987_200_000 + minutes * 60_000), rows: 0 };
        let texts = ["01:30", "01:40", "01:00", "02:00"];
        assert_eq!(
            minutes(&mut london.clone().resumed(at(30)), &texts),
            [30, 40, 60, 120],
            "in its first pass"
        );
        let texts = ["01:30", "01:40", "02:00"];
        assert_eq!(minutes(&mut london.resumed(at(90)), &texts), [90, 100, 120], "in its second");
    }

    #[test]
    fn the_skipped_hour_of_spring_has_no_readings() {
        let mut london = TimeReader::new(TimeFormat::Iso, zone("Europe/London"));
        let mut minute = |text: &str| (london.read(text).unwrap() - 1_711_843_200_000) / 60_000;
        let texts = ["2024-03-31 00:30", "2024-03-31 02:00", "2024-03-31 02:30"];
        assert_eq!(texts.map(&mut minute), [30, 60, 90]);
    }

    proptest! {
        #[test]
        fn any_text_is_a_time_or_none(text in "\\PC{0,40}", digits in "[0-9TZ:.+ -]{0,32}") {
            for format in [TimeFormat::Iso, TimeFormat::UnixS, TimeFormat::UnixMs, TimeFormat::DayFirst] {
                let mut times = TimeReader::new(format, zone("Europe/London"));
                let _ = (times.read(&text), times.read(&digits), times.no_time(&text), times.no_time(&digits));
            }
        }

        #[test]
        fn what_is_written_is_read(seconds in 0..=Timestamp::MAX.as_second()) {
            let read = TimeFormat::Iso.parse(&iso_text(seconds * 1000), &zone("+02:00"));
            prop_assert_eq!(read, Some(seconds * 1000));
        }
    }
}
