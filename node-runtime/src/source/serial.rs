//! A serial line as a file, raw.
#![cfg(feature = "serial")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::termios::{self, ControlModes, OptionalActions, QueueSelector, SpecialCodeIndex};
use serde::{Deserialize, Serialize};

/// Speed and form of a character, with one stop bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SerialFormat {
    pub(super) baud: u32,
    pub(super) has_seven_bits: bool,
    pub(super) parity: SerialParity,
}

/// Parity bit of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SerialParity {
    /// There is none.
    None,
    /// The number of ones is even.
    Even,
    /// The number of ones is odd.
    Odd,
}

impl SerialFormat {
    /// Eight bits without parity.
    pub(super) fn eight_bits(baud: u32) -> Self {
        Self { baud, has_seven_bits: false, parity: SerialParity::None }
    }

    /// Seven bits with even parity, of IEC 62056-21.
    pub(super) fn seven_bits(baud: u32) -> Self {
        Self { baud, has_seven_bits: true, parity: SerialParity::Even }
    }
}

/// Opens the line; a read returns nothing after `timeout`, in tenths of a second up to 25.5 s.
pub(super) fn open(path: &Path, format: SerialFormat, timeout: Duration) -> io::Result<File> {
    // Without NONBLOCK, the open blocks on a line without carrier.
    let flags = (OFlags::NOCTTY | OFlags::NONBLOCK).bits() as i32;
    let line = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
    let mut settings = termios::tcgetattr(&line)?;
    settings.make_raw();
    settings.set_speed(format.baud)?;
    let modes = &mut settings.control_modes;
    *modes |= ControlModes::CLOCAL | ControlModes::CREAD;
    *modes &= !(ControlModes::CSTOPB | ControlModes::CRTSCTS | ControlModes::CSIZE);
    *modes |= if format.has_seven_bits { ControlModes::CS7 } else { ControlModes::CS8 };
    modes.set(ControlModes::PARENB, format.parity != SerialParity::None);
    modes.set(ControlModes::PARODD, format.parity == SerialParity::Odd);
    settings.special_codes[SpecialCodeIndex::VMIN] = 0;
    settings.special_codes[SpecialCodeIndex::VTIME] =
        u8::try_from(timeout.as_millis() / 100).unwrap_or(u8::MAX);
    termios::tcsetattr(&line, OptionalActions::Now, &settings)?;
    fcntl_setfl(&line, fcntl_getfl(&line)? & !OFlags::NONBLOCK)?;
    Ok(line)
}

/// Changes the speed once all that was written is sent.
pub(super) fn set_baud(line: &File, baud: u32) -> io::Result<()> {
    termios::tcdrain(line)?;
    let mut settings = termios::tcgetattr(line)?;
    settings.set_speed(baud)?;
    Ok(termios::tcsetattr(line, OptionalActions::Now, &settings)?)
}

/// Discards what was received and not read yet.
pub(super) fn discard_input(line: &File) -> io::Result<()> {
    Ok(termios::tcflush(line, QueueSelector::IFlush)?)
}
