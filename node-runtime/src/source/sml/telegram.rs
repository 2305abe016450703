//! Version 1 of SML's transport protocol.

use crate::source::crc16;

const ESCAPE: [u8; 4] = [0x1b; 4];
const VERSION_1: [u8; 4] = [1; 4];
const START: [u8; 8] = [0x1b, 0x1b, 0x1b, 0x1b, 1, 1, 1, 1];
/// First byte of the end of a telegram; the number of fill bytes and the checksum follow.
const END: u8 = 0x1a;
/// A telegram has a few hundred bytes.
const TELEGRAM_BYTES_MAX: usize = 16 * 1024;

/// Cuts a stream into telegrams whose checksum is right.
#[derive(Debug, Default)]
pub struct SmlTelegrams {
    buffer: Vec<u8>,
    damaged: u64,
}

/// Content of the buffer.
enum Scan {
    /// A telegram of this length, with its content.
    Whole(usize, Vec<u8>),
    /// A damaged telegram, of which so many bytes are read.
    Damaged(usize),
    /// The beginning of one.
    Incomplete,
}

impl SmlTelegrams {
    /// Adds received bytes.
    pub fn push(&mut self, block: &[u8]) {
        self.buffer.extend_from_slice(block);
    }

    /// The content of the next complete telegram.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        loop {
            let begin = find(&self.buffer, &START).unwrap_or_else(|| {
                // Its last bytes may begin the next telegram.
                self.buffer.len().saturating_sub(START.len() - 1)
            });
            self.buffer.drain(..begin);
            let step = match scan(&self.buffer) {
                Scan::Whole(length, content) => {
                    self.buffer.drain(..length);
                    return Some(content);
                }
                Scan::Damaged(length) => length,
                Scan::Incomplete => self.begin_of_next()?,
            };
            self.damaged += 1;
            self.buffer.drain(..step);
        }
    }

    /// Bytes to drop of a telegram whose end was not found, if the next one is there or it is too long.
    fn begin_of_next(&self) -> Option<usize> {
        let rest = self.buffer.get(START.len()..)?;
        match find(rest, &START).map(|next| START.len() + next) {
            Some(next) if !matches!(scan(&self.buffer[next..]), Scan::Incomplete) => Some(next),
            _ => (self.buffer.len() > TELEGRAM_BYTES_MAX).then_some(START.len()),
        }
    }

    /// Telegrams that were too long, or had a wrong checksum.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }
}

/// The telegram at the beginning of `bytes`, which is cut into groups of four bytes.
fn scan(bytes: &[u8]) -> Scan {
    let (groups, _) = bytes.as_chunks::<4>();
    let mut content = Vec::with_capacity(bytes.len());
    let mut at = 2;
    while let Some(group) = groups.get(at) {
        if *group != ESCAPE {
            content.extend(group);
            at += 1;
            continue;
        }
        let Some(escaped) = groups.get(at + 1) else { break };
        match *escaped {
            ESCAPE => content.extend(ESCAPE),
            VERSION_1 => return Scan::Damaged(4 * at),
            [END, fill, low, high] => {
                let length = 4 * (at + 2);
                let right = crc16::x25(&bytes[..length - 2]) == u16::from_le_bytes([low, high]);
                return match content.len().checked_sub(fill.into()) {
                    Some(end) if right && fill < 4 => {
                        content.truncate(end);
                        Scan::Whole(length, content)
                    }
                    _ => Scan::Damaged(START.len()),
                };
            }
            _ => return Scan::Damaged(START.len()),
        }
        at += 2;
    }
    Scan::Incomplete
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// The example of the transport protocol's specification: no content but four bytes.
    const SHORT: [u8; 20] = [
        0x1b, 0x1b, 0x1b, 0x1b, 0x01, 0x01, 0x01, 0x01, 0x12, 0x34, 0x56, 0x78, 0x1b, 0x1b, 0x1b, 0x1b, 0x1a,
        0x00, 0xb8, 0x7b,
    ];

    fn encode(content: &[u8]) -> Vec<u8> {
        let fill = (4 - content.len() % 4) % 4;
        let mut telegram = START.to_vec();
        for group in [content, &vec![0; fill]].concat().as_chunks::<4>().0 {
            telegram.extend(group);
            if *group == ESCAPE {
                telegram.extend(ESCAPE);
            }
        }
        telegram.extend([0x1b, 0x1b, 0x1b, 0x1b, END, fill as u8]);
        let checksum = crc16::x25(&telegram);
        telegram.extend(checksum.to_le_bytes());
        telegram
    }

    fn all(stream: &[u8], cut: usize) -> (Vec<Vec<u8>>, u64) {
        let mut telegrams = SmlTelegrams::default();
        let mut seen = Vec::new();
        for block in stream.chunks(cut) {
            telegrams.push(block);
            seen.extend(std::iter::from_fn(|| telegrams.take()));
        }
        (seen, telegrams.damaged())
    }

    #[test]
    fn a_known_telegram_has_its_checksum() {
        assert_eq!(encode(&[0x12, 0x34, 0x56, 0x78]), SHORT);
        assert_eq!(all(&SHORT, 3), (vec![vec![0x12, 0x34, 0x56, 0x78]], 0));
    }

    #[test]
    fn damage_costs_one_telegram() {
        for at in 8..SHORT.len() {
            let mut damaged = SHORT;
            damaged[at] ^= 0x40;
            let (seen, count) = all(&[&damaged[..], &SHORT].concat(), 7);
            assert_eq!((seen.len(), count), (1, 1), "a wrong byte {at}");
            let mut short = SHORT.to_vec();
            short.remove(at);
            let (seen, count) = all(&[&short[..], &SHORT].concat(), 7);
            assert_eq!((seen.len(), count), (1, 1), "a lost byte {at}");
        }
        assert_eq!(all(&[&SHORT[..9], &SHORT].concat(), 7).0.len(), 1);
    }

    #[test]
    fn an_endless_telegram_is_dropped() {
        let mut telegrams = SmlTelegrams::default();
        telegrams.push(&START);
        for _ in 0..100 {
            telegrams.push(&[7; 1000]);
            assert_eq!(telegrams.take(), None);
            assert!(telegrams.buffer.len() <= TELEGRAM_BYTES_MAX + 1000);
        }
        telegrams.push(&SHORT);
        assert!(telegrams.take().is_some());
    }

    proptest! {
        #[test]
        fn any_content_is_read_however_it_arrives(
            content in prop::collection::vec(prop_oneof![Just(0x1bu8), Just(1), any::<u8>()], 4..80),
            before in prop::collection::vec(any::<u8>(), 0..30),
            cut in 1usize..60,
        ) {
            let stream = [before, encode(&content), SHORT.to_vec()].concat();
            prop_assert_eq!(all(&stream, cut).0, vec![content, vec![0x12, 0x34, 0x56, 0x78]]);
        }
    }
}
