//! A serial line as a file: 115200 baud, 8 bits, no parity, one stop bit, raw.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::termios::{self, ControlModes, OptionalActions, SpecialCodeIndex};

const BAUD: u32 = 115_200;

/// Opens the line; a read returns nothing after `timeout`, in tenths of a second up to 25.5 s.
pub(super) fn open(path: &Path, timeout: Duration) -> io::Result<File> {
    // Without NONBLOCK, the open blocks on a line without carrier.
    let flags = (OFlags::NOCTTY | OFlags::NONBLOCK).bits() as i32;
    let line = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let mut settings = termios::tcgetattr(&line)?;
    settings.make_raw();
    settings.set_speed(BAUD)?;
    settings.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
    settings.control_modes &= !(ControlModes::CSTOPB | ControlModes::CRTSCTS);
    settings.special_codes[SpecialCodeIndex::VMIN] = 0;
    settings.special_codes[SpecialCodeIndex::VTIME] =
        u8::try_from(timeout.as_millis() / 100).unwrap_or(u8::MAX);
    termios::tcsetattr(&line, OptionalActions::Now, &settings)?;
    fcntl_setfl(&line, fcntl_getfl(&line)? & !OFlags::NONBLOCK)?;
    Ok(line)
}
