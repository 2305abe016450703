//! Values in the content of an SML telegram.

use crate::source::obis::{ObisCode, ObisValue, ObisValues, decimal, kilo};

/// Values that are read from one telegram at most.
const VALUES_MAX: usize = 256;
/// Elements of a list entry: name, status, time, unit, scaler, value, signature.
const ENTRY_ELEMENTS: usize = 7;

/// One field: a value, or the number of elements of a list that follow.
#[derive(Debug, Clone, Copy, PartialEq)]
enum SmlField<'a> {
    /// The end of a message.
    End,
    Octets(&'a [u8]),
    Bool,
    Signed(i64),
    Unsigned(u64),
    List(usize),
}

/// The numbers of all list entries, each with name and unit.
///
/// The lists around them are not checked: the telegram has a checksum, and meters differ in what they put there.
pub(super) fn read(content: &[u8]) -> ObisValues {
    let (mut rest, mut values) = (content, Vec::new());
    while let Some((field, after)) = field(rest) {
        rest = after;
        if field == SmlField::List(ENTRY_ELEMENTS)
            && let Some((value, after)) = entry(rest)
        {
            values.extend(value);
            rest = after;
        }
        if values.len() >= VALUES_MAX {
            break;
        }
    }
    ObisValues(values)
}

/// The list entry in `bytes`, if it is one, and what follows; its value is none unless it is a number.
fn entry(bytes: &[u8]) -> Option<(Option<ObisValue>, &[u8])> {
    let (SmlField::Octets(name), rest) = field(bytes)? else { return None };
    let code = ObisCode::from_bytes(name.try_into().ok()?);
    let (SmlField::Unsigned(_) | SmlField::Octets([]), rest) = field(rest)? else { return None };
    let rest = skip_time(rest)?;
    let (unit, rest) = field(rest)?;
    let (scaler, rest) = field(rest)?;
    let (value, rest) = field(rest)?;
    let (_signature, rest) = field(rest)?;
    let raw = match value {
        SmlField::Signed(value) => value as f64,
        SmlField::Unsigned(value) => value as f64,
        _ => return Some((None, rest)),
    };
    let scaler = match scaler {
        SmlField::Signed(scaler) => i8::try_from(scaler).ok()?,
        SmlField::Octets([]) => 0,
        _ => return None,
    };
    let unit = match unit {
        SmlField::Unsigned(unit) => unit_name(unit),
        _ => "",
    };
    let (exponent, unit) = kilo(unit).unwrap_or((0, unit));
    let value = decimal(raw, i32::from(scaler) + exponent);
    Some((value.is_finite().then_some(ObisValue { code, value, unit }), rest))
}

/// What follows a time: none, a list of its kind and its seconds, or, by some makers, the seconds alone.
fn skip_time(bytes: &[u8]) -> Option<&[u8]> {
    match field(bytes)? {
        (SmlField::List(2), rest) => {
            let (_kind, rest) = field(rest)?;
            field(rest).map(|(_, rest)| rest)
        }
        (SmlField::Octets([]) | SmlField::Unsigned(_), rest) => Some(rest),
        _ => None,
    }
}

