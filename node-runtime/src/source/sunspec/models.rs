//! SunSpec information models of inverters and meters.

use super::SunspecValue;
use crate::source::obis::decimal;

/// "SunS", before the first model.
pub(super) const MARK: [u8; 4] = *b"SunS";
/// Registers where the mark may be.
pub(super) const MARK_PLACES: [u16; 3] = [40_000, 50_000, 0];
/// Watts and watt-hours as one of a thousand.
const KILO: i32 = -3;

/// A model that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SunspecModel {
    number: u16,
    device: SunspecDevice,
    has_floats: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SunspecDevice {
    Inverter,
    Meter,
}

/// Place and type of a value: registers from the model's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SunspecPoint {
    /// A signed number of one register, and the place of its exponent.
    Signed(usize, usize),
    /// A counter of two registers, and the place of its exponent.
    Counter(usize, usize),
    /// A float of two registers.
    Float(usize),
}

/// A value of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PointValue {
    /// The number as the device has it.
    pub raw: f64,
    /// Exponent of its factor.
    pub exponent: i32,
    /// The value in kW or kWh.
    pub value: f64,
}

impl SunspecModel {
    /// The model of this number, if it can be read.
    pub fn of(number: u16) -> Option<Self> {
        let (device, has_floats) = match number {
            101..=103 => (SunspecDevice::Inverter, false),
            111..=113 => (SunspecDevice::Inverter, true),
            201..=204 => (SunspecDevice::Meter, false),
            211..=214 => (SunspecDevice::Meter, true),
            _ => return None,
        };
        Some(Self { number, device, has_floats })
    }

    /// Its number.
    pub fn number(self) -> u16 {
        self.number
    }

    /// The place of a value: points W, WH, TotWhImp and TotWhExp of the models.
    pub(super) fn point(self, value: SunspecValue) -> Option<SunspecPoint> {
        Some(match (self.device, self.has_floats, value) {
            (SunspecDevice::Inverter, false, SunspecValue::Power) => SunspecPoint::Signed(14, 15),
            (SunspecDevice::Inverter, false, SunspecValue::Energy) => SunspecPoint::Counter(24, 26),
            (SunspecDevice::Inverter, true, SunspecValue::Power) => SunspecPoint::Float(22),
            (SunspecDevice::Inverter, true, SunspecValue::Energy) => SunspecPoint::Float(32),
            (SunspecDevice::Inverter, _, SunspecValue::EnergyExported) => return None,
            (SunspecDevice::Meter, false, SunspecValue::Power) => SunspecPoint::Signed(18, 22),
            (SunspecDevice::Meter, false, SunspecValue::Energy) => SunspecPoint::Counter(46, 54),
            (SunspecDevice::Meter, false, SunspecValue::EnergyExported) => SunspecPoint::Counter(38, 54),
            (SunspecDevice::Meter, true, SunspecValue::Power) => SunspecPoint::Float(28),
            (SunspecDevice::Meter, true, SunspecValue::Energy) => SunspecPoint::Float(68),
            (SunspecDevice::Meter, true, SunspecValue::EnergyExported) => SunspecPoint::Float(60),
        })
    }
}

/// The value in the registers of a model, from its number on, or the reason why there is none.
pub fn find_point(
    registers: &[u8],
    model: SunspecModel,
    value: SunspecValue,
) -> Result<PointValue, &'static str> {
    const SHORT: &str = "the model is shorter than the standard has it";
    const ABSENT: &str = "the device has no such value at the moment; an inverter may sleep at night";
    let point = model.point(value).ok_or("the model has no such value; change source.value")?;
    let double = |at| {
        word(registers, at)
            .zip(word(registers, at + 1))
            .map(|(high, low)| u32::from(high) << 16 | u32::from(low))
    };
    let exponent = |at| match word(registers, at).ok_or(SHORT)?.cast_signed() {
        exponent @ -10..=10 => Ok(i32::from(exponent)),
        _ => Err(ABSENT),
    };
    let (raw, exponent) = match point {
        SunspecPoint::Signed(at, scale) => match word(registers, at).ok_or(SHORT)?.cast_signed() {
            i16::MIN => return Err(ABSENT),
            raw => (f64::from(raw), exponent(scale)?),
        },
        SunspecPoint::Counter(at, scale) => match double(at).ok_or(SHORT)? {
            0 | u32::MAX => return Err(ABSENT),
            raw => (f64::from(raw), exponent(scale)?),
        },
        SunspecPoint::Float(at) => match f32::from_bits(double(at).ok_or(SHORT)?) {
            raw if raw.is_finite() => (f64::from(raw), 0),
            _ => return Err(ABSENT),
        },
    };
    Ok(PointValue { raw, exponent, value: decimal(raw, exponent + KILO) })
}

