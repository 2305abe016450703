//! Base32 (RFC 4648, without padding): capitals and digits, which QR codes store compactly and people can read out.

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The text of `bytes`.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    let (mut bits, mut count) = (0u32, 0);
    for byte in bytes {
        bits = bits << 8 | u32::from(*byte);
        count += 8;
        while count >= 5 {
            count -= 5;
            text.push(char::from(ALPHABET[(bits >> count & 31) as usize]));
        }
        bits &= (1 << count) - 1;
    }
    if count > 0 {
        text.push(char::from(ALPHABET[(bits << (5 - count) & 31) as usize]));
    }
    text
}

/// The bytes of a text in either case; none for anything that [`encode`] does not write.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 5 / 8);
    let (mut bits, mut count) = (0u32, 0);
    for letter in text.bytes() {
        let value = ALPHABET.iter().position(|known| *known == letter.to_ascii_uppercase())?;
        bits = bits << 5 | value as u32;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
        bits &= (1 << count) - 1;
    }
    // Fewer bits than a letter are left, and none of them set.
    (count < 5 && bits == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers_of_the_standard() {
        let vectors = [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foo", "MZXW6"),
            ("foob", "MZXW6YQ"),
            ("fooba", "MZXW6YTB"),
        ];
        for (plain, text) in vectors {
            assert_eq!(encode(plain.as_bytes()), text);
            assert_eq!(decode(&text.to_lowercase()).as_deref(), Some(plain.as_bytes()));
        }
        for wrong in ["M", "MZ1Q", "MZ Q", "MZXR", "É"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
