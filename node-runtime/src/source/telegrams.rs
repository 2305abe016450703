//! Telegrams of IEC 62056-21 and of DSMR, which has its form.
#![allow(dead_code, reason = "a program may be built without the sources that need it")]

/// Begins a data block.
pub(super) const STX: u8 = 2;
/// Ends a data block; a block check of one byte follows.
pub(super) const ETX: u8 = 3;
/// ETX and the check.
const BLOCK_CHECK_BYTES: usize = 2;
/// A telegram has at most a few kilobytes.
const TELEGRAM_BYTES_MAX: usize = 16 * 1024;

/// Cuts a stream into telegrams: from `/` to the line that begins with `!`, or to the block check after it.
#[derive(Debug, Default)]
pub struct Telegrams {
    buffer: Vec<u8>,
    dropped: u64,
}

impl Telegrams {
    /// Adds received bytes.
    pub fn push(&mut self, block: &[u8]) {
        self.buffer.extend_from_slice(block);
    }

    /// The next complete telegram, with its checksum.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let begin = self.buffer.iter().position(|byte| *byte == b'/').unwrap_or(self.buffer.len());
        self.buffer.drain(..begin);
        let end = self.end();
        if end.is_none() && self.buffer.len() > TELEGRAM_BYTES_MAX {
            self.dropped += 1;
            let next = self
                .buffer
                .iter()
                .skip(1)
                .rposition(|byte| *byte == b'/')
                .map_or(self.buffer.len(), |at| at + 1);
            self.buffer.drain(..next);
        }
        let rest = self.buffer.split_off(end?);
        Some(std::mem::replace(&mut self.buffer, rest))
    }

    /// Telegrams that were too long.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// End of the first telegram: after the line that begins with `!`, and after the block check if there is a data block.
    fn end(&self) -> Option<usize> {
        let last_line = self.buffer.windows(2).position(|pair| pair == b"\n!")? + 1;
        let line_end = self.buffer[last_line..].iter().position(|byte| *byte == b'\n')?;
        let end = last_line + line_end + 1;
        if !self.buffer[..end].contains(&STX) {
            return Some(end);
        }
        (self.buffer.len() >= end + BLOCK_CHECK_BYTES).then_some(end + BLOCK_CHECK_BYTES)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const P1: &[u8] = b"/ISk5\\2MT382-1000\r\n\r\n1-0:1.7.0(01.193*kW)\r\n!B0B0\r\n";
    const D0: &[u8] = b"/EMH5\\@D4EM\r\n\x021-0:1.8.0*255(000000000.0*kWh)\r\n!\r\n\x03+";

    #[test]
    fn an_endless_telegram_is_dropped() {
        let mut telegrams = Telegrams::default();
        telegrams.push(b"/endless");
        for _ in 0..100 {
            telegrams.push(&[b'x'; 1000]);
            assert_eq!(telegrams.take(), None);
            assert!(telegrams.buffer.len() <= TELEGRAM_BYTES_MAX + 1000);
        }
        telegrams.push(P1);
        assert_eq!(telegrams.take(), Some(P1.to_vec()));
        assert_eq!(telegrams.dropped, 1);
    }

    proptest! {
        #[test]
        fn telegrams_are_the_same_however_they_arrive(before in prop::collection::vec(any::<u8>(), 0..40), cut in 1usize..60) {
            let before: Vec<u8> = before.into_iter().filter(|byte| *byte != b'/').collect();
            let stream = [&before[..], P1, D0, P1].concat();
            let mut telegrams = Telegrams::default();
            let mut seen = Vec::new();
            for block in stream.chunks(cut) {
                telegrams.push(block);
                seen.extend(std::iter::from_fn(|| telegrams.take()));
            }
            prop_assert_eq!(seen, vec![P1.to_vec(), D0.to_vec(), P1.to_vec()]);
        }
    }
}
