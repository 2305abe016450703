//! Requests for registers, and what is common to their answers on all channels.

use std::io;

use super::RegisterTable;

/// Registers that one request may ask for.
pub(in crate::source) const REGISTERS_MAX: u16 = 125;
/// Added to the function of a refusal.
const REFUSAL: u8 = 0x80;

/// A request for successive registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterRequest {
    /// The unit behind a gateway or on a serial line.
    pub unit: u8,
    /// Their table.
    pub table: RegisterTable,
    /// The address of the first, counted from 0.
    pub first: u16,
    /// Their number, 1 to 125.
    pub count: u16,
}

/// Error of a meter.
#[derive(Debug, thiserror::Error)]
pub enum ModbusError {
    /// The connection fails.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The meter refuses.
    #[error("the meter answers with exception {code} ({})", exception(*code))]
    Exception {
        /// Its code.
        code: u8,
    },
    /// The answer does not belong to the request, or is malformed.
    #[error("the meter's answer does not fit the request: wrong {0}")]
    Answer(&'static str),
}

fn exception(code: u8) -> &'static str {
    match code {
        1 => "it does not know this function; try the other table",
        2 => "it has no such register",
        3 => "it does not accept this many registers",
        4 => "it failed",
        6 => "it is busy",
        10 | 11 => "the gateway does not reach it; check the unit",
        _ => "unknown",
    }
}

impl RegisterRequest {
    /// Unit, function, first register and their number.
    pub(super) fn body(&self) -> [u8; 6] {
        let ([first, second], [high, low]) = (self.first.to_be_bytes(), self.count.to_be_bytes());
        [self.unit, self.table.function(), first, second, high, low]
    }

    /// Bytes of the registers that must follow `head`: the answer's unit, function, and number of bytes or exception.
    pub(super) fn bytes_to_follow(&self, head: [u8; 3]) -> Result<usize, ModbusError> {
        let ([unit, function, detail], asked) = (head, self.table.function());
        let bytes = 2 * usize::from(self.count);
        if unit != self.unit {
            return Err(ModbusError::Answer("unit"));
        }
        if function == asked | REFUSAL {
            return Err(ModbusError::Exception { code: detail });
        }
        if function != asked {
            return Err(ModbusError::Answer("function"));
        }
        if usize::from(detail) != bytes {
            return Err(ModbusError::Answer("length"));
        }
        Ok(bytes)
    }
}