/// The register at this place.
pub(super) fn word(registers: &[u8], at: usize) -> Option<u16> {
    registers.as_chunks().0.get(at).map(|word| u16::from_be_bytes(*word))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// Registers of a model, 0 but for these.
    fn registers(count: usize, values: &[(usize, u16)]) -> Vec<u8> {
        let mut registers = vec![0u16; count];
        values.iter().for_each(|(at, value)| registers[*at] = *value);
        registers.into_iter().flat_map(u16::to_be_bytes).collect()
    }

    fn value(registers: &[u8], model: u16, value: SunspecValue) -> Result<f64, &'static str> {
        find_point(registers, SunspecModel::of(model).unwrap(), value).map(|point| point.value)
    }

    #[test]
    fn points_of_the_standard() {
        let inverter =
            registers(52, &[(14, 8021), (15, (-1i16).cast_unsigned()), (24, 0x0012), (25, 0xd687), (26, 0)]);
        assert_eq!(value(&inverter, 103, SunspecValue::Power), Ok(0.8021));
        assert_eq!(value(&inverter, 103, SunspecValue::Energy), Ok(1234.567));
        let meter = registers(
            107,
            &[
                (18, (-420i16).cast_unsigned()),
                (22, 1),
                (39, 5000),
                (47, 7000),
                (54, (-2i16).cast_unsigned()),
            ],
        );
        assert_eq!(value(&meter, 203, SunspecValue::Power), Ok(-4.2));
        assert_eq!(value(&meter, 203, SunspecValue::Energy), Ok(0.07));
        assert_eq!(value(&meter, 203, SunspecValue::EnergyExported), Ok(0.05));
        let watts = 1500.0f32.to_bits();
        let float = registers(62, &[(22, (watts >> 16) as u16), (23, watts as u16), (32, 0x7fc0)]);
        assert_eq!(value(&float, 113, SunspecValue::Power), Ok(1.5));
        assert!(value(&float, 113, SunspecValue::Energy).unwrap_err().contains("at night"));
        assert!(value(&float, 113, SunspecValue::EnergyExported).is_err());
    }

    #[test]
    fn what_the_device_does_not_have_is_no_zero() {
        for values in [[(14, 0x8000), (15, 0)], [(14, 7), (15, 0x8000)]] {
            assert!(value(&registers(52, &values), 101, SunspecValue::Power).is_err(), "{values:?}");
        }
        assert!(
            value(&registers(52, &[]), 101, SunspecValue::Energy).is_err(),
            "a counter that counts nothing"
        );
        assert!(value(&registers(14, &[]), 101, SunspecValue::Power).unwrap_err().contains("shorter"));
        assert_eq!(value(&registers(52, &[]), 101, SunspecValue::Power), Ok(0.0));
    }

    proptest! {
        #[test]
        fn any_registers_are_a_finite_value_or_none(bytes in prop::collection::vec(any::<u8>(), 0..250), model in 100u16..215) {
            let Some(model) = SunspecModel::of(model) else { return Ok(()) };
            for wanted in [SunspecValue::Power, SunspecValue::Energy, SunspecValue::EnergyExported] {
                prop_assert!(find_point(&bytes, model, wanted).is_ok_and(|point| point.value.is_finite()) || find_point(&bytes, model, wanted).is_err());
            }
        }
    }
}