/// The first field of `bytes`, and what follows.
fn field(bytes: &[u8]) -> Option<(SmlField<'_>, &[u8])> {
    let (first, mut rest) = bytes.split_first()?;
    if *first == 0 {
        return Some((SmlField::End, rest));
    }
    let (kind, mut length, mut head) = (first >> 4 & 7, usize::from(first & 15), 1);
    let mut has_more = first & 0x80 != 0;
    while has_more {
        let (next, after) = rest.split_first()?;
        (rest, head) = (after, head + 1);
        length = length.checked_mul(16)? + usize::from(next & 15);
        has_more = next & 0x80 != 0;
    }
    if kind == 7 {
        return Some((SmlField::List(length), rest));
    }
    // The length of what is no list counts its own bytes.
    let (data, rest) = rest.split_at_checked(length.checked_sub(head)?)?;
    let field = match (kind, data) {
        (0, data) => SmlField::Octets(data),
        (4, [_]) => SmlField::Bool,
        (5, [first, ..]) if data.len() <= 8 => {
            let sign = if *first > 0x7f { -1 } else { 0 };
            SmlField::Signed(data.iter().fold(sign, |value, byte| value << 8 | i64::from(*byte)))
        }
        (6, [_, ..]) if data.len() <= 8 => {
            SmlField::Unsigned(data.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
        }
        _ => return None,
    };
    Some((field, rest))
}

/// The unit of a code of DLMS (IEC 62056-62).
fn unit_name(code: u64) -> &'static str {
    match code {
        27 => "W",
        28 => "VA",
        29 => "var",
        30 => "Wh",
        33 => "A",
        35 => "V",
        44 => "Hz",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// List entries as meters send them: 1.8.0 with status and 8 bytes, the owner's number, 16.7.0 with 2 negative bytes, a
    /// value with a time as the standard has it, one with a bare time.
    const ENTRIES: &[&[u8]] = &[
        b"\x77\x07\x01\x00\x01\x08\x00\xff\x65\x00\x00\x01\x82\x01\x62\x1e\x52\xff\x59\x00\x00\x00\x00\x0d\x63\x7e\x08\x01",
        b"\x77\x07\x01\x00\x00\x00\x09\xff\x01\x01\x01\x01\x0b\x09\x01\x45\x4d\x48\x00\x00\x00\x00\x00\x01",
        b"\x77\x07\x01\x00\x10\x07\x00\xff\x01\x01\x62\x1b\x52\x00\x53\xfe\xd4\x01",
        b"\x77\x07\x01\x00\x20\x07\x00\xff\x01\x72\x62\x01\x65\x00\x00\x00\x07\x62\x23\x52\xff\x63\x09\x06\x01",
        b"\x77\x07\x01\x00\x0e\x07\x00\xff\x01\x65\x00\x00\x00\x07\x62\x2c\x52\xff\x63\x01\xf4\x01",
    ];

    #[test]
    fn entries_of_several_meters() {
        let content = [
            &b"\x76\x05\x01\x02\x03\x04\x62\x00\x62\x00\x72\x63\x07\x01\x77\x01\x0b\x0a"[..],
            b"\x01EMH00000\x01\x01\x75",
        ]
        .concat();
        let telegram = [content, ENTRIES.concat(), b"\x01\x01\x63\x12\x34\x00".to_vec()].concat();
        let values = read(&telegram);
        assert_eq!(
            values.to_string(),
            "1-0:1.8.0 22462.4136 kWh, 1-0:16.7.0 -0.3 kW, 1-0:32.7.0 231 V, 1-0:14.7.0 50 Hz"
        );
        assert_eq!(values.difference("16.7.0", "").unwrap(), -0.3);
        assert!(values.difference("2.8.0", "").unwrap_err().contains("set source.obis"));
        assert!(values.difference("16.7.0", "2.7.0").unwrap_err().contains("source.obis_minus"));
    }

    #[test]
    fn lengths_that_claim_too_much_are_no_fields() {
        for bytes in [
            &b"\x59\x01"[..],
            b"\x8f\x8f\x8f\x8f\x8f\x8f\x8f\x8f\x8f\x8f\x8f\x8f\x8f\x8f\x8f\x8f\x8f\x0f",
            b"\x81",
            b"\x80\x01",
            b"\x51",
            b"\x5a",
        ] {
            assert_eq!(field(bytes), None, "{bytes:x?}");
        }
        assert_eq!(field(b"\xf1\x00!"), Some((SmlField::List(16), &b"!"[..])));
        assert_eq!(field(b"\x83\x02abcdefgh".split_at(4).0), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_finite_values(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..60, byte: u8) {
            let mut entries = ENTRIES.concat();
            entries[at] = byte;
            for content in [bytes, entries] {
                prop_assert!(read(&content).0.iter().all(|value| value.value.is_finite()));
            }
        }
    }
}
