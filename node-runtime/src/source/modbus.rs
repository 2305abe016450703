//! A register of a meter, read over Modbus TCP or Modbus RTU.
#![cfg(feature = "modbus")]

mod client;
mod number;
mod request;
mod rtu_frame;
mod tcp_frame;

use std::path::PathBuf;

pub(super) use self::client::ModbusClient;
pub use self::number::{RegisterNumber, RegisterTable, WordOrder};
pub(super) use self::request::REGISTERS_MAX;
pub use self::request::{ModbusError, RegisterRequest};
pub use self::rtu_frame::registers as rtu_registers;
pub use self::tcp_frame::registers as tcp_registers;
use super::meter_line::{LineConfig, check_baud};
use super::poll_schedule::{PollSchedule, check_interval};
use super::serial::{SerialFormat, SerialParity};
use super::{Intake, Source, SourceContext, SourceError, SourceKind, now_ms};
use crate::config::section::section;
use crate::reading::{InputBatch, Reading};

section! {
    /// A register of a meter and the meaning of its bits.
    pub struct ModbusConfig {
        /// HOST:PORT of the meter or gateway; "" if a device is given.
        pub address: String = String::new() => "\"192.168.1.20:502\"",
        /// The serial device, for Modbus RTU; "" if an address is given.
        pub device: PathBuf = PathBuf::new(),
        /// Speed of the serial line.
        pub baud: u32 = 9600,
        /// Parity on the serial line: "none", "even" or "odd".
        pub parity: SerialParity = SerialParity::None,
        /// The unit behind a gateway or on the serial line.
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
        match (self.address.is_empty(), self.device.as_os_str().is_empty()) {
            (true, true) => {
                return Err(
                    "source.address is missing; write HOST:PORT, e.g. \"192.168.1.20:502\", or name a serial device"
                        .into(),
                );
            }
            _ => self.line().check()?,
        }
        check_baud(self.baud)?;
        check_interval(self.interval_s)?;
        if !(self.scale.is_finite() && self.offset.is_finite()) {
            return Err("source.scale and source.offset must be finite".into());
        }
        Ok(())
    }

    fn place(&self) -> String {
        self.line().place()
    }

    fn open(&self, _context: &SourceContext<'_>) -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(Modbus::open(self.clone())?))
    }
}

impl ModbusConfig {
    fn line(&self) -> LineConfig<'_> {
        LineConfig { device: &self.device, address: &self.address }
    }

    fn request(&self) -> RegisterRequest {
        let Self { unit, table, register, .. } = *self;
        RegisterRequest { unit, table, first: register, count: self.number.words() }
    }

    /// The reading in the bytes of the registers, or the reason why there is none.
    pub fn reading(&self, registers: &[u8]) -> Result<Reading, String> {
        let number =
            self.number.read(registers, self.word_order).ok_or("it has another number of registers")?;
        let value = number * self.scale + self.offset;
        if !value.is_finite() {
            return Err(format!(
                "as {:?} with source.word_order it is no number; check source.number and source.word_order",
                self.number
            ));
        }
        Ok(Reading { time_ms: now_ms(), value })
    }
}

/// A connection to a meter.
#[derive(Debug)]
pub struct Modbus {
    settings: ModbusConfig,
    client: ModbusClient,
    schedule: PollSchedule,
    intake: Intake,
}

impl Modbus {
    /// Connects, or opens the device.
    pub fn open(settings: ModbusConfig) -> Result<Self, SourceError> {
        let format = SerialFormat { parity: settings.parity, ..SerialFormat::eight_bits(settings.baud) };
        let client = ModbusClient::open(settings.line(), format)?;
        let schedule = PollSchedule::every(settings.interval_s);
        Ok(Self { settings, client, schedule, intake: Intake::default() })
    }
}

impl Source for Modbus {
    fn read(&mut self, _count: usize) -> Result<InputBatch, SourceError> {
        if !self.schedule.wait() {
            return Ok(InputBatch::Readings(Vec::new()));
        }
        let registers = self.client.read(&self.settings.request())?;
        self.schedule.done();
        let text = || {
            let words: Vec<String> = registers
                .as_chunks()
                .0
                .iter()
                .map(|word| format!("{:04x}", u16::from_be_bytes(*word)))
                .collect();
            format!("registers {}", words.join(" "))
        };
        let reading = self.intake.record(text, self.settings.reading(&registers));
        Ok(InputBatch::Readings(reading.into_iter().collect()))
    }

    fn intake(&self) -> Option<&Intake> {
        Some(&self.intake)
    }
}
