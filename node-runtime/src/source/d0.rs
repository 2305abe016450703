//! An electricity meter with the interface D0 (IEC 62056-21), through an optical head or TCP.
#![cfg(feature = "d0")]

mod readout;

use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

pub use self::readout::reading;
use super::intake::Intake;
use super::meter_line::{LineConfig, MeterLine, check_baud};
use super::obis::ObisCode;
use super::serial::SerialFormat;
pub use super::telegrams::Telegrams;
use super::{READ_TIMEOUT, Source, SourceContext, SourceError, SourceKind};
use crate::config::section::section;
use crate::reading::InputBatch;

/// Speed at which a readout begins.
const OPENING_BAUD: u32 = 300;
/// The meter with any address is asked to identify itself.
const REQUEST: &[u8] = b"/?!\r\n";
/// A meter identifies itself within this time: 1.5 s, and a line at 300 baud.
const IDENTIFICATION_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause that the standard asks for before an answer.
const REACTION: Duration = Duration::from_millis(300);
/// Pause in a readout after which it is given up.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Speeds by the letter of an identification, in mode C.
const SPEEDS: [(u8, u32); 7] =
    [(b'0', 300), (b'1', 600), (b'2', 1200), (b'3', 2400), (b'4', 4800), (b'5', 9600), (b'6', 19_200)];

section! {
    /// A meter that sends readable text, and the value of a readout that is the reading.
    pub struct D0Config {
        /// The serial device of the optical head, 7E1; "" if an address is given.
        pub device: PathBuf = PathBuf::new() => "\"/dev/ttyUSB0\"",
        /// HOST:PORT of a gateway to the head; "" if a device is given.
        pub address: String = String::new(),
        /// Ask the meter for each readout (mode C, from 300 baud on); if not, it sends by itself.
        pub request: bool = false,
        /// Seconds between two requests.
        pub interval_s: f64 = 60.0,
        /// Speed of a meter that sends by itself.
        pub baud: u32 = 9600,
        /// The value, in kW or kWh; energies are for quantity = "counter".
        pub obis: String = "1-0:1.8.0".into(),
        /// A value that is subtracted, e.g. "1-0:2.8.0": energy fed into the grid; "" for none.
        pub obis_minus: String = String::new(),
    }
}

impl SourceKind for D0Config {
    fn check(&self) -> Result<(), String> {
        self.line().check()?;
        check_baud(self.baud)?;
        if !(self.interval_s >= 1.0 && self.interval_s <= 86_400.0) {
            return Err(format!("source.interval_s = {}; choose a second up to a day", self.interval_s));
        }
        ObisCode::check("obis", &self.obis, false)?;
        ObisCode::check("obis_minus", &self.obis_minus, true)
    }

    fn place(&self) -> String {
        self.line().place()
    }

    fn open(&self, _context: &SourceContext<'_>) -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(D0::open(self.clone())?))
    }
}

impl D0Config {
    fn line(&self) -> LineConfig<'_> {
        LineConfig { device: &self.device, address: &self.address }
    }
}

/// The readouts of a meter.
#[derive(Debug)]
pub struct D0 {
    settings: D0Config,
    line: MeterLine,
    telegrams: Telegrams,
    /// What is expected of a meter that is asked.
    phase: D0Phase,
    intake: Intake,
}

/// Progress of a readout.
#[derive(Debug, Clone)]
enum D0Phase {
    /// The meter sends by itself.
    Listening,
    /// The next request is due at this time.
    Idle(Instant),
    /// The meter was asked: its identification so far, which must be complete at this time.
    Asked(Vec<u8>, Instant),
    /// The meter sends, and sent something at this time.
    Reading(Instant),
}

impl D0 {
    /// Opens the device or connects to the gateway.
    pub fn open(settings: D0Config) -> Result<Self, SourceError> {
        let baud = if settings.request { OPENING_BAUD } else { settings.baud };
        let line = MeterLine::listen(settings.line(), SerialFormat::seven_bits(baud))?;
        let phase = if settings.request { D0Phase::Idle(Instant::now()) } else { D0Phase::Listening };
        Ok(Self { settings, line, telegrams: Telegrams::default(), phase, intake: Intake::default() })
    }

