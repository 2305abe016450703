//! A register of a meter, read over Modbus TCP.
#![cfg(feature = "modbus")]

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{READ_TIMEOUT, Source, SourceContext, SourceError, SourceKind, now_ms, tcp};
use crate::config::section::section;
use crate::reading::{InputBatch, Reading};

/// Time for a meter's answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Transaction (2), protocol (2), length (2), unit (1).
const HEADER_BYTES: usize = 7;
/// The header, the function (1), and the number of bytes that follow or the exception (1).
const FIRST_BYTES: usize = HEADER_BYTES + 2;
const PROTOCOL: [u8; 2] = [0, 0];

section! {
    /// A register of a meter and the meaning of its bits.
    pub struct ModbusConfig {
        /// HOST:PORT of the meter or gateway.
        pub address: String = String::new() => "\"192.168.1.20:502\"",
        /// The unit behind a gateway.
        pub unit: u8 = 1,
        /// The table of the register: "input" or "holding".
        pub table: RegisterTable = RegisterTable::Input,
        /// The register's address, counted from 0.
        pub register: u16 = 0,
        /// Type of the number: "f32", "u16", "i16", "u32", "i32", "u64", "i64" or "f64".
        pub number: RegisterNumber = RegisterNumber::F32,
        /// Order of several words: "high-first" or "low-first".
        pub word_order: WordOrder = WordOrder::HighFirst,
        /// The reading is number * scale + offset.
        pub scale: f64 = 1.0,
        /// Added to the scaled number.
        pub offset: f64 = 0.0,
        /// Seconds between two readings.
        pub interval_s: f64 = 10.0,
    }
}

impl SourceKind for ModbusConfig {
    fn check(&self) -> Result<(), String> {
        if self.address.is_empty() {
            return Err("source.address is missing; write HOST:PORT, e.g. \"192.168.1.20:502\"".into());
        }
        if !(self.interval_s > 0.0 && self.interval_s <= 86_400.0) {
            return Err(format!("source.interval_s = {}; choose up to a day", self.interval_s));
        }
        if !(self.scale.is_finite() && self.offset.is_finite()) {
            return Err("source.scale and source.offset must be finite".into());
        }
        Ok(())
    }

