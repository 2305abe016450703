//! P1 telegrams.

use jiff::civil::DateTime;
use jiff::tz::Offset;

use super::P1Config;
use crate::reading::Reading;
use crate::source::{now_ms, number};

/// A telegram has at most a few kilobytes.
const TELEGRAM_BYTES_MAX: usize = 16 * 1024;
/// Offsets of the Netherlands and Belgium from UTC in winter and in summer.
const SEASON_OFFSETS: [(u8, Offset); 2] = [(b'W', Offset::constant(1)), (b'S', Offset::constant(2))];

/// Cuts a stream into telegrams: from `/` to the line that begins with `!`.
#[derive(Debug, Default)]
pub struct Telegrams {
    buffer: Vec<u8>,
    dropped: u64,
}

impl Telegrams {
    /// Adds received bytes.
    pub fn push(&mut self, block: &[u8]) {
        self.buffer.extend_from_slice(block);
    }

    /// The next complete telegram, with its checksum.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let begin = self.buffer.iter().position(|byte| *byte == b'/').unwrap_or(self.buffer.len());
        self.buffer.drain(..begin);
        let end = self.end();
        if end.is_none() && self.buffer.len() > TELEGRAM_BYTES_MAX {
            self.dropped += 1;
            let next = self
                .buffer
                .iter()
                .skip(1)
                .rposition(|byte| *byte == b'/')
                .map_or(self.buffer.len(), |at| at + 1);
            self.buffer.drain(..next);
        }
        let rest = self.buffer.split_off(end?);
        Some(std::mem::replace(&mut self.buffer, rest))
    }

    /// Telegrams that were too long.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// End of the first telegram: after the line that begins with `!`.
    fn end(&self) -> Option<usize> {
        let last_line = self.buffer.windows(2).position(|pair| pair == b"\n!")? + 1;
        let line_end = self.buffer[last_line..].iter().position(|byte| *byte == b'\n')?;
        Some(last_line + line_end + 1)
    }
}

/// The reading in a telegram whose checksum is right.
pub fn reading(telegram: &[u8], settings: &P1Config) -> Option<Reading> {
    let mark = telegram.iter().rposition(|byte| *byte == b'!')?;
    let (checked, checksum) = telegram.split_at(mark + 1);
    let checksum = std::str::from_utf8(checksum).ok()?.trim();
    match checksum {
        "" if settings.accept_unchecked => {}
        _ if checksum.len() == 4 && u16::from_str_radix(checksum, 16).ok()? == crc16(checked) => {}
        _ => return None,
    }
    let text = std::str::from_utf8(checked).ok()?;
    let value = value(text, &settings.obis)?;
    let minus = if settings.obis_minus.is_empty() { 0.0 } else { self::value(text, &settings.obis_minus)? };
    let time_ms = match object(text, "0-0:1.0.0") {
        Some(time) => telegram_time(time)?,
        None => now_ms(),
    };
    Some(Reading { time_ms, value: value - minus })
}

/// The content of the last brackets in the line of `obis`: a meter behind the meter puts its time before its value.
fn object<'a>(telegram: &'a str, obis: &str) -> Option<&'a str> {
    let rest = telegram.lines().find_map(|line| line.strip_prefix(obis)?.strip_prefix('('))?;
    rest.trim_end().strip_suffix(')')?.rsplit('(').next()
}

/// The number of `obis`, without its unit.
fn value(telegram: &str, obis: &str) -> Option<f64> {
    let text = object(telegram, obis)?;
    number(text.split_once('*').map_or(text, |(number, _)| number), false)
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

/// CRC-16/ARC, as DSMR has it: polynomial x¹⁶ + x¹⁵ + x² + 1, least significant bit first, from 0.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8)
            .fold(crc ^ u16::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xa001 } else { crc >> 1 })
    })
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
        format!("{body}{:04X}\r\n", crc16(body.as_bytes())).into_bytes()
    }

    #[test]
    fn the_check_value_of_crc_16_arc() {
        assert_eq!(crc16(b"123456789"), 0xbb3d);
    }

    #[test]
    fn the_example_of_the_standard() {
        let settings = P1Config::default();
        // 11:30:20 in Dutch winter time.
        assert_eq!(
            reading(&telegram(BODY), &settings),
            Some(Reading { time_ms: 1_291_890_620_000, value: 1.193 })
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
        assert_eq!(reading(damaged.as_bytes(), &settings), None);
        let unchecked = format!("{BODY}\r\n");
        assert_eq!(reading(unchecked.as_bytes(), &settings), None);
        let trusting = P1Config { accept_unchecked: true, ..settings };
        assert_eq!(reading(unchecked.as_bytes(), &trusting).unwrap().value, 1.193);
        assert_eq!(reading(damaged.as_bytes(), &trusting), None);
    }

    #[test]
    fn an_endless_telegram_is_dropped() {
        let mut telegrams = Telegrams::default();
        telegrams.push(b"/endless");
        for _ in 0..100 {
            telegrams.push(&[b'x'; 1000]);
            assert_eq!(telegrams.take(), None);
            assert!(telegrams.buffer.len() <= TELEGRAM_BYTES_MAX + 1000);
        }
        telegrams.push(&telegram(BODY));
        assert_eq!(telegrams.take(), Some(telegram(BODY)));
        assert_eq!(telegrams.dropped, 1);
    }

    proptest! {
        #[test]
        fn telegrams_are_the_same_however_they_arrive(before in prop::collection::vec(any::<u8>(), 0..40), cut in 1usize..60) {
            let before: Vec<u8> = before.into_iter().filter(|byte| *byte != b'/').collect();
            let stream = [before, telegram(BODY), telegram(BODY)].concat();
            let mut telegrams = Telegrams::default();
            let mut seen = Vec::new();
            for block in stream.chunks(cut) {
                telegrams.push(block);
                seen.extend(std::iter::from_fn(|| telegrams.take()));
            }
            prop_assert_eq!(seen, vec![telegram(BODY); 2]);
        }

        #[test]
        fn any_bytes_are_a_finite_reading_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200), inside in "[()*0-9A-Z:.\r\n-]{0,60}") {
            let settings = P1Config::default();
            let _ = reading(&bytes, &settings);
            for body in [format!("/x\r\n{inside}\r\n!"), format!("/x\r\n0-0:1.0.0({inside})\r\n1-0:1.7.0({inside}*kW)\r\n!")] {
                if let Some(reading) = reading(&telegram(&body), &settings) {
                    prop_assert!(reading.value.is_finite());
                }
            }
            let _ = telegram_time(&inside);
        }
    }
}
