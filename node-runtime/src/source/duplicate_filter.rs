//! Duplicate filter for streams that deliver readings again.
#![allow(dead_code, reason = "a program may be built without the sources that need it")]

use crate::reading::{Reading, SourcePosition};

/// Drops readings that the node has received before.
///
/// It does not check the order of new readings: the window detects a clock that was set back.
#[derive(Debug)]
pub(super) struct DuplicateFilter {
    newest_ms: Option<i64>,
    may_repeat: bool,
}

impl DuplicateFilter {
    /// For a stream that may begin with readings before `position`.
    pub(super) fn after(position: SourcePosition) -> Self {
        Self { newest_ms: position.newest_ms, may_repeat: true }
    }

    /// Sets whether the next readings may be duplicates; initially they may, until the first new one.
    pub(super) fn expect_duplicates(&mut self, may_repeat: bool) {
        self.may_repeat = may_repeat;
    }

    /// The reading, if it is new.
    pub(super) fn pass(&mut self, reading: Reading) -> Option<Reading> {
        if self.may_repeat && self.newest_ms.is_some_and(|newest_ms| reading.time_ms <= newest_ms) {
            return None;
        }
        self.may_repeat = false;
        self.newest_ms = Some(reading.time_ms);
        Some(reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_are_dropped_and_a_clock_set_back_is_not() {
        let mut filter = DuplicateFilter::after(SourcePosition { newest_ms: Some(3), rows: 0 });
        let mut pass = |time_ms| filter.pass(Reading { time_ms, value: 0.0 }).is_some();
        assert_eq!([1, 2, 3, 4, 2, 5].map(&mut pass), [false, false, false, true, true, true]);
        filter.expect_duplicates(true);
        let mut pass = |time_ms| filter.pass(Reading { time_ms, value: 0.0 }).is_some();
        assert_eq!([4, 5, 6, 1].map(&mut pass), [false, false, true, true]);
    }
}