    fn open(&self, _context: &SourceContext<'_>) -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(Modbus::open(self.clone())?))
    }
}

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
    fn function(self) -> u8 {
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
    fn words(self) -> usize {
        match self {
            RegisterNumber::U16 | RegisterNumber::I16 => 1,
            RegisterNumber::U32 | RegisterNumber::I32 | RegisterNumber::F32 => 2,
            RegisterNumber::U64 | RegisterNumber::I64 | RegisterNumber::F64 => 4,
        }
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

/// Error of a meter.
#[derive(Debug, thiserror::Error)]
pub enum ModbusError {
    /// The connection fails.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The meter refuses.
    #[error("the meter answers with exception {code} ({})", exception(*code))]
    Exception {
        /// Its code.
        code: u8,
    },
    /// The answer does not belong to the request, or is malformed.
    #[error("the meter's answer does not fit the request: wrong {0}")]
    Answer(&'static str),
}

fn exception(code: u8) -> &'static str {
    match code {
        1 => "it does not know this function; try the other table",
        2 => "it has no such register",
        3 => "it does not accept this many registers",
        4 => "it failed",
        6 => "it is busy",
        10 | 11 => "the gateway does not reach it; check the unit",
        _ => "unknown",
    }
}

/// A connection to a meter.
#[derive(Debug)]
pub struct Modbus {
    settings: ModbusConfig,
    stream: TcpStream,
    transaction: u16,
    due: Instant,
    malformed: u64,
}

impl Modbus {
    /// Connects.
    pub fn open(settings: ModbusConfig) -> Result<Self, SourceError> {
        let stream = tcp::connect(&settings.address, ANSWER_TIMEOUT)
            .map_err(|error| failed(&settings, error.into()))?;
        Ok(Self { settings, stream, transaction: 0, due: Instant::now(), malformed: 0 })
    }

    fn poll(&mut self) -> Result<f64, ModbusError> {
        self.transaction = self.transaction.wrapping_add(1);
        self.stream.write_all(&request(self.transaction, &self.settings))?;
        let mut answer = [0; FIRST_BYTES + 8];
        let (first, rest) = answer.split_at_mut(FIRST_BYTES);
        self.stream.read_exact(first)?;
        let length = bytes_to_follow(first, self.transaction, &self.settings)?;
        self.stream.read_exact(&mut rest[..length])?;
        decode(&answer[..FIRST_BYTES + length], self.transaction, &self.settings)
    }
}

impl Source for Modbus {
    fn read(&mut self, _count: usize) -> Result<InputBatch, SourceError> {
        let wait = self.due.saturating_duration_since(Instant::now());
        if wait > READ_TIMEOUT {
            thread::sleep(READ_TIMEOUT);
            return Ok(InputBatch::Readings(Vec::new()));
        }
        thread::sleep(wait);
        let number = self.poll().map_err(|error| failed(&self.settings, error))?;
        // A slow answer does not shorten the next interval.
        self.due = (self.due + Duration::from_secs_f64(self.settings.interval_s)).max(Instant::now());
        let value = number * self.settings.scale + self.settings.offset;
        if !value.is_finite() {
            self.malformed += 1;
            return Ok(InputBatch::Readings(Vec::new()));
        }
        Ok(InputBatch::Readings(vec![Reading { time_ms: now_ms(), value }]))
    }

    fn malformed(&self) -> u64 {
        self.malformed
    }
}

fn failed(settings: &ModbusConfig, cause: ModbusError) -> SourceError {
    SourceError::Peer { peer: settings.address.clone(), cause: Box::new(cause) }
}

fn request(transaction: u16, settings: &ModbusConfig) -> Vec<u8> {
    let mut request = Vec::with_capacity(12);
    request.extend(transaction.to_be_bytes());
    request.extend(PROTOCOL);
    request.extend(6u16.to_be_bytes());
    request.extend([settings.unit, settings.table.function()]);
    request.extend(settings.register.to_be_bytes());
    request.extend((settings.number.words() as u16).to_be_bytes());
    request
}

/// The number in a meter's whole answer to request number `transaction`.
pub fn decode(answer: &[u8], transaction: u16, settings: &ModbusConfig) -> Result<f64, ModbusError> {
    let (first, words) = answer.split_at_checked(FIRST_BYTES).ok_or(ModbusError::Answer("length"))?;
    if words.len() != bytes_to_follow(first, transaction, settings)? {
        return Err(ModbusError::Answer("length"));
    }
    let mut words = words.to_vec();
    if settings.word_order == WordOrder::LowFirst {
        words.as_chunks_mut::<2>().0.reverse();
    }
    settings.number.decode(&words).ok_or(ModbusError::Answer("length"))
}

/// Bytes that must follow the first nine of an answer.
fn bytes_to_follow(first: &[u8], transaction: u16, settings: &ModbusConfig) -> Result<usize, ModbusError> {
    let (header, body) = first.split_at_checked(HEADER_BYTES).ok_or(ModbusError::Answer("length"))?;
    let [function, detail] = *body else { return Err(ModbusError::Answer("length")) };
    let bytes = 2 * settings.number.words();
    let asked = settings.table.function();
    if header[..2] != transaction.to_be_bytes() {
        return Err(ModbusError::Answer("transaction"));
    }
    if header[2..4] != PROTOCOL {
        return Err(ModbusError::Answer("protocol"));
    }
    if header[6] != settings.unit {
        return Err(ModbusError::Answer("unit"));
    }
    if function == asked | 0x80 {
        return Err(ModbusError::Exception { code: detail });
    }
    if function != asked {
        return Err(ModbusError::Answer("function"));
    }
    if usize::from(detail) != bytes || header[4..6] != (bytes as u16 + 3).to_be_bytes() {
        return Err(ModbusError::Answer("length"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_request_of_the_standard() {
        // Modbus application protocol 1.1b3, 6.3: read registers 108 and 109.
        let settings = ModbusConfig {
            unit: 17,
            table: RegisterTable::Holding,
            register: 107,
            number: RegisterNumber::F32,
            ..Default::default()
        };
        assert_eq!(request(9, &settings), [0, 9, 0, 0, 0, 6, 17, 3, 0, 107, 0, 2]);
    }

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
    fn refusals_are_named() {
        let refused = [0, 1, 0, 0, 0, 3, 1, 0x84, 2];
        let error = decode(&refused, 1, &ModbusConfig::default()).unwrap_err();
        assert!(error.to_string().contains("no such register"), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_number_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            for number in [RegisterNumber::U16, RegisterNumber::F32, RegisterNumber::F64] {
                let _ = decode(&bytes, 1, &ModbusConfig { number, ..Default::default() });
            }
        }

        #[test]
        fn a_right_answer_is_read_and_a_wrong_byte_in_its_head_noticed(value: u32, at in 0usize..FIRST_BYTES, flip in 1u8..) {
            let settings = ModbusConfig { number: RegisterNumber::U32, ..Default::default() };
            let answer = [&[0, 1, 0, 0, 0, 7, 1, 4, 4][..], &value.to_be_bytes()].concat();
            prop_assert_eq!(decode(&answer, 1, &settings).unwrap(), f64::from(value));
            let mut wrong = answer;
            wrong[at] ^= flip;
            prop_assert!(decode(&wrong, 1, &settings).is_err());
        }
    }
}