    /// Takes part in the conversation until something was received, a second at most.
    fn converse(&mut self) -> Result<(), SourceError> {
        let mut block = [0; 2048];
        self.phase = match self.phase.clone() {
            D0Phase::Listening => {
                let bytes = self.line.read_unless_silent(&mut block)?;
                self.telegrams.push(&seven_bits(bytes));
                D0Phase::Listening
            }
            D0Phase::Idle(due) if due > Instant::now() => {
                thread::sleep(due.saturating_duration_since(Instant::now()).min(READ_TIMEOUT));
                D0Phase::Idle(due)
            }
            D0Phase::Idle(_) => {
                self.line.set_baud(OPENING_BAUD)?;
                self.line.discard_input()?;
                self.line.write(REQUEST)?;
                D0Phase::Asked(Vec::new(), Instant::now() + IDENTIFICATION_TIMEOUT)
            }
            D0Phase::Asked(mut line, until) => {
                line.extend(seven_bits(self.line.read(&mut block)?));
                match identification(&line) {
                    Some(speed) => {
                        self.acknowledge(speed)?;
                        self.telegrams.push(&line);
                        D0Phase::Reading(Instant::now())
                    }
                    None if Instant::now() > until => {
                        let sentence = "no identification after /?!; align the optical head, or set source.request = false \
                                        for a meter that sends by itself";
                        return Err(self.line.failed(io::Error::new(io::ErrorKind::TimedOut, sentence)));
                    }
                    None => D0Phase::Asked(line, until),
                }
            }
            D0Phase::Reading(last) => {
                let bytes = seven_bits(self.line.read(&mut block)?);
                self.telegrams.push(&bytes);
                match bytes.is_empty() {
                    true if last.elapsed() > PAUSE_MAX => {
                        let sentence = "the readout broke off; align the optical head";
                        return Err(self.line.failed(io::Error::new(io::ErrorKind::TimedOut, sentence)));
                    }
                    true => D0Phase::Reading(last),
                    false => D0Phase::Reading(Instant::now()),
                }
            }
        };
        Ok(())
    }

    /// Asks for the data block, on a serial line at the speed that the meter offers.
    fn acknowledge(&mut self, speed: u8) -> Result<(), SourceError> {
        thread::sleep(REACTION);
        let offered = SPEEDS.iter().find(|(letter, _)| *letter == speed && self.line.is_serial());
        let (letter, baud) = offered.copied().unwrap_or(SPEEDS[0]);
        self.line.write(&[6, b'0', letter, b'0', b'\r', b'\n'])?;
        self.line.set_baud(baud)
    }
}

impl Source for D0 {
    fn read(&mut self, count: usize) -> Result<InputBatch, SourceError> {
        self.converse()?;
        let mut readings = Vec::new();
        while readings.len() < count {
            let dropped = self.telegrams.dropped();
            let telegram = self.telegrams.take();
            self.intake.dropped(dropped, self.telegrams.dropped());
            let Some(telegram) = telegram else { break };
            if let D0Phase::Reading(_) = self.phase {
                self.phase =
                    D0Phase::Idle(Instant::now() + Duration::from_secs_f64(self.settings.interval_s));
            }
            let text = || String::from_utf8_lossy(&telegram).into_owned();
            readings.extend(self.intake.record(text, reading(&telegram, &self.settings)));
        }
        Ok(InputBatch::Readings(readings))
    }

    fn intake(&self) -> Option<&Intake> {
        Some(&self.intake)
    }
}

/// The bytes without their parity bit, which a line of eight bits delivers.
fn seven_bits(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| byte & 0x7f).collect()
}

/// The letter of the speed in a complete identification `/XXXZ…`.
fn identification(line: &[u8]) -> Option<u8> {
    let begin = line.windows(2).position(|pair| pair[0] == b'/' && pair[1] != b'?')?;
    let line = &line[begin..];
    line.contains(&b'\n').then(|| line.get(4).copied().unwrap_or(b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identification_is_no_echo_of_the_request() {
        assert_eq!(identification(b"/?!\r\n"), None, "many heads hear themselves");
        assert_eq!(identification(b"/?!\r\n/EMH5\\@D4EM4TIIW001--\r\n"), Some(b'5'));
        assert_eq!(identification(b"/EMH5\\@D4EM4"), None);
        assert_eq!(identification(b"/E\r\n"), Some(b'0'));
    }
}
