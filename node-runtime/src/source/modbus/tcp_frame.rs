//! Frames of Modbus TCP.

use super::{ModbusError, RegisterRequest};

/// Transaction (2), protocol (2), length (2).
const HEADER_BYTES: usize = 6;
/// The header, and the head of the answer.
pub(super) const FIRST_BYTES: usize = HEADER_BYTES + 3;
const PROTOCOL: [u8; 2] = [0, 0];

/// The frame of a request with this number.
pub(super) fn frame(transaction: u16, request: &RegisterRequest) -> Vec<u8> {
    let body = request.body();
    let length = (body.len() as u16).to_be_bytes();
    [&transaction.to_be_bytes()[..], &PROTOCOL, &length, &body].concat()
}

/// The bytes of the registers in a meter's whole answer to request number `transaction`.
pub fn registers<'a>(
    answer: &'a [u8],
    transaction: u16,
    request: &RegisterRequest,
) -> Result<&'a [u8], ModbusError> {
    let (first, registers) = answer.split_first_chunk().ok_or(ModbusError::Answer("length"))?;
    match bytes_to_follow(*first, transaction, request)? {
        length if length == registers.len() => Ok(registers),
        _ => Err(ModbusError::Answer("length")),
    }
}

/// Bytes that must follow the first nine of an answer.
pub(super) fn bytes_to_follow(
    [high, low, protocol @ .., length_high, length_low, unit, function, detail]: [u8; FIRST_BYTES],
    transaction: u16,
    request: &RegisterRequest,
) -> Result<usize, ModbusError> {
    if [high, low] != transaction.to_be_bytes() {
        return Err(ModbusError::Answer("transaction"));
    }
    if protocol != PROTOCOL {
        return Err(ModbusError::Answer("protocol"));
    }
    let bytes = request.bytes_to_follow([unit, function, detail])?;
    if usize::from(u16::from_be_bytes([length_high, length_low])) != bytes + 3 {
        return Err(ModbusError::Answer("length"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::source::modbus::RegisterTable;
    use proptest::prelude::*;

    fn two(unit: u8, table: RegisterTable) -> RegisterRequest {
        RegisterRequest { unit, table, first: 107, count: 2 }
    }

    #[test]
    fn the_request_of_the_standard() {
        // Modbus application protocol 1.1b3, 6.3: read registers 108 and 109.
        let request = two(17, RegisterTable::Holding);
        assert_eq!(frame(9, &request), [0, 9, 0, 0, 0, 6, 17, 3, 0, 107, 0, 2]);
    }

    #[test]
    fn refusals_are_named() {
        let refused = [0, 1, 0, 0, 0, 3, 1, 0x84, 2];
        let error = registers(&refused, 1, &two(1, RegisterTable::Input)).unwrap_err();
        assert!(error.to_string().contains("no such register"), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_registers_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let _ = registers(&bytes, 1, &two(1, RegisterTable::Input));
        }

        #[test]
        fn a_right_answer_is_read_and_a_wrong_byte_in_its_head_noticed(value: [u8; 4], at in 0usize..FIRST_BYTES, flip in 1u8..) {
            let request = two(1, RegisterTable::Input);
            let answer = [&[0, 1, 0, 0, 0, 7, 1, 4, 4][..], &value].concat();
            prop_assert_eq!(registers(&answer, 1, &request).unwrap(), value);
            let mut wrong = answer;
            wrong[at] ^= flip;
            prop_assert!(registers(&wrong, 1, &request).is_err());
        }
    }
}
