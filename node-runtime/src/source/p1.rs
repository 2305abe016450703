//! Telegrams of a smart meter's P1 port (DSMR 4 and 5), over a serial line or TCP.
#![cfg(feature = "p1")]

mod telegram;

use std::path::PathBuf;

pub use self::telegram::reading;
use super::intake::Intake;
use super::meter_line::{LineConfig, MeterLine};
use super::serial::SerialFormat;
pub use super::telegrams::Telegrams;
use super::{Source, SourceContext, SourceError, SourceKind};
use crate::config::section::section;
use crate::reading::InputBatch;

const BAUD: u32 = 115_200;

section! {
    /// A P1 port and the value of a telegram that is the reading.
    pub struct P1Config {
        /// The serial device, 115200 8N1; "" if an address is given.
        pub device: PathBuf = PathBuf::new() => "\"/dev/ttyUSB0\"",
        /// HOST:PORT of a gateway that forwards telegrams; "" if a device is given.
        pub address: String = String::new(),
        /// The value: power taken from the grid, in kW.
        pub obis: String = "1-0:1.7.0".into(),
        /// A value that is subtracted, e.g. "1-0:2.7.0": power fed into the grid; "" for none.
        pub obis_minus: String = String::new(),
        /// Accept telegrams without checksum, as of DSMR 2 and 3.
        pub accept_unchecked: bool = false,
    }
}

impl SourceKind for P1Config {
    fn check(&self) -> Result<(), String> {
        self.line().check()?;
        if self.obis.is_empty() {
            return Err("source.obis is empty; the usual one is \"1-0:1.7.0\"".into());
        }
        Ok(())
    }

    fn place(&self) -> String {
        self.line().place()
    }

    fn open(&self, _context: &SourceContext<'_>) -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(P1::open(self.clone())?))
    }
}

impl P1Config {
    fn line(&self) -> LineConfig<'_> {
        LineConfig { device: &self.device, address: &self.address }
    }
}

/// A P1 port.
#[derive(Debug)]
pub struct P1 {
    settings: P1Config,
    line: MeterLine,
    telegrams: Telegrams,
    intake: Intake,
}

impl P1 {
    /// Opens the device or connects to the gateway.
    pub fn open(settings: P1Config) -> Result<Self, SourceError> {
        let line = MeterLine::listen(settings.line(), SerialFormat::eight_bits(BAUD))?;
        Ok(Self { settings, line, telegrams: Telegrams::default(), intake: Intake::default() })
    }
}

impl Source for P1 {
    fn read(&mut self, count: usize) -> Result<InputBatch, SourceError> {
        let mut block = [0; 2048];
        self.telegrams.push(self.line.read_unless_silent(&mut block)?);
        let mut readings = Vec::new();
        while readings.len() < count {
            let dropped = self.telegrams.dropped();
            let telegram = self.telegrams.take();
            self.intake.dropped(dropped, self.telegrams.dropped());
            let Some(telegram) = telegram else { break };
            let text = || String::from_utf8_lossy(&telegram).into_owned();
            readings.extend(self.intake.record(text, reading(&telegram, &self.settings)));
        }
        Ok(InputBatch::Readings(readings))
    }

    fn intake(&self) -> Option<&Intake> {
        Some(&self.intake)
    }
}
