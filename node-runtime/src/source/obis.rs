//! Codes of measured quantities (OBIS, IEC 62056-61).
#![allow(dead_code, reason = "a program may be built without the sources that need it")]

use std::fmt;

/// The value group F of a present value, as opposed to that of an earlier billing period.
const PRESENT: u8 = 255;

/// A code `A-B:C.D.E*F`, of which A-B and F may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ObisCode {
    channel: Option<(u8, u8)>,
    quantity: [u8; 3],
    period: u8,
}

impl ObisCode {
    /// The code in `text`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (channel, rest) = match text.split_once(':') {
            Some((channel, rest)) => {
                let (medium, channel) = channel.split_once('-')?;
                (Some((medium.parse().ok()?, channel.parse().ok()?)), rest)
            }
            None => (None, text),
        };
        let (quantity, period) = match rest.split_once('*') {
            Some((quantity, period)) => (quantity, period.parse().ok()?),
            None => (rest, PRESENT),
        };
        let mut groups = quantity.split('.').map(|group| group.parse::<u8>());
        let mut group = || groups.next()?.ok();
        let quantity = [group()?, group()?, group()?];
        groups.next().is_none().then_some(Self { channel, quantity, period })
    }

    /// The code in six bytes.
    pub(super) fn from_bytes([medium, channel, c, d, e, period]: [u8; 6]) -> Self {
        Self { channel: Some((medium, channel)), quantity: [c, d, e], period }
    }

    /// Both mean the same quantity: what one of them leaves open may be anything in the other.
    pub(super) fn means(self, other: Self) -> bool {
        let channels = self.channel.zip(other.channel);
        self.quantity == other.quantity
            && self.period == other.period
            && channels.is_none_or(|(one, other)| one == other)
    }

    /// The mistake of a configured code, with the remedy; an empty one is a mistake unless it is optional.
    pub(super) fn check(key: &str, text: &str, is_optional: bool) -> Result<(), String> {
        if (is_optional && text.is_empty()) || Self::parse(text).is_some() {
            return Ok(());
        }
        Err(format!("source.{key} = {text:?} is no OBIS code; an example is \"1-0:16.7.0\""))
    }
}

impl fmt::Display for ObisCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((medium, channel)) = self.channel {
            write!(f, "{medium}-{channel}:")?;
        }
        let [c, d, e] = self.quantity;
        write!(f, "{c}.{d}.{e}")?;
        if self.period != PRESENT { write!(f, "*{}", self.period) } else { Ok(()) }
    }
}

/// A value with the unit that a meter names.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ObisValue {
    /// The quantity.
    pub(super) code: ObisCode,
    /// The number, in kW or kWh where the unit is one of power or energy.
    pub(super) value: f64,
    /// The unit of `value`, "" if the meter names none.
    pub(super) unit: &'static str,
}

/// The values of a telegram.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ObisValues(pub(super) Vec<ObisValue>);

impl ObisValues {
    /// The value of `plus` without that of `minus`, or the reason why there is none.
    pub(super) fn difference(&self, plus: &str, minus: &str) -> Result<f64, String> {
        let minus = if minus.is_empty() { 0.0 } else { self.value("obis_minus", minus)? };
        Ok(self.value("obis", plus)? - minus)
    }

    fn value(&self, key: &str, code: &str) -> Result<f64, String> {
        let wanted = ObisCode::parse(code).ok_or("its code is no OBIS code")?;
        let found = self.0.iter().find(|value| value.code.means(wanted));
        found.map(|found| found.value).ok_or_else(|| {
            format!(
                "the telegram has no {code}; set source.{key} to a code that it has (many meters show their power only after \
                 their PIN was entered)"
            )
        })
    }
}

impl fmt::Display for ObisValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, ObisValue { code, value, unit }) in self.0.iter().enumerate() {
            write!(f, "{}{code} {value} {unit}", if number > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

/// The unit of power or energy that a meter names as one of a thousand: the exponent of its factor, and its name.
pub(super) fn kilo(unit: &str) -> Option<(i32, &'static str)> {
    Some(match unit {
        "W" => (-3, "kW"),
        "Wh" => (-3, "kWh"),
        "kW" => (0, "kW"),
        "kWh" => (0, "kWh"),
        "MW" => (3, "kW"),
        "MWh" => (3, "kWh"),
        _ => return None,
    })
}

/// `number` · 10^`exponent`, rounded once.
pub(super) fn decimal(number: f64, exponent: i32) -> f64 {
    if exponent < 0 { number / 10f64.powi(-exponent) } else { number * 10f64.powi(exponent) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn code(text: &str) -> ObisCode {
        ObisCode::parse(text).unwrap()
    }

    #[test]
    fn codes_mean_the_same_where_both_say_something() {
        assert!(code("1-0:16.7.0").means(ObisCode::from_bytes([1, 0, 16, 7, 0, 255])));
        assert!(code("16.7.0").means(code("1-0:16.7.0*255")));
        assert!(code("1-0:1.8.0").means(code("1.8.0")));
        assert!(!code("1.8.0").means(code("1.8.0*01")), "a value of an earlier period");
        assert!(code("1.8.0*1").means(code("1.8.0*01")));
        assert!(!code("1-0:1.8.0").means(code("1-1:1.8.0")));
        for text in ["", "1.8", "1.8.0.0", "F.F.0", "1-0:1.8.256", "1:1.8.0", "1-0:1.8.0*", "1-0:1.8.0:1"] {
            assert_eq!(ObisCode::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(bytes: [u8; 6], text in "[0-9.:*-]{0,12}") {
            let code = ObisCode::from_bytes(bytes);
            prop_assert_eq!(ObisCode::parse(&code.to_string()), Some(code));
            let _ = ObisCode::parse(&text);
        }
    }
}
