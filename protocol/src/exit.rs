//! The programs' last word to the shell: one set of exit codes for node, coordinator and fleet.
//!
//! The numbers are those of `sysexits.h`, so that service managers and scripts know them.

/// How a program ended.
///
/// `std::process::ExitCode::from(u8::from(exit))` hands it to the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Exit {
    /// It did what was asked.
    Ok = 0,
    /// The command line cannot be understood or contradicts itself.
    Usage = 64,
    /// An input file is not what it should be.
    Data = 65,
    /// The broker cannot be reached, or refuses us.
    Broker = 69,
    /// A defect of the program itself.
    Software = 70,
    /// Somebody else is at it; try again later.
    Busy = 75,
    /// The configuration file is wrong.
    Config = 78,
    /// Stopped by Ctrl-C, as shells count it: 128 + SIGINT.
    Interrupted = 130,
}

/// Whether all that failed is that nobody reads stdout any more: `head` has read enough, and nothing went wrong.
#[cfg(feature = "std")]
pub fn is_reader_gone(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::BrokenPipe
}

impl From<Exit> for u8 {
    fn from(exit: Exit) -> u8 {
        exit as u8
    }
}
