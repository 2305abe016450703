//! Telegrams of a smart meter's P1 port (DSMR 4 and 5), over a serial line or TCP.

mod telegram;

use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::telegram::{Telegrams, reading};
use super::{PATIENCE, Source, SourceError, serial, tcp};
use crate::reading::Intake;

/// A meter speaks every second or every ten; after so long a silence the line is opened anew.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Where the telegrams come from and which of their values is the reading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct P1Settings {
    /// The serial device, 115200 8N1; empty if `address` is used.
    pub device: PathBuf,
    /// `HOST:PORT` of a gateway that passes telegrams on; empty if `device` is used.
    pub address: String,
    /// The value that is the reading: power taken from the grid, in kW.
    pub obis: String,
    /// The value that is subtracted from it, e.g. `1-0:2.7.0`, the power fed into the grid; empty for none.
    pub obis_minus: String,
    /// Whether telegrams without a checksum, as DSMR 2 and 3 have them, are believed.
    pub accept_unchecked: bool,
}

impl Default for P1Settings {
    fn default() -> Self {
        Self {
            device: PathBuf::new(),
            address: String::new(),
            obis: "1-0:1.7.0".into(),
            obis_minus: String::new(),
            accept_unchecked: false,
        }
    }
}

impl P1Settings {
    /// The first setting that makes no sense, with the remedy.
    pub fn check(&self) -> Result<(), String> {
        match (self.device.as_os_str().is_empty(), self.address.is_empty()) {
            (true, true) => {
                Err("source.device is missing; name the serial device, or an address HOST:PORT".into())
            }
            (false, false) => Err("source.device and source.address exclude each other; keep one".into()),
            _ if self.obis.is_empty() => Err("source.obis is empty; the usual one is \"1-0:1.7.0\"".into()),
            _ => Ok(()),
        }
    }

    fn name(&self) -> PathBuf {
        if self.address.is_empty() { self.device.clone() } else { PathBuf::from(&self.address) }
    }
}

/// A P1 port.
pub struct P1 {
    settings: P1Settings,
    stream: Box<dyn Read + Send>,
    telegrams: Telegrams,
    silence: Duration,
    malformed: u64,
}

impl P1 {
    /// Opens the device or connects to the gateway.
    pub fn open(settings: P1Settings) -> Result<Self, SourceError> {
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
        self.silence = if count == 0 { self.silence + PATIENCE } else { Duration::ZERO };
        if self.silence > SILENCE_MAX {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the meter is silent; check the cable and the speed",
            ));
        }
        self.telegrams.push(&block[..count]);
        Ok(())
    }
}

impl Source for P1 {
    fn read(&mut self, count: usize) -> Result<Intake, SourceError> {
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
        Ok(Intake::Readings(readings))
    }

    fn malformed(&self) -> u64 {
        self.malformed + self.telegrams.dropped()
    }
}

fn open(settings: &P1Settings) -> io::Result<Box<dyn Read + Send>> {
    if settings.address.is_empty() {
        return Ok(Box::new(serial::open(&settings.device, PATIENCE)?));
    }
    Ok(Box::new(tcp::connect(&settings.address, PATIENCE)?))
}
