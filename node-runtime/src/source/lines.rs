//! Lines from a stream that may still grow, each bounded in length.
#![allow(dead_code, reason = "a program may be built without the sources that need it")]

use std::io::{self, Read};

/// Longer lines are dropped.
pub(super) const LINE_BYTES_MAX: usize = 64 * 1024;

/// Cuts what a reader gives into lines, without ever holding more than one long line.
#[derive(Debug, Default)]
pub(super) struct Lines {
    buffer: Vec<u8>,
    /// Start of the first line that was not returned.
    begin: usize,
    /// The rest of a line that was too long is being dropped.
    dropping: bool,
    /// Lines that were too long.
    pub(super) dropped: u64,
}

impl Lines {
    /// Reads once; the number of bytes read, 0 at the end as it is now.
    pub(super) fn fill(&mut self, reader: &mut impl Read) -> io::Result<usize> {
        let mut block = [0; 8192];
        let count = loop {
            match reader.read(&mut block) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.push(&block[..count]);
        Ok(count)
    }

    /// Adds bytes that were read elsewhere.
    pub(super) fn push(&mut self, block: &[u8]) {
        self.buffer.drain(..self.begin);
        self.begin = 0;
        self.buffer.extend_from_slice(block);
    }

    /// The next complete line, without its end.
    pub(super) fn next(&mut self) -> Option<String> {
        loop {
            let rest = &self.buffer[self.begin..];
            let Some(length) = rest.iter().position(|byte| *byte == b'\n') else {
                if rest.len() > LINE_BYTES_MAX {
                    self.begin = self.buffer.len();
                    self.dropped += u64::from(!self.dropping);
                    self.dropping = true;
                }
                return None;
            };
            let line = String::from_utf8_lossy(&rest[..length]).trim_end_matches('\r').to_owned();
            self.begin += length + 1;
            if !std::mem::take(&mut self.dropping) {
                return Some(line);
            }
        }
    }

    /// Discards the buffer: the stream starts over.
    pub(super) fn restart(&mut self) {
        *self = Self { dropped: self.dropped, ..Self::default() };
    }

    /// The text after the last line end, at the end of the stream.
    pub(super) fn last(&mut self) -> Option<String> {
        let rest = self.buffer.split_off(self.begin);
        self.buffer.clear();
        self.begin = 0;
        let whole = !std::mem::take(&mut self.dropping) && !rest.is_empty();
        whole.then(|| String::from_utf8_lossy(&rest).trim_end_matches('\r').to_owned())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_lines_are_dropped_and_counted_once() {
        let mut text = b"one\n".to_vec();
        text.extend(std::iter::repeat_n(b'x', 3 * LINE_BYTES_MAX));
        text.extend(b"\r\ntwo\r\nthree");
        let (mut lines, mut reader, mut seen) = (Lines::default(), text.as_slice(), Vec::new());
        while lines.fill(&mut reader).unwrap() > 0 {
            assert!(lines.buffer.len() <= LINE_BYTES_MAX + 8192);
            seen.extend(std::iter::from_fn(|| lines.next()));
        }
        seen.extend(lines.last());
        assert_eq!((seen, lines.dropped), (vec!["one".into(), "two".into(), "three".into()], 1));
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_the_bytes_arrive(bytes in prop::collection::vec(prop::sample::select(b"ab\n\r\xff".to_vec()), 0..200), cut in 1usize..50) {
            let whole: Vec<String> = {
                let mut lines = Lines::default();
                lines.fill(&mut bytes.as_slice()).unwrap();
                std::iter::from_fn(|| lines.next()).collect()
            };
            let mut lines = Lines::default();
            let mut pieces = Vec::new();
            for mut piece in bytes.chunks(cut) {
                lines.fill(&mut piece).unwrap();
                pieces.extend(std::iter::from_fn(|| lines.next()));
            }
            prop_assert_eq!(whole, pieces);
        }
    }
}
