//! Registers and the numbers in them.

use serde::{Deserialize, Serialize};

/// The tables of registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RegisterTable {
    /// Function 3.
    Holding,
    /// Function 4.
    Input,
}

impl RegisterTable {
    pub(super) fn function(self) -> u8 {
        match self {
            RegisterTable::Holding => 3,
            RegisterTable::Input => 4,
        }
    }
}

/// Type of the number in one or more registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "named as everywhere")]
pub enum RegisterNumber {
    U16,
    I16,
    U32,
    I32,
    F32,
    U64,
    I64,
    F64,
}

impl RegisterNumber {
    /// Registers it takes.
    pub(super) fn words(self) -> u16 {
        match self {
            RegisterNumber::U16 | RegisterNumber::I16 => 1,
            RegisterNumber::U32 | RegisterNumber::I32 | RegisterNumber::F32 => 2,
            RegisterNumber::U64 | RegisterNumber::I64 | RegisterNumber::F64 => 4,
        }
    }

    /// The number in the bytes of its words.
    pub(super) fn read(self, words: &[u8], order: WordOrder) -> Option<f64> {
        let mut words = words.to_vec();
        if order == WordOrder::LowFirst {
            words.as_chunks_mut::<2>().0.reverse();
        }
        self.decode(&words)
    }

    /// The number in `bytes`, high word first.
    fn decode(self, bytes: &[u8]) -> Option<f64> {
        Some(match self {
            RegisterNumber::U16 => u16::from_be_bytes(bytes.try_into().ok()?).into(),
            RegisterNumber::I16 => i16::from_be_bytes(bytes.try_into().ok()?).into(),
            RegisterNumber::U32 => u32::from_be_bytes(bytes.try_into().ok()?).into(),
            RegisterNumber::I32 => i32::from_be_bytes(bytes.try_into().ok()?).into(),
            RegisterNumber::F32 => f32::from_be_bytes(bytes.try_into().ok()?).into(),
            RegisterNumber::U64 => u64::from_be_bytes(bytes.try_into().ok()?) as f64,
            RegisterNumber::I64 => i64::from_be_bytes(bytes.try_into().ok()?) as f64,
            RegisterNumber::F64 => f64::from_be_bytes(bytes.try_into().ok()?),
        })
    }
}

/// Order of several words; the bytes of a word are always high first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WordOrder {
    /// The order of the standard.
    HighFirst,
    /// The order of some makers.
    LowFirst,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_kinds() {
        for (number, bytes, expected) in [
            (RegisterNumber::U16, &[0xff, 0xfe][..], 65_534.0),
            (RegisterNumber::I16, &[0xff, 0xfe], -2.0),
            (RegisterNumber::U32, &[0, 1, 0, 2], 65_538.0),
            (RegisterNumber::I32, &[0xff, 0xff, 0xff, 0xff], -1.0),
            (RegisterNumber::F32, &[0x43, 0x66, 0x33, 0x33], f64::from(230.2f32)),
            (RegisterNumber::U64, &[0, 0, 0, 1, 0, 0, 0, 0], 4_294_967_296.0),
            (RegisterNumber::I64, &[0xff; 8], -1.0),
            (RegisterNumber::F64, &[0x40, 0x09, 0x21, 0xfb, 0x54, 0x44, 0x2d, 0x18], std::f64::consts::PI),
        ] {
            assert_eq!(number.decode(bytes), Some(expected), "{number:?}");
            assert_eq!(number.decode(&bytes[1..]), None);
        }
    }

    #[test]
    fn the_low_word_first() {
        assert_eq!(RegisterNumber::U32.read(&[0, 2, 0, 1], WordOrder::LowFirst), Some(65_538.0));
    }
}
