//! Checksums of telegrams: cyclic redundancy checks of 16 bits, least significant bit first.
#![allow(dead_code, reason = "a program may be built without the sources that need it")]

/// x¹⁶ + x¹⁵ + x² + 1, of DSMR and Modbus.
const ARC: u16 = 0xa001;
/// x¹⁶ + x¹² + x⁵ + 1, of HDLC and SML.
const CCITT: u16 = 0x8408;

/// CRC-16/ARC, of DSMR.
pub(super) fn arc(bytes: &[u8]) -> u16 {
    crc16(ARC, 0, bytes)
}

/// CRC-16/MODBUS.
pub(super) fn modbus(bytes: &[u8]) -> u16 {
    crc16(ARC, u16::MAX, bytes)
}

/// CRC-16/X-25, of SML.
pub(super) fn x25(bytes: &[u8]) -> u16 {
    !crc16(CCITT, u16::MAX, bytes)
}

fn crc16(polynomial: u16, initial: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(initial, |crc, byte| {
        (0..8).fold(
            crc ^ u16::from(*byte),
            |crc, _| {
                if crc & 1 == 1 { (crc >> 1) ^ polynomial } else { crc >> 1 }
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_values_of_the_catalogue() {
        let check = b"123456789";
        assert_eq!((arc(check), modbus(check), x25(check)), (0xbb3d, 0x4b37, 0x906e));
    }
}
