//! A serial line or a TCP connection to a meter.
#![cfg(feature = "serial")]
#![allow(dead_code, reason = "a program may be built without the sources that need it")]

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::serial::{self, SerialFormat};
use super::{READ_TIMEOUT, SourceError, tcp};

/// A line of a meter that sends by itself is opened again after this silence.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The device or address of a line, as configured: one of them is empty.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineConfig<'a> {
    pub(super) device: &'a Path,
    pub(super) address: &'a str,
}

impl LineConfig<'_> {
    /// The mistake of a configuration that names none of them or both, with the remedy.
    pub(super) fn check(self) -> Result<(), String> {
        match (self.device.as_os_str().is_empty(), self.address.is_empty()) {
            (true, true) => {
                Err("source.device is missing; name the serial device, or an address HOST:PORT".into())
            }
            (false, false) => Err("source.device and source.address exclude each other; keep one".into()),
            _ => Ok(()),
        }
    }

    /// The device or address.
    pub(super) fn place(self) -> String {
        if self.address.is_empty() { self.device.display().to_string() } else { self.address.to_owned() }
    }

    /// Opens the device, with characters of this format, or connects to the address. A read waits for `wait`.
    pub(super) fn open(self, format: SerialFormat, wait: Duration) -> Result<MeterLine, SourceError> {
        let stream = if self.address.is_empty() {
            serial::open(self.device, format, wait).map(LineStream::Serial)
        } else {
            tcp::connect(self.address, wait).map(LineStream::Tcp)
        };
        let name = if self.address.is_empty() { self.device.into() } else { PathBuf::from(self.address) };
        match stream {
            Ok(stream) => Ok(MeterLine { name, stream, last_data: Instant::now() }),
            Err(cause) => Err(SourceError::File { path: name, cause }),
        }
    }
}

/// A check of the speed of a serial line.
pub(super) fn check_baud(baud: u32) -> Result<(), String> {
    match baud {
        50..=4_000_000 => Ok(()),
        _ => Err(format!("source.baud = {baud}; the usual ones are 300, 9600 and 115200")),
    }
}

/// An open line.
#[derive(Debug)]
pub(super) struct MeterLine {
    name: PathBuf,
    stream: LineStream,
    last_data: Instant,
}

#[derive(Debug)]
enum LineStream {
    Serial(File),
    Tcp(TcpStream),
}

impl MeterLine {
    /// Opens a line to a meter that sends by itself.
    pub(super) fn listen(line: LineConfig<'_>, format: SerialFormat) -> Result<Self, SourceError> {
        line.open(format, READ_TIMEOUT)
    }

    /// The bytes that came within the wait of the line, none if nothing came.
    pub(super) fn read<'a>(&mut self, block: &'a mut [u8]) -> Result<&'a [u8], SourceError> {
        let read = match &mut self.stream {
            LineStream::Serial(file) => file.read(block),
            LineStream::Tcp(stream) => match stream.read(block) {
                Ok(0) => {
                    Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the gateway closed the connection"))
                }
                other => other,
            },
        };
        let count = match read {
            Ok(count) => count,
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => 0,
                _ => return Err(self.failed(error)),
            },
        };
        if count > 0 {
            self.last_data = Instant::now();
        }
        Ok(&block[..count])
    }

    /// As [`read`](Self::read); an error after a long silence.
    pub(super) fn read_unless_silent<'a>(&mut self, block: &'a mut [u8]) -> Result<&'a [u8], SourceError> {
        let bytes = self.read(block)?;
        if self.last_data.elapsed() > SILENCE_MAX {
            let sentence = "no data from the meter; check the cable, the optical head and the speed";
            return Err(self.failed(io::Error::new(io::ErrorKind::TimedOut, sentence)));
        }
        Ok(bytes)
    }

    /// Writes all bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), SourceError> {
        match &mut self.stream {
            LineStream::Serial(file) => file.write_all(bytes),
            LineStream::Tcp(stream) => stream.write_all(bytes),
        }
        .map_err(|error| self.failed(error))
    }

    /// Changes the speed of a serial line; the gateway of a connection has its own.
    pub(super) fn set_baud(&mut self, baud: u32) -> Result<(), SourceError> {
        match &self.stream {
            LineStream::Serial(file) => serial::set_baud(file, baud).map_err(|error| self.failed(error)),
            LineStream::Tcp(_) => Ok(()),
        }
    }

    /// Discards what was received and not read yet.
    pub(super) fn discard_input(&mut self) -> Result<(), SourceError> {
        match &mut self.stream {
            LineStream::Serial(file) => serial::discard_input(file).map_err(|error| self.failed(error)),
            LineStream::Tcp(_) => Ok(()),
        }
    }

    pub(super) fn is_serial(&self) -> bool {
        matches!(self.stream, LineStream::Serial(_))
    }

    pub(super) fn failed(&self, cause: io::Error) -> SourceError {
        SourceError::File { path: self.name.clone(), cause }
    }
}
