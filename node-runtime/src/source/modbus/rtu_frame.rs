//! Frames of Modbus RTU, on serial lines.

use super::{ModbusError, RegisterRequest};
use crate::source::crc16;

/// Unit, function, and number of bytes or exception.
pub(super) const HEAD_BYTES: usize = 3;
pub(super) const CHECKSUM_BYTES: usize = 2;

/// The frame of a request.
pub(super) fn frame(request: &RegisterRequest) -> Vec<u8> {
    let body = request.body();
    [&body[..], &crc16::modbus(&body).to_le_bytes()].concat()
}

/// The bytes of the registers in a meter's whole answer.
pub fn registers<'a>(answer: &'a [u8], request: &RegisterRequest) -> Result<&'a [u8], ModbusError> {
    let (checked, checksum) =
        answer.split_last_chunk::<CHECKSUM_BYTES>().ok_or(ModbusError::Answer("length"))?;
    if crc16::modbus(checked) != u16::from_le_bytes(*checksum) {
        return Err(ModbusError::Answer("checksum"));
    }
    let (head, registers) = checked.split_first_chunk().ok_or(ModbusError::Answer("length"))?;
    match request.bytes_to_follow(*head)? {
        length if length == registers.len() => Ok(registers),
        _ => Err(ModbusError::Answer("length")),
    }
}

/// Length of the answer that begins with `head`; that of a refusal if it is none of the expected ones.
pub(super) fn length(head: [u8; HEAD_BYTES], request: &RegisterRequest) -> usize {
    HEAD_BYTES + request.bytes_to_follow(head).unwrap_or(0) + CHECKSUM_BYTES
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::source::modbus::RegisterTable;
    use proptest::prelude::*;

    /// A request that many manuals print, with its answer: three holding registers from 107 of unit 17.
    const REQUEST: RegisterRequest =
        RegisterRequest { unit: 0x11, table: RegisterTable::Holding, first: 0x6b, count: 3 };
    const ANSWER: [u8; 11] = [0x11, 3, 6, 0xae, 0x41, 0x56, 0x52, 0x43, 0x40, 0x49, 0xad];

    #[test]
    fn frames_of_the_manuals() {
        assert_eq!(frame(&REQUEST), [0x11, 3, 0, 0x6b, 0, 3, 0x76, 0x87]);
        assert_eq!(registers(&ANSWER, &REQUEST).unwrap(), [0xae, 0x41, 0x56, 0x52, 0x43, 0x40]);
        assert_eq!(length([0x11, 3, 6], &REQUEST), ANSWER.len());
        let refused = [0x11, 0x83, 2, 0xc1, 0x34];
        assert_eq!(length([0x11, 0x83, 2], &REQUEST), refused.len());
        assert!(matches!(registers(&refused, &REQUEST), Err(ModbusError::Exception { code: 2 })));
    }

    proptest! {
        #[test]
        fn any_bytes_are_registers_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..20), at in 0..ANSWER.len(), flip in 1u8..) {
            let _ = registers(&bytes, &REQUEST);
            let mut wrong = ANSWER;
            wrong[at] ^= flip;
            prop_assert!(registers(&wrong, &REQUEST).is_err());
        }
    }
}
