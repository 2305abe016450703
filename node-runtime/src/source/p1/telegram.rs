//! P1 telegrams.

use jiff::civil::DateTime;
use jiff::tz::Offset;

use super::P1Config;
use crate::reading::Reading;
use crate::source::{crc16, now_ms, number};

/// Offsets of the Netherlands and Belgium from UTC in winter and in summer.
const SEASON_OFFSETS: [(u8, Offset); 2] = [(b'W', Offset::constant(1)), (b'S', Offset::constant(2))];

/// The reading in a telegram whose checksum is right, or the reason why there is none.
pub fn reading(telegram: &[u8], settings: &P1Config) -> Result<Reading, String> {
    let checked = checked(telegram, settings.accept_unchecked)?;
    let text = std::str::from_utf8(checked).map_err(|_| "it is no ASCII text")?;
    let value = value(text, "obis", &settings.obis)?;
    let minus = match settings.obis_minus.as_str() {
        "" => 0.0,
        code => self::value(text, "obis_minus", code)?,
    };
    let time_ms = match object(text, "0-0:1.0.0") {
        Some(time) => telegram_time(time).ok_or_else(|| format!("its time {time:?} is none"))?,
        None => now_ms(),
    };
    Ok(Reading { time_ms, value: value - minus })
}

/// The telegram without its checksum, which is right.
fn checked(telegram: &[u8], accept_unchecked: bool) -> Result<&[u8], &'static str> {
    let wrong = "its checksum is wrong; check the cable";
    let mark = telegram.iter().rposition(|byte| *byte == b'!').ok_or("it has no end")?;
    let (checked, checksum) = telegram.split_at(mark + 1);
    let checksum = std::str::from_utf8(checksum).map_err(|_| wrong)?.trim();
    match checksum {
        "" if accept_unchecked => Ok(checked),
        "" => Err("it has no checksum; set source.accept_unchecked = true for a meter of DSMR 2 or 3"),
        _ if checksum.len() == 4 && u16::from_str_radix(checksum, 16) == Ok(crc16::arc(checked)) => {
            Ok(checked)
        }
        _ => Err(wrong),
    }
}

/// The content of the last brackets in the line of `obis`: a meter behind the meter puts its time before its value.
fn object<'a>(telegram: &'a str, obis: &str) -> Option<&'a str> {
    let rest = telegram.lines().find_map(|line| line.strip_prefix(obis)?.strip_prefix('('))?;
    rest.trim_end().strip_suffix(')')?.rsplit('(').next()
}

/// The number of `code`, without its unit.
fn value(telegram: &str, key: &str, code: &str) -> Result<f64, String> {
    let text = object(telegram, code).ok_or_else(|| {
        format!("it has no {code}; set source.{key} to a code that it has, such as \"1-0:1.7.0\"")
    })?;
    number(text.split_once('*').map_or(text, |(number, _)| number), false)
        .ok_or_else(|| format!("its {code} is {text:?}, which is no number"))
}

/// `YYMMDDhhmmssX`, where X is S in summer and W in winter time.
fn telegram_time(text: &str) -> Option<i64> {
    let (digits, season) = text.as_bytes().split_at_checked(12)?;
    let two = |at: usize| {
        let pair = digits.get(at..at + 2)?;
        pair.iter().all(u8::is_ascii_digit).then(|| ((pair[0] - b'0') * 10 + pair[1] - b'0') as i8)
    };
    let (_, offset) = SEASON_OFFSETS.into_iter().find(|(letter, _)| season == [*letter])?;
    let year = 2000 + i16::from(two(0)?);
    let local = DateTime::new(year, two(2)?, two(4)?, two(6)?, two(8)?, two(10)?, 0).ok()?;
    Some(offset.to_timestamp(local).ok()?.as_millisecond())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// The example of the DSMR 5.0.2 companion standard, shortened.
    const BODY: &str = "/ISk5\\2MT382-1000\r\n\r\n1-3:0.2.8(50)\r\n0-0:1.0.0(101209113020W)\r\n\
        1-0:1.8.1(123456.789*kWh)\r\n1-0:1.7.0(01.193*kW)\r\n1-0:2.7.0(00.250*kW)\r\n\
        0-1:24.2.1(101209112500W)(12785.123*m3)\r\n!";

    fn telegram(body: &str) -> Vec<u8> {
        format!("{body}{:04X}\r\n", crc16::arc(body.as_bytes())).into_bytes()
    }

    #[test]
    fn the_example_of_the_standard() {
        let settings = P1Config::default();
        // 11:30:20 in Dutch winter time.
        assert_eq!(
            reading(&telegram(BODY), &settings),
            Ok(Reading { time_ms: 1_291_890_620_000, value: 1.193 })
        );
        let net = P1Config { obis_minus: "1-0:2.7.0".into(), ..settings.clone() };
        assert!((reading(&telegram(BODY), &net).unwrap().value - 0.943).abs() < 1e-12);
        let gas = P1Config { obis: "0-1:24.2.1".into(), ..settings };
        assert_eq!(reading(&telegram(BODY), &gas).unwrap().value, 12_785.123);
    }

    #[test]
    fn a_wrong_or_missing_checksum_is_refused() {
        let settings = P1Config::default();
        let damaged = String::from_utf8(telegram(BODY)).unwrap().replace("01.193", "91.193");
        let reason = |text: &str, settings: &P1Config| reading(text.as_bytes(), settings).unwrap_err();
        assert!(reason(&damaged, &settings).contains("checksum is wrong"));
        let unchecked = format!("{BODY}\r\n");
        assert!(reason(&unchecked, &settings).contains("set source.accept_unchecked = true"));
        let trusting = P1Config { accept_unchecked: true, ..settings.clone() };
        assert_eq!(reading(unchecked.as_bytes(), &trusting).unwrap().value, 1.193);
        assert!(reason(&damaged, &trusting).contains("checksum is wrong"));
        let whole = String::from_utf8(telegram(BODY)).unwrap();
        let other = P1Config { obis: "1-0:16.7.0".into(), ..settings };
        assert!(reason(&whole, &other).contains("set source.obis"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_finite_reading_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200), inside in "[()*0-9A-Z:.\r\n-]{0,60}") {
            let settings = P1Config::default();
            let _ = reading(&bytes, &settings);
            for body in [format!("/x\r\n{inside}\r\n!"), format!("/x\r\n0-0:1.0.0({inside})\r\n1-0:1.7.0({inside}*kW)\r\n!")] {
                if let Ok(reading) = reading(&telegram(&body), &settings) {
                    prop_assert!(reading.value.is_finite());
                }
            }
            let _ = telegram_time(&inside);
        }
    }
}
