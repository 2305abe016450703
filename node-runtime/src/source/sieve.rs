//! What of a stream is new to the node.

use crate::reading::{Position, Reading};

/// Keeps out what the node took in before, where a stream says things again, and counts what is no reading.
///
/// It does not judge the order of what is new: whether a clock was set back is for the window to find out.
#[derive(Debug)]
pub(super) struct Sieve {
    newest_ms: Option<i64>,
    again: bool,
    malformed: u64,
}

impl Sieve {
    /// For a stream that begins with what the node may know already.
    pub(super) fn behind(position: Position) -> Self {
        Self { newest_ms: position.newest_ms, again: true, malformed: 0 }
    }

    /// Whether what comes now may be known already; without being told, this holds until the first new reading.
    pub(super) fn expect_known(&mut self, again: bool) {
        self.again = again;
    }

    /// The reading, if it is one, and new.
    pub(super) fn pass(&mut self, reading: Option<Reading>) -> Option<Reading> {
        let Some(reading) = reading else {
            self.malformed += 1;
            return None;
        };
        if self.again && self.newest_ms.is_some_and(|newest_ms| reading.time_ms <= newest_ms) {
            return None;
        }
        self.again = false;
        self.newest_ms = Some(reading.time_ms);
        Some(reading)
    }

    /// How much came that was no reading.
    pub(super) fn malformed(&self) -> u64 {
        self.malformed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_passed_over_and_a_clock_set_back_is_not() {
        let mut sieve = Sieve::behind(Position { newest_ms: Some(3), rows: 0 });
        let mut pass = |time_ms| sieve.pass(Some(Reading { time_ms, value: 0.0 })).is_some();
        assert_eq!([1, 2, 3, 4, 2, 5].map(&mut pass), [false, false, false, true, true, true]);
        sieve.expect_known(true);
        let mut pass = |time_ms| sieve.pass(Some(Reading { time_ms, value: 0.0 })).is_some();
        assert_eq!([4, 5, 6, 1].map(&mut pass), [false, false, true, true]);
        assert_eq!((sieve.pass(None), sieve.malformed()), (None, 1));
    }
}
