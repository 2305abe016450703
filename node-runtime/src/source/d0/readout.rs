//! Readouts of IEC 62056-21.

use super::D0Config;
use crate::reading::Reading;
use crate::source::obis::{ObisCode, ObisValue, ObisValues, decimal, kilo};
use crate::source::telegrams::{ETX, STX};
use crate::source::{now_ms, number};

/// The reading of the present moment in a readout, or the reason why there is none.
///
/// A readout in answer to a request has a block check, which must be right; one that a meter sends by itself has none.
pub fn reading(telegram: &[u8], settings: &D0Config) -> Result<Reading, String> {
    let data = data(telegram)?;
    let text = std::str::from_utf8(data).map_err(|_| "it is no ASCII text")?;
    let value = values(text).difference(&settings.obis, &settings.obis_minus)?;
    Ok(Reading { time_ms: now_ms(), value })
}

/// The lines of a readout whose block check is right if it has one.
fn data(telegram: &[u8]) -> Result<&[u8], &'static str> {
    let Some(begin) = telegram.iter().position(|byte| *byte == STX) else { return Ok(telegram) };
    match &telegram[begin + 1..] {
        [data @ .., ETX, check] if *check == data.iter().fold(ETX, |check, byte| check ^ byte) => Ok(data),
        _ => Err("its block check is wrong; align the optical head"),
    }
}

/// The values of lines such as `1-0:1.8.0*255(000123.4567*kWh)`.
fn values(text: &str) -> ObisValues {
    ObisValues(text.lines().filter_map(value).collect())
}

fn value(line: &str) -> Option<ObisValue> {
    let (code, content) = line.split_once('(')?;
    let (content, _) = content.split_once(')')?;
    let (digits, unit) = content.split_once('*').unwrap_or((content, ""));
    let (exponent, unit) = kilo(unit).unwrap_or((0, ""));
    let value = decimal(number(digits, false)?, exponent);
    Some(ObisValue { code: ObisCode::parse(code.trim())?, value, unit })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// The readout of an EM4TII in the manual of LEM, shortened, with energies; the block check is that of these lines.
    const LINES: &str = "1-0:1.8.0*255(000004821.7*kWh)\r\n1-0:2.8.0*255(000000012.0*kWh)\r\n0-0:F.F.0*255(00000000)\r\n\
        1-0:0.9.1*255(140253)\r\n1-0:0.8.4*255(5*min)\r\n1-0:1.8.0*01(000004700.0*kWh)\r\n1-0:16.7.0*255(000250*W)\r\n!\r\n";

    fn answer(lines: &str) -> Vec<u8> {
        let check = lines.bytes().fold(ETX, |check, byte| check ^ byte);
        [b"/EMH5\\@D4EM4TIIW001--\r\n\x02", lines.as_bytes(), &[ETX, check]].concat()
    }

    fn settings(obis: &str, obis_minus: &str) -> D0Config {
        D0Config { obis: obis.into(), obis_minus: obis_minus.into(), ..Default::default() }
    }

    #[test]
    fn a_readout_in_answer_to_a_request() {
        let value = |obis: &str, minus: &str| reading(&answer(LINES), &settings(obis, minus)).unwrap().value;
        assert_eq!(value("1-0:1.8.0", ""), 4821.7);
        assert!((value("1.8.0", "2.8.0") - 4809.7).abs() < 1e-9);
        assert_eq!(value("16.7.0", ""), 0.25, "watts as kilowatts");
        assert_eq!(value("1.8.0*1", ""), 4700.0, "of an earlier period");
        let reason = |obis: &str| reading(&answer(LINES), &settings(obis, "")).unwrap_err();
        assert!(reason("1-0:21.7.0").contains("set source.obis"));
    }

    /// The block check of the readout as the manual prints it: `+`.
    #[test]
    fn the_block_check_of_the_manual() {
        let lines = "1-0:1.8.0*255(000000000.0*kWh)\r\n1-0:2.8.0*255(000000000.0*kWh)\r\n1-0:3.8.0*255(000000000.0*kvarh)\r\n\
            1-0:4.8.0*255(000000000.0*kvarh)\r\n0-0:F.F.0*255(00000000)\r\n1-0:0.0.1*255()\r\n1-0:0.2.0*255(10600000)\r\n\
            1-0:0.9.1*255(140253)\r\n1-0:0.9.2*255(121221)\r\n0-0:C.1.0*255(03878504)\r\n0-0:C.72.1*255()\r\n\
            0-0:C.72.2*255()\r\n1-0:0.8.4*255(5*min)\r\n1-0:0.3.0*255(6.00*Imp/kWh)\r\n1-0:0.2.1*1(121120??)\r\n\
            1-0:0.2.1*50(121120??)\r\n0-0:C.90.2*255(9F139CC2)\r\n1-0:C.1.9*255(Point-ID)\r\n!\r\n";
        let readout = answer(lines);
        assert_eq!(readout.last(), Some(&b'+'));
        assert_eq!(reading(&readout, &settings("1.8.0", "")).unwrap().value, 0.0);
    }

    #[test]
    fn a_damaged_readout_is_refused() {
        for at in 24..answer(LINES).len() {
            let mut damaged = answer(LINES);
            damaged[at] ^= 1;
            assert!(reading(&damaged, &settings("1.8.0", "")).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_readout_that_is_sent_unasked() {
        let telegram = b"/ESY5Q3DA1004 V3.04\r\n\r\n1-0:0.0.0*255(0273011003684)\r\n1-0:1.8.0*255(00026107.7034231*kWh)\r\n\
            1-0:21.7.255*255(000200.13*W)\r\n1-0:1.7.255*255(000597.68*W)\r\n!\r\n";
        let value = |obis: &str| reading(telegram, &settings(obis, "")).unwrap().value;
        assert!((value("1-0:1.7.255") - 0.597_68).abs() < 1e-12);
        assert_eq!(value("1.8.0"), 26_107.703_423_1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_finite_reading_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200), inside in "[()*0-9A-Z:.\r\n-]{0,60}") {
            let settings = settings("1.8.0", "");
            for telegram in [bytes, answer(&inside), answer(&format!("1.8.0({inside}*kWh)\r\n!\r\n"))] {
                if let Ok(reading) = reading(&telegram, &settings) {
                    prop_assert!(reading.value.is_finite());
                }
            }
        }
    }
}
