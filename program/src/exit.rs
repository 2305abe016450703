//! Exit codes of node, coordinator and fleet.
//!
//! The numbers are those of `sysexits.h`, so that service managers and scripts know them.

use std::process::ExitCode;

/// The result of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Exit {
    /// Success.
    Ok = 0,
    /// The command line is malformed or contradicts itself.
    Usage = 64,
    /// An input file is malformed or damaged.
    Data = 65,
    /// The broker is unreachable or refuses the connection.
    Broker = 69,
    /// A defect of the program itself.
    Software = 70,
    /// Another process holds the resource; a later attempt may succeed.
    Busy = 75,
    /// The configuration file is wrong.
    Config = 78,
    /// Stopped by Ctrl-C, as shells count it: 128 + SIGINT.
    Interrupted = 130,
}

impl From<Exit> for u8 {
    fn from(exit: Exit) -> u8 {
        exit as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(u8::from(exit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_sysexits() {
        let codes = [
            Exit::Ok,
            Exit::Usage,
            Exit::Data,
            Exit::Broker,
            Exit::Software,
            Exit::Busy,
            Exit::Config,
            Exit::Interrupted,
        ];
        assert_eq!(codes.map(u8::from), [0, 64, 65, 69, 70, 75, 78, 130]);
    }
}
