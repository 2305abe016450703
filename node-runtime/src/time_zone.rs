//! Time zones of configurations, from the database within the program.

use evenhand_program::suggest::nearest;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::{AmbiguousOffset, TimeZone};
use serde::{Deserialize, Serialize};

use crate::forecast::LocalTime;

/// A time zone as an owner writes it: a name of the IANA database (`Europe/London`), a fixed offset (`+01:00`), or a
/// POSIX rule (`CET-1CEST,M3.5.0,M10.5.0/3`).
///
/// The database is part of the program: a device needs no files for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LocalTimeZone {
    name: String,
    zone: TimeZone,
}

impl LocalTimeZone {
    /// The zone that `name` stands for; an error with the remedy if there is none.
    pub fn named(name: &str) -> Result<Self, String> {
        match DateTimeParser::new().parse_time_zone(name) {
            Ok(zone) if !zone.is_unknown() => Ok(Self { name: name.to_owned(), zone }),
            _ => Err(unknown(name)),
        }
    }

    /// Local time minus UTC at a time, in milliseconds; 0 beyond the year 9999.
    pub fn offset_ms(&self, time_ms: i64) -> i64 {
        let offset = Timestamp::from_millisecond(time_ms).map(|time| self.zone.to_offset(time).seconds());
        i64::from(offset.unwrap_or(0)) * 1000
    }

    /// The clocks of the zone between two times.
    pub fn clocks(&self, from_ms: i64, to_ms: i64) -> LocalTime {
        LocalTime::between(from_ms, to_ms, |time_ms| (self.offset_ms(time_ms) / 1000) as i32)
    }

    /// The first and the last time, in milliseconds since 1970, at which clocks of the zone show `local`.
    ///
    /// They differ in the hour that autumn repeats; a time in the hour that spring skips is read as if the clock had not
    /// been put forward yet.
    pub fn occurrences_ms(&self, local: DateTime) -> Option<[i64; 2]> {
        let ambiguous = self.zone.to_ambiguous_timestamp(local);
        let (first, last) = match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { offset } => (offset, offset),
            AmbiguousOffset::Gap { before, .. } => (before, before),
            AmbiguousOffset::Fold { before, after } => (before, after),
        };
        let time_ms =
            |offset: jiff::tz::Offset| offset.to_timestamp(local).map(Timestamp::as_millisecond).ok();
        Some([time_ms(first)?, time_ms(last)?])
    }
}

impl Default for LocalTimeZone {
    fn default() -> Self {
        Self { name: "UTC".to_owned(), zone: TimeZone::UTC }
    }
}

impl TryFrom<String> for LocalTimeZone {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::named(&name)
    }
}

impl From<LocalTimeZone> for String {
    fn from(zone: LocalTimeZone) -> Self {
        zone.name
    }
}

fn unknown(name: &str) -> String {
    let known: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
    let suggestion = nearest(name, known.iter().map(String::as_str))
        .map(|known| format!("; did you mean {known:?}?"))
        .unwrap_or_default();
    format!("{name:?} is no time zone, such as \"Europe/London\", \"UTC\" or \"+01:00\"{suggestion}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use jiff::civil::date;
    use proptest::prelude::*;

    const HOUR_MS: i64 = 3_600_000;
    /// 2024-03-31 01:00 UTC: clocks in London go from 01:00 to 02:00.
    const SPRING_MS: i64 = 1_711_846_800_000;
    /// 2024-10-27 01:00 UTC: clocks in London go from 02:00 back to 01:00.
    const AUTUMN_MS: i64 = 1_729_990_800_000;

    fn zone(name: &str) -> LocalTimeZone {
        LocalTimeZone::named(name).unwrap()
    }

    #[test]
    fn summer_time_begins_and_ends_at_the_switch() {
        let london = zone("Europe/London");
        let at = [SPRING_MS - 1, SPRING_MS, AUTUMN_MS - 1, AUTUMN_MS];
        assert_eq!(at.map(|time_ms| london.offset_ms(time_ms)), [0, HOUR_MS, HOUR_MS, 0]);
        let posix = zone("CET-1CEST,M3.5.0,M10.5.0/3");
        assert_eq!(
            at.map(|time_ms| posix.offset_ms(time_ms)),
            at.map(|time_ms| zone("Europe/Berlin").offset_ms(time_ms))
        );
        assert_eq!(at.map(|time_ms| zone("+05:30").offset_ms(time_ms)), [11 * HOUR_MS / 2; 4]);
    }

    #[test]
    fn a_repeated_hour_occurs_twice_and_a_skipped_one_is_read_by_the_old_clock() {
        let london = zone("Europe/London");
        let autumn = date(2024, 10, 27);
        assert_eq!(
            london.occurrences_ms(autumn.at(1, 30, 0, 0)).unwrap(),
            [AUTUMN_MS - HOUR_MS / 2, AUTUMN_MS + HOUR_MS / 2]
        );
        assert_eq!(london.occurrences_ms(autumn.at(2, 0, 0, 0)).unwrap(), [AUTUMN_MS + HOUR_MS; 2]);
        let spring = date(2024, 3, 31);
        assert_eq!(london.occurrences_ms(spring.at(1, 30, 0, 0)).unwrap(), [SPRING_MS + HOUR_MS / 2; 2]);
        assert_eq!(london.occurrences_ms(spring.at(2, 30, 0, 0)).unwrap(), [SPRING_MS + HOUR_MS / 2; 2]);
    }

    #[test]
    fn an_unknown_zone_is_refused_with_the_nearest() {
        let error = LocalTimeZone::named("Europe/Lodnon").unwrap_err();
        assert!(error.contains("did you mean \"Europe/London\"?"), "{error}");
        for name in ["", "Z", "3600", "+25:00:00:00", "Etc/Unknown"] {
            assert!(LocalTimeZone::named(name).unwrap_err().contains("+01:00"), "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_name_is_a_zone_or_an_error(name in "\\PC{0,30}|[A-Z]{3}[0-9:+-]{0,6}[A-Z]{0,3},?[M0-9./]{0,12}", time_ms: i64) {
            if let Ok(zone) = LocalTimeZone::named(&name) {
                let _ = zone.offset_ms(time_ms);
            }
        }

        #[test]
        fn a_local_time_occurs_when_it_is_shown(time_s in 0i64..4_102_444_800) {
            let time_ms = time_s * 1000;
            for name in ["Europe/London", "America/St_Johns", "Australia/Lord_Howe", "UTC", "-03:00"] {
                let zone = zone(name);
                let shown = Timestamp::from_millisecond(time_ms + zone.offset_ms(time_ms)).unwrap();
                let local = TimeZone::UTC.to_datetime(shown);
                prop_assert!(zone.occurrences_ms(local).unwrap().contains(&time_ms), "{}", name);
            }
        }
    }
}
