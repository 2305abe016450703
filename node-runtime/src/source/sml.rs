//! An electricity meter that sends SML telegrams (BSI TR-03109), through an optical head or TCP.
#![cfg(feature = "sml")]

mod telegram;
mod values;

use std::path::PathBuf;

pub use self::telegram::SmlTelegrams;
use super::intake::Intake;
use super::meter_line::{LineConfig, MeterLine, check_baud};
use super::obis::ObisCode;
use super::serial::SerialFormat;
use super::{Source, SourceContext, SourceError, SourceKind, now_ms};
use crate::config::section::section;
use crate::reading::{InputBatch, Reading};

section! {
    /// A meter that sends SML, and the value of a telegram that is the reading.
    pub struct SmlConfig {
        /// The serial device of the optical head, 8N1; "" if an address is given.
        pub device: PathBuf = PathBuf::new() => "\"/dev/ttyUSB0\"",
        /// HOST:PORT of a gateway that forwards telegrams; "" if a device is given.
        pub address: String = String::new(),
        /// Speed of the serial line.
        pub baud: u32 = 9600,
        /// The value, in kW or kWh: power taken from the grid, negative where it is fed in.
        pub obis: String = "1-0:16.7.0".into(),
        /// A value that is subtracted; "" for none.
        pub obis_minus: String = String::new(),
    }
}

impl SourceKind for SmlConfig {
    fn check(&self) -> Result<(), String> {
        self.line().check()?;
        check_baud(self.baud)?;
        ObisCode::check("obis", &self.obis, false)?;
        ObisCode::check("obis_minus", &self.obis_minus, true)
    }

    fn place(&self) -> String {
        self.line().place()
    }

    fn open(&self, _context: &SourceContext<'_>) -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(Sml::open(self.clone())?))
    }
}

impl SmlConfig {
    fn line(&self) -> LineConfig<'_> {
        LineConfig { device: &self.device, address: &self.address }
    }
}

/// The telegrams of a meter.
#[derive(Debug)]
pub struct Sml {
    settings: SmlConfig,
    line: MeterLine,
    telegrams: SmlTelegrams,
    intake: Intake,
}

impl Sml {
    /// Opens the device or connects to the gateway.
    pub fn open(settings: SmlConfig) -> Result<Self, SourceError> {
        let line = MeterLine::listen(settings.line(), SerialFormat::eight_bits(settings.baud))?;
        Ok(Self { settings, line, telegrams: SmlTelegrams::default(), intake: Intake::default() })
    }
}

impl Source for Sml {
    fn read(&mut self, count: usize) -> Result<InputBatch, SourceError> {
        let mut block = [0; 2048];
        self.telegrams.push(self.line.read_unless_silent(&mut block)?);
        let mut readings = Vec::new();
        while readings.len() < count {
            let damaged = self.telegrams.damaged();
            let telegram = self.telegrams.take();
            for _ in damaged..self.telegrams.damaged() {
                let reason = "a damaged telegram; align the optical head, or shorten the cable";
                self.intake.add_malformed(|| reason.into());
            }
            let Some(telegram) = telegram else { break };
            readings.extend(self.intake.record(|| text(&telegram), reading(&telegram, &self.settings)));
        }
        Ok(InputBatch::Readings(readings))
    }

    fn intake(&self) -> Option<&Intake> {
        Some(&self.intake)
    }
}

/// The reading of the present moment in the content of a telegram, or the reason why there is none.
///
/// The meter's own time is a count of seconds since it was installed.
pub fn reading(telegram: &[u8], settings: &SmlConfig) -> Result<Reading, String> {
    let value = values::read(telegram).difference(&settings.obis, &settings.obis_minus)?;
    Ok(Reading { time_ms: now_ms(), value })
}

/// The values of a telegram.
fn text(telegram: &[u8]) -> String {
    values::read(telegram).to_string()
}
