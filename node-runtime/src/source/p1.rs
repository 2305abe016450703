//! Telegrams of a smart meter's P1 port (DSMR 4 and 5), over a serial line or TCP.
#![cfg(feature = "p1")]

mod serial;
mod telegram;

use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

pub use self::telegram::{Telegrams, reading};
use super::{READ_TIMEOUT, Source, SourceContext, SourceError, SourceKind, tcp};
use crate::config::section::section;
use crate::reading::InputBatch;

/// A meter sends every second or every ten; after this silence the line is opened again.
const SILENCE_MAX: Duration = Duration::from_secs(60);

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
        match (self.device.as_os_str().is_empty(), self.address.is_empty()) {
            (true, true) => {
                Err("source.device is missing; name the serial device, or an address HOST:PORT".into())
            }
            (false, false) => Err("source.device and source.address exclude each other; keep one".into()),
            _ if self.obis.is_empty() => Err("source.obis is empty; the usual one is \"1-0:1.7.0\"".into()),
            _ => Ok(()),
        }
    }

    fn open(&self, _context: &SourceContext<'_>) -> Result<Box<dyn Source>, SourceError> {
        Ok(Box::new(P1::open(self.clone())?))
    }
}

impl P1Config {
    fn name(&self) -> PathBuf {
        if self.address.is_empty() { self.device.clone() } else { PathBuf::from(&self.address) }
    }
}

/// A P1 port.
pub struct P1 {
    settings: P1Config,
    stream: Box<dyn Read + Send>,
    telegrams: Telegrams,
    silence: Duration,
    malformed: u64,
}

impl P1 {
    /// Opens the device or connects to the gateway.
    pub fn open(settings: P1Config) -> Result<Self, SourceError> {
        let stream = open(&settings).map_err(|cause| SourceError::File { path: settings.name(), cause })?;
        Ok(Self { settings, stream, telegrams: Telegrams::default(), silence: Duration::ZERO, malformed: 0 })
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut block = [0; 2048];
        let count = match self.stream.read(&mut block) {
            Ok(0) if !self.settings.address.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => 0,
                _ => return Err(error),
            },
        };
        self.silence = if count == 0 { self.silence + READ_TIMEOUT } else { Duration::ZERO };
        if self.silence > SILENCE_MAX {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "no data from the meter; check the cable and the speed",
            ));
        }
        self.telegrams.push(&block[..count]);
        Ok(())
    }
}

impl Source for P1 {
    fn read(&mut self, count: usize) -> Result<InputBatch, SourceError> {
        self.fill().map_err(|cause| SourceError::File { path: self.settings.name(), cause })?;
        let mut readings = Vec::new();
        while readings.len() < count
            && let Some(telegram) = self.telegrams.take()
        {
            match reading(&telegram, &self.settings) {
                Some(reading) => readings.push(reading),
                None => self.malformed += 1,
            }
        }
        Ok(InputBatch::Readings(readings))
    }

    fn malformed(&self) -> u64 {
        self.malformed + self.telegrams.dropped()
    }
}

fn open(settings: &P1Config) -> io::Result<Box<dyn Read + Send>> {
    if settings.address.is_empty() {
        return Ok(Box::new(serial::open(&settings.device, READ_TIMEOUT)?));
    }
    Ok(Box::new(tcp::connect(&settings.address, READ_TIMEOUT)?))
}
